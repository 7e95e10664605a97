"""Draws documents that show which keywords of a schema an engine enforces.

An engine that ignores a keyword compiles the schema without any message. To detect this, documents are drawn that only
this keyword forbids: documents that are valid for the schema without the keyword, and refused with it. An engine that
accepts such a document does not enforce the keyword there. Valid documents are drawn as well; an engine that refuses
one is too strict, or formats it differently.

The documents are short, without white space, and made of few characters, so that values repeat and numbers are small. A
keyword for which nothing was found is not judged: it may forbid nothing, or nothing short.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any

from . import Compiler, Error, Matcher, Vocabulary, constraints
from .errors import BudgetError, LimitError

__all__ = ["Probe", "Prober"]

#: The maximum number of documents of one kind.
KEPT = 2
#: The maximum number of keywords of a schema that are checked.
KEYWORDS = 64
#: The maximum number of tokens of a document, including the end, in successive attempts.
LENGTHS = (6, 12, 24, 48, 96)
_FEW = frozenset(b'{}[]:,"01a.-tfn')
_CLOSING = frozenset(b",]}")
#: If at least this many bytes may come next, the text is inside a string.
_IN_A_STRING = 60
#: Keywords that describe the schema and not the document.
_NOT_ABOUT_DOCUMENTS = frozenset({"$defs", "definitions", "$schema", "$id", "$anchor", "$dynamicAnchor", "x-maskwright", "x-guidance"})


@dataclass(frozen=True)
class Probe:
    """A document, and the keyword that alone forbids it; ``None`` if the document is valid."""

    document: str
    keyword: str | None


class Prober:
    """Draws documents with one token for each byte. The same schema always gives the same documents."""

    def __init__(self, draws: int) -> None:
        self._draws = draws
        # A log contains the same schema many times.
        self._known: dict[str, list[Probe]] = {}
        self._vocabulary = Vocabulary.from_tokens([*(bytes([byte]) for byte in range(256)), b"<end>"], eos=256)

    def probes(self, schema: str) -> list[Probe]:
        """Returns documents for a schema; an empty list if this engine cannot compile the schema."""
        if schema not in self._known:
            self._known[schema] = self._probes(schema)
        return self._known[schema]

    def _probes(self, schema: str) -> list[Probe]:
        # A separate compiler, so that relaxed schemas do not stay in a cache.
        compiler = Compiler(self._vocabulary)
        try:
            report = constraints.report(constraints.json_schema(schema))
            judge = compiler.compile(constraints.json_schema(schema, key_order="any"))
            parsed = json.loads(schema)
        except (Error, ValueError, TypeError):
            return []
        letters = _letters(parsed)
        found = [Probe(document, None) for document in self._drawn(compiler, parsed, letters)[:KEPT]]
        enforced = [pointer for pointer, word in report.keywords.items() if word == "enforced"]
        for pointer in [pointer for pointer in enforced if pointer.rpartition("/")[2] not in _NOT_ABOUT_DOCUMENTS][:KEYWORDS]:
            relaxed = _without(parsed, pointer)
            if relaxed is not None:
                forbidden = [document for document in self._drawn(compiler, relaxed, letters) if _refuses(judge.matcher(), document)]
                found += [Probe(document, pointer) for document in forbidden[:KEPT]]
        return found

    def _drawn(self, compiler: Compiler, schema: Any, letters: list[int]) -> list[str]:
        """Draws different documents of a schema, short ones first. Half of them have only keys that the schema
        names, because other keys are easier to draw."""
        chance, documents = random.Random(json.dumps(schema, sort_keys=True)), set()
        for strictness in ("standard", "closed"):
            try:
                compiled = compiler.compile(constraints.json_schema(schema, whitespace="compact", strictness=strictness))
            except (Error, ValueError, TypeError):
                continue
            for number in range((self._draws + 1) // 2):
                document = _draw(compiled, LENGTHS[number % len(LENGTHS)], letters, chance)
                if document is not None:
                    documents.add(document)
        return sorted(documents, key=lambda document: (len(document), document))


def _draw(compiled: Any, length: int, letters: list[int], chance: random.Random) -> str | None:
    """Draws a document of at most ``length`` tokens; ``None`` if none is that short. Strings are short, too, and
    made of these letters."""
    text = bytearray()
    matcher: Matcher = compiled.matcher()
    try:
        matcher.set_budget(length)
    except BudgetError:
        # The limit is too low, or the distance to the end is unknown: the text may become too long, and is then
        # dropped.
        pass
    try:
        for _ in range(length):
            token = _choose(matcher.allowed_tokens(), letters, chance)
            matcher.accept(token)
            if matcher.is_terminated():
                return text.decode("utf-8", "replace")
            text.append(token)
    except LimitError:
        pass
    return None


def _choose(allowed: list[int], letters: list[int], chance: random.Random) -> int:
    """Chooses one of the allowed bytes. Every other time it closes what is open, if possible."""
    is_in_string = len(allowed) > _IN_A_STRING
    closing = {ord('"')} if is_in_string else _CLOSING
    wanted = [token for token in allowed if token in closing or token > 255] if chance.random() < 0.5 else []
    if not wanted and is_in_string:
        wanted = [token for token in allowed if token in letters]
    return chance.choice(wanted or [token for token in allowed if token in _FEW or token > 255] or allowed)


def _letters(schema: Any) -> list[int]:
    """Returns the letters for strings: ``a``, and those of the values that the schema lists."""
    letters, work = {ord("a")}, [(schema, False)]
    while work:
        value, is_listed = work.pop()
        if isinstance(value, str) and is_listed:
            letters.update(value.encode()[:8])
        elif isinstance(value, list):
            work += [(item, is_listed) for item in value]
        elif isinstance(value, dict):
            work += [(item, is_listed or key in ("const", "enum")) for key, item in value.items()]
    return sorted(letters)


def _refuses(matcher: Matcher, document: str) -> bool:
    try:
        matcher.accept_bytes(document)
    except LimitError:
        # Undecided.
        return False
    except Error:
        return True
    return not matcher.is_accepting()


def _without(schema: Any, pointer: str) -> Any:
    """Returns a schema without the keyword at a place; ``None`` if there is no such place."""
    copied = json.loads(json.dumps(schema))
    *way, last = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]] or [""]
    here = copied
    for part in way:
        if isinstance(here, list) and part.isdigit() and int(part) < len(here):
            here = here[int(part)]
        elif isinstance(here, dict) and part in here:
            here = here[part]
        else:
            return None
    if not isinstance(here, dict) or last not in here:
        return None
    del here[last]
    return copied
