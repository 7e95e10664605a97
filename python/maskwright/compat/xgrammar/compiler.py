"""Compilers with the interface of XGrammar."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ... import CompiledConstraint, Compiler, Error, ebnf
from ... import regex as mw_regex
from .exception import DeserializeFormatError, read_document, write_document
from .grammar import Grammar, lark_grammar, schema_grammar, tag_grammar, told
from .tokenizer_info import TokenizerInfo


class CompiledGrammar:
    """A compiled grammar for any number of texts."""

    def __init__(self, compiled: CompiledConstraint, grammar: Grammar, tokenizer_info: TokenizerInfo, compiler: Compiler) -> None:
        self.compiled, self.grammar, self.tokenizer_info, self.compiler = compiled, grammar, tokenizer_info, compiler

    @property
    def memory_size_bytes(self) -> int:
        """The number of bytes that it holds now."""
        return self.compiled.bytes

    def serialize_json(self) -> str:
        """Returns the grammar and the vocabulary that it was compiled for, as JSON. Reading it compiles the grammar
        again."""
        fingerprint = f"{self.tokenizer_info.vocabulary.fingerprint:032x}"
        return write_document("compiled grammar", {"grammar": self.grammar.serialize_json(), "vocabulary": fingerprint})

    @staticmethod
    def deserialize_json(json_str: str, tokenizer_info: TokenizerInfo) -> CompiledGrammar:
        """Restores a grammar that :meth:`serialize_json` wrote, for the same vocabulary."""
        known = read_document("compiled grammar", json_str, ("grammar", "vocabulary"))
        if known["vocabulary"] != f"{tokenizer_info.vocabulary.fingerprint:032x}":
            raise DeserializeFormatError("the grammar was compiled for other tokens than these")
        return GrammarCompiler(tokenizer_info).compile_grammar(Grammar.deserialize_json(known["grammar"]))


class GrammarCompiler:
    """Compiles grammars, each only once."""

    def __init__(
        self,
        tokenizer_info: TokenizerInfo,
        *,
        max_threads: int = 8,
        cache_enabled: bool = True,
        cache_limit_bytes: int = -1,
    ) -> None:
        if not isinstance(tokenizer_info, TokenizerInfo):
            raise ValueError("Please convert the tokenizer to TokenizerInfo before passing it to GrammarCompiler.")
        budget = 1 << 62 if cache_limit_bytes < 0 else cache_limit_bytes
        budget = budget if cache_enabled else 0
        self._info, self._limit = tokenizer_info, cache_limit_bytes
        self._compiler = Compiler(tokenizer_info.vocabulary, workers=max(1, max_threads), cache_bytes=budget)

    def compile_json_schema(self, schema: Any, **options: Any) -> CompiledGrammar:
        """See :meth:`Grammar.from_json_schema`."""
        return self._compile(schema_grammar(schema, **options))

    def compile_builtin_json_grammar(self) -> CompiledGrammar:
        """Compiles a grammar for any JSON object or array."""
        return self._compile(Grammar.builtin_json_grammar())

    def compile_regex(self, regex: str) -> CompiledGrammar:
        """Compiles a regular expression."""
        return self._compile(Grammar(mw_regex(regex, dialect="ecma")))

    def compile_lark(self, lark_string: str, *, named_grammars: Mapping[str, Grammar | str] | None = None) -> CompiledGrammar:
        """See :meth:`Grammar.from_lark`."""
        return self._compile(lark_grammar(lark_string, named_grammars))

    def compile_structural_tag(self, *args: Any, **kwargs: Any) -> CompiledGrammar:
        """Compiles a structural tag, or tags and triggers in the older notation."""
        return self._compile(tag_grammar(args, kwargs))

    def compile_grammar(self, grammar: str | Grammar, *, root_rule_name: str = "root") -> CompiledGrammar:
        """Compiles a grammar, or an EBNF grammar given as text."""
        if isinstance(grammar, str):
            return self._compile(Grammar(ebnf(grammar, root=root_rule_name)))
        if isinstance(grammar, Grammar):
            return self._compile(grammar)
        raise ValueError("Invalid grammar type. Please pass a string or a Grammar object.")

    def clear_cache(self) -> None:
        """Forgets all compiled grammars."""
        self._compiler.clear()

    def get_cache_size_bytes(self) -> int:
        """Returns the number of bytes that cached grammars hold, without the data of the vocabulary that all of them
        share."""
        size: int = self._compiler.statistics()["cache"]["bytes"]
        return size

    @property
    def cache_limit_bytes(self) -> int:
        """The maximum number of cached bytes; −1 means no limit."""
        return self._limit

    def _compile(self, grammar: Grammar) -> CompiledGrammar:
        try:
            return CompiledGrammar(self._compiler.compile(grammar.constraint), grammar, self._info, self._compiler)
        except Error as error:
            raise RuntimeError(told(error, grammar)) from error
