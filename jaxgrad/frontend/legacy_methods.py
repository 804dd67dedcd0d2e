"""Methods of `Tensor` from early PyTorch, and questions about memory that XLA answers with no."""

from __future__ import annotations

import warnings

import numpy as np

from .. import ops
from ..core.aval import Size
from ..core.device import check_pinning
from ..core.tracebacks import users_stacklevel
from ..late import LateModule
from ..tape.sparse_tensor import by_layout
from ..tape.tensor import Tensor, concrete, is_on_meta
from ..tape.torch_function import api_boundary
from .factory_options import size_of

legacy_types = LateModule("jaxgrad.frontend.legacy_types")
tensor_data = LateModule("jaxgrad.frontend.tensor_data")

RESIZE = "non-inplace {} is deprecated"


class LegacyMethods:
    """`frontend/methods.py` installs these methods on `Tensor`."""

    @api_boundary
    @by_layout
    def new(self, *arguments, **options) -> Tensor:
        """Return a new tensor in this tensor's dtype and on its device.

        Forms: `new(2, 3)` and `new(size=(2, 3))` have that shape and unspecified values,
        `new(data)` is made of a list or a numpy array, and `new(tensor)` is an alias of a tensor of
        this dtype.
        Write `new_empty` and `new_tensor` in new programs. Raises TypeError for other arguments.

        >>> x = jaxgrad.zeros(1)
        >>> x.new([1, 2]), x.new(2, 3).shape
        (tensor([1., 2.]), torch.Size([2, 3]))
        """
        return legacy_types.construct("new()", self.dtype, self.device, arguments, options)

    @api_boundary
    def apply_(self, callable) -> Tensor:
        """Replace each element by the result of a Python function, and return the tensor.

        callable: takes a Python number and returns one. It runs once for each element, in Python.
        Raises RuntimeError if the tensor requires grad and in a trace, TypeError if the function
        returns no number.

        >>> jaxgrad.tensor([1.0, 2.0]).apply_(lambda number: number + 1)
        tensor([2., 3.])
        """
        return _apply("apply_", self, (), callable)

    @api_boundary
    def map_(self, tensor: Tensor, callable) -> Tensor:
        """Replace each element by a Python function of it and of the element of another tensor.

        tensor: of this dtype; it broadcasts to this shape. callable: takes two Python numbers.
        Errors as for `apply_`.

        >>> jaxgrad.tensor([1.0, 2.0]).map_(jaxgrad.tensor([3.0, 4.0]), lambda x, y: x * y)
        tensor([3., 8.])
        """
        return _apply("map_", self, (tensor,), callable)

    @api_boundary
    def map2_(self, x: Tensor, y: Tensor, callable) -> Tensor:
        """Replace each element by a Python function of it and of the elements of two tensors.

        x, y: of this dtype; they broadcast to this shape. callable: takes three Python numbers.
        Errors as for `apply_`.

        >>> one = jaxgrad.tensor([1.0])
        >>> jaxgrad.tensor([1.0]).map2_(one, one, lambda x, y, z: x + y + z)
        tensor([3.])
        """
        return _apply("map2_", self, (x, y), callable)

    @api_boundary
    def resize(self, *sizes) -> Tensor:
        """Return the same elements in another shape; deprecated, as in PyTorch: call `reshape`.

        sizes: as many elements, as ints or a list. Raises RuntimeError for another number.

        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     jaxgrad.zeros(2, 3).resize(3, 2).shape
        torch.Size([3, 2])
        """
        return _resized("resize", self, size_of("resize", sizes, {}))

    @api_boundary
    def resize_as(self, tensor: Tensor) -> Tensor:
        """Return the same elements in the shape of another tensor; see `resize`.

        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     jaxgrad.zeros(2, 3).resize_as(jaxgrad.zeros(6)).shape
        torch.Size([6])
        """
        return _resized("resize_as", self, tensor.shape)

    @property
    def is_meta(self) -> bool:
        """Whether the tensor is on the device meta: it has a shape and no data.

        >>> jaxgrad.zeros(1).is_meta, jaxgrad.zeros(1, device="meta").is_meta
        (False, True)
        """
        return is_on_meta(self)

    @property
    def name(self) -> None:
        """None: tensors have no names.

        >>> jaxgrad.zeros(1).name
        """
        return None

    def is_pinned(self, device=None) -> bool:
        """Return False: no tensor is in page-locked memory.

        >>> jaxgrad.zeros(1).is_pinned()
        False
        """
        return False

    def pin_memory(self, device=None) -> Tensor:
        """Return the tensor itself: XLA copies from memory of its own to the accelerator. Raises
        RuntimeError where JAX has none.

        >>> x = jaxgrad.ones(2)
        >>> y = x.pin_memory() if jaxgrad.accelerator.is_available() else x
        >>> y is x
        True
        """
        check_pinning("pin_memory()")
        return self

    def record_stream(self, stream):
        """Do nothing: XLA keeps the memory of a tensor until all that reads it is done.

        stream: of the device of the tensor. Raises NotImplementedError for a tensor on a CPU.

        >>> x = jaxgrad.ones(3)
        >>> if jaxgrad.cuda.is_available():
        ...     x.cuda().record_stream(jaxgrad.cuda.current_stream())
        """
        if self.device.type == "cpu":
            raise NotImplementedError(
                "Could not run 'aten::record_stream' with arguments from the 'CPU' backend: the "
                "work of a CPU has no streams"
            )

    @api_boundary
    @by_layout
    def is_shared(self) -> bool:
        """Return False: no tensor is in memory that processes share.

        >>> jaxgrad.zeros(1).is_shared()
        False
        """
        return False

    @api_boundary
    def share_memory_(self) -> Tensor:
        """Raise RuntimeError: XLA's arrays cannot be moved to memory that processes share.

        >>> jaxgrad.ones(2).share_memory_()
        Traceback (most recent call last):
        RuntimeError: share_memory_(): XLA manages the memory of arrays, and processes cannot
        share it; send the values instead
        """
        raise RuntimeError(
            "share_memory_(): XLA manages the memory of arrays, and processes cannot share it; "
            "send the values instead"
        )

    def xpu(self, device=None, *, non_blocking: bool = False, memory_format=None) -> Tensor:
        """Raise RuntimeError: JAX has no such device."""
        return self.to("xpu")

    def mtia(self, device=None, *, non_blocking: bool = False, memory_format=None) -> Tensor:
        """Raise RuntimeError: JAX has no such device."""
        return self.to("mtia")

    def ipu(self, device=None, *, non_blocking: bool = False, memory_format=None) -> Tensor:
        """Raise RuntimeError: JAX has no such device."""
        return self.to("ipu")

    @api_boundary
    @by_layout
    def dequantize(self) -> Tensor:
        """Return the numbers in float32; a quantized tensor has those that its integers stand for.

        >>> jaxgrad.tensor([1, 2]).dequantize()
        tensor([1., 2.])
        """
        return self.float()

    @api_boundary
    def module_load(self, other: Tensor, assign: bool = False) -> Tensor:
        """Return what a module that loads `other` from a state dict has in the place of this
        tensor: this tensor with those numbers, or with `assign` `other` itself, both detached.

        >>> jaxgrad.zeros(2).module_load(jaxgrad.ones(2))
        tensor([1., 1.])
        """
        return other.detach() if assign else self.copy_(other).detach()

    def const_data_ptr(self) -> int:
        """Return `data_ptr()`.

        >>> x = jaxgrad.ones(2)
        >>> x.const_data_ptr() == x.data_ptr()
        True
        """
        return self.data_ptr()

    # Python 2 had these special methods

    def __long__(self) -> int:
        return int(self)

    def __nonzero__(self) -> bool:
        return bool(self)

    def __div__(self, other) -> Tensor:
        return self / other

    def __idiv__(self, other) -> Tensor:
        return self.div_(other)

    @by_layout
    def resize_as_sparse_(self, the_template) -> Tensor:
        """Take the sizes of another sparse tensor, in place. Raises RuntimeError for a dense one.

        >>> jaxgrad.eye(2).to_sparse().resize_as_sparse_(jaxgrad.eye(3).to_sparse()).shape
        torch.Size([3, 3])
        """
        raise RuntimeError(
            "resize_as_sparse_compressed_: self  expected sparse compressed tensor layout but got "
            f"Strided, a tensor of shape {list(self.shape)}"
        )

    @by_layout
    def is_distributed(self) -> bool:
        """Return False: no tensor is distributed in PyTorch's sense.

        >>> jaxgrad.zeros(1).is_distributed()
        False
        """
        return False


