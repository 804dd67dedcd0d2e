"""torchvision's operators: the answers are those of torchvision 0.28's own kernels for CPUs, from a
build that PyTorch can load (`import torchvision` has to define `torch.ops.torchvision`).
"""

import importlib

import numpy as np
import pytest
from helpers.as_torch import as_torch, error

import jaxgrad

BOXES = [[0.0, 1.0, 9.0, 8.0], [3.2, -2.1, 7.7, 30.0], [2.0, 2.0, 2.1, 2.2], [6.4, 5.3, 1.2, 3.0]]
IMAGES = [0.0, 1.0, 1.0, 0.0]


def operators(torch):
    """The operators, after torchvision's library is loaded."""
    if torch is jaxgrad:
        torch.ops.load_library("site-packages/torchvision/_C.so")
    else:
        importlib.import_module("torchvision")
    return torch.ops.torchvision


def numbers(torch, *shape, seed=1):
    values = np.random.default_rng(seed).standard_normal(shape)
    return torch.tensor(values, requires_grad=True)


def regions(torch):
    boxes = torch.tensor(BOXES, dtype=torch.float64)
    return torch.cat([torch.tensor(IMAGES, dtype=torch.float64)[:, None], boxes], dim=1)


def with_gradient(torch, function, x):
    """The results of an operator on images and regions, and the gradient of a sum of the first."""
    outputs = function(x, regions(torch))
    value = outputs if isinstance(outputs, torch.Tensor) else outputs[0]
    factor = numbers(torch, *value.shape, seed=2).detach()
    (gradient,) = torch.autograd.grad((value.nan_to_num() * factor).sum(), x)
    rest = [] if isinstance(outputs, torch.Tensor) else [*outputs[1:]]
    return [value.detach(), gradient, *rest]


# ---- regions


@as_torch(precision=1e-10)
def test_roi_align(torch):
    ops, x = operators(torch), numbers(torch, 2, 1, 6, 7)
    choices = [(1.0, 2, 3, 2, False), (0.5, 3, 2, 1, True), (0.7, 2, 2, 0, False)]
    choices += [(0.5, 2, 1, -1, True)]
    return [with_gradient(torch, lambda x, r, c=c: ops.roi_align(x, r, *c), x) for c in choices]


@as_torch(precision=1e-10)
def test_roi_pool(torch):
    ops, x = operators(torch), numbers(torch, 2, 1, 6, 7)
    choices = [(1.0, 2, 3), (0.5, 3, 2)]
    return [with_gradient(torch, lambda x, r, c=c: ops.roi_pool(x, r, *c), x) for c in choices]


@as_torch
def test_roi_pool_takes_the_first_of_equal_pixels(torch):
    ops, x = operators(torch), torch.ones(2, 1, 6, 9, dtype=torch.float64, requires_grad=True)
    return with_gradient(torch, lambda x, r: ops.roi_pool(x, r, 1.0, 2, 2), x)


@as_torch(precision=1e-10)
def test_ps_roi_align(torch):
    ops, x = operators(torch), numbers(torch, 2, 6, 4, 5)
    choices = [(1.0, 2, 3, 2), (0.5, 3, 2, 1), (0.7, 1, 2, 0)]
    return [with_gradient(torch, lambda x, r, c=c: ops.ps_roi_align(x, r, *c), x) for c in choices]


@as_torch(precision=1e-10)
def test_ps_roi_pool(torch):
    ops, x = operators(torch), numbers(torch, 2, 6, 4, 5)
    return [ops.ps_roi_pool(x.detach(), regions(torch), *c) for c in ((1.0, 2, 3), (0.5, 3, 2))]


@as_torch(precision=1e-10)
def test_gradient_of_ps_roi_pool(torch):
    """At the right and lower borders torchvision's is not the derivative of its value."""
    ops, x = operators(torch), numbers(torch, 2, 6, 5, 6)
    inside = torch.tensor([[0.0, -3.0, 1.0, 4.0, 4.0], [1, 2, 2, 2, 2]], dtype=torch.float64)
    factor = numbers(torch, 2, 1, 2, 3, seed=2).detach()
    return torch.autograd.grad((ops.ps_roi_pool(x, inside, 1.0, 2, 3)[0] * factor).sum(), x)


