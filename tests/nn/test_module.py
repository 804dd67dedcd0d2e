"""jaxgrad.nn.Module and Parameter: members, state, hooks and copies of a module."""

import copy

import pytest
from helpers.as_torch import as_torch, error, parameters, warned

import jaxgrad
from jaxgrad import nn


def small(torch):
    """A module with parameters, a buffer of each kind, and a submodule."""

    class Small(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.tensor([1.0, 2.0], dtype=torch.float64))
            self.inner = torch.nn.Linear(2, 1, dtype=torch.float64)
            self.register_buffer("seen", torch.zeros(1, dtype=torch.float64))
            self.register_buffer("cache", torch.ones(1), persistent=False)
            with torch.no_grad():
                self.inner.weight.copy_(torch.tensor([[3.0, 4.0]]))
                self.inner.bias.fill_(0.5)

        def forward(self, x):
            return self.inner(x * self.weight)

    return Small()


@pytest.mark.row("S01")
@as_torch
def test_parameters_of_a_module(torch):
    module = small(torch)
    results = [
        [name for name, _ in module.named_parameters()],
        [name for name, _ in module.named_parameters(recurse=False)],
        [name for name, _ in module.named_parameters(prefix="p")],
        [isinstance(parameter, torch.nn.Parameter) for parameter in module.parameters()],
        isinstance(module.weight * 2, torch.nn.Parameter),
        isinstance(module.weight.detach(), torch.nn.Parameter),
        isinstance(module.weight, torch.Tensor),
        repr(module.weight),
    ]
    module(torch.ones(3, 2, dtype=torch.float64)).sum().backward()
    gradients = [parameter.grad for parameter in module.parameters()]
    module.zero_grad(set_to_none=False)
    zeros = [parameter.grad for parameter in module.parameters()]
    module.zero_grad()
    none = [parameter.grad for parameter in module.parameters()]
    module.requires_grad_(False)
    flags = [parameter.requires_grad for parameter in module.parameters()]
    return results, gradients, zeros, none, flags


@pytest.mark.row("S01")
@as_torch("""
    RuntimeError('Only Tensors of floating point and complex dtype can require gradients')
    tensor([1, 1])
    True
    tensor([], dtype=float32, requires_grad=True)
    tensor([1.0+1.0j], requires_grad=True)
""")
def test_parameters_of_integers(torch):
    whole = torch.ones(2, dtype=torch.int64)
    fixed = torch.nn.Parameter(whole, requires_grad=False)
    words = "Only Tensors of floating point and complex dtype can require gradients"
    return [
        error(torch.nn.Parameter, whole, words=words),
        fixed,
        isinstance(fixed, torch.nn.Parameter),
        torch.nn.Parameter(),
        torch.nn.Parameter(torch.ones(1) + 1j),
    ]


@pytest.mark.row("S01")
@as_torch("""
    tensor([3.0, 3.0])
    tensor([3.0, 3.0], requires_grad=True)
    True
""")
def test_a_parameter_shares_the_memory_of_its_tensor(torch):
    data = torch.zeros(2)
    parameter = torch.nn.Parameter(data)
    data.add_(1)
    with torch.no_grad():
        parameter.mul_(3)
    return data, parameter, parameter.is_leaf


@as_torch
def test_members_go_by_attribute(torch):
    module, nn = small(torch), torch.nn
    module.weight = nn.Parameter(torch.zeros(1))
    module.seen = torch.ones(3)
    module.extra = nn.Buffer(torch.ones(1), persistent=False)
    module.kept = nn.Buffer(torch.ones(1))
    module.tail = nn.ReLU()
    before = [name for name, _ in module.named_modules()]
    module.inner = None
    module.later = nn.Parameter(torch.ones(1))
    module.later = None
    results = [
        before,
        list(module.state_dict()),
        [name for name, _ in module.named_buffers()],
        [name for name, _ in module.named_children()],
        module.later,
        hasattr(module, "inner"),
    ]
    del module.weight
    del module.tail
    del module.kept
    # a parameter becomes a module, and a plain value a parameter
    module.plain = 3
    module.plain = nn.Parameter(torch.ones(1))
    refused = [
        error(setattr, module, "later", nn.Identity(), words="as parameter 'later'"),
        error(setattr, module, "other", nn.Buffer(torch.ones(1))),
    ]
    return (
        results,
        refused,
        list(module.state_dict()),
        [name for name, _ in module.named_modules()],
        module.plain,
    )


