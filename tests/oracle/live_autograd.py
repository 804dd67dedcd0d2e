"""Hooks in random orders, and torch.autograd.functional with random arguments: `make oracle`."""

import random
import warnings

import numpy
import pytest
import torch
from oracle.seed import SEED

import jaxgrad

HOOKS = "tensor", "before node", "after node", "retain", "accumulated", "all", "any"


def shown(value):
    """Gradients as plain values."""
    if isinstance(value, tuple | list):
        return [shown(item) for item in value]
    return value.tolist() if hasattr(value, "tolist") else value


def add_hook(module, kind, tensor, node, others, note):
    """Register a hook that notes its call; `note` gives what it returns."""
    graph = module.autograd.graph
    registered = {
        "tensor": lambda: tensor.register_hook(lambda grad: note(kind, grad)),
        "before node": lambda: node.register_prehook(lambda grads: note(kind, grads)),
        "after node": lambda: node.register_hook(lambda grads, _: note(kind, grads)),
        "retain": tensor.retain_grad,
        "accumulated": lambda: tensor.register_post_accumulate_grad_hook(
            lambda leaf: note("accumulated", leaf.grad)
        ),
        "all": lambda: graph.register_multi_grad_hook(others, lambda grads: note(kind, grads)),
        "any": lambda: graph.register_multi_grad_hook(
            others, lambda grad: note(kind, grad), mode="any"
        ),
    }
    return registered[kind]()


def doubled(grads):
    if isinstance(grads, tuple):
        return tuple(None if grad is None else 2 * grad for grad in grads)
    return 2 * grads


def run_hooks(module, kinds, is_leaf, doubles, removed):
    log, x = [], module.tensor(2.0, requires_grad=True)
    y = 3 * x
    total = (y * y).sum()
    tensor = x if is_leaf else y
    node = module.autograd.graph.get_gradient_edge(tensor).node

    def note(kind, grads):
        log.append((kind, shown(grads)))
        return doubled(grads) if kind in doubles else None

    try:
        handles = [add_hook(module, kind, tensor, node, (x, y), note) for kind in kinds]
        if handles and removed and handles[0] is not None:
            handles[0].remove()
        total.backward()
    except RuntimeError:
        return "RuntimeError"
    return log, x.grad.item(), y.grad.item() if y.retains_grad else None


@pytest.mark.parametrize("number", range(20))
def test_orders_of_hooks(number):
    draw = random.Random(f"{SEED} hooks {number}")
    for _ in range(20):
        kinds = [draw.choice(HOOKS) for _ in range(draw.randint(1, 5))]
        doubles = {kind for kind in HOOKS[:3] if draw.random() < 0.5}
        setting = kinds, draw.random() < 0.5, doubles, draw.random() < 0.2
        theirs, ours = (run_hooks(module, *setting) for module in (torch, jaxgrad))
        assert ours == theirs, f"SEED={SEED} {setting}"


FUNCTIONS = {
    "product": lambda m, x, y: x.sin() * y.sum(),
    "sum": lambda m, x, y: (x * y.exp()).sum(),
    "several": lambda m, x, y: (x.exp(), (y**2).sum()),
    "one alone": lambda m, x, y: (x**3).sum(),
    "constant": lambda m, x, y: m.ones(2, dtype=m.float64),
    "detached": lambda m, x, y: x.detach().sum() * y.sum(),
    "linear": lambda m, x, y: 3 * x + 2 * y,
}
OPERATORS = "jacobian", "hessian", "vjp", "jvp", "vhp", "hvp"


def functional(module, operator, function, arrays, options):
    """The results with their grad requirement, or the kind of the error."""
    x, y = (module.tensor(array) for array in arrays)
    vectors = (2 * x, y - 1)
    if operator == "vjp":
        results = FUNCTIONS[function](module, x, y)
        results = results if isinstance(results, tuple) else (results,)
        vectors = tuple(module.full_like(result, 0.5) for result in results)
        vectors = vectors if len(vectors) > 1 else vectors[0]
    arguments = (vectors,) if operator in ("vjp", "jvp", "vhp", "hvp") else ()
    try:
        result = getattr(module.autograd.functional, operator)(
            lambda x, y: FUNCTIONS[function](module, x, y), (x, y), *arguments, **options
        )
    except (RuntimeError, ValueError, TypeError) as error:
        return type(error).__name__
    return flat(result)


def flat(result):
    """The numbers of all tensors in a result."""
    if isinstance(result, tuple | list):
        return numpy.concatenate([flat(item) for item in result])
    return result.detach().numpy().ravel()


@pytest.mark.parametrize("operator", OPERATORS)
def test_functional(operator):
    draw = random.Random(f"{SEED} {operator}")
    numbers = numpy.random.default_rng([SEED, len(operator), OPERATORS.index(operator)])
    for function in FUNCTIONS:
        options = {"create_graph": draw.random() < 0.5, "strict": draw.random() < 0.3}
        if operator in ("jacobian", "hessian") and not options["strict"]:
            options["vectorize"] = draw.random() < 0.5
        arrays = numbers.standard_normal((2, 3))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs, ours = (
                functional(module, operator, function, arrays, options)
                for module in (torch, jaxgrad)
            )
        where = f"SEED={SEED} {operator} {function} {options}"
        if isinstance(theirs, str) or isinstance(ours, str):
            assert ours == theirs, where
        else:
            numpy.testing.assert_allclose(ours, theirs, 1e-9, 1e-12, err_msg=where)
