"""Lazy modules: layers that take a size from the first input."""

import itertools
from typing import Any

from ..autograd.grad_mode import no_grad
from ..core import dtypes
from ..core.device import DeviceLike
from ..frontend import factories
from ..tape import mode
from ..tape.hooks import RemovableHandle
from ..tape.tensor import Tensor
from . import convolution, linear, normalization
from .common_types import Extents
from .module import Module
from .parameter import UninitializedBuffer, UninitializedParameter, is_lazy
from .state import _WrappedHook

# the attributes of PyTorch's lazy modules with the handles of their hooks
HANDLES = "_initialize_hook", "_load_hook"


class LazyModuleMixin:
    """The base of lazy modules, before the class of the layer: `class LazyLinear(LazyModuleMixin,
    Linear)`.

    Such a module has parameters without a shape. The first call calls `initialize_parameters` with
    the input, which gives them one, and then the module's class becomes `cls_to_become`. A state
    dict with values gives shapes too. Raises RuntimeError if parameters stay without a shape, and
    for a first call in a function that is being compiled.
    """

    cls_to_become: type[Module] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if "_is_initialized" not in self.__dict__:
            self._infer_parameters(self, args, kwargs)
            return self(*args, **kwargs)  # of its new class
        return super().__call__(*args, **kwargs)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Give the parameters their shapes, which follow from the input; a subclass defines it."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}"
        )

    def has_uninitialized_params(self) -> bool:
        """Return whether a parameter or buffer has no shape yet.

        >>> jaxgrad.nn.LazyLinear(2).has_uninitialized_params()
        True
        """
        return any(map(is_lazy, (*self._parameters.values(), *self._buffers.values())))

    def _infer_parameters(self, module, args, kwargs=None):
        if mode.scope.get() is not None and self.has_uninitialized_params():
            error = RuntimeError(
                f"{type(self).__name__}: call the module once before it is called in a function "
                "that is being compiled or transformed; its first call makes its parameters"
            )
            error.is_passing = True
            raise error
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        if module.cls_to_become is None:
            module._is_initialized = True
        else:
            module.__class__ = module.cls_to_become
        module._changes.count()

    def __getstate__(self):
        """The state with the hooks by which PyTorch's lazy modules get their parameters."""
        state = super().__getstate__()
        if "_is_initialized" in self.__dict__:
            return state
        infer = RemovableHandle(state["_forward_pre_hooks"])
        load = RemovableHandle(state["_load_state_dict_pre_hooks"])
        state["_forward_pre_hooks"][infer.id] = self._infer_parameters
        state["_forward_pre_hooks_with_kwargs"][infer.id] = True
        state["_load_state_dict_pre_hooks"][load.id] = _WrappedHook(self._lazy_load_hook)
        return state | {"_initialize_hook": infer, "_load_hook": load}

    def __setstate__(self, state):
        state = {name: state[name] for name in state if name not in HANDLES}
        for name in ("_forward_pre_hooks", "_load_state_dict_pre_hooks"):
            hooks = state.get(name, {}).items()
            state[name] = {number: hook for number, hook in hooks if not _is_lazy_hook(hook)}
        super().__setstate__(state)

    def _lazy_load_hook(self, *arguments):
        """What PyTorch calls before it loads a state dict."""

    def _load_from_state_dict(self, state_dict, prefix, *arguments):
        members = itertools.chain(self._parameters.items(), self._buffers.items())
        for name, tensor in members:
            value = state_dict.get(prefix + name)
            if is_lazy(tensor) and value is not None and not is_lazy(value):
                tensor.materialize(value.shape)
        super()._load_from_state_dict(state_dict, prefix, *arguments)


def _is_lazy_hook(hook) -> bool:
    """Whether `__getstate__` has added the hook, for this module or for the one it is a copy of."""
    function = getattr(getattr(hook, "hook", hook), "__func__", None)
    return function in (LazyModuleMixin._infer_parameters, LazyModuleMixin._lazy_load_hook)


