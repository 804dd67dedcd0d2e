"""Normalization to mean 0 and variance 1 over features, batches or groups of channels.

There are functions, and layers with learned scale and shift and running statistics.
"""

import math
import warnings
from typing import Any

from .. import ops
from ..autograd.grad_mode import no_grad
from ..core import dtypes, world
from ..core.device import DeviceLike
from ..core.tracebacks import users_stacklevel
from ..frontend import factories
from ..functions import normalization
from ..tape.tensor import Tensor, is_concrete
from ..tape.torch_function import api_boundary, names_defaults
from . import functional, init
from .common_types import Extents
from .module import Module
from .padding import pad
from .parameter import new_parameter
from .synchronized_normalization import sync_batch_norm, takes_part


@names_defaults
@api_boundary
def layer_norm(
    input: Tensor,
    normalized_shape: Extents,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Return `(x - mean) / sqrt(variance + eps) * weight + bias` over the last dimensions.

    input: (*, *normalized_shape), floating point; the result has its shape and dtype. weight, bias:
    of `normalized_shape`, or None. The variance is the biased one.
    Raises RuntimeError for shapes that do not fit, NotImplementedError for an integer dtype.
    Source: Ba et al., "Layer Normalization", 2016.

    >>> F.layer_norm(jaxgrad.tensor([[1.0, 3.0], [0.0, 8.0]]), (2,))
    tensor([[-1.0000,  1.0000],
            [-1.0000,  1.0000]])
    """
    return ops.native_layer_norm(input, normalized_shape, weight, bias, eps)[0]


@names_defaults
@api_boundary
def rms_norm(
    input: Tensor, normalized_shape: Extents, weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """Return `x / sqrt(mean(x**2) + eps) * weight` over the last dimensions.

    input: (*, *normalized_shape), floating point; the result has its shape and dtype. weight: of
    `normalized_shape`, or None. eps: the machine epsilon of the dtype by default.
    Errors are those of `layer_norm`.
    Source: Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019.

    >>> F.rms_norm(jaxgrad.tensor([1.0, 7.0]), (2,))
    tensor([0.2000, 1.4000])
    """
    if input.ndim < len(normalized_shape):
        raise ValueError(
            f"Input tensor must have at least {len(normalized_shape)} dimensions, but got "
            f"{input.ndim}: rms_norm"
        )
    return ops._fused_rms_norm(input, normalized_shape, weight, eps)[0]


@names_defaults
@api_boundary
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Return `(x - mean) / sqrt(variance + eps) * weight + bias` for each channel.

    input: (N, C, ...), floating point; the result has its shape and dtype. weight, bias,
    running_mean, running_var: (C,) or None. training: use the mean and biased variance of the
    batch, and update `running = (1 - momentum) * running + momentum * batch` in place, with the
    unbiased variance, unless the batch is empty; otherwise use the running statistics. Raises
    ValueError for one element per channel in training, RuntimeError for other sizes or missing
    running statistics. Source: Ioffe and Szegedy, "Batch Normalization", 2015.

    >>> F.batch_norm(jaxgrad.tensor([[1.0], [3.0]]), None, None, training=True)
    tensor([[-1.0000],
            [ 1.0000]])
    """
    if training:
        _refuse_one_value(input, input.shape[0] if input.ndim else 1)
    if not training and (running_mean is None or running_var is None):
        missing = "running_mean" if running_mean is None else "running_var"
        raise RuntimeError(f"{missing} must be defined in evaluation mode")
    if (running_mean is None) != (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    if eps < 0 or (training and eps == 0):
        wanted = "positive during training" if training else "non-negative"
        raise ValueError(f"batch_norm eps must be {wanted}, but got {eps}")
    return normalization.batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps
    )


def _refuse_one_value(input, count):
    """Raise if a channel or group has one element, whose variance is 0: `count` times its size."""
    if count * math.prod(input.shape[2:]) == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {input.shape}: "
            "give it larger batches (a DataLoader drops the rest by drop_last=True), or call eval()"
        )


