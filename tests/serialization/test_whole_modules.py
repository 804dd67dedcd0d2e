"""Whole modules, optimizers, tensors of any class and storages in files: the names and attributes
are PyTorch's, so that either reads the files of the other (tests/oracle/live_files.py has both).
"""

import copy
import io
import mmap
import pickle
import warnings

import numpy as np
import pytest

import jaxgrad as torch

nn, serialization = torch.nn, torch.serialization
OLD = {"_use_new_zipfile_serialization": False}
FORMATS = pytest.mark.parametrize("form", [{}, OLD, {"pickle_protocol": 4}], ids=["", "old", "4"])


def written(value, **options):
    file = io.BytesIO()
    torch.save(value, file, **options)
    file.seek(0)
    return file


def reread(value, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the module pickle reads it
        return torch.load(written(value, **options), weights_only=False)


def plus_one(module, arguments, output):
    return output + 1


def double_gradient(module, of_inputs, of_outputs):
    return tuple(gradient * 2 for gradient in of_inputs)


# ---- modules


def test_names_in_files_are_those_of_pytorch():
    net = nn.Sequential(nn.Linear(1, 1), nn.ReLU())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    names = serialization.get_unsafe_globals_in_checkpoint(written([net, optimizer]))
    assert sorted(names) == [  # PyTorch's list for the same objects
        "torch.nn.modules.activation.ReLU",
        "torch.nn.modules.container.Sequential",
        "torch.nn.modules.linear.Linear",
        "torch.optim.sgd.SGD",
    ]
    assert serialization.get_unsafe_globals_in_checkpoint(written(net.state_dict(), **OLD)) == []


class WithoutCache(nn.Module):
    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if name != "cache"}


def observed():
    layer = nn.Identity()
    layer.register_state_dict_post_hook(mark_state)
    return layer


def mark_state(module, state, prefix, metadata):
    state["mark"] = 1


def spectral():
    return nn.utils.spectral_norm(nn.Linear(1, 1))


def weighted():
    return nn.utils.weight_norm(nn.Linear(1, 1))


def annealed():
    return torch.optim.swa_utils.SWALR(torch.optim.SGD([torch.ones(1)]), 0.5)


LINEAR = "torch.nn.modules.linear.Linear"
SPECTRAL = "torch.nn.utils.spectral_norm.SpectralNorm"
# by what makes an object: PyTorch's names for it
NAMES = {
    weighted: [LINEAR, "torch.nn.utils.weight_norm.WeightNorm"],
    spectral: [
        *(LINEAR, "torch.nn.modules.module._WrappedHook", SPECTRAL),
        *(f"{SPECTRAL}StateDictHook", f"{SPECTRAL}LoadStateDictPreHook"),
    ],
    WithoutCache: [f"{__name__}.WithoutCache"],
    observed: ["torch.nn.modules.linear.Identity", f"{__name__}.mark_state"],
    lambda: torch.amp.GradScaler("cpu"): [
        *("collections.defaultdict", "torch.amp.grad_scaler.GradScaler"),
        "torch.amp.grad_scaler._refresh_per_optimizer_state",
    ],
    annealed: ["builtins.getattr", "torch.optim.sgd.SGD", "torch.optim.swa_utils.SWALR"],
    lambda: torch.eye(2).max(0): ["torch.return_types.max"],
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", NAMES)
def test_names_of_parts_are_those_of_pytorch(make):
    value = make()
    names = set(serialization.get_unsafe_globals_in_checkpoint(written(value)))
    # jaxgrad needs no permission for the first, and no wrapper
    not_here = {"collections.defaultdict", "torch.nn.modules.module._WrappedHook"}
    assert names == {*NAMES[make]} - not_here
    for read in (reread(value), pickle.loads(pickle.dumps(value))):
        assert type(read) is type(value)
        if isinstance(value, nn.Module):
            assert {*read.state_dict()} == {*value.state_dict()}


def test_results_are_made_of_a_sequence():
    kind = torch.return_types.max
    for results in (kind((1, 2)), kind([1, 2], {}), kind(1, 2)):
        assert results == (1, 2) and results.indices == 2
    with pytest.raises(TypeError, match=r"max\(\) takes a 2-sequence \(3-sequence given\)"):
        kind((1, 2, 3))


def test_a_scaler_between_steps():
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))])
    scaler.scale(optimizer.param_groups[0]["params"][0]).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(AssertionError, match="may only be pickled at the beginning"):
        pickle.dumps(scaler)
    scaler.step(optimizer)
    scaler.update(8.0)
    assert copy.deepcopy(scaler).get_scale() == 8


