"""Importing this module installs jaxgrad as torch, for processes that are started anew."""

from __future__ import annotations

from .import_hook import install

install()
