"""maskwright inside vLLM (0.32).

Installed next to vLLM, the package announces itself as a general plug-in, which vLLM calls in every process that it starts. The plug-in does
nothing until it is asked to:

::

    MASKWRIGHT_VLLM=1 vllm serve MODEL             # or VLLM_PLUGINS=maskwright

Then every structured output of that server is ours: ``structured_outputs`` and ``response_format`` of requests, tools with structural tags, and
``SamplingParams.structured_outputs`` in programs. In a program, ``maskwright.vllm.install()`` before the first request does the same.

vLLM has no place for a backend that it does not know, so three of its methods are replaced:

==============================================  ======================================================================
``SamplingParams._validate_structured_outputs``  in the server: a request is read by us, and refused with our message
``StructuredOutputManager.grammar_init``         in the engine: the first structured request makes our backend
``StructuredOutputManager._create_grammar``      in the engine: options of a single request reach us
==============================================  ======================================================================

Everything else is vLLM's: the threads that compile, the buffer of masks and who applies it, speculation, reasoning. A backend that is set in
``--structured-outputs-config`` makes no difference.

What is different for users: what cannot be enforced is refused with status 400 and the place in the schema, and not ignored; a grammar may be EBNF,
GBNF or Lark; ``whitespace_pattern``, ``disable_any_whitespace`` and ``disable_additional_properties`` work for single requests.

A request whose mask or token meets a limit of the engine (``LimitError``) ends alone: the error is logged, its row of the batch allows nothing but the end, and vLLM is
told that the token was refused, which ends the request with an error. If the text is complete there, it ends well.
"""

from __future__ import annotations

import functools
import logging
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

from ._maskwright import Compiler, Constraint, Matcher, Vocabulary
from ._requests import JsonOptions, constraint
from ._rows import fill_or_end
from .errors import Error, LimitError

__all__ = ["Backend", "Grammar", "install"]

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
    """Make maskwright the backend of all structured outputs in this process. A second call changes nothing."""
    if getattr(StructuredOutputManager, "_maskwright_is_installed", False):
        return
    StructuredOutputManager._maskwright_is_installed = True
    # N.B. The originals are kept as closures, so that another plug-in which wraps these methods, before or after us, is called as well.
    grammar_init = StructuredOutputManager.grammar_init
    create_grammar = StructuredOutputManager._create_grammar

    @functools.wraps(grammar_init)
    def our_grammar_init(self: StructuredOutputManager, request: Any) -> None:
        if request.structured_output_request is not None and self.backend is None:
            vocab_size = self.vllm_config.model_config.get_vocab_size()
            try:
                self.backend = Backend(self.vllm_config, tokenizer=self.tokenizer, vocab_size=vocab_size)
            except Exception as error:
                # A tokenizer that cannot be read. The engine must live on, for requests without a structure; this one fails as if it could not be compiled.
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
        return self.backend.compile_request(request)

    StructuredOutputManager.grammar_init = our_grammar_init
    StructuredOutputManager._create_grammar = our_create_grammar
    _replace_validation()


def _replace_validation() -> None:
    validate = SamplingParams._validate_structured_outputs

    @functools.wraps(validate)
    def our_validate(self: SamplingParams, model_config: Any, config: Any, tokenizer: Any) -> None:
        params = self.structured_outputs
        if config is None or params is None or tokenizer is None or model_config.is_diffusion:
            # Nothing to validate, or what vLLM itself refuses, with its own words.
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
        self.compiler = Compiler(Vocabulary.from_tokenizer(tokenizer, size=vocab_size))

    def compile_grammar(
        self,
        request_type: StructuredOutputOptions,
        grammar_spec: str,
        stop_token_ids: set[int] | None = None,
    ) -> Grammar:
        """Compile a request for which only the options of the server count."""
        options = _json_options(self.vllm_config.structured_outputs_config, None)
        return self._compile(constraint(_KINDS[request_type], grammar_spec, options), stop_token_ids)

    def compile_request(self, request: Any) -> Grammar:
        """Compile a request with its own options."""
        params = request.structured_output_request.params
        wanted = _constraint(params, self.vllm_config.structured_outputs_config)
        sampling = request.sampling_params
        return self._compile(wanted, None if sampling is None else sampling.all_stop_token_ids)

    def _compile(self, wanted: Constraint, stop_token_ids: set[int] | None) -> Grammar:
        # An empty set means that nothing ends the output of the request, and then the text still has to end somehow.
        stops = sorted(stop_token_ids) if stop_token_ids else None
        return Grammar(self.compiler.compile(wanted).matcher(stop_tokens=stops))

    def allocate_token_bitmask(self, max_num_seqs: int) -> torch.Tensor:
        """As wide as the model, to the word: the buffers of the workers are."""
        words = (self.vocab_size + 31) // 32
        return torch.full((max_num_seqs, words), -1, dtype=torch.int32, pin_memory=torch.cuda.is_available())

    def destroy(self) -> None:
        """Nothing is held that does not go away with the last reference."""


