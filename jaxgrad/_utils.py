"""Helpers of PyTorch's that programs call."""

from __future__ import annotations

import sys
import traceback

from . import ops
from .accelerator import current_accelerator
from .autograd.grad_mode import no_grad
from .core import dtypes
from .core.device import as_device, sparse_coo
from .frontend.storages import StorageBase
from .late import LateModule
from .names.missing import missing_in
from .tape.tensor import Tensor

parameter = LateModule("jaxgrad.nn.parameter")
memory = LateModule("jaxgrad.frontend.storage_tensors")
coo = LateModule("jaxgrad.sparse._construction")
quantization = LateModule("jaxgrad.functions.quantization")
compressed = LateModule("jaxgrad.sparse._compressed_construction")


def _get_device_index(device, optional: bool = False, allow_cpu: bool = False) -> int:
    """The index of a device, 0 where it has none; -1 for a CPU.

    Raises ValueError for a CPU unless `allow_cpu`, and for None unless `optional`.
    """
    if device is None:
        if optional:
            return 0
        raise ValueError("Expected a torch.device with a specified index or an integer, got: None")
    torch_device = as_device(device)
    if torch_device.type == "cpu" and not allow_cpu:
        raise ValueError(f"Expected a non cpu device, but got: {torch_device}")
    return -1 if torch_device.type == "cpu" else torch_device.index or 0


def _is_privateuse1_backend_available() -> bool:
    """Return False: there are no devices that extensions of PyTorch add."""
    return False


class KeyErrorMessage(str):
    """A text that KeyError shows as it is, with its lines."""

    __slots__ = ()

    def __repr__(self):
        return self


class ExceptionWrapper:
    """An exception and its traceback as text, for another thread or process.

    exc_info: as from `sys.exc_info()`, by default that; where: where it was raised.

    >>> from jaxgrad._utils import ExceptionWrapper
    >>> try:
    ...     raise ValueError("bad")
    ... except ValueError:
    ...     wrapped = ExceptionWrapper(where="in worker 0")
    >>> wrapped.exc_type, wrapped.exc_msg.splitlines()[0]
    (<class 'ValueError'>, 'Traceback (most recent call last):')
    """

    def __init__(self, exc_info=None, where: str = "in background"):
        self.exc_type, error, trace = sys.exc_info() if exc_info is None else exc_info
        self.exc_msg = "".join(traceback.format_exception(self.exc_type, error, trace))
        self.where = where

    def reraise(self):
        """Raise the exception again; RuntimeError where its class takes more than a text."""
        text = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            text = KeyErrorMessage(text)
        elif getattr(self.exc_type, "message", None):
            raise self.exc_type(message=text)
        try:
            error = self.exc_type(text)
        except Exception:
            raise RuntimeError(text) from None
        raise error


def _element_size(dtype: dtypes.dtype) -> int:
    """The bytes of an element."""
    return dtype.itemsize


# ---- many tensors as one


def _flatten_dense_tensors(tensors) -> Tensor:
    """One row of the elements of all tensors, in their order.

    >>> jaxgrad._utils._flatten_dense_tensors([jaxgrad.zeros(1), jaxgrad.ones(1, 2)])
    tensor([0., 1., 1.])
    """
    rows = [tensor.reshape(-1) for tensor in tensors]
    return rows[0] if len(rows) == 1 else ops.cat(rows)


def _unflatten_dense_tensors(flat: Tensor, tensors) -> tuple[Tensor, ...]:
    """Views of a row in the shapes of tensors, one after another.

    >>> jaxgrad._utils._unflatten_dense_tensors(jaxgrad.arange(3), [jaxgrad.zeros(2, 1)])
    (tensor([[0],
            [1]]),)
    """
    views, start = [], 0
    for tensor in tensors:
        count = tensor.numel()
        views.append(flat.narrow(0, start, count).view(tensor.shape))
        start += count
    return tuple(views)


# ---- what PyTorch's files and pickles call


@no_grad()
def _rebuild_tensor(storage: StorageBase, storage_offset: int, size, stride) -> Tensor:
    """A tensor on the memory of a storage, at an offset in elements.

    >>> x = jaxgrad.arange(4.0)
    >>> jaxgrad._utils._rebuild_tensor(x.storage(), 1, (2,), (2,))
    tensor([1., 3.])
    """
    row = memory.row_of(storage)
    # of a slice of a storage the row begins further on
    offset = row.storage_offset() + storage_offset
    return row.as_strided(tuple(size), tuple(stride), offset).detach()


