"""The calls of XGrammar that servers use.

>>> import maskwright.compat.xgrammar as xgrammar
>>> info = xgrammar.TokenizerInfo(["a", "b", "ab", "</s>"], stop_token_ids=3)
>>> compiled = xgrammar.GrammarCompiler(info).compile_regex("a+b")
>>> matcher = xgrammar.GrammarMatcher(compiled)
>>> matcher.accept_token(2), matcher.is_completed(), matcher.accept_token(3), matcher.is_terminated()
(True, True, True, True)

What differs by design: schemas are enforced exactly or refused by keyword; ``any_order`` keeps required keys and allows none twice; ``fill_next_token_bitmask``
always says that the mask is to be applied; separators that ``json.dumps`` does not use by itself are refused; rejected tokens print nothing.
There is no union or concatenation of grammars, no serialisation, and no temperature.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal

from .. import (
    Compiled,
    Compiler,
    Constraint,
    Error,
    Matcher,
    Vocabulary,
    accept_tokens,
    ebnf,
    fill_masks,
    json_schema,
    lark,
    regex,
    regex as mw_regex,
    structural_tag,
)
from ..constraints import schema_text

if TYPE_CHECKING:
    import torch

__all__ = [
    "BatchGrammarMatcher",
    "CompiledGrammar",
    "Grammar",
    "GrammarCompiler",
    "GrammarMatcher",
    "InvalidJSONError",
    "InvalidStructuralTagError",
    "StructuralTag",
    "StructuralTagItem",
    "TokenizerInfo",
    "VocabType",
    "allocate_token_bitmask",
    "apply_token_bitmask_inplace",
    "bitmask_dtype",
    "get_bitmask_shape",
    "reset_token_bitmask",
]

#: Tokens that end a text, by their usual names, for lists of tokens without ``stop_token_ids``.
_ENDS = ("</s>", "<eos>", "<|eos|>", "<|endoftext|>", "<|end_of_text|>", "<|eot_id|>", "<|im_end|>", "<end_of_turn>", "<|eom_id|>")


class InvalidJSONError(RuntimeError):
    """The JSON is invalid."""


class InvalidStructuralTagError(RuntimeError):
    """The structural tag is invalid."""


class VocabType(Enum):
    """How the tokens of a list are written."""

    RAW = 0
    BYTE_FALLBACK = 1
    BYTE_LEVEL = 2


class TokenizerInfo:
    """The tokens of a model."""

    def __init__(
        self,
        encoded_vocab: Sequence[bytes | str],
        vocab_type: VocabType = VocabType.RAW,
        *,
        vocab_size: int | None = None,
        stop_token_ids: Sequence[int] | int | None = None,
        add_prefix_space: bool = False,
    ) -> None:
        decoded = [_decode(token, vocab_type) for token in encoded_vocab]
        if stop_token_ids is None:
            stop_token_ids = [number for number, token in enumerate(decoded) if token.decode("utf-8", "replace") in _ENDS]
        stops = [stop_token_ids] if isinstance(stop_token_ids, int) else list(stop_token_ids)
        size = len(decoded) if vocab_size is None else vocab_size
        stops = [stop for stop in stops if 0 <= stop < size]
        tokens = {number: token for number, token in enumerate(decoded[:size]) if token and number not in stops}
        names = {stop: decoded[stop].decode("utf-8", "replace") if stop < len(decoded) else "" for stop in stops}
        specials = {stop: name or f"<stop {stop}>" for stop, name in names.items()}
        self._decoded: list[bytes] | None = decoded
        self._type, self._prefix = vocab_type, add_prefix_space
        self.vocabulary = Vocabulary.from_tokens(tokens, eos=stops, specials=specials, size=size)

    @staticmethod
    def from_huggingface(
        tokenizer: Any, *, vocab_size: int | None = None, stop_token_ids: Sequence[int] | int | None = None
    ) -> TokenizerInfo:
        """The tokens of a tokenizer of transformers. ``vocab_size`` is the width of the model's output."""
        return TokenizerInfo._of(Vocabulary.from_tokenizer(tokenizer, eos=stop_token_ids, size=vocab_size), _type_of(tokenizer))

    @staticmethod
    def _of(vocabulary: Vocabulary, vocab_type: VocabType) -> TokenizerInfo:
        made = TokenizerInfo.__new__(TokenizerInfo)
        made.vocabulary, made._type, made._prefix, made._decoded = vocabulary, vocab_type, False, None
        return made

    @staticmethod
    def from_vocab_and_metadata(encoded_vocab: Sequence[bytes | str], metadata: str) -> TokenizerInfo:
        """The tokens of a list, with what :meth:`dump_metadata` said."""
        known = json.loads(metadata)
        return TokenizerInfo(
            encoded_vocab,
            VocabType(known["vocab_type"]),
            vocab_size=known["vocab_size"],
            stop_token_ids=known["stop_token_ids"],
            add_prefix_space=known["add_prefix_space"],
        )

    def dump_metadata(self) -> str:
        """What is known besides the tokens, as JSON."""
        known = {
            "vocab_type": self._type.value,
            "vocab_size": self.vocab_size,
            "add_prefix_space": self._prefix,
            "stop_token_ids": self.stop_token_ids,
        }
        return json.dumps(known, separators=(",", ":"))

    @property
    def vocab_type(self) -> VocabType:
        """How the tokens were written."""
        return self._type

    @property
    def vocab_size(self) -> int:
        """The width of a mask."""
        return self.vocabulary.size

    @property
    def add_prefix_space(self) -> bool:
        """Whether the tokenizer puts a space in front of a text."""
        return self._prefix

    prepend_space_in_tokenization = add_prefix_space

    @property
    def decoded_vocab(self) -> list[bytes]:
        """The bytes of all tokens; of special ones their names."""
        if self._decoded is not None:
            return list(self._decoded)
        names = {number: name.encode() for name, number in self.vocabulary.specials.items()}
        return [names.get(number) or self.vocabulary.token_bytes(number) for number in range(self.vocabulary.size)]

    @property
    def stop_token_ids(self) -> list[int]:
        """The tokens that end a text."""
        return self.vocabulary.eos

    @property
    def special_token_ids(self) -> list[int]:
        """Tokens that are no text and do not end one."""
        stops, specials = set(self.vocabulary.eos), set(self.vocabulary.specials.values())
        size = self.vocabulary.size
        unused = {number for number in range(size) if number not in specials and not self.vocabulary.token_bytes(number)}
        return sorted((specials | unused) - stops)


