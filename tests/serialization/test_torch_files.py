"""Files of PyTorch: what PyTorch 2.13 wrote comes back as PyTorch describes it.

tests/oracle/record_files.py wrote the files in tests/oracle/pt, and tests/oracle/live_files.py lets
PyTorch read what jaxgrad writes.
"""

import argparse
import io
import json
import math
import pickle
import struct
import zipfile
from typing import ClassVar

import numpy as np
import pytest
from helpers import saved_objects
from helpers.answers import load
from helpers.modes import eager
from helpers.saved_objects import FILES, TEXTS, described
from serialization import hostile_files as instructions

import jaxgrad
from jaxgrad.serialization import RefusedFile
from jaxgrad.serialization._archive import ArchiveWriter

RECORDED = load(TEXTS)
OBJECTS = "views", "lone_views", "tensors", "containers"


def as_json(value):
    return json.loads(json.dumps(described(jaxgrad, value)))


def load_bytes(data, **options):
    return jaxgrad.load(io.BytesIO(data), **options)


def loads(code, records=None, **options):
    """The object that instructions make."""
    return load_bytes(instructions.archive(instructions.program(code), records), **options)


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("end", ["", "_old"])
@pytest.mark.parametrize("name", OBJECTS)
def test_objects(name, end, mmap):
    assert as_json(jaxgrad.load(FILES / f"{name}{end}.pt", mmap=mmap)) == RECORDED[name]


def test_the_newest_protocol():
    assert as_json(jaxgrad.load(FILES / "newest_protocol.pt")) == RECORDED["views"]


def test_memory_formats():
    formats = [jaxgrad.channels_last, jaxgrad.preserve_format, jaxgrad.channels_last_3d]
    file = io.BytesIO()
    jaxgrad.save(formats, file)
    assert jaxgrad.load(io.BytesIO(file.getvalue())) == formats
    # as PyTorch's pickles of protocol 4 name it
    code = b"\x80\x04\x8c\x0ctorch._utils\x8c\x13torch.channels_last\x93."
    for safe in (True, False):
        read = load_bytes(instructions.archive(code), weights_only=safe)
        assert read is jaxgrad.channels_last


def test_arrays_of_numpy():
    assert as_json(jaxgrad.load(FILES / "arrays.pt")) == RECORDED["arrays"]


def test_arrays_where_a_program_allows_what_numpy_calls():
    """transformers lists it around `load`."""
    multiarray = np._core.multiarray
    allowed = [multiarray._reconstruct, np.ndarray, np.dtype, np.dtypes.UInt32DType]
    with jaxgrad.serialization.safe_globals(allowed):
        assert as_json(jaxgrad.load(FILES / "arrays.pt")) == RECORDED["arrays"]


@pytest.mark.slow
@pytest.mark.parametrize("end", ["", "_old"])
def test_a_write_to_a_view_is_seen_by_all(end):
    read = jaxgrad.load(FILES / f"views{end}.pt")
    read["whole"][1, 2] = -1
    read["columns"][3, 0] = -2
    with jaxgrad.no_grad():
        read["weight"].mul_(3)
    numbers = np.arange(24.0).reshape(4, 6)
    numbers[1, 2], numbers[3, 1] = -1, -2
    assert read["again"] is read["whole"] and read["whole"].tolist() == numbers.tolist()
    assert read["turned"].tolist() == numbers.T.tolist()
    assert read["columns"].tolist() == numbers[:, 1:3].tolist()
    assert read["reshaped"].tolist() == numbers.reshape(2, 12).tolist()
    windows = np.lib.stride_tricks.as_strided(numbers.reshape(-1)[5:], (3, 4), (16, 8))
    assert read["windows"].tolist() == windows.tolist()
    assert read["weight"] is read["weight again"]
    assert read["values of the weight"].tolist() == [3, 6] and read["weight"].requires_grad
    read["complex"][0, 0] = 5j
    assert read["conjugate"][0, 0].item() == -5j and read["parts of a conjugate"][0].item() == -5j
    first, second = read["parts alone"]
    first[2] = 100
    assert first.tolist() == [2, 3, 100] and second.tolist() == [100, 5, 6, 7]


