"""Tensors from outside that share memory which a compiled function writes to.

Random programs of views and writes, of which a part is compiled: the views that it writes through
come from outside, and others that it does not reach show what it writes. The oracle is a model
without writes (storage/programs.py), and the same program uncompiled. Worlds by hand are compared
with the uncompiled function: values, versions, histories, gradients, and what shares memory.
"""

import functools
import itertools

import hypothesis
import jax
import pytest
from helpers import checks
from hypothesis import HealthCheck
from storage import programs
from storage.compare import arrays, observed, same

import jaxgrad as torch

nn = torch.nn


# ---- random programs, of which the middle is compiled


def take(steps, handles, errors):
    for step, error in steps:
        run = programs.refuses if error else programs.take
        errors.append(run(torch, step, handles))


def middle_compiled(program, begin, end, compiled):
    """The results of a program whose steps from `begin` to `end` are compiled, and its handles.

    compiled: what takes the steps in the middle; None for a function that reaches the handles by
    itself.
    """
    steps = list(zip(program.steps, program.errors, strict=True))
    inputs, errors = programs.leaves(torch), []
    a, b = inputs
    c = torch.tensor(programs.numbers("c").tolist(), dtype=torch.float64)
    handles = [a * 1.0, b * 1.0, c]
    take(steps[:begin], handles, errors)
    if compiled is None:
        torch.jit(lambda: take(steps[begin:end], handles, errors))()
    else:
        compiled(handles, errors)
    take(steps[end:], handles, errors)
    readable, loss = programs.read(torch, program, handles)
    return handles, programs.Outcome(
        program.steps,
        tuple(errors),
        {name: tensor.detach().numpy() for name, tensor in readable.items()},
        tuple(gradient.numpy() for gradient in programs.gradients_of(torch, loss, inputs)),
        {name: programs.significant(t.shape, t.stride()) for name, t in readable.items()},
    )


def seen(tensor):
    """What else can be observed of a tensor; its error, where its history is not known."""
    try:
        return observed(tensor) | {"version": None}  # of a new tensor it begins at 0
    except RuntimeError as error:
        return str(error)


def placed(handles):
    """What can be observed of handles, and which of them share memory."""
    return [
        (
            seen(handle),
            [number for number, other in enumerate(handles) if other is handle._base],
            [handle.untyped_storage() == other.untyped_storage() for other in handles],
        )
        for handle in handles
    ]


def check_middle(draws, begin, count):
    with jax.enable_x64(True):
        program = programs.interpret(draws)
        numbers = arrays(program)
    where = f"steps {begin} to {begin + count} compiled"
    _, eager = programs.run(torch, program)
    middle = [*zip(program.steps, program.errors, strict=True)][begin : begin + count]
    function = torch.jit(functools.partial(take, middle))
    for compiled in (None, function, function):
        handles, outcome = middle_compiled(program, begin, begin + count, compiled)
        same(program, numbers, outcome, f"{where},")
        assert placed(handles) == placed(eager), f"{where} of\n{program}"
    assert len(function.traces) <= 1
    checks.count("aliasing")


@pytest.mark.slow
def test_random_programs_whose_middle_is_compiled():
    integers = hypothesis.strategies.integers
    settings = hypothesis.settings(max_examples=60, suppress_health_check=list(HealthCheck))
    settings(hypothesis.given(programs.drawn_steps, integers(0, 8), integers(1, 6))(check_middle))()


# ---- worlds by hand: what a function does to views of one memory, and all that shows it


def counted(count, *shape):
    """The numbers from 1 on."""
    return torch.arange(1.0, count + 1).reshape(shape or (count,)).clone()


def flat_parameters(count=6, cuts=(2,)):
    """A flat buffer, and parameters that are views of it."""
    flat = counted(count)
    ends = [0, *cuts, count]
    parts = [flat[i:j] for i, j in itertools.pairwise(ends)]
    return flat, [part.requires_grad_() for part in parts]