def test_hooks_of_state_dicts_return_nothing():
    layer = nn.Identity()
    layer.register_state_dict_post_hook(lambda *arguments: {})
    with pytest.raises(RuntimeError, match="state_dict post-hook must return None"):
        layer.state_dict()
    with pytest.raises(RuntimeError, match="Cannot register the same function as the state dict"):
        layer._register_state_dict_hook(observed()._state_dict_hooks.popitem()[1])


def test_arrays_and_scalars_of_numpy_keep_order_and_type():
    value = [np.arange(6.0).reshape(2, 3).T, np.datetime64("2020-01-01"), np.longdouble(1.5)]
    read = reread(value)
    assert read[0].strides == (8, 24) and read[0].tolist() == value[0].tolist()
    assert [type(part) for part in read] == [type(part) for part in value] and read[1:] == value[1:]


@FORMATS
def test_hooks_and_modes_of_modules(form):
    layer = nn.Linear(1, 1, bias=False).eval()
    nn.init.ones_(layer.weight)
    layer.register_forward_hook(plus_one)
    layer.register_full_backward_hook(double_gradient)
    for again in (reread(layer, **form), pickle.loads(pickle.dumps(layer)), copy.deepcopy(layer)):
        x = torch.tensor([2.0], requires_grad=True)
        y = again(x)
        y.backward()
        assert (y.item(), x.grad.item(), again.training) == (3.0, 2.0, False)
        again.register_forward_pre_hook(lambda module, arguments: (arguments[0] * 10,))
        assert again(x).item() == 21 and layer(x).item() == 3


def test_state_of_a_module_is_in_the_form_of_pytorch():
    layer = nn.Conv2d(1, 2, 3, padding=1)
    layer.register_forward_hook(plus_one, with_kwargs=True)
    state = layer.__getstate__()
    ((number, hook),) = state["_forward_hooks"].items()
    assert hook is plus_one and state["_forward_hooks_with_kwargs"] == {number: True}
    assert state["_is_full_backward_hook"] is None
    assert state["_reversed_padding_repeated_twice"] == [1, 1, 1, 1]
    assert not state["transposed"] and "_changes" not in state


def test_a_backward_hook_of_the_old_kind():
    layer = nn.Linear(1, 1)
    layer.register_backward_hook(double_gradient)
    state = layer.__getstate__()
    assert [*state["_backward_hooks"].values()] == [double_gradient]
    assert state["_is_full_backward_hook"] is False and not state["_forward_hooks"]
    again = nn.Linear(1, 1)
    again.__setstate__(state)
    assert again.__getstate__()["_is_full_backward_hook"] is False
    with pytest.raises(RuntimeError, match="both regular backward hooks and full backward hooks"):
        again.register_full_backward_hook(double_gradient)
    full = nn.Linear(1, 1)
    full.register_full_backward_hook(double_gradient)
    with pytest.raises(RuntimeError, match="both regular backward hooks and full backward hooks"):
        full.register_backward_hook(double_gradient)


class Kept(nn.Module):
    """Sets its own state, as programs of PyTorch do."""

    def __init__(self):
        super().__init__()
        self.layer, self.handle = nn.Linear(2, 2), open

    def __getstate__(self):
        state = self.__dict__.copy()
        del state["handle"]
        return state

    def __setstate__(self, state):
        super().__setstate__(state)
        self.handle = "opened again"

    def forward(self, x):
        return self.layer(x)


def test_a_module_that_keeps_a_part_of_its_state():
    module = Kept()
    for again in (reread(module), pickle.loads(pickle.dumps(module))):
        assert again.handle == "opened again"
        x = torch.ones(2)
        assert torch.equal(again(x), module(x))
        step = torch.jit(again)
        before = step(x)
        again.layer.register_forward_hook(plus_one)
        torch.testing.assert_close(step(x), before + 1)


