"""The structural tags of families of models, made by our own formats."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ... import Error, ToolFormat
from .structural_tag import StructuralTag

__all__ = ["get_builtin_structural_tag", "get_model_structural_tag", "register_model_structural_tag"]

#: XGrammar's names of formats that have another one here.
_OTHER_NAMES = {
    "llama": "llama3",
    "kimi": "kimi_k2",
    "deepseek_r1": "deepseek_r1",
    "qwen_3": "qwen3",
    "qwen_3_5": "qwen3_coder",
    "qwen_3_coder": "qwen3_coder",
    "glm_4_7": "glm",
}
_registered: dict[str, Callable[..., Any]] = {}


def register_model_structural_tag(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Makes a function of one's own the maker of tags of that name. It gets the tools, no builtin tools, the choice and ``reasoning``, and what else was asked for as keywords."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        _registered[name] = function
        return function

    return decorate


def get_model_structural_tag(
    model: str,
    tools: list[dict[str, Any]] | None = None,
    tool_choice: str | dict[str, Any] | None = "auto",
    reasoning: bool = True,
    force_reasoning: bool = False,
    any_order: bool = False,
    exclude_special_tokens: bool = True,
    max_whitespace_cnt: int | None = None,
) -> Any:
    """The tag of what a model may write: its reasoning, text and calls of tools. The tools and the choice are those of OpenAI's API; a tool without parameters takes any object."""
    if model in _registered:
        options = {"any_order": any_order, "exclude_special_tokens": exclude_special_tokens, "max_whitespace_cnt": max_whitespace_cnt}
        return _registered[model](tools or [], [], tool_choice or "auto", reasoning, **options)
    if not exclude_special_tokens:
        raise ValueError("exclude_special_tokens=False is not offered: text without the markers is what tells text from calls")
    name = _OTHER_NAMES.get(model, model)
    if name not in ToolFormat.names():
        known = sorted({*ToolFormat.names(), *_OTHER_NAMES, *_registered})
        raise ValueError(f"Unknown format type: {model}, supported types: {known}")
    if not isinstance(tools, (list, type(None))):
        raise ValueError(f"tools must be a list, and this is {type(tools).__name__}")
    named = [_tool(tool) for tool in tools or []]
    try:
        made = ToolFormat.named(name).constraint(
            named, choice=_choice(tool_choice), thinking="optional" if reasoning else "off", any_order=any_order
        )
    except (Error, TypeError) as error:
        raise ValueError(str(error)) from error
    tag = json.loads(str(made.source))
    if max_whitespace_cnt is not None:
        _limit_whitespace(tag, max_whitespace_cnt)
    return StructuralTag.from_json(tag)


def get_builtin_structural_tag(model: str, **options: Any) -> Any:
    """The older name of :func:`get_model_structural_tag`."""
    return get_model_structural_tag(model, **options)


def _tool(tool: Any) -> dict[str, Any]:
    if not isinstance(tool, dict):
        raise ValueError(f"a tool is a dict, and this is {type(tool).__name__}")
    inner = tool.get("function", tool)
    if not isinstance(inner, dict):
        raise ValueError(f"the function of a tool is a dict, and this is {type(inner).__name__}")
    # A tool of the server's own is called by its type.
    name = inner.get("name", tool.get("type"))
    schema = inner.get("parameters")
    is_open = schema is None or inner.get("strict") is False
    return {"name": name, "parameters": {"type": "object"} if is_open else schema}


def _choice(choice: Any) -> Any:
    if choice is None or isinstance(choice, str):
        return choice or "auto"
    if not isinstance(choice, dict):
        raise ValueError(f"tool_choice is a word or a dict, and this is {type(choice).__name__}")
    if choice.get("type") == "allowed_tools":
        allowed = choice.get("allowed_tools", choice)
        names = [_tool(tool)["name"] for tool in allowed.get("tools", [])]
        return {"allowed": names, "required": allowed.get("mode") == "required"}
    return {"name": _tool(choice)["name"]}


def _limit_whitespace(part: Any, most: int) -> None:
    if isinstance(part, dict):
        if part.get("type") == "json_schema" and "json_schema" in part:
            part["max_whitespace_cnt"] = most
            return
        for inner in part.values():
            _limit_whitespace(inner, most)
    elif isinstance(part, list):
        for inner in part:
            _limit_whitespace(inner, most)
