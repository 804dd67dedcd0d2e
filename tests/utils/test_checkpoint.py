"""Checkpointing, row by row of PyTorch's behaviour: against PyTorch where it is right, else against
the same function without a checkpoint, whose gradients other tests compare with PyTorch.
"""

import contextlib
import functools
import gc
import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.as_torch import as_torch, error, leaf, parameters, warned

import jaxgrad


def module(torch):
    return importlib.import_module(f"{torch.__name__}.utils.checkpoint")


def call(torch, function, *args, **kwargs):
    return module(torch).checkpoint(function, *args, use_reentrant=False, **kwargs)


CP = module(jaxgrad)
recomputed = functools.partial(call, jaxgrad)


def vector(torch, *values, **options):
    return leaf(torch, *(values or (0.5, 1.0)), dtype=torch.float64, **options)


def close(results, wanted, tolerance=1e-14):
    assert len(results) == len(wanted)
    for one, other in zip(results, wanted, strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=tolerance, atol=tolerance)


# N01: checkpoint


@pytest.mark.row("N01")
@as_torch
def test_arguments_of_checkpoint(torch):
    cp = module(torch)
    names = [n for n, _ in parameters(cp.checkpoint) if n not in ("context_fn", "policy")]
    return [
        names,
        parameters(cp.checkpoint_sequential),
        parameters(cp.create_selective_checkpoint_contexts),
        parameters(cp.set_device_states),
        parameters(cp.set_checkpoint_early_stop),
        issubclass(cp.CheckpointError, RuntimeError),
        len(cp.noop_context_fn()),
    ]


@pytest.mark.row("N01")
@as_torch("""
    [[tensor([0.5805908145772949, 1.9044965343867302], dtype=float64, requires_grad=True),
      tensor([1.3334030508253967, 2.9241440409119823], dtype=float64),
      tensor([0.2870357027846783, 1.4566392950360747], dtype=float64)],
     [tensor([0.5805908145772949, 1.9044965343867302], dtype=float64, requires_grad=True),
      tensor([1.3334030508253967, 2.9241440409119823], dtype=float64),
      tensor([0.2870357027846783, 1.4566392950360747], dtype=float64)]]
    [True, True, False, True]
""")
def test_checkpoint_computes_again(torch):
    calls, w, results = [], vector(torch, 0.3, 0.7), []
    for reentrant in (False, True):

        def f(x):
            calls.append(torch.is_grad_enabled())
            return (x * w).sin().exp() * x

        x = vector(torch)
        y = module(torch).checkpoint(f, x, use_reentrant=reentrant)
        y.sum().backward()
        results.append((y, x.grad, w.grad))
        w.grad = None
    return results, calls


@pytest.mark.row("N01")
@as_torch
def test_use_reentrant_left_out_warns(torch):
    x, sequential = vector(torch), module(torch).checkpoint_sequential
    unsaid = "the use_reentrant parameter should be passed explicitly"
    reports = [
        warned(lambda: module(torch).checkpoint(torch.sin, x)),
        warned(lambda: sequential([torch.sin], 1, x)),
    ]
    for report in reports:
        for warning in report["warnings"]:
            warning["words"] = unsaid
    return reports


@pytest.mark.row("N01")
@as_torch("""
    tensor([0.8414709848078965, 0.1411200080598672], dtype=float64, requires_grad=True)
    {'x': tensor([5.43656365691809, 14.7781121978613], dtype=float64, requires_grad=True)}
    3
    None
    tensor([11.953731925572459, 26.586246905921264], dtype=float64)
    tensor([0.2701511529340699, -0.9899924966004454], dtype=float64)
""")
def test_arguments_and_results_of_checkpoint(torch):
    x, y = vector(torch), vector(torch, 2.0, 3.0)

    def f(first, pair, *, factor, named):
        a, b = pair["b"], pair["n"]
        return (first * a).sin(), {"x": named.exp() * factor}, b, None

    first, second, number, nothing = call(torch, f, x, {"b": y, "n": 3}, factor=2.0, named=x * 2)
    (first.sum() + second["x"].sum()).backward()
    return first, second, number, nothing, x.grad, y.grad


@pytest.mark.row("N01")
@as_torch("""
    tensor([0.479425538604203, 0.8414709848078965], dtype=float64)
    1
""")
def test_checkpoint_without_grad_mode(torch):
    calls, x = [], vector(torch)
    with torch.no_grad():
        y = call(torch, lambda x: calls.append(1) or x.sin(), x)
    return y, len(calls)


