"""Checks what would happen to the constraints that a server has seen if it used another backend.

::

    python -m maskwright.audit FOLDER-OR-FILE… [--tokenizer tokenizer.json] [--draws 80] [--json] [--all]

Every schema, grammar, pattern and tool that is found is compiled by this engine, and by llguidance and XGrammar if they
are installed. The report has a line for each: which engines compile it, what is refused or ignored and why, how long it
took, and which of its documents are judged differently. Engines do not report what they ignore. So for each keyword of
a schema documents are drawn that, according to this engine, only this keyword forbids; an engine that accepts one of
them is reported to ignore the keyword, with the document. Constraints on which all engines agree are only counted;
``--all`` shows them.

What is read:

=====================  =========================================================================================================================
``*.json``             a JSON Schema; a file with a ``schema`` and ``tests`` (``data``, ``valid``), as MaskBench has them; or the body of a request
``*.jsonl``, ``*.log``  such a thing on each line that is JSON; other lines are passed over and counted
``*.lark``             a Lark grammar; ``*.ebnf`` and ``*.gbnf`` the others, ``*.regex`` a regular expression
=====================  =========================================================================================================================

These fields of a request body are read: ``response_format``, ``text.format``, ``structured_outputs``, ``regex``,
``ebnf``, ``json_schema``, ``structural_tag``, ``tools``, the older ``guided_json`` and similar fields, and
``sampling_params`` with any of them.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import pathlib
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from . import Compiler, Error, Vocabulary, constraints
from ._probes import Probe, Prober
from ._requests import constraint as request_constraint

__all__ = ["Case", "Engine", "Finding", "audit", "engines", "find", "main"]


@dataclass
class Case:
    """A constraint that was found: its place, kind and text, and documents for which it is known whether they are
    valid."""

    at: str
    kind: str
    text: str
    documents: list[tuple[str, bool | None]] = field(default_factory=list)


@dataclass
class Finding:
    """The result of an engine for a case: the error, or remarks; the seconds it took; and for each document whether
    it was accepted."""

    engine: str
    seconds: float
    error: str | None = None
    remarks: list[str] = field(default_factory=list)
    accepted: list[bool] = field(default_factory=list)


class Engine:
    """This engine. The classes for other engines have the same two methods."""

    name = "maskwright"

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._compiler = Compiler(vocabulary)

    def compile(self, case: Case) -> tuple[Any, list[str]]:
        """Compiles a case and returns the result with remarks. Raises the engine's error."""
        wanted = constraints.regex(case.text, dialect="ecma") if case.kind == "regex" else request_constraint(case.kind, case.text, finishes=True)
        compiled = self._compiler.compile(wanted)
        return compiled, [f"{pointer} is not enforced" for pointer in compiled.report.unenforced] + compiled.report.warnings

    def accepts(self, compiled: Any, document: str) -> bool:
        """Whether a text is complete and valid."""
        matcher = compiled.matcher()
        try:
            matcher.accept_bytes(document)
        except Error:
            return False
        return bool(matcher.is_accepting())


class _Llguidance:
    name = "llguidance"

    def __init__(self, vocabulary: Vocabulary) -> None:
        import llguidance

        self._llguidance = llguidance
        self._tokenizer = llguidance.LLTokenizer("byte")

    def compile(self, case: Case) -> tuple[Any, list[str]]:
        grammar = {"json_schema": "json_schema", "regex": "regex", "grammar": "grammar", "json_object": "json_schema", "choice": "choice"}.get(case.kind)
        if grammar is None:
            raise ValueError(f"it has no {case.kind}")
        text = '{"type": "object"}' if case.kind == "json_object" else case.text
        compiled = self._llguidance.LLMatcher(self._tokenizer, self._llguidance.grammar_from(grammar, text), log_level=0)
        if compiled.is_error():
            raise ValueError(compiled.get_error().splitlines()[0])
        return compiled, list(compiled.get_grammar_warnings())

    def accepts(self, compiled: Any, document: str) -> bool:
        matcher = compiled.deep_copy()
        tokens = list(document.encode())
        return matcher.try_consume_tokens(tokens) == len(tokens) and bool(matcher.is_accepting())


class _XGrammar:
    name = "xgrammar"

    def __init__(self, vocabulary: Vocabulary) -> None:
        import xgrammar

        tokens = [vocabulary.token_bytes(token) for token in range(vocabulary.size)]
        self._xgrammar = xgrammar
        self._compiler = xgrammar.GrammarCompiler(xgrammar.TokenizerInfo(tokens, stop_token_ids=vocabulary.eos))

    def compile(self, case: Case) -> tuple[Any, list[str]]:
        match case.kind:
            case "json_schema":
                return self._compiler.compile_json_schema(case.text, strict_mode=False), []
            case "json_object":
                return self._compiler.compile_builtin_json_grammar(), []
            case "regex":
                return self._compiler.compile_regex(case.text), []
            case "structural_tag":
                return self._compiler.compile_structural_tag(case.text), []
            case "choice":
                choices = " | ".join(json.dumps(choice, ensure_ascii=False) for choice in json.loads(case.text))
                return self._compiler.compile_grammar(f"root ::= {choices}"), []
            case _ if "::=" in case.text:
                return self._compiler.compile_grammar(case.text), []
            case _:
                return self._compiler.compile_lark(case.text), []

    def accepts(self, compiled: Any, document: str) -> bool:
        matcher = self._xgrammar.GrammarMatcher(compiled, terminate_without_stop_token=True)
        return bool(matcher.accept_string(document)) and bool(matcher.is_terminated())


