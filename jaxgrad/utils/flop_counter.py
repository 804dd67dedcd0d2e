"""Counts of the floating-point operations of a program, as torch.utils.flop_counter."""

from __future__ import annotations

import math
import re
import threading
import weakref
from collections import defaultdict

import jax

from .. import ops as _ops
from ..autograd._engine.observers import Watch
from ..core.aval import Size
from ..core.primitive import ARRAY, Call
from ..core.program import Program
from ..late import LateModule
from ..names.not_provided import names_of
from ..nn.modules import module as all_modules
from ..tape.tensor import wrap

summary_cost = LateModule("jaxgrad.utils.summary_cost")

GLOBAL = ("Global",)


class FlopCounterMode:
    """Counts the floating-point operations of matrix products, convolutions and attention in its
    `with` block, those of backward passes included: two for each multiply-add. Operators of another
    kind count for nothing, as in PyTorch.

    mods: has no effect. depth: of the table that is printed at the end of the block, if `display`
    says so. custom_mapping: by operator, such as `torch.ops.aten.sin`, a function that counts in
    place of this class. It gets the arguments of a call, with shapes in place of tensors, and
    `out_shape`; one with a true attribute `_get_raw` gets tensors and `out_val`. The operators are
    those that jaxgrad runs: `a @ b` is one call of `aten.matmul`, and the backward pass of an
    operator is counted as without it. Without it, products have PyTorch's names: `aten.addmm`,
    `mm` or `bmm`.

    A compiled function runs as one program and is not counted. Each operator runs at once inside of
    the block.

    >>> from jaxgrad.utils.flop_counter import FlopCounterMode
    >>> with FlopCounterMode(display=False) as counter:
    ...     _ = jaxgrad.ones(2, 3) @ jaxgrad.ones(3, 4)
    >>> counter.get_total_flops()
    48
    """

    def __init__(self, mods=None, depth: int = 2, display: bool = True, custom_mapping=None):
        self.depth, self.display, self.custom_mapping = depth, display, custom_mapping or {}
        self.flop_counts = defaultdict(lambda: defaultdict(int))

    def __enter__(self):
        self.flop_counts.clear()
        self._watch = _Operations(self.flop_counts, self.custom_mapping)
        self._watch.start()
        self._handles = [
            all_modules.register_module_forward_pre_hook(self._watch.enter_module),
            all_modules.register_module_forward_hook(self._watch.leave_module, always_call=True),
        ]
        return self

    def __exit__(self, *error):
        for handle in self._handles:
            handle.remove()
        self._watch.stop()
        if self.display:
            print(self.get_table(self.depth))

    def get_total_flops(self) -> int:
        """Return the number of all operations.

        >>> from jaxgrad.utils.flop_counter import FlopCounterMode
        >>> FlopCounterMode().get_total_flops()
        0
        """
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict:
        """Return by the names of modules the operations of each operator: "Global" has all, and
        `"Net.layer"` those of a submodule of a module of the class `Net`.

        >>> from jaxgrad.utils.flop_counter import FlopCounterMode
        >>> with FlopCounterMode(display=False) as counter:
        ...     _ = jaxgrad.nn.Linear(3, 4, bias=False)(jaxgrad.ones(2, 3))
        >>> {name: sum(counts.values()) for name, counts in counter.get_flop_counts().items()}
        {'Global': 48, 'Linear': 48}
        """
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """Return a table of modules and their operators, down to a depth of modules.

        >>> from jaxgrad.utils.flop_counter import FlopCounterMode
        >>> with FlopCounterMode(display=False) as counter:
        ...     _ = jaxgrad.nn.Linear(3, 4, bias=False)(jaxgrad.ones(2, 3))
        >>> print(counter.get_table())
        Module      FLOP  % Total
        ----------  ----  -------
        Linear        48  100.00%
         - aten.mm    48  100.00%
        """
        depth = self.depth if depth is None else depth
        depth = math.inf if depth is None else depth
        total = max(self.get_total_flops(), 1)
        modules = sorted(name for name in self.flop_counts if name != "Global")
        shown = [name for name in modules if name.count(".") < depth] or ["Global"]
        rows = [row for name in shown for row in self._rows(name, total)]
        return _table([("Module", "FLOP", "% Total"), *rows])

    def _rows(self, name, total):
        counts, indent = self.flop_counts[name], " " * name.count(".")
        yield indent + name, str(sum(counts.values())), f"{sum(counts.values()) / total:.2%}"
        for operator, count in counts.items():
            yield f"{indent} - {operator}", str(count), f"{count / total:.2%}"


