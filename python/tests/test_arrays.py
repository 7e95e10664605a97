"""The modules for NumPy, PyTorch and MLX: allocate, fill, apply, compared with a loop over tokens."""

from __future__ import annotations

import itertools
import random
import threading
import unittest

import maskwright as mw
from support import bytes_vocabulary, compiler, needs, ones


def random_rows(chance: random.Random, count: int, words: int) -> list[list[int]]:
    choices = [lambda: 0, lambda: (1 << 32) - 1, lambda: chance.getrandbits(32)]
    return [[chance.choice(choices)() for _ in range(words)] for _ in range(count)]


def expected(width: int, row: list[int]) -> list[float]:
    """Logit t is t, or −∞: the definition."""
    allowed = set(ones(row))
    return [float(t % 100) if t in allowed else float("-inf") for t in range(width)]


@needs("numpy")
class NumPy(unittest.TestCase):
    def test_the_three_calls(self):
        import maskwright.numpy as masks

        vocabulary = bytes_vocabulary()
        matcher = compiler(vocabulary).compile(mw.json_object()).matcher()
        mask = masks.allocate_token_bitmask(3, vocabulary.size)
        self.assertEqual(mask.shape, masks.get_bitmask_shape(3, vocabulary.size))
        self.assertTrue((mask == -1).all())
        masks.fill_next_token_bitmask(matcher, mask, 2)
        self.assertEqual(ones(mask[2]), matcher.allowed_tokens())
        masks.fill_next_token_bitmask_par([(matcher, 0), (matcher.fork(), 1)], mask)
        self.assertTrue((mask[:2] == mask[2]).all())

    def test_somebody_else_writes_meanwhile(self):
        import maskwright.numpy as masks

        vocabulary = bytes_vocabulary()
        compiled = compiler(vocabulary).compile(mw.json_object())
        matchers = [compiled.matcher() for _ in range(40)]
        mask = masks.allocate_token_bitmask(len(matchers), vocabulary.size)
        is_over = threading.Event()

        def scribble():
            while not is_over.is_set():
                mask.fill(-1)

        writer = threading.Thread(target=scribble)
        writer.start()
        for _ in range(100):
            mw.fill_masks(matchers, mask)
            matchers[0].fill_mask(mask)
        is_over.set()
        writer.join()
        # Whatever was mixed in the array, the matchers saw nothing of it.
        mw.fill_masks(matchers, mask)
        self.assertTrue(all(ones(row) == matchers[0].allowed_tokens() for row in mask))

    def test_rows_of_more_than_a_block(self):
        import numpy as np

        import maskwright.numpy as masks

        chance = random.Random(5)
        for dtype, width, words in itertools.product((np.float32, np.float16), (4096, 4097, 9000), (1, 127, 128, 129, 300)):
            rows = random_rows(chance, 2, words)
            logits = np.tile(np.arange(width) % 100, (2, 1)).astype(dtype)
            masks.apply_token_bitmask_inplace(logits, np.array(rows, dtype=np.uint32).view(np.int32))
            self.assertTrue((logits == np.array([expected(width, row) for row in rows])).all(), (dtype, width, words))

    def test_applied_by_definition(self):
        import numpy as np

        import maskwright.numpy as masks

        chance = random.Random(4)
        for dtype, width, words in itertools.product((np.float32, np.float16, np.float64), (1, 31, 32, 100, 128), (1, 3, 5)):
            rows = random_rows(chance, 4, words)
            mask = np.array(rows, dtype=np.uint32).view(np.int32)
            logits = np.tile(np.arange(width) % 100, (4, 1)).astype(dtype)
            wanted = np.array([expected(width, row) for row in rows])
            masks.apply_token_bitmask_inplace(logits, mask)
            self.assertTrue((logits == wanted).all(), (dtype, width, words))
            logits = np.tile(np.arange(width) % 100, (6, 1)).astype(dtype)
            masks.apply_token_bitmask_inplace(logits, mask, [3, 1, 1])
            self.assertTrue((logits[[1, 3]] == wanted[[1, 3]]).all())
            self.assertTrue((logits[[0, 2, 4, 5]] == np.arange(width) % 100).all())
            one = (np.arange(width) % 100).astype(dtype)
            masks.apply_token_bitmask_inplace(one, mask[0])
            self.assertTrue((one == wanted[0]).all())
        # Columns in another order are no row; NumPy can still do it.
        turned = np.zeros((64, 2), dtype=np.float32).T
        masks.apply_token_bitmask_inplace(turned, np.array([[1, 0], [-1, -1]], dtype=np.int32))
        self.assertEqual((np.isinf(turned).sum(axis=1)).tolist(), [63, 0])

    def test_refused(self):
        import numpy as np

        import maskwright.numpy as masks

        mask = np.full((2, 2), -1, dtype=np.int32)
        for dtype in (np.float32, np.float64):
            with self.assertRaises(ValueError):
                masks.apply_token_bitmask_inplace(np.zeros((3, 64), dtype=dtype), mask)
            with self.assertRaises(TypeError):
                masks.apply_token_bitmask_inplace(np.zeros((2, 64), dtype=dtype), mask.astype(np.int64))
            frozen = np.zeros((2, 64), dtype=dtype)
            frozen.flags.writeable = False
            with self.assertRaises(BufferError):
                masks.apply_token_bitmask_inplace(frozen, mask)


