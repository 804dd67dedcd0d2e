"""Schedulers: PyTorch's learning rates, epoch by epoch."""

import math
import warnings

import pytest
from helpers.as_torch import as_torch, error, leaf, warned

import jaxgrad


def optimizer_of(torch, name="SGD", **options):
    groups = [{"params": [leaf(torch, 1.0)]}, {"params": [leaf(torch, 2.0)], "lr": 0.05}]
    options = {"momentum": 0.9} if name == "SGD" else options
    return getattr(torch.optim, name)(groups, 0.4, **options)


def ran(torch, make, epochs=25, name="SGD"):
    """The rates and momenta of all groups, epoch by epoch."""
    optimizer = optimizer_of(torch, name)
    scheduler = make(torch.optim.lr_scheduler, optimizer)
    history = []
    for _ in range(epochs):
        groups = optimizer.param_groups
        history.append([[g["lr"], g.get("momentum"), g.get("betas")] for g in groups])
        assert scheduler.get_last_lr() == [g["lr"] for g in groups]
        optimizer.step()
        scheduler.step()
    return history


def sequence(known, optimizer):
    parts = [
        known.LinearLR(optimizer, 0.2, total_iters=4),
        known.CosineAnnealingLR(optimizer, 7, 0.01),
        known.ExponentialLR(optimizer, 0.8),
    ]
    return known.SequentialLR(optimizer, parts, [5, 14])


def chained(known, optimizer):
    parts = [known.ConstantLR(optimizer, 0.3, 4), known.StepLR(optimizer, 3, 0.7)]
    return known.ChainedScheduler(parts, optimizer)


CASES = {
    "LambdaLR": lambda known, o: known.LambdaLR(o, [lambda e: 0.95**e, lambda e: 1 / (1 + e)]),
    "LambdaLR_for_all": lambda known, o: known.LambdaLR(o, lambda epoch: 1 + epoch),
    "MultiplicativeLR": lambda known, o: known.MultiplicativeLR(o, lambda epoch: 0.9),
    "StepLR": lambda known, o: known.StepLR(o, 4, 0.3),
    "MultiStepLR": lambda known, o: known.MultiStepLR(o, [3, 8, 8, 20], 0.3),
    "ConstantLR": lambda known, o: known.ConstantLR(o, 0.3, 6),
    "LinearLR": lambda known, o: known.LinearLR(o, 0.2, 0.8, 9),
    "ExponentialLR": lambda known, o: known.ExponentialLR(o, 0.93),
    "PolynomialLR": lambda known, o: known.PolynomialLR(o, 15, 1.7),
    "CosineAnnealingLR": lambda known, o: known.CosineAnnealingLR(o, 7, 0.01),
    "WarmRestarts": lambda known, o: known.CosineAnnealingWarmRestarts(o, 3, 2, 0.01),
    "OneCycleLR": lambda known, o: known.OneCycleLR(o, [0.5, 0.2], total_steps=30),
    "OneCycleLR_linear": lambda known, o: known.OneCycleLR(
        o, 0.5, epochs=6, steps_per_epoch=5, anneal_strategy="linear", three_phase=True
    ),
    "OneCycleLR_rate_alone": lambda known, o: known.OneCycleLR(
        o, 0.5, 40, pct_start=0.5, cycle_momentum=False, div_factor=10, final_div_factor=100
    ),
    "CyclicLR": lambda known, o: known.CyclicLR(o, 0.01, [0.4, 0.1], 4, 7),
    "CyclicLR_lower": lambda known, o: known.CyclicLR(o, 0.01, 0.4, 4, mode="triangular2"),
    "CyclicLR_range": lambda known, o: known.CyclicLR(o, 0.01, 0.4, 4, mode="exp_range", gamma=0.9),
    "CyclicLR_scaled": lambda known, o: known.CyclicLR(
        o, 0.01, 0.4, 4, scale_fn=lambda x: 1 / (1 + x), scale_mode="iterations"
    ),
    "SequentialLR": sequence,
    "ChainedScheduler": chained,
}


def of_case(name):
    def body(torch):
        return ran(torch, CASES[name])

    body.__name__ = f"test_rates_of_{name}"
    return as_torch(body)


for _name in CASES:
    vars()[f"test_rates_of_{_name}"] = of_case(_name)


@as_torch
def test_the_momentum_of_Adam_in_a_cycle(torch):
    one = ran(torch, CASES["OneCycleLR"], 12, "Adam")
    return one, ran(torch, CASES["CyclicLR"], 12, "AdamW")


