"""Names for what runs: of blocks of code, and of operators in JAX's own traces."""

from __future__ import annotations

import contextlib
import threading

import jax

from ...core import executor
from . import recorder as recording


class record_function(contextlib.ContextDecorator):
    """Name a block of code, or a function, in profiles.

    The name is in the traces of jax.profiler too, and inside `jaxgrad.jit` it is part of the names
    that XLA gives what it compiles. args: more to be told of it. Raises RuntimeError where the name
    is no str.

    >>> with jaxgrad.autograd.profiler.profile() as prof:
    ...     with jaxgrad.autograd.profiler.record_function("preparing"):
    ...         x = jaxgrad.ones(3)
    >>> [event.name for event in prof.function_events][:2]
    ['preparing', 'aten::ones']
    """

    def __init__(self, name: str, args: str | None = None):
        self.name, self.args = name, args
        self._local = threading.local()

    def _recreate_cm(self):
        return type(self)(self.name, self.args)

    def __enter__(self):
        if not isinstance(self.name, str):
            raise RuntimeError(
                "record_function: Expected a value of type 'str' for argument 'name' but instead "
                f"found type '{type(self.name).__name__}'."
            )
        with contextlib.ExitStack() as stack:
            stack.enter_context(recording.Label(self.name, self.args))
            stack.enter_context(jax.profiler.TraceAnnotation(self.name))
            if executor.is_traced():
                stack.enter_context(jax.named_scope(self.name))
            entered = self._local.__dict__.setdefault("entered", [])
            entered.append(stack.pop_all())
        return self

    def __exit__(self, *exception):
        entered = self._local.__dict__.get("entered")
        if not entered:
            raise AssertionError("Expected record to be set: record_function was not entered")
        entered.pop().close()


class _Emit:
    """Name every operator and every node that runs in the traces that JAX makes."""

    kind: str

    def __init__(self, enabled=True, record_shapes=False):
        self.enabled, self.entered, self.record_shapes = enabled, False, record_shapes

    def __enter__(self):
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError(f"{self.kind} annotation context manager is not reentrant")
        self.entered = True
        self._annotator = recording.Annotator(self.record_shapes)
        recording.enter(self._annotator)
        return self

    def __exit__(self, *exception):
        if self.enabled:
            recording.leave(self._annotator)
        return False


class emit_nvtx(_Emit):
    """Name every operator, and every node of a backward pass, in the traces of what JAX runs.

    In place of PyTorch's NVTX ranges these are annotations of jax.profiler, which also Nsight shows
    where XLA runs on a GPU. The name of a node ends with the number of the operator that recorded
    it, as PyTorch's do. Raises RuntimeError when it is entered twice.

    >>> with jaxgrad.autograd.profiler.emit_nvtx():
    ...     y = jaxgrad.ones(2) * 3
    """

    kind = "NVTX"


class emit_itt(_Emit):
    """The same as `emit_nvtx`: there are no ITT ranges, and annotations of jax.profiler take their
    place.
    """

    kind = "ITT"
