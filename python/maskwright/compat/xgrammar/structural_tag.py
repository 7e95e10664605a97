"""The parts of a structural tag as classes.

>>> from maskwright.compat.xgrammar.structural_tag import JSONSchemaFormat, StructuralTag, TagFormat
>>> tag = TagFormat(begin="<n>", content=JSONSchemaFormat(json_schema={"type": "integer"}), end="</n>")
>>> StructuralTag(format=tag).model_dump_json()
'{"type": "structural_tag", "format": {"type": "tag", "begin": "<n>", "content": {"type": "json_schema", "json_schema": {"type": "integer"}}, "end": "</n>"}}'

Fields are given by name. Fields that are not given are not written, so they have the default of the notation. A part
may also be given as a dict.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from ...constraints import schema_text
from .exception import InvalidStructuralTagError

__all__ = [
    "AnyTextFormat",
    "AnyTokensFormat",
    "ConstStringFormat",
    "DispatchFormat",
    "ExcludeTokenFormat",
    "Format",
    "GrammarFormat",
    "JSONSchemaFormat",
    "OptionalFormat",
    "OrFormat",
    "PlusFormat",
    "QwenXMLParameterFormat",
    "RegexFormat",
    "RepeatFormat",
    "SequenceFormat",
    "StarFormat",
    "StructuralTag",
    "StructuralTagItem",
    "TagFormat",
    "TagsWithSeparatorFormat",
    "TokenDispatchFormat",
    "TokenFormat",
    "TokenTriggeredTagsFormat",
    "TriggeredTagsFormat",
]


class Format:
    """A part of a structural tag. Each kind lists its fields, and the defaults of those that may be left out."""

    type: str
    #: The required fields.
    _needs: ClassVar[tuple[str, ...]] = ()
    #: The optional fields, with their defaults.
    _may: ClassVar[dict[str, Any]] = {}

    def __init__(self, **fields: Any) -> None:
        kind = fields.pop("type", self.type)
        name = type(self).__name__
        if kind != self.type:
            raise ValueError(f"{name}: the type is {self.type!r}, not {kind!r}")
        for field in self._needs:
            if field not in fields:
                raise ValueError(f"{name}: the field {field!r} is missing")
        for field in fields:
            if field not in self._needs and field not in self._may:
                known = ", ".join([*self._needs, *self._may])
                raise ValueError(f"{name}: there is no field {field!r}; there are {known}")
        self._given = list(fields)
        for field, value in {**{key: _fresh(value) for key, value in self._may.items()}, **fields}.items():
            setattr(self, field, _read(value))

    def model_dump(self, **_: Any) -> dict[str, Any]:
        """Returns the part as nested dicts."""
        changed = [field for field, otherwise in self._may.items() if field in self._given or getattr(self, field) != otherwise]
        return {"type": self.type} | {field: _written(getattr(self, field)) for field in [*self._needs, *changed]}

    def model_dump_json(self, indent: int | None = None, **_: Any) -> str:
        """Returns the part as JSON."""
        return json.dumps(self.model_dump(), indent=indent, ensure_ascii=False)

    @classmethod
    def model_validate(cls, obj: Any) -> Any:
        """Reads a part of this kind from a dict."""
        if isinstance(obj, cls):
            return obj
        if not isinstance(obj, dict):
            raise ValueError(f"{cls.__name__}: this must be a dict, and is {type(obj).__name__}")
        return cls(**obj)

    @classmethod
    def model_validate_json(cls, json_data: str | bytes) -> Any:
        """Reads a part of this kind from JSON."""
        return cls.model_validate(json.loads(json_data))

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Any:
        """Returns a copy, with other values in some fields."""
        made = copy.deepcopy(self) if deep else copy.copy(self)
        made._given = list(self._given)
        for field, value in (update or {}).items():
            if field not in self._needs and field not in self._may:
                raise ValueError(f"{type(self).__name__}: there is no field {field!r}")
            setattr(made, field, _read(value))
            made._given.append(field)
        return made

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        """Returns a schema for such a part. It does not describe the values of the fields, which are checked on
        reading."""
        fields = {"type": {"const": cls.type, "default": cls.type}} | {field: {} for field in [*cls._needs, *cls._may]}
        return {"title": cls.__name__, "type": "object", "properties": fields, "required": list(cls._needs), "additionalProperties": False}

    # Servers use parts as fields of Pydantic models, and Pydantic calls these methods.

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        written = core_schema.plain_serializer_function_ser_schema(lambda part: part.model_dump())
        return core_schema.no_info_plain_validator_function(cls.model_validate, serialization=written)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> dict[str, Any]:
        return cls.model_json_schema()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Format) and self.model_dump() == other.model_dump()

    def __repr__(self) -> str:
        fields = ", ".join(f"{field}={getattr(self, field)!r}" for field in [*self._needs, *self._may])
        return f"{type(self).__name__}({fields})"


class ConstStringFormat(Format):
    """A fixed text."""

    type = "const_string"
    _needs = ("value",)


class JSONSchemaFormat(Format):
    """A document that satisfies a schema, in one of the supported styles."""

    type = "json_schema"
    _needs = ("json_schema",)
    _may = {"style": "json", "any_order": False, "max_whitespace_cnt": None, "excludes": []}


class QwenXMLParameterFormat(Format):
    """A schema in the style ``qwen_xml``, in the older notation."""

    type = "qwen_xml_parameter"
    _needs = ("json_schema",)


class AnyTextFormat(Format):
    """Free text."""

    type = "any_text"
    _may = {"excludes": [], "max_tokens": None, "max_chars": None, "min_chars": 0}


class TokenFormat(Format):
    """One token, by number or by name."""

    type = "token"
    _needs = ("token",)


class ExcludeTokenFormat(Format):
    """One token except these."""

    type = "exclude_token"
    _may = {"exclude_tokens": []}


class AnyTokensFormat(Format):
    """Tokens except these."""

    type = "any_tokens"
    _may = {"exclude_tokens": [], "max_tokens": None}


class GrammarFormat(Format):
    """A text of a grammar: EBNF, or Lark with ``syntax="lark"``."""

    type = "grammar"
    _needs = ("grammar",)
    _may = {"syntax": None}


class RegexFormat(Format):
    """A text that matches a regular expression."""

    type = "regex"
    _needs = ("pattern",)
    _may = {"excludes": []}


class SequenceFormat(Format):
    """Parts one after the other."""

    type = "sequence"
    _needs = ("elements",)


class OrFormat(Format):
    """One of some parts."""

    type = "or"
    _needs = ("elements",)


class TagFormat(Format):
    """A beginning, a content and an end."""

    type = "tag"
    _needs = ("begin", "content", "end")
    #: The role of the content for our reader: ``"reasoning"``, or ``{"call": NAME}``.
    _may = {"role": None}


class TriggeredTagsFormat(Format):
    """Free text with tags in it, each announced by a trigger."""

    type = "triggered_tags"
    _needs = ("triggers", "tags")
    _may = {"at_least_one": False, "stop_after_first": False, "excludes": []}


class TokenTriggeredTagsFormat(Format):
    """The same, with tokens as triggers."""

    type = "token_triggered_tags"
    _needs = ("trigger_tokens", "tags")
    _may = {"exclude_tokens": [], "at_least_one": False, "stop_after_first": False}


class TagsWithSeparatorFormat(Format):
    """Tags with a text between any two."""

    type = "tags_with_separator"
    _needs = ("tags", "separator")
    _may = {"last_tags": [], "at_least_one": False, "stop_after_first": False}


class OptionalFormat(Format):
    """A part, or nothing."""

    type = "optional"
    _needs = ("content",)


class PlusFormat(Format):
    """A part, once or more."""

    type = "plus"
    _needs = ("content",)


class StarFormat(Format):
    """A part, any number of times."""

    type = "star"
    _needs = ("content",)


class RepeatFormat(Format):
    """A part, repeated; a maximum of −1 means no limit."""

    type = "repeat"
    _needs = ("min", "max", "content")


class DispatchFormat(Format):
    """Free text in which certain strings determine what follows them."""

    type = "dispatch"
    _needs = ("rules",)
    _may = {"loop": True, "excludes": []}


class TokenDispatchFormat(Format):
    """The same, with tokens."""

    type = "token_dispatch"
    _needs = ("rules",)
    _may = {"loop": True, "exclude_tokens": []}


class StructuralTag(Format):
    """A whole structural tag."""

    type = "structural_tag"
    _needs = ("format",)

    def __init__(self, format: Any = None, **fields: Any) -> None:
        super().__init__(format=format, **fields) if format is not None else super().__init__(**fields)

    @staticmethod
    def from_json(json_str: str | dict[str, Any]) -> StructuralTag:
        """Reads a structural tag."""
        try:
            tag = json.loads(json_str) if isinstance(json_str, str) else json_str
        except ValueError as error:
            raise InvalidStructuralTagError(f"this is no JSON: {error}") from error
        made: StructuralTag = StructuralTag.model_validate(tag)
        return made

    @staticmethod
    def from_legacy_structural_tag(tags: Sequence[StructuralTagItem], triggers: Sequence[str]) -> StructuralTag:
        """Converts tags and triggers in the older notation."""
        items = [TagFormat(begin=tag.begin, content=JSONSchemaFormat(json_schema=json.loads(schema_text(tag.schema_))), end=tag.end) for tag in tags]
        return StructuralTag(format=TriggeredTagsFormat(triggers=list(triggers), tags=items))


class StructuralTagItem:
    """A tag in the older notation: its begin, the schema of its content, and its end."""

    def __init__(self, begin: str, schema: Any, end: str) -> None:
        self.begin, self.schema_, self.end = begin, schema, end

    @property
    def schema(self) -> Any:
        """The schema of its content."""
        return self.schema_


_KINDS: dict[str, type[Format]] = {kind.type: kind for kind in Format.__subclasses__()}


def _read(value: Any) -> Any:
    """Converts dicts with one of our types to parts, also inside lists and tuples."""
    if isinstance(value, dict) and isinstance(value.get("type"), str) and value["type"] in _KINDS and value["type"] != "structural_tag":
        kind = _KINDS[value["type"]]
        # A schema may also have a `type`, but lacks the other required fields.
        return kind(**value) if all(field in value for field in kind._needs) else value
    if isinstance(value, (list, tuple)):
        return [_read(item) for item in value]
    return value


def _written(value: Any) -> Any:
    if isinstance(value, Format):
        return value.model_dump()
    if isinstance(value, (list, tuple)):
        return [_written(item) for item in value]
    return value


def _fresh(value: Any) -> Any:
    return list(value) if isinstance(value, list) else value
