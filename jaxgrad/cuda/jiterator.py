"""torch.cuda.jiterator: functions of CUDA's C++ code, which XLA does not compile.

A function can be made of the code, as programs do when they are imported; a call raises.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ..names.missing import missing_in

_CODE = re.compile(r"\s*template\s*<\s*typename\s+(\w+)\s*>\s*(?:\1|void)\s+(\w+)\s*\(")


def _create_jit_fn(code_string: str, **kwargs) -> Callable:
    """Return the function of a template of C++ code, whose calls raise AssertionError: JAX's arrays
    take functions of JAX, as `torch.from_jax` makes of them.

    kwargs: its numbers with defaults. Raises Exception for other code.

    >>> negative = jaxgrad.cuda.jiterator._create_jit_fn(
    ...     "template <typename T> T negative(T x) { return -x; }"
    ... )
    >>> negative(jaxgrad.ones(1))
    Traceback (most recent call last):
    AssertionError: Jiterator is only supported on CUDA and ROCm GPUs, none are available: negative
    is C++ code, which XLA does not compile; write it in Python
    """
    parsed = _CODE.match(code_string)
    if parsed is None:
        raise Exception(f"Couldn't parse code, please check correctness:\n {code_string}")
    name = parsed[2]

    def function(*tensors, **numbers):
        raise AssertionError(
            f"Jiterator is only supported on CUDA and ROCm GPUs, none are available: {name} is C++ "
            "code, which XLA does not compile; write it in Python"
        )

    function.__name__ = name
    return function


def _create_multi_output_jit_fn(code_string: str, num_outputs: int, **kwargs) -> Callable:
    """Return the function of C++ code with several results; see `_create_jit_fn`."""
    return _create_jit_fn(code_string, **kwargs)


__getattr__ = missing_in(__name__)
