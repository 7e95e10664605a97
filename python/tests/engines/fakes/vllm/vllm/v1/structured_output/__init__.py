from concurrent.futures import ThreadPoolExecutor

import torch

_PARALLEL_FROM = 128


def cached_tokenizer_from_config(model_config):
    raise NotImplementedError("tests put their tokenizer here")


class StructuredOutputManager:
    def __init__(self, vllm_config):
        self.backend = None
        self.vllm_config = vllm_config
        self.tokenizer = cached_tokenizer_from_config(vllm_config.model_config)
        self.executor = ThreadPoolExecutor(2)
        self._bitmask = None

    def grammar_init(self, request):
        if request.structured_output_request is None:
            return
        if self.backend is None:
            raise ValueError("no backend of vLLM's own is here")
        request.structured_output_request.grammar = self.executor.submit(self._create_grammar, request)

    def _create_grammar(self, request):
        raise AssertionError("replaced by the plug-in")

    def _fill(self, grammar, row, is_constrained=True):
        if is_constrained and not grammar.is_terminated():
            grammar.fill_bitmask(self._bitmask, row)
        else:
            self._bitmask[row].fill_(-1)

    def grammar_bitmask(self, requests, structured_output_request_ids, scheduled_spec_decode_tokens):
        if self._bitmask is None:
            rows = self.vllm_config.scheduler_config.max_num_seqs * (1 + self.vllm_config.num_speculative_tokens)
            self._bitmask = self.backend.allocate_token_bitmask(rows)
        grammars = [requests[name].structured_output_request.grammar for name in structured_output_request_ids]
        if len(grammars) > _PARALLEL_FROM:
            # Matchers of several requests are filled at the same time.
            list(self.executor.map(lambda pair: self._fill(pair[1], pair[0]), enumerate(grammars)))
            return self._bitmask[: len(grammars)].numpy()
        row = 0
        for name, grammar in zip(structured_output_request_ids, grammars):
            row = self._walk(grammar, name, scheduled_spec_decode_tokens.get(name, []), row)
        return self._bitmask[:row].numpy()

    def _walk(self, grammar, name, drafts, row):
        """A row for each draft and one behind them; then back."""
        taken, is_padding = 0, False
        for token in drafts:
            self._fill(grammar, row, not is_padding)
            row += 1
            is_padding = is_padding or token == -1
            if not is_padding:
                assert grammar.accept_tokens(name, [token])
                taken += 1
        self._fill(grammar, row, not is_padding)
        if taken:
            grammar.rollback(taken)
        return row + 1

    def _get_constraint_bounds(self, request, spec_tokens):
        """From where the grammar counts: at once, as there is no reasoning here unless a test says so."""
        return (0, 0) if request.structured_output_request.reasoning_ended is not False else (1, 1)

    def validate_tokens(self, request, spec_tokens):
        return request.structured_output_request.grammar.validate_tokens(spec_tokens)

    def accept_tokens(self, request, new_token_ids):
        return request.structured_output_request.grammar.accept_tokens(request.request_id, new_token_ids)

    def clear_backend(self):
        self.executor.shutdown()
        self.backend.destroy()
        self.backend = None
