"""The names of cuDNN's, MKL-DNN's and other libraries' convolutions in early PyTorch: signatures
over `convolution` and `convolution_backward`. They choose no library and work on every device.

Arguments are those of `convolution`, in the libraries' order; `benchmark`, `deterministic` and work
buffers are ignored, and no work buffers are returned. The gradients are a tuple, with None where
`output_mask` has False.
"""

from __future__ import annotations

from .. import ops


def _convolved(self, weight, bias, numbers, groups=1, output_padding=None):
    """The convolution for `numbers`, stride, padding and dilation; transposed with an
    `output_padding`.
    """
    extra = (0,) if output_padding is None else output_padding
    is_transposed = output_padding is not None
    return ops.convolution(self, weight, bias, *numbers, is_transposed, extra, groups)


def _gradients(grad, self, weight, numbers, mask, groups=1, output_padding=None):
    """The gradients of `_convolved`."""
    extra = (0,) if output_padding is None else output_padding
    is_transposed = output_padding is not None
    gradients = ops.convolution_backward(
        grad, self, weight, None, *numbers, is_transposed, extra, groups, (*mask, False)[:3]
    )
    return gradients[: len(mask)]


def _check_kernel(weight, kernel_size):
    extents = tuple(weight.shape[2:])
    if tuple(kernel_size) != extents:
        raise RuntimeError(
            f"kernel_size should be the size of the kernel, {extents} in a weight of size "
            f"{list(weight.shape)}, but got {tuple(kernel_size)}"
        )


# ---- cuDNN, MIOpen, MKL-DNN


def cudnn_convolution(
    self, weight, bias, padding, stride, dilation, groups, benchmark=False, deterministic=False
):
    """Return `convolution`: padding stands before stride.

    >>> x, weight = jaxgrad.ones(1, 1, 3, 3), jaxgrad.ones(1, 1, 2, 2)
    >>> jaxgrad.ops.cudnn_convolution(x, weight, None, [0, 0], [1, 1], [1, 1], 1).shape
    torch.Size([1, 1, 2, 2])
    """
    return _convolved(self, weight, bias, (stride, padding, dilation), groups)


def cudnn_convolution_backward(
    self,
    grad_output,
    weight,
    padding,
    stride,
    dilation,
    groups,
    benchmark=False,
    deterministic=False,
    output_mask=(True, True, True),
):
    """Return the gradients of the input, the weight and the bias of `cudnn_convolution`.

    >>> x, weight = jaxgrad.ones(1, 1, 3, 3), jaxgrad.ones(1, 1, 2, 2)
    >>> grad = jaxgrad.ones(1, 1, 2, 2)
    >>> x_grad, weight_grad, bias_grad = jaxgrad.ops.cudnn_convolution_backward(
    ...     x, grad, weight, [0, 0], [1, 1], [1, 1], 1
    ... )
    >>> weight_grad.shape, bias_grad
    (torch.Size([1, 1, 2, 2]), tensor([4.]))
    """
    numbers = stride, padding, dilation
    return _gradients(grad_output, self, weight, numbers, output_mask, groups)


def cudnn_convolution_transpose(
    self,
    weight,
    bias,
    padding,
    output_padding,
    stride,
    dilation,
    groups,
    benchmark=False,
    deterministic=False,
):
    """Return the transposed `convolution`: padding stands before stride.

    >>> x, weight = jaxgrad.ones(1, 1, 3, 3), jaxgrad.ones(1, 1, 2, 2)
    >>> y = jaxgrad.ops.cudnn_convolution_transpose(
    ...     x, weight, None, [0, 0], [0, 0], [1, 1], [1, 1], 1
    ... )
    >>> y.shape
    torch.Size([1, 1, 4, 4])
    """
    return _convolved(self, weight, bias, (stride, padding, dilation), groups, output_padding)


def cudnn_convolution_transpose_backward(
    self,
    grad_output,
    weight,
    padding,
    output_padding,
    stride,
    dilation,
    groups,
    benchmark=False,
    deterministic=False,
    output_mask=(True, True, True),
):
    """Return the gradients of the three inputs of `cudnn_convolution_transpose`.

    >>> x, weight = jaxgrad.ones(1, 1, 3, 3), jaxgrad.ones(1, 1, 2, 2)
    >>> grad = jaxgrad.ones(1, 1, 4, 4)
    >>> x_grad, weight_grad, bias_grad = jaxgrad.ops.cudnn_convolution_transpose_backward(
    ...     x, grad, weight, [0, 0], [0, 0], [1, 1], [1, 1], 1
    ... )
    >>> weight_grad.shape, bias_grad
    (torch.Size([1, 1, 2, 2]), tensor([16.]))
    """
    numbers = stride, padding, dilation
    return _gradients(grad_output, self, weight, numbers, output_mask, groups, output_padding)