@pytest.mark.row("N01")
def test_a_run_again_has_the_settings_of_the_first():
    x, seen = vector(jaxgrad), []

    def f(x):
        seen.append((jaxgrad.is_grad_enabled(), jaxgrad.get_default_dtype()))
        return x.sin() * jaxgrad.ones(2)

    jaxgrad.set_default_dtype(jaxgrad.float64)
    try:
        y = recomputed(f, x)
    finally:
        jaxgrad.set_default_dtype(jaxgrad.float32)
    y.sum().backward()
    assert seen == [(True, jaxgrad.float64)] * 2
    assert jaxgrad.get_default_dtype() is jaxgrad.float32
    close([x.grad], [x.detach().cos()])


# writes after the call: PyTorch raises for arguments, and is wrong for captured tensors


@pytest.mark.row("N01")
def test_values_are_those_of_the_call():
    def f(x, w, mask):
        return recomputed(lambda x: (x * w * mask).sin(), x)

    gradients = []
    for late in (False, True):
        x, w = vector(jaxgrad), vector(jaxgrad, 0.3, 0.7)
        mask = jaxgrad.tensor([2.0, 3.0], dtype=jaxgrad.float64)
        h = x * 1
        y = f(h, w, mask) if late else (h * w * mask).sin()
        if late:
            h.mul_(5)
            mask.zero_()
            with jaxgrad.no_grad():
                w.add_(1)
        y.sum().backward()
        gradients.append((x.grad, w.grad))
        if late:
            assert mask.tolist() == [0, 0]
            assert w.tolist() == [1.3, 1.7]
    close(gradients[1], gradients[0])


@pytest.mark.row("N01")
def test_a_view_from_outside_that_is_written_to_later():
    base, x = jaxgrad.arange(4, dtype=jaxgrad.float64), vector(jaxgrad)
    part = base[1:3]
    y = recomputed(lambda x: (x * part).sin(), x)
    base.zero_()
    y.sum().backward()
    close([x.grad], [jaxgrad.tensor([np.cos(0.5), 2 * np.cos(2.0)], dtype=jaxgrad.float64)])
    base.add_(7)
    assert part.tolist() == [7, 7]


@pytest.mark.row("N01")
def test_variables_are_those_of_the_call():
    # PyTorch takes the last ones
    def gradient(wrapped):
        x, state = vector(jaxgrad), vector(jaxgrad, 0.3, 0.7)
        for factor in range(1, 4):
            state = wrapped(lambda x: (x * state).sin() * factor, x)  # noqa: B023
        state.sum().backward()
        return [x.grad]

    close(gradient(recomputed), gradient(lambda f, x: f(x)))
    gc.collect()  # a variable holds a result computed from it


@pytest.mark.row("N01")
def test_what_the_second_run_writes_is_undone():
    count, x = jaxgrad.zeros(()), vector(jaxgrad)
    w = vector(jaxgrad, 0.3, 0.7)

    def f(x):
        with jaxgrad.no_grad():
            count.add_(1)
        z = (x * w * count.detach()).sin()
        z.sum().backward(retain_graph=True)
        return z * z

    y = recomputed(f, x)
    y.sum().backward()
    gradients = x.grad, w.grad
    assert count.item() == 1
    count.zero_()
    x.grad = w.grad = None
    f(x).sum().backward()
    close(gradients, (x.grad, w.grad))


@pytest.mark.row("N01")
def test_writes_inside_to_what_shares_memory_raise():
    x = vector(jaxgrad)
    h = x * 1
    y = recomputed(lambda a, b: a.mul_(3).sin() * b, h, h[:1])
    with pytest.raises(CP.CheckpointError, match=r"shapes \[2\] and \[1\] that share memory"):
        y.sum().backward()


@pytest.mark.row("N01")
def test_an_argument_written_to_inside():
    gradients = []
    for wrapped in (lambda f, x: f(x), recomputed):
        x = vector(jaxgrad)
        wrapped(lambda h: h.mul_(3).sin(), x * 1).sum().backward()
        gradients.append([x.grad])
    close(*gradients)


@pytest.mark.row("N01")
def test_a_pass_inside_that_leads_further_up_raises():
    # it would add to the leaf's gradient twice, as in PyTorch
    x = vector(jaxgrad)
    y = recomputed(lambda h: h.sin().sum().backward(retain_graph=True) or h.exp(), x * 2)
    with pytest.raises(CP.CheckpointError, match=r"backward\(\) inside of a checkpointed function"):
        y.sum().backward()
    close(x.grad, 2 * (2 * x.detach()).cos())


