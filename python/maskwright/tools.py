"""Tool calls: converts the tools of a request to a constraint, and the written text to events.

>>> import maskwright as mw
>>> city = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
>>> wanted = mw.ToolFormat.named("hermes").constraint([{"name": "weather", "parameters": city}])
>>> reader = mw.StreamReader(wanted)
>>> events = reader.feed('Well. <tool_call>\\n{"name": "weather", "arguments": {"city": "Oslo"}}\\n</tool_call>')
>>> [(event.kind, event.text) for event in events]
[('text', 'Well. '), ('call', ''), ('arguments', '{"city": "Oslo"}'), ('call_done', '{"city": "Oslo"}')]
>>> reader.finish()
([], 'complete')
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from . import constraints
from ._maskwright import Constraint, ToolFormat
from .errors import ConstraintError

__all__ = ["constraint", "tag_text"]


def constraint(
    format: ToolFormat,
    tools: Iterable[Mapping[str, Any]] | None = None,
    *,
    choice: str | Mapping[str, Any] = "auto",
    one_call: bool = False,
    thinking: str = "optional",
    answer: Any = None,
    any_order: bool = False,
    **options: Any,
) -> Constraint:
    """Returns a constraint for what a model may write in a format. This is ``ToolFormat.constraint``.

    * ``choice``: ``auto``, ``none``, ``required``, ``{"name": …}`` for one tool once, or ``{"allowed": […], "required": …}``.
    * ``one_call``: at most one call.
    * ``thinking``: ``optional``, ``off``, ``required``, or ``begun`` if the prompt ends inside the reasoning.
    * ``answer``: the format of an answer without calls, in the notation of structural tags.
    * ``any_order``: arguments in any order.

    Further options are those of :func:`maskwright.structural_tag`.
    """
    request = {
        "tools": [_tool(tool) for tool in tools or ()],
        "choice": _choice(choice),
        "one_call": one_call,
        "thinking": thinking,
        "answer": answer,
        "any_order": any_order,
    }
    return constraints.structural_tag(format.tag_of(constraints._dumps(request)), **options)


def tag_text(tag: Any) -> str:
    """Returns a structural tag as JSON text."""
    if isinstance(tag, Constraint):
        if tag.kind != "structural_tag":
            raise ConstraintError(f"what is read is a structural tag, and this is a constraint of kind {tag.kind}")
        return str(tag.source)
    return str(constraints.structural_tag(tag).source)


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(tool, Mapping):
        raise TypeError(f"a tool is a dict with a name and its parameters, and this is {type(tool).__name__}")
    written = dict(tool)
    if isinstance(written.get("function"), Mapping):
        written["function"] = _tool(written["function"])
    schema = written.get("parameters")
    if schema is not None:
        written["parameters"] = json.loads(constraints.schema_text(schema))
    return written


def _choice(choice: str | Mapping[str, Any]) -> Any:
    # The notation of OpenAI's API: {"type": "function", "function": {"name": …}}.
    if isinstance(choice, Mapping) and isinstance(choice.get("function"), Mapping):
        return {"name": choice["function"].get("name")}
    return dict(choice) if isinstance(choice, Mapping) else choice
