#!/usr/bin/env python3
"""XGrammar as a worker of `mwbench grammars`, which starts it and asks it line by line (see src/grammars/worker.rs).

    pip install xgrammar==0.2.8 tokenizers numpy
    mwbench grammars --tokenizer tokenizer.json --engines maskwright,xgrammar --python venv/bin/python

The engine, its settings and the loop are those of peers.py. Every call pays for Python, about 0.2 to 3 µs.
"""

import argparse
import json
import sys
import time

from peers import Tokenizer, XGrammar
from peers import summary as summary_of

SO_FAR = 0.5


class Grammars(XGrammar):
    def compile(self, source):
        kind, text = source
        if kind == "regex":
            return self.compiler.compile_regex(text)
        if kind == "gbnf":
            return self.compiler.compile_grammar(text)
        raise ValueError(f"does not read {kind}")


class Replay:
    """One row: compile, first mask, then every text token by token. Times in nanoseconds."""

    def __init__(self, engine, question, end, timeout, warm):
        self.engine, self.end, self.timeout, self.warm = engine, end, timeout, warm
        self.source, self.texts = (question["kind"], question["source"]), question["texts"]
        self.first_mask, self.compile_time, self.bytes, self.rejected = None, None, None, None
        self.masks, self.accepts, self.warm_masks, self.warm_accepts = [], [], [], []
        self.told = 0

    def run(self):
        try:
            self.replay()
            outcome, problem = "wrong" if self.rejected else "done", None
        except TimeoutError as error:
            outcome, problem = "timeout", str(error)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # Panics of native code are no Exceptions.
            outcome, problem = "refused", f"{type(error).__name__}: {error}"
        figures = self.figures()
        figures.update(outcome=outcome, bytes=self.bytes, rejected=self.rejected, compile_us=micros(self.compile_time))
        if problem:
            figures["problem"] = problem
        figures.update(warm_mask_us=summary(self.warm_masks), warm_accept_us=summary(self.warm_accepts))
        return figures

    def replay(self):
        engine, clock = self.engine, time.perf_counter_ns
        self.deadline = time.monotonic() + self.timeout
        begin = clock()
        compiled = engine.compile(self.source)
        self.compile_time = clock() - begin
        session = engine.start(compiled)
        engine.fill(session)
        self.first_mask = clock() - begin
        for place, tokens in enumerate(self.texts):
            if place:
                session = engine.start(compiled)
            taken = self.text(session, tokens, self.masks, self.accepts, filled=place == 0)
            if taken is not None and self.rejected is None:
                self.rejected = [place, taken]
        if self.warm:
            tell({"event": "warm"})
            self.deadline = time.monotonic() + self.timeout
            for tokens in self.texts:
                self.text(engine.start(compiled), tokens, self.warm_masks, self.warm_accepts, filled=False)
        del session
        self.bytes = engine.bytes_held(compiled, 0)

    def text(self, session, tokens, masks, accepts, filled):
        """How many tokens were taken if the text is rejected, else nothing."""
        engine, clock = self.engine, time.perf_counter_ns
        for place, token in enumerate(tokens):
            if not filled:
                begin = clock()
                engine.fill(session)
                masks.append(clock() - begin)
            filled = False
            if not engine.allows(session, token):
                return place
            begin = clock()
            accepted = engine.accept(session, token)
            accepts.append(clock() - begin)
            if not accepted:
                raise RuntimeError(f"refuses token {token}, which its mask allows")
            now = time.monotonic()
            if now > self.deadline:
                raise TimeoutError("timed out: the instances took too long")
            if masks is self.masks and now > self.told + SO_FAR:
                self.told = now
                tell({"event": "so_far", "figures": self.figures()})
        if not filled:
            begin = clock()
            engine.fill(session)
            masks.append(clock() - begin)
        return None if any(engine.allows(session, token) for token in self.end) else len(tokens)

    def figures(self):
        return {
            "ttfm_us": micros(self.first_mask),
            "mask_us": summary(self.masks),
            "accept_us": summary(self.accepts),
            "total_us": micros((self.first_mask or 0) + sum(self.masks) + sum(self.accepts)),
        }


def summary(nanos):
    return summary_of(nanos) if nanos else None


def micros(nanos):
    return None if nanos is None else nanos / 1e3


def tell(event):
    print(json.dumps(event), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--timeout-s", type=int, default=30)
    parser.add_argument("--warm", action="store_true")
    arguments = parser.parse_args()
    tokenizer = Tokenizer(arguments.tokenizer)
    engine = Grammars(tokenizer)
    # What belongs to the vocabulary is prepared on first use.
    engine.fill(engine.start(engine.compile(("regex", "[a-z]+"))))
    tell({"event": "ready", "release": engine.release()})
    for line in sys.stdin:
        replay = Replay(engine, json.loads(line), tokenizer.end, arguments.timeout_s, arguments.warm)
        tell({"event": "begin"})
        tell({"event": "end", "figures": replay.run()})


if __name__ == "__main__":
    main()
