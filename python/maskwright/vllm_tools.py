"""Parsers of tool calls for vLLM (0.32): one spec is the constraint that a model writes under, and the reader of what it wrote.

::

    MASKWRIGHT_VLLM=1 vllm serve MODEL --enable-auto-tool-choice --tool-call-parser maskwright_qwen3 \\
        --tool-parser-plugin "$(python -c 'import maskwright.vllm_tools as tools; print(tools.__file__)')"

There is a parser ``maskwright_NAME`` for each format of :class:`maskwright.ToolFormat`. A request with tools gets the structural tag of the format, whatever its ``tool_choice`` is, so that names and arguments are right by construction; what is written is
read by the same tag. Reasoning is left to vLLM's own ``--reasoning-parser``: the grammar begins behind it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from vllm.entrypoints.generate.base.protocol import (
    DeltaFunctionCall,
    DeltaMessage,
    DeltaToolCall,
    ExtractedToolCallInformation,
    FunctionCall,
    ToolCall,
)
from vllm.sampling_params import StructuredOutputsParams
from vllm.tool_parsers.abstract_tool_parser import ToolParser, ToolParserManager

from maskwright import Constraint, Event, StreamReader, ToolFormat

__all__ = ["PARSERS", "Parser", "register"]


class Parser(ToolParser):
    """The parser of one format. A request has its own."""

    #: The name of the format.
    format_name: str = ""
    # The native format is written and read whatever the choice of a tool is.
    supports_required_and_named = False

    def __init__(self, tokenizer: Any, tools: Any = None) -> None:
        super().__init__(tokenizer, tools)
        self._reader: StreamReader | None = None

    def adjust_request(self, request: Any) -> Any:
        """The request with the structural tag of its tools, unless it has a tag of its own."""
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
        """The text and the calls of a whole answer."""
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
        """What is new in a piece of an answer."""
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
    # Of chat or of responses: the function is inside, or it is the tool.
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


#: The parsers by their names.
PARSERS: dict[str, type[Parser]] = {
    f"maskwright_{name}": type(f"Parser_{name}", (Parser,), {"format_name": name, "__doc__": f"The parser of the format {name}."})
    for name in ToolFormat.names()
}


def register() -> None:
    """Make the parsers known to vLLM. A second call changes nothing."""
    for name, parser in PARSERS.items():
        ToolParserManager._register_module(parser, name)


register()