miopen_convolution = cudnn_convolution
miopen_convolution_backward = cudnn_convolution_backward
miopen_convolution_transpose = cudnn_convolution_transpose
miopen_convolution_transpose_backward = cudnn_convolution_transpose_backward


def mkldnn_convolution(self, weight, bias, padding, stride, dilation, groups):
    """Return `convolution`: padding stands before stride.

    >>> x, weight = jaxgrad.ones(1, 1, 3, 3), jaxgrad.ones(1, 1, 2, 2)
    >>> jaxgrad.ops.mkldnn_convolution(x, weight, None, [0, 0], [1, 1], [1, 1], 1).shape
    torch.Size([1, 1, 2, 2])
    """
    return _convolved(self, weight, bias, (stride, padding, dilation), groups)


def mkldnn_convolution_backward(
    self, grad_output, weight, padding, stride, dilation, groups, output_mask=(True, True, True)
):
    """Return the gradients of the input, the weight and the bias of `mkldnn_convolution`.

    >>> x, weight = jaxgrad.ones(1, 1, 3, 3), jaxgrad.ones(1, 1, 2, 2)
    >>> grad = jaxgrad.ones(1, 1, 2, 2)
    >>> x_grad, weight_grad, bias_grad = jaxgrad.ops.mkldnn_convolution_backward(
    ...     x, grad, weight, [0, 0], [1, 1], [1, 1], 1
    ... )
    >>> weight_grad.shape, bias_grad
    (torch.Size([1, 1, 2, 2]), tensor([4.]))
    """
    numbers = stride, padding, dilation
    return _gradients(grad_output, self, weight, numbers, output_mask, groups)


# ---- THNN


def thnn_conv2d_forward(self, weight, kernel_size, bias, stride, padding):
    """Return `convolution` without dilation and groups.

    >>> x, weight = jaxgrad.ones(1, 1, 3, 3), jaxgrad.ones(1, 1, 2, 2)
    >>> jaxgrad.ops.thnn_conv2d_forward(x, weight, [2, 2], None, [1, 1], [0, 0]).shape
    torch.Size([1, 1, 2, 2])
    """
    _check_kernel(weight, kernel_size)
    return _convolved(self, weight, bias, (stride, padding, (1,)))


def thnn_conv2d_backward(
    grad_output,
    self,
    weight,
    kernel_size,
    stride,
    padding,
    finput=None,
    fgrad_input=None,
    output_mask=(True, True, True),
):
    """Return the gradients of the input, the weight and the bias of `thnn_conv2d_forward`.

    >>> x, weight = jaxgrad.ones(1, 1, 3, 3), jaxgrad.ones(1, 1, 2, 2)
    >>> grad = jaxgrad.ones(1, 1, 2, 2)
    >>> x_grad, weight_grad, bias_grad = jaxgrad.ops.thnn_conv2d_backward(
    ...     grad, x, weight, [2, 2], [1, 1], [0, 0]
    ... )
    >>> weight_grad.shape, bias_grad
    (torch.Size([1, 1, 2, 2]), tensor([4.]))
    """
    _check_kernel(weight, kernel_size)
    return _gradients(grad_output, self, weight, (stride, padding, (1,)), output_mask)


thnn_conv3d_forward = thnn_conv2d_forward
thnn_conv3d_backward = thnn_conv2d_backward


def thnn_conv_dilated2d_forward(self, weight, kernel_size, bias, stride, padding, dilation):
    """Return `convolution` without groups.

    >>> x, weight = jaxgrad.ones(1, 1, 3, 3), jaxgrad.ones(1, 1, 2, 2)
    >>> y = jaxgrad.ops.thnn_conv_dilated2d_forward(x, weight, [2, 2], None, [1, 1], [0, 0], [2, 2])
    >>> y.shape
    torch.Size([1, 1, 1, 1])
    """
    _check_kernel(weight, kernel_size)
    return _convolved(self, weight, bias, (stride, padding, dilation))


