"""jaxgrad.jit: one program for each kind of arguments, with the results of the eager function."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxgrad as torch
from jaxgrad.core import dtypes
from jaxgrad.tape.tensor import wrap


def leaf(*values, dtype=None):
    return torch.tensor(list(values), dtype=dtype, requires_grad=True)


def step(weights, x):
    """A step of gradient descent on |w x - 1|^2."""
    loss = ((weights["w"] * x + weights["b"] - 1) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        return {name: (w - 0.1 * w.grad).requires_grad_() for name, w in weights.items()}, loss


def reference(weights, x):
    def loss(weights):
        return ((weights["w"] * x + weights["b"] - 1) ** 2).mean()

    value, gradients = jax.value_and_grad(loss)(weights)
    return {name: w - 0.1 * gradients[name] for name, w in weights.items()}, value


@pytest.mark.slow
@pytest.mark.unverified
def test_a_step_with_backward_equals_jax():
    compiled, x = torch.jit(step), torch.tensor([1.0, 2.0, 3.0])
    weights = {"w": leaf(0.5, 0.2, -1.0), "b": leaf(0.0)}
    plain = {"w": jnp.array([0.5, 0.2, -1.0]), "b": jnp.array([0.0])}
    for _ in range(5):
        weights, loss = compiled(weights, x)
        plain, value = reference(plain, jnp.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(loss.item(), value, rtol=1e-5)
    for name, weight in weights.items():
        assert weight.requires_grad
        assert weight.is_leaf
        np.testing.assert_allclose(weight.detach().numpy(), plain[name], rtol=1e-6)
    assert compiled.count == 1


@pytest.mark.unverified
def test_a_trace_for_each_kind_of_arguments():
    @torch.jit
    def double(x, twice=True):
        return x * 2 if twice else x

    for argument in (
        torch.ones(2),
        torch.zeros(2),
        torch.ones(3),
        torch.ones(2, dtype=torch.int64),
    ):
        double(argument)
    assert double.count == 3
    assert double(torch.ones(2), twice=False).tolist() == [1, 1]
    double(torch.ones(2, requires_grad=True))
    with torch.no_grad():
        double(torch.ones(2))
    assert double.count == 6


def test_equal_calls_share_one_program():
    text = torch.jit(step).lower({"w": leaf(1.0, 2.0), "b": leaf(0.0)}, torch.ones(2)).as_text()
    assert text.count("module @") == 1
    assert "custom_call" not in text
    assert text.count("func.func private") == 1, "the equations, with no kernel inside the kernel"


@pytest.mark.parametrize("name", ["float64", "int64", "complex128", "float16", "bfloat16", "bool"])
def test_dtypes_are_kept(name):
    dtype = getattr(dtypes, name)
    x = torch.ones(3, dtype=dtype)
    assert torch.jit(lambda x: x)(x).dtype is dtype
    assert torch.jit(lambda x: x.sum())(x).dtype is x.sum().dtype
    assert torch.jit(lambda x: x == x)(x).dtype is torch.bool


def test_float64_is_computed_in_float64():
    x = leaf(0.1, 0.7, dtype=torch.float64)

    @torch.jit
    def gradient(x):
        return torch.autograd.grad((x.sin() * x.exp()).sum(), x)

    with jax.enable_x64(True):
        expected = jax.grad(lambda x: (jnp.sin(x) * jnp.exp(x)).sum())(jnp.array([0.1, 0.7]))
    np.testing.assert_allclose(gradient(x)[0].numpy(), expected, rtol=1e-15)


@pytest.mark.slow
def test_higher_order_inside():
    @torch.jit
    def third(x):
        for _ in range(2):
            (x_,) = torch.autograd.grad(value(x), x, create_graph=True)
            break
        (second,) = torch.autograd.grad(x_.sum(), x, create_graph=True)
        return torch.autograd.grad(second.sum(), x)[0]

    def value(x):
        return (x.sin() * x * x).sum()

    point = [0.3, 1.2]
    f = jax.grad(lambda x: jnp.sin(x) * x * x)
    expected = jax.vmap(jax.grad(jax.grad(f)))(jnp.array(point))
    np.testing.assert_allclose(third(leaf(*point)).numpy(), expected, rtol=1e-5)


def test_trees_come_back_and_gradients_are_accumulated():
    x = leaf(1.0, 2.0)

    @torch.jit
    def tree(arguments, flag, *, name):
        (arguments["x"] * 3).sum().backward()
        return {"grad": [arguments["x"].grad, None], "name": (name, flag), "jax": jnp.ones(2)}

    result = tree({"x": x}, True, name="here")
    assert result["grad"][0].tolist() == [3, 3]
    assert result["grad"][1] is None
    assert result["name"] == ("here", True)
    assert isinstance(result["jax"], jax.Array)
    assert x.grad is result["grad"][0]
    assert tree({"x": x}, True, name="here")["grad"][0] is x.grad
    assert x.grad.tolist() == [6, 6]


def test_random_data_of_jax_arrays():
    doubled = torch.jit(lambda x: x * 2)(jnp.arange(3.0))
    assert isinstance(doubled, jax.Array)
    assert doubled.tolist() == [0, 2, 4]


@pytest.mark.unverified
def test_donated_memory_is_given_up():
    step = torch.jit(lambda state, x: state + x, donate="state")
    state, x = torch.ones(1000), torch.ones(1000)
    result = step(state, x)
    assert state._array.is_deleted()
    assert not x._array.is_deleted()
    assert result.sum().item() == 2000
    kept = torch.ones(3)
    torch.jit(lambda state, x: state + x)(kept, kept)
    assert kept.tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match=r"donate='stat'.*\['state', 'x'\]"):
        torch.jit(lambda state, x: state, donate="stat")


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x.item(),
        bool,
        float,
        lambda x: x.numpy(),
        lambda x: x.tolist(),
        lambda x: 1 if x > 0 else 2,
    ],
)
def test_reading_numbers_says_what_to_do(read):
    with pytest.raises(RuntimeError, match=r"being traced.*jaxgrad.where"):
        torch.jit(read)(torch.tensor(1.0))


def test_the_gradient_of_a_leaf_from_outside():
    outside = leaf(1.0, 2.0)
    step = torch.jit(lambda x: (x * outside).sum().backward())
    for count in (1, 2, 3):
        step(leaf(3.0, 4.0))
        assert outside.grad.tolist() == [3 * count, 4 * count]
    assert len(step.traces) == 2  # one program while there is no gradient yet


def test_a_result_is_differentiated_from_outside():
    x, weight = leaf(1.0, 2.0), leaf(3.0, 4.0)
    square = torch.jit(lambda x: (x * x * weight).sum())
    for _ in range(2):
        loss = square(x)
        assert loss.requires_grad and loss.item() == 19
        loss.backward()
    assert x.grad.tolist() == [12, 32] and weight.grad.tolist() == [2, 8]
    (first,) = torch.autograd.grad(square(x), x, create_graph=True)
    assert torch.autograd.grad(first.sum(), [x, weight])[0].tolist() == [6, 8]
    assert len(square.traces) == 1


def test_an_unhashable_argument_is_refused():
    with pytest.raises(TypeError, match="neither a tensor nor hashable"):
        torch.jit(lambda x, y: x)(torch.ones(2), bytearray(2))
    with pytest.raises(TypeError, match="Make a NumPy array a tensor"):
        torch.jit(lambda x, y: x)(torch.ones(2), np.ones(2))


def test_jit_as_a_method_and_with_arguments():
    class Model:
        def __init__(self):
            self.scale = 3.0

        @torch.jit
        def __call__(self, x):
            return x * self.scale

    assert Model()(torch.ones(2)).tolist() == [3, 3]
    assert torch.jit(donate=0)(lambda x: x + 1)(torch.ones(2)).tolist() == [2, 2]


@pytest.mark.slow
def test_jit_inside_jax_transformations():
    """Called on another trace's tracers, the function is part of that trace and keeps its rules."""
    function = torch.jit(lambda x: torch.abs(x).sum())
    assert jax.grad(function)(jnp.array([-2.0, 0.0])).tolist() == [-1, 0]
    assert jax.jit(jax.vmap(function))(jnp.ones((2, 3))).tolist() == [3, 3]


