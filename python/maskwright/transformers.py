"""Constraints for ``generate`` of Hugging Face transformers.

::

    compiler = mw.Compiler(vocabulary(model, tokenizer))                   # once for each model
    processor = LogitsProcessor(compiler.compile(mw.regex("[0-9]+")))
    model.generate(**inputs, logits_processor=[processor])

The complete program is ``examples/python/transformers_model.py``.

``generate`` passes a processor only the tokens so far and the scores of the next one. The processor finds out
everything else:

* **Where the prompt ends.** At the first call, all tokens are the prompt, including padding on the left. A call with
  another prompt, with only the prompt, or with more than one new token starts over, so a processor can be used again.
  Only a text that was cut off and is passed as a prompt, without any change, continues where it was; ``reset()``
  prevents that.
* **Which constraint a row has.** With several prompts a list has one constraint for each, ``None`` for free text.
  ``generate`` makes the same number of rows for each prompt, one after the other, for beams or for several answers.
* **Which state a row is in.** Beam search exchanges rows between two calls, and assisted generation goes back. So a
  state does not belong to a row but to a *prefix*: the tokens that were written. A row looks for the state of its
  tokens without the last one, forks it if other rows need it, too, and accepts the last token. If there is none, it
  starts from the state with the longest common prefix.

A row that exceeds a limit of the engine (``LimitError``) ends, and the others continue: only the end may come there,
``failures`` has the error by row, and a warning reports it. If no other row is left, the error is raised.

This is for transformers 5. In version 4 the beams of a finished prompt continue with padding, which cannot be
distinguished from a token that overruled the mask, so beam search raises ``TokenError``; prompt lookup does not work
there either.

After the end of a text only the end may come; ``generate`` pads such rows in any case. Beams that were selected for
lack of better ones, with a score of minus infinity, get only that again.
"""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any, Iterable, Sequence

import torch
import transformers

from ._maskwright import CompiledConstraint, Matcher, Vocabulary, check_guidance, fill_masks
from ._rows import allow_end
from .errors import LimitError, TokenError
from .kernels import apply_mask_inplace
from .weighted import Scorers

__all__ = ["LogitsProcessor", "WeightedLogitsProcessor", "vocabulary"]

Tokens = tuple[int, ...]


def vocabulary(model: Any, tokenizer: Any) -> Vocabulary:
    """Returns the vocabulary of a model: the tokens of its tokenizer, as wide as its scores, with the tokens that
    end its generation."""
    config = model.config.get_text_config()
    eos = model.generation_config.eos_token_id
    return Vocabulary.from_tokenizer(tokenizer, eos=tokenizer.eos_token_id if eos is None else eos, size=config.vocab_size)


class LogitsProcessor(transformers.LogitsProcessor):
    """Allows only what the constraints allow.

    ``constraints`` is one constraint for all prompts, or a list with one for each; ``None`` means free text.
    ``stop_tokens`` replace the vocabulary's tokens that end a text. With ``budget`` a text is complete within this many
    tokens, including the end: pass ``max_new_tokens``.

    With ``mass`` the processor records where the constraint contradicts the model: ``masses`` has, for each token of
    the current generation, the logarithm of the model's probability of all allowed tokens, one for each row, and NaN
    for rows without a constraint and after the end. ``torch.stack(masses).nansum(0)`` is the sum. Processors before
    this one count as part of the model.
    """

    # Continuous batching passes rows of many requests without their identity, so a state cannot be found. With this
    # flag, transformers reports that it drops the processor.
    supports_continuous_batching = False

    def __init__(
        self,
        constraints: CompiledConstraint | Sequence[CompiledConstraint | None],
        *,
        stop_tokens: Iterable[int] | None = None,
        budget: int | None = None,
        mass: bool = False,
    ) -> None:
        self._constraints = [constraints] if isinstance(constraints, CompiledConstraint) else list(constraints)
        self._is_one_for_all = isinstance(constraints, CompiledConstraint)
        if not self._constraints:
            raise ValueError("a list of constraints needs one for each prompt, and is empty")
        self._stops = None if stop_tokens is None else list(stop_tokens)
        self._budget = budget
        self._generation: _Generation | None = None
        self._has_mass = mass
        #: With ``mass``, a tensor for each token of the current generation.
        self.masses: list[torch.Tensor] = []
        #: The rows of the current generation that ended at a limit, each with its error. Their texts are not complete.
        self.failures: dict[int, LimitError] = {}
        # Reports invalid arguments here, and not in the middle of a generation.
        for compiled in self._constraints:
            self._start(compiled)

    def reset(self) -> None:
        """Starts over with the next call. This is rarely needed, because another prompt has the same effect."""
        self._generation = None

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        """Returns the scores with minus infinity for tokens that may not come next."""
        if self._generation is None or not self._generation.goes_on(input_ids):
            self._generation = _Generation(self._groups(input_ids), input_ids)
            self.failures = {}
            self.masses = []
        states = self._generation.advance(input_ids)
        over = [row for row in range(scores.shape[0]) if (state := states.get(row)) is None or state.is_over()] if self._has_mass else []
        masked = self._masked(scores, states)
        if self._has_mass:
            self.masses.append(_mass(scores, masked, over))
        failures = {row: state.failure for row, state in states.items() if state is not None and state.failure is not None}
        self._tell(failures, scores.shape[0])
        return masked

    def _tell(self, failures: dict[int, LimitError], rows: int) -> None:
        """Warns about rows that have ended at a limit. Beams exchange rows, so all of them are listed again."""
        new = [row for row in failures if row not in self.failures]
        self.failures = failures
        if new and len(failures) == rows:
            raise failures[new[0]]
        for row in new:
            warnings.warn(f"row {row} ends here, and its text is not complete: {failures[row]}", RuntimeWarning, stacklevel=4)

    def _groups(self, prompts: torch.Tensor) -> list[_Group]:
        """Groups the rows by prompt at the beginning, with their states."""
        rows = prompts.shape[0]
        if self._is_one_for_all:
            # Rows of the same prompt are adjacent.
            ends = [row for row in range(1, rows) if not torch.equal(prompts[row], prompts[row - 1])] + [rows]
            ranges = [range(first, end) for first, end in zip([0, *ends], ends)]
            return [(one, _Prefixes(self._start(self._constraints[0]))) for one in ranges]
        if rows % len(self._constraints) != 0:
            raise ValueError(
                f"there are {len(self._constraints)} constraints and {rows} rows; a list must have one constraint for each prompt"
            )
        size = rows // len(self._constraints)
        starts = map(self._start, self._constraints)
        return [(range(at * size, at * size + size), _Prefixes(start)) for at, start in enumerate(starts) if start]

    def _start(self, compiled: CompiledConstraint | None) -> Matcher | None:
        if compiled is None:
            return None
        return compiled.matcher(stop_tokens=self._stops, budget=self._budget)

    @staticmethod
    def _masked(scores: torch.Tensor, states: dict[int, _State | None]) -> torch.Tensor:
        """Returns a copy of the scores with each state's mask applied to its row."""
        out = scores.clone()
        if states:
            mask = _masks(list(states.values()), pin_memory=scores.is_cuda)
            rows = None if len(states) == scores.shape[0] else list(states)
            apply_mask_inplace(out, mask.to(scores.device, non_blocking=True), rows=rows)
        return out


