"""The function under the name that it has in XGrammar. It works for all devices."""

from . import apply_by_position as apply_token_bitmask_inplace_cpu

__all__ = ["apply_token_bitmask_inplace_cpu"]
