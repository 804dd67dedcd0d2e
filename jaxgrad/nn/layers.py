"""Linear, embedding, dropout and shape layers."""

from __future__ import annotations

import math

from ..autograd.grad_mode import no_grad
from ..core import dtypes
from ..frontend import factories
from ..tape.tensor import Tensor
from . import dropout, init
from .embedding import embedding
from .function_layer import FunctionLayer
from .functional import linear
from .module import Module
from .parameter import Parameter, mark


def parameter(shape, device=None, dtype=None, value: float | None = None) -> Tensor:
    """Return a new parameter: filled with `value`, or uninitialized."""
    options = {"device": device, "dtype": dtype}
    if value is None:
        return mark(factories.empty(shape, **options), Parameter, True)
    if dtype is None:
        options["dtype"] = dtypes.get_default_dtype()
    return mark(factories.full(shape, float(value), **options), Parameter, True)


def fan_in_uniform_(tensor: Tensor, fan_in: int):
    """Draw a tensor from U(-b, b), `b = 1 / sqrt(fan_in)`, as PyTorch initializes biases."""
    bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
    init.uniform_(tensor, -bound, bound)


class Identity(Module):
    """Return the input; the constructor ignores its arguments.

    >>> jaxgrad.nn.Identity()(jaxgrad.ones(1))
    tensor([1.])
    """

    def __init__(self, *args, **kwargs):
        super().__init__()

    def forward(self, input):
        return input


class Linear(Module):
    """Compute `input @ weight.T + bias`: (*, in_features) to (*, out_features).

    weight: (out_features, in_features), bias: (out_features,) or None, both drawn from U(-b, b)
    with `b = 1 / sqrt(in_features)`. The input has the dtype of `weight`; RuntimeError for shapes
    that do not fit.

    >>> layer = jaxgrad.nn.Linear(3, 2)
    >>> layer(jaxgrad.ones(5, 3)).shape
    torch.Size([5, 2])
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device=None, dtype=None
    ):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = parameter((out_features, in_features), device, dtype)
        self.register_parameter("bias", parameter((out_features,), device, dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draw weight and bias again."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in_uniform_(self.bias, self.in_features)

    def forward(self, input):
        return linear(input, self.weight, self.bias)

    def extra_repr(self):
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class Bilinear(Module):
    """Compute `x1 @ weight[k] @ x2 + bias[k]` for each output feature k.

    The inputs are (*, in1_features) and (*, in2_features), the result is (*, out_features). weight:
    (out_features, in1_features, in2_features), bias: (out_features,) or None, both drawn from U(-b,
    b) with `b = 1 / sqrt(in1_features)`.

    >>> layer = jaxgrad.nn.Bilinear(2, 3, 4)
    >>> layer(jaxgrad.ones(5, 2), jaxgrad.ones(5, 3)).shape
    torch.Size([5, 4])
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.in1_features, self.in2_features = in1_features, in2_features
        self.out_features = out_features
        self.weight = parameter((out_features, in1_features, in2_features), device, dtype)
        self.register_parameter("bias", parameter((out_features,), device, dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draw weight and bias again."""
        fan_in_uniform_(self.weight, self.in1_features)
        if self.bias is not None:
            fan_in_uniform_(self.bias, self.in1_features)

    def forward(self, input1, input2):
        parts = (input1.unsqueeze(-2).unsqueeze(-2) @ self.weight).squeeze(-2)
        result = (parts * input2.unsqueeze(-2)).sum(-1)
        return result if self.bias is None else result + self.bias

    def extra_repr(self):
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


class Embedding(Module):
    """A learned table of embeddings: indices (*) to vectors (*, embedding_dim).

    weight: (num_embeddings, embedding_dim), drawn from N(0, 1). padding_idx: a row of zeros that
    receives no gradient. The other arguments and errors are those of `functional.embedding`; also
    AssertionError for a `padding_idx` outside the table.

    >>> table = jaxgrad.nn.Embedding(10, 3, padding_idx=0)
    >>> table(jaxgrad.tensor([0]))
    tensor([[0., 0., 0.]], grad_fn=<EmbeddingBackward0>)
    """

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
        device=None,
        dtype=None,
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
            self.weight = parameter(shape, device, dtype).requires_grad_(not _freeze)
            self.reset_parameters()
            return
        if list(_weight.shape) != [num_embeddings, embedding_dim]:
            raise AssertionError(
                f"Shape of weight does not match num_embeddings and embedding_dim: "
                f"{list(_weight.shape)}"
            )
        self.weight = Parameter(_weight, requires_grad=not _freeze)

    def reset_parameters(self):
        """Draw the table again, with zeros at `padding_idx`."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx] = 0

    def forward(self, input):
        return embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self):
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
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, **options) -> Embedding:
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