def test_a_module_is_read_where_its_classes_are_allowed():
    file = written(nn.Linear(2, 1))
    with pytest.raises(serialization.RefusedFile, match=r"GLOBAL torch\.nn\.modules\.linear"):
        torch.load(file)
    file.seek(0)
    with serialization.safe_globals([nn.Linear]):
        assert str(torch.load(file)) == "Linear(in_features=2, out_features=1, bias=True)"


@pytest.mark.parametrize("form", [{}, OLD], ids=["", "old"])
@pytest.mark.parametrize(
    ("make", "shape", "name"),
    [
        (lambda: nn.LazyLinear(3), (2, 4), "Linear"),
        (lambda: nn.LazyConv1d(3, 2).double(), (1, 2, 5), "Conv1d"),
        (lambda: nn.LazyBatchNorm1d(), (3, 2), "BatchNorm1d"),
    ],
)
def test_lazy_modules(make, shape, name, form):
    state = reread(make()).state_dict()
    for again in (reread(make(), **form), pickle.loads(pickle.dumps(make())), make()):
        again.load_state_dict(state)
        dtype = again.weight.dtype
        assert again.has_uninitialized_params() and dtype is make().weight.dtype
        again(torch.ones(shape, dtype=dtype))
        assert type(again).__name__ == name and not again._forward_pre_hooks
        assert type(reread(again)).__name__ == name


def test_memory_of_lazy_parameters():
    with pytest.raises(RuntimeError, match="share memory on an uninitialized parameter"):
        nn.LazyLinear(2).share_memory()
    for name in ("numel", "item", "tolist"):
        with pytest.raises(ValueError, match="uninitialized parameter"):
            getattr(nn.LazyLinear(2).weight, name)()
    weight = nn.UninitializedParameter()
    assert weight.cpu() is weight.float() is weight.to("cpu") is weight
    assert weight.to(torch.float64).dtype is weight.double().dtype is torch.float64
    assert weight.half().shape == (0,) and weight.dtype is torch.float32
    assert isinstance(weight, nn.UninitializedParameter)


def test_schedulers():
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)
    for mode, rates in (  # PyTorch's
        ("triangular", [0.35, 0.6, 0.35, 0.1]),
        ("triangular2", [0.35, 0.6, 0.35, 0.1]),
        ("exp_range", [0.325, 0.505, 0.28225, 0.1]),
    ):
        scheduler = torch.optim.lr_scheduler.CyclicLR(
            optimizer, 0.1, 0.6, 2, mode=mode, gamma=0.9, cycle_momentum=False
        )
        again = reread(scheduler)
        found_rates = []
        for _ in rates:
            again.optimizer.step()
            again.step()
            found_rates += again.get_last_lr()
        assert found_rates == pytest.approx(rates)


# ---- tensors


class Named(torch.Tensor):
    pass


class Slotted(torch.Tensor):
    __slots__ = ("element",)


class Stated(torch.Tensor):
    def __getstate__(self):
        return {"kept": self.kept}

    def __setstate__(self, state):
        self.kept = state["kept"] + 1


class Reduced(torch.Tensor):
    def __reduce_ex__(self, protocol):
        return remade, (self.as_subclass(torch.Tensor).tolist(),)


def remade(values):
    return torch.tensor(values).as_subclass(Reduced)


def slotted():
    tensor = torch.arange(3.0).as_subclass(Slotted)
    tensor.element, tensor.other = 5, 2
    return tensor


@FORMATS
def test_classes_of_tensors(form):
    stated = torch.ones(2).as_subclass(Stated)
    stated.kept = 1
    value = [torch.ones(2).as_subclass(Named), slotted(), stated, remade([1.0])]
    value[0].label = "first"
    for again in (reread(value, **form), pickle.loads(pickle.dumps(value))):
        assert [*map(type, again)] == [Named, Slotted, Stated, Reduced]
        assert again[0].label == "first" and again[2].kept == 2
        assert (again[1].element, again[1].other) == (5, 2)
        assert again[1].tolist() == [0, 1, 2] and again[3].tolist() == [1]
    with serialization.safe_globals([Slotted]):
        safe = torch.load(written(slotted(), **form))
        assert type(safe) is Slotted and safe.element == 5


