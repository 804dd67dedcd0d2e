"""Compiled training steps, optimizers, layers, losses and distributions are lowered for GPUs and
TPUs. `make test` takes some of each.
"""

import math
import re

import pytest
from helpers import lowering
from helpers.distribution_cases import CASES, make

import jaxgrad as torch
from jaxgrad import nn

F = nn.functional

OPTIMIZERS = (
    *("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adafactor", "Adamax", "ASGD"),
    *("Muon", "NAdam", "RAdam", "Rprop"),
)

# a layer and the shape of its input
LAYERS = {
    "linear": (lambda: nn.Linear(4, 3), (2, 4)),
    "bilinear": (lambda: nn.Bilinear(4, 4, 3), (2, 4), (2, 4)),
    "conv1d": (lambda: nn.Conv1d(4, 6, 3, groups=2), (2, 4, 8)),
    "conv2d": (lambda: nn.Conv2d(2, 3, 3, stride=2, padding=1), (2, 2, 8, 8)),
    "conv3d": (lambda: nn.Conv3d(2, 3, 3), (1, 2, 5, 5, 5)),
    "conv_transpose2d": (lambda: nn.ConvTranspose2d(2, 3, 3, stride=2), (2, 2, 4, 4)),
    "batch_norm": (lambda: nn.BatchNorm2d(3), (4, 3, 5, 5)),
    "layer_norm": (lambda: nn.LayerNorm(6), (4, 6)),
    "group_norm": (lambda: nn.GroupNorm(2, 4), (2, 4, 5)),
    "instance_norm": (lambda: nn.InstanceNorm1d(4, affine=True), (2, 4, 5)),
    "rms_norm": (lambda: nn.RMSNorm(6), (4, 6)),
    "local_response_norm": (lambda: nn.LocalResponseNorm(2), (2, 4, 5)),
    "lstm": (lambda: nn.LSTM(4, 3, num_layers=2, bidirectional=True), (5, 2, 4)),
    "gru": (lambda: nn.GRU(4, 3), (5, 2, 4)),
    "rnn": (lambda: nn.RNN(4, 3), (5, 2, 4)),
    "attention": (lambda: nn.MultiheadAttention(8, 2), (5, 2, 8), (5, 2, 8), (5, 2, 8)),
    "transformer_encoder": (lambda: nn.TransformerEncoderLayer(8, 2, 16), (5, 2, 8)),
    "transformer_decoder": (lambda: nn.TransformerDecoderLayer(8, 2, 16), (5, 2, 8), (5, 2, 8)),
    "max_pool": (lambda: nn.MaxPool2d(2), (2, 3, 6, 6)),
    "avg_pool": (lambda: nn.AvgPool2d(2), (2, 3, 6, 6)),
    "adaptive_pool": (lambda: nn.AdaptiveAvgPool2d(3), (2, 3, 7, 5)),
    "lp_pool": (lambda: nn.LPPool1d(2, 2), (2, 3, 6)),
    "upsample": (lambda: nn.Upsample(scale_factor=2, mode="bilinear"), (2, 3, 4, 4)),
    "pixel_shuffle": (lambda: nn.PixelShuffle(2), (2, 4, 3, 3)),
    "reflection_pad": (lambda: nn.ReflectionPad2d(1), (2, 3, 4, 4)),
    "fold": (lambda: nn.Unfold(2), (2, 3, 4, 4)),
    "dropout": (lambda: nn.Dropout(0.5), (4, 6)),
    "rrelu": (lambda: nn.RReLU(), (4, 6)),
    "prelu": (lambda: nn.PReLU(), (4, 6)),
    "gelu": (lambda: nn.GELU(), (4, 6)),
    "glu": (lambda: nn.GLU(), (4, 6)),
    "softmax": (lambda: nn.Softmax(-1), (4, 6)),
    "cosine": (lambda: nn.CosineSimilarity(), (4, 6), (4, 6)),
}

