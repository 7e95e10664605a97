#!/usr/bin/env python3
"""Engines through their Python packages: the loop and the JSON of `mwbench maskbench`. `leaderboard.py` makes a page of it.

    pip install xgrammar==0.2.8 outlines_core==0.2.14 tokenizers numpy
    python peers.py --data DIR --tokenizer tokenizer.json --sample 500 --json peers.json

Nothing is installed by this program. Each engine lives in a process of its own, which is killed when a schema takes
longer than --timeout-s or more memory than --memory-gb; such a schema counts as refused. The engines take turns
schema by schema. Every call pays for Python (about 0.2 to 3 µs), which the native program does not: compare medians
of microseconds with that in mind.
"""

import argparse
import json
import math
import multiprocessing
import os
import platform
import resource
import sys
import time
from pathlib import Path

# ------------------------------------------------------------------------------------------------ the tokenizer

END_NAMES = {
    "<|end_of_text|>", "<|eot_id|>", "<|eom_id|>", "</s>", "<|endoftext|>", "<|im_end|>", "<eos>", "<end_of_turn>",
    "<|return|>",
}


class Tokenizer:
    """The bytes of all tokens, and texts cut into tokens by the `tokenizers` package."""

    def __init__(self, path):
        from tokenizers import Tokenizer as Encoder

        self.path = str(path)
        self.encoder = Encoder.from_file(self.path)
        file = json.loads(Path(path).read_text(encoding="utf-8"))
        byte_level = any('"ByteLevel"' in json.dumps(file.get(part)) for part in ("decoder", "pre_tokenizer"))
        entries = self.encoder.get_vocab(with_added_tokens=False)
        added = {token["id"]: token for token in file["added_tokens"]}
        size = 1 + max([*entries.values(), *added])
        self.tokens = [b""] * size
        alphabet = byte_level_alphabet()
        for entry, token in entries.items():
            self.tokens[token] = bytes(alphabet[c] for c in entry) if byte_level else sentence_piece_bytes(entry)
        for token, description in added.items():
            text = "" if description["special"] or description["content"] in END_NAMES else description["content"]
            self.tokens[token] = text.encode()
        self.end = sorted(token for token, description in added.items() if description["content"] in END_NAMES)

    def encode(self, text):
        """The tokens of a text; the caller relies on their bytes being exactly the text."""
        ids = self.encoder.encode(text, add_special_tokens=False).ids
        if b"".join(self.tokens[token] for token in ids) != text.encode():
            raise ValueError("the tokenizer does not spell the text exactly")
        return ids


