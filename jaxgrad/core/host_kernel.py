"""The first calls of a kernel, which NumPy makes until compiling pays off.

XLA takes 8 to 30 milliseconds to compile the smallest program, as long as thousands of its calls.
So the host executor (core/host) makes the first calls of each kernel. The model of cost below
decides how many, from equations and shapes alone and not from a clock, so two runs of a program
have equal bits. Meanwhile XLA compiles in a thread, and takes over at a fixed call.
"""

from __future__ import annotations

import functools

import jax
import numpy
from jax.sharding import NamedSharding

from ..late import LateModule
from .host.block import Block
from .host.cost import NO_COST, Cost
from .host.equation import NotOnHostError
from .host_values import owned_apart, values_or_array
from .jax_internals import is_traced
from .pending import Pending

executor = LateModule("jaxgrad.core.executor")
template_store = LateModule("jaxgrad.core.template_store")


class HostKernel:
    """A kernel whose first calls the host makes.

    program: whose kernel it is; kernel: what XLA compiles; put: makes an array of JAX;
    compile_ahead: starts to compile the kernel in a thread, and gives what waits for that; retire:
    called when the kernel is to be used alone.
    `calls`: those that the host has made; `cost`: of a call, None before the first; `block`: what
    the host runs.
    """

    def __init__(self, program, kernel, put, compile_ahead, retire):
        self.program, self.kernel, self.put = program, kernel, put
        self.compile_ahead, self.retire = compile_ahead, retire
        self.block = self.function = self.cost = self.wait = None
        self.calls, self.known_turns = 0, None

    def __call__(self, *arrays):
        """A call outside of a stretch: the results are arrays of JAX."""
        is_retired = self.function is None and self.cost is not None
        if is_retired or not is_usual():
            return self.kernel(*arrays)
        with numpy.errstate(all="ignore"):
            results = self.results(arrays)
        if results is None:
            return self.kernel(*arrays)
        arrays = tuple(map(self.put, results))
        return arrays[0] if self.program.single else arrays

    def serves(self) -> bool:
        """Whether the host makes the next call."""
        if self.cost is None:
            self.prepare()
        return self.function is not None and executor.chosen != "compiled"

    def results(self, arrays) -> list | None:
        """The results as NumPy's arrays, which belong to nobody else; None if XLA computes them."""
        if self.cost is None:
            self.prepare()
        if self.function is None or executor.chosen == "compiled":
            return None
        if not self.counts(1):
            self.hand_over()
            return None
        operands = operands_of(arrays, self.dtypes)
        if operands is None:
            return None
        return owned_apart(self.function(*operands), self.dtypes_of_results)

    def counts(self, calls: int) -> bool:
        """Count calls that the host is to make; False if XLA makes them."""
        if executor.chosen == "auto":
            if self.function is None:
                return False
            if self.calls or calls > 1:  # XLA does not begin before the first call
                start, end = self.turns
                if self.calls >= end:
                    return False
                if self.calls <= start < self.calls + calls:
                    self.wait = self.compile_ahead()
            self.calls += calls
        return True

    @property
    def turns(self) -> tuple[float, float]:
        """After how many calls XLA begins to compile, and takes over."""
        if self.known_turns is None:
            self.known_turns = self.cost.turns()
        return self.known_turns

    def prepare(self):
        """Make the function of the host, unless XLA computes all calls."""
        block, cost = self.program.block, NO_COST
        try:
            if block is None:
                block = Block(executor.host_jaxpr_of(self.program))
                template_store.note(self.program, block)
            cost = self.program.cost = Cost(block)
            function = block.function
        except NotOnHostError:
            self.cost = cost
            return
        # of an input that no result depends on, such as what a copy overwrites, none
        self.dtypes = [
            form.dtype if number in block.read else None for number, form in enumerate(block.inputs)
        ]
        self.dtypes_of_results = [form.dtype for form in block.outputs]
        self.block, self.function = block, function
        self.cost = cost  # at last: it says to other threads that all of this is there

    def hand_over(self):
        """Use the kernel of XLA alone from now on."""
        if self.wait is not None:
            self.wait()
        self.block = self.function = self.wait = None
        self.retire()


def operands_of(values, dtypes, waits=True) -> list | None:
    """The arrays of NumPy for values; None if XLA must compute with one of them, or if one is
    pending and its calls are not to run now. A pending value without a dtype is not read.
    """
    operands = []
    for value, dtype in zip(values, dtypes, strict=True):
        if type(value) is Pending:
            if dtype is None:
                operands.append(None)
                continue
            if not waits and value.array is None and value.stretch.waits:
                return None
            value = values_or_array(value)
        if type(value) is not numpy.ndarray:
            if isinstance(value, jax.Array) and _is_elsewhere(value):
                return None
            value = None if dtype is None else numpy.asarray(value, dtype)
        operands.append(value)
    return operands


def _is_elsewhere(array) -> bool:
    """Whether XLA must compute with an array: it belongs to a trace, or lies on a mesh, where the
    results are to lie too.
    """
    is_traced = isinstance(array, jax.core.Tracer)
    return is_traced or isinstance(array.sharding, NamedSharding)


def is_usual() -> bool:
    """Whether the host may compute: nothing watches XLA's kernels, and JAX does not trace."""
    config = jax.config
    is_watched = config.jax_debug_nans or config.jax_debug_infs or config.jax_disable_jit
    return not is_watched and has_one_cpu() and not is_traced()


@functools.cache
def has_one_cpu() -> bool:
    """Whether all arrays are in the memory of the host, on one device."""
    return jax.default_backend() == "cpu" and jax.device_count() == 1
