"""`jaxgrad.summary`. Counts are written out by hand; those marked torchinfo are what torchinfo 1.8
prints for the same model of PyTorch.
"""

import re

import jax
import numpy as np
import pytest
from helpers.html_checks import Page

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad import nn, optim, summary

EVERYTHING = (
    *("input_size", "output_size", "num_params", "params_percent", "kernel_size", "mult_adds"),
    "trainable",
)


def convolutional():
    return nn.Sequential(
        nn.Conv2d(1, 10, 5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.BatchNorm2d(10),
        nn.Flatten(),
        nn.Linear(1440, 10),
    )


def cells(report, name):
    """The cells of the row with a name."""
    here = re.compile(rf"{re.escape(name)}(?!\w)")
    (line,) = [line for line in str(report).splitlines() if here.search(line)]
    return re.split(r"  +", line.partition(name)[2].strip(" :)"))


def test_a_convolutional_network_as_torchinfo_counts_it():
    report = summary(convolutional(), (16, 1, 28, 28), col_names=EVERYTHING)
    shapes = ["[16, 1, 28, 28]", "[16, 10, 24, 24]"]
    assert cells(report, "Conv2d: 1-1") == [*shapes, "260", "1.77%", "[5, 5]", "2,396,160", "True"]
    assert cells(report, "Linear: 1-6")[2:] == ["14,410", "98.09%", "--", "230,560", "True"]
    assert cells(report, "Flatten: 1-5")[1:] == ["[16, 1440]", *["--"] * 5]
    assert (report.total_params, report.trainable_params) == (14690, 14690)
    assert report.total_mult_adds == 16 * (24 * 24 * 10 * (25 + 1) + 10 * (1440 + 1))
    assert report.total_input == 16 * 28 * 28 * 4 and report.total_param_bytes == 14690 * 4
    # of layers with parameters: the results of each sample, and their gradients; torchinfo: 0.92 MB
    results = 10 * 24 * 24 + 10 * 12 * 12 + 10
    assert report.total_output_bytes == 2 * 4 * 16 * results == 922880
    assert "Total mult-adds (M): 2.63" in str(report)


@pytest.mark.parametrize(
    ("layer", "size", "count"),
    [
        (lambda: nn.Linear(3, 4), (7, 2, 3), 7 * 2 * 4 * (3 + 1)),
        (lambda: nn.Linear(3, 4, bias=False), (5, 3), 5 * 4 * 3),
        (lambda: nn.Linear(3, 4), (3,), 4 * (3 + 1)),
        (lambda: nn.Conv2d(4, 6, 3, groups=2), (1, 4, 5, 5), 9 * 6 * (2 * 9 + 1)),
        (lambda: nn.Conv1d(4, 6, 3, stride=2, bias=False), (2, 4, 9), 2 * 4 * 6 * 4 * 3),
        (lambda: nn.LSTM(3, 4), (7, 2, 3), 7 * 2 * 4 * 4 * (3 + 4 + 1)),
        (lambda: nn.GRU(3, 4, bias=False), (7, 2, 3), 7 * 2 * 3 * 4 * (3 + 4)),
        (lambda: nn.ReLU(), (5,), 0),
    ],
)
def test_multiply_adds(layer, size, count):
    report = summary(layer(), size)
    assert report.total_mult_adds == count


def test_multiply_adds_of_attention():
    # projections of 15 rows, two products of 5 x 5 scores for 3 sequences and 2 heads of 4
    report = summary(nn.MultiheadAttention(8, 2, batch_first=True), [(3, 5, 8)] * 3)
    assert report.total_mult_adds == 15 * 8 * (24 + 8) + 15 * (24 + 8) + 2 * 3 * 2 * 5 * 5 * 4


def test_multiply_adds_of_loops_and_mapped_modules():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.step, self.row = nn.Linear(3, 3), nn.Linear(3, 2)

        def forward(self, x):
            last, _ = torch.scan(lambda state, x: (self.step(state) + x, x), x[0], x)
            return torch.func.vmap(self.row)(x), last

    report = summary(Net(), (5, 4, 3))
    # a matrix in each of 5 steps; 5 matrices
    assert report.total_mult_adds == 5 * 4 * 3 * (3 + 1) + 5 * 4 * 2 * (3 + 1)


def test_products_outside_of_modules_count_for_the_module_that_calls_them():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(3, 3)

        def forward(self, x):
            return F.linear(self.inner(x), torch.ones(2, 3)) @ torch.ones(2, 5)

    report = summary(Net(), (4, 3), col_names=["mult_adds"])
    assert cells(report, "Net") == [f"{4 * 2 * 3 + 4 * 5 * 2}"]
    assert cells(report, "Linear: 1-1") == [f"{4 * 3 * 4}"]


class Repeated(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Sequential(nn.Linear(5, 5), nn.Linear(5, 5))
        self.several = nn.ModuleList([nn.Linear(5, 5)])
        self.scale = nn.Parameter(torch.ones(3))
        self.unused = nn.Linear(2, 2)

    def forward(self, x):
        x = self.a(self.a(x))
        for layer in self.several:
            x = layer(x)
        return x


def test_repeated_and_unused_modules_and_containers():
    report = summary(Repeated(), (1, 5))
    shown = [line for line in str(report).splitlines() if "[" in line or "--" in line]
    lines = [re.split(r"  +", line) for line in shown]
    names = [line[:2] if line[0] == "│" else line[:1] for line in lines]
    assert [line[-2:] for line in lines] == [
        ["[1, 5]", "3"],
        ["[1, 5]", "--"],
        ["[1, 5]", "30"],
        ["[1, 5]", "30"],
        ["[1, 5]", "(recursive)"],
        ["[1, 5]", "(recursive)"],
        ["[1, 5]", "(recursive)"],
        ["--", "--"],
        ["[1, 5]", "30"],
        ["--", "6"],
    ]
    assert names[7:9] == [["├─ModuleList: 1-3"], ["│", "└─Linear: 2-5"]]
    # torchinfo: 99, and the products of a module count at each call
    assert report.total_params == 99 and report.total_mult_adds == 5 * 5 * 6


def test_without_input_there_are_parameters_alone():
    report = summary(Repeated())
    assert not report.has_run and report.total_params == 99 and report.input_size is None
    assert cells(report, "Linear: 1-3") == ["6"] and "mult-adds" not in str(report)
    assert summary(nn.ReLU()).total_params == 0


@pytest.mark.parametrize(("depth", "rows", "first"), [(0, 1, "96"), (1, 4, "--"), (2, 6, "--")])
def test_depth(depth, rows, first):
    model = Repeated().a.append(nn.Sequential(nn.Linear(5, 6), nn.ReLU()))
    report = summary(model, (2, 5), depth=depth)
    shown = [line for line in str(report).splitlines() if "[2, " in line]
    assert len(shown) == rows and shown[0].split()[-1] == first


def test_shared_and_frozen_parameters():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.out = nn.Embedding(10, 4), nn.Linear(4, 10)
            self.out.weight = self.embedding.weight
            self.out.bias.requires_grad_(False)
            self.again = nn.Linear(4, 10, bias=False)
            self.again.weight = self.embedding.weight

        def forward(self, x):
            return self.out(self.embedding(x)), self.again(self.embedding(x))

    report = summary(Tied(), (2, 3), dtypes=[torch.long], col_names=["num_params", "trainable"])
    assert (report.total_params, report.trainable_params) == (50, 40)
    assert cells(report, "Embedding: 1-1") == ["40", "True"]
    assert cells(report, "Linear: 1-2") == ["(10)", "False"]
    assert cells(report, "Linear: 1-4") == ["(shared)", "--"]
    assert cells(report, "Tied") == ["--", "Partial"]


# ---- inputs


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 4), nn.Linear(5, 4)

    def forward(self, x, y, scale=1.0):
        return {"sum": self.a(x) + self.b(y) * scale}


X, Y = np.ones((2, 3), "float32"), np.ones((2, 5), "float32")


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        (([(2, 3), (2, 5)],), {}),
        (((torch.Size((2, 3)), [2, 5]),), {}),
        (({"x": (2, 3), "y": torch.tensor(Y)},), {}),
        (((X, Y),), {"scale": 2.0}),
        (([torch.tensor(X), jax.ShapeDtypeStruct((2, 5), "float32")],), {}),
        (([jax.numpy.ones((2, 3)), (2, 5)],), {}),
        ((), {"input_data": [torch.tensor(X), torch.tensor(Y)]}),
        ((), {"input_size": [(2, 3), (2, 5)], "device": "cpu"}),
        ((torch.tensor(X),), {"y": torch.tensor(Y)}),
    ],
)
def test_inputs(args, kwargs):
    report = summary(Two(), *args, **kwargs)
    assert report.total_mult_adds == 2 * 4 * (3 + 1 + 5 + 1) and report.total_input == 64
    assert cells(report, "Two") == ["[2, 4]", "--"]