@as_torch("""
    ['layer']
    True
    tensor(0.0)
""")
def test_a_module_that_is_no_member(torch):
    """sentence_transformers sets its activation past `Module.__setattr__`."""
    nn = torch.nn

    class Scorer(nn.Module):
        def __setattr__(self, name, value):
            if name == "activation":
                return super(nn.Module, self).__setattr__(name, value)
            return super().__setattr__(name, value)

    scorer = Scorer()
    scorer.activation, scorer.layer = nn.ReLU(), nn.Linear(2, 3)
    children = [name for name, _ in scorer.named_children()]
    return [children, "activation" in vars(scorer), scorer.activation(torch.tensor(-1.0))]


@as_torch
def test_wrong_members_are_refused(torch):
    module, nn = small(torch), torch.nn

    class Hasty(nn.Module):
        def __init__(self, value):
            self.value = value

    def named(register, *args):
        return lambda: register(*args)

    ones = torch.ones(1)
    return [
        error(setattr, module, "weight", ones, words="as parameter 'weight' (torch.nn.Parameter"),
        error(setattr, module, "inner", ones, words="as child module 'inner' (torch.nn.Module or"),
        error(setattr, module, "seen", 3, words="cannot assign 'int' as buffer 'seen'"),
        error(getattr, module, "nothing"),
        error(delattr, module, "nothing"),
        error(Hasty, nn.Parameter(ones)),
        error(Hasty, nn.ReLU()),
        error(named(module.register_parameter, "x", ones), words="object to parameter 'x'"),
        error(named(module.register_parameter, "a.b", None), words="parameter name can"),
        error(named(module.register_parameter, "", None)),
        error(named(module.register_parameter, 3, None)),
        error(named(module.register_parameter, "forward", None)),
        error(
            named(module.register_parameter, "x", nn.Parameter(ones) * 1),
            words="object to parameter 'x'" if torch is not jaxgrad else "parameter 'x'",
        ),
        error(named(module.register_buffer, "weight", None)),
        error(named(module.register_buffer, "x", 3)),
        error(named(module.register_module, "x", 3), words="int is not a Module subclass"),
        error(module.get_submodule, "inner.nothing"),
        error(module.get_submodule, "weight"),
        error(module.get_parameter, "seen"),
        error(module.get_parameter, "inner.nothing"),
        error(module.get_buffer, "weight"),
        error(module.train, 1, words="training mode is expected to be boolean"),
        error(nn.Module(), 1),
        error(module.to, torch.int64),
    ]


@as_torch
def test_members_by_path_and_in_order(torch):
    module = small(torch)
    seen = []
    module.apply(lambda submodule: seen.append(type(submodule).__name__))
    shared = torch.nn.Sequential(module.inner, module.inner)
    return [
        module.get_parameter("inner.bias"),
        module.get_buffer("seen"),
        type(module.get_submodule("inner")).__name__,
        module.get_submodule("") is module,
        seen,
        [name for name, _ in shared.named_parameters()],
        [name for name, _ in shared.named_parameters(remove_duplicate=False)],
        len(list(shared.modules())),
        len(list(shared.children())),
        [submodule.training for submodule in module.eval().modules()],
        [submodule.training for submodule in module.train().modules()],
    ]


@as_torch
def test_state_dict_out_and_in(torch):
    module, other = small(torch), small(torch)
    state = module.state_dict()
    shared = state["weight"].data_ptr() == module.weight.data_ptr()
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.zero_()
    kept = list(other.parameters())
    report = other.load_state_dict(state)
    same = all(a is b for a, b in zip(kept, other.parameters(), strict=True))
    part = other.load_state_dict({"weight": torch.ones(2), "more": torch.ones(1)}, strict=False)
    other.load_state_dict({"weight": torch.zeros(2)}, strict=False, assign=True)
    return [
        list(state),
        list(module.state_dict(prefix="p.")),
        [tensor.requires_grad for tensor in state.values()],
        [tensor.requires_grad for tensor in module.state_dict(keep_vars=True).values()],
        shared,
        repr(report),
        same,
        [part.missing_keys, part.unexpected_keys],
        list(other.parameters()),
        isinstance(other.weight, torch.nn.Parameter),
    ]


