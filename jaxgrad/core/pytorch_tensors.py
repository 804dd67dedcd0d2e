"""Tensors of PyTorch itself, where it is installed beside jaxgrad. PyTorch is never imported."""

from __future__ import annotations

import sys

import numpy as np

from . import dtypes


def is_of_pytorch(value) -> bool:
    """Whether a value is a tensor of PyTorch."""
    return is_class_of_pytorch(type(value))


def is_class_of_pytorch(kind: type) -> bool:
    """Whether a class is PyTorch's of tensors, or derived from it."""
    # this name has PyTorch's class alone, also where `import torch` gives jaxgrad
    return any(base.__module__ == "torch" and base.__name__ == "Tensor" for base in kind.__mro__)


def type_name(value) -> str:
    """The name of a value's type, for messages about a wrong argument."""
    if is_of_pytorch(value):
        return "PyTorch tensor (convert it by jaxgrad.as_tensor)"
    kind = type(value).__name__
    if isinstance(value, list | tuple) and any(map(is_of_pytorch, value)):
        return f"{kind} of PyTorch tensors (convert them by jaxgrad.as_tensor)"
    return kind


def class_of(value) -> str:
    """The class of a value as Python shows it, for the same purpose."""
    return type_name(value) if is_of_pytorch(value) else str(type(value))


def dtype_of(value) -> dtypes.dtype:
    """The dtype of a tensor of PyTorch. Raises TypeError for one that jaxgrad lacks."""
    name = str(value.dtype).removeprefix("torch.")
    dtype = getattr(dtypes, name, None)
    if not isinstance(dtype, dtypes.dtype):
        raise TypeError(f"jaxgrad has no dtype {value.dtype}, which a PyTorch tensor has")
    return dtype


def numbers_of(value) -> np.ndarray:
    """The elements of a dense tensor of PyTorch, whose memory the array may share. Raises TypeError
    for another layout, for a dtype that jaxgrad lacks, and for one without numbers.
    """
    dtype = dtype_of(value)
    if str(value.layout) != "torch.strided" or value.is_quantized or value.device.type == "meta":
        raise TypeError(
            f"a PyTorch tensor of the layout {value.layout} and {value.dtype} on the device "
            f"{value.device} has no numbers that jaxgrad can take: give a dense one"
        )
    dense = value.detach().resolve_conj().resolve_neg().cpu()
    if dtype.numpy.kind == "V":  # of ml_dtypes, which PyTorch does not know
        dense = dense.view(getattr(sys.modules["torch"], f"int{8 * dtype.itemsize}"))
    return dense.numpy().view(dtype.numpy)
