"""Tools and tool choices as in OpenAI's chat API, with XGrammar's extension for tools of the server itself. The classes
are Pydantic models.

>>> FunctionToolParam(function={"name": "weather"}).function.parameters is None
True
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel

__all__ = [
    "AllowedToolChoiceParam",
    "AllowedToolRef",
    "AllowedToolsParam",
    "BuiltinToolChoiceParam",
    "BuiltinToolParam",
    "FunctionDefinition",
    "FunctionToolParam",
    "NamedToolChoiceFunction",
    "NamedToolChoiceParam",
    "ToolChoiceOptionParam",
    "ToolParam",
]


class FunctionDefinition(BaseModel):
    """A function that a model may call. Without ``parameters``, or if it is not ``strict``, it takes any object."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class FunctionToolParam(BaseModel):
    """A function among the tools of a request."""

    type: Literal["function"] = "function"
    function: FunctionDefinition


class BuiltinToolParam(BaseModel):
    """A tool of the server itself. The model calls it by its ``name`` or, without one, by its ``type``."""

    type: str
    name: str | None = None
    parameters: dict[str, Any] | None = None


ToolParam = FunctionToolParam | BuiltinToolParam


class NamedToolChoiceFunction(BaseModel):
    """The name of a function."""

    name: str


class NamedToolChoiceParam(BaseModel):
    """The function that must be called."""

    type: Literal["function"] = "function"
    function: NamedToolChoiceFunction


class BuiltinToolChoiceParam(BaseModel):
    """The tool of the server that must be called: the one of this ``type``."""

    type: str
    name: str | None = None


class AllowedToolRef(BaseModel):
    """A tool that may be called: a function by its name, a tool of the server by its ``type``."""

    type: str
    function: NamedToolChoiceFunction | None = None
    name: str | None = None


class AllowedToolsParam(BaseModel):
    """The tools that may be called, and whether one of them must be."""

    mode: Literal["auto", "required"]
    tools: list[AllowedToolRef]


class AllowedToolChoiceParam(BaseModel):
    """A choice of some of the tools."""

    type: Literal["allowed_tools"] = "allowed_tools"
    allowed_tools: AllowedToolsParam


ToolChoiceOptionParam = Literal["none", "auto", "required"] | NamedToolChoiceParam | AllowedToolChoiceParam | BuiltinToolChoiceParam
