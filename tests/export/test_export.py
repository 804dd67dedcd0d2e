"""Exported programs: calls, state, signatures, derivatives."""

import contextlib
import io

import jax
import numpy as np
import pytest

import jaxgrad as torch
from jaxgrad import nn
from jaxgrad.export import Dim, export, load, save
from jaxgrad.export.graph_signature import InputKind, OutputKind


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(3, 2), nn.BatchNorm1d(2)
        self.scale = torch.ones(2)

    def forward(self, x, *, factor):
        return self.norm(self.linear(x)) * factor + self.scale


def exported(model=None, **options):
    torch.manual_seed(0)
    model = model or Net()
    x, factor = torch.randn(4, 3), torch.tensor(2.0)
    return model, x, factor, export(model, (x,), {"factor": factor}, **options)


def test_the_signature_is_that_of_pytorch():
    # torch 2.13: the names, kinds and order of the inputs; after run_decompositions a changed
    # buffer is an output
    _, _, _, program = exported()
    signature = program.graph_signature
    assert [(spec.kind, spec.arg.name, spec.target) for spec in signature.input_specs] == [
        (InputKind.PARAMETER, "p_linear_weight", "linear.weight"),
        (InputKind.PARAMETER, "p_linear_bias", "linear.bias"),
        (InputKind.PARAMETER, "p_norm_weight", "norm.weight"),
        (InputKind.PARAMETER, "p_norm_bias", "norm.bias"),
        (InputKind.BUFFER, "b_norm_running_mean", "norm.running_mean"),
        (InputKind.BUFFER, "b_norm_running_var", "norm.running_var"),
        (InputKind.BUFFER, "b_norm_num_batches_tracked", "norm.num_batches_tracked"),
        (InputKind.CONSTANT_TENSOR, "c_scale", "scale"),
        (InputKind.USER_INPUT, "x", None),
        (InputKind.USER_INPUT, "factor", None),
    ]
    assert signature.buffers_to_mutate == {} and signature.user_outputs == ("add",)
    decomposed = program.run_decompositions().graph_signature
    assert decomposed.buffers_to_mutate == {
        "getitem_1": "norm.running_mean",
        "getitem_2": "norm.running_var",
        "add": "norm.num_batches_tracked",
    }
    kinds = [spec.kind for spec in decomposed.output_specs]
    assert kinds == [OutputKind.BUFFER_MUTATION] * 3 + [OutputKind.USER_OUTPUT]
    assert signature.user_inputs == ("x", "factor") and [*program.constants] == ["scale"]
    assert [*program.state_dict] == [*Net().state_dict()]
    assert program.platforms == ("cpu", "cuda", "tpu")
    assert str(program.graph_signature) in str(program)


def test_a_module_of_a_program_writes_to_the_buffers():
    model, x, factor, program = exported()
    module = program.module()
    before = model.norm.running_mean.clone()
    result = module(x, factor=factor)
    with torch.no_grad():
        model.norm.running_mean.copy_(before)
        model.norm.num_batches_tracked.zero_()
    fresh = Net()
    fresh.load_state_dict(model.state_dict())
    fresh.norm.running_var.fill_(1)
    torch.testing.assert_close(result, fresh(x, factor=factor))
    torch.testing.assert_close(module.norm.running_var, fresh.norm.running_var)
    assert not module.norm.running_var.requires_grad
    with pytest.raises(RuntimeError, match="Unable to call ExportedProgram directly"):
        program(x, factor=factor)
    for call in (module.train, module.eval):
        with pytest.raises(NotImplementedError, match="is not supported yet"):
            call()


@pytest.mark.slow
def test_gradients_are_those_of_the_tape():
    # JAX's derivative would follow the values through no_grad: 3 x^2, as jax.grad says it
    class Cube(nn.Module):
        def forward(self, x):
            with torch.no_grad():
                square = x * x
            return (square * x).sum()

    x = torch.tensor([2.0, 3.0], requires_grad=True)
    program = export(Cube(), (x,))
    program.module()(x).backward()
    assert x.grad.tolist() == [4.0, 9.0]
    slope = jax.grad(lambda array: program.exported.call({}, (array,))[0][0])
    assert slope(np.array([2.0, 3.0], np.float32)).tolist() == [4.0, 9.0]


