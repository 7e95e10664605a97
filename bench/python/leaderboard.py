#!/usr/bin/env python3
"""Every engine that is installed, over the official suite of JSON Schema and a folder of MaskBench files, in one run; one page with plots.

    make leaderboard                          the official suite alone
    make leaderboard DATA=folder SAMPLE=300   with schemas of a folder beside it

The page is target/leaderboard/index.html, its numbers are in numbers.json beside it. `peers.py` has the loop and the engines; each engine lives in a
process of its own, and they take turns schema by schema; `--parallel 4` has four such groups side by side. An engine that is not installed is named on the page and left out.
"""

import argparse
import concurrent.futures
import datetime
import html
import itertools
import json
import math
import os
import platform
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import peers

COLOURS = ["#0b7285", "#66b3c0", "#d9480f", "#7048e8", "#868e96", "#2b8a3e"]
VERDICTS = {"right": "#2b8a3e", "wrong": "#c92a2a", "refused": "#adb5bd"}
# Keywords of the schemas of a folder that get a row of their own.
KEYWORDS = (
    "additionalProperties allOf anyOf const contains dependencies dependentRequired dependentSchemas enum exclusiveMaximum exclusiveMinimum format if items "
    "maxItems maxLength maxProperties maximum minItems minLength minProperties minimum multipleOf not oneOf pattern patternProperties prefixItems "
    "propertyNames $ref required type unevaluatedItems unevaluatedProperties uniqueItems"
).split()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", required=True, type=Path, help="a tokenizer.json")
    parser.add_argument("--suite", type=Path, help="the folder of the official suite, which holds tests/draft2020-12")
    parser.add_argument("--data", type=Path, help="a folder of MaskBench files")
    parser.add_argument("--sample", type=int, help="that many schemas of the folder, drawn with --seed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engines", help="some of: " + "; ".join(peers.ENGINES) + " (separated by ;)")
    parser.add_argument("--only", help="take only cases of the suite whose file is named so, separated by commas")
    parser.add_argument("--timeout-s", type=int, default=10)
    parser.add_argument("--memory-gb", type=float, default=12)
    parser.add_argument("--parallel", type=int, default=1, help="how many cases are worked on side by side, each by processes of its own; at most half of the cores, or times suffer")
    parser.add_argument("--seconds", type=int, help="begin no case after that many, and say how many were left out; cases come in an order drawn with --seed")
    parser.add_argument("--note", help="a sentence about the machine that the page shall say, such as who else used it")
    parser.add_argument("--out", type=Path, default=Path("target/leaderboard"))
    arguments = parser.parse_args()
    if arguments.parallel < 1:
        sys.exit("leaderboard: --parallel must be 1 or more")
    if arguments.seconds is not None and arguments.seconds < 1:
        sys.exit("leaderboard: --seconds must be 1 or more")
    if not arguments.suite and not arguments.data:
        sys.exit("leaderboard: give --suite, --data or both")

    wanted = arguments.engines.split(";") if arguments.engines else list(peers.ENGINES)
    if unknown := [name for name in wanted if name not in peers.ENGINES]:
        sys.exit(f"leaderboard: there is no engine {unknown[0]!r}; known are {'; '.join(peers.ENGINES)}")
    names, absent = [], []
    for name in wanted:
        try:
            peers.ENGINES[name].release()
            names.append(name)
        except PackageNotFoundError:
            absent.append(name)
    if not names:
        sys.exit("leaderboard: no engine is installed; 'make leaderboard' installs them")

    end = time.monotonic() + arguments.seconds if arguments.seconds else math.inf
    with tempfile.TemporaryDirectory() as folder:
        parts = {}
        if arguments.suite:
            parts["suite"] = suite_files(arguments.suite, Path(folder), arguments.only)
        if arguments.data:
            parts["data"] = data_files(arguments.data, arguments.sample, arguments.seed)
        with concurrent.futures.ThreadPoolExecutor(arguments.parallel) as pool:
            begin = lambda _: [peers.Worker(name, str(arguments.tokenizer), arguments.timeout_s, arguments.memory_gb) for name in names]  # noqa: E731
            groups = list(pool.map(begin, range(arguments.parallel)))
            waiting, judged = sum(map(len, parts.values())), {}
            for part, files in parts.items():
                now = time.monotonic()
                judged[part] = run(pool, groups, files, arguments.seed, now + (end - now) * len(files) / waiting)
                waiting -= len(files)
        held = {name: [group[place].memory() for group in groups] for place, name in enumerate(names)}
        memory = {name: tuple(map(max, zip(*found))) for name, found in held.items()}
        for worker in (worker for group in groups for worker in group):
            worker.stop()
        numbers = {
            "engines": {name: {"release": peers.ENGINES[name].release(), "ready_bytes": memory[name][0], "peak_bytes": memory[name][1]} for name in names},
            "absent": absent,
            "setting": setting(arguments),
            "parts": {part: part_numbers(names, files, judged[part]) for part, files in parts.items()},
        }
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "numbers.json").write_text(json.dumps(numbers, indent=2) + "\n", encoding="utf-8")
    (arguments.out / "index.html").write_text(page(numbers), encoding="utf-8")
    print(f"leaderboard: {arguments.out / 'index.html'}")


