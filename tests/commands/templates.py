"""The templates that are shipped with jaxgrad: what new processes need not trace.

    python tests/commands/templates.py      writes jaxgrad/templates.tsv (`make templates`)

It calls operators over common patterns of shapes, modules, losses, optimizers and models, with
derivatives, and keeps the template of each pattern that has one. core/template_store.py describes
the file; tests/core/test_template_store.py says when it must be written anew.
"""

import contextlib
import json
import operator
import os
import sys
import warnings
from pathlib import Path

# the order of what is traced must not differ from one run to the next
if __name__ == "__main__" and os.environ.get("PYTHONHASHSEED") != "0":
    os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | {"PYTHONHASHSEED": "0"})

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import models
import numpy

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad import nn
from jaxgrad.core import bounded_cache, template_store, templates
from jaxgrad.ops import kept

# Extents of the patterns, all different, and of which no one is a sum or a product of two others.
# What an operator tests of them is a condition of its template.
EXTENTS = (7, 11, 23, 5, 3)

# A longer record is that of a pattern of many equations, which are few, and rarely come up. Steps
# of optimizers have some equations for each parameter, and recurrent networks have loops.
LONGEST = 8_000
WHOLE = ".step(", "recurrent("


class Collector(dict):
    """The records of the templates that are made, by their keys."""

    def keep(self, key, records):
        is_whole = any(part in key for part in WHOLE)
        kept = [
            list(record) for record in records if is_whole or len(json.dumps(record)) <= LONGEST
        ]
        if kept:
            self[key] = kept


def tensors(*shapes, dtype=torch.float32):
    random = numpy.random.RandomState(len(shapes))
    operands = []
    for shape in shapes:
        numbers = torch.tensor(random.uniform(0.25, 0.75, shape).astype("float32")).to(dtype)
        operands.append(numbers.requires_grad_(dtype.is_floating_point))
    return operands


def differentiated(function, *arguments, second=True):
    """Call a function of tensors, and compute its first and second derivatives."""
    with contextlib.suppress(Exception):  # not every operator takes every shape
        results = function(*arguments)
        first = _gradients(results, arguments)
        if second:
            _gradients(first, arguments)


def _gradients(results, arguments):
    results = results if isinstance(results, list | tuple) else [results]
    results = [
        result for result in results if isinstance(result, torch.Tensor) and result.requires_grad
    ]
    wanted = [
        argument
        for argument in arguments
        if isinstance(argument, torch.Tensor) and argument.requires_grad
    ]
    if not results or not wanted:
        return []
    cotangents = [torch.ones_like(result).requires_grad_() for result in results]
    gradients = torch.autograd.grad(
        results, wanted, cotangents, create_graph=True, allow_unused=True
    )
    return [gradient for gradient in gradients if gradient is not None]


# ---- patterns of shapes

UNARY = """
abs acos asin atan ceil clone cos cosh cumsum(-1) detach erf erfc
exp exp2 expm1 flatten floor frac isfinite isnan isinf log log10 log1p log2
log_softmax(-1) logical_not logsumexp(-1) mean mean(-1) mean(0) median neg nan_to_num
norm prod positive reciprocal relu round rsqrt sigmoid sign sin sinh softmax(-1) sqrt
square std sum sum(-1) sum(0) tan tanh trunc var amax(-1) amin(-1) max min max(-1) min(-1) argmax
argmin argmax(-1) argmin(-1) any all sort argsort unsqueeze(0) unsqueeze(-1) squeeze t
double half bfloat16 float long int bool flip(0) roll(1) cumprod(-1) diff triu tril trace diagonal
contiguous zero_ clamp(0,1) clamp_min(0) clamp_max(1) transpose(0,1) transpose(-1,-2)
sum(-1,True) mean(-1,True) amax(-1,True) sum((0,1)) mean((-2,-1)) nonzero select(0,0)
topk(2) topk(1) unbind(0) unbind(-1) chunk(2) split(2) var(-1) std(-1) norm(2,-1)
"""

BINARY = """
add sub mul div pow maximum minimum atan2 fmod remainder floor_divide eq ne lt le gt ge where
logaddexp hypot copysign
"""

