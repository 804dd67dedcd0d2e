"""Objects that a compiled function makes, uses and leaves: nothing of them is a result or an input.

Each world gives a function of one tensor, whose results and gradients must be those of the
uncompiled function, and which is traced once.
"""

import copy
import functools
import gc
import warnings

import jax
import pytest

import jaxgrad as torch

nn, optim = torch.nn, torch.optim


@pytest.fixture(autouse=True)
def passes_may_be_recorded():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Using backward\\(\\) with create_graph")
        yield


def test_momentum_of_a_differentiable_step():
    w0 = torch.tensor([1.0, 2.0], requires_grad=True)

    def f(x):
        w = w0 * 1
        w.retain_grad()
        opt = optim.SGD([w], lr=0.1, momentum=0.9, differentiable=True)
        (w * w).sum().backward(create_graph=True)
        opt.step()
        return (w * w).sum()

    w0.grad = None
    y = torch.jit(f)(0)
    w0.grad = None
    y.backward()
    assert round(y.item(), 5) == 3.2
    torch.testing.assert_close(w0.grad, torch.tensor([1.28, 2.56]))


# ---- optimizers whose steps are differentiated

OPTIMIZERS = {
    "SGD": {"momentum": 0.9, "nesterov": True},
    "Adam": {"amsgrad": True},
    "AdamW": {},
    "RMSprop": {"momentum": 0.5, "centered": True},
    "Adagrad": {"lr_decay": 0.1},
    "Adadelta": {},
    "Adamax": {},
    "NAdam": {},
    "RAdam": {},
    "ASGD": {},
    "Rprop": {},
}


def differentiable_steps(name):
    def world(w0):
        def f(x):
            w = w0 * 1 + x
            w.retain_grad()
            opt = getattr(optim, name)([w], lr=0.1, differentiable=True, **OPTIMIZERS[name])
            for _ in range(2):
                w.grad = None
                (w * w).sum().backward(create_graph=True)
                opt.step()
            return (w * w).sum()

        return f

    marks = () if name == "SGD" else pytest.mark.slow
    return pytest.param(world, id=f"differentiable {name}", marks=marks)


# ---- optimizers and schedulers of parameters from outside

PLAIN = [*OPTIMIZERS, "Adafactor", "Muon"]


def steps_and_rates(name):
    def world(w0):
        weight = nn.Parameter(torch.eye(2))

        def f(x):
            with torch.no_grad():
                weight.copy_(torch.eye(2))
            opt = getattr(optim, name)([weight], lr=0.1, **OPTIMIZERS.get(name, {}))
            scheduler = optim.lr_scheduler.ExponentialLR(opt, 0.5)
            for _ in range(3):
                weight.grad = None
                ((weight @ w0.detach()) ** 2).sum().backward()
                opt.step()
                scheduler.step()
            rate = opt.param_groups[0]["lr"] + scheduler.get_last_lr()[0]
            return (weight.detach() @ w0).sum() * x + rate

        return f

    marks = () if name == "Adam" else pytest.mark.slow
    return pytest.param(world, id=f"steps of {name}", marks=marks)


def scheduler_between_differentiable_steps(w0):
    def f(x):
        w = w0 * 1
        w.retain_grad()
        opt = optim.SGD([w], lr=0.1, momentum=0.9, differentiable=True)
        scheduler = optim.lr_scheduler.StepLR(opt, 1, 0.5)
        for _ in range(3):
            w.grad = None
            (w * w).sum().backward(create_graph=True)
            opt.step()
            scheduler.step()
        return (w * w).sum()

    return f


def options_that_are_set(w0):
    settings = {"lr": 0.1}

    def f(x):
        w = torch.eye(2) * w0
        w.retain_grad()
        groups = [{"params": [w], "lr": settings["lr"]}]
        opt = optim.SGD(groups, lr=1.0, momentum=0.9, differentiable=True)
        opt.param_groups[0]["momentum"] = 0.5
        for group in opt.param_groups:
            group["lr"] *= 2
        opt.add_param_group({"params": [torch.zeros(2, requires_grad=True)]})
        ((w @ w0) ** 2).sum().backward(create_graph=True)
        opt.step()
        return (w @ w0).sum() + opt.param_groups[0].get("lr") + len(opt.param_groups[1])

    return f


def copied_optimizer(w0):
    weight = nn.Parameter(torch.eye(2))
    original = optim.Adam([weight], lr=0.1)

    def f(x):
        opt = copy.deepcopy(original)
        (w,) = opt.param_groups[0]["params"]
        opt.param_groups[0]["lr"] = 0.3
        ((w @ w0.detach()) ** 2).sum().backward()
        opt.step()
        return (w.detach() @ w0).sum() + opt.param_groups[0]["lr"]

    return f


