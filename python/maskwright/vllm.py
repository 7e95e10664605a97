"""A structured-output backend for vLLM (0.32).

If the package is installed next to vLLM, it registers as a general plug-in, which vLLM calls in every process that it
starts. The plug-in does nothing unless it is enabled:

::

    MASKWRIGHT_VLLM=1 vllm serve MODEL             # or VLLM_PLUGINS=maskwright

All structured outputs of that server are then ours: ``structured_outputs`` and ``response_format`` of requests, tools
with structural tags, and ``SamplingParams.structured_outputs`` in programs. In a program, ``maskwright.vllm.install()``
before the first request has the same effect.

vLLM cannot be extended with further backends, so seven of its methods are replaced:

==============================================  ======================================================================
``SamplingParams._validate_structured_outputs``  in the server: a request is read by us, and refused with our message
``StructuredOutputManager.grammar_init``         in the engine: the first structured request makes our backend
``StructuredOutputManager._create_grammar``      in the engine: options of a single request reach us
``StructuredOutputManager.grammar_bitmask``      in the engine: the rows of a step are filled together
``StructuredOutputManager.validate_tokens``      in the engine: drafts go on with what must come next
``…._init_beam_search_structured_output``        in a program: ``LLM.beam_search`` gets our backend, and beams are forks
``…Request.to_beam_search_params``              in the server: beams are refused for requests with a structure, which vLLM drops
==============================================  ======================================================================

Everything else is vLLM's: the threads that compile, the buffer of masks and its use, speculation, reasoning. A backend
that is set in ``--structured-outputs-config`` has no effect.

In ``grammar_bitmask`` vLLM still decides which row belongs to which request and which draft; we only record the rows
that it requests. Then one call on our threads fills the rows of all requests without drafts, and for each request with
drafts one call fills its whole chain.

With speculation by ``ngram`` or ``suffix``, forced text is written by drafts: if the engine has fewer drafts than
allowed, the tokenizer's tokens for the text that must come next are added. These methods propose without probabilities,
so no proposal changes the model's distribution. Other methods have probabilities for their drafts, so nothing is added
there.

Environment variables of the server:

``MASKWRIGHT_CACHE=FOLDER``   what was compiled is kept there, and is ready after a restart
``MASKWRIGHT_AHEAD=1``        idle workers compute masks ahead while the model thinks, and ``0`` that they do not; without it they do where there are four cores or more
``PROMETHEUS_MULTIPROC_DIR``  vLLM's own: with it our numbers stand in ``/metrics``, too
``MASKWRIGHT_FINISH=1``       ``max_tokens`` of a request is a budget: what is written is complete before they are spent. A request for which they are too few fails. A schema may say
                              so for itself: ``"x-maskwright": {"finish": true}``

White space in JSON is tidy unless the request or the server says otherwise: nothing, a space, or a line break with an
indentation. A schema can change it: ``"x-maskwright": {"whitespace": "flexible", "key_order": "any"}``.

What is different for users: a constraint that cannot be enforced is refused with status 400 and the place in the
schema, and not ignored; a grammar may be EBNF, GBNF or Lark; ``whitespace_pattern``, ``disable_any_whitespace`` and
``disable_additional_properties`` work for single requests.

If a mask or token of a request exceeds a limit of the engine (``LimitError``), only that request ends: the error is
logged, its row of the batch allows only the end, and the token is reported to vLLM as refused, which ends the request
with an error. If the text is complete there, it ends normally.
"""

from __future__ import annotations

import functools
import logging
import sys
import threading
import weakref
from concurrent.futures import Future
from typing import Any

import torch
from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import SamplingParams, StructuredOutputsParams
from vllm.v1.structured_output import StructuredOutputManager
from vllm.v1.structured_output.backend_types import (
    StructuredOutputBackend,
    StructuredOutputGrammar,
    StructuredOutputOptions,
)
from vllm.v1.structured_output.request import get_structured_output_key

from ._ahead import ahead, compiler
from ._cache import opened
from ._maskwright import Constraint, Matcher, Vocabulary, fill_masks
from ._metrics import exporter
from ._plugins import asked
from ._requests import JsonOptions, constraint, own_options
from ._rows import allow_end, fill_or_end, fits
from ._warnings import Warned
from .errors import BudgetError, CompileTimeout, Error, LimitError