@pytest.mark.row("N01")
@pytest.mark.parametrize("of", ["result", "argument", "leaf", "closure"])
def test_hooks_inside_a_checkpoint_run_once(of):
    gradients = []
    for wrapped in (lambda f, x: f(x), recomputed):
        x, w = vector(jaxgrad), vector(jaxgrad, 0.3, 0.7)

        def f(x, w=w):
            z = x.sin()
            hooked = {"result": z, "argument": x, "leaf": x, "closure": w}[of]
            hooked.register_hook(lambda g: g * 10)
            return z * w

        wrapped(f, x if of == "leaf" else x * 1).sum().backward()
        gradients.append((x.grad, w.grad))
    close(*gradients)


@pytest.mark.row("N01")
@as_torch("""
    tensor([0.08598028402130453, 0.08328390002111813], dtype=float64)
    tensor([0.08598028402130453, 0.08328390002111813], dtype=float64)
""")
def test_gradients_inside_a_checkpoint(torch):
    w, gradients = vector(torch, 0.3, 0.7), []

    def f(x):
        z = (x * w).sin()
        (gradient,) = torch.autograd.grad(z.sum(), x, create_graph=True)
        return gradient * z

    for early_stop in (True, False):
        x = vector(torch)
        call(torch, f, x, early_stop=early_stop).sum().backward()
        gradients.append(x.grad)
    return gradients


@pytest.mark.row("N01")
@as_torch("tensor([-0.191712627636444, -0.5913811460542128], dtype=float64)")
def test_functions_inside_a_checkpoint(torch):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            return 2 * x * gradient

    x = vector(torch)
    call(torch, lambda x: Square.apply(x.sin()).cos(), x).sum().backward()
    return x.grad


@pytest.mark.row("N01")
def test_saved_tensor_hooks_around_see_the_arguments():
    packed, x = [], vector(jaxgrad)
    graph = jaxgrad.autograd.graph
    with graph.saved_tensors_hooks(lambda t: packed.append(t.tolist()) or t, lambda t: t):
        y = recomputed(lambda x: x.sin().exp(), x)
    y.sum().backward()
    assert packed == [[0.5, 1.0]]
    close([x.grad], [x.detach().cos() * x.detach().sin().exp()])


@pytest.mark.row("N01")
@as_torch("RuntimeError('not here')")
def test_checkpoint_where_saved_tensors_hooks_are_disabled(torch):
    with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
        return error(call, torch, torch.sin, vector(torch))


@pytest.mark.row("N01")
@as_torch("""
    KeyError("'mine'")
    'RuntimeError'
    tensor([0.479425538604203, 0.8414709848078965], dtype=float64, requires_grad=True)
""")
def test_errors_inside_a_checkpoint(torch):
    def f(x):
        raise KeyError("mine")

    @contextlib.contextmanager
    def careless():
        with contextlib.suppress(KeyError):
            yield

    def contexts():
        return careless(), contextlib.nullcontext()

    plain = error(call, torch, f, vector(torch))
    suppressed = error(lambda: call(torch, f, vector(torch), context_fn=contexts))
    return plain, suppressed["error"], call(torch, torch.sin, vector(torch))


@pytest.mark.row("N01")
def test_contexts_of_a_checkpoint_are_entered():
    log, x = [], vector(jaxgrad)

    @contextlib.contextmanager
    def noting(name):
        log.append(name)
        yield

    y = recomputed(torch_sin_exp, x, context_fn=lambda: (noting("first"), noting("again")))
    y.sum().backward()
    assert log == ["first", "again"]


def torch_sin_exp(x):
    return x.sin().exp()


@pytest.mark.row("N01")
def test_forward_mode_over_a_checkpoint():
    forward_ad = jaxgrad.autograd.forward_ad
    w, derivatives = vector(jaxgrad, 0.3, 0.7), []
    for wrapped in (lambda f, x: f(x), recomputed):
        x = vector(jaxgrad)
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(x, jaxgrad.tensor([1.0, 2.0], dtype=jaxgrad.float64))
            tangent = forward_ad.unpack_dual(wrapped(lambda x: (x * w).sin(), dual)).tangent
            gradients = jaxgrad.autograd.grad(tangent.sum(), [w, x])
        derivatives.append((tangent.detach(), *[g.detach() for g in gradients]))
    close(*derivatives)


