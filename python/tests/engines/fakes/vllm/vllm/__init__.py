"""As much of vLLM 0.32 as its structured outputs are made of, for tests on machines without it.

Names, arguments and the order of calls are vLLM's; the code is ours. ``make test-engines`` runs the same tests with the real thing, which is what
keeps these honest.
"""