class Flatten(Module):
    """Merge the dimensions `start_dim` to `end_dim`, by default all but the first.

    >>> jaxgrad.nn.Flatten()(jaxgrad.ones(2, 3, 4)).shape
    torch.Size([2, 12])
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1):
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input):
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self):
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Split the dimension `dim` into the sizes `unflattened_size`.

    >>> jaxgrad.nn.Unflatten(1, (2, 3))(jaxgrad.ones(4, 6)).shape
    torch.Size([4, 2, 3])
    """

    def __init__(self, dim: int, unflattened_size):
        super().__init__()
        self.dim, self.unflattened_size = dim, unflattened_size

    def forward(self, input):
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self):
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class _Dropout(FunctionLayer):
    """A dropout layer, active while `training` is set."""

    shown = ("p", "inplace")

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if not 0 <= self.p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {self.p}")

    def forward(self, input):
        return super().forward(input, training=self.training)


_OPTIONS = {"p": 0.5, "inplace": False}


class Dropout(_Dropout, function=dropout.dropout, **_OPTIONS):
    """Dropout of elements while training, the identity otherwise; see `functional.dropout`.

    Raises ValueError if `p` is outside [0, 1].

    >>> jaxgrad.nn.Dropout(0.5).eval()(jaxgrad.ones(2))
    tensor([1., 1.])
    """


class Dropout1d(_Dropout, function=dropout.dropout1d, **_OPTIONS):
    """Dropout of whole channels of (N, C, L) or (C, L); see `functional.dropout1d`.

    >>> jaxgrad.nn.Dropout1d()(jaxgrad.ones(1, 1, 2)).sum().item() in (0.0, 4.0)
    True
    """


class Dropout2d(_Dropout, function=dropout.dropout2d, **_OPTIONS):
    """Dropout of whole channels of (N, C, H, W) or (C, H, W); see `functional.dropout2d`.

    >>> jaxgrad.nn.Dropout2d()(jaxgrad.ones(1, 1, 2, 2)).sum().item() in (0.0, 8.0)
    True
    """


class Dropout3d(_Dropout, function=dropout.dropout3d, **_OPTIONS):
    """Dropout of whole channels of (N, C, D, H, W) or (C, D, H, W); see `functional.dropout3d`.

    >>> jaxgrad.nn.Dropout3d()(jaxgrad.ones(1, 1, 1, 2, 2)).sum().item() in (0.0, 8.0)
    True
    """


class AlphaDropout(_Dropout, function=dropout.alpha_dropout, **_OPTIONS):
    """Dropout that keeps mean and variance, for `SELU`; see `functional.alpha_dropout`.

    >>> jaxgrad.nn.AlphaDropout().eval()(jaxgrad.ones(2))
    tensor([1., 1.])
    """


class FeatureAlphaDropout(_Dropout, function=dropout.feature_alpha_dropout, **_OPTIONS):
    """`AlphaDropout` of whole channels; see `functional.feature_alpha_dropout`.

    >>> jaxgrad.nn.FeatureAlphaDropout().eval()(jaxgrad.ones(1, 2))
    tensor([[1., 1.]])
    """
