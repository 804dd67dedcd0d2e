"""The classes of results of several tensors, as torch.return_types.

>>> isinstance(jaxgrad.ones(2).max(0), jaxgrad.return_types.max)
True
"""

from __future__ import annotations

from . import ops
from .late import LateModule
from .names.missing import MissingName

__path__ = []  # as of a package: names that are absent can be imported

_solvers = LateModule("jaxgrad.functions.linalg_solve")
_histograms = LateModule("jaxgrad.functions.histogram")

# those of functions that are no operators of the table
_OF_FUNCTIONS = {
    "linalg_solve_ex": lambda: _solvers.linalg_solve_ex,
    "linalg_lu_factor": lambda: _solvers.linalg_lu_factor,
    "linalg_ldl_factor": lambda: _solvers.linalg_ldl_factor,
    "histogramdd": lambda: _histograms.HistogramDD,
}


def __getattr__(name):
    if name in _OF_FUNCTIONS:
        return _OF_FUNCTIONS[name]()
    if name.startswith("_") or not ops.library.has(name):
        raise MissingName(__name__, name)
    for overload in ops.library.find(name).primitives:
        if overload.pack is not tuple:
            return overload.pack.__self__
    raise MissingName(__name__, name)
