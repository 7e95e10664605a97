"""The calls of other engines, answered by this one.

Programs that are written for outlines-core, XGrammar or llguidance change one line:

* ``import maskwright.compat.outlines_core as outlines_core``
* ``import maskwright.compat.xgrammar as xgrammar``
* ``import maskwright.compat.llguidance as llguidance``

Each module has what servers and libraries call; what it does not have is missing, rather than there and without effect. Names, arguments, return values
and the kinds of exceptions are those of the other engine. The masks are ours: exact for the constraint, where the other engine may be looser or stricter. Where
that is by design, the module says so.
"""
