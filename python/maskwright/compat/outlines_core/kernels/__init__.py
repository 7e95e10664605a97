"""Masks in arrays: ``numpy``, ``torch`` and ``mlx``, each with allocate, fill and apply. Each needs its package."""