def test_jax_grad_inside_a_compiled_function_uses_the_rules():
    """JAX differentiates there, so values are not bare: |x| has PyTorch's derivative at 0."""

    @torch.jit
    def gradient(x):
        return jax.grad(lambda array: torch.ops.abs(array).sum())(x._array)

    assert gradient(torch.tensor([0.0, -1.0])).tolist() == [0, -1]


def test_configuration_of_jax_is_as_it_was():
    before = jax.config.jax_enable_x64
    torch.jit(lambda x: x + 1)(torch.ones(2, dtype=torch.float64))
    assert jax.config.jax_enable_x64 is before


def test_what_has_no_name_is_compiled():
    scaled = functools.partial(lambda factor, x: x * factor, 3.0)
    assert torch.jit(scaled)(torch.ones(2)).tolist() == [3.0, 3.0]
    assert "partial" in repr(torch.jit(scaled))


def test_a_number_that_is_read_within_vmap_is_read_at_each_call():
    rate = [2.0]
    scaled = torch.jit(
        lambda x: torch.func.vmap(lambda y: y * torch.tracing.number(lambda: rate[0]))(x)
    )
    assert scaled(torch.ones(2)).tolist() == [2, 2]
    rate[0] = 3.0
    assert scaled(torch.ones(2)).tolist() == [3, 3] and scaled.count == 1