CLASSES = torch.tensor([1, 0, 3])
# losses of a (3, 4) tensor x
LOSSES = {
    "cross_entropy": lambda x: F.cross_entropy(x, CLASSES, label_smoothing=0.1),
    "nll": lambda x: F.nll_loss(x.log_softmax(-1), CLASSES),
    "mse": lambda x: F.mse_loss(x, torch.zeros(3, 4)),
    "l1": lambda x: F.l1_loss(x, torch.zeros(3, 4)),
    "smooth_l1": lambda x: F.smooth_l1_loss(x, torch.zeros(3, 4)),
    "huber": lambda x: F.huber_loss(x, torch.zeros(3, 4)),
    "bce_with_logits": lambda x: F.binary_cross_entropy_with_logits(x, torch.ones(3, 4)),
    "bce": lambda x: F.binary_cross_entropy(x.sigmoid(), torch.ones(3, 4)),
    "kl_div": lambda x: F.kl_div(x.log_softmax(-1), torch.ones(3, 4) / 4, reduction="batchmean"),
    "poisson": lambda x: F.poisson_nll_loss(x, torch.ones(3, 4)),
    "gaussian": lambda x: F.gaussian_nll_loss(x, torch.ones(3, 4), x.exp()),
    "hinge": lambda x: F.hinge_embedding_loss(x, torch.ones(3, 4)),
    "cosine": lambda x: F.cosine_embedding_loss(x, torch.ones(3, 4), torch.ones(3)),
    "margin_ranking": lambda x: F.margin_ranking_loss(x[0], x[1], torch.ones(4)),
    "multi_margin": lambda x: F.multi_margin_loss(x, CLASSES),
    "multilabel_soft_margin": lambda x: F.multilabel_soft_margin_loss(x, torch.ones(3, 4)),
    "soft_margin": lambda x: F.soft_margin_loss(x, torch.ones(3, 4)),
    "triplet": lambda x: F.triplet_margin_loss(x, x + 1, x * 2),
    "ctc": lambda x: F.ctc_loss(
        x[:, None].log_softmax(-1), torch.tensor([[1]]), torch.tensor([3]), torch.tensor([1])
    ),
}

INDICES, ROW_ENDS = torch.tensor([[0, 1, 2], [1, 0, 3]]), torch.tensor([0, 1, 2, 3])
WEIGHTS, MASK = torch.ones(4, 2), torch.ones(3, 4, dtype=torch.bool).tril()
# functions of a (3, 4) tensor x, by tensors of other layouts and kinds
LAYOUTS = {
    "coo": lambda x: torch.sparse_coo_tensor(INDICES, x[0, :3], (3, 4)) @ WEIGHTS.to(x.dtype),
    "csr": lambda x: (
        torch.sparse_csr_tensor(ROW_ENDS, INDICES[1], x[0, :3], (3, 4)) @ WEIGHTS.to(x.dtype)
    ),
    "channels last": lambda x: F.max_pool2d(
        F.conv2d(
            x.reshape(1, 3, 2, 2).to(memory_format=torch.channels_last),
            x.new_ones(6, 1, 1, 1).to(memory_format=torch.channels_last),
            groups=3,
        ).relu(),
        2,
    ),
    "masked": lambda x: torch.masked.softmax(x, -1, mask=MASK),
    "jagged": lambda x: (
        torch.nested.nested_tensor_from_jagged(x, ROW_ENDS[[0, 1, 3]]).sin().values()
    ),
    "rounded": lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 0, -8, 7),
    "rounded channels": lambda x: torch.fake_quantize_per_channel_affine(
        x, torch.ones(3), torch.zeros(3, dtype=torch.int32), 0, -8, 7
    ),
    "quantized": lambda x: (
        torch.quantize_per_tensor(x.detach().float(), 0.1, 0, torch.qint8).dequantize() * x
    ),
}

