"""Processors for other packages: ``hf`` for transformers."""