class Grammar:
    """A grammar that is not compiled yet."""

    def __init__(self, constraint: Constraint) -> None:
        self.constraint = constraint

    @staticmethod
    def from_ebnf(ebnf_string: str, *, root_rule_name: str = "root") -> Grammar:
        """An EBNF grammar."""
        return _checked(Grammar(ebnf(ebnf_string, root=root_rule_name)))

    @staticmethod
    def from_json_schema(schema: Any, **options: Any) -> Grammar:
        """A JSON Schema: text, a dict, or a Pydantic model. The options are ``any_whitespace``, ``indent``, ``separators``, ``strict_mode``,
        ``max_whitespace_cnt`` and ``any_order``."""
        return _checked(_schema_grammar(schema, **options))

    @staticmethod
    def from_regex(regex_string: str) -> Grammar:
        """A regular expression."""
        return _checked(Grammar(regex(regex_string)))

    @staticmethod
    def from_lark(lark_string: str) -> Grammar:
        """A Lark grammar."""
        return _checked(Grammar(lark(lark_string)))

    @staticmethod
    def from_structural_tag(*args: Any, **kwargs: Any) -> Grammar:
        """A structural tag, or the older tags and triggers."""
        return _checked(_tag_grammar(args, kwargs), InvalidStructuralTagError)

    @staticmethod
    def builtin_json_grammar() -> Grammar:
        """Any JSON object or array."""
        return Grammar(json_schema({"type": ["object", "array"]}))

    def __str__(self) -> str:
        return str(self.constraint.source)


class CompiledGrammar:
    """A grammar, ready for any number of texts."""

    def __init__(self, compiled: Compiled, grammar: Grammar, tokenizer_info: TokenizerInfo) -> None:
        self.compiled, self.grammar, self.tokenizer_info = compiled, grammar, tokenizer_info

    @property
    def memory_size_bytes(self) -> int:
        """Bytes that it holds now."""
        return self.compiled.bytes


