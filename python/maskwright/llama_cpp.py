"""A logits processor for llama-cpp-python.

::

    import maskwright as mw
    from llama_cpp import Llama, LogitsProcessorList
    from maskwright.llama_cpp import LogitsProcessor

    model = Llama("model.gguf")
    compiler = mw.Compiler(mw.Vocabulary.from_tokenizer(model))
    wanted = compiler.compile(mw.json_schema({"type": "object"}))
    model("Describe a cat.", logits_processor=LogitsProcessorList([LogitsProcessor(wanted, budget=200)]), max_tokens=200)

It imports nothing of llama-cpp-python. It is called with all tokens so far, beginning with the prompt, and the scores
of the next token, both in arrays of NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ._maskwright import CompiledConstraint, apply_mask
from ._row import Row

__all__ = ["LogitsProcessor"]


class LogitsProcessor:
    """Restricts what a model writes to a constraint. With ``budget``, the text is complete within this many tokens. It
    can be used for one text after the other.

    With ``mass``, ``masses`` has for each token of the current text the logarithm of the model's probability of all
    allowed tokens. Where it is low, the constraint contradicts the model.
    """

    def __init__(self, constraint: CompiledConstraint, *, stop_tokens: Sequence[int] | None = None, budget: int | None = None, mass: bool = False) -> None:
        self._row = Row(constraint, stop_tokens=stop_tokens, budget=budget)
        self._words = constraint.vocabulary.words
        self._has_mass = mass
        #: With ``mass``, a number for each token of the current text.
        self.masses: list[float] = []

    def __call__(self, input_ids: NDArray[np.intc], scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """Returns the scores with −∞ for forbidden tokens."""
        count = len(input_ids)
        matcher = self._row.at(count, [int(token) for token in input_ids[count - self._row.new(count) :]])
        if matcher.is_terminated():
            return scores
        mask = np.empty(self._words, dtype=np.int32)
        matcher.fill_mask(mask)
        masked = np.array(scores, dtype=np.float32, copy=True)
        apply_mask(masked, mask)
        if self._has_mass:
            if matcher.steps == 0:
                self.masses = []
            self.masses.append(_log_sum(masked) - _log_sum(np.asarray(scores, dtype=np.float32)))
        return masked


def _log_sum(scores: NDArray[np.float32]) -> float:
    """Returns the logarithm of the sum of the exponentials."""
    most = scores.max()
    return float(most + np.log(np.exp((scores - most).astype(np.float64)).sum())) if np.isfinite(most) else float(most)
