#!/usr/bin/env python3
"""Packs rank files of tiktoken for crates/tokenizers/encodings, a third of the size and without a decompressor.

    scripts/encodings.py r50k_base.tiktoken cl100k_base.tiktoken o200k_base.tiktoken

Every token but the 256 single bytes is two earlier tokens, the ones that byte-pair encoding joins last. Only their ranks are kept: the lowest bytes of
all left halves, then their middle and their highest ones, then the same of the right halves. Equal bytes stand together so, and what compresses a
package afterwards (a wheel is a zip file) finds them.
"""

import base64
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "crates/tokenizers/encodings"


def halves(token, rank, ranks):
    """The two tokens that are joined to this one; the least rank is joined first."""
    parts = [token[at : at + 1] for at in range(len(token))]
    while len(parts) > 2:
        joined = [ranks.get(left + right, rank) for left, right in zip(parts, parts[1:])]
        at = joined.index(min(joined))
        if joined[at] >= rank:
            sys.exit(f"encodings: token {rank} is not two earlier tokens")
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return [ranks[part] for part in parts]


def pack(path):
    lines = [line.split() for line in path.read_bytes().splitlines() if line.strip()]
    tokens = [base64.b64decode(token) for token, _ in lines]
    if [int(rank) for _, rank in lines] != list(range(len(lines))) or any(len(token) != 1 for token in tokens[:256]):
        sys.exit(f"encodings: {path} does not number its tokens from 0 on, the single bytes first")
    ranks = {token: rank for rank, token in enumerate(tokens)}
    pairs = [halves(token, rank, ranks) for rank, token in enumerate(tokens) if rank >= 256]
    packed = b"".join(bytes(pair[side] >> shift & 255 for pair in pairs) for side in (0, 1) for shift in (0, 8, 16))
    (FOLDER / f"{path.stem}.pairs").write_bytes(packed)
    print(f"{path.stem}: {len(tokens)} tokens, {len(packed)} bytes")


for name in sys.argv[1:]:
    pack(pathlib.Path(name))
