#!/usr/bin/env python3
"""Runs fuzz targets that were built before, several at a time, and prints a table.

    fuzz/run.py --seconds 60 --binaries FOLDER             all targets of the folder, on all cores
    fuzz/run.py --seconds 600 --jobs 16 regex matcher      only these
    fuzz/run.py --jobs 16 regex:90 stream:500 stream:500   these runs, each with its seconds; a target may come more than once

With at least as many jobs as targets all run at once, and spare jobs run the first targets a second time, with another seed. Otherwise they wait for each other, in the order given. A target
that finds something is started again until its time is over. Inputs that broke something are kept in artifacts/TARGET, what was learnt in corpus/TARGET, and what the
targets printed in artifacts/TARGET.N.log, all beside this file. It needs Python alone, so that folder and binaries can be copied to another machine (`scripts/fuzz.sh --pack`).
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
# A text of a few kilobytes, and a little longer than the longest that a limit lets an input take.
FLAGS = ["-timeout=25", "-rss_limit_mb=4096", "-max_len=2048", "-print_final_stats=1"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--binaries", type=pathlib.Path, default=HERE / "bin")
    parser.add_argument("targets", nargs="*", metavar="TARGET[:SECONDS]")
    options = parser.parse_args()
    if not options.binaries.is_dir():
        sys.exit(f"fuzz: there is no folder {options.binaries}; 'make fuzz' builds the targets")
    seeds = HERE / "seeds"
    runs = [plan(word, options.seconds) for word in options.targets or sorted(path.name for path in seeds.iterdir())]
    targets = list(dict.fromkeys(target for target, _ in runs))
    for target in targets:
        if not (options.binaries / target).is_file() or not (seeds / target).is_dir():
            sys.exit(f"fuzz: there is no target {target!r} in {options.binaries}")

    # Jobs that are left over run targets again.
    runs += [runs[place % len(runs)] for place in range(options.jobs - len(runs))]
    times = sorted({seconds for _, seconds in runs})
    told = f"{times[0]} s" if len(times) == 1 else f"{times[0]} to {times[-1]} s"
    print(f"fuzz: {len(targets)} targets, {len(runs)} runs of {told} each, {options.jobs} at a time", flush=True)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        done = list(pool.map(lambda run: fuzz(options.binaries, *run[1], run[0]), enumerate(runs)))

    print(f"{'target':15} {'executions':>14} {'per second':>11} {'coverage':>9} {'finds':>6}")
    for target in targets:
        own = [result for result in done if result["target"] == target]
        executed = sum(result["executed"] for result in own)
        seconds = sum(result["seconds"] for result in own)
        coverage = max(result["coverage"] for result in own)
        print(f"{target:15} {executed:>14,} {executed / seconds:>11,.0f} {coverage:>9,} {sum(result['finds'] for result in own):>6}")
    print(f"{'all':15} {sum(result['executed'] for result in done):>14,}")
    found = sorted((HERE / "artifacts").glob("*/*"))
    for path in found:
        print(f"fuzz: {path.relative_to(HERE)}, {path.stat().st_size} bytes")
    sys.exit(1 if any(result["finds"] for result in done) else 0)


def plan(word, default):
    """A target, and for how many seconds."""
    target, _, seconds = word.partition(":")
    if not (seconds or str(default)).isdecimal():
        sys.exit(f"fuzz: {word!r} is no target, and no target with a number of seconds behind a colon")
    return target, int(seconds or default)


def fuzz(binaries, target, seconds, number):
    """One process after the other, until the time is over."""
    corpus, artifacts = HERE / "corpus" / target, HERE / "artifacts" / target
    corpus.mkdir(parents=True, exist_ok=True)
    artifacts.mkdir(parents=True, exist_ok=True)
    log = HERE / "artifacts" / f"{target}.{number}.log"
    result = {"target": target, "executed": 0, "coverage": 0, "finds": 0, "seconds": 0.0}
    begin = time.monotonic()
    tries = 0
    with log.open("w", errors="replace") as file:
        while (left := seconds - (time.monotonic() - begin)) >= 1 and tries < 50:
            tries += 1
            command = [binaries / target, *FLAGS, f"-seed={1 + number * 1000 + tries}", f"-max_total_time={int(left)}", f"-artifact_prefix={artifacts}/", corpus, HERE / "seeds" / target]
            process = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
            file.write(process.stdout)
            counts = re.findall(r"^#(\d+)\s", process.stdout, flags=re.M)
            final = re.search(r"stat::number_of_executed_units: *(\d+)", process.stdout)
            result["executed"] += int(final[1]) if final else int(counts[-1]) if counts else 0
            result["coverage"] = max([result["coverage"], *map(int, re.findall(r" cov: (\d+) ", process.stdout))])
            if process.returncode == 0:
                break
            result["finds"] += 1
    result["seconds"] = max(time.monotonic() - begin, 1e-3)
    return result


if __name__ == "__main__":
    # An earlier run's finds are not those of this one.
    shutil.rmtree(HERE / "artifacts", ignore_errors=True)
    main()
