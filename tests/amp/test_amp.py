"""Autocast and gradient scaling. The numbers are exact in half precision, or round in one way
only.
"""

import contextlib
import warnings

import numpy as np
import pytest
from helpers.as_torch import as_torch, error, parameters, warned

import jaxgrad
from jaxgrad.tape import interception


def numbers(torch, *shape):
    values = torch.arange(1.0, 1.0 + int(np.prod(shape)))
    return values.reshape(shape) / 64


def calls(torch):
    """What is converted and what is not, of arguments that `c` may give another dtype: products,
    which want the half, and the rest."""
    F, classes = torch.nn.functional, torch.tensor([0, 1])

    def r(*shape):
        return numbers(torch, *shape)

    return {
        "mm": lambda c: torch.mm(c(r(2, 3)), c(r(3, 2))),
        "matmul": lambda c: c(r(2, 3)) @ c(r(3)),
        "bmm": lambda c: torch.bmm(c(r(1, 2, 3)), c(r(1, 3, 2))),
        "mv": lambda c: torch.mv(c(r(2, 3)), c(r(3))),
        "dot": lambda c: torch.dot(c(r(3)), c(r(3))),
        "addmm": lambda c: torch.addmm(c(r(2)), c(r(2, 3)), c(r(3, 2)), alpha=0.5),
        "addbmm": lambda c: torch.addbmm(c(r(2, 2)), c(r(1, 2, 3)), c(r(1, 3, 2))),
        "baddbmm": lambda c: torch.baddbmm(c(r(1, 2, 2)), c(r(1, 2, 3)), batch2=c(r(1, 3, 2))),
        "addmm_": lambda c: c(r(2, 2)).addmm_(c(r(2, 3)), c(r(3, 2))),
        "linear": lambda c: F.linear(c(r(2, 3)), c(r(2, 3)), bias=c(r(2))),
        "conv1d": lambda c: F.conv1d(c(r(1, 1, 4)), c(r(1, 1, 2)), c(r(1))),
        "conv2d": lambda c: F.conv2d(c(r(1, 1, 4, 4)), c(r(1, 1, 2, 2))),
        "conv_transpose1d": lambda c: F.conv_transpose1d(c(r(1, 1, 4)), c(r(1, 1, 2))),
        "prelu": lambda c: F.prelu(c(r(2, 3)), c(r(1))),
        "attention": lambda c: F.scaled_dot_product_attention(*[c(r(1, 2, 3))] * 3),
        "bce": lambda c: F.binary_cross_entropy(c(r(3)), c(r(3))),
        "bce with logits": lambda c: F.binary_cross_entropy_with_logits(c(r(3)), c(r(3))),
        "cross_entropy": lambda c: F.cross_entropy(c(r(2, 3)), classes, weight=c(r(3))),
        "nll_loss": lambda c: F.nll_loss(c(r(2, 3)), classes),
        "kl_div": lambda c: F.kl_div(c(r(3)), c(r(3)), reduction="sum"),
        "l1_loss": lambda c: F.l1_loss(c(r(3)), c(r(3) * 2)),
        "mse_loss": lambda c: F.mse_loss(c(r(3)), c(r(3) * 2)),
        "smooth_l1_loss": lambda c: F.smooth_l1_loss(c(r(3)), c(r(3) * 2)),
        "huber_loss": lambda c: F.huber_loss(c(r(3)), c(r(3) * 2)),
        "ranking": lambda c: F.margin_ranking_loss(c(r(3)), c(r(3) * 2), c(r(3))),
        "embedding": lambda c: F.cosine_embedding_loss(c(r(2, 3)), c(r(2, 3)), classes * 2 - 1),
        "triplet": lambda c: F.triplet_margin_loss(c(r(2, 3)), c(r(2, 3) * 2), c(r(2, 3) * 3)),
        "poisson": lambda c: F.poisson_nll_loss(c(r(3)), c(r(3) * 2)),
        "soft margin": lambda c: F.soft_margin_loss(c(r(3)), c(r(3))),
        "hinge": lambda c: F.hinge_embedding_loss(c(r(2)), classes * 2 - 1),
        "prod": lambda c: torch.prod(c(r(3))),
        "prod of a dtype": lambda c: torch.prod(c(r(3)), dtype=torch.bfloat16),
        "cat": lambda c: torch.cat([c(r(3)), r(3).bfloat16()]),
        "cat of float32": lambda c: torch.cat([c(r(3)), r(3)]),
        "stack": lambda c: torch.stack([c(r(3)), r(3)]),
        "index_copy": lambda c: torch.index_copy(c(r(3)), 0, classes[:1], r(1)),
        "avg_pool2d": lambda c: F.avg_pool2d(c(r(1, 1, 4, 4)), 2),
        "avg_pool3d": lambda c: F.avg_pool3d(c(r(1, 1, 2, 2, 2)), 2),
        "max_pool3d": lambda c: F.max_pool3d(c(r(1, 1, 2, 2, 2)), 2),
        "reflect": lambda c: F.pad(c(r(1, 1, 4)), (1, 1), mode="reflect"),
        "replicate": lambda c: F.pad(c(r(1, 1, 4)), (1, 1), mode="replicate"),
        "circular": lambda c: F.pad(c(r(1, 1, 4)), (1, 1), mode="circular"),
        "softmax": lambda c: c(r(3)).softmax(0),
        "sum": lambda c: c(r(3)).exp().sum(),
        "layer_norm": lambda c: F.layer_norm(c(r(2, 3)), (3,)),
        "add": lambda c: c(r(3)) + r(3),
    }


