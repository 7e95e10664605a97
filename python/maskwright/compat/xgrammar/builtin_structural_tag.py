"""Structural tags for families of models, built from our own formats."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal

from ... import Error, ToolFormat
from .structural_tag import StructuralTag

if TYPE_CHECKING:
    from .openai_tool_call_schema import BuiltinToolParam, FunctionToolParam

#: The meaning of XGrammar's ``enabled`` for our formats. By default: the prompt ends inside the reasoning. These models
#: open the reasoning themselves.
_ENABLED = {"harmony": "optional", "mimo": "required", "gemma4": "required"}

#: The end of reasoning that the prompt has begun. A model that does not reason writes it first; the number of line breaks after it may vary.
_CLOSED: dict[str, list[dict[str, Any]]] = {
    "minimax": [
        {"type": "const_string", "value": "\n</think>\n\n"},
        {"type": "optional", "content": {"type": "const_string", "value": "\n\n"}},
    ]
}

#: What a model that skips its reasoning may write first, besides nothing.
_SKIPPED = {"minimax_m3": "</mm:think>"}

#: Formats whose models may begin their reasoning themselves even if the prompt is said to have begun it.
_BEGINS_AGAIN = ("cohere_xml", "exaone4", "kimi_k2", "minimax")

#: The marker that begins any part, and so reasoning, in formats that have no marker for reasoning.
_OPENS = {"kimi_k3": "<|open|>"}

_registered: dict[str, Callable[..., Any]] = {}


def register_model_structural_tag(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a function as the builder of tags with that name. It is called with the tools and the choice as
    normalized by :func:`normalize_tool_choice`, then with the kind of reasoning, and with further options as
    keywords."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        _registered[name] = function
        return function

    return decorate


def get_model_structural_tag(
    model: str,
    tools: list[Any] | None = None,
    tool_choice: Any = "auto",
    reasoning: bool | str = "enabled",
    force_reasoning: bool = False,
    any_order: bool = False,
    exclude_special_tokens: bool = True,
    max_whitespace_cnt: int | None = None,
    parallel_tool_calls: bool = True,
) -> Any:
    """Returns the tag of what a model may write: its reasoning, text and tool calls. The tools and the choice are those
    of OpenAI's API; a tool without parameters takes any object.

    ``reasoning`` is ``enabled``, ``disabled`` or ``auto`` (the model decides). ``model`` is one of XGrammar's names, or
    of ours.
    """
    make = _registered.get(model) or (_maker(model) if model in ToolFormat.names() else None)
    if make is None:
        known = sorted({*ToolFormat.names(), *_registered})
        raise ValueError(f"Unknown format type: {model}, supported types: {known}")
    functions, builtins, choice = normalize_tool_choice(tools, tool_choice)
    if not isinstance(parallel_tool_calls, bool):
        raise ValueError("The 'parallel_tool_calls' argument must be a bool.")
    options = {"any_order": any_order, "exclude_special_tokens": exclude_special_tokens, "max_whitespace_cnt": max_whitespace_cnt}
    return make(functions, builtins, choice, _thinks(reasoning), **options, parallel_tool_calls=parallel_tool_calls)


def get_builtin_structural_tag(model: str, **options: Any) -> Any:
    """Does the same as :func:`get_model_structural_tag`, under its older name."""
    return get_model_structural_tag(model, **options)


def normalize_tool_choice(
    tools: list[Any] | None = None, tool_choice: Any = "auto"
) -> tuple[list[FunctionToolParam], list[BuiltinToolParam], Literal["auto", "required", "forced"]]:
    """Applies a choice to ``tools``. Returns the selected functions, the selected tools of the server, and whether one
    may (``auto``) or must be called (``required``), or the only one must be (``forced``).

    >>> tool = {"type": "function", "function": {"name": "weather"}}
    >>> functions, _, choice = normalize_tool_choice([tool], {"type": "function", "function": {"name": "weather"}})
    >>> functions[0].function.name, choice
    ('weather', 'forced')
    """
    from pydantic import TypeAdapter

    from . import openai_tool_call_schema as schema

    if not isinstance(tools, (list, type(None))):
        raise ValueError("The 'tools' argument must be a list.")
    read: TypeAdapter[Any] = TypeAdapter(schema.ToolParam)
    given = [read.validate_python(tool) for tool in tools or []]
    functions = [tool for tool in given if isinstance(tool, schema.FunctionToolParam)]
    builtins = [tool for tool in given if isinstance(tool, schema.BuiltinToolParam)]
    options: TypeAdapter[Any] = TypeAdapter(schema.ToolChoiceOptionParam)
    choice = "auto" if tool_choice is None else options.validate_python(tool_choice)
    match choice:
        case "none":
            return [], [], "auto"
        case schema.AllowedToolChoiceParam(allowed_tools=allowed):
            functions, builtins = _allowed(functions, builtins, allowed.tools)
            choice = allowed.mode
        case schema.NamedToolChoiceParam(function=wanted):
            functions, builtins = [tool for tool in functions if tool.function.name == wanted.name], []
            if not functions:
                raise ValueError(f"The tool with name '{wanted.name}' is not found in the tools list.")
            choice = "forced"
        case schema.BuiltinToolChoiceParam(type=wanted):
            functions, builtins = [], [tool for tool in builtins if tool.type == wanted]
            if len(builtins) != 1:
                raise ValueError(f"Builtin tool choice must match exactly one builtin tool, got {len(builtins)} matches.")
            choice = "forced"
    count = len(functions) + len(builtins)
    if choice == "required" and count == 0:
        raise ValueError("The 'tools' list is empty, which is not allowed when 'tool_choice' is 'required'.")
    if choice == "forced" and count != 1:
        raise ValueError("Forced tool choice must resolve to exactly one tool.")
    return functions, builtins, choice


def _allowed(functions: list[Any], builtins: list[Any], named: list[Any]) -> tuple[list[Any], list[Any]]:
    if any(tool.type == "function" and tool.function is None for tool in named):
        raise ValueError("Allowed function tool references must include 'function'.")
    names = {tool.function.name for tool in named if tool.type == "function"}
    types = {tool.type for tool in named} - {"function"}
    for what, wanted, there in (("function", names, {tool.function.name for tool in functions}), ("builtin", types, {tool.type for tool in builtins})):
        if not wanted <= there:
            raise ValueError(f"Allowed {what} tools are not found in the tools list: {wanted - there}.")
    return [tool for tool in functions if tool.function.name in names], [tool for tool in builtins if tool.type in types]


def _maker(format: str) -> Callable[..., Any]:
    """Returns the function that builds tags of one of our formats. Its arguments are those of a registered function."""

    def make(
        tools: list[FunctionToolParam] | None = None,
        builtin_tools: list[BuiltinToolParam] | None = None,
        tool_choice: str = "auto",
        reasoning: bool | str = "enabled",
        any_order: bool = False,
        exclude_special_tokens: bool = True,
        max_whitespace_cnt: int | None = None,
        parallel_tool_calls: bool = True,
        **_: Any,
    ) -> Any:
        named = [_tool(tool.function.name, tool.function) for tool in tools or []] + [_tool(tool.name or tool.type, tool) for tool in builtin_tools or []]
        if tool_choice not in ("auto", "required", "forced"):
            raise ValueError(f"Unsupported tool choice: {tool_choice}")
        if tool_choice == "forced" and len(named) != 1:
            raise ValueError("Forced tool choice must resolve to exactly one tool.")
        choice: Any = {"name": named[0]["name"]} if tool_choice == "forced" else tool_choice
        thinking = {"enabled": _ENABLED.get(format, "begun"), "disabled": "off", "auto": "optional"}[_thinks(reasoning)]
        try:
            made = ToolFormat.named(format).constraint(named, choice=choice, one_call=not parallel_tool_calls, thinking=thinking, any_order=any_order)
        except (Error, TypeError) as error:
            raise ValueError(str(error)) from error
        tag = json.loads(str(made.source))
        if thinking == "off" and format in _CLOSED:
            tag["format"] = {"type": "sequence", "elements": [*_CLOSED[format], tag["format"]]}
        if exclude_special_tokens and not (thinking == "begun" and format in _BEGINS_AGAIN):
            _begin_reasoning_once(tag, format)
        if thinking == "optional" and format in _SKIPPED:
            _skip_reasoning(tag, _SKIPPED[format])
        for part in _parts(tag):
            if builtin_tools and format == "harmony":
                _call_without_namespace(part, {tool.name or tool.type for tool in builtin_tools})
            if max_whitespace_cnt is not None and part.get("type") == "json_schema":
                part["max_whitespace_cnt"] = max_whitespace_cnt
            if not exclude_special_tokens:
                part.pop("excludes", None)
        return StructuralTag.from_json(tag)

    make.__doc__ = f"Tags of our format ``{format}``: of the tools and the choice that :func:`normalize_tool_choice` makes."
    return make


def _tool(name: str, tool: Any) -> dict[str, Any]:
    is_open = tool.parameters is None or getattr(tool, "strict", None) is False
    return {"name": name, "parameters": {"type": "object"} if is_open else tool.parameters}


def _thinks(reasoning: Any) -> str:
    if isinstance(reasoning, bool):
        return "enabled" if reasoning else "disabled"
    if reasoning not in ("enabled", "disabled", "auto"):
        raise ValueError("The 'reasoning' argument must be a bool or one of: 'enabled', 'disabled', 'auto'.")
    return str(reasoning)


def _call_without_namespace(part: dict[str, Any], names: set[str]) -> None:
    """Adapts calls of server tools: gpt-oss writes their names alone, and marks what follows as code."""
    for key, inner in part.items():
        if isinstance(inner, list) and any(isinstance(one, dict) and _called(one) in names for one in inner):
            begins = [_BUILTIN_BEGINS.get(one["begin"].replace(f"functions.{_called(one)}", "{name}")) if _called(one) in names else one["begin"] for one in inner]
            part[key] = [{**one, "begin": begin.replace("{name}", _called(one) or "")} for one, begin in zip(inner, begins) if begin is not None]


def _begin_reasoning_once(tag: dict[str, Any], format: str) -> None:
    """Excludes the marker that begins reasoning from the reasoning itself."""
    markers = ToolFormat.named(format).reasoning_markers
    begin = _OPENS.get(format) if markers is None else markers[0]
    for part in _parts(tag):
        if begin is not None and part.get("role") == "reasoning" and part["content"]["type"] == "any_text":
            known = part["content"].get("excludes", [])
            part["content"]["excludes"] = [*known, *([] if begin in known else [begin])]


def _skip_reasoning(tag: dict[str, Any], instead: str) -> None:
    """Allows the end marker alone where reasoning may be left out."""
    for part in _parts(tag):
        inner = part.get("content")
        if part.get("type") == "repeat" and isinstance(inner, dict) and inner.get("role") == "reasoning":
            part["content"] = {"type": "or", "elements": [inner, {"type": "const_string", "value": instead}]}


def _called(tag: dict[str, Any]) -> str | None:
    role = tag.get("role")
    return role.get("call") if isinstance(role, dict) else None


#: The begin of a call of a function, and that of a server tool if it differs.
_BUILTIN_BEGINS = {
    "<|channel|>commentary to={name}<|constrain|>json<|message|>": "<|channel|>commentary to={name} code<|message|>",
    " to={name}<|channel|>commentary <|constrain|>json<|message|>": " to={name}<|channel|>commentary code<|message|>",
}


def _parts(part: Any) -> Iterator[dict[str, Any]]:
    """Returns the parts of a tag, without those inside schemas."""
    if isinstance(part, dict):
        yield part
        for key, inner in part.items():
            if key != "json_schema":
                yield from _parts(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from _parts(inner)


# XGrammar's names of formats, and ours.
get_llama_structural_tag = register_model_structural_tag("llama")(_maker("llama3"))
get_kimi_structural_tag = register_model_structural_tag("kimi")(_maker("kimi_k2"))
get_kimi_k3_structural_tag = register_model_structural_tag("kimi_k3")(_maker("kimi_k3"))
get_deepseek_r1_structural_tag = register_model_structural_tag("deepseek_r1")(_maker("deepseek_r1"))
get_deepseek_v3_1_structural_tag = register_model_structural_tag("deepseek_v3_1")(_maker("deepseek_v3_1"))
get_deepseek_v3_2_structural_tag = register_model_structural_tag("deepseek_v3_2")(_maker("deepseek_v3_2"))
get_deepseek_v4_structural_tag = register_model_structural_tag("deepseek_v4")(_maker("deepseek_v4"))
get_deepseek_v4_1_structural_tag = register_model_structural_tag("deepseek_v4_1")(_maker("deepseek_v4_1"))
get_qwen_3_structural_tag = register_model_structural_tag("qwen_3")(_maker("qwen3"))
get_qwen_3_5_structural_tag = register_model_structural_tag("qwen_3_5")(_maker("qwen3_coder"))
get_qwen_3_coder_structural_tag = register_model_structural_tag("qwen_3_coder")(get_qwen_3_5_structural_tag)
get_mimo_structural_tag = register_model_structural_tag("mimo")(_maker("mimo"))
get_harmony_structural_tag = register_model_structural_tag("harmony")(_maker("harmony"))
get_minimax_structural_tag = register_model_structural_tag("minimax")(_maker("minimax"))
get_minimax_m3_structural_tag = register_model_structural_tag("minimax_m3")(_maker("minimax_m3"))
get_glm_4_7_structural_tag = register_model_structural_tag("glm_4_7")(_maker("glm"))
get_cohere_structural_tag = register_model_structural_tag("cohere")(_maker("cohere_xml"))
get_exaone_structural_tag = register_model_structural_tag("exaone")(_maker("exaone4"))
