"""What the tests of files save, as pieces of PyTorch code: `torch` is PyTorch or jaxgrad.

tests/oracle/record_files.py writes the files in tests/oracle/pt with PyTorch, and what PyTorch says
of the objects in them, `described`.
"""

import collections
import math
from pathlib import Path

import numpy as np

from helpers.answers import beside

FILES = Path(__file__).parents[1] / "oracle" / "pt"
TEXTS = beside("serialization/test_torch_files.py")

DTYPES = (
    *("float64", "float32", "float16", "bfloat16", "uint8", "int8", "int16", "int32", "int64"),
    *("bool", "uint16", "uint32", "uint64", "complex64", "complex128"),
)


# ---- tensors and containers


def views(torch):
    """Tensors that share memory, in each way that views can show it."""
    x = torch.arange(24.0).reshape(4, 6)
    z = torch.tensor([[1 + 2j, 3 - 4j], [0.5j, -1 + 0j]])
    weight = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
    row = torch.arange(10)
    return {
        "whole": x,
        "again": x,
        "turned": x.t(),
        "columns": x[:, 1:3],
        "row": x[2],
        "every second": x[::2, ::3],
        "diagonal": x.diagonal(),
        "expanded": x[0].expand(3, 6),
        "windows": torch.as_strided(x, (3, 4), (2, 1), 5),
        "detached": x.detach(),
        "reshaped": x.reshape(2, 12),
        "conjugate": z.conj(),
        "complex": z,
        "parts of a conjugate": z.conj()[0],
        "weight": weight,
        "weight again": weight,
        "values of the weight": weight.detach(),
        "parts alone": [row[2:5], row[4:8]],
    }


def lone_views(torch):
    """Views whose memory nothing else shows."""
    return {
        "turned": torch.arange(6.0).reshape(2, 3).t(),
        "columns": torch.arange(12).reshape(3, 4)[:, 1:3],
        "row": torch.arange(12).reshape(3, 4)[1],
        "expanded": torch.tensor([1.0, 2.0]).expand(3, 2),
        "channels last": torch.arange(24.0).reshape(1, 2, 3, 4).permute(0, 3, 1, 2),
        "conjugate": torch.tensor([1 + 2j, 3j]).conj(),
        "real": torch.tensor([1 + 2j, 3j]).real,
        "imaginary": torch.tensor([1 + 2j, 3j]).imag,
        "imaginary of the conjugate": torch.tensor([1 + 2j, 3j]).conj().imag,
    }


def tensors(torch):
    """A tensor of each dtype, and of unusual shapes and values."""
    by_dtype = {
        name: torch.tensor([[1, 0, 3], [2, 1, 0]], dtype=getattr(torch, name)) for name in DTYPES
    }
    return by_dtype | {
        "one": torch.tensor(2.5),
        "none": torch.zeros(0, 3),
        "special": torch.tensor([math.nan, -0.0, math.inf, -math.inf]),
        "requires grad": torch.ones(2, requires_grad=True),
        "frozen": torch.nn.Parameter(torch.ones(2), requires_grad=False),
        "sparse": torch.sparse_coo_tensor([[0, 2], [1, 0]], [1.0, 2.0], (3, 2)).coalesce(),
        "uncoalesced": torch.sparse_coo_tensor([[1, 1]], [1.0, 2.0], (3,)),
        "sparse blocks": torch.sparse_coo_tensor([[2]], [[1.0, 2.0]], (3, 2)),
    }


