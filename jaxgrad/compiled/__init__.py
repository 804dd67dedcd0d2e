"""Compiled functions: their programs, and what a call of them does."""
