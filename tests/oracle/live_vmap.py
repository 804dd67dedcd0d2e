"""Random calls of `vmap` in PyTorch and jaxgrad: dimensions, nestings, chunks, views, randomness.

Random numbers differ. What must agree is whether a call raises, the shape and dtype of the result,
which examples have equal numbers, and whether they are those of a call without `vmap` from the same
seed: of the whole batch for "different", of one example for "same".
"""

import random
import warnings

import pytest
import torch
from helpers.numpy_product import product_of
from oracle.seed import SEED

import jaxgrad

# PyTorch sets a variable of the environment at its first gradient under `vmap`
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    cubes = torch.func.grad(lambda x: (x**3).sum())
    torch.func.vmap(torch.func.vmap(cubes))(torch.ones(2, 3, 1))


CALLS = 40

DRAWS = {
    "rand_like": lambda t, x, g: t.rand_like(x),
    "randn": lambda t, x, g: t.randn(x.shape, generator=g),
    "randint": lambda t, x, g: t.randint(3, 50, x.shape, generator=g),
    "normal of std": lambda t, x, g: t.normal(0.0, x, generator=g),
    "bernoulli": lambda t, x, g: t.bernoulli(x, generator=g),
    "poisson": lambda t, x, g: t.poisson(x * 20, generator=g),
    "gamma": lambda t, x, g: t._standard_gamma(x, generator=g),
    "uniform_": lambda t, x, g: x.uniform_(generator=g),
    "normal_": lambda t, x, g: x.normal_(1, 2, generator=g),
    "random_": lambda t, x, g: x.random_(-5, 90, generator=g),
    "exponential_": lambda t, x, g: x.exponential_(generator=g),
    "bernoulli_": lambda t, x, g: x.bernoulli_(0.5, generator=g),
    "dropout": lambda t, x, g: t.nn.functional.dropout(x),
    "dropout_": lambda t, x, g: t.nn.functional.dropout(x, inplace=True),
    "alpha_dropout": lambda t, x, g: t.nn.functional.alpha_dropout(x, training=True),
    "bernoulli_ of p": lambda t, x, g: t.ones_like(x).bernoulli_(x, generator=g),
}


PRODUCTS = {torch: product_of(torch).apply, jaxgrad: product_of(jaxgrad).apply}
FUNCTIONS = {
    "product by NumPy": lambda t, x: PRODUCTS[t](x, x + 1),
    "gradient by NumPy": lambda t, x: t.func.grad(lambda y: PRODUCTS[t](y, y).sum())(x),
    "tangent by NumPy": lambda t, x: t.func.jvp(PRODUCTS[t], (x, x), (x * 2, x))[1],
    "Jacobian by NumPy": lambda t, x: t.func.jacrev(PRODUCTS[t])(x, x),
    "softmax": lambda t, x: t.softmax(x, -1),
    "flip": lambda t, x: x.flip(0),
    "sort": lambda t, x: t.sort(x, 0).values,
    "cumsum": lambda t, x: x.cumsum(-1),
    "outer": lambda t, x: t.outer(x.reshape(-1), x.reshape(-1)),
    "write": lambda t, x: x.mul_(2),
    "write to a part": lambda t, x: x[0].neg_() + x,
    "itself": lambda t, x: x,
    "view": lambda t, x: x[1:].unsqueeze(0),
    "shared": lambda t, x: t.arange(3.0),
    "strides": lambda t, x: x * t.tensor(x.stride()).sum(),
    "gradient": lambda t, x: t.func.grad(lambda y: (y**3).sum())(x),
    "tangent": lambda t, x: t.func.jvp(t.sin, (x,), (x * 2,))[1],
    "not a tensor": lambda t, x: 3,
    "number": lambda t, x: x * x.sum().item(),
    "branch": lambda t, x: x if x.sum() > 0 else -x,
}


class Call:
    """A random call: the arguments of `vmap`, and the shape of the batch."""

    def __init__(self, draw):
        self.shape = tuple(draw.choices([2, 3, 4], k=3))
        self.in_dims = draw.choice([0, 1, 2, -1, (1,), None, 3, [0]])
        self.out_dims = draw.choice([0, 1, -1, 3])
        self.randomness = draw.choice(["same", "different", "different", "error"])
        self.chunk_size = draw.choice([None, None, 1, 2])
        self.is_nested, self.has_generator = draw.random() < 0.3, draw.random() < 0.5
        self.numbers = [draw.uniform(0.1, 0.9) for _ in range(64)]

    def batch(self, t):
        count = self.shape[0] * self.shape[1] * self.shape[2]
        return t.tensor(self.numbers[:count]).reshape(self.shape)

    def mapped(self, t, function):
        def one(x):
            return function(x)

        inner = t.func.vmap(one, randomness=self.randomness) if self.is_nested else one
        options = {"randomness": self.randomness, "chunk_size": self.chunk_size}
        return t.func.vmap(inner, self.in_dims, self.out_dims, **options)