def byte_level_alphabet():
    """Printable Latin-1 characters stand for themselves, the other bytes for 256, 257, … in order."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    alphabet = {chr(byte): byte for byte in printable}
    others = (byte for byte in range(256) if byte not in set(printable))
    alphabet.update({chr(256 + place): byte for place, byte in enumerate(others)})
    return alphabet


def sentence_piece_bytes(entry):
    if len(entry) == 6 and entry.startswith("<0x") and entry.endswith(">"):
        return bytes([int(entry[3:5], 16)])
    return entry.replace("▁", " ").encode()


# -------------------------------------------------------------------------------------------------- the engines


class Engine:
    """Masks are written into `self.words`, 32 tokens a word. An end token shows up in the mask, unless an engine says otherwise."""

    def may_end(self, session, end):
        return any(self.allows(token) for token in end)

    def allows(self, token):
        return bool(self.words[token >> 5] >> (token & 31) & 1)

    @classmethod
    def release(cls):
        from importlib.metadata import version

        return version(cls.PACKAGE)


def row_of(tokenizer, kind="uint32"):
    import numpy

    return numpy.zeros((len(tokenizer.tokens) + 31) // 32, dtype=kind)


class Maskwright(Engine):
    """Ours, through the service that the package is; what it remembers of a schema is dropped before the next one."""

    PACKAGE = "maskwright"
    KEY_ORDER = "schema"

    def __init__(self, tokenizer):
        import maskwright

        self.maskwright = maskwright
        vocabulary = maskwright.Vocabulary.load(tokenizer.path, eos=tokenizer.end, size=len(tokenizer.tokens))
        self.compiler = maskwright.Compiler(vocabulary, timeout=60.0)
        self.words = row_of(tokenizer)

    def compile(self, schema):
        return self.compiler.compile(self.maskwright.json_schema(schema, key_order=self.KEY_ORDER))

    def start(self, compiled):
        return compiled.matcher()

    def fill(self, session):
        session.fill_mask(self.words)

    def accept(self, session, token):
        session.accept(token)
        return True

    def bytes_held(self, compiled, _before):
        self.compiler.clear()
        return compiled.bytes


class MaskwrightAnyOrder(Maskwright):
    """The same with keys in any order, which is an option."""

    KEY_ORDER = "any"


class LLGuidance(Engine):
    """A matcher is made once for a schema, and copied for each text."""

    PACKAGE = "llguidance"

    def __init__(self, tokenizer):
        import llguidance

        self.matcher = llguidance.LLMatcher
        self.tokenizer = llguidance.LLTokenizer(tokenizer.path, n_vocab=len(tokenizer.tokens), eos_token=tokenizer.end)
        self.words = row_of(tokenizer)

    def compile(self, schema):
        # With this option more schemas come out right than without; an exact `oneOf` would be refused.
        grammar = self.matcher.grammar_from_json_schema(schema, defaults={"coerce_one_of": True})
        return self.sound(self.matcher(self.tokenizer, grammar, log_level=0))

    def start(self, compiled):
        return compiled.deep_copy()

    def fill(self, session):
        session.unsafe_compute_mask_ptr(self.words.ctypes.data, self.words.nbytes)
        self.sound(session)

    def accept(self, session, token):
        return session.consume_token(token)

    @staticmethod
    def sound(matcher):
        if matcher.is_error():
            raise RuntimeError(matcher.get_error())
        return matcher

    def bytes_held(self, _compiled, before):
        return max(0, resident_bytes() - before)


class GlrMask(Engine):
    """Its masks hold no end token; it is asked whether the text may end."""

    PACKAGE = "glrmask"

    def __init__(self, tokenizer):
        import glrmask

        self.glrmask = glrmask
        self.vocabulary = glrmask.Vocab.from_id_to_bytes({token: spelling for token, spelling in enumerate(tokenizer.tokens) if spelling})
        self.row = row_of(tokenizer, "int32")
        self.words = self.row.view("uint32")

    def compile(self, schema):
        return self.glrmask.Grammar.from_json_schema(schema).compile(self.vocabulary)

    def start(self, compiled):
        return compiled.start()

    def fill(self, session):
        session.fill_mask(self.row)

    def accept(self, session, token):
        return session.commit_token(token)

    def may_end(self, session, _end):
        return session.is_accepting()

    def bytes_held(self, _compiled, before):
        return max(0, resident_bytes() - before)


class XGrammar(Engine):
    """Cache off, so that every schema is cold; JSON Schema's own rule for further properties (`strict_mode=False`)."""

    PACKAGE = "xgrammar"

    def __init__(self, tokenizer):
        import xgrammar

        self.xgrammar = xgrammar
        info = xgrammar.TokenizerInfo(
            tokenizer.tokens, xgrammar.VocabType.RAW, vocab_size=len(tokenizer.tokens), stop_token_ids=tokenizer.end
        )
        self.compiler = xgrammar.GrammarCompiler(info, cache_enabled=False)
        # The fastest form that the binding takes; a NumPy view of it serves the look-up.
        self.tensor = xgrammar.allocate_token_bitmask(1, len(tokenizer.tokens))
        self.words = self.tensor[0].numpy().view("uint32")

    def compile(self, schema):
        return self.compiler.compile_json_schema(schema, strict_mode=False)

    def start(self, compiled):
        return self.xgrammar.GrammarMatcher(compiled)

    def fill(self, session):
        session.fill_next_token_bitmask(self.tensor)

    def accept(self, session, token):
        return session.accept_token(token)

    def bytes_held(self, compiled, _before):
        return compiled.memory_size_bytes