def containers(torch):
    """Everything else that PyTorch reads with weights_only=True."""
    shared = [1, 2]
    ordered = collections.OrderedDict(b=1, a=torch.tensor(1))
    ordered._metadata = collections.OrderedDict([("", {"version": 2})])
    return {
        "numbers": [0, -1, 255, 256, 65536, -(2**31), 2**31, 2**64, -(2**200), 1.5, -0.0, 1 + 2j],
        "words": ["", "ascii", "é€😀", "x" * 300],
        "bytes": [b"a\x00\xff", bytearray(b"q")],
        "nested": {"a": ({}, [[()], (1,)], (1, 2, 3, 4)), 3: {0.5: None, (1, "b"): True}},
        "set": {1, 2, 3},
        "ordered": ordered,
        "counter": collections.Counter("aab"),
        "shared": [shared, shared],
        "size": torch.Size([2, 3]),
        "device": [torch.device("cpu"), torch.device("cuda", 1)],
        "dtype": torch.bfloat16,
        "layout": torch.strided,
    }


def arrays():
    """NumPy's arrays and numbers, and more that PyTorch reads with weights_only=False alone."""
    return {
        "array": np.arange(6, dtype=np.float32).reshape(2, 3),
        "turned": np.arange(6).reshape(2, 3).T,
        "empty": np.zeros((0, 2)),
        "state": ("MT19937", np.arange(5, dtype=np.uint32), 3),
        "numbers": [np.float64(0.1), np.int32(-3), np.bool_(True), np.complex64(1 + 2j)],
        "dtype": np.dtype("int16"),
        "frozen": frozenset([1, 2]),
        "default": collections.defaultdict(list, a=[1]),
        "nothing": b"",
    }


def all_objects(torch):
    return {kind.__name__: kind(torch) for kind in (views, lone_views, tensors, containers)}


# ---- modules

ARGUMENTS = {
    "AdaptiveLogSoftmaxWithLoss": ((4, 5, [2]), {"div_value": 2.0}),
    "Bilinear": ((1, 2, 2), {}),
    "Embedding": ((3, 2), {}),
    "EmbeddingBag": ((3, 2), {}),
    "GRU": ((1, 2), {"num_layers": 2, "bidirectional": True}),
    "GRUCell": ((1, 2), {}),
    "GroupNorm": ((1, 2), {}),
    "LSTM": ((1, 2), {"proj_size": 1}),
    "LSTMCell": ((1, 2), {}),
    "LayerNorm": ((2,), {}),
    "Linear": ((2, 3), {}),
    "LinearCrossEntropyLoss": ((2, 3), {}),
    "MultiheadAttention": ((2, 1), {"kdim": 1, "vdim": 1, "add_bias_kv": True}),
    "PReLU": ((2,), {}),
    "RMSNorm": ((2,), {}),
    "RNN": ((1, 2), {"bias": False}),
    "RNNBase": (("LSTM", 1, 1), {}),
    "RNNCell": ((1, 2), {}),
    "RNNCellBase": ((1, 2, True, 1), {}),
    "SyncBatchNorm": ((2,), {}),
    "Transformer": ((2, 2, 1, 1, 2), {"batch_first": True}),
    "TransformerDecoderLayer": ((2, 1, 2), {}),
    "TransformerEncoderLayer": ((2, 1, 2), {"bias": False}),
    "Threshold": ((0.0, 1.0), {}),
    "Unflatten": ((1, (1, 2)), {}),
    "FractionalMaxPool2d": ((1,), {"output_size": 1}),
    "FractionalMaxPool3d": ((1,), {"output_size": 1}),
    "Fold": ((1, 1), {}),
    **{f"ConstantPad{n}d": ((1, 0.0), {}) for n in (1, 2, 3)},
    **{f"BatchNorm{n}d": ((2,), {}) for n in (1, 2, 3)},
    **{f"InstanceNorm{n}d": ((2, 1e-5, 0.1, True, True), {}) for n in (1, 2, 3)},
    **{f"Conv{n}d": ((2, 2, 2), {"groups": 2}) for n in (1, 2, 3)},
    **{f"ConvTranspose{n}d": ((1, 2, 1), {"bias": n < 3}) for n in (1, 2, 3)},
    **{f"LPPool{n}d": ((1, 1), {}) for n in (1, 2, 3)},
    **{
        f"{kind}{n}d": ((1,), {})
        for kind in ("AdaptiveAvgPool", "AdaptiveMaxPool", "AvgPool", "MaxPool", "MaxUnpool")
        for n in (1, 2, 3)
    },
    **{
        f"{kind}Pad{n}d": ((1,), {})
        for kind in ("Circular", "Reflection", "Replication", "Zero")
        for n in (1, 2, 3)
    },
    **dict.fromkeys(
        ("ChannelShuffle", "LocalResponseNorm", "PixelShuffle", "PixelUnshuffle", "Unfold"),
        ((1,), {}),
    ),
}

