"""Matchers: masks against definitions, and everything that must leave a matcher as it was."""

from __future__ import annotations

import array
import copy
import ctypes
import random
import threading
import time
import unittest

import maskwright as mw
from support import by_choice, bytes_vocabulary, compiler, needs, ones

WORDS = ["yes", "no", "nothing", "abc", "abcabc", "é", "true"]


class Limits(unittest.TestCase):
    HOSTILE = 'root ::= r\nr ::= ([ab] ("ba" | r) (r | "b")){0,4}'

    def matcher(self, steps=5):
        return mw.Compiler(bytes_vocabulary(), mask_steps=steps).compile(mw.ebnf(self.HOSTILE)).matcher()

    def test_a_limit_is_an_error_of_its_own_and_changes_nothing(self):
        matcher, a = self.matcher(), ord("a")
        for call in (
            matcher.mask,
            matcher.allowed_tokens,
            lambda: matcher.accept(a),
            lambda: matcher.try_accept(a),
            lambda: matcher.accept_all([a, a]),
            lambda: matcher.accept_bytes("a"),
            lambda: matcher.validate([a]),
            lambda: matcher.allows(a),
            lambda: matcher.allowed_of([a]),
        ):
            with self.assertRaises(mw.LimitError) as raised:
                call()
            for part in ("mask_steps", "rule `r`", "less ambiguous"):
                self.assertIn(part, str(raised.exception))
            self.assertNotIsInstance(raised.exception, mw.TokenError)
            self.assertIsInstance(raised.exception, mw.ConstraintError)
            self.assertEqual(matcher.steps, 0)
        # What is decided without steps is no limit.
        self.assertFalse(matcher.try_accept(10**6))
        other = self.matcher(steps=10**7)
        other.accept(a)
        self.assertIn(ord("b"), other.allowed_tokens())

    def test_rows_beside_it_are_filled(self):
        vocabulary = bytes_vocabulary()
        plain = compiler(vocabulary).compile(mw.regex("[ab]{2}"))
        for count in (3, 40):
            matchers = [plain.matcher() for _ in range(count)]
            matchers[1] = self.matcher()
            words = vocabulary.words
            mask = memoryview(bytearray(b"\7" * (4 * words * count))).cast("B").cast("I", (count, words))
            with self.assertRaises(mw.LimitError) as raised:
                mw.fill_masks(matchers, mask)
            self.assertEqual(list(raised.exception.rows), [1])
            self.assertIn("row 1", str(raised.exception))
            rows = mask.tolist()
            self.assertEqual(ones(rows[1]), [])
            for row in (0, 2, count - 1):
                self.assertEqual(ones(rows[row]), matchers[row].allowed_tokens())
            with self.assertRaises(mw.LimitError) as raised:
                mw.accept_tokens(matchers, [ord("a")] * (count - 1) + [ord("c")])
            self.assertEqual(raised.exception.taken, [True, False] + [True] * (count - 3) + [False])
            self.assertEqual([matcher.steps for matcher in matchers], [1, 0] + [1] * (count - 3) + [0])


