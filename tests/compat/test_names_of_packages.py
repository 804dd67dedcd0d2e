"""Private names of PyTorch that packages call, and what they do there."""

import typing

import pytest

import jaxgrad as torch


def test_hooks_of_loading_get_the_module_where_they_ask_for_it():
    layer, seen = torch.nn.Linear(1, 1), []
    first = layer._register_load_state_dict_pre_hook(lambda *args: seen.append(args))
    layer._register_load_state_dict_pre_hook(lambda *args: seen.append(args), with_module=True)
    layer.load_state_dict(layer.state_dict())
    plain, with_module = seen
    assert len(plain) == 7 and with_module[0] is layer and plain[1] == with_module[2] == ""
    first.remove()
    layer.load_state_dict(layer.state_dict())
    assert len(seen) == 3


def test_the_modules_of_layers_list_what_they_define():
    names = vars(torch.nn.modules.activation)
    assert names["ReLU"] is torch.nn.ReLU and names["GELU"] is torch.nn.GELU
    assert torch.nn.modules.activation is torch.nn.modules.activation
    module = torch.nn.modules.module
    assert module.Module is torch.nn.Module and not module._has_any_global_hook()
    assert len(module._global_forward_hooks) == 0


@pytest.mark.parametrize(
    ("arguments", "options", "expected"),
    [
        (("cpu",), {}, (torch.device("cpu"), None, False, None)),
        ((torch.float64,), {}, (None, torch.float64, False, None)),
        (("cpu", torch.float16, True), {}, (torch.device("cpu"), torch.float16, True, None)),
        ((), {"dtype": torch.half, "non_blocking": True}, (None, torch.float16, True, None)),
        (
            (torch.ones(1),),
            {"memory_format": torch.channels_last},
            (torch.device("cpu"), torch.float32, False, torch.channels_last),
        ),
    ],
)
def test_parsed_arguments_of_to(arguments, options, expected):
    """PyTorch gives these for the same arguments."""
    assert torch._C._nn._parse_to(*arguments, **options) == expected


def test_out_that_is_none():
    x = torch.ones(2, 2)
    assert torch.cat([x, x], out=None).shape == (4, 2) and torch.add(x, x, out=None).sum() == 8
    factor, info = torch.linalg.cholesky_ex(x.diag().diag(), out=None)
    assert factor.tolist() == [[1, 0], [0, 1]] and info == 0


def test_a_distribution_of_another_root(monkeypatch):
    kl = torch.distributions.kl
    monkeypatch.setattr(kl, "_KL_REGISTRY", {**kl._KL_REGISTRY})

    class Root:
        pass

    class Point(Root):
        pass

    @kl.register_kl(Root, torch.distributions.Normal)
    def distance(p, q):
        return q.loc

    assert kl.kl_divergence(Point(), torch.distributions.Normal(3.0, 1.0)) == 3
    with pytest.raises(TypeError, match="type_p"):
        kl.register_kl(3, Root)


def test_lists_of_constraints_and_transforms():
    constraints, transforms = torch.distributions.constraints, torch.distributions.transforms
    for module in (constraints, transforms):
        assert all(hasattr(module, name) for name in module.__all__)
    assert {"positive", "simplex", "Constraint"} <= {*constraints.__all__}
    assert "ExpTransform" in transforms.__all__ and "missing_in" not in transforms.__all__
    assert isinstance(transforms.ExpTransform().inv, transforms._InverseTransform)


def test_what_is_asked_of_tensors_and_devices():
    from jaxgrad.utils import _python_dispatch

    class Wrapper(torch.Tensor):
        def __tensor_flatten__(self):
            return [], None

        @staticmethod
        def __tensor_unflatten__(*arguments):
            return None

    asks = _python_dispatch.is_traceable_wrapper_subclass_type
    assert asks(Wrapper) and not asks(torch.Tensor) and not asks(int)
    assert not _python_dispatch.is_traceable_wrapper_subclass(torch.ones(1))
    assert len(torch.cuda.default_generators) == torch.cuda.device_count()
    reduction = torch.distributed.ReduceOp
    assert isinstance(reduction.SUM, reduction.RedOpType) and len(reduction) == 9
    assert torch.backends.cpu.get_cpu_capability() in ("AVX512", "AVX2", "DEFAULT")


