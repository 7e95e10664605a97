"""Vocabularies, indexes and guides as bytes: a word for the kind, a header in JSON, and the rest.

Nothing in such bytes is executed. Bytes of another kind, of outlines-core itself, or with a missing part are refused
with ``ValueError``.
"""

from __future__ import annotations

import json
from typing import Any


def pack(kind: str, header: Any, rest: bytes = b"") -> bytes:
    """Returns the bytes of an object of this kind."""
    written = json.dumps(header, separators=(",", ":")).encode()
    return f"maskwright {kind} {len(written)}\n".encode() + written + rest


def unpack(kind: str, binary_data: bytes) -> tuple[Any, bytes]:
    """Returns the header and the rest."""
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
    """Returns the error for an invalid header."""
    return ValueError(f"Deserialization failed: the {kind} is damaged")