@as_torch
def test_state_that_does_not_fit(torch):
    module = small(torch)
    wrong = {"weight": torch.ones(3), "more": torch.ones(1), "inner.bias": 3, "inner.x": 1}
    message = error(module.load_state_dict, wrong)["says"]
    return [
        error(module.load_state_dict, wrong, words="Error(s) in loading state_dict for Small:"),
        message,
        error(module.load_state_dict, 3),
        error(lambda: module.load_state_dict({"weight": torch.ones(3)}, strict=False))["says"],
    ]


@as_torch("""
    ['inner.weight', 'inner.bias', 'old']
    '<All keys matched successfully>'
    [['', False], ['', 5], ['', False]]
    RuntimeError('state_dict post-hook must return None')
""")
def test_hooks_of_state_dicts(torch):
    module, seen = small(torch), []

    def rename(module, state, prefix, *rest):
        seen.append((prefix, len(rest)))
        if "old" in state:
            state["weight"] = state.pop("old")

    module.register_state_dict_pre_hook(lambda m, prefix, keep: seen.append((prefix, keep)))
    module.register_state_dict_post_hook(lambda m, state, *rest: state.__delitem__("seen"))
    state = module.state_dict()
    state["old"] = state.pop("weight")
    module.register_load_state_dict_pre_hook(rename)
    module.register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.clear())
    loaded = repr(module.load_state_dict(state))
    module.register_state_dict_post_hook(lambda m, state, *rest: state)
    return [list(state), loaded, seen, error(module.state_dict)]


@as_torch(r"""
    ['_extra_state']
    7
    ('Error(s) in loading state_dict for Counting:\n'
     '\tMissing key(s) in state_dict: "_extra_state". ')
""")
def test_extra_state_is_part_of_the_state_dict(torch):
    class Counting(torch.nn.Module):
        steps = 0

        def get_extra_state(self):
            return {"steps": self.steps}

        def set_extra_state(self, state):
            self.steps = state["steps"]

    one, two = Counting(), Counting()
    one.steps = 7
    two.load_state_dict(one.state_dict())
    return [list(one.state_dict()), two.steps, error(two.load_state_dict, {})["says"]]


@as_torch("""
    [tensor([500.0]), tensor([20.0]), tensor([2.0])]
    ['first', [2.0, 100.0], 'first', [2.0, 20.0], 'first', [2.0, 2.0]]
    tensor([5.0])
""")
def test_forward_hooks_change_arguments_and_results(torch):
    identity, seen = torch.nn.Identity(), []
    x = torch.tensor([1.0])

    class Scale(torch.nn.Module):
        def forward(self, x, by=2):
            return x * by

    scale = Scale()
    scale.register_forward_pre_hook(lambda m, args: seen.append("first"))
    scale.register_forward_pre_hook(lambda m, args: (args[0] + 1,), prepend=True)
    scale.register_forward_pre_hook(
        lambda m, args, kwargs: (args, {"by": kwargs.get("by", 0) + 1}), with_kwargs=True
    )
    scale.register_forward_hook(lambda m, args, out: seen.append([args[0].item(), out.item()]))
    scale.register_forward_hook(lambda m, args, kwargs, out: out * kwargs["by"], with_kwargs=True)
    handle = scale.register_forward_hook(lambda m, args, out: out * 10, prepend=True)
    outputs = [scale(x, by=4), scale(x)]
    handle.remove()
    outputs.append(scale(x))
    identity.register_forward_pre_hook(lambda m, args: args[0] * 5)
    identity.register_forward_hook(lambda *args: None)
    return [outputs, seen, identity(x)]


@as_torch("""
    ValueError('no')
    [None]
""")
def test_forward_hooks_that_are_always_called(torch):
    class Failing(torch.nn.Module):
        def forward(self, x):
            raise ValueError("no")

    module, seen = Failing(), []
    module.register_forward_hook(lambda *args: seen.append("usual"))
    module.register_forward_hook(lambda m, args, out: seen.append(out), always_call=True)
    return [error(module, 1), seen]