# ten models, with the shape of a batch; a step of each is lowered whole
MODELS = {
    "mlp": (lambda: nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)), (3, 8)),
    "cnn": (
        lambda: nn.Sequential(
            *(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(4, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
            nn.Linear(8, 4),
        ),
        (3, 1, 8, 8),
    ),
    "dropout": (
        lambda: nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.2), nn.GELU(), nn.Linear(16, 4)),
        (3, 8),
    ),
    "transformer": (
        lambda: nn.Sequential(
            nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), nn.Flatten(), nn.Linear(40, 4)
        ),
        (3, 5, 8),
    ),
    "separable": (
        lambda: nn.Sequential(
            *(nn.Conv2d(4, 4, 3, groups=4), nn.Conv2d(4, 8, 1), nn.SiLU(), nn.Flatten()),
            nn.LazyLinear(4),
        ),
        (3, 4, 6, 6),
    ),
    "volumes": (
        lambda: nn.Sequential(nn.Conv3d(1, 2, 3), nn.ELU(), nn.Flatten(), nn.Linear(54, 4)),
        (3, 1, 5, 5, 5),
    ),
    "upsampled": (
        lambda: nn.Sequential(
            *(nn.ConvTranspose2d(2, 4, 2, stride=2), nn.Upsample(scale_factor=2), nn.Flatten()),
            nn.Linear(256, 4),
        ),
        (3, 2, 2, 2),
    ),
    "sequences": (
        lambda: nn.Sequential(
            nn.Conv1d(4, 8, 3, dilation=2), nn.Tanh(), nn.Flatten(), nn.Linear(48, 4)
        ),
        (3, 4, 10),
    ),
    "normalized": (
        lambda: nn.Sequential(
            nn.LayerNorm(8), nn.Linear(8, 8), nn.GroupNorm(2, 8), nn.Linear(8, 4)
        ),
        (3, 8),
    ),
    "spectral": (
        lambda: nn.Sequential(nn.utils.spectral_norm(nn.Linear(8, 8)), nn.Linear(8, 4)),
        (3, 8),
    ),
}


def some(names, step):
    return [
        pytest.param(name, marks=[pytest.mark.slow] if number % step else [])
        for number, name in enumerate(names)
    ]


def lower(step, *arguments):
    """The StableHLO of a compiled function for GPUs and TPUs together."""
    traced = torch.jit(step).trace(*arguments)
    text = traced.lower(lowering_platforms=lowering.PLATFORMS).as_text()
    assert "callback" not in text
    assert "func.func public @main" in text


def training_step(model, optimizer, loss):
    def step(*inputs):
        optimizer.zero_grad()
        result = loss(model(*inputs))
        result.backward()
        optimizer.step()
        return result.detach()

    return step


@pytest.mark.parametrize("name", some(OPTIMIZERS, 5))
def test_optimizers(name):
    model = nn.Linear(4, 3, bias=name != "Muon")
    optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.01)
    lower(training_step(model, optimizer, lambda y: (y * y).sum()), torch.ones(2, 4))


def arguments_of(text):
    """The shapes of a program's arguments, and whether a result takes the memory of each."""
    (line,) = re.findall(r"func.func public @main\((.*)\) -> ", text)
    for argument in re.split(r", (?=%arg)", line):
        (sizes,) = re.findall(r": tensor<((?:\d+x)*)\w+>", argument)
        yield tuple(map(int, sizes.split("x")[:-1])), "tf.aliasing_output" in argument