def test_nested_inputs_and_results_that_are_no_tensors():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(3, 4)

        def forward(self, batch, flag):
            return "text", None, [self.a(batch["x"])] if flag else None

    report = summary(Net(), [{"x": torch.ones(2, 3)}, True])
    assert report.total_mult_adds == 2 * 4 * 4 and cells(report, "Net")[0] == "[2, 4]"


def test_a_model_without_arguments():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(3, 4)

        def forward(self):
            return self.a(torch.ones(1, 3))

    assert summary(Net(), []).total_mult_adds == 4 * 4


@pytest.mark.parametrize(
    ("make", "nbytes"),
    [
        (lambda: nn.Linear(3, 4).double(), 8),
        (lambda: nn.Linear(3, 4).bfloat16(), 2),
        (lambda: nn.Linear(3, 4, dtype=torch.complex64), 8),
    ],
)
def test_sizes_have_the_dtype_of_the_model(make, nbytes):
    kwargs = {"dtypes": [torch.complex64]} if nbytes == 8 and make().weight.is_complex() else {}
    report = summary(make(), (2, 3), **kwargs)
    assert (report.total_input, report.total_param_bytes) == (6 * nbytes, 16 * nbytes)


# ---- the model stays as it is


class Stateful(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout(0.5))
        self.mask, self.calls = torch.tril(torch.ones(3, 3)), 0

    def forward(self, x):
        self.calls, self.last = self.calls + 1, x
        return self.layers(x) @ self.mask + torch.rand(3)