def _mass(scores: torch.Tensor, masked: torch.Tensor, without: list[int]) -> torch.Tensor:
    """Returns the logarithm of the share that the masked scores have; NaN for the rows in ``without``."""
    mass = torch.logsumexp(masked.float(), -1) - torch.logsumexp(scores.float(), -1)
    mass[without] = float("nan")
    return mass


class _State:
    """A matcher after a text, and the limit that it exceeded there, if any."""

    __slots__ = ("failure", "matcher")

    def __init__(self, matcher: Matcher, failure: LimitError | None = None) -> None:
        self.matcher = matcher
        self.failure = failure

    def fork(self) -> _State:
        return _State(self.matcher.fork(), self.failure)

    def is_over(self) -> bool:
        """Whether only the end can follow."""
        return self.failure is not None or self.matcher.is_terminated()

    def take(self, tokens: Tokens) -> bool:
        """Accepts tokens until the text ends; further tokens are padding."""
        for token in tokens:
            if self.is_over():
                return True
            try:
                if not self.matcher.try_accept(token):
                    return False
            except LimitError as error:
                self.failure = error
        return True


def _masks(states: list[_State | None], pin_memory: bool) -> torch.Tensor:
    """Returns a mask for each state. After the end, and after a limit, only the end is allowed; without a state
    nothing is."""
    words = max((state.matcher.vocabulary.words for state in states if state), default=1)
    mask = torch.zeros(len(states), words, dtype=torch.int32, pin_memory=pin_memory)
    # Rows that share a state share a matcher, and a matcher fills one row at a time.
    first: dict[int, int] = {}
    copies: list[tuple[int, int]] = []
    for row, state in enumerate(states):
        if state is None:
            continue
        if state.is_over():
            allow_end(state.matcher, mask, row)
        elif id(state) in first:
            copies.append((row, first[id(state)]))
        else:
            first[id(state)] = row
    rows = list(first.values())
    try:
        fill_masks([states[row].matcher for row in rows], mask, rows)
    except LimitError as error:
        for row, message in (error.rows or {}).items():
            states[row].failure = LimitError(message)
            allow_end(states[row].matcher, mask, row)
    for row, of in copies:
        mask[row] = mask[of]
    return mask


class _Generation:
    """One call of ``generate``."""

    def __init__(self, groups: list[_Group], prompts: torch.Tensor) -> None:
        self._groups = groups
        self._prompts = prompts.clone()
        self._longest = prompts.shape[1]

    @property
    def prompt(self) -> int:
        """The number of tokens of a prompt, including padding."""
        return self._prompts.shape[1]

    def goes_on(self, input_ids: torch.Tensor) -> bool:
        """Whether these are the rows of a later step: the same prompts, something after them, and at most one new
        token."""
        rows, prompt = self._prompts.shape
        if input_ids.shape[0] != rows or not prompt < input_ids.shape[1] <= self._longest + 1:
            return False
        return torch.equal(input_ids[:, :prompt], self._prompts)

    def advance(self, input_ids: torch.Tensor) -> dict[int, _State | None]:
        """Returns a state for each row that has a constraint, in order; ``None`` if nothing can follow."""
        self._longest = max(self._longest, input_ids.shape[1])
        texts = [tuple(text) for text in input_ids[:, self._prompts.shape[1] :].tolist()]
        found: dict[int, _State | None] = {}
        for rows, prefixes in self._groups:
            found.update(zip(rows, prefixes.advance([texts[row] for row in rows])))
        return found


