"""Writes to memory of which an argument shows another part: PyTorch refuses them."""

import pytest

import jaxgrad as torch

REFUSED = [
    lambda a, b: a.add_(b),
    lambda a, b: a.copy_(b),
    lambda a, b: b.copy_(a),
    lambda a, b: a[:2].copy_(a[1:3]),
    lambda a, b: a.__setitem__(slice(0, 3), a[1:4]),
    lambda a, b: a.addcmul_(b, b),
    lambda a, b: a.index_add_(0, torch.arange(4), b),
    lambda a, b: a.view(2, 2).add_(a.view(2, 2).t()),
    lambda a, b: a.view(2, 2).add_(a[:2]),
    lambda a, b: torch.sin(b, out=a),
    lambda a, b: torch.cat([a[:2], b[:2]], out=b),
    lambda a, b: torch.sort(b, out=(a, torch.zeros(4, dtype=torch.int64))),
]
ALLOWED = [
    (lambda a, b: a.add_(a), [0, 2, 4, 6, 4]),
    (lambda a, b: a.add_(a.detach().view(4)), [0, 2, 4, 6, 4]),
    (lambda a, b: a[:2].copy_(a[2:]), [2, 3, 2, 3, 4]),
    (lambda a, b: a[::2].add_(a[1::2]), [1, 1, 5, 3, 4]),
    (lambda a, b: torch.add(a, a, out=a), [0, 2, 4, 6, 4]),
    (lambda a, b: a.add_(b.clone()), [1, 3, 5, 7, 4]),
]


@pytest.mark.parametrize("write", REFUSED)
def test_partly_shared_memory_is_refused(write):
    x = torch.arange(5.0)
    message = "some elements of the input tensor and the written-to tensor refer to a single"
    with pytest.raises(RuntimeError, match=message):
        write(x[:-1], x[1:])
    assert x.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("write", "values"), ALLOWED)
def test_memory_that_is_shared_whole_or_not_at_all(write, values):
    x = torch.arange(5.0)
    write(x[:-1], x[1:])
    assert x.tolist() == values


def test_partly_shared_memory_in_a_compiled_function():
    @torch.jit
    def shifted(x):
        y = x * 1
        y[1:].add_(y[:-1])
        return y

    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        shifted(torch.ones(3))


@pytest.mark.parametrize("join", [torch.cat, torch.stack])
def test_joining_into_one_of_the_joined_is_refused(join):
    """Also into an empty one, and into all of the memory of one."""
    x, empty = torch.ones(2, 2), torch.zeros(0)
    for out in (x, empty, x.view(4)):
        with pytest.raises(RuntimeError, match="the written-to tensor refer to a single memory"):
            join([x, x] if out is not empty else [empty, empty], out=out)
    assert x.tolist() == [[1, 1], [1, 1]]


def test_filling_overlapping_windows():
    """Each element gets the same number, in whatever order."""
    for _ in range(2):  # the second call is a known one
        x = torch.arange(7.0)
        x.as_strided((3, 3), (1, 1)).fill_(9)
        assert x.tolist() == [9, 9, 9, 9, 9, 5, 6]
        x.as_strided((3, 2), (2, 0)).zero_()
        assert x.tolist() == [0, 9, 0, 9, 0, 5, 6]
    leaf = torch.ones(6, requires_grad=True)
    y = leaf * 2
    y.as_strided((2, 3), (1, 1)).zero_()
    y.sum().backward()
    assert leaf.grad.tolist() == [0, 0, 0, 0, 2, 2]
    number = torch.tensor(2.0, requires_grad=True)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        torch.ones(4).as_strided((3, 2), (1, 1)).fill_(number)


def test_triangles_of_one_matrix_shown_several_times():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x.expand(3, 2, 2).triu_(1).tolist() == [[[0, 2], [0, 0]]] * 3
    assert x.tolist() == [[0, 2], [0, 0]]
    for shown in (torch.ones(3, 1).expand(3, 3), torch.ones(3, 1, 2, 2).expand(3, 3, 2, 2)):
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
            shown.tril_()