@names_defaults
@api_boundary
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Return `(x - mean) / sqrt(variance + eps) * weight + bias` for each sample and group of
    channels.

    input: (N, C, ...), floating point; the result has its shape and dtype. num_groups: divides C.
    weight, bias: (C,) or None. Raises RuntimeError for shapes that do not fit.
    Source: Wu and He, "Group Normalization", 2018.

    >>> F.group_norm(jaxgrad.tensor([[1.0, 3.0, 0.0, 8.0]]), 2)
    tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """
    if input.ndim >= 2:
        _refuse_one_value(input, input.shape[0] * input.shape[1] // num_groups)
    return normalization.group_norm(input, num_groups, weight, bias, eps)


@names_defaults
@api_boundary
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Return `(x - mean) / sqrt(variance + eps) * weight + bias` for each sample and channel.

    input: (N, C, ...), floating point. use_input_stats: False uses the running statistics, as
    `batch_norm` does. Running statistics are updated with the means over the batch. Raises
    ValueError for one element per channel. Source: Ulyanov et al., "Instance Normalization", 2016.

    >>> F.instance_norm(jaxgrad.tensor([[[1.0, 3.0]], [[0.0, 8.0]]]))
    tensor([[[-1.0000,  1.0000]],
    <BLANKLINE>
            [[-1.0000,  1.0000]]])
    """
    if use_input_stats and math.prod(input.shape[2:]) == 1:
        raise ValueError(
            f"Expected more than 1 spatial element when training, got input size {input.shape}"
        )
    return normalization.instance_norm(
        input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps
    )


@names_defaults
@api_boundary
def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """Return `x / (k + alpha * mean of x**2 over `size` neighbouring channels) ** beta`.

    input: (N, C, L) or (N, C, H, W, ...), floating point; the result has its shape and dtype.
    Raises ValueError for fewer than three dimensions.
    Source: Krizhevsky et al., "ImageNet Classification with Deep Convolutional Networks", 2012.

    >>> F.local_response_norm(jaxgrad.tensor([[[3.0], [4.0]]]), 2, alpha=2.0, beta=0.5, k=0.0)
    tensor([[[1.0000],
             [0.8000]]])
    """
    if input.ndim < 3:
        raise ValueError(
            f"Expected 3D or higher dimensionality input (got {input.ndim} dimensions)"
        )
    if not input.numel():
        return input
    squares, before, after = input * input, size // 2, (size - 1) // 2
    if input.ndim == 3:
        padded = pad(squares.unsqueeze(1), (0, 0, before, after))
        means = ops.avg_pool2d(padded, (size, 1), (1, 1)).squeeze(1)
    else:
        volume = squares.reshape(input.shape[0], 1, *input.shape[1:3], -1)
        padded = pad(volume, (0, 0, 0, 0, before, after))
        means = ops.avg_pool3d(padded, (size, 1, 1), (1, 1, 1)).reshape(input.shape)
    return input / (means * alpha + k) ** beta


@names_defaults
@api_boundary
def normalize(
    input: Tensor,
    p: float = 2.0,
    dim: int | tuple[int, ...] = 1,
    eps: float = 1e-12,
    out: Tensor | None = None,
) -> Tensor:
    """Return `input / max(p-norm along dim, eps)`.

    input: floating-point or complex dtype; the result has its shape. out: as for `div`.

    >>> F.normalize(jaxgrad.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    length = ops.clamp_min(ops.linalg_vector_norm(input, p, dim, True), eps)
    return ops.div(input, length) if out is None else ops.div(input, length, out=out)


# layers


def _shape(normalized_shape) -> tuple[int, ...]:
    if isinstance(normalized_shape, int):
        return (normalized_shape,)
    return tuple(normalized_shape)


class LayerNorm(Module):
    """Normalize over the last dimensions, of `normalized_shape`; see `functional.layer_norm`.

    weight (ones) and bias (zeros): of `normalized_shape`, or None without `elementwise_affine` or
    `bias`.

    >>> jaxgrad.nn.LayerNorm(2)(jaxgrad.tensor([1.0, 3.0])).detach()
    tensor([-1.0000,  1.0000])
    """

    weight: Tensor
    bias: Tensor

    def __init__(
        self,
        normalized_shape: Extents,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: dtypes.dtype | None = None,
    ):
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        _add_affine(self, self.normalized_shape, elementwise_affine, bias, device, dtype)

    def reset_parameters(self) -> None:
        """Set weight to 1 and bias to 0."""
        _reset(self)

    def forward(self, input: Tensor) -> Tensor:
        return functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Divide by the root mean square over the last dimensions; see `functional.rms_norm`.

    weight (ones): of `normalized_shape`, or None without `elementwise_affine`.

    >>> jaxgrad.nn.RMSNorm(2)(jaxgrad.tensor([1.0, 7.0])).detach()
    tensor([0.2000, 1.4000])
    """

    weight: Tensor

    def __init__(
        self,
        normalized_shape: Extents,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: DeviceLike | None = None,
        dtype: dtypes.dtype | None = None,
    ):
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.register_parameter("weight", None)
        if elementwise_affine:
            self.weight = new_parameter(self.normalized_shape, device, dtype, 1)

    def reset_parameters(self) -> None:
        """Set weight to 1."""
        _reset(self)

    def forward(self, input: Tensor) -> Tensor:
        return functional.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


