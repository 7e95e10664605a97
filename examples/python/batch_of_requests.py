"""A server's loop in small: many requests with constraints of their own, one mask for all, logits, and the next tokens.

Run it with `python examples/python/batch_of_requests.py [tokenizer]`.
"""
# needs: numpy

import asyncio
import sys
from pathlib import Path

import numpy as np

import maskwright as mw
import maskwright.numpy as masks

known = Path("target/assets/llama3_1")
source = sys.argv[1] if len(sys.argv) > 1 else str(known) if known.exists() else "r50k_base"
vocabulary = mw.Vocabulary.load(source)
compiler = mw.Compiler(vocabulary, workers=2)

REQUESTS = [
    mw.json_schema(
        {"type": "object", "properties": {"city": {"type": "string", "maxLength": 12}}, "required": ["city"], "additionalProperties": False},
        whitespace="spaced",
    ),
    mw.regex(r"(yes|no), because [a-z ]{5,20}\."),
    mw.choice(["red", "green", "blue"]),
    mw.lark('start: "SELECT " NAME " FROM " NAME\nNAME: /[a-z]{2,8}/'),
]


async def compile_all() -> list[mw.Matcher]:
    """Compiles all constraints at once, without blocking an event loop. Every text has at most 24 tokens."""
    compiled = await asyncio.gather(*[compiler.submit(constraint) for constraint in REQUESTS])
    return [one.matcher(budget=24) for one in compiled]


matchers = asyncio.run(compile_all())
texts = [b""] * len(matchers)
mask = masks.allocate_token_bitmask(len(matchers), vocabulary.size)
chance = np.random.default_rng(3)
while running := [row for row, matcher in enumerate(matchers) if not matcher.is_terminated()]:
    mw.fill_masks([matchers[row] for row in running], mask, running)
    logits = chance.standard_normal((len(matchers), vocabulary.size), dtype=np.float32)  # the model
    masks.apply_token_bitmask_inplace(logits, mask, running)
    for row in running:
        token = int(logits[row].argmax())
        matchers[row].accept(token)
        texts[row] += vocabulary.token_bytes(token)
for constraint, text in zip(REQUESTS, texts):
    print(f"{constraint.kind:12} {text.decode()}")
