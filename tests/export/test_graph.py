"""The graphs of exported programs: operators, names and arguments as PyTorch 2.13 has them."""

import copy
import io
import operator

import pytest
from helpers.exported_models import MODELS

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad import fx, nn
from jaxgrad.export import Dim, export, load, save


def module(forward, **members):
    kind = type("Module", (nn.Module,), {"forward": forward})()
    for name, value in members.items():
        setattr(kind, name, value)
    return kind


def lines(program):
    """The nodes that are no inputs: name, operator, arguments."""
    return [
        f"{node.name} = {node.target}{node.args}{dict(node.kwargs) or ''}"
        for node in program.graph.nodes
        if node.op == "call_function"
    ]


def inputs(program, *args):
    """The inputs of the graph: copies of the state, and arguments."""
    known = {**program.state_dict, **program.constants}
    targets = [spec.target for spec in program.graph_signature.input_specs if spec.target]
    return [*[known[target].detach().clone() for target in targets], *args]


def check_values(program, *args):
    """The graph gives what the program gives, by its interpreter and by its code."""
    expected = torch.utils._pytree.tree_leaves(program.module()(*map(torch.clone, args)))
    interpreter = fx.Interpreter(program.graph_module)
    for run in (interpreter.run, program.graph_module):
        results = run(*inputs(program, *map(torch.clone, args)))
        for result, wanted in zip(results, expected, strict=True):
            torch.testing.assert_close(result, wanted, check_stride=False)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(4, 8), nn.BatchNorm1d(8)
        self.register_buffer("shift", torch.ones(8), persistent=False)
        self.scale = torch.full((8,), 2.0)

    def forward(self, x):
        y = F.relu(self.norm(self.linear(x))) * 3 + self.shift - self.scale
        return {"y": y, "best": y.softmax(-1).max(dim=1), "three": 3}


def test_the_graph_of_a_module():
    program = export(Net(), (torch.ones(3, 4),))
    assert [node.name for node in program.graph.find_nodes(op="placeholder")] == [
        *("p_linear_weight", "p_linear_bias", "p_norm_weight", "p_norm_bias", "b_shift"),
        *("b_norm_running_mean", "b_norm_running_var", "b_norm_num_batches_tracked"),
        *("c_scale", "x"),
    ]
    statistics = "b_norm_running_mean, b_norm_running_var, True, 0.1, 1e-05, False"
    assert lines(program) == [
        "linear = aten.linear.default(x, p_linear_weight, p_linear_bias)",
        "add_ = aten.add_.Tensor(b_norm_num_batches_tracked, 1)",
        f"batch_norm = aten.batch_norm.default(linear, p_norm_weight, p_norm_bias, {statistics})",
        "relu = aten.relu.default(batch_norm,)",
        "mul = aten.mul.Tensor(relu, 3)",
        "add = aten.add.Tensor(mul, b_shift)",
        "sub = aten.sub.Tensor(add, c_scale)",
        "softmax = aten.softmax.int(sub, -1)",
        "max_1 = aten.max.dim(softmax, 1)",
        f"getitem = {operator.getitem}(max_1, 0)",
        f"getitem_1 = {operator.getitem}(max_1, 1)",
    ]
    assert str(program.graph.output_node().args) == "((sub, getitem, getitem_1, 3),)"
    assert program.graph_signature.user_outputs == ("sub", "getitem", "getitem_1", 3)
    assert program.graph_signature.inputs_to_parameters["p_norm_bias"] == "norm.bias"
    values = {node.name: node.meta.get("val") for node in program.graph.nodes}
    assert (values["linear"].shape, values["getitem_1"].dtype) == ((3, 8), torch.int64)
    assert isinstance(values["x"], torch.Tensor) and values["x"].device == torch.device("cpu")
    stack = program.graph.find_nodes(op="call_function")[0].meta["nn_module_stack"]
    assert [path for path, _ in stack.values()] == ["", "linear"]
    assert stack["L__self__linear"][1] == "torch.nn.Linear"
    check_values(program, torch.randn(3, 4))


def test_the_code_of_a_graph():
    program = export(nn.Linear(2, 3), (torch.ones(4, 2),))
    code = "torch.ops.aten.linear.default(input_1, p_weight, p_bias)"
    assert code in program.graph_module.code and code in str(program)
    assert 'linear: "f32[4, 3]" = ' in program.graph_module.print_readable(print_output=False)


