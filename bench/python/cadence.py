#!/usr/bin/env python3
"""Masks at the pace of a serving engine, from Python: the loop of `mwbench cadence`, with whichever engines are installed.

    pip install numpy tokenizers target/wheels/*.whl llguidance xgrammar
    python bench/python/cadence.py --data DIR --tokenizer tokenizer.json --rows 1,64,512

Some milliseconds pass between two steps, and the caches are swept. Each row follows a document of a schema of its own; in a step every row accepts its token and fills its next
mask. Ours is one call of `step_batch`; llguidance's is `consume_token` for each row and one call of its executor; XGrammar's is `accept_token` for each row and one call of
`BatchGrammarMatcher`, or row by row where there is none. The engines take turns. Rows that have ended begin anew, which is not timed.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from pathlib import Path

import numpy as np

from peers import Tokenizer


class Maskwright:
    def __init__(self, arguments, tokenizer):
        import maskwright as mw

        self.mw, self.name = mw, "maskwright"
        vocabulary = mw.Vocabulary.load(arguments.tokenizer)
        self.words = vocabulary.words
        self.compiler = mw.Compiler(vocabulary)
        if arguments.threads:
            mw.set_threads(arguments.threads)
        self.threads = arguments.threads

    def start(self, schemas):
        self.matchers = [self.compiler.compile(self.mw.json_schema(schema)).matcher() for schema in schemas]
        self.mask = np.zeros((len(schemas), self.words), dtype=np.int32)
        self.mw.step_batch(self.matchers, [None] * len(schemas), self.mask)

    def step(self, tokens):
        return all(self.mw.step_batch(self.matchers, tokens, self.mask, keep=True, threads=self.threads).taken)

    def restart(self, row):
        self.matchers[row].reset()


class Llguidance:
    def __init__(self, arguments, tokenizer):
        import llguidance
        import llguidance.numpy

        self.module, self.numpy, self.name = llguidance, llguidance.numpy, f"llguidance {llguidance.__version__}" if hasattr(llguidance, "__version__") else "llguidance"
        self.tokenizer = llguidance.LLTokenizer(Path(arguments.tokenizer).read_text(encoding="utf-8"))
        self.executor = llguidance.LLExecutor(arguments.threads) if arguments.threads else llguidance.LLExecutor()

    def start(self, schemas):
        self.grammars = [self.module.LLMatcher.grammar_from_json_schema(json.dumps(schema)) for schema in schemas]
        self.matchers = [self.matcher(grammar) for grammar in self.grammars]
        self.mask = self.numpy.allocate_token_bitmask(len(schemas), self.tokenizer.vocab_size)
        self.pairs = list(enumerate(self.matchers))
        self.fill()

    def matcher(self, grammar):
        matcher = self.module.LLMatcher(self.tokenizer, grammar)
        if matcher.is_error():
            raise ValueError(matcher.get_error())
        return matcher

    def fill(self):
        self.numpy.fill_next_token_bitmask_par(self.executor, [(matcher, row) for row, matcher in self.pairs], self.mask)

    def step(self, tokens):
        taken = [matcher.consume_token(token) for (_, matcher), token in zip(self.pairs, tokens)]
        self.fill()
        return all(taken)

    def restart(self, row):
        self.matchers[row].reset()


class XGrammar:
    def __init__(self, arguments, tokenizer):
        import xgrammar

        self.module, self.name = xgrammar, "xgrammar"
        kind = xgrammar.VocabType.RAW
        self.info = xgrammar.TokenizerInfo(tokenizer.tokens, kind, vocab_size=len(tokenizer.tokens), stop_token_ids=tokenizer.end)
        self.compiler = xgrammar.GrammarCompiler(self.info, max_threads=arguments.threads or 8)
        batch = getattr(xgrammar, "BatchGrammarMatcher", None)
        self.batch = batch(max_threads=arguments.threads or "auto") if batch else None

    def start(self, schemas):
        compile = self.compiler.compile_json_schema
        self.compiled = [compile(json.dumps(schema), any_whitespace=True, strict_mode=False) for schema in schemas]
        self.matchers = [self.module.GrammarMatcher(compiled) for compiled in self.compiled]
        self.mask = self.module.allocate_token_bitmask(len(schemas), self.info.vocab_size)
        self.fill()

    def fill(self):
        if self.batch:
            self.batch.batch_fill_next_token_bitmask(self.matchers, self.mask)
        else:
            for row, matcher in enumerate(self.matchers):
                matcher.fill_next_token_bitmask(self.mask, row)

    def step(self, tokens):
        taken = [matcher.accept_token(token) for matcher, token in zip(self.matchers, tokens)]
        self.fill()
        return all(taken)

    def restart(self, row):
        self.matchers[row].reset()


ENGINES = {"maskwright": Maskwright, "llguidance": Llguidance, "xgrammar": XGrammar}


def main() -> None:
    parser = options(__doc__, rows="1,16,64,256,512")
    parser.add_argument("--gap-ms", type=float, default=3)
    parser.add_argument("--sweep-mb", type=int, default=64)
    arguments = parser.parse_args()
    tokenizer, engines, counts, rows = prepared(arguments)
    sweep = np.zeros(arguments.sweep_mb << 17, dtype=np.int64)
    print(f"{'rows':>6} {'engine':<16} {'avg':>9} {'p50':>9} {'p95':>9} {'p99':>9}   µs a step")
    for count in counts:
        for engine in engines:
            engine.start([schema for schema, _ in rows[:count]])
        times = {engine.name: [] for engine in engines}
        at = [0] * count
        for step in range(arguments.steps):
            tokens = [document[place] for (_, document), place in zip(rows, at)]
            for turn in range(len(engines)):
                engine = engines[(step + turn) % len(engines)]
                sweep += 1
                time.sleep(arguments.gap_ms / 1e3)
                began = time.perf_counter_ns()
                is_done = engine.step(tokens)
                times[engine.name].append(time.perf_counter_ns() - began)
                if not is_done:
                    raise SystemExit(f"{engine.name} refuses a token in step {step}")
            for row in range(count):
                at[row] += 1
                if at[row] == len(rows[row][1]):
                    at[row] = 0
                    for engine in engines:
                        engine.restart(row)
        for name, told in times.items():
            average, *shares = summary(told)
            print(f"{count:>6} {name:<16} {average / 1e3:9.1f} " + " ".join(f"{share / 1e3:9.1f}" for share in shares), flush=True)


def options(description, rows):
    """What this benchmark and `gpu/decode.py` are told."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help='folder of files {"schema": …, "tests": […]}')
    parser.add_argument("--tokenizer", required=True, help="a tokenizer.json")
    parser.add_argument("--engines", default="maskwright,llguidance,xgrammar", help="those that are not installed are left out")
    parser.add_argument("--rows", default=rows)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--seed", type=int, default=1)
    return parser


