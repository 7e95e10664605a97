"""The interface of llguidance that servers use.

>>> import maskwright.compat.llguidance as llguidance
>>> tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(llguidance.PlainTokenizer([b"yes", b"no", b"<end>"], 2)))
>>> matcher = llguidance.LLMatcher(tokenizer, llguidance.grammar_from("choice", '["yes", "no"]'))
>>> matcher.consume_token(0), matcher.is_accepting(), matcher.is_stopped()
(True, True, True)

As in llguidance, a matcher raises no exception for invalid grammars and tokens: it enters an error state, which
``get_error`` returns. The submodules ``hf``, ``tiktoken``, ``llamacpp``, ``numpy``, ``torch`` and ``mlx`` have the
functions of llguidance's submodules.

Deliberate differences: schemas are enforced exactly; white space is limited to 64 characters in one place; grammars
that are called by name (``@name``) must be Lark or JSON schemas; ``get_captures`` parses the text again, and returns
one parse of it; ``LLInterpreter`` reports no progress and does not heal prompts; slices, limits and log levels are
accepted but have no effect.
"""

from ... import __version__
from ._executor import LLExecutor
from ._grammar import GrammarFormat, JsonCompiler, LarkCompiler, RegexCompiler, StructTag, grammar_from, regex_to_lark
from ._interpreter import LLInterpreter
from ._limits import LLParserLimits
from ._matcher import LLMatcher
from ._tokenizer import LLTokenizer, PlainTokenizer, TokenizerWrapper

__all__ = [
    "GrammarFormat",
    "JsonCompiler",
    "LLExecutor",
    "LLInterpreter",
    "LLMatcher",
    "LLParserLimits",
    "LLTokenizer",
    "LarkCompiler",
    "PlainTokenizer",
    "RegexCompiler",
    "StructTag",
    "TokenizerWrapper",
    "__version__",
    "get_version",
    "grammar_from",
    "regex_to_lark",
]


def get_version() -> str:
    """Returns the name and version of this engine."""
    return f"maskwright@{__version__}"
