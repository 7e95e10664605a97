"""The parsers of tool calls, with the classes of the real vLLM (``make test-engines``)."""

import json
import importlib

import pytest

pytest.importorskip("vllm.tool_parsers.abstract_tool_parser", reason="vLLM itself is not installed")

from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.tool_parsers.abstract_tool_parser import ToolParserManager

TOOL = {
    "type": "function",
    "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}},
}
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'


@pytest.fixture(scope="module")
def tools():
    return importlib.import_module("maskwright.vllm_tools")


def request(**options):
    return ChatCompletionRequest(messages=[{"role": "user", "content": "x"}], model="m", tools=[TOOL], **options)


def parser(tools, asked):
    return ToolParserManager.get_tool_parser("maskwright_hermes")(None, asked.tools)


def test_every_format_has_a_parser(tools):
    for name in tools.ToolFormat.names():
        assert ToolParserManager.get_tool_parser(f"maskwright_{name}").format_name == name


@pytest.mark.parametrize("choice", ["auto", "required", {"type": "function", "function": {"name": "weather"}}])
def test_a_request_gets_the_tag_of_its_tools(tools, choice):
    asked = request(tool_choice=choice)
    adjusted = parser(tools, asked).adjust_request(asked)
    tag = json.loads(adjusted.structured_outputs.structural_tag)
    assert tag["type"] == "structural_tag" and "weather" in json.dumps(tag)
    assert adjusted.skip_special_tokens is False
    found = parser(tools, asked).extract_tool_calls(CALL, asked)
    assert found.tools_called and found.content is None
    assert (found.tool_calls[0].function.name, found.tool_calls[0].function.arguments) == ("weather", '{"city": "Oslo"}')


def test_text_stays_text(tools):
    asked = request(tool_choice="auto")
    found = parser(tools, asked).extract_tool_calls("Hello.", asked)
    assert not found.tools_called and found.content == "Hello." and found.tool_calls == []


def test_streams(tools):
    asked = request(tool_choice="auto")
    one = parser(tools, asked)
    whole, text, calls = "Well. " + CALL + CALL, "", {}
    for at in range(len(whole)):
        delta = one.extract_tool_calls_streaming(whole[:at], whole[: at + 1], whole[at], [], [], [], asked)
        if delta is None:
            continue
        text += delta.content or ""
        for call in delta.tool_calls:
            known = calls.setdefault(call.index, {"id": call.id, "name": "", "arguments": ""})
            known["name"] += call.function.name or ""
            known["arguments"] += call.function.arguments or ""
    assert text == "Well. "
    assert [(call["name"], call["arguments"]) for call in calls.values()] == [("weather", '{"city": "Oslo"}')] * 2
    assert len({call["id"] for call in calls.values()}) == 2
    assert one.streamed_args_for_tool == ['{"city": "Oslo"}'] * 2