# also with the operands in the other order
ARITHMETIC = {
    "add": (lambda x, y: x + y, lambda x, y: y + x),
    "sub": (lambda x, y: x - y, lambda x, y: y - x),
    "mul": (lambda x, y: x * y, lambda x, y: y * x),
    "div": (lambda x, y: x / y, lambda x, y: y / x),
    "pow": (lambda x, y: x**y, lambda x, y: y**x),
}

NUMBERS = 0.3, 2, 1

COMMON = "add sub mul div pow eq ne lt le gt ge where"

FUNCTIONS = """
relu relu6 elu selu celu gelu silu mish softplus hardswish hardsigmoid hardtanh leaky_relu
logsigmoid softsign tanhshrink softshrink hardshrink rrelu
"""

LOSSES = """
mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits
kl_div soft_margin_loss cosine_similarity pairwise_distance
"""


def shapes_of(rank):
    """Shapes of a rank: all extents differ, and some are 1."""
    whole = EXTENTS[:rank]
    shapes = [whole]
    if rank in (2, 3, 4):
        shapes += [(1, *whole[1:]), (*whole[:-1], 1)]
    if rank > 1:
        shapes += [(whole[0],) * 2 + whole[2:]] if rank == 2 else []
        shapes += [(*whole[:-2], whole[-1], whole[-1])] if rank > 2 else []
    return shapes if rank else [()]


def _method(text):
    name, _, arguments = text.partition("(")
    values = eval(f"({arguments.removesuffix(')')},)") if arguments else ()
    return lambda x: getattr(x, name)(*values)


def operators():
    """Operators of one and two tensors, over shapes of all ranks."""
    for shape in [shape for rank in range(5) for shape in shapes_of(rank)]:
        (x,) = tensors(shape)
        is_whole = shape == EXTENTS[: len(shape)]
        for text in UNARY.split():
            differentiated(_method(text), x, second=is_whole and len(shape) < 3)
        for name in BINARY.split() if is_whole else ARITHMETIC if len(shape) < 3 else ():
            binary(name, x)
        for name in FUNCTIONS.split() if is_whole else ():
            differentiated(getattr(F, name), *tensors(shape))
        for name in LOSSES.split() if is_whole else ():
            x, y = tensors(shape, shape)
            differentiated(getattr(F, name), x, y.detach())
    for shape in [EXTENTS[:rank] for rank in range(3)]:
        (wide,), (x,) = tensors(shape, dtype=torch.float64), tensors(shape)
        for other in (wide, (x.detach() * 5).long(), x.detach() > 0.5):
            for text in UNARY.split():
                differentiated(_method(text), other, second=False)
            for name in COMMON.split():
                binary(name, other)


def binary(name, x):
    """An operator of two operands: of equal shapes, with numbers, and with rows and columns."""
    if name == "where":
        others = [lambda y: torch.where(x > 0.5, x, y)]
    else:
        others = [lambda y: getattr(x, name)(y), lambda y: getattr(y, name)(x)]
    shapes = [x.shape, x.shape[-1:], (*x.shape[:-1], 1), ()]
    if x.ndim > 2:  # one number for each channel
        ones = [1] * (x.ndim - 2)
        shapes += [(1, x.shape[1], *ones), (x.shape[1], *ones)]
    for shape in dict.fromkeys(shapes):
        (y,) = tensors(shape, dtype=x.dtype if x.is_floating_point() else torch.float32)
        y = y if x.is_floating_point() else (y.detach() * 5).to(x.dtype)
        for call in others:
            differentiated(call, x, y, second=name in ARITHMETIC)
    for number in NUMBERS:
        for call in others:
            differentiated(lambda _, call=call, number=number: call(number), x)
        if name in ARITHMETIC:
            for call in ARITHMETIC[name]:
                differentiated(lambda x, call=call, number=number: call(x, number), x)
            with contextlib.suppress(Exception), torch.no_grad():
                getattr(x.detach().clone(), f"{name}_")(number)