class GroupNorm(Module):
    """Normalize groups of channels of (N, C, ...); see `functional.group_norm`.

    weight (ones) and bias (zeros): (num_channels,), or None without `affine` or `bias`.
    Raises ValueError unless `num_groups` divides `num_channels`.

    >>> jaxgrad.nn.GroupNorm(2, 4)(jaxgrad.ones(1, 4, 3)).shape
    torch.Size([1, 4, 3])
    """

    weight: Tensor
    bias: Tensor

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: DeviceLike | None = None,
        dtype: dtypes.dtype | None = None,
        *,
        bias: bool = True,
    ):
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(
                f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})"
            )
        self.num_groups, self.num_channels = num_groups, num_channels
        self.eps, self.affine = eps, affine
        _add_affine(self, (num_channels,), affine, bias, device, dtype)

    def reset_parameters(self) -> None:
        """Set weight to 1 and bias to 0."""
        _reset(self)

    def forward(self, input: Tensor) -> Tensor:
        return functional.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class LocalResponseNorm(Module):
    """Divide by a power of the mean square of neighbouring channels; see
    `functional.local_response_norm`.

    >>> jaxgrad.nn.LocalResponseNorm(2)(jaxgrad.ones(1, 3, 4)).shape
    torch.Size([1, 3, 4])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0):
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        return functional.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(LocalResponseNorm):
    """Compute `x / (k + alpha / size * sum of x**2 over neighbouring channels) ** beta`.

    size: the neighbours are the `(size - 1) // 2` channels on both sides. input: (N, C, H, W),
    floating point; the result has its shape and dtype. Raises ValueError for other numbers of
    dimensions.

    >>> layer = jaxgrad.nn.CrossMapLRN2d(3, alpha=3.0, beta=1.0)
    >>> layer(jaxgrad.ones(1, 3, 1, 1)).flatten()
    tensor([0.3333, 0.2500, 0.3333])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1):
        super().__init__(size, alpha, beta, k)

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.ndim}D instead.")
        channels = 2 * ((self.size - 1) // 2) + 1
        alpha = self.alpha * channels / self.size
        return local_response_norm(input, channels, alpha, self.beta, self.k)


def _add_affine(module, shape, affine, bias, device, dtype):
    """Register weight and bias of `shape`, or None for each."""
    module.register_parameter("weight", None)
    module.register_parameter("bias", None)
    if affine:
        module.weight = new_parameter(shape, device, dtype, 1)
        if bias:
            module.bias = new_parameter(shape, device, dtype, 0)


def _reset(module):
    """Set weight to 1 and bias to 0."""
    for name, number in (("weight", 1), ("bias", 0)):
        tensor = getattr(module, name, None)
        if tensor is not None:
            init.constant_(tensor, number)


class _RunningNorm(Module):
    """Normalization of channels with running statistics."""

    num_features: int
    affine: bool
    track_running_stats: bool
    weight: Tensor
    bias: Tensor
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    _version = 2
    ranks = ()  # the numbers of dimensions of an input
    default_tracking = default_affine = True

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool | None = None,
        track_running_stats: bool | None = None,
        device: DeviceLike | None = None,
        dtype: dtypes.dtype | None = None,
        *,
        bias: bool = True,
    ):
        super().__init__()
        affine = self.default_affine if affine is None else affine
        tracks = self.default_tracking if track_running_stats is None else track_running_stats
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, tracks
        _add_affine(self, (num_features,), affine, bias, device, dtype)
        options = {"device": device, "dtype": dtype or dtypes.get_default_dtype()}
        buffers = {"running_mean": None, "running_var": None, "num_batches_tracked": None}
        if tracks:
            buffers["running_mean"] = factories.zeros(num_features, **options)
            buffers["running_var"] = factories.ones(num_features, **options)
            buffers["num_batches_tracked"] = factories.zeros((), dtype=dtypes.int64, device=device)
        for name, tensor in buffers.items():
            self.register_buffer(name, tensor)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *arguments):
        """Load a state; files of PyTorch before 0.4.1, of version 1, have no count of batches."""
        if self.track_running_stats and (local_metadata.get("version") or 1) < 2:
            count = factories.zeros((), dtype=dtypes.int64)
            is_known = self.num_batches_tracked is not None and not self.num_batches_tracked.is_meta
            state_dict.setdefault(
                f"{prefix}num_batches_tracked", self.num_batches_tracked if is_known else count
            )
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *arguments)

    def reset_running_stats(self) -> None:
        """Set the running mean to 0, the running variance to 1 and the count of batches to 0."""
        if self.track_running_stats:
            init.zeros_(self.running_mean)
            init.ones_(self.running_var)
            init.zeros_(self.num_batches_tracked)

    def reset_parameters(self) -> None:
        """Reset weight, bias and running statistics."""
        self.reset_running_stats()
        _reset(self)

    def _check_input_dim(self, input):
        if input.ndim not in self.ranks:
            expected = " or ".join(f"{rank}D" for rank in self.ranks)
            raise ValueError(f"expected {expected} input (got {input.ndim}D input)")

    def _momentum(self):
        """Return the momentum of this batch; without one, running statistics average over all
        batches.
        """
        counts = self.training and self.track_running_stats
        if not counts or self.num_batches_tracked is None:
            return self.momentum or 0.0
        with no_grad():
            self.num_batches_tracked.add_(1)
            if self.momentum is not None:
                return self.momentum
            count = self.num_batches_tracked
            if is_concrete(count):
                return 1 / count.item()
            return count.to(self.running_mean.dtype).reciprocal()

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_RunningNorm):
    def _stop_tracking(self):
        """Drop the running statistics; see `func.replace_all_batch_norm_modules_`."""
        self.running_mean = self.running_var = self.num_batches_tracked = None
        self.track_running_stats = False

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        momentum = self._momentum()
        uses_batch = self.training or self.running_mean is None
        uses_running = not self.training or self.track_running_stats
        return functional.batch_norm(
            input,
            self.running_mean if uses_running else None,
            self.running_var if uses_running else None,
            self.weight,
            self.bias,
            uses_batch,
            momentum,
            self.eps,
        )


