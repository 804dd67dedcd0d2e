"""Formulas that are not linear in their gradients or tangents, which loading and `check` refuse."""

import jax
import jax.numpy as jnp
import pytest

import jaxgrad
from jaxgrad.cli import main
from jaxgrad.table import TableError

SQUARE = "- name: sq(Tensor self) -> Tensor\n  forward: self * self\n  self: {}\n"
LINEAR = "grad * 2 * self"
PRODUCT = (
    "- name: op(Tensor self, Tensor other) -> Tensor\n  forward: self * other\n"
    "  self: grad * other\n  other: grad * self\n  result: {}\n"
)
TWO = (
    "- name: op(Tensor self) -> (Tensor a, Tensor b)\n  forward: (self, self * 2)\n"
    "  self: {}\n  output_differentiability: [True, True]\n"
)


@pytest.fixture
def load(tmp_path):
    def load(text, **functions):
        (tmp_path / "mine.yaml").write_text(text)
        return jaxgrad.ops.load(tmp_path / "mine.yaml", "linear_test", functions)

    return load


@pytest.fixture
def mistake(load):
    def mistake(text, **functions):
        with pytest.raises(TableError) as caught:
            load(text, **functions)
        (mistake,) = caught.value.mistakes
        return mistake

    return mistake


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("grad.abs() * 2 * self", "for -grad it gives"),
        ("grad * grad * 2 * self", "for -grad it gives"),
        ("grad * 2 * self + 1", "for zeros it gives 1.0, not 0.0"),
        ("grad.relu() * 2 * self", "for -grad it gives"),
        ("grad.pow(3) * 2 * self", "for 1000 * grad it gives"),
        # linear for gradients of an ordinary size
        ("grad.clamp(-10, 10) * 2 * self", "for 1000 * grad it gives"),
        ("grad.round() * 2 * self", "it gives"),
        ("(grad + 1).log() * self", "it gives nan"),
        # for negative numbers of `self` alone, or positive ones
        ("(self > 0).where(grad, grad.abs()) * 2 * self", "for -grad it gives"),
        ("(self > 0).where(grad.abs(), grad) * 2 * self", "for -grad it gives"),
        # homogeneous, but not additive
        ("root(grad.pow(3).sum()) * self", "it gives"),
        # NaN for half of the gradients, or for half of the inputs
        ("grad.log() * self", "for zeros it gives -inf, and for grad"),
        ("grad.abs() * self.log()", "for -grad it gives"),
        ("grad.abs() * (self - 1).sqrt()", "for -grad it gives"),
    ],
)
def test_a_gradient_that_is_not_linear_is_refused(mistake, formula, message):
    refused = mistake(SQUARE.format(formula), root=jnp.cbrt)
    assert (refused.entry, refused.line, refused.column) == ("sq", 3, 9)
    assert f"the gradient of 'self', `{formula}`, is not linear in grad:" in refused.cause
    assert message in refused.cause


@pytest.mark.parametrize(
    "formula",
    ["grads[0] * grads[1]", "grads[0] + (grads[1] > 0) * grads[1]", "grad_a.abs() + grad_b"],
)
def test_a_gradient_is_linear_in_all_grads_together(mistake, load, formula):
    assert "is not linear in" in mistake(TWO.format(formula)).cause
    assert load(TWO.format("grads[0] + 2 * grads[1]"))


@pytest.mark.parametrize(
    "tangent",
    [
        "self_t * self_t * other_p + other_t",
        "self_t * other_t",
        "self_t * other_p + other_t.abs() * self_p",
        "self_t * other_p + other_t * self_p + 1e-3",
    ],
)
def test_a_tangent_that_is_not_linear_is_refused(mistake, tangent):
    refused = mistake(PRODUCT.format(tangent))
    assert (refused.entry, refused.line, refused.column) == ("op", 5, 11)
    said = f"the tangent of 'result', `{tangent}`, is not linear in the tangents:"
    assert said in refused.cause