@pytest.mark.row("F18")
@as_torch("""
    [['before', [[1.0, 3.0]]],
     ['first', [[6.0, None, 19.0], [2.0, 3.0]]],
     ['after', [[6.0, None, 19.0], [2.0, 3.0]]]]
    tensor(60.0, dtype=float64)
    tensor(19.0, dtype=float64)
""")
def test_full_backward_hooks(torch):
    seen = []

    class Pair(torch.nn.Module):
        def forward(self, a, number, b):
            return a * b, b * number

    module = Pair()

    def note(name):
        return lambda module, *gradients: seen.append(
            [name, [[None if g is None else g.item() for g in group] for group in gradients]]
        )

    a, b = (torch.tensor(n, dtype=torch.float64, requires_grad=True) for n in (2.0, 3.0))
    module.register_full_backward_hook(note("after"))
    module.register_full_backward_hook(lambda m, gi, go: (gi[0] * 10, None, gi[2]))
    module.register_full_backward_hook(note("first"), prepend=True)
    module.register_full_backward_pre_hook(note("before"))
    module.register_full_backward_pre_hook(lambda m, go: (go[0] * 2, go[1]))
    one, two = module(a, 5, b)
    (one + 3 * two).backward()
    return [seen, a.grad, b.grad]


@pytest.mark.row("F18")
@pytest.mark.slow
@as_torch("""
    [[[None], [tensor([[1.0]], dtype=float64)]], [[None], [tensor([[1.0]], dtype=float64)]]]
    [True]
    RuntimeError(
     'Backward hook for Modules where no input requires gradient should always return '
     'None or None for all gradients.')
    tensor([[11.5]], dtype=float64)
""")
def test_backward_hooks_without_inputs_that_require_grad(torch):
    module, seen = small(torch), []
    x = torch.ones(1, 2, dtype=torch.float64)
    module.register_full_backward_hook(lambda m, gi, go: seen.append((list(gi), list(go))))
    told = warned(lambda: module(x).sum().backward())["warnings"]
    words = "Full backward hook is firing when gradients are computed with respect to module"
    module.register_full_backward_hook(lambda m, gi, go: (go[0],))
    refused = error(
        lambda: warned(lambda: module(x).sum().backward()),
        words="Backward hook for Modules where no input requires gradient should always return",
    )
    with torch.no_grad():
        silent = module(x)
    return [seen, [warning["says"].startswith(words) for warning in told], refused, silent]


@pytest.mark.row("F18")
@as_torch
def test_what_backward_hooks_must_not_do(torch):
    module, relu = torch.nn.Identity(), torch.nn.ReLU(inplace=True)
    x = torch.tensor([1.0, -1.0], requires_grad=True)
    module.register_full_backward_hook(lambda m, gi, go: None)
    written = error(lambda: module(x).add_(1), words="is a view and is being modified inplace")
    relu.register_full_backward_hook(lambda m, gi, go: None)
    inside = error(lambda: relu(x * 1), words="is a view and is being modified inplace")
    module.register_full_backward_hook(lambda m, gi, go: (gi[0], gi[0]))
    count = error(lambda: module(x).sum().backward(), words="invalid number of grad_input, got 2")
    other = torch.nn.Identity()
    other.register_full_backward_pre_hook(lambda m, go: (go[0], go[0]))
    before = error(lambda: other(x).sum().backward(), words="invalid number of grad_output, got 2")
    return [written, inside, count, before]


@pytest.mark.row("F18")
@as_torch("""
    tensor(6.0, requires_grad=True)
    tensor(2.0)
    [6.0]
""")
def test_backward_hooks_and_second_derivatives(torch):
    class Square(torch.nn.Module):
        def forward(self, x):
            return x * x

    module, seen = Square(), []
    module.register_full_backward_hook(lambda m, gi, go: seen.append(gi[0].item()))
    x = torch.tensor(3.0, requires_grad=True)
    y = module(x)
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    (second,) = torch.autograd.grad(first, x)
    return [first, second, seen]


@as_torch("""
    [['torch.float32', 'torch.float32', 'torch.int64', 'torch.float32', 'torch.float32'],
     [True, 'torch.float32', True],
     ['torch.float16', 'torch.int64'],
     ['torch.bfloat16', 'torch.int64'],
     ['torch.float64', 'torch.int64'],
     'torch.float32',
     ['torch.float64', 'torch.float64']]
    tensor([1.0, 2.0], dtype=float64, requires_grad=True)
""")
def test_modules_of_other_dtypes(torch):
    module = small(torch)
    whole = torch.zeros((), dtype=torch.int64)
    module.register_buffer("count", whole)
    weight = module.weight
    module(torch.ones(1, 2, dtype=torch.float64)).sum().backward()
    results = [[str(tensor.dtype) for tensor in module.float().state_dict().values()]]
    results.append([module.weight is weight, str(weight.grad.dtype), weight.requires_grad])
    for convert in (module.half, module.bfloat16, module.double):
        convert()
        results.append([str(module.weight.dtype), str(module.count.dtype)])
    module.to(torch.zeros(1, dtype=torch.float32))
    results.append(str(module.inner.weight.dtype))
    module.type(torch.float64)
    results.append([str(module.inner.weight.dtype), str(module.count.dtype)])
    return results, module.weight