class GrammarCompiler:
    """Compiles grammars, each once."""

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
        return self._compile(_schema_grammar(schema, **options))

    def compile_builtin_json_grammar(self) -> CompiledGrammar:
        """Any JSON object or array."""
        return self._compile(Grammar.builtin_json_grammar())

    def compile_regex(self, regex: str) -> CompiledGrammar:
        """A regular expression."""
        return self._compile(Grammar(mw_regex(regex)))

    def compile_lark(self, lark_string: str) -> CompiledGrammar:
        """A Lark grammar."""
        return self._compile(Grammar(lark(lark_string)))

    def compile_structural_tag(self, *args: Any, **kwargs: Any) -> CompiledGrammar:
        """A structural tag, or the older tags and triggers."""
        return self._compile(_tag_grammar(args, kwargs))

    def compile_grammar(self, grammar: str | Grammar, *, root_rule_name: str = "root") -> CompiledGrammar:
        """A grammar, or an EBNF grammar as text."""
        if isinstance(grammar, str):
            return self._compile(Grammar(ebnf(grammar, root=root_rule_name)))
        if isinstance(grammar, Grammar):
            return self._compile(grammar)
        raise ValueError("Invalid grammar type. Please pass a string or a Grammar object.")

    def clear_cache(self) -> None:
        """Forgets what was compiled."""
        self._compiler.clear()

    def get_cache_size_bytes(self) -> int:
        """Bytes that are kept for grammars, and for what they share."""
        cache = self._compiler.statistics()["cache"]
        return cache["bytes"] + cache["shared_bytes"]

    @property
    def cache_limit_bytes(self) -> int:
        """Bytes that may be kept; −1 without a limit."""
        return self._limit

    def _compile(self, grammar: Grammar) -> CompiledGrammar:
        try:
            return CompiledGrammar(self._compiler.compile(grammar.constraint), grammar, self._info)
        except Error as error:
            raise RuntimeError(str(error)) from error


class GrammarMatcher:
    """One text being written."""

    def __init__(
        self,
        compiled_grammar: CompiledGrammar,
        *,
        override_stop_tokens: int | Sequence[int] | None = None,
        terminate_without_stop_token: bool = False,
        max_rollback_tokens: int = -1,
    ) -> None:
        if not isinstance(compiled_grammar, CompiledGrammar):
            raise ValueError("The grammar should be compiled before passing it to GrammarMatcher.")
        if max_rollback_tokens != -1:
            warnings.warn("max_rollback_tokens is deprecated: it is always unlimited", DeprecationWarning, stacklevel=2)
        stops = [override_stop_tokens] if isinstance(override_stop_tokens, int) else override_stop_tokens
        try:
            self.matcher: Matcher = compiled_grammar.compiled.matcher(stop_tokens=stops)
        except Error as error:
            raise RuntimeError(str(error)) from error
        self._early = terminate_without_stop_token

    def accept_token(self, token_id: int, *, debug_print: bool = False) -> bool:
        """Takes a token; says whether it was taken."""
        return self.matcher.try_accept(token_id)

    def accept_string(self, input_str: str | bytes, *, debug_print: bool = False) -> bool:
        """Takes some text as one step; says whether it was taken."""
        try:
            self.matcher.accept_text(input_str)
        except Error:
            return False
        return True

    def fill_next_token_bitmask(self, bitmask: Any, index: int = 0, *, debug_print: bool = False) -> bool:
        """Writes the mask into a row. Returns that it is to be applied."""
        if self.matcher.is_terminated():
            raise RuntimeError("GrammarMatcher has terminated after accepting the stop token, but is trying to find the next token mask")
        _as_runtime_error(lambda: self.matcher.fill_mask(bitmask, index))
        return True

    def traverse_draft_tree(
        self,
        retrieve_next_token: Any,
        retrieve_next_sibling: Any,
        draft_tokens: Any,
        token_bitmask: Any,
        time_threshold: float = -1.0,
    ) -> bool:
        """Writes the masks of a tree of guessed tokens, given by first children and next siblings. It is always completed."""
        links = (draft_tokens, retrieve_next_token, retrieve_next_sibling)
        _as_runtime_error(lambda: self.matcher.fill_draft_links(*links, token_bitmask))
        return True

    def find_jump_forward_string(self) -> str:
        """What must come next."""
        return self.matcher.forced_text()

    def rollback(self, num_tokens: int = 1) -> None:
        """Undoes the last tokens."""
        _as_runtime_error(lambda: self.matcher.rollback(num_tokens))

    def is_terminated(self) -> bool:
        """Whether the end was accepted; with ``terminate_without_stop_token``, whether the text is complete."""
        return self.matcher.is_accepting() if self._early else self.matcher.is_terminated()

    def is_completed(self) -> bool:
        """Whether the text is complete."""
        return self.matcher.is_accepting()

    def reset(self) -> None:
        """Back to the beginning."""
        self.matcher.reset()

    def fork(self) -> GrammarMatcher:
        """An independent matcher at the same place."""
        made = GrammarMatcher.__new__(GrammarMatcher)
        made.matcher, made._early = self.matcher.fork(), self._early
        return made

    @property
    def max_rollback_tokens(self) -> int:
        """Always −1: without a limit."""
        return -1

    @property
    def stop_token_ids(self) -> list[int]:
        """The tokens that end the text."""
        return self.matcher.stop_tokens


