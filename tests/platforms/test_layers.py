"""Every layer, with its gradient, and every option of optimizers are lowered for GPUs and TPUs, in
each dtype of floats. `make test` takes some of each.
"""

import inspect

import pytest
from helpers import lowering

import jaxgrad as torch
from jaxgrad import nn, optim

# those that hold others, and the bases of others
WITHOUT_VALUE = {
    *("Container", "Module", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList"),
    *("RNNBase", "RNNCellBase", "Sequential"),
}

ROWS, SERIES, IMAGES = (4, 6), (2, 4, 6), (2, 4, 6, 6)
LABELS, SIGNS = torch.tensor([1, 0, 5, 2]), torch.tensor([1.0, -1.0, 1.0, 1.0])
ORDER = torch.tensor([[3, 0, -1, 1, 2, 4]] * 4)
TOKENS = torch.tensor([[1, 0, 3], [2, 2, 4]])


def spatial(n):
    """The shape of a batch with four channels and n dimensions of space."""
    return (2, 4, *(6,) * n)


def unpooled(n):
    """A layer that undoes the pooling before it."""
    pool = getattr(nn, f"MaxPool{n}d")(2, return_indices=True)
    return lambda unpool, x: unpool(*pool(x))


# by name: arguments of the class, and shapes of its inputs or a function of the layer and of one
# input; others are made without arguments and take ROWS
CASES = {
    "AdaptiveLogSoftmaxWithLoss": ((6, 8, [2, 4]), lambda layer, x: layer(x, LABELS).loss, ROWS),
    "BCELoss": ((), lambda layer, x: layer(x.sigmoid(), torch.ones_like(x)), ROWS),
    "BCEWithLogitsLoss": ((), ROWS, ROWS),
    "Bilinear": ((6, 6, 3), ROWS, ROWS),
    "CTCLoss": (
        (),
        lambda layer, x: layer(
            x[:, None].float().log_softmax(-1), TOKENS[:1, :2], torch.tensor([4]), torch.tensor([2])
        ),
        ROWS,
    ),
    "ChannelShuffle": ((2,), IMAGES),
    "CosineEmbeddingLoss": ((), lambda layer, x: layer(x, x.sin(), SIGNS), ROWS),
    "CosineSimilarity": ((), ROWS, ROWS),
    "CrossEntropyLoss": ((), lambda layer, x: layer(x, LABELS), ROWS),
    "CrossMapLRN2d": ((2,), IMAGES),
    "DataParallel": ((nn.Linear(6, 2),), ROWS),
    "Embedding": ((5, 6), lambda layer, x: layer(TOKENS) * x[0], ROWS),
    "EmbeddingBag": ((5, 6), lambda layer, x: layer(TOKENS) * x[0], ROWS),
    "FeatureAlphaDropout": ((), SERIES),
    "Fold": (((4, 4), 2), (1, 8, 9)),
    "FractionalMaxPool2d": ((2, 3), IMAGES),
    "FractionalMaxPool3d": ((2, 3), spatial(3)),
    "GRU": ((6, 3), SERIES),
    "GRUCell": ((6, 3), ROWS),
    "GaussianNLLLoss": ((), lambda layer, x: layer(x, x.sin(), x.exp()), ROWS),
    "GroupNorm": ((2, 4), SERIES),
    "HingeEmbeddingLoss": ((), lambda layer, x: layer(x, SIGNS[:, None]), ROWS),
    "HuberLoss": ((), ROWS, ROWS),
    "KLDivLoss": ((), lambda layer, x: layer(x.log_softmax(-1), x.softmax(-1)), ROWS),
    "L1Loss": ((), ROWS, ROWS),
    "LSTM": ((6, 3), SERIES),
    "LSTMCell": ((6, 3), ROWS),
    "LayerNorm": ((6,), ROWS),
    "LazyLinear": ((3,), ROWS),
    "Linear": ((6, 3), ROWS),
    "LinearCrossEntropyLoss": ((6, 8), lambda layer, x: layer(x, LABELS), ROWS),
    "LocalResponseNorm": ((2,), SERIES),
    "MSELoss": ((), ROWS, ROWS),
    "MarginRankingLoss": ((), lambda layer, x: layer(x, x.sin(), SIGNS[:, None]), ROWS),
    "MultiLabelMarginLoss": ((), lambda layer, x: layer(x, ORDER), ROWS),
    "MultiLabelSoftMarginLoss": ((), ROWS, ROWS),
    "MultiMarginLoss": ((), lambda layer, x: layer(x, LABELS), ROWS),
    "MultiheadAttention": ((6, 2), SERIES, SERIES, SERIES),
    "NLLLoss": ((), lambda layer, x: layer(x.log_softmax(-1), LABELS), ROWS),
    "NLLLoss2d": ((), lambda layer, x: layer(x[..., None, None], LABELS[:, None, None]), ROWS),
    "PairwiseDistance": ((), ROWS, ROWS),
    "PixelShuffle": ((2,), IMAGES),
    "PixelUnshuffle": ((2,), IMAGES),
    "PoissonNLLLoss": ((), ROWS, ROWS),
    "RMSNorm": ((6,), ROWS),
    "RNN": ((6, 3), SERIES),
    "RNNCell": ((6, 3), ROWS),
    "SmoothL1Loss": ((), ROWS, ROWS),
    "SoftMarginLoss": ((), lambda layer, x: layer(x, SIGNS[:, None].expand_as(x)), ROWS),
    "Softmax2d": ((), IMAGES),
    "SyncBatchNorm": ((4,), SERIES),
    "Threshold": ((0.1, 2.0), ROWS),
    "Transformer": ((6, 2, 1, 1, 8), SERIES, SERIES),
    "TransformerDecoder": ((nn.TransformerDecoderLayer(6, 2, 8), 2), SERIES, SERIES),
    "TransformerDecoderLayer": ((6, 2, 8), SERIES, SERIES),
    "TransformerEncoder": ((nn.TransformerEncoderLayer(6, 2, 8), 2), SERIES),
    "TransformerEncoderLayer": ((6, 2, 8), SERIES),
    "TripletMarginLoss": ((), ROWS, ROWS, ROWS),
    "TripletMarginWithDistanceLoss": ((), ROWS, ROWS, ROWS),
    "Unflatten": ((1, (2, 3)), ROWS),
    "Unfold": ((2,), IMAGES),
    "Upsample": ((None, 2), IMAGES),
    "UpsamplingBilinear2d": ((None, 2), IMAGES),
    "UpsamplingNearest2d": ((None, 2), IMAGES),
    "ZeroPad1d": ((1,), SERIES),
}
for _n in (1, 2, 3):
    _same = {"Dropout": (), "BatchNorm": (4,), "InstanceNorm": (4,), "LazyBatchNorm": ()}
    _same |= {"LazyInstanceNorm": (), "AvgPool": (2,), "MaxPool": (2,), "LPPool": (2, 2)}
    _same |= {"AdaptiveAvgPool": (2,), "AdaptiveMaxPool": (2,), "Conv": (4, 4, 2)}
    _same |= {"ConvTranspose": (4, 4, 2), "LazyConv": (4, 2), "LazyConvTranspose": (4, 2)}
    _same |= {"ConstantPad": (1, 0.5)}
    _same |= dict.fromkeys(("CircularPad", "ReflectionPad", "ReplicationPad", "ZeroPad"), (1,))
    CASES |= {f"{name}{_n}d": (arguments, spatial(_n)) for name, arguments in _same.items()}
    CASES[f"MaxUnpool{_n}d"] = ((2,), unpooled(_n), spatial(_n))


def classes(module, base):
    """The names of the subclasses of a class in a module."""
    kinds = ((name, getattr(module, name)) for name in dir(module))
    return [name for name, kind in kinds if inspect.isclass(kind) and issubclass(kind, base)]


def some(names, step):
    return [
        pytest.param(name, marks=[pytest.mark.slow] if number % step else [])
        for number, name in enumerate(names)
    ]


def lower(step, *arguments):
    """The program of a function, lowered for all platforms."""
    text = torch.jit(step).trace(*arguments).lower(lowering_platforms=lowering.PLATFORMS).as_text()
    assert "callback" not in text and "func.func public @main" in text


LAYERS = [name for name in classes(nn, nn.Module) if name not in WITHOUT_VALUE]


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("name", some(LAYERS, 12))
def test_layers(name):
    """In float32, bfloat16 and float16: the gradient of all inputs and parameters."""
    arguments, *shapes = CASES.get(name, ((), ROWS))
    call = shapes.pop(0) if callable(shapes[0]) else lambda layer, *inputs: layer(*inputs)
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        layer = getattr(nn, name)(*arguments)
        inputs = [torch.randn(*shape) for shape in shapes]
        if name.startswith("Lazy"):
            call(layer, *inputs)  # which makes its parameters
        layer.to(dtype)

        def step(*inputs, layer=layer):
            inputs = [x.requires_grad_() for x in inputs]
            result = call(layer, *inputs)
            first = result[0] if isinstance(result, tuple) else result
            leaves = [*inputs, *layer.parameters()]
            return torch.autograd.grad(first.float().square().sum(), leaves, allow_unused=True)

        lower(step, *[x.to(dtype) for x in inputs])


def switches():
    """Each optimizer with each way to run that it has."""
    for name in classes(optim, optim.Optimizer):
        parameters = inspect.signature(getattr(optim, name)).parameters
        for option in ("foreach", "fused", "capturable"):
            if option in parameters and name != "Optimizer":
                yield name, option


@pytest.mark.slow
@pytest.mark.parametrize(("name", "option"), [*switches()])
def test_options_of_optimizers(name, option):
    model = nn.Sequential(nn.Linear(4, 3, bias=False), nn.Linear(3, 3, bias=False))
    optimizer = getattr(optim, name)(model.parameters(), lr=0.01, **{option: True})

    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    lower(step, torch.ones(2, 4))


DIFFERENTIABLE = (
    *("ASGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop"),
    *("Rprop", "SGD"),
)


@pytest.mark.slow
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_derivatives_of_steps(name):
    """A step writes into parameters that are no leaves, and gradients go through it."""

    def step(x, grad):
        parameter = x.requires_grad_().clone()
        parameter.grad = grad
        optimizer = getattr(optim, name)([parameter], lr=0.1, differentiable=True)
        optimizer.step()
        return torch.autograd.grad(parameter.square().sum(), x)

    lower(step, torch.ones(3), torch.tensor([0.5, -1.0, 2.0]))


def composite(location):
    """Distributions that are made of others."""
    d = torch.distributions
    normal = d.Normal(location, torch.ones(3), validate_args=False)
    yield d.Independent(normal, 1, validate_args=False)
    yield d.TransformedDistribution(normal, [d.transforms.TanhTransform()], validate_args=False)
    weights = d.Categorical(logits=location, validate_args=False)
    yield d.MixtureSameFamily(weights, normal, validate_args=False)


def test_distributions_of_distributions():
    def step(location):
        total = sum(d.log_prob(torch.full((3,), 0.5)).sum() for d in composite(location))
        samples = sum(d.sample().sum() for d in composite(location))
        return torch.autograd.grad(total + samples, location)

    lower(step, torch.ones(3, requires_grad=True))
