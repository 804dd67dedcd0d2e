"""Normalization: statistics, derivatives and dtypes that the samples leave open."""

import pytest
from helpers.as_torch import as_torch, error

import jaxgrad


def numbers(*shape):
    return jaxgrad.randn(
        *shape, dtype=jaxgrad.float64, generator=jaxgrad.Generator().manual_seed(1)
    )


def leaves(*shapes):
    return [numbers(*shape).requires_grad_() for shape in shapes]


@pytest.mark.slow
def test_running_statistics_have_a_gradient_without_training():
    # PyTorch raises if they require grad
    mean, variance = (numbers(2) - 3).requires_grad_(), (numbers(2) ** 2 + 1).requires_grad_()
    inputs = (*leaves((3, 2), (2,), (2,)), mean, variance)

    def normalized(x, weight, bias, mean, variance):
        return jaxgrad.batch_norm(x, weight, bias, mean, variance, False, 0.1, 0.1)

    assert jaxgrad.autograd.gradcheck(normalized, inputs)
    assert jaxgrad.autograd.gradgradcheck(normalized, inputs)


def of_batches(torch_like, x, weight):
    backward = jaxgrad.ops.native_batch_norm_backward
    _, mean, rstd = jaxgrad.native_batch_norm(x, weight, None, None, None, True, 0.1, 0.1)
    gradients = backward(torch_like, x, weight, None, None, mean, rstd, True, 0.1, [True] * 3)
    return gradients[0], gradients[1]


def of_layers(grad, x, weight):
    _, mean, rstd = jaxgrad.native_layer_norm(x, [2], weight, None, 0.1)
    backward = jaxgrad.ops.native_layer_norm_backward
    return backward(grad, x, [2], mean, rstd, weight, None, [True] * 3)[:2]


@pytest.mark.slow
@pytest.mark.parametrize("backward", [of_batches, of_layers])
def test_saved_statistics_count_as_functions_of_the_input(backward):
    inputs = tuple(leaves((4, 2), (4, 2), (2,)))
    assert jaxgrad.autograd.gradcheck(backward, inputs)
    assert jaxgrad.autograd.gradgradcheck(backward, inputs)


@pytest.mark.slow
def test_third_derivatives():
    (x,) = leaves((3, 2))

    def second(x):
        y = jaxgrad.batch_norm(x, None, None, None, None, True, 0.1, 0.1)
        (first,) = jaxgrad.autograd.grad((y**3).sum(), x, create_graph=True)
        return jaxgrad.autograd.grad((first**2).sum(), x, create_graph=True)[0]

    assert jaxgrad.autograd.gradcheck(second, (x,))


def test_gradients_that_are_not_asked_for_are_zeros():
    x, weight = numbers(3, 2), numbers(2)
    _, mean, rstd = jaxgrad.native_batch_norm(x, weight, None, None, None, True, 0.1, 0.1)
    backward = jaxgrad.ops.native_batch_norm_backward
    gradients = backward(x, x, weight, None, None, mean, rstd, True, 0.1, [True, False, True])
    assert gradients[1].tolist() == [0, 0] and all(gradients[2].tolist())


def test_cudnn_and_miopen_batch_norm_are_native_batch_norm():
    x, weight, bias, mean, variance = *(numbers(3, 2), *numbers(3, 2)), numbers(2) ** 2
    ops, arguments = jaxgrad.ops, (x, weight, bias, mean.clone(), variance.clone(), True, 0.3, 0.1)
    for name in ("cudnn_batch_norm", "miopen_batch_norm"):
        moved = mean.clone(), variance.clone()
        results = getattr(ops, name)(x, weight, bias, *moved, True, 0.3, 0.1)
        expected = jaxgrad.native_batch_norm(*arguments)
        assert [t.tolist() for t in results] == [t.tolist() for t in expected]
        assert moved[0].tolist() != mean.tolist()
        saved = (None, None, *expected[1:])
        gradients = getattr(ops, f"{name}_backward")(x, bias + x, weight, *saved, 0.1)
        native = ops.native_batch_norm_backward(bias + x, x, weight, *saved, True, 0.1, [True] * 3)
        assert [t.tolist() for t in gradients] == [t.tolist() for t in native]
    weights = numbers(2, 3), numbers(1, 3), 1
    results, expected = (
        ops._weight_norm_cuda_interface(*weights),
        ops._weight_norm_interface(*weights),
    )
    assert [t.tolist() for t in results] == [t.tolist() for t in expected]


