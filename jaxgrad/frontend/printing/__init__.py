"""Tensors as text and as HTML."""