def prepared(arguments):
    """The tokenizer, the engines that are installed, the numbers of rows, and a schema with a document for each row."""
    tokenizer = Tokenizer(arguments.tokenizer)
    engines = []
    for name in arguments.engines.split(","):
        try:
            engines.append(ENGINES[name](arguments, tokenizer))
        except ImportError as error:
            print(f"without {name}: {error}")
    counts = [int(count) for count in arguments.rows.split(",")]
    return tokenizer, engines, counts, choose(arguments, tokenizer, engines, max(counts))


def summary(times):
    """The average, p50, p95 and p99."""
    times = sorted(times)
    return [sum(times) / len(times), *(times[min(int(len(times) * share), len(times) - 1)] for share in (0.5, 0.95, 0.99))]


def choose(arguments, tokenizer, engines, most):
    """Schemas with a document each that all engines follow to its end."""
    files = sorted(Path(arguments.data).rglob("*.json"))
    random.Random(arguments.seed).shuffle(files)
    rows = []
    for file in files:
        if len(rows) == most:
            break
        case = json.loads(file.read_text(encoding="utf-8"))
        for test in case["tests"]:
            if not test["valid"]:
                continue
            try:
                tokens = tokenizer.encode(json.dumps(test["data"], ensure_ascii=False))
            except ValueError:
                continue
            if len(tokens) >= 16 and all(follows(engine, case["schema"], tokens) for engine in engines):
                rows.append((case["schema"], tokens))
                break
    if len(rows) < most:
        raise SystemExit(f"all engines follow a document of {len(rows)} schemas only")
    return rows


def follows(engine, schema, tokens):
    try:
        engine.start([schema])
        return all(engine.step([token]) for token in tokens)
    except Exception:
        return False


if __name__ == "__main__":
    main()