__all__ = ["Backend", "BeamBackend", "BeamGrammar", "Grammar", "install"]

# A child of vLLM's logger, so that its messages are printed like vLLM's.
logger = logging.getLogger("vllm.maskwright")

_KINDS = {
    StructuredOutputOptions.JSON: "json_schema",
    StructuredOutputOptions.JSON_OBJECT: "json_object",
    StructuredOutputOptions.REGEX: "regex",
    StructuredOutputOptions.GRAMMAR: "grammar",
    StructuredOutputOptions.CHOICE: "choice",
    StructuredOutputOptions.STRUCTURAL_TAG: "structural_tag",
}


def install() -> None:
    """Makes maskwright the backend of all structured outputs in this process. A second call has no effect."""
    if getattr(StructuredOutputManager, "_maskwright_is_installed", False):
        return
    StructuredOutputManager._maskwright_is_installed = True
    # N.B. Closures keep the originals, so that another plug-in that wraps these methods, before or after us, is called
    # as well.
    grammar_init = StructuredOutputManager.grammar_init
    create_grammar = StructuredOutputManager._create_grammar
    grammar_bitmask = StructuredOutputManager.grammar_bitmask

    @functools.wraps(grammar_init)
    def our_grammar_init(self: StructuredOutputManager, request: Any) -> None:
        if request.structured_output_request is not None and self.backend is None:
            vocab_size = self.vllm_config.model_config.get_vocab_size()
            try:
                self.backend = Backend(self.vllm_config, tokenizer=self.tokenizer, vocab_size=vocab_size)
            except Exception as error:
                # The tokenizer cannot be read. The engine must keep running for requests without a structure; this
                # request fails as if it could not be compiled.
                logger.exception("maskwright cannot be the backend of this model")
                failed: Future[StructuredOutputGrammar] = Future()
                failed.set_exception(error)
                request.structured_output_request.grammar = failed
                return
        grammar_init(self, request)

    @functools.wraps(create_grammar)
    def our_create_grammar(self: StructuredOutputManager, request: Any) -> StructuredOutputGrammar:
        if not isinstance(self.backend, Backend):
            return create_grammar(self, request)
        try:
            return self.backend.compile_request(request)
        except Exception as error:
            # The front end in Rust does not validate, and tells its client only that something failed.
            logger.error("request %s fails: %s", request.request_id, error)
            raise

    @functools.wraps(grammar_bitmask)
    def our_grammar_bitmask(
        self: StructuredOutputManager, requests: Any, structured_output_request_ids: Any, scheduled_spec_decode_tokens: Any
    ) -> Any:
        given = (requests, structured_output_request_ids, scheduled_spec_decode_tokens)
        if not isinstance(self.backend, Backend):
            return grammar_bitmask(self, *given)
        for name in structured_output_request_ids:
            _hold_to_budget(requests[name])
        step = self.backend.step = _Step()
        try:
            rows = grammar_bitmask(self, *given)
        finally:
            self.backend.step = None
        # The rows are a view of the buffer, which is filled now.
        step.fill()
        step.work_ahead()
        if self.backend.exporter is not None:
            self.backend.exporter.export()
        return rows

    StructuredOutputManager.grammar_init = our_grammar_init
    StructuredOutputManager.grammar_bitmask = our_grammar_bitmask
    StructuredOutputManager._create_grammar = our_create_grammar
    _replace_drafts()
    _replace_beams()
    _refuse_beams_over_http()
    _replace_validation()


def _replace_drafts() -> None:
    validate_tokens = StructuredOutputManager.validate_tokens

    @functools.wraps(validate_tokens)
    def our_validate_tokens(self: StructuredOutputManager, request: Any, spec_tokens: list[int]) -> list[int]:
        drafts = validate_tokens(self, request, spec_tokens)
        if not isinstance(self.backend, Backend) or not self.backend.drafts or not request.use_structured_output:
            return drafts
        # Reasoning is unconstrained, and no grammar knows what comes next there.
        if self._get_constraint_bounds(request, ())[0] != 0:
            return drafts
        return self.backend.with_forced(request.structured_output_request.grammar, drafts)

    StructuredOutputManager.validate_tokens = our_validate_tokens


