from .base_grammar_backend import BaseGrammarBackend, BaseGrammarObject, InvalidGrammarObject


class ReasonerGrammarObject(BaseGrammarObject):
    """A grammar that waits for some tokens."""

    def __init__(self, grammar, backend, end, reasoning):
        super().__init__()
        self.grammar, self.backend, self.end = grammar, backend, list(end)
        self.is_thinking_first = reasoning
        self.seen = []

    def _begun(self):
        """How many tokens the grammar has got, or None while there is thinking."""
        if not self.is_thinking_first:
            return len(self.seen)
        for at in range(len(self.end), len(self.seen) + 1):
            if self.seen[at - len(self.end) : at] == self.end:
                return len(self.seen) - at
        return None

    def accept_token(self, token):
        if self.grammar is not None and self._begun() is not None:
            self.grammar.accept_token(token)
        self.seen.append(token)

    def rollback(self, k):
        self.grammar.rollback(min(k, self._begun() or 0))
        del self.seen[len(self.seen) - k :]

    def is_terminated(self):
        return self._begun() is not None and self.grammar.is_terminated()

    def fill_vocab_mask(self, mask, idx):
        if self.grammar is not None and self._begun() is not None:
            self.grammar.fill_vocab_mask(mask, idx)

    def allocate_vocab_mask(self, vocab_size, batch_size, device):
        return (self.grammar or self.backend).allocate_vocab_mask(vocab_size, batch_size, device)

    def move_vocab_mask(self, mask, device):
        return (self.grammar or self.backend).move_vocab_mask(mask, device)

    @property
    def apply_vocab_mask(self):
        return (self.grammar or self.backend).apply_vocab_mask

    def copy(self):
        return ReasonerGrammarObject(self.grammar.copy(), self.backend, self.end, self.is_thinking_first)


class ReasonerGrammarBackend(BaseGrammarBackend):
    def __init__(self, grammar_backend, reasoning_parser, tokenizer, enable_strict_thinking=False):
        super().__init__()
        self.grammar_backend = grammar_backend
        self.think_end_ids = reasoning_parser.detector.get_think_end_token_ids(tokenizer)

    def _make_grammar_object(self, grammar, reasoning):
        return ReasonerGrammarObject(grammar, self.grammar_backend, self.think_end_ids, reasoning)

    def _init_value_dispatch(self, key, reasoning):
        made = self.grammar_backend._init_value_dispatch(key, reasoning)
        return made if isinstance(made, InvalidGrammarObject) else self._make_grammar_object(made, reasoning)