def test_auto_linear_of_what_is_not_linear_is_refused(mistake):
    refused = mistake(SQUARE.format(LINEAR) + "  result: auto_linear\n")
    assert "the tangent of 'result', `auto_linear`, is not linear" in refused.cause


def test_a_number_with_a_default_hides_nothing(mistake):
    text = SQUARE.format("grad.pow(p) * 2 * self").replace("self)", "self, float p=1)")
    assert "is not linear in grad" in mistake(text).cause


def test_a_formula_of_complex_numbers_alone_is_checked(mistake):
    text = "- name: re(Tensor self) -> Tensor\n  forward: only_complex(self)\n  self: {}\n"

    def only_complex(x):
        if not jnp.iscomplexobj(x):
            raise TypeError("complex numbers only")
        return x * 2

    refused = mistake(text.format("grad * grad.conj()"), only_complex=only_complex)
    assert "is not linear in grad" in refused.cause


@pytest.mark.parametrize(
    "formula",
    [
        LINEAR,
        "grad.conj().conj() * 2 * self",
        "twice(grad) * self",
        "loop(grad) * self",
        "grad.cumsum(-1).flip(-1).cumsum(-1) * 0 + 2 * grad * self",
        "(self > 0).where(grad, grad * 1) * 2 * self",
        "grad * self.log() * 0 + 2 * grad * self",
        "single(grad) * 2 * self",
    ],
)
def test_what_is_linear_is_allowed(load, formula):
    def loop(x):
        # a loop, which JAX transposes only where it knows that it is linear
        return jax.lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, s[1] * 2), (1, x))[1]

    functions = {
        "twice": lambda x: jax.pure_callback(lambda y: y * 2, x, x),
        "loop": loop,
        "single": lambda x: x.astype(jnp.bfloat16).astype(x.dtype),
    }
    try:
        load(SQUARE.format(formula), **functions)
    except TableError as error:
        assert "is not linear" not in str(error)
        raise


def test_loading_a_plain_table_runs_nothing(load, monkeypatch):
    monkeypatch.setattr(jax, "jit", None)
    load(SQUARE.format(LINEAR) + PRODUCT.format("self_t * other_p + other_t * self_p"))


def test_the_command_refuses_it_too(tmp_path, capsys):
    path = tmp_path / "t.yaml"
    path.write_text(SQUARE.format("grad.abs() * 2 * self"))
    assert main(["check", str(path)]) == 1
    assert f"{path}:3:9: sq: the gradient of 'self', `grad.abs() * 2 * self`, is not linear" in (
        capsys.readouterr().out
    )


def test_an_operator_that_serves_fewer_shapes_than_its_value(mistake, load):
    text = "- name: dt(Tensor a, Tensor b) -> Tensor\n  forward: {}\n  a: grad * b\n  b: grad * a\n"
    with pytest.raises(TableError) as caught:
        load(text.format("a @ b"))
    for refused in caught.value.mistakes:
        assert "for torch.float32[2, 3], torch.float32[3]" in refused.cause
        assert "does not fit these shapes" in refused.cure
        assert "let forward refuse them" in refused.cure
        assert "`a.dot(b)`" in refused.cure
    assert load(text.format("a.dot(b)"))


@pytest.mark.parametrize("key", ["forward", "self", "result"])
def test_a_formula_that_decides_by_numbers_is_refused(mistake, key):
    values = {"forward": "self * 2", "self": "grad * 2", "result": "self_t * 2"}
    values[key] += f" if {'self' if key != 'result' else 'self_p'}.sum() > 0 else {values[key]}"
    text = "- name: op(Tensor self) -> Tensor\n"
    refused = mistake(text + "".join(f"  {name}: {value}\n" for name, value in values.items()))
    assert (refused.entry, refused.line) == ("op", 2 + [*values].index(key))
    assert f"`{values[key]}` decides by the numbers of a tensor" in refused.cause
    assert "where" in refused.cure