@pytest.mark.row("N01")
def test_a_level_of_forward_mode_that_has_ended():
    forward_ad, x = jaxgrad.autograd.forward_ad, vector(jaxgrad)
    with forward_ad.dual_level():
        y = recomputed(torch_sin_exp, forward_ad.make_dual(x, jaxgrad.ones_like(x)))
    y.sum().backward()
    close([x.grad], [x.detach().cos() * x.detach().sin().exp()])


@pytest.mark.row("N01")
def test_forward_mode_inside_a_checkpoint():
    forward_ad, gradients = jaxgrad.autograd.forward_ad, []

    def f(x):
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(x, x * 2)
            return forward_ad.unpack_dual(dual.sin()).tangent * x

    for wrapped in (lambda f, x: f(x), recomputed):
        x = vector(jaxgrad)
        wrapped(f, x).sum().backward()
        gradients.append([x.grad])
    close(*gradients)


# N02, N03: use_reentrant=True


@pytest.mark.row("N02")
@as_torch
def test_limits_of_reentrant_checkpoints(torch):
    cp, x = module(torch), vector(torch)

    def reentrant(function, *args, **kwargs):
        return cp.checkpoint(function, *args, use_reentrant=True, **kwargs)

    fixed = torch.ones(2)
    return [
        error(lambda: torch.autograd.grad(reentrant(torch.sin, x).sum(), x)),
        error(lambda: reentrant(torch.sin, x).sum().backward(inputs=[x])),
        error(lambda: reentrant(torch.sin, x, b=1)),
        error(lambda: reentrant(lambda x: x.detach(), x).sum().backward()),
        warned(reentrant, torch.sin, fixed),
    ]


@pytest.mark.row("N02")
def test_a_second_derivative_of_a_reentrant_checkpoint_raises():
    # PyTorch leaves the second derivative out
    x = vector(jaxgrad)
    y = CP.checkpoint(torch_sin_exp, x, use_reentrant=True)
    refused = pytest.raises(RuntimeError, match="is incompatible with create_graph=True")
    with pytest.warns(UserWarning, match="create a reference cycle"), refused:
        y.sum().backward(create_graph=True)


@pytest.mark.row("N02")
def test_several_results_and_other_arguments_of_a_reentrant_checkpoint():
    x = vector(jaxgrad)
    first, number, second = CP.checkpoint(
        lambda x, n, m: (x.sin() * n, m, x.exp()), x, 3.0, None, use_reentrant=True
    )
    assert number is None
    (first.sum() + second.sum()).backward()
    close([x.grad], [x.detach().cos() * 3 + x.detach().exp()])


@pytest.mark.row("N03")
@as_torch("""
    ValueError('Passing `context_fn` or `debug` is only supported when use_reentrant=False.')
    ValueError('Passing `context_fn` or `debug` is only supported when use_reentrant=False.')
    ValueError('debug=True is incompatible with non-default context_fn')
""")
def test_options_of_one_kind_of_checkpoint_only(torch):
    cp, x = module(torch), vector(torch)

    def contexts():
        return contextlib.nullcontext(), contextlib.nullcontext()

    return [
        error(lambda: cp.checkpoint(torch.sin, x, use_reentrant=True, debug=True)),
        error(lambda: cp.checkpoint(torch.sin, x, use_reentrant=True, context_fn=contexts)),
        error(lambda: call(torch, torch.sin, x, debug=True, context_fn=contexts)),
    ]


# N04: the second run must match the first


def changing(torch, *functions):
    """A function that differs at each run."""
    runs = iter(functions)
    return lambda x: next(runs)(x)


@pytest.mark.row("N04")
@as_torch
def test_determinism_check_of_checkpoint(torch):
    def outcome(first, second, **options):
        y = call(torch, changing(torch, first, second), vector(torch), **options)
        report = error(lambda: y.sum().backward())
        return report | {"words": report["says"].split(".\n")[0].split("\n")[0]}

    return [
        outcome(lambda x: x.sin(), lambda x: x[:1].sin().expand(2)),
        outcome(lambda x: x.sin().exp(), lambda x: x.sin()),
        outcome(lambda x: x.sin(), lambda x: x.sin().exp(), early_stop=False)["error"],
        error(call, torch, torch.sin, vector(torch)),
        error(lambda: call(torch, torch.sin, vector(torch), determinism_check="q")),
    ]


