"""Making tensors in compressed layouts of their parts."""

from __future__ import annotations

import math

import numpy as np

from .. import ops
from ..core import dtypes
from ..core.device import check_pinning, sparse_bsc, sparse_bsr, sparse_csc, sparse_csr
from ..core.tracebacks import shows_users_frames
from ..frontend import tensor_data
from ..tape.sparse_tensor import Compression, sparse
from ..tape.tensor import Tensor, check_differentiable, is_concrete
from . import _layouts
from ._construction import check_sparse_tensor_invariants

BY_TYPE = {dtypes.int32: "Int", dtypes.int64: "Long"}


@shows_users_frames
def sparse_compressed_tensor(
    compressed_indices,
    plain_indices,
    values,
    size=None,
    *,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """Return a tensor in a compressed layout with these values at these indices.

    compressed_indices: where each row begins among the elements, and where the last one ends, of
    shape (*batch, rows + 1); of columns in the layouts `sparse_csc` and `sparse_bsc`, of blocks in
    `sparse_bsr` and `sparse_bsc`. plain_indices: the columns of the elements, or the rows, of shape
    (*batch, elements); both int32 or int64. values: of shape (*batch, elements, *block, *dense
    sizes); gradients flow back to a tensor. size: the sizes, by default the smallest. dtype,
    device: those of the values. requires_grad: whether the tensor is a leaf that requires grad.
    check_invariants: whether indices must be contiguous too; the other checks are made in any case,
    where the parts are known.

    Raises RuntimeError for parts that do not fit together.

    >>> jaxgrad.sparse_compressed_tensor(
    ...     [0, 1, 2], [1, 0], [3.0, 4.0], (2, 2), layout=jaxgrad.sparse_csr
    ... ).to_dense()
    tensor([[0., 3.],
            [4., 0.]])
    """
    name = "sparse_compressed_tensor"
    if layout not in _layouts.LAYOUTS:
        known = {None: "none"}.get(layout, "Strided")
        raise RuntimeError(f"{name} expected sparse compressed tensor layout but got {known}")
    if pin_memory:
        check_pinning(f"{name}()")
    parts = [_as_indices(part) for part in (compressed_indices, plain_indices)]
    data = values if isinstance(values, Tensor) else tensor_data.tensor(values, dtype=dtype)
    data = data.to(device=data.device if device is None else device, dtype=dtype or data.dtype)
    words = Words(layout)
    if check_invariants or (
        check_invariants is None and check_sparse_tensor_invariants.is_enabled()
    ):
        check_contiguous(words, *parts)
    size = checked(words, *parts, data, size)
    tensor = sparse(ops._coo_tensor(data), parts[1], size, Compression(parts[0], layout))
    if not requires_grad or tensor.requires_grad:
        return tensor
    check_differentiable(tensor)
    return tensor.requires_grad_()


@shows_users_frames
def sparse_csr_tensor(crow_indices, col_indices, values, size=None, **options) -> Tensor:
    """Return a tensor with compressed rows; see `sparse_compressed_tensor`.

    >>> jaxgrad.sparse_csr_tensor([0, 1, 2], [1, 0], [3.0, 4.0]).to_dense()
    tensor([[0., 3.],
            [4., 0.]])
    """
    return _of(sparse_csr, crow_indices, col_indices, values, size, options)


@shows_users_frames
def sparse_csc_tensor(ccol_indices, row_indices, values, size=None, **options) -> Tensor:
    """Return a tensor with compressed columns; see `sparse_compressed_tensor`.

    >>> jaxgrad.sparse_csc_tensor([0, 1, 2], [1, 0], [3.0, 4.0]).to_dense()
    tensor([[0., 4.],
            [3., 0.]])
    """
    return _of(sparse_csc, ccol_indices, row_indices, values, size, options)


@shows_users_frames
def sparse_bsr_tensor(crow_indices, col_indices, values, size=None, **options) -> Tensor:
    """Return a tensor with compressed rows of blocks; see `sparse_compressed_tensor`.

    >>> jaxgrad.sparse_bsr_tensor([0, 1], [0], [[[3.0, 4.0]]]).to_dense()
    tensor([[3., 4.]])
    """
    return _of(sparse_bsr, crow_indices, col_indices, values, size, options)


@shows_users_frames
def sparse_bsc_tensor(ccol_indices, row_indices, values, size=None, **options) -> Tensor:
    """Return a tensor with compressed columns of blocks; see `sparse_compressed_tensor`.

    >>> jaxgrad.sparse_bsc_tensor([0, 1], [0], [[[3.0, 4.0]]]).to_dense()
    tensor([[3., 4.]])
    """
    return _of(sparse_bsc, ccol_indices, row_indices, values, size, options)


def _of(layout, compressed, plain, values, size, options):
    if options.pop("layout", layout) not in (None, layout):
        raise RuntimeError(f"sparse_{layout.name[-3:]}_tensor makes tensors of layout {layout}")
    return sparse_compressed_tensor(compressed, plain, values, size, layout=layout, **options)


def empty(size, *, layout, dtype=None, device=None, requires_grad=False) -> Tensor:
    """A tensor of some sizes without elements."""
    if len(size) < 2:
        raise RuntimeError(
            f"torch.empty: Only batched sparse compressed (non-block) tensors are supported, but "
            f"got size {list(size)}"
        )
    if layout in _layouts.BLOCKS:
        raise RuntimeError(
            "torch.empty: Only batched sparse compressed (non-block) tensors are supported, but "
            f"got layout {layout}"
        )
    *batch, rows, columns = size
    count = rows if layout in _layouts.ROWS else columns
    parts = [np.zeros((*batch, count + 1), np.int64), np.zeros((*batch, 0), np.int64)]
    values = tensor_data.tensor(np.zeros((*batch, 0)), dtype=dtype or dtypes.get_default_dtype())
    return sparse_compressed_tensor(
        *map(tensor_data.tensor, parts),
        values,
        size,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )


def _as_indices(indices) -> Tensor:
    if not isinstance(indices, Tensor):
        indices = tensor_data.tensor(indices, dtype=dtypes.int64)
    return indices.detach()


class Words:
    """The names of the parts of a layout in messages."""

    def __init__(self, layout):
        self.layout, self.is_rows = layout, layout in _layouts.ROWS
        self.compressed, self.plain = (
            ("crow_indices", "col_indices")
            if self.is_rows
            else (
                "ccol_indices",
                "row_indices",
            )
        )
        self.lines, self.across = ("rows", "columns") if self.is_rows else ("columns", "rows")
        self.count, self.other = ("nrows", "ncols") if self.is_rows else ("ncols", "nrows")
        self.unit = f"{self.lines[:-1]} blocks" if layout in _layouts.BLOCKS else self.lines


def check_contiguous(words: Words, compressed, plain):
    """Raise RuntimeError for indices with strides."""
    for name, part in ((words.compressed, compressed), (words.plain, plain)):
        if part.ndim and part.shape[-1] > 1 and part.stride(-1) != 1:
            raise RuntimeError(f"expected {name} to be a contiguous tensor per batch")


def checked(words: Words, compressed, plain, values, size) -> tuple[int, ...]:
    """The sizes of a new tensor. Raises RuntimeError for parts that do not fit together."""
    block_dims = 2 if words.layout in _layouts.BLOCKS else 0
    for name, part in ((words.compressed, compressed), (words.plain, plain)):
        if part.ndim < 1:
            raise RuntimeError(f"{name} must have dimensionality >= 1 but got {part.ndim}")
    pair = f"{words.compressed} and {words.plain}"
    if compressed.ndim != plain.ndim:
        raise RuntimeError(
            f"{pair} dimensionalities must be equal but got {compressed.ndim} and {plain.ndim}, "
            "respectively"
        )
    batch = compressed.ndim - 1
    if values.ndim <= batch + block_dims:
        raise RuntimeError(
            "values must have dimensionality > sum of batch and block dimensionalities "
            f"(={batch} + {block_dims}) but got {values.ndim}"
        )
    if compressed.dtype is not plain.dtype:
        raise RuntimeError(
            # PyTorch's spelling, on which its users match
            f"{pair} must have the same dtype, bot got {compressed.dtype.scalar_type} and "
            f"{plain.dtype.scalar_type}, respectively"
        )
    if compressed.dtype not in BY_TYPE:
        raise RuntimeError(
            f"{pair} dtype must be Int or Long, but got {compressed.dtype.scalar_type}"
        )
    block = tuple(values.shape[batch + 1 : batch + 1 + block_dims]) or (1, 1)
    dense = tuple(values.shape[batch + 1 + block_dims :])
    if size is None:
        size = _least_size(words, compressed, plain, block, dense)
    size = tuple(size)
    _check_sizes(words, compressed, plain, values, size, (batch, block, dense, block_dims))
    _check_numbers(words, compressed, plain, size, batch, block)
    return size


def _least_size(words, compressed, plain, block, dense):
    if not is_concrete(plain):
        raise RuntimeError("sparse_compressed_tensor needs a size where indices are traced")
    numbers = np.asarray(plain._array)
    pair = compressed.shape[-1] - 1, int(numbers.max(initial=-1)) + 1
    rows, columns = pair if words.is_rows else pair[::-1]
    return (*plain.shape[:-1], rows * block[0], columns * block[1], *dense)


def _check_sizes(words, compressed, plain, values, size, parts):
    batch, block, dense, block_dims = parts
    if len(size) != batch + 2 + len(dense):
        raise RuntimeError(
            "tensor dimensionality must be sum of batch, base, and dense dimensionalities "
            f"(={batch} + 2 + {len(dense)}) but got {len(size)}"
        )
    for dim, extent in enumerate(block):
        if block_dims and (not extent or size[batch + dim] % extent):
            raise RuntimeError(
                f"tensor shape[{batch + dim}] (={size[batch + dim]}) must be divisible with "
                f"blocksize[{dim}] (={extent}) as defined by values shape"
            )
    lines = size[batch] // block[0] if words.is_rows else size[batch + 1] // block[1]
    if compressed.shape[-1] != lines + 1:
        raise RuntimeError(
            f"{words.compressed}.shape[-1] must be equal to the number of {words.unit} + 1 "
            f"(={lines + 1}), but got {compressed.shape[-1]}"
        )
    if plain.shape[-1] != values.shape[batch]:
        raise RuntimeError(
            f"{words.plain}.shape[-1] must be equal to nnz (={values.shape[batch]}) as defined by "
            f"values.shape[{batch}], but got {plain.shape[-1]}"
        )
    for name, part in ((words.compressed, compressed), (words.plain, plain), ("values", values)):
        if tuple(part.shape[:batch]) != size[:batch]:
            raise RuntimeError(
                f"all batch dimensions of {words.compressed} (={list(compressed.shape[:batch])}), "
                f"{words.plain} (={list(plain.shape[:batch])}), and values "
                f"(={list(values.shape[:batch])}) must be equal to tensor batch dimensions "
                f"(={list(size[:batch])}): {name} has others"
            )
    if dense != size[batch + 2 :]:
        raise RuntimeError(
            f"values has dense sizes {list(dense)}, and the tensor {list(size[batch + 2 :])}"
        )


def _check_numbers(words, compressed, plain, size, batch, block):
    """Raise RuntimeError for indices that are no compression, where they are known."""
    if not (is_concrete(compressed) and is_concrete(plain)) or not math.prod(size[:batch]):
        return
    begin = np.asarray(compressed._array).reshape(-1, compressed.shape[-1]).astype(np.int64)
    places = np.asarray(plain._array).reshape(len(begin), -1)
    pair = size[batch] // block[0], size[batch + 1] // block[1]
    extent = pair[1] if words.is_rows else pair[0]
    steps, name = np.diff(begin), words.compressed
    if (begin[:, 0] != 0).any():
        raise RuntimeError(
            f"`{name}[..., 0] == 0` is not satisfied: {name} begins with "
            f"{np.unique(begin[:, 0]).tolist()}"
        )
    if (begin[:, -1] != places.shape[1]).any():
        raise RuntimeError(
            f"`{name}[..., -1] == nnz` is not satisfied: {name} ends with "
            f"{np.unique(begin[:, -1]).tolist()}, and {words.plain} has {places.shape[1]} elements "
            "in its last dimension"
        )
    if ((steps < 0) | (steps > extent)).any():
        raise RuntimeError(
            f"`0 <= {name}[..., 1:] - {name}[..., :-1] <= {words.other}` is not satisfied: the "
            f"steps are from {steps.min()} to {steps.max()}, and {words.other} is {extent}"
        )
    if ((places < 0) | (places >= extent)).any():
        raise RuntimeError(
            f"`0 <= {words.plain} < {words.other}` is not satisfied: {words.plain} has "
            f"numbers from {places.min()} to {places.max()}, and {words.other} is {extent}"
        )
    for row, line in zip(begin, places, strict=True):
        number = np.repeat(np.arange(len(row) - 1), np.diff(row)) * max(extent, 1) + line
        if (np.diff(number) <= 0).any():
            raise RuntimeError(
                f"`{words.plain}[..., {name}[..., i - 1]:{name}[..., i]] for all i = 1, ..., "
                f"{words.count} are sorted and distinct along the last dimension values` is not "
                "satisfied."
            )
