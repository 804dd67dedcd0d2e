"""Functions of neural networks, with PyTorch's names, arguments and defaults.

They are the functions of the families in this package, and PyTorch's names for operators and
composed functions. A family is imported when one of its functions is first used.

>>> import jaxgrad.nn.functional as F
>>> logits = jaxgrad.tensor([[2.0, 0.0], [0.0, 2.0]])
>>> F.cross_entropy(logits, jaxgrad.tensor([0, 1]))
tensor(0.1269)
"""

from __future__ import annotations

import functools
import importlib
import re
from pathlib import Path

from .. import functions, ops
from ..names.missing import MissingName, offered, reasons

_FAMILIES = (
    *("activation", "dot_product_attention", "dropout", "embedding", "folding", "grid_sampling"),
    *("loss", "matmul", "multi_head_attention", "normalization", "padding", "pooling"),
    "resampling",
)

_FUNCTION = re.compile(r"^@(?:api_boundary|shows_users_frames)\ndef (\w+)", re.MULTILINE)

_VALUES = {
    **dict.fromkeys(("ScalingType", "SwizzleType"), "matmul"),
    "GRID_SAMPLE_INTERPOLATION_MODES": "grid_sampling",
    "GRID_SAMPLE_PADDING_MODES": "grid_sampling",
}

# where PyTorch has another name for an operator
_RENAMED = {"logsigmoid": "log_sigmoid"}

__path__ = []  # as of a package: names that are absent can be imported


@functools.cache
def _family_of() -> dict[str, str]:
    """The family of each function that a family defines, read from its text."""
    texts = {name: Path(__file__).with_name(f"{name}.py").read_text("utf-8") for name in _FAMILIES}
    names = {name: family for family, text in texts.items() for name in _FUNCTION.findall(text)}
    return names | _VALUES


@functools.cache
def _shared() -> frozenset[str]:
    """PyTorch's names here for operators and composed functions."""
    prefix = "torch.nn.functional."
    names = {path.removeprefix(prefix) for path in reasons() if path.startswith(prefix)}
    known = {*dir(ops), *functions.MODULE_OF, *_RENAMED}
    return frozenset(name for name in names & known if not reasons()[prefix + name])


def __getattr__(name):
    if name == "__all__":
        return offered(__name__)
    if name == "grad":
        return importlib.import_module(f"{__package__}.{name}")
    if name in _family_of():
        function = getattr(importlib.import_module(f"{__package__}.{_family_of()[name]}"), name)
    elif name in functions.MODULE_OF and name in _shared():
        function = functions.find(name)
    elif name in _shared():
        function = getattr(ops, _RENAMED.get(name, name))
    else:
        raise MissingName(__name__, name)
    globals()[name] = function
    return function


def __dir__():
    return sorted({*globals(), *_family_of(), *_shared()})