def test_loaded_tensors_are_leaves():
    read = jaxgrad.load(FILES / "views.pt")
    (read["weight"] * jaxgrad.tensor([2.0, 5.0])).sum().backward()
    assert read["weight"].grad.tolist() == [2, 5]
    assert not any(read[name]._is_view() for name in ("turned", "row", "whole"))


def test_a_loaded_view_is_trained_compiled(tmp_path):
    """The memory of a mapped file is read-only, and programs are given their inputs' memory."""
    path = tmp_path / "model.pt"
    jaxgrad.save({"w": jaxgrad.ones(64, 64)}, path)
    w = jaxgrad.load(path, mmap=True)["w"].requires_grad_()
    optimizer = jaxgrad.optim.SGD([w], lr=0.5)

    @jaxgrad.jit
    def step():
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()

    for _ in range(3):
        step()
    assert w.tolist() == [[0.0] * 64] * 64 and jaxgrad.load(path)["w"].sum().item() == 64 * 64


@pytest.mark.slow
@pytest.mark.parametrize("end", ["", "_old"])
def test_every_module(end):
    """The values are those of a formula, which is not jaxgrad's."""
    states = jaxgrad.load(FILES / f"modules{end}.pt")
    assert list(states) == saved_objects.module_names(jaxgrad)
    for name, state in states.items():
        module = saved_objects.module(jaxgrad, name)
        result = module.load_state_dict(state)
        assert not result.missing_keys and not result.unexpected_keys, name
        for key, tensor in enumerate(module.state_dict().values()):
            wanted = [saved_objects.number(key, i, tensor.dtype) for i in range(tensor.numel())]
            assert tensor.reshape(-1).tolist() == wanted, name


@pytest.mark.slow
@pytest.mark.parametrize("name", saved_objects.OPTIMIZERS)
def test_training_goes_on_where_PyTorch_ended(name):
    state = jaxgrad.load(FILES / "training.pt")[name]
    assert state["epoch"] == 3
    resumed = saved_objects.Training(jaxgrad, name).load(state).run(2)
    for weight, wanted in zip(resumed.weights(), RECORDED["weights"][name], strict=True):
        np.testing.assert_allclose(weight, wanted, rtol=2e-5, atol=1e-6)


def test_the_state_of_a_generator_of_PyTorch_is_one_of_jaxgrad():
    state = jaxgrad.load(FILES / "generator.pt")["rng"]
    generator = jaxgrad.Generator().set_state(state)
    # what PyTorch 2.13 draws from it
    numbers = [0.5522564649581909, 0.5288446545600891, 0.2231208086013794]
    assert jaxgrad.rand(3, generator=generator).tolist() == numbers
    assert generator.initial_seed() == 0
    assert generator.set_state(state).get_state().tolist() == state.tolist()


def test_a_generator_is_pickled_as_PyTorch_pickles_it():
    generator = jaxgrad.Generator().manual_seed(3)
    kind, arguments, (seed, offset, state) = generator.__reduce__()
    assert (kind, arguments) == (jaxgrad.Generator, (jaxgrad.device("cpu"),))
    assert (seed, offset, state.shape) == (3, None, (5056,))
    copied = pickle.loads(pickle.dumps(generator))
    # what PyTorch 2.13 draws from the seed 3
    assert jaxgrad.rand(1, generator=copied).item() == pytest.approx(0.004263520240783691, rel=1e-6)


# ---- what jaxgrad writes


@pytest.mark.parametrize("name", OBJECTS)
def test_what_is_saved_comes_back(name):
    value = saved_objects.all_objects(jaxgrad)[name]
    file = io.BytesIO()
    jaxgrad.save(value, file, format="pt")
    file.seek(0)
    assert as_json(jaxgrad.load(file)) == as_json(value)


def test_arrays_of_numpy_come_back():
    held = {"array": np.arange(6.0).reshape(2, 3).T, "empty": np.zeros((0, 2), np.int8)}
    file = io.BytesIO()
    jaxgrad.save(held, file, format="pt")
    file.seek(0)
    result = jaxgrad.load(file)
    for name, array in held.items():
        assert result[name].dtype == array.dtype and result[name].tolist() == array.tolist()


