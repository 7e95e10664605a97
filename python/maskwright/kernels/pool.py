"""Masks that stay on the GPU.

A mask of 128,256 tokens has 16 KB, so a step of 256 rows sends 4 MB to the GPU. But the masks of one constraint, and of
many constraints over one vocabulary, are few and similar, for example inside strings. So a pool keeps *bases* on the
GPU, and a step sends a *plan*: for each row the index of a base, and the tokens in which the row's mask differs from
that base.

::

    plan     row base begin end   row base begin end   ...   entry entry entry ...
             └────── job 0 ─────┘                            └ token * 2 + allowed, sorted by token

It is one array of int32 and one transfer. A kernel applies base and patch to the logits in one pass.

A caller that knows the base of a row and the differences passes them (:meth:`MaskPool.add`, :meth:`MaskPool.plan`). A
caller that only has masks lets the pool compare them (:meth:`MaskPool.plan_masks`): a known mask is found by its bytes;
another one is compared with the most recently used bases. If it differs from one of them in at most ``patch_limit``
tokens it becomes a patch, otherwise a new base. Comparing reads every mask once, which costs a few microseconds for
each row. It pays off if the connection to the GPU is slow or busy, but not on an idle one.

If ``capacity`` bases are in the pool, a new one replaces the least recently used one.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Iterable, Sequence

import torch

from .bits import unpack_mask

# The number of recently used bases that a new mask is compared with.
_CANDIDATES = 4


@dataclass(frozen=True)
class Plan:
    """The masks for the logits of a step. It belongs to the pool that made it, and must be applied before its next
    plan."""

    words: torch.Tensor
    count: int

    @property
    def patched(self) -> int:
        """The total number of tokens in which masks differ from their bases."""
        return self.words.numel() - 4 * self.count


class MaskPool:
    """Keeps base masks on a device, and makes and applies plans.

    >>> pool = MaskPool(tokens=64, capacity=8)
    >>> base = pool.add(torch.tensor([1, 0], dtype=torch.int32))
    >>> plan = pool.plan([base, base], patches=[([], []), ([1], [])])
    >>> logits = torch.zeros(2, 64)
    >>> pool.apply(logits, plan)
    >>> logits[:, :3]
    tensor([[0., -inf, -inf],
            [0., 0., -inf]])
    """

    def __init__(
        self,
        tokens: int,
        capacity: int = 512,
        device: torch.device | str = "cpu",
        patch_limit: int = 64,
    ) -> None:
        if tokens < 1 or capacity < 1 or patch_limit < 0:
            raise ValueError("a pool needs at least one token and room for one mask, and patches are not negative")
        words = (tokens + 31) // 32
        self._tokens = tokens
        self._patch_limit = patch_limit
        self._on_device = torch.zeros(capacity, words, dtype=torch.int32, device=device)
        # A copy in main memory, for comparing.
        self._here = torch.zeros(capacity, words, dtype=torch.int32)
        # From the bytes of a base to its slot, in order of use; and back.
        self._places: OrderedDict[bytes, int] = OrderedDict()
        self._keys: list[bytes] = []
        #: The number of masks that were sent completely since the pool was created.
        self.uploads = 0

    @property
    def capacity(self) -> int:
        """The maximum number of bases."""
        return self._here.shape[0]

    def add(self, words: torch.Tensor) -> int:
        """Returns the index of a base with these words, which is uploaded unless it is already there.

        The index is valid until ``capacity`` other bases were added after its last use in :meth:`add` or a plan.
        """
        self._check(words.unsqueeze(0))
        return self._add(words.numpy().tobytes(), words, frozenset())

    def plan(
        self,
        bases: Sequence[int],
        patches: Sequence[tuple[Iterable[int], Iterable[int]]] | None = None,
        rows: Sequence[int] | None = None,
    ) -> Plan:
        """Makes a plan from known bases and patches.

        Job ``i`` masks row ``rows[i]`` (or ``i``) with base ``bases[i]``, in which the tokens of ``patches[i][0]`` are
        allowed and those of ``patches[i][1]`` forbidden.
        """
        for base in bases:
            if not 0 <= base < len(self._keys):
                raise IndexError(f"there is no base {base}; the pool holds {len(self._keys)}")
            self._places.move_to_end(self._keys[base])
        if patches is None:
            return self._plan(bases, [[]] * len(bases), rows)
        if len(patches) != len(bases):
            raise ValueError(f"{len(patches)} patches for {len(bases)} bases")
        return self._plan(bases, [self._entries(*patch) for patch in patches], rows)

    def plan_masks(self, mask: torch.Tensor, rows: Sequence[int] | None = None) -> Plan:
        """Makes a plan for these masks by comparing them with the bases.

        ``mask`` is ``[masks, words]`` of int32 in main memory, as ``fill`` wrote it.
        """
        self._check(mask)
        if mask.shape[0] > self.capacity:
            raise ValueError(f"{mask.shape[0]} masks may need as many bases, and the pool holds {self.capacity}")
        bases: list[int] = []
        patches = []
        for words in mask:
            base, patch = self._find(words, bases)
            bases.append(base)
            patches.append(patch)
        return self._plan(bases, patches, rows)

    def apply(self, logits: torch.Tensor, plan: Plan) -> None:
        """Writes minus infinity into the logits where a mask of the plan has a zero."""
        if logits.dim() != 2 or not logits.is_floating_point() or logits.device != self._on_device.device:
            raise ValueError(f"logits must be floating-point numbers, [rows, vocabulary], on {self._on_device.device}")
        if logits.shape[1] > 1 and logits.stride(1) != 1:
            raise ValueError("the logits of a row must be neighbours in memory")
        if logits.is_cuda:
            from .device import apply_plan

            apply_plan(logits, self._on_device, plan.words, plan.count)
        else:
            apply_plan_reference(logits, self._on_device, plan.words, plan.count)

    def _check(self, mask: torch.Tensor) -> None:
        if mask.dtype != torch.int32 or mask.dim() != 2 or mask.device.type != "cpu":
            raise TypeError("a pool takes masks of int32 words, in main memory")
        if mask.shape[1] != self._here.shape[1]:
            raise ValueError(f"the mask has {mask.shape[1]} words and those of the pool have {self._here.shape[1]}")

    def _plan(self, bases: Sequence[int], patches: list[list[int]], rows: Sequence[int] | None) -> Plan:
        rows = range(len(bases)) if rows is None else rows
        if len(rows) != len(bases):
            raise ValueError(f"{len(bases)} masks for {len(rows)} rows")
        words: list[int] = []
        at = 4 * len(bases)
        for row, base, patch in zip(rows, bases, patches, strict=True):
            if row < 0:
                raise IndexError(f"there is no row {row}")
            words += (row, base, at, at + len(patch))
            at += len(patch)
        for patch in patches:
            words += patch
        return Plan(self._sent(torch.tensor(words, dtype=torch.int32)), len(bases))

    def _sent(self, words: torch.Tensor) -> torch.Tensor:
        """Copies words to the device. The source is pinned memory, which PyTorch does not reuse before the copy is
        done, so nothing waits for it."""
        if self._on_device.is_cuda:
            words = words.pin_memory()
        return words.to(self._on_device.device, non_blocking=True)

    def _entries(self, allowed: Iterable[int], forbidden: Iterable[int]) -> list[int]:
        entries = sorted([token * 2 + 1 for token in allowed] + [token * 2 for token in forbidden])
        if entries and not 0 <= entries[0] <= entries[-1] < 2 * self._tokens:
            raise IndexError(f"a patch names a token that is not one of {self._tokens}")
        return entries

    def _find(self, words: torch.Tensor, in_use: list[int]) -> tuple[int, list[int]]:
        """Returns a base, and the patch that turns it into the mask."""
        key = words.numpy().tobytes()
        if key not in self._places:
            for candidate in list(reversed(self._places))[:_CANDIDATES]:
                patch = self._difference(words, self._here[self._places[candidate]])
                if patch is not None:
                    self._places.move_to_end(candidate)
                    return self._places[candidate], patch
        return self._add(key, words, in_use), []

    def _add(self, key: bytes, words: torch.Tensor, in_use: Iterable[int]) -> int:
        place = self._places.get(key)
        if place is None:
            place = self._vacant(set(in_use))
            self._places[key] = place
            self._keys[place] = key
            self._here[place] = words
            self._on_device[place] = self._sent(words)
            self.uploads += 1
        self._places.move_to_end(key)
        return place

    def _difference(self, words: torch.Tensor, base: torch.Tensor) -> list[int] | None:
        """Returns the entries of a patch, or ``None`` if there would be too many."""
        different = torch.nonzero(words ^ base).flatten()
        if different.numel() > self._patch_limit:
            return None
        new = unpack_mask(words[different].unsqueeze(1), 32)
        where = torch.nonzero(new ^ unpack_mask(base[different].unsqueeze(1), 32))
        if where.shape[0] > self._patch_limit:
            return None
        tokens = different[where[:, 0]] * 32 + where[:, 1]
        return (tokens * 2 + new[where[:, 0], where[:, 1]]).tolist()

    def _vacant(self, in_use: set[int]) -> int:
        """Returns a free slot, or that of the least recently used base."""
        if len(self._keys) < self.capacity:
            self._keys.append(b"")
            return len(self._keys) - 1
        key = next(key for key, place in self._places.items() if place not in in_use)
        return self._places.pop(key)


def apply_plan_reference(logits: torch.Tensor, bases: torch.Tensor, plan: torch.Tensor, count: int) -> None:
    """Does the same as the kernel, row by row, in plain PyTorch."""
    width = logits.shape[1]
    for row, base, begin, end in plan[: 4 * count].reshape(count, 4).tolist():
        allowed = unpack_mask(bases[base], bases.shape[1] * 32).clone()
        entries = plan[begin:end].long()
        allowed[entries >> 1] = (entries & 1).to(torch.bool)
        if allowed.shape[0] < width:
            allowed = torch.nn.functional.pad(allowed, (0, width - allowed.shape[0]))
        logits[row].masked_fill_(~allowed[:width], float("-inf"))
