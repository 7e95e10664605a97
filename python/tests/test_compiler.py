"""The compile service from Python: waiting, awaiting, cancelling, counting, forking."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import pickle
import sys
import threading
import time
import unittest

import maskwright as mw
from support import ROOT, bytes_vocabulary, compiler



def slow_constraint() -> mw.Constraint:
    """Takes longer to compile than any test waits: a complement of a large union."""
    words = " | ".join(f'"{"a" * n}" /[ab]{{0,{300 + n}}}/ "c" /[abc]{{0,{200 + n}}}/' for n in range(1, 30))
    return mw.lark(f"start: X\nX: ~( {words} ) & /[a-c]{{0,900}}/")


class Futures(unittest.TestCase):
    def test_no_cache(self):
        service = mw.Compiler(bytes_vocabulary(), cache_bytes=0)
        self.assertEqual(service.compile(mw.regex("a+")).kind, "regex")
        self.assertEqual(service.compile(mw.json_schema({"type": "object"})).kind, "json_schema")

    def test_results_and_errors(self):
        service = mw.Compiler(bytes_vocabulary())
        future = service.submit(mw.regex("a+"))
        compiled = future.result(30)
        self.assertTrue(future.done() and not future.cancelled())
        self.assertIsNone(future.exception())
        self.assertEqual(compiled.kind, "regex")
        self.assertGreater(compiled.bytes, 0)
        self.assertGreaterEqual(compiled.seconds, 0)
        wrong = service.submit(mw.regex("(a"))
        with self.assertRaises(mw.ConstraintError) as raised:
            wrong.result(30)
        self.assertIsInstance(wrong.exception(), mw.ConstraintError)
        self.assertTrue(str(raised.exception))
        self.assertFalse(future.cancel())

    def test_remarks(self):
        service = mw.Compiler(bytes_vocabulary())
        schema = mw.json_schema({"type": "integer", "title": "Age"})
        compiled = service.compile(schema)
        self.assertEqual(compiled.report.keywords, {"/title": "annotation", "/type": "enforced"})
        self.assertEqual(compiled.report, mw.report(schema))
        grammar = mw.ebnf('root ::= "a"\nlost ::= "b"')
        compiled = service.compile(grammar)
        self.assertEqual((compiled.report.keywords, len(compiled.report.warnings)), ({}, 1))
        self.assertIn("lost", compiled.report.warnings[0])
        self.assertEqual(compiled.report, mw.report(grammar))

    def test_kinds_of_errors(self):
        service = mw.Compiler(bytes_vocabulary())
        with self.assertRaises(mw.ConstraintError) as raised:
            service.compile(mw.regex("(a"))
        self.assertIs(type(raised.exception), mw.ConstraintError)
        with self.assertRaises(mw.UnsupportedError):
            service.compile({"$schema": "http://json-schema.org/draft-03/schema#"})
        with self.assertRaises(mw.UnsupportedError):
            service.index(mw.ebnf('root ::= "(" root? ")"'))
        with self.assertRaises(mw.LimitError):
            mw.Compiler(bytes_vocabulary(), memory_bytes=1 << 20).compile(["x" * 100_000])
        for kind in (mw.UnsupportedError, mw.LimitError):
            self.assertTrue(issubclass(kind, mw.ConstraintError))

    def test_await(self):
        service = mw.Compiler(bytes_vocabulary())

        async def work():
            schemas = [{"type": "array", "maxItems": number} for number in range(50)]
            all_of_them = await asyncio.gather(*[service.submit(schema) for schema in schemas])
            again = await service.submit(schemas[0])
            with self.assertRaises(mw.ConstraintError):
                await service.submit(mw.regex("(a"))
            return all_of_them, again

        compiled, again = asyncio.run(work())
        self.assertEqual({one.kind for one in [*compiled, again]}, {"json_schema"})
        statistics = service.statistics()
        self.assertEqual(statistics["compiles"]["compiled"], 50)
        self.assertEqual(statistics["requests"]["hit"], 1)
        self.assertIn('kind="json_schema"', service.prometheus([("model", "m")]))

    def test_callbacks(self):
        service = mw.Compiler(bytes_vocabulary())
        called, event = [], threading.Event()
        future = service.submit(mw.regex("a{1,9}"))
        future.add_done_callback(lambda done: (called.append(done), event.set()))
        self.assertTrue(event.wait(30))
        self.assertIs(called[0], future)
        future.add_done_callback(called.append)
        self.assertEqual(len(called), 2)

    def test_a_slow_one_can_be_left(self):
        service = mw.Compiler(bytes_vocabulary(), workers=1, timeout=60)
        future = service.submit(slow_constraint())
        with self.assertRaises(TimeoutError):
            future.result(0.01)
        self.assertFalse(future.done())
        called = []
        future.add_done_callback(called.append)
        self.assertTrue(future.cancel())
        self.assertTrue(future.cancelled() and future.done() and called == [future])
        with self.assertRaises(concurrent.futures.CancelledError):
            future.result()
        # The worker is free again.
        self.assertEqual(service.submit(mw.regex("b")).result(30).kind, "regex")

    def test_a_cancelled_task_cancels_the_compilation(self):
        service = mw.Compiler(bytes_vocabulary(), workers=1, timeout=60)

        async def work():
            future = service.submit(slow_constraint())
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(asyncio.ensure_future(wrap(future)), 0.02)
            return future

        async def wrap(future):
            return await future

        self.assertTrue(asyncio.run(work()).cancelled())

    def test_timeouts(self):
        service = mw.Compiler(bytes_vocabulary(), timeout=0.02)
        with self.assertRaises(mw.CompileTimeout) as raised:
            service.compile(slow_constraint())
        self.assertIsInstance(raised.exception, TimeoutError)

    def test_nobody_waits_for_the_end(self):
        # A compiler that goes while it compiles, with functions left with it, must not stand still.
        for _ in range(3):
            service = mw.Compiler(bytes_vocabulary(), workers=2, timeout=60)
            futures = [service.submit(slow_constraint()), service.submit(mw.regex("a"))]
            for future in futures:
                future.add_done_callback(lambda done: None)
            began = time.monotonic()
            del service
            self.assertLess(time.monotonic() - began, 20)
            del futures


class Services(unittest.TestCase):
    def test_saved_and_loaded(self):
        before = mw.Compiler(bytes_vocabulary())
        before.compile({"type": "string"})
        before.compile(mw.regex("a*"))
        file = before.save()
        after = mw.Compiler(bytes_vocabulary())
        self.assertEqual(after.load(file), 2)
        after.compile(mw.regex("a*"))
        self.assertEqual(after.statistics()["requests"]["hit"], 1)
        with self.assertRaises(mw.FileError):
            after.load(file[:-3])
        other = mw.Compiler(mw.Vocabulary.from_tokens([b"a"]))
        with self.assertRaisesRegex(mw.FileError, "another vocabulary"):
            other.load(file)
        after.clear()
        after.compile(mw.regex("a*"))
        self.assertEqual(after.statistics()["compiles"]["compiled"], 3)

    def test_wrong_settings(self):
        vocabulary = bytes_vocabulary()
        with self.assertRaisesRegex(ValueError, "workers"):
            mw.Compiler(vocabulary, workers=0)
        for timeout in (-1.0, float("nan"), float("inf")):
            with self.assertRaisesRegex(ValueError, "no number of seconds"):
                mw.Compiler(vocabulary, timeout=timeout)
        with self.assertRaises(TypeError):
            mw.Compiler("tokenizer.json")

    def test_many_threads_ask_for_the_same(self):
        service = mw.Compiler(bytes_vocabulary(), workers=2)
        constraint = mw.json_schema({"type": "object", "properties": {f"k{n}": {"type": "string"} for n in range(200)}})
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            compiled = list(pool.map(lambda _: service.compile(constraint), range(64)))
        self.assertEqual(len(compiled), 64)
        self.assertEqual(service.statistics()["compiles"]["compiled"], 1)

    @unittest.skipUnless(hasattr(os, "fork"), "this system does not fork")
    def test_children_have_services_of_their_own(self):
        import subprocess

        script = ROOT / "python" / "tests" / "forking.py"
        done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "child and parent are well"), done.stderr)

    def test_ctrl_c_ends_a_wait(self):
        import signal

        # A shell starts background jobs with Ctrl-C ignored.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        service = mw.Compiler(bytes_vocabulary(), timeout=60)
        timer = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            service.compile(slow_constraint())
        timer.join()


class Indexes(unittest.TestCase):
    def test_an_index_is_its_matcher(self):
        vocabulary = bytes_vocabulary()
        constraint = mw.regex("(ab|no)+(yes)?")
        index = compiler(vocabulary).index(constraint)
        compiled = compiler(vocabulary).compile(constraint)
        seen, work = set(), [(index.initial_state, compiled.matcher())]
        while work:
            state, matcher = work.pop()
            if state in seen:
                continue
            seen.add(state)
            self.assertEqual(index.allowed_tokens(state), matcher.allowed_tokens())
            self.assertEqual(index.is_final(state), matcher.is_accepting())
            mask = bytearray(4 * vocabulary.words)
            index.fill_mask(state, mask)
            self.assertEqual(bytes(mask), matcher.mask())
            for token, target in index.transitions(state):
                if target != index.ended_state:
                    fork = matcher.fork()
                    fork.accept(token)
                    work.append((target, fork))
                    self.assertEqual(index.next_state(state, token), target)
        self.assertEqual(len(seen), len(index))
        self.assertEqual(set(index.final_states()), {state for state in seen if index.is_final(state)})
        again = mw.Index.from_bytes(index.to_bytes(), vocabulary)
        self.assertEqual(again.allowed_tokens(again.initial_state), index.allowed_tokens(index.initial_state))

    def test_wrong_indexes(self):
        vocabulary = bytes_vocabulary()
        index = compiler(vocabulary).index(mw.regex("ab"))
        with self.assertRaises(IndexError):
            index.allowed_tokens(1000)
        self.assertIsNone(index.next_state(index.initial_state, -5))
        with self.assertRaises(mw.TokenError):
            index.walk(index.initial_state, [ord("b")])
        with self.assertRaises(mw.FileError):
            mw.Index.from_bytes(b"nothing", vocabulary)
        with self.assertRaises(mw.FileError):
            mw.Index.from_bytes(index.to_bytes(), mw.Vocabulary.from_tokens([b"a", b"b"]))
        with self.assertRaises(mw.ConstraintError):
            compiler(vocabulary).index(mw.ebnf('root ::= "(" root? ")"'))
        with self.assertRaises(mw.ConstraintError):
            compiler(vocabulary).index(mw.regex("[ab]{100}"), states=3)


class Values(unittest.TestCase):
    def test_constraints_travel(self):
        constraint = mw.json_schema({"$ref": "a.json"}, whitespace="compact", documents={"a.json": {"type": "null"}})
        again = pickle.loads(pickle.dumps(constraint))
        for one in (constraint, again):
            matcher = compiler(bytes_vocabulary()).compile(one).matcher()
            self.assertEqual(matcher.forced_text(), "null")
        self.assertEqual(pickle.loads(pickle.dumps(mw.regex("a"))), mw.regex("a"))
        self.assertEqual(len({mw.regex("a"), mw.regex("a"), mw.regex("a", ignore_case=True)}), 2)


if __name__ == "__main__":
    unittest.main()
