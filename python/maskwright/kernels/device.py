"""The kernels for GPUs, in Triton.

Masking moves bytes and computes nothing, so the question is which bytes. A token that is not allowed needs a write
and no read. A token that is allowed needs neither. But memory is not written token by token: the smallest unit that
goes in one instruction is 16 bytes, 4 tokens in float32 and 8 in bfloat16. So the kernel looks at a *group* of bits
that makes up such a unit:

::

    bits of a group    11111111     00000000           10110111
    what is moved      nothing      a write            a read and a write

Most groups of real masks are of the first two kinds: the tokens that a string allows are nearly all of them, those
that a closing bracket allows are very few. XGrammar's kernel, for comparison, writes single elements under a
predicate, which takes eight instructions for 16 bytes of bfloat16.

Two facts about Triton make this work. A value that is loaded through a pointer which is the same for 32 neighbours is
known to be the same for them, and so is what is computed from it; therefore the condition of the store is known to
be the same for the whole group, and the store is one wide instruction. And pointers and strides that are divisible by 16
are compiled as such. Rows of an odd width are right, too, only slower.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from .check import Job

# PERF: measured with bench/kernels/bench_mask.py on an H200.
BLOCK = 8192
WARPS = 8
# The number of bytes of logits that a group covers.
GROUP_BYTES = 16
# How many entries of a patch are looked at in one go.
CHUNK = 64


def apply_device(job: Job, block: int = BLOCK, warps: int = WARPS, group_bytes: int = GROUP_BYTES) -> None:
    """Do the job with the kernel."""
    rows, width = job.logits.shape
    if job.count == 0 or width == 0:
        return
    grid = (job.count * triton.cdiv(width, block),)
    _apply_mask[grid](
        job.logits,
        job.mask,
        job.rows,
        job.mask_rows,
        width,
        job.mask.shape[1],
        job.logits.stride(0),
        job.mask.stride(0),
        rows,
        job.mask.shape[0],
        GROUP=_group(job.logits, group_bytes),
        BLOCK=block,
        num_warps=warps,
    )


def apply_plan(
    logits: torch.Tensor,
    bases: torch.Tensor,
    plan: torch.Tensor,
    count: int,
    block: int = BLOCK,
    warps: int = WARPS,
    group_bytes: int = GROUP_BYTES,
) -> None:
    """Mask ``count`` rows as a plan says. The plan is described in ``pool``; it is not checked here."""
    rows, width = logits.shape
    if count == 0 or width == 0:
        return
    grid = (count * triton.cdiv(width, block),)
    _apply_plan[grid](
        logits,
        bases,
        plan,
        width,
        bases.shape[1],
        logits.stride(0),
        bases.stride(0),
        rows,
        bases.shape[0],
        GROUP=_group(logits, group_bytes),
        BLOCK=block,
        CHUNK=CHUNK,
        num_warps=warps,
    )


def _group(logits: torch.Tensor, group_bytes: int) -> int:
    return max(1, group_bytes // logits.element_size())


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
    # Numbers that come from the GPU were not checked by anybody; a wrong one must not reach foreign memory.
    if (row >= 0) & (row < logits_count) & (mask_row >= 0) & (mask_row < mask_count):
        tokens = tile * BLOCK + tl.arange(0, BLOCK)
        word = tl.load(
            mask + mask_row.to(tl.int64) * mask_stride + tokens // 32, mask=tokens // 32 < words, other=0
        )
        _write(logits + row.to(tl.int64) * logits_stride, tokens, word, width, GROUP)


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
        tokens = tile * BLOCK + tl.arange(0, BLOCK)
        word = tl.load(bases + base.to(tl.int64) * bases_stride + tokens // 32, mask=tokens // 32 < words, other=0)
        # Entries are sorted by token. Those of this tile stand behind the ones that are smaller.
        first = begin
        last = begin
        for at in range(begin, end, CHUNK):
            number = at + tl.arange(0, CHUNK)
            entry = tl.load(plan + number, mask=number < end, other=0x7FFFFFFF) >> 1
            first += tl.sum((entry < tile * BLOCK).to(tl.int32))
            last += tl.sum((entry < tile * BLOCK + BLOCK).to(tl.int32))
        for at in range(first, last):
            entry = tl.load(plan + at)
            token = entry >> 1
            bit = 1 << (token % 32)
            changed = tl.where(entry % 2 == 1, word | bit, word & ~bit)
            word = tl.where(tokens // 32 == token // 32, changed, word)
        _write(logits + row.to(tl.int64) * logits_stride, tokens, word, width, GROUP)


@triton.jit
def _write(row, tokens, word, width, GROUP: tl.constexpr):
    full: tl.constexpr = (1 << GROUP) - 1
    inside = tokens < width
    group = (word >> (tokens % 32 // GROUP * GROUP)) & full
    old = tl.load(row + tokens, mask=inside & (group != 0) & (group != full), other=float("-inf"))
    allowed = (word >> (tokens % 32)) & 1
    new = tl.where(allowed == 1, old, float("-inf"))
    tl.store(row + tokens, new, mask=inside & (group != full))