@pytest.mark.slow
def test_the_derivative_is_that_of_the_mode_of_the_export():
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).eval()
    x = torch.randn(3, 2)
    program = export(model, (x,))
    model(x).square().sum().backward()
    expected = model[0].weight.grad
    model.train()
    model.zero_grad()
    program.module()(x).square().sum().backward()
    torch.testing.assert_close(model[0].weight.grad, expected)


def test_a_function_and_arguments_in_containers():
    def step(weight, batch, rate=0.5):
        loss = ((weight * batch["x"] - batch["y"]) ** 2).mean()
        (gradient,) = torch.autograd.grad(loss, weight)
        return {"weight": weight - rate * gradient, "loss": loss, "rate": rate}

    weight = torch.tensor(1.0, requires_grad=True)
    batch = {"x": torch.tensor([1.0, 2.0]), "y": torch.tensor([2.0, 4.0])}
    module = export(step, (weight, batch)).module()
    result = module(weight, batch)
    # the loss ((w - 2)^2 + (2 w - 4)^2) / 2 is 2.5 at 1, its slope -5
    assert (result["weight"].item(), result["loss"].item(), result["rate"]) == (3.5, 2.5, 0.5)
    with pytest.raises(ValueError, match="but actually got inputs with tree spec"):
        module(weight, {"x": batch["x"]})
    with pytest.raises(AssertionError, match=r"Guard failed: batch_x\.dtype == torch.float32"):
        module(weight, {"x": batch["x"].double(), "y": batch["y"]})


def test_an_argument_that_is_written_to():
    class Add(nn.Module):
        def forward(self, x):
            x.add_(1)
            return x * 2

    x = torch.tensor([1.0])
    module = export(Add(), (torch.tensor([0.0]),)).module()
    assert module(x).item() == 4 and x.item() == 2


@pytest.mark.parametrize(
    ("forward", "message"),
    [
        (lambda self, x: x if x.sum() > 0 else -x, "bool\\(\\) needs the numbers of a tensor"),
        (lambda self, x: object(), "one of the outputs with type"),
        (lambda self, x: x.uniform_(generator=torch.Generator()), "of a generator of your own"),
    ],
)
def test_what_no_program_does(forward, message):
    model = type("Module", (nn.Module,), {"forward": forward})()
    before = dict(vars(model))
    with pytest.raises(RuntimeError, match=message):
        export(model, (torch.ones(2),))
    assert vars(model) == before
    with pytest.raises(ValueError, match="Unsupported input type"):
        export(nn.Identity(), (object(),))
    with pytest.raises(ValueError, match=r"platforms: 'metal' is none of cpu"):
        export(model, (torch.ones(2),), platforms=("cpu", "metal"))
    with pytest.raises(TypeError, match=r"write \('cpu',\)"):
        export(model, (torch.ones(2),), platforms="cpu")
    with pytest.raises(RuntimeError, match="Static shape constraint of 5 does not match"):
        export(model, (torch.ones(2),), dynamic_shapes=({0: 5},))


class Attributes(nn.Module):
    """Code that leaves tensors in attributes."""

    def __init__(self):
        super().__init__()
        self.list, self.none, self.constant = [], None, torch.tensor([10.0])

    def forward(self, x, what):
        if what == "list":
            self.list.append(x * 2)
            return self.list[-1] + 1
        if what == "read":
            x = x + self.constant
        setattr(self, "none" if what == "none" else "constant", x * 2)
        return (self.none if what == "none" else self.constant) + 1


