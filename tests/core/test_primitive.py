"""Rules as primitives: which formula each transformation uses, and every nesting of them against
JAX's own derivatives.
"""

import itertools
import pathlib
import traceback

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxgrad
from jaxgrad.core import promotion

TABLE = """
# the value is 2 x; the reverse formula says 7, the forward formula 5: each shows who was asked
- name: told(Tensor self) -> Tensor
  forward: self * 2
  self: grad * 7
  result: self_t * 5

- name: reverse_only(Tensor self) -> Tensor
  forward: lax.sin(self)
  self: grad * self.cos()

- name: host_reverse(Tensor self) -> Tensor
  forward: lax.sin(self)
  self: opaque(grad * self.cos())

- name: automatic(Tensor self, Tensor other) -> Tensor
  forward: lax.sin(self) * other
  self: auto
  other: auto
  result: auto

- name: by_hand(Tensor self, Tensor other) -> Tensor
  forward: lax.sin(self) * other
  self: grad * self.cos() * other
  other: grad * self.sin()
  result: self_t * self_p.cos() * other_p + other_t * self_p.sin()

- name: pair(Tensor self, Tensor other) -> (Tensor product, Tensor total)
  forward: (self * other, self + other)
  self: grad_product * other + grad_total
  other: grad_product * self + grad_total
  product: self_t * other_p + self_p * other_t
  total: self_t + other_t

- name: joined(Tensor[] tensors) -> Tensor
  tensors: parts(grad, tensors)
  result: auto_linear

- name: parted(Tensor self) -> Tensor[]
  self: gathered(grads, self)

- name: masked(Tensor self, Tensor other) -> Tensor
  forward: self * other
  self, other: both(grad, self, other, grad_input_mask)
  result: self_t * other_p + self_p * other_t

- name: half_done(Tensor self, Tensor other) -> Tensor
  forward: self * other
  self: not_implemented("nobody has derived it")
  other: zeros
  result: not_implemented("nor this")

- name: with_index(Tensor self, Tensor index) -> (Tensor value, Tensor where)
  output_differentiability: [True, False]
  forward: (self * 3, index + 1)
  self: grad * 3
  index: non_differentiable
  value: self_t * 3
"""


def joined(tensors):
    return jnp.concatenate(tensors)


def parts(grad, tensors):
    return jnp.split(grad, np.cumsum([tensor.shape[0] for tensor in tensors])[:-1])


def parted(self):
    first, second = self
    return [first, second * 2]


def both(grad, self, other, mask):
    masks_seen.append(mask)
    return (grad * other if mask[0] else None), (grad * self if mask[1] else None)


@jax.custom_vjp
def opaque(gradient):
    return gradient


opaque.defvjp(lambda gradient: (gradient, None), lambda _, cotangent: (cotangent,))
masks_seen = []


@pytest.fixture(scope="module")
def my(tmp_path_factory):
    table = pathlib.Path(tmp_path_factory.mktemp("table"), "rules.yaml")
    table.write_text(TABLE)
    functions = {
        "joined": joined,
        "parts": parts,
        "parted": parted,
        "gathered": lambda grads, self: jnp.stack([grads[0], 2 * grads[1]]),
        "both": both,
        "opaque": opaque,
    }
    return jaxgrad.ops.load(table, namespace="primitive_test", functions=functions)


def scanned(function):
    """The function twice, one after the other, in a loop of JAX."""
    return lambda x: jax.lax.scan(lambda carry, _: (function(carry), None), x, None, length=2)[0]