def a_view_and_its_base():
    flat = counted(6)
    part = flat[:3]

    def f(x):
        part.mul_(2)
        result = flat.sum() + x
        flat.add_(1)
        return result + part.sum()

    return f, [1.0, 2.0, 3.0], lambda: [flat, part]


def views_of_views():
    flat = counted(8)
    part = flat[:6]
    inner = part[2:]
    square = inner.view(2, 2)

    def f(x):
        square[0].add_(x)
        part.mul_(2)
        return inner.sum()

    return f, [1.0, 2.0], lambda: [flat, part, inner, square]


def views_of_a_base_that_is_gone():
    first, last = (lambda flat: (flat[:3], flat[2:]))(counted(6))

    def f(x):
        first.add_(x)
        return last * 1

    return f, [1.0, 2.0], lambda: [first, last]


def views_at_strides():
    matrix = counted(12, 3, 4)
    row, column, turned, diagonal = matrix[1], matrix[:, 2], matrix.t(), matrix.diagonal()

    def f(x):
        row.add_(x)
        column.mul_(2)
        turned[0].zero_()
        return diagonal.sum() + turned.sum()

    return f, [1.0, 2.0], lambda: [matrix, row, column, turned, diagonal]


def complex_views():
    pairs = torch.view_as_complex(counted(6, 3, 2))
    real, imag, whole = pairs.real, pairs.imag, torch.view_as_real(pairs)

    def f(x):
        real.mul_(2)
        imag.add_(x)
        whole[0].zero_()
        return whole.sum()

    return f, [1.0, 2.0], lambda: [real, imag, whole]


def sgd_on_flat_parameters():
    flat, parts = flat_parameters()

    def f(x):
        for part in parts:
            part.grad = None
        loss = (parts[0] * x).sum() + (parts[1] ** 2).sum()
        loss.backward()
        with torch.no_grad():
            for part in parts:
                part.sub_(0.5 * part.grad)
        return loss.detach()

    return f, [1.0, 2.0, 4.0], lambda: [flat, *parts, *[part.grad for part in parts]]


def an_optimizer_on_a_module_of_slices():
    layer, flat = nn.Linear(2, 2), counted(6)
    layer.weight.data, layer.bias.data = flat[:4].view(2, 2), flat[4:]
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.125, momentum=0.5)

    def f(x):
        optimizer.zero_grad()
        loss = layer(x * torch.ones(1, 2)).sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return f, [1.0, 2.0, 1.0], lambda: [flat, layer.weight, layer.bias, layer.weight.grad]


def gradients_in_one_bucket():
    parts, bucket = [counted(2).requires_grad_(), counted(3).requires_grad_()], torch.zeros(5)
    parts[0].grad, parts[1].grad = bucket[:2], bucket[2:]

    def f(x):
        bucket.zero_()
        (parts[0].sum() * parts[1] * x).sum().backward()
        bucket.div_(2)
        with torch.no_grad():
            for part in parts:
                part.sub_(0.5 * part.grad)
        return bucket * 1

    return f, [1.0, 2.0], lambda: [bucket, *parts, *[part.grad for part in parts]]


def buffers_of_a_module():
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("whole", counted(3))
            self.register_buffer("part", self.whole[1:])

        def forward(self, x):
            self.part.add_(x)
            return self.whole * 2

    layer = Layer()
    return layer, [1.0, 2.0], lambda: [layer.whole, layer.part]


def tied_weights():
    embedding, layer = nn.Embedding(3, 2), nn.Linear(2, 3, bias=False)
    embedding.weight.data = layer.weight.data = counted(6, 3, 2)
    optimizer = torch.optim.SGD([embedding.weight, layer.weight], lr=0.125)

    def f(x):
        optimizer.zero_grad()
        loss = layer(embedding(torch.tensor([0, 1])) * x).sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return f, [1.0, 1.0], lambda: [embedding.weight, layer.weight, layer.weight.grad]


