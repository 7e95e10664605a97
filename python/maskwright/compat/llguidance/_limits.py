"""The limits of llguidance."""

from __future__ import annotations

from dataclasses import dataclass

_DEFAULTS = {
    "max_items_in_row": 2_000,
    "initial_lexer_fuel": 1_000_000,
    "step_lexer_fuel": 200_000,
    "step_max_items": 50_000,
    "max_lexer_states": 250_000,
    "max_grammar_size": 500_000,
    "precompute_large_lexemes": True,
    "verbose_errors": True,
}


@dataclass(frozen=True, kw_only=True)
class LLParserLimits:
    """Limits of llguidance's parser. This engine counts other things, so they are stored but have no effect. Use
    ``mask_steps`` of ``maskwright.Compiler`` to limit the work for a mask."""

    max_items_in_row: int | None = None
    initial_lexer_fuel: int | None = None
    step_lexer_fuel: int | None = None
    step_max_items: int | None = None
    max_lexer_states: int | None = None
    max_grammar_size: int | None = None
    precompute_large_lexemes: bool | None = None
    verbose_errors: bool | None = None

    def __post_init__(self) -> None:
        for name, value in _DEFAULTS.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
