"""The interface of outlines-core: ``Vocabulary``, ``Index``, ``Guide``, ``json_schema`` and ``kernels``.

>>> from maskwright.compat.outlines_core import Guide, Index, Vocabulary
>>> vocabulary = Vocabulary(3, {"ab": [0], "a": [1], "b": [2]})
>>> guide = Guide(Index("a*b", vocabulary))
>>> sorted(guide.get_tokens())
[0, 1, 2]
>>> sorted(guide.advance(1))
[0, 1, 2]
>>> guide.advance(2)
[3]
>>> guide.is_finished()
True

Differences: if a pattern can be read in two ways, such as ``(a|ab)(c|bc)?``, outlines-core forbids some texts that
match, and this module does not; the numbering of states differs; ``from_binary`` reads what ``__reduce__`` wrote here,
and refuses files of outlines-core itself; and ``build_regex_from_schema`` is exact or refuses, except that values which
a schema leaves open are nested at most ``max_recursion_depth`` levels deep.
"""

from . import json_schema
from ._guide import Guide
from ._index import Index
from ._vocabulary import Vocabulary

__all__ = ["Guide", "Index", "Vocabulary", "json_schema"]
