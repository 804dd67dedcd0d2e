"""What a compiled function changes in Python objects, it changes at each call as if uncompiled."""

import collections
import functools
import types
import warnings
from types import SimpleNamespace

import pytest

import jaxgrad as torch
from jaxgrad import nn

counter = 0


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.h, self.calls, self.first = None, 0, True

    def forward(self, x):
        self.h = x if self.h is None else self.h + x
        self.calls += 1
        if self.first:
            self.first = False
            return self.h * 0
        return self.h * self.calls


class Average(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(2))
        self.steps = 0

    def forward(self, x):
        if self.training:
            self.mean = self.mean * 0.5 + x
            self.steps += 1
        return x - self.mean


class Schedule:
    def __init__(self):
        self.step, self.config = 0, {"rate": 1.0, "log": []}

    def __call__(self, x):
        self.step += 1
        self.config["rate"] = 0.5 / self.step
        self.config["log"].append(x.sum())
        return x * self.config["rate"]


class Accumulator:
    __slots__ = ("seen", "total")

    def __init__(self):
        self.total, self.seen = 0.0, set()

    def __call__(self, x, k):
        self.total += k
        self.seen.add("called")
        return x * self.total


def with_a_variable():
    count, kept = 0, torch.zeros(2)

    def run(x):
        nonlocal count, kept
        count, kept = count + 1, kept + x
        return kept * count

    return run


def with_a_global():
    global counter
    counter = 0

    def run(x):
        global counter
        counter += 2
        return x * counter

    return run


def with_containers():
    queue, results, latest = collections.deque(maxlen=2), [torch.zeros(2)], {}

    def run(x):
        queue.append(x.sum())
        results[0] = results[0] + x
        latest["x"], latest["both"] = x * 2, (x, [results[0]])
        return sum(queue) + results[0]

    return run


def with_an_order():
    table, recent = {"a": 1.0, "b": 2.0}, collections.OrderedDict(a=1.0, b=2.0)
    config = SimpleNamespace(a=1.0, b=2.0)

    def run(x):
        for values in (table, recent, vars(config)):
            first = next(iter(values))
            values[first] = values.pop(first)
        recent["latest"] = x * 2
        recent.move_to_end("latest")
        return x * next(iter(table.values())) / next(iter(recent.values()))

    return run


def with_a_set():
    seen, shared = set(), torch.tensor(2.0)

    def run(x):
        total = sum(tensor.sum() for tensor in seen)
        seen.add(shared)
        return x + total

    return run


def with_a_queue_that_is_full():
    queue, count = collections.deque([7, 8], maxlen=2), 0

    def run(x):
        nonlocal count
        count += 1
        queue.append(count)
        return x * 1

    return run


def with_numbers_beside_a_tensor():
    values = [0, 0.5, None]

    def run(x):
        values[0] += 1
        values[2] = x * values[0]
        return values[2] * values[1]

    return run


def with_a_pair():
    class Cell:
        def __init__(self):
            self.state = None

        def __call__(self, x):
            if self.state is None:
                self.state = x, [x * 0]
            h, (c,) = self.state
            self.state = h + c, [c + x]
            return h * c

    return Cell()


def state_of(value):
    """Everything below an object, with lists in the place of tensors."""
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if isinstance(value, nn.Module):
        return [state_of(dict(value.named_buffers())), state_of(plain(vars(value)))]
    if isinstance(value, dict):
        return [(key, state_of(part)) for key, part in value.items()]
    if isinstance(value, list | tuple | set | collections.deque):
        return [state_of(part) for part in value]
    if hasattr(value, "__closure__"):
        return [state_of(cell.cell_contents) for cell in value.__closure__ or ()]
    if hasattr(value, "__slots__"):
        return [state_of(getattr(value, name)) for name in value.__slots__]
    return state_of(vars(value)) if hasattr(value, "__dict__") else value


def plain(attributes):
    return {name: value for name, value in attributes.items() if not name.startswith("_")}