@pytest.mark.row("N04")
def test_another_operator_that_saves_the_like():
    # PyTorch gives a wrong gradient
    f = changing(jaxgrad, lambda x: x.sin(), lambda x: x * x.exp())
    y = recomputed(f, vector(jaxgrad))
    with pytest.raises(CP.CheckpointError, match="saved by SinBackward0, and now by ExpBackward0"):
        y.sum().backward()


@pytest.mark.row("N04")
def test_determinism_check_none_checks_nothing():
    y = recomputed(
        changing(jaxgrad, lambda x: x.sin(), lambda x: x.float().sin()),
        vector(jaxgrad),
        determinism_check="none",
    )
    y.sum().backward()


@pytest.mark.row("N04")
@pytest.mark.parametrize("by", ["debug", "context"])
def test_debug_lists_the_operators(by):
    f = changing(jaxgrad, lambda x: x.sin().exp(), lambda x: x.cos())
    around = CP.set_checkpoint_debug_enabled(True) if by == "context" else contextlib.nullcontext()
    with around:
        y = recomputed(f, vector(jaxgrad), debug=by == "debug")
    with pytest.raises(CP.CheckpointError) as raised:
        y.sum().backward()
    _, first, second = str(raised.value).split("Operators of ")
    assert "SinBackward0 torch.float64[2] at " in first and "ExpBackward0" in first
    assert __file__ in first
    assert "CosBackward0" in second and "Exp" not in second


# N05: random numbers

DRAWS = {
    "rand": lambda x: x * jaxgrad.rand(5),
    "randn": lambda x: x * jaxgrad.randn(5),
    "rand_like": lambda x: x * jaxgrad.rand_like(x),
    "randn_like": lambda x: x * jaxgrad.randn_like(x),
    "randint": lambda x: x * jaxgrad.randint(1, 9, (5,)),
    "randint_like": lambda x: x * jaxgrad.randint_like(x, 1, 9),
    "randperm": lambda x: x * jaxgrad.randperm(5) + x[jaxgrad.randperm(5)] * x,
    "normal": lambda x: x * jaxgrad.normal(x.detach(), 2.0),
    "normal_": lambda x: x * jaxgrad.zeros(5).normal_(1.0, 2.0),
    "uniform_": lambda x: x * jaxgrad.zeros(5).uniform_(1.0, 2.0),
    "bernoulli_": lambda x: x * jaxgrad.zeros(5).bernoulli_(0.3),
    "generator": lambda x: x * jaxgrad.rand(5, generator=jaxgrad.Generator().manual_seed(3)),
}
for name in ("dropout", "alpha_dropout", "feature_alpha_dropout", "rrelu", "gumbel_softmax"):
    function = getattr(jaxgrad.nn.functional, name, None)
    if function is not None:
        DRAWS[name] = functools.partial(lambda f, x: x * f(x * 2 - 3), function)
for name in ("bernoulli", "multinomial", "poisson"):
    if name in jaxgrad.ops.library.names:
        DRAWS[name] = functools.partial(
            lambda f, x: x * f(x.detach().abs()), getattr(jaxgrad, name)
        )


@pytest.mark.row("N05")
@pytest.mark.slow
@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("name", DRAWS)
def test_the_same_numbers_are_drawn_again(name, reentrant):
    runs = []
    for wrapped in (lambda f, x: f(x), functools.partial(CP.checkpoint, use_reentrant=reentrant)):
        jaxgrad.manual_seed(7)
        x = jaxgrad.tensor([1.0, 2.0, 3.0, 4.0, 5.0], requires_grad=True)
        y = wrapped(lambda x: DRAWS[name](DRAWS[name](x).sin()), x)
        following = jaxgrad.rand(3)
        y.sum().backward()
        runs.append([*y.tolist(), *x.grad.tolist(), *following.tolist(), jaxgrad.rand(1).item()])
    assert runs[0] == runs[1]


@pytest.mark.row("N05")
def test_numbers_are_drawn_anew_without_preserve_rng_state():
    x = jaxgrad.ones(5, requires_grad=True)
    y = recomputed(lambda x: (x * jaxgrad.rand(5)).sin(), x, preserve_rng_state=False)
    y.sum().backward()
    assert (x.grad * y.detach().asin().cos() != x.grad.square()).any()
    z = recomputed(lambda x: x * jaxgrad.rand(5), x)
    x.grad = None
    z.sum().backward()
    assert x.grad.tolist() == z.tolist()