def detached_and_written():
    weight = counted(4).requires_grad_()
    last, first = weight.detach()[1:], weight.data[:2]

    def f(x):
        last.mul_(x)
        first.add_(1)
        return (weight * weight).sum()

    return f, [2.0], lambda: [weight, last, first]


def a_history():
    weight = counted(4).requires_grad_()
    base = weight * 2
    middle, first = base[1:3], base[:2]

    def f(x):
        middle.mul_(x)
        total = first.sum()
        base.mul_(first.sum())
        return total + middle.sum()

    return f, [3.0], lambda: [weight, base, middle, first]


def a_base_that_leaves_the_graph():
    weight, base = counted(4).requires_grad_(), torch.zeros(4)
    first = base[:2]

    def f(x):
        base.zero_()
        first.copy_(weight[:2] * x)
        total = (base * base).sum()
        base.detach_()
        return total

    return f, [2.0, 3.0], lambda: [weight, base, first]


def views_that_an_index_writes_to():
    cache = torch.zeros(2, 3)
    keys, values = cache[0], cache[1]

    def f(x):
        place = x.long()[0]
        keys[place] = x[0]
        values[place] = x[0] * 2
        return cache.sum()

    return f, [0.0, 2.0, 1.0], lambda: [cache, keys, values]


def a_gradient_from_outside():
    flat, parts = flat_parameters(4)

    def f(x):
        with torch.no_grad():
            flat.mul_(x)
        return (parts[0] ** 3).sum() * parts[1].sum()

    return f, [2.0, 1.0], lambda: [flat, *parts]


def what_is_asked_of_views():
    flat = counted(4)
    middle, last = flat[1:3], flat[2:]

    def f(x):
        middle.add_(x)
        same = middle._base is flat, last._base is middle._base, middle.is_set_to(flat[1:3])
        return x * sum(same) * middle.storage_offset() + last._version

    return f, [1.0], lambda: [flat, middle, last]


def new_views_are_left():
    flat, kept = counted(6), {}
    first, last = flat[:3], flat[3:]

    def f(x):
        first.add_(x)
        kept["inner"], kept["every other"] = first[1:], flat[::2]
        last.mul_(2)
        return last, kept["inner"][:1]

    return f, [1.0, 2.0], lambda: [flat, first, last, *kept.values()]


def memories_that_are_exchanged():
    one, other = counted(3), counted(3) * 2
    parts = one[:1], other[:1]

    def f(x):
        data = one.data
        one.data = other.data
        other.data = data
        one.add_(x)
        return other * 1

    return f, [1.0, 2.0, 4.0], lambda: [one, other, *parts]


def data_that_is_a_view():
    base, weight = counted(6), counted(3)
    part = base[:3]

    def f(x):
        weight.data = part
        weight.add_(x)
        return base.sum()

    return f, [1.0, 2.0], lambda: [base, part, weight]


def written_in_between():
    flat = counted(6)
    first, last = flat[:3], flat[3:]

    def f(x):
        first.add_(x)
        return last.sum() + first.sum()

    def calls():
        yield 1.0
        last.mul_(2)
        yield 1.0
        flat.zero_()
        yield 1.0
        flat[2:4].add_(5)
        yield 1.0

    return f, calls(), lambda: [flat, first, last]


def shared_in_another_way():
    flat, state = counted(6), {}
    state["a"], state["b"] = flat[:3], flat[3:]

    def f(x):
        state["a"].add_(x)
        return state["b"].sum() + state["a"].sum()

    def calls():
        yield 1.0
        state["b"] = flat[2:5]
        yield 1.0
        state["b"] = counted(3)
        yield 1.0
        state["a"] = state["b"][:2]
        yield 1.0
        state["b"] = state["a"]
        yield 1.0

    return f, calls(), lambda: [flat, *state.values()]