TRANSFORMED = {
    "grad": (7, lambda f: jax.grad(f)(1.0)),
    "value_and_grad": (7, lambda f: jax.value_and_grad(f)(1.0)[1]),
    "vjp": (7, lambda f: jax.vjp(f, 1.0)[1](1.0)[0]),
    "jacrev": (7, lambda f: jax.jacrev(f)(1.0)),
    "jvp": (5, lambda f: jax.jvp(f, (1.0,), (1.0,))[1]),
    "jacfwd": (5, lambda f: jax.jacfwd(f)(1.0)),
    "linearize": (5, lambda f: jax.linearize(f, 1.0)[1](1.0)),
    "linear_transpose of linearize": (
        7,
        lambda f: jax.linear_transpose(jax.linearize(f, 1.0)[1], 1.0)(1.0)[0],
    ),
    "vmap of grad": (7, lambda f: jax.vmap(jax.grad(f))(jnp.ones(3))[1]),
    "grad of vmap": (7, lambda f: jax.grad(lambda x: jax.vmap(f)(x).sum())(jnp.ones(3))[1]),
    "vmap of jvp": (5, lambda f: jax.vmap(lambda x: jax.jvp(f, (x,), (1.0,))[1])(jnp.ones(3))[1]),
    "jvp of vmap": (5, lambda f: jax.jvp(jax.vmap(f), (jnp.ones(3),), (jnp.ones(3),))[1][1]),
    "jit of grad": (7, lambda f: jax.jit(jax.grad(f))(1.0)),
    "grad of jit": (7, lambda f: jax.grad(jax.jit(f))(1.0)),
    "jit of jvp": (5, lambda f: jax.jit(lambda x: jax.jvp(f, (x,), (1.0,))[1])(1.0)),
    "grad of checkpoint": (7, lambda f: jax.grad(jax.checkpoint(f))(1.0)),
    "jvp of checkpoint": (5, lambda f: jax.jvp(jax.checkpoint(f), (1.0,), (1.0,))[1]),
    "grad of scan": (49, lambda f: jax.grad(scanned(f))(1.0)),
    "jvp of scan": (25, lambda f: jax.jvp(scanned(f), (1.0,), (1.0,))[1]),
    "grad of cond": (7, lambda f: jax.grad(lambda x: jax.lax.cond(x > 0, f, f, x))(1.0)),
    "grad of two": (49, lambda f: jax.grad(lambda x: f(f(x)))(1.0)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TRANSFORMED)
def test_each_transformation_uses_its_formula(my, name):
    expected, transform = TRANSFORMED[name]
    assert transform(my.told) == expected


@pytest.mark.slow
def test_which_formula_on_the_tape(my):
    x = jaxgrad.tensor(1.0, requires_grad=True)
    my.told(x).backward()
    assert x.grad.item() == 7
    assert my.told(x).item() == 2


SQUARES = {"rev": jax.jacrev, "fwd": jax.jacfwd}
NESTINGS = [nesting for order in (1, 2, 3) for nesting in itertools.product(SQUARES, repeat=order)]
POINT = jnp.array([0.3, 1.2])


def nested(function, nesting):
    for mode in reversed(nesting):
        function = SQUARES[mode](function)
    return function


def close(ours, theirs):
    # three derivatives of sines in float32
    np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-6)


def functions_of(my):
    """Functions of one array, ours and JAX's."""
    return {
        "sin": (jaxgrad.ops.sin, jnp.sin),
        "products": (
            lambda x: jaxgrad.ops.mul(jaxgrad.ops.exp(x), jaxgrad.ops.sin(x)),
            lambda x: jnp.exp(x) * jnp.sin(x),
        ),
        "derived forward": (lambda x: my.reverse_only(x) * x, lambda x: jnp.sin(x) * x),
        "auto": (lambda x: my.automatic(x, x * x), lambda x: jnp.sin(x) * x * x),
        "by hand": (lambda x: my.by_hand(x, x * x), lambda x: jnp.sin(x) * x * x),
        "two outputs": (
            lambda x: my.pair(x, jnp.sin(x))[0] * my.pair(x, x * x)[1],
            lambda x: x * jnp.sin(x) * (x + x * x),
        ),
        "list in": (
            lambda x: my.joined([x, x * x])[1:3],
            lambda x: jnp.concatenate([x, x * x])[1:3],
        ),
        "list out": (
            lambda x: jnp.stack(my.parted(x * x)),
            lambda x: jnp.stack([x[0] ** 2, 2 * x[1] ** 2]),
        ),
    }


# the third order takes half a minute
BY_ORDER = [
    pytest.param(n, id="-".join(n), marks=[pytest.mark.slow] if len(n) == 3 else [])
    for n in NESTINGS
]


@pytest.mark.slow
@pytest.mark.parametrize("nesting", BY_ORDER)
@pytest.mark.parametrize("name", functions_of(None))
def test_nestings_of_transformations_equal_jax(my, name, nesting):
    ours, theirs = functions_of(my)[name]
    close(jax.jit(nested(ours, nesting))(POINT), jax.jit(nested(theirs, nesting))(POINT))


