"""Tensors, nodes, and what an operator records."""
