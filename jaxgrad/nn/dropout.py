"""Dropout of elements and of whole channels: functions and layers."""

from __future__ import annotations

import warnings
from typing import Any

from .. import ops
from ..core.tracebacks import users_stacklevel
from ..functions import dropout as dropouts
from ..tape.tensor import Tensor
from ..tape.torch_function import api_boundary, names_defaults
from .function_layer import FunctionLayer


def _check_probability(p):
    if not 0 <= p <= 1:
        # the operator of PyTorch is the one that refuses NaN
        kind = ValueError if p == p else RuntimeError
        raise kind(f"dropout probability has to be between 0 and 1, but got {p}")


def _is_identity(input, p, training) -> bool:
    _check_probability(p)
    return not training or p == 0 or not input.numel()


def _drop(input, p, training, inplace, shape):
    """Zero the dropped elements and divide the others by `1 - p`, which keeps the mean."""
    if _is_identity(input, p, training):
        return input
    if p == 1:  # nothing is drawn
        dropouts.check_dtype("dropout", input)
        return input.mul_(0) if inplace else input * 0
    kept = dropouts.kept("dropout", input, 1 - p, shape)
    scale = dropouts.scale_of_kept(p, input.dtype)
    if inplace:
        return input.mul_(scale).masked_fill_(kept.logical_not(), 0)
    if shape == input.shape:
        return ops.where(kept, input * scale, 0)
    return input * (kept.to(input.dtype) * scale)  # its first operand decides the layout


@names_defaults
@api_boundary
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Set each element to 0 with probability `p` and divide the others by `1 - p`.

    input: any shape, floating-point or complex dtype; the result has both. training: False returns
    `input` as it is. inplace: overwrite `input`.
    Raises ValueError if `p` is outside [0, 1], RuntimeError for an integer dtype.
    Source: Srivastava et al., "Dropout: A Simple Way to Prevent Overfitting", 2014.

    >>> dropped = F.dropout(jaxgrad.ones(1000), 0.2)
    >>> sorted(set(dropped.tolist())), F.dropout(jaxgrad.ones(2), 0.2, training=False)
    ([0.0, 1.25], tensor([1., 1.]))
    """
    return _drop(input, p, training, inplace, input.shape)


def _drop_channels(name, dimensions, input, p, training, inplace):
    rank = dimensions + 2
    is_one = input.ndim == rank - 1
    if dimensions == 1 and not (is_one or input.ndim == rank):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.ndim}D input"
        )
    if is_one and dimensions == 2:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout "
            "behavior is desired - input is interpreted as shape (N, C, L), where C is the channel "
            "dim: dropout1d is for these",
            stacklevel=users_stacklevel(),
        )
    elif not (is_one or input.ndim == rank):
        warnings.warn(
            f"{name}: Received a {input.ndim}-D input to {name}, which is deprecated and will "
            f"result in an error in a future release: it drops channels of {rank}-D input",
            stacklevel=users_stacklevel(),
        )
    # dropout1d and dropout3d take what is no batch as one sample, as PyTorch does
    is_batch = dimensions == 2 or input.ndim == rank
    is_drawn = training and 0 < p < 1 and input.numel()
    if is_drawn and input.ndim < 1 + is_batch:
        raise RuntimeError(
            f"{name}: Feature dropout requires at least 2 dimensions in the input, which has the "
            f"shape {list(input.shape)}"
        )
    leading = input.shape[: 1 + is_batch]
    shape = (*leading, *[1] * (input.ndim - len(leading)))
    return _drop(input, p, training, inplace, shape)


@names_defaults
@api_boundary
def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Apply `dropout` to whole channels of (N, C, L) or (C, L).

    Arguments and errors are those of `dropout`; RuntimeError is raised for another rank.

    >>> F.dropout1d(jaxgrad.ones(1, 1, 2)).sum().item() in (0.0, 4.0)
    True
    """
    return _drop_channels("dropout1d", 1, input, p, training, inplace)