def test_methods_of_distributed_tensors_are_theirs():
    from jaxgrad.distributed.tensor import DTensor, Replicate, distribute_tensor

    def shown(tensor):
        names = ("full_tensor", "to_local", "redistribute", "placements", "device_mesh")
        return [name for name in names if hasattr(tensor, name)]

    x = torch.ones(2)
    mesh = torch.distributed.init_device_mesh("cpu", (1,))
    distributed = distribute_tensor(x, mesh, [Replicate()])
    compiled = torch.jit(lambda x: len(shown(x * 2)))
    assert (
        shown(x) == shown(torch.Tensor) == []
        and len(shown(DTensor)) == len(shown(distributed)) == 5
    )
    assert compiled(x) == 0 and len(shown(torch.jit(lambda x: x * 2)(distributed))) == 5
    with pytest.raises(AttributeError, match="it is no DTensor"):
        x.to_local()


def test_annotations_of_layers_are_read_by_programs_that_lack_their_names():
    values = [getattr(torch.nn, name) for name in dir(torch.nn)]
    layers = [value for value in values if isinstance(value, type)]
    assert torch.nn.CrossEntropyLoss in layers
    for layer in layers:
        typing.get_type_hints(layer, globalns={}, localns={})


def test_a_parameter_is_made_anew_by_its_type():
    """So accelerate puts the parameters of a new model on the device meta."""
    weight = torch.nn.Linear(2, 3).weight
    for flag in (True, False):
        empty = type(weight)(weight.to("meta"), requires_grad=flag)
        assert isinstance(empty, torch.nn.Parameter) and empty.requires_grad is flag
        assert empty.device.type == "meta" and empty.shape == (3, 2)
    with pytest.raises(TypeError, match="requires_grad"):
        torch.Tensor(2, requires_grad=True)


def test_no_override_sees_that_a_tensor_takes_another_class():
    """fastai leaves its class by `as_subclass(Tensor)` in its own `clone`."""
    calls = []

    class Noted(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            calls.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs)

    tensor = torch.ones(2).as_subclass(Noted)
    assert type(tensor) is Noted and type(tensor.as_subclass(torch.Tensor)) is torch.Tensor
    assert calls == []


def test_iterators_of_batches_take_loaders_of_packages():
    """fastai gives them a class of its own, with the attributes that PyTorch's iterators read."""
    kinds = torch.utils.data.dataloader._DatasetKind

    class Loader:
        _IterableDataset_len_called = generator = worker_init_fn = None
        _auto_collation = drop_last = pin_memory = False
        in_order, num_workers, timeout, prefetch_factor = True, 0, 0, 2
        _dataset_kind, _index_sampler = kinds.Iterable, range(10)

        def __init__(self):
            self.dataset = self

        def collate_fn(self, batch):
            return batch

        def __iter__(self):
            return iter("abc")

    batches = torch.utils.data.dataloader._SingleProcessDataLoaderIter(Loader())
    assert list(batches) == ["a", "b", "c"]


def test_tensors_in_groups_by_type_and_size():
    """PyTorch gives these groups."""
    ones = torch.ones
    tensors = [
        *(ones(2), ones(3, dtype=torch.int64), ones(1), ones(5), ones(4, dtype=torch.int64)),
        *(ones(0), ones(2, 2).to_sparse(), ones(1)),
    ]
    groups = [[tuple(t.shape) for t in group] for group in torch._utils._take_tensors(tensors, 12)]
    assert groups == [[(2,), (1,)], [(3,)], [(5,)], [(0,), (1,)], [(4,)], [(2, 2)]]


def test_names_of_formulas_of_distributions():
    distributions = torch.distributions
    precision = torch.tensor([[2.0, 0.5], [0.5, 1.0]])
    factor = distributions.multivariate_normal._precision_to_scale_tril(precision)
    torch.testing.assert_close(factor @ factor.mT @ precision, torch.eye(2))
    assert torch.equal(factor, factor.tril())
    clipped = distributions.transforms._clipped_sigmoid(torch.tensor([-200.0, 0.0, 200.0]))
    assert clipped.tolist() == [1.1754943508222875e-38, 0.5, 0.9999998807907104]


def test_modules_of_devices():
    assert torch._utils._get_device_module("cuda") is torch.cuda
    with pytest.raises(RuntimeError, match="does not have a corresponding module"):
        torch._utils._get_device_module("foo")
    assert torch._C._is_tracing() is False
    with torch.overrides.TorchFunctionMode():
        assert torch._C._is_torch_function_mode_enabled() is True
    assert torch._C._is_torch_function_mode_enabled() is False
