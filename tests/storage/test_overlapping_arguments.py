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
