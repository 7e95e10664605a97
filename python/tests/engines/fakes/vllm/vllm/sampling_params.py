from dataclasses import dataclass, field

from .exceptions import VLLMValidationError

_KINDS = ("json", "regex", "choice", "grammar", "json_object", "structural_tag")


@dataclass
class StructuredOutputsParams:
    json: str | dict | None = None
    regex: str | None = None
    choice: list[str] | None = None
    grammar: str | None = None
    json_object: bool | None = None
    disable_any_whitespace: bool = False
    disable_additional_properties: bool = False
    whitespace_pattern: str | None = None
    structural_tag: str | None = None
    _backend: str | None = field(default=None, init=False)
    _backend_was_auto: bool = field(default=False, init=False)

    def __post_init__(self):
        if sum(getattr(self, kind) is not None for kind in _KINDS) != 1:
            raise VLLMValidationError("exactly one kind of structured output must be asked for")


@dataclass
class SamplingParams:
    structured_outputs: StructuredOutputsParams | None = None
    stop_token_ids: list[int] = field(default_factory=list)
    max_tokens: int | None = 16

    @property
    def all_stop_token_ids(self):
        return set(self.stop_token_ids)

    def _validate_structured_outputs(self, model_config, structured_outputs_config, tokenizer):
        if structured_outputs_config is None or self.structured_outputs is None:
            return
        if model_config.is_diffusion:
            raise VLLMValidationError("not for diffusion models")
        if tokenizer is None:
            raise VLLMValidationError("a tokenizer is needed")
        raise AssertionError("vLLM would now ask a backend of its own")