# ------------------------------------------------------------------------------------------------------ the cases


def suite_files(suite, folder, only):
    """A file for each group of the suite, as MaskBench has them, with the keyword that it is about."""
    tests = suite / "tests" / "draft2020-12"
    chosen = only.split(",") if only else None
    files = []
    for path in sorted(tests.glob("*.json")):
        # Schemas elsewhere: no engine of this table fetches anything, and each would be refused for that alone.
        if path.stem == "refRemote" or chosen and path.stem not in chosen:
            continue
        for number, group in enumerate(json.loads(path.read_text(encoding="utf-8"))):
            file = folder / f"{path.stem}---{number:03}.json"
            file.write_text(json.dumps({"schema": group["schema"], "tests": group["tests"]}), encoding="utf-8")
            files.append((file, [path.stem]))
    if not files:
        sys.exit(f"leaderboard: there is no case in {tests}; scripts/assets.sh json_schema_suite fetches the suite")
    return files


def data_files(folder, sample, seed):
    files = sorted(folder.rglob("*.json"))
    if not files:
        sys.exit(f"leaderboard: there is no .json file in {folder}")
    if sample and sample < len(files):
        peers.Random(seed).shuffle(files)
        files = sorted(files[:sample])
    return [(file, sorted(keywords(json.loads(file.read_text(encoding="utf-8"))["schema"]))) for file in files]


def keywords(schema):
    """The keywords of a schema, wherever they stand. A property that is named like one counts too; that is rare."""
    found, todo = set(), [schema]
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            found.update(value.keys() & set(KEYWORDS))
            todo.extend(value.values())
        elif isinstance(value, list):
            todo.extend(value)
    return found


def run(pool, groups, files, seed, end):
    """What each engine makes of each file that was begun before the end. The engines of a group take turns; groups work side by side."""
    done = itertools.count(1)
    order = list(range(len(files)))
    peers.Random(seed).shuffle(order)

    def share(number):
        group, found = groups[number], {}
        for turn in range(number, len(files), len(groups)):
            if time.monotonic() > end:
                break
            path = files[order[turn]][0]
            workers = (group[(turn + place) % len(group)] for place in range(len(group)))
            found[order[turn]] = {worker.name: worker.run(path) for worker in workers}
            peers.show_progress(next(done), len(files), path.stem)
        return found

    judged = {}
    for found in pool.map(share, range(len(groups))):
        judged |= found
    return judged


# ---------------------------------------------------------------------------------------------------- the numbers


def verdict(record):
    if record["refused"] is not None:
        return "refused"
    return "wrong" if record["valid_rejected"] or record["invalid_accepted"] else "right"


