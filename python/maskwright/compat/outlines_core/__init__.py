"""The calls of outlines-core: ``Vocabulary``, ``Index``, ``Guide``, ``json_schema`` and ``kernels``.

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

What differs: where a pattern can be read in two ways, as ``(a|ab)(c|bc)?`` can, outlines-core forbids some texts that match, and this does not; states are numbered from another number
on; ``from_binary`` reads what ``__reduce__`` wrote here, and refuses files of outlines-core itself; and ``build_regex_from_schema`` is exact or refuses, except that
values which a schema leaves open nest as deep as ``max_recursion_depth`` says.
"""

from . import json_schema
from ._guide import Guide
from ._index import Index
from ._vocabulary import Vocabulary

__all__ = ["Guide", "Index", "Vocabulary", "json_schema"]
