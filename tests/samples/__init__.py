"""Samples of the operators' arguments: one file a family, one line a sample.

    SAMPLES = [
        S("add", T(2, 3), T(3), alpha=2, complex=True),
        S("gather", T(3, 4), 1, Int(2, 4, high=3)),
        S("abs", T(values=[0.0]), kink=True),
        *samples_of("sin cos tanh", T(2, 3), complex=True),
    ]

The name is a public one that torch and jaxgrad share ("add", "nn.functional.gelu",
"Tensor.expand"), or "ops.sigmoid_backward" for what torch has as torch.ops.aten.sigmoid_backward.
Arguments are given as they are, with these in the place of tensors and dtypes:

T(2, 3)            floats, differentiated; T() is 0-d, T(0, 3) empty. Between -2 and 2, or `low`
                   and `high`; no two are equal, and none is within 0.02 of a multiple of a half
T(values=[1, 2])   these values
T(3, real=True)    stays real where the others become complex
T(3, constant=True)  requires no gradient
T(3, 3, form="positive")  a matrix made of these numbers by torch or jaxgrad, whose gradient is that
                   of the numbers: one of FORMS
Int(3, high=5)     integers from `low`, 0 if not given, to high - 1; `values`, `dtype`;
                   `unique=True`: no two are equal
Mask(3)            booleans; `values`
Dtype("float64")   torch.float64

Every sample runs in float64, and its value in float32 too. Options of a sample:

complex=True       it runs in complex128 too; complex="only": in complex128 instead
kink=True          the gradient is a convention there: compared with PyTorch's, and with no
                   finite differences
dynamic=True       integer and boolean tensors cannot be traced, mostly since the shape of the
                   result depends on them
through="of_..."   the outputs are those of a function in tests/invariants.py of the operator: for
                   factors that are determined up to phases

The text of a call is the sample's name in test reports and in the recording of PyTorch's answers,
and the seed of its values: a new sample leaves the others as they are.
"""

import importlib
import itertools
import math
import pkgutil
import zlib
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import ClassVar

import numpy
from helpers import invariants

CLEARANCE = 0.02  # distance from the usual kinks; finite differences take smaller steps


class Marker:
    """Stands for a tensor: `shape`, and options, of which those that differ from `USUAL` show."""

    USUAL: ClassVar = {"values": None}

    def __init__(self, *shape, **options):
        unknown = options.keys() - self.USUAL.keys()
        if unknown:
            raise TypeError(f"{type(self).__name__} has no option {unknown.pop()!r}")
        self.options = self.USUAL | options
        self.values = self.options["values"]
        self.shape = shape if self.values is None else numpy.shape(self.values)

    def __repr__(self):
        extents = [] if self.values is not None else map(str, self.shape)
        options = (f"{k}={v!r}" for k, v in self.options.items() if v != self.USUAL[k])
        return f"{type(self).__name__}({', '.join([*extents, *options])})"

    differentiated = False


def _eye(module, x):
    return module.eye(x.shape[-1], dtype=x.dtype, device=x.device)


def _triangle(module, x, part):
    """A triangle of x with a positive diagonal."""
    return part + _eye(module, x) * (x * x.conj() + 1)


# Matrices that an operator takes, of any matrix. Finite differences then go along such matrices.
FORMS = {
    "regular": lambda module, x: x + 4 * _eye(module, x).flip(0),
    "hermitian": lambda module, x: x + x.mH,
    "positive": lambda module, x: x @ x.mH + _eye(module, x),
    "lower": lambda module, x: _triangle(module, x, x.tril(-1)),
    "upper": lambda module, x: _triangle(module, x, x.triu(1)),
    "normalized": lambda module, x: x.log_softmax(-1),
}


