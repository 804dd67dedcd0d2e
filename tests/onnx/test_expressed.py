"""What jaxgrad rewrites so that the converter takes it."""

import numpy as np
import onnx
import pytest

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad import nn

BATCH = {0: "batch"}
SIZES = {0: "batch", 2: "height", 3: "width"}


def module(make, *args):
    torch.manual_seed(0)
    return make(*args).eval()


def check(model, args, shapes, others):
    """The numbers of a converted model for its example and other arguments."""
    program = torch.onnx.export(model, args, dynamic_shapes=shapes)
    onnx.checker.check_model(program.model_proto, full_check=True)
    for arguments in (args, *others):
        with torch.no_grad():
            results = model(*arguments)
        results = results if isinstance(results, tuple) else (results,)
        for output, result in zip(program(*arguments), results, strict=True):
            assert output.dtype == result.dtype
            wanted = result.float().numpy()
            tolerance = 2e-3 if result.dtype == torch.float16 else 2e-5
            np.testing.assert_allclose(output.float(), wanted, rtol=tolerance, atol=tolerance)


def grown(args, rows=(1, 0, 1)):
    return tuple([torch.stack([arg[n] for n in rows]) for arg in args])


INDEX = torch.tensor([[4, 0], [1, -3 % 5]])
FUNCTIONS = {
    "gather": (lambda x, i: x.gather(1, i), torch.randn(2, 5), INDEX),
    "selu": (F.selu, torch.randn(2, 5)),
    "remainder of ints": (
        lambda x, y: (torch.remainder(x, y), torch.fmod(x, y), x // y),
        torch.tensor([[7, -7], [-8, 2**40]]),
        torch.tensor([[3, 3], [-3, 7]]),
    ),
    "shifts": (lambda x: (x << 2, x >> 1), torch.tensor([[5, -5], [2**40, -(2**40)]])),
    "slices that are broadcast": (
        lambda x: x * torch.cat([INDEX.flatten()[1:] - INDEX.flatten()[:-1], torch.ones(1)]),
        torch.randn(2, 4),
    ),
    "signs": (lambda x: torch.signbit(x), torch.tensor([[0.0, -0.0], [-1.0, 2.0]])),
    "running": (
        lambda x: (x.cumprod(1), x.cummax(1)[0], x.cummin(1)[1], x.logcumsumexp(1)),
        torch.randn(2, 5),
    ),
    "padding": (
        lambda x: (F.pad(x, (-1, 2)), F.fold(x[..., None].expand(-1, 9, 4), (6, 6), 3, stride=3)),
        torch.randn(2, 36 // 4),
    ),
    "equal results": (lambda x: (x, x + 1, x + 1, torch.ones(2)), torch.randn(2, 3)),
    "linspace": (lambda x: x * torch.linspace(0, 1, x.shape[1]), torch.randn(2, 5)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name):
    function, *args = FUNCTIONS[name]
    check(function, tuple(args), tuple([BATCH for _ in args]), [grown(args)])


LAYERS = {
    "conv3d": (lambda: nn.Conv3d(4, 6, 3, 2, 1, groups=2), (2, 4, 5, 6, 5)),
    "dilated": (lambda: nn.Conv3d(2, 3, (2, 1, 3), 1, "same", (2, 1, 1)), (2, 2, 5, 6, 5)),
    "transposed": (lambda: nn.ConvTranspose3d(4, 6, 3, 2, 1, 1, groups=2), (2, 4, 3, 4, 3)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_convolution_of_volumes(name):
    make, shape = LAYERS[name]
    x = torch.randn(shape)
    check(module(make), (x,), (BATCH,), [grown((x,))])


def test_half_precision():
    layers = nn.Linear(4, 16), nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
    model, x = module(nn.Sequential, *layers).half(), torch.randn(2, 5, 4).half()
    check(model, (x,), (BATCH,), [grown((x,))])


def test_height_and_width_vary():
    layers = nn.Conv2d(1, 2, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1)
    sizes = [(1, 1, 10, 12), (3, 1, 7, 9)]
    check(
        module(nn.Sequential, *layers),
        (torch.randn(2, 1, 8, 8),),
        (SIZES,),
        [(torch.randn(size),) for size in sizes],
    )


def test_time_varies():
    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(4, 6, batch_first=True, bidirectional=True)

        def forward(self, x):
            return self.lstm(x)[0]

    shapes, others = ({0: "batch", 1: "time"},), [(torch.randn(3, 7, 4),), (torch.randn(1, 2, 4),)]
    check(module(Tagger), (torch.randn(2, 5, 4),), shapes, others)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags(mode):
    bags = (torch.randint(0, 10, (2, 5)),)
    check(module(lambda: nn.EmbeddingBag(10, 4, mode=mode)), bags, (BATCH,), [grown(bags)])


def test_branches_of_cond():
    def function(x):
        return torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x + 1, (x,))

    check(function, (torch.ones(2, 3),), None, [(-torch.ones(2, 3),)])


def test_trained_for_quantization():
    from jaxgrad.ao import quantization

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    model.qconfig = quantization.get_default_qat_qconfig("fbgemm")
    model = quantization.prepare_qat(model.train())
    x = torch.randn(5, 4)
    model(x)
    with (
        pytest.warns(torch.onnx.errors.OnnxExporterWarning),
        pytest.raises(torch.onnx.OnnxExporterError, match="would be written to"),
    ):
        torch.onnx.export(model, (x,))
    model.eval().apply(quantization.disable_observer)
    check(model, (x,), ({0: "batch"},), [grown((x,))])


def test_containers_keep_their_order():
    def function(pair, *, named):
        return {"sum": pair[0] + named["b"], "difference": [pair[1] - named["a"]]}

    one = torch.ones(2)
    kwargs = {"named": {"b": 3 * one, "a": 4 * one}}
    program = torch.onnx.export(function, ((one, 2 * one),), kwargs=kwargs)
    assert program.input_names == ["pair_0", "pair_1", "named_b", "named_a"]
    results = program(one, 2 * one, 3 * one, 4 * one)
    assert sorted(result.tolist() for result in results) == [[-2.0, -2.0], [4.0, 4.0]]