def test_a_tensor_made_on_the_default_device_by_name_is_of_the_same_kind():
    compiled = torch.jit(lambda x: x + 1)
    for ones in (torch.ones(3), torch.ones(3, device="cpu"), torch.tensor([1.0] * 3, device="cpu")):
        assert compiled(ones).tolist() == [2, 2, 2]
        assert not ones._array.committed  # otherwise JAX would compile again for it


@pytest.mark.parametrize(
    "look", [lambda x: x.item(), lambda x: bool(x > 0), lambda x: x.numpy(), lambda x: f"{x:.2f}"]
)
def test_who_looks_at_what_is_traced_is_told_where(look):
    line = look.__code__.co_firstlineno
    with pytest.raises(RuntimeError, match=rf"needs the numbers .*test_jit.py:{line}\b"):
        torch.jit(lambda x: look(x) and x)(torch.tensor(2.0))


def test_explain_tells_where_an_argument_was_given():
    double = torch.jit(lambda x: x * 2)
    double(torch.ones(2))
    double(torch.ones(2, requires_grad=True))
    assert "test_jit.py:" in double.explain()


@dataclasses.dataclass
class Batch:
    x: torch.Tensor
    rest: dict
    name: str = "batch"
    sums: list = dataclasses.field(init=False, default_factory=list)


def test_dataclasses_of_tensors_are_arguments_and_results():
    def double(batch):
        doubled = Batch(batch.x * 2, {"inner": Batch(batch.rest["y"] * 3, {})}, batch.name)
        doubled.sums.append(batch.x.sum())
        return doubled

    compiled = torch.jit(double)
    for call in range(3):
        result = compiled(Batch(torch.ones(2) * call, {"y": torch.ones(1)}, "mine"))
        assert (result.x.tolist(), result.rest["inner"].x.tolist()) == ([2.0 * call] * 2, [3.0])
        assert type(result) is Batch and result.name == "mine" and result.sums[0].item() == 2 * call
    assert compiled.count == 1
    weight = leaf(2.0)
    loss = torch.jit(lambda x: Batch((x * weight).sum(), {}))(torch.ones(1)).x
    loss.backward()
    assert weight.grad.tolist() == [1]


