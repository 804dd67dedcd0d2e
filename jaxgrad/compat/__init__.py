"""Programs and packages that import torch, unmodified: `install()`, or `python -m jaxgrad run`."""

from __future__ import annotations

from .import_hook import install as install