def test_early_names_of_batch_norm():
    x, weight, bias = numbers(3, 2), numbers(2), numbers(2)
    running = numbers(2), numbers(2) ** 2
    expected = jaxgrad.native_batch_norm(x, weight, bias, None, None, True, 0.3, 0.1)
    results = jaxgrad._native_batch_norm_legit(x, weight, bias, True, momentum=0.3, eps=0.1)
    assert [t.tolist() for t in results] == [t.tolist() for t in expected]
    moved = [t.clone() for t in running]
    jaxgrad.native_batch_norm(x, weight, bias, *moved, True, 0.3, 0.1)
    *results, reserve = jaxgrad.ops._batch_norm_with_update(x, weight, bias, *running, 0.3, 0.1)
    assert [t.tolist() for t in results] == [t.tolist() for t in expected]
    assert [t.tolist() for t in running] == [t.tolist() for t in moved]
    assert reserve.dtype is jaxgrad.uint8 and not reserve.numel()


def test_batch_norm_of_no_elements_needs_no_channels():
    x = jaxgrad.zeros(0, requires_grad=True)
    result = jaxgrad.nn.functional.batch_norm(x, jaxgrad.zeros(0), jaxgrad.zeros(0), training=True)
    result.sum().backward()
    assert result.shape == x.grad.shape == (0,)


def test_out_of_native_batch_norm():
    outs = [jaxgrad.empty(0) for _ in range(3)]
    x = jaxgrad.tensor([[1.0], [3.0]])
    results = jaxgrad.native_batch_norm(x, None, None, None, None, True, 0.1, 0.0, out=outs)
    assert [t.tolist() for t in outs] == [[[-1.0], [1.0]], [2.0], [1.0]]
    assert all(result is out for result, out in zip(results, outs, strict=True))


def small(torch, *shape, dtype=None):
    count = 1
    for extent in shape:
        count *= extent
    return (torch.arange(count, dtype=torch.float32) % 5 - 1.5).reshape(shape).to(dtype)


@pytest.mark.slow
@as_torch
def test_half_precision_beside_parameters_in_float32(torch):
    results = []
    for half in (torch.float16, torch.bfloat16):
        x, weight = small(torch, 2, 4, dtype=half), small(torch, 4)
        for parameter in (weight, weight.to(half)):
            layer = torch.native_layer_norm(x, [4], parameter, None, 1e-5)
            group = torch.native_group_norm(x, parameter, parameter, 2, 4, 1, 2, 1e-5)
            batch = torch.native_batch_norm(x, parameter, None, None, None, True, 0.1, 1e-5)
            for output in (*layer, *group, *batch):
                results.append((str(output.dtype), list(output.shape)))
    return results


@as_torch
def test_errors_of_normalization(torch):
    F, x, wide = torch.nn.functional, small(torch, 3, 2), torch.ones(2, dtype=torch.float64)
    mixed = "mixed dtype (CPU): expect parameter to have scalar type of Float"
    return [
        error(F.layer_norm, x, (2,), wide, words=mixed),
        error(F.batch_norm, x, None, None, wide, None, True, words=mixed),
        error(F.group_norm, x, 2, wide, words=mixed),
        error(F.layer_norm, x, (3,), words="expected input with shape [*, 3]"),
        error(F.layer_norm, x, (), words="Expected normalized_shape to be at least 1-dimensional"),
        error(F.layer_norm, x, (2,), torch.ones(3), words="Expected weight to be of same shape"),
        error(F.layer_norm, x.long(), (2,), words="not implemented for 'Long'"),
        error(F.rms_norm, x.long(), (2,), words="not implemented for 'Long'"),
        error(F.batch_norm, x, None, None, words="must be defined"),
        error(F.batch_norm, x, torch.ones(3), torch.ones(3), words="elements not 3"),
        error(
            F.batch_norm, x[:1], None, None, None, None, True, words="Expected more than 1 value"
        ),
        error(
            F.batch_norm, x, None, None, None, None, True, 0.1, 0.0, words="eps must be positive"
        ),
        error(F.group_norm, x.T, 2, words="Expected number of channels in input to be divisible"),
        error(F.group_norm, x[:1], 2, words="Expected more than 1 value per channel"),
        error(F.group_norm, x, 2, torch.ones(3), words="Expected weight to be a vector of size"),
        error(F.instance_norm, x, words="Expected more than 1 spatial element"),
        error(F.local_response_norm, x, 2, words="Expected 3D or higher dimensionality"),
    ]
