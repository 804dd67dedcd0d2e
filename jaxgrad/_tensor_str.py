"""How tensors print: names of PyTorch's module that programs call."""

from __future__ import annotations

import contextlib
import types

import numpy as np

from .frontend.printing import arrays as printing
from .frontend.printing import tensors as tensor_text
from .frontend.printing.arrays import get_printoptions as get_printoptions
from .frontend.printing.arrays import set_printoptions as set_printoptions
from .names.missing import MissingName
from .tape.tensor import Tensor, shown_array


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


def _tensor_str(tensor: Tensor, indent: int) -> str:
    """The values of a tensor as text. indent: the number of characters before it in its line.

    >>> jaxgrad._tensor_str._tensor_str(jaxgrad.tensor([1.0, 2.5]), 0)
    '[1.0000, 2.5000]'
    """
    return printing.body(np.asarray(shown_array(tensor)), tensor.dtype, indent)


def _add_suffixes(tensor_str: str, suffixes: list[str], indent: int, force_newline: bool) -> str:
    """A text with what follows the values of a tensor, and the closing bracket.

    indent: of further lines; force_newline: whether the suffixes begin on a line of their own.

    >>> jaxgrad._tensor_str._add_suffixes("Index([0, 1]", ["dim_size=3"], 6, False)
    'Index([0, 1], dim_size=3)'
    """
    return printing.with_suffixes(tensor_str, suffixes, force_newline, indent)


def _str_intern(inp: Tensor, *, tensor_contents: str | None = None) -> str:
    """The text of a tensor, with another text in place of its values.

    >>> jaxgrad._tensor_str._str_intern(jaxgrad.ones(2), tensor_contents="2 ones")
    'tensor(2 ones)'
    """
    return tensor_text.text_of(inp, contents=tensor_contents)


__path__ = []  # as of a package: names that are absent can be imported


def __getattr__(name):
    if name == "PRINT_OPTS":
        return types.SimpleNamespace(**printing.get_printoptions())
    raise MissingName(__name__, name)