def _replace_beams() -> None:
    try:
        from vllm.entrypoints.generate.beam_search.offline import BeamSearchOfflineMixin as Beams
    except ImportError:
        # A version with this function elsewhere uses its own backend for beams.
        logger.warning("this version of vLLM has its beams elsewhere; LLM.beam_search is not ours")
        return
    init = Beams._init_beam_search_structured_output

    @functools.wraps(init)
    def our_init(self: Any, structured_outputs: StructuredOutputsParams, tokenizer: Any) -> Any:
        config = self.llm_engine.vllm_config
        if config.structured_outputs_config is None:
            return init(self, structured_outputs, tokenizer)
        backend = BeamBackend(config, tokenizer, self.model_config.get_vocab_size(), structured_outputs)
        return backend, get_structured_output_key(structured_outputs), backend.allocate_token_bitmask(1)

    Beams._init_beam_search_structured_output = our_init


#: The request classes for beam search over HTTP. Only a serving process has imported these modules before plug-ins are
#: loaded; others need not import them.
_BEAM_REQUESTS = {
    "vllm.entrypoints.openai.chat_completion.protocol": "ChatCompletionRequest",
    "vllm.entrypoints.openai.completion.protocol": "CompletionRequest",
}


def _refuse_beams_over_http() -> None:
    for module, name in _BEAM_REQUESTS.items():
        request = getattr(sys.modules.get(module), name, None)
        if hasattr(request, "to_beam_search_params") and hasattr(request, "extract_structured_outputs"):
            request.to_beam_search_params = _without_a_structure(request.to_beam_search_params)


def _without_a_structure(to_beam_search_params: Any) -> Any:
    @functools.wraps(to_beam_search_params)
    def ours(self: Any, *given: Any, **named: Any) -> Any:
        if self.extract_structured_outputs() is not None:
            message = "structured output: over HTTP, vLLM searches by beams without the structure; leave out `use_beam_search`, or call LLM.beam_search in a program"
            raise VLLMValidationError(message)
        return to_beam_search_params(self, *given, **named)

    return ours


def _replace_validation() -> None:
    validate = SamplingParams._validate_structured_outputs

    @functools.wraps(validate)
    def our_validate(self: SamplingParams, model_config: Any, config: Any, tokenizer: Any) -> None:
        params = self.structured_outputs
        if config is None or params is None or tokenizer is None or model_config.is_diffusion:
            # There is nothing to validate, or vLLM itself refuses it with its own message.
            validate(self, model_config, config, tokenizer)
            return
        if params._backend is None:
            params._backend = config.backend
        _check(params, config, tokenizer)

    SamplingParams._validate_structured_outputs = our_validate


