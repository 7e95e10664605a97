"""What engines call when they find the package installed. Each function is named in ``pyproject.toml``.

Engines call these in all of their processes, whether anybody wants us or not, so nothing is imported before that is known.
"""

from __future__ import annotations

import os


def vllm() -> None:
    """Called by vLLM. Installing a package must not change what a server does, so somebody has to ask for it: with ``MASKWRIGHT_VLLM=1``, or by
    naming the plug-in in ``VLLM_PLUGINS``."""
    named = "maskwright" in (name.strip() for name in os.environ.get("VLLM_PLUGINS", "").split(","))
    if asked("MASKWRIGHT_VLLM", named):
        from .vllm import install

        install()


def sglang() -> None:
    """Called by SGLang. It only adds a name to those that ``--grammar-backend`` may have, so it can always be done."""
    from .sglang import register

    register()


def asked(name: str, otherwise: bool) -> bool:
    """What an environment variable says, or else."""
    value = os.environ.get(name, "").strip().lower()
    if value == "":
        return otherwise
    if value in ("1", "true", "yes", "on"):
        return True
    if value in ("0", "false", "no", "off"):
        return False
    raise ValueError(f"{name} must be 1 or 0, and is {value!r}")
