"""Products of groups of rows, columns and summands: NumPy's product of each group is the oracle."""

import numpy as np
import pytest

import jaxgrad as torch

OFFSETS = [2, 2, 5]


def groups():
    return [slice(start, end) for start, end in zip([0, *OFFSETS], OFFSETS, strict=False)]


def of_rows(a, b):
    product = np.zeros((a.shape[0], b.shape[2]))
    for group, rows in enumerate(groups()):
        product[rows] = a[rows] @ b[group]
    return product


def of_columns(a, b):
    product = np.zeros((a.shape[1], b.shape[1]))
    for group, columns in enumerate(groups()):
        product[:, columns] = a[group] @ b[:, columns]
    return product


def of_summands(a, b):
    return np.stack([a[:, part] @ b[part] for part in groups()])


CASES = [
    ((6, 4), (3, 4, 2), of_rows),
    ((3, 2, 4), (4, 6), of_columns),
    ((2, 6), (6, 4), of_summands),
]


def tensors(*shapes):
    numbers = np.random.default_rng(0)
    return [torch.tensor(numbers.normal(size=shape), requires_grad=True) for shape in shapes]


@pytest.mark.parametrize(("first", "second", "expected"), CASES)
@pytest.mark.parametrize("compiled", [False, True])
def test_products_of_groups(first, second, expected, compiled):
    offsets = torch.tensor(OFFSETS, dtype=torch.int32)
    a, b = tensors(first, second)

    def product(a, b):
        return torch.nn.functional.grouped_mm(a, b, offs=offsets)

    found = (torch.jit(product) if compiled else product)(a, b)
    np.testing.assert_allclose(
        found.detach().numpy(), expected(a.detach().numpy(), b.detach().numpy()), atol=1e-12
    )
    if not compiled:
        assert torch.autograd.gradcheck(product, (a, b), check_forward_ad=True)
        assert torch.autograd.gradgradcheck(product, (a, b))


def test_product_of_batches():
    a, b = tensors((2, 3, 4), (2, 4, 5))
    found = torch.nn.functional.grouped_mm(a, b)
    np.testing.assert_allclose(
        found.detach().numpy(), a.detach().numpy() @ b.detach().numpy(), atol=1e-12
    )
    assert torch.autograd.gradcheck(torch.nn.functional.grouped_mm, (a, b))


@pytest.mark.parametrize(
    ("first", "second", "options", "text"),
    [
        ((4, 2), (2, 2, 3), {}, "offs are needed"),
        ((4, 2), (2, 3, 3), {"offs": [1, 2]}, "contraction dimension"),
        ((4, 2), (2, 2, 3), {"offs": [1, 2, 3]}, "numbers of groups differ"),
        ((4,), (2, 2, 3), {"offs": [1, 2]}, "must be 2d or 3d"),
        ((4, 2), (2, 2, 3), {"offs": [1, 2], "bias": torch.ones(3)}, "Bias not supported"),
        ((4, 2), (2, 2, 3), {"offs": [1, 2], "out_dtype": torch.float32}, "out_dtype"),
    ],
)
def test_what_is_refused(first, second, options, text):
    if "offs" in options:
        options = {**options, "offs": torch.tensor(options["offs"], dtype=torch.int32)}
    with pytest.raises(RuntimeError, match=text):
        torch.nn.functional.grouped_mm(*tensors(first, second), **options)
