"""Graphs that are run, changed, split and replaced as PyTorch does it."""

import importlib
import operator
import re

import pytest
from helpers.as_torch import as_torch, error

import jaxgrad as torch


def part(torch, name):
    """A module of torch.fx."""
    return importlib.import_module(f"{torch.__name__}.fx.{name}")


def numbers(torch, *shape):
    count = torch.ones(*shape).numel()
    return (torch.arange(count, dtype=torch.float64).reshape(*shape) - 3) / 7


def filled(torch, module):
    """A module whose parameters are numbers in order."""
    for parameter in module.parameters():
        parameter.data = numbers(torch, *parameter.shape)
    return module


# ---- programs of PyTorch's documentation


@as_torch
def test_an_operation_is_replaced_by_another(torch):
    gm = torch.fx.symbolic_trace(lambda x, y: torch.add(x, y) * torch.add(y, 1))
    for node in gm.graph.find_nodes(op="call_function", target=torch.add):
        with gm.graph.inserting_after(node):
            new = gm.graph.call_function(torch.bitwise_and, node.args, node.kwargs)
            node.replace_all_uses_with(new)
        gm.graph.erase_node(node)
    gm.recompile()
    gm.graph.lint()
    x = torch.tensor([6, 3])
    return gm.code, str(gm.graph), gm(x, torch.tensor([5, 2]))


@as_torch
def test_the_inverse_of_a_function(torch):
    inverses = {torch.sin: torch.asin, torch.exp: torch.log, operator.add: operator.sub}
    gm, graph = torch.fx.symbolic_trace(lambda x: torch.sin(torch.exp(x + 1))), torch.fx.Graph()
    last = gm.graph.output_node().args[0]
    value = graph.placeholder("y")
    node = last
    while node.op == "call_function":
        value = graph.call_function(inverses[node.target], (value, *node.args[1:]))
        node = node.args[0]
    graph.output(value)
    inverse = torch.fx.GraphModule({}, graph)
    x = numbers(torch, 4) - 1
    return inverse.code, inverse(gm(x))


@as_torch
def test_values_and_times_by_an_interpreter(torch):
    class Recording(torch.fx.Interpreter):
        def run(self, *args):
            self.seen = []
            return super().run(*args)

        def run_node(self, n):
            value = super().run_node(n)
            self.seen.append([n.op, n.name, list(value.shape)])
            return value

    class Negated(torch.fx.Interpreter):
        def call_function(self, target, args, kwargs):
            if target is torch.sigmoid:
                return torch.neg(*args, **kwargs)
            return super().call_function(target, args, kwargs)

        def call_method(self, target, args, kwargs):
            value = args[0]
            return value * 2 if target == "neg" else super().call_method(target, args, kwargs)

    layers = filled(torch, torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.Tanh()))
    recording = Recording(torch.fx.symbolic_trace(layers))
    program = torch.fx.symbolic_trace(lambda x, y=2: torch.sigmoid(x).neg() + y)
    x = numbers(torch, 3, 4)
    boxed = [x, 5]
    results = [recording.run(x), Negated(program).run(x), Negated(program).boxed_run(boxed)]
    env = {node: x for node in program.graph.nodes if node.name == "sigmoid"}
    results.append(torch.fx.Interpreter(program).run(x, initial_env=env))
    missing = error(torch.fx.Interpreter(program).run, words="Expected positional argument")
    return recording.seen, results, boxed, missing


@as_torch
def test_errors_say_which_node_was_run(torch):
    gm = torch.fx.symbolic_trace(lambda x: x.relu().view(7))
    call = torch.fx.Interpreter(gm).run
    where = "While executing %view : [num_users=1] = call_method[target=view](args = (%relu, 7)"
    return error(call, numbers(torch, 2), words=where)


