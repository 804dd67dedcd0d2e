"""`torch._foreach_NAME`: each tensor by itself. What is expected is what PyTorch 2.13 gives."""

import numpy as np
import pytest

import jaxgrad as torch


def lists():
    return [torch.ones(2), torch.full((3,), 4.0)], [torch.full((2,), 2.0), torch.full((3,), 5.0)]


A, B = lists()


@pytest.mark.parametrize(
    ("compute", "expected"),
    [
        (lambda: torch._foreach_add(A, B, alpha=2), (5, 14)),
        (lambda: torch._foreach_add(A, (1.0, 2.0)), (2, 6)),
        (lambda: torch._foreach_sub(A, B, alpha=3), (-5, -11)),
        (lambda: torch._foreach_mul(A, torch.tensor(3.0)), (3, 12)),
        (lambda: torch._foreach_div(A, B), (0.5, 0.8)),
        (lambda: torch._foreach_addcmul(A, B, B, value=2), (9, 54)),
        (lambda: torch._foreach_addcmul(A, B, B, [1.0, 2.0]), (5, 54)),
        (lambda: torch._foreach_addcdiv(A, B, B, 3), (4, 7)),
        (lambda: torch._foreach_addcdiv(A, B, B, torch.tensor([1.0, 2.0])), (2, 6)),
        (lambda: torch._foreach_lerp(A, B, [0.5, 0.1]), (1.5, 4.1)),
        (lambda: torch._foreach_pow(A, [2, 3]), (1, 64)),
        (lambda: torch._foreach_pow(3.0, A), (3, 81)),
        (lambda: torch._foreach_clamp_max(A, 2.0), (1, 2)),
        (lambda: torch._foreach_maximum(A, B), (2, 5)),
        (lambda: torch._foreach_sqrt(A), (1, 2)),
        (lambda: torch._foreach_norm(A), (1.4142135, 6.928203)),
        (lambda: torch._foreach_norm(A, 1), (2, 12)),
        (lambda: torch._foreach_norm(A, ord=float("inf")), (1, 4)),
        (lambda: torch._foreach_max(A), (1, 4)),
        (lambda: torch._foreach_add(A, other=B, alpha=2), (5, 14)),
        (lambda: torch._foreach_mul(A, scalar=3.0), (3, 12)),
        (lambda: torch._foreach_div(A, scalars=[2.0, 8.0]), (0.5, 0.5)),
        (lambda: torch._foreach_clamp_min(A, scalar=2.0), (2, 4)),
        (lambda: torch._foreach_addcmul(A, tensor1=B, tensor2=B, value=2), (9, 54)),
        (lambda: torch._foreach_addcdiv(A, B, tensor2=B, scalars=[1.0, 2.0]), (2, 6)),
        (lambda: torch._foreach_lerp(A, tensors1=B, weight=0.5), (1.5, 4.5)),
        (lambda: torch._foreach_lerp(A, B, weights=A), (2, 8)),
        (lambda: torch._foreach_pow(A, exponent=[2, 3]), (1, 64)),
    ],
)
def test_values(compute, expected):
    for one, number in zip(compute(), expected, strict=True):
        np.testing.assert_allclose(one, np.full(one.shape, number), rtol=1e-6)


def test_in_place():
    a, b = lists()
    versions = [tensor._version for tensor in a]
    assert torch._foreach_add_(a, 1.0)[0] is a[0]
    torch._foreach_copy_(b, a)
    torch._foreach_mul_(a, [2.0, 3.0])
    assert [tensor.tolist() for tensor in a] == [[4, 4], [15, 15, 15]]
    assert [tensor.tolist() for tensor in b] == [[2, 2], [5, 5, 5]]
    assert [tensor._version for tensor in a] == [version + 2 for version in versions]
    torch._foreach_maximum_(b, scalar=3.0)
    assert [tensor.tolist() for tensor in b] == [[3, 3], [5, 5, 5]]
    torch._foreach_copy_(b, src=a)
    assert [tensor.tolist() for tensor in b] == [[4, 4], [15, 15, 15]]
    torch._foreach_zero_(b)
    assert b[1].tolist() == [0, 0, 0]


