"""torch.nn.parallel on one device, and what programs take from torch.nn.modules."""

import collections

import pytest
from helpers.as_torch import as_torch, error

import jaxgrad
from jaxgrad import nn

# the private base classes of layers in PyTorch, by module
BASES = {
    "activation": {"Module": "ReLU GELU Softmax MultiheadAttention"},
    "adaptive": {"Module": "AdaptiveLogSoftmaxWithLoss"},
    "batchnorm": {
        "_BatchNorm": "BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm LazyBatchNorm2d",
        "_NormBase": "BatchNorm1d InstanceNorm2d",
        "_LazyNormBase": "LazyBatchNorm1d LazyInstanceNorm3d",
    },
    "container": {"Module": "Sequential ModuleList ModuleDict ParameterList ParameterDict"},
    "conv": {
        "_ConvNd": "Conv1d Conv2d Conv3d ConvTranspose1d LazyConv2d",
        "_ConvTransposeNd": "ConvTranspose1d ConvTranspose2d ConvTranspose3d",
        "_LazyConvXdMixin": "LazyConv1d LazyConvTranspose3d",
    },
    "dropout": {"_DropoutNd": "Dropout Dropout1d Dropout2d Dropout3d AlphaDropout"},
    "instancenorm": {"_InstanceNorm": "InstanceNorm1d InstanceNorm2d LazyInstanceNorm2d"},
    "lazy": {"LazyModuleMixin": "LazyLinear LazyConv1d LazyBatchNorm3d"},
    "loss": {
        "_Loss": "MSELoss L1Loss CTCLoss NLLLoss TripletMarginWithDistanceLoss BCEWithLogitsLoss",
        "_WeightedLoss": "NLLLoss CrossEntropyLoss BCELoss MultiMarginLoss",
    },
    "padding": {
        "_CircularPadNd": "CircularPad1d",
        "_ConstantPadNd": "ConstantPad2d ZeroPad2d",
        "_ReflectionPadNd": "ReflectionPad1d ReflectionPad2d",
        "_ReplicationPadNd": "ReplicationPad3d",
    },
    "pooling": {
        "_AdaptiveAvgPoolNd": "AdaptiveAvgPool1d AdaptiveAvgPool2d",
        "_AdaptiveMaxPoolNd": "AdaptiveMaxPool2d AdaptiveMaxPool3d",
        "_AvgPoolNd": "AvgPool1d AvgPool3d",
        "_LPPoolNd": "LPPool1d",
        "_MaxPoolNd": "MaxPool1d MaxPool2d",
        "_MaxUnpoolNd": "MaxUnpool2d",
    },
    "rnn": {"RNNBase": "RNN LSTM GRU", "RNNCellBase": "GRUCell LSTMCell"},
}


@as_torch
def test_base_classes_of_layers(torch):
    flags = {}
    for place, bases in BASES.items():
        module = getattr(torch.nn.modules, place)
        for base, names in bases.items():
            classes = [getattr(torch.nn, name) for name in names.split()]
            flags[f"{place}.{base}"] = [issubclass(c, getattr(module, base)) for c in classes]
    # and which are not
    loss, norm = torch.nn.modules.loss, torch.nn.modules.batchnorm
    others = [
        issubclass(torch.nn.MSELoss, loss._WeightedLoss),
        issubclass(torch.nn.InstanceNorm1d, norm._BatchNorm),
    ]
    return flags, others


@as_torch
def test_losses_and_norms_that_programs_derive(torch):
    class Dice(torch.nn.modules.loss._Loss):
        def __init__(self, size_average=None, reduce=None, reduction="mean"):
            super().__init__(size_average, reduce, reduction)

        def forward(self, one, other):
            return (one * other).sum()

    class Focal(torch.nn.modules.loss._WeightedLoss):
        def forward(self, x):
            return (x * self.weight).sum()

    class Norm(torch.nn.modules.batchnorm._BatchNorm):
        def _check_input_dim(self, input):
            return

    x = torch.ones(2, 3, dtype=torch.float64)
    focal = Focal(torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64), reduction="sum")
    norm = Norm(2).double()
    return [
        Dice()(x, x),
        Dice().reduction,
        Dice(None, None, "sum").reduction,
        list(focal.state_dict()),
        focal(x),
        focal.reduction,
        norm(torch.arange(4.0, dtype=torch.float64).reshape(2, 2)),
        norm(torch.ones(2, 2, 1, 1, 1, 1, dtype=torch.float64)).shape[1],
        norm.running_mean,
        error(lambda: torch.nn.modules.loss._Loss()(x), words='missing the required "forward"'),
    ]