def _of_others(name: str, kind: str, what: str):
    """A method that tensors of another kind have: it raises NotImplementedError."""

    def method(self, *args, **kwargs):
        raise NotImplementedError(
            f"Could not run 'aten::{name}' with arguments from the 'CPU' backend: it is for "
            f"{kind} tensors, and this is a tensor of shape {list(self.shape)} that is none"
            + ("; torch.quantize_per_tensor or a QuantStub makes one" * (kind == "quantized"))
        )

    method.__name__ = name
    method.__doc__ = f"{what}. Raises NotImplementedError for a tensor that is not {kind}."
    return by_layout(method)


OF_QUANTIZED = {
    "int_repr": "Return the integers that a quantized tensor holds",
    "q_scale": "Return the scale of a quantized tensor, a float",
    "q_zero_point": "Return the integer that stands for zero in a quantized tensor",
    "qscheme": "Return how a quantized tensor maps integers to numbers",
    "q_per_channel_axis": "Return the dimension along which a quantized tensor has channels",
    "q_per_channel_scales": "Return the scales of the channels of a quantized tensor",
    "q_per_channel_zero_points": "Return the integers that stand for zero in the channels",
}
_OF_OTHERS = {
    "quantized": OF_QUANTIZED,
    "nested": {"to_padded_tensor": "Return the components as one tensor, padded to one shape"},
    "sparse": {
        "sparse_resize_": "Change sizes and numbers of dimensions of a sparse tensor, in place",
        "sparse_resize_and_clear_": "Change the sizes of a sparse tensor and drop its elements",
    },
}
for _kind, _methods in _OF_OTHERS.items():
    for _name, _what in _methods.items():
        setattr(LegacyMethods, _name, _of_others(_name, _kind, _what))