# what PyTorch 2.13 records
FORMS = {
    "lambda self, x: (1 - x, 2 / x, x**2, 2**x, x // 2)": [
        "rsub = aten.rsub.Scalar(x, 1)",
        "reciprocal = aten.reciprocal.default(x,)",
        "mul = aten.mul.Tensor(reciprocal, 2)",
        "pow_1 = aten.pow.Tensor_Scalar(x, 2)",
        "pow_2 = aten.pow.Scalar(2, x)",
        "floor_divide = aten.floor_divide.default(x, 2)",
    ],
    "lambda self, x: (x[0], x[:, 1:], x[..., None], x.view(-1), x.sum(1), x.std(1), x.std())": [
        "select = aten.select.int(x, 0, 0)",
        "slice_1 = aten.slice.Tensor(x, 1, 1, 9223372036854775807)",
        "unsqueeze = aten.unsqueeze.default(x, 2)",
        "view = aten.view.default(x, [-1])",
        "sum_1 = aten.sum.dim_IntList(x, [1])",
        "std = aten.std.dim(x, [1])",
        "std_1 = aten.std.correction(x,)",
    ],
    "lambda self, x: (x.split([1, 3], 1), F.pad(x, (1, 1)), x.half(), x.clamp(max=1))": [
        "split_with_sizes = aten.split_with_sizes.default(x, [1, 3], 1)",
        f"getitem = {operator.getitem}(split_with_sizes, 0)",
        f"getitem_1 = {operator.getitem}(split_with_sizes, 1)",
        "pad = aten.pad.default(x, [1, 1])",
        "to = aten.to.dtype(x, torch.float16)",
        "clamp = aten.clamp.default(x, None, 1)",
    ],
    "lambda self, x: x[torch.tensor([0, 1])] + torch.zeros(4)": [
        "lift_fresh_copy = aten.lift_fresh_copy.default(c_lifted_tensor_0,)",
        "detach_ = aten.detach_.default(lift_fresh_copy,)",
        "index = aten.index.Tensor(x, [detach_])",
        "zeros = aten.zeros.default([4],){'device': device(type='cpu'), 'pin_memory': False}",
        "add = aten.add.Tensor(index, zeros)",
    ],
    "lambda self, x: F.adaptive_max_pool2d(x[None, None], 2)": [
        "unsqueeze = aten.unsqueeze.default(x, 0)",
        "unsqueeze_1 = aten.unsqueeze.default(unsqueeze, 1)",
        "adaptive_max_pool2d = aten.adaptive_max_pool2d.default(unsqueeze_1, [2, 2])",
        f"getitem = {operator.getitem}(adaptive_max_pool2d, 0)",
        f"getitem_1 = {operator.getitem}(adaptive_max_pool2d, 1)",
    ],
}


@pytest.mark.parametrize("forward", FORMS)
def test_calls_as_operators(forward):
    x = torch.rand(3, 4) + 0.5
    program = export(module(eval(forward)), (x,))
    assert lines(program) == FORMS[forward]
    check_values(program, x)


def test_writes_in_place_stay_and_become_outputs():
    def forward(self, x):
        y = x.clone()
        y[:, 1] = x[:, 0]
        return y.mul_(2)

    program = export(module(forward), (torch.ones(3, 4),))
    assert lines(program) == [
        "clone = aten.clone.default(x,)",
        "select = aten.select.int(x, 1, 0)",
        "select_1 = aten.select.int(clone, 1, 1)",
        "copy_ = aten.copy_.default(select_1, select)",
        "mul_ = aten.mul_.Tensor(clone, 2)",
    ]
    check_values(program, torch.randn(3, 4))
    assert lines(program.run_decompositions()) == lines(program)  # a write through a view