def joins():
    """Operators of several tensors, of indices, and of matrices."""
    n, m, k, r, _ = EXTENTS
    for a, b in [
        ((n, m), (m, k)),
        ((n, m), (m,)),
        ((m,), (m, k)),
        ((m,), (m,)),
        ((n, n), (n, n)),
        ((r, n, m), (r, m, k)),
        ((r, n, m), (m, k)),
        ((n, m), (r, m, k)),
        ((3, r, n, m), (3, r, m, k)),
        ((3, r, n, n), (3, r, n, m)),
        ((1, m), (m, k)),
        ((n, m), (m, 1)),
        ((n, 1), (1, k)),
        ((n, m), (m, n)),
        ((3, r, n, m), (3, r, m, n)),
        ((r, n, m), (r, m, n)),
        ((n, m), (m, m)),
        ((r, n, m), (m, m)),
    ]:
        for dtype in (torch.float32, torch.float64) if len(a) < 3 else (torch.float32,):
            differentiated(torch.matmul, *tensors(a, b, dtype=dtype))
            if len(b) > 1:
                bias = (b[-1],)
                right = b[-1:] + b[:-1] if len(b) == 2 else b
                differentiated(F.linear, *tensors(a, right, bias, dtype=dtype))
                differentiated(F.linear, *tensors(a, right, dtype=dtype))
    for shape in [shape for rank in range(1, 5) for shape in shapes_of(rank)]:
        x, y, z = tensors(shape, shape, shape)
        for dim in (0, 1, -1):
            differentiated(lambda x, y, dim=dim: torch.cat([x, y], dim), x, y)
            differentiated(lambda x, y, dim=dim: torch.stack([x, y], dim), x, y)
            differentiated(lambda x, y, z, dim=dim: torch.cat([x, y, z], dim), x, y, z)
        for index in (
            0,
            -1,
            slice(1, None),
            slice(None, -1),
            slice(0, 2),
            (slice(None), 0),
            None,
            (..., None),
            (slice(None), None),
            (..., 0),
            (slice(None), slice(1, None)),
        ):
            differentiated(lambda x, index=index: x[index], x)
        differentiated(lambda x, where: x[where], x, torch.tensor([0, 1, 1]))
        differentiated(lambda x, where: x.index_select(0, where), x, torch.tensor([0, 1, 1]))
        differentiated(lambda x: x[x > 0.5], x)
        differentiated(lambda x: x.masked_fill(x > 0.5, 0.0), x)
        differentiated(lambda x: x.gather(0, torch.zeros_like(x).long()), x)
    for target in ((n,), (n, m)):
        indices = torch.zeros(target, dtype=torch.int64)
        differentiated(lambda w, indices=indices: F.embedding(indices, w), *tensors((k, r)))
        logits = tensors((n, k, m) if len(target) == 2 else (n, k))
        for reduction in ("mean", "sum", "none"):
            options = {"reduction": reduction}
            for loss in (F.cross_entropy, F.nll_loss):
                call = lambda x, loss=loss, o=options, i=indices: loss(x, i, **o)  # noqa: E731
                differentiated(call, *logits)
        differentiated(lambda x, i=indices: F.cross_entropy(x, i, label_smoothing=0.1), *logits)
        differentiated(lambda x, i=indices: F.one_hot(i, 9), *logits)


OF_IMAGES = "relu sigmoid tanh silu mean((2,3),True) mean((2,3)) flatten(1) clone"


def images():
    """What networks for images do besides convolving: square images, and one number a channel."""
    n, m, _, r, _ = EXTENTS
    for shape in ((n, m, r, r), (n, m, 1, 1)):
        for name in FUNCTIONS.split():
            differentiated(getattr(F, name), *tensors(shape), second=False)
        for text in OF_IMAGES.split():
            call = getattr(F, text) if text == "silu" else _method(text)
            differentiated(call, *tensors(shape), second=False)
        differentiated(lambda x, y: x * y, *tensors(shape, (n, m, 1, 1)), second=False)
        differentiated(lambda x, y: y * x, *tensors(shape, (n, m, 1, 1)), second=False)
        differentiated(lambda x, y: x + y, *tensors(shape, shape), second=False)
        for channels in (m, 23):
            for bias in (True, False):
                layer = nn.Conv2d(m, channels, 1, bias=bias)
                differentiated(lambda x, *_, f=layer: f(x), *tensors(shape), *layer.parameters())
        for options in ({}, {"eps": 1e-3, "momentum": 0.01}, {"eps": 1e-3}):
            norm = nn.BatchNorm2d(m, **options)
            for training in (True, False):
                norm.train(training)
                call = lambda x, *_, norm=norm: norm(x)  # noqa: E731
                differentiated(call, *tensors(shape), *norm.parameters(), second=False)