class LazyLinear(LazyModuleMixin, linear.Linear):
    """A `Linear` that takes `in_features` from the first input.

    >>> layer = jaxgrad.nn.LazyLinear(2)
    >>> layer.weight
    <UninitializedParameter>
    >>> layer(jaxgrad.ones(5, 3)).shape, layer
    (torch.Size([5, 2]), Linear(in_features=3, out_features=2, bias=True))
    """

    in_features: int

    cls_to_become = linear.Linear

    def __init__(
        self,
        out_features: int,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: dtypes.dtype | None = None,
    ):
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw weight and bias again, if they have a shape."""
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Take `in_features` from the input and draw weight and bias."""
        if self.has_uninitialized_params():
            with no_grad():
                self.in_features = input.shape[-1]
                self.weight.materialize((self.out_features, self.in_features))
                if self.bias is not None:
                    self.bias.materialize((self.out_features,))
                self.reset_parameters()
        if self.in_features == 0:  # the parameters were loaded
            if input.shape[-1] != self.weight.shape[-1]:
                raise AssertionError(
                    f"The in_features inferred from input: {input.shape[-1]} is not equal to "
                    f"in_features from self.weight: {self.weight.shape[-1]}"
                )
            self.in_features = input.shape[-1]


class _LazyConvolution(LazyModuleMixin):
    """A convolution that takes `in_channels` from the first input."""

    is_transposed = False

    def _make_lazy(self, out_channels, bias, device, dtype):
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw weight and bias again, if they have a shape."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Take `in_channels` from the input and draw weight and bias."""
        if not self.has_uninitialized_params():
            return
        self.in_channels = self._channels_of(input)
        if self.in_channels % self.groups:
            raise ValueError("in_channels must be divisible by groups")
        channels = self.out_channels, self.in_channels // self.groups
        if self.is_transposed:
            channels = self.in_channels, self.out_channels // self.groups
        self.weight.materialize((*channels, *self.kernel_size))
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()

    def _channels_of(self, input):
        count = len(self.kernel_size) + 1
        if input.ndim not in (count, count + 1):
            raise RuntimeError(
                f"Expected {count}D (unbatched) or {count + 1}D (batched) input to "
                f"{type(self).__name__}, but got input of size: {input.shape}"
            )
        return input.shape[-count]


class _Plain(_LazyConvolution):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Extents,
        stride: Extents = 1,
        padding: Extents | str = 0,
        dilation: Extents = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: DeviceLike | None = None,
        dtype: dtypes.dtype | None = None,
    ):
        # without channels and bias, which are made later
        super().__init__(
            0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype
        )
        self._make_lazy(out_channels, bias, device, dtype)


class _Transposed(_LazyConvolution):
    is_transposed = True

    def __init__(
        self,
        out_channels: int,
        kernel_size: Extents,
        stride: Extents = 1,
        padding: Extents = 0,
        output_padding: Extents = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Extents = 1,
        padding_mode: str = "zeros",
        device: DeviceLike | None = None,
        dtype: dtypes.dtype | None = None,
    ):
        super().__init__(
            0,
            0,
            kernel_size,
            stride,
            padding,
            output_padding,
            groups,
            False,
            dilation,
            padding_mode,
            device,
            dtype,
        )
        self._make_lazy(out_channels, bias, device, dtype)


class LazyConv1d(_Plain, convolution.Conv1d):
    """A `Conv1d` that takes `in_channels` from the first input.

    >>> jaxgrad.nn.LazyConv1d(4, 3)(jaxgrad.ones(1, 2, 5)).shape
    torch.Size([1, 4, 3])
    """

    cls_to_become = convolution.Conv1d


class LazyConv2d(_Plain, convolution.Conv2d):
    """A `Conv2d` that takes `in_channels` from the first input.

    >>> jaxgrad.nn.LazyConv2d(4, 3)(jaxgrad.ones(1, 2, 5, 5)).shape
    torch.Size([1, 4, 3, 3])
    """

    cls_to_become = convolution.Conv2d


class LazyConv3d(_Plain, convolution.Conv3d):
    """A `Conv3d` that takes `in_channels` from the first input.

    >>> jaxgrad.nn.LazyConv3d(4, 2)(jaxgrad.ones(1, 2, 3, 3, 3)).shape
    torch.Size([1, 4, 2, 2, 2])
    """

    cls_to_become = convolution.Conv3d


class LazyConvTranspose1d(_Transposed, convolution.ConvTranspose1d):
    """A `ConvTranspose1d` that takes `in_channels` from the first input.

    >>> jaxgrad.nn.LazyConvTranspose1d(4, 2)(jaxgrad.ones(1, 2, 3)).shape
    torch.Size([1, 4, 4])
    """

    cls_to_become = convolution.ConvTranspose1d