def outcome(compute):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return compute()
    except Exception as error:
        return type(error)


def facts_of_draw(t, name, call):
    """What both frameworks must agree on of a call that draws."""
    generator = t.Generator() if call.has_generator else None
    function = DRAWS[name]

    def start():
        t.manual_seed(3) if generator is None else generator.manual_seed(3)

    start()
    drawn = call.mapped(t, lambda x: function(t, x, generator))(call.batch(t))
    rows = drawn.movedim(call.out_dims, 0)
    start()
    batch = call.batch(t)
    dim = call.in_dims[0] if isinstance(call.in_dims, tuple) else call.in_dims
    batch = batch.movedim(dim, 0).clone()
    if call.randomness == "same":
        batch = (batch[0, 0] if call.is_nested else batch[0]).contiguous()
    # PyTorch's chunks go on in the stream of random numbers, where each of them is a draw here. It
    # drops by other numbers where examples have the same. A tensor that is made inside has the
    # layout of a new one here
    is_of_argument = dim == 0 or name != "bernoulli_ of p"
    is_known = call.randomness == "same" or (call.chunk_size is None and is_of_argument)
    is_known &= "dropout" not in name
    again = function(t, batch, generator)
    is_equal = bool(t.isclose(rows, again.to(rows.dtype), atol=1e-6).all())
    return tuple(drawn.shape), str(drawn.dtype), is_equal if is_known else None


def facts(t, name, call):
    """What both frameworks must agree on of a call without random numbers."""
    batch = call.batch(t)
    results = call.mapped(t, lambda x: FUNCTIONS[name](t, x))(batch)
    shared = [results is batch, results._base is not None and results._base is batch]
    return [results.tolist(), batch.tolist(), list(batch.stride()), shared]


@pytest.mark.parametrize("number", range(CALLS))
def test_draws(number):
    draw = random.Random(f"{SEED} {number}")
    name, call = draw.choice(sorted(DRAWS)), Call(draw)
    if call.randomness == "same":
        call.out_dims = 0  # PyTorch fails to expand a result that all examples share to another
    if name == "bernoulli_":
        call.is_nested = False  # PyTorch takes the tensor for a shared one
    expected = outcome(lambda: facts_of_draw(torch, name, call))
    assert outcome(lambda: facts_of_draw(jaxgrad, name, call)) == expected, (SEED, name, vars(call))


@pytest.mark.parametrize("number", range(CALLS))
def test_functions(number):
    draw = random.Random(f"{SEED} f {number}")
    name, call = draw.choice(sorted(FUNCTIONS)), Call(draw)
    if name == "shared":
        call.out_dims = 0  # PyTorch fails to expand a result that all examples share to another
    expected = outcome(lambda: facts(torch, name, call))
    actual = outcome(lambda: facts(jaxgrad, name, call))
    if isinstance(expected, list) and isinstance(actual, list):
        for value, wanted in zip(actual, expected, strict=True):
            torch.testing.assert_close(torch.tensor(value), torch.tensor(wanted))
    else:
        assert actual == expected, (SEED, name, vars(call))


VIEWS = {
    "itself": lambda x: x,
    "transpose": lambda x: x.mT,
    "part": lambda x: x[1:],
    "column": lambda x: x[:, 0],
    "unsqueeze": lambda x: x.unsqueeze(1),
    "diagonal": lambda x: x.diagonal(),
    "steps": lambda x: x[:, ::2],
    "unfold": lambda x: x.unfold(1, 2, 1),
    "expand": lambda x: x.expand(2, *x.shape),
}
OVERLAPPING = "unfold", "expand"

# results that share the memory of the argument, views or not; with the module
SHARING = {name: lambda t, x, view=view: view(x) for name, view in VIEWS.items()} | {
    "detach": lambda t, x: x.detach(),
    "detached part": lambda t, x: x.detach()[1:],
    "part of the detached": lambda t, x: x[1:].detach(),
    "unsafe_split": lambda t, x: x.unsafe_split(1)[-1],
    "unsafe_chunk": lambda t, x: x.unsafe_chunk(2)[0],
    "as int32": lambda t, x: x.view(t.int32),
    "as int32 and back": lambda t, x: x.view(t.int32)[0].view(t.float32),
    "as int16": lambda t, x: x.view(t.int16),
    "split": lambda t, x: x.split(1)[-1],
    "unbind": lambda t, x: x.unbind(1)[0],
    "tensor_split": lambda t, x: x.tensor_split(2)[0],
    "view_as_complex": lambda t, x: t.view_as_complex(x[..., :2]).real,
    "imag": lambda t, x: t.view_as_complex(x[..., :2]).imag,
    "movedim": lambda t, x: x.movedim(0, -1),
    "unflatten": lambda t, x: x.unflatten(0, (1, -1)),
    "alias": lambda t, x: t.ops.aten.alias(x),
    "copy": lambda t, x: x.clone(),
}


