"""The gradients of convolutions, as torch.nn.grad.

>>> import jaxgrad as torch
>>> x, weight = torch.tensor([[[1.0, 2.0, 4.0]]]), torch.tensor([[[1.0, 2.0]]])
>>> torch.nn.grad.conv1d_weight(x, weight.shape, torch.tensor([[[1.0, 10.0]]]))
tensor([[[21., 42.]]])
>>> torch.nn.grad.conv1d_input(x.shape, weight, torch.tensor([[[1.0, 10.0]]]))
tensor([[[ 1., 12., 20.]]])
"""

from __future__ import annotations

from .. import ops
from ..core.tracebacks import shows_users_frames
from ..names.missing import missing_in
from ..tape.tensor import Tensor

__all__ = [f"conv{ndim}d_{of}" for ndim in (1, 2, 3) for of in ("input", "weight")]


def _input_gradient(ndim: int):
    @shows_users_frames
    def gradient(
        input_size, weight: Tensor, grad_output: Tensor, stride=1, padding=0, dilation=1, groups=1
    ) -> Tensor:
        input = grad_output.new_empty(1).expand(input_size)
        settings = ndim, stride, padding, dilation, groups
        return _convolution_backward(grad_output, input, weight, settings, (True, False, False))[0]

    return _named(gradient, ndim, "input")


def _weight_gradient(ndim: int):
    @shows_users_frames
    def gradient(
        input: Tensor, weight_size, grad_output: Tensor, stride=1, padding=0, dilation=1, groups=1
    ) -> Tensor:
        weight = grad_output.new_empty(1).expand(weight_size)
        settings = ndim, stride, padding, dilation, groups
        return _convolution_backward(grad_output, input, weight, settings, (False, True, False))[1]

    return _named(gradient, ndim, "weight")


def _convolution_backward(grad_output, input, weight, settings, mask):
    ndim, *steps, groups = settings
    steps = [(value,) * ndim if isinstance(value, int) else tuple(value) for value in steps]
    return ops.convolution_backward(
        grad_output, input, weight, None, *steps, False, (0,) * ndim, groups, mask
    )


def _named(gradient, ndim, of):
    gradient.__name__ = gradient.__qualname__ = f"conv{ndim}d_{of}"
    other = "weight, of" if of == "input" else "input, of"
    gradient.__doc__ = (
        f"Return the gradient of a {ndim}-D convolution with respect to its {of}.\n\n"
        f"{of}_size: the shape of the {of}; {other} the convolution; grad_output: the gradient of "
        "its result; stride, padding, dilation, groups: those of the convolution."
    )
    return gradient


conv1d_input, conv2d_input, conv3d_input = map(_input_gradient, (1, 2, 3))
conv1d_weight, conv2d_weight, conv3d_weight = map(_weight_gradient, (1, 2, 3))

__getattr__ = missing_in(__name__)