class T(Marker):
    """Floats; see above."""

    USUAL: ClassVar = {"values": None, "low": -2.0, "high": 2.0, "real": False, "constant": False}
    USUAL |= {"form": None}

    @property
    def differentiated(self):
        return not self.options["constant"]

    def draw(self, random, complex):
        is_complex = complex and not self.options["real"]
        if self.values is not None:
            return numpy.array(self.values, numpy.complex128 if is_complex else numpy.float64)
        if is_complex:
            return numpy.asarray(self.real(random) + 1j * self.real(random))
        return self.real(random)

    def real(self, random):
        """One number out of each of as many cells of the range, at a distance from its ends."""
        low, high, count = self.options["low"], self.options["high"], int(numpy.prod(self.shape))
        cells = (random.permutation(count) + random.uniform(0.25, 0.75, count)) / max(count, 1)
        numbers = low + (high - low) * cells
        halves = numpy.round(2 * numbers) / 2
        offsets = numbers - halves
        away = halves + numpy.copysign(CLEARANCE, offsets)
        return numpy.where(abs(offsets) < CLEARANCE, away, numbers).reshape(self.shape)


class Int(Marker):
    """Integers; see above."""

    USUAL: ClassVar = {"values": None, "low": 0, "high": 10, "unique": False, "dtype": "int64"}

    def draw(self, random, complex):
        if self.values is not None:
            return numpy.array(self.values, self.options["dtype"])
        return self.numbers(random).reshape(self.shape).astype(self.options["dtype"])

    def numbers(self, random):
        low, high, count = self.options["low"], self.options["high"], int(numpy.prod(self.shape))
        if self.options["unique"]:
            return low + random.permutation(high - low)[:count]
        return random.randint(low, high, count)


class Mask(Marker):
    """Booleans; see above."""

    def draw(self, random, complex):
        if self.values is not None:
            return numpy.array(self.values, bool)
        return numpy.asarray(random.uniform(size=self.shape) < 0.5)


@dataclass(frozen=True)
class Dtype:
    """A dtype by its name."""

    name: str

    def __repr__(self):
        return f"Dtype({self.name!r})"


def replace(tree, function):
    """Arguments with `function` of each leaf in its place, in order."""
    if isinstance(tree, list | tuple):
        return type(tree)(replace(item, function) for item in tree)
    if isinstance(tree, dict):
        return {key: replace(value, function) for key, value in tree.items()}
    return function(tree)


@dataclass(frozen=True)
class Sample:
    """Arguments of an operator."""

    name: str
    args: tuple
    kwargs: dict = field(default_factory=dict)
    complex: bool | str = False
    kink: bool = False
    dynamic: bool = False
    through: str | None = None

    @cached_property
    def id(self):
        args = [*map(repr, self.args), *(f"{k}={v!r}" for k, v in self.kwargs.items())]
        if self.through is not None:
            args.append(f"through={self.through!r}")
        return f"{self.name}({', '.join(args)})"

    def __repr__(self):
        return self.id

    @property
    def operator(self):
        """The last part of the name: "gelu" of "nn.functional.gelu"."""
        return self.name.rpartition(".")[2]

    @cached_property
    def markers(self):
        """The markers among the arguments, in order."""
        leaves = []
        replace((self.args, self.kwargs), leaves.append)
        return tuple(item for item in leaves if isinstance(item, Marker))

    @property
    def fields(self):
        """Over which numbers it runs: "real", "complex"."""
        if not any(isinstance(marker, T) for marker in self.markers):
            return ("real",)
        return {False: ("real",), True: ("real", "complex"), "only": ("complex",)}[self.complex]

    @property
    def differentiated(self):
        """For each tensor whether a gradient of it is asked for."""
        return tuple(marker.differentiated for marker in self.markers)

    def draw(self, field="real", seed=0):
        """A numpy array for each tensor; another seed gives other values."""
        return [
            marker.draw(self.random(f"{position} {seed}"), field == "complex")
            for position, marker in enumerate(self.markers)
        ]

    def random(self, purpose):
        # RandomState's streams never change, as those of numpy's newer generators may
        return numpy.random.RandomState(zlib.crc32(f"{self.id} {purpose}".encode()))

    def direction(self, purpose, shape, dtype):
        """Random numbers of that shape and floating dtype; others for another purpose."""
        random, dtype = self.random(purpose), numpy.dtype(dtype)
        numbers = random.uniform(-1, 1, shape)
        if dtype.kind == "c":
            numbers = numbers + 1j * random.uniform(-1, 1, shape)
        return numpy.asarray(numbers, dtype)

    def call(self, module, tensors):
        """The operator of `module`, torch or jaxgrad, with `tensors` for arguments."""
        supply = iter(tensors)

        def fill(leaf):
            if isinstance(leaf, Marker):
                form = FORMS.get(leaf.options.get("form"))
                return next(supply) if form is None else form(module, next(supply))
            return getattr(module, leaf.name) if isinstance(leaf, Dtype) else leaf

        args, kwargs = replace((self.args, self.kwargs), fill)
        operator = find(module, self.name)
        if self.through is not None:
            return getattr(invariants, self.through)(operator, *args, **kwargs)
        return operator(*args, **kwargs)


