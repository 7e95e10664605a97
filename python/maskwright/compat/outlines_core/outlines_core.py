"""The same interface under the name of outlines-core's compiled module."""

from . import Guide, Index, Vocabulary, json_schema

__all__ = ["Guide", "Index", "Vocabulary", "json_schema"]