@as_torch("""
    tensor([], shape=[0, 4, 2, 2], dtype=float64, requires_grad=True)
    tensor([], shape=[0, 4, 2, 2], dtype=float64, requires_grad=True)
    tensor([], shape=[0, 4, 2, 2], dtype=int32)
    tensor([], shape=[0, 1, 2, 2], dtype=float64, requires_grad=True)
    tensor([], shape=[0, 1, 2, 2], dtype=int32)
    tensor([], shape=[0, 1, 2, 2], dtype=float64, requires_grad=True)
    tensor([], shape=[0, 1, 2, 2], dtype=int32)
""")
def test_roi_operators_without_boxes(torch):
    ops, x = operators(torch), numbers(torch, 2, 4, 6, 9)
    none = regions(torch)[:0]
    return [
        ops.roi_align(x, none, 1.0, 2, 2, 0, False),
        *ops.roi_pool(x, none, 1.0, 2, 2),
        *ops.ps_roi_align(x, none, 1.0, 2, 2, 0),
        *ops.ps_roi_pool(x, none, 1.0, 2, 2),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("ratio", [2, 0])
def test_derivatives_of_roi_operators_against_finite_differences(ratio):
    ops, boxes = operators(jaxgrad), regions(jaxgrad)
    x, grouped = numbers(jaxgrad, 2, 1, 4, 5), numbers(jaxgrad, 2, 4, 4, 5)
    functions = [
        (lambda x: ops.roi_align(x, boxes, 0.5, 2, 2, ratio, False), x),
        (lambda x: ops.roi_pool(x, boxes, 0.5, 2, 2)[0], x),
        (lambda x: ops.ps_roi_align(x, boxes[:2], 0.5, 2, 2, ratio)[0], grouped),
        (lambda x: ops.ps_roi_pool(x, boxes, 0.5, 2, 2)[0], grouped),
    ]
    for function, operand in functions:
        assert jaxgrad.autograd.gradcheck(function, (operand,))


def test_roi_operators_under_a_trace():
    """XLA compiles windows whose extents no numbers decide."""
    ops, x, boxes = operators(jaxgrad), numbers(jaxgrad, 2, 2, 6, 9), regions(jaxgrad)

    def gradient(x, boxes):
        value = ops.roi_align(x, boxes, 1.0, 2, 3, 2, False)
        return jaxgrad.autograd.grad((value * value).sum(), x)[0]

    expected = gradient(x, boxes)
    assert jaxgrad.jit(gradient)(x, boxes).allclose(expected, rtol=1e-12)

    def adaptive(x, boxes):
        return ops.roi_align(x, boxes, 1.0, 2, 3, 0, False)

    with pytest.raises(RuntimeError, match=r"roi_align\(\) needs the numbers"):
        jaxgrad.compile(adaptive, fullgraph=True)(x, boxes)
    with pytest.warns(UserWarning, match="runs uncompiled"):
        assert jaxgrad.compile(adaptive)(x, boxes).equal(adaptive(x, boxes))


# ---- boxes


@as_torch
def test_nms(torch):
    nms, generator = operators(torch).nms, np.random.default_rng(4)
    corners, sides = generator.random((40, 2)) * 20, generator.random((40, 2)) * 12
    boxes = torch.tensor(np.concatenate([corners, corners + sides], axis=1), dtype=torch.float32)
    scores = torch.tensor(np.round(generator.random(40), 1), dtype=torch.float32)
    points = torch.zeros(3, 4)
    results = [nms(boxes, scores, threshold) for threshold in (0.0, 0.3, 0.7, 1.0)]
    results += [nms(boxes.double(), scores.double(), 0.2), nms(boxes[:0], scores[:0], 0.5)]
    return [*results, nms(points, points[:, 0], 0.5)]


@as_torch("""
    tensor([0])
    tensor([0, 2])
    tensor([0, 1, 2])
""")
def test_nms_with_a_threshold_that_an_overlap_equals(torch):
    boxes = torch.tensor([[0.0, 0.0, 10.0, 10.0], [0.0, 0.0, 10.0, 3.0], [0.0, 0.0, 1.0, 10.0]])
    scores = torch.tensor([0.9, 0.8, 0.7])
    return [operators(torch).nms(boxes, scores, threshold) for threshold in (0.1, 0.3, 0.30000002)]


@as_torch
def test_errors_of_boxes(torch):
    ops = operators(torch)
    boxes, scores, x = torch.ones(2, 4), torch.ones(2), torch.ones(1, 3, 4, 4)
    rois = torch.zeros(1, 5)
    return [
        error(ops.nms, boxes[0], scores, 0.5, words="boxes should be a 2d tensor, got 1D"),
        error(ops.nms, boxes[:, :3], scores, 0.5, words="boxes should have 4 elements in dim"),
        error(ops.nms, boxes, boxes, 0.5, words="scores should be a 1d tensor, got 2D"),
        error(ops.nms, boxes, scores[:1], 0.5, words="should have same number of elements in dim"),
        error(ops.nms, boxes, scores.double(), 0.5, words="should have the same type as scores"),
        error(ops.roi_align, x, boxes, 1.0, 2, 2, 0, False, words="Tensor[K, 5]"),
        error(ops.roi_align, x, rois.double(), 1.0, 2, 2, 0, False, words="have the same type as"),
        error(ops.ps_roi_align, x, rois, 1.0, 2, 2, 0, words="input channels must be a multiple"),
    ]


# ---- convolution


def convolution(torch, groups, offset_groups, has_mask):
    x, weight = numbers(torch, 2, 4, 5, 6), numbers(torch, 4, 4 // groups, 3, 2, seed=3)
    offset = numbers(torch, 2, offset_groups * 12, 3, 3, seed=4)
    mask = numbers(torch, 2, offset_groups * 6, 3, 3, seed=5)
    bias = numbers(torch, 4, seed=6)
    strides = 2, 2, 1, 0, 1, 1

    def function(*operands):
        return operators(torch).deform_conv2d(*operands, *strides, groups, offset_groups, has_mask)

    return function, (x, weight, offset, mask, bias)


@as_torch(precision=1e-10)
def test_deform_conv2d(torch):
    results = []
    for options in ((1, 1, False), (2, 2, True), (1, 2, True)):
        function, operands = convolution(torch, *options)
        value = function(*operands)
        factor = numbers(torch, *value.shape, seed=7).detach()
        used = [operand for operand in operands if options[2] or operand is not operands[3]]
        gradients = torch.autograd.grad((value * factor).sum(), used)
        results += [value.detach(), *gradients]
    return results


@pytest.mark.slow
def test_derivatives_of_deform_conv2d_against_finite_differences():
    function, operands = convolution(jaxgrad, 2, 2, True)
    assert jaxgrad.autograd.gradcheck(function, operands)


@as_torch("True")
def test_deform_conv2d_with_offsets_of_0_is_conv2d(torch):
    function, (x, weight, offset, mask, bias) = convolution(torch, 2, 1, False)
    plain = torch.nn.functional.conv2d(x, weight, bias, (2, 2), (1, 0), groups=2)
    return function(x, weight, offset.detach() * 0, mask, bias).allclose(plain[:, :, :3, :3])


# ---- what torchvision registers


def test_registrations_for_autocast():
    library, x = jaxgrad.library, jaxgrad.ones(2, dtype=jaxgrad.bfloat16)
    operators_of_test = library.Library("tests_vision", "DEF")
    operators_of_test.define("doubled(Tensor x) -> Tensor")
    operators_of_test.impl("doubled", lambda x: x * 2, "CompositeExplicitAutograd")
    keys = jaxgrad._C.DispatchKeySet(jaxgrad._C.DispatchKey.AutocastCPU)
    seen = []

    def in_single(x):
        with jaxgrad._C._ExcludeDispatchKeyGuard(keys):
            seen.append(jaxgrad.is_autocast_enabled("cpu"))
            return jaxgrad.ops.tests_vision.doubled(x.float())

    operators_of_test.impl("doubled", in_single, "AutocastCPU")
    doubled = jaxgrad.ops.tests_vision.doubled
    assert doubled(x).dtype is jaxgrad.bfloat16 and not seen
    with jaxgrad.autocast("cpu"):
        assert doubled(x).dtype is jaxgrad.float32 and seen == [False]
        assert jaxgrad.is_autocast_enabled("cpu")
    with pytest.raises(NotImplementedError, match="Python"):
        jaxgrad._C._ExcludeDispatchKeyGuard({"Python"}).__enter__()


def test_operators_without_a_kernel_say_so():
    ops = operators(jaxgrad)
    assert ops._cuda_version() == -1
    with pytest.raises(NotImplementedError, match="torchvision::box_iou_rotated"):
        ops.box_iou_rotated(jaxgrad.ones(1, 5), jaxgrad.ones(1, 5))
