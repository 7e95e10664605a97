#!/usr/bin/env python3
"""Makes the first inputs of the fuzz targets out of the cases in `testdata`, into fuzz/seeds/TARGET."""

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
    else:
        yield bytes(range(48))


for name in sys.argv[1:]:
    into = ROOT / "fuzz" / "seeds" / name
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    for number, seed in enumerate(seeds(name)):
        (into / f"{number:04}").write_bytes(seed)
