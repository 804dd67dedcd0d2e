"""The convolutions of libraries under their names of early PyTorch."""

import numpy
import pytest
from helpers.checks import count

import jaxgrad
from jaxgrad import ops


def leaf(*shape, first=0):
    """Small whole numbers, with which every kernel is exact."""
    numbers = numpy.sin(1.3 * (numpy.arange(numpy.prod(shape)) + first) ** 2 + 0.7)
    return jaxgrad.tensor(numpy.round(16 * numbers).reshape(shape), requires_grad=True)


def forward_and_gradients(dimensions, transposed=False, groups=1):
    """Arguments of `convolution`, its result, and the gradients for the result."""
    x = leaf(2, 4, *[4, 3, 5][:dimensions])
    weight = leaf(4, 4 // groups, *[2, 3, 1][:dimensions], first=3)
    bias, dilation = leaf(4, first=7), [1] * dimensions
    stride, padding = [2, 1, 1][:dimensions], [1, 0, 1][:dimensions]
    extra = [1, 0, 0][:dimensions] if transposed else [0] * dimensions
    numbers = stride, padding, dilation, transposed, extra, groups
    y = ops.convolution(x, weight, bias, *numbers)
    gradients = ops.convolution_backward(y, x, weight, None, *numbers, [True] * 3)
    return x, weight, bias, stride, padding, dilation, extra, y, gradients


def check_same(results, expected):
    for one, other in zip(results, expected, strict=True):
        assert jaxgrad.equal(one, other)
        assert one.grad_fn.name() == other.grad_fn.name()
    count("names of early PyTorch")


KINDS = ["2d", "3d", "_dilated2d", "_dilated3d", "_transpose2d", "_transpose3d", "_depthwise2d"]


@pytest.mark.slow
@pytest.mark.parametrize("library", ["cudnn", "miopen", "mkldnn"])
def test_cudnn_and_mkldnn_convolutions(library):
    x, w, b, stride, padding, dilation, _, y, gradients = forward_and_gradients(2, groups=2)
    flags = [] if library == "mkldnn" else [False, True]
    numbers = padding, stride, dilation, 2, *flags
    call, back = (getattr(ops, f"{library}_convolution{end}") for end in ("", "_backward"))
    check_same([call(x, w, b, *numbers)], [y])
    check_same(back(x, y, w, *numbers, [True] * 3), gradients)


@pytest.mark.slow
@pytest.mark.parametrize("library", ["cudnn", "miopen"])
def test_cudnn_and_mkldnn_transposed_convolutions(library):
    x, w, b, stride, padding, dilation, extra, y, gradients = forward_and_gradients(1, True, 2)
    numbers = padding, extra, stride, dilation, 2, False, True
    name = f"{library}_convolution_transpose"
    check_same([getattr(ops, name)(x, w, b, *numbers)], [y])
    results = getattr(ops, f"{name}_backward")(x, y, w, *numbers, [True, False, True])
    assert results[1] is None
    check_same(results[::2], gradients[::2])


@pytest.mark.parametrize("kind", KINDS)
def test_thnn_convolutions(kind):
    transposed, groups = "transpose" in kind, 4 if "depthwise" in kind else 1
    case = forward_and_gradients(int(kind[-2]), transposed, groups)
    x, w, b, stride, padding, dilation, extra, y, gradients = case
    kernel, count_of_gradients = list(w.shape[2:]), 2 if "depthwise" in kind else 3
    numbers = [stride, padding, *([extra] if transposed else [])]
    numbers += [dilation] if len(kind) > 2 else []
    buffers = [None, None] if count_of_gradients == 3 else []
    call, back = (getattr(ops, f"thnn_conv{kind}_{end}") for end in ("forward", "backward"))
    check_same([call(x, w, kernel, b, *numbers)], [y])
    mask = [True] * count_of_gradients
    results = back(y, x, w, kernel, *numbers, *buffers, mask)
    check_same(results, gradients[:count_of_gradients])
    with pytest.raises(RuntimeError, match="kernel_size should be the size of the kernel"):
        call(x, w, [7] * len(kernel), b, *numbers)