class BatchGrammarMatcher:
    """Many texts at once."""

    def __init__(self, max_threads: int | Literal["auto"] = "auto") -> None:
        self._threads = None if max_threads == "auto" else int(max_threads)

    def batch_fill_next_token_bitmask(
        self,
        matchers: Sequence[GrammarMatcher],
        bitmask: Any,
        indices: Sequence[int] | None = None,
        debug_print: bool = False,
    ) -> None:
        """Writes the masks of many matchers in parallel."""
        rows = None if indices is None else list(indices)
        inner = [matcher.matcher for matcher in matchers]
        _as_runtime_error(lambda: fill_masks(inner, bitmask, rows, threads=self._threads))

    @staticmethod
    def batch_accept_token(matchers: Sequence[GrammarMatcher], tokens: Sequence[int], debug_print: bool = False) -> list[bool]:
        """Gives each matcher its token."""
        taken: list[bool] = _as_runtime_error(lambda: accept_tokens([matcher.matcher for matcher in matchers], tokens))
        return taken

    @staticmethod
    def batch_accept_string(
        matchers: Sequence[GrammarMatcher], strings: Sequence[str | bytes], debug_print: bool = False
    ) -> list[bool]:
        """Gives each matcher its text."""
        if len(matchers) != len(strings):
            raise RuntimeError(f"there are {len(matchers)} matchers and {len(strings)} strings")
        return [matcher.accept_string(string) for matcher, string in zip(matchers, strings)]

    @staticmethod
    def batch_rollback(matchers: Sequence[GrammarMatcher], num_tokens: Sequence[int] | int = 1) -> None:
        """Undoes tokens of each matcher."""
        counts = [num_tokens] * len(matchers) if isinstance(num_tokens, int) else num_tokens
        if len(matchers) != len(counts):
            raise RuntimeError(f"there are {len(matchers)} matchers and {len(counts)} numbers of tokens")
        for matcher, count in zip(matchers, counts):
            matcher.rollback(count)


@dataclass
class StructuralTagItem:
    """A tag of the older kind: what begins it, the schema of its content, what ends it."""

    begin: str
    schema: Any
    end: str


@dataclass
class StructuralTag:
    """A structural tag, as a tree of dicts."""

    format: dict[str, Any]
    type: str = field(default="structural_tag")

    @staticmethod
    def from_json(json_str: str | dict[str, Any]) -> StructuralTag:
        """Reads a tag."""
        tag = json.loads(json_str) if isinstance(json_str, str) else json_str
        return StructuralTag(tag["format"])

    @staticmethod
    def from_legacy_structural_tag(tags: Sequence[StructuralTagItem], triggers: Sequence[str]) -> StructuralTag:
        """The older tags and triggers as a tag of today."""
        items = [
            {"begin": tag.begin, "content": {"type": "json_schema", "json_schema": _schema(tag.schema)}, "end": tag.end}
            for tag in tags
        ]
        return StructuralTag({"type": "triggered_tags", "triggers": list(triggers), "tags": items})

    def model_dump(self, **_: Any) -> dict[str, Any]:
        """The tag as dicts."""
        return {"type": self.type, "format": self.format}

    def model_dump_json(self, indent: int | None = None, **_: Any) -> str:
        """The tag as JSON."""
        return json.dumps(self.model_dump(), indent=indent)


def get_bitmask_shape(batch_size: int, vocab_size: int) -> tuple[int, int]:
    """Rows, and words of 32 bits in each."""
    return batch_size, (vocab_size + 31) // 32


def allocate_token_bitmask(batch_size: int, vocab_size: int) -> torch.Tensor:
    """Rows of masks that allow everything."""
    import torch

    return torch.full(get_bitmask_shape(batch_size, vocab_size), -1, dtype=torch.int32)


def reset_token_bitmask(bitmask: torch.Tensor) -> None:
    """Allows everything again."""
    bitmask.fill_(-1)


