"""Whatever is handed over, there is an exception with a message, and never a crash."""

from __future__ import annotations

import array
import gc
import threading
import unittest

import maskwright as mw
from support import bytes_vocabulary, compiler, needs


class Buffers(unittest.TestCase):
    def setUp(self):
        self.vocabulary = bytes_vocabulary()
        self.matcher = compiler(self.vocabulary).compile(mw.json_object()).matcher()
        self.words = self.vocabulary.words

    def refuse(self, error, message, mask, row=0):
        with self.assertRaisesRegex(error, message):
            self.matcher.fill_mask(mask, row)
        # Nothing has changed, and the matcher is free.
        self.assertEqual(self.matcher.steps, 0)

    def test_what_is_no_buffer(self):
        for thing in (None, 5, "text", [0] * self.words, object(), {}):
            self.refuse(TypeError, "must be a writable buffer", thing)

    def test_what_cannot_be_written(self):
        self.refuse(BufferError, "read-only", bytes(4 * self.words))
        self.refuse(BufferError, "read-only", memoryview(bytearray(4 * self.words)).toreadonly())

    def test_wrong_elements(self):
        for code in "hHqQd":
            self.refuse(TypeError, "must be 32-bit integers", array.array(code, [0] * 2 * self.words))
        self.refuse(TypeError, "has floats", array.array("f", [0.0] * self.words))

    def test_wrong_sizes(self):
        self.refuse(ValueError, f"needs {self.words} words", array.array("I", [0] * (self.words - 1)))
        self.refuse(ValueError, "needs", bytearray(0))
        self.refuse(ValueError, "four bytes to a word", bytearray(4 * self.words + 1))
        self.refuse(ValueError, "multiple of 4", memoryview(bytearray(4 * self.words + 4))[1:-3])
        self.refuse(IndexError, "no row 1", bytearray(4 * self.words), 1)
        with self.assertRaises(OverflowError):
            self.matcher.fill_mask(bytearray(4 * self.words), -1)

    @needs("numpy")
    def test_arrays(self):
        import numpy as np

        rows = np.zeros((4, self.words), dtype=np.int32)
        self.refuse(TypeError, "32-bit", rows.astype(np.int64))
        self.refuse(TypeError, "32-bit", rows.astype(">i4"))
        self.refuse(TypeError, "32-bit", np.zeros((4, self.words), dtype=bool))
        self.refuse(ValueError, "one dimension or two", rows.reshape(2, 2, self.words))
        self.refuse(BufferError, "shape is null", np.array(5, dtype=np.int32))
        self.refuse(ValueError, "contiguous in memory", np.zeros((4, 2 * self.words), dtype=np.int32)[:, ::2])
        self.refuse(ValueError, "contiguous in memory", rows[:, ::-1])
        self.refuse(ValueError, "follow each other in memory", rows[::-1])
        self.refuse(ValueError, "follow each other in memory", overlap(rows))
        self.refuse(IndexError, "no row 0", rows[:0])
        frozen = rows.copy()
        frozen.flags.writeable = False
        self.refuse(BufferError, "read-only", frozen)
        self.refuse(BufferError, "read-only", np.broadcast_to(rows[0], (4, self.words)))

    @needs("torch")
    def test_tensors(self):
        import torch

        rows = torch.zeros((4, self.words), dtype=torch.int32)
        self.matcher.fill_mask(rows, 3)
        self.assertEqual(rows[3].numpy().tobytes(), self.matcher.mask())
        self.assertFalse(rows[:3].any())
        self.refuse(TypeError, "32-bit integers, and these are \"torch.int64\"", rows.long())
        self.refuse(TypeError, "has floats", rows.float())
        self.refuse(ValueError, "contiguous in memory", rows.repeat(1, 2)[:, ::2])
        self.refuse(ValueError, "follow each other in memory", rows[:1].expand(4, -1))
        self.refuse(ValueError, "on the CPU", rows.to("meta"))
        self.refuse(ValueError, "needs", rows[:, 1:])
        self.refuse(ValueError, "one dimension or two", rows[None])
        self.refuse(IndexError, "no row 4", rows, 4)

    def test_a_buffer_cannot_be_pulled_away(self):
        # While a row is written, its owner must not move it: a bytearray refuses to be resized.
        mask = bytearray(4 * self.words)
        stop, failures = threading.Event(), []

        def resize():
            while not stop.is_set():
                try:
                    mask.extend(b"abcd")
                    del mask[-4:]
                except BufferError:
                    pass
                except Exception as error:  # noqa: BLE001 - shown below
                    failures.append(error)

        thread = threading.Thread(target=resize)
        thread.start()
        for _ in range(3000):
            self.matcher.fill_mask(mask)
        stop.set()
        thread.join()
        self.assertEqual(failures, [])


def overlap(rows):
    """Rows that lie half on top of each other."""
    import numpy as np

    return np.lib.stride_tricks.as_strided(rows, shape=(3, rows.shape[1]), strides=(4, 4))


