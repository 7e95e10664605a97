"""Follows one text in engines that repeatedly call a function with all tokens and give no other information."""

from __future__ import annotations

from collections.abc import Sequence

from ._maskwright import CompiledConstraint, Matcher

__all__ = ["Row"]


class Row:
    """Follows a text by its tokens: those of the first call are the prompt, and tokens that are added later were
    written. A call with fewer tokens, or equally many, begins another text."""

    def __init__(self, constraint: CompiledConstraint, *, stop_tokens: Sequence[int] | None = None, budget: int | None = None) -> None:
        self._constraint, self._stops, self._budget = constraint, stop_tokens, budget
        self._matcher: Matcher | None = None
        self._seen = 0

    def at(self, count: int, added: Sequence[int]) -> Matcher:
        """Returns the matcher for a text of ``count`` tokens that ends with ``added``. Raises ``TokenError`` if one
        of them was not allowed, because something after the mask has overruled it."""
        if self._matcher is None or count <= self._seen:
            self._matcher = self._constraint.matcher(stop_tokens=self._stops, budget=self._budget)
        else:
            for token in added[len(added) - (count - self._seen) :]:
                if not self._matcher.is_terminated():
                    self._matcher.accept(token)
        self._seen = count
        return self._matcher

    def new(self, count: int) -> int:
        """Returns how many tokens of a text are new."""
        return 0 if self._matcher is None or count <= self._seen else count - self._seen