@pytest.mark.slow
def test_nestings_without_jit(my):
    ours, theirs = functions_of(my)["by hand"]
    for nesting in NESTINGS[:6]:
        close(nested(ours, nesting)(POINT), nested(theirs, nesting)(POINT))


@pytest.mark.slow
@pytest.mark.parametrize("nesting", BY_ORDER)
def test_nestings_inside_and_outside_vmap(my, nesting):
    ours, theirs = functions_of(my)["by hand"]
    points = jnp.stack([POINT, POINT * 2, POINT - 1])
    for order in (lambda f: jax.vmap(nested(f, nesting)), lambda f: nested(jax.vmap(f), nesting)):
        close(jax.jit(order(ours))(points), jax.jit(order(theirs))(points))


@pytest.mark.slow
def test_grad_inside_checkpoint_and_scan_to_second_order(my):
    def ours(x):
        return jax.grad(jax.checkpoint(scanned(lambda y: my.by_hand(y, x))))(x)

    def theirs(x):
        return jax.grad(jax.checkpoint(scanned(lambda y: jnp.sin(y) * x)))(x)

    close(jax.grad(ours)(0.7), jax.grad(theirs)(0.7))
    close(jax.jvp(ours, (0.7,), (1.0,))[1], jax.jvp(theirs, (0.7,), (1.0,))[1])


@pytest.mark.slow
def test_complex_follows_jax_inside_jax_and_torch_on_the_tape():
    z = 3 + 4j

    def ours(z):
        return jaxgrad.ops.real(jaxgrad.ops.mul(z, jaxgrad.ops.conj(z)))

    assert jax.grad(ours)(jnp.complex64(z)) == jax.grad(lambda z: (z * z.conj()).real)(z) == 6 - 8j
    x = jaxgrad.tensor(z, requires_grad=True)
    (x * x.conj()).real.backward()
    assert x.grad.item() == 6 + 8j


@pytest.mark.slow
@pytest.mark.parametrize("nesting", [n for n in NESTINGS if len(n) < 3], ids="-".join)
def test_nestings_of_transformations_of_complex_numbers_equal_jax(nesting):
    def parts_of(function):
        return lambda x: (lambda z: jnp.stack([z.real, z.imag]))(function(x + 1j * x[::-1]))

    ours = parts_of(lambda z: jaxgrad.ops.mul(jaxgrad.ops.exp(z), jaxgrad.ops.sin(z)))
    theirs = parts_of(lambda z: jnp.exp(z) * jnp.sin(z))
    close(nested(ours, nesting)(POINT), nested(theirs, nesting)(POINT))


def test_mask_names_the_inputs_that_need_a_gradient(my):
    masks_seen.clear()
    jax.grad(my.masked)(2.0, 3.0)
    jax.grad(my.masked, argnums=1)(2.0, 3.0)
    assert set(masks_seen) == {(True, False), (False, True)}


def test_saved_by_need(my):
    x = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
    y = jaxgrad.tensor([3.0, 4.0])
    assert [len(jaxgrad.ops.mul(*pair).grad_fn.saved) for pair in ((x, y), (x, x))] == [1, 2]
    assert len((x + y).grad_fn.saved) == 0
    assert len(x.sum().grad_fn.saved) == 0, "a sum needs the shape alone"
    (saved,) = x.exp().grad_fn.saved
    np.testing.assert_allclose(saved, np.exp([1, 2]), rtol=1e-6)


def test_output_differentiability_marks_constant_outputs(my):
    x = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
    value, where = my.with_index(x, jaxgrad.tensor([1.0, 2.0]))
    assert value.requires_grad
    assert not where.requires_grad
    value.sum().backward()
    assert x.grad.tolist() == [3, 3]
    tangents = jax.jvp(lambda x: my.with_index(x, x), (POINT,), (POINT,))[1]
    np.testing.assert_array_equal(tangents[1], [0, 0])


def test_not_implemented_names_operator_input_and_mode(my):
    with pytest.raises(
        NotImplementedError, match=r"'half_done' with respect to 'self' .* reverse mode: nobody has"
    ):
        jax.grad(my.half_done)(1.0, 2.0)
    with pytest.raises(NotImplementedError, match=r"'half_done' .* forward mode: nor this"):
        jax.jvp(my.half_done, (1.0, 2.0), (1.0, 1.0))
    x = jaxgrad.tensor(1.0, requires_grad=True)
    y = my.half_done(x, x)
    with pytest.raises(NotImplementedError, match="'half_done' with respect to 'self'"):
        y.backward()
    assert jax.grad(my.half_done, argnums=1)(1.0, 2.0) == 0