class Tokens(unittest.TestCase):
    def setUp(self):
        self.vocabulary = bytes_vocabulary()
        self.matcher = compiler(self.vocabulary).compile(mw.regex("[0-9]+")).matcher()

    def test_numbers_that_are_no_tokens(self):
        for number in (-1, self.vocabulary.size, 1 << 31, (1 << 32) - 1, 1 << 40, -(1 << 62)):
            with self.assertRaisesRegex(mw.TokenError, "no such token"):
                self.matcher.accept(number)
            self.assertFalse(self.matcher.try_accept(number))
            self.assertFalse(self.matcher.allows(number))
            self.assertEqual(self.matcher.validate([number]), 0)
            self.assertEqual(self.matcher.accept_all([number]), 0)
            self.assertEqual(self.matcher.allowed_of([number]), [False])
            with self.assertRaises(mw.TokenError):
                self.vocabulary.token_bytes(number)
            with self.assertRaises(mw.TokenError):
                self.vocabulary.decode([number])
            with self.assertRaises(mw.TokenError):
                self.matcher.forced_tokens([number], encode=list)
        for thing in ("a", None, 1.5, b"a", [1]):
            with self.assertRaises(TypeError):
                self.matcher.accept(thing)
        for thing in (5, None, ["a"], [None]):
            with self.assertRaises(TypeError):
                self.matcher.validate(thing)

    def test_refusals_say_why(self):
        with self.assertRaises(mw.TokenError) as raised:
            self.matcher.accept(ord("x"))
        self.assertEqual(raised.exception.token, ord("x"))
        self.assertIn("fails after 0 of its bytes", str(raised.exception))
        with self.assertRaisesRegex(mw.TokenError, "not complete"):
            self.matcher.accept(self.vocabulary.eos[0])
        self.matcher.accept(ord("1"))
        self.matcher.accept(self.vocabulary.eos[0])
        with self.assertRaisesRegex(mw.TokenError, "end was accepted before"):
            self.matcher.accept(ord("1"))
        with self.assertRaisesRegex(mw.TokenError, "not allowed"):
            self.matcher.rollback()
            self.matcher.accept_bytes("x")
        with self.assertRaisesRegex(ValueError, "only 1 steps can be undone"):
            self.matcher.rollback(2)

    @needs("numpy")
    def test_numbers_of_other_kinds(self):
        import numpy as np

        self.matcher.accept(np.int64(ord("1")))
        self.assertEqual(self.matcher.accept_all(np.array([ord("2"), ord("3")], dtype=np.int32)), 2)
        self.assertEqual(self.matcher.validate((ord("4"),)), 1)
        self.assertEqual(self.matcher.validate(iter([ord("4")])), 1)


class Logits(unittest.TestCase):
    @needs("numpy")
    def test_wrong_logits(self):
        import numpy as np

        mask = np.full((2, 2), -1, dtype=np.int32)
        good = np.zeros((2, 64), dtype=np.float32)
        for error, message, logits, rows in [
            (TypeError, "float32, float16 or bfloat16", good.astype(np.float64), None),
            (TypeError, "these are integers", good.astype(np.int32), None),
            (ValueError, "3 rows of logits and 2 of the mask", np.zeros((3, 64), dtype=np.float32), None),
            (IndexError, "no row 2", good, [2]),
            (ValueError, "contiguous in memory", np.zeros((2, 128), dtype=np.float32)[:, ::2], None),
            (TypeError, "must be a writable buffer", [[0.0] * 64] * 2, None),
        ]:
            with self.assertRaisesRegex(error, message):
                mw.apply_mask(logits, mask, rows)
        good.flags.writeable = False
        with self.assertRaisesRegex(BufferError, "read-only"):
            mw.apply_mask(good, mask)
        # A mask is only read.
        mask.flags.writeable = False
        mw.apply_mask(np.zeros((2, 64), dtype=np.float16), mask)


class Users(unittest.TestCase):
    def test_a_matcher_lets_one_in(self):
        matcher = compiler(bytes_vocabulary()).compile(mw.regex("abcdefgh")).matcher()
        refused = []

        def encode(text):
            try:
                matcher.accept(1)
            except RuntimeError as error:
                refused.append(str(error))
            return list(text.encode())

        matcher.forced_tokens(encode=encode)
        self.assertIn("in use by another call", refused[0])
        matcher.accept(ord("a"))

    def test_things_outlive_what_they_came_from(self):
        vocabulary = mw.Vocabulary.from_tokens([b"a", b"b", b"<end>"], eos=2)
        service = mw.Compiler(vocabulary)
        compiled = service.compile(mw.regex("ab"))
        matcher = compiled.matcher()
        del service, compiled, vocabulary
        gc.collect()
        matcher.accept(0)
        self.assertEqual(matcher.allowed_tokens(), [1])
        self.assertEqual(matcher.vocabulary.token_bytes(1), b"b")

    def test_classes_cannot_be_made_empty(self):
        for cls in (mw.Matcher, mw.CompiledConstraint, mw.Future, mw.Index, mw.Vocabulary):
            with self.assertRaises(TypeError):
                cls()


if __name__ == "__main__":
    unittest.main()