@pytest.mark.row("S05")
@pytest.mark.slow
@as_torch
def test_what_autocast_converts(torch):
    known = calls(torch)

    def dtypes():
        results = {}
        with torch.autocast("cpu"):
            for number, (name, call) in enumerate(known.items()):
                is_product = number <= list(known).index("attention")
                output = call(lambda x: x) if is_product else call(lambda x: x.bfloat16())
                results[name] = str(output.dtype)
            results["float32"] = str(known["softmax"](lambda x: x).dtype)
            for name in ("mm", "mse_loss"):
                results[f"{name} of float64"] = str(known[name](lambda x: x.double()).dtype)
        with torch.autocast("cpu", dtype=torch.float16):
            results["mm in float16"] = str(known["mm"](lambda x: x.bfloat16()).dtype)
        return results

    # compiled, so that no operator runs eagerly
    return dtypes() if torch is not jaxgrad else jaxgrad.jit(dtypes)()


@pytest.mark.row("S05")
@as_torch("""
    tensor([[0.00537109375, 0.0068359375], [0.011962890625, 0.015625]])
    tensor([[2, 2], [2, 2]])
    [tensor([[0.00537109375, 0.0068359375], [0.011962890625, 0.015625]]), 'torch.bfloat16']
    tensor([[0.00537109375, 0.0068359375], [0.011962890625, 0.015625]], dtype=bfloat16)
    tensor([[0.00537109375, 0.0068359375], [0.011962890625, 0.015625]])
""")
def test_operators_outside_of_autocasts_lists(torch):
    """Integers, what is written into, and what is switched off."""
    a, b, out = numbers(torch, 2, 3), numbers(torch, 3, 2), torch.zeros(2, 2)
    with torch.autocast("cpu"):
        torch.mm(a, b, out=out)
        whole = torch.mm(torch.ones(2, 2, dtype=torch.int64), torch.ones(2, 2, dtype=torch.int64))
        with torch.autocast("cpu", enabled=False):
            off = [torch.mm(a, b), torch.nn.functional.mse_loss(a.bfloat16(), a.bfloat16()).dtype]
            off[1] = str(off[1])
        product = torch.mm(a, b)
    return [out, whole, off, product, torch.mm(a, b)]


def network(torch):
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.arange(1.0, 1 + parameter.numel()).reshape(parameter.shape) / 4)
    return model