def apply_token_bitmask_inplace(
    logits: torch.Tensor,
    bitmask: torch.Tensor,
    *,
    vocab_size: int | None = None,
    indices: Sequence[int] | None = None,
    backend: str = "auto",
) -> None:
    """Writes −∞ into the logits of forbidden tokens. Logits beyond ``vocab_size``, or beyond the mask, are left alone."""
    from ..torch import apply_token_bitmask_inplace as apply

    covered = bitmask.shape[-1] * 32
    if vocab_size is None and covered < logits.shape[-1]:
        warnings.warn(f"the mask covers {covered} tokens of {logits.shape[-1]}; the others are left alone", stacklevel=2)
    width = min(logits.shape[-1], covered if vocab_size is None else min(covered, vocab_size))
    apply(logits[..., :width], bitmask[..., : (width + 31) // 32], None if indices is None else list(indices))


def __getattr__(name: str) -> Any:
    if name == "bitmask_dtype":
        import torch

        return torch.int32
    raise AttributeError(f"maskwright.compat.xgrammar has no {name!r}")


def _decode(token: str | bytes, vocab_type: VocabType) -> bytes:
    if isinstance(token, bytes):
        if vocab_type is VocabType.RAW:
            return token
        token = token.decode()
    if vocab_type is VocabType.BYTE_LEVEL:
        known = _byte_level()
        return bytes(known[character] for character in token) if all(character in known for character in token) else token.encode()
    if vocab_type is VocabType.BYTE_FALLBACK:
        if len(token) == 6 and token.startswith("<0x") and token.endswith(">"):
            return bytes([int(token[3:5], 16)])
        return token.replace("▁", " ").encode()
    return token.encode()


def _byte_level() -> dict[str, int]:
    """The characters that stand for bytes: those that can be seen for themselves, the others from 256 on."""
    seen = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in seen]
    return {chr(byte): byte for byte in seen} | {chr(256 + at): byte for at, byte in enumerate(hidden)}


def _type_of(tokenizer: Any) -> VocabType:
    known = tokenizer.get_vocab() if hasattr(tokenizer, "get_vocab") else {}
    if "<0x0A>" in known:
        return VocabType.BYTE_FALLBACK
    return VocabType.BYTE_LEVEL if "Ġ" in known else VocabType.RAW


def _schema_grammar(
    schema: Any,
    *,
    any_whitespace: bool = True,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    strict_mode: bool = True,
    max_whitespace_cnt: int | None = None,
    any_order: bool = False,
) -> Grammar:
    whitespace = _whitespace(any_whitespace, indent, separators, max_whitespace_cnt)
    strictness, order = "closed" if strict_mode else "standard", "any" if any_order else "schema"
    return Grammar(json_schema(schema_text(schema), whitespace=whitespace, strictness=strictness, key_order=order))


def _tag_grammar(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Grammar:
    text = _tag_text(args, kwargs)
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidJSONError(f"Invalid JSON error: {error}") from error
    return Grammar(structural_tag(text, strictness="closed"))


def _whitespace(any_whitespace: bool, indent: int | None, separators: tuple[str, str] | None, most: int | None) -> str:
    if any_whitespace:
        if most is not None and most <= 0:
            raise RuntimeError("max_whitespace_cnt must be positive")
        return "flexible" if most is None else f"flexible:{most}"
    pair = None if separators is None else tuple(separators)
    if indent is not None and pair in (None, (",", ": ")):
        return f"indent:{indent}"
    if indent is None and pair in (None, (", ", ": ")):
        return "spaced"
    if indent is None and pair == (",", ":"):
        return "compact"
    raise RuntimeError(f"separators {separators!r} with indent {indent!r} are not offered; use those of json.dumps, or (',', ':')")


def _schema(schema: Any) -> Any:
    text = schema_text(schema)
    return json.loads(text)


def _tag_text(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    given = [*args, *kwargs.values()]
    if len(given) == 2:
        tags, triggers = kwargs.get("tags", given[0]), kwargs.get("triggers", given[1])
        return StructuralTag.from_legacy_structural_tag(tags, triggers).model_dump_json()
    if len(given) != 1:
        raise TypeError("give a structural tag, or tags and triggers")
    (tag,) = given
    if hasattr(tag, "model_dump_json"):
        return str(tag.model_dump_json(indent=None))
    if isinstance(tag, (dict, str)):
        return tag if isinstance(tag, str) else json.dumps(tag)
    raise TypeError(f"a structural tag is a StructuralTag, a dict or JSON text, and this is {type(tag).__name__}")


def _checked(grammar: Grammar, kind: type[RuntimeError] = RuntimeError) -> Grammar:
    """What is wrong is said when a grammar is made."""
    try:
        grammar.constraint.check()
    except Error as error:
        raise kind(str(error)) from error
    return grammar


def _as_runtime_error(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except (Error, TypeError, ValueError, IndexError, OverflowError, BufferError) as error:
        raise RuntimeError(str(error)) from error