# shapes of two operands, of which one is repeated along the other, or that have one element
PAIRS = [
    ((7, 1), (7, 1)),
    ((7, 11), (1, 11)),
    ((1, 11), (7, 11)),
    ((1, 11), (1, 11)),
    ((7,), ()),
    ((7, 11), ()),
    ((), ()),
    ((1,), (1,)),
    ((7, 11, 23), (7, 11, 1)),
    ((7, 1, 1), (7, 11, 23)),
    ((7, 11, 23), ()),
    ((7, 11, 23, 5), (1, 1, 23, 5)),
    ((7, 11), (7, 1)),
    ((7, 7), ()),
    ((7, 11, 11), (7, 1, 1)),
    ((7, 1, 1), (7, 1, 1)),
    ((7, 1, 1), (11, 11)),
    ((7, 11, 11), (11,)),
    ((1, 7, 11), (1, 7, 11)),
    ((1, 7), (1, 1)),
    ((1, 7, 1), (1, 1, 11)),
    ((7, 11, 23), (23,)),
    ((7, 1, 11), (7, 1, 11)),
    ((7, 1, 1), (1, 11, 11)),
    ((7, 11, 11), (7, 11, 11)),
]


OF_FLAGS = "all any eq(0) ne(0) ge(0) lt(0) gt(0) clone flatten long float bool"


def broadcasts():
    """Arithmetic and comparisons of operands that are repeated, and of numbers."""
    for first, second in PAIRS:
        for call in (
            *[pair[0] for name, pair in ARITHMETIC.items() if name != "pow"],
            *(torch.minimum, torch.maximum, torch.min, torch.max, torch.gt, torch.lt, torch.ge),
            *(torch.le, torch.eq, torch.ne),
        ):
            differentiated(call, *tensors(first, second), second=False)
        (x,) = tensors(first)
        for number in (0.5, 1.0, 0.0, 2.0):
            for call in (lambda x, y: x * y, lambda x, y: x / y, lambda x, y: x + y):
                differentiated(lambda x, call=call, y=number: call(x, y), x, second=False)
        flags, whole = x.detach() > 0.5, (x.detach() * 5).long()
        for operand in (x.detach(), flags, whole):
            for text in OF_FLAGS.split():
                with contextlib.suppress(Exception):
                    _method(text)(operand)
        for call in (operator.and_, operator.or_):
            call(flags, flags)
        for call in (
            lambda x: torch.where(x > 0.5, x, 0.0),
            lambda x: torch.where(x > 0.5, 0.0, x),
            lambda x: x.clamp(-0.5, 0.5),
            lambda x: x.clamp(min=0.0),
            lambda x: F.leaky_relu(x),
            lambda x: F.leaky_relu(x, 0.0),
            lambda x: F.mse_loss(x, x.detach()),
        ):
            differentiated(call, x, second=False)


def places():
    """Elements and parts at places along each dimension: small numbers are part of a program."""
    for shape in [shape for rank in range(1, 5) for shape in shapes_of(rank)]:
        (x,) = tensors(shape)
        for dim, extent in enumerate(shape):
            for place in range(min(extent, 5)):
                for call in (
                    lambda x, dim=dim, place=place: x.select(dim, place),
                    lambda x, dim=dim, place=place: x.narrow(dim, place, 1),
                ):
                    differentiated(call, x, second=False)
            for part in (slice(0, None, 2), slice(1, None, 2), slice(2, None), slice(0, -1)):
                index = (slice(None),) * dim + (part,)
                differentiated(lambda x, index=index: x[index], x, second=False)
            differentiated(lambda x, dim=dim: x.unbind(dim), x, second=False)