class _Prefixes:
    """States by the text that was written, for rows that may exchange their texts."""

    def __init__(self, start: Matcher) -> None:
        # This matcher does not change; its forks follow the texts.
        self._start = start
        self._states: dict[Tokens, _State] = {}

    def advance(self, texts: list[Tokens]) -> list[_State | None]:
        """Returns the state after each text. Equal texts share a state; it is ``None`` if the constraint does not
        allow the text."""
        states: dict[Tokens, _State | None] = {}
        wanted = Counter(text[:-1] for text in set(texts))
        for text in texts:
            if text not in states:
                before = text[:-1]
                wanted[before] -= 1
                states[text] = self._behind(text, is_last=wanted[before] == 0)
        alive = {text: state for text, state in states.items() if state is not None}
        if not alive:
            raise TokenError(
                "the last tokens are not allowed by the constraint, in any row of a prompt; another processor, or a forced token, has overruled it"
            )
        self._states = alive
        return [states[text] for text in texts]

    def _behind(self, text: Tokens, is_last: bool) -> _State | None:
        if text in self._states:
            # A repeated query for the same text.
            return self._states[text]
        if not text:
            return _State(self._start.fork())
        before = self._states.get(text[:-1])
        if before is not None:
            # PERF: nearly always this is the only row that continues from there.
            state = before if is_last else before.fork()
            return state if state.take(text[-1:]) else None
        return self._replay(text)

    def _replay(self, text: Tokens) -> _State | None:
        """Starts from the state with the longest common prefix, and moves back and forward."""
        nearest, common = (), 0
        for known in self._states:
            shared = _common(known, text)
            if shared > common:
                nearest, common = known, shared
        if common == 0:
            matcher = self._start.fork()
        else:
            matcher = self._states[nearest].matcher.fork()
            # After the end, and after a limit, tokens were ignored and not accepted.
            matcher.rollback(max(0, matcher.steps - common))
            common = min(common, matcher.steps)
        state = _State(matcher)
        return state if state.take(text[common:]) else None


# The rows of a prompt, and the states of the texts in them.
_Group = tuple[range, _Prefixes]


def _common(one: Tokens, other: Tokens) -> int:
    """Returns the length of the longest common prefix."""
    for at, (left, right) in enumerate(zip(one, other)):
        if left != right:
            return at
    return min(len(one), len(other))


class WeightedLogitsProcessor(LogitsProcessor):
    """Allows only what the constraints allow, and adds the weights of weighted grammars to the scores: ``lambda_`` ·
    log P(token | text so far).

    Only the ``top_k`` best allowed tokens of a row are scored, and all others are dropped; with 0 all are scored, which
    is slow. Constraints without probabilities, and free text, are not changed. The other arguments are those of
    :class:`LogitsProcessor`.
    """

    def __init__(
        self,
        constraints: CompiledConstraint | Sequence[CompiledConstraint | None],
        *,
        lambda_: float = 1.0,
        top_k: int = 64,
        **options: Any,
    ) -> None:
        super().__init__(constraints, **options)
        check_guidance(lambda_, top_k)
        self._lambda, self._top_k = lambda_, top_k
        self._scorers = [None if one is None or one.pcfg is None else Scorers(one, self._stops) for one in self._constraints]

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        """Returns the scores, with minus infinity for tokens that may not come next or are not among the best, and
        with the grammar's weights added to the others."""
        masked = super().__call__(input_ids, scores)
        if self._lambda == 0.0:
            return masked
        prompt = self._generation.prompt
        group = input_ids.shape[0] // len(self._scorers)
        for scorers in filter(None, self._scorers):
            scorers.begin_step()
        for row, text in enumerate(input_ids[:, prompt:].tolist()):
            scorers = self._scorers[0 if self._is_one_for_all else row // group]
            if scorers is not None and row not in self.failures:
                self._weigh(masked[row], scorers, tuple(text))
        return masked

    def _weigh(self, row: torch.Tensor, scorers: Scorers, text: Tokens) -> None:
        allowed = torch.isfinite(row).nonzero().squeeze(-1)
        if self._top_k and len(allowed) > self._top_k:
            allowed = allowed[torch.topk(row[allowed], self._top_k).indices]
        # A row in which nothing may come has a text that the grammar does not know.
        found = scorers.scores(text, allowed.tolist()) if len(allowed) else None
        if found is None:
            return
        weighed = row[allowed] + self._lambda * torch.tensor(found, dtype=row.dtype, device=row.device)
        row.fill_(-torch.inf)
        row[allowed] = weighed