class Backend(StructuredOutputBackend):
    """The backend of an engine: the vocabulary of its model, and a compiler."""

    def __init__(self, vllm_config: Any, tokenizer: Any, vocab_size: int) -> None:
        super().__init__(vllm_config, tokenizer, vocab_size)
        self.compiler = compiler(Vocabulary.from_tokenizer(tokenizer, size=vocab_size))
        self.cache_file = opened(self.compiler)
        self.exporter = exporter(self.compiler)
        self._warned = Warned(logger)
        self.step: _Step | None = None
        self.drafts = _forced_drafts(vllm_config)
        self._finishes = asked("MASKWRIGHT_FINISH", False)

    def compile_grammar(
        self,
        request_type: StructuredOutputOptions,
        grammar_spec: str,
        stop_token_ids: set[int] | None = None,
    ) -> Grammar:
        """Compiles a request with only the options of the server."""
        options = _json_options(self.vllm_config.structured_outputs_config, None)
        return self._compile(constraint(_KINDS[request_type], grammar_spec, options, finishes=True), stop_token_ids)

    def compile_request(self, request: Any) -> Grammar:
        """Compiles a request with its own options."""
        params = request.structured_output_request.params
        wanted = _constraint(params, self.vllm_config.structured_outputs_config)
        sampling = request.sampling_params
        stops = None if sampling is None else sampling.all_stop_token_ids
        return self._compile(wanted, stops, self._budget(wanted, sampling))

    def _budget(self, wanted: Constraint, sampling: Any) -> int | None:
        own = own_options(str(wanted.source)) if wanted.kind == "json_schema" else {}
        if sampling is None or sampling.max_tokens is None or not own.get("finish", self._finishes):
            return None
        return int(sampling.max_tokens)

    def _compile(self, wanted: Constraint, stop_token_ids: set[int] | None, budget: int | None = None) -> Grammar:
        # An empty set means that no token ends the output of the request. The text must still be able to end, so the
        # defaults apply.
        stops = sorted(stop_token_ids) if stop_token_ids else None
        try:
            compiled = self.compiler.compile(wanted)
        except CompileTimeout as error:
            # vLLM interprets a TimeoutError as "not yet", and would ask again forever.
            raise LimitError(str(error)) from error
        self._warned.tell(wanted, compiled)
        grammar = Grammar(compiled.matcher(stop_tokens=stops, budget=budget), self, budget)
        if self.cache_file is not None:
            self.cache_file.save_soon()
        return grammar

    def with_forced(self, grammar: Any, drafts: list[int]) -> list[int]:
        """Returns the drafts of a request, followed by the tokens that must come next, as far as there is room."""
        room = self.drafts - len(drafts)
        if room <= 0 or not isinstance(grammar, Grammar) or grammar.matcher.is_terminated():
            return drafts
        walker = grammar.matcher.fork()
        try:
            if walker.validate(drafts) < len(drafts):
                return drafts
            walker.accept_all(drafts)
            if walker.is_stopped():
                return drafts
            forced = walker.forced([*grammar.taken, *drafts], encode=self._encode)
            tokens = forced.tokens or []
            if not tokens and not forced.completes:
                # If the model did not split the text as the tokenizer would, no further token is certain. But drafts
                # need not be certain: use the tokens of the forced text alone, without the last one, which may be
                # longer.
                tokens = self._encode(forced.text)[:-1]
                tokens = tokens[: walker.validate(tokens)]
        except LimitError:
            # Drafts are optional.
            return drafts
        return [*drafts, *tokens[:room]]

    def _encode(self, text: str) -> list[int]:
        tokens: list[int] = self.tokenizer.encode(text, add_special_tokens=False)
        return tokens

    def allocate_token_bitmask(self, max_num_seqs: int) -> torch.Tensor:
        """Allocates rows as wide as the model, exactly like the buffers of the workers."""
        words = (self.vocab_size + 31) // 32
        return torch.full((max_num_seqs, words), -1, dtype=torch.int32, pin_memory=torch.cuda.is_available())

    def destroy(self) -> None:
        """Saves what was learnt. Everything else is freed with the last reference."""
        if self.cache_file is not None:
            self.cache_file.save()


class Grammar(StructuredOutputGrammar):
    """One request: a matcher with the interface of vLLM."""

    def __init__(self, matcher: Matcher, backend: Backend | None = None, budget: int | None = None) -> None:
        self.matcher = matcher
        self.budget = budget
        # The accepted tokens; forced text is encoded after them.
        self.taken: list[int] = []
        self._backend = backend

    @property
    def _step(self) -> _Step | None:
        return None if self._backend is None else self._backend.step

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        """Accepts all of the tokens, or none. Tokens after the end are ignored."""
        step = self._step
        for taken, token in enumerate(tokens):
            if self.matcher.is_terminated():
                return True
            if not self._takes(request_id, token):
                self.rollback(taken)
                if step is not None:
                    step.refused(self)
                return False
        if step is not None:
            step.accepted(self, tokens)
        return True

    def _takes(self, request_id: str, token: int) -> bool:
        try:
            is_taken = self.matcher.try_accept(token)
            if is_taken:
                self.taken.append(token)
            return is_taken
        except LimitError as error:
            logger.error("request %s ends: %s", request_id, error)
            return False

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        """Returns the tokens up to the first one that is not allowed, or for which that is unknown."""
        try:
            return tokens[: self.matcher.validate(tokens)]
        except LimitError:
            # Drafts are optional. Without them, only a token that was really written can exceed the limit.
            return []

    def rollback(self, num_tokens: int) -> None:
        self.matcher.rollback(num_tokens)
        del self.taken[len(self.taken) - num_tokens :]

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        step = self._step
        if step is not None:
            step.wanted(self, bitmask, batch_index)
            return
        _log(fill_or_end(self.matcher, bitmask, batch_index))

    def is_terminated(self) -> bool:
        return self.matcher.is_terminated()

    def reset(self) -> None:
        self.matcher.reset()
        self.taken.clear()


