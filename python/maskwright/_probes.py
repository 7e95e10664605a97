"""Documents that tell what an engine makes of each keyword of a schema.

An engine that ignores a keyword compiles the schema like any other, and says nothing. So documents are drawn that only this keyword forbids: valid ones of the schema without it, of which those stay that are
refused with it. An engine that takes one of them does not enforce the keyword there. Documents that are valid are drawn as well, and an engine that refuses one is too strict, or writes it in another way.

What is drawn is short, without white space, and made of few characters, so that values repeat and numbers are small. A keyword for which nothing was found is not judged: it may forbid nothing, or nothing short.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any

from . import Compiler, Error, Matcher, Vocabulary, constraints
from .errors import BudgetError, LimitError

__all__ = ["Probe", "Prober"]

#: So many documents of one kind are kept.
KEPT = 2
#: So many keywords of a schema are looked at.
KEYWORDS = 64
#: Tokens of a document, the end included.
LENGTHS = (6, 12, 24, 48, 96)
_FEW = frozenset(b'{}[]:,"01a.-tfn')
_CLOSING = frozenset(b",]}")
#: Where so many bytes may come the text stands inside of a string.
_IN_A_STRING = 60
#: What says something about a schema and not about a document.
_NOT_ABOUT_DOCUMENTS = frozenset({"$defs", "definitions", "$schema", "$id", "$anchor", "$dynamicAnchor", "x-maskwright", "x-guidance"})


@dataclass(frozen=True)
class Probe:
    """A document, and the keyword that alone forbids it; ``None`` if it is valid."""

    document: str
    keyword: str | None


class Prober:
    """Draws documents with a token for each byte. The same schema gets the same ones."""

    def __init__(self, draws: int) -> None:
        self._draws = draws
        # A log has the same schema again and again.
        self._known: dict[str, list[Probe]] = {}
        self._vocabulary = Vocabulary.from_tokens([*(bytes([byte]) for byte in range(256)), b"<end>"], eos=256)

    def probes(self, schema: str) -> list[Probe]:
        """Documents for a schema; none if this engine cannot compile it."""
        if schema not in self._known:
            self._known[schema] = self._probes(schema)
        return self._known[schema]

    def _probes(self, schema: str) -> list[Probe]:
        # Of its own, so that relaxed schemas leave nothing behind.
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
        """Different documents of a schema, short ones first. Half of them have no keys but those that are named, because a key that is not is easier to draw."""
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
    """A document of at most so many tokens, or ``None`` if there is none that short. Strings are short, too, and made of these letters."""
    text = bytearray()
    matcher: Matcher = compiled.matcher()
    try:
        matcher.set_budget(length)
    except BudgetError:
        # Too few, or it is not known how far it is to the end: then the text may become too long, and is given up.
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
    """One of the bytes that may come. Every other time what is open is closed, where that may be."""
    is_in_string = len(allowed) > _IN_A_STRING
    closing = {ord('"')} if is_in_string else _CLOSING
    wanted = [token for token in allowed if token in closing or token > 255] if chance.random() < 0.5 else []
    if not wanted and is_in_string:
        wanted = [token for token in allowed if token in letters]
    return chance.choice(wanted or [token for token in allowed if token in _FEW or token > 255] or allowed)


def _letters(schema: Any) -> list[int]:
    """What strings are made of: ``a``, and what the values are made of that the schema lists."""
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
        # It is not known.
        return False
    except Error:
        return True
    return not matcher.is_accepting()


def _without(schema: Any, pointer: str) -> Any:
    """A schema without the keyword at a place; ``None`` if there is no such place."""
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