# without state before their first call, and then of another class
LAZY = "Lazy"

# those that jaxgrad does not have, and the base of all
LEFT_OUT = ("Container", "CrossMapLRN2d", "DataParallel", "Module", "NLLLoss2d")


def module_names(torch):
    """The classes of torch.nn that have a state of their own."""
    members = [getattr(torch.nn, name) for name in sorted(dir(torch.nn))]
    kinds = [
        kind for kind in members if isinstance(kind, type) and issubclass(kind, torch.nn.Module)
    ]
    names = {kind.__name__ for kind in kinds if not kind.__name__.startswith(LAZY)}
    return sorted(names - {*LEFT_OUT})


def module(torch, name):
    """A small module of this class."""
    if name in ("ModuleDict", "ParameterDict"):
        parts = {"a": torch.nn.Linear(1, 1), "b": torch.nn.Identity()}
        parts = parts if name == "ModuleDict" else {"a": torch.nn.Parameter(torch.ones(2))}
        return getattr(torch.nn, name)(parts)
    if name in ("ModuleList", "Sequential"):
        layers = [torch.nn.Linear(1, 2), torch.nn.BatchNorm1d(2)]
        return torch.nn.ModuleList(layers) if name == "ModuleList" else torch.nn.Sequential(*layers)
    if name == "ParameterList":
        return torch.nn.ParameterList([torch.ones(2), torch.ones(1, 1)])
    if name in ("TransformerDecoder", "TransformerEncoder"):
        layer = getattr(torch.nn, f"{name}Layer")(2, 2, 2, batch_first=True)
        return getattr(torch.nn, name)(layer, 2)
    arguments, options = ARGUMENTS.get(name, ((), {}))
    return getattr(torch.nn, name)(*arguments, **options)


def number(key: int, element: int, dtype) -> float:
    """The value of an element of the tensor at a position of a state dict."""
    return key + 1 + element / 64 if "float" in str(dtype) else key + element


def numbered(torch, module):
    """A module whose state has the values of `number`."""
    with torch.no_grad():
        for key, tensor in enumerate(module.state_dict().values()):
            values = [number(key, i, tensor.dtype) for i in range(tensor.numel())]
            tensor.copy_(torch.tensor(values, dtype=tensor.dtype).reshape(tensor.shape))
    return module


# ---- optimizers

OPTIMIZERS = {
    "ASGD": {},
    "Adadelta": {},
    "Adafactor": {},
    "Adagrad": {},
    "Adam": {"amsgrad": True},
    "AdamW": {},
    "Adamax": {},
    "LBFGS": {},
    "NAdam": {},
    "RAdam": {},
    "RMSprop": {"momentum": 0.9},
    "Rprop": {},
    "SGD": {"momentum": 0.9, "weight_decay": 0.1},
}


