"""Masks for JAX. Only JAX can write into its arrays, so masks are filled in arrays of NumPy, and applied in JAX.

>>> import jax.numpy as jnp
>>> import maskwright as mw
>>> import maskwright.jax as masks
>>> vocabulary = mw.Vocabulary.from_tokens([b"yes", b"no", b"maybe", b"<end>"], eos=3)
>>> matcher = mw.Compiler(vocabulary).compile(mw.choice(["yes", "no"])).matcher()
>>> mask = masks.allocate_token_bitmask(1, vocabulary.size)
>>> masks.fill_next_token_bitmask(matcher, mask)
>>> masks.apply_token_bitmask(jnp.zeros((1, 4)), mask)
Array([[  0.,   0., -inf, -inf]], dtype=float32)

``apply_token_bitmask`` is compiled once for each shape, and can be called inside other compiled functions. The mask is
an argument with 32 tokens in each word, so the data that is sent to the device is a thirty-second of the logits.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .numpy import (
    allocate_token_bitmask,
    fill_next_token_bitmask,
    fill_next_token_bitmask_par,
    get_bitmask_shape,
)

__all__ = [
    "allocate_token_bitmask",
    "apply_token_bitmask",
    "fill_next_token_bitmask",
    "fill_next_token_bitmask_par",
    "get_bitmask_shape",
]


@jax.jit
def apply_token_bitmask(logits: jax.Array, bitmask: jax.Array) -> jax.Array:
    """Returns the logits with −∞ for forbidden tokens. Logits beyond the mask are forbidden."""
    logits, words = jnp.asarray(logits), jnp.asarray(bitmask)
    if words.dtype not in (jnp.int32, jnp.uint32):
        raise TypeError(f"the elements of a mask must be 32-bit integers, and these are {words.dtype}")
    if not jnp.issubdtype(logits.dtype, jnp.floating):
        raise TypeError(f"logits must be floating-point numbers, and these are {logits.dtype}")
    if logits.ndim != words.ndim or logits.shape[:-1] != words.shape[:-1]:
        raise ValueError(f"logits of shape {logits.shape} and a mask of shape {words.shape} do not go together")
    # Shifting signed words would copy the sign bit.
    words = jax.lax.bitcast_convert_type(words, jnp.uint32)
    bits = (words[..., None] >> jnp.arange(32, dtype=jnp.uint32)) & 1
    allowed = bits.reshape(*words.shape[:-1], words.shape[-1] * 32).astype(bool)[..., : logits.shape[-1]]
    missing = logits.shape[-1] - allowed.shape[-1]
    if missing > 0:
        allowed = jnp.pad(allowed, [(0, 0)] * (allowed.ndim - 1) + [(0, missing)])
    return jnp.where(allowed, logits, jnp.array(-jnp.inf, dtype=logits.dtype))