@names_defaults
@api_boundary
def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Apply `dropout` to whole channels of (N, C, H, W) or (N, C, L).

    Arguments and errors are those of `dropout`; an input of less or more dimensions than four gives
    a warning.
    Source: Tompson et al., "Efficient Object Localization Using Convolutional Networks", 2014.

    >>> F.dropout2d(jaxgrad.ones(1, 1, 2, 2)).sum().item() in (0.0, 8.0)
    True
    """
    return _drop_channels("dropout2d", 2, input, p, training, inplace)


@names_defaults
@api_boundary
def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Apply `dropout` to whole channels of (N, C, D, H, W) or (C, D, H, W).

    Arguments and errors are those of `dropout`.

    >>> F.dropout3d(jaxgrad.ones(1, 1, 1, 2, 2)).sum().item() in (0.0, 8.0)
    True
    """
    return _drop_channels("dropout3d", 3, input, p, training, inplace)


@names_defaults
@api_boundary
def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Apply dropout that keeps mean 0 and variance 1: dropped elements become `a = -1.7581`.

    The result is `scale * (x or a) + shift` with `scale = 1 / sqrt((1 - p) * (1 + p * a**2))` and
    `shift = -scale * a * p`; `a` is the limit of `selu` at -inf. Arguments and errors are those of
    `dropout`. Source: Klambauer et al., "Self-Normalizing Neural Networks", 2017.

    >>> F.alpha_dropout(jaxgrad.ones(2), training=False)
    tensor([1., 1.])
    """
    if _is_identity(input, p, training):
        return input
    if p == 1:
        return input.zero_() if inplace else input * 0
    drop = dropouts.alpha_dropout_ if inplace else dropouts.alpha_dropout
    return drop(input, p, training)


@names_defaults
@api_boundary
def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Apply `alpha_dropout` to whole channels, dimensions 0 and 1 of `input`.

    input: at least 2-D. The other arguments and errors are those of `alpha_dropout`; RuntimeError
    is raised for an input of fewer dimensions.

    >>> F.feature_alpha_dropout(jaxgrad.ones(1, 2, 3), training=False).shape
    torch.Size([1, 2, 3])
    """
    _check_probability(p)
    drop = dropouts.feature_alpha_dropout_ if inplace else dropouts.feature_alpha_dropout
    return drop(input, p, training)


# layers


class _Dropout(FunctionLayer):
    """A dropout layer, active while `training` is set."""

    shown = ("p", "inplace")

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        if not 0 <= self.p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {self.p}")

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input, training=self.training)


_OPTIONS = {"p": 0.5, "inplace": False}


class Dropout(_Dropout, function=dropout, **_OPTIONS):
    """Dropout of elements while training, the identity otherwise; see `functional.dropout`.

    Raises ValueError if `p` is outside [0, 1].

    >>> jaxgrad.nn.Dropout(0.5).eval()(jaxgrad.ones(2))
    tensor([1., 1.])
    """


class Dropout1d(_Dropout, function=dropout1d, **_OPTIONS):
    """Dropout of whole channels of (N, C, L) or (C, L); see `functional.dropout1d`.

    >>> jaxgrad.nn.Dropout1d()(jaxgrad.ones(1, 1, 2)).sum().item() in (0.0, 4.0)
    True
    """


class Dropout2d(_Dropout, function=dropout2d, **_OPTIONS):
    """Dropout of whole channels of (N, C, H, W) or (N, C, L); see `functional.dropout2d`.

    >>> jaxgrad.nn.Dropout2d()(jaxgrad.ones(1, 1, 2, 2)).sum().item() in (0.0, 8.0)
    True
    """


class Dropout3d(_Dropout, function=dropout3d, **_OPTIONS):
    """Dropout of whole channels of (N, C, D, H, W) or (C, D, H, W); see `functional.dropout3d`.

    >>> jaxgrad.nn.Dropout3d()(jaxgrad.ones(1, 1, 1, 2, 2)).sum().item() in (0.0, 8.0)
    True
    """


class AlphaDropout(_Dropout, function=alpha_dropout, **_OPTIONS):
    """Dropout that keeps mean and variance, for `SELU`; see `functional.alpha_dropout`. Like
    PyTorch's layer it leaves its input as it is, also with `inplace`.

    >>> jaxgrad.nn.AlphaDropout().eval()(jaxgrad.ones(2))
    tensor([1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_Dropout, function=feature_alpha_dropout, **_OPTIONS):
    """`AlphaDropout` of whole channels; see `functional.feature_alpha_dropout`. Like PyTorch's
    layer it leaves its input as it is, also with `inplace`.

    >>> jaxgrad.nn.FeatureAlphaDropout().eval()(jaxgrad.ones(1, 2))
    tensor([[1., 1.]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return feature_alpha_dropout(input, self.p, self.training)
