"""Names of torch._dynamo, the compiler of PyTorch, that programs call.

`config` has its options, which have no effect.
"""

from __future__ import annotations

import collections
import sys

from ..compiled.ignored_options import IgnoredOptions
from ..compiler import allow_in_graph as allow_in_graph
from ..compiler import assume_constant_result as assume_constant_result
from ..compiler import disable as disable
from ..compiler import is_compiling as is_compiling
from ..compiler import list_backends as list_backends
from ..compiler import reset as reset
from ..compiler import set_stance as set_stance
from ..compiler import substitute_in_graph as substitute_in_graph
from ..names.not_provided import names_of
from ..nn.compile import OptimizedModule as OptimizedModule
from ..nn.compile import compile

config = IgnoredOptions("jaxgrad._dynamo.config")
eval_frame = utils = sys.modules[__name__]  # the modules of PyTorch that define some of them
counters = collections.defaultdict(collections.Counter)  # of what its compiler counts: nothing

forbid_in_graph = disallow_in_graph = disable

__getattr__, __dir__ = names_of(__name__)


def optimize(backend="openxla", *, nopython: bool = False, disable: bool = False, **options):
    """Return a decorator that compiles a function, as `jaxgrad.compile` does.

    >>> jaxgrad._dynamo.optimize("eager")(lambda x: x + 1)(jaxgrad.ones(1))
    tensor([2.])
    """
    return compile(backend=backend, fullgraph=nopython, disable=disable)


def mark_dynamic(t, index=None, **bounds):
    """Do nothing: a program is for one shape."""


mark_static = mark_static_address = maybe_mark_dynamic = mark_dynamic


def is_compile_supported(device_type: str) -> bool:
    """Return True: XLA compiles for all devices."""
    return True


def is_dynamo_supported() -> bool:
    """Return True: XLA compiles for all systems."""
    return True


def graph_break(msg: str = ""):
    """Do nothing: a compiled function is one program, or runs uncompiled."""
