"""The line of the user's code that a call comes from."""

from __future__ import annotations

import os
import sys
import sysconfig
from types import CodeType, FrameType

LIBRARIES = {"functorch", "jax", "jaxgrad", "jaxlib", "numpy", "torch", "torchgen"}
LIBRARIES.add(__name__.partition(".")[0])
_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_STDLIB = sysconfig.get_paths()["stdlib"] + os.sep

# methods of libraries whose calls of functions are no calls of the user
OPAQUE = {"__init__", "__iter__", "__next__", "load_state_dict", "state_dict", "step", "zero_grad"}
OPAQUE |= {"unscale_", "update"}  # of a GradScaler

_known: dict[CodeType, bool] = {}


def is_users(frame: FrameType) -> bool:
    """Whether a frame runs the user's code, or that of a package other than torch."""
    code = frame.f_code
    if code not in _known:
        file, module = code.co_filename, frame.f_globals.get("__name__") or ""
        is_of_python = file.startswith(("<", _STDLIB)) and "site-packages" not in file
        is_of_library = module.partition(".")[0] in LIBRARIES or file.startswith(_HERE)
        _known[code] = not (is_of_python or is_of_library)
    return _known[code]


def place_of_call(boundaries=frozenset()):
    """The file, line and function of the user's code that called, and whether it did so directly:
    not through one of the functions whose code is among `boundaries`.
    """
    frame, is_direct = sys._getframe(1), True
    while frame is not None and not is_users(frame):
        if frame.f_code in boundaries or frame.f_code.co_name in OPAQUE:
            is_direct = False
        frame = frame.f_back
    if frame is None:
        return None, False
    return (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name), is_direct


def place_of_error(error: BaseException):
    """The file, line and function of the user's code that an error comes from."""
    trace, place = error.__traceback__, None
    while trace is not None:
        if is_users(trace.tb_frame):
            code = trace.tb_frame.f_code
            place = code.co_filename, trace.tb_lineno, code.co_name
        trace = trace.tb_next
    return place
