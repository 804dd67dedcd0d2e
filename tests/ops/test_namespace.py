"""Operators by name, and tables loaded at run time."""

import importlib
import math
import subprocess
import sys
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxgrad as torch
from jaxgrad import ops, rules
from jaxgrad.ops.namespace import public_functions
from jaxgrad.table import TableError

CUBE = """
- name: cube(Tensor self, *, Scalar scale=1) -> Tensor
  self: 3 * scale * grad * self * self
  result: auto_element_wise
"""


def cube(self, *, scale=1):
    return self**3 * scale


def write(folder, text, name="mine.yaml"):
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("functions", [{"cube": cube}, types.SimpleNamespace(cube=cube)])
def test_a_table_of_ones_own(tmp_path, functions):
    loaded = ops.load(write(tmp_path, CUBE), namespace="own", functions=functions)
    assert ops.own is loaded
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    loaded.cube(x, scale=2.5).sum().backward()
    assert x.grad.tolist() == [7.5, 30]
    assert loaded.cube(x).grad_fn.name() == "CubeBackward0"
    np.testing.assert_allclose(jax.hessian(loaded.cube)(2.0), 12)
    np.testing.assert_allclose(
        jax.jit(jax.jacfwd(loaded.cube))(jnp.array([1.0, 2.0])), np.diag([3, 12])
    )
    assert torch.jit(lambda x: torch.autograd.grad(loaded.cube(x).sum(), x)[0])(x).tolist() == [
        3,
        12,
    ]


def test_the_dialect_of_early_pytorch(tmp_path):
    text = (
        "- name: scaled(Tensor self, Scalar factor, IntList dims)\n"
        "  forward: self * factor\n"
        "  self: grad * factor\n"
    )
    loaded = ops.load(write(tmp_path, text), namespace="old")
    x = torch.tensor(2.0, requires_grad=True)
    loaded.scaled(x, 7.0, [0]).backward()
    assert x.grad.item() == 7


@pytest.mark.slow
def test_a_table_may_call_shipped_operators_and_its_own(tmp_path):
    text = (
        "- name: twice_abs(Tensor self) -> Tensor\n  forward: doubled(self.abs())\n  self: "
        "grad.doubled() * self.sgn()\n"
        "- name: doubled(Tensor self) -> Tensor\n  forward: self * 2\n  self: grad * 2\n  result: "
        "auto_linear\n"
    )
    loaded = ops.load(write(tmp_path, text), namespace="calls")
    assert jax.grad(loaded.twice_abs)(-3.0) == -2
    assert jax.grad(jax.grad(loaded.twice_abs))(-3.0) == 0
    assert jax.grad(loaded.doubled)(1.0) == 2


def test_comparisons_of_ones_own_need_no_formula(tmp_path):
    text = "- name: above(Tensor self, Scalar bound) -> Tensor\n  forward: self > bound\n"
    loaded = ops.load(write(tmp_path, text), namespace="bare")
    result = loaded.above(torch.tensor([1.0, 3.0], requires_grad=True), 2)
    assert result.tolist() == [False, True] and not result.requires_grad


@pytest.mark.slow
@pytest.mark.parametrize(
    "forward", ["self * 2", "(self > 0, self * 2)", "jnp.linalg.cholesky(self.reshape((7, 7)))"]
)
def test_an_operator_of_floats_without_a_formula_is_a_mistake(tmp_path, forward):
    """Writing would lose its gradient, or might: no made-up argument has 49 elements."""
    path = write(tmp_path, f"- name: lost(Tensor self) -> Tensor\n  forward: {forward}\n")
    said = ":1:9: lost: it has no formula, but its outputs may be floating point; write a gradient"
    with pytest.raises(TableError, match=said):
        ops.load(path, namespace="lost")


def test_overloads_with_more_tensors_are_tried_first(tmp_path):
    """A tensor without dimensions stands for a number where no overload takes a tensor."""
    text = (
        "- name: plus.Scalar(Tensor self, Scalar other) -> Tensor\n  forward: self + other\n"
        "  self: grad\n"
        "- name: plus.Tensor(Tensor self, Tensor other) -> Tensor\n  forward: self + other\n"
        "  self: grad\n  other: grad\n"
    )
    loaded = ops.load(write(tmp_path, text), namespace="plus")
    x = torch.tensor(2.0, requires_grad=True)
    assert loaded.plus(x, x).grad_fn.name() == "PlusBackward1"
    assert loaded.plus(x, 2).grad_fn.name() == "PlusBackward0"