class Outlines(Engine):
    """Schema to regex to index, as the package does it."""

    PACKAGE = "outlines_core"

    def __init__(self, tokenizer):
        import outlines_core
        from outlines_core.json_schema import build_regex_from_schema

        self.build_regex, self.core = build_regex_from_schema, outlines_core
        by_bytes = {}
        for token, spelling in enumerate(tokenizer.tokens):
            if spelling:
                by_bytes.setdefault(spelling, []).append(token)
        self.end = tokenizer.end[0]
        self.vocabulary = outlines_core.Vocabulary(self.end, by_bytes)
        self.words = row_of(tokenizer)

    def compile(self, schema):
        return self.core.Index(self.build_regex(schema), self.vocabulary)

    def start(self, compiled):
        return self.core.Guide(compiled)

    def fill(self, session):
        session.write_mask_into(self.words.ctypes.data, self.words.size, 4)

    def accept(self, session, token):
        session.advance(token, return_tokens=False)
        return True

    def bytes_held(self, _compiled, before):
        return max(0, resident_bytes() - before)


ENGINES = {
    "maskwright": Maskwright,
    "maskwright, any key order": MaskwrightAnyOrder,
    "llguidance": LLGuidance,
    "xgrammar": XGrammar,
    "outlines-core": Outlines,
    "glrmask": GlrMask,
}

# ----------------------------------------------------------------------------------------------------- the loop


def replay(engine, schema, instances, end, deadline):
    """Compile, first mask, then every instance token by token. Times in nanoseconds."""
    clock = time.perf_counter_ns
    before = resident_bytes()
    begin = clock()
    compiled = engine.compile(schema)
    session = engine.start(compiled)
    engine.fill(session)
    record = {"ttfm": clock() - begin, "masks": [], "accepts": [], "refused": None,
              "valid_rejected": False, "invalid_accepted": False}
    filled = True
    for place, (valid, tokens) in enumerate(instances):
        if place:
            session, filled = engine.start(compiled), False
        accepted = instance_accepted(engine, session, tokens, end, record, filled)
        record["valid_rejected"] |= valid and not accepted
        record["invalid_accepted"] |= accepted and not valid
        if time.monotonic() > deadline:
            raise TimeoutError("timed out: the instances took too long")
    del session
    record["bytes"] = engine.bytes_held(compiled, before)
    return record


def instance_accepted(engine, session, tokens, end, record, filled):
    clock, masks, accepts = time.perf_counter_ns, record["masks"], record["accepts"]
    for token in tokens:
        if not filled:
            begin = clock()
            engine.fill(session)
            masks.append(clock() - begin)
        filled = False
        if not engine.allows(token):
            return False
        begin = clock()
        accepted = engine.accept(session, token)
        accepts.append(clock() - begin)
        if not accepted:
            raise RuntimeError(f"refuses token {token}, which its mask allows")
    if not filled:
        begin = clock()
        engine.fill(session)
        masks.append(clock() - begin)
    return engine.may_end(session, end)


def resident_bytes():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


# ------------------------------------------------------------------------------------------ a process per engine


