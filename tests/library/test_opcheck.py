"""What `opcheck` finds: the test that fails, and its words, are those of torch 2.13."""

import itertools

import numpy as np
import pytest

import jaxgrad as torch
from jaxgrad import Tensor, library

SCHEMA, REGISTRATION = "test_schema", "test_autograd_registration"
FAKE, COMPILED = "test_faketensor", "test_aot_dispatch_dynamic"
ALL = [SCHEMA, REGISTRATION, FAKE, COMPILED]


def double(x: Tensor) -> Tensor:
    return x * 2


def writes(x: Tensor) -> Tensor:
    return x.add_(1).clone()


COUNT = itertools.count(2)


def changing_factor(x: Tensor) -> Tensor:
    return torch.from_numpy(x.detach().numpy() * np.float32(next(COUNT)))


def new_operator(kernel, fake=torch.empty_like, backward=None):
    op = library.custom_op("tests_opcheck::op", kernel, mutates_args=())
    if fake is not None:
        op.register_fake(fake)
    if backward is not None:
        op.register_autograd(backward)
    return op


def failures(op, *args):
    results = library.opcheck(op, args, raise_exception=False)
    assert list(results) == ALL
    return {name: str(result) for name, result in results.items() if result != "SUCCESS"}


X, MOVING = torch.ones(2), torch.ones(2, requires_grad=True)


def test_right_operators():
    assert failures(new_operator(double), X) == {}
    assert failures(new_operator(double, backward=lambda ctx, grad: grad * 2), MOVING) == {}
    assert failures(torch.ops.tests_opcheck.op.default, MOVING) == {}
    assert library.opcheck(new_operator(double), (X,), test_utils=SCHEMA) == {SCHEMA: "SUCCESS"}


def test_an_operator_that_writes():
    op = library.custom_op("tests_opcheck::write", add_into, mutates_args={"y"})
    op.register_fake(lambda x, y: None)
    assert failures(op, X, torch.zeros(2)) == {}


def add_into(x: Tensor, y: Tensor) -> None:
    y.add_(x)


@pytest.mark.parametrize(
    ("op", "x", "test", "message"),
    [
        (
            lambda: new_operator(writes),
            X,
            SCHEMA,
            "Argument x is not defined as mutable but was mutated",
        ),
        (lambda: new_operator(double), MOVING, COMPILED, "Trying to backward through"),
        (lambda: new_operator(double, None), X, FAKE, "no fake impl registered for"),
        (
            lambda: new_operator(double, lambda x: x.new_empty(3)),
            X,
            FAKE,
            "mismatched tensor metadata",
        ),
        (lambda: new_operator(double, lambda x: x.double()), X, FAKE, "Dtypes torch.float32 and"),
        (
            lambda: new_operator(double, backward=lambda ctx, grad: grad * next(COUNT)),
            MOVING,
            COMPILED,
            "Gradients of the operator",
        ),
        (lambda: new_operator(changing_factor), X, COMPILED, "Outputs of the operator"),
        (lambda: new_operator(identity), X, SCHEMA, "must not also be an input"),
    ],
)
def test_what_is_found(op, x, test, message):
    assert message in failures(op(), x)[test]


def identity(x: Tensor) -> Tensor:
    return x


def test_the_first_failure_raises():
    with pytest.raises(library.OpCheckError, match=r"test_schema failed with .*mutable"):
        library.opcheck(new_operator(writes), (X,))


def test_an_operator_of_a_library_without_autograd():
    library.define("tests_opcheck::bare", "(Tensor x) -> Tensor")
    library.impl("tests_opcheck::bare", "cpu", lambda x: x.clone())
    library.register_fake("tests_opcheck::bare", torch.empty_like)
    messages = failures(torch.ops.tests_opcheck.bare, MOVING)
    assert "does not have an autograd kernel" in messages[REGISTRATION]


def test_wrong_calls():
    with pytest.raises(ValueError, match="expected test_utils to be subset of"):
        library.opcheck(new_operator(double), (X,), test_utils=(SCHEMA, "zz"))
    with pytest.raises(ValueError, match="op must be"):
        library.opcheck(double, (X,))