def test_mistakes_are_all_reported_and_nothing_is_changed(tmp_path):
    text = (
        "- name: first(Tensor self) -> Tensor\n  forward: self\n  self: grda\n"
        "- name: second(Tensor self, Tensor other) -> Tensor\n  forward: self\n  self: grad * "
        "slef\n"
    )
    path = write(tmp_path, text)
    with pytest.raises(TableError) as caught:
        ops.load(path, namespace="broken")
    places = [(m.line, m.column, m.entry) for m in caught.value.mistakes]
    assert (3, 9, "first") in places
    assert (6, 16, "second") in places
    assert any("'other'" in mistake.cause for mistake in caught.value.mistakes)
    assert not ops.has("broken")


@pytest.mark.parametrize("namespace", ["", "a-b", "_x", "add", "load", "2x"])
def test_namespaces_that_would_hide_something(tmp_path, namespace):
    with pytest.raises(ValueError, match="must be a name that no operator has"):
        ops.load(write(tmp_path, CUBE), namespace=namespace, functions={"cube": cube})


def test_a_table_does_not_replace_a_library(tmp_path):
    @torch.library.custom_op("shelf::one", mutates_args=())
    def one(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    path = tmp_path / "two.yaml"
    path.write_text("- name: two(Tensor self) -> Tensor\n  forward: self + 2\n  self: grad\n")
    for namespace in ("shelf", "aten"):
        with pytest.raises(ValueError, match=f"'{namespace}' is taken"):
            torch.ops.load(path, namespace)
    assert torch.ops.shelf.one(torch.ones(1)).item() == 2
    for _ in range(2):  # a table may be loaded again
        assert torch.ops.load(path, "shelf_too").two(torch.ones(1)).item() == 3


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        ops.load(tmp_path / "nowhere.yaml")


def test_shipped_operators_are_found_by_name():
    assert "mul" in dir(ops)
    with pytest.raises(AttributeError, match="no operator 'mull'"):
        ops.mull()
    with pytest.raises(AttributeError, match="no attribute 'mull'"):
        torch.mull  # noqa: B018


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: torch.sin(), r"sin\(\): missing argument 'self'"),
        (lambda x: torch.sin(x, x), r"sin\(\): takes 1 positional argument but 2 were given"),
        (lambda x: torch.sin(x, y=1), r"sin\(\): got an unexpected keyword argument 'y'"),
        (
            lambda x: torch.sin("x"),
            r"sin\(\): argument 'input' \(position 1\) must be Tensor, not str",
        ),
        (
            lambda x: torch.mul(x, "y"),
            r"mul\(\) received an invalid combination of arguments - got \(Tensor, str\)",
        ),
        (lambda x: x + "y", r"unsupported operand type\(s\) for \+: 'Tensor' and 'str'"),
        (
            lambda x: torch.add(x, x, alpha=torch.ones((), requires_grad=True)),
            "its gradient would be lost",
        ),
    ],
)
def test_calls_that_no_schema_fits(call, words):
    with pytest.raises(TypeError, match=words):
        call(torch.ones(2))


def test_kernels_are_shared_between_numbers():
    """A new number compiles nothing; another static argument does."""
    x = torch.ones(7, 3)
    x * 10.5
    plans = torch.mul.operator.plans
    before = len(plans)
    for number in (11.5, 12.5, float("inf"), -1e30):
        np.testing.assert_array_equal((x * number).numpy(), np.full((7, 3), number, np.float32))
    assert len(plans) == before
    assert (x * 2).tolist() == (x * 2.0).tolist() == [[2.0] * 3] * 7
    assert (torch.ones(2, dtype=torch.int64) * 2).dtype is torch.int64
    assert (torch.ones(2, dtype=torch.int64) * 2.0).dtype is torch.float32


@pytest.mark.parametrize(
    "call",
    [
        lambda x, zero: x * zero,
        lambda x, zero: torch.where(x > 0, zero, x),
        lambda x, zero: torch.nn.functional.pad(x, (1, 0), value=zero),
        lambda x, zero: torch.add(-x * 0, x, alpha=zero),
        lambda x, zero: x.to(torch.complex64).mul(complex(zero, 1)).real,
    ],
)
def test_zeros_of_both_signs_are_two_numbers(call):
    for zero in (0.0, -0.0, 0.0):
        result = call(torch.ones(1), zero).tolist()[0]
        assert math.copysign(1, result) == math.copysign(1, zero)


def test_numbers_in_either_order_of_keywords():
    x = torch.tensor([0.0, 5.0, 10.0])
    for low, high in ((4.0, 4.0), (3.5, 7.5), (1.25, 2.25)):
        expected = np.clip([0.0, 5.0, 10.0], low, high)
        np.testing.assert_array_equal(torch.clamp(x, max=high, min=low).numpy(), expected)
        np.testing.assert_array_equal(torch.clamp(x, min=low, max=high).numpy(), expected)