def test_copies_of_tensors_with_slots():
    for again in (copy.copy(slotted()), copy.deepcopy(slotted())):
        assert type(again) is Slotted and (again.element, again.other) == (5, 2)
    tensor = slotted()
    assert copy.deepcopy([tensor, tensor])[0].element == 5
    (2 * tensor).sum()
    leaf = torch.ones(3, requires_grad=True)
    (leaf.as_subclass(Slotted) * 2).sum().backward()
    assert leaf.grad.tolist() == [2, 2, 2]


@pytest.mark.parametrize("only", [True, False])
@FORMATS
def test_attributes_of_tensors(form, only):
    tensor, weight = torch.ones(2), nn.Parameter(torch.ones(1), requires_grad=False)
    tensor.note, weight.note = "a", [1]
    first, second = torch.load(written([tensor, weight], **form), weights_only=only)
    assert (first.note, second.note) == ("a", [1])
    assert isinstance(second, nn.Parameter) and not second.requires_grad
    tensor.sum = "hides a method"
    with pytest.raises(serialization.RefusedFile, match="a tensor has the attribute sum"):
        torch.load(written(tensor, **form))


class Tagged(torch.Tensor):
    pass


@FORMATS
def test_parameters_that_keep_the_class_of_their_data(form):
    module = nn.Module()
    module.weight = nn.Parameter(torch.ones(2).as_subclass(Tagged))
    module.weight.tag = 3
    for read in (reread(module, **form), reread(module.state_dict(keep_vars=True), **form)):
        weight = read.weight if isinstance(read, nn.Module) else read["weight"]
        assert type(weight) is Tagged and isinstance(weight, nn.Parameter)
        assert weight.requires_grad and weight.tag == 3 and weight._is_param is True
    with serialization.safe_globals([Tagged]):
        assert isinstance(torch.load(written(module.weight, **form)), nn.Parameter)


def test_a_tensor_with_the_mark_of_PyTorch_is_a_parameter():
    tensor, module = torch.ones(2), nn.Module()
    tensor._is_param = True
    module.weight = tensor
    assert isinstance(tensor, nn.Parameter) and not isinstance(tensor, nn.Buffer)
    assert [*module.parameters()] == [tensor]
    assert not isinstance(tensor, nn.UninitializedParameter)


def test_parameters_without_data():
    value = nn.Parameter(torch.empty(3, 2, device="meta").t(), requires_grad=False)
    for options in ({}, OLD):
        read = torch.load(written(value, **options))
        assert type(read) is nn.Parameter and read.is_meta and not read.requires_grad
        assert (read.shape, read.stride()) == ((2, 3), (1, 2))


def test_tensors_without_data():
    again = torch.load(written(torch.empty(2, 3, device="meta")))
    assert again.is_meta and again.shape == (2, 3) and again.stride() == (3, 1)
    for target in ("meta", {"cpu": "meta"}):
        assert torch.load(written(torch.ones(2)), map_location=target).is_meta


@FORMATS
def test_half_complex_tensors(form):
    x = torch.tensor([[1 + 2j, 3.5], [0, 0.1j]]).to(torch.complex32)
    for tensor in (x, x.t(), x[1:], x[0, 0]):
        again = torch.load(written(tensor, **form))
        assert again.dtype is torch.complex32 and again.tolist() == tensor.tolist()


def test_tensors_that_no_file_holds():
    class Kind(torch.Tensor):
        pass

    tensor = torch.ones(2).as_subclass(Kind)
    Kind.__module__ = "jaxgrad.kinds"
    with pytest.raises(TypeError, match=r"obj\[0\] is of type .*Kind: no file holds"):
        torch.save([tensor], io.BytesIO())


# ---- storages, and what is chosen of files


@FORMATS
def test_storages(form):
    x = torch.arange(6.0).reshape(2, 3)
    again, row, storage = torch.load(written([x, x[1], x.storage()], **form))
    assert storage.tolist() == [0, 1, 2, 3, 4, 5] and storage.dtype is torch.float32
    row.fill_(9)
    assert again[1].tolist() == [9, 9, 9] and storage.tolist() == [0, 1, 2, 9, 9, 9]
    assert storage.data_ptr() == again.data_ptr()
    small = torch.tensor([1, 2], dtype=torch.uint16)
    assert torch.load(written(small, **form)).tolist() == [1, 2]
    assert torch.load(written(small.untyped_storage())).tolist() == [1, 0, 2, 0]
    with pytest.raises(RuntimeError, match="view the same data as different types"):
        torch.save([x, x.untyped_storage()], io.BytesIO(), **form)