@as_torch
def test_copies_of_modules(torch):
    module, seen = small(torch), []
    module.register_forward_hook(lambda m, args, out: seen.append(m is module))
    module.inner.weight.grad = torch.ones(1, 2, dtype=torch.float64)
    clone = copy.deepcopy(module)
    with torch.no_grad():
        clone.weight.zero_()
    clone(torch.ones(1, 2, dtype=torch.float64))
    pair = copy.deepcopy(torch.nn.Sequential(module.inner, module.inner))
    return [
        list(module.parameters()),
        clone.weight,
        isinstance(clone.weight, torch.nn.Parameter),
        clone.inner.weight.grad,
        seen,
        pair[0] is pair[1],
        list(clone.state_dict()),
    ]


@as_torch
def test_what_modules_show(torch):
    nn = torch.nn

    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Sequential(nn.Linear(2, 3, bias=False), nn.ReLU(inplace=True))
            self.none = None

        def extra_repr(self):
            return "a=1"

    shown = [
        Own(),
        nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Sequential()]),
        nn.ModuleDict({"a": nn.Conv2d(1, 2, 3, padding=1)}),
        nn.Embedding(3, 2, padding_idx=0),
        nn.LayerNorm((2, 3)),
        nn.BatchNorm2d(3, affine=False),
        nn.Dropout(0.25),
        nn.GELU(),
        nn.MaxPool2d(2, ceil_mode=True),
        nn.CrossEntropyLoss(),
        nn.ConvTranspose2d(2, 4, 2, groups=2, output_padding=0),
        nn.GroupNorm(1, 2),
        nn.Unflatten(1, (2, 3)),
    ]
    return [repr(module) for module in shown]


@as_torch
def test_signatures_of_modules(torch):
    module = torch.nn.Module
    names = (
        "named_parameters",
        "register_forward_hook",
        "register_forward_pre_hook",
        "register_full_backward_hook",
        "register_full_backward_pre_hook",
        "load_state_dict",
        "register_buffer",
        "register_parameter",
        "zero_grad",
        "train",
        "named_buffers",
        "named_modules",
        "requires_grad_",
    )
    layers = (
        "Linear",
        "Conv2d",
        "ConvTranspose2d",
        "Embedding",
        "LayerNorm",
        "Dropout",
        "MaxPool2d",
        "AvgPool2d",
        "RMSNorm",
        "GroupNorm",
        "Flatten",
        "PReLU",
    )
    signatures = {name: parameters(getattr(module, name)) for name in names}
    return signatures, {name: parameters(getattr(torch.nn, name).__init__) for name in layers}


@as_torch
def test_signatures_and_mistakes_of_function_layers(torch):
    nn = torch.nn
    layers = (
        "ReLU",
        "ELU",
        "CELU",
        "LeakyReLU",
        "GELU",
        "GLU",
        "Softplus",
        "Threshold",
        "Softmax",
        "MaxPool1d",
        "AvgPool1d",
        "AvgPool3d",
        "AdaptiveAvgPool2d",
        "Dropout2d",
        "AlphaDropout",
        "MSELoss",
        "HuberLoss",
        "NLLLoss",
        "CrossEntropyLoss",
        "BCEWithLogitsLoss",
        "GaussianNLLLoss",
        "CosineSimilarity",
    )

    class Halved(nn.ELU):
        def __init__(self, halves):
            super().__init__(inplace=True, alpha=0.5**halves)

    return [
        {name: parameters(getattr(nn, name).__init__) for name in layers},
        parameters(Halved),
        [repr(Halved(2)), Halved(2)(torch.tensor([-1.0, 2.0]))],
        error(lambda: nn.ReLU(True, 2), words="positional arguments"),
        error(lambda: nn.ELU(1.0, alpha=2.0), words="multiple values for argument 'alpha'"),
        error(lambda: nn.Threshold(1.0), words="'value'"),
        error(lambda: nn.MaxPool2d(2, size=3), words="unexpected keyword argument 'size'"),
        nn.MSELoss(reduction="sum")(input=torch.ones(2), target=torch.zeros(2)),
    ]


