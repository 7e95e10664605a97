"""A grammar backend for SGLang (0.5.23).

If the package is installed next to SGLang, SGLang finds it as a plug-in, and a server can be started with it:

::

    python -m sglang.launch_server --model-path MODEL --grammar-backend maskwright

Requests are then compiled here: ``json_schema``, ``regex``, ``ebnf`` (also GBNF and Lark) and ``structural_tag``, and
the ``response_format`` and tools of the OpenAI routes, which are built on them. With ``--reasoning-parser``, and
``--enable-strict-thinking``, the grammar waits for the end of the reasoning as with SGLang's own backends. SGLang does
not wrap backends that register themselves, so that is done here.

SGLang leaves the masks to the backend: the functions below allocate them, move them to the GPU and apply them, on a GPU
with the kernel of ``maskwright.kernels``. Speculative decoding walks its trees with ``accept_token`` and ``rollback``.

If a mask or token of a request exceeds a limit of the engine (``LimitError``), only that request ends: its row of the
batch allows only the end, and when that comes the request is aborted with the message.

Some features of SGLang work only with xgrammar: "framed" answers of some reasoning models, and whole-turn grammars of
its chat route.
"""

from __future__ import annotations

import functools
import importlib
import json
import logging
from typing import Any, Sequence

import torch
from sglang.srt.constrained.base_grammar_backend import (
    BaseGrammarBackend,
    BaseGrammarObject,
    GrammarRow,
    GrammarStats,
    InvalidGrammarObject,
    register_grammar_backend,
)

from ._ahead import ahead, compiler
from ._cache import opened
from ._maskwright import CompiledConstraint, Matcher, Vocabulary, fill_masks
from ._requests import JsonOptions, constraint
from ._rows import allow_end, fill_or_end, fits
from ._warnings import Warned
from .errors import Error, LimitError, TokenError
from .kernels import apply_mask_inplace

__all__ = ["Backend", "Grammar", "create", "register"]

NAME = "maskwright"
# SGLang's notation for "any JSON".
_ANY_JSON = "$$ANY$$"

logger = logging.getLogger(__name__)


_is_registered = False


def register() -> None:
    """Makes the backend known to SGLang, and its name to the command line. A second call has no effect."""
    global _is_registered
    register_grammar_backend(NAME, create)
    if _is_registered:
        return
    add_choices = _adds_choices()
    if add_choices is None:
        logger.warning("this SGLang has no add_grammar_backend_choices, so --grammar-backend may not know the name %s", NAME)
        return
    add_choices([NAME])
    _is_registered = True


def _adds_choices() -> Any:
    """Returns SGLang's function for adding names of backends, wherever this version has it."""
    for module in ("sglang.srt.arg_groups.choices", "sglang.srt.server_args"):
        try:
            return importlib.import_module(module).add_grammar_backend_choices
        except (ImportError, AttributeError):
            continue
    return None


def create(
    server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: Any = None
) -> BaseGrammarBackend:
    """Creates the backend of a server, wrapped for reasoning if the server was started with a parser for it."""
    from sglang.srt.runtime_context import get_serving

    serving = get_serving()
    options = JsonOptions(
        whitespace=_whitespace(serving),
        whitespace_pattern=getattr(serving, "constrained_json_whitespace_pattern", None),
    )
    backend = Backend(tokenizer, vocab_size, eos_token_ids, options)
    if not serving.reasoning_parser:
        return backend
    from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarBackend
    from sglang.srt.parser.reasoning_parser import ReasoningParser

    parser = ReasoningParser(model_type=serving.reasoning_parser, stream_reasoning=False, tokenizer=tokenizer)
    if not parser.detector.get_think_end_token_ids(tokenizer):
        # The model has no end of reasoning to wait for. SGLang does not wrap its own backends then either.
        return backend
    return ReasonerGrammarBackend(
        backend, parser, tokenizer, enable_strict_thinking=serving.enable_strict_thinking
    )


def _whitespace(serving: Any) -> str:
    if serving.constrained_json_disable_any_whitespace:
        return "compact"
    most = getattr(serving, "constrained_json_max_whitespace_cnt", None)
    return "tidy" if most is None else f"flexible:{most}"


