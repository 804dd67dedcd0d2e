"""Compiled functions: their programs and their calls."""