WORLDS = [
    *(a_view_and_its_base, views_of_views, views_of_a_base_that_is_gone, views_at_strides),
    *(complex_views, sgd_on_flat_parameters, an_optimizer_on_a_module_of_slices),
    *(gradients_in_one_bucket, buffers_of_a_module, tied_weights, detached_and_written, a_history),
    *(a_base_that_leaves_the_graph, views_that_an_index_writes_to),
    *(a_gradient_from_outside, what_is_asked_of_views, new_views_are_left),
    *(memories_that_are_exchanged, data_that_is_a_view, written_in_between, shared_in_another_way),
]


# ---- tensors that get another shape or history in place


def turned(function, has_view=True, has_history=False, is_view=False):
    """A world of a tensor that a function turns; the caller has a view of it, and what it is a
    view of.
    """

    def world():
        whole = counted(6, 2, 3)
        whole = whole.requires_grad_() * 2 if has_history else whole
        tensor = whole[:, :2] if is_view else whole
        others = [tensor[:1]] if has_view else []

        def f(x):
            function(tensor)
            return tensor * x

        return f, [1.0, 2.0, 1.0, 2.0], lambda: [whole, tensor, *others]

    return world


def t_and_write(tensor):
    tensor.t_()
    tensor.mul_(2)
    tensor[0].add_(1)


def give_data(tensor):
    tensor.data = tensor.data.t()


def give_new_data(tensor):
    tensor.data = tensor.data * 2


TURNS = {
    "t_": lambda tensor: tensor.t_(),
    "transpose_": lambda tensor: tensor.transpose_(0, -1),
    "swapaxes_": lambda tensor: tensor.swapaxes_(0, 1),
    "unsqueeze_": lambda tensor: tensor.unsqueeze_(0),
    "unsqueeze_ and squeeze_": lambda tensor: tensor.unsqueeze_(0).squeeze_(0),
    "resize_": lambda tensor: tensor.resize_(tensor.shape[::-1]),
    "t_ and a write": t_and_write,
    "data": give_data,
    "new data": give_new_data,
    "set_": lambda tensor: tensor.set_(tensor.detach().t() * 2),
    "as_strided_": lambda tensor: tensor.as_strided_(tensor.shape[::-1], tensor.stride()[::-1]),
    "requires_grad_": lambda tensor: tensor.requires_grad_(),
    "detach_": lambda tensor: tensor.detach_(),
}
# what a tensor with a history allows
RECORDED = ("t_", "unsqueeze_", "t_ and a write", "detach_")


# ---- the comparison


def shown(tensor):
    """What can be observed of a tensor."""
    gradient = tensor.grad if tensor.is_leaf else None
    gradient = None if gradient is None else gradient.tolist()
    return tensor.tolist(), tensor.stride(), gradient, {**observed(tensor)}


def outcome(world, compiled):
    """What the calls of a world give and leave, with what shares memory, and the gradients by the
    tensors that are left.
    """
    function, calls, state = world()
    function, observations = compiled(function), []
    for number in calls:
        try:
            results = function(torch.full((1,), number))
        except RuntimeError as error:
            observations.append(str(error))
            continue
        tensors = [*(results if isinstance(results, tuple) else (results,)), *state()]
        tensors = [tensor for tensor in tensors if tensor is not None]
        memory = [[a.untyped_storage() == b.untyped_storage() for a in tensors] for b in tensors]
        bases = [[tensor._base is other for other in tensors] for tensor in tensors]
        observations.append(([*map(shown, tensors)], memory, bases))
        leaves = [tensor for tensor in tensors if tensor.requires_grad and tensor.is_leaf]
        total = sum(tensor.sum() for tensor in tensors if tensor.requires_grad)
        if leaves:
            slopes = torch.autograd.grad(total, leaves, allow_unused=True, retain_graph=True)
            observations.append([None if slope is None else slope.tolist() for slope in slopes])
    return observations


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.__name__)
def test_writes_to_memory_that_tensors_from_outside_share(world):
    assert outcome(world, torch.jit) == outcome(world, lambda function: function)


