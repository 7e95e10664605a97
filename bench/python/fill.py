#!/usr/bin/env python3
"""What the Python package costs: filling a mask, filling a batch, importing, and the size of the wheel.

    make wheel
    python3 -m venv target/measure && target/measure/bin/pip install numpy target/wheels/*.whl
    target/measure/bin/python bench/python/fill.py --tokenizer target/assets/llama3_1 --wheel target/wheels/*.whl

Times are of single calls, read from the clock before and after; its own cost is printed and not subtracted. What is compared is measured in turns, in one run, because machines
are noisy. Documents are walked once before anything is timed, so all states are warm.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import threading
import time
import zlib

import numpy as np

import maskwright as mw

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 40},
        "tags": {"type": "array", "items": {"type": "string"}},
        "address": {"type": "object", "properties": {"city": {"type": "string"}, "zip": {"type": "string", "pattern": "^[0-9]{5}$"}}},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "kind": {"enum": ["person", "company"]},
    },
    "required": ["name", "age", "kind"],
}
DOCUMENT = {
    "name": "Ada Lovelace",
    "tags": ["mathematics", "engines", "poetical science"],
    "address": {"city": "London", "zip": "12345"},
    "age": 36,
    "kind": "person",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", default="target/assets/llama3_1", help="a tokenizer file or folder")
    parser.add_argument("--wheel", help="the wheel, for its size")
    parser.add_argument("--rounds", type=int, default=300, help="how often each document is walked")
    parser.add_argument("--json", metavar="OUT", help="writes the numbers there")
    arguments = parser.parse_args()
    numbers: dict[str, float] = {}
    if arguments.wheel:
        numbers["wheel_mb"] = os.path.getsize(arguments.wheel) / 1e6
    numbers |= importing()
    vocabulary = mw.Vocabulary.load(arguments.tokenizer)
    compiler = mw.Compiler(vocabulary)
    compiled = compiler.compile(mw.json_schema(SCHEMA))
    numbers |= filling(vocabulary, compiled, arguments.rounds)
    numbers |= batches(vocabulary, compiled)
    for name, value in numbers.items():
        print(f"{name:32} {value:10.3f}")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(numbers, file, indent=1)


def importing() -> dict[str, float]:
    """Milliseconds to import the package, as the interpreter itself measures them: by the clock, and of the processor."""
    code = (
        "import time; wall, cpu = time.perf_counter(), time.process_time(); import maskwright; "
        "print(time.perf_counter() - wall, time.process_time() - cpu)"
    )
    told = []
    for _ in range(15):
        done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        told.append([float(number) * 1e3 for number in done.stdout.split()])
    wall, cpu = zip(*told)
    return {"import_ms": statistics.median(wall), "import_cpu_ms": statistics.median(cpu)}


def filling(vocabulary: mw.Vocabulary, compiled: mw.Compiled, rounds: int) -> dict[str, float]:
    """Microseconds of a call, along a document, for each kind of buffer."""
    tokens = vocabulary.encode(json.dumps(DOCUMENT))
    masks = {"numpy": np.zeros((4, vocabulary.words), dtype=np.int32), "bytearray": bytearray(4 * vocabulary.words)}
    try:
        import torch

        masks["torch"] = torch.zeros((4, vocabulary.words), dtype=torch.int32)
    except ImportError:
        pass
    clock = time.perf_counter_ns
    times: dict[str, list[int]] = {name: [] for name in [*masks, "accept", "allows", "clock"]}
    matcher = compiled.matcher()
    for round in range(rounds + 1):
        matcher.reset()
        for token in tokens:
            for name, mask in masks.items():
                began = clock()
                matcher.fill_mask(mask)
                ended = clock()
                times[name].append(ended - began)
            began = clock()
            matcher.allows(token)
            ended = clock()
            times["allows"].append(ended - began)
            began = clock()
            matcher.accept(token)
            ended = clock()
            times["accept"].append(ended - began)
            began = clock()
            times["clock"].append(clock() - began)
        if round == 0:
            times = {name: [] for name in times}
    told = {}
    for name, all_of_them in times.items():
        all_of_them.sort()
        label = name if name in ("accept", "allows", "clock") else f"fill_{name}"
        told[f"{label}_us_p50"] = all_of_them[len(all_of_them) // 2] / 1e3
        told[f"{label}_us_p99"] = all_of_them[len(all_of_them) * 99 // 100] / 1e3
    return told


def gain_of_two_threads() -> float:
    """What two threads gain over one on this machine at this moment, on work that needs no memory: 2 on two idle cores."""
    data = bytes(1_000_000)

    def work(rounds: int) -> None:
        for _ in range(rounds):
            zlib.crc32(data)

    def run(threads: int) -> float:
        began = time.perf_counter()
        all_of_them = [threading.Thread(target=work, args=(20 // threads,)) for _ in range(threads)]
        for thread in all_of_them:
            thread.start()
        for thread in all_of_them:
            thread.join()
        return time.perf_counter() - began

    one, two = [], []
    for _ in range(30):
        one.append(run(1))
        two.append(run(2))
    return statistics.median(one) / statistics.median(two)


def batches(vocabulary: mw.Vocabulary, compiled: mw.Compiled) -> dict[str, float]:
    """256 rows on one thread and on all, in turns."""
    tokens = vocabulary.encode(json.dumps(DOCUMENT))
    matchers = []
    for number in range(256):
        matcher = compiled.matcher()
        matcher.accept_all(tokens[: number % len(tokens)])
        matchers.append(matcher)
    mask = np.zeros((256, vocabulary.words), dtype=np.int32)
    told: dict[str, float] = {"pure_work_2_threads_ratio": gain_of_two_threads()}
    for threads in (2, None):
        one, many = [], []
        for _ in range(400):
            began = time.perf_counter()
            mw.fill_masks(matchers, mask, threads=1)
            between = time.perf_counter()
            mw.fill_masks(matchers, mask, threads=threads)
            many.append(time.perf_counter() - between)
            one.append(between - began)
        label = f"batch_256_{threads or 'all'}_threads"
        told["batch_256_1_thread_us_p50"] = statistics.median(one) * 1e6
        told[f"{label}_us_p50"] = statistics.median(many) * 1e6
        told[f"{label}_ratio"] = statistics.median(one) / statistics.median(many)
        told[f"{label}_ratio_best"] = min(one) / min(many)
    return told


if __name__ == "__main__":
    main()
