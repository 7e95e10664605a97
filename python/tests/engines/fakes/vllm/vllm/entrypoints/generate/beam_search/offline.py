class BeamSearchOfflineMixin:
    def _init_beam_search_structured_output(self, structured_outputs, tokenizer):
        raise AssertionError("vLLM would now make a backend of its own")

    def _build_beam_sampling_params(self, beams, base_params, backend, structured_output_key, bitmask):
        """What each beam may go on with; None for those that are over."""
        found = []
        for beam in beams:
            grammar = backend.compile_grammar(*structured_output_key)
            written = beam.tokens[len(beam.orig_prompt["prompt_token_ids"]) :]
            if written:
                grammar.accept_tokens("beam", written)
            if grammar.is_terminated():
                found.append(None)
                continue
            grammar.fill_bitmask(bitmask, 0)
            words = bitmask[0].tolist()
            allowed = [at * 32 + bit for at, word in enumerate(words) if word for bit in range(32) if word >> bit & 1]
            found.append((base_params, allowed))
        return found
