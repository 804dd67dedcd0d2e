"""Which writes `strict_versions` reports: those to what PyTorch saves for the backward pass."""

import pytest

import jaxgrad as torch
from jaxgrad.autograd.graph import strict_versions

x, square = [[0.5, 0.25], [0.125, 0.5]], [[2.0, 0.5], [0.5, 3.0]]
places = torch.tensor([[0, 1], [1, 0]])

# a function of x and y, and whether PyTorch's backward pass raises after a write to x, to y, to the
# first result
WRITES = {
    "mul": (lambda x, y: x * y, True, True, False),
    "erfinv": (lambda x, y: torch.erfinv(x), True, False, False),
    "sgn": (lambda x, y: torch.sgn(x), True, False, True),
    "prod": (lambda x, y: x.prod(), True, False, True),
    "cummax": (lambda x, y: torch.cummax(x, 0)[0], True, False, False),
    "gather": (lambda x, y: x.gather(0, places), True, False, False),
    "take": (lambda x, y: x.take(places), True, False, False),
    "index_add": (lambda x, y: x.index_add(0, places[0], y), False, True, False),
    "kron": (torch.kron, False, False, False),
    "l1_loss": (torch.nn.functional.l1_loss, False, False, False),
    "det": (lambda x, y: torch.linalg.det(x), True, False, True),
    "eigvalsh": (lambda x, y: torch.linalg.eigvalsh(x), False, False, True),
    "svdvals": (lambda x, y: torch.linalg.svdvals(x), False, False, True),
    "qr": (lambda x, y: torch.linalg.qr(x)[0], False, False, True),
    "cholesky_solve": (torch.cholesky_solve, True, True, True),
    "rfft": (lambda x, y: torch.fft.rfft(x).abs(), True, False, False),
    "cross_entropy": (
        lambda x, y: torch.nn.functional.cross_entropy(x, places[0]),
        False,
        False,
        False,
    ),
    "polar": (lambda x, y: torch.polar(x, y).real, False, False, True),
    "masked sum": (
        lambda x, y: torch.masked.sum(x, mask=torch.tensor([True, False])),
        False,
        False,
        False,
    ),
}


def raises(function, place) -> bool:
    tensors = [torch.tensor(values, requires_grad=True) for values in (x, square)]
    result = function(*tensors)
    with torch.no_grad():
        (*tensors, result)[place].mul_(1)
    try:
        result.sum().backward()
    except RuntimeError as error:
        assert "modified by an inplace operation" in str(error)
        return True
    return False


@pytest.mark.parametrize("name", WRITES)
def test_writes_to_what_pytorch_saves(name):
    function, *expected = WRITES[name]
    with strict_versions():
        assert [raises(function, place) for place in range(3)] == expected


def test_writes_to_what_is_saved_keep_gradients_by_default():
    assert not any(raises(function, place) for function, *_ in WRITES.values() for place in (0, 1))