def hooks_and_state_dict(w0):
    def f(x):
        w, seen = w0 * 1, []
        w.retain_grad()
        opt = optim.Adam([w], lr=0.1, differentiable=True)
        opt.register_step_post_hook(lambda opt, args, kwargs: seen.append(w * 1))
        for _ in range(2):
            w.grad = None
            (w * w).sum().backward(create_graph=True)
            opt.step()
        return (w * seen[0]).sum() + opt.state_dict()["state"][0]["exp_avg"].sum()

    return f


def optimizer_of_ones_own(w0):
    class Patched(optim.SGD):
        def step(self, loss):
            params = [p for group in self.param_groups for p in group["params"]]
            slopes = torch.autograd.grad(loss, params, create_graph=True)
            moved = []
            for param, slope in zip(params, slopes, strict=True):
                before = self.state[param].get("momentum_buffer")
                buffer = slope if before is None else before * 0.9 + slope
                moved.append(param - 0.1 * buffer)
                self.state[moved[-1]] = {"momentum_buffer": buffer}
            self.param_groups[0]["params"] = moved
            return moved[0]

    def f(x):
        w = w0 * 1
        w.retain_grad()
        opt = Patched([w], lr=0.1)
        for _ in range(2):
            w = opt.step((w * w).sum())
        return (w * w).sum()

    return f


def kept_by_a_cycle(w0):
    def f(x):
        w = w0 * 1
        w.retain_grad()
        opt = optim.SGD([w], lr=0.1, momentum=0.9, differentiable=True)
        (w * w).sum().backward(create_graph=True)
        opt.step()
        try:
            raise ValueError
        except ValueError as error:
            kept = {"error": error, "opt": opt}
            opt.kept = kept["kept"] = kept
        return (w * w).sum()

    return f


# ---- other objects


def averaged_model(w0):
    def f(x):
        model = nn.Linear(2, 1, bias=False)
        with torch.no_grad():
            model.weight.fill_(0.5)
        average, opt = optim.swa_utils.AveragedModel(model), optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            opt.zero_grad()
            (model(w0.detach()) ** 2).sum().backward()
            opt.step()
            average.update_parameters(model)
        return (average(w0) ** 2).sum()

    return f


def module_that_keeps_what_it_computed(w0):
    def f(x):
        class Layer(nn.Module):
            def forward(self, x):
                self.kept, self.me = w0 * x + w0, self
                return (self.kept**2).sum()

        return Layer()(x)

    return f


def normalization(w0):
    def f(x):
        norm = nn.BatchNorm1d(2)
        y = norm(norm(torch.stack([w0, w0 * 2])) * w0)
        return (y**3).sum() + norm.running_mean.sum() + norm.num_batches_tracked

    return f


def parametrized_module(w0):
    def f(x):
        layer = nn.Linear(2, 2, bias=False)
        with torch.no_grad():
            layer.weight.copy_(torch.eye(2))

        class Scaled(nn.Module):
            def forward(self, weight):
                self.kept = weight * w0
                return self.kept

        nn.utils.parametrize.register_parametrization(layer, "weight", Scaled())
        with nn.utils.parametrize.cached():
            return (layer(w0) ** 2).sum() + layer.weight.sum()

    return f


def inner_loop(w0):
    layer = nn.Linear(2, 1)

    def f(x):
        params = {name: p.detach() * 0 + w0.sum() for name, p in layer.named_parameters()}
        for _ in range(2):
            loss = (torch.func.functional_call(layer, params, (w0[None],)) ** 2).sum()
            slopes = torch.autograd.grad(loss, list(params.values()), create_graph=True)
            pairs = zip(params.items(), slopes, strict=True)
            params = {name: p - 0.01 * slope for (name, p), slope in pairs}
        return (torch.func.functional_call(layer, params, (w0[None],)) ** 2).sum()

    return f


def closure_of_itself(w0):
    def f(x):
        def inner(k):
            h = w0 * k

            def again():
                return h, again

            return again

        return (inner(x)()[0] ** 2).sum() + w0.sum()

    return f


def generator_that_has_not_ended(w0):
    def f(x):
        def powers():
            h = w0 * 1
            while True:
                h = h * 2 + x
                yield h

        steps = powers()
        next(steps)
        return (next(steps) ** 2).sum()

    return f


def exception_with_its_frames(w0):
    def f(x):
        try:
            h = w0 * 2
            raise ValueError("no", h)
        except ValueError as error:
            kept = error
        return (kept.args[1] ** 2).sum()

    return f


