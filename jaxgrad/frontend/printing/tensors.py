"""The printed form of tensors."""

from __future__ import annotations

import importlib

import jax
import numpy as np

from ...core.device import device_of_jax
from ...late import LateModule
from ...tape.mode import transform_levels
from ...tape.sparse_tensor import by_layout
from ...tape.tensor import (
    PLAIN_TENSORS,
    Tensor,
    abstract_value,
    held,
    kind_of,
    name_of_node,
    shown_array,
    spans_processes,
)
from ...tape.torch_function import api_boundary

forward_ad = LateModule("jaxgrad.autograd.forward_ad")
printing = LateModule("jaxgrad.frontend.printing.arrays")
sharding_text = LateModule("jaxgrad.frontend.printing.shardings")
wrapped_tensors = LateModule("jaxgrad.frontend.printing.wrapped")


class TextMethods:
    """`frontend/methods.py` installs these methods on `Tensor`."""

    @api_boundary
    @by_layout
    def __repr__(self):
        if abstract_value(self) is None:
            return f"Tensor({held(self)!r})"  # what a function of JAX on trees put in its place
        return (
            wrapped_tensors.wrapped_text(self, text_of) if transform_levels.get() else text_of(self)
        )

    def _repr_html_(self):
        # imported late: few programs show tensors in notebooks
        return importlib.import_module(f"{__package__}.html").of_tensor(self)

    @api_boundary
    def __format__(self, specification):
        is_number = not self.ndim and not self.is_meta
        if is_number and (specification or not isinstance(shown_array(self), jax.core.Tracer)):
            return format(self.item(), specification)  # item() raises in a trace
        if specification:
            raise TypeError(
                "unsupported format string passed to Tensor.__format__: "
                f"{specification!r} is for one number, and the shape is {list(self.shape)}"
            )
        return str(self)


def text_of(
    tensor: Tensor | wrapped_tensors.Batch, is_wrapped: bool = False, contents: str | None = None
) -> str:
    """The printed form of a tensor; is_wrapped: without its history; contents: a text in place of
    that of its values.
    """
    array = None if isinstance(tensor, wrapped_tensors.Batch) else shown_array(tensor)
    if array is None or isinstance(array, jax.core.Tracer):
        dtype = tensor.example.dtype if isinstance(tensor, wrapped_tensors.Batch) else tensor.dtype
        return f"tensor(<traced>, shape={list(tensor.shape)}, dtype={dtype})"
    placed = sharding_text.placements_text(getattr(array, "sharding", None))
    is_part = spans_processes(tensor)
    part = array.addressable_data(0) if is_part else array
    values = array if tensor.is_meta else np.asarray(part)
    start, end = _around_values(tensor)
    *above, start = start.split("\n")
    history = (False, None) if is_wrapped else (tensor._requires_grad, name_of_node(tensor))
    text = printing.tensor_str(
        values,
        tensor.dtype,
        *history,
        _device_shown(tensor),
        forward_ad.shown(tensor),
        start,
        contents,
    )
    text = "\n".join([*above, text + end])
    if is_part:
        # the part of this process, for nobody else's numbers are here
        return f"DTensor(local_tensor={text}, {placed})"
    return f"{text[:-1]}, {placed})" if placed else text


def _around_values(tensor) -> tuple[str, str]:
    """The texts before the values of a tensor and at the end: its class."""
    mark = kind_of(tensor)
    is_plain = type(tensor) in PLAIN_TENSORS
    name = "tensor" if is_plain else getattr(tensor, "_shown_name", type(tensor).__name__)
    if name == "tensor":
        return f"{'' if mark is None else mark.heading}tensor(", ""
    if mark is None or not mark.heading:
        return f"{name}(", ""
    return f"{mark.heading if isinstance(tensor, mark) else ''}Parameter({name}(", ")"


def _device_shown(tensor):
    place = tensor.device
    return None if place == device_of_jax() else str(place)