def forms():
    """Other shapes of the same numbers, tensors of several others, and batches of matrices."""
    n, m, k, r, _ = EXTENTS
    for shape in [shape for rank in range(5) for shape in shapes_of(rank)]:
        (x,) = tensors(shape)
        others = [(-1,), (1, *shape), (*shape, 1)]
        others += [(shape[0], 1, *shape[1:])] if shape else []
        others += [(shape[0] * shape[1], *shape[2:]), (*shape[:-2], -1)] if len(shape) > 1 else []
        for other in others:
            differentiated(lambda x, other=other: x.reshape(other), x, second=False)
            (whole,) = tensors(other if -1 not in other else (x.numel(),))
            differentiated(lambda x, y, shape=shape: y.view(shape), x, whole, second=False)
        for count in (1, 3, 4):
            for dim in {0, len(shape)}:
                call = lambda *parts, dim=dim: torch.stack(parts, dim)  # noqa: E731
                differentiated(call, *tensors(*[shape] * count), second=False)
        (wide,) = tensors((), dtype=torch.float64)
        for pair in [pair for name, pair in ARITHMETIC.items() if name != "pow"]:
            for call in pair:
                differentiated(call, x, wide, second=False)
    batches = ((1, m, m), (r, m, m)), ((r, m, m), (1, m, m)), ((1, n, m), (1, m, k))
    batches += ((n, 1, m), (n, m, 1)), ((n, 1, 1), (n, 1, m)), ((r, m, m), (r, m, m))
    for a, b in batches:
        for call in (torch.matmul, torch.bmm) if a[0] == b[0] else (torch.matmul,):
            differentiated(call, *tensors(a, b), second=False)


def orders():
    """Other orders of dimensions, and products of batches of matrices as attention has them."""
    n, m, k, r, _ = EXTENTS
    for text in ("permute(0,2,1)", "transpose(1,2)", "movedim(1,-1)", "permute(2,0,1)"):
        differentiated(_method(text), *tensors((n, m, k)), second=False)
    for text in ("permute(0,2,1,3)", "transpose(1,2)", "permute(0,2,3,1)", "permute(0,3,1,2)"):
        differentiated(_method(text), *tensors((n, m, k, r)), second=False)
    for a, b in [((n, m, k), (n, k, m)), ((n, m, m), (n, m, k)), ((n, m, k), (n, k, r))]:
        differentiated(torch.bmm, *tensors(a, b), second=False)
    (scores,) = tensors((n, m, r, r))
    differentiated(lambda x: x.softmax(-1), scores, second=False)
    differentiated(lambda x: F.softmax(x, -1, dtype=torch.float32), scores, second=False)
    for shape in ((r, r), (n, 1, r, r), (n, 1, 1, r)):
        mask = torch.ones(shape).triu(1).bool()
        for number in (-1e9, float("-inf")):
            call = lambda x, mask=mask, y=number: x.masked_fill(mask, y)  # noqa: E731
            differentiated(call, scores, second=False)
        differentiated(lambda x, mask=mask: x + mask.float(), scores, second=False)
    indices = torch.zeros((n, m, 1), dtype=torch.int64)
    differentiated(lambda x: x.gather(-1, indices), *tensors((n, m, k)), second=False)


# ---- modules