def context_of_a_function(w0):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.x, ctx.me = x, ctx
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            return 2 * x * gradient

    return lambda x: Square.apply(w0 * x + w0).sum()


def caches_of_ones_own(w0):
    def f(x):
        @functools.lru_cache
        def scaled(k):
            return w0 * k

        class Holder:
            @functools.cached_property
            def value(self):
                return w0 * x + scaled(2)

        holder = Holder()
        holder.me = holder
        return (holder.value**2).sum()

    return f


def cache_that_is_cleared(w0):
    cache = {}

    def f(x):
        cache["h"] = w0 * 2
        y = (cache["h"] ** 2).sum()
        cache.clear()
        return y

    return f


def hook_that_holds_its_tensor(w0):
    def f(x):
        h = w0 * 1
        h.me = h
        h.register_hook(lambda gradient: gradient * 2 if h is not None else gradient)
        h.retain_grad()
        (h * h).sum().backward(create_graph=True)
        return h.grad.sum() + h.sum()

    return f


WORLDS = [
    *map(differentiable_steps, OPTIMIZERS),
    *map(steps_and_rates, PLAIN),
    scheduler_between_differentiable_steps,
    options_that_are_set,
    copied_optimizer,
    hooks_and_state_dict,
    optimizer_of_ones_own,
    kept_by_a_cycle,
    averaged_model,
    module_that_keeps_what_it_computed,
    normalization,
    parametrized_module,
    inner_loop,
    closure_of_itself,
    generator_that_has_not_ended,
    exception_with_its_frames,
    context_of_a_function,
    caches_of_ones_own,
    cache_that_is_cleared,
    hook_that_holds_its_tensor,
]


def results_of(world, jit):
    """The results of three calls with first and second derivatives, and the function."""
    w0 = torch.tensor([1.0, 2.0], requires_grad=True)
    function, results = jit(world(w0)), []
    for x in (0.5, 1.0, 1.5):
        w0.grad = None
        y = function(torch.tensor(x))
        w0.grad = None
        (y * y).backward()
        results += [y.detach(), w0.grad]
    w0.grad = None
    y = function(torch.tensor(2.0))
    w0.grad = None
    (slope,) = torch.autograd.grad(y * y, w0, create_graph=True)
    return [*results, *torch.autograd.grad(slope.sum(), w0)], function


@pytest.mark.parametrize("world", WORLDS)
def test_what_a_function_makes_and_leaves_is_no_result(world):
    results, function = results_of(world, torch.jit)
    torch.testing.assert_close(results, results_of(world, lambda function: function)[0])
    assert len(function.traces) == 1, function.explain()


def test_optimizer_that_is_kept_goes_on():
    def world(jit):
        weight, state = nn.Parameter(torch.eye(2)), {}

        def f(x):
            if "opt" not in state:
                state["opt"] = optim.Adam([weight], lr=0.1)
            state["opt"].zero_grad()
            ((weight @ x) ** 2).sum().backward()
            state["opt"].step()
            return weight.detach() * 1

        step = jit(f)
        return [step(torch.tensor([1.0, 2.0])).tolist() for _ in range(4)]

    assert world(torch.jit) == world(lambda function: function)


def test_error_leaves_an_optimizer_from_outside_as_it_was():
    weight = nn.Parameter(torch.ones(2))
    opt = optim.Adam([weight], lr=0.1)

    def f(x):
        (weight * x).sum().backward()
        opt.step()
        new = optim.Adam([weight], lr=0.1)
        new.step()
        raise ValueError

    with pytest.raises(ValueError):
        torch.jit(f)(torch.ones(2))
    assert not opt.state and weight.tolist() == [1, 1]


@pytest.mark.unverified
def test_nothing_waits_for_a_collection():
    w0 = torch.tensor([1.0, 2.0], requires_grad=True)

    def f(x):
        w = w0 * x
        w.register_hook(lambda gradient: gradient * 2)
        opt = optim.SGD([w.detach().requires_grad_()], lr=0.1, momentum=0.9)
        opt.param_groups[0]["params"][0].sum().backward()
        opt.step()
        return (w * w).sum() + opt.param_groups[0]["params"][0].sum()

    gc.collect()
    gc.disable()
    try:
        y = torch.jit(f)(torch.tensor(2.0))
        (slope,) = torch.autograd.grad(y, w0, create_graph=True)
        slope.sum().backward()
        kept = [value for value in gc.get_objects() if type(value) is torch.Tensor]
        assert not any(isinstance(value._raw, jax.core.Tracer) for value in kept)
    finally:
        gc.enable()
