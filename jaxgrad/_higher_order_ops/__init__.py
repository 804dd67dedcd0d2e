"""Control flow by PyTorch's private names for it."""

from __future__ import annotations

from ..capture.control_flow import cond as cond
from ..capture.control_flow import scan as scan
from ..capture.control_flow import while_loop as while_loop
from ..names.not_provided import names_of
from .associative_scan import associative_scan as associative_scan
from .map import map as map

__getattr__, __dir__ = names_of(__name__)
