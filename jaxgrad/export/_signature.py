"""The signature of a program: what its inputs and outputs are, and which arguments fit."""

from __future__ import annotations

import dataclasses
from typing import Any

from ..core import dtypes
from ..tape.tensor import Tensor
from ..utils import _pytree as pytree
from ._extents import Extent, Range
from ._state import Slot, node_name
from ._structures import agree
from ._tracing import NUMBER, PARAMETERS, Results
from .graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    TensorArgument,
)


@dataclasses.dataclass(frozen=True)
class TensorInput:
    """A tensor among the arguments. extents: ints and `Extent`s."""

    name: str
    extents: tuple
    dtype: dtypes.dtype


@dataclasses.dataclass(frozen=True)
class ConstantInput:
    """An argument that is a part of the program."""

    name: str
    value: Any


@dataclasses.dataclass(frozen=True)
class Signature:
    """What a program takes and gives.

    slots: the state; inputs: the leaves of the arguments; in_spec, out_spec: structures; outputs:
    for each leaf of the results None for a tensor, `NUMBER`, or a tuple of a constant; changed: the
    keys of what a call changes; ranges: of the sizes that vary.
    """

    slots: tuple[Slot, ...]
    inputs: tuple[TensorInput | ConstantInput, ...]
    in_spec: Any
    results: Results
    ranges: dict[str, Range]

    def graph_signature(self) -> ExportGraphSignature:
        """The inputs as PyTorch has them; the outputs are those of a graph."""
        state = [
            InputSpec(
                slot.kind,
                TensorArgument(node_name(slot)),
                slot.path,
                slot.persistent if slot.kind is InputKind.BUFFER else None,
            )
            for slot in self.slots
        ]
        inputs = [InputSpec(InputKind.USER_INPUT, _argument(known), None) for known in self.inputs]
        return ExportGraphSignature([*state, *inputs], [])

    # ---- calls

    def tensors_of(self, args, kwargs) -> list[Tensor]:
        """The tensors among the arguments of a call.

        Raises ValueError for arguments of another structure, AssertionError for a tensor of another
        shape or dtype and for another constant; nothing is computed.
        """
        leaves, spec = pytree.tree_flatten((args, self._ordered(kwargs)))
        if not agree(spec, self.in_spec):
            raise ValueError(
                "Trying to flatten user inputs with exported input tree spec: \n"
                f"{self.in_spec}\nbut actually got inputs with tree spec of: \n{spec}\n"
                "Please check that the inputs have the same number and type of args and kwargs as "
                "the ones you used when tracing."
            )
        sizes: dict[str, tuple[int, str]] = {}
        tensors = []
        for known, leaf in zip(self.inputs, leaves, strict=True):
            if isinstance(known, ConstantInput):
                _check_constant(known, leaf)
            else:
                self._check(known, leaf, sizes)
                tensors.append(leaf)
        return tensors

    def tensor_names(self) -> list[str]:
        """The names of the tensors among the arguments."""
        return [known.name for known in self.inputs if isinstance(known, TensorInput)]

    def _ordered(self, kwargs) -> dict:
        """The arguments by keyword in the order of the example."""
        expected = self.in_spec.children_specs[1].context
        if {*kwargs} != {*expected}:
            raise ValueError(
                f"Ran into a kwarg keyword mismatch: Got the following keywords {[*kwargs]} but "
                f"expected {[*expected]}"
            )
        return {name: kwargs[name] for name in expected}

    def _check(self, known: TensorInput, leaf, sizes):
        name = known.name
        if not isinstance(leaf, Tensor):
            raise ValueError(f"{name} is {type(leaf).__name__}, and was a tensor in the example")
        if leaf.dtype is not known.dtype:
            raise AssertionError(
                f"Guard failed: {name}.dtype == {known.dtype}, and it is {leaf.dtype}: convert it "
                f"with .to({known.dtype})"
            )
        if leaf.ndim != len(known.extents):
            raise AssertionError(
                f"Guard failed: {name}.dim() == {len(known.extents)}, and it is {leaf.ndim}"
            )
        for number, (extent, size) in enumerate(zip(known.extents, leaf.shape, strict=True)):
            place = f"{name}.size()[{number}]"
            if isinstance(extent, Extent):
                self._check_extent(place, extent, size, sizes)
            elif extent != size:
                raise AssertionError(
                    f"Guard failed: {place} == {extent}, and it is {size}. The program is for one "
                    "size there: Dim in dynamic_shapes of export() lets it vary"
                )

    def _check_extent(self, place, extent, size, sizes):
        symbol, bounds = extent.symbol, self.ranges[extent.symbol]
        number = extent.symbol_size(size)
        if number is None:
            raise AssertionError(
                f"Guard failed: {place} == {extent}, and it is {size}, which is no value of that"
            )
        known, where = sizes.setdefault(symbol, (number, place))
        if known != number:
            raise AssertionError(
                f"Guard failed: {place} == {extent}, and it is {size}, while {symbol} is {known} "
                f"by {where}"
            )
        if not bounds.has(number):
            is_low = number < bounds.lower
            test = f">= {extent.of(bounds.lower)}" if is_low else f"<= {extent.of(bounds.upper)}"
            raise AssertionError(
                f"Guard failed: {place} {test}, and it is {size}: the program was exported for "
                f"{symbol} in {bounds}"
            )

    def tracked(self, state, inputs, outputs, changed) -> tuple[tuple, dict]:
        """The results; those without a derivative are detached. state, inputs: of the call."""
        results, count = self.results, len(outputs)
        tensors = [*outputs, *[changed[key] for key in results.changed]]
        for place, origins in enumerate(results.origins):
            if not any(_requires_grad(origin, state, inputs) for origin in origins):
                tensors[place] = tensors[place].detach()
        return tuple(tensors[:count]), dict(zip(results.changed, tensors[count:], strict=True))

    def results_of(self, tensors):
        """The results of a call, from the tensors among them."""
        supply = iter(tensors)
        leaves = [_leaf(kind, supply) for kind in self.results.leaves]
        return pytree.tree_unflatten(leaves, self.results.spec)

    def range_constraints(self) -> dict[str, Range]:
        """The ranges by the names of sizes that vary."""
        return dict(self.ranges)


def _argument(known):
    if isinstance(known, ConstantInput):
        return ConstantArgument(known.name, known.value)
    return TensorArgument(known.name)


def _check_constant(known, leaf):
    if isinstance(leaf, Tensor) or type(leaf) is not type(known.value) or leaf != known.value:
        raise AssertionError(
            f"Guard failed: {known.name} == {known.value!r}, and it is {leaf!r}: an argument that "
            "is no tensor is a part of the program"
        )


def _requires_grad(origin: int | str, state, inputs) -> bool:
    """Whether something that a result depends on requires grad, as `Results` has it."""
    if origin == PARAMETERS:
        return True
    return (inputs[origin] if isinstance(origin, int) else state[origin]).requires_grad


def _leaf(kind, supply):
    if kind is None:
        return next(supply)
    return next(supply).item() if kind == NUMBER else kind[0]