ROWS, SEQUENCES, SIGNALS, IMAGES = (7, 11), (3, 7, 11), (7, 3, 12), (7, 3, 5, 5)
LAYERS = [
    nn.MaxPool2d(2),
    nn.AvgPool2d(2),
    nn.MaxPool2d(3, 2, 1),
    nn.Conv2d(3, 8, 3),
    nn.Conv2d(3, 8, 3, padding=1),
    nn.Conv2d(3, 8, 5),
    nn.Conv2d(3, 8, 1),
    nn.Conv2d(3, 8, 3, 2, 1),
    nn.ConvTranspose2d(3, 8, 2, 2),
]
MODULES = [
    (nn.Linear(11, 5), ROWS),
    (nn.Linear(11, 5), SEQUENCES),
    (nn.Linear(11, 5), (11,)),
    (nn.Linear(11, 1), ROWS),
    (nn.Linear(1, 5), (7, 1)),
    (nn.Linear(11, 5, bias=False), ROWS),
    (nn.Linear(11, 11), ROWS),
    (nn.Linear(11, 11), SEQUENCES),
    (nn.BatchNorm1d(11), ROWS),
    (nn.BatchNorm1d(11), (7, 11, 5)),
    (nn.BatchNorm2d(11), (7, 11, 5, 3)),
    (nn.BatchNorm2d(11), (7, 11, 5, 5)),
    (nn.LayerNorm(11), ROWS),
    (nn.LayerNorm(11), SEQUENCES),
    (nn.RMSNorm(11), SEQUENCES),
    (nn.InstanceNorm2d(3), IMAGES),
    (nn.Dropout(), ROWS),
    (nn.Dropout(), SEQUENCES),
    (nn.Dropout2d(), IMAGES),
    (nn.Flatten(), IMAGES),
    (nn.GLU(), (7, 6)),
    (nn.PReLU(), ROWS),
    (nn.Softmax(-1), ROWS),
    (nn.Upsample(scale_factor=2), IMAGES),
    (nn.AvgPool1d(2), SIGNALS),
    (nn.MaxPool1d(2), SIGNALS),
    (nn.AdaptiveAvgPool2d(1), IMAGES),
    *[(layer, (7, 3, extent, extent)) for extent in (8, 28) for layer in LAYERS],
    (nn.Conv2d(1, 8, 3, padding=1), (7, 1, 28, 28)),
    (nn.Conv2d(1, 8, 3), (7, 1, 28, 28)),
    (nn.Conv1d(3, 8, 3), (7, 3, 11)),
    (nn.Conv1d(3, 8, 3, padding=1), (7, 3, 11)),
    (nn.RNN(11, 5), SEQUENCES),
    (nn.LSTM(11, 5), SEQUENCES),
    (nn.GRU(11, 5), SEQUENCES),
    (nn.TransformerEncoderLayer(12, 2, 20, batch_first=True), (3, 7, 12)),
]


def modules():
    """Modules, for training and for inference."""
    for module, shape in MODULES:
        for training in (True, False):
            module.train(training)
            for dtype in (torch.float32, torch.float64):
                x = tensors(shape, dtype=dtype)[0]
                own = module.to(dtype)
                call = lambda *_, own=own, x=x: own(x)  # noqa: E731
                differentiated(call, x, *own.parameters(), second=dtype == torch.float32)
            module.to(torch.float32)


def creations():
    """New tensors, and draws of random numbers."""
    of_weights = [
        (11, 7, 3, 3),
        (11, 1, 3, 3),
        (11, 7, 1, 1),
        (11, 11, 1, 1),
        (1,),
        (11, 1),
        (1, 11),
    ]
    for shape in ((), *[EXTENTS[:rank] for rank in range(1, 5)], (11, 11), *of_weights):
        for make in (torch.rand, torch.randn, torch.zeros, torch.ones, torch.empty):
            x = make(shape)
            for fill in (
                nn.init.uniform_,
                nn.init.normal_,
                nn.init.zeros_,
                nn.init.xavier_uniform_,
                nn.init.xavier_normal_,
                nn.init.kaiming_uniform_,
                nn.init.kaiming_normal_,
            ):
                with contextlib.suppress(Exception):
                    fill(x)
            with contextlib.suppress(Exception):
                x.fill_(0.3).uniform_(-1, 1).normal_(0, 2)
    for make in (
        lambda: torch.arange(7),
        lambda: torch.arange(7.0),
        lambda: torch.randperm(7),
        lambda: torch.randint(0, 5, (7,)),
        lambda: torch.linspace(0, 1, 7),
        lambda: torch.eye(7),
        lambda: torch.full((7, 11), 0.3),
    ):
        make()