def test_several_files_in_one_stream():
    file = io.BytesIO(b"front")
    file.seek(5)
    torch.save(torch.ones(1), file, **OLD)
    torch.save([torch.zeros(1)], file, **OLD)
    file.seek(5)
    assert torch.load(file).tolist() == [1] and torch.load(file)[0].tolist() == [0]


class Recorder:
    """A file with the methods that it is asked for alone."""

    def __init__(self, data):
        self.file, self.calls = io.BytesIO(data), set()

    def __getattr__(self, name):
        if name not in ("read", "readinto", "seek", "tell"):
            raise AttributeError(name)
        self.calls.add(name)
        return getattr(self.file, name)


def test_files_are_read_into_memory():
    for form in ({}, OLD):
        file = Recorder(written(torch.ones(3), **form).getvalue())
        assert torch.load(file).tolist() == [1, 1, 1] and "readinto" in file.calls


def test_settings(tmp_path):
    config = torch.utils.serialization.config
    path = tmp_path / "x"
    with serialization.skip_data():
        torch.save(torch.ones(3), path)
    assert torch.load(path).tolist() == [0, 0, 0]
    serialization.set_crc32_options(False)
    try:
        torch.save(torch.ones(3), path)
        assert not config.save.compute_crc32 and torch.load(path).tolist() == [1, 1, 1]
    finally:
        serialization.set_crc32_options(True)
    with config.patch({"load.mmap": True}), pytest.raises(ValueError, match="the mmap argument"):
        torch.load(io.BytesIO(path.read_bytes()))
    with (
        pytest.raises(AttributeError, match=r"load\.none does not exist"),
        config.patch("load.none"),
    ):
        pass
    big = serialization.LoadEndianness.BIG
    serialization.set_default_load_endianness(big)
    try:
        with_order = written(torch.ones(1, dtype=torch.int16))
        without = written(torch.ones(1, dtype=torch.int16), _disable_byteorder_record=True)
        assert torch.load(with_order).item() == 1 and torch.load(without).item() == 256
        assert serialization.get_default_load_endianness() is big
    finally:
        serialization.set_default_load_endianness(None)
    with pytest.raises(TypeError, match="Invalid argument type"):
        serialization.set_default_load_endianness("big")
    assert serialization.get_default_mmap_options() == mmap.MAP_PRIVATE == 2
    with serialization.set_default_mmap_options(mmap.MAP_SHARED):
        assert serialization.get_default_mmap_options() == 1
    assert serialization.get_default_mmap_options() == 2
    with pytest.raises(ValueError, match="pickle protocol must be <= 5"):
        torch.save(1, path, pickle_protocol=6)


def test_kinds_of_archives(tmp_path):
    for form, is_archive in (({}, True), (OLD, False)):
        file = written([1], **form)
        assert serialization._is_zipfile(file) is is_archive and file.tell() == 0


class Wrapper(torch.Tensor):
    """A tensor without data that holds another one."""

    __slots__ = ("element",)

    @staticmethod
    def __new__(cls, element):
        tensor = torch.Tensor._make_subclass(cls, element.to("meta"), element.requires_grad)
        tensor.element = element
        return tensor


@FORMATS
def test_wrappers_without_data(form):
    tensor = Wrapper(torch.arange(2.0))
    tensor.note = "a"
    again = reread(tensor, **form)
    assert type(again) is Wrapper and again.is_meta and again.shape == (2,)
    assert again.element.tolist() == [0, 1] and again.note == "a"


class Early:
    """Pickled as tensors of 2016 were: an empty one, and its memory as its state."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __reduce__(self):
        tensor = self.tensor
        place = tensor.storage_offset(), tuple(tensor.shape), tensor.stride()
        return torch.Tensor, (), (tensor.storage(), *place)


@pytest.mark.parametrize("only", [True, False])
@FORMATS
def test_states_of_early_tensors(form, only):
    tensor = torch.arange(30.0).as_strided((2, 3), (9, 3), 2)
    again = torch.load(written(Early(tensor), **form), weights_only=only)
    assert again.tolist() == [[2, 5, 8], [11, 14, 17]] and again.stride() == (9, 3)
