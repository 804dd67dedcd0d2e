"""Compiled functions of state: captured tensors, guards and side effects."""
