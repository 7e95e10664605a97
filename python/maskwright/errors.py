"""The exceptions of this package. Each is an ``Error``, and also one of Python's own exceptions.

>>> import maskwright as mw
>>> issubclass(mw.ConstraintError, ValueError), issubclass(mw.ConstraintError, mw.Error)
(True, True)
"""


class Error(Exception):
    """The base class of all errors of the engine."""


class ConstraintError(Error, ValueError):
    """The constraint is invalid, too large, or cannot be enforced. The message names the place."""


class UnsupportedError(ConstraintError):
    """The constraint may be valid, but it cannot be enforced exactly."""


class LimitError(ConstraintError):
    """The constraint is larger than a limit; or computing a mask or accepting a token needs more steps than the
    compiler's ``mask_steps``, or exceeds another limit of matching. The message names the limit, the rule and what to
    change. The matcher does not change.

    From ``fill_masks`` and ``accept_tokens``, ``rows`` maps the index of each failed row to its message; all other rows
    are done. ``taken`` is what ``accept_tokens`` would have returned.
    """

    rows: dict[int, str] | None = None
    taken: list[bool] | None = None
    token: int | None = None


class CompileTimeout(Error, TimeoutError):
    """Compiling took longer than the compiler's ``timeout``."""


class ServiceError(Error, RuntimeError):
    """The compile service is busy or closed, or a compilation panicked, which is a bug."""


class TokenError(Error, ValueError):
    """A token may not come next, or there is no such token. ``token`` is its id, if there is one."""

    token: int | None = None


class VocabularyError(Error, ValueError):
    """A tokenizer cannot be read, or its tokens do not form a valid vocabulary."""


class BudgetError(Error, ValueError):
    """The text cannot be completed within this many tokens."""


class FileError(Error, ValueError):
    """A saved file is damaged, or belongs to another version or another vocabulary."""