@as_torch
def test_containers_hold_modules_and_parameters(torch):
    nn = torch.nn
    net = nn.Sequential(nn.Linear(1, 2), nn.ReLU(), nn.Linear(2, 1))
    row = nn.ModuleList([nn.ReLU(), nn.Tanh()])
    row.append(nn.Sigmoid()).extend([nn.GELU()])
    row.insert(1, nn.SiLU())
    row[0] = nn.ELU()
    del row[2]
    by_name = nn.ModuleDict({"a": nn.ReLU()})
    by_name["b"] = nn.Tanh()
    by_name.update([("c", nn.Identity())])
    popped = by_name.pop("a")
    weights = nn.ParameterList([torch.ones(2), nn.Parameter(torch.zeros(1)), "word"])
    weights[1] = torch.ones(3)
    named = nn.ParameterDict({"x": torch.ones(1)})
    named["y"] = nn.Parameter(torch.zeros(2))
    return [
        list(net[:2].state_dict()),
        type(net[-1]).__name__,
        len(net),
        list((net + nn.Sequential(nn.Linear(1, 1))).state_dict()),
        [type(module).__name__ for module in row],
        list(by_name),
        type(popped).__name__,
        "b" in by_name,
        list(weights.state_dict().values()),
        weights[2],
        [name for name, _ in named.named_parameters()],
        [
            error(lambda: net[5]),
            error(lambda: row[-7]),
            error(lambda: by_name["z"]),
            error(nn.ModuleList, 3),
            error(nn.ModuleList, [3], words="is not a Module subclass"),
            error(nn.Sequential, 3, words="is not a Module subclass"),
            error(nn.ModuleList([]), 3),
            error(lambda: weights[9]),
        ],
    ]


# extensions of PyTorch


def test_operators_on_a_parameter_give_tensors():
    """The expected values are a closed form."""
    parameter = nn.Parameter(jaxgrad.tensor([3.0]))
    assert type(parameter) is nn.Parameter and issubclass(nn.Parameter, jaxgrad.Tensor)
    assert type(parameter * parameter) is type(parameter.detach()) is jaxgrad.Tensor
    assert (parameter * parameter).item() == 9
    assert not isinstance(jaxgrad.ones(1), nn.Parameter) and not isinstance(3, nn.Parameter)
    assert isinstance(copy.deepcopy(parameter), nn.Parameter)
    assert isinstance(copy.copy(parameter), nn.Parameter)


def test_a_hook_must_be_callable():
    with pytest.raises(TypeError, match="a hook is a function, but got int"):
        nn.Identity().register_forward_hook(3)


def test_dicts_of_parameters_are_dicts():
    """The expected values are PyTorch's."""
    named = nn.ParameterDict({"x": jaxgrad.ones(1), "y": jaxgrad.ones(2)})
    other = nn.ParameterDict().fromkeys(["p", "q"], 3)
    union = named | other
    union |= {"z": 1}
    assert union.popitem() == ("z", 1)
    assert union.setdefault("x", 4) is named["x"] and union.setdefault("w", 5) == 5
    assert list(reversed(union)) == ["w", "q", "p", "y", "x"]
    assert list({"v": 0} | union.copy()) == ["v", "x", "y", "p", "q", "w"]
    other.clear()
    assert not len(other) and list(named) == ["x", "y"]