class Average(nn.Module):
    """Puts another tensor in the place of its buffer."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(2))

    def forward(self, x):
        self.mean = 0.5 * self.mean + x.mean(0)
        return x - self.mean


def test_a_buffer_that_is_assigned_is_written_to():
    program = export(Average(), (torch.ones(3, 2),))
    assert lines(program)[-1] == "copy__default = aten.copy_.default(b_mean, add)"
    decomposed = program.run_decompositions()
    assert decomposed.graph_signature.buffers_to_mutate == {"add": "mean"}
    values = [torch.tensor([2.0, 4.0]), torch.ones(3, 2)]
    state, result = fx.Interpreter(decomposed.graph_module).run(*values)
    assert state.tolist() == [2, 3] and result.tolist() == [[-1, -2]] * 3
    fx.Interpreter(program.graph_module).run(*values)
    assert values[0].tolist() == [2, 3]


def test_decomposed_programs_have_no_writes():
    class Count(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(4)
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x):
            self.calls.add_(1)
            return self.norm(x).relu_() + self.calls

    torch.manual_seed(0)
    model, x = Count(), torch.randn(3, 4)
    program = export(model, (x,)).run_decompositions()
    assert not [line for line in lines(program) if "_.Tensor" in line or "_.default" in line]
    assert [*program.graph_signature.buffers_to_mutate.values()] == [
        *("calls", "norm.running_mean", "norm.running_var", "norm.num_batches_tracked")
    ]
    values = inputs(program, x)
    results = fx.Interpreter(program.graph_module).run(*values)
    expected = model(x)
    members = dict(model.named_buffers())
    names = [*program.graph_signature.buffers_to_mutate.values()]
    for result, wanted in zip(results, [*map(members.get, names), expected], strict=True):
        torch.testing.assert_close(result, wanted)


def test_sizes_that_vary_are_nodes():
    def forward(self, x, y):
        return x.reshape(3 * x.shape[0], -1).sum() + y.shape[0], x.shape[0]

    shapes = {"x": {0: Dim("n", min=2)}, "y": {0: 2 * Dim("n", min=2)}}
    program = export(module(forward), (torch.ones(3, 6), torch.ones(6)), dynamic_shapes=shapes)
    assert lines(program) == [
        "sym_size_int = aten.sym_size.int(x, 0)",
        f"mul = {operator.mul}(3, sym_size_int)",
        "reshape = aten.reshape.default(x, [mul, -1])",
        "sum_1 = aten.sum.default(reshape,)",
        "sym_size_int_1 = aten.sym_size.int(y, 0)",
        "add = aten.add.Tensor(sum_1, sym_size_int_1)",
    ]
    assert str(program.graph.find_nodes(op="placeholder")[0].meta["val"].shape) == (
        "torch.Size([n, 6])"
    )
    results = fx.Interpreter(program.graph_module).run(torch.ones(5, 6), torch.ones(10))
    assert results[0].item() == 40 and results[1] == 5


def test_values_in_the_notes_of_nodes():
    """PyTorch notes a list for an operator that returns a list, and a tuple for several results."""

    class Parts(nn.Module):
        def forward(self, x):
            left, right = x.chunk(2, 1)
            return left.max(0)[0] + right.sum() * x.shape[0]

    program = torch.export.export(
        Parts(), (torch.ones(3, 4),), dynamic_shapes={"x": {0: torch.export.Dim("n")}}
    )
    notes = {node.name: node.meta["val"] for node in program.graph.nodes}
    assert type(notes["chunk"]) is list and type(notes["max_1"]) is tuple
    assert str(notes["sym_size_int"]) == "n"


def test_calls_whose_operators_have_other_arguments():
    window = torch.ones(4)

    def forward(self, x):
        padded = torch.stft(x, 4, window=window, return_complex=True)
        plain = torch.stft(x, 4, 2, None, window, False, return_complex=True)
        products = torch.tensordot(x, x, 1), torch.tensordot(x, x, ([0], [0]))
        return padded.abs(), plain.abs(), products

    program = export(module(forward), (torch.ones(12),))
    targets = [n.target for n in program.graph.nodes if n.op == "call_function"]
    assert torch.ops.aten.tensordot.default in targets
    check_values(program, torch.arange(12.0))


@pytest.mark.filterwarnings("ignore:size_average")
def test_numbers_of_parts_and_weights_of_losses():
    # torch 2.13 has tensor_split.sections and hsplit.int here
    def forward(self, x, w):
        weighted = F.mse_loss(x, x * 2, weight=w), F.l1_loss(x, x * 2, weight=w)
        total = F.mse_loss(x, w, False), F.cross_entropy(x, w, reduce=False)
        return x.tensor_split(3, 1), torch.hsplit(x, 2), weighted, total, ~(x > 1)

    x = torch.arange(8.0).reshape(2, 4)
    program = export(module(forward), (x, x + 1))
    targets = {str(n.target) for n in program.graph.nodes if n.op == "call_function"}
    assert {"aten.tensor_split.sections", "aten.hsplit.int", "aten.bitwise_not.default"} <= targets
    check_values(program, x, x + 1)


def test_no_grad_is_in_the_graph():
    def forward(self, x):
        with torch.no_grad():
            square = x * x
        return square * x

    program = export(module(forward), (torch.ones(2),))
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    fx.Interpreter(program.graph_module).run(x)[0].sum().backward()
    assert x.grad.tolist() == [4, 9] and torch.is_grad_enabled()


def test_code_that_is_no_operator_makes_the_program_one_node():
    def forward(self, x):
        return torch.func.vmap(torch.sin)(self.weight * x), 2

    program = export(module(forward, weight=nn.Parameter(torch.ones(4))), (torch.ones(3, 4),))
    assert "# the program is one node: a tensor comes from code that is no operator" in str(program)
    assert [getattr(n.target, "__name__", n.target) for n in program.graph.nodes] == [
        *("p_weight", "x", "stablehlo_program", "getitem", "output")
    ]
    check_values(program, torch.randn(3, 4))


def test_a_graph_is_in_the_file():
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    program = export(model, (torch.ones(3, 4),), dynamic_shapes=({0: Dim("n", min=2)},))
    constant = export(module(lambda self, x: x + torch.tensor([1.0, 2.0])), (torch.ones(2),))
    layer = nn.utils.parametrizations.weight_norm(nn.Linear(4, 2))
    composed = export(
        nn.Sequential(layer, module(lambda self, x: F.normalize(x))), (torch.ones(3, 4),)
    )
    for original, x in (
        *((program, torch.randn(5, 4)), (constant, torch.ones(2))),
        (composed, torch.randn(3, 4)),
    ):
        file = io.BytesIO()
        save(original, file)
        file.seek(0)
        again = load(file)
        assert lines(again) == lines(original) and str(again) == str(original)
        assert again.graph_signature == original.graph_signature
        check_values(again, x)


def test_graphs_are_edited_and_copied():
    program = export(module(lambda self, x: torch.relu(x).add_(1)), (torch.ones(2),))
    changed = copy.deepcopy(program.graph_module)
    (relu,) = changed.graph.find_nodes(op="call_function", target=torch.ops.aten.relu.default)
    relu.target = torch.ops.aten.neg.default
    changed.graph.eliminate_dead_code()
    changed.graph.lint()
    changed.recompile()
    assert changed(torch.tensor([-1.0, 2.0]))[0].tolist() == [2, -1]
    assert program.graph_module(torch.tensor([-1.0, 2.0]))[0].tolist() == [1, 3]


def test_a_recording_leaves_no_mode():
    before = torch.tape.interception.override
    export(nn.Linear(2, 2), (torch.ones(1, 2),))
    assert torch.tape.interception.override is before and not torch.tape.interception.is_general


def test_the_module_of_a_program_has_a_graph_too():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 2)

        def forward(self, x, *, scale=2):
            return {"y": self.linear(x) * scale + torch.tensor(1.0), "scale": scale}

    model, x = Scaled(), torch.randn(3, 4)
    program = export(model, (torch.ones(3, 4),), {"scale": 3}).module()
    assert isinstance(program, fx.GraphModule)
    assert [(node.op, node.name, node.target) for node in program.graph.nodes][:5] == [
        ("get_attr", "linear_weight", "linear.weight"),
        ("get_attr", "linear_bias", "linear.bias"),
        ("get_attr", "lifted_tensor_0", "lifted_tensor_0"),
        ("placeholder", "x", "x"),
        ("placeholder", "scale", "scale"),
    ]
    assert "fx_pytree.tree_flatten_spec(([x], {'scale':scale}), self._in_spec)" in program.code
    expected = model(x, scale=3)["y"]
    torch.testing.assert_close(program(x, scale=3)["y"], expected)
    edited = copy.deepcopy(program)
    (mul,) = edited.graph.find_nodes(op="call_function", target=torch.ops.aten.mul.Tensor)
    mul.target = torch.ops.aten.sub.Tensor
    edited.recompile()
    for changed in (edited, copy.deepcopy(edited)):
        result = changed(x, scale=3)
        torch.testing.assert_close(result["y"], model.linear(x) - 3 + 1)
        assert result["scale"] == 3
    torch.testing.assert_close(program(x, scale=3)["y"], expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_graphs_of_models(name):
    make, arguments = MODELS[name]
    torch.manual_seed(0)
    model = make().eval()
    program = export(model, arguments(2), platforms=("cpu",))
    assert "stablehlo_program" not in program.graph_module.code
    args = arguments(2)
    expected = torch.utils._pytree.tree_leaves(model(*args))
    results = fx.Interpreter(program.graph_module).run(*inputs(program, *args))
    for result, wanted in zip(results, expected, strict=True):
        torch.testing.assert_close(result, wanted, check_stride=False)


def test_exports_in_inference_mode_have_a_graph():
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(inplace=True))
    with torch.inference_mode():
        program = export(model, (torch.ones(1, 2),), platforms=("cpu",))
    assert [line.split("(")[0] for line in lines(program)] == [
        *("linear = aten.linear.default", "relu_ = aten.relu_.default")
    ]


def test_tensors_of_sizes_are_nodes():
    def forward(self, x):
        n = x.shape[0]
        return torch.tensor([[n], [2]]), n - x, torch.tensor(n, dtype=torch.float32)

    program = export(module(forward), (torch.ones(4),), dynamic_shapes=({0: Dim("n")},))
    targets = [str(node.target) for node in program.graph.nodes if node.op == "call_function"]
    # torch 2.13: these, and checks and conversions of each tensor that change nothing
    assert targets == [
        "aten.sym_size.int",
        *["aten.scalar_tensor.default", "aten.stack.default"] * 2,
        *["aten.stack.default", "aten.detach_.default"],
        "aten.rsub.Scalar",
        *["aten.scalar_tensor.default", "aten.detach_.default"],
    ]
    sizes, rest, number = program.graph_module(torch.tensor([1.0, 2.0, 3.0]))
    assert sizes.tolist() == [[3], [2]] and number.item() == 3
    assert rest.tolist() == [2, 1, 0]


def test_a_function_of_the_user_is_its_operators():
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            return x.sin() * weight

        @staticmethod
        def backward(ctx, grad):
            return grad, None

    def forward(self, x):
        return Scaled.apply(x, self.weight) + 1

    net = module(forward)
    net.weight = nn.Parameter(torch.ones(3))
    program = export(net, (torch.ones(3),))
    targets = [str(node.target) for node in program.graph.nodes if node.op == "call_function"]
    assert targets == ["aten.sin.default", "aten.mul.Tensor", "aten.add.Tensor"]


class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)
        # whole numbers, and sums of 256 at most, are exact in bfloat16
        self.linear.weight.data = torch.tensor([[1.0, -2.0], [2.0, 1.0]])
        self.linear.bias.data = torch.tensor([1.0, 0.0])

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.linear(x).relu()
            with torch.autocast("cpu", enabled=False):
                z = y.float() @ y.float().T
            return y.float() @ z, F.linear(z, self.linear.weight), x @ x.T, z


def test_autocast_in_a_graph():
    x = torch.tensor([[2.0, 1.0], [1.0, -1.0]])
    with torch.no_grad():
        program = export(Mixed(), (x,))
        # torch 2.13 has these dtypes, and in a node a graph of its own for each block of autocast
        outputs = [node.meta["val"].dtype for node in program.graph.output_node().args[0]]
        assert outputs == [*[torch.bfloat16] * 3, torch.float32]
        check_values(program, x)
        file = io.BytesIO()
        save(program, file)
        file.seek(0)
        check_values(load(file), x)
        before = len(program.graph.nodes)
        graph = copy.deepcopy(program.graph_module)
        graph.graph.eliminate_dead_code()
        assert len(graph.graph.nodes) == before
        assert not torch.is_autocast_enabled("cpu")