@as_torch
def test_a_transformer(torch):
    class Swapped(torch.fx.Transformer):
        def call_function(self, target, args, kwargs):
            if target is torch.sigmoid:
                return torch.tanh(*args, **kwargs)
            return super().call_function(target, args, kwargs)

        def call_method(self, target, args, kwargs):
            value = args[0]
            return value.relu() if target == "neg" else super().call_method(target, args, kwargs)

    layers = filled(torch, torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.Sigmoid()))
    gm = torch.fx.symbolic_trace(lambda x, y=1: torch.sigmoid(x).neg() + y)
    swapped, same = Swapped(gm).transform(), torch.fx.Transformer(torch.fx.symbolic_trace(layers))
    same = same.transform()
    return swapped.code, str(swapped.graph), swapped(numbers(torch, 3)), str(same), same.code


@as_torch
def test_batch_norm_is_fused_into_convolutions(torch):
    inner = torch.nn.Sequential(torch.nn.Conv2d(2, 2, 1), torch.nn.BatchNorm2d(2), torch.nn.ReLU())
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), inner)
    model = filled(torch, model.double()).eval()
    model[1].running_mean.add_(0.5), model[2][1].running_var.mul_(3)
    optimization = part(torch, "experimental.optimization")
    fused, x = optimization.fuse(model), numbers(torch, 1, 1, 5, 5)
    dropped = optimization.remove_dropout(torch.nn.Sequential(torch.nn.Dropout(), inner))
    return fused.code, str(fused), fused(x), model(x), dropped.code


# ---- patterns


@as_torch
def test_patterns_are_replaced(torch):
    def program(x, w1, w2):
        m1, m2 = torch.cat([w1, w2]).sum(), torch.cat([w1, w2]).sum()
        return x + torch.max(m1) + torch.max(m2)

    gm = torch.fx.symbolic_trace(program)
    matches = torch.fx.replace_pattern(
        gm, lambda w1, w2: torch.cat([w1, w2]).sum(), lambda w1, w2: torch.stack([w1, w2])
    )
    values = (numbers(torch, 2), numbers(torch, 2), numbers(torch, 2))
    shown = [[str(m.anchor), {str(k): str(v) for k, v in m.nodes_map.items()}] for m in matches]
    return gm.code, shown, gm(*values)


@as_torch
def test_patterns_of_several_kinds(torch):
    codes = []

    def replaced(program, pattern, replacement):
        gm = torch.fx.symbolic_trace(program)
        count = len(torch.fx.replace_pattern(gm, pattern, replacement))
        gm.graph.lint()
        codes.append([count, gm.code])

    replaced(lambda x: torch.relu(torch.relu(x)), lambda x: torch.relu(x), lambda x: x.sigmoid())
    replaced(lambda x: x.exp().log() + x.exp(), lambda x: x.exp().log(), lambda x: x)
    replaced(lambda x: (x + 1) * (x + 2), lambda x: x + 1, lambda x: x - 1)
    replaced(lambda x, y: (x + y, x * y), lambda a, b: (a + b, a * b), lambda a, b: (a - b, a / b))
    replaced(lambda x: x.view(2, 3).sum(dim=1), lambda x: x.sum(dim=1), lambda x: x.mean(dim=1))
    replaced(
        lambda x: torch.neg(torch.neg(torch.neg(x))),
        lambda x: torch.neg(torch.neg(x)),
        lambda x: x.clone(),
    )
    replaced(lambda x: x.sin().cos() + x.sin(), lambda x: x.sin().cos(), lambda x: x.tan())
    return codes


@as_torch
def test_patterns_with_filters(torch):
    rewriter = part(torch, "subgraph_rewriter")
    gm = torch.fx.symbolic_trace(lambda x: (x + 3) * (x + 4))

    def is_large(match, graph, pattern):
        return any(4 in node.args for node in match.nodes_map.values())

    parts = rewriter.replace_pattern_with_filters(
        gm, lambda x: x + 1, lambda x: x - 1, [is_large], ignore_literals=True
    )
    literal = torch.fx.symbolic_trace(lambda x: x * 2 + 1)
    torch.fx.replace_pattern(literal, lambda x, y: x * y, lambda x, y: x - y)
    return gm.code, [str(replaced.replacements) for replaced in parts], literal.code