def test_state_dicts_by_position():
    """The expected values are PyTorch's."""
    layer, held = nn.Linear(1, 2), {"q": 1}
    with pytest.warns(FutureWarning, match="Positional args are being deprecated"):
        assert layer.state_dict({}, "p.", True)["p.bias"] is layer.bias
    with pytest.warns(FutureWarning, match="Positional args are being deprecated"):
        assert list(layer.state_dict({}, "p.", destination=held)) == ["q", "p.weight", "p.bias"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Using .*non-full backward hook:FutureWarning")
def test_backward_hooks_of_the_last_operator():
    """PyTorch calls them with the gradients of its inputs: of x, the bias and the weight."""
    seen = []
    net = jaxgrad.nn.Sequential(jaxgrad.nn.Linear(3, 2, bias=False), jaxgrad.nn.Flatten())
    handle = net[0].register_backward_hook(lambda *arguments: seen.append(arguments))
    x = jaxgrad.ones(4, 3, requires_grad=True)
    (net(x) * 3).sum().backward()
    ((module, inputs, outputs),) = seen
    assert module is net[0] and outputs[0].tolist() == [[3.0, 3.0]] * 4
    assert any(gradient is not None and gradient.tolist() == x.grad.tolist() for gradient in inputs)
    handle.remove()
    net(x).sum().backward()
    assert len(seen) == 1
    pair = jaxgrad.nn.GRU(2, 2)  # the first tensor of a tuple
    pair.register_backward_hook(lambda module, inputs, outputs: seen.append(outputs[0].shape))
    pair(jaxgrad.ones(1, 2))[0].sum().backward()
    assert len(seen) == 2
    with jaxgrad.no_grad():
        net(x), pair(jaxgrad.ones(1, 2))


@as_torch("""
    tensor([0.4041169094348223, 1.4041169094348223, 3.4041169094348223], dtype=float64)
    tensor([[[6.0]]], dtype=float64)
    tensor([[[2.0, 2.8284271247461903, 2.0, 2.8284271247461903]]], dtype=float64)
    tensor([0.4041169094348223, 1.4041169094348223, 3.4041169094348223], dtype=float64)
    True
    True
    True
""")
def test_functions_on_tensors_in_a_class_do_not_bind(torch):
    functional = torch.nn.functional

    class Base(torch.nn.Module):
        convolution, act, flat = torch.conv1d, torch.relu, torch.flatten
        error_function, spectrum = torch.special.erf, torch.fft.fft

        def forward(self, x):
            x = self.convolution(x, weight=torch.ones(1, 1, 2, dtype=x.dtype))
            return self.flat(self.act(x)) + self.error_function(x / 8).sum()

    class Derived(Base):
        linear, helper = functional.linear, lambda self: self.flat

    x = torch.arange(4, dtype=torch.float64).reshape(1, 1, 4) - 1
    layer = Derived()
    return [
        *(layer(x), layer.linear(x, x[0]), layer.spectrum(x).abs(), torch.compile(layer)(x)),
        *(Base.act is torch.relu, layer.act is torch.relu, layer.helper() is torch.flatten),
    ]


def test_set_submodule():
    network = nn.Sequential(nn.Sequential(nn.ReLU()), nn.Linear(1, 1))
    network.set_submodule("0.0", nn.Tanh())
    network.set_submodule("0.new", nn.GELU())
    assert [type(part).__name__ for part in network[0]] == ["Tanh", "GELU"]
    for arguments, kind, message in [
        (("", nn.ReLU()), ValueError, "without a target name"),
        (("0.0", 1), ValueError, "`module` is not an nn.Module, found <class 'int'>"),
        (("1.weight", nn.ReLU()), AttributeError, "`weight` is not an nn.Module"),
        (("0.other", nn.ReLU(), True), AttributeError, "Sequential has no attribute `other`"),
        (("2.0", nn.ReLU()), AttributeError, "Sequential has no attribute `2`"),
    ]:
        with pytest.raises(kind, match=message):
            network.set_submodule(*arguments)


def test_arguments_of_the_base_class():
    class Named:
        def __init__(self, name="", **options):
            self.name, self.options = name, options

    class Layer(nn.Module, Named):
        call_super_init = True

    layer = Layer("a", size=2)
    assert (layer.name, layer.options, layer.training) == ("a", {"size": 2}, True)

    class Plain(nn.Module):
        def __init__(self):
            super().__init__(size=2)

    with pytest.raises(
        TypeError, match=r"Plain.__init__\(\) got an unexpected keyword argument 's"
    ):
        Plain()
    with pytest.raises(TypeError, match=r"Module.__init__\(\) takes 1 positional argument but 3 w"):
        nn.Module(1, 2)


def test_devices_that_jax_lacks():
    for name in ("xpu", "ipu", "mtia"):
        with pytest.raises(RuntimeError, match=f"no device {name}"):
            getattr(nn.Linear(1, 1), name)()


def test_options_of_hooks():
    module = nn.Linear(1, 1)
    plain = module.register_forward_hook(lambda *arguments: None)
    always = module.register_forward_hook(lambda *arguments: None, always_call=True)
    wide = module.register_forward_pre_hook(lambda *arguments: None, with_kwargs=True)
    assert module._is_full_backward_hook is None
    module.register_full_backward_hook(lambda *arguments: None)
    assert module._is_full_backward_hook is True
    assert dict(module._forward_hooks_always_called) == {always.id: True}
    assert dict(module._forward_pre_hooks_with_kwargs) == {wide.id: True}
    assert plain.id not in module._forward_hooks_with_kwargs


@pytest.mark.parametrize(
    ("keys", "hint"),
    [
        (lambda state: {"model": state, "epoch": 3}, "pass state_dict['model']"),
        (
            lambda state: {f"module.{name}": value for name, value in state.items()},
            "key.removeprefix('module.')",
        ),
    ],
)
def test_load_state_dict_finds_the_keys_elsewhere(keys, hint):
    layer = nn.Linear(3, 2)
    with pytest.raises(RuntimeError, match="Missing key") as raised:
        layer.load_state_dict(keys(layer.state_dict()))
    assert hint in str(raised.value)


def test_load_state_dict_names_the_wrapped_module():
    layer = nn.Linear(3, 2)
    with pytest.raises(RuntimeError, match=r"load the state into its \.module"):
        nn.DataParallel(layer).load_state_dict(layer.state_dict())


def test_load_state_dict_gives_no_hint_where_keys_are_missing():
    with pytest.raises(RuntimeError) as raised:
        nn.Linear(3, 2).load_state_dict({"weight": jaxgrad.ones(2, 3)})
    assert str(raised.value).splitlines()[1:] == ['\tMissing key(s) in state_dict: "bias". ']


def test_a_missing_attribute_of_a_wrapper_is_one_of_its_module():
    wrapper = nn.DataParallel(nn.Linear(3, 2))
    for name in ("weight", "reset_parameters"):
        with pytest.raises(AttributeError, match=f"'{name}': it is one of .module"):
            getattr(wrapper, name)
    with pytest.raises(AttributeError, match=r"no attribute 'foo'$"):
        wrapper.foo  # noqa: B018


def test_a_class_in_place_of_a_layer():
    with pytest.raises(TypeError, match=r"is not a Module subclass: call the class, ReLU\(...\)"):
        nn.Sequential(nn.ReLU)


def test_a_buffer_does_not_replace_a_plain_attribute():
    for before in (5, None, jaxgrad.ones(2)):
        module = jaxgrad.nn.Module()
        module.state = before
        with pytest.raises(KeyError, match="attribute 'state' already exists"):
            module.state = jaxgrad.nn.Buffer(jaxgrad.ones(2))


class OldBuffers(jaxgrad.nn.Module):
    """A module whose `register_buffer` is that of PyTorch 1.4."""

    def register_buffer(self, name, tensor):
        super().register_buffer(name, tensor)


def test_buffers_of_a_class_with_a_register_buffer_of_its_own():
    module = OldBuffers()
    module.state = jaxgrad.nn.Buffer(jaxgrad.ones(2))
    assert list(module.state_dict()) == ["state"]


def test_conversion_to_another_layout_replaces_parameters():
    layer = jaxgrad.nn.Linear(3, 2, bias=False)
    layer.weight.grad = jaxgrad.ones(2, 3)
    before = layer.weight
    layer._apply(lambda tensor: tensor.detach().to_sparse())
    assert layer.weight.layout is layer.weight.grad.layout is jaxgrad.sparse_coo
    assert before.layout is before.grad.layout is jaxgrad.strided
    assert layer.weight.shape == (2, 3) and isinstance(layer.weight, jaxgrad.nn.Parameter)


def test_what_to_refuses_and_warns_of():
    layer = jaxgrad.nn.Linear(1, 1)
    with pytest.raises(RuntimeError, match="does not accept copy argument"):
        layer.to("cpu", copy=True)
    with pytest.warns(UserWarning, match="Complex modules are a new feature under active"):
        layer.to(jaxgrad.complex64)


class Unmade(jaxgrad.nn.Module):
    def __init__(self):
        pass

    def forward(self, x):
        return x


def test_a_call_of_a_module_before_its_base_is_made():
    with pytest.raises(AttributeError, match="'Unmade' object has no attribute '_backward_hooks'"):
        Unmade()(1)