@pytest.mark.parametrize("what", ["list", "none", "constant"])
def test_tensors_that_code_leaves_in_attributes(what):
    # torch 2.13: [7.0] for each, on each call
    model = Attributes()
    before = dict(vars(model))
    warns = contextlib.nullcontext()
    if what != "constant":
        warns = pytest.warns(UserWarning, match="register a buffer by `register_buffer`")
    with warns:
        module = export(model, (torch.tensor([1.0]), what)).module()
    assert vars(model) == before and model.list == []
    assert [module(torch.tensor([3.0]), what).tolist() for _ in range(2)] == [[7.0]] * 2


def test_a_constant_that_code_reads_and_replaces():
    # torch 2.13 drops the new one
    with pytest.raises(RuntimeError, match=r"self\.constant of Attributes was assigned during"):
        export(Attributes(), (torch.tensor([1.0]), "read"))


@pytest.mark.filterwarnings("ignore:`torch.nn.utils.weight_norm` is deprecated")
def test_a_weight_that_a_hook_computes():
    model = nn.utils.weight_norm(nn.Linear(2, 2, bias=False))
    with torch.no_grad():
        model.weight_g.copy_(torch.tensor([[5.0], [10.0]]))
        model.weight_v.copy_(torch.tensor([[3.0, 4.0], [0.0, 2.0]]))
    module = export(model, (torch.ones(1, 2),)).module()
    assert module(torch.tensor([[1.0, 2.0]])).tolist() == [[11.0, 20.0]]


def test_tied_parameters_stay_tied():
    model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    model[1].weight = model[0].weight
    program = export(model, (torch.ones(1, 2),))
    assert program.graph_signature.parameters == ("0.weight",)
    assert [*program.state_dict] == ["0.weight", "1.weight"]
    module = program.module()
    assert getattr(module, "0").weight is getattr(module, "1").weight


def test_platforms():
    _, _, _, program = exported(platforms=("tpu",))
    assert program.platforms == ("tpu",)
    with pytest.raises(ValueError, match="tpu"):
        program.module()(torch.ones(4, 3), factor=torch.tensor(1.0))
    assert Dim.STATIC is not Dim.AUTO


@pytest.mark.parametrize("args", [torch.ones(4, 3), [torch.ones(4, 3)]], ids=["tensor", "list"])
def test_arguments_are_a_tuple(args):
    with pytest.raises(RuntimeError, match="Expecting `args` to be a tuple of example positional"):
        torch.export.export(nn.Linear(3, 2), args)


class Remembering(nn.Module):
    """Keeps a mean of its inputs, and its last result."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.register_buffer("mean", torch.zeros(2))
        self.register_buffer("last", torch.zeros(2))

    def forward(self, x):
        self.mean.lerp_(x, 0.5)
        y = x * self.weight - self.mean
        z = self.last * y
        self.last.copy_(y)
        return y, z


@pytest.mark.parametrize("read", [False, True])
def test_buffers_that_depend_on_parameters(read):
    # each step's gradient of y.sum() for weight is x, of mean none, as PyTorch's eager module has
    program = export(Remembering(), (torch.ones(2),), with_vjp=True)
    if read:
        file = io.BytesIO()
        save(program, file)
        program = load(io.BytesIO(file.getvalue()))
    module = program.module()
    for step in range(1, 4):
        module.zero_grad()
        y, z = module(torch.tensor([1.0, 3.0]))
        y.sum().backward()
        assert module.weight.grad.tolist() == [1.0, 3.0]
        assert not module.mean.requires_grad and module.last.requires_grad
        assert y.tolist() == [0.5**step, 3 * 0.5**step]
        module.last.detach_()
    # a gradient through the buffer, of the product of two results in a row
    module.zero_grad()
    module(torch.tensor([1.0, 3.0]))
    mean = module.mean.clone()
    _, z = module(torch.tensor([1.0, 3.0]))
    z.sum().backward()
    # d/dw sum((x w - m) (x w - m')) = x (2 x w - m - m'), of the means m and m'
    x = torch.tensor([1.0, 3.0])
    slope = x * (2 * x - mean - module.mean)
    assert module.weight.grad.tolist() == slope.tolist()
