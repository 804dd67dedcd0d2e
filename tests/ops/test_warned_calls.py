"""Operators that warn in some calls: how often, in which words, and that they still compute."""

import warnings

import pytest

import jaxgrad as torch
from jaxgrad.autograd import forward_ad

eye = torch.eye(3)
places = torch.zeros(3, dtype=torch.int64)
three = torch.ones(3)

DEPRECATED = [
    ("torch.cholesky is deprecated in favor of torch.linalg", lambda: torch.cholesky(eye)),
    ("torch.qr is deprecated in favor of torch.linalg.qr", lambda: eye.qr()),
    ("torch.lu is deprecated in favor of torch.linalg.lu_factor", lambda: torch.lu(eye)),
    ("torch.triangular_solve is deprecated", lambda: torch.triangular_solve(eye, eye)),
    (
        "torch.lu_solve is deprecated in favor of torch.linalg.lu_solve",
        lambda: torch.lu_solve(eye, *torch.linalg.lu_factor(eye)),
    ),
    ("Using torch.cross without specifying the dim arg", lambda: torch.cross(eye, eye)),
    (
        "The reduce argument of torch.scatter with Tensor src",
        lambda: torch.zeros(3).scatter_(0, places, three, reduce="add"),
    ),
    (
        "Using padding='same' with even kernel lengths",
        lambda: torch.nn.functional.conv1d(eye[None], torch.ones(1, 3, 2), padding="same"),
    ),
    ("The use of `x.T` on tensors of dimension other than 2", lambda: three.T),
    ("Tensor.H is deprecated on 0-D tensors", lambda: torch.tensor(1.0).H),
]
SILENT = [
    lambda: torch.cross(eye, eye, dim=0),
    lambda: torch.zeros(3).scatter(0, places, 1.0, reduce="add"),
    lambda: torch.nn.functional.conv1d(eye[None], torch.ones(1, 3, 3), padding="same"),
    lambda: three.std(),
    lambda: three.var(correction=2.5),
    lambda: torch.tensor([1.0]).std(correction=0),
    lambda: eye.T,
]


@pytest.fixture
def always():
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(False)


@pytest.mark.parametrize(("message", "call"), DEPRECATED)
def test_deprecated_calls(always, message, call):
    for _ in range(2):  # of a new plan, and of a known one
        with pytest.warns(UserWarning, match=message) as caught:
            call()
        assert len(caught) == 1 and caught[0].filename == __file__


def test_a_process_warns_once():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for size in range(2, 5):
            torch.cholesky(torch.eye(size))
    assert len(caught) <= 1  # another test may have been first


@pytest.mark.parametrize("call", SILENT)
def test_calls_that_do_not_warn(always, call):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call()


@pytest.mark.parametrize("name", ["std", "var", "std_mean", "var_mean"])
def test_every_call_without_degrees_of_freedom_warns(name):
    function = getattr(torch, name)
    calls = [
        lambda: function(torch.tensor([1.0])),
        lambda: function(torch.zeros(0)),
        lambda: function(torch.ones(1, 3), 0),
        lambda: function(three, correction=3.5),
        lambda: function(three, correction=4.5),
    ]
    for call in calls * 2:
        message = rf"{name}\(\): degrees of freedom is <= 0. Correction should be strictly less"
        with pytest.warns(UserWarning, match=message) as caught:
            call()
        assert len(caught) == 1


def test_tangents_of_calls_that_warn(always):
    # d(a x b) = da x b
    with forward_ad.dual_level(), pytest.warns(UserWarning, match="torch.cross"):
        dual = forward_ad.make_dual(torch.zeros(3), torch.tensor([1.0, 0.0, 0.0]))
        crossed = torch.cross(dual, torch.tensor([0.0, 1.0, 0.0]))
        assert forward_ad.unpack_dual(crossed).tangent.tolist() == [0, 0, 1]


UNORDERED = {
    "put_": lambda x: x.put_(places[:2], three[:2]),
    "max_unpooling2d_forward_out": lambda x: torch.nn.functional.max_unpool1d(
        eye[None], places.expand(1, 3, 3), 2
    ),
    "max_unpooling3d_forward_out": lambda x: torch.nn.functional.max_unpool3d(
        eye[None, None], places.expand(1, 1, 3, 3), 2
    ),
}


@pytest.mark.parametrize("kernel", UNORDERED)
def test_deterministic_algorithms_refuse_unordered_writes(kernel):
    x, words = torch.zeros(3), f"{kernel} does not have a deterministic implementation"
    for _ in range(2):
        torch.use_deterministic_algorithms(True)
        with pytest.raises(RuntimeError, match=words):
            UNORDERED[kernel](x)
        assert x.tolist() == [0, 0, 0]
    torch.use_deterministic_algorithms(True, warn_only=True)
    with pytest.warns(UserWarning, match=words):
        UNORDERED[kernel](x)
    torch.use_deterministic_algorithms(True)
    x.put_(places[:2], three[:2], accumulate=True)
    torch.use_deterministic_algorithms(False)
    UNORDERED[kernel](x)