def test_gradients_and_compiled_calls():
    x = [torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor(3.0, requires_grad=True)]

    def total(x):
        return sum(term.sum() for term in torch._foreach_mul(torch._foreach_pow(x, 2), [3.0, 5.0]))

    for compute in (total, torch.jit(total)):
        gradients = torch.autograd.grad(compute(x), x)
        assert [gradient.tolist() for gradient in gradients] == [[6, 12], 30]


def test_every_name_is_there():
    for name in NAMES.split():
        assert callable(getattr(torch, f"_foreach_{name}"))
    for name in ("_foreach_nothing", "_foreach_reshape", "_foreach_", "_foreach_mm_"):
        assert not hasattr(torch, name)


@pytest.mark.parametrize(
    ("compute", "error", "text"),
    [
        (lambda: torch._foreach_add(A, B[:1]), RuntimeError, "same number of tensors, got 2 and 1"),
        (lambda: torch._foreach_mul(A, B, scalar=2.0), TypeError, "invalid combination"),
        (lambda: torch._foreach_mul(A, weight=2.0), TypeError, "invalid combination"),
        (lambda: torch._foreach_sqrt([]), RuntimeError, "must have at least one tensor"),
        (lambda: torch._foreach_add([1, 2], 3), TypeError, "Tensor as element 0 in argument 0"),
        (
            lambda: torch._foreach_exp(2.0),
            TypeError,
            "expected a list of tensors, but got float",
        ),
    ],
)
def test_errors(compute, error, text):
    with pytest.raises(error, match=text):
        compute()


NAMES = """
abs abs_ acos acos_ add add_ addcdiv addcdiv_ addcmul addcmul_ asin asin_ atan atan_ ceil ceil_
clamp_max clamp_max_ clamp_min clamp_min_ clone copy_ cos cos_ cosh cosh_ div div_ erf erf_ erfc
erfc_ exp exp_ expm1 expm1_ floor floor_ frac frac_ lerp lerp_ lgamma lgamma_ log log10 log10_ log1p
log1p_ log2 log2_ log_ max maximum maximum_ minimum minimum_ mm mul mul_ neg neg_ norm pow pow_
powsum reciprocal reciprocal_ round round_ rsqrt rsqrt_ sigmoid sigmoid_ sign sign_ sin sin_ sinh
sinh_ sqrt sqrt_ sub sub_ tan tan_ tanh tanh_ trunc trunc_ zero_
"""


def test_all_names_of_pytorch_are_there():
    missing = [name for name in NAMES.split() if not hasattr(torch, f"_foreach_{name}")]
    assert len(NAMES.split()) == 91 and missing == []
    assert not hasattr(torch, "_foreach_sinc") and not hasattr(torch, "_foreach_mm_")


def test_extremes_in_place_and_sums_of_powers():
    tensors = [torch.tensor([1.0, -2.0]), torch.tensor([3.0])]
    torch._foreach_maximum_(tensors, 0.0)
    assert [tensor.tolist() for tensor in tensors] == [[1, 0], [3]]
    torch._foreach_minimum_(tensors, [torch.tensor([0.5, 0.5]), torch.tensor([1.0])])
    assert [tensor.tolist() for tensor in tensors] == [[0.5, 0], [1]]
    sums = torch._foreach_powsum([torch.tensor([1.0, -2.0])], 3)
    assert [total.item() for total in sums] == [9]


def test_extremes_of_tensors_and_a_number():
    tensors = [torch.tensor([1.0, -2.0]), torch.tensor([3.0])]
    assert [t.tolist() for t in torch._foreach_maximum(tensors, 0.5)] == [[1, 0.5], [3]]
    assert [t.tolist() for t in torch._foreach_minimum(tensors, [0.5, 2])] == [[0.5, -2], [2]]
    with pytest.raises(RuntimeError, match="scalar tensor expected to be 0 dim"):
        torch._foreach_add(tensors, torch.tensor([1.0, 2.0]))


@pytest.mark.parametrize("name", ("_foreach_addcmul", "_foreach_addcdiv_"))
@pytest.mark.parametrize("value", (torch.tensor(2.0), torch.ones(1, 3)))
def test_packed_factors_have_one_dimension(name, value):
    lists = [[torch.ones(2)] * 3 for _ in range(3)]
    with pytest.raises(RuntimeError, match="Expected packed scalar Tensor to be of dimension 1"):
        getattr(torch, name)(*lists, value)
