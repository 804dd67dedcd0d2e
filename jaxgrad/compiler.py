"""The caches of compiled code: what they may hold, and how to empty them.

jaxgrad compiles a kernel for each operator, dtype and shape, and a program for each kind of
arguments of a compiled function. It keeps them until others have been used more recently.
"""

from __future__ import annotations

import functools
import numbers

import numpy as np

from .capture.known_numbers import is_in_jax, scopes_around
from .compiled.ignored_options import IgnoredOptions
from .compiled.script_names import mark
from .compiled.stance import set_stance as set_stance
from .compiled.torch_compile import compiler
from .core import bounded_cache, executor
from .core.symbolic_extents import is_exported
from .core.tracebacks import shows_users_frames
from .frontend.tensor_data import from_numpy
from .names.not_provided import names_of
from .nn.compile import compile as compile
from .nn.compile import disable as disable
from .scripting import ScriptModule as _ScriptModule  # noqa: F401  a name of torch.jit
from .tape import mode
from .tape.pytree import map_leaves
from .tape.tensor import Tensor


@shows_users_frames
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


@shows_users_frames
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
    """Return whether the code is being traced, by `jaxgrad.jit` or `jax.jit`.

    >>> jaxgrad.compiler.is_compiling(), jaxgrad.jit(jaxgrad.compiler.is_compiling)()
    (False, True)
    """
    scopes = list(scopes_around(mode.scope.get()))
    if not scopes:
        return executor.is_traced()
    # an example of a batch is traced too, where nothing is compiled around it
    return not all(scope.is_inner for scope in scopes) or is_in_jax(scopes[-1])


is_dynamo_compiling = is_compiling


def is_exporting() -> bool:
    """Return whether the code runs in the trace of a program that is exported.

    >>> jaxgrad.compiler.is_exporting()
    False
    """
    return is_exported()


# the compiler of all functions, whatever `torch.compile(backend=)` is
_BACKEND = "openxla"


def list_backends(exclude_tags=()) -> list[str]:
    """Return the names of the compilers, which are one.

    >>> jaxgrad.compiler.list_backends()
    ['openxla']
    """
    return [_BACKEND]


def get_default_backend() -> str:
    """Return the name of the compiler, "openxla".

    >>> jaxgrad.compiler.get_default_backend()
    'openxla'
    """
    return _BACKEND


def set_default_backend(backend):
    """Do nothing for a name that `torch.compile` knows: XLA compiles. Raises as that does.

    >>> jaxgrad.compiler.set_default_backend("inductor")
    >>> jaxgrad.compiler.get_default_backend()
    'openxla'
    """
    compiler(backend=backend)


def cudagraph_mark_step_begin():
    """Do nothing: a compiled step is one program.

    >>> jaxgrad.compiler.cudagraph_mark_step_begin()
    """


def set_enable_guard_collectives(enabled: bool) -> bool:
    """Do nothing, and return False: guards are compared in each process by itself.

    >>> jaxgrad.compiler.set_enable_guard_collectives(True)
    False
    """
    return False


def wrap_numpy(fn):
    """Return a function of tensors, given one of NumPy arrays. It reads their numbers, so a
    function that calls it cannot be compiled.

    >>> jaxgrad.compiler.wrap_numpy(lambda a: a + 1)(jaxgrad.ones(2))
    tensor([2., 2.])
    """

    @functools.wraps(fn)
    def call(*args, **kwargs):
        args, kwargs = map_leaves(_to_numpy, (args, kwargs))
        return map_leaves(_to_tensor, fn(*args, **kwargs))

    return call


def _to_numpy(leaf):
    return leaf.numpy() if isinstance(leaf, Tensor) else leaf


def _to_tensor(leaf):
    return from_numpy(leaf) if isinstance(leaf, np.ndarray) else leaf


# What these say of a function is so in any case: Python's code is traced, not parsed.
allow_in_graph = assume_constant_result = nested_compile_region = mark


def substitute_in_graph(
    original_fn, *, can_constant_fold_through=False, skip_signature_check=False
):
    """Return a decorator that leaves a function as it is: the original one is traced.

    >>> @jaxgrad.compiler.substitute_in_graph(max)
    ... def largest(a, b):
    ...     return a if a > b else b
    >>> largest(2, 3)
    3
    """
    return mark


def keep_portable_guards_unsafe(guard_entries, keep_parameters=False) -> list[bool]:
    """Return True for each entry: jaxgrad keeps all of its guards. A choice of guards in
    `torch.compile(options={"guard_filter_fn": ...})` has no effect.

    >>> jaxgrad.compiler.keep_portable_guards_unsafe(["first", "second"])
    [True, True]
    """
    return [True] * len(guard_entries)


keep_tensor_guards_unsafe = skip_all_guards_unsafe = keep_portable_guards_unsafe
skip_guard_on_all_nn_modules_unsafe = skip_guard_on_globals_unsafe = keep_portable_guards_unsafe
skip_guard_on_inbuilt_nn_modules_unsafe = keep_portable_guards_unsafe


def save_cache_artifacts() -> None:
    """Return None: there is no cache to save. JAX's own is `jax.config.jax_compilation_cache_dir`.

    >>> jaxgrad.compiler.save_cache_artifacts()
    """


def load_cache_artifacts(serialized_artifacts: bytes) -> None:
    """Do nothing, and return None, as PyTorch does where it finds nothing to load.

    >>> print(jaxgrad.compiler.load_cache_artifacts(b""))
    None
    """


# its options have no effect
config = IgnoredOptions("jaxgrad.compiler.config")

__getattr__, __dir__ = names_of(__name__)