class LazyConvTranspose2d(_Transposed, convolution.ConvTranspose2d):
    """A `ConvTranspose2d` that takes `in_channels` from the first input.

    >>> jaxgrad.nn.LazyConvTranspose2d(4, 2)(jaxgrad.ones(1, 2, 3, 3)).shape
    torch.Size([1, 4, 4, 4])
    """

    cls_to_become = convolution.ConvTranspose2d


class LazyConvTranspose3d(_Transposed, convolution.ConvTranspose3d):
    """A `ConvTranspose3d` that takes `in_channels` from the first input.

    >>> jaxgrad.nn.LazyConvTranspose3d(4, 2)(jaxgrad.ones(1, 2, 2, 2, 2)).shape
    torch.Size([1, 4, 3, 3, 3])
    """

    cls_to_become = convolution.ConvTranspose3d


class _LazyNorm(LazyModuleMixin):
    """A normalization that takes `num_features` from the first input."""

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: DeviceLike | None = None,
        dtype: dtypes.dtype | None = None,
        *,
        bias: bool = True,
    ):
        # without parameters and buffers, which are made later
        super().__init__(0, eps, momentum, False, False, device, dtype, bias=False)
        self.affine, self.track_running_stats = affine, track_running_stats
        options = {"device": device, "dtype": dtype}
        if affine:
            self.weight = UninitializedParameter(**options)
            if bias:
                self.bias = UninitializedParameter(**options)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**options)
            self.running_var = UninitializedBuffer(**options)
            self.num_batches_tracked = factories.zeros((), dtype=dtypes.int64, device=device)

    def reset_parameters(self) -> None:
        """Reset weight, bias and running statistics, if they have a shape."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Take `num_features` from the input and reset parameters and running statistics."""
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[1]
        for tensor in (self.weight, self.bias, self.running_mean, self.running_var):
            if is_lazy(tensor):
                tensor.materialize((self.num_features,))
        self.reset_parameters()


class LazyBatchNorm1d(_LazyNorm, normalization.BatchNorm1d):
    """A `BatchNorm1d` that takes `num_features` from the first input.

    >>> jaxgrad.nn.LazyBatchNorm1d()(jaxgrad.ones(2, 3)).shape
    torch.Size([2, 3])
    """

    cls_to_become = normalization.BatchNorm1d


class LazyBatchNorm2d(_LazyNorm, normalization.BatchNorm2d):
    """A `BatchNorm2d` that takes `num_features` from the first input.

    >>> jaxgrad.nn.LazyBatchNorm2d()(jaxgrad.ones(2, 3, 2, 2)).shape
    torch.Size([2, 3, 2, 2])
    """

    cls_to_become = normalization.BatchNorm2d


class LazyBatchNorm3d(_LazyNorm, normalization.BatchNorm3d):
    """A `BatchNorm3d` that takes `num_features` from the first input.

    >>> jaxgrad.nn.LazyBatchNorm3d()(jaxgrad.ones(2, 3, 1, 2, 2)).shape
    torch.Size([2, 3, 1, 2, 2])
    """

    cls_to_become = normalization.BatchNorm3d


class LazyInstanceNorm1d(_LazyNorm, normalization.InstanceNorm1d):
    """An `InstanceNorm1d` that takes `num_features` from the first input; by default with weight,
    bias and running statistics.

    >>> jaxgrad.nn.LazyInstanceNorm1d()(jaxgrad.ones(2, 3, 4)).shape
    torch.Size([2, 3, 4])
    """

    cls_to_become = normalization.InstanceNorm1d


class LazyInstanceNorm2d(_LazyNorm, normalization.InstanceNorm2d):
    """An `InstanceNorm2d` that takes `num_features` from the first input; see `LazyInstanceNorm1d`.

    >>> jaxgrad.nn.LazyInstanceNorm2d()(jaxgrad.ones(2, 3, 2, 2)).shape
    torch.Size([2, 3, 2, 2])
    """

    cls_to_become = normalization.InstanceNorm2d


class LazyInstanceNorm3d(_LazyNorm, normalization.InstanceNorm3d):
    """An `InstanceNorm3d` that takes `num_features` from the first input; see `LazyInstanceNorm1d`.

    >>> jaxgrad.nn.LazyInstanceNorm3d()(jaxgrad.ones(2, 3, 1, 2, 2)).shape
    torch.Size([2, 3, 1, 2, 2])
    """

    cls_to_become = normalization.InstanceNorm3d
