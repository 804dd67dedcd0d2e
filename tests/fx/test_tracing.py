"""Programs that are traced: the code, the tables and the numbers of graphs are PyTorch's."""

import contextlib
import copy
import importlib
import operator
import pickle
import threading
from pathlib import Path

import pytest
from helpers.as_torch import as_torch, error

import jaxgrad as torch
from jaxgrad.names.not_provided import is_placeholder


def part(torch, name):
    """A module of torch.fx."""
    return importlib.import_module(f"{torch.__name__}.fx.{name}")


def numbered(torch, module):
    """A module whose parameters are numbers in order."""
    for parameter in module.parameters():
        values = torch.arange(float(parameter.numel()), dtype=torch.float64)
        parameter.data = (values.reshape(parameter.shape) - 3) / 7
    return module


def network(torch):
    """A module with parameters, a buffer, a tensor that is neither, and modules in modules."""

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(3, 4))
            self.linear = torch.nn.Linear(4, 5)
            self.register_buffer("shift", torch.ones(4, dtype=torch.float64))
            inner = torch.nn.Sequential(torch.nn.Linear(5, 5))
            self.layers = torch.nn.Sequential(torch.nn.Linear(5, 5), torch.nn.ReLU(), inner)
            self.factor = torch.full((5,), 2.0, dtype=torch.float64)

        def forward(self, x):
            y = self.linear(x + self.scale + self.shift).clamp(min=0.0, max=1.0)
            return self.layers(y) * self.factor

    return numbered(torch, Network())


def input_of(torch):
    return torch.arange(12, dtype=torch.float64).reshape(3, 4) / 10


def code(torch, program, **options):
    return torch.fx.symbolic_trace(program, **options).code


# ---- text


@as_torch
def test_a_module_as_a_graph(torch):
    gm = torch.fx.symbolic_trace(network(torch))
    nodes = [[node.op, node.name, str(node.target)] for node in gm.graph.nodes]
    return str(gm.graph), gm.code, str(gm), nodes, sorted(gm.state_dict())


@as_torch
def test_functions_of_torch_in_code(torch):
    functional = torch.nn.functional

    def program(x):
        y = functional.max_pool2d(functional.relu(x), 2)
        y = functional.softmax(functional.gelu(functional.linear(y, y)), 1)
        y = functional.dropout(functional.interpolate(y, scale_factor=2.0), 0.5, True)
        y = functional.batch_norm(functional.pad(y, (1, 1)), y, y, eps=1e-3)
        y = functional.layer_norm(functional.adaptive_avg_pool2d(y, 1), (3,))
        y = functional.scaled_dot_product_attention(y, y, functional.conv2d(y, y))
        y = torch.cat([torch.flatten(y, 1), torch.linalg.norm(y)], dim=1)
        y = torch.einsum("ij->j", torch.split(torch.fft.fft(y), 2)[0]) + torch.add(y, 2, alpha=3)
        return functional.cross_entropy(y, y), torch.norm(y), torch.tensordot(y, y)

    gm = torch.fx.symbolic_trace(program)
    return gm.code, str(gm.graph)


@as_torch
def test_operators_and_attributes_in_code(torch):
    def program(x):
        y = 3 / x + x**2 // 3 % 4 << 1 & x | ~x ^ x
        y = [+y, -y, abs(y), y @ x, y == x, y != 2, y < x, y < 3, y <= 1, y >= 1, 1 - y, y >> 2]
        y = [*y, x.T.shape[-1], x[..., None, 1 : x.size(0)], x[0]["key"], x.grad.data.sum(-1)]
        first, second = x
        return {"all": y, "pair": (first, [second, None, 2.5, "text", slice(x, None)])}

    gm = torch.fx.symbolic_trace(program)
    return gm.code, str(gm.graph)