@pytest.mark.row("N05")
def test_a_seed_set_inside_stays_inside():
    jaxgrad.manual_seed(1)
    x = jaxgrad.ones(5, requires_grad=True)

    def f(x):
        jaxgrad.manual_seed(5)
        return x * jaxgrad.rand(5)

    y = recomputed(f, x)
    jaxgrad.manual_seed(1)
    before = jaxgrad.get_rng_state().tolist()
    y.sum().backward()
    assert x.grad.tolist() == y.tolist()
    assert jaxgrad.get_rng_state().tolist() == before


# N06, N07: derivatives of derivatives, several passes


@pytest.mark.row("N06")
@as_torch("""
    tensor([1.3334030508253967, 2.9241440409119823], dtype=float64, requires_grad=True)
    [tensor([0.7321633382724064, 1.9840175406154081], dtype=float64),
     tensor([1.2202722304540106, 2.834310772307726], dtype=float64)]
""")
def test_second_derivative_of_a_checkpoint(torch):
    w, calls = vector(torch, 0.3, 0.7), []

    def f(x):
        calls.append(1)
        return (x * w).sin().exp() * x

    x = vector(torch)
    (first,) = torch.autograd.grad(call(torch, f, x).sum(), x, create_graph=True)
    second = torch.autograd.grad(first.sum(), [x, w])
    return first, second


@pytest.mark.row("N06")
@pytest.mark.slow
def test_third_derivative_of_a_checkpoint():
    def derivatives(f, x):
        values = [f(x)]
        for _ in range(3):
            values += jaxgrad.autograd.grad(values[-1].sum(), x, create_graph=True)
        return [value.detach() for value in values]

    x = vector(jaxgrad)
    by_jax = [lambda x: jnp.exp(jnp.sin(x))]
    for _ in range(3):
        by_jax.append(jax.grad(by_jax[-1]))
    with jax.enable_x64(True):
        wanted = [jax.vmap(f)(jnp.array([0.5, 1.0])) for f in by_jax]
    results = derivatives(functools.partial(recomputed, torch_sin_exp), x)
    close(results, [jaxgrad.tensor(np.asarray(array)) for array in wanted], 1e-13)


@pytest.mark.row("N06")
@as_torch("""
    [tensor([0.9440584886416256, 1.0103051860565784], dtype=float64, requires_grad=True),
     tensor([0.1520883325630016, -0.025005456130791477], dtype=float64, requires_grad=True)]
    [tensor([-0.11662168844855661, -0.19528248916958915], dtype=float64),
     tensor([0.30484125923436983, 0.47470055568256986], dtype=float64)]
    tensor([0.9440584886416256, 1.0103051860565784], dtype=float64)
    tensor([0.1520883325630016, -0.025005456130791477], dtype=float64)
""")
def test_nested_checkpoints(torch):
    w = vector(torch, 0.3, 0.7)

    def inner(x):
        return (x.cos() * w).exp()

    def outer(x):
        return call(torch, inner, x.sin()).sin() * x

    x = vector(torch)
    y = call(torch, outer, x)
    first = torch.autograd.grad(y.sum(), [x, w], create_graph=True)
    second = torch.autograd.grad(first[0].sum(), [x, w], retain_graph=True)
    y.sum().backward()
    return first, second, x.grad, w.grad


@pytest.mark.row("N06")
@as_torch("""
    ['outer', 'inner', 'middle', 'inner', 'outer', 'inner', 'middle', 'inner', 'inner']
    tensor([-1.0004311458408146, -0.4201992794271884], dtype=float64)
""")
def test_how_often_nested_functions_run(torch):
    log = []

    def inner(x):
        log.append("inner")
        return x.cos().exp()

    def outer(x):
        log.append("outer")
        y = call(torch, inner, x.sin())
        log.append("middle")
        return call(torch, inner, y.sin()) if len(log) < 9 else y

    x = vector(torch)
    call(torch, outer, x).sum().backward()
    return log, x.grad


@pytest.mark.row("N07")
@as_torch("""
    tensor([2.8348484493187827, 2.506761534986894], dtype=float64)
    3
    RuntimeError(
     'Trying to backward through the graph a second time (or directly access saved '
     'tensors after they have already been freed). Saved intermediate values of the '
     'graph are freed when you call .backward() or autograd.grad(). Specify '
     'retain_graph=True if you need to backward through the graph a second time or if '
     'you need to access saved tensors after calling backward.')
""")
def test_several_passes_over_a_checkpoint(torch):
    x, calls = vector(torch), []
    y = call(torch, lambda x: calls.append(1) or x.sin().exp(), x)
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    return x.grad, len(calls), error(lambda: y.sum().backward())


