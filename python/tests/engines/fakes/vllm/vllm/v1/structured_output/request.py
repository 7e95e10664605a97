import json
from concurrent.futures import Future

from .backend_types import StructuredOutputOptions


class StructuredOutputRequest:
    def __init__(self, params):
        self.params = params
        self.reasoning_ended = None
        self._grammar = None

    @staticmethod
    def from_sampling_params(sampling_params):
        params = sampling_params.structured_outputs
        return None if params is None else StructuredOutputRequest(params)

    @property
    def is_grammar_ready(self):
        if isinstance(self._grammar, Future):
            if not self._grammar.done():
                return False
            self._grammar = self._grammar.exception() or self._grammar.result()
        return True

    @property
    def grammar(self):
        return self._grammar if self.is_grammar_ready else None

    @grammar.setter
    def grammar(self, grammar):
        self._grammar = grammar


def get_structured_output_key(params):
    def text(value):
        return value if isinstance(value, str) else json.dumps(value)

    options = StructuredOutputOptions
    if params.json is not None:
        return options.JSON, text(params.json)
    if params.json_object:
        return options.JSON_OBJECT, ""
    if params.regex is not None:
        return options.REGEX, params.regex
    if params.choice is not None:
        return options.CHOICE, text(params.choice)
    if params.grammar is not None:
        return options.GRAMMAR, params.grammar
    if params.structural_tag is not None:
        return options.STRUCTURAL_TAG, params.structural_tag
    raise ValueError("nothing is asked for")
