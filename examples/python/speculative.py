"""Guessed tokens: masks behind a chain and a tree of them in one call, and what must come next without asking the model.

Run it with `python examples/python/speculative.py`.
"""

import maskwright as mw

vocabulary = mw.Vocabulary.load("r50k_base")
compiler = mw.Compiler(vocabulary)
constraint = mw.json_schema(
    {"type": "object", "properties": {"answer": {"enum": ["yes", "no"]}}, "required": ["answer"], "additionalProperties": False},
    whitespace="spaced",
)
matcher = compiler.compile(constraint).matcher()

taken_back, forced = matcher.forced_tokens()
print("must come:", vocabulary.decode(forced).decode())

draft = vocabulary.encode('{"answer": "maybe"}')
rows = memoryview(bytearray(4 * vocabulary.words * (len(draft) + 1))).cast("B").cast("I", (len(draft) + 1, vocabulary.words))
allowed = matcher.fill_draft_chain(draft, rows)
print(f"of {len(draft)} guessed tokens may stay:", vocabulary.decode(draft[:allowed]).decode())
matcher.accept_all(draft[:allowed])
print("then:", [vocabulary.token_bytes(token).decode() for token in matcher.allowed_tokens()])
