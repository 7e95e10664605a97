"""Every way to apply a mask does what the plain definition does, bit by bit."""

import math
import random

import pytest

torch = pytest.importorskip("torch")

from maskwright import kernels
from maskwright.kernels.check import checked
from maskwright.kernels.reference import apply_compiled, apply_reference

DTYPES = [torch.float32, torch.float16, torch.bfloat16]


def by_hand(logits, mask, rows=None, mask_rows=None):
    """The definition once more, without tensors: token t is bit t % 32 of word t // 32."""
    out = logits.tolist()
    mask_rows = range(len(mask)) if mask_rows is None else mask_rows
    rows = range(len(mask_rows)) if rows is None else rows
    for row, mask_row in zip(rows, mask_rows, strict=True):
        words = mask[mask_row].tolist()
        for token in range(len(out[row])):
            word = words[token // 32] if token // 32 < len(words) else 0
            if not word >> (token % 32) & 1:
                out[row][token] = -math.inf
    return torch.tensor(out, dtype=logits.dtype)


def random_mask(rows, words, seed):
    """Words of every kind: none allowed, all allowed, one bit, and anything."""
    chance = random.Random(seed)
    kinds = [lambda: 0, lambda: -1, lambda: 1 << chance.randrange(31), lambda: chance.randrange(-(2**31), 2**31)]
    return torch.tensor([[chance.choice(kinds)() for _ in range(words)] for _ in range(rows)], dtype=torch.int32)


def random_logits(rows, width, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, width, generator=generator).to(dtype)


def apply_native(job):
    apply_processor = pytest.importorskip("maskwright.kernels.processor").apply_processor
    if job.rows is not None or job.mask_rows is not None:
        pytest.skip("rows are chosen by other ways")
    apply_processor(job)


def apply_triton(job):
    device = pytest.importorskip("maskwright.kernels.device")
    device.apply_device(job, block_bytes=512)


# (width of the logits, words of the mask): equal, wider logits, wider mask, odd sizes, several blocks.
SHAPES = [(64, 2), (128, 4), (1, 1), (33, 2), (100, 2), (100, 7), (7, 1), (1000, 32), (513, 16), (520, 17)]
WAYS = [apply_reference, apply_compiled, apply_native, apply_triton]


@pytest.fixture(params=WAYS, ids=lambda way: way.__name__)
def way(request, triton_interpreted):
    if request.param is apply_triton and not triton_interpreted:
        pytest.skip("Triton is not installed, or runs on a GPU")
    return request.param


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_shape(way, dtype):
    for seed, (width, words) in enumerate(SHAPES):
        logits, mask = random_logits(3, width, dtype, seed), random_mask(3, words, seed)
        expected = by_hand(logits, mask)
        way(checked(logits, mask, None, None))
        assert torch.equal(logits, expected), (width, words)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rows_are_chosen(way, dtype):
    logits, mask = random_logits(5, 100, dtype, 1), random_mask(4, 4, 2)
    for rows, mask_rows in [([4, 0], [3, 1]), ([2, 2, 0, 1], None), ([], []), (None, [3, 3, 0, 1, 2])]:
        out = logits.clone()
        way(checked(out, mask, rows, mask_rows))
        assert torch.equal(out, by_hand_pairs(logits, mask, rows, mask_rows)), (rows, mask_rows)


def by_hand_pairs(logits, mask, rows, mask_rows):
    """Pairs one after the other, so that a row which is named twice gets both masks."""
    out = logits.clone()
    rows = range(len(mask_rows)) if rows is None else rows
    for row, mask_row in zip(rows, range(len(rows)) if mask_rows is None else mask_rows, strict=True):
        out[row : row + 1] = by_hand(out[row : row + 1], mask[mask_row : mask_row + 1])
    return out


def test_rows_may_lie_apart(way):
    whole = random_logits(6, 160, torch.float32, 3)
    expected = whole.clone()
    mask = random_mask(3, 8, 4)[:, 2:6]
    expected[::2, 16:116] = by_hand(expected[::2, 16:116], mask)
    way(checked(whole[::2, 16:116], mask, None, None))
    assert torch.equal(whole, expected)


def test_what_was_not_a_number_is_masked_too(way):
    logits = torch.tensor([[math.nan, math.inf, -math.inf, math.nan]])
    way(checked(logits, torch.tensor([[0b0110]], dtype=torch.int32), None, None))
    assert logits.tolist() == [[-math.inf, math.inf, -math.inf, -math.inf]]


def test_nothing_allowed_and_everything_allowed(way):
    logits = random_logits(2, 77, torch.float32, 5)
    before = logits.clone()
    way(checked(logits, torch.tensor([[0] * 3, [-1] * 3], dtype=torch.int32), None, None))
    assert torch.isneginf(logits[0]).all()
    assert torch.equal(logits[1], before[1])


def test_copy_one_row_and_bools():
    logits = random_logits(1, 40, torch.float32, 6)[0]
    allowed = torch.rand(40) < 0.5
    before = logits.clone()
    out = kernels.apply_mask(logits, kernels.pack_mask(allowed))
    assert torch.equal(logits, before)
    assert torch.equal(out, torch.where(allowed, logits, -math.inf))
    assert torch.equal(kernels.apply_mask(logits, allowed), out)


@pytest.mark.parametrize("tokens", [1, 31, 32, 33, 100])
def test_packing_and_back(tokens):
    allowed = torch.rand(3, tokens) < 0.5
    mask = kernels.pack_mask(allowed)
    assert mask.shape == (3, (tokens + 31) // 32) and mask.dtype == torch.int32
    assert torch.equal(kernels.unpack_mask(mask, tokens), allowed)


@pytest.mark.parametrize(
    ("logits", "mask", "rows", "error"),
    [
        (torch.zeros(2, 8, dtype=torch.int32), torch.zeros(2, 1, dtype=torch.int32), None, "floating-point"),
        (torch.zeros(2, 8), torch.zeros(2, 1), None, "int32"),
        (torch.zeros(2, 8), torch.zeros(3, 1, dtype=torch.int32), None, "3 masks for 2 rows"),
        (torch.zeros(2, 8), torch.zeros(1, 1, dtype=torch.int32), [2], "rows holds 2"),
        (torch.zeros(2, 8), torch.zeros(1, 1, dtype=torch.int32), [-1], "rows holds -1"),
        (torch.zeros(2, 8), torch.zeros(2, 1, dtype=torch.int32), [1], "2 masks for 1 rows"),
        (torch.zeros(2, 8), torch.zeros(1, 1, dtype=torch.int32), [0.5], "whole numbers"),
        (torch.zeros(2, 2, 8), torch.zeros(1, 1, dtype=torch.int32), None, "shape"),
        (torch.zeros(8, 2).t(), torch.zeros(2, 1, dtype=torch.int32), None, "neighbours"),
    ],
)
def test_what_is_wrong_is_said(logits, mask, rows, error):
    with pytest.raises((TypeError, ValueError, IndexError), match=error):
        kernels.apply_mask_inplace(logits, mask, rows=rows)


class TestPool:
    """Plans must do what the masks they were made from do."""

    WIDTH = 1000

    def masks(self, seed, rows):
        """Few masks, and others that differ from them in a few tokens."""
        chance = random.Random(seed)
        bases = random_mask(3, 32, seed=9)
        out = bases[[chance.randrange(3) for _ in range(rows)]].clone()
        for row in range(rows):
            for _ in range(chance.choice([0, 0, 1, 5, 70])):
                out[row, chance.randrange(32)] ^= 1 << chance.randrange(31)
        return out

    @pytest.mark.parametrize("dtype", DTYPES, ids=str)
    @pytest.mark.parametrize("by", ["reference", "triton"])
    def test_plans_are_their_masks(self, by, dtype, triton_interpreted):
        if by == "triton" and not triton_interpreted:
            pytest.skip("Triton is not installed, or runs on a GPU")
        pool = kernels.MaskPool(tokens=self.WIDTH, capacity=12)
        patched = 0
        for seed in range(3):
            mask = self.masks(seed, rows=6)
            rows = random.Random(seed).sample(range(9), 6)
            plan = pool.plan_masks(mask, rows)
            patched += plan.patched
            # Narrower than the pool, as wide, and wider.
            for width in (700, self.WIDTH, 1100):
                logits = random_logits(9, width, dtype, seed)
                expected = kernels.apply_mask(logits, mask, rows=rows)
                if by == "triton":
                    from maskwright.kernels.device import apply_plan

                    apply_plan(logits, pool._on_device, plan.words, plan.count, block_bytes=512)
                else:
                    pool.apply(logits, plan)
                assert torch.equal(logits, expected), (seed, width)
        assert patched and pool.uploads > 1, "patches and bases: without both the test tests little"

    def test_bases_and_patches_that_are_known(self):
        pool = kernels.MaskPool(tokens=64, capacity=4)
        base = pool.add(torch.tensor([0b1010, 0], dtype=torch.int32))
        assert pool.add(torch.tensor([0b1010, 0], dtype=torch.int32)) == base
        logits = torch.zeros(3, 64)
        pool.apply(logits, pool.plan([base, base], patches=[([40], [1, 3]), ([], [])], rows=[2, 0]))
        assert [row.isfinite().nonzero().flatten().tolist() for row in logits] == [[1, 3], list(range(64)), [40]]

    def test_a_mask_is_sent_once(self):
        pool = kernels.MaskPool(tokens=64, capacity=4)
        mask = torch.tensor([[1, 2], [1, 2]], dtype=torch.int32)
        for _ in range(2):
            pool.plan_masks(mask)
            assert pool.uploads == 1

    def test_a_full_pool_forgets_what_was_not_used_for_longest(self):
        pool = kernels.MaskPool(tokens=64, capacity=2, patch_limit=0)
        first, second, third = (torch.tensor([[n, n]], dtype=torch.int32) for n in (1, 2, 4))
        for mask, uploads in [(first, 1), (second, 2), (first, 2), (third, 3), (first, 3), (second, 4)]:
            pool.plan_masks(mask)
            assert pool.uploads == uploads
        # Both places are used by one plan; neither may be taken for the other's mask.
        both = torch.cat([third, second])
        logits = torch.zeros(2, 64)
        pool.apply(logits, pool.plan_masks(both))
        assert torch.equal(logits, kernels.apply_mask(torch.zeros(2, 64), both))

    def test_a_base_that_a_plan_used_stays(self):
        pool = kernels.MaskPool(tokens=32, capacity=2)
        first = pool.add(torch.tensor([1], dtype=torch.int32))
        second = pool.add(torch.tensor([2], dtype=torch.int32))
        pool.plan([first])
        assert pool.add(torch.tensor([4], dtype=torch.int32)) == second

    def test_what_does_not_fit_is_said(self):
        pool = kernels.MaskPool(tokens=50, capacity=1)
        with pytest.raises(ValueError, match="holds 1"):
            pool.plan_masks(torch.zeros(2, 2, dtype=torch.int32))
        with pytest.raises(ValueError, match="words"):
            pool.plan_masks(torch.zeros(1, 3, dtype=torch.int32))
        with pytest.raises(TypeError, match="int32"):
            pool.plan_masks(torch.zeros(1, 2))
        with pytest.raises(ValueError, match="2 rows"):
            pool.plan_masks(torch.zeros(1, 2, dtype=torch.int32), rows=[0, 1])
        with pytest.raises(IndexError, match="no base 1"):
            pool.plan([1])
        with pytest.raises(IndexError, match="token"):
            pool.plan([0], patches=[([50], [])])
        with pytest.raises(IndexError, match="row -1"):
            pool.plan([0], rows=[-1])
        with pytest.raises(ValueError, match="rows"):
            pool.apply(torch.zeros(64), pool.plan([0]))
