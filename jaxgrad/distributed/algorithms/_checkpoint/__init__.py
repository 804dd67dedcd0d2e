"""Modules in wrappers that save less for the backward pass."""

from ....names.missing import missing_in

__getattr__ = missing_in(__name__)