@pytest.mark.slow
@as_torch("""
    tensor([[2.25], [0.5]], dtype=bfloat16, requires_grad=True)
    tensor(2.65625, requires_grad=True)
    [tensor([[0.5, 1.15625], [1.0, 2.3125]]),
     tensor([0.6875, 1.375]),
     tensor([[3.5, 7.5]]),
     tensor([2.75])]
    tensor([[0.984375, 1.40625], [0.21875, 0.3125]])
""")
def test_gradients_of_parameters_stay_float32(torch):
    net, x = network(torch), torch.tensor([[1.0, 2.0], [-0.5, 0.25]], requires_grad=True)
    with torch.autocast("cpu"):
        output = net(x)
        loss = torch.nn.functional.mse_loss(output, torch.zeros(2, 1))
    loss.backward()
    return output, loss, [parameter.grad for parameter in net.parameters()], x.grad


@as_torch("""
    tensor([[256.0]])
    tensor([[257.0]])
    [tensor([[1.0]], dtype=bfloat16, requires_grad=True),
     tensor([[3.0]], dtype=bfloat16, requires_grad=True)]
""")
def test_a_parameter_is_converted_once(torch):
    """Gradients of two uses are added in half precision, where 256 + 1 is 256."""
    results = []
    for options in ({}, {"cache_enabled": False}):
        w = torch.ones(1, 1, requires_grad=True)
        with torch.autocast("cpu", **options):
            (torch.full((1, 1), 256.0) @ w + torch.ones(1, 1) @ w).float().sum().backward()
        results.append(w.grad)
    w = torch.ones(1, 1, requires_grad=True)
    with torch.autocast("cpu"):
        one = torch.ones(1, 1) @ w
        torch.clear_autocast_cache()
        with torch.no_grad():
            w.mul_(3)
        two = torch.ones(1, 1) @ w
    results.append([one, two])
    return results


def test_a_parameter_that_is_written_to_is_converted_anew():
    """PyTorch uses the old one."""
    w = jaxgrad.ones(1, 1, requires_grad=True)
    with jaxgrad.autocast("cpu"):
        with jaxgrad.no_grad():
            jaxgrad.ones(1, 1) @ w
        one = jaxgrad.ones(1, 1) @ w
        with jaxgrad.no_grad():
            w.mul_(3)
        two = jaxgrad.ones(1, 1) @ w
    assert (one.item(), two.item()) == (1, 3) and one.requires_grad
    (one + two).sum().backward()
    assert w.grad.item() == 2


@pytest.mark.row("S05")
@as_torch
def test_queries_of_autocast_settings(torch):
    def state():
        return [
            torch.is_autocast_enabled("cpu"),
            str(torch.get_autocast_dtype("cpu")),
            torch.is_autocast_cache_enabled(),
        ]

    results = [state(), str(torch.get_autocast_dtype("cuda")), torch.is_autocast_enabled()]
    with torch.autocast("cpu", dtype=torch.float16, cache_enabled=False):
        results.append(state())
        with torch.autocast(device_type="cpu", enabled=False) as inner:
            results.append([state(), str(inner.fast_dtype)])
        with torch.autocast("cpu", dtype=torch.bfloat16):
            results.append(state())
        results.append(state())
    torch.set_autocast_dtype("cpu", torch.float16)
    torch.set_autocast_enabled("cpu", True)
    results += [state(), (torch.ones(1, 1) @ torch.ones(1, 1)).dtype is torch.float16]
    torch.set_autocast_enabled("cpu", False)
    torch.set_autocast_dtype("cpu", torch.bfloat16)
    torch.set_autocast_cache_enabled(False)
    results.append(state())
    torch.set_autocast_cache_enabled(True)

    @torch.autocast("cpu")
    def product(x):
        """Of ones."""
        return x @ x, state()

    results += [product(torch.ones(2, 2)), product.__name__, product.__doc__, state()]
    return results


