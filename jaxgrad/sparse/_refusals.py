"""The errors of functions that take no tensors of a sparse layout, with PyTorch's words."""

from __future__ import annotations

from ..core import device as devices
from ..tape.sparse_tensor import is_sparse

_RESHAPED = ("reshape", "reshape_as", "flatten", "ravel")


def short(tensor) -> str:
    """The layout of a compressed tensor: CSR, CSC, BSR or BSC."""
    return str(tensor.layout).rpartition("_")[2].upper()


def refusal(name: str, layout) -> RuntimeError:
    """The error of a function that takes no tensors of a layout."""
    is_plain = layout is devices.sparse_coo
    kind = "" if is_plain else str(layout).rpartition("_")[2]
    advice = f"{name} takes no tensors of layout {layout} here. Call it on tensor.to_dense()"
    if name.startswith(("expand", "broadcast")) or name in ("tile", "repeat"):
        return RuntimeError(f"expand is unsupported for Sparse{kind.title()} tensors: {advice}")
    if name in _RESHAPED:
        words = "reshape is not implemented for sparse tensors"
        if not is_plain:
            words = f"Sparse {kind.upper()} tensors do not have is_contiguous"
        return RuntimeError(f"{words}: {advice}")
    backend = "SparseCPU" if is_plain else "SparseCsrCPU"
    return NotImplementedError(
        f"Could not run 'aten::{name}' with arguments from the '{backend}' backend: {advice}, or "
        "on tensor.values()"
    )


def refused(name):
    """A method that refuses a tensor of a sparse layout."""

    def refuse(self, *args, **kwargs):
        raise refusal(name, self.layout)

    return refuse


def need_sparse(name, tensor):
    """Raise NotImplementedError for a dense tensor."""
    if not is_sparse(tensor):
        raise NotImplementedError(
            f"Could not run 'aten::{name}' with arguments from the 'CPU' backend: the tensor is "
            "dense"
        )