def engines(vocabulary: Vocabulary) -> list[Any]:
    """Returns this engine, and the others that are installed."""
    others = [other for other in (_Llguidance, _XGrammar) if importlib.util.find_spec(other.name) is not None]
    return [Engine(vocabulary), *(other(vocabulary) for other in others)]


def audit(case: Case, engine: Any, probes: Iterable[Probe] = ()) -> Finding:
    """Runs an engine on a case. Any exception is its verdict. Probes that it judges differently from this engine
    become remarks."""
    begun = time.perf_counter()
    try:
        compiled, remarks = engine.compile(case)
    except Exception as error:  # noqa: BLE001 - other engines raise what they like, and that is what is asked for
        return Finding(engine.name, time.perf_counter() - begun, str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__)
    finding = Finding(engine.name, time.perf_counter() - begun, remarks=remarks)
    for document, _ in case.documents:
        finding.accepted.append(engine.accepts(compiled, document))
    told: set[str | None] = set()
    for probe in probes:
        if probe.keyword not in told and engine.accepts(compiled, probe.document) != (probe.keyword is None):
            told.add(probe.keyword)
            finding.remarks.append(f"rejects {_short(probe.document)}" if probe.keyword is None else f"ignores {probe.keyword}: accepts {_short(probe.document)}")
    return finding


def find(paths: Iterable[str | pathlib.Path], passed_over: list[str] | None = None) -> Iterator[Case]:
    """Finds the constraints in files and folders. Everything else is added to ``passed_over``."""
    passed = [] if passed_over is None else passed_over
    for path in map(pathlib.Path, paths):
        if path.is_dir():
            yield from find(sorted(inner for inner in path.rglob("*") if inner.is_file()), passed)
            continue
        kind = {".lark": "grammar", ".ebnf": "grammar", ".gbnf": "grammar", ".regex": "regex"}.get(path.suffix)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            passed.append(f"{path}: {error}")
            continue
        if kind is not None:
            yield Case(str(path), kind, text.removesuffix("\n") if kind == "regex" else text)
        elif path.suffix in (".jsonl", ".log"):
            for number, line in enumerate(text.splitlines(), 1):
                yield from _read(f"{path}:{number}", line, passed)
        elif path.suffix == ".json":
            yield from _read(str(path), text, passed)
        else:
            passed.append(f"{path}: of a kind that is not read")


def _read(at: str, text: str, passed: list[str]) -> Iterator[Case]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        passed.append(f"{at}: no JSON: {error}")
        return
    cases = list(_cases(at, value))
    if not cases:
        passed.append(f"{at}: there is no constraint in it")
    yield from cases


#: Fields of requests whose value is the text of a constraint.
_TEXTS = {"regex": "regex", "grammar": "grammar", "ebnf": "grammar", "structural_tag": "structural_tag", "json_schema": "json_schema", "json": "json_schema"}
_TEXTS |= {"guided_json": "json_schema", "guided_regex": "regex", "guided_grammar": "grammar"}
_BODIES = {"response_format", "structured_outputs", "sampling_params", "tools", "messages", "prompt", "input", "body", "extra_body", "guided_choice", *_TEXTS} - {"json"}


def _cases(at: str, value: Any) -> Iterator[Case]:
    if isinstance(value, dict) and "schema" in value and "tests" in value:
        tests = value["tests"] if isinstance(value["tests"], list) else []
        documents = [(_dumps(test["data"]), test.get("valid")) for test in tests if isinstance(test, dict) and "data" in test]
        yield Case(at, "json_schema", _dumps(value["schema"]), documents)
    elif isinstance(value, dict) and not _BODIES & set(value):
        yield Case(at, "json_schema", _dumps(value))
    elif isinstance(value, dict):
        yield from _request(at, value)