def packed():
    """Recurrent networks of packed sequences, with other lengths in every batch."""
    for kind in (nn.LSTM, nn.GRU, nn.RNN):
        for layers in (1, 2):
            tokens, network = nn.Embedding(23, 11, padding_idx=0), kind(11, 5, layers)
            network.batch_first = True
            for lengths in ([7, 3, 6], [2, 8, 5], [4, 9, 3], [6, 5, 10]):
                indices = torch.ones((3, max(lengths)), dtype=torch.int64)
                sequence = nn.utils.rnn.pack_padded_sequence(
                    tokens(indices), torch.tensor(lengths), batch_first=True, enforce_sorted=False
                )
                outputs, states = network(sequence)
                whole, _ = nn.utils.rnn.pad_packed_sequence(outputs, batch_first=True)
                last = states[0] if kind is nn.LSTM else states
                for loss in (last[-1].sum(), whole.sum(), whole.sum() + last[-1].sum()):
                    loss.backward(retain_graph=True)


def residual(model, place, moment):
    """The loss of a network for the heat equation: how far it is from that, and from a wave at all
    points.
    """
    value = model(torch.cat([place, moment], 1))

    def derivative(of, by):
        return torch.autograd.grad(of, by, torch.ones_like(of), create_graph=True)[0]

    lack = derivative(value, moment) - 0.1 * derivative(derivative(value, place), place)
    misfit = value - torch.sin(3 * place)
    return (lack**2).mean() + (misfit**2).mean() + (value**2).mean()


def residuals():
    """Networks whose derivatives by the input are a part of the loss, which is differentiated by
    the weights once more.
    """
    for width in (7, 11):
        layers = nn.Linear(2, width), nn.Tanh(), nn.Linear(width, 11), nn.Tanh(), nn.Linear(11, 1)
        model = nn.Sequential(*layers)
        for points in (23, 5, 13, 17):
            model.zero_grad()
            residual(model, *tensors((points, 1), (points, 1))).backward()


# ---- models, and samples


def networks():
    """Models of tests/models."""
    for name in models.NAMES:
        file = models.load(name)
        model, batch = file.model().float(), file.batch(models.Numbers(torch))
        batch = [tensor.float() if tensor.is_floating_point() else tensor for tensor in batch]
        with contextlib.suppress(Exception):
            file.loss(model, *batch).backward()


def optimizers():
    """Steps of common optimizers, whose patterns are those of one parameter: of several elements,
    and of one.
    """
    for make, options in OPTIMIZERS:
        model = nn.Sequential(nn.Linear(11, 7), nn.ReLU(), nn.Linear(7, 1))
        optimizer = make(model.parameters(), lr=0.1, **options)
        for _ in range(3):
            model(torch.rand((3, 11))).square().mean().backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()


OPTIMIZERS = [
    (torch.optim.SGD, {}),
    (torch.optim.SGD, {"momentum": 0.9}),
    (torch.optim.Adam, {}),
    (torch.optim.SGD, {"weight_decay": 0.01}),
    (torch.optim.AdamW, {}),
    (torch.optim.SGD, {"momentum": 0.9, "nesterov": True}),
    (torch.optim.Adagrad, {}),
    (torch.optim.SGD, {"momentum": 0.9, "weight_decay": 0.01}),
    (torch.optim.NAdam, {}),
    (torch.optim.Adam, {"weight_decay": 0.01}),
    (torch.optim.RMSprop, {}),
    (torch.optim.Adam, {"amsgrad": True}),
    (torch.optim.AdamW, {"weight_decay": 0}),
]


def main():
    warnings.simplefilter("ignore")
    bounded_cache.LIMITS.update(kernels=2**40, bytes=2**60)
    template_store.FILE = template_store.PACKAGE / "no file"
    template_store.shipped.cache_clear()
    torch.compiler.reset()  # what the imports above have taken from the file
    templates.CALLS, collector = 0, Collector()
    template_store.keep = collector.keep
    operators_read = kept.records(torch.ops.library)
    parts = creations, joins, optimizers, operators, images, broadcasts, orders, places, forms
    parts += modules, packed, residuals, networks
    for part in parts:
        part()
        print(f"{part.__name__}: {len(collector)} templates", flush=True)
        template_store.write(template_store.PACKAGE / "templates.tsv", operators_read | collector)


if __name__ == "__main__":
    main()