@as_torch
def test_code_of_graphs_that_are_written_by_hand(torch):
    graph = torch.fx.Graph()
    x = graph.placeholder("x", type_expr=torch.Tensor)
    graph.placeholder("y", default_value=3)
    graph.placeholder("*args"), graph.placeholder("**kwargs")
    graph.call_function(operator.iadd, (x, 1))
    values = [1, float("inf"), torch.float32, torch.device("cpu"), slice(1, None), None, "s", ()]
    called = graph.call_method("called", (x,), {"a": [*values, {"k": x}, (x,)]})
    called.type = torch.Tensor
    graph.call_function(getattr, (called, "a b")), graph.call_function(setattr, (called, "q", 1))
    graph.call_function(len, (called,)), graph.call_function(operator.setitem, (called, 0, 1))
    added = graph.call_function(torch.Tensor.add, (x, x))
    added.type = list[int]
    graph.call_function(operator.not_, (x,))
    graph.call_module("a.0.b", (x,)), graph.get_attr("a.0.c"), graph.call_module("for")
    graph.output((called, {"a": added}), type_expr=torch.Tensor)
    written = graph.python_code("self")
    lines = [node.format_node() for node in graph.nodes]
    return written.src, list(written.globals), str(graph), lines


@as_torch("""
    ['a', 'a_1', 'a_2', 'a_5', 'a_6', 'a_7', 'abs_1', 'abs_2', 'for_1', '_1x', 'x_y_z', 'a_8',
     'a_0', 'a_3', 'getattr_1', 'self', 'torch_1', 'inf_1', 'b_3', 'b', 'b_4', 'b_5']
    ['x', '_0', 'layers_avg_pool', 'relu', 'and_', 'abs_1', 'getattr_1', 'getitem', 'is_nan']
""")
def test_names_of_nodes(torch):
    names = part(torch, "graph")._Namespace()
    asked = "a a a_1 a_5 a a_5 abs abs for 1x x-y.z a_1 a_0 a_0 getattr self torch inf b_3 b b b_3"
    functions, graph = (torch.relu, operator.and_, abs, getattr), torch.fx.Graph()
    nodes = [graph.placeholder("x"), graph.call_module("0"), graph.call_module("layers.AvgPool")]
    nodes += [graph.call_function(function, (nodes[0],)) for function in functions]
    nodes += [graph.call_method(name, (nodes[0],)) for name in ("__getitem__", "isNan")]
    return [names.create_name(name, None) for name in asked.split()], [node.name for node in nodes]


@as_torch
def test_arguments_of_functions(torch):
    class Many(torch.nn.Module):
        def forward(self, x, y: int = 2, *rest, b=3, **options):
            return x + y + b

    many = Many()
    texts = [code(torch, many), code(torch, many, concrete_args={"y": 5})]
    texts.append(code(torch, lambda x, flag: x + 1 if flag else x, concrete_args={"flag": True}))
    texts.append(code(torch, lambda x, y: x if y is None else 1, concrete_args={"y": None}))
    gm = torch.fx.symbolic_trace(lambda x, flag: x + 1 if flag else x, concrete_args={"flag": True})
    return texts, gm(torch.ones(2), True), error(gm, torch.ones(2), False)


@as_torch
def test_containers_as_arguments(torch):
    leaf = torch.fx.PH
    gm = torch.fx.symbolic_trace(
        lambda x: {"sum": x["a"] + x["b"][0], "first": [x["a"]]},
        concrete_args={"x": {"a": leaf, "b": [leaf]}},
    )
    x = {"a": torch.ones(2), "b": [torch.full((2,), 2.0)]}
    return gm.code, gm(x), torch.fx.Interpreter(gm).run(x)


@as_torch
def test_what_cannot_be_traced(torch):
    flow = "symbolically traced variables cannot be used as inputs to control flow"
    loop, length = "Proxy object cannot be iterated", "is not supported in symbolic tracing"
    programs = [
        (lambda x: 1 if x.sum() > 0 else 2, flow),
        (lambda x: not x, flow),
        (lambda x: [item + 1 for item in x], loop),
        (lambda x: max(*x), loop),
        (lambda x: dict(**x), loop),
        (lambda x: 1 in x, loop),
        (lambda x: len(x), length),
        (lambda x: object(), "argument of type"),
    ]
    errors = [error(torch.fx.symbolic_trace, program, words=words) for program, words in programs]
    node = torch.fx.symbolic_trace(lambda x: x.cat([x])).graph.output_node().args[0]
    changes = [lambda: node.args[1].append(3), lambda: node.kwargs.update(a=3)]
    return errors, [error(change, words="object does not support mutation") for change in changes]


