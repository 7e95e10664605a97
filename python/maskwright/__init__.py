"""Structured output for language models: which tokens may come next, exactly and fast.

>>> import maskwright as mw
>>> vocabulary = mw.Vocabulary.from_tokens([b"yes", b"no", b"n", b"o", b"maybe", b"<end>"], eos=5)
>>> compiler = mw.Compiler(vocabulary)                      # normally one for each tokenizer file
>>> matcher = compiler.compile(mw.regex("yes|no")).matcher()
>>> matcher.allowed_tokens()                                # yes, no, n
[0, 1, 2]
>>> matcher.accept(2)                                       # n
>>> matcher.allowed_tokens()                                # o
[3]
>>> matcher.accept(3)
>>> matcher.is_stopped(), matcher.allowed_tokens()          # nothing but the end can follow
(True, [5])

A :class:`Compiler` belongs to one :class:`Vocabulary`. The constraints that it compiles are immutable and shared by all
requests; a :class:`Matcher` is the state of one request. ``maskwright.numpy``, ``maskwright.torch`` and
``maskwright.mlx`` handle masks in their arrays, and ``maskwright.compat`` offers the interfaces of other engines.
"""

from __future__ import annotations

from ._maskwright import (
    VERSION as __version__,
    CompiledConstraint,
    Compiler,
    Constraint,
    Drawn,
    Event,
    ExactSampler,
    Forced,
    Future,
    Index,
    Matcher,
    Pcfg,
    Scorer,
    Step,
    StreamReader,
    ToolFormat,
    Tree,
    Vocabulary,
    accept_tokens,
    apply_mask,
    fill_masks,
    set_threads,
    step_batch,
)
from .constraints import (
    Report,
    choice,
    ebnf,
    gbnf,
    grammar,
    json_object,
    json_schema,
    lark,
    pcfg,
    regex,
    report,
    schema_to_regex,
    structural_tag,
)
from .errors import (
    BudgetError,
    CompileTimeout,
    ConstraintError,
    Error,
    FileError,
    LimitError,
    ServiceError,
    TokenError,
    UnsupportedError,
    VocabularyError,
)

__all__ = [
    "BudgetError",
    "CompileTimeout",
    "CompiledConstraint",
    "Compiler",
    "Constraint",
    "ConstraintError",
    "Drawn",
    "Error",
    "Event",
    "ExactSampler",
    "FileError",
    "Forced",
    "Future",
    "Index",
    "LimitError",
    "Matcher",
    "Pcfg",
    "Report",
    "Scorer",
    "ServiceError",
    "Step",
    "StreamReader",
    "TokenError",
    "ToolFormat",
    "Tree",
    "UnsupportedError",
    "Vocabulary",
    "VocabularyError",
    "__version__",
    "accept_tokens",
    "apply_mask",
    "choice",
    "ebnf",
    "fill_masks",
    "gbnf",
    "grammar",
    "json_object",
    "json_schema",
    "lark",
    "pcfg",
    "regex",
    "report",
    "schema_to_regex",
    "set_threads",
    "step_batch",
    "structural_tag",
]
