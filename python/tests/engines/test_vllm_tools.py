"""The parsers of tool calls, with the classes of the real vLLM (``make test-engines``)."""

import json
import importlib

import pytest

pytest.importorskip("vllm.tool_parsers.abstract_tool_parser", reason="vLLM itself is not installed")

from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.reasoning import ReasoningParserManager
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


class Letters:
    """A tokenizer in which markers of reasoning are tokens, and every other character is one."""

    markers = ["<think>", "</think>"]

    def encode(self, text, add_special_tokens=False):
        tokens = []
        while text:
            marker = next((one for one in self.markers if text.startswith(one)), None)
            tokens.append(self.markers.index(marker) if marker else 10 + ord(text[0]))
            text = text[len(marker) if marker else 1 :]
        return tokens

    def get_vocab(self):
        return {marker: number for number, marker in enumerate(self.markers)}


def reasoning(tools, name="qwen3"):
    return ReasoningParserManager.get_reasoning_parser(f"maskwright_{name}")(Letters())


def test_formats_with_markers_have_a_parser_of_reasoning(tools):
    names = {name for name in tools.ToolFormat.names() if tools.ToolFormat.named(name).reasoning_markers}
    assert {"qwen3", "seed_oss", "glm", "longcat"} <= names and not names & {"harmony", "cohere", "kimi_k3", "hermes"}
    assert set(tools.REASONING_PARSERS) == {f"maskwright_{name}" for name in names}
    with pytest.raises(KeyError):
        ReasoningParserManager.get_reasoning_parser("maskwright_harmony")


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("<think>Hm.</think>\n\nOslo.", ("Hm.", "Oslo.")),
        ("Hm.</think>\n\nOslo.", ("Hm.", "Oslo.")),
        ("Oslo.", (None, "Oslo.")),
        ("<think>Hm", ("Hm", None)),
        ("<think></think>\n\n", (None, None)),
    ],
)
def test_reasoning_of_a_whole_text(tools, output, expected):
    assert reasoning(tools).extract_reasoning(output, None) == expected


@pytest.mark.parametrize(("prompt", "output"), [("x", "<think>Hm <b>.</think>\n\nOslo <now>."), ("x<think>", "Hm <b>.</think>\n\nOslo <now>.")])
def test_reasoning_of_a_stream(tools, prompt, output):
    one = reasoning(tools)
    one.adjust_initial_state_from_prompt(Letters().encode(prompt))
    found = {"reasoning": "", "content": ""}
    for at in range(len(output)):
        delta = one.extract_reasoning_streaming(output[:at], output[: at + 1], output[at], [], [], [])
        found["reasoning"] += (delta and delta.reasoning) or ""
        found["content"] += (delta and delta.content) or ""
    assert found == {"reasoning": "Hm <b>.", "content": "Oslo <now>."}


def test_reasoning_in_tokens(tools):
    one, tokens = reasoning(tools), Letters().encode
    for text, ended in [("", False), ("a", False), ("<think>a", False), ("<think>a</think>", True), ("<think>a</think>b<think>", False), ("a</think>b", True)]:
        assert one.is_reasoning_end(tokens(text)) == ended, text
        assert one.is_reasoning_end_streaming(tokens(text), tokens(text)[-2:]) == ended, text
    assert one.extract_content_ids(tokens("<think>a</think>bc")) == tokens("bc")
    assert one.extract_content_ids(tokens("<think>a")) == []
    assert one.count_reasoning_tokens(tokens("<think>abc</think>de")) == 3
    assert one.count_reasoning_tokens(tokens("abc")) == 0
    assert one.count_reasoning_tokens(tokens("<think>abc")) == 3
    # A tokenizer that has no such token writes the marker in several, and that is as good.
    Letters.markers, kept = [], Letters.markers
    try:
        one = reasoning(tools)
        assert one.is_reasoning_end(tokens("<think>a</think>b")) and not one.is_reasoning_end(tokens("a</think>b<think>c"))
    finally:
        Letters.markers = kept