def test_dataclasses_without_tensors_are_constants():
    @dataclasses.dataclass(frozen=True)
    class Config:
        factor: int

    compiled = torch.jit(lambda x, config: x * config.factor)
    for factor in (2, 3, 2):
        assert compiled(torch.ones(1), Config(factor)).item() == factor
    assert compiled.count == 2


def doubles(*values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


@pytest.mark.row("edge_40")
def test_a_step_with_a_hook_equals_the_eager_one():
    seen = []

    def step(w, x):
        w = w.detach().requires_grad_()
        hidden = (w * x).sin()
        hidden.register_hook(lambda g: seen.append(type(g)) or g * 2)
        hidden.sum().backward()
        return w.grad, (w - 0.1 * w.grad).detach()

    compiled = torch.jit(step)
    w = doubles(1.0, 2.0).detach()
    for scale in (1.0, 2.0, 3.0):
        x = doubles(scale, scale).detach()
        eager, ours = step(w, x), compiled(w, x)
        for mine, theirs in zip(ours, eager, strict=True):
            assert mine.tolist() == pytest.approx(theirs.tolist(), rel=1e-14)
        w = ours[1]
    assert len(compiled.traces) == 1 and w.grad is None
    assert len(seen) == 3 + 3  # at each call, eager or compiled


@pytest.mark.row("edge_40")
def test_numbers_of_a_traced_tensor_are_refused():
    words = "needs the numbers of a tensor of shape .*, which is being traced: inside jaxgrad.jit"
    reads = (lambda x: x.item(), bool, float, "{:.2f}".format)
    for read in (*reads, lambda x: x.tolist(), lambda x: x.numpy()):
        with pytest.raises(RuntimeError, match=words):
            torch.jit(lambda x, read=read: read(x.sum()))(torch.ones(2))


@pytest.mark.row("edge_40")
def test_no_tracer_is_left_in_a_gradient():
    outside = torch.tensor(2.0, requires_grad=True)
    torch.jit(lambda x: (outside * x).backward())(torch.tensor(3.0))
    assert outside.grad.item() == 3
    refused = pytest.raises(RuntimeError, match="traced, but the tensor was not")
    with refused, pytest.warns(UserWarning, match="is read while JAX traces"):
        jax.jit(lambda x: (outside * wrap(x)).backward())(3.0)
    assert outside.grad.item() == 3
    (outside * 3).backward()
    assert outside.grad.item() == 6


@pytest.mark.slow
@pytest.mark.parametrize(
    "order", [("eager", "jit", "jvp"), ("jit", "jvp", "eager"), ("jvp", "jit")]
)
def test_eager_jit_and_jvp_in_any_order(order):
    """Compiling a function first must not leave forward mode without tangents."""
    forward_ad = torch.autograd.forward_ad

    def function(x):
        return (x.exp() * x).sum()

    @torch.jit
    def compiled(x):
        function(x).backward()
        return x.grad

    def eager(x):
        function(x).backward()
        return x.grad

    def jvp(x):
        with forward_ad.dual_level():
            columns = [
                function(forward_ad.make_dual(x.detach(), unit)) for unit in torch.eye(3).unbind()
            ]
            return torch.stack([forward_ad.unpack_dual(column).tangent for column in columns])

    ways = {"eager": eager, "jit": compiled, "jvp": jvp}
    values = jnp.array([0.3, -0.5, 2.0])
    expected = jax.grad(lambda x: (jnp.exp(x) * x).sum())(values)
    for way in order * 2:
        x = torch.tensor([0.3, -0.5, 2.0], requires_grad=True)
        np.testing.assert_allclose(ways[way](x).numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize(
    "function", [torch.dot, torch.Tensor.dot, torch.nn.functional.pairwise_distance]
)
def test_functions_of_the_library_are_traced_once(function):
    """Under a trace operators read settings of the library itself, which are no state of users."""
    compiled, (x, y) = torch.jit(function), torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    results = [compiled(x, y).item() for _ in range(4)]
    assert results == [function(x, y).item()] * 4 and len(compiled.traces) == 1