class Grammar(StructuredOutputGrammar):
    """One request: a matcher under vLLM's names."""

    def __init__(self, matcher: Matcher) -> None:
        self.matcher = matcher

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        """Take the tokens, or none of them. What comes behind the end is passed over."""
        for taken, token in enumerate(tokens):
            if self.matcher.is_terminated():
                return True
            if not self._takes(request_id, token):
                self.matcher.rollback(taken)
                return False
        return True

    def _takes(self, request_id: str, token: int) -> bool:
        try:
            return self.matcher.try_accept(token)
        except LimitError as error:
            logger.error("request %s ends: %s", request_id, error)
            return False

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        """The tokens, up to the first that may not come, or of which that is not known."""
        try:
            return tokens[: self.matcher.validate(tokens)]
        except LimitError:
            # Nobody needs drafts. Without them the token that meets the limit is one that was written, or none.
            return []

    def rollback(self, num_tokens: int) -> None:
        self.matcher.rollback(num_tokens)

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        error = fill_or_end(self.matcher, bitmask, batch_index)
        if error is not None:
            logger.error("a request ends: %s", error)

    def is_terminated(self) -> bool:
        return self.matcher.is_terminated()

    def reset(self) -> None:
        self.matcher.reset()


def _constraint(params: StructuredOutputsParams, config: Any) -> Constraint:
    request_type, text = get_structured_output_key(params)
    return constraint(_KINDS[request_type], text, _json_options(config, params))


def _json_options(config: Any, params: StructuredOutputsParams | None) -> JsonOptions:
    asked = [config] if params is None else [config, params]
    return JsonOptions(
        whitespace="compact" if any(one.disable_any_whitespace for one in asked) else "flexible",
        whitespace_pattern=None if params is None else params.whitespace_pattern,
        strictness="closed" if any(one.disable_additional_properties for one in asked) else "standard",
    )


def _check(params: StructuredOutputsParams, config: Any, tokenizer: Any) -> None:
    """Refuse a request that the engine would refuse, while the client can still be told why."""
    if params.json_object is False:
        raise VLLMValidationError("json_object must be true; leave it out for output without a structure")
    # Whoever built the parameters may have changed a field since.
    params.__post_init__()
    try:
        wanted = _constraint(params, config)
        # Only tags name tokens, and only then is the vocabulary worth its second.
        wanted.check(_vocabulary(tokenizer) if wanted.kind == "structural_tag" else None)
    except (Error, TypeError, ValueError) as error:
        raise VLLMValidationError(f"structured output: {error}") from error


_vocabularies: weakref.WeakKeyDictionary[Any, Vocabulary] = weakref.WeakKeyDictionary()
_vocabularies_lock = threading.Lock()


def _vocabulary(tokenizer: Any) -> Vocabulary:
    """The vocabulary of a tokenizer, built once in a process."""
    with _vocabularies_lock:
        if tokenizer not in _vocabularies:
            _vocabularies[tokenizer] = Vocabulary.from_tokenizer(tokenizer)
        return _vocabularies[tokenizer]
