"""Scores of weighted grammars for engines that repeatedly pass all tokens of a text.

>>> import maskwright as mw
>>> vocabulary = mw.Vocabulary.from_tokens([b"tea", b"coffee", b"<end>"], eos=2)
>>> compiled = mw.Compiler(vocabulary).compile(mw.pcfg("S -> tea [0.75] | coffee [0.25]"))
>>> scorers = Scorers(compiled)
>>> [round(2.718281828 ** score, 3) for score in scorers.scores((), [0, 1])]
[0.75, 0.25]
>>> scorers.scores((0,), [2])                               # nothing but the end can follow
[0.0]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ._maskwright import CompiledConstraint, Scorer

__all__ = ["Scorers"]

Tokens = tuple[int, ...]


class Scorers:
    """Scorers by the text that was written, for rows that may exchange their texts. ``ends`` are the tokens that end
    a text, if they differ from the vocabulary's."""

    def __init__(self, compiled: CompiledConstraint, ends: Iterable[int] | None = None) -> None:
        self._start = compiled.scorer()
        self._ends = frozenset(compiled.vocabulary.eos if ends is None else ends)
        self._last: dict[Tokens, Scorer] = {}
        self._now: dict[Tokens, Scorer] = {}

    def begin_step(self) -> None:
        """Begins a step, in which texts have one more token. Scorers that are not used until the next step are
        dropped."""
        self._last, self._now = self._now, {}

    def scores(self, text: Tokens, tokens: Sequence[int]) -> list[float] | None:
        """Returns log P(token | text) for each token; ``None`` after the end of a text."""
        if not self._ends.isdisjoint(text):
            return None
        scorer = self._behind(text)
        end = scorer.logprob - scorer.prefix_logprob
        return [end if token in self._ends else score for token, score in zip(tokens, scorer.scores(tokens))]

    def _behind(self, text: Tokens) -> Scorer:
        if text in self._now:
            return self._now[text]
        before, rest = self._start, text
        for known, scorer in (*self._last.items(), *self._now.items()):
            if text[: len(known)] == known and len(text) - len(known) < len(rest):
                before, rest = scorer, text[len(known) :]
        scorer = before.fork()
        for token in rest:
            scorer.accept(token)
        self._now[text] = scorer
        return scorer
