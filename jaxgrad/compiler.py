"""The caches of compiled code: what they may hold, and how to empty them.

jaxgrad compiles a kernel for each operator, dtype and shape, and a program for each kind of
arguments of a compiled function. It keeps them until others have been used more recently.
"""

from __future__ import annotations

import contextlib
import numbers

from .capture.script_names import mark
from .core import bounded_cache
from .core.ignored_options import IgnoredOptions
from .core.not_provided import names_of
from .core.tracebacks import api_boundary
from .nn.compile import compile as compile
from .tape import mode


@api_boundary
def set_cache_limits(
    *, kernels: float | None = None, programs: float | None = None, bytes: float | None = None
) -> None:
    """Set how much compiled code is kept; what has not been used for the longest time goes.

    kernels: the number of kernels of operators and of their derivatives, in all threads; 2048 until
    it is set.
    programs: the number of programs of each function that `jaxgrad.jit` compiled; 128 until it is
    set.
    bytes: the memory of kernels and programs together; 2**31 until it is set, which is about 1500
    kernels. It is an estimate, since JAX reports no size on CPUs: 1.4 MB for each, as measured,
    and 10 kB more for each equation of its jaxpr.

    None leaves a limit as it is, and `math.inf` takes it away. A lower limit holds at once. What a
    graph needs for its backward pass stays with the graph. What went and is used again is compiled
    again, so limits below what a training step uses make each step compile.

    When a whole limit of bytes has been made, what JAX keeps for its own functions (`jax.numpy`)
    goes too, since that grows with each shape.

    Raises TypeError for a limit that is no number, ValueError for one below 1; then none is set.

    >>> jaxgrad.compiler.set_cache_limits(kernels=2048, programs=128, bytes=2**31)
    """
    limits = {"kernels": kernels, "programs": programs, "bytes": bytes}
    limits = {name: limit for name, limit in limits.items() if limit is not None}
    for name, limit in limits.items():
        if not isinstance(limit, numbers.Real) or isinstance(limit, bool):
            raise TypeError(f"set_cache_limits(): {name} must be a number, got {limit!r}")
        if not limit >= 1:
            raise ValueError(f"set_cache_limits(): {name} must be at least 1, got {limit!r}")
    bounded_cache.set_limits(**limits)


@api_boundary
def reset() -> None:
    """Forget all compiled code, and give its memory back. Later calls compile again.

    >>> double = jaxgrad.jit(lambda x: x * 2)
    >>> _ = double(jaxgrad.ones(2))
    >>> jaxgrad.compiler.reset()
    >>> double.traces
    []
    """
    bounded_cache.forget_all()


# ---- names of torch.compiler


def is_compiling() -> bool:
    """Return whether `jaxgrad.jit` is tracing.

    >>> jaxgrad.compiler.is_compiling()
    False
    """
    return mode.scope.get() is not None


is_dynamo_compiling = is_compiling


def is_exporting() -> bool:
    """Return False: PyTorch's export is not provided."""
    return False


def list_backends(exclude_tags=()) -> list[str]:
    """Return the names of the compilers, which are one.

    >>> jaxgrad.compiler.list_backends()
    ['openxla']
    """
    return ["openxla"]


def cudagraph_mark_step_begin():
    """Do nothing: a compiled step is one program."""


def disable(fn=None, recursive: bool = True, *, reason: str | None = None):
    """Return a function as it is: inside of a compiled function it is a part of that program."""
    return mark(fn)


allow_in_graph = assume_constant_result = mark


def nested_compile_region(fn=None, **options):
    """Return a function as it is: XLA compiles its calls as a part of the program."""
    return mark(fn)


def substitute_in_graph(original_fn, **options):
    """Return a decorator that leaves a function as it is: `original_fn` runs as Python."""
    return mark


def set_stance(stance: str = "default", **options):
    """Return a block that changes nothing, for the stance "default". Raises NotImplementedError for
    others: `torch.compile(disable=True)` leaves a function uncompiled.
    """
    if stance != "default" or options.get("force_backend") is not None:
        raise NotImplementedError(
            f"torch.compiler.set_stance({stance!r}) is not provided by jaxgrad: torch.compile(f, "
            "disable=True) leaves a function uncompiled"
        )
    return contextlib.nullcontext()


def get_default_backend() -> str:
    """Return the name of the compiler."""
    return "openxla"


def set_default_backend(backend: str | None):
    """Do nothing: XLA compiles."""


# its options have no effect
config = IgnoredOptions("jaxgrad.compiler.config")

__getattr__, __dir__ = names_of(__name__, "XLA compiles; jax.export saves programs")