def part_numbers(names, files, judged):
    left_out = len(files) - len(judged)
    files = [files[place] for place in sorted(judged)]
    records = {name: [judged[place][name] for place in sorted(judged)] for name in names}
    shared = [i for i in range(len(files)) if all(records[name][i]["refused"] is None for name in names)]
    by_keyword = {}
    for place, (_, about) in enumerate(files):
        for keyword in about:
            row = by_keyword.setdefault(keyword, {name: dict.fromkeys(VERDICTS, 0) for name in names})
            for name in names:
                row[name][verdict(records[name][place])] += 1
    engines = {}
    for name in names:
        engines[name] = peers.engine_json(name, records[name])
        masks = sorted(nanos for i in shared for nanos in records[name][i]["masks"])
        firsts = sorted(records[name][i]["ttfm"] for i in shared)
        engines[name]["common"] = {"mask_us": curve(masks), "first_mask_us": curve(firsts), "masks": len(masks)}
        engines[name]["refusals"] = peers.refusals(records[name])
    return {"cases": len(files), "left_out": left_out, "common": len(shared), "engines": engines, "by_keyword": dict(sorted(by_keyword.items()))}


QUANTILES = [0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999]


def curve(ordered):
    """Nearest rank, in microseconds; a quantile that so few values cannot show is left out."""
    shown = [quantile for quantile in QUANTILES if ordered and (1 - quantile) * len(ordered) >= 1]
    return {str(quantile): ordered[math.ceil(quantile * len(ordered)) - 1] / 1e3 for quantile in shown}


def setting(arguments):
    return {
        "day": datetime.date.today().isoformat(),
        "machine": machine(),
        "note": arguments.note,
        "python": platform.python_version(),
        "tokenizer": arguments.tokenizer.parent.name,
        "timeout_s": arguments.timeout_s,
        "parallel": arguments.parallel,
        "seed": arguments.seed,
        "clock_ns": peers.clock_overhead(),
        "seconds": arguments.seconds,
    }