@pytest.mark.parametrize("columns", [None, ["time"]])
@pytest.mark.parametrize("mode", ["eval", "train", None])
@pytest.mark.parametrize("size_or_data", [(4, 3), torch.ones(4, 3)], ids=["size", "data"])
def test_nothing_changes(size_or_data, mode, columns):
    model = Stateful()
    model.layers[2].eval()
    model(torch.ones(4, 3)).sum().backward()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    gradients = [param.grad for param in model.parameters()]
    versions = [tensor._version for tensor in (*model.parameters(), *model.buffers())]
    modes, last = [layer.training for layer in model.modules()], model.last
    random_state, eager = torch.get_rng_state(), np.random.get_state()[1].tolist()
    summary(model, size_or_data, mode=mode, col_names=columns)
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name])
    assert all(a is param.grad for a, param in zip(gradients, model.parameters(), strict=True))
    assert versions == [tensor._version for tensor in (*model.parameters(), *model.buffers())]
    assert modes == [layer.training for layer in model.modules()] == [True, True, True, True, False]
    assert (model.calls, model.last) == (1, last)
    assert torch.equal(torch.get_rng_state(), random_state)
    assert np.random.get_state()[1].tolist() == eager
    assert "_compiled_call_impl" not in vars(model)


@pytest.mark.slow
def test_programs_stay():
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    optimizer = optim.SGD(model.parameters(), lr=0.1)

    @torch.jit
    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().sum()
        loss.backward()
        optimizer.step()
        return loss

    step(torch.ones(4, 3))
    summary(model, (4, 3), col_names=["time", "output_size"])
    step(torch.ones(4, 3))
    assert step.count == 1


def test_compiled_modules():
    model = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    compiled = torch.compile(model)
    compiled(torch.ones(4, 3))
    report = summary(compiled, torch.ones(4, 3), col_names=["output_size", "time"])
    assert cells(report, "Linear: 2-1")[0] == "[4, 2]" and report.total_mult_adds == 4 * 2 * 4
    compiled(torch.ones(4, 3))
    assert compiled.count == 1
    model.compile()
    assert cells(summary(model, (4, 3)), "Linear: 1-1") == ["[4, 2]", "8"]
    assert "_compiled_call_impl" in vars(model)


def test_hooks_run_and_wrappers_are_rows():
    layer = nn.Linear(3, 4)
    layer.register_forward_hook(lambda module, args, output: output.sum(1))
    layer.register_full_backward_hook(lambda *_: None)
    report = summary(nn.DataParallel(layer), (2, 3))
    assert cells(report, "DataParallel") == ["[2]", "--"]
    assert cells(report, "Linear: 1-1") == ["[2]", "16"]  # what the layer returns


# ---- where a forward pass on shapes has its limits


class Branch(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.a = nn.BatchNorm1d(3), nn.Linear(3, 3)

    def forward(self, x):
        x = self.norm(x)
        return x if x.sum() > 100 else self.a(x)


def test_control_flow_that_depends_on_numbers():
    model = Branch()
    with pytest.raises(RuntimeError, match=r"Branch raised .*bool(.|\n)*pass tensors with data"):
        summary(model, (2, 3))
    report = summary(model, torch.ones(2, 3), mode="train", col_names=["mult_adds", "output_size"])
    assert cells(report, "Linear: 1-2") == [f"{2 * 3 * 4}", "[2, 3]"]
    assert model.norm.num_batches_tracked == 0 and model.training


def test_errors_of_the_forward_pass_name_the_layer():
    model = nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.Linear(5, 4)))
    for size_or_data in ((2, 3), torch.ones(2, 3)):
        with pytest.raises(RuntimeError, match=r"summary: Linear 1\.0 raised RuntimeError: mat1"):
            summary(model, size_or_data)
    with pytest.raises(RuntimeError, match=r"Embedding 0(.|\n)*dtypes="):
        summary(nn.Sequential(nn.Embedding(3, 2)), (2, 3))
    assert model.training and "_compiled_call_impl" not in vars(model[1][0])