class Training:
    """A small model with an optimizer and a scheduler."""

    def __init__(self, torch, name):
        self.torch, self.model = torch, numbered(torch, torch.nn.Linear(2, 1))
        kind = getattr(torch.optim, name)
        self.optimizer = kind(self.model.parameters(), lr=0.1, **OPTIMIZERS[name])
        self.scheduler = torch.optim.lr_scheduler.MultiStepLR(self.optimizer, [1, 3], gamma=0.5)

    def run(self, steps):
        x = self.torch.tensor([[1.0, -2.0], [0.5, 3.0]])

        def loss():
            self.optimizer.zero_grad()
            mean = (self.model(x) ** 2).mean()
            mean.backward()
            return mean

        for _ in range(steps):
            self.optimizer.step(loss)
            self.scheduler.step()
        return self

    def state(self):
        parts = {name: getattr(self, name) for name in ("model", "optimizer", "scheduler")}
        return {name: part.state_dict() for name, part in parts.items()} | {"epoch": 3}

    def load(self, state):
        for name in ("model", "optimizer", "scheduler"):
            getattr(self, name).load_state_dict(state[name])
        return self

    def weights(self):
        return [weight.tolist() for weight in self.model.parameters()]


# ---- what an object is


class Description:
    """Says what an object is in plain text, which does not depend on the library.

    Tensors of one memory have one number, and so have uses of one object.
    """

    def __init__(self, torch):
        self.torch, self.memories, self.objects, self.kept = torch, {}, {}, []

    def of(self, value):
        torch = self.torch
        if isinstance(value, torch.Tensor):
            return self.once(value, self.of_tensor)
        if isinstance(value, dict):
            return self.once(value, self.of_dict)
        if isinstance(value, torch.Size):
            return f"Size {list(value)}"
        if isinstance(value, list):
            return self.once(value, lambda values: [self.of(item) for item in values])
        if isinstance(value, tuple):
            return ["tuple", *[self.of(item) for item in value]]
        if isinstance(value, np.ndarray):
            return f"array {value.dtype} {value.shape} {value.tolist()}"
        if isinstance(value, np.generic):
            return f"{value.dtype} {value.item()!r}"
        if isinstance(value, set | frozenset):
            return f"{type(value).__name__} {sorted(value)}"
        return f"{type(value).__name__} {value!r}"

    def once(self, value, describe):
        if id(value) in self.objects:
            return f"object {self.objects[id(value)]}"
        self.objects[id(value)] = len(self.objects)
        self.kept.append(value)
        return describe(value)

    def of_dict(self, value):
        items = [[self.of(key), self.of(item)] for key, item in value.items()]
        description = [type(value).__name__, *items]
        if hasattr(value, "_metadata"):
            description.append(["_metadata", self.of(value._metadata)])
        return description

    def of_tensor(self, value):
        if value.is_sparse:
            parts = self.of(value._indices()), self.of(value._values())
            return ["sparse", f"{list(value.shape)} {value.is_coalesced()}", *parts]
        kind = "Parameter" if isinstance(value, self.torch.nn.Parameter) else "tensor"
        text = f"{kind} {value.dtype} {list(value.shape)} {list(value.stride())}"
        text += " requires grad" if value.requires_grad else ""
        if value.numel():
            address = value.untyped_storage().data_ptr()
            text += f" in {self.memories.setdefault(address, len(self.memories))}"
        return f"{text}: {value.detach().resolve_conj().resolve_neg().tolist()}"


def described(torch, value):
    return Description(torch).of(value)


def kinds(torch) -> dict:
    """Tensors of other kinds than the dense and the sparse ones."""
    data = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    scales, zeros = torch.tensor([0.5, 0.25]), torch.tensor([3, 1])
    return {
        "whole": torch.quantize_per_tensor(data, 0.5, 3, torch.quint8),
        "channels": torch.quantize_per_channel(data, scales, zeros, 1, torch.qint8),
        "nested": torch.nested.nested_tensor([torch.ones(2, 1), data[:, :1] * 2, data]),
        "masked": torch.masked.masked_tensor(data, data > 1.5, requires_grad=True),
    }


def jagged(torch):
    """A jagged nested tensor that requires grad."""
    parts = [torch.ones(2, 3), torch.arange(12.0).reshape(4, 3)]
    return torch.nested.nested_tensor(parts, layout=torch.jagged, requires_grad=True)
