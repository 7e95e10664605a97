"""Masks in arrays: ``numpy``, ``torch`` and ``mlx``, each with functions to allocate, fill and apply masks. Each
needs its package."""
