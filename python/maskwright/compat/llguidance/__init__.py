"""The calls of llguidance that servers use.

>>> import maskwright.compat.llguidance as llguidance
>>> tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(llguidance.PlainTokenizer([b"yes", b"no", b"<end>"], 2)))
>>> matcher = llguidance.LLMatcher(tokenizer, llguidance.grammar_from("choice", '["yes", "no"]'))
>>> matcher.consume_token(0), matcher.is_accepting(), matcher.is_stopped()
(True, True, True)

As there, a matcher raises nothing for wrong grammars and tokens: it has an error from then on, and ``get_error`` tells it. The submodules ``hf``, ``tiktoken``, ``llamacpp``, ``numpy``,
``torch`` and ``mlx`` have the functions that llguidance has in those.

What differs by design: schemas are enforced exactly; white space is limited to 64 characters in one place; grammars that are called by name (``@name``)
are of Lark or JSON schemas; ``get_captures`` reads the text again, and tells one reading of it; ``LLInterpreter`` tells no progress and heals no prompt; slices, limits and log levels are accepted and of no effect.
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
    """Which engine this is."""
    return f"maskwright@{__version__}"