@as_torch
def test_helpers_of_modules(torch):
    utils, module = torch.nn.modules.utils, torch.nn.modules.module
    state = collections.OrderedDict({"module.a": 1, "module.b.c": 2, "step": 3})
    state._metadata = {"": 0, "module": 1, "module.b": 2}
    utils.consume_prefix_in_state_dict_if_present(state, "module.")
    layer = torch.nn.Linear(1, 1)
    keys = layer.load_state_dict({"weight": torch.ones(1, 1), "x": torch.ones(1)}, strict=False)
    return [
        utils._list_with_default([None, 2], [5, 6, 7]),
        error(lambda: utils._list_with_default([1, 2], [3]), words="Input dimension should be at"),
        [utils._single(1), utils._pair(2), utils._triple(3), utils._quadruple(4)],
        utils._reverse_repeat_tuple((1, 2), 2),
        dict(state),
        dict(state._metadata),
        module._addindent("a\nb\n\nc", 2),
        isinstance(keys, module._IncompatibleKeys),
        list(keys.missing_keys),
        keys.unexpected_keys,
        module._EXTRA_STATE_KEY_SUFFIX,
        torch.nn.modules.transformer._get_activation_fn("relu")(torch.tensor(-1.0)),
    ]


@as_torch
def test_data_parallel_is_the_module_on_one_device(torch):
    net = torch.nn.DataParallel(torch.nn.Linear(2, 1).double(), device_ids=[0], dim=0)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.fill_(0.5)
    x = torch.ones(3, 2, dtype=torch.float64)
    other = torch.nn.DataParallel(torch.nn.Linear(2, 1).double())
    other.load_state_dict(net.state_dict())
    net.train(False)
    return [
        list(net.state_dict()),
        list(net.state_dict()._metadata),
        net(x),
        net(input=x),
        other(x),
        type(net.module).__name__,
        net.module.training,
        repr(net),
        torch.nn.parallel.DataParallel is torch.nn.DataParallel,
    ]


def test_data_parallel_calls_the_module():
    x, double = jaxgrad.ones(2), lambda x, by=2: x * by
    assert nn.parallel.data_parallel(double, x, [0]).tolist() == [2, 2]
    assert nn.parallel.data_parallel(double, (x,), module_kwargs={"by": 3}).tolist() == [3, 3]
    assert nn.parallel.replicate(double, [0]) == [double]
    inputs, named = [x, (x * 3, 5)], [{"by": 4}, {}]
    outputs = nn.parallel.parallel_apply([double, double], inputs, named)
    assert [output.tolist() for output in outputs] == [[4, 4], [15, 15]]
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        nn.parallel.parallel_apply([double, double], [x])


def test_scatter_and_gather():
    """As PyTorch does on GPUs: chunks for devices, other values for each, and back."""
    scatter, gather = nn.parallel.scatter, nn.parallel.gather
    Pair = collections.namedtuple("Pair", "x y")
    inputs = {"a": [jaxgrad.arange(5)], "b": Pair(jaxgrad.ones(2, 4), "text")}
    first, second = scatter(inputs, ["cpu", "cpu"])
    assert first["a"][0].tolist() == [0, 1, 2] and second["a"][0].tolist() == [3, 4]
    assert second["b"].x.shape == (1, 4) and second["b"].y == "text"
    assert type(second["b"]) is Pair and scatter([], ["cpu"] * 2) == [[], []]
    assert [part.shape for part in scatter(jaxgrad.ones(2, 4), ["cpu"] * 2, dim=1)] == [(2, 2)] * 2
    joined = gather([{"a": [part["a"][0]], "b": None} for part in (first, second)], "cpu")
    assert joined["a"][0].tolist() == [0, 1, 2, 3, 4] and joined["b"] is None
    assert gather([jaxgrad.tensor(1), jaxgrad.tensor(2)], None).tolist() == [1, 2]
    with pytest.raises(ValueError, match="All dicts must have the same keys"):
        gather([{"a": 1}, {"b": 1}], None)
    leaf = jaxgrad.ones(4, requires_grad=True)
    gather([2 * part for part in scatter(leaf, ["cpu"] * 2)], "cpu").sum().backward()
    assert leaf.grad.tolist() == [2] * 4


def test_processes_that_train_together_need_a_process_group():
    layer = nn.Linear(1, 1)
    with pytest.raises(ValueError, match=r"Default process group has not been initialized"):
        nn.parallel.DistributedDataParallel(layer)
    assert not isinstance(layer, nn.parallel.DistributedDataParallel)
    with pytest.raises(NotImplementedError, match=r"replicate is not provided by jaxgrad"):
        nn.parallel.replicate(layer, [0, 1])
    with pytest.raises(RuntimeError, match="processes cannot share it; send the values"):
        layer.share_memory()
    assert nn.Identity().share_memory() is not None


@as_torch("""
    [True, True, True]
    [[], ['offset'], ['inner']]
    [['weight', 'bias'], ['inner.weight', 'inner.bias']]
    [True, 3, 1]
""")
def test_replica_of_a_module(torch):
    layer = torch.nn.Linear(2, 1)
    layer.inner, layer.known, layer.size = torch.nn.Linear(1, 1), {}, 1
    layer.register_buffer("offset", torch.zeros(1))
    replica = layer._replicate_for_data_parallel()
    replica.size = 3
    del replica._modules["inner"], replica._buffers["offset"]
    again = layer._replicate_for_data_parallel()
    return (
        [type(replica) is type(layer), replica.known is layer.known, again.inner is layer.inner],
        [list(again._parameters), list(again._buffers), list(again._modules)],
        [list(layer._parameters), [name for name, _ in again.named_parameters()]],
        [replica._is_replica, replica.size, layer.size],
    )
