"""Objects of any class in files of PyTorch's format: modules, optimizers, what programs define.

Python's own module pickle copies the same objects, which says what they are after a file.
"""

import argparse
import collections
import enum
import io
import pickle
import warnings

import numpy as np
import pytest
from serialization import hostile_files

import jaxgrad as torch
from jaxgrad.serialization import RefusedFile

nn = torch.nn


class Kind(enum.Enum):
    FIRST = 1


class Text(enum.StrEnum):
    EPOCH = "epoch"


class Slots:
    __slots__ = ("limit",)


class ByName:
    def __new__(cls, *, size):
        instance = object.__new__(cls)
        instance.size = size
        return instance

    def __getnewargs_ex__(self):
        return (), {"size": self.size}


class Names(list):
    pass


class Outer:
    class Inner:
        pass


class Counted:
    """Says with which function its state is set."""

    def __reduce__(self):
        return Counted, (), {"count": 3}, None, None, set_state


def set_state(target, state):
    target.__dict__.update(state, was_set=True)


Pair = collections.namedtuple("Pair", "first second")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Tanh())
        self.again, self.options = self.layers, argparse.Namespace(rate=0.1)

    def forward(self, x):
        return self.layers(x)


def reread(value, **options):
    file = io.BytesIO()
    torch.save(value, file, **options)
    file.seek(0)
    with pytest.warns(UserWarning, match="which runs what a file names") as noted:
        result = torch.load(file, weights_only=False)
    assert noted[0].filename == __file__
    return result


def test_classes_of_programs():
    slots, names = Slots(), Names(["a", "b"])
    slots.limit, names.at = 5, 1
    value = {
        "slots": slots,
        "names": names,
        "by name": ByName(size=3),
        "inner": Outer.Inner,
        "enumeration": [Kind.FIRST, Text.EPOCH],
        Kind.FIRST: {Kind.FIRST},
        "pair": Pair(1, 2.5),
        "functions": [len, set_state, torch.relu, {"a": 1}.get],
        "range": range(3),
        "counted": Counted(),
        "default": collections.defaultdict(list, a=[1]),
        "array": np.array([None, "x"]),
        "partial": argparse.Namespace(x=torch.arange(3)),
    }
    copy, ours = pickle.loads(pickle.dumps(value)), reread(value)
    assert ours.keys() == copy.keys()
    for name in ("enumeration", Kind.FIRST, "pair", "range", "default", "names", "inner"):
        assert ours[name] == copy[name] and type(ours[name]) is type(copy[name]), name
    assert ours["array"].tolist() == [None, "x"]
    assert type(ours["pair"]) is Pair and ours["default"]["b"] == []
    assert ours["names"].at == copy["names"].at == 1 and ours["slots"].limit == 5
    assert ours["by name"].size == 3 and vars(ours["counted"]) == {"count": 3, "was_set": True}
    assert ours["functions"][:3] == copy["functions"][:3] and ours["functions"][3]("a") == 1
    assert ours["partial"].x.tolist() == [0, 1, 2]


def test_one_object_in_many_places():
    row, namespace = torch.zeros(2), argparse.Namespace()
    namespace.itself, namespace.rows = namespace, [row, row[1:]]
    first, second = reread([namespace, namespace])
    assert first is second is first.itself
    first.rows[0].fill_(4)
    assert first.rows[1].tolist() == [4]


def test_a_module_and_its_optimizer_go_on_where_they_were():
    def step(net, optimizer, x):
        optimizer.zero_grad()
        net(x).square().sum().backward()
        optimizer.step()

    torch.manual_seed(0)
    net, x = Net(), torch.randn(4, 2)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    step(net, optimizer, x)
    copy, (ours, its_optimizer) = pickle.loads(pickle.dumps(net)), reread((net, optimizer))
    assert ours.again is ours.layers and ours.options == net.options
    assert its_optimizer.param_groups[0]["params"][0] is ours.layers[0].weight
    for name, value in copy.state_dict().items():
        assert torch.equal(value, ours.state_dict()[name])
    step(net, optimizer, x)
    step(ours, its_optimizer, x)
    for parameter, other in zip(net.parameters(), ours.parameters(), strict=True):
        torch.testing.assert_close(other, parameter, rtol=1e-6, atol=1e-7)
    assert torch.jit(ours)(x).shape == (4, 3)


def test_data_are_read_without_names():
    """Also with weights_only=False, and without a warning."""
    file = io.BytesIO()
    torch.save({"a": torch.ones(2), "b": [1, "x"]}, file, format="pt")
    for weights_only in (True, False):
        file.seek(0)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert torch.load(file, weights_only=weights_only)["b"] == [1, "x"]


def test_objects_are_refused_unless_the_user_asks():
    file = io.BytesIO()
    torch.save(Net(), file)  # no name: what safetensors does not hold has the other format
    file.seek(0)
    with pytest.raises(RefusedFile, match=r"GLOBAL .*Net was not an allowed global"):
        torch.load(file)


def test_what_jaxgrad_has_not():
    """Names of PyTorch in a file: two classes that are here, one that is not."""
    begin = b"\x80\x02c"
    cases = {
        b"torch.optim.adam\nAdam\n.": torch.optim.Adam,
        b"torch.nn.modules.linear\nLinear\n.": nn.Linear,
        b"torch.fx.experimental.symbolic_shapes\nShapeEnv\n.": "which jaxgrad does not provide",
    }
    for code, message in cases.items():
        file = io.BytesIO(hostile_files.archive(begin + code))
        with pytest.warns(UserWarning, match="which runs what a file names"):
            if isinstance(message, type):
                assert torch.load(file, weights_only=False) is message
                continue
            with pytest.raises(RefusedFile, match=message):
                torch.load(file, weights_only=False)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (lambda: 1, r"obj is of type function: Can't pickle it"),
        ({"a": [(i for i in ())]}, r"obj\['a'\]\[0\] is of type generator: cannot pickle"),
    ],
    ids=["function", "generator"],
)
def test_what_no_file_holds(value, message):
    file = io.BytesIO()
    for kind in (TypeError, pickle.PicklingError):
        with pytest.raises(kind, match=message):
            torch.save(value, file)
    assert file.getvalue() == b""


def test_processes_exchange_data_alone():
    distributed, objects = torch.distributed, [None]
    distributed.init_process_group(world_size=1, rank=0)
    try:
        with pytest.raises(TypeError, match=r"a process receives data alone.* a Net, holds more"):
            distributed.all_gather_object(objects, Net())
        distributed.all_gather_object(objects, {"step": 3})
    finally:
        distributed.destroy_process_group()
    assert objects == [{"step": 3}]


def test_objects_without_a_module():
    value = [..., NotImplemented, None, type(None), type(...), type(NotImplemented)]
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    with warnings.catch_warnings(action="ignore"):
        assert torch.load(file, weights_only=False) == value