@pytest.mark.row("N07")
@as_torch("""
    CheckpointError(
     'torch.utils.checkpoint: Unpack is being triggered for a tensor that was already '
     'unpacked once. If you are calling ctx.saved_tensors in backward, make sure to do '
     'so only once. Otherwise please open an issue with details on your use case.')
""")
def test_a_checkpoint_unpacked_twice(torch):
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, gradient):
            assert len(ctx.saved_tensors) == 1
            return 2 * ctx.saved_tensors[0] * gradient

    y = call(torch, lambda x: Twice.apply(x.sin()).cos(), vector(torch))
    return error(lambda: y.sum().backward())


@pytest.mark.row("N07")
@as_torch("""
    [tensor([0.8383866435942036, 0.41324599741504076], dtype=float64)]
    [tensor([-0.1416799342470381, -0.5420904917105653], dtype=float64)]
""")
def test_passes_to_one_input_each(torch):
    x, w = vector(torch), vector(torch, 0.3, 0.7)
    y = call(torch, lambda x: x.sin() * w.cos(), x)
    return [
        torch.autograd.grad(y.sum(), x, retain_graph=True),
        torch.autograd.grad(y.sum(), w),
    ]


# N08, N10: sequences, and when a run ends


@pytest.mark.row("N08")
@as_torch
def test_checkpoint_sequential_cuts_into_segments(torch):
    cp, answers = module(torch), []
    for reentrant in (False, True):
        for segments in (1, 2, 3, 5):
            runs, x = [], vector(torch)
            functions = [lambda x, i=i, r=runs: r.append(i) or x.sin() * 2 for i in range(5)]
            y = cp.checkpoint_sequential(functions, segments, x, use_reentrant=reentrant)
            y.sum().backward()
            answers.append((x.grad, runs))
    wrong = error(lambda: cp.checkpoint_sequential([], 1, None, use_reentrant=False, other=1))
    return answers, wrong


@pytest.mark.row("N10")
@as_torch("""
    1
    2
    2
    1
""")
def test_set_checkpoint_early_stop(torch):
    cp, counts = module(torch), []
    for around, early_stop in ((None, True), (None, False), (False, True), (True, False)):
        log = []

        def f(x, log=log):
            y = x.sin().exp()
            log.append("end")
            return y * 2

        manager = contextlib.nullcontext() if around is None else None
        with manager or cp.set_checkpoint_early_stop(around):
            y = call(torch, lambda x, f=f: f(x) * 1, vector(torch), early_stop=early_stop)
        y.sum().backward()
        counts.append(len(log))
    return counts


# N09: selective checkpointing


def counted(torch, function, x, **options):
    """The gradient, and which operators ran in the backward pass."""
    ran = []

    def observer(program, kernel, *arrays):
        ran.append(program.name)
        return kernel(*arrays)

    y = recomputed(function, x, **options)
    jaxgrad.core.executor.observe(observer)
    try:
        y.sum().backward()
    finally:
        jaxgrad.core.executor.unobserve(observer)
    return y, x.grad, ran


def contexts(policy):
    return {"context_fn": functools.partial(CP.create_selective_checkpoint_contexts, policy)}


Policy = CP.CheckpointPolicy


def of_exp(result):
    return lambda context, op, *args: result if op is jaxgrad.exp else Policy.PREFER_RECOMPUTE


@pytest.mark.row("N09")
@pytest.mark.parametrize(
    "options",
    [
        contexts([jaxgrad.exp]),
        contexts(of_exp(Policy.PREFER_SAVE)),
        contexts(of_exp(Policy.MUST_CPU_OFFLOAD)),
        contexts(lambda context, op, *args: op is jaxgrad.exp),
        {"policy": lambda primitive, *avals, **params: primitive is jax.lax.exp_p},
    ],
    ids=["list", "policy", "offload", "bool", "jax"],
)
def test_a_policy_keeps_results(options):
    def f(x):
        return x.sin().exp().cos().sinh()

    x = vector(jaxgrad)
    _, gradient, ran = counted(jaxgrad, f, x, **options)
    assert "Exp" not in ran and {"Sin", "Cos"} <= set(ran)
    x.grad = None
    _, plain, ran = counted(jaxgrad, f, x)
    assert "Exp" in ran
    assert gradient.tolist() == plain.tolist()