def test_no_two_families_define_a_function_of_one_name():
    """One function would hide the other from every formula."""
    families = [importlib.import_module(f"jaxgrad.rules.{name}") for name in rules.FAMILIES]
    names = [name for family in families for name in public_functions(family)]
    assert sorted(names) == sorted(set(names)) == sorted(rules.Functions())


# views and in-place operators of a user's table

EVENS = """
- name: evens(Tensor(a) self) -> Tensor(a)
  {}
  self: spread_evens(grad, self.shape)
"""


def evens(self):
    return self[::2]


def spread_evens(grad, shape):
    return jnp.zeros(shape, grad.dtype).at[::2].set(grad)


def set_evens(self, value):
    return self.at[::2].set(value)


EVENS_FUNCTIONS = {"evens": evens, "spread_evens": spread_evens, "set_evens": set_evens}


def test_a_view_of_ones_own_is_written_through(tmp_path):
    table = write(tmp_path, EVENS.format("write: set_evens(self, value)"))
    loaded = ops.load(table, namespace="views", functions=EVENS_FUNCTIONS)
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 1
    view = loaded.evens(y)
    view.mul_(y.detach()[1])
    assert y.tolist() == [2, 2, 6] and view._base is y
    (y * torch.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [2, 10, 200]


def test_a_view_of_a_part_without_write_refuses_writes(tmp_path):
    table = write(tmp_path, EVENS.format("result: auto_linear"))
    loaded = ops.load(table, namespace="unwritten", functions=EVENS_FUNCTIONS)
    x = torch.zeros(4)
    with pytest.raises(NotImplementedError, match=r"evens .*write:"):
        loaded.evens(x).add_(1)
    assert x.tolist() == [0, 0, 0, 0]


def test_an_in_place_form_of_ones_own_operator(tmp_path):
    loaded = ops.load(write(tmp_path, CUBE), namespace="placed", functions={"cube": cube})
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    assert loaded.cube_(y, scale=2.0) is y and y.tolist() == [2, 16]
    y.sum().backward()
    assert x.grad.tolist() == [6, 24]


def test_an_in_place_entry_of_its_own(tmp_path):
    text = CUBE + (
        "- name: root(Tensor self) -> Tensor\n  forward: self.sqrt()\n  self: grad * 100\n"
        "- name: root_(Tensor(a!) self) -> Tensor(a!)\n  forward: self.sqrt()\n"
        "  self: grad / (2 * result)\n"
    )
    loaded = ops.load(write(tmp_path, text), namespace="roots", functions={"cube": cube})
    x = torch.tensor([4.0, 16.0], requires_grad=True)
    y = x * 1
    loaded.root_(y).sum().backward()
    assert y.tolist() == [2, 4] and x.grad.tolist() == [0.25, 0.125]
    loaded.root(x).sum().backward()
    assert x.grad.tolist() == [100.25, 100.125]


def test_what_has_no_in_place_form():
    for name in ("sum_", "matmul_", "view_", "nothing_"):
        assert not hasattr(torch.zeros(2), name) and not ops.has(name)


def test_a_tensor_in_the_place_of_a_number_is_read_at_each_call():
    x = torch.ones(2)
    results = [torch.add(x, x, alpha=torch.tensor(alpha)).tolist() for alpha in (1.0, 5.0, 0.5)]
    assert results == [[2, 2], [6, 6], [1.5, 1.5]]
    with pytest.raises(TypeError, match="gradient would be lost"):
        torch.add(x, x, alpha=torch.ones((), requires_grad=True))


def test_a_namespace_without_operators_is_asked_by_hasattr(tmp_path):
    """Programs look so for a library that may not be installed."""
    space = ops.not_installed
    assert not hasattr(space, "nms") and not ops.has("not_installed")
    with pytest.raises(AttributeError, match="'_OpNamespace' 'not_installed' object has no attr"):
        space.nms(torch.ones(2))
    with pytest.raises(AttributeError, match="no operator 'sine'"):
        ops.sine(torch.ones(2))
    text = "- name: nms(Tensor self) -> Tensor\n  forward: self\n  self: grad\n"
    ops.load(write(tmp_path, text), namespace="not_installed")
    assert space.nms(torch.tensor(2.0)).item() == 2 and hasattr(space, "nms")


def test_a_module_of_the_package_is_no_namespace():
    code = "from jaxgrad.ops import cards; print(cards.names()[:1])"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert child.stdout.startswith("['"), child.stderr