@as_torch
def test_modules_as_replacements(torch):
    class Scaled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 4)

        def forward(self, x):
            return self.layer(x) * 2

    gm = torch.fx.symbolic_trace(lambda x: x.relu() + 1)
    new = torch.fx.symbolic_trace(filled(torch, Scaled()))
    torch.fx.replace_pattern(gm, lambda x: x.relu(), new)
    return gm.code, [name for name, _ in gm.named_modules()], gm(numbers(torch, 2, 4))


# ---- graphs


@as_torch
def test_nodes_are_moved_and_changed(torch):
    graph = torch.fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    added = graph.call_function(torch.add, (x, y), {"alpha": 2})
    graph.output(added)
    with graph.inserting_before(added):
        new = graph.call_method("relu", (x,))
    added.update_arg(0, new), added.insert_arg(2, 3), added.update_kwarg("alpha", y)
    before = [str(graph), sorted(map(str, x.users)), added.all_input_nodes == [new, y], x < added]
    y.replace_all_uses_with(x), added.replace_input_with(new, y)
    x.prepend(y), new.append(x)
    order = [[str(node) for node in graph.nodes], [str(node) for node in reversed(graph.nodes)]]
    errors = [error(graph.lint, words="was used before it has been defined")]
    errors.append(error(graph.erase_node, x, words="but it still had"))
    errors.append(error(torch.fx.Graph().erase_node, new, words="Attempting to remove"))
    return before, str(graph), order, errors, len(graph.nodes)


@as_torch
def test_dead_code(torch):
    def program(x):
        torch.relu(x)
        unused = (x + 1) * 2
        torch._assert(unused.sum() > 0, "told")
        return x.sin()

    gm = torch.fx.symbolic_trace(program)
    changed = gm.graph.eliminate_dead_code()
    gm.recompile()
    again = gm.graph.eliminate_dead_code()
    no_checks = gm.graph.eliminate_dead_code(lambda node: node.op in ("placeholder", "output"))
    return changed, gm.code, again, no_checks, str(gm.graph)


@as_torch
def test_graphs_in_graphs(torch):
    inner = torch.fx.symbolic_trace(lambda x, y: (x + y).relu()).graph
    graph = torch.fx.Graph()
    a, b = graph.placeholder("a"), graph.placeholder("b")
    x, y, *_ = inner.nodes
    copies = {x: a, y: b}
    result = graph.graph_copy(inner, copies)
    graph.output((result, graph.node_copy(list(inner.nodes)[2], copies.__getitem__)))
    lines = []
    with graph.on_generate_code(lambda before: lambda body: ["a += 1\n", *body]):
        lines.append(graph.python_code("self").src)
    return str(graph), lines, graph.python_code("self").src