@pytest.mark.row("S05")
@as_torch
def test_arguments_of_autocast(torch):
    unsupported = "In CPU autocast, but the target dtype is not supported. Disabling autocast"
    wrong = warned(lambda: torch.autocast("cpu", dtype=torch.float64)._enabled)
    for warning in wrong["warnings"]:
        warning["words"] = unsupported
    return [
        [p for p in parameters(torch.autocast.__init__)[1:] if p[0] != "device_type"],
        torch.amp.is_autocast_available("cpu"),
        torch.amp.autocast is torch.autocast,
        error(torch.autocast, 3),
        error(torch.autocast("cpu"), 3, words="autocast()(func) requires a callable, but got int"),
        wrong,
        sorted(torch.amp.__all__),
    ]


@pytest.mark.row("S05")
@as_torch
def test_custom_fwd_and_custom_bwd(torch):
    seen = []

    def note(torch, *values):
        seen.append([str(value.dtype) for value in values] + [torch.is_autocast_enabled("cpu")])

    class As(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu")
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            product = a @ b
            note(torch, a, product)
            return product

        @staticmethod
        @torch.amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            a, b = ctx.saved_tensors
            gradient = grad.float() @ b.t()
            note(torch, grad, gradient)
            return gradient.float(), (a.t() @ grad.float()).float()

    class In32(As):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            note(torch, a, a @ b)
            return a @ b

    for function in (As, In32):
        a, b = torch.ones(2, 2, requires_grad=True), torch.ones(2, 2, requires_grad=True)
        with torch.autocast("cpu"):
            output = function.apply(a, b)
            half = function.apply(a.bfloat16(), b) if function is In32 else output
        output.float().sum().backward()
        seen.append([output, half, a.grad, b.grad])
    a = torch.ones(2, 2, requires_grad=True)
    In32.apply(a, a).sum().backward()
    return seen, a.grad, error(lambda: torch.amp.custom_fwd(device_type=3))


# ---- the scaler


def parts(torch, optimizer="SGD", **options):
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    instance = getattr(torch.optim, optimizer)([w], lr=0.5)
    return (
        w,
        instance,
        torch.amp.GradScaler("cpu", **{"init_scale": 8.0, "growth_interval": 2} | options),
    )


def factor_that_cannot_grow(torch):
    """Twice as much would be infinite."""
    w, optimizer, scaler = parts(torch, init_scale=2.0**127, growth_interval=1)
    scaler.scale((w * 0).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    return scaler.state_dict()


@pytest.mark.row("S05")
@pytest.mark.slow
@as_torch
def test_steps_of_a_GradScaler(torch):
    w, optimizer, scaler = parts(torch)
    results = [scaler.get_scale(), scaler.state_dict(), scaler.is_enabled()]
    for factor in (1.0, 1.0, float("inf"), 1.0, float("nan"), 0.5, 0.5):
        optimizer.zero_grad()
        scaled = scaler.scale((w * factor).sum())
        scaled.backward()
        grad = w.grad.clone()
        scaler.step(optimizer)
        scaler.update()
        results.append([scaled, grad, w.detach().clone(), scaler.get_scale(), scaler.state_dict()])
    results.append(factor_that_cannot_grow(torch))
    scaler.update(3.0)
    scaler.update(torch.tensor(5.0))
    return results, scaler.get_scale()


@pytest.mark.row("S05")
@as_torch
def test_gradients_that_are_looked_at_between(torch):
    w, optimizer, scaler = parts(torch, growth_interval=1)
    results = []
    for _ in range(2):
        optimizer.zero_grad()
        scaler.scale((w * 3).sum()).backward()
        scaler.unscale_(optimizer)
        norm = torch.nn.utils.clip_grad_norm_([w], 1.0)
        again = error(scaler.unscale_, optimizer)
        scaler.step(optimizer)
        results.append(
            [norm, again, error(scaler.step, optimizer), error(scaler.unscale_, optimizer)]
        )
        scaler.update()
        results.append([w.detach().clone(), scaler.get_scale()])
    scaled = scaler.scale([w, (w * 2, w)])
    return results, scaled, [type(scaled).__name__, type(scaled[1]).__name__]


@pytest.mark.row("S05")
@as_torch
def test_settings_of_a_GradScaler(torch):
    w, optimizer, scaler = parts(torch)
    too_early = [
        error(scaler.step, optimizer),
        error(scaler.update),
        error(scaler.unscale_, optimizer),
    ]
    scaler.scale(w.sum()).backward()
    scaler.set_growth_factor(4.0)
    scaler.set_backoff_factor(0.25)
    scaler.set_growth_interval(1)
    factors = [
        scaler.get_growth_factor(),
        scaler.get_backoff_factor(),
        scaler.get_growth_interval(),
    ]
    scaler.step(optimizer)
    scaler.update()
    state = scaler.state_dict()
    _, _, other = parts(torch)
    other.load_state_dict(state)
    off = torch.amp.GradScaler("cpu", enabled=False)
    w.grad = torch.ones(2)
    plain = [off.scale(w) is w, off.step(optimizer), off.update(), off.unscale_(optimizer)]
    plain += [off.get_scale(), off.state_dict(), off.load_state_dict({}), off.is_enabled()]
    w.grad = None
    fresh = parts(torch)[2]
    fresh.scale(w)
    half = torch.ones(2, dtype=torch.float16, requires_grad=True)
    half.grad = torch.ones(2, dtype=torch.float16)
    return [
        parameters(torch.amp.GradScaler.__init__)[1:],
        too_early,
        factors,
        [state, other.state_dict(), other.get_scale()],
        plain,
        error(scaler.load_state_dict, {}),
        error(fresh.update),
        error(fresh.step, optimizer),
        error(lambda: fresh.step(optimizer, closure=lambda: None)),
        error(fresh.scale, 3),
        error(fresh.unscale_, torch.optim.SGD([half], lr=1.0)),
        error(lambda: torch.amp.GradScaler("cpu", growth_factor=1.0)),
        error(lambda: torch.amp.GradScaler("cpu", backoff_factor=1.0)),
    ]


# ---- compiled


@pytest.mark.row("S05")
def test_autocast_has_a_program_of_its_own():
    a, b = numbers(jaxgrad, 2, 3), numbers(jaxgrad, 3, 2)
    product = jaxgrad.jit(lambda a, b: a @ b)
    outputs = [product(a, b)]
    with jaxgrad.autocast("cpu"):
        outputs += [product(a, b), product(a, b)]
    with jaxgrad.autocast("cpu", dtype=jaxgrad.float16):
        outputs.append(product(a, b))
    outputs.append(product(a, b))
    names = ["float32", "bfloat16", "bfloat16", "float16", "float32"]
    assert [str(output.dtype) for output in outputs] == [f"torch.{name}" for name in names]
    assert len(product.traces) == 3


@pytest.mark.row("S05")
@pytest.mark.slow
def test_a_compiled_function_is_differentiated_as_it_ran():
    """Two passes after autocast ended: rounding shows that products ran in half precision."""

    def second(wrapped):
        w = jaxgrad.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        x = jaxgrad.tensor([[1.003, 0.507]], requires_grad=True)
        with jaxgrad.autocast("cpu"):
            y = wrapped(lambda x: ((x @ w) ** 2).sum())(x)
        (slope,) = jaxgrad.autograd.grad(y, x, create_graph=True)
        return jaxgrad.autograd.grad((slope * slope).sum(), w)[0].numpy()

    w, x = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.003, 0.507]])
    slope = 2 * x @ w @ w.T  # of |x w|^2; what follows is the gradient of its square
    exact = 4 * (x.T @ slope + slope.T @ x) @ w
    for wrapped in (lambda f: f, jaxgrad.jit):
        np.testing.assert_allclose(second(wrapped), exact, rtol=2**-6)
        assert abs(second(wrapped) - exact).max() > 1