class Masks(unittest.TestCase):
    def test_masks_follow_the_definition(self):
        vocabulary = bytes_vocabulary()
        compiled = compiler(vocabulary).compile(mw.choice(WORDS))
        chance = random.Random(7)
        for _ in range(40):
            matcher, written = compiled.matcher(), b""
            while not matcher.is_terminated():
                allowed = matcher.allowed_tokens()
                self.assertEqual(allowed, by_choice(WORDS, written, vocabulary))
                self.assertEqual(allowed, [token for token in range(vocabulary.size) if matcher.allows(token)])
                candidates = chance.sample(range(vocabulary.size), 9)
                self.assertEqual(matcher.allowed_of(candidates), [token in allowed for token in candidates])
                token = chance.choice(allowed)
                matcher.accept(token)
                written += vocabulary.token_bytes(token)
            self.assertIn(written.decode(), WORDS)
            self.assertEqual(matcher.allowed_tokens(), [])

    def test_every_buffer_gets_the_same_mask(self):
        vocabulary = bytes_vocabulary()
        matcher = compiler(vocabulary).compile(mw.json_object()).matcher()
        wanted = matcher.allowed_tokens()
        words = vocabulary.words
        for buffer in [
            array.array("I", [7] * words),
            array.array("i", [7] * words),
            bytearray(4 * words),
            memoryview(bytearray(4 * words)).cast("I"),
            memoryview(bytearray(4 * words + 8))[8:],
            (ctypes.c_uint32 * words)(),
        ]:
            matcher.fill_mask(buffer)
            row = memoryview(buffer).cast("B").cast("I")
            self.assertEqual(ones(row), wanted, type(buffer))
        self.assertEqual(ones(memoryview(matcher.mask()).cast("I")), wanted)
        # Words beyond the vocabulary are cleared.
        long = array.array("I", [7] * (words + 5))
        matcher.fill_mask(long)
        self.assertEqual(ones(long), wanted)

    @needs("numpy")
    def test_arrays_of_numpy_may_have_gaps_between_rows(self):
        import numpy as np

        vocabulary = bytes_vocabulary()
        matcher = compiler(vocabulary).compile(mw.json_object()).matcher()
        wide = np.full((6, vocabulary.words + 3), 9, dtype=np.uint32)
        part = wide[1::2, 1 : 1 + vocabulary.words]
        matcher.fill_mask(part, 1)
        self.assertEqual(ones(wide[3, 1:-2]), matcher.allowed_tokens())
        wide[3, 1:-2] = 9
        self.assertTrue((wide == 9).all(), "something beside the row was written")

    def test_rollback_fork_and_reset(self):
        compiled = compiler(bytes_vocabulary()).compile({"type": "object", "properties": {"a": {"type": "integer"}}})
        chance = random.Random(3)
        for _ in range(20):
            matcher, masks = compiled.matcher(), []
            for _ in range(chance.randrange(1, 15)):
                allowed = matcher.allowed_tokens()
                if not allowed:
                    break
                masks.append(allowed)
                matcher.accept(chance.choice(allowed))
            fork, copied = matcher.fork(), copy.copy(matcher)
            steps = matcher.steps
            back = chance.randrange(steps + 1)
            matcher.rollback(back)
            self.assertEqual(matcher.steps, steps - back)
            if back:
                self.assertEqual(matcher.allowed_tokens(), masks[steps - back])
            self.assertEqual(fork.steps, steps)
            self.assertEqual(fork.allowed_tokens(), copied.allowed_tokens())
            matcher.reset()
            self.assertEqual((matcher.steps, matcher.allowed_tokens()), (0, masks[0]))

    def test_accepting_several_tokens(self):
        vocabulary = bytes_vocabulary()
        matcher = compiler(vocabulary).compile(mw.regex("abc+")).matcher()
        tokens = list(b"abcx")
        self.assertEqual(matcher.validate(tokens), 3)
        self.assertEqual(matcher.steps, 0)
        self.assertEqual(matcher.accept_all(tokens), 3)
        self.assertTrue(matcher.is_accepting() and not matcher.is_stopped() and not matcher.is_terminated())
        matcher.accept_bytes("cc")
        matcher.accept_bytes(b"c")
        self.assertTrue(matcher.try_accept(vocabulary.eos[0]))
        self.assertTrue(matcher.is_terminated() and matcher.is_stopped())
        self.assertFalse(matcher.try_accept(ord("c")))
        matcher.rollback()
        self.assertFalse(matcher.is_terminated())

    def test_stop_tokens_of_one_text(self):
        vocabulary = bytes_vocabulary()
        compiled = compiler(vocabulary).compile(mw.regex("ab*"))
        matcher = compiled.matcher(stop_tokens=[ord("!"), ord("b")])
        self.assertEqual(matcher.stop_tokens, [ord("!"), ord("b")])
        self.assertFalse(matcher.allows(ord("!")))
        matcher.accept(ord("a"))
        self.assertEqual(matcher.allowed_tokens(), [ord("!"), ord("b")])
        matcher.accept(ord("b"))
        self.assertTrue(matcher.is_terminated())
        silent = compiled.matcher(end_in_mask=False)
        silent.accept(ord("a"))
        self.assertEqual(silent.allowed_tokens(), [ord("b")])
        with self.assertRaisesRegex(mw.TokenError, "no such token"):
            compiled.matcher(stop_tokens=[vocabulary.size])

    def test_budgets(self):
        compiled = compiler(bytes_vocabulary()).compile(mw.regex("[a-z]+(,[a-z]+)*;"))
        with self.assertRaisesRegex(mw.BudgetError, "too small: 3 are needed"):
            compiled.matcher(budget=2)
        chance = random.Random(11)
        for budget in range(3, 12):
            matcher, used = compiled.matcher(budget=budget), 0
            while not matcher.is_terminated():
                matcher.accept(chance.choice(matcher.allowed_tokens()))
                used += 1
            self.assertLessEqual(used, budget)
        matcher = compiled.matcher()
        # Everywhere the token that ends the text is one of them: `a;` and the end.
        self.assertEqual((matcher.shortest_completion(), matcher.budget_left), (3, None))
        matcher.set_budget(matcher.shortest_completion())
        for left, token in zip((3, 2, 1), (ord("a"), ord(";"), compiled.vocabulary.eos[0])):
            self.assertEqual((matcher.budget_left, matcher.shortest_completion()), (left, left))
            matcher.accept(token)
        self.assertEqual((matcher.budget_left, matcher.shortest_completion()), (0, 0))
        matcher.reset()
        matcher.set_budget(5)
        self.assertEqual(matcher.budget_left, 5)
        matcher.set_budget(None)
        self.assertIsNone(matcher.budget_left)

    def test_what_is_forced(self):
        vocabulary = bytes_vocabulary()
        matcher = compiler(vocabulary).compile(mw.regex("abc (yes|yeah)!")).matcher()
        self.assertEqual(matcher.forced_bytes(), b"abc ye")
        self.assertEqual(matcher.forced_bytes(2), b"ab")
        self.assertEqual(matcher.forced_text(), "abc ye")
        with self.assertRaisesRegex(ValueError, "give a function"):
            matcher.forced_tokens()
        # A tokenizer that cuts single characters: every byte is certain at once.
        taken_back, tokens = matcher.forced_tokens(encode=lambda text: list(text.encode()))
        self.assertEqual(taken_back, 0)
        self.assertEqual(bytes(tokens), b"abc ye"[: len(tokens)])
        with self.assertRaisesRegex(ZeroDivisionError, "division"):
            matcher.forced_tokens(encode=lambda text: [1 // 0])

    def test_state_is_told(self):
        matcher = compiler(bytes_vocabulary()).compile(mw.ebnf('root ::= "a" tail\ntail ::= "b"')).matcher()
        matcher.accept(ord("a"))
        state = matcher.state()
        self.assertEqual((state["bytes"], state["steps"], state["accepting"]), (1, 1, False))
        self.assertEqual(state["next_bytes"], [(ord("b"), ord("b"))])
        self.assertIn("1 steps, open", repr(matcher))


class Drafts(unittest.TestCase):
    def setUp(self):
        self.vocabulary = bytes_vocabulary()
        self.matcher = compiler(self.vocabulary).compile(mw.choice(WORDS)).matcher()

    def rows(self, count: int) -> memoryview:
        return memoryview(bytearray(4 * self.vocabulary.words * count)).cast("B").cast(
            "I", (count, self.vocabulary.words)
        )

    def row(self, mask: memoryview, number: int) -> list[int]:
        return ones(mask.tolist()[number])

    def test_chains_are_forks_one_behind_the_other(self):
        draft = list(b"nothix")
        mask = self.rows(9)
        self.assertEqual(self.matcher.fill_draft_chain(draft, mask, 1), 5)
        fork = self.matcher.fork()
        for number, token in enumerate([None, *draft[:5]]):
            if token is not None:
                fork.accept(token)
            self.assertEqual(self.row(mask, number + 1), fork.allowed_tokens(), number)
        self.assertEqual(self.row(mask, 7), [])
        self.assertEqual(self.matcher.steps, 0)

    def test_trees_are_forks(self):
        chance = random.Random(5)
        for _ in range(30):
            size = chance.randrange(1, 20)
            parents = [chance.randrange(-1, node) for node in range(size)]
            tokens = [chance.choice(b"nothigabcyes") for _ in range(size)]
            mask = self.rows(size + 1)
            allowed = self.matcher.fill_draft_tree(tokens, parents, mask)
            matchers = [self.matcher.fork()]
            for node in range(size):
                above = matchers[parents[node] + 1]
                here = above.fork() if above is not None else None
                if here is not None and not here.try_accept(tokens[node]):
                    here = None
                matchers.append(here)
                self.assertEqual(allowed[node], here is not None)
            for number, matcher in enumerate(matchers):
                wanted = [] if matcher is None else matcher.allowed_tokens()
                self.assertEqual(self.row(mask, number), wanted)

    def test_links_are_parents_in_other_words(self):
        # Node 0 is what was accepted last; behind it n with o and y, and a with b.
        tokens = [0, ord("n"), ord("o"), ord("y"), ord("a"), ord("b")]
        child, sibling = [1, 2, -1, -1, 5, -1], [-1, 4, 3, -1, -1, -1]
        mask = self.rows(6)
        allowed = self.matcher.fill_draft_links(tokens, child, sibling, mask)
        self.assertEqual(allowed, [True, True, False, True, True])
        same = self.rows(6)
        self.matcher.fill_draft_tree(tokens[1:], [-1, 0, 0, -1, 3], same)
        self.assertEqual(mask.tolist(), same.tolist())

    def test_wrong_drafts(self):
        mask = self.rows(2)
        with self.assertRaisesRegex(ValueError, "takes 4 rows from row 0 on, and the mask has 2"):
            self.matcher.fill_draft_chain([1, 2, 3], mask)
        with self.assertRaisesRegex(ValueError, "there must be one for each token"):
            self.matcher.fill_draft_tree([1], [], mask)
        for parent in (0, 5, 1 << 40):
            with self.assertRaisesRegex(ValueError, "does not come before it"):
                self.matcher.fill_draft_tree([1], [parent], mask)
        with self.assertRaisesRegex(ValueError, "leads to no node"):
            self.matcher.fill_draft_links([1], [0], [-1], mask)


@needs("numpy")
class Batches(unittest.TestCase):
    def setUp(self):
        import numpy as np

        self.np = np
        self.vocabulary = bytes_vocabulary()
        compiled = compiler(self.vocabulary).compile(mw.json_object())
        chance = random.Random(2)
        self.matchers = []
        for _ in range(70):
            matcher = compiled.matcher()
            for _ in range(chance.randrange(12)):
                allowed = matcher.allowed_tokens()
                if not allowed:
                    break
                matcher.accept(chance.choice(allowed))
            self.matchers.append(matcher)

    def test_a_batch_is_its_rows(self):
        np = self.np
        single = np.zeros((70, self.vocabulary.words), dtype=np.int32)
        for row, matcher in enumerate(self.matchers):
            matcher.fill_mask(single, row)
        for threads in (None, 1, 2, 3, 100):
            batch = np.ones_like(single)
            mw.fill_masks(self.matchers, batch, threads=threads)
            self.assertTrue((batch == single).all())
        order = random.Random(1).sample(range(80), 70)
        batch = np.full((80, self.vocabulary.words), 5, dtype=np.int32)
        mw.fill_masks(self.matchers, batch, order)
        self.assertTrue((batch[order] == single).all())
        self.assertTrue((np.delete(batch, order, axis=0) == 5).all())
        mw.fill_masks([], batch, [])

    def test_wrong_batches(self):
        mask = self.np.zeros((3, self.vocabulary.words), dtype=self.np.int32)
        some = self.matchers[:2]
        with self.assertRaisesRegex(ValueError, "2 matchers and 1 rows"):
            mw.fill_masks(some, mask, [0])
        with self.assertRaisesRegex(ValueError, "row 1 is given twice"):
            mw.fill_masks(some, mask, [1, 1])
        with self.assertRaisesRegex(IndexError, "no row 3"):
            mw.fill_masks(some, mask, [0, 3])
        # The same matcher twice is filled twice, if nobody else fills it at that moment.
        mw.fill_masks([some[0], some[0]], mask, threads=1)
        self.assertTrue((mask[0] == mask[1]).all())
        # After all these errors, the matchers are free again.
        mw.fill_masks(some, mask, [0, 1])
        with self.assertRaisesRegex(ValueError, "between 1 and 1024 threads"):
            mw.set_threads(0)

    def test_a_token_for_each(self):
        fresh = [matcher.fork() for matcher in self.matchers]
        for matcher in fresh:
            matcher.reset()
        tokens = [ord("{") if number % 2 else ord("}") for number in range(len(fresh))]
        self.assertEqual(mw.accept_tokens(fresh, tokens), [number % 2 == 1 for number in range(len(fresh))])
        with self.assertRaisesRegex(ValueError, "70 matchers and 1 tokens"):
            mw.accept_tokens(fresh, [1])

    def test_masks_are_prepared(self):
        compiler = mw.Compiler(self.vocabulary, prepare=5.0)
        matcher = compiler.compile(mw.regex("[a-c]{3}x[0-9]+")).matcher()
        deadline = time.monotonic() + 30
        while not matcher.prepare_soon() and time.monotonic() < deadline:
            time.sleep(0.01)
        while compiler.statistics()["matching"]["prepared"] == 0 and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertGreater(compiler.statistics()["matching"]["prepared"], 0)
        matcher = mw.Compiler(self.vocabulary).compile(mw.regex("[a-c]{3}x[0-9]+")).matcher()
        matcher.accept_bytes("ab")
        self.assertGreaterEqual(matcher.prepare(10.0), 1)
        self.assertEqual(matcher.prepare(10.0), 0)
        self.assertFalse(matcher.prepare_soon())
        for wrong in (-1.0, float("nan"), 1e19):
            with self.assertRaises(ValueError):
                matcher.prepare(wrong)

    def test_a_step_is_accept_and_fill(self):
        np, chance = self.np, random.Random(4)
        stepped = [matcher.fork() for matcher in self.matchers]
        alone = [matcher.fork() for matcher in self.matchers]
        mask = np.zeros((70, self.vocabulary.words), dtype=np.int32)
        expected = np.zeros_like(mask)
        self.assertEqual(mw.step_batch(stepped, [None] * 70, mask, keep=True).changed, list(range(70)))
        unchanged = 0
        for _ in range(12):
            tokens, taken = [], []
            for matcher in alone:
                allowed = matcher.allowed_tokens() or [None]
                token = chance.choice([None, 0, *allowed[:3], *chance.choices(allowed, k=9)])
                tokens.append(token)
                taken.append(token is None or matcher.try_accept(token))
            before = mask.copy()
            step = mw.step_batch(stepped, tokens, mask, keep=True)
            self.assertEqual(step.taken, taken)
            mw.fill_masks(alone, expected)
            self.assertTrue((mask == expected).all())
            same = sorted(set(range(70)) - set(step.changed))
            self.assertTrue((mask[same] == before[same]).all())
            unchanged += len(same)
            # What others ask a matcher in between is not lost.
            stepped[0].fill_mask(expected, 0)
        self.assertGreater(unchanged, 50)
        with self.assertRaisesRegex(ValueError, "70 matchers and 1 tokens"):
            mw.step_batch(stepped, [1], mask)

    def test_many_threads_with_a_matcher_each(self):
        compiled = compiler(self.vocabulary).compile(mw.json_schema({"type": "array", "items": {"type": "string"}}))
        failures = []

        def work(seed: int) -> None:
            try:
                chance, matcher = random.Random(seed), compiled.matcher()
                mask = self.np.zeros((1, self.vocabulary.words), dtype=self.np.int32)
                for _ in range(60):
                    matcher.fill_mask(mask)
                    allowed = ones(mask[0])
                    if not allowed:
                        matcher.reset()
                        continue
                    matcher.accept(chance.choice(allowed))
            except Exception as error:  # noqa: BLE001 - shown below
                failures.append(error)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])


if __name__ == "__main__":
    unittest.main()