def _in_place(name):
    return lambda self, *args, **kwargs: getattr(self.clone(), name)(*args, **kwargs)


def _as_strided_scatter(self, src, *args, **kwargs):
    written = self.clone()
    written.as_strided(*args, **kwargs).copy_(src)
    return written


def _fft_with_size(self, ndim, takes_pairs, gives_pairs, inverse, sizes, normalized, onesided, _):
    """The transform of early PyTorch, by today's transforms."""
    torch = importlib.import_module("torch")
    dims, norm = list(range(-ndim, 0)), "ortho" if normalized else "backward"
    self = torch.view_as_complex(self) if takes_pairs else self
    if takes_pairs and not gives_pairs and onesided:
        return torch.fft.irfftn(self, sizes, dims, norm)
    if onesided:
        return torch.view_as_real(torch.fft.rfftn(self, None, dims, norm))
    result = (torch.fft.ifftn if inverse else torch.fft.fftn)(self, None, dims, norm)
    return torch.view_as_real(result) if gives_pairs else result.real


def _gesv(right, matrix):
    torch = importlib.import_module("torch")
    solution, packed, _, _ = torch.ops.aten._linalg_solve_ex(matrix, right)
    return solution, packed.detach()


def _btrifact(matrix):
    return tuple(importlib.import_module("torch").linalg.lu_factor(matrix))


def _symeig(matrix, eigenvectors=False, upper=True):
    torch, side = importlib.import_module("torch"), "U" if upper else "L"
    return torch.linalg.eigh(matrix, UPLO=side)


def _pstrf(matrix, upper=True):
    """The Cholesky factor of the matrix in the order of its greatest pivots."""
    torch, rest, order = importlib.import_module("torch"), matrix.detach(), []
    rest = rest.tril() + rest.tril(-1).mH
    for _ in range(len(matrix)):
        free = rest.diagonal().real.clone()
        free[order] = -1
        order.append(int(free.argmax()))
        column = rest[:, order[-1:]]
        rest = rest - column @ column.mH / free.max()
    lower = torch.linalg.cholesky(matrix[order][:, order])
    return (lower.mH if upper else lower), torch.tensor(order, dtype=torch.int32) + 1


