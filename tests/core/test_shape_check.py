"""Mistakes in shapes, found at loading by abstract evaluation, and at run time by the same rule."""

import jax
import jax.numpy as jnp
import pytest

import jaxgrad
from jaxgrad.table import TableError

ONE = "- name: op(Tensor self) -> Tensor\n  forward: {}\n  self: {}\n"
TWO = "- name: op(Tensor self, Tensor other) -> Tensor\n  forward: {}\n  self: {}\n  other: {}\n"


@pytest.fixture
def load(tmp_path):
    def load(text, **functions):
        (tmp_path / "mine.yaml").write_text(text)
        return jaxgrad.ops.load(tmp_path / "mine.yaml", "shape_check_test", functions)

    return load


WRONG = [
    (ONE.format("self.sin()", "grad.sum() * self.cos().sum()"), "3:9", "[] where [2, 3]"),
    (ONE.format("self.sin()", "(grad * self.cos()).sum(0)"), "3:9", "[3] where [2, 3]"),
    (ONE.format("self.sin()", "(grad * self.cos()).sum(0, True)"), "3:9", "[1, 3] where [2, 3]"),
    # right where the shapes are alike, wrong where `other` broadcasts
    (TWO.format("self * other", "grad * other", "(grad * self).sum()"), "4:10", "[] where [2, 3]"),
    (TWO.format("self + other", "grad", "grad.narrow(0, 0, other.shape[0])"), "4:10", "exceeds"),
    (TWO.format("other * 2 + 0 * self", "zeros", "2 * grad.mean(0)"), "4:10", "[3] where"),
]


@pytest.mark.parametrize(("text", "place", "shapes"), WRONG)
def test_a_gradient_of_another_shape_is_found_at_loading(load, text, place, shapes):
    with pytest.raises(TableError) as caught:
        load(text)
    (mistake,) = caught.value.mistakes
    assert f"{mistake.line}:{mistake.column}" == place
    assert "the gradient of" in mistake.cause
    assert shapes in mistake.cause


@pytest.mark.parametrize(
    ("tangent", "shape"),
    [("(self_t * self_p.cos()).sum()", "[]"), ("self_t.unsqueeze(0)", "[1, 2, 3]")],
)
def test_a_tangent_of_another_shape_is_found_at_loading(load, tangent, shape):
    text = ONE.format("self.sin()", "grad * self.cos()") + f"  result: {tangent}\n"
    with pytest.raises(TableError) as caught:
        load(text)
    (mistake,) = caught.value.mistakes
    assert (mistake.line, mistake.column) == (4, 11)
    assert f"the tangent of 'result' for torch.float32[2, 3]: the formula gives shape {shape}" in (
        mistake.cause
    )


@pytest.mark.slow
def test_sums_over_broadcast_dimensions_need_no_formula(load):
    mine = load(TWO.format("self * other", "grad * other", "grad * self"))
    row, matrix = jnp.array([1.0, 2.0]), jnp.array([[3.0, 4.0], [5.0, 6.0]])
    assert jax.grad(lambda x: mine.op(matrix, x).sum())(row).tolist() == [8.0, 10.0]


def test_a_gradient_of_a_smaller_shape_is_not_spread_at_run_time(load):
    def wrong(grad):
        return grad.sum() if armed else grad

    armed = False
    mine = load(ONE.format("self * 1", "wrong(grad)"), wrong=wrong)
    armed = True
    x = jaxgrad.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"op \(.*mine.yaml:1\), self: .* \[\] where \[2\] is"):
        mine.op(x).sum().backward()
    assert x.grad is None


def test_an_overload_that_calls_itself_is_found_at_loading(load):
    text = TWO.format("op(self, other)", "grad", "grad").replace("op(Tensor", "op.Tensor(Tensor")
    other = (
        "- name: op.Scalar(Tensor self, Scalar other) -> Tensor\n  forward: self\n  self: grad\n"
    )
    with pytest.raises(TableError, match=r"mine.yaml:2:12: op.Tensor: the value .* calls itself"):
        load(text + other)


def test_functions_of_the_standard_library_are_not_in_scope(tmp_path):
    import types
    import typing

    module = types.ModuleType("helpers")
    module.NamedTuple, module.twice = typing.NamedTuple, lambda x: x + x
    path = tmp_path / "mine.yaml"
    path.write_text(ONE.format("twice(self)", "NamedTuple(grad)"))
    with pytest.raises(TableError, match="unknown function 'NamedTuple'"):
        jaxgrad.ops.load(path, "scope_test", module)
    path.write_text(ONE.format("twice(self)", "twice(grad)"))
    assert jax.grad(jaxgrad.ops.load(path, "scope_test", module).op)(3.0) == 2
