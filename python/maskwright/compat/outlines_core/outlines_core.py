"""The same again under the name that the compiled module of outlines-core has."""

from . import Guide, Index, Vocabulary, json_schema

__all__ = ["Guide", "Index", "Vocabulary", "json_schema"]