@as_torch
def test_reduce_on_plateau_waits_and_cools_down(torch):
    metrics = [3.0, 2.0, 1.9, 1.95, 1.99, 1.9, 2.5, 2.6, 1.0, 0.99991, 0.9999, 0.9998, 0.99, 7.0]
    settings = [
        {"patience": 1},
        {"patience": 0, "mode": "max", "factor": 0.5, "min_lr": [0.1, 0.02]},
        {"patience": 0, "threshold": 0.1, "threshold_mode": "abs", "cooldown": 2},
        {"patience": 2, "mode": "max", "threshold_mode": "abs", "eps": 0.1},
    ]
    results = []
    for options in settings:
        optimizer = optimizer_of(torch)
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **options)
        for metric in metrics * 2:
            scheduler.step(torch.tensor(metric))
            results.append((scheduler.get_last_lr(), scheduler.num_bad_epochs, scheduler.best))
    return results


@as_torch
def test_schedulers_go_on_where_they_ended(torch):
    rates = {}
    for name, make in CASES.items():
        if "Lambda" in name or "scaled" in name:
            continue
        first, second = optimizer_of(torch), optimizer_of(torch)
        schedulers = [make(torch.optim.lr_scheduler, optimizer) for optimizer in (first, second)]
        for _ in range(6):
            first.step()
            schedulers[0].step()
        second.load_state_dict(first.state_dict())
        schedulers[1].load_state_dict(schedulers[0].state_dict())
        for _ in range(8):
            second.step()
            schedulers[1].step()
        rates[name] = schedulers[1].get_last_lr()
    return rates


@as_torch
def test_attributes_of_schedulers(torch):
    keys = {}
    for name, make in CASES.items():
        if not name.startswith(("Sequential", "Chained", "Lambda", "Cyclic")):
            scheduler = make(torch.optim.lr_scheduler, optimizer_of(torch))
            keys[name] = {k: str(v) for k, v in scheduler.state_dict().items() if k != "lr_lambdas"}
            keys[name] = sorted(keys[name])
    return keys


class Halving:
    """A function of the epoch with state."""

    def __init__(self):
        self.base = 2.0

    def __call__(self, epoch):
        return self.base**-epoch


@as_torch("""
    [{'base': 4.0}, None]
    [0.1, 0.05]
""")
def test_objects_that_are_called_are_saved(torch):
    known = torch.optim.lr_scheduler
    scheduler = known.LambdaLR(optimizer_of(torch), [Halving(), lambda epoch: 1.0])
    scheduler.lr_lambdas[0].base = 4.0
    told = scheduler.state_dict()["lr_lambdas"]
    other = known.LambdaLR(optimizer_of(torch), [Halving(), lambda epoch: 1.0])
    other.load_state_dict(scheduler.state_dict())
    other.optimizer.step()
    other.step()
    return told, other.get_last_lr()


@as_torch
def test_schedulers_with_an_epoch(torch):
    known, results = torch.optim.lr_scheduler, []
    for make in (CASES["StepLR"], CASES["WarmRestarts"], CASES["CosineAnnealingLR"]):
        scheduler = make(known, optimizer_of(torch))
        scheduler.optimizer.step()
        for epoch in (3, 7, 2):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                scheduler.step(epoch)
            results.append(scheduler.get_last_lr())
    warm = CASES["WarmRestarts"](known, optimizer_of(torch))
    for epoch in (0.5, 4.25, 11.0):
        warm.step(epoch)
        results.append((warm.get_last_lr(), warm.T_cur, warm.T_i, warm.last_epoch))
    return results


@as_torch(r"""
    KeyError(
     '"param \'initial_lr\' is not specified in param_groups[0] when resuming scheduler '
     "with last_epoch >= 0.\\nThis typically happens when:\\n1. You're trying to resume "
     "training from a checkpoint but haven't properly loaded the optimizer state\\n2. "
     'You\'re using last_epoch >= 0 for a fresh training run (not recommended)"')
    [0.4, 0.05]
    5
""")
def test_a_scheduler_that_resumes(torch):
    known = torch.optim.lr_scheduler
    words = "param 'initial_lr' is not specified in param_groups[0] when resuming"
    missing = error(known.StepLR, optimizer_of(torch), 3, 0.1, 4, words=words)
    optimizer = optimizer_of(torch)
    for group in optimizer.param_groups:
        group["initial_lr"] = 0.3
    resumed = known.CosineAnnealingLR(optimizer, 10, last_epoch=4)
    return missing, resumed.get_last_lr(), resumed.last_epoch


@as_torch("""
    tensor(0.25, dtype=float64)
    True
    [tensor(0.25, dtype=float64)]
""")
def test_an_lr_that_is_a_tensor_is_written_to(torch):
    rate = torch.tensor(0.5, dtype=torch.float64)
    optimizer = torch.optim.SGD([leaf(torch, 1.0)], lr=rate)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    optimizer.step()
    scheduler.step()
    return rate, optimizer.param_groups[0]["lr"] is rate, scheduler.get_last_lr()


