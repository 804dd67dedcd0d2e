"""Names in profiles and in JAX's traces: of blocks of code, operators and nodes."""

from __future__ import annotations

import contextlib
import threading

import jax

from ...core import executor
from . import recorder as recording


class record_function(contextlib.ContextDecorator):
    """Name a block of code, or a decorated function, in profiles.

    Traces of jax.profiler show the name too. Inside of `jaxgrad.jit` it becomes part of the names
    in the compiled program.

    name: a str. Entering raises RuntimeError for another object.
    args: a str with more information, which the event has in `concrete_inputs`.

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
    """A context that names every operator and node in JAX's traces."""

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
    """Name every operator and every node in the traces that jax.profiler makes.

    These annotations take the place of PyTorch's NVTX ranges; Nsight shows them too if XLA runs on
    a GPU. The name of a node ends with the number of the operator that recorded it, as in PyTorch.

    enabled: False for a block without effect.
    record_shapes: add the shapes of the inputs to the names.

    Raises RuntimeError if the context is entered twice.

    >>> with jaxgrad.autograd.profiler.emit_nvtx():
    ...     y = jaxgrad.ones(2) * 3
    """

    kind = "NVTX"


class emit_itt(_Emit):
    """The same as `emit_nvtx`: annotations of jax.profiler take the place of ITT ranges.

    >>> with jaxgrad.autograd.profiler.emit_itt():
    ...     y = jaxgrad.ones(2) * 3
    """

    kind = "ITT"
