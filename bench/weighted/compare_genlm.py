"""Times genlm-grammar's Earley parser and ours, in turn, on a grammar of 10,000 rules and sentences of it.

    cargo build --release -p maskwright-weighted --example word_times
    python bench/weighted/compare_genlm.py target/release/examples/word_times out [sentences]

Both parsers read the same words one at a time, and the sentence probabilities must agree. genlm-grammar computes prefix probabilities with
the Earley parser of a transformed grammar (`EarleyLM`); its column then holds every prediction, so the distribution of the next word costs it
little more. Ours has prefix probabilities in any case, writes no predictions down, and works the distribution out when it is asked for. So two
ratios count: a word with its prefix probability, and a word with the whole distribution behind it.
"""

import json
import math
import subprocess
import sys
import time
from pathlib import Path

from genlm.grammar import CFG, Earley, Float, EarleyLM


def read(path):
    cfg = CFG(R=Float, S="S", V=set())
    rules = []
    for line in path.read_text().splitlines():
        left, right = line.split(" -> ", 1)
        for alternative in right.split(" | "):
            body, weight = alternative.rsplit(" [", 1)
            rules.append((left, body.split(), float(weight.rstrip("]"))))
    heads = {left for left, _, _ in rules}
    cfg.V = {symbol for _, body, _ in rules for symbol in body} - heads
    for left, body, weight in rules:
        cfg.add(weight, left, *body)
    return cfg


def timed(parser, sentences, ask=False):
    """Seconds for a word, and, if asked for, for the distribution behind it."""
    reading, asking, words = 0.0, 0.0, 0
    for sentence in sentences:
        parser.clear_cache()
        for at in range(1, len(sentence) + 1):
            begin = time.perf_counter()
            chart = parser.chart(sentence[:at])
            middle = time.perf_counter()
            if ask:
                parser.next_token_weights(chart)
            asking += time.perf_counter() - middle
            reading += middle - begin
            words += 1
    return reading / words, asking / words


def ours(binary, folder):
    subprocess.run([binary, "english", str(folder)], check=True)
    return json.loads((folder / "ours.json").read_text())


def main():
    binary, folder = sys.argv[1], Path(sys.argv[2])
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    first = ours(binary, folder)
    sentences = [tuple(line.split()) for line in (folder / "sentences.txt").read_text().splitlines()][:count]
    cfg = read(folder / "grammar.pcfg")
    begin = time.perf_counter()
    plain = Earley(cfg)
    print(f"genlm-grammar: tables in {time.perf_counter() - begin:.1f} s")
    for sentence, log in zip(sentences, first["sentence_logprobs"]):
        assert abs(math.log(plain(sentence)) - log) < 1e-9, sentence
    print(f"the probabilities of {len(sentences)} sentences agree")
    alone, _ = timed(plain, sentences)
    begin = time.perf_counter()
    prefixes = EarleyLM(cfg)
    print(f"genlm-grammar with prefixes: tables in {time.perf_counter() - begin:.1f} s")
    reading, asking = timed(prefixes.model, sentences, ask=True)
    last = ours(binary, folder)
    word = max(first["word_s"], last["word_s"])
    whole = word + max(first["distribution_s"], last["distribution_s"])
    print(f"a word, sentence probabilities only: genlm {alone * 1e3:.2f} ms")
    print(f"a word with its prefix probability:  genlm {reading * 1e3:.2f} ms, ours {word * 1e6:.2f} us, ratio {reading / word:.0f}")
    print(f"the same and the distribution:       genlm {(reading + asking) * 1e3:.2f} ms, ours {whole * 1e6:.2f} us, ratio {(reading + asking) / whole:.0f}")


if __name__ == "__main__":
    main()