def _apply(name, target, others, function):
    if any(tensor.requires_grad for tensor in (target, *others)):
        raise RuntimeError(
            f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() "
            "instead."
        )
    for other in others:
        if other.dtype is not target.dtype:
            raise TypeError(
                f"{name}: expected torch.{target.dtype.scalar_type}Tensor for 'other' (got "
                f"torch.{other.dtype.scalar_type}Tensor)"
            )
    operands = [target, *(other.expand(target.shape) for other in others)]
    columns = [np.asarray(concrete(operand, f"{name}()")).ravel().tolist() for operand in operands]
    numbers = np.empty(target.shape, target.dtype.numpy)
    flat = numbers.reshape(-1)
    for place, row in enumerate(zip(*columns, strict=True)):
        flat[place] = _number(function(*row))
    return ops.copy_(target, tensor_data.from_numpy(numbers))


def _number(value):
    value = value.item() if isinstance(value, Tensor) else value
    if isinstance(value, str):
        raise TypeError("must be real number, not str")
    return value


def _resized(name, tensor, size):
    warnings.warn(RESIZE.format(name), UserWarning, stacklevel=users_stacklevel())
    if Size(size).numel() != tensor.numel():
        raise RuntimeError(
            f"requested resize to {'x'.join(map(str, size))} ({Size(size).numel()} elements in "
            f"total), but the given tensor has a size of {'x'.join(map(str, tensor.shape))} "
            f"({tensor.numel()} elements). autograd's resize can only change the shape of a given "
            "tensor, while preserving the number of elements. "
        )
    return ops._resize(tensor.contiguous(), tuple(size))