@pytest.mark.parametrize("name", some(OPTIMIZERS, 5))
def test_steps_write_into_the_memory_of_what_they_update(name):
    """All parameters and all state with dimensions, on each platform and in a compiled program."""
    model = nn.Sequential(nn.Linear(4, 8, bias=False), nn.Tanh(), nn.Linear(8, 4, bias=False))
    options = {"momentum": 0.9} if name == "SGD" else {}
    optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.01, **options)
    step = torch.jit(training_step(model, optimizer, lambda y: (y * y).sum()))
    x = torch.ones(3, 4)
    step(x)  # which makes the state
    state = [*model.parameters(), *(v for kept in optimizer.state.values() for v in kept.values())]
    updated = sorted(tuple(t.shape) for t in state if isinstance(t, torch.Tensor) and t.ndim)
    for platform in ("cpu", *lowering.PLATFORMS):
        text = step.trace(x).lower(lowering_platforms=(platform,)).as_text()
        pairs = [pair for pair in arguments_of(text) if pair[0]]
        assert sorted(shape for shape, is_donated in pairs if is_donated) == updated
        assert [shape for shape, is_donated in pairs if not is_donated] == [(3, 4)]
    memory = step.lower(x).compile().memory_analysis()
    assert memory.alias_size_in_bytes >= 4 * sum(map(math.prod, updated))


def test_closure_of_lbfgs():
    """LBFGS itself runs on the host: what is compiled is the closure."""
    model = nn.Linear(4, 3)
    optimizer = torch.optim.LBFGS(model.parameters())

    def closure(x):
        optimizer.zero_grad()
        loss = model(x).square().sum()
        loss.backward()
        return loss.detach()

    lower(closure, torch.ones(2, 4))


def test_sparse_adam():
    model = nn.Embedding(5, 3, sparse=True)
    optimizer = torch.optim.SparseAdam(model.parameters())
    lower(training_step(model, optimizer, lambda y: y.square().sum()), torch.tensor([1, 3, 1]))


@pytest.mark.parametrize("name", some(LAYERS, 11))
def test_layers(name):
    make_layer, *shapes = LAYERS[name]
    layer = make_layer()

    def step(*inputs):
        inputs = [x.requires_grad_() for x in inputs]
        result = layer(*inputs)
        first = result[0] if isinstance(result, tuple) else result
        return torch.autograd.grad((first * first).sum(), [*inputs, *layer.parameters()])

    lower(step, *[torch.randn(*shape) for shape in shapes])


@pytest.mark.parametrize("name", some(LOSSES, 8))
def test_losses(name):
    lower(torch.func.grad(LOSSES[name]), torch.randn(3, 4))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", some(LAYOUTS, 3))
def test_layouts(name, dtype):
    """The gradient, and its derivative in forward mode."""

    def step(x):
        gradient = torch.func.grad(lambda x: LAYOUTS[name](x).sin().sum())
        return torch.func.jvp(gradient, (x,), (x + 1,))

    lower(step, torch.randn(3, 4).to(dtype))


@pytest.mark.parametrize("name", some(CASES, 15))
def test_distributions(name):
    case = CASES[name]
    parameters = {key: torch.tensor(number) for key, number in case.parameters.items()}
    value = torch.tensor(case.value)

    def step(value, *numbers):
        leaves = [number.requires_grad_() for number in numbers]
        options = dict(zip(parameters, leaves, strict=True))
        distribution = make(torch, case._replace(options=case.options | unchecked), options)
        total = distribution.log_prob(value).sum()
        if distribution.has_rsample:
            total = total + distribution.rsample().sum()
        return torch.autograd.grad(total, leaves, allow_unused=True)

    unchecked = {"validate_args": False}
    lower(step, value, *parameters.values())


@pytest.mark.parametrize("name", some(MODELS, 5))
def test_training_steps(name):
    make_model, shape = MODELS[name]
    model, x = make_model(), torch.randn(*shape)
    if name == "separable":
        model(x)  # which makes the weights
    optimizer = torch.optim.AdamW(model.parameters())
    lower(training_step(model, optimizer, lambda y: F.cross_entropy(y, CLASSES)), x)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_training_steps_with_autocast(dtype):
    make_model, shape = MODELS["transformer"]
    model = make_model()

    def narrow(*inputs):
        with torch.autocast("cpu", dtype):
            return model(*inputs)

    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss = training_step(narrow, optimizer, lambda y: F.cross_entropy(y.float(), CLASSES))
    lower(loss, torch.randn(*shape))