@as_torch
def test_modules_are_split(torch):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.param = torch.nn.Parameter(torch.ones(3, 4))
            self.linear = torch.nn.Linear(4, 5)

        def forward(self, x, y):
            z = self.linear(x + self.param).clamp(min=0.0, max=1.0)
            return z + self.linear(y).clamp(min=0.0, max=1.0)

    model, results = filled(torch, Model()), []
    gm, splitting = torch.fx.symbolic_trace(model), part(torch, "passes.split_module")
    kinds = {node.name: node.op == "call_function" for node in gm.graph.nodes}
    halves = {node.name: position // 4 for position, node in enumerate(gm.graph.nodes)}
    for chosen, options in (
        (halves, {}),
        (halves, {"keep_original_node_name": True}),
        (halves, {"tuple_return": True}),
        (halves, {"partition_affix": "a", "keep_original_order": True}),
    ):
        paths = {}
        split = splitting.split_module(
            gm, model, lambda n, chosen=chosen: chosen[n.name], paths, **options
        )
        children = [(name, m) for name, m in split.named_children() if hasattr(m, "code")]
        codes = {name: child.code for name, child in children}
        x = numbers(torch, 3, 4)
        results.append([split.code, codes, paths, split(x, x), sorted(split.state_dict())])
    split = splitting.split_module
    return results, error(split, gm, model, lambda n: int(kinds[n.name]), words="cycle exists")


@as_torch
def test_graphs_are_split_by_tags(torch):
    gm = torch.fx.symbolic_trace(lambda x: ((x + 1) * 2).relu())
    for node in gm.graph.nodes:
        node.tag = {"mul": "blue"}.get(node.name, "red" if node.name == "add" else "last")
    split = part(torch, "passes.split_utils").split_by_tags(gm, ["red", "blue", "last"])
    return split.code, {name: child.code for name, child in split.named_children()}


@as_torch
def test_passes_are_managed(torch):
    base, manager = part(torch, "passes.infra.pass_base"), part(torch, "passes.infra.pass_manager")

    class Multiplied(base.PassBase):
        def call(self, graph_module):
            for node in graph_module.graph.nodes:
                if node.target is operator.add:
                    node.target = operator.mul
                    return base.PassResult(graph_module, True)
            return base.PassResult(graph_module, False)

    def nothing(gm):
        return base.PassResult(gm, False)

    one = Multiplied()
    order = manager.this_before_that_pass_constraint(nothing, one)
    managers = [manager.PassManager([one], steps=3), manager.PassManager([one, nothing], [order])]
    results = [run(torch.fx.symbolic_trace(lambda x: x + 3 + 4)) for run in managers]
    sorted_passes = managers[1].passes == [nothing, one]
    return [[result.modified, result.graph_module.code] for result in results], sorted_passes


@as_torch("""
    [[], ['0'], ['1'], []]
    [None, None, {'stage': 1}, None]
    False
""")
def test_notes_on_nodes(torch):
    traceback = part(torch, "traceback")
    gm = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh()))
    stacks = [node.meta.get("nn_module_stack", {}).values() for node in gm.graph.nodes]
    paths = [[path for path, _ in stack] for stack in stacks]
    gm.graph.output_node().args[0].meta["custom"] = {"stage": 1}
    again = torch.fx.Transformer(gm).transform()
    kept = [node.meta.get("custom") for node in again.graph.nodes]
    return paths, kept, traceback.has_preserved_node_meta()


# ---- what has no counterpart in PyTorch


def test_nodes_know_the_lines_of_the_program():
    class Tracer(torch.fx.Tracer):
        record_stack_traces = True

    def program(x):
        y = x.relu()
        return y + 1

    first, relu, add, _ = Tracer().trace(program).nodes
    assert first.stack_trace is None and add.stack_trace.endswith("in program\n    return y + 1")
    lines = [line.strip() for line in relu.stack_trace.split("\n")]
    assert len(lines) == 2 and lines[1] == "y = x.relu()" and "test_rewriting.py" in lines[0]
    gm = torch.fx.GraphModule({}, relu.graph)
    assert ", code: y = x.relu()" in gm.print_readable(print_output=False)


def test_functions_that_change_their_argument_are_not_removed():
    """PyTorch removes them, and the module then computes another thing."""
    gm = torch.fx.symbolic_trace(lambda x: (x.add_(1), torch.relu_(x), x)[2])
    assert not gm.graph.eliminate_dead_code()
    assert gm(torch.tensor([-3.0, 1.0])).tolist() == [0, 2]


# what imports of torch in written code are under jaxgrad's own name
NAMES = {"torch.": "jaxgrad.", "torch": "jaxgrad", "import torch": "import jaxgrad as torch"}


def test_a_graph_is_written_to_a_folder(tmp_path):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.Tanh())
            self.scale = torch.nn.Parameter(torch.ones(2))
            self.register_buffer("shift", torch.ones(2))

        def forward(self, x):
            return self.layers(x) * self.scale + self.shift

    gm = torch.fx.symbolic_trace(Model())
    gm.to_folder(tmp_path / "written", "Written")
    names, replaced = {}, lambda match: NAMES[match[0]]
    source = (tmp_path / "written" / "module.py").read_text()
    exec(
        re.sub(r"(?<=import )torch\.|(?<=from )torch|^import torch$", replaced, source, flags=re.M),
        names,
    )
    x = torch.ones(3, 4)
    torch.testing.assert_close(names["Written"]()(x), gm(x))
    lstm = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.LSTM(2, 2)))
    with pytest.raises(TypeError, match="no line of code makes"):
        lstm.to_folder(tmp_path / "other")