# what makes the function, the most traces, and the arguments besides x
FUNCTIONS = {
    "recurrent module": (Recurrent, 3),
    "running average in a buffer": (Average, 2),
    "schedule in a dict": (Schedule, 2),
    "slots": (Accumulator, 3, 0.5),
    "variable": (with_a_variable, 2),
    "containers": (with_containers, 4),
    "order": (with_an_order, 4),
    "set of tensors": (with_a_set, 2),
    "queue that is full": (with_a_queue_that_is_full, 3),
    "numbers beside a tensor": (with_numbers_beside_a_tensor, 2),
    "pair of tensors": (with_a_pair, 2),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_state_is_that_of_uncompiled_calls(name):
    make, most, *arguments = FUNCTIONS[name]
    expected, function = make(), make()
    compiled = torch.jit(function)
    for call in range(7):
        x = torch.tensor([1.0 + call, 2.0])
        assert compiled(x, *arguments).tolist() == expected(x, *arguments).tolist()
        assert state_of(function) == state_of(expected)
    assert compiled.count <= most, compiled.explain()


def test_a_global_is_counted():
    expected = with_a_global()
    wanted = [expected(torch.ones(1)).item() for _ in range(5)]
    compiled = torch.jit(with_a_global())
    assert [compiled(torch.ones(1)).item() for _ in range(5)] == wanted == [2, 4, 6, 8, 10]
    assert counter == 10 and type(counter) is int and compiled.count == 2


def test_a_counter_that_the_code_looks_at_is_right_too():
    class Warmup:
        def __init__(self):
            self.calls = 0

        def __call__(self, x):
            self.calls += 1
            return x * 0 if self.calls < 3 else x * self.calls

    expected, compiled = Warmup(), torch.jit(Warmup())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(6):
            assert compiled(torch.ones(1)).item() == expected(torch.ones(1)).item()


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2])
def test_state_that_is_the_argument_at_first(number):
    """Where one call stores its argument, the next one may find that very tensor in two places."""
    expected, module, xs = Recurrent(), Recurrent(), [torch.ones(1) for _ in range(number)]
    compiled = torch.jit(module)
    for call in range(7):
        x = xs[call % number]
        assert compiled(x).item() == expected(x).item()
        assert module.h.item() == expected.h.item() == call + 1
    assert compiled.count <= 4, compiled.explain()


def test_two_attributes_that_are_one_tensor_at_first():
    class Pair:
        def __init__(self):
            self.a = self.b = torch.ones(1)

        def __call__(self, x):
            self.a, self.b = self.a + x, self.b * 2
            return self.a * self.b

    compiled, expected, x = torch.jit(Pair()), Pair(), torch.ones(1)
    for call in range(6):
        if call == 3:
            compiled.function.b, expected.b = compiled.function.a, expected.a
        if call == 4:
            compiled.function.b, expected.b = torch.zeros(1), torch.zeros(1)
        assert compiled(x).item() == expected(x).item()


