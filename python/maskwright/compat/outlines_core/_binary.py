"""Vocabularies, indexes and guides as bytes: a word that says which, a header in JSON, and what follows it.

Nothing in such bytes is run. Bytes of something else, of outlines-core itself, or of which a part is missing, are refused with ``ValueError``.
"""

from __future__ import annotations

import json
from typing import Any


def pack(kind: str, header: Any, rest: bytes = b"") -> bytes:
    """Bytes of this kind."""
    written = json.dumps(header, separators=(",", ":")).encode()
    return f"maskwright {kind} {len(written)}\n".encode() + written + rest


def unpack(kind: str, binary_data: bytes) -> tuple[Any, bytes]:
    """The header and what follows it."""
    if not isinstance(binary_data, (bytes, bytearray, list)):
        raise TypeError(f"argument 'binary_data': expected bytes, got {type(binary_data).__name__}")
    data = bytes(binary_data)
    line, _, rest = data.partition(b"\n")
    words = line.split(b" ")
    if len(words) != 3 or words[0] != b"maskwright" or words[1] != kind.encode() or not words[2].isdigit():
        raise ValueError(f"Deserialization failed: these bytes are no {kind} that was written here")
    length = int(words[2])
    if len(rest) < length:
        raise ValueError(f"Deserialization failed: the {kind} is cut off")
    try:
        header = json.loads(rest[:length])
    except ValueError as error:
        raise ValueError(f"Deserialization failed: the {kind} is damaged: {error}") from None
    return header, rest[length:]


def damaged(kind: str) -> ValueError:
    """What is raised if the header is not what it should be."""
    return ValueError(f"Deserialization failed: the {kind} is damaged")
