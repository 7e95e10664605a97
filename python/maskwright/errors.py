"""What can go wrong. Every exception of the package is an ``Error``, and one of Python's own as well.

>>> import maskwright as mw
>>> issubclass(mw.ConstraintError, ValueError), issubclass(mw.ConstraintError, mw.Error)
(True, True)
"""


class Error(Exception):
    """Anything that the engine refuses."""


class ConstraintError(Error, ValueError):
    """The constraint is wrong, too large, or asks for what cannot be enforced. The message names the place."""


class UnsupportedError(ConstraintError):
    """The constraint may be right, but it cannot be enforced exactly."""


class LimitError(ConstraintError):
    """The constraint is larger than a limit; or a mask, or taking a token, needs more steps than the compiler's ``mask_steps``, or meets another limit of matching. The message names the limit, the rule and what to change. The
    matcher is as before.

    From ``fill_masks`` and ``accept_tokens``, ``rows`` has the number of each row that is concerned, with the message; all other rows are done. ``taken`` is what ``accept_tokens`` would
    have returned.
    """

    rows: dict[int, str] | None = None
    taken: list[bool] | None = None
    token: int | None = None


class CompileTimeout(Error, TimeoutError):
    """Compiling took longer than the compiler's ``timeout``."""


class ServiceError(Error, RuntimeError):
    """The compile service is busy or closed, or a compilation panicked, which is a bug."""


class TokenError(Error, ValueError):
    """A token may not come next, or there is no such token. ``token`` is its number, where there is one."""

    token: int | None = None


class VocabularyError(Error, ValueError):
    """A tokenizer cannot be read, or its tokens make no vocabulary."""


class BudgetError(Error, ValueError):
    """The text cannot be completed within so many tokens."""


class FileError(Error, ValueError):
    """A saved file is damaged, of another version, or of another vocabulary."""