def _rebuild_tensor_v2(
    storage, storage_offset, size, stride, requires_grad, backward_hooks, metadata=None
) -> Tensor:
    """A tensor on the memory of a storage, as a leaf. backward_hooks: its hooks, by their numbers;
    metadata: not used.
    """
    tensor = _rebuild_tensor(storage, storage_offset, size, stride)
    return _as_leaf(tensor, requires_grad, backward_hooks)


def _rebuild_sparse_tensor(layout, data) -> Tensor:
    """A sparse tensor. data: of the layout `sparse_coo` indices, values, a size, and maybe whether
    it is coalesced; of a compressed one both kinds of indices, values and a size.

    >>> parts = jaxgrad.tensor([[0, 2]]), jaxgrad.ones(2), (3,)
    >>> jaxgrad._utils._rebuild_sparse_tensor(jaxgrad.sparse_coo, parts).to_dense()
    tensor([1., 0., 1.])
    """
    *parts, size = data[:3] if layout is sparse_coo else data
    if layout is sparse_coo:
        is_coalesced = data[3] if len(data) > 3 else None
        return coo.sparse_coo_tensor(*parts, size, is_coalesced=is_coalesced)
    return compressed.sparse_compressed_tensor(*parts, size, layout=layout)


def _rebuild_qtensor(
    storage, storage_offset, size, stride, quantizer_params, requires_grad, backward_hooks
) -> Tensor:
    """A quantized tensor on the memory of a storage of integers. quantizer_params: a scheme with a
    scale and a zero point, or with those of the channels and their axis.
    """
    integers = _rebuild_tensor(storage, storage_offset, size, stride)
    scheme, *parts = quantizer_params
    if scheme is quantization.per_tensor_affine:
        return quantization._make_per_tensor_quantized_tensor(integers, *parts)
    return quantization._make_per_channel_quantized_tensor(integers, *parts)


def _as_leaf(tensor: Tensor, requires_grad: bool, hooks) -> Tensor:
    tensor.requires_grad_(requires_grad)
    for hook in (hooks or {}).values():
        tensor.register_hook(hook)
    return tensor


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks) -> Tensor:
    """A parameter on the memory of a tensor. backward_hooks: its hooks, by their numbers.

    >>> jaxgrad._utils._rebuild_parameter(jaxgrad.ones(1), False, {})
    Parameter containing:
    tensor([1.])
    """
    return _as_leaf(parameter.Parameter(data, requires_grad), requires_grad, backward_hooks)


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state) -> Tensor:
    """A parameter with attributes. state: a dict of them, or of them and of slots."""
    parameter = _rebuild_parameter(data, requires_grad, backward_hooks)
    return _set_obj_state(parameter, state)


def _set_obj_state(obj, state):
    """Set the attributes of an object, and return it. state: a dict of them, or a pair of those of
    `__dict__` and those of slots.
    """
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    for name, value in {**(attributes or {}), **(slots or {})}.items():
        setattr(obj, name, value)
    return obj


def _take_tensors(tensors, size_limit: int):
    """Groups of tensors of one type, of at most so many bytes where more than one tensor is in a
    group; a generator.

    >>> tensors = [jaxgrad.ones(2), jaxgrad.ones(3, dtype=jaxgrad.int64), jaxgrad.ones(1)]
    >>> [len(group) for group in jaxgrad._utils._take_tensors(tensors, 12)]
    [2, 1]
    """
    groups: dict[str, tuple[list[Tensor], int]] = {}
    for tensor in tensors:
        parts = [tensor._indices(), tensor._values()] if tensor.is_sparse else [tensor]
        size = sum(part.numel() * part.element_size() for part in parts)
        group, total = groups.get(tensor.type(), ([], 0))
        if total and total + size > size_limit:
            yield group
            group, total = [], 0
        groups[tensor.type()] = [*group, tensor], total + size
    yield from (group for group, _ in groups.values() if group)


def _get_available_device_type() -> str | None:
    """The type of the accelerator that is there, such as "cuda"; None for CPUs alone."""
    accelerator = current_accelerator(check_available=True)
    return None if accelerator is None else accelerator.type


def _get_device_module(device_type: str):
    """The module `torch.cuda` of the type of device "cuda", and so on. Raises RuntimeError for a
    type without one.
    """
    module = getattr(sys.modules["jaxgrad"], device_type, None)
    if module is None:
        raise RuntimeError(
            f"Device '{device_type}' does not have a corresponding module registered as "
            f"'torch.{device_type}'."
        )
    return module


_missing = missing_in(__name__)


def __getattr__(name):
    # a pickle has the memory formats of PyTorch as `torch.channels_last` of this module
    return sys.modules["jaxgrad"] if name == "torch" else _missing(name)
