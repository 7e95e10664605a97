"""Masks in tensors of PyTorch, with the three usual functions: allocate, fill, apply.

Masks are filled on the CPU, where tensors are written in place. They are applied on the device of the logits.

>>> import torch
>>> import maskwright as mw
>>> import maskwright.torch as masks
>>> vocabulary = mw.Vocabulary.from_tokens([b"yes", b"no", b"maybe", b"<end>"], eos=3)
>>> matcher = mw.Compiler(vocabulary).compile(mw.choice(["yes", "no"])).matcher()
>>> mask = masks.allocate_token_bitmask(1, vocabulary.size)
>>> masks.fill_next_token_bitmask(matcher, mask, index=0)
>>> logits = torch.zeros(1, 4)
>>> masks.apply_token_bitmask_inplace(logits, mask.to(logits.device))
>>> logits
tensor([[0., 0., -inf, -inf]])
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Sequence

import torch

from ._maskwright import Matcher, apply_mask, fill_masks

__all__ = [
    "allocate_token_bitmask",
    "apply_token_bitmask_inplace",
    "fill_next_token_bitmask",
    "fill_next_token_bitmask_par",
    "get_bitmask_shape",
    "reset_token_bitmask",
]

_WORDS = (torch.int32,) + ((torch.uint32,) if hasattr(torch, "uint32") else ())


def get_bitmask_shape(batch_size: int, vocab_size: int) -> tuple[int, int]:
    """Returns the number of rows, and of 32-bit words in each row."""
    return batch_size, (vocab_size + 31) // 32


def allocate_token_bitmask(batch_size: int, vocab_size: int, *, pin_memory: bool | None = None) -> torch.Tensor:
    """Creates rows of masks that allow everything, on the CPU; in pinned memory if there is a GPU to copy to."""
    if pin_memory is None:
        pin_memory = torch.cuda.is_available()
    return torch.full(get_bitmask_shape(batch_size, vocab_size), -1, dtype=torch.int32, pin_memory=pin_memory)


def reset_token_bitmask(bitmask: torch.Tensor) -> None:
    """Makes the masks allow everything again."""
    bitmask.fill_(-1)


def fill_next_token_bitmask(matcher: Matcher, bitmask: torch.Tensor, index: int = 0) -> None:
    """Writes a matcher's mask into row ``index``."""
    matcher.fill_mask(bitmask, index)


def fill_next_token_bitmask_par(matchers: Iterable[tuple[Matcher, int]], bitmask: torch.Tensor) -> None:
    """Writes the masks of many matchers in parallel, each into the row that is paired with it."""
    pairs = list(matchers)
    fill_masks([matcher for matcher, _ in pairs], bitmask, [row for _, row in pairs])


def apply_token_bitmask_inplace(
    logits: torch.Tensor, bitmask: torch.Tensor, indices: Sequence[int] | torch.Tensor | None = None
) -> None:
    """Writes −∞ into the logits of forbidden tokens. With ``indices`` only these rows are changed, each by the mask
    row of the same index. Logits beyond the mask are forbidden."""
    if bitmask.dtype not in _WORDS:
        raise TypeError(f"the elements of a mask must be 32-bit integers, and these are {bitmask.dtype}")
    if logits.device != bitmask.device:
        raise ValueError(f"the logits are on {logits.device} and the mask on {bitmask.device}; copy the mask there")
    by_ours = logits.dtype in (torch.float32, torch.float16, torch.bfloat16) and logits.stride(-1) == 1
    if logits.device.type == "cpu" and by_ours and not logits.requires_grad:
        rows = indices.tolist() if isinstance(indices, torch.Tensor) else None if indices is None else list(indices)
        apply_mask(logits, bitmask, rows)
        return
    if logits.is_cuda and by_ours and importlib.util.find_spec("triton") is not None:
        from .kernels import apply_mask_inplace

        apply_mask_inplace(logits, bitmask.view(torch.int32), rows=indices, mask_rows=indices)
        return
    apply_by_torch(logits, bitmask, indices)


def apply_by_torch(
    logits: torch.Tensor, bitmask: torch.Tensor, indices: Sequence[int] | torch.Tensor | None = None
) -> None:
    """Does the same with plain operations of PyTorch, for every device and type. Kernels are compared with this
    definition."""
    if logits.dim() != bitmask.dim() or (indices is None and logits.shape[:-1] != bitmask.shape[:-1]):
        raise ValueError(f"logits of shape {tuple(logits.shape)} and a mask of shape {tuple(bitmask.shape)} do not go together")
    if indices is not None:
        rows = torch.as_tensor(indices, dtype=torch.long, device=logits.device)
        chosen = logits[rows]
        apply_by_torch(chosen, bitmask[rows])
        logits[rows] = chosen
        return
    bits = torch.arange(32, dtype=torch.int32, device=bitmask.device)
    allowed = (bitmask.view(torch.int32).unsqueeze(-1) >> bits) & 1
    allowed = allowed.flatten(-2).bool()
    width = min(allowed.shape[-1], logits.shape[-1])
    logits[..., :width].masked_fill_(~allowed[..., :width], float("-inf"))
    logits[..., width:] = float("-inf")