def test_reverse_serves_where_forward_cannot_be_derived(my):
    np.testing.assert_allclose(jax.grad(my.host_reverse)(0.3), np.cos(0.3), rtol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.grad(my.host_reverse))(0.3), np.cos(0.3), rtol=1e-6)


@pytest.mark.slow
def test_broadcast_cast_and_realify_are_shared():
    with jax.enable_x64(True):
        row, column = jnp.ones((1, 3), jnp.float32), jnp.ones((2, 1), jnp.float64)
        grads = jax.grad(lambda a, b: jaxgrad.ops.mul(a, b).sum(), argnums=(0, 1))(row, column)
        assert [(g.shape, str(g.dtype)) for g in grads] == [
            ((1, 3), "float32"),
            ((2, 1), "float64"),
        ]
        np.testing.assert_array_equal(grads[0], [[2, 2, 2]])
        np.testing.assert_array_equal(grads[1], [[3], [3]])
        real = jax.grad(lambda a: jaxgrad.ops.real(jaxgrad.ops.mul(a, 2j) * 1j).sum())(jnp.ones(2))
        np.testing.assert_array_equal(real, [-2, -2])


class Later:
    """A helper that fails only once it is armed, so that the table loads."""

    def __init__(self, mischief):
        self.mischief, self.armed = mischief, False

    def __call__(self, grad):
        return self.mischief(grad) if self.armed else grad


def load_helped(path, helper):
    """An operator whose gradient goes through `helper`."""
    path.write_text(
        "- name: helped(Tensor self) -> Tensor\n  forward: self * 1\n  self: helper(grad)\n"
    )
    loaded = jaxgrad.ops.load(path, namespace="helped_test", functions={"helper": helper})
    return loaded.helped


def test_a_gradient_of_the_wrong_shape_says_so(tmp_path):
    helper = Later(lambda grad: jnp.concatenate([grad, grad]))
    helped = load_helped(tmp_path / "wrong.yaml", helper)
    helper.armed = True
    with pytest.raises(
        RuntimeError, match=r"helped \(.*wrong.yaml:1\), self: .* shape \[4\] where \[2\] is wanted"
    ):
        jax.grad(lambda x: helped(x).sum())(jnp.ones(2))


def test_abstract_evaluation_finds_wrong_shapes_at_loading(tmp_path):
    def transposed(grad):
        return jnp.swapaxes(grad, 0, -1)

    with pytest.raises(
        jaxgrad.table.TableError,
        match=r"wrong.yaml:3:9: helped: the gradient of 'self' .* \[3, 2\]",
    ):
        load_helped(tmp_path / "wrong.yaml", transposed)


def test_a_traceback_shows_the_line_of_the_table(tmp_path):
    def fail(grad):
        raise ArithmeticError("from the helper")

    helper, table = Later(fail), tmp_path / "raises.yaml"
    helped = load_helped(table, helper)
    helper.armed = True
    with pytest.raises(ArithmeticError) as caught:
        jax.grad(helped)(1.0)
    printed = "".join(traceback.format_exception(caught.value))
    assert f'File "{table}", line 3, in helped.self\n    self: helper(grad)' in printed


@pytest.mark.slow
def test_x64_operands_keep_their_dtype(my):
    with jax.enable_x64(True):
        x = jnp.array([0.3, 1.2], jnp.float64)
        hessian = jax.hessian(lambda x: my.by_hand(x, x).sum())(x)
        expected = jax.hessian(lambda x: (jnp.sin(x) * x).sum())(x)
    assert hessian.dtype == jnp.float64
    np.testing.assert_allclose(hessian, expected, rtol=1e-13)


@pytest.mark.slow
def test_promotion_is_torchs_in_both_worlds():
    assert (
        jaxgrad.ops.mul(jnp.ones(2, jnp.bfloat16), jnp.ones((), jnp.float32)).dtype == jnp.bfloat16
    )
    assert (
        promotion.result_type(jnp.ones(2, jnp.bfloat16), jnp.ones((), jnp.float32)).name
        == "bfloat16"
    )