@pytest.mark.row("N09")
def test_a_policy_sees_operator_arguments_and_result():
    seen, x = [], vector(jaxgrad)

    def policy(context, op, *args):
        assert context.is_recompute is False
        seen.append((op, [a.tolist() for a in args], context.op_output.tolist()))
        return Policy.MUST_SAVE

    recomputed(lambda x: x * 3.0, x, **contexts(policy)).sum().backward()
    assert seen == [(jaxgrad.mul, [[0.5, 1.0]], [1.5, 3.0])]


@pytest.mark.row("N09")
@as_torch("""
    TypeError('policy_fn_or_list must be either a function or a list of ops.')
    'ValueError'
    [['MUST_SAVE', 0],
     ['PREFER_SAVE', 1],
     ['MUST_RECOMPUTE', 2],
     ['PREFER_RECOMPUTE', 3],
     ['MUST_CPU_OFFLOAD', 4],
     ['PREFER_CPU_OFFLOAD', 5]]
""")
def test_what_selective_checkpoints_refuse(torch):
    create = module(torch).create_selective_checkpoint_contexts
    values = [
        (name, policy.value) for name, policy in module(torch).CheckpointPolicy.__members__.items()
    ]
    return [
        error(create, 3),
        error(lambda: create([3]))["error"],
        [list(pair) for pair in values],
    ]


@pytest.mark.row("N09")
def test_a_second_pass_over_a_selective_checkpoint_raises():
    y = recomputed(torch_sin_exp, vector(jaxgrad), **contexts([jaxgrad.sin]))
    y.sum().backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="Trying to backward an extra time"):
        y.sum().backward()


@pytest.mark.row("N09")
def test_what_runs_again_must_be_what_ran():
    f = changing(jaxgrad, lambda x: x.sin().exp(), lambda x: x.cos().exp())
    y = recomputed(f, vector(jaxgrad), **contexts([jaxgrad.exp]))
    with pytest.raises(RuntimeError, match="cos invocation index 0 encountered during backward"):
        y.sum().backward()


@pytest.mark.row("N09")
def test_policies_of_jax():
    dots = jax.checkpoint_policies.dots_saveable
    w = jaxgrad.eye(2, dtype=jaxgrad.float64)
    x = jaxgrad.ones(2, 2, dtype=jaxgrad.float64, requires_grad=True)
    _, _, ran = counted(jaxgrad, lambda x: ((x @ w).sin() @ w).exp().cos(), x, policy=dots)
    assert "Matmul" not in ran and "Sin" in ran
    with pytest.raises(ValueError, match="policy= and context_fn="):
        recomputed(jaxgrad.sin, x, policy=dots, **contexts([jaxgrad.exp]))
    with pytest.raises(ValueError, match="Unexpected keyword arguments: policy"):
        CP.checkpoint(jaxgrad.sin, x, use_reentrant=True, policy=dots)


# N11, N12


@pytest.mark.row("N11")
@as_torch
def test_graph_exec_groups_compute_again_once(torch):
    cp, calls, x = module(torch), [], vector(torch)

    def f(x):
        calls.append(1)
        return x.sin(), x.exp()

    with cp.GraphExecGroup():
        first, second = call(torch, f, x)
        first.sum().backward(retain_graph=True)
        second.sum().backward(retain_graph=True)
        together = len(calls)
        again = error(lambda: first.sum().backward())
    first, second = call(torch, f, x)
    first.sum().backward(retain_graph=True)
    second.sum().backward()

    def nested():
        with cp.GraphExecGroup(), cp.GraphExecGroup():
            pass

    after = error(nested)
    after["words"] = "GraphExecGroup contexts cannot be nested"
    return together, again, len(calls) - together, x.grad, after


@pytest.mark.row("N12")
@as_torch
def test_helpers_of_checkpoint(torch):
    cp, x = module(torch), vector(torch)
    results = cp.detach_variable((x * 2, torch.ones(1), 3))
    cp.DefaultDeviceType.set_device_type("cuda")
    named = cp.DefaultDeviceType.get_device_type()
    cp.DefaultDeviceType._default_device_type = None
    return [
        results[:2],
        results[0].is_leaf,
        results[2],
        error(cp.detach_variable, [x]),
        warned(cp.check_backward_validity, [x, 1]),
        warned(cp.check_backward_validity, [x.detach(), 1]),
        named,
        cp.DefaultDeviceType.get_device_type(),
        [len(part) for part in cp.get_device_states(x, 1)],
        cp.set_device_states([], []),
        isinstance(cp.SAC_IGNORED_OPS, set),
    ]
