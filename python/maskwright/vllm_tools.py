"""Parsers of tool calls and of reasoning for vLLM (0.32). One description is both the constraint for a model and the
reader of what it wrote.

::

    FILE="$(python -c 'import maskwright.vllm_tools as tools; print(tools.__file__)')"
    MASKWRIGHT_VLLM=1 vllm serve MODEL --enable-auto-tool-choice --tool-call-parser maskwright_qwen3 --tool-parser-plugin "$FILE" \\
        --reasoning-parser maskwright_qwen3 --reasoning-parser-plugin "$FILE"

There is a parser ``maskwright_NAME`` for each format of :class:`maskwright.ToolFormat`. A request with tools gets the
structural tag of the format, for every ``tool_choice``, so that names and arguments are always valid; the output is
parsed by the same tag.

There is a parser of reasoning with the same name if the format has markers for reasoning. As with vLLM's own parsers,
the grammar begins after the reasoning. Formats that write everything in messages or blocks (``harmony``, ``cohere``,
``kimi_k3``) have none; vLLM's own parsers support those.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from vllm.entrypoints.generate.base.protocol import (
    DeltaFunctionCall,
    DeltaMessage,
    DeltaToolCall,
    ExtractedToolCallInformation,
    FunctionCall,
    ToolCall,
)
from vllm.reasoning.abs_reasoning_parsers import ReasoningParser, ReasoningParserManager
from vllm.sampling_params import StructuredOutputsParams
from vllm.tool_parsers.abstract_tool_parser import ToolParser, ToolParserManager

from maskwright import Constraint, Event, StreamReader, ToolFormat

__all__ = ["PARSERS", "REASONING_PARSERS", "Parser", "Reasoning", "register"]


class Parser(ToolParser):
    """The parser of one format. Each request has its own."""

    #: The name of the format.
    format_name: str = ""
    # The native format is used for every choice of a tool.
    supports_required_and_named = False

    def __init__(self, tokenizer: Any, tools: Any = None) -> None:
        super().__init__(tokenizer, tools)
        self._reader: StreamReader | None = None

    def adjust_request(self, request: Any) -> Any:
        """Returns the request with the structural tag of its tools, unless it already has a tag."""
        if not request.tools or request.tool_choice == "none":
            return request
        own = getattr(request, "structured_outputs", None)
        if own is not None and own.structural_tag is not None:
            return request
        request.structured_outputs = StructuredOutputsParams(structural_tag=str(self._constraint(request).source))
        request.response_format = None
        # The markers of some formats are special tokens.
        request.skip_special_tokens = False
        return request

    def extract_tool_calls(self, model_output: str, request: Any) -> ExtractedToolCallInformation:
        """Returns the text and the calls of a complete answer."""
        reader = StreamReader(self._constraint(request))
        events = reader.feed(model_output)
        events += reader.finish()[0]
        calls = [
            ToolCall(function=FunctionCall(name=event.name, arguments=event.text)) for event in events if event.kind == "call_done"
        ]
        text = "".join(event.text for event in events if event.kind in ("text", "call_failed"))
        return ExtractedToolCallInformation(tools_called=bool(calls), tool_calls=calls, content=text or None)

    def extract_tool_calls_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int],
        delta_token_ids: Sequence[int],
        request: Any,
    ) -> DeltaMessage | None:
        """Returns what a piece of an answer adds."""
        if self._reader is None or not previous_text:
            self._reader = StreamReader(self._constraint(request))
        return self._told(self._reader.feed(delta_text))

    def _told(self, events: list[Event]) -> DeltaMessage | None:
        text, calls = "", []
        for event in events:
            if event.kind in ("text", "call_failed"):
                text += event.text
            elif event.kind == "call":
                self.current_tool_id = event.index or 0
                self.current_tool_name_sent = True
                self.prev_tool_call_arr.append({"name": event.name, "arguments": ""})
                self.streamed_args_for_tool.append("")
                calls.append(
                    DeltaToolCall(
                        index=event.index, id=ToolCall(function=FunctionCall(name="", arguments="")).id, type="function",
                        function=DeltaFunctionCall(name=event.name),
                    )
                )
            elif event.kind == "arguments":
                self.prev_tool_call_arr[-1]["arguments"] += event.text
                self.streamed_args_for_tool[-1] += event.text
                calls.append(DeltaToolCall(index=event.index, function=DeltaFunctionCall(arguments=event.text)))
        if not text and not calls:
            return None
        return DeltaMessage(content=text or None, tool_calls=calls)

    def _constraint(self, request: Any) -> Constraint:
        tools = [_tool(tool) for tool in request.tools or []]
        one_call = getattr(request, "parallel_tool_calls", None) is False
        choice = _choice(request.tool_choice) if tools else "none"
        return ToolFormat.named(self.format_name).constraint(tools, choice=choice, one_call=one_call, thinking="off", whitespace="tidy")


def _tool(tool: Any) -> dict[str, Any]:
    # A tool of chat has the function inside; a tool of responses is the function.
    function = getattr(tool, "function", tool)
    return {"name": function.name, "parameters": function.parameters or {"type": "object"}}


def _choice(choice: Any) -> Any:
    if choice is None or isinstance(choice, str):
        return choice or "auto"
    known = json.loads(choice.model_dump_json()) if hasattr(choice, "model_dump_json") else dict(choice)
    if known.get("type") == "allowed_tools":
        allowed = known.get("allowed_tools") or known
        names = [tool.get("name") or tool["function"]["name"] for tool in allowed["tools"]]
        return {"allowed": names, "required": allowed.get("mode") == "required"}
    return {"name": known.get("name") or known["function"]["name"]}


class Reasoning(ReasoningParser):
    """The parser of the reasoning of one format. Each request has its own. When vLLM asks about tokens, it searches
    for the markers in the tokens; when vLLM has text, the format parses it."""

    #: The name of the format.
    format_name: str = ""

    def __init__(self, tokenizer: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(tokenizer, *args, **kwargs)
        begin, ends = _markers(self.format_name)
        self._begin = self._tokens(begin)
        self._ends = [self._tokens(end) for end in ends]
        self._begun = False
        self._reader: StreamReader | None = None

    def _tokens(self, marker: str) -> list[int]:
        tokens: list[int] = self.model_tokenizer.encode(marker, add_special_tokens=False)
        if not tokens:
            raise ValueError(f"the tokenizer of this model cannot write {marker!r}, which the format {self.format_name!r} needs")
        return tokens

    @property
    def reasoning_start_str(self) -> str:
        return _markers(self.format_name)[0]

    @property
    def reasoning_end_str(self) -> str:
        return _markers(self.format_name)[1][0]

    def is_reasoning_end(self, input_ids: Sequence[int]) -> bool:
        """Whether the last marker is one that ends reasoning."""
        end = self._last_end(input_ids)
        return end is not None and end > _behind_last(input_ids, self._begin)

    def is_reasoning_end_streaming(self, input_ids: Sequence[int], delta_ids: Iterable[int]) -> bool:
        """Whether the new tokens of a step contain the end of reasoning."""
        new = len(list(delta_ids)) + max(map(len, [self._begin, *self._ends])) - 1
        return self.is_reasoning_end(input_ids[max(0, len(input_ids) - new) :])

    def _last_end(self, tokens: Sequence[int]) -> int | None:
        return max((at for at in (_behind_last(tokens, end) for end in self._ends) if at > 0), default=None)

    def extract_content_ids(self, input_ids: list[int]) -> list[int]:
        end = self._last_end(input_ids)
        return [] if end is None else input_ids[end:]

    def count_reasoning_tokens(self, token_ids: Sequence[int]) -> int:
        end = self._last_end(token_ids)
        begin = _behind_last(token_ids if end is None else token_ids[:end], self._begin)
        if end is None:
            return len(token_ids) - begin if begin or self._begun else 0
        return end - begin - min(len(one) for one in self._ends if list(token_ids[end - len(one) : end]) == one)

    def adjust_request(self, request: Any) -> Any:
        # The markers of some formats are special tokens.
        request.skip_special_tokens = False
        return request

    def adjust_initial_state_from_prompt(self, prompt_token_ids: Sequence[int]) -> None:
        """Handles a prompt that ends inside the reasoning."""
        begin = _behind_last(prompt_token_ids, self._begin)
        self._begun = begin > (self._last_end(prompt_token_ids) or 0)

    def extract_reasoning(self, model_output: str, request: Any) -> tuple[str | None, str | None]:
        """Returns the reasoning and the answer of a complete text. If it has an end of reasoning but no beginning,
        the reasoning began in the prompt."""
        begin, ends = _markers(self.format_name)
        begun = self._begun or (begin not in model_output and any(end in model_output for end in ends))
        reader = self._reads(begun)
        events = reader.feed(model_output)
        events += reader.finish()[0]
        return _joined(events, "reasoning"), _joined(events, "text")

    def extract_reasoning_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int],
        delta_token_ids: Sequence[int],
    ) -> DeltaMessage | None:
        """Returns what a piece of an answer adds."""
        if self._reader is None or not previous_text:
            self._reader = self._reads(self._begun)
        events = self._reader.feed(delta_text)
        reasoning, text = _joined(events, "reasoning"), _joined(events, "text")
        return None if reasoning is None and text is None else DeltaMessage(reasoning=reasoning, content=text)

    def _reads(self, begun: bool) -> StreamReader:
        return StreamReader(ToolFormat.named(self.format_name).constraint([], choice="none", thinking="begun" if begun else "optional"))


def _markers(name: str) -> tuple[str, list[str]]:
    markers = ToolFormat.named(name).reasoning_markers
    if markers is None:
        raise ValueError(f"the format {name!r} has no markers of reasoning")
    return markers


def _joined(events: list[Event], kind: str) -> str | None:
    return "".join(event.text for event in events if event.kind == kind) or None


def _behind_last(tokens: Sequence[int], marker: list[int]) -> int:
    """Returns where the last occurrence of a marker ends; 0 if there is none."""
    for end in range(len(tokens), len(marker) - 1, -1):
        if tokens[end - 1] == marker[-1] and list(tokens[end - len(marker) : end]) == marker:
            return end
    return 0


#: The parsers by name.
PARSERS: dict[str, type[Parser]] = {
    f"maskwright_{name}": type(f"Parser_{name}", (Parser,), {"format_name": name, "__doc__": f"The parser of the format {name}."})
    for name in ToolFormat.names()
}


#: The parsers of reasoning by name.
REASONING_PARSERS: dict[str, type[Reasoning]] = {
    f"maskwright_{name}": type(f"Reasoning_{name}", (Reasoning,), {"format_name": name, "__doc__": f"The parser of the reasoning of the format {name}."})
    for name in ToolFormat.names()
    if ToolFormat.named(name).reasoning_markers is not None
}


def register() -> None:
    """Makes the parsers known to vLLM. A second call has no effect."""
    for name, parser in PARSERS.items():
        ToolParserManager._register_module(parser, name)
    for name, reasoning in REASONING_PARSERS.items():
        ReasoningParserManager._register_module(reasoning, name)


register()
