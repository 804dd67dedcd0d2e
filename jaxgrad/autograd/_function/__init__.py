"""Calls of a user's `Function`."""