@needs("torch")
class Torch(unittest.TestCase):
    def test_applied_by_definition(self):
        import torch

        import maskwright.torch as masks

        chance = random.Random(8)
        dtypes = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
        for dtype, width, words in itertools.product(dtypes, (1, 32, 100, 128), (1, 3, 5)):
            rows = random_rows(chance, 4, words)
            mask = torch.tensor([[word - (word >> 31 << 32) for word in row] for row in rows], dtype=torch.int32)
            wanted = torch.tensor([expected(width, row) for row in rows])
            start = (torch.arange(width) % 100).repeat(4, 1).to(dtype)
            for apply in (masks.apply_token_bitmask_inplace, masks.apply_by_torch):
                logits = start.clone()
                apply(logits, mask)
                self.assertTrue((logits == wanted).all(), (apply, dtype, width, words))
                logits = start.clone()
                apply(logits, mask, [2, 0])
                self.assertTrue((logits[[0, 2]] == wanted[[0, 2]]).all())
                self.assertTrue((logits[[1, 3]] == start[[1, 3]]).all())
                wide = torch.zeros((4, width + 7), dtype=dtype)
                part = wide[:, 3 : 3 + width]
                part.copy_(start)
                apply(part, mask)
                self.assertTrue((part == wanted).all() and not wide[:, :3].any() and not wide[:, -4:].any())

    def test_fill(self):
        import torch

        import maskwright.torch as masks

        vocabulary = bytes_vocabulary()
        matcher = compiler(vocabulary).compile(mw.json_object()).matcher()
        mask = masks.allocate_token_bitmask(3, vocabulary.size)
        masks.fill_next_token_bitmask(matcher, mask, 1)
        self.assertEqual(mask[1].numpy().tobytes(), matcher.mask())
        masks.fill_next_token_bitmask_par([(matcher, 2), (matcher.fork(), 0)], mask)
        self.assertTrue((mask == mask[1]).all())
        masks.reset_token_bitmask(mask)
        self.assertTrue((mask == -1).all())
        self.assertEqual(matcher.validate(torch.tensor([ord("{"), ord("}")])), 2)
        with self.assertRaisesRegex(TypeError, "32-bit"):
            masks.apply_token_bitmask_inplace(torch.zeros(3, 64), mask.long())


@needs("mlx")
class Mlx(unittest.TestCase):
    def test_applied_by_definition(self):
        import mlx.core as mx
        import numpy as np

        import maskwright.mlx as masks

        chance = random.Random(6)
        for width, words in itertools.product((1, 32, 100, 128), (1, 3, 5)):
            rows = random_rows(chance, 3, words)
            mask = np.array(rows, dtype=np.uint32).view(np.int32)
            logits = mx.array(np.tile(np.arange(width) % 100, (3, 1)).astype(np.float32))
            wanted = np.array([expected(width, row) for row in rows])
            self.assertTrue((np.array(masks.apply_token_bitmask(logits, mask)) == wanted).all())
            masks.apply_token_bitmask_inplace(logits, mask)
            self.assertTrue((np.array(logits) == wanted).all())


if __name__ == "__main__":
    unittest.main()