def _fused_lstm_cell(input_gates, hidden_gates, cx, input_bias=None, hidden_bias=None):
    torch = importlib.import_module("torch")
    gates = sum(x for x in (input_gates, hidden_gates, input_bias, hidden_bias) if x is not None)
    i, f, g, o = gates.chunk(4, -1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    cy = f * cx + i * g
    return o * cy.tanh(), cy, torch.cat([i, f, g, o], -1).detach()


def _fused_gru_cell(input_gates, hidden_gates, hx, input_bias=None, hidden_bias=None):
    torch = importlib.import_module("torch")
    pairs = (input_gates, input_bias), (hidden_gates, hidden_bias)
    first, second = ((x if b is None else x + b).chunk(3, -1) for x, b in pairs)
    r, z = (first[0] + second[0]).sigmoid(), (first[1] + second[1]).sigmoid()
    n = (first[2] + r * second[2]).tanh()
    return n + z * (hx - n), torch.cat([r, z, n, hx, second[2]], -1).detach()


def _max_unpool2d_backward(grad, self, indices, output_size):
    return grad.flatten(-2).gather(-1, indices.flatten(-2)).view(indices.shape)


def _boxes(start, end, parts, length):
    """The first element of each box of a region, and the one after its last."""
    size = (end - start) / parts
    edges = ((int(i * size), math.ceil((i + 1) * size)) for i in range(parts))
    return [tuple(min(max(edge + start, 0), length) for edge in pair) for pair in edges]


def _roi_pooling(images, rois, height, width, scale):
    torch = importlib.import_module("torch")
    values = torch.zeros(len(rois), images.shape[1], height, width, dtype=images.dtype)
    indices = torch.full(values.shape, -1)
    for region, (image, *corners) in enumerate(rois.tolist()):
        x1, y1, x2, y2 = (math.floor(scale * corner + 0.5) for corner in corners)
        rows, columns = (
            _boxes(y1, y2, height, images.shape[2]),
            _boxes(x1, x2, width, images.shape[3]),
        )
        for (i, (top, bottom)), (j, (left, right)) in itertools.product(
            enumerate(rows), enumerate(columns)
        ):
            box = images[int(image), :, top:bottom, left:right]
            if box.numel():
                maxima = box.flatten(1).max(1)
                row, column = maxima.indices // box.shape[2], maxima.indices % box.shape[2]
                values[region, :, i, j] = maxima.values
                indices[region, :, i, j] = (row + top) * images.shape[3] + column + left
    return values, indices


def _averaged(gradient, reduction):
    return gradient / gradient.numel() if reduction == 1 else gradient


def _mish_backward(grad, x):
    tanh = x.exp().log1p().tanh()
    return grad * (tanh + x * (1 - tanh * tanh) * x.sigmoid())


def _multi_margin_backward(grad, scores, target, p, margin, weight=None, reduction=1):
    """The gradient of the loss, written so that PyTorch differentiates it."""
    torch = importlib.import_module("torch")
    rows = torch.arange(len(scores))
    excess = (margin - scores[rows, target].unsqueeze(1) + scores).clamp(min=0) ** p
    others = torch.ones_like(scores).index_put((rows, target), torch.zeros(()).to(scores))
    losses = (excess * others).sum(1) / scores.shape[1]
    losses = losses if weight is None else losses * weight[target]
    reduced = [losses, losses.mean(), losses.sum()][reduction]
    return torch.autograd.grad(reduced, scores, grad, create_graph=True)[0]


def _attention_scores(q, k, is_causal, attn_mask, scale):
    torch = importlib.import_module("torch")
    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    if attn_mask is not None:
        scores = scores + attn_mask
    if not is_causal:
        return scores
    seen = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    return scores.masked_fill(~seen, -float("inf"))


def _attention(q, k, v, dropout_p=0.0, is_causal=False, *, attn_mask=None, scale=None):
    """PyTorch's output, and a logsumexp that has a derivative."""
    aten = importlib.import_module("torch").ops.aten
    masks = {"attn_mask": attn_mask, "scale": scale}
    flash = aten._scaled_dot_product_flash_attention_for_cpu
    output = flash(q, k, v, dropout_p, is_causal, **masks)[0]
    return output, _attention_scores(q, k, is_causal, **masks).logsumexp(-1)


def _attention_backward(grad, q, k, v, out, logsumexp, _, is_causal, *, attn_mask=None, scale=None):
    """The gradients of attention from its results, of which PyTorch has no derivative."""
    scores = _attention_scores(q, k, is_causal, attn_mask, scale)
    weights = (scores - logsumexp.unsqueeze(-1)).exp()
    back = weights * (grad @ v.mT - (grad * out).sum(-1, True))
    back = back * (q.shape[-1] ** -0.5 if scale is None else scale)
    return back @ k, back.mT @ q, weights.mT @ grad


def _attention_with_dropout(q, k, v, kept, keep, is_causal=False, *, attn_mask=None, scale=None):
    scores = _attention_scores(q, k, is_causal, attn_mask, scale)
    return scores.softmax(-1) * kept / keep @ v, scores.logsumexp(-1)


def _attention_with_dropout_backward(
    grad, q, k, v, out, logsumexp, kept, keep, is_causal, *, attn_mask=None, scale=None
):
    scores = _attention_scores(q, k, is_causal, attn_mask, scale)
    weights = (scores - logsumexp.unsqueeze(-1)).exp()
    back = weights * (grad @ v.mT * kept / keep - (grad * out).sum(-1, True))
    back = back * (q.shape[-1] ** -0.5 if scale is None else scale)
    return back @ k, back.mT @ q, (weights * kept / keep).mT @ grad


# Operators whose derivatives PyTorch has right for the in-place variant only, or that it has lost.
STAND_INS = {
    "ops._fft_with_size": _fft_with_size,
    "ops._thnn_fused_gru_cell": _fused_gru_cell,
    "ops._thnn_fused_lstm_cell": _fused_lstm_cell,
    "ops._scaled_dot_product_flash_attention_for_cpu": _attention,
    "ops._scaled_dot_product_flash_attention_for_cpu_backward": _attention_backward,
    "ops._attention_with_dropout": _attention_with_dropout,
    "ops._attention_with_dropout_backward": _attention_with_dropout_backward,
    "ops._fused_drop": lambda x, mask, scale: x.mul(scale).masked_fill(~mask, 0),
    "ops._native_drop": lambda x, mask, scale: x.mul(scale).masked_fill(~mask, 0),
    "ops.hardsigmoid_backward": lambda g, x: g * ((x > -3) & (x < 3)) / 6,
    "ops.mish_backward": _mish_backward,
    "ops._rrelu": lambda x, slope, *_: x * slope,
    "ops.kl_div_backward": lambda g, x, target, r=1: _averaged(-g * target, r),
    "ops.l1_loss_backward": lambda g, x, target, r=1: _averaged(g * (x - target).sgn(), r),
    "ops.multi_margin_loss_backward": _multi_margin_backward,
    "ops.gesv": _gesv,
    "ops.btrifact": _btrifact,
    "ops.btrifact_with_info": lambda x: importlib.import_module("torch").linalg.lu_factor_ex(x),
    "ops.potri": lambda x, upper=True: x.cholesky_inverse(upper=upper),
    "ops.pstrf": _pstrf,
    "ops.symeig": _symeig,
    "ops.max_unpool2d_backward": _max_unpool2d_backward,
    "ops.RoiPooling2d_forward": _roi_pooling,
    "as_strided_scatter": _as_strided_scatter,
    "ops.copy": _in_place("copy_"),
    "ops._fill_diagonal": _in_place("fill_diagonal_"),
    "ops._s_where": lambda condition, self, other: self.where(condition, other),
}


def find(module, name):
    """What `name` means in torch or jaxgrad."""
    if module.__name__ == "torch" and name in STAND_INS:
        return STAND_INS[name]
    if module.__name__ == "torch" and name.startswith("ops."):
        name = f"ops.aten.{name.removeprefix('ops.')}"
    return reduce(getattr, name.split("."), module)


def S(name, *args, complex=False, kink=False, dynamic=False, through=None, **kwargs):
    """A sample: an operator's name and its arguments; for the options see above."""
    return Sample(name, args, kwargs, complex, kink, dynamic, through)


def samples_of(names, *args, **kwargs):
    """The same sample of several operators, whose names are separated by blanks."""
    return [S(name, *args, **kwargs) for name in names.split()]


def families():
    """The samples of each family, by the name of its file."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return {name: importlib.import_module(f"{__name__}.{name}").SAMPLES for name in names}
