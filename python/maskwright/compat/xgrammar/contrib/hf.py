"""A processor for transformers."""

from __future__ import annotations

from collections.abc import Sequence

from ....transformers import LogitsProcessor as _LogitsProcessor
from ..compiler import CompiledGrammar

__all__ = ["LogitsProcessor"]


class LogitsProcessor(_LogitsProcessor):
    """Restricts what a model generates to a grammar, or each row to its own grammar. Unlike XGrammar's it can be
    used again."""

    def __init__(self, compiled_grammar: CompiledGrammar | Sequence[CompiledGrammar]) -> None:
        several = isinstance(compiled_grammar, (list, tuple))
        grammars: list[CompiledGrammar] = list(compiled_grammar) if several else [compiled_grammar]
        self.compiled_grammars = grammars
        super().__init__([grammar.compiled for grammar in grammars] if len(grammars) > 1 else grammars[0].compiled)

    @property
    def full_vocab_size(self) -> int:
        """The width of the scores."""
        return self.compiled_grammars[0].tokenizer_info.vocab_size
