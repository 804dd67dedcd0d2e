"""`MaskedTensor`: a tensor with a mask of its elements.

A masked tensor is a handle on its data, or on the values of sparse data: it takes the place of that
tensor in the graph, with its array, `.grad` and tangents. It also has the mask, of the layout of
the data. So the engine handles it as it handles any tensor, and a gradient has the mask of the
tensor that it belongs to. Functions reach it by `__torch_function__` (`functions.py`).
"""

from __future__ import annotations

import warnings

from ... import ops
from ...autograd._engine.sparse_gradient import LeafGradient, give
from ...autograd._engine.tensor_hooks import HookMethods
from ...core import device as devices
from ...core import dtypes
from ...core.aval import Size
from ...core.tracebacks import shows_users_frames, users_stacklevel
from ...frontend import factories
from ...names.missing import missing_in
from ...tape import pytree, torch_function
from ...tape.sparse_tensor import CARRIED, SparseTensor, sparse, values_of
from ...tape.tensor import Tensor, check_differentiable

LAYOUTS = (devices.strided, devices.sparse_coo, devices.sparse_csr)
DTYPES = frozenset(["float16", "float32", "float64", "bool", "int8", "int16", "int32", "int64"])
FORMAT = "{:8.4f}"


def is_masked_tensor(obj: object, /) -> bool:
    """Return whether a value is a `MaskedTensor`.

    >>> jaxgrad.masked.is_masked_tensor(jaxgrad.ones(2))
    False
    """
    return isinstance(obj, MaskedTensor)