def facts_of_sharing(t, draw):
    """What a write to the result does to the memory, and one to the memory to the result."""
    shape, name = tuple(draw.sample([2, 3, 4], k=3)), draw.choice(sorted(SHARING))
    memory = t.arange(float(2 * t.Size(shape).numel()))
    kind = draw.choice(["whole", "turned", "part"])
    batch = memory.view(*shape, 2)[..., 1] if kind == "part" else memory[: len(memory) // 2]
    batch = batch if kind == "part" else batch.view(shape)
    batch = batch.mT if kind == "turned" else batch
    in_dim, out_dim = draw.randrange(3), draw.choice([0, 0, -1])
    result = t.func.vmap(lambda x: SHARING[name](t, x), in_dim, out_dim)(batch)
    lengths = [s if n > 1 else None for n, s in zip(result.shape, result.stride(), strict=True)]
    is_shared = result.untyped_storage()._cdata == memory.untyped_storage()._cdata
    before = memory.clone()
    if name not in OVERLAPPING:
        result.zero_()
    changed = (memory != before).tolist()
    memory.fill_(3)
    shown = [is_shared, lengths if is_shared else None, result.storage_offset() * is_shared]
    return [name, kind, list(result.shape), shown, changed, result.tolist()]


@pytest.mark.parametrize("number", range(2 * CALLS))
def test_results_that_share_memory(number):
    expected, actual = (
        outcome(lambda t=t: facts_of_sharing(t, random.Random(f"{SEED} s {number}")))
        for t in (torch, jaxgrad)
    )
    assert actual == expected, SEED


class NestedCall:
    """A random call of two nested maps, whose function cuts a view out and may write to it."""

    def __init__(self, draw):
        self.shape = tuple(draw.sample([2, 3, 4, 5], k=4))
        self.outer, self.inner = draw.randrange(4), draw.randrange(3)
        self.out_dims = draw.randrange(3), draw.randrange(2)
        self.name = draw.choice(sorted(VIEWS))
        self.writes = draw.random() < 0.5 and self.name not in OVERLAPPING
        self.is_part, self.is_turned = draw.random() < 0.3, draw.random() < 0.3

    def memory(self, t):
        shape = (*self.shape, 2) if self.is_part else self.shape
        return t.arange(float(t.Size(shape).numel())).reshape(shape).clone()

    def batch(self, memory):
        batch = memory[..., 1] if self.is_part else memory
        return batch.mT if self.is_turned else batch

    def mapped(self, t, batch):
        def one(x):
            view = VIEWS[self.name](x)
            return view.mul_(3) if self.writes else view

        inner = t.func.vmap(one, self.inner, self.out_dims[1])
        return t.func.vmap(inner, self.outer, self.out_dims[0])(batch)


def facts_of_views(t, call):
    """What both frameworks must agree on of nested views: values, memory and gradients."""
    memory = call.memory(t)
    result = call.mapped(t, call.batch(memory))
    is_view = result is memory or result._base is memory
    leaf = call.memory(t).requires_grad_()
    # a tensor with a history, of the same strides
    copy = leaf * 1
    seen = call.mapped(t, call.batch(copy))
    loss = (seen * seen.detach().cos()).sum() + (copy**2).sum()
    (gradient,) = t.autograd.grad(loss, leaf, create_graph=True)
    (second,) = t.autograd.grad(gradient.sum(), leaf)
    numbers = [result, memory, gradient, second]
    return [*[number.tolist() for number in numbers], [is_view, *map(int, result.shape)]]


@pytest.mark.parametrize("number", range(CALLS))
def test_nested_views(number):
    call = NestedCall(random.Random(f"{SEED} v {number}"))
    expected = outcome(lambda: facts_of_views(torch, call))
    actual = outcome(lambda: facts_of_views(jaxgrad, call))
    if isinstance(expected, list) and isinstance(actual, list):
        for value, wanted in zip(actual, expected, strict=True):
            torch.testing.assert_close(torch.tensor(value), torch.tensor(wanted))
    else:
        assert actual == expected, (SEED, vars(call))
