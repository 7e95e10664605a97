"""The entry points that engines call if the package is installed. ``pyproject.toml`` lists them.

Engines call these in all of their processes, even if this package is not used, so nothing is imported before that is
known.
"""

from __future__ import annotations

import os


def vllm() -> None:
    """Called by vLLM. Installing a package must not change what a server does, so the plug-in must be enabled
    explicitly: with ``MASKWRIGHT_VLLM=1``, or by naming it in ``VLLM_PLUGINS``."""
    named = "maskwright" in (name.strip() for name in os.environ.get("VLLM_PLUGINS", "").split(","))
    if asked("MASKWRIGHT_VLLM", named):
        from .vllm import install

        install()


def sglang() -> None:
    """Called by SGLang. It only adds a name to the values of ``--grammar-backend``, so it is always safe."""
    from .sglang import register

    register()


def asked(name: str, otherwise: bool) -> bool:
    """Returns the value of an environment variable as a bool, or the default."""
    value = os.environ.get(name, "").strip().lower()
    if value == "":
        return otherwise
    if value in ("1", "true", "yes", "on"):
        return True
    if value in ("0", "false", "no", "off"):
        return False
    raise ValueError(f"{name} must be 1 or 0, and is {value!r}")