class BatchNorm1d(_BatchNorm):
    """Batch normalization of (N, C) or (N, C, L); see `functional.batch_norm`.

    weight (ones) and bias (zeros): (num_features,), or None without `affine`. In training the batch
    statistics apply, and the buffers running_mean and running_var follow them by `momentum`, or
    with None average over all batches; after `eval()` the running statistics apply. Raises
    ValueError for an input of another rank.

    >>> norm = jaxgrad.nn.BatchNorm1d(1)
    >>> norm(jaxgrad.tensor([[1.0], [3.0]])).detach(), norm.running_mean
    (tensor([[-1.0000],
            [ 1.0000]]), tensor([0.2000]))
    """

    ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalization of (N, C, H, W); arguments and buffers are those of `BatchNorm1d`.

    >>> jaxgrad.nn.BatchNorm2d(3)(jaxgrad.ones(2, 3, 2, 2)).shape
    torch.Size([2, 3, 2, 2])
    """

    ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch normalization of (N, C, D, H, W); arguments and buffers are those of `BatchNorm1d`.

    >>> jaxgrad.nn.BatchNorm3d(3)(jaxgrad.ones(2, 3, 1, 2, 2)).shape
    torch.Size([2, 3, 1, 2, 2])
    """

    ranks = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch normalization of (N, C, ...) over the batches of all processes; arguments and buffers
    are those of `BatchNorm1d`.

    In training the statistics are those of the batches of all processes of `process_group`, by
    default of all; so is the gradient. A tensor that is sharded over devices is the whole batch, so
    there every batch normalization is synchronized. Raises ValueError for an input of fewer than
    two dimensions.

    >>> jaxgrad.nn.SyncBatchNorm(3)(jaxgrad.ones(2, 3)).shape
    torch.Size([2, 3])
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: DeviceLike | None = None,
        dtype: dtypes.dtype | None = None,
        *,
        bias: bool = True,
    ):
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )
        self.process_group = process_group

    def _check_input_dim(self, input):
        if input.ndim < 2:
            raise ValueError(f"expected at least 2D input (got {input.ndim}D input)")

    def forward(self, input: Tensor) -> Tensor:
        group = world.group if self.process_group is None else self.process_group
        uses_batch = self.training or self.running_mean is None
        if not (uses_batch and takes_part(input, group)):
            return super().forward(input)
        self._check_input_dim(input)
        momentum = self._momentum()
        tracked = self.training and self.track_running_stats
        return sync_batch_norm(
            input,
            self.running_mean if tracked else None,
            self.running_var if tracked else None,
            self.weight,
            self.bias,
            momentum,
            self.eps,
            group,
        )

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Return `module` with each batch normalization in it replaced by a synchronized one with
        its parameters and buffers.

        >>> net = jaxgrad.nn.Sequential(jaxgrad.nn.BatchNorm1d(3))
        >>> type(jaxgrad.nn.SyncBatchNorm.convert_sync_batchnorm(net)[0]).__name__
        'SyncBatchNorm'
        """
        result = module
        if isinstance(module, _BatchNorm):
            result = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
                setattr(result, name, getattr(module, name))
            result.training = module.training
        for name, child in module.named_children():
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result


class _InstanceNorm(_RunningNorm):
    default_tracking = default_affine = False

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        self._check_features(input)
        batch = input if input.ndim == self.ranks[1] else input.unsqueeze(0)
        result = functional.instance_norm(
            batch,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum or 0.0,
            self.eps,
        )
        return result if batch is input else result.squeeze(0)

    def _check_features(self, input):
        """Raise or warn where the channels are not those of the constructor."""
        dim = input.ndim - self.ranks[0]
        size, expected = input.shape[dim], self.num_features
        if size == expected:
            return
        if self.affine:
            raise ValueError(
                f"expected input's size at dim={dim} to match num_features ({expected}), but got: "
                f"{size}."
            )
        warnings.warn(
            f"input's size at dim={dim} does not match num_features. You can silence this warning "
            "by not passing in num_features, which is not used because affine=False",
            stacklevel=users_stacklevel(),
        )


class InstanceNorm1d(_InstanceNorm):
    """Instance normalization of (N, C, L) or (C, L); see `functional.instance_norm`.

    Arguments and buffers are those of `BatchNorm1d`; by default without weight, bias and running
    statistics.

    >>> jaxgrad.nn.InstanceNorm1d(1)(jaxgrad.tensor([[[1.0, 3.0]]]))
    tensor([[[-1.0000,  1.0000]]])
    """

    ranks = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Instance normalization of (N, C, H, W) or (C, H, W); arguments are those of `InstanceNorm1d`.

    >>> jaxgrad.nn.InstanceNorm2d(3)(jaxgrad.ones(1, 3, 2, 2)).shape
    torch.Size([1, 3, 2, 2])
    """

    ranks = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Instance normalization of (N, C, D, H, W) or (C, D, H, W); arguments are those of
    `InstanceNorm1d`.

    >>> jaxgrad.nn.InstanceNorm3d(3)(jaxgrad.ones(1, 3, 1, 2, 2)).shape
    torch.Size([1, 3, 1, 2, 2])
    """

    ranks = (4, 5)
