"""A compiled function may read more of an argument than shape, dtype and numbers: what it finds is
that of the argument of this call.
"""

import pytest

import jaxgrad as torch
from jaxgrad import nn


def ones():
    return torch.ones(2, 2)


def tracked():
    return ones().requires_grad_()


def retained():
    tensor = tracked() * 1
    tensor.retain_grad()
    return tensor


def complex_ones():
    return torch.ones(2, 2, dtype=torch.complex64)


def rows():
    """A view at the offset 2 of its storage."""
    return torch.ones(3, 2)[1:]


# what is read as a number, two kinds of arguments, and the numbers
READS = {
    "Parameter": (
        lambda x: isinstance(x, nn.Parameter),
        tracked,
        lambda: nn.Parameter(ones()),
        0,
        1,
    ),
    "Buffer": (lambda x: isinstance(x, nn.Buffer), ones, lambda: nn.Buffer(ones()), 0, 1),
    "is_conj": (torch.is_conj, complex_ones, lambda: complex_ones().conj(), 0, 1),
    "is_view": (lambda x: x._is_view(), ones, lambda: ones()[:], 0, 1),
    "storage_offset": (lambda x: x.storage_offset(), ones, rows, 0, 2),
    "offset of a view": (lambda x: x[1:].storage_offset(), ones, rows, 2, 4),
    "as_strided": (lambda x: x.as_strided((1,), (1,), 2).sum(), ones, rows, 1, 1),
    "_version": (lambda x: x._version, ones, lambda: torch.zeros(2, 2).add_(1), 0, 1),
    "retains_grad": (lambda x: x.retains_grad, lambda: tracked() * 1, retained, 0, 1),
    "grad_fn": (
        lambda x: "Mul" in x.grad_fn.name(),
        lambda: tracked() * 1,
        lambda: tracked().exp(),
        1,
        0,
    ),
    "output_nr": (
        lambda x: x.output_nr,
        lambda: torch.ones(2, 2, 2, requires_grad=True).unbind()[0],
        lambda: torch.ones(2, 2, 2, requires_grad=True).unbind()[1],
        0,
        1,
    ),
    "is_leaf": (lambda x: x.is_leaf, tracked, lambda: tracked() * 1, 1, 0),
    "inside of vmap": (
        lambda x: torch.vmap(lambda row: row * isinstance(x, nn.Parameter))(x).sum() / 4,
        tracked,
        lambda: nn.Parameter(ones()),
        0,
        1,
    ),
    "inside of grad": (
        lambda x: torch.func.grad(lambda y: y.sum() * x.storage_offset())(x)[0, 0],
        ones,
        rows,
        0,
        2,
    ),
}


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("is_reversed", [False, True], ids=["", "reversed"])
def test_what_is_read_of_an_argument(name, is_reversed):
    """Numbers and gradients, whichever argument is there when the function is traced."""
    read, one, other, first, second = READS[name]
    compiled = torch.jit(lambda x, y: (x.detach() * 0 + 1 + y) * read(x))
    cases = [(one, first), (other, second)] * 2
    for make, number in cases[::-1] if is_reversed else cases:
        y = torch.zeros(2, 2, requires_grad=True)
        result = compiled(make(), y)
        assert (result == number).all()
        assert (torch.autograd.grad(result.real.sum(), y)[0] == number).all()
    assert compiled.count <= 2, compiled.explain()


def test_the_reason_names_what_was_read():
    compiled = torch.jit(lambda x: x * (1 + x.storage_offset()))
    compiled(ones()), compiled(rows())
    assert compiled.explain().endswith("the known offset of a tensor was 0, and is 2")


def test_what_is_not_read_is_not_compared():
    compiled = torch.jit(lambda x: x * 2)
    for make in (ones, rows, lambda: nn.Buffer(ones()), lambda: ones()[:]):
        assert compiled(make()).tolist() == [[2, 2], [2, 2]]
    assert compiled.count == 1


def test_a_property_of_memory_that_the_function_gave_is_not_that_of_the_argument():
    def moved(x, y):
        x.data = y[1:]
        return x * x.storage_offset()

    assert torch.jit(moved)(torch.ones(1, 2), ones()).tolist() == [[2, 2]]


@pytest.mark.slow
def test_the_reason_compares_with_the_program_for_such_arguments():
    dropout, argument = nn.Dropout(), torch.ones(2)
    compiled = torch.jit(lambda value, scale=1: dropout(value) * scale)
    compiled(argument), compiled(argument, scale=torch.ones(2))
    dropout.eval()
    compiled(argument)
    assert compiled.explain().endswith("training of a Dropout was True, and is False")


# a global whose name is that of an attribute that the function below reads
x = None


def test_an_attribute_is_no_global_of_its_name(monkeypatch):
    class Mine:
        def x(self):
            return 2

    mine, seen = Mine(), {}

    def function(value):
        seen.update(number=1)
        return value * mine.x()

    compiled = torch.jit(function)
    for _ in range(4):
        monkeypatch.setitem(globals(), "x", torch.ones(2))
        assert compiled(x).tolist() == [2, 2]
    assert compiled.count == 2, compiled.explain()  # once more, since `seen` had no element
