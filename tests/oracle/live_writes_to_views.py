"""Random programs that write to views, in each transform: values, tangents and gradients."""

import random

import pytest
import torch
from helpers import checks
from oracle.seed import SEED

import jaxgrad

VIEWS = (
    *("{v}[1:]", "{v}[:, ::2]", "{v}[0]", "{v}[..., 1]", "{v}[None]", "{v}.t()", "{v}.mT"),
    *("{v}.select(-1, 0)", "{v}.diagonal()", "{v}.unbind(0)[1]", "{v}.split(2)[0]"),
    *("{v}.chunk(2, -1)[0]", "{v}.narrow(0, 0, 2)", "{v}.expand(2, *{v}.shape)", "{v}.view(-1)"),
    *("{v}.unfold(-1, 2, 1)", "{v}.movedim(0, -1)", "{v}.detach()", "{v}.view_as({v})"),
    *("{v}.squeeze()", "{v}.unflatten(-1, (2, -1))", "{v}.swapaxes(0, -1)"),
)
# no operand of a write shares its memory: PyTorch reads tangents while it writes them
WRITES = (
    *("{v}.add_({w})", "{v}.mul_({w})", "{v}.copy_({w})", "{v}.sub_({w}, alpha=3)", "{v}.zero_()"),
    *("{v}.sin_()", "{v}.relu_()", "{v}.tanh_()", "{v}.neg_()", "{v}.pow_(2)", "{v}.fill_(0.5)"),
    *("{v}[0] = {w}", "{v}[..., 0] = 3.5", "{v}[1:] += {w}", "{v} *= {w}", "{v}.clamp_(-1, 1)"),
    *("{v}.masked_fill_({v} > 0.2, 1.5)", "{v}.lerp_({w}, 0.3)", "{v}.tril_()", "{v}.cumsum_(0)"),
    *("{v}.index_fill_(0, torch.tensor([0]), 2.0)", "{v}[torch.tensor([0, 0])] = {w}"),
    *("{v}.index_add_(0, torch.tensor([0]), {v}[:1].clone())", "{v}.transpose_(0, -1)"),
    "{v}.addcmul_({w}, {w}, value=2)",
)
COMPUTED = "{v} * 1", "{v}.clone()", "{v}.sin()", "{v} + {w}", "torch.cat([{v}, {v}])"
STARTS = "x.clone()", "x + y", "torch.zeros_like(x)", "x"

REFUSED = (
    "more than one element of the written-to tensor",  # PyTorch writes one of the values
    "gives each example another shape or memory in place",
    "shares its memory with a detached one",
    "sets a seed, or changes an object or more of an argument",
)


def tensors(module, draw, count=6):
    return [
        module.tensor(
            [[draw.uniform(-2, 2) for _ in range(4)] for _ in range(3)], dtype=module.float64
        )
        for _ in range(count)
    ]


def program(draw):
    """The source of a function of two tensors that PyTorch runs."""
    lines, names = [f"b = {draw.choice(STARTS)}"], ["b"]
    for _ in range(draw.randint(6, 14)):
        form = draw.choice(draw.choices((VIEWS, WRITES, COMPUTED), (4, 4, 1))[0])
        line = form.format(
            v=draw.choice(names[-4:]), w=f"{draw.choice(['x', 'y', *names])}.clone()"
        )
        if form not in WRITES:
            line = f"t{len(lines)} = {line}"
        try:
            function_of(torch, [*lines, line], names)(*tensors(torch, random.Random(0), 2))
        except (RuntimeError, IndexError):
            continue
        lines.append(line)
        if form not in WRITES:
            names.append(line.partition(" ")[0])
    return lines, names


def function_of(module, lines, names):
    source = "\n    ".join(["def f(x, y):", *lines, f"return ({', '.join(names)},)"])
    space = {"torch": module}
    exec(source, space)
    return space["f"]


def total(results):
    return sum((t * t).sum() + t.sum() for t in results)


def transforms(module, function, draw):
    """For each transform a function without arguments."""
    func = module.func
    x, y, u, v, x2, y2 = tensors(module, draw)
    pairs = module.stack([x, x2]), module.stack([y, y2], 1)

    def dual():
        forward = module.autograd.forward_ad
        with forward.dual_level():
            results = function(forward.make_dual(x.clone(), u.clone()), y.clone())
            return [tuple(forward.unpack_dual(t)) for t in results]

    def gradients():
        leaves = [t.clone().requires_grad_() for t in (x, y)]
        results = function(*[leaf * 1 for leaf in leaves])
        return module.autograd.grad(total(results), leaves, allow_unused=True)

    def mapped():
        return func.vmap(function, in_dims=(0, 1))(*[t.clone() for t in pairs])

    def mapped_whole():
        whole = [t.clone() for t in pairs]
        func.vmap(function, in_dims=(0, 1))(*whole)
        return whole

    def product(function, primals, tangents):
        # PyTorch writes to the tangents that it is given
        copies = [tuple(t.clone() for t in part) for part in (primals, tangents)]
        return func.jvp(function, *copies)

    by_example = func.vmap(function, in_dims=(0, 1))
    nested = func.vmap(func.vmap(function, in_dims=(0, None)), in_dims=(1, 0))
    summed = func.grad(lambda a, b: total(function(a * 1, b * 1)), (0, 1))
    return {
        "dual": dual,
        "gradients": gradients,
        "jvp": lambda: product(function, (x, y), (u, v)),
        "func.grad": lambda: summed(x.clone(), y.clone()),
        "jacfwd": lambda: func.jacfwd(lambda a: function(a * 1, y.clone()))(x),
        "vmap": mapped,
        "vmap, arguments": mapped_whole,
        "vmap, one argument": lambda: func.vmap(function, in_dims=(0, None))(pairs[0].clone(), y),
        "vmap of vmap": lambda: nested(
            module.stack([pairs[0], pairs[0] * 2], 1), pairs[1].transpose(0, 1).clone()
        ),
        "vmap of grad": lambda: func.vmap(summed, in_dims=(0, 1))(*pairs),
        "jvp of vmap": lambda: product(
            by_example, pairs, (module.stack([u, v]), module.stack([v, u], 1))
        ),
        "vmap of jvp": lambda: func.vmap(lambda a, b: product(function, (a, b), (b * 1, a * 1)))(
            pairs[0], module.stack([y, y2])
        ),
    }


def answer(call):
    try:
        return call()
    except Exception as error:
        return error


def as_lists(value):
    if isinstance(value, tuple | list):
        return [as_lists(item) for item in value]
    return value if value is None else torch.tensor(value.tolist(), dtype=torch.float64)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", range(25))
def test_writes_to_views(number):
    draw = random.Random(f"{SEED} writes to views {number}")
    lines, names = program(draw)
    numbers = draw.random()
    theirs, ours = (
        transforms(module, function_of(module, lines, names), random.Random(numbers))
        for module in (torch, jaxgrad)
    )
    for name, call in theirs.items():
        wanted = answer(call)
        if isinstance(wanted, Exception):
            continue  # PyTorch refuses a gradient that a write made stale; jaxgrad computes it
        result = answer(ours[name])
        checks.count("writes to views")
        where = f"{name} of\n" + "\n".join(lines)
        if isinstance(result, Exception):
            assert any(words in str(result) for words in REFUSED), (where, result)
            continue
        torch.testing.assert_close(
            as_lists(result), as_lists(wanted), rtol=1e-7, atol=1e-9, equal_nan=True, msg=where
        )
