#!/usr/bin/env python3
"""Makes the first inputs of the fuzz targets out of the cases in `testdata`, into fuzz/seeds/TARGET."""

import json
import pathlib
import shutil
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The folder of the cases, their field with the constraint, and what stands in front of it in an input.
CASES = {
    "regex": ("regex", "pattern", [b"\0", b"\1", b"\2"]),
    "json_schema": ("json_schema", "schema", [b"\0", b"\1"]),
    "ebnf": ("ebnf", "source", [b""]),
    "gbnf": ("gbnf", "source", [b""]),
    "lark": ("lark", "source", [b""]),
    "tag": ("tag", "tag", [b""]),
}

# Weighted grammars have no cases in `testdata`.
GRAMMARS = [
    "S -> a [0.6] | S S [0.4]",
    "S -> a S b [0.4] | S S [0.1] | c [0.5]",
    "S -> NP VP\nNP -> kim [0.5] | sandy [0.3] | NP PP [0.2]\nVP -> sees NP [0.7] | VP PP [0.3]\nPP -> with NP",
    'S -> N " sleeps"\nN -> "Alice" [0.9] | "Bob" [0.1]',
    "S -> /[0-9]{1,3}/ [0.5] | word [0.25] | S S [0.25]",
    "S -> A [0.5] | B [0.5]\nA -> B [0.25] | [0.75]\nB -> A [0.5] | b [0.5]",
]


def seeds(target):
    if target in CASES:
        folder, field, fronts = CASES[target]
        for path in sorted((ROOT / "testdata" / folder).glob("*.toml")):
            for case in tomllib.loads(path.read_text())["case"]:
                if isinstance(case.get(field), str) and len(case[field]) <= 1500:
                    for front in fronts:
                        yield front + case[field].encode() + b"\0" + bytes(range(8))
    elif target == "tokenizer_file":
        for path in sorted((ROOT / "testdata" / "tokenizers").glob("*.json")):
            yield path.read_bytes()
        yield b"YQ== 0\nYg== 1\nYWI= 2\n"
        yield b"GGUF\3\0\0\0" + bytes(16)
    elif target == "stream":
        formats = sorted(path.stem for path in (ROOT / "crates/maskwright/formats").glob("*.json"))
        for path in sorted((ROOT / "testdata" / "tool_calls").glob("*.toml")):
            for case in tomllib.loads(path.read_text())["case"]:
                if case.get("format") in formats and isinstance(case.get("output"), str):
                    yield bytes([formats.index(case["format"]), 7]) + case["output"].encode()
    elif target == "pcfg":
        for grammar in GRAMMARS:
            yield grammar.encode() + b"\0" + bytes(range(8))
    elif target == "http":
        yield from bodies()
    else:
        yield bytes(range(48))


def bodies():
    """Requests to each endpoint (the first byte), with constraints of every kind out of the cases."""
    says = [{"role": "user", "content": "hi"}]
    formats = [{"type": "regex", "pattern": "[a-c]{1,4}"}, {"type": "json_object"}]
    for path in sorted((ROOT / "testdata" / "json_schema").glob("*.toml")):
        for case in tomllib.loads(path.read_text())["case"][:4]:
            if isinstance(case.get("schema"), str) and len(case["schema"]) <= 400:
                formats.append({"type": "json_schema", "json_schema": {"name": "x", "schema": json.loads(case["schema"])}})
    for wanted in formats:
        yield b"\0" + json.dumps({"messages": says, "max_tokens": 20, "response_format": wanted}).encode()
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}}
    yield b"\0" + json.dumps({"messages": says, "tools": [tool], "tool_choice": "required", "stream": True, "stop": ["x"], "n": 2, "logprobs": True}).encode()
    pcfg = {"type": "pcfg", "grammar": GRAMMARS[0], "lambda": 0.5, "top_k": 8, "report": True}
    yield b"\0" + json.dumps({"messages": says, "max_tokens": 12, "response_format": pcfg}).encode()
    for options in ({"mass": True, "tokens": True}, {"sampling": "exact", "tries": 20}, {"draft": {"max_tokens": 6}}):
        yield b"\0" + json.dumps({"messages": says, "max_tokens": 12, "response_format": formats[0], "maskwright": options}).encode()
    prefilled = [*says, {"role": "assistant", "content": "ab"}]
    yield b"\0" + json.dumps({"messages": prefilled, "max_tokens": 6, "response_format": formats[0], "stream": True}).encode()
    yield b"\1" + json.dumps({"prompt": "a", "max_tokens": 5, "stream": True, "temperature": 0, "seed": 1, "logit_bias": {"5": -100}}).encode()
    yield b"\2" + json.dumps({"input": "a", "text": {"format": {"type": "json_object"}}, "max_output_tokens": 8}).encode()
    yield b"\3" + json.dumps({"response_format": formats[0]}).encode()
    yield b"\4" + json.dumps({"response_format": formats[0], "text": "ab"}).encode()
    yield b"\5" + json.dumps({"text": "a b"}).encode()
    yield b"\6" + json.dumps({"tokens": [1, 2, 3]}).encode()


for name in sys.argv[1:]:
    into = ROOT / "fuzz" / "seeds" / name
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    for number, seed in enumerate(seeds(name)):
        (into / f"{number:04}").write_bytes(seed)
