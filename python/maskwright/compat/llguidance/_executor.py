"""Batches of matchers with the interface of llguidance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import fill_masks
from ._matcher import LLMatcher, at_address


class LLExecutor:
    """Fills and advances many matchers on several threads."""

    def __init__(self, num_threads: int | None = None) -> None:
        self._threads = num_threads

    def unsafe_compute_mask_ptr(
        self,
        interpreters: Sequence[tuple[LLMatcher, int]],
        trg_ptr: int,
        one_mask_bytes: int,
        trg_batch_size: int,
    ) -> None:
        """Writes the masks of many matchers to an address, one row each. The caller guarantees that the memory is
        valid."""
        _check(interpreters, 2)
        _check_place(interpreters, trg_ptr, one_mask_bytes, trg_batch_size)
        words = at_address(trg_ptr, one_mask_bytes * trg_batch_size)
        rows = memoryview(words).cast("B").cast("I", (trg_batch_size, one_mask_bytes // 4))
        ready = [(inner, row) for matcher, row in interpreters if (inner := matcher._ready()) is not None]
        fill_masks([inner for inner, _ in ready], rows, [row for _, row in ready], threads=self._threads)
        for matcher, row in interpreters:
            if matcher._ready() is None:
                matcher._fill(at_address(trg_ptr + row * one_mask_bytes, one_mask_bytes))

    def unsafe_compute_mask_ptr_with_draft_token(
        self,
        interpreters: Sequence[tuple[LLMatcher, int, Sequence[int]]],
        trg_ptr: int,
        one_mask_bytes: int,
        trg_batch_size: int,
    ) -> None:
        """Does the same for matchers with guessed tokens: the rows after a matcher's own row are the masks after
        each of its tokens, as far as these are allowed. Rows of further tokens are not changed."""
        _check(interpreters, 3)
        _check_place(interpreters, trg_ptr, one_mask_bytes, trg_batch_size)
        for matcher, row, draft in interpreters:
            size = (trg_batch_size - row) * one_mask_bytes
            if size < (1 + len(draft)) * one_mask_bytes:
                raise ValueError(f"a draft of {len(draft)} tokens from row {row} on does not fit {trg_batch_size} rows")
            matcher.unsafe_compute_mask_ptr_with_draft_token(trg_ptr + row * one_mask_bytes, one_mask_bytes, draft)

    def consume_token_par(self, matchers_and_tokens: Sequence[tuple[LLMatcher, int]]) -> list[bool]:
        """Makes each matcher accept its token."""
        _check(matchers_and_tokens, 2)
        for _, token in matchers_and_tokens:
            if not isinstance(token, int):
                raise TypeError(f"'{type(token).__name__}' object is not an instance of 'int'")
        return [matcher.consume_token(token) for matcher, token in matchers_and_tokens]


def _check(entries: Sequence[tuple[Any, ...]], length: int) -> None:
    """Checks for tuples that begin with a matcher, each with a different one."""
    if not entries:
        raise ValueError("No matchers are given")
    seen: set[int] = set()
    for entry in entries:
        if not isinstance(entry, tuple):
            raise TypeError(f"'{type(entry).__name__}' object is not an instance of 'tuple'")
        if len(entry) != length:
            raise ValueError(f"Expecting a tuple of {length}, and this one has {len(entry)}")
        if not isinstance(entry[0], LLMatcher):
            raise TypeError(f"'{type(entry[0]).__name__}' object is not an instance of 'LLMatcher'")
    for entry in entries:
        if id(entry[0]) in seen:
            raise RuntimeError("Already borrowed: a matcher is given twice")
        seen.add(id(entry[0]))


def _check_place(entries: Sequence[tuple[Any, ...]], pointer: int, bytes_each: int, rows: int) -> None:
    """Checks that the rows are inside the buffer, and as long as the masks."""
    if any(not 0 <= entry[1] < rows for entry in entries):
        raise ValueError(f"Target index out of bounds: there are {rows} rows")
    if pointer == 0:
        raise ValueError("Null pointer: there is no buffer")
    if pointer % 4:
        raise ValueError("Pointer not aligned: it must be a multiple of 4")
    need = 4 * entries[0][0]._tokenizer.vocabulary.words
    if bytes_each % 4 or bytes_each < need:
        raise ValueError(f"Invalid buffer size: a row needs {need} bytes, in whole words, and has {bytes_each}")