@as_torch("""
    ['Detected call of `lr_scheduler.step()` before `optimizer.ste']
    []
    [('To get the last learning rate computed by the scheduler, please use ' '`get_last_lr()`.')]
    ['The epoch parameter in `scheduler.step()` was not neces']
""")
def test_warnings_of_schedulers(torch):
    known, optimizer = torch.optim.lr_scheduler, optimizer_of(torch)
    scheduler = known.ExponentialLR(optimizer, 0.5)
    early = [w["says"][:60] for w in warned(scheduler.step)["warnings"]]
    optimizer.step()
    later = warned(scheduler.step)["warnings"]
    asked = [w["says"] for w in warned(scheduler.get_lr)["warnings"]]
    with_epoch = [w["says"][:55] for w in warned(scheduler.step, 1)["warnings"]]
    return early, later, asked, with_epoch


@as_torch
def test_errors_of_schedulers(torch):
    known = torch.optim.lr_scheduler
    optimizer, other = optimizer_of(torch), optimizer_of(torch)
    plain = torch.optim.Adagrad([leaf(torch, 1.0)])
    step = known.StepLR(other, 3)
    calls = [
        (lambda: known.StepLR(None, 3), "is not an Optimizer"),
        (lambda: known.LambdaLR(optimizer, [abs]), "Expected 2 lr_lambdas, but got 1"),
        (lambda: known.MultiplicativeLR(optimizer, [1, 2]), "lr_lambda should be a function"),
        (lambda: known.ConstantLR(optimizer, 1.5), "expected to be between 0 and 1"),
        (lambda: known.LinearLR(optimizer, 0), "expected to be greater than 0 and less or equal"),
        (lambda: known.LinearLR(optimizer, 0.5, 2), "Ending multiplicative factor expected"),
        (lambda: known.OneCycleLR(optimizer, 0.1), "You must define either total_steps OR"),
        (lambda: known.OneCycleLR(optimizer, 0.1, 0), "Expected positive integer total_steps"),
        (lambda: known.OneCycleLR(optimizer, 0.1, 5, pct_start=2.0), "between 0 and 1 pct_start"),
        (lambda: known.OneCycleLR(optimizer, 0.1, 5, anneal_strategy="x"), "must be one of 'cos'"),
        (lambda: known.OneCycleLR(optimizer, [0.1], 5), "must have the same length as optimizer"),
        (lambda: known.OneCycleLR(plain, 0.1, 5), "must support momentum or beta1"),
        (lambda: known.CyclicLR(optimizer, 0.1, 0.2, mode="x"), "mode is invalid and scale_fn is"),
        (lambda: known.CosineAnnealingWarmRestarts(optimizer, 0), "Expected positive integer T_0"),
        (lambda: known.CosineAnnealingWarmRestarts(optimizer, 1, 0), "integer T_mult >= 1"),
        (lambda: known.CosineAnnealingWarmRestarts(optimizer, 2).step(-1), "non-negative epoch"),
        (lambda: known.ReduceLROnPlateau(optimizer, factor=1.0), "Factor should be < 1.0"),
        (lambda: known.ReduceLROnPlateau(optimizer, "x"), "mode x is unknown"),
        (lambda: known.ReduceLROnPlateau(optimizer, min_lr=[1]), "expected 2 min_lrs, got 1"),
        (lambda: known.SequentialLR(optimizer, [], []), "expects at least one scheduler"),
        (lambda: known.SequentialLR(optimizer, [step], []), "to belong to the same optimizer"),
        (lambda: known.SequentialLR(other, [step], [1]), "one more than the number of milestone"),
        (lambda: known.ChainedScheduler([]), "expects at least one scheduler to be chained"),
        (lambda: known.ChainedScheduler([abs], other), "should have `optimizer` as its attribute"),
    ]
    return [error(call, words=words) for call, words in calls]


@as_torch("ValueError('Tried to step 3 times. The specified number of total steps is 2')")
def test_one_step_too_many(torch):
    optimizer = optimizer_of(torch)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=2)
    optimizer.step()
    scheduler.step()
    scheduler.step()
    return error(scheduler.step, words="Tried to step 3 times. The specified number of total steps")


def test_cosine_annealing_in_closed_form():
    optimizer = optimizer_of(jaxgrad)
    scheduler = jaxgrad.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20, 0.1)
    for epoch in range(20):
        expected = 0.1 + 0.3 * (1 + math.cos(math.pi * epoch / 20)) / 2
        assert scheduler.get_last_lr()[0] == pytest.approx(expected, rel=1e-9)
        optimizer.step()
        scheduler.step()


def test_a_class_in_place_of_an_optimizer():
    with pytest.raises(TypeError, match=r"type is not an Optimizer: call the class, SGD\(...\)"):
        jaxgrad.optim.lr_scheduler.StepLR(jaxgrad.optim.SGD, 1)
