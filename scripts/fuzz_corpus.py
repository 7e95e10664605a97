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
