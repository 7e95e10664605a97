"""The older interface of llguidance: computing masks and committing tokens."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ._matcher import LLMatcher, at_address, forced
from ._tokenizer import LLTokenizer


class LLInterpreter:
    """The state of one text. Forced tokens are returned together with the token before them."""

    def __init__(
        self,
        tokenizer: LLTokenizer,
        grammar: str,
        enable_backtrack: bool = True,
        enable_ff_tokens: bool = True,
        log_level: int = 1,
        limits: Any = None,
    ) -> None:
        self._inner = LLMatcher(tokenizer, grammar)
        if self._inner.is_error():
            raise ValueError(self._inner.get_error())
        self._tokenizer, self._jumps = tokenizer, enable_ff_tokens
        self._prompt: list[int] = []
        self.log_level = log_level

    def deep_copy(self) -> LLInterpreter:
        """Returns an independent interpreter in the same state."""
        made = LLInterpreter.__new__(LLInterpreter)
        made.__dict__.update(self.__dict__)
        made._inner, made._prompt = self._inner.deep_copy(), list(self._prompt)
        return made

    def start_without_prompt(self) -> None:
        """Starts without a prompt."""

    def process_prompt(self, prompt: Sequence[int]) -> list[int]:
        """Returns the prompt, followed by the tokens that must come next."""
        self._prompt = list(prompt)
        return self._prompt + self._jump()

    def is_accepting(self) -> bool:
        """Whether the text is complete."""
        return self._inner.is_accepting()

    def has_pending_stop(self) -> bool:
        """Whether nothing can follow."""
        return self._inner.is_stopped()

    def stop_reason(self) -> str:
        """Returns the reason why nothing can follow."""
        return self._inner.stop_reason()

    def validate_tokens_raw(self, tokens: Sequence[int]) -> int:
        """Returns how many of these tokens could be accepted one after the other."""
        return self._inner.validate_tokens(tokens)

    def compute_mask(self) -> tuple[bytes | None, str]:
        """Returns the mask, one byte for each token, and whether to stop."""
        stopped = self.has_pending_stop()
        return (None if stopped else self._inner.compute_logit_bias()), _told(stopped)

    def compute_mask_into(self, trg: bytearray) -> str:
        """Writes the mask, one bit for each token."""
        self._inner._fill(trg)
        return _told(self.has_pending_stop())

    def unsafe_compute_mask_ptr(self, trg_ptr: int, trg_bytes: int) -> str:
        """Writes the mask to an address."""
        self._inner._fill(at_address(trg_ptr, trg_bytes))
        return _told(self.has_pending_stop())

    def commit_token(self, sampled_token: int | None) -> tuple[int, list[int]]:
        """Accepts a token. Returns the number of tokens to remove, always 0, and the tokens to append: this one and
        those that must follow."""
        if sampled_token is None:
            if not self.has_pending_stop():
                raise ValueError("sampled_token is required when mask was present")
            return 0, []
        if not self._inner.consume_token(sampled_token):
            raise ValueError(self._inner.get_error())
        return 0, [sampled_token, *self._jump()]

    def _jump(self) -> list[int]:
        inner = self._inner
        if not self._jumps or inner._matcher is None or inner.is_stopped():
            return []
        ahead = forced(inner._matcher, self._tokenizer, self._prompt + inner._tokens)
        inner.consume_tokens(ahead)
        return ahead


def _told(stopped: bool) -> str:
    return json.dumps({"progress": [], "stop": stopped, "temperature": 0.0})
