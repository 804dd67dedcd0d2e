"""Embeddings and bags of them, of which sums, means or maxima are taken: functions and layers."""

import warnings
from typing import Any, Self

import numpy

from .. import ops
from ..autograd._engine.sparse_gradient import give
from ..autograd.grad_mode import no_grad
from ..core import dtypes
from ..core.device import DeviceLike
from ..core.tracebacks import users_stacklevel
from ..frontend import factories
from ..frontend.array_creation import beside
from ..functions import embedding as bags
from ..tape.sparse_tensor import Padding
from ..tape.tensor import Tensor, concrete, is_concrete
from ..tape.torch_function import api_boundary, names_defaults
from . import functional, init
from .module import Module
from .parameter import Parameter, new_parameter


@names_defaults
@api_boundary
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Return the rows of `weight` at the indices `input`.

    input: int32 or int64 indices of any shape (*). weight: (num_embeddings, embedding_dim). The
    result is (*, embedding_dim). padding_idx: a row that receives no gradient. max_norm: rescale,
    in place, the rows that are looked up and whose `norm_type`-norm is greater. scale_grad_by_freq:
    divide the gradient of each row by the number of its lookups. Raises IndexError for an index
    outside the table, RuntimeError for another dtype or shape, and for `sparse=True` together with
    `scale_grad_by_freq` if `weight` gets a gradient. sparse: the gradient of a leaf `weight` is a
    sparse tensor with a row for each lookup.

    >>> table = jaxgrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> F.embedding(jaxgrad.tensor([1, 1, 0]), table)
    tensor([[3., 4.],
            [3., 4.],
            [1., 2.]])
    """
    if weight.ndim != 2:
        raise RuntimeError(f"'weight' must be 2-D: embedding got {list(weight.shape)}")
    padding_idx = _row_index("Padding_idx", padding_idx, weight.shape[0])
    if sparse and scale_grad_by_freq:
        bags.refuse_gradient(weight)
    if max_norm is not None:
        _renormalize(input, weight, max_norm, norm_type)
    rows = ops.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)
    if sparse:
        give(rows, "EmbeddingBackward0", _of_rows(input.reshape(-1), weight.shape, padding_idx))
    return rows


def _of_rows(indices, size, padding_idx):
    """The function that computes the sparse gradient of rows, for `SparseGradient`."""
    indices = indices.detach().long()

    def of_lookup(gradient):
        gradient = gradient.reshape(indices.shape[0], size[1])
        if padding_idx < 0:
            return size, indices.unsqueeze(0), gradient, False
        if not is_concrete(indices):
            present = indices != padding_idx
            values = ops.where(present[:, None], gradient, 0)
            return size, indices.unsqueeze(0), values, Padding(present, False)
        # outside of a trace the elements of the padding are left out; their gradient is 0
        kept = (indices != padding_idx).nonzero().reshape(-1)
        return size, indices[kept].unsqueeze(0), ops.index_select(gradient, 0, kept), False

    return of_lookup


def _row_index(what, number, count):
    """Return a row index, counted from the end if it is negative; -1 for None."""
    if number is None:
        return -1
    if not -count <= number < count:
        raise AssertionError(f"{what} must be within num_embeddings")
    return number % count


def _renormalize(input, weight, max_norm, norm_type):
    """Scale the rows that are looked up to a norm of at most `max_norm`. No derivative sees it: the
    tangents of the weight stay, as gradients do.
    """
    with no_grad():
        ops.embedding_renorm_(weight.detach(), input, max_norm, norm_type)


_MODES = {"sum": 0, "mean": 1, "max": 2}


@names_defaults
@api_boundary
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Return the sum, mean or maximum of the rows of `weight` in each bag, 0 for an empty bag.

    input: int32 or int64 indices, (B, L) for B bags, or (K,) with `offsets` (B,), where each bag
    begins. weight: (num_embeddings, embedding_dim). The result is (B, embedding_dim). mode: "sum",
    "mean" or "max". per_sample_weights: of the shape of `input`, the factors of rows in sums.
    include_last_offset: `offsets` is (B + 1,) and ends with K. padding_idx: a row that is left out.
    The other arguments are those of `embedding`. Raises ValueError for arguments that do not fit,
    NotImplementedError for weights in another mode than "sum", RuntimeError for an index outside
    the table.

    >>> table = jaxgrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> F.embedding_bag(jaxgrad.tensor([0, 1, 1]), table, jaxgrad.tensor([0, 2]), mode="sum")
    tensor([[4., 6.],
            [3., 4.]])
    """
    if input.is_floating_point() and weight.dtype is dtypes.int64:
        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage "
            "`embedding_bag(weight, input, ...)` is deprecated, and should now be "
            "`embedding_bag(input, weight, ...)`.",
            stacklevel=users_stacklevel(),
        )
        weight, input = input, weight
    _check_bag_options(input, weight, mode, scale_grad_by_freq, sparse, per_sample_weights)
    offsets = _offsets(input, offsets)
    if input.ndim == 2:
        include_last_offset, input = False, input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    if max_norm is not None:
        _renormalize(input, weight, max_norm, norm_type)
    return bags.embedding_bag(
        weight,
        input,
        offsets,
        scale_grad_by_freq,
        _MODES[mode],
        sparse,
        per_sample_weights,
        include_last_offset,
        padding_idx,
    )[0]