class MaskedTensor(Tensor):
    """A tensor whose elements count where a mask is True.

    data: a tensor of real numbers or bool, strided or sparse; mask: a bool tensor of the shape,
    layout and pattern of data; requires_grad: whether the new tensor, a leaf, requires grad. Both
    are copied. Raises TypeError for other dtypes and layouts, ValueError for other shapes.

    >>> x = jaxgrad.masked.MaskedTensor(
    ...     jaxgrad.tensor([1.0, 2.0, 3.0]), jaxgrad.tensor([True, False, True])
    ... )
    >>> x * 2
    MaskedTensor(
      [  2.0000,       --,   6.0000]
    )
    >>> x.sum()
    MaskedTensor(  4.0000, True)
    """

    def __new__(cls, data, mask, requires_grad=False):
        _check_kinds(data, mask)
        if data.requires_grad:
            warnings.warn(
                "It is not recommended to create a MaskedTensor with a tensor that requires_grad. "
                "To avoid this, you can use data.detach().clone()",
                stacklevel=users_stacklevel(),
            )
        data, mask = matched(data.detach(), mask)
        if requires_grad:
            check_differentiable(data)
        return attach(values_in(data).clone(), mask.clone()).requires_grad_(requires_grad)

    @staticmethod
    def _from_values(data, mask):
        _check_kinds(data, mask)
        data, mask = matched(data, mask)
        numbers, mask = values_in(data).clone(), mask.clone()
        if data.layout == devices.strided:
            give(numbers, "ConstructorBackward", lambda g: attach(g.clone(), mask), LeafGradient)
        return attach(numbers, mask)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if not all(issubclass(cls, kind) for kind in types):
            return NotImplemented
        return _installed["call"](func, args, kwargs or {})

    @shows_users_frames
    def get_data(self) -> Tensor:
        """Return the data, of all elements, as a view."""
        return data_of(self, ops.alias(values(self)))

    @shows_users_frames
    def get_mask(self) -> Tensor:
        """Return the mask, a bool tensor of the shape and layout of the data."""
        return self._masked_mask

    @shows_users_frames
    def to_tensor(self, value) -> Tensor:
        """Return the data with a number in place of the elements that are masked out."""
        return self.get_data().masked_fill(~self.get_mask(), value)

    _masked_data = property(get_data)

    # ---- what the mask says of a sparse tensor, whose handle is that of its values

    layout = property(lambda self: self._masked_mask.layout)
    shape = property(lambda self: Size(self._masked_mask.shape))
    ndim = property(lambda self: len(self._masked_mask.shape))

    def dim(self) -> int:
        return self.ndim

    def size(self, dim: int | None = None):
        return self._masked_mask.size() if dim is None else self._masked_mask.size(dim)

    def numel(self) -> int:
        return self.shape.numel()

    def __len__(self) -> int:
        return len(self._masked_mask)

    def is_sparse_coo(self) -> bool:
        """Return whether the layout is sparse_coo."""
        return self.layout == devices.sparse_coo

    def is_sparse_csr(self) -> bool:
        """Return whether the layout is sparse_csr."""
        return self.layout == devices.sparse_csr

    @property
    def is_sparse(self) -> bool:
        """Whether the layout is sparse_coo or sparse_csr."""
        return self.layout != devices.strided

    # ---- layouts

    def to_dense(self):
        """Return this tensor with strided data and mask; gradients flow through."""
        if not self.is_sparse:
            return self
        return attach(self.get_data().to_dense(), self._masked_mask.to_dense())

    def to_sparse(self):
        """Return this tensor in layout sparse_coo, with the elements where the mask is True."""
        if self.is_sparse_coo():
            return self
        return self._on_pattern_of(self._masked_mask.to_sparse().coalesce())

    to_sparse_coo = to_sparse

    def to_sparse_csr(self):
        """Return this tensor in layout sparse_csr, with the elements where the mask is True.

        Raises ValueError unless it has two dimensions.
        """
        if self.ndim != 2:
            raise ValueError(
                "Only 2D tensors can be converted to the SparseCsr layout but got shape: "
                f"{list(self.shape)}"
            )
        if self.is_sparse_csr():
            return self
        return self._on_pattern_of(self._masked_mask.to_sparse_csr())

    def _on_pattern_of(self, mask):
        return attach(values_in(self.to_dense().get_data().sparse_mask(mask)), mask)

    def is_contiguous(self, **options) -> bool:
        self._refuse_sparse("is_contiguous")
        return values(self).is_contiguous(**options)

    def contiguous(self, **options):
        self._refuse_sparse("contiguous")
        if self.is_contiguous(**options):
            return self
        return attach(values(self).contiguous(**options), self._masked_mask.contiguous(**options))

    def _refuse_sparse(self, name):
        if self.is_sparse:
            raise ValueError(
                f"MaskedTensors with sparse data do not have is_contiguous: call of {name}()"
            )

    # ---- gradients

    @property
    def grad(self):
        """The accumulated gradient, with the mask of this tensor, or None."""
        return self._shown_gradient(Tensor.grad.fget(self))

    @grad.setter
    def grad(self, gradient):
        Tensor.grad.fset(self, values(gradient) if is_masked_tensor(gradient) else gradient)

    @grad.deleter
    def grad(self):
        self.grad = None

    def _shown_gradient(self, gradient):
        """A gradient of the values, None or a tensor, as users see it (tape/sparse_tensor.py)."""
        return None if gradient is None else attach(values(gradient), self._masked_mask)

    @shows_users_frames
    def register_hook(self, hook):
        def on_values(gradient):
            replacement = hook(self._shown_gradient(gradient))
            return values(replacement) if is_masked_tensor(replacement) else replacement

        return HookMethods.register_hook(self, on_values if callable(hook) else hook)

    # ---- text

    def __repr__(self, **options) -> str:
        data, mask = (part.detach() for part in (self.get_data(), self._masked_mask))
        if self.is_sparse:
            data, mask = data.to_dense(), mask.to_dense()
        if not self.ndim:
            number = _text(data.item()) if mask.item() else "--"
            return f"MaskedTensor({number}, {mask.item()})"
        return f"MaskedTensor(\n{_indented(_rows(data.tolist(), mask.tolist()))}\n)"

    __str__ = __repr__

    def __format__(self, specification: str) -> str:
        return object.__format__(self, specification)

    # ---- as a number; a masked element raises

    def __bool__(self) -> bool:
        return bool(self.item() if self.numel() == 1 else self.get_data())

    def __float__(self) -> float:
        return float(self._number())

    def __int__(self) -> int:
        return int(self._number())

    def _number(self):
        if self.numel() != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        return self.item()


pytree.register_subclass(MaskedTensor)
CARRIED.add(MaskedTensor)


# what computes the functions of masked tensors (functions.py)
_installed = {}


def implement_by(call):
    """Let a module of a layer above compute the functions of masked tensors."""
    _installed["call"] = call


# ---- parts


def attach(numbers: Tensor, mask: Tensor) -> MaskedTensor:
    """Make a new tensor, the data or the values of sparse data, the handle of a masked tensor.

    Raises TypeError for a dtype that masked tensors do not have.
    """
    if numbers.dtype.name not in DTYPES:
        raise TypeError(f"{numbers.dtype} is not supported in MaskedTensor.")
    torch_function.activate()
    numbers.__class__ = MaskedTensor
    numbers._masked_mask = mask
    return numbers


def values(tensor: Tensor) -> Tensor:
    """A plain handle on the array of a masked tensor, at its place in the graph."""
    return values_of(tensor)


def values_in(data: Tensor) -> Tensor:
    """What a masked tensor is a handle on: the data, or its values where it is sparse."""
    return data if data.layout == devices.strided else data.values()


def data_of(tensor: MaskedTensor, numbers: Tensor) -> Tensor:
    """Numbers in the place of the values of a masked tensor, as data of its layout."""
    return on_pattern(tensor._masked_mask, numbers)


