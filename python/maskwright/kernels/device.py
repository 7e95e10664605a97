"""The kernels for GPUs, in Triton.

Applying a mask moves bytes and computes nothing, so the cost depends on which bytes move. A token that is not allowed
needs a write and no read. A token that is allowed needs neither. But memory is not written token by token: one
instruction writes at least 16 bytes, 4 tokens in float32 and 8 in bfloat16. So the kernel looks at a *group* of bits
that corresponds to such a unit:

::

    bits of a group    11111111     00000000           10110111
    what is moved      nothing      a write            a read and a write

Most groups of real masks are of the first two kinds: a string allows nearly all tokens, and a closing bracket allows
very few. XGrammar's kernel, for comparison, writes single elements under a predicate, which takes eight instructions
for 16 bytes of bfloat16.

This relies on two properties of Triton. A value that is loaded through a pointer that is the same for 32 neighbors is
known to be the same for them, and so is everything that is computed from it. Therefore the condition of the store is
known to be the same for the whole group, and the store is one wide instruction. And pointers and strides that are
divisible by 16 are compiled specially. Rows of an odd width are correct, too, only slower.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from .check import Job

# PERF: measured with bench/kernels/bench_mask.py on an H200. A program is one warp and handles 4 KB of logits, eight
# groups for each thread. Larger programs are up to a fifth slower for few rows. Writing single elements where a group
# has one, two or three zeros, without reading, was up to twice as slow; doing so only in blocks of which seven eighths
# are allowed gains 12 % inside a string in float32 and loses 5 to 15 % elsewhere; hints that written data will not be
# read soon gain 4 %, but they are not true.
BLOCK_BYTES = 4096
WARPS = 1
# The number of bytes of logits that a group covers.
GROUP_BYTES = 16
# The number of entries of a patch that are processed at once.
CHUNK = 64

# Logits are read and written as integers of the same size, so that kept values are preserved bit by bit and minus
# infinity is an ordinary number.
# number like any other.
_AS_NUMBERS = {
    torch.float32: (torch.int32, -(1 << 23)),
    torch.float16: (torch.int16, -(1 << 10)),
    torch.bfloat16: (torch.int16, -(1 << 7)),
}


def apply_device(
    job: Job,
    block_bytes: int = BLOCK_BYTES,
    warps: int = WARPS,
    group_bytes: int = GROUP_BYTES,
) -> None:
    """Runs the job with the kernel."""
    rows, width = job.logits.shape
    if job.pairs == 0 or width == 0:
        return
    logits, sizes = _as_numbers(job.logits, block_bytes, group_bytes)
    grid = (job.pairs * triton.cdiv(width, sizes["BLOCK"]),)
    _apply_mask[grid](
        logits,
        job.mask,
        job.rows,
        job.mask_rows,
        width,
        job.mask.shape[1],
        job.logits.stride(0),
        job.mask.stride(0),
        rows,
        job.mask.shape[0],
        **sizes,
        num_warps=warps,
    )


def apply_plan(
    logits: torch.Tensor,
    bases: torch.Tensor,
    plan: torch.Tensor,
    count: int,
    block_bytes: int = BLOCK_BYTES,
    warps: int = WARPS,
    group_bytes: int = GROUP_BYTES,
) -> None:
    """Masks ``count`` rows according to a plan. ``pool`` describes plans; they are not checked here."""
    rows, width = logits.shape
    if count == 0 or width == 0:
        return
    numbers, sizes = _as_numbers(logits, block_bytes, group_bytes)
    grid = (count * triton.cdiv(width, sizes["BLOCK"]),)
    _apply_plan[grid](
        numbers,
        bases,
        plan,
        width,
        bases.shape[1],
        logits.stride(0),
        bases.stride(0),
        rows,
        bases.shape[0],
        **sizes,
        CHUNK=CHUNK,
        num_warps=warps,
    )


def _as_numbers(logits: torch.Tensor, block_bytes: int, group_bytes: int) -> tuple[torch.Tensor, dict[str, int]]:
    if logits.dtype not in _AS_NUMBERS:
        raise TypeError(f"the kernel knows float32, float16 and bfloat16, and these logits are {logits.dtype}")
    dtype, minus_infinity = _AS_NUMBERS[logits.dtype]
    size = logits.element_size()
    return logits.view(dtype), {
        "MINUS_INFINITY": minus_infinity,
        "GROUP": max(1, group_bytes // size),
        "BLOCK": block_bytes // size,
    }


@triton.jit
def _apply_mask(
    logits,
    mask,
    rows,
    mask_rows,
    width,
    words,
    logits_stride,
    mask_stride,
    logits_count,
    mask_count,
    MINUS_INFINITY: tl.constexpr,
    GROUP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    tiles = tl.cdiv(width, BLOCK)
    job = tl.program_id(0) // tiles
    tile = tl.program_id(0) % tiles
    row = job
    if rows is not None:
        row = tl.load(rows + job)
    mask_row = job
    if mask_rows is not None:
        mask_row = tl.load(mask_rows + job)
    # Indices that come from the GPU were not checked; a wrong one must not access memory outside the tensors.
    if (row >= 0) & (row < logits_count) & (mask_row >= 0) & (mask_row < mask_count):
        token = tile * BLOCK + tl.arange(0, BLOCK // GROUP) * GROUP
        word = tl.load(mask + mask_row.to(tl.int64) * mask_stride + token // 32, mask=token // 32 < words, other=0)
        _write(logits + row.to(tl.int64) * logits_stride, token, word, width, MINUS_INFINITY, GROUP)


@triton.jit
def _apply_plan(
    logits,
    bases,
    plan,
    width,
    words,
    logits_stride,
    bases_stride,
    logits_count,
    bases_count,
    MINUS_INFINITY: tl.constexpr,
    GROUP: tl.constexpr,
    BLOCK: tl.constexpr,
    CHUNK: tl.constexpr,
):
    tiles = tl.cdiv(width, BLOCK)
    job = tl.program_id(0) // tiles
    tile = tl.program_id(0) % tiles
    row = tl.load(plan + job * 4)
    base = tl.load(plan + job * 4 + 1)
    begin = tl.load(plan + job * 4 + 2)
    end = tl.load(plan + job * 4 + 3)
    if (row >= 0) & (row < logits_count) & (base >= 0) & (base < bases_count):
        token = tile * BLOCK + tl.arange(0, BLOCK // GROUP) * GROUP
        word = tl.load(bases + base.to(tl.int64) * bases_stride + token // 32, mask=token // 32 < words, other=0)
        # Entries are sorted by token. Those of this tile come after the smaller ones.
        first = begin
        last = begin
        for at in range(begin, end, CHUNK):
            number = at + tl.arange(0, CHUNK)
            entry = tl.load(plan + number, mask=number < end, other=0x7FFFFFFF) >> 1
            first += tl.sum((entry < tile * BLOCK).to(tl.int32))
            last += tl.sum((entry < tile * BLOCK + BLOCK).to(tl.int32))
        for at in range(first, last):
            entry = tl.load(plan + at)
            patched = entry >> 1
            bit = 1 << (patched % 32)
            changed = tl.where(entry % 2 == 1, word | bit, word & ~bit)
            word = tl.where(token // 32 == patched // 32, changed, word)
        _write(logits + row.to(tl.int64) * logits_stride, token, word, width, MINUS_INFINITY, GROUP)


@triton.jit
def _write(row, token, word, width, MINUS_INFINITY: tl.constexpr, GROUP: tl.constexpr):
    """Writes groups that begin at these tokens, whose bits are in these words."""
    full: tl.constexpr = (1 << GROUP) - 1
    group = ((word >> (token % 32)) & full)[:, None]
    number = tl.arange(0, GROUP)[None, :]
    place = token[:, None] + number
    inside = place < width
    old = tl.load(row + place, mask=inside & (group != 0) & (group != full), other=0)
    # N.B. With a selection between two values (tl.where), CUDA's assembler generated wrong code for float32 and eight
    # groups for each thread: the last element of the last group was lost. Bit operations leave it less choice. The
    # benchmark checks the constants above on the GPU, in every shape.
    keep = (0 - ((group >> number) & 1)).to(old.dtype)
    new = (old & keep) | (MINUS_INFINITY & ~keep)
    tl.store(row + place, new.to(old.dtype), mask=inside & (group != full))