def _check_bag_options(input, weight, mode, scale_grad_by_freq, sparse, per_sample_weights):
    if per_sample_weights is not None and input.shape != per_sample_weights.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, "
            f"then it must have the same shape as the input ({input.shape})"
        )
    if weight.ndim != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.ndim}")
    if mode not in _MODES:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported "
            f"for mode='sum' (got mode='{mode}')"
        )


def _offsets(input, offsets):
    """Return where bags begin."""
    if input.ndim == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch "
                f"of fixed length sequences. However, found offsets of type {type(offsets)}"
            )
        count, length = input.shape
        return factories.arange(count, dtype=input.dtype, device=beside(input)) * length
    if input.ndim != 1:
        raise ValueError(
            f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.ndim}"
        )
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if offsets.ndim != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    return offsets


@api_boundary
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Return a tensor (*, num_classes) with 1 at the index in `tensor` (*), and 0 elsewhere.

    tensor: int64 indices. num_classes: -1 for one more than the largest index, which needs concrete
    values. The result is int64. Raises RuntimeError for an empty tensor without `num_classes`.

    >>> F.one_hot(jaxgrad.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    if num_classes == -1:
        num_classes = _count_classes(tensor)
    return ops.one_hot(tensor, num_classes)


def _count_classes(tensor):
    classes = numpy.asarray(concrete(tensor, "one_hot() without num_classes"))
    if not classes.size:
        raise RuntimeError("Can not infer total number of classes from empty tensor.")
    return max(int(classes.max()), 0) + 1


# layers


class Embedding(Module):
    """A learned table of embeddings: indices (*) to vectors (*, embedding_dim).

    weight: (num_embeddings, embedding_dim), drawn from N(0, 1). padding_idx: a row of zeros that
    receives no gradient. The other arguments and errors are those of `functional.embedding`; also
    AssertionError for a `padding_idx` outside the table.

    >>> table = jaxgrad.nn.Embedding(10, 3, padding_idx=0)
    >>> table(jaxgrad.tensor([0]))
    tensor([[0., 0., 0.]], grad_fn=<EmbeddingBackward0>)
    """

    weight: Tensor
    padding_idx: int | None

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: DeviceLike | None = None,
        dtype: dtypes.dtype | None = None,
    ):
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertionError(
                    f"Padding_idx must be within num_embeddings, {num_embeddings}, not "
                    f"{padding_idx}"
                )
            padding_idx %= num_embeddings
        self.padding_idx, self.max_norm, self.norm_type = padding_idx, max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        if _weight is None:
            shape = (num_embeddings, embedding_dim)
            self.weight = new_parameter(shape, device, dtype).requires_grad_(not _freeze)
            self.reset_parameters()
            return
        if list(_weight.shape) != [num_embeddings, embedding_dim]:
            raise AssertionError(
                f"Shape of weight does not match num_embeddings and embedding_dim: "
                f"{list(_weight.shape)}"
            )
        self.weight = Parameter(_weight, requires_grad=not _freeze)

    def reset_parameters(self) -> None:
        """Draw the table again, with zeros at `padding_idx`."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx] = 0

    def forward(self, input: Tensor) -> Tensor:
        return functional.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        shown = f"{self.num_embeddings}, {self.embedding_dim}"
        defaults = {
            "padding_idx": None,
            "max_norm": None,
            "norm_type": 2,
            "scale_grad_by_freq": False,
        }
        for name, default in defaults.items():
            value = getattr(self, name)
            if value != default:
                shown += f", {name}={value}"
        return f"{shown}, sparse=True" if self.sparse else shown

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, **options: Any) -> Self:
        """Return a layer with the table `embeddings` (num_embeddings, embedding_dim).

        freeze: the table does not require grad. options: those of the constructor.
        Raises AssertionError unless `embeddings` has two dimensions.

        >>> table = jaxgrad.nn.Embedding.from_pretrained(jaxgrad.tensor([[1.0, 2.0]]))
        >>> table(jaxgrad.tensor(0))
        tensor([1., 2.])
        """
        if embeddings.ndim != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        return cls(*embeddings.shape, _weight=embeddings, _freeze=freeze, **options)


class EmbeddingBag(Module):
    """Sums, means or maxima of bags of a learned table's rows; see `functional.embedding_bag`.

    Indices (B, L), or (K,) with offsets (B,), become (B, embedding_dim).

    weight: (num_embeddings, embedding_dim), drawn from N(0, 1). padding_idx: a row of zeros that is
    left out. Errors are those of `functional.embedding_bag`; also AssertionError for a
    `padding_idx` outside the table.

    >>> table = jaxgrad.nn.EmbeddingBag(10, 3, mode="sum")
    >>> table(jaxgrad.tensor([[1, 2], [4, 5]])).shape
    torch.Size([2, 3])
    """

    weight: Tensor
    padding_idx: int | None

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: DeviceLike | None = None,
        dtype: dtypes.dtype | None = None,
    ):
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertionError("padding_idx must be within num_embeddings")
            padding_idx %= num_embeddings
        self.padding_idx = padding_idx
        if _weight is None:
            self.weight = new_parameter((num_embeddings, embedding_dim), device, dtype)
            self.reset_parameters()
        elif list(_weight.shape) != [num_embeddings, embedding_dim]:
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        else:
            self.weight = Parameter(_weight)
        self.mode, self.sparse, self.include_last_offset = mode, sparse, include_last_offset

    def reset_parameters(self) -> None:
        """Draw the table again, with zeros at `padding_idx`."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx] = 0

    def forward(
        self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        return functional.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        shown = f"{self.num_embeddings}, {self.embedding_dim}"
        defaults = {"max_norm": None, "norm_type": 2, "scale_grad_by_freq": False}
        for name, default in defaults.items():
            value = getattr(self, name)
            if value != default:
                shown += f", {name}={value}"
        shown += f", mode={self.mode!r}"
        return shown if self.padding_idx is None else f"{shown}, padding_idx={self.padding_idx}"

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, **options: Any) -> Self:
        """Return a layer with the table `embeddings` (num_embeddings, embedding_dim).

        freeze: the table does not require grad. options: those of the constructor.
        Raises AssertionError unless `embeddings` has two dimensions.

        >>> table = jaxgrad.nn.EmbeddingBag.from_pretrained(jaxgrad.tensor([[1.0], [3.0]]))
        >>> table(jaxgrad.tensor([[0, 1]]))
        tensor([[2.]])
        """
        if embeddings.ndim != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        result = cls(*embeddings.shape, _weight=embeddings, **options)
        result.weight.requires_grad_(not freeze)
        return result