def _request(at: str, body: dict[str, Any]) -> Iterator[Case]:
    for name in ("sampling_params", "structured_outputs", "extra_body", "body"):
        if isinstance(body.get(name), dict):
            yield from _request(f"{at}/{name}", body[name])
    text = body.get("text")
    for name, given in (("response_format", body.get("response_format")), ("text/format", text.get("format") if isinstance(text, dict) else None)):
        if not isinstance(given, dict):
            continue
        if given.get("type") == "json_schema":
            inner = given.get("json_schema", given)
            if isinstance(inner, dict) and "schema" in inner:
                yield Case(f"{at}/{name}", "json_schema", _dumps(inner["schema"]))
        elif given.get("type") == "json_object":
            yield Case(f"{at}/{name}", "json_object", "")
        elif given.get("type") == "structural_tag":
            yield Case(f"{at}/{name}", "structural_tag", _dumps(given))
    for name, kind in _TEXTS.items():
        given = body.get(name)
        if isinstance(given, str):
            yield Case(f"{at}/{name}", kind, given)
        elif isinstance(given, dict) and kind in ("json_schema", "structural_tag"):
            yield Case(f"{at}/{name}", kind, _dumps(given))
    for name in ("choice", "guided_choice"):
        if isinstance(body.get(name), list):
            yield Case(f"{at}/{name}", "choice", _dumps(body[name]))
    for number, tool in enumerate(body["tools"] if isinstance(body.get("tools"), list) else []):
        function = tool.get("function", tool) if isinstance(tool, dict) else None
        if isinstance(function, dict) and isinstance(function.get("parameters"), dict):
            yield Case(f"{at}/tools/{number}", "json_schema", _dumps(function["parameters"]))


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _differences(case: Case, findings: list[Finding]) -> list[str]:
    told = []
    compiled = [finding for finding in findings if finding.error is None]
    for number, (document, valid) in enumerate(case.documents):
        verdicts = {finding.engine: finding.accepted[number] for finding in compiled}
        if len({*verdicts.values(), *([] if valid is None else [valid])}) > 1:
            says = ", ".join(f"{name} {'accepts' if verdict else 'rejects'}" for name, verdict in verdicts.items())
            is_said = "" if valid is None else f" (it is said to be {'valid' if valid else 'invalid'})"
            told.append(f"document {number}{is_said}: {says}: {_short(document)}")
    return told


def _short(document: str) -> str:
    return document if len(document) <= 80 else document[:79] + "…"


def main(arguments: list[str] | None = None) -> int:
    """Runs the command. Returns 1 if the engines differ somewhere, 2 if nothing was found."""
    parser = argparse.ArgumentParser(prog="python -m maskwright.audit", description="What would other backends make of the constraints that a server has seen?")
    parser.add_argument("paths", nargs="+", metavar="PATH", help="folders, and files of schemas, grammars and requests")
    parser.add_argument("--tokenizer", help="a tokenizer file, for the times; without it tokens are bytes. llguidance always gets bytes")
    parser.add_argument("--draws", type=int, default=80, metavar="N", help="documents that are drawn for each keyword of a schema to find out who ignores it; 0 for none (80)")
    parser.add_argument("--json", action="store_true", help="a line of JSON for each constraint")
    parser.add_argument("--all", action="store_true", help="also those on which all agree")
    given = parser.parse_args(arguments)
    if given.tokenizer is None:
        vocabulary = Vocabulary.from_tokens([*(bytes([byte]) for byte in range(256)), b"<end>"], eos=256)
    else:
        vocabulary = Vocabulary.load(given.tokenizer)
    known, passed = engines(vocabulary), []
    prober = Prober(given.draws)
    count = differing = 0
    totals = {engine.name: [0, 0.0] for engine in known}
    for case in find(given.paths, passed):
        count += 1
        probes = prober.probes(case.text) if case.kind == "json_schema" and given.draws > 0 and len(known) > 1 else []
        findings = [audit(case, engine, probes) for engine in known]
        for finding in findings:
            totals[finding.engine][0] += finding.error is None
            totals[finding.engine][1] += finding.seconds
        differences = _differences(case, findings)
        agree = len({finding.error is None for finding in findings}) == 1 and not differences and not any(finding.remarks for finding in findings)
        differing += not agree
        if given.json:
            told = {finding.engine: {"milliseconds": round(1000 * finding.seconds, 3), "error": finding.error, "remarks": finding.remarks} for finding in findings}
            print(_dumps({"at": case.at, "kind": case.kind, "engines": told, "differences": differences}))
        elif given.all or not agree:
            print(f"{case.at}  ({case.kind})")
            for finding in findings:
                word = f"refused: {finding.error}" if finding.error is not None else "compiled" + "".join(f"; {remark}" for remark in finding.remarks)
                print(f"  {finding.engine:<11} {1000 * finding.seconds:9.1f} ms  {word}")
            for difference in differences:
                print(f"  {difference}")
    for line in passed:
        print(f"passed over: {line}", file=sys.stderr)
    if not count:
        print("there is no constraint in what was given", file=sys.stderr)
        return 2
    if not given.json:
        print(f"{count} constraints; on {count - differing} all agree")
        for name, (compiled, seconds) in totals.items():
            print(f"  {name:<11} compiles {compiled}, in {1000 * seconds / count:.1f} ms on average")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