class Worker:
    """An engine in a process that can be killed and started again."""

    def __init__(self, name, tokenizer_path, timeout, memory_gb):
        self.name, self.tokenizer_path, self.timeout, self.memory_gb = name, tokenizer_path, timeout, memory_gb
        self.process = None
        self.start()

    def start(self):
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        arguments = (self.name, self.tokenizer_path, self.timeout, self.memory_gb, theirs)
        self.process = context.Process(target=serve, args=arguments, daemon=True)
        self.process.start()
        theirs.close()
        ready = self.pipe.recv()
        if ready != "ready":
            sys.exit(f"{self.name} does not start: {ready}")

    def run(self, path):
        self.pipe.send(str(path))
        # The engine's own time counts from its start; reading and cutting the file is given a little more.
        if self.pipe.poll(self.timeout + 10):
            try:
                return self.pipe.recv()
            except EOFError:
                message = "the process died (memory limit or crash)"
        else:
            message = f"timed out: nothing within {self.timeout} s"
        self.process.kill()
        self.process.join()
        self.start()
        return {"refused": message, "ttfm": None, "masks": [], "accepts": []}

    def memory(self):
        """Bytes that the process held when it was ready, and at most since. A process that was killed takes its numbers along."""
        self.pipe.send(None)
        return self.pipe.recv()

    def stop(self):
        self.process.kill()
        self.process.join()


def serve(name, tokenizer_path, timeout, memory_gb, pipe):
    try:
        limit = int(memory_gb * 2**30)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        tokenizer = Tokenizer(tokenizer_path)
        engine = ENGINES[name](tokenizer)
        warm = engine.compile('{"type": "boolean"}')
        engine.fill(engine.start(warm))
    except Exception as error:  # The parent prints it and stops.
        pipe.send(f"{type(error).__name__}: {error}")
        return
    ready = resident_bytes()
    pipe.send("ready")
    while True:
        try:
            path = pipe.recv()
        except EOFError:
            return
        if path is None:
            pipe.send((ready, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024))
            continue
        pipe.send(one_schema(engine, tokenizer, path, timeout))


def one_schema(engine, tokenizer, path, timeout):
    schema, tests = read(path)
    instances = [(valid, tokenizer.encode(text)) for valid, text in tests]
    try:
        return replay(engine, schema, instances, tokenizer.end, time.monotonic() + timeout)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # Panics of native code are no Exceptions.
        return {"refused": f"{type(error).__name__}: {error}", "ttfm": None, "masks": [], "accepts": []}


def read(path):
    file = json.loads(Path(path).read_text(encoding="utf-8"))
    tests = [(test["valid"], json.dumps(test["data"], ensure_ascii=False)) for test in file["tests"]]
    return json.dumps(file["schema"], ensure_ascii=False), tests


# --------------------------------------------------------------------------------------------------- the numbers


def summary(nanos):
    ordered = sorted(nanos)
    if not ordered:
        return {name: 0 for name in ("count", "avg", "p50", "p90", "p99", "p999", "max")}

    def at(quantile):
        return ordered[max(1, math.ceil(quantile * len(ordered))) - 1] / 1e3

    return {"count": len(ordered), "avg": round(sum(ordered) / len(ordered) / 1e3, 3), "p50": at(0.5), "p90": at(0.9),
            "p99": at(0.99), "p999": at(0.999), "max": at(1.0)}


def engine_json(name, records):
    judged = [record for record in records if record["refused"] is None]
    wrong = [record for record in judged if record["valid_rejected"] or record["invalid_accepted"]]
    held = summary([record["bytes"] * 1000 for record in judged])
    return {
        "release": ENGINES[name].release(),
        "schemas": len(records),
        "right": len(judged) - len(wrong),
        "refused": len(records) - len(judged),
        "valid_rejected": sum(record["valid_rejected"] for record in judged),
        "invalid_accepted": sum(record["invalid_accepted"] for record in judged),
        "mask_us": summary([nanos for record in records for nanos in record["masks"]]),
        "accept_us": summary([nanos for record in records for nanos in record["accepts"]]),
        "ttfm_us": summary([record["ttfm"] for record in records if record["ttfm"] is not None]),
        "bytes": {"p50": held["p50"], "p99": held["p99"], "max": held["max"]},
    }