def machine():
    model = "unknown processor"
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = [line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = lines[0] if lines else model
    return f"{model}, {os.cpu_count()} cores, {platform.system()}"


# ------------------------------------------------------------------------------------------------------- the page

STYLE = """
:root { color-scheme: light dark; --ink: #1c1f23; --paper: #ffffff; --line: #d0d5da; --soft: #f3f5f7; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8ea; --paper: #16191d; --line: #3a4047; --soft: #20252b; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 68rem; margin: 0 auto; padding: 1rem; }
h1, h2, h3 { line-height: 1.2; } h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: 0.9rem; }
th, td { padding: 0.3rem 0.6rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } thead th { background: var(--soft); }
svg { max-width: 100%; height: auto; } svg text { fill: var(--ink); font: 12px system-ui, sans-serif; } svg .grid { stroke: var(--line); }
.bar { display: flex; min-width: 7rem; height: 0.9rem; border-radius: 3px; overflow: hidden; background: var(--soft); }
.key span { display: inline-block; width: 0.8rem; height: 0.8rem; border-radius: 2px; margin: 0 0.3rem 0 0.9rem; }
"""


def page(numbers):
    where = numbers["setting"]
    beside = f", {where['parallel']} cases side by side" if where["parallel"] > 1 else ""
    body = [
        "<h1>Engines for structured output, side by side</h1>",
        f"<p>{where['day']}, {text(where['machine'])}, Python {where['python']}, tokenizer {text(where['tokenizer'])}. One run: each engine in a process of "
        f"its own, taking turns case by case{beside}; more than {where['timeout_s']} s for one case counts as refused. Calls go through each engine's Python package, "
        "which costs all of them some tenths of a microsecond up to a few microseconds a call. "
        f"{text(where['note']) + ' ' if where['note'] else ''}To repeat or dispute it: <code>make leaderboard DATA=folder</code>; "
        'all numbers are in <a href="numbers.json">numbers.json</a>.</p>',
        versions(numbers),
    ]
    titles = {
        "suite": ("The official suite of JSON Schema", "Draft 2020-12, without the cases whose schemas lie elsewhere. A case is a schema with its documents; it is right if "
                  "all documents are judged as they should be. An engine that ignores a keyword gets it wrong, one that says so refuses. The documents have their keys in any order, which is an option of ours and not its default, and numbers in any spelling, such as 1.0 for 1; an engine that writes a constant in one way alone rejects the others, and that counts as wrong. In the suite a format is an annotation; an engine that enforces formats, as ours does by default, is wrong in those cases."),
        "data": ("Real schemas", "Files of MaskBench. A keyword counts the schemas that use it somewhere, so its row is about schemas with it, not about the keyword alone."),
    }
    for part, found in numbers["parts"].items():
        title, note = titles[part]
        left_out = f" {found['left_out']} more, drawn by chance, were left out, because the run was to end after {where['seconds']} s." if found["left_out"] else ""
        body += [f"<h2>{title}</h2><p>{found['cases']} cases.{left_out} {note}</p>", legend(), totals(found), speed(found), keyword_table(found), refusal_list(found)]
    if numbers["absent"]:
        body.append(f"<p>Not installed, and so not in the table: {text(', '.join(numbers['absent']))}.</p>")
    return (
        '<!doctype html>\n<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Leaderboard</title><style>{STYLE}</style>\n" + "\n".join(body) + "\n</html>\n"
    )


def text(value):
    return html.escape(str(value))


def table(head, rows):
    cells = lambda tag, row: "".join(f"<{tag}>{cell}</{tag}>" for cell in row)  # noqa: E731
    lines = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{cells("th", head)}</tr></thead><tbody>{lines}</tbody></table></div>'


def versions(numbers):
    rows = [[text(name), text(engine["release"]), megabytes(engine["ready_bytes"]), megabytes(engine["peak_bytes"])] for name, engine in numbers["engines"].items()]
    note = "<p>Memory is that of the whole process, Python and the tokenizer included: when it is ready, and at its most. A process that was stopped for time or memory began anew, and its peak with it. llguidance runs with <code>coerce_one_of</code>, without which it refuses <code>oneOf</code>; XGrammar with <code>strict_mode=False</code>, as JSON Schema has it, and without its cache; all else is as each package has it.</p>"
    return table(["engine", "version", "ready, MB", "peak, MB"], rows) + note


def megabytes(count):
    return f"{count / 1e6:,.0f}"


def legend():
    return '<p class="key">' + "".join(f'<span style="background:{colour}"></span>{name}' for name, colour in VERDICTS.items()) + "</p>"


def bar(counts):
    total = sum(counts.values()) or 1
    told = ", ".join(f"{count} {name}" for name, count in counts.items())
    shares = "".join(f'<i style="background:{VERDICTS[name]};width:{100 * count / total:.2f}%"></i>' for name, count in counts.items() if count)
    return f'<div class="bar" role="img" aria-label="{told}" title="{told}">{shares}</div>'


def totals(found):
    rows = []
    for name, engine in found["engines"].items():
        wrong = engine["schemas"] - engine["right"] - engine["refused"]
        counts = {"right": engine["right"], "wrong": wrong, "refused": engine["refused"]}
        rows.append([text(name), bar(counts), *(f"{count:,}" for count in counts.values()), f"{engine['valid_rejected']:,}", f"{engine['invalid_accepted']:,}"])
    return table(["engine", "", "right", "wrong", "refused", "valid rejected", "invalid accepted"], rows)


def speed(found):
    if not found["common"]:
        return "<p>No case is compiled by all engines of this run, so times are not compared.</p>"
    heads = ["engine"] + [f"{what} {mark}" for what in ("mask", "first mask") for mark in ("p50", "p90", "p99", "p99.9")]
    rows = []
    for name, engine in found["engines"].items():
        marks = [engine["common"][key].get(quantile) for key in ("mask_us", "first_mask_us") for quantile in ("0.5", "0.9", "0.99", "0.999")]
        rows.append([text(name)] + ["" if mark is None else f"{mark:,.1f}" if mark < 100 else f"{mark:,.0f}" for mark in marks])
    masks = next(iter(found["engines"].values()))["common"]["masks"]
    told = f"<h3>Speed</h3><p>Microseconds, on the {found['common']} cases that all engines of this run compile ({masks:,} masks of the first engine). A percentile that so few values cannot show is empty.</p>"
    plots = plot("masks", found, "mask_us") + plot("first masks", found, "first_mask_us")
    return told + table(heads, rows) + plots


def plot(title, found, key):
    """Percentiles from the median on; both axes logarithmic, so that each step to the right is rarer."""
    curves = {name: [(float(q), micros) for q, micros in engine["common"][key].items()] for name, engine in found["engines"].items()}
    values = [max(micros, 0.01) for points in curves.values() for _, micros in points]
    if not values:
        return ""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)
    rarest = max(-math.log10(1 - q) for points in curves.values() for q, _ in points)
    width, height, left, right, top, bottom = 760, 300, 70, 210, 30, 40
    first = -math.log10(0.5)
    x = lambda q: left + (-math.log10(1 - q) - first) / max(rarest - first, 1e-9) * (width - left - right)  # noqa: E731
    y = lambda micros: height - bottom - (math.log10(max(micros, 0.01)) - low) / (high - low) * (height - top - bottom)  # noqa: E731
    lines = [f'<text x="{left}" y="16" font-weight="bold">{title}: time by percentile</text>']
    for power in range(low, high + 1):
        at = y(10.0**power)
        lines.append(f'<line class="grid" x1="{left}" x2="{width - right}" y1="{at:.1f}" y2="{at:.1f}"/><text x="{left - 8}" y="{at + 4:.1f}" text-anchor="end">{duration(power)}</text>')
    for quantile, label in ((0.5, "p50"), (0.9, "p90"), (0.99, "p99"), (0.999, "p99.9")):
        if -math.log10(1 - quantile) <= rarest + 1e-9:
            lines.append(f'<text x="{x(quantile):.1f}" y="{height - bottom + 20}" text-anchor="middle">{label}</text>')
    for number, (name, points) in enumerate(curves.items()):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{x(q):.1f},{y(micros):.1f}" for q, micros in points)
        lines.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2.5" points="{path}"/>')
        at = top + 8 + 20 * number
        lines.append(f'<rect x="{width - right + 16}" y="{at}" width="16" height="5" fill="{colour}"/><text x="{width - right + 40}" y="{at + 7}">{text(name)}</text>')
    return f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{title} by percentile">{"".join(lines)}</svg>'


def duration(power):
    unit, shift = ("ns", 3) if power < 0 else ("µs", 0) if power < 3 else ("ms", -3) if power < 6 else ("s", -6)
    return f"{10.0 ** (power + shift):.0f} {unit}"


def keyword_table(found):
    names = list(found["engines"])
    rows = []
    for keyword, row in found["by_keyword"].items():
        total = sum(next(iter(row.values())).values())
        rows.append([f"<code>{text(keyword)}</code>", total] + [bar(row[name]) for name in names])
    return "<h3>By keyword</h3>" + table(["keyword", "cases", *map(text, names)], rows)


def refusal_list(found):
    parts = []
    for name, engine in found["engines"].items():
        if engine["refusals"]:
            lines = "".join(f"<li>{count} × {text(reason)}</li>" for reason, count in list(engine["refusals"].items())[:8])
            parts.append(f"<details><summary>{text(name)}: why {engine['refused']} cases are refused</summary><ul>{lines}</ul></details>")
    return "<h3>Refusals</h3>" + "".join(parts) if parts else ""


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    main()
