from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

from ..runtime_context import get_exec

GRAMMAR_BACKEND_REGISTRY = {}


@dataclass
class GrammarStats:
    compilation_time: float | None = None
    schema_count: int | None = None
    ebnf_size: int | None = None
    is_cache_hit: bool = False
    is_grammar_aborted: bool = False
    tree_traversal_time: list = field(default_factory=list)
    dispatch_type: str | None = None
    num_timeout: int = 0


class GrammarRow(NamedTuple):
    row: int
    grammar: object


class BaseGrammarObject:
    def __init__(self):
        self.finished = False
        self.grammar_stats = None
        self.current_token = None

    def maybe_init_reasoning(self, reasoning):
        pass

    @staticmethod
    def fill_vocab_mask_batched(entries, vocab_mask):
        for entry in entries:
            entry.grammar.fill_vocab_mask(vocab_mask, entry.row)

    def copy(self):
        return self


class InvalidGrammarObject(BaseGrammarObject):
    def __init__(self, error_message="unknown"):
        super().__init__()
        self.error_message = error_message


class BaseGrammarBackend:
    def __init__(self):
        self.executor = ThreadPoolExecutor(2)
        self.cache = {}

    def _init_value_dispatch(self, key, require_reasoning):
        kind, text = key
        if "\0" in text:
            return InvalidGrammarObject("NUL bytes are not allowed")
        kind = "ebnf" if kind == "full_assistant_ebnf" else kind
        return getattr(self, f"dispatch_{kind}")(text)

    def get_cached_or_future_value(self, key, require_reasoning):
        if key in self.cache:
            copy = self.cache[key].copy()
            copy.maybe_init_reasoning(require_reasoning)
            return copy, True
        return self.executor.submit(self._init_value_dispatch, key, require_reasoning), False

    def set_cache(self, key, value):
        self.cache[key] = value

    def reset(self):
        self.cache.clear()


def register_grammar_backend(name, init_func):
    GRAMMAR_BACKEND_REGISTRY[name] = init_func


def create_grammar_backend(server_args, tokenizer, vocab_size, eos_token_ids=None, think_end_ids=None):
    return GRAMMAR_BACKEND_REGISTRY[get_exec().kernel.grammar_backend](server_args, tokenizer, vocab_size, eos_token_ids)
