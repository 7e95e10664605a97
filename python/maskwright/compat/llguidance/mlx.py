"""Masks for MLX, filled in arrays of NumPy."""

from ...mlx import apply_token_bitmask
from .numpy import allocate_token_bitmask, fill_next_token_bitmask, get_bitmask_shape

__all__ = ["allocate_token_bitmask", "apply_token_bitmask", "fill_next_token_bitmask", "get_bitmask_shape"]