@as_torch
def test_a_tracer_of_ones_own(torch):
    class Leaves(torch.fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return isinstance(m, torch.nn.ReLU)

    class Known(torch.fx.Tracer):
        def to_bool(self, obj):
            return True

        def iter(self, obj):
            return iter((obj[0], obj[1]))

    class Shapes(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(2, 3))

        def forward(self, x):
            return x.reshape(self.weight.shape) if self.weight.dim() == 2 else x

    leaves, known = Leaves(), Known()
    graphs = [leaves.trace(network(torch)), known.trace(lambda x: sum(x) if x else x)]
    graphs.append(torch.fx.Tracer(param_shapes_constant=True).trace(Shapes()))
    scopes = {name: path for name, (path, _) in leaves.node_name_to_scope.items()}
    return [str(graph) for graph in graphs], scopes


WRAPPED = """
import {0}.fx, math
from math import floor

@{0}.fx.wrap
def signed(a, b):
    return a + b if a.sum() > 0 else a - b

{0}.fx.wrap("len")

def program(x):
    return signed(x, len(x)) + math.sqrt(x.size(0)) + floor(x.size(0))
"""


@as_torch("""
    ['len_1', 'signed', 'sqrt', 'add', 'floor', 'add_1']
    tensor([11.0, 11.0, 11.0, 11.0])
    tensor([1.0, 1.0, 1.0, 1.0])
    tensor([3.0])
""")
def test_functions_that_are_recorded_as_one(torch):
    names = {"__name__": "wrapped"}
    exec(WRAPPED.format(torch.__name__), names)
    gm = torch.fx.symbolic_trace(names["program"])
    calls = [node.name for node in gm.graph.nodes if node.op == "call_function"]
    return calls, gm(torch.ones(4)), gm(-torch.ones(4)), names["signed"](torch.ones(1), 2)


# ---- modules


@as_torch
def test_graph_modules_compute_what_the_program_does(torch):
    model, x = network(torch), input_of(torch)
    gm = torch.fx.symbolic_trace(model)
    gm(x).sum().backward()
    gradients = [parameter.grad for parameter in gm.parameters()]
    return gm(x), gradients, gm.training, gm.eval().linear.training, gm.linear is model.linear


@as_torch
def test_copies_and_written_modules(torch):
    gm, x = torch.fx.symbolic_trace(network(torch)), input_of(torch)
    copied, written = copy.deepcopy(gm), pickle.loads(pickle.dumps(gm))
    with torch.no_grad():
        copied.scale.zero_()
    graphs = [str(module.graph) for module in (copied, written)]
    same = [copied.graph is gm.graph, copied.code == gm.code == written.code]
    kinds = [type(module).__name__ for module in (gm, copied, written, copy.copy(gm))]
    return gm(x), copied(x), written(x), graphs, same, kinds, isinstance(gm, torch.nn.Module)


@as_torch("""
    [True, False, False, True]
    ['', 'linear', 'layers', 'layers.0', 'layers.1', 'layers.2', 'layers.2.0']
    ['', 'linear', 'layers', 'layers.0', 'layers.2', 'layers.2.0']
    RuntimeError('Node layers_1 target layers.1 references nonexistent attribute 1 of layers')
""")
def test_submodules_of_graph_modules(torch):
    gm = torch.fx.symbolic_trace(network(torch))
    done = [gm.add_submodule("head.act", torch.nn.ReLU()), gm.delete_submodule("nothing")]
    gm.delete_all_unused_submodules()
    names = [name for name, _ in gm.named_modules()]
    done += [gm.add_submodule("scale.act", torch.nn.ReLU()), gm.delete_submodule("layers.1")]
    left = [name for name, _ in gm.named_modules()]
    return done, names, left, error(gm.graph.lint, words="references")


@as_torch
def test_readable_code(torch):
    gm = torch.fx.symbolic_trace(network(torch))
    plain = gm.print_readable(print_output=False)
    part(torch, "passes.shape_prop").ShapeProp(gm).propagate(input_of(torch))
    shaped = gm.print_readable(print_output=False)
    notes = [str(node.meta["tensor_meta"]) for node in gm.graph.nodes]
    return plain, shaped, notes


# ---- what has no counterpart in PyTorch


def test_modules_are_as_before_after_an_interruption():
    class Stops(torch.nn.Module):
        def forward(self, x):
            raise KeyboardInterrupt

    methods = [torch.nn.Module.__call__, torch.nn.Module.__getattr__]
    with pytest.raises(KeyboardInterrupt):
        torch.fx.symbolic_trace(torch.nn.Sequential(Stops()))
    assert [torch.nn.Module.__call__, torch.nn.Module.__getattr__] == methods
    assert not {"__call__", "__getattr__"} & vars(torch.nn.Module).keys()


def test_other_threads_run_modules_while_one_traces():
    layer, results = torch.nn.Linear(2, 2), []

    class Waits(torch.nn.Module):
        def forward(self, x):
            thread = threading.Thread(target=lambda: results.append(layer(torch.ones(1, 2))))
            thread.start()
            thread.join()
            return x + 1

    gm = torch.fx.symbolic_trace(Waits())
    assert results[0].shape == (1, 2) and [node.op for node in gm.graph.nodes][1] == "call_function"


@pytest.mark.parametrize("compiled", [torch.jit, torch.compile])
def test_graph_modules_are_compiled(compiled):
    model, x = network(torch), input_of(torch)
    gm = torch.fx.symbolic_trace(model)
    step = compiled(lambda x: gm(x).sum())
    assert step(x).item() == pytest.approx(model(x).sum().item(), rel=1e-14)
    functional = torch.func.functional_call
    grads = torch.func.grad(lambda p: functional(gm, p, (x,)).sum())(dict(gm.named_parameters()))
    model(x).sum().backward()
    torch.testing.assert_close(grads["scale"], model.scale.grad)
    rows = torch.func.vmap(lambda row: torch.fx.symbolic_trace(lambda y: y.sin())(row))(x)
    torch.testing.assert_close(rows, x.sin())


OVERRIDABLE = (Path(__file__).parent / "overridable.txt").read_text().split()

# aliases of other functions
ALIASES = {"torch.miopen_batch_norm", "torch.resolve_neg", "torch.spmm"}


def function_at(path):
    """The function of a name of PyTorch; None where jaxgrad has none, or one that only raises."""
    owner = torch
    for name in path.split(".")[1:]:
        owner = getattr(owner, name, None)
    return None if is_placeholder(owner) else owner


def recorded(function):
    """The node of a call of a function with as many stand-ins as it takes."""
    for count in range(1, 14):
        x = torch.fx.Proxy(torch.fx.Graph().placeholder("x"))
        with contextlib.suppress(TypeError):
            return function(*[x] * count).node
    return None


def test_all_functions_of_tensors_are_recorded():
    # those of torch.nn.init call methods of their argument, which are recorded
    # and einsum, whose first argument is a text, is recorded in a program above
    others = ("torch.nn.init.", "torch.functional.einsum")
    paths = [path for path in OVERRIDABLE if not path.startswith(others)]
    functions = {path: function_at(path) for path in paths if path not in ALIASES}
    functions = {path: function for path, function in functions.items() if function is not None}
    assert len(functions) > 600
    targets = {path: getattr(recorded(f), "target", None) for path, f in functions.items()}
    assert [path for path, f in functions.items() if targets[path] is not f] == []


def test_the_names_in_code_are_those_of_the_functions():
    """What code says is the function that was called, for all functions with a name in PyTorch."""
    names = importlib.import_module("jaxgrad.fx._names")
    for functions in torch.overrides.get_overridable_functions().values():
        for function in functions:
            name = names.qualified_name(function)
            value = eval(name, {"torch": torch}) if name.startswith("torch.") else function
            # a special method by the name of its operator: `eq` for `__eq__`
            special = f"__{value.__name__}__"
            assert value is function or function.__name__ in (value.__name__, special), name