def test_gradients_inside_of_a_model():
    class Slope(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(1, 4), nn.Tanh(), nn.Linear(4, 1))

        def forward(self, x):
            x.requires_grad_()
            return torch.autograd.grad(self.net(x).sum(), x, create_graph=True)[0]

    for size_or_data in ((2, 1), torch.ones(2, 1)):
        assert cells(summary(Slope(), size_or_data), "Slope") == ["[2, 1]", "--"]


def test_lazy_models_stay_lazy():
    model = nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d(), nn.Dropout(), nn.LazyLinear(2))
    assert summary(model).total_params == 0
    report = summary(model, (5, 3), mode=None)
    assert report.total_params == 16 + 8 + 10 and report.total_mult_adds == 5 * (4 * 4 + 2 * 5)
    assert summary(model, (5, 3), col_names=["time"]).layers[0].time > 0
    assert model[0].has_uninitialized_params()


def test_models_without_data():
    with torch.device("meta"):
        model = nn.Sequential(nn.Linear(1_000_000, 1_000_000), nn.Linear(1_000_000, 10))
    for size_or_data in ((2, 1_000_000), torch.empty(2, 1_000_000, device="meta")):
        report = summary(model, size_or_data)
        assert report.total_params == 10**12 + 10**6 + 10**7 + 10
        assert "Total mult-adds (T): 2.00" in str(report)
    with pytest.raises(ValueError, match="meta has no data"):
        summary(model, (2, 1_000_000), col_names=["time"])


# ---- what is shown


@pytest.mark.slow
def test_times():
    report = summary(convolutional(), (4, 1, 28, 28), col_names=["time"])
    whole, *parts = [layer.time for layer in report.layers]
    assert all(part > 0 for part in parts) and whole > max(parts)
    assert summary(convolutional(), (4, 1, 28, 28)).layers[0].time is None


def test_settings_of_rows(capsys):
    model = nn.Sequential(nn.Linear(3, 4))
    summary(model, (2, 3))
    assert capsys.readouterr().out == ""
    report = summary(
        model,
        (2, 3),
        verbose=2,
        row_settings=["var_names", "ascii_only"],
        col_width=20,
        col_names=["kernel_size", "num_params"],
    )
    assert capsys.readouterr().out == f"{report}\n" and str(report).isascii()
    assert cells(report, "+ Linear (0)") == ["--", "16"]
    assert cells(report, "weight") == ["[4, 3]"] and cells(report, "bias") == ["[4]"]
    assert "Layer (type (var_name))" in str(report)


def test_as_html():
    class Named(nn.Linear):
        def _get_name(self):
            return "<b>"

    page = Page(summary(nn.Sequential(Named(3, 4)), (2, 3))._repr_html_())
    assert page.column("Output Shape") == ["[2, 4]"] * 2 and page.column("Param #") == ["--", "16"]
    assert page.column("Layer (type:depth-idx)")[1].split() == ["<b>:", "1-1"]
    assert "Total params: 16" in page.text


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((3,), {}, TypeError, "takes a Module, but got int"),
        ((nn.ReLU(), (2,)), {"col_names": ["x"]}, ValueError, "'x' is no column, use 'input_size'"),
        ((nn.ReLU(),), {"col_names": ["time"]}, ValueError, "'time' needs an input"),
        ((nn.ReLU(), (2,)), {"row_settings": ["names"]}, ValueError, "'names' is no row setting"),
        ((nn.ReLU(), (2,)), {"mode": "test"}, ValueError, "mode is 'test'"),
        ((nn.ReLU(), (2,)), {"verbose": 3}, ValueError, "verbose is 3"),
        ((nn.ReLU(), (2,)), {"input_size": (2,)}, ValueError, "one of input"),
    ],
)
def test_wrong_arguments(arguments, options, error, message):
    with pytest.raises(error, match=message):
        summary(*arguments, **options)


def test_in_a_trace():
    with pytest.raises(RuntimeError, match="call it outside"):
        torch.jit(lambda x: summary(nn.ReLU(), x).total_params * x)(torch.ones(2))


def test_a_summary_keeps_no_model_alive():
    report = summary(convolutional(), (1, 1, 28, 28))
    assert all(layer.module is None for layer in report.layers)