@pytest.mark.slow
@pytest.mark.parametrize("around", [False, True], ids=["inside", "around"])
def test_a_parameter_is_converted_once_in_a_compiled_pass(around):
    def results(wrapped):
        net, x = network(jaxgrad), jaxgrad.tensor([[1.0, 2.0], [-0.5, 0.25]])

        def block():
            return jaxgrad.autocast("cpu") if not around else contextlib.nullcontext()

        @wrapped
        def run(x):
            for parameter in net.parameters():
                parameter.grad = None
            with block():
                output = net(x) + net[2](x)
                loss = jaxgrad.nn.functional.mse_loss(output, jaxgrad.zeros(2, 1))
            loss.backward()
            return output, loss.detach()

        with jaxgrad.autocast("cpu") if around else contextlib.nullcontext():
            for _ in range(2):
                output, loss = run(x)
        assert not hasattr(run, "traces") or len(run.traces) == 1
        return [output, loss, *(parameter.grad for parameter in net.parameters())]

    for one, other in zip(results(lambda f: f), results(jaxgrad.jit), strict=True):
        assert one.dtype is other.dtype
        # XLA may keep more digits between two operators than half precision has
        np.testing.assert_allclose(one.float().detach(), other.float().detach(), rtol=2**-7)


@pytest.mark.row("S05")
@pytest.mark.slow
@pytest.mark.parametrize(
    "optimizer",
    [
        lambda w: jaxgrad.optim.SGD(w, lr=0.5, momentum=0.5),
        lambda w: jaxgrad.optim.Adam(w, lr=0.5),
        lambda w: jaxgrad.optim.RMSprop(w, lr=0.5, momentum=0.5),
    ],
    ids=["momentum", "Adam", "RMSprop"],
)
@pytest.mark.parametrize("first", [1.0, float("inf")], ids=["", "the first left out"])
def test_a_compiled_step_that_may_be_left_out(optimizer, first):
    def results(wrapped):
        w = jaxgrad.tensor([1.0, 2.0], dtype=jaxgrad.float64, requires_grad=True)
        chosen = optimizer([w])
        scaler = jaxgrad.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
        history = []

        @wrapped
        def step(factor):
            chosen.zero_grad()
            scaler.scale(((w - 3) ** 2 * factor).sum()).backward()
            scaler.step(chosen)
            scaler.update()

        for factor in (first, 1.0, float("nan"), 2.0, 0.5, float("inf"), 1.0, 1.0):
            step(jaxgrad.tensor(factor, dtype=jaxgrad.float64))
            history.append([w.tolist(), scaler.get_scale(), scaler._get_growth_tracker()])
        state = [value for value in chosen.state[w].values() if isinstance(value, jaxgrad.Tensor)]
        if hasattr(step, "traces"):
            assert len(step.traces) == 1 and step.explain().startswith(("traced once", "traced 2 "))
        return history, [tensor.tolist() for tensor in state]

    (eager, eager_state), (compiled, state) = results(lambda f: f), results(jaxgrad.jit)
    for one, other in zip(eager, compiled, strict=True):
        np.testing.assert_allclose(one[0], other[0], rtol=1e-12)
        assert one[1:] == other[1:]
    for one, other in zip(eager_state, state, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.row("S05")
@pytest.mark.slow
def test_a_state_that_is_made_of_the_gradient():
    """With dampening a momentum of zero is not the same as none."""
    w = jaxgrad.ones(2, requires_grad=True)
    optimizer = jaxgrad.optim.SGD([w], lr=0.5, momentum=0.5, dampening=0.5)
    scaler = jaxgrad.amp.GradScaler("cpu", init_scale=8.0)

    def step():
        optimizer.zero_grad()
        scaler.scale((w * w).sum()).backward()
        scaler.step(optimizer)
        scaler.update()

    with pytest.raises(RuntimeError, match=r"call scaler.step\(optimizer\) once before"):
        jaxgrad.jit(step)()
    assert w.tolist() == [1, 1] and not optimizer.state
    step()
    jaxgrad.jit(step)()
    assert w.tolist() == [-0.5, -0.5]  # 1 - 0.5 * 2, then less 0.5 * (0.5 * 2 + 0.5 * 0)


@pytest.mark.row("S05")
@pytest.mark.parametrize("use_reentrant", [False, True])
def test_a_checkpoint_is_computed_again_as_it_was(use_reentrant):
    checkpoint, seen = jaxgrad.utils.checkpoint.checkpoint, []

    def block(x):
        seen.append((x @ x).dtype)
        return x @ weight

    weight, x = jaxgrad.ones(2, 2, requires_grad=True), jaxgrad.ones(2, 2, requires_grad=True)
    with jaxgrad.autocast("cpu"):
        output = checkpoint(block, x, use_reentrant=use_reentrant)
    output.float().sum().backward()
    assert seen == [jaxgrad.bfloat16] * 2 and weight.grad.tolist() == [[2, 2], [2, 2]]


@pytest.mark.row("S05")
def test_operators_take_their_fast_path_afterwards():
    assert not interception.is_general
    with jaxgrad.autocast("cpu"), pytest.raises(ValueError, match="inside"):
        with jaxgrad.autocast("cpu", enabled=False):
            assert interception.arguments is None and not interception.is_general
        assert interception.arguments is not None and interception.is_general
        raise ValueError("inside")
    assert interception.arguments is None and not interception.is_general


@pytest.mark.row("S05")
def test_autocast_on_a_device_that_is_not_there():
    if jaxgrad.core.device.has("cuda"):
        return
    with pytest.warns(UserWarning, match="CUDA is not available"):
        scaler = jaxgrad.amp.GradScaler()
    assert not scaler.is_enabled()
    with pytest.warns(UserWarning, match="CUDA is not available"):
        block = jaxgrad.autocast("cuda")
    with block, warnings.catch_warnings():
        assert (jaxgrad.ones(1, 1) @ jaxgrad.ones(1, 1)).dtype is jaxgrad.float32
    with pytest.raises(RuntimeError, match="unsupported autocast device_type 'moon'"):
        jaxgrad.autocast("moon")


OLDER = {
    "get_autocast_cpu_dtype": ((), "get_autocast_cpu_dtype()", "get_autocast_dtype('cpu')"),
    "get_autocast_gpu_dtype": ((), "get_autocast_gpu_dtype()", "get_autocast_dtype('cuda')"),
    "is_autocast_cpu_enabled": ((), "is_autocast_cpu_enabled()", "is_autocast_enabled('cpu')"),
    "set_autocast_cpu_enabled": (
        (False,),
        "set_autocast_cpu_enabled(enabled)",
        "set_autocast_enabled('cpu', enabled)",
    ),
    "set_autocast_cpu_dtype": (
        (jaxgrad.bfloat16,),
        "set_autocast_cpu_dtype(dtype)",
        "set_autocast_dtype('cpu', dtype)",
    ),
    "set_autocast_gpu_dtype": (
        (jaxgrad.float16,),
        "set_autocast_gpu_dtype(dtype)",
        "set_autocast_dtype('cuda', dtype)",
    ),
}


@pytest.mark.parametrize("name", OLDER)
def test_older_names_warn(name):
    arguments, call, today = OLDER[name]
    words = f"torch.{call} is deprecated. Please use torch.{today} instead."  # PyTorch's
    with pytest.warns(DeprecationWarning) as caught:
        getattr(jaxgrad, name)(*arguments)
    assert [str(warning.message) for warning in caught] == [words]


def test_a_flag_alone_is_for_cuda():
    jaxgrad.set_autocast_enabled(True)
    assert jaxgrad.is_autocast_enabled("cuda") and not jaxgrad.is_autocast_enabled("cpu")
    jaxgrad.set_autocast_enabled(False)
    assert not jaxgrad.is_autocast_enabled("cuda")
    for arguments in ((1,), ("cpu",), ("cpu", 1)):
        with pytest.raises(TypeError, match="argument 'enabled' must be bool"):
            jaxgrad.set_autocast_enabled(*arguments)
