"""How tensors print: names of PyTorch's module that programs call."""

from __future__ import annotations

import contextlib
import types

from .core.missing_names import MissingName
from .frontend import printing
from .frontend.printing import get_printoptions as get_printoptions
from .frontend.printing import set_printoptions as set_printoptions


@contextlib.contextmanager
def printoptions(**options):
    """A block with other options of `set_printoptions`.

    >>> with jaxgrad._tensor_str.printoptions(precision=2):
    ...     print(jaxgrad.tensor(1.23456))
    tensor(1.23)
    """
    before = get_printoptions()
    set_printoptions(**options)
    try:
        yield
    finally:
        set_printoptions(**before)


def __getattr__(name):
    if name == "PRINT_OPTS":
        return types.SimpleNamespace(**printing.get_printoptions())
    raise MissingName(__name__, name)