class BeamBackend(Backend):
    """The backend of one beam search. vLLM requests a grammar for each beam in each step, and passes it all tokens
    of the beam. Here that grammar is a fork of the parent beam, which accepts one token."""

    def __init__(self, vllm_config: Any, tokenizer: Any, vocab_size: int, params: StructuredOutputsParams) -> None:
        super().__init__(vllm_config, tokenizer, vocab_size)
        wanted = _constraint(params, vllm_config.structured_outputs_config, finishes=False)
        compiled = self.compiler.compile(wanted)
        self._warned.tell(wanted, compiled)
        self._start = compiled.matcher()
        # The matchers of this step and of the previous one, by the tokens that their beams have written.
        self._known: dict[tuple[int, ...], Matcher] = {}

    def compile_grammar(
        self,
        request_type: StructuredOutputOptions,
        grammar_spec: str,
        stop_token_ids: set[int] | None = None,
    ) -> BeamGrammar:
        """Returns a beam that has written nothing. The constraint was given when the search began."""
        return BeamGrammar(self, self._start)

    def behind(self, tokens: tuple[int, ...]) -> Matcher:
        """Returns the matcher of a beam that has written these tokens."""
        if tokens in self._known:
            return self._known[tokens]
        parent = self._known.get(tokens[:-1])
        matcher = (parent or self._start).fork()
        for token in tokens[-1:] if parent is not None else tokens:
            if not matcher.is_terminated():
                matcher.accept(token)
        self._known = {known: kept for known, kept in self._known.items() if len(known) >= len(tokens) - 1}
        self._known[tokens] = matcher
        return matcher


class BeamGrammar(Grammar):
    """One beam in one step."""

    def __init__(self, backend: BeamBackend, matcher: Matcher) -> None:
        super().__init__(matcher)
        self._beams = backend

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        """Moves to the state of a beam. vLLM ignores the result, so a token that is not allowed raises
        ``TokenError``."""
        self.matcher = self._beams.behind(tuple(tokens))
        return True


class _Step:
    """The rows that vLLM requests in one step, and the drafts between them. vLLM walks the drafts of a request,
    requests a row after each, and rolls back; all of it is recorded, and filled at the end. vLLM may use several
    threads, each for its own requests."""

    def __init__(self) -> None:
        self._chains: dict[Grammar, _Chain] = {}
        self._lock = threading.Lock()
        self._mask: torch.Tensor | None = None

    def wanted(self, grammar: Grammar, mask: torch.Tensor, row: int) -> None:
        """Records a row to be filled with the mask for the current state of the request."""
        with self._lock:
            self._mask = mask
            self._chains.setdefault(grammar, _Chain()).rows.append(row)

    def accepted(self, grammar: Grammar, tokens: list[int]) -> None:
        """Records that the request has accepted drafts."""
        with self._lock:
            self._chains.setdefault(grammar, _Chain()).tokens.append((list(tokens), len(self._chains[grammar].rows)))

    def refused(self, grammar: Grammar) -> None:
        """A draft was refused, and vLLM copies the previous row at once."""
        chain = self._chains.get(grammar)
        if chain is not None and chain.rows and self._mask is not None:
            _log(fill_or_end(grammar.matcher, self._mask, chain.rows[-1]))

    def fill(self) -> None:
        """Fills all rows. The requests are then in the state before the step."""
        if self._mask is None:
            return
        mask, single = self._mask, []
        for grammar, chain in self._chains.items():
            if len(chain.rows) == 1 and not chain.tokens and fits(grammar.matcher, mask):
                single.append((grammar, chain.rows[0]))
            elif chain.rows:
                chain.fill(grammar.matcher, mask)
        if not single:
            return
        try:
            fill_masks([grammar.matcher for grammar, _ in single], mask, [row for _, row in single])
        except LimitError as error:
            rows = error.rows or {}
            for grammar, row in single:
                if row in rows:
                    allow_end(grammar.matcher, mask, row)
                    _log(LimitError(rows[row]))

    def work_ahead(self) -> None:
        """Computes masks ahead. The rows are filled, and the model is computing."""
        ahead(grammar.matcher for grammar, chain in self._chains.items() if chain.rows and not grammar.matcher.is_terminated())


