"""Three constraints, a small vocabulary, and a text under each: the package on one page.

Run it with `python examples/python/first_steps.py`; it needs nothing but the package.
"""

import random

import maskwright as mw

# Normally: mw.Vocabulary.load("tokenizer.json"), or .from_tokenizer(a tokenizer of transformers).
tokens = [bytes([byte]) for byte in range(32, 127)] + [b"true", b"false", b'{"', b'":', b'", "', b"cat", b"dog", b"<end>"]
vocabulary = mw.Vocabulary.from_tokens(tokens, eos=len(tokens) - 1)
compiler = mw.Compiler(vocabulary)

constraints = {
    "a choice": mw.choice(["cat", "dog", "catfish"]),
    "a regex": mw.regex(r"[A-Z][a-z]{2,5}, [0-9]{1,2}"),
    "a schema": mw.json_schema(
        {
            "type": "object",
            "properties": {"pet": {"enum": ["cat", "dog"]}, "old": {"type": "boolean"}, "legs": {"type": "integer", "minimum": 3, "maximum": 4}},
            "required": ["pet", "old", "legs"],
            "additionalProperties": False,
        },
        whitespace="spaced",
    ),
}

chance = random.Random(1)
for name, constraint in constraints.items():
    matcher = compiler.compile(constraint).matcher()
    text = b""
    while not matcher.is_stopped():
        # A model would choose by its logits; here chance does, among what the mask allows.
        token = chance.choice([token for token in matcher.allowed_tokens() if token not in vocabulary.eos])
        matcher.accept(token)
        text += vocabulary.token_bytes(token)
    print(f"{name:10} {text.decode()}")