def thnn_conv_dilated2d_backward(
    grad_output,
    self,
    weight,
    kernel_size,
    stride,
    padding,
    dilation,
    columns=None,
    ones=None,
    output_mask=(True, True, True),
):
    """Return the gradients of the three inputs of `thnn_conv_dilated2d_forward`.

    >>> x, weight = jaxgrad.ones(1, 1, 3, 3), jaxgrad.ones(1, 1, 2, 2)
    >>> grad = jaxgrad.ones(1, 1, 1, 1)
    >>> x_grad, weight_grad, bias_grad = jaxgrad.ops.thnn_conv_dilated2d_backward(
    ...     grad, x, weight, [2, 2], [1, 1], [0, 0], [2, 2]
    ... )
    >>> weight_grad.shape, bias_grad
    (torch.Size([1, 1, 2, 2]), tensor([1.]))
    """
    _check_kernel(weight, kernel_size)
    return _gradients(grad_output, self, weight, (stride, padding, dilation), output_mask)


thnn_conv_dilated3d_forward = thnn_conv_dilated2d_forward
thnn_conv_dilated3d_backward = thnn_conv_dilated2d_backward


def thnn_conv_depthwise2d_forward(self, weight, kernel_size, bias, stride, padding, dilation):
    """Return `convolution` with a group for each channel of the input.

    >>> x, weight = jaxgrad.ones(1, 1, 3, 3), jaxgrad.ones(1, 1, 2, 2)
    >>> y = jaxgrad.ops.thnn_conv_depthwise2d_forward(
    ...     x, weight, [2, 2], None, [1, 1], [0, 0], [1, 1]
    ... )
    >>> y.shape
    torch.Size([1, 1, 2, 2])
    """
    _check_kernel(weight, kernel_size)
    return _convolved(self, weight, bias, (stride, padding, dilation), self.shape[1])


def thnn_conv_depthwise2d_backward(
    grad_output, self, weight, kernel_size, stride, padding, dilation, output_mask=(True, True)
):
    """Return the gradients of the input and the weight of `thnn_conv_depthwise2d_forward`.

    >>> x, weight = jaxgrad.ones(1, 1, 3, 3), jaxgrad.ones(1, 1, 2, 2)
    >>> grad = jaxgrad.ones(1, 1, 2, 2)
    >>> x_grad, weight_grad = jaxgrad.ops.thnn_conv_depthwise2d_backward(
    ...     grad, x, weight, [2, 2], [1, 1], [0, 0], [1, 1]
    ... )
    >>> weight_grad.shape
    torch.Size([1, 1, 2, 2])
    """
    _check_kernel(weight, kernel_size)
    numbers, groups = (stride, padding, dilation), self.shape[1]
    return _gradients(grad_output, self, weight, numbers, output_mask, groups)


def thnn_conv_transpose2d_forward(
    self, weight, kernel_size, bias, stride, padding, output_padding, dilation
):
    """Return the transposed `convolution` without groups.

    >>> x, weight = jaxgrad.ones(1, 1, 3, 3), jaxgrad.ones(1, 1, 2, 2)
    >>> y = jaxgrad.ops.thnn_conv_transpose2d_forward(
    ...     x, weight, [2, 2], None, [1, 1], [0, 0], [0, 0], [1, 1]
    ... )
    >>> y.shape
    torch.Size([1, 1, 4, 4])
    """
    _check_kernel(weight, kernel_size)
    return _convolved(self, weight, bias, (stride, padding, dilation), 1, output_padding)


def thnn_conv_transpose2d_backward(
    grad_output,
    self,
    weight,
    kernel_size,
    stride,
    padding,
    output_padding,
    dilation,
    columns=None,
    ones=None,
    output_mask=(True, True, True),
):
    """Return the gradients of the three inputs of `thnn_conv_transpose2d_forward`.

    >>> x, weight = jaxgrad.ones(1, 1, 3, 3), jaxgrad.ones(1, 1, 2, 2)
    >>> grad = jaxgrad.ones(1, 1, 4, 4)
    >>> x_grad, weight_grad, bias_grad = jaxgrad.ops.thnn_conv_transpose2d_backward(
    ...     grad, x, weight, [2, 2], [1, 1], [0, 0], [0, 0], [1, 1]
    ... )
    >>> weight_grad.shape, bias_grad
    (torch.Size([1, 1, 2, 2]), tensor([16.]))
    """
    _check_kernel(weight, kernel_size)
    numbers = stride, padding, dilation
    return _gradients(grad_output, self, weight, numbers, output_mask, 1, output_padding)


thnn_conv_transpose3d_forward = thnn_conv_transpose2d_forward
thnn_conv_transpose3d_backward = thnn_conv_transpose2d_backward