class _Chain:
    """The rows of one request in a step, and its drafts: each with the number of rows that were requested before it."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.tokens: list[tuple[list[int], int]] = []

    def fill(self, matcher: Matcher, mask: torch.Tensor) -> None:
        """Fills the rows, with one call if they are consecutive with one draft between any two."""
        first, drafts = self.rows[0], self.tokens[: len(self.rows) - 1]
        plain = all(len(tokens) == 1 and before == at for at, (tokens, before) in enumerate(self.tokens, 1))
        if plain and fits(matcher, mask) and self.rows == list(range(first, first + len(drafts) + 1)):
            try:
                matcher.fill_draft_chain([token for (token,), _ in drafts], mask, first)
                return
            except LimitError:
                # One of the rows has failed; the code below finds out which.
                pass
        self._walk(matcher, mask)

    def _walk(self, matcher: Matcher, mask: torch.Tensor) -> None:
        walker, tokens = matcher.fork(), list(self.tokens)
        for asked, row in enumerate(self.rows):
            try:
                while tokens and tokens[0][1] <= asked:
                    walker.accept_all(tokens.pop(0)[0])
            except LimitError as error:
                # The state after this draft is unknown, and so are the rows after it.
                _log(error)
                for behind in self.rows[asked:]:
                    allow_end(matcher, mask, behind)
                return
            _log(fill_or_end(walker, mask, row))


def _forced_drafts(vllm_config: Any) -> int:
    """Returns the maximum number of drafts of a request, including ours. Drafts are only added if drafts have no
    probabilities, and the scheduler decides which are tried."""
    speculation = getattr(vllm_config, "speculative_config", None)
    if speculation is None or speculation.method not in ("ngram", "suffix") or vllm_config.scheduler_config.async_scheduling:
        return 0
    return int(vllm_config.num_speculative_tokens)


def _hold_to_budget(request: Any) -> None:
    """Updates the budget of a request. A budget counts the tokens that a matcher accepts, and a request may have
    spent tokens on reasoning that no matcher has seen."""
    grammar = request.structured_output_request.grammar
    if not isinstance(grammar, Grammar) or grammar.budget is None or grammar.matcher.is_terminated():
        return
    left = grammar.budget - request.num_output_tokens
    if left == grammar.matcher.budget_left:
        return
    try:
        grammar.matcher.set_budget(left)
    except BudgetError as error:
        # The budget was sufficient when it was set. Now the text is written as far as possible.
        logger.warning("request %s: %s", request.request_id, error)


def _log(error: LimitError | None) -> None:
    if error is not None:
        logger.error("a request ends: %s", error)


def _constraint(params: StructuredOutputsParams, config: Any, finishes: bool = True) -> Constraint:
    request_type, text = get_structured_output_key(params)
    return constraint(_KINDS[request_type], text, _json_options(config, params), finishes=finishes)


def _json_options(config: Any, params: StructuredOutputsParams | None) -> JsonOptions:
    asked = [config] if params is None else [config, params]
    return JsonOptions(
        whitespace="compact" if any(one.disable_any_whitespace for one in asked) else "tidy",
        whitespace_pattern=None if params is None else params.whitespace_pattern,
        strictness="closed" if any(one.disable_additional_properties for one in asked) else "standard",
    )


def _check(params: StructuredOutputsParams, config: Any, tokenizer: Any) -> None:
    """Refuses a request that the engine would refuse, while the client can still get the reason."""
    if params.json_object is False:
        raise VLLMValidationError("json_object must be true; leave it out for output without a structure")
    # The creator of the parameters may have changed a field since.
    params.__post_init__()
    try:
        wanted = _constraint(params, config)
        # Only tags refer to tokens, and only then is it worth a second to build the vocabulary.
        wanted.check(_vocabulary(tokenizer) if wanted.kind == "structural_tag" else None)
    except (Error, TypeError, ValueError) as error:
        raise VLLMValidationError(f"structured output: {error}") from error


_vocabularies: weakref.WeakKeyDictionary[Any, Vocabulary] = weakref.WeakKeyDictionary()
_vocabularies_lock = threading.Lock()


def _vocabulary(tokenizer: Any) -> Vocabulary:
    """Returns the vocabulary of a tokenizer, which is built once in a process."""
    with _vocabularies_lock:
        if tokenizer not in _vocabularies:
            _vocabularies[tokenizer] = Vocabulary.from_tokenizer(tokenizer)
        return _vocabularies[tokenizer]