@pytest.mark.slow
def test_second_derivatives_where_state_is_the_argument():
    """The function is replayed with the tensors of the call in both places."""
    module = Recurrent()
    module.first = False
    compiled = torch.jit(module)
    x = torch.tensor([3.0], requires_grad=True)
    for _ in range(2):
        compiled(x.detach())
    module.h, module.calls = x, 0
    y = compiled(x) ** 3  # (2 x) ** 3
    (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    module.h = torch.zeros(1)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert (first.item(), second.item()) == (24 * 9, 48 * 3)


def test_a_change_from_outside_between_calls_counts():
    compiled = torch.jit(module := Recurrent())
    x = torch.ones(1)
    for _ in range(4):
        compiled(x)
    module.h, module.calls = torch.tensor([10.0]), 1
    assert compiled(x).item() == 11 * 2 and module.calls == 2
    module.h = None
    assert compiled(x).item() == 1 * 3


def test_programs_that_share_replaced_state():
    module = Average()
    train, test = torch.jit(lambda x: module(x)), torch.jit(lambda x: x + module.mean)
    expected, x = torch.zeros(2), torch.ones(2)
    for _ in range(6):
        module.train()
        train(x)
        expected = expected * 0.5 + x
        before = module.mean  # so that the handle of before lives on
        module.eval()
        assert test(x).tolist() == (x + expected).tolist()
        assert before.tolist() == expected.tolist()
    assert train.count <= 2 and test.count <= 3, test.explain()


def test_state_that_has_a_history():
    holder, weight = SimpleNamespace(h=None), torch.tensor(3.0, requires_grad=True)

    def step(x):
        holder.h = weight * x
        return holder.h + 1

    compiled = torch.jit(step)
    for call in range(3):
        compiled(torch.tensor(1.0 + call))
    holder.h.backward()
    assert weight.grad.item() == 3 and compiled.count <= 2


@pytest.mark.slow
def test_second_derivatives_run_the_function_in_the_state_of_its_call():
    def make():
        state = SimpleNamespace(first=True, n=1, h=torch.tensor(3.0))

        def function(x):
            state.n, state.h = state.n + 1, state.h * 2
            if state.first:
                state.first = False
                return x**3 * state.n * state.h
            return x**4 * state.n * state.h

        return function

    x, results = torch.tensor(2.0, requires_grad=True), []
    for function in (make(), torch.jit(make())):
        for _ in range(4):
            y = function(x)
            (slope,) = torch.autograd.grad(y, x, create_graph=True)
            results.append((y.item(), slope.item(), torch.autograd.grad(slope, x)[0].item()))
    assert results[:4] == results[4:]


def test_an_error_leaves_python_state_as_it_was():
    holder, log = SimpleNamespace(n=0, kept=None), []

    @torch.jit
    def step(x):
        holder.n += 1
        holder.kept, holder.new = x * 2, 1
        log.append(holder.kept)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        step(torch.ones(1))
    assert vars(holder) == {"n": 0, "kept": None} and log == []


def test_an_error_leaves_the_mode_of_a_module_as_it_was():
    module = nn.Dropout()

    @torch.jit
    def run(x):
        module.eval()
        raise KeyError("always")

    with pytest.raises(KeyError):
        run(torch.ones(2))
    assert module.training


class Shifted(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(1, 1)


MODE_READS = {
    "attribute": lambda model: model[0].training,
    "getattr": lambda model: getattr(model[0], "train" + "ing"),
    "vars": lambda model: vars(model[0])["training"],
    "modules": lambda model: all(module.training for module in model.modules()),
}
MODE_CHANGES = {
    "nothing": lambda model: None,
    "eval": lambda model: model.eval(),
    "setattr": lambda model: setattr(model[0], "training", False),
}


@pytest.mark.slow
@pytest.mark.parametrize("read", MODE_READS.values(), ids=MODE_READS)
@pytest.mark.parametrize("change", MODE_CHANGES.values(), ids=MODE_CHANGES)
@pytest.mark.parametrize("kind", [nn.Dropout, Shifted, lambda: nn.Sequential(nn.Tanh())])
def test_the_mode_of_a_module_that_is_not_called(read, change, kind):
    """Each call does what the uncompiled function does."""

    def build():
        model = nn.Sequential(kind())

        def run(x):
            result = x * 2 if read(model) else x * 3
            change(model)
            return result

        return model, run

    def results(model, run):
        outcomes = []
        for mode in (True, True, False, False, True):
            model.train(mode)
            outcomes.append((run(torch.ones(1)).item(), model.training, model[0].training))
        return outcomes

    model, run = build()
    compiled = torch.jit(run)
    assert results(model, compiled) == results(*build())
    assert compiled.count == 2


def test_a_second_trace_begins_in_the_mode_of_the_call():
    """The trace with `k` as an input goes another way than the call, which no later trace sees."""
    module = nn.Dropout()

    def run(x, k):
        result = x * 2 if module.training else x * 3
        module.eval()
        try:
            return result * int(k)
        except RuntimeError:
            return result * 0

    compiled = torch.jit(run)
    for k in range(4):
        module.train()
        assert compiled(torch.ones(1), k).item() == 2 * k and not module.training


def test_a_list_that_examples_share_must_stay_as_it_is():
    out = [torch.ones(1)]

    def adds(x, out):
        out.append(x * 2)
        return x

    with pytest.raises(RuntimeError, match="changes a list or dict among its arguments"):
        torch.func.vmap(adds, in_dims=(0, None))(torch.ones(1), out)
    assert len(out) == 1


def test_one_example_of_many_is_not_kept():
    kept = []
    with pytest.raises(RuntimeError, match="leaves behind a tensor of one example"):
        torch.func.vmap(lambda x: (kept.append(x * 2), x)[1])(torch.ones(3))
    assert kept == []


def test_a_container_too_large_to_compare_is_told_of():
    numbers = list(range(20_000))
    with pytest.warns(UserWarning, match=r"numbers, .* has 20000 elements: too many to compare"):
        assert torch.jit(lambda x: x * numbers[3])(torch.ones(1)).item() == 3


def test_classes_are_as_they_were_after_a_trace():
    class Plain:
        k = 2.0

        def __init__(self):
            self.j = 3.0

    class Own(Plain):
        def __getattribute__(self, name):
            return object.__getattribute__(self, name)

    method = vars(Own)["__getattribute__"]
    for holder in (Plain(), Own()):
        torch.jit(lambda x, holder=holder: x * holder.k * holder.j)(torch.ones(1))
    assert "__getattribute__" not in vars(Plain) and vars(Own)["__getattribute__"] is method
    assert "__setattr__" not in vars(Plain)


# ---- assignments of what is there already


class Slots:
    __slots__ = ("first",)


first = True


def of_a_global():
    def put(value):
        global first
        first = value

    def sets(x):
        global first
        first = False
        return x * 2

    return sets, put, lambda: first


def of_a_cell():
    own = True

    def put(value):
        nonlocal own
        own = value

    def sets(x):
        nonlocal own
        own = False
        return x * 2

    return sets, put, lambda: own


def of_an_instance(kind):
    target = kind()

    def sets(x):
        target.first = False
        return x * 2

    return sets, lambda value: setattr(target, "first", value), lambda: target.first


def of_an_item(target, key):
    def sets_first(x):
        target["first"] = False
        return x * 2

    def sets_0(x):
        target[0] = False
        return x * 2

    def sets_last(x):
        target[-1] = False
        return x * 2

    def put(value):
        target[key] = value

    return {"first": sets_first, 0: sets_0, -1: sets_last}[key], put, lambda: target[key]


PLACES = {
    "global": of_a_global,
    "cell": of_a_cell,
    "instance": lambda: of_an_instance(SimpleNamespace),
    "plain": lambda: of_an_instance(Average),
    "slots": lambda: of_an_instance(Slots),
    "class": lambda: of_an_instance(lambda: Recurrent),
    "dict": lambda: of_an_item({}, "first"),
    "list": lambda: of_an_item([None], 0),
    "end of a list": lambda: of_an_item([torch.ones(3), None], -1),
}


@pytest.mark.parametrize("place", PLACES)
def test_what_is_set_to_the_value_it_has_is_set_at_later_calls_too(place):
    sets, put, get = PLACES[place]()
    put(True)
    compiled = torch.jit(sets)
    for size, before in ((2, True), (3, False), (3, True), (3, False)):
        put(before)
        compiled(torch.ones(size))
        assert get() is False
    traces = len(compiled.traces)
    for before in (True, False):
        put(before)
        compiled(torch.ones(3))
    assert get() is False and len(compiled.traces) == traces


counted = None


def test_a_closure_variable_is_not_the_global_of_its_name():
    global counted

    def step(x):
        counted = x.sum()

        def again():
            return counted * 2

        return again()

    compiled = torch.jit(step)
    for number in range(3):
        counted = compiled(torch.full((2,), float(number))).item()
        assert counted == 4 * number
    assert len(compiled.traces) == 1


# ---- plain attributes of jaxgrad's own modules and optimizers


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.dropout, self.config = nn.Dropout(0.0), nn.Identity()
        self.config.k = 2.0

    def forward(self, x):
        return x * self.dropout.p + self.config.k


def test_settings_of_modules_that_are_not_called_are_seen():
    module = Scaled()
    compiled = torch.jit(module)
    for p, k in ((0.0, 2.0), (0.5, 2.0), (0.5, 3.0), (0.0, 3.0)):
        module.dropout.p, module.config.k = p, k
        assert compiled(torch.ones(1)).item() == p + k
    count = len(compiled.traces)
    for _ in range(3):
        compiled(torch.ones(1))
    assert len(compiled.traces) == count


def test_settings_of_modules_and_optimizers_are_set_at_each_call():
    def results(wrap):
        slope = nn.LeakyReLU(0.5)
        optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)
        optimizer.k = 2.0

        def step(x):
            slope.negative_slope = slope.negative_slope * 0.5
            optimizer.k += 1
            return slope(x) * optimizer.k

        run = wrap(step)
        values = [run(-torch.ones(1)).item() for _ in range(5)]
        return values, slope.negative_slope, optimizer.k

    assert results(torch.jit) == results(lambda function: function)


def nested_in_a_list():
    entry, counts = {"b": 0.5}, [0]
    return [1.0, entry, counts], entry, counts


@pytest.mark.parametrize("jit", [torch.jit, lambda step: step], ids=["jit", "eager"])
def test_containers_in_a_list_that_changes_stay_the_same_objects(jit):
    holder, entry, counts = nested_in_a_list()

    @jit
    def step():
        entry["b"] = holder[0]
        counts[0] += 1
        holder[0] += 1

    for number in range(1, 5):
        step()
        assert holder[1] is entry and holder[2] is counts
        assert (holder[0], entry, counts) == (number + 1.0, {"b": float(number)}, [number])


@pytest.mark.parametrize("jit", [torch.jit, lambda step: step], ids=["jit", "eager"])
def test_a_new_list_of_containers_that_were_there(jit):
    state = SimpleNamespace(entries=[{"t": torch.zeros(2)}, {"t": torch.ones(2)}])
    first, second = state.entries

    @jit
    def step(x):
        second["t"] = second["t"] + x
        state.entries = [second, {"x": x * 2}, [first]]

    for number in range(2, 5):
        step(torch.ones(2))
        assert state.entries[0] is second and state.entries[2][0] is first
        assert second["t"].tolist() == [number] * 2
        assert state.entries[1]["x"].tolist() == [2, 2]


@pytest.mark.parametrize("base", [dict, collections.OrderedDict])
def test_a_dict_keeps_items_that_its_class_reads_in_its_own_way(base):
    class Factories(base):
        """Items are classes; reading one makes an instance."""

        def __getitem__(self, key):
            return super().__getitem__(key)()

    class Scale:
        factor = 2.0

    class Shift:
        factor = 3.0

    factories = Factories(a=Scale)
    run = torch.jit(lambda x: x * factories["a"].factor)
    x = torch.tensor([1.0, 2.0])
    assert run(x).tolist() == run(x).tolist() == [2.0, 4.0]
    assert dict.items(factories) == {"a": Scale}.items()
    factories["a"] = Shift
    assert run(x).tolist() == [3.0, 6.0]
    assert dict.items(factories) == {"a": Shift}.items()


ONE = torch.ones(1)


class Attributes:
    """An object with attributes."""


def scale(x, factor=ONE):
    return x * factor


def run_setting(owner, jit):
    """What a function sets on an object, from numbers that two names exchange."""
    box, values = Attributes(), []
    box.a, box.b = 1.0, 2.0

    @jit
    def f(x):
        box.a, box.b = box.b, box.a
        owner.scale = box.a + box.b * 2
        return x * owner.scale

    for _ in range(4):
        values.append((f(ONE).item(), owner.scale))
        box.a += 1
    owner.scale = 7.0
    return [*values, jit(lambda x: x * owner.scale)(ONE).item()]


LIBRARYS_OWN = {
    "Normal": (
        lambda: torch.distributions.Normal(torch.zeros(1), 1.0),
        *("loc", lambda number: torch.tensor([number])),
        lambda normal: normal.mean,
    ),
    "AffineTransform": (
        lambda: torch.distributions.AffineTransform(0.0, 1.0),
        *("loc", float),
        lambda transform: transform(torch.zeros(1)),
    ),
    "TensorDataset": (
        lambda: torch.utils.data.TensorDataset(ONE),
        *("tensors", lambda number: (torch.tensor([number]),)),
        lambda dataset: dataset[0][0],
    ),
    "GradScaler": (
        lambda: torch.amp.GradScaler("cpu"),
        *("_growth_factor", float),
        lambda scaler: scaler.get_growth_factor(),
    ),
}


def test_an_element_that_is_set_beside_one_that_is_added():
    log = [True, 1]

    @torch.jit
    def f(x):
        log[0] = False
        log.append(2)
        return x

    for number in range(3):
        f(ONE)
        assert log == [False, 1, *[2] * (number + 1)]


def test_an_element_that_is_set_leaves_the_others():
    log = [0, 1]

    @torch.jit
    def f(x):
        log[0] = 5
        return x

    f(ONE)
    log[:] = [0, 7, 8]
    f(ONE)
    assert log == [5, 7, 8]


def test_attributes_that_are_set_to_what_they_were():
    def scale(x):
        return x

    layer, tensor = nn.Identity(), torch.ones(1)
    for owner in (layer, tensor, scale):

        @torch.jit
        def f(x, owner=owner):
            owner.n = 2.0
            return scale(x)

        for _ in range(3):
            f(ONE)
            assert owner.n == 2
            owner.n = 5.0
        del owner.n
        f(ONE)
        assert owner.n == 2


def test_an_instance_that_becomes_a_module():
    class Late(nn.Module):
        def other(self, x):
            return x

    class Trainer:
        def step(self, x):
            return x * 2

    trainer = Trainer()
    f = torch.jit(trainer.step)
    assert f(ONE).item() == 2
    trainer.__class__ = Late
    assert f(ONE).item() == 2


def test_an_attribute_of_a_layer_that_is_set_to_what_it_was():
    layer = nn.Identity()
    layer.rate = 3.0

    @torch.jit
    def f(x):
        layer.rate = 3.0
        return x

    f(ONE)
    layer.rate = 2.0
    f(ONE)
    assert layer.rate == 3.0


def test_all_variables_of_a_module():
    module = types.ModuleType("of_test")
    module.a = 1.0
    f = torch.jit(lambda x: x * sum(n for n in vars(module).values() if isinstance(n, float)))
    assert f(ONE).item() == 1
    module.b = 2.0
    assert f(ONE).item() == 3


def test_an_instance_in_a_module_that_becomes_a_module():
    class Late(torch.nn.Module):
        def forward(self, x):
            return x * 2

    late = Attributes()
    net = torch.nn.Sequential(torch.nn.Identity())
    f = torch.jit(lambda x: x * (1 + isinstance(net[0], Late)))
    assert f(ONE).item() == 1
    late.__class__ = Late
    net[0] = late
    assert f(ONE).item() == 2


def test_a_class_attribute_that_is_hidden_and_replaced():
    class Settings:
        scale = torch.tensor([0.25])

    box, scale = Settings(), Settings.scale

    @torch.jit
    def f(x):
        y = x * 2
        box.scale = y * 3
        return y

    y = f(torch.ones(1, requires_grad=True))
    Settings.scale = torch.tensor([4.0])
    assert torch.autograd.grad(box.scale, y)[0].item() == 3
    assert scale.item() == 0.25 and Settings.scale.item() == 4


@pytest.mark.parametrize(
    "make", [lambda: functools.partial(print), lambda: lambda: None, Attributes]
)
def test_attributes_of_functions(make):
    assert run_setting(make(), torch.jit) == run_setting(make(), lambda function: function)


@pytest.mark.parametrize("kind", LIBRARYS_OWN)
def test_attributes_of_the_librarys_own_objects(kind):
    make, name, value_of, read = LIBRARYS_OWN[kind]
    owner, kept = make(), []
    f = torch.jit(lambda x: x * read(owner))
    for number in (2.0, 3.0, 4.0):
        kept.append(getattr(owner, name))  # a tensor that is gone would be missed
        setattr(owner, name, value_of(number))
        assert f(ONE).item() == number


def test_a_class_with_slots_that_is_exchanged():
    kinds = [type("Kind", (), {"__slots__": ("a", "b"), "w": ONE * n}) for n in (1, 2)]
    own = kinds[0]()
    f = torch.jit(lambda x: x * own.w)
    assert f(ONE).item() == 1
    own.__class__ = kinds[1]
    assert f(ONE).item() == 2
