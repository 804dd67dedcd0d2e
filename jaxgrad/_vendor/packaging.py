"""The package packaging where it is installed, as torch._vendor.packaging."""

from __future__ import annotations

from ..late import LateModule
from ..names.missing import missing_in

version = LateModule("packaging.version")

__getattr__ = missing_in(__name__)