def test_the_archive_is_as_PyTorch_lays_it_out(tmp_path):
    path = tmp_path / "model.pt"
    jaxgrad.save({"a": jaxgrad.arange(100.0), "b": jaxgrad.ones(3, dtype=jaxgrad.bool)}, path)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None  # sums and sizes are right
        names = [entry.filename for entry in archive.infolist()]
        assert archive.read("archive/version") == b"3\n"
        assert archive.read("archive/data/0") == np.arange(100, dtype=np.float32).tobytes()
        for entry in archive.infolist():
            assert entry.compress_type == zipfile.ZIP_STORED
            start = entry.header_offset
            header = path.read_bytes()[start : start + 30]
            begin = start + 30 + sum(struct.unpack("<2H", header[26:]))
            assert begin % 64 == 0 and entry.filename.startswith("archive/")
    assert names[0] == "archive/data.pkl" and "archive/byteorder" in names


def test_equal_objects_make_equal_files():
    first, second = io.BytesIO(), io.BytesIO()
    for file in (first, second):
        jaxgrad.save(saved_objects.views(jaxgrad), file, format="pt")
    assert first.getvalue() == second.getvalue()


def test_names_and_arguments_choose_the_format(tmp_path):
    for name in ("a.pt", "a.pth", "a.ckpt", "a"):
        jaxgrad.save({}, tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(b"PK")
    jaxgrad.save({}, tmp_path / "a.safetensors")
    assert (tmp_path / "a.safetensors").read_bytes().startswith(b"\x78\x00\x00\x00")
    with open(tmp_path / "b.pt", "wb") as file:
        jaxgrad.save({}, file)
    jaxgrad.save({}, tmp_path / "c", format="pt")
    jaxgrad.save({}, tmp_path / "d.pt", format="safetensors")
    for name, begin in (("b.pt", b"PK"), ("c", b"PK"), ("d.pt", b"\x78")):
        assert (tmp_path / name).read_bytes().startswith(begin)
        assert jaxgrad.load(tmp_path / name) == {}


def test_the_arguments_of_torch_save():
    file = io.BytesIO()
    jaxgrad.save(1, file, pickle, 4)
    with pytest.raises(ValueError, match='format is "safetensors" or "pt", not \'zip\''):
        jaxgrad.save(1, file, format="zip")
    with pytest.raises(AttributeError, match="with a 'write' attribute, not int"):
        jaxgrad.save(1, 3)
    with pytest.raises(RuntimeError, match=r"Parent directory .*none does not exist"):
        jaxgrad.save(1, "none/model.pt")


def test_tensors_that_show_one_memory_in_two_dtypes():
    z = jaxgrad.tensor([1 + 2j])
    for form in ("pt", "safetensors"):
        with pytest.raises(RuntimeError, match=r"Cannot save multiple tensors .* Save a clone"):
            jaxgrad.save([z, z.real], io.BytesIO(), format=form)
        file = io.BytesIO()
        jaxgrad.save([z.imag], file, format=form)
        file.seek(0)
        assert jaxgrad.load(file)[0].tolist() == [2]


def test_what_no_archive_holds():
    for value in (lambda: 1, [(x for x in ())]):
        with pytest.raises(TypeError, match=r"save\(\): obj.* is of type"):
            jaxgrad.save(value, io.BytesIO(), format="pt")


def test_a_view_of_a_view_after_a_write():
    x = jaxgrad.zeros(4, 4)
    part = x[1:, 1:]
    part[0].add_(1)
    file = io.BytesIO()
    jaxgrad.save([x, part], file, format="pt")
    file.seek(0)
    first, second = jaxgrad.load(file)
    assert first.tolist() == x.tolist() and second.tolist() == part.tolist()


# ---- the arguments of load


def test_a_file_in_the_order_big_endian():
    """`sys.byteorder` of this file is "big": its numbers are those of a big-endian machine."""
    code = instructions.list_of(
        instructions.tensor(),
        instructions.tensor((2,), (1,), of=instructions.storage("ComplexFloatStorage", "1", 2)),
        instructions.tensor_of_dtype(
            "uint16", (2,), instructions.storage("UntypedStorage", "2", 4, module="torch.storage")
        ),
    )
    records = {
        "byteorder": b"big",
        "data/0": np.arange(6, dtype=">f4").tobytes(),
        "data/1": np.array([1 + 2j, 3], ">c8").tobytes(),
        "data/2": np.array([1, 515], ">u2").tobytes(),
    }
    first, second, third = loads(code, records)
    assert first.tolist() == [[0, 1, 2], [3, 4, 5]] and second.tolist() == [1 + 2j, 3]
    assert third.tolist() == [1, 515]


def test_an_order_of_bytes_that_is_none():
    """A RefusedFile, and a ValueError as in PyTorch."""
    data = instructions.archive(instructions.PLAIN, {"byteorder": b"middle"})
    with pytest.raises(ValueError, match="Unknown endianness type") as caught:
        load_bytes(data)
    assert isinstance(caught.value, RefusedFile)


@pytest.mark.parametrize("root", ["", "archive/", "model/", "a/b/"])
def test_the_names_of_an_archive(root):
    data = instructions.archive(instructions.PLAIN, root=root)
    assert load_bytes(data).shape == (2, 3)


def test_strings_of_Python_2():
    assert loads(b"U\x03abc") == "abc"
    assert loads(b"U\x01\xe9", encoding="latin1") == "é"
    with pytest.raises(RefusedFile, match="a string is not utf-8"):
        loads(b"U\x01\xe9")
    with pytest.raises(ValueError, match="encoding is one of"):
        loads(b"N", encoding="rot13")


def test_old_files_in_one_stream():
    old = (FILES / "containers_old.pt").read_bytes()
    file = io.BytesIO(b"header" + old + old)
    file.seek(6)
    assert as_json(jaxgrad.load(file)) == as_json(jaxgrad.load(file)) == RECORDED["containers"]
    assert not file.read()


def test_kinds_of_files(tmp_path):
    data = (FILES / "views.pt").read_bytes()

    class Pipe:
        """What has `read` alone, as the answer to a request."""

        def __init__(self):
            self.read = io.BytesIO(data).read

    assert as_json(jaxgrad.load(Pipe())) == RECORDED["views"]
    with open(FILES / "views.pt", "rb", buffering=0) as file:
        assert as_json(jaxgrad.load(file)) == RECORDED["views"]
    with open(TEXTS) as file, pytest.raises(TypeError, match="text file"):
        jaxgrad.load(file)
    for kind in (TypeError, AttributeError):
        with pytest.raises(kind, match="'int' object has no attribute 'read'"):
            jaxgrad.load(3)
    with pytest.raises(ValueError, match="f must be a file path in order to use the mmap argument"):
        jaxgrad.load(io.BytesIO(data), mmap=True)
    with pytest.raises(RuntimeError, match="when explicit pickle_module is specified"):
        jaxgrad.load(io.BytesIO(data), pickle_module=pickle, weights_only=True)
    with pytest.warns(UserWarning, match="which runs what a file names"):
        loaded = jaxgrad.load(io.BytesIO(data), pickle_module=pickle)
    assert as_json(loaded) == RECORDED["views"]
    with pytest.raises(EOFError, match="the file is empty"):
        jaxgrad.load(io.BytesIO())
    assert as_json(jaxgrad.load(io.BytesIO(data), weights_only=False)) == RECORDED["views"]


ON_GPU = instructions.tensor(of=instructions.storage(where="cuda:1"))


@pytest.mark.parametrize(
    "location",
    [
        *("cpu", jaxgrad.device("cpu"), {"cuda:1": "cpu"}, {"cuda:1": jaxgrad.device("cpu")}),
        *(lambda storage, location: storage, lambda storage, location: storage.cpu()),
    ],
)
def test_map_location(location):
    read = loads(ON_GPU, map_location=location)
    assert read.device.type == "cpu" and read.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_map_location_gets_what_is_in_the_file():
    asked = []

    def location(storage, where):
        asked.append((storage.nbytes(), where))
        return storage

    small = instructions.storage(key="1", count=2)
    both = instructions.list_of(ON_GPU, instructions.tensor((2,), (1,), of=small))
    loads(both, {"data/1": bytes(8)}, map_location=location)
    assert asked == [(24, "cuda:1"), (8, "cpu")]


@pytest.mark.skipif(jaxgrad.cuda.device_count() > 1, reason="the device of the file exists")
def test_devices_that_are_not_there():
    with pytest.raises(RuntimeError, match=r"Attempting to deserialize object .* map_location="):
        loads(ON_GPU)
    with pytest.raises(RuntimeError, match=r"the device mps, .* map_location="):
        loads(instructions.tensor(of=instructions.storage(where="mps")))
    with pytest.raises(RuntimeError, match=r"tagged with npu\): give map_location"):
        loads(instructions.tensor(of=instructions.storage(where="npu")))


@pytest.mark.slow
def test_nothing_is_compiled(tmp_path, compilations):
    """Of new shapes, in several layouts: JAX is only asked to put arrays on the device."""
    tensors = [jaxgrad.ones(i, 3).t() for i in range(50, 60)]
    jaxgrad.save([*tensors, *(tensor[1:] for tensor in tensors)], tmp_path / "a.pt")
    compilations.clear()
    read = jaxgrad.load(tmp_path / "a.pt")
    assert not compilations
    with eager("compiled"):
        read[0][1].mul_(2).sum().item()
    assert compilations


# ---- what is refused


def test_the_error_is_what_programs_catch():
    data = instructions.archive(instructions.program(instructions.name("os", "system")))
    for kind in (RuntimeError, pickle.UnpicklingError):
        with pytest.raises(kind, match="Weights only load failed"):
            load_bytes(data)


@pytest.mark.parametrize(
    ("module", "name", "advice"),
    [
        (
            "argparse",
            "Namespace",
            r"GLOBAL argparse\.Namespace .*add_safe_globals\(\[Namespace\]\)",
        ),
        ("torch.nn.modules.linear", "Linear", r"add_safe_globals\(\[Linear\]\)"),
        ("torch.optim.adam", "Adam", "weights_only=False reads any file"),
        ("torch._utils", "_rebuild_xla_tensor", "jaxgrad has no such dtype, class or function"),
        ("torch", "set_num_threads", r"GLOBAL torch\.set_num_threads"),
        ("builtins", "eval", r"GLOBAL builtins\.eval"),
        ("os", "system", r"at byte 2 of data\.pkl: .*Nothing of the file was executed"),
    ],
)
def test_names_that_are_refused(module, name, advice):
    with pytest.raises(RefusedFile, match=advice):
        loads(instructions.name(module, name) + b")R")


def test_programs_of_TorchScript_and_tar_files():
    script = instructions.archive(instructions.PLAIN, {"constants.pkl": b"x"})
    with pytest.raises(RefusedFile, match=r"TorchScript archives passed to ``torch\.load``"):
        load_bytes(script)
    with pytest.raises(RefusedFile, match=r"legacy \.tar format"):
        load_bytes(bytes(257) + b"ustar" + bytes(250))


# ---- classes that the user allows


class Options:
    """A class of a user, which tells what of it has run."""

    ran: ClassVar[list[str]] = []

    def __new__(cls, *arguments):
        cls.ran.append("new")
        return super().__new__(cls)

    def __init__(self, *arguments):
        self.ran.append("init")

    def __setstate__(self, state):
        self.ran.append("state")

    def __setattr__(self, name, value):
        self.ran.append("attribute")


def test_an_instance_of_an_allowed_class():
    stored = argparse.Namespace(epochs=3, rates=[0.1, jaxgrad.ones(1)])
    with jaxgrad.serialization.safe_globals([argparse.Namespace]):
        file = io.BytesIO()
        jaxgrad.save(stored, file, format="pt")
        file.seek(0)
        instance = jaxgrad.load(file)
    assert type(instance) is argparse.Namespace and instance.epochs == 3
    assert instance.rates[1].tolist() == [1] and jaxgrad.serialization.get_safe_globals() == []


def test_what_is_allowed_is_called_as_in_PyTorch():
    """Its `weights_only=True` calls an allowed class or function, `__new__` and `__setstate__`."""
    full = instructions.name(__name__, "Options")
    state = b"}" + instructions.text("a") + b"K\x05sb"
    max_of = instructions.call(instructions.name("builtins", "max"), b"K\x03", b"K\x05")
    for code in (full + b")\x81" + state, max_of):
        with pytest.raises(RefusedFile, match="not an allowed global"):
            loads(code)
    with jaxgrad.serialization.safe_globals([(Options, f"{__name__}.Options"), max]):
        Options.ran.clear()
        assert type(loads(full + b")\x81" + state)) is Options
        assert Options.ran == ["new", "state"]
        assert loads(max_of) == 5
        with pytest.raises(RefusedFile):
            loads(full + b"K\x01\x81")


def test_the_list_of_allowed_classes():
    serialization = jaxgrad.serialization
    serialization.add_safe_globals([Options, (argparse.Namespace, "a.B")])
    try:
        assert serialization.get_safe_globals() == [Options, argparse.Namespace]
        with serialization.safe_globals([dict]):
            assert dict in serialization.get_safe_globals()
        assert dict not in serialization.get_safe_globals()
        assert type(loads(instructions.name("a", "B") + b")\x81")) is argparse.Namespace
    finally:
        serialization.clear_safe_globals()
    assert serialization.get_safe_globals() == []
    with pytest.raises(TypeError, match="should be a list of classes"):
        serialization.add_safe_globals(Options)


# ---- storages


def test_storages_in_a_file():
    whole = instructions.storage()
    assert loads(whole).tolist() == [0, 1, 2, 3, 4, 5]
    both = loads(instructions.list_of(instructions.tensor(), whole))
    both[0][0, 0] = 7
    assert isinstance(both[1], jaxgrad.FloatStorage) and both[1][0] == 7
    assert both[1].untyped() == both[0].untyped_storage()


def test_booleans_of_other_bytes_than_0_and_1():
    whole = instructions.storage("BoolStorage", "bytes", 4)
    read = loads(instructions.tensor((4,), (1,), of=whole), instructions.RECORDS)
    assert read.tolist() == [True, False, True, True] and read.int().sum().item() == 3


def test_special_numbers_are_kept_bit_by_bit():
    values = np.array([math.nan, -0.0, math.inf, 1e-310])
    file = io.BytesIO()
    jaxgrad.save(jaxgrad.tensor(values), file, format="pt")
    file.seek(0)
    assert jaxgrad.load(file).numpy().tobytes() == values.tobytes()


# ---- archives of 4 GB and more


def test_numbers_of_64_bits():
    code = instructions.program(b"K\x05")
    assert load_bytes(instructions.wide(len(code), 0, code)) == 5


@pytest.mark.slow
def test_an_archive_of_more_than_4_GB(tmp_path):
    """The file has a hole: its zeros take no place on the disk."""
    path, count = tmp_path / "large.pt", 2**32 + 64
    with open(path, "wb") as file:
        writer = ArchiveWriter(
            lambda data: file.seek(len(data), 1) if len(data) > 2**20 else file.write(data)
        )
        large = instructions.storage("ByteStorage", "0", count)
        small = instructions.storage(key="1", count=3)
        both = instructions.list_of(
            instructions.tensor((count,), (1,), of=large),
            instructions.tensor((3,), (1,), of=small),
        )
        writer.add("a/data.pkl", instructions.program(both))
        writer.add("a/data/0", memoryview(np.zeros(count, np.uint8)))
        writer.add("a/data/1", np.arange(3, dtype=np.float32).tobytes())
        writer.close()
    with zipfile.ZipFile(path) as archive:
        assert [info.file_size for info in archive.infolist()][1:] == [count, 12]
        assert archive.read("a/data/1") == np.arange(3, dtype=np.float32).tobytes()
    first, second = jaxgrad.load(path, mmap=True)
    assert first.shape == (count,) and second.tolist() == [0, 1, 2]


# ---- what PyTorch 2.13 gives for further files


@pytest.mark.parametrize("name", ["float8_e5m2", "float8_e4m3fn", "bfloat16", "int8"])
def test_views_that_skip_elements(name):
    dtype = getattr(jaxgrad, name)
    x = jaxgrad.arange(6.0).to(dtype)
    file = io.BytesIO()
    jaxgrad.save({"whole": x, "odd": x[1::2]}, file)
    read = load_bytes(file.getvalue())
    read["odd"][0] = 4
    assert read["odd"].dtype is dtype
    assert read["whole"].tolist() == [0, 4, 2, 3, 4, 5]


def test_a_view_alone_keeps_its_memory():
    x = jaxgrad.arange(30.0).as_strided([2, 3], [9, 3], 2)
    file = io.BytesIO()
    jaxgrad.save(x, file)
    read = load_bytes(file.getvalue())
    assert (read.storage_offset(), read.stride(), len(read.storage())) == (2, (9, 3), 30)


class Old:
    """A tensor as PyTorch described it in 2016."""

    def __reduce__(self):
        x = jaxgrad.arange(30.0).as_strided([2, 3], [9, 3], 2)
        return jaxgrad.Tensor, (), (x.storage(), x.storage_offset(), tuple(x.size()), x.stride())


def test_tensors_of_2016():
    file = io.BytesIO()
    jaxgrad.save(Old(), file)
    read = load_bytes(file.getvalue())
    assert read.tolist() == [[2, 5, 8], [11, 14, 17]]
    assert (read.storage_offset(), read.stride()) == (2, (9, 3))


STREAM = (
    b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03."
    b"\x80\x02}(U\x10protocol_versionM\xe9\x03U\rlittle_endian\x88u."
)


def test_slices_of_storages_share_memory():
    storage = b"(X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\0aX\x03\0\0\0cpuK\x02"
    first, second = (
        storage + b"(X\x01\0\0\0%cK%cK\x01ttQ" % (name, start)
        for name, start in ((b"b", 0), (b"c", 1))
    )
    keys = b"\x80\x02]X\x01\0\0\0aa."
    data = struct.pack("<q2f", 2, 5.0, 7.0)
    first, second = load_bytes(STREAM + b"\x80\x02(" + first + second + b"t." + keys + data)
    assert first.tolist() == [5] and second.tolist() == [7]
    assert first.data_ptr() + 4 == second.data_ptr()
    beyond = storage + b"(X\x01\0\0\0bK\x02K\x01ttQ"
    with pytest.raises(RefusedFile, match="a storage that cannot be"):
        load_bytes(STREAM + b"\x80\x02" + beyond + b"." + keys + data)


def test_encodings_of_strings_of_python_2():
    code = b"\x80\x02U\x02\xc5\xbc."
    data = STREAM + code + b"\x80\x02]."
    assert load_bytes(data, encoding="bytes") == b"\xc5\xbc"
    assert load_bytes(data, encoding="utf-8") == "\u017c"
    with pytest.raises(UnicodeDecodeError, match="a string is not ascii"):
        load_bytes(data, encoding="ascii")


def test_a_device_that_is_missing():
    file = io.BytesIO()
    jaxgrad.save(jaxgrad.ones(2), file)
    data = file.getvalue().replace(b"X\x03\0\0\0cpu", b"X\x06\0\0\0cuda:0")
    with pytest.raises(RuntimeError, match="Attempting to deserialize object on a CUDA device"):
        jaxgrad.serialization.default_restore_location(jaxgrad.ones(1).storage(), "cuda:0")
    assert data != file.getvalue()


def test_storages_without_elements_have_any_dtype():
    storage = jaxgrad.TypedStorage(
        wrap_storage=jaxgrad.empty(0).untyped_storage(), dtype=jaxgrad.int16
    )
    file = io.BytesIO()
    jaxgrad.save([jaxgrad.empty(0), storage], file)
    first, second = load_bytes(file.getvalue())
    assert (first.dtype, second.dtype) == (jaxgrad.float32, jaxgrad.int16)


class Device:
    """A package that calls the CPU by a word of its own."""

    calls: ClassVar = []

    @classmethod
    def tag(cls, storage):
        return "mine"

    @classmethod
    def restore(cls, storage, location):
        cls.calls.append((storage.nbytes(), location))
        return storage if location == "mine" else None


def test_words_of_packages_for_devices(monkeypatch):
    serialization, file = jaxgrad.serialization, io.BytesIO()
    monkeypatch.setattr(serialization._packages, "_package_registry", [])
    serialization._packages._package_registry += serialization._packages._OF_PYTORCH
    serialization.register_package(5, Device.tag, Device.restore)
    jaxgrad.save(jaxgrad.ones(2), file)
    assert b"mine" in file.getvalue() and serialization.location_tag(jaxgrad.ones(1)) == "mine"
    assert load_bytes(file.getvalue()).tolist() == [1, 1] and Device.calls == [(8, "mine")]
    serialization._packages._package_registry.pop(0)
    with pytest.raises(RuntimeError, match="don't know how to restore data location"):
        load_bytes(file.getvalue())
    assert load_bytes(file.getvalue(), map_location={"mine": "cpu"}).tolist() == [1, 1]


class Odd:
    pass


class Pickling:
    """A module that stands for pickle."""

    class Pickler(pickle.Pickler):
        def reducer_override(self, value):
            return (complex, (4, 2)) if isinstance(value, Odd) else NotImplemented

    Unpickler, loads = pickle.Unpickler, staticmethod(len)

    @staticmethod
    def dumps(value, protocol):
        return b"abc"


@pytest.mark.parametrize("is_new", [True, False])
def test_pickle_module_makes_what_is_no_data(is_new):
    file, options = io.BytesIO(), {"_use_new_zipfile_serialization": is_new}
    value = [Odd(), jaxgrad.ones(2), lambda: 0]
    jaxgrad.save(value, file, pickle_module=Pickling, **options)
    with pytest.warns(UserWarning, match="holds more than data"):
        odd, ones, length = load_bytes(file.getvalue(), weights_only=False)
    assert odd == 4 + 2j and ones.tolist() == [1, 1]
    assert length == 3  # by `loads` of what `dumps` gave


def test_files_are_flushed():
    class File(io.BytesIO):
        flushed = False

        def flush(self):
            self.flushed = True

    file = File()
    jaxgrad.save(1, file)
    assert file.flushed


def test_the_old_format_has_no_room_without_elements():
    with jaxgrad.serialization.skip_data(), pytest.raises(RuntimeError, match="skip_data=True"):
        jaxgrad.save(jaxgrad.ones(1), io.BytesIO(), _use_new_zipfile_serialization=False)


@pytest.mark.parametrize("is_path", [True, False])
def test_archives_entry_by_entry(is_path, tmp_path):
    where, records = tmp_path / "some.pt" if is_path else io.BytesIO(), {"a": b"12", "b/c": b"345"}
    with jaxgrad.serialization._open_zipfile_writer(where) as archive:
        for name, data in records.items():
            archive.write_record(name, data, len(data))
    with jaxgrad.serialization._open_zipfile_reader(where) as archive:
        assert {name: archive.get_record(name) for name in records} == records
        assert archive.get_record_offset("b/c") % 64 == 0 and archive.get_record_size("b/c") == 3
        assert archive.archive_name() == ("some" if is_path else "archive")
        assert archive.has_record("version") and not archive.has_record("c")
        with pytest.raises(RuntimeError, match="failed locating file c"):
            archive.get_record("c")


def test_storages_begin_at_multiples_of_the_alignment():
    file = io.BytesIO()
    with jaxgrad.utils.serialization.config.patch({"save.storage_alignment": 4096}):
        jaxgrad.save([jaxgrad.ones(3), jaxgrad.zeros(5)], file)
    with jaxgrad.serialization._open_zipfile_reader(file) as archive:
        offsets = [archive.get_record_offset(f"data/{number}") for number in (0, 1)]
    assert [offset % 4096 for offset in offsets] == [0, 0]
    assert [x.tolist() for x in load_bytes(file.getvalue())] == [[1] * 3, [0] * 5]


@pytest.mark.parametrize("place", ["cuda", "cuda:1", jaxgrad.device("cuda"), {"cpu": "cuda"}])
def test_map_location_to_a_device_that_is_not_there(place, monkeypatch):
    monkeypatch.setattr("jaxgrad.serialization._memory.has", lambda kind: False)
    file = io.BytesIO()
    jaxgrad.save(jaxgrad.ones(2), file)
    file.seek(0)
    with pytest.raises(RuntimeError, match="Attempting to deserialize object on a CUDA device"):
        jaxgrad.load(file, map_location=place)