class Backend(BaseGrammarBackend):
    """The backend of a server: the vocabulary of its model, and a compiler."""

    def __init__(
        self,
        tokenizer: Any,
        vocab_size: int,
        eos_token_ids: int | Sequence[int] | None = None,
        options: JsonOptions | None = None,
    ) -> None:
        super().__init__()
        eos = None if eos_token_ids is None else [eos_token_ids] if isinstance(eos_token_ids, int) else list(eos_token_ids)
        self.compiler = compiler(Vocabulary.from_tokenizer(tokenizer, eos=eos or None, size=vocab_size))
        self.options = options or JsonOptions()
        self.cache_file = opened(self.compiler)
        self._warned = Warned(logger)

    def dispatch_json(self, key_string: str) -> BaseGrammarObject:
        if key_string == _ANY_JSON:
            return self._compile("json", "", "json")
        return self._compile("json_schema", key_string, "json")

    def dispatch_regex(self, key_string: str) -> BaseGrammarObject:
        return self._compile("regex", key_string, "regex")

    def dispatch_ebnf(self, key_string: str) -> BaseGrammarObject:
        return self._compile("grammar", key_string, "ebnf")

    def dispatch_structural_tag(self, key_string: str) -> BaseGrammarObject:
        return self._compile("structural_tag", key_string, "structural_tag")

    def _compile(self, kind: str, text: str, dispatch_type: str) -> BaseGrammarObject:
        try:
            wanted = constraint(kind, _with_schemas(text) if kind == "structural_tag" else text, self.options)
            compiled = self.compiler.compile(wanted)
            self._warned.tell(wanted, compiled)
        except (Error, TypeError, ValueError) as error:
            # This is SGLang's way to report the error to the client.
            logger.info("a grammar of type %s was refused: %s", dispatch_type, error)
            return InvalidGrammarObject(str(error))
        except Exception as error:
            # An exception here would end SGLang's scheduler, and with it all other requests.
            logger.exception("a grammar of type %s cannot be compiled", dispatch_type)
            return InvalidGrammarObject(f"{type(error).__name__}: {error}")
        if self.cache_file is not None:
            self.cache_file.save_soon()
        return Grammar(compiled, compiled.matcher(), GrammarStats(dispatch_type=dispatch_type))

    def reset(self) -> None:
        super().reset()
        self.compiler.clear()

    # The wrapper for reasoning calls these on the backend if it has no grammar.

    @staticmethod
    def allocate_vocab_mask(vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        return _allocate(vocab_size, batch_size)

    @staticmethod
    def move_vocab_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
        return vocab_mask.to(device, non_blocking=True)

    @staticmethod
    def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
        apply_mask_inplace(logits, vocab_mask)

    @property
    def is_support_token_filter(self) -> bool:
        return True

    @staticmethod
    def set_token_filter(
        vocab_mask: torch.Tensor,
        token_ids: Sequence[int],
        batch_idx: int,
        is_allowed: bool = True,
        reset_vocab_mask: bool = True,
    ) -> None:
        """Allows or forbids some tokens in a row, which is first set to the opposite if requested."""
        row = vocab_mask[batch_idx]
        if reset_vocab_mask:
            row.fill_(0 if is_allowed else -1)
        for token in token_ids:
            # Words are signed, and bit 31 is the sign.
            bit = 1 << (token % 32) if token % 32 < 31 else -(1 << 31)
            if is_allowed:
                row[token // 32] |= bit
            else:
                row[token // 32] &= ~bit


class Grammar(BaseGrammarObject):
    """One request: a matcher with the interface of SGLang."""

    def __init__(self, compiled: CompiledConstraint, matcher: Matcher, stats: GrammarStats | None) -> None:
        super().__init__()
        self.compiled = compiled
        self.matcher = matcher
        self.grammar_stats = stats
        # The limit that was exceeded, and the number of steps at that time.
        self._met: tuple[LimitError, int] | None = None
        # The accepted tokens; forced text is encoded after them.
        self._taken: list[int] = []

    def accept_token(self, token: int) -> None:
        """Accepts a token. Tokens after the end are ignored. Raises ``ValueError``, which ends the request."""
        if self.matcher.is_terminated():
            return
        self.current_token = token
        try:
            self.matcher.accept(token)
        except TokenError:
            if self._met is not None and self._met[1] == self.matcher.steps:
                # The end was the only allowed token, because there was no mask.
                raise self._met[0] from None
            raise
        self._taken.append(token)

    def rollback(self, k: int) -> None:
        self.matcher.rollback(k)
        del self._taken[len(self._taken) - k :]

    def _meet(self, error: LimitError) -> None:
        logger.error("a request ends: %s", error)
        self._met = error, self.matcher.steps

    def is_terminated(self) -> bool:
        return self.matcher.is_terminated()

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        return _allocate(vocab_size, batch_size)

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        error = fill_or_end(self.matcher, vocab_mask, idx)
        if error is not None:
            self._meet(error)
        ahead([self.matcher])

    @staticmethod
    def fill_vocab_mask_batched(entries: list[GrammarRow], vocab_mask: torch.Tensor) -> None:
        """Fills many rows at once, on our threads, if all of them are ours and not wrapped."""
        if all(isinstance(entry.grammar, Grammar) and fits(entry.grammar.matcher, vocab_mask) for entry in entries):
            try:
                fill_masks([entry.grammar.matcher for entry in entries], vocab_mask, [entry.row for entry in entries])
            except LimitError as error:
                rows = error.rows or {}
                for entry in entries:
                    if entry.row in rows:
                        allow_end(entry.grammar.matcher, vocab_mask, entry.row)
                        entry.grammar._meet(LimitError(rows[entry.row]))
            ahead(entry.grammar.matcher for entry in entries)
            return
        BaseGrammarObject.fill_vocab_mask_batched(entries, vocab_mask)

    @staticmethod
    def reset_vocab_mask(vocab_mask: torch.Tensor) -> None:
        vocab_mask.fill_(-1)

    @staticmethod
    def move_vocab_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
        return vocab_mask.to(device, non_blocking=True)

    @staticmethod
    def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
        apply_mask_inplace(logits, vocab_mask)

    def copy(self) -> Grammar:
        """Returns a request at the beginning of its text, from one that stays in the cache."""
        stats = None if self.grammar_stats is None else GrammarStats(
            compilation_time=self.grammar_stats.compilation_time,
            dispatch_type=self.grammar_stats.dispatch_type,
            is_cache_hit=True,
        )
        return Grammar(self.compiled, self.compiled.matcher(), stats)

    def try_jump_forward(self, tokenizer: Any) -> tuple[list[int], str] | None:
        """Returns what must come next: tokens that complete a character, if the text ends inside one, and the text
        after them. The text ends where the tokenizer would end a token in any case, so a space that belongs to the
        following token is not included."""
        if self.matcher.is_stopped():
            return None
        encode = None if tokenizer is None else lambda text: tokenizer.encode(text, add_special_tokens=False)
        suffix: list[int] = []
        try:
            completes, walker = self.matcher.forced(encode=encode).completes, self.matcher
            if completes:
                found = _spelled(self.matcher.vocabulary, completes)
                if found is None:
                    return None
                suffix, walker = found, self.matcher.fork()
                walker.accept_all(suffix)
            tokens = walker.forced([*self._taken, *suffix], encode=encode).tokens
        except LimitError:
            # Jumping is optional. The next mask reports the limit.
            return None
        text = walker.vocabulary.decode(tokens or []).decode()
        return (suffix, text) if suffix or text else None

    def jump_forward_str_state(self, helper: tuple[list[int], str]) -> tuple[str, int]:
        return helper[1], -1

    def jump_and_retokenize(self, old_output_ids: list[int], new_output_ids: list[int], next_state: int) -> None:
        """Replaces the tokens that differ."""
        same = 0
        while same < min(len(old_output_ids), len(new_output_ids)) and old_output_ids[same] == new_output_ids[same]:
            same += 1
        self.rollback(len(old_output_ids) - same)
        for token in new_output_ids[same:]:
            self.matcher.accept(token)
            self._taken.append(token)


def _spelled(vocabulary: Vocabulary, completes: bytes) -> list[int] | None:
    """Returns tokens for these bytes, which are the end of a character: one token, or one for each byte. ``None`` if
    there are no such tokens."""
    by_bytes = _short_tokens(vocabulary)
    if completes in by_bytes:
        return [by_bytes[completes]]
    tokens = [by_bytes.get(bytes([byte])) for byte in completes]
    return None if None in tokens else [token for token in tokens if token is not None]


@functools.lru_cache(maxsize=4)
def _short_tokens(vocabulary: Vocabulary) -> dict[bytes, int]:
    """Returns the tokens that can be the end of a character."""
    spelled = ((vocabulary.token_bytes(token), token) for token in range(vocabulary.size))
    return {text: token for text, token in spelled if 1 <= len(text) <= 3 and all(byte >= 0x80 for byte in text)}


def _with_schemas(text: str) -> str:
    """Replaces null schemas in a structural tag: SGLang writes null for a tool without parameters, meaning any."""
    try:
        tag = json.loads(text)
    except (ValueError, RecursionError):
        # Compiling reports the error.
        return text
    open_parts = [tag]
    while open_parts:
        part = open_parts.pop()
        if isinstance(part, dict):
            open_parts += part.values()
            if part.get("type") in ("json_schema", "qwen_xml_parameter") and part.get("json_schema") is None:
                part["json_schema"] = {}
        elif isinstance(part, list):
            open_parts += part
    structures = tag.get("structures") if isinstance(tag, dict) else None
    for structure in structures if isinstance(structures, list) else []:
        if isinstance(structure, dict) and structure.get("schema") is None:
            structure["schema"] = {}
    return json.dumps(tag, ensure_ascii=False)


def _allocate(vocab_size: int, batch_size: int) -> torch.Tensor:
    words = (vocab_size + 31) // 32
    return torch.full((batch_size, words), -1, dtype=torch.int32, pin_memory=torch.cuda.is_available())