def _table(rows) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [rows[0], tuple("-" * width for width in widths), *rows[1:]]
    first, *others = widths
    return "\n".join(
        "  ".join((row[0].ljust(first), *map(str.rjust, row[1:], others))).rstrip() for row in lines
    )


class _Operations(Watch):
    """Adds the operations of each operator to the counts of the modules that run it, and those of a
    node to the counts of the modules that recorded it.
    """

    def __init__(self, counts, custom_mapping):
        super().__init__()
        self.counts, self.thread = counts, threading.get_ident()
        self.custom_mapping = custom_mapping
        self.names = weakref.WeakKeyDictionary()  # of modules
        self.modules = [GLOBAL]  # the names of the modules that are running, for each call
        self.modules_of = weakref.WeakKeyDictionary()  # by node

    def wanted(self) -> bool:
        return True

    def enter_module(self, module, inputs):
        name = self.names.setdefault(module, type(module).__name__)
        for child, submodule in module.named_children():
            self.names.setdefault(submodule, f"{name}.{child}")
        self.modules.append((*self.modules[-1], name))

    def leave_module(self, module, inputs, output):
        self.modules.pop()

    def node(self, node):
        self.modules_of[node] = self.modules[-1]

    def visit(self, run, proceed, node, gradients):
        self.modules.append(self.modules_of.get(node, GLOBAL))
        try:
            proceed(node, gradients)
        finally:
            self.modules.pop()

    def kernel(self, program, kernel, *arrays):
        if not isinstance(program, Program):
            return kernel(*arrays)
        operator = getattr(_ops.aten, _name_in_pytorch(program.name), None)
        formula = self.custom_mapping.get(operator) if isinstance(program, Call) else None
        if formula is None:
            product = _product_in_pytorch(program)
            operator = getattr(_ops.aten, product) if product else operator
            self.add(operator, 2 * summary_cost.products_of(program))
            return kernel(*arrays)
        results = kernel(*arrays)
        self.add(operator, _by_formula(formula, program, arrays, results))
        return results

    def add(self, operator, count: int):
        for name in dict.fromkeys(self.modules[-1]) if count else ():
            self.counts[name][operator] += count


def _by_formula(formula, call: Call, arrays, results) -> int:
    """What a function of the user counts for a call."""
    is_raw = getattr(formula, "_get_raw", False)
    shown, rest = wrap if is_raw else _shape, iter(arrays)

    def argument(value):
        if isinstance(value, list | tuple):
            return type(value)(map(argument, value))
        return shown(next(rest)) if value is ARRAY else value

    outputs = jax.tree.map(shown, results)
    return formula(
        *map(argument, call.structure), **{"out_val" if is_raw else "out_shape": outputs}
    )


def _shape(array) -> Size:
    return Size(array.shape)


def _name_in_pytorch(name: str) -> str:
    """The name of an operator from that of its program: `ConvolutionBackward`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _product_in_pytorch(program: Program) -> str:
    """The name of the product of matrices that PyTorch runs for a program, "" for another one."""
    name = _name_in_pytorch(program.name)
    operator = name.removesuffix("_backward")
    ranks = [len(aval.shape) for aval in program.inputs if hasattr(aval, "shape")]
    if operator == "linear":
        return "addmm" if operator == name and len(ranks) == 3 else "mm"
    if operator == "matmul":
        return "bmm" if min(ranks[-2:]) > 2 else "mm"
    if operator in ("einsum", "scaled_dot_product_attention"):
        return "bmm"
    if operator == name:
        return ""
    return {"addmm": "mm", "mm": "mm", "baddbmm": "bmm", "bmm": "bmm"}.get(operator, "")


__getattr__, __dir__ = names_of(__name__)