@pytest.mark.parametrize("name", TURNS)
def test_a_tensor_that_gets_another_shape_in_place(name):
    for form in ({}, {"has_view": False}, {"is_view": True}, {"has_history": True}):
        if name in RECORDED or "has_history" not in form:
            world = turned(TURNS[name], **form)
            assert outcome(world, torch.jit) == outcome(world, lambda function: function), form


def test_an_argument_that_gets_another_shape():
    @torch.jit
    def f(x):
        x.t_()
        x.add_(1)

    x = counted(6, 2, 3)
    row = x[0]
    for number in range(1, 5):
        f(x)
        assert x.shape == ((3, 2), (2, 3))[number % 2 == 0]
        assert row.tolist() == [1 + number, 2 + number, 3 + number] and x._version == 2 * number
    assert len(f.traces) == 3  # x is a view of its memory from the first call on


def test_one_program_for_views_of_each_call():
    @torch.jit
    def f(x, y):
        x.add_(1)
        return (x * y).sum()

    for number in range(1, 4):
        flat = counted(4) * number
        assert f(flat[:3], flat[1:]).item() == sum(
            (number * k + 1) * (number * (k + 1) + (k < 3)) for k in (1, 2, 3)
        )
        assert flat.tolist() == [number + 1, 2 * number + 1, 3 * number + 1, 4 * number]
    assert len(f.traces) == 1
    flat = counted(4)
    f(flat[1:], flat[:3])  # another cut
    assert flat.tolist() == [1, 3, 4, 5] and len(f.traces) == 2
    assert "share memory" in f.explain()
    x, y = counted(3), counted(3)
    assert f(x, y).item() == 2 + 6 + 12 and y.tolist() == [1, 2, 3]


def test_second_derivatives_by_flat_parameters():
    flat, (first, last) = flat_parameters(4)

    @torch.jit
    def f(x):
        with torch.no_grad():
            flat.mul_(x)
        return (first**3).sum() * last.sum()

    loss = f(torch.tensor(2.0))
    assert first.tolist() == [2, 4] and last.tolist() == [6, 8]
    slope, other = torch.autograd.grad(loss, (first, last), create_graph=True)
    assert slope.tolist() == [3 * 4 * 14, 3 * 16 * 14] and other.tolist() == [72, 72]
    second = torch.autograd.grad(slope.sum(), (first, last))
    assert [gradient.tolist() for gradient in second] == [[6 * 2 * 14, 6 * 4 * 14], [60, 60]]


@pytest.mark.parametrize("is_alone", [True, False])
def test_a_view_of_a_leaf_is_not_written_to(is_alone):
    leaf = counted(4).requires_grad_()
    view = leaf[1:3]

    @torch.jit
    def f(x):
        view.mul_(x)
        return x * 1 if is_alone else leaf.sum()

    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        f(torch.tensor(3.0))
    assert leaf.tolist() == [1, 2, 3, 4] and leaf._version == 0


def test_views_that_no_write_permits():
    base = counted(4).requires_grad_() * 2
    with torch.no_grad():
        unrecorded = base[1:3]
    for view, words in ((unrecorded, "no_grad mode"), (base.chunk(2)[0], "multiple views")):
        with pytest.raises(RuntimeError, match=words):
            torch.jit(lambda x, view=view: view.mul_(x).sum())(torch.tensor(3.0))
    assert base.tolist() == [2, 4, 6, 8]


def test_memory_that_nothing_writes_to_is_not_joined():
    flat = counted(6)
    f = torch.jit(lambda x, y: (x * y).sum())
    for start in range(3):
        assert f(flat[start : start + 3], flat[:3]).item() > 0
    assert len(f.traces) == 1


def test_numbers_of_a_view_are_looked_at():
    flat = counted(4)
    part = flat[:2]

    @torch.jit
    def f(x):
        x.add_(1)
        return x * 10 if part.sum() > 5 else x * 1

    x = torch.zeros(1)
    assert f(x).item() == 1
    flat.add_(2)
    assert f(x).item() == 20
