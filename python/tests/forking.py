"""A program that forks with a compiler and the threads of the batch in use. Run by test_compiler."""

import os
import sys

import maskwright as mw


def work(compiler: mw.Compiler, pattern: str) -> None:
    matchers = [compiler.compile(mw.regex(pattern)).matcher() for _ in range(8)]
    mask = bytearray(8 * 4 * compiler.vocabulary.words)
    rows = memoryview(mask).cast("B").cast("I", (8, compiler.vocabulary.words))
    mw.fill_masks(matchers, rows)
    assert rows.tolist() == [[0b01]] * 8, rows.tolist()


compiler = mw.Compiler(mw.Vocabulary.from_tokens([b"a", b"b", b"<end>"], eos=2))
work(compiler, "a")
child = os.fork()
if child == 0:
    work(compiler, "ab")
    work(compiler, "a")
    del compiler
    os._exit(0)
_, status = os.waitpid(child, 0)
work(compiler, "abb")
if os.waitstatus_to_exitcode(status) == 0:
    print("child and parent are well")
sys.exit(os.waitstatus_to_exitcode(status))
