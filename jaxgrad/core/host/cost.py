"""How long a program takes on the host and by XLA, by a model of its equations.

The model decides how many calls of a program the host makes. It knows counts and shapes alone, so
the answer is the same in each run and on each machine. Its figures are from two cores, where they
are right within a factor of two; docs/performance.md has them.
"""

from __future__ import annotations

import math
from types import SimpleNamespace

from .block import Block, blocks_within, bytes_of, is_grouped
from .equation import Equation

NEVER = math.inf

# microseconds: one call of a NumPy function, and one of a compiled kernel with its dispatch
CALL, KERNEL = 1.0, 6.0
# bytes that one core reads and writes in a microsecond
BYTES = 12_000
# microseconds to trace, lower and compile a program, and for each of its equations, more for those
# that are loops over windows, or made of many instructions
COMPILE, COMPILE_EQUATION = 25_000, 600
SLOW_TO_COMPILE = {
    "conv_general_dilated": 200_000,
    **dict.fromkeys(
        ("reduce_window_max", "select_and_scatter_add", "sort", "scan", "while"), 20_000
    ),
}
# The share of its time that XLA saves of a contraction, for which both call a library: of a
# convolution of planes, of one whose groups have one channel, and of one in groups for which XLA
# has loops, which take several times as long (rules/convolution_lowering.py).
CONTRACTIONS = ("dot_general", "conv_general_dilated")
OF_PLANES, OF_CHANNELS, BY_LOOPS = 0.2, 0.5, -3.0
FLOPS = 20_000  # of one core in a microsecond

# primitives that NumPy does not compute one element at a time, or not at all
FREE = frozenset(("reshape", "squeeze", "transpose", "broadcast_in_dim", "stop_gradient", "copy"))


# how often a `while` is taken to run its body
REPEATED = {"while": 16}


class Cost:
    """The model for one block: the microseconds of a call on the host, the saving of XLA's fused
    code, the overhead of a kernel's call, and the compilation of the equations. `saved_in_whole`:
    the saving as a part of a larger program, which also runs each operator by a separate call. All
    are computed when one is asked for: many programs run once.
    """

    __slots__ = ("block", "compile", "host", "kernel", "saved", "saved_in_whole")

    def __init__(self, block: Block):
        self.block = block

    def __getattr__(self, name):
        if name not in Cost.__slots__:
            raise AttributeError(name)
        block, totals = self.block, [0.0] * 4
        if block is not None:  # else another thread has
            _add(block, 1, totals)
            self.host, self.saved, self.saved_in_whole, self.compile = totals
            self.kernel = KERNEL + sum(map(bytes_of, [*block.inputs, *block.outputs])) / BYTES
            self.block = None
        return getattr(self, name)

    def turns(self) -> tuple[float, float]:
        """After how many calls XLA begins to compile the program, and takes over."""
        return turns(self.host, self.saved - self.kernel, COMPILE + self.compile)


def _add(block: Block, times: int, totals: list[float]):
    """Add up the costs of the equations of a block that runs so many times in each call."""
    for equation, _, _ in block.equations:
        name, within = equation.name, blocks_within(equation)
        for inner in within:
            _add(inner, times * equation.params.get("length", REPEATED.get(name, 1)), totals)
        totals[3] += SLOW_TO_COMPILE.get(name, 0 if within else COMPILE_EQUATION)
        if not within:
            work = 0 if name in FREE else _work(equation)
            share = times * _saved(equation)
            totals[0] += (CALL + work) * times
            totals[1] += (CALL + work) * share
            totals[2] += work * share


def turns(host: float, saved: float, compile: float) -> tuple[float, float]:
    """After how many calls a compilation of so many microseconds begins, and is ready: where the
    calls have taken as much longer as it takes, and as many calls later as fit into it.
    """
    if saved <= 0.02 * host:
        return NEVER, NEVER
    start = math.ceil(compile / saved)
    return start, start + math.ceil(compile / host)


def _saved(equation: Equation) -> float:
    """The share of its time on the host that XLA saves of an equation."""
    if equation.name not in CONTRACTIONS:
        return 1.0
    if equation.name == "dot_general":
        return 0.0
    (source, weight, *_), params = equation.inputs, equation.params
    of_source, of_weight, _ = params["dimension_numbers"]
    if not is_grouped(equation):
        kernel = [weight.shape[axis] for axis in of_weight[2:]]
        return OF_PLANES if len(kernel) == 2 and math.prod(kernel) > 1 else 0.0
    if source.dtype.itemsize <= 2:
        return BY_LOOPS
    channels = weight.shape[of_weight[1]]
    if params["batch_group_count"] > 1:
        channels = source.shape[of_source[0]] // params["batch_group_count"]
    return OF_CHANNELS if channels == 1 else 0.0


def _work(equation: Equation) -> float:
    """The microseconds of an equation's arithmetic, or of its memory."""
    if equation.name not in CONTRACTIONS:
        return sum(map(bytes_of, [*equation.inputs, *equation.outputs])) / BYTES
    left, right, *_ = [form.shape for form in equation.inputs]
    result, numbers = equation.outputs[0].shape, equation.params["dimension_numbers"]
    if equation.name == "dot_general":
        terms = math.prod([left[dim] for dim in numbers[0][0]])
    else:
        terms = math.prod(right) / max(result[numbers.out_spec[1]], 1)
    return 2.0 * math.prod(result) * terms / FLOPS


NO_COST = Cost(SimpleNamespace(inputs=(), outputs=(), equations=()))