def refusals(records):
    counts = {}
    for record in records:
        if record["refused"] is not None:
            lines = record["refused"].strip().splitlines() or ["no message"]
            counts[lines[0][:120]] = counts.get(lines[0][:120], 0) + 1
    return dict(sorted(counts.items(), key=lambda item: -item[1])[:25])


class Random:
    """SplitMix64 and the shuffle of the native program: the same seed draws the same sample."""

    MASK = (1 << 64) - 1

    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & self.MASK
        mixed = self.state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & self.MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & self.MASK
        return mixed ^ (mixed >> 31)

    def shuffle(self, items):
        for last in range(len(items) - 1, 0, -1):
            other = self.next() % (last + 1)
            items[last], items[other] = items[other], items[last]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--tokenizer", required=True, type=Path)
    parser.add_argument("--engines", default="xgrammar,outlines-core")
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--timeout-s", type=int, default=30)
    parser.add_argument("--memory-gb", type=float, default=12)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()

    files = sorted(arguments.data.rglob("*.json"))
    if not files:
        sys.exit(f"there is no .json file in {arguments.data}")
    if arguments.sample and arguments.sample < len(files):
        Random(arguments.seed).shuffle(files)
        files = sorted(files[: arguments.sample])
    names = arguments.engines.split(",")
    workers = [Worker(name, str(arguments.tokenizer), arguments.timeout_s, arguments.memory_gb) for name in names]
    records = {name: [] for name in names}
    for turn, path in enumerate(files):
        for place in range(len(workers)):
            worker = workers[(turn + place) % len(workers)]
            records[worker.name].append(worker.run(path))
        show_progress(turn + 1, len(files), path.stem)
    for worker in workers:
        worker.stop()

    # What all engines of the run compiled, beside each engine on its own ground.
    shared = [i for i in range(len(files)) if all(records[name][i]["refused"] is None for name in names)]
    report = {
        "engines": {name: engine_json(name, records[name]) for name in names},
        "common": {
            "schemas": len(shared),
            "engines": {name: engine_json(name, [records[name][i] for i in shared]) for name in names},
        },
        "refusals": {name: refusals(records[name]) for name in names},
        "setting": {"data": str(arguments.data), "tokenizer": str(arguments.tokenizer), "schemas": len(files),
                    "seed": arguments.seed, "timeout_s": arguments.timeout_s, "python": platform.python_version(),
                    "clock_overhead_ns": clock_overhead()},
    }
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    print_table(report)


def clock_overhead():
    empty = []
    for _ in range(10_001):
        begin = time.perf_counter_ns()
        empty.append(time.perf_counter_ns() - begin)
    return sorted(empty)[len(empty) // 2]


def show_progress(done, total, label):
    if sys.stderr.isatty():
        full = 30 * done // total
        print(f"\r\x1b[2K{'█' * full}{'░' * (30 - full)} {done}/{total}  {label[:30]}", end="", file=sys.stderr)
        if done == total:
            print(file=sys.stderr)
    elif done == total or done % 25 == 0:
        print(f"{done}/{total}", file=sys.stderr)


def print_table(report):
    for title, part in (("all schemas, each engine on what it compiles", report["engines"]),
                        ("schemas that all engines of this run compile", report["common"]["engines"])):
        print(f"\n{title}\n{'':24}" + "".join(f"{name:>16}" for name in part))
        for key in ("schemas", "right", "refused", "valid_rejected", "invalid_accepted"):
            print(f"{key.replace('_', ' '):24}" + "".join(f"{figures[key]:>16}" for figures in part.values()))
        for group, label in (("mask_us", "mask µs"), ("accept_us", "accept µs"), ("ttfm_us", "first mask µs")):
            for column in ("avg", "p50", "p90", "p99", "p999", "max"):
                row = "".join(f"{figures[group][column]:>16,.1f}" for figures in part.values())
                print(f"{label + ' ' + column:24}{row}")
        print(f"{'bytes held p50':24}" + "".join(f"{figures['bytes']['p50']:>16,.0f}" for figures in part.values()))


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    main()