def on_pattern(tensor: Tensor, numbers: Tensor) -> Tensor:
    """Numbers in the place of the values of a tensor, in its layout; strided ones as they are."""
    if not isinstance(tensor, SparseTensor):
        return numbers
    return sparse(numbers, tensor._indices_held, tensor._sizes, tensor._coalesced)


def pattern_of(tensor: Tensor) -> Tensor:
    """A sparse tensor of bool that is True at the elements of another one."""
    return on_pattern(tensor, factories.ones_like(values_in(tensor).detach(), dtype=dtypes.bool))


# ---- checks


def _check_kinds(data, mask):
    for name, part in (("data", data), ("mask", mask)):
        if is_masked_tensor(part) or not isinstance(part, Tensor):
            raise TypeError(f"{name} must be a Tensor")
    if data.layout != mask.layout:
        raise TypeError(
            f"data and mask must have the same layout. Got {data.layout} and {mask.layout}"
        )
    if data.layout not in LAYOUTS:
        raise TypeError(f"data layout of {data.layout} is not supported.")
    if mask.dtype != dtypes.bool:
        raise TypeError(f"mask must have dtype bool, not {mask.dtype}.")
    if data.dim() != mask.dim():
        raise ValueError(f"data.dim() must equal mask.dim(): {data.dim()} and {mask.dim()}")
    if data.size() != mask.size():
        raise ValueError(
            f"data.size() must equal mask.size(): {list(data.size())} and {list(mask.size())}"
        )


def matched(data: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Data and a mask of the same layout, on one pattern where they are sparse.

    Data with more or fewer elements than the mask is put on the pattern of the mask. Raises
    ValueError for other patterns of as many elements.
    """
    if data.layout == devices.sparse_coo:
        data, mask = data.coalesce(), mask.coalesce()
    if data.layout == devices.strided:
        return data, mask
    if data._nnz() != mask._nnz():
        return data.sparse_mask(mask), mask
    if not _on_one_pattern(data, mask):
        raise ValueError(
            f"data and mask are both tensors of layout {data.layout} but do not have the same "
            "indices."
        )
    return data, mask


def _on_one_pattern(first, second) -> bool:
    return all(
        part.shape == other.shape and bool(ops.eq(part, other).all().item())
        for part, other in zip(_pattern(first), _pattern(second), strict=True)
    )


def _pattern(tensor) -> tuple:
    """The tensors that say where the elements of a tensor are."""
    if tensor.layout == devices.sparse_csr:
        return tensor.crow_indices(), tensor.col_indices()
    return (tensor.indices(),) if tensor.layout == devices.sparse_coo else ()


def _tensors_match(a, b, exact=True, rtol=1e-05, atol=1e-08) -> bool:
    """Whether two plain tensors of one layout are equal, or close where `exact` is false."""
    if is_masked_tensor(a) or is_masked_tensor(b):
        raise ValueError("Neither `a` nor `b` can be a MaskedTensor.")
    if a.layout != b.layout:
        raise ValueError(f"`a` and `b` must have the same layout. Got {a.layout} and {b.layout}")
    if a.dim() != b.dim() or not _on_one_pattern(a, b):
        return False
    a, b = (values_in(tensor) for tensor in (a, b.to(a.dtype)))
    if exact:
        return bool(ops.eq(a, b).all().item())
    return bool(ops.isclose(a, b, rtol, atol).all().item())


def _masks_match(a, b) -> bool:
    """Whether two values have equal masks; values without a mask match all."""
    if not is_masked_tensor(a) or not is_masked_tensor(b):
        return True
    # masks that are one tensor match in a trace too, where numbers are not known
    return a.get_mask() is b.get_mask() or _tensors_match(a.get_mask(), b.get_mask())


def _get_data(a):
    return a.get_data() if is_masked_tensor(a) else a


def _maybe_get_mask(a):
    return a.get_mask() if is_masked_tensor(a) else None


# ---- text


def _text(number) -> str:
    return FORMAT.format(number) if isinstance(number, float) else str(number)


def _rows(numbers, mask) -> str:
    if numbers and isinstance(numbers[0], list):
        rows = (_indented(_rows(*row)) for row in zip(numbers, mask, strict=True))
        return "[\n" + ",\n".join(rows) + "\n]"
    texts = list(map(_text, numbers))
    widths = [len(text) if is_shown else 8 for text, is_shown in zip(texts, mask, strict=True)]
    hidden = "--".rjust(max(widths, default=8))
    shown = (text if is_shown else hidden for text, is_shown in zip(texts, mask, strict=True))
    return "[" + ", ".join(shown) + "]"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.split("\n"))


__getattr__ = missing_in(__name__)
