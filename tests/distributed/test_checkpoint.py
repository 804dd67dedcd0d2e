"""torch.distributed.checkpoint: what is saved comes back to the bit, or nothing changes."""

import asyncio
import functools
import math
import os
import random
import signal
import struct
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from distributed import processes
from helpers.hangs import LIMIT

import jaxgrad as torch
from jaxgrad.distributed import checkpoint
from jaxgrad.distributed.checkpoint import CheckpointException, _orbax
from jaxgrad.distributed.checkpoint import state_dict as states

PROGRAMS = Path(__file__).with_name("checkpoint_programs.py")
LAUNCH = [sys.executable, "-m", "jaxgrad", "launch", "--nproc", "2"]

INF, NAN = float("inf"), float("nan")
NUMBERS = [0, -1, 2**70, 1.5, 0.1, -0.0, 5e-324, INF, -INF, NAN, 1 + 2j, complex(-0.0, NAN)]
OTHERS = [True, False, None, "", "text", "\u00e9\ud800\n", [], (), [1, (2, [3, ()])], (1,)]


def run(*arguments, devices=1, processes=1):
    """What a program of checkpoint_programs.py prints."""
    start = LAUNCH if processes > 1 else [sys.executable]
    flags = f"--xla_force_host_platform_device_count={devices}"
    process = subprocess.run(
        [*start, str(PROGRAMS), *map(str, arguments)],
        env=os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert process.returncode == 0, process.stderr[-4000:]
    return process.stdout


def bits(tensor):
    array = np.asarray(tensor.detach()._array)
    return array.dtype.name, array.shape, array.tobytes()


def exact(value):
    """A value, so that equal means the same to the bit."""
    if isinstance(value, torch.Tensor):
        return "tensor", bits(value)
    if isinstance(value, float):
        return "float", "nan" if math.isnan(value) else struct.pack(">d", value)
    if isinstance(value, complex):
        return "complex", exact(value.real), exact(value.imag)
    if isinstance(value, dict):
        return "dict", [(exact(key), exact(item)) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return type(value).__name__, [exact(item) for item in value]
    return type(value).__name__, value


def some_tensors():
    draw = np.random.default_rng(0)
    tensors = {
        "double": torch.tensor(draw.normal(size=(3, 4))),
        "wide": torch.tensor([2**62 + 1, -(2**62)]),
        "zdouble": torch.tensor([1e300 + 1e-300j]),
        "scalar": torch.tensor(1.5),
        "scalar bool": torch.tensor(True),
        "none": torch.zeros(0, 3),
        "special": torch.tensor([INF, -INF, NAN, -0.0, 1e-45]),
    }
    kinds = ["float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"]
    kinds += ["int8", "int16", "int32", "uint8", "bool", "complex64"]
    for name in kinds:
        tensors[name] = torch.tensor(draw.normal(size=(5,)) * 3).to(getattr(torch, name))
    return tensors


def empty_like(value):
    """A state dict of the same tensors and containers, with other values."""
    if isinstance(value, torch.Tensor):
        return torch.zeros_like(value)
    if isinstance(value, dict):
        return {key: empty_like(item) for key, item in value.items()}
    if isinstance(value, list | tuple) and any(
        isinstance(item, torch.Tensor | dict | list) for item in value
    ):
        return type(value)(map(empty_like, value))
    return "another"


def saved(state, folder):
    checkpoint.save(state, checkpoint_id=folder)
    loaded_state = empty_like(state)
    checkpoint.load(loaded_state, checkpoint_id=folder)
    return loaded_state


# ---- one process


@pytest.mark.slow
def test_tensors_come_back_to_the_bit(tmp_path):
    state = some_tensors()
    assert exact(saved(state, tmp_path)) == exact(state)


@pytest.mark.slow
def test_numbers_and_containers_come_back(tmp_path):
    state = {str(i): value for i, value in enumerate(NUMBERS + OTHERS)}
    state |= {"all": [*NUMBERS, *OTHERS], 3: "int", 2.5: "float", None: 1, True: (1, 2), "": {}}
    state["deep"] = {"a.b": [{"c": torch.ones(2)}, (torch.zeros(1), 3)], "a": {"b": torch.ones(1)}}
    assert exact(saved(state, tmp_path)) == exact(state)


def test_the_older_names_of_save_and_load_warn(tmp_path):
    state = {"x": torch.arange(3.0), "epoch": 4}
    with pytest.warns(FutureWarning, match="Please use 'save' instead"):
        checkpoint.save_state_dict(state, checkpoint.FileSystemWriter(tmp_path))
    target = empty_like(state)
    with pytest.warns(FutureWarning, match="Please use 'load' instead"):
        checkpoint.load_state_dict(target, checkpoint.FileSystemReader(tmp_path))
    assert exact(target) == exact(state)


def test_names_that_look_alike_are_kept_apart(tmp_path):
    state = {"a.b": torch.ones(1), "a": {"b": torch.zeros(1)}, "a/b": torch.full((1,), 2.0)}
    state |= {"a b": torch.full((1,), 3.0), "../x": torch.full((1,), 4.0), "": torch.ones(2)}
    assert exact(saved(state, tmp_path)) == exact(state)


def test_the_state_of_generators_and_schedulers_comes_back(tmp_path):
    random.seed(3)
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)
    schedulers = [
        torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=5),
        torch.optim.lr_scheduler.MultiStepLR(optimizer, [2, 3]),
        torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer),
    ]
    state = {
        "torch": torch.get_rng_state(),
        "own": torch.Generator().manual_seed(2**63).get_state(),
        "python": random.getstate(),
        "numpy": np.random.default_rng(2).bit_generator.state,
        "schedulers": [scheduler.state_dict() for scheduler in schedulers],
        "position": {"epoch": 2, "batch": 7, "order": [3, 1, 2]},
    }
    assert exact(saved(state, tmp_path)) == exact(state)


def test_tensors_are_filled_in_place(tmp_path):
    model = torch.nn.Linear(3, 2)
    checkpoint.save({"model": model.state_dict(), "l": [torch.ones(2)]}, checkpoint_id=tmp_path)
    other = torch.nn.Linear(3, 2)
    weight, tensor = other.weight, torch.zeros(2)
    view, items = tensor[:1], [tensor]
    state = {"model": other.state_dict(), "l": items}
    checkpoint.load(state, checkpoint_id=tmp_path)
    assert bits(weight) == bits(model.weight) and weight is other.weight and weight.requires_grad
    assert state["l"] is items and items[0] is tensor and view.tolist() == [1]
    third = torch.nn.Linear(3, 2)
    weight, params = third.weight, {"model": dict(third.named_parameters())}
    checkpoint.load(params, checkpoint_id=tmp_path)
    assert third.weight is weight and bits(weight) == bits(model.weight) and weight.is_leaf
    third(torch.ones(3)).sum().backward()
    assert weight.grad.tolist() == [[1] * 3] * 2


def test_a_notebook_has_an_event_loop(tmp_path):
    async def cell():
        return saved({"wide": torch.tensor([2**40]), "x": torch.ones(2)}, tmp_path)

    assert asyncio.run(cell())["wide"].tolist() == [2**40]


def test_a_tensor_keeps_its_dtype(tmp_path):
    checkpoint.save(
        {"x": torch.tensor([1.5, -2.5]), "n": torch.tensor([3])}, checkpoint_id=tmp_path
    )
    state = {"x": torch.zeros(2, dtype=torch.int64), "n": torch.zeros(1, dtype=torch.bfloat16)}
    checkpoint.load(state, checkpoint_id=tmp_path)
    assert state["x"].tolist() == [1, -2] and state["x"].dtype is torch.int64
    assert state["n"].tolist() == [3] and state["n"].dtype is torch.bfloat16


def test_lists_of_another_length_are_replaced_and_more_keys_ignored(tmp_path):
    checkpoint.save({"l": [1, 2, 3], "more": torch.ones(1)}, checkpoint_id=tmp_path)
    state = {"l": [0]}
    checkpoint.load(state, checkpoint_id=tmp_path)
    assert state == {"l": [1, 2, 3]}
    planner = checkpoint.DefaultLoadPlanner(allow_partial_load=True)
    state = {"l": (), "absent": {"x": 5}, "more": torch.zeros(1)}
    checkpoint.load(state, checkpoint_id=tmp_path, planner=planner)
    assert state == {"l": [1, 2, 3], "absent": {"x": 5}, "more": torch.ones(1)}


def test_readers_and_writers_name_the_folder(tmp_path):
    writer = checkpoint.FileSystemWriter(tmp_path / "a", overwrite=False)
    checkpoint.save({"n": 1}, storage_writer=writer)
    state = {"n": 0}
    checkpoint.load(state, storage_reader=checkpoint.FileSystemReader(str(tmp_path / "a")))
    assert state == {"n": 1}
    with pytest.raises(RuntimeError, match=r"already exists at .* and overwrite=False"):
        checkpoint.save({"n": 2}, storage_writer=writer)
    for function in (checkpoint.save, checkpoint.load, checkpoint.async_save):
        with pytest.raises(RuntimeError, match="`checkpoint_id` must be specified"):
            function({"n": 2})
        with pytest.raises(NotImplementedError, match="orbax plans"):
            function({"n": 2}, checkpoint_id=tmp_path, planner=object())
        with pytest.raises(NotImplementedError, match="checkpoints are in file systems"):
            function({"n": 2}, checkpoint_id="gs://bucket/folder")


def test_a_checkpoint_is_replaced(tmp_path):
    (tmp_path / "notes.txt").write_text("of the user")
    for number in range(3):
        future = checkpoint.async_save({"x": torch.full((2,), number)}, checkpoint_id=tmp_path)
    future.result()
    state = {"x": torch.zeros(2, dtype=torch.int64)}
    checkpoint.load(state, checkpoint_id=tmp_path)
    assert state["x"].tolist() == [2, 2]
    assert sorted(os.listdir(tmp_path)) == ["jaxgrad.3", "notes.txt"]


def test_async_save_copies_first(tmp_path):
    x, called = torch.ones(1000, 1000), []
    state = {"x": x, "n": 1}
    future = checkpoint.async_save(state, checkpoint_id=tmp_path)
    future.add_done_callback(called.append)
    x.zero_()
    state["n"] = 2
    assert future.result(LIMIT) is None and future.done() and not future.cancel()
    loaded_state = {"x": torch.zeros(1000, 1000), "n": 0}
    checkpoint.load(loaded_state, checkpoint_id=tmp_path)
    assert loaded_state["x"].sum().item() == 1e6 and loaded_state["n"] == 1 and called == [future]


def test_async_save_tells_what_went_wrong(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="file is no folder"):
        checkpoint.async_save({"n": 1}, checkpoint_id=tmp_path / "file" / "c")


def test_async_save_tells_later_errors(tmp_path, monkeypatch):
    def failing(*arguments):
        raise OSError("the disk is full")

    monkeypatch.setattr(_orbax, "remove_before", failing)
    future = checkpoint.async_save({"n": 1}, checkpoint_id=tmp_path)
    with pytest.raises(CheckpointException, match=r"async_save to .*: OSError: the disk is full"):
        future.result()
    assert isinstance(future.exception(), CheckpointException)


# ---- errors


class Odd:
    def __repr__(self):
        return "Odd()"


BAD = [
    ({"a": [{"b": {1}}]}, r"^a\.0\.b: a checkpoint takes .* not builtins\.set"),
    ({"a": {"b": Odd()}}, r"^a\.b: a checkpoint takes .*\.Odd"),
    ({"a": (1, np.ones(2))}, r"^a\.1: .* not numpy\.ndarray"),
    ({"a": {(1, 2): 3}}, r"^a: a checkpoint takes dicts with keys that are strings or numbers"),
    ({"a": np.float32(1)}, r"^a: .* not numpy\.float32"),
    ({"a": torch.float32}, r"^a: .*dtype"),
    ({"a": torch.ones(2, device="meta")}, r"^a: a tensor of shape \[2\] without values"),
]


@pytest.mark.parametrize(("state", "text"), BAD)
def test_what_cannot_be_saved_is_named_before_anything_is_written(state, text, tmp_path):
    checkpoint.save({"x": 1}, checkpoint_id=tmp_path / "c")
    for folder in (tmp_path / "c", tmp_path / "new"):
        for function in (checkpoint.save, checkpoint.async_save):
            with pytest.raises(TypeError, match=text):
                function({"x": torch.ones(1)} | state, checkpoint_id=folder)
    assert os.listdir(tmp_path) == ["c"] and os.listdir(tmp_path / "c") == ["jaxgrad.1"]


def good():
    return {"x": torch.zeros(2), "m": {"n": 0, "l": [torch.zeros(1), 5]}, "o": {"p": 2}, "s": "old"}


def _with(path, value):
    state = good()
    place = state
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return state


UNFIT = [
    (("absent",), 1, "Missing key in checkpoint state_dict: absent"),
    (("m", "absent"), torch.ones(1), r"Missing key in checkpoint state_dict: m\.absent"),
    (("x",), torch.zeros(3), r"Size mismatch between saved \[2\] and current: \[3\] for x"),
    (("m", "l"), [torch.zeros(1), 5, 6], "Size mismatch between saved 2 .* 3 items for m.l"),
    (
        ("m", "l", 0),
        torch.zeros(()),
        r"Size mismatch between saved \[1\] and current: \[\] for m.l.0",
    ),
    (("x",), 3, "for x, expected int but found tensor"),
    (("s",), torch.zeros(1), "for s, expected tensor but found number"),
    (("m",), 3, "for m, expected int but found dict"),
    (("s",), {"a": 1}, "for s, expected dict but found number"),
    (("x",), torch.zeros(2, device="meta"), "x has no memory to load into"),
]


@pytest.mark.parametrize(("path", "value", "text"), UNFIT)
def test_nothing_is_loaded_where_something_does_not_fit(path, value, text, tmp_path):
    full = {"x": torch.ones(2), "m": {"n": 1, "l": [torch.ones(1), 6]}, "o": {"p": 3}, "s": "new"}
    checkpoint.save(full, checkpoint_id=tmp_path)
    state = _with(path, value)
    with pytest.raises(CheckpointException, match=text) as raised:
        checkpoint.load(state, checkpoint_id=tmp_path)
    assert str(tmp_path) in str(raised.value) and list(raised.value.failures) == [0]
    if not (isinstance(value, torch.Tensor) and value.is_meta):
        assert exact(state) == exact(_with(path, value))


def test_folders_without_a_checkpoint_are_named(tmp_path):
    for folder in ("empty", "of pytorch", "unfinished"):
        (tmp_path / folder).mkdir()
    (tmp_path / "of pytorch" / ".metadata").touch()
    (tmp_path / "unfinished" / "jaxgrad.1.orbax-checkpoint-tmp").mkdir()
    (tmp_path / "file").touch()
    texts = {
        "absent": "FileNotFoundError: .*absent is not there",
        "file": "FileNotFoundError: .*file is not there",
        "empty": "empty is no checkpoint",
        "of pytorch": "is a checkpoint of PyTorch, .*dcp_to_torch_save",
        "unfinished": "whose first save did not finish",
    }
    for folder, text in texts.items():
        state = {"x": torch.ones(1)}
        with pytest.raises(CheckpointException, match=text):
            checkpoint.load(state, checkpoint_id=tmp_path / folder)
        assert state["x"].tolist() == [1]


def test_damaged_files_change_nothing(tmp_path):
    checkpoint.save({"x": torch.ones(1000), "n": 1}, checkpoint_id=tmp_path)
    for path in tmp_path.glob("jaxgrad.1/arrays/**/d/*"):
        path.write_bytes(path.read_bytes()[:-7])
    state = {"x": torch.zeros(1000), "n": 0}
    with pytest.raises(CheckpointException, match=str(tmp_path)):
        checkpoint.load(state, checkpoint_id=tmp_path)
    assert exact(state) == exact({"x": torch.zeros(1000), "n": 0})
    (tmp_path / "jaxgrad.1" / "tree" / "metadata").write_text('{"other": 1}')
    with pytest.raises(CheckpointException, match="another version of jaxgrad"):
        checkpoint.load(state, checkpoint_id=tmp_path)


@pytest.mark.slow
def test_a_missing_orbax_names_the_extra(tmp_path):
    program = """
import sys
sys.modules["orbax"] = None
import jaxgrad.distributed.checkpoint as checkpoint
try:
    checkpoint.save({}, checkpoint_id=sys.argv[1])
except ImportError as error:
    print(error)
"""
    command = [sys.executable, "-c", program, str(tmp_path)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    assert "pip install 'jaxgrad[checkpoint]'" in process.stdout, process.stderr


@pytest.mark.slow
def test_orbax_is_imported_late_and_leaves_the_log_alone(tmp_path):
    program = """
import logging, sys
import jaxgrad, jaxgrad.distributed
import jaxgrad.distributed.checkpoint as checkpoint, jaxgrad.distributed.checkpoint.state_dict
assert not any(name.startswith("orbax") for name in sys.modules)
before = logging.getLogger().handlers[:], logging.getLogger().level
checkpoint.save({"x": jaxgrad.ones(2), "n": 1}, checkpoint_id=sys.argv[1])
checkpoint.load({"x": jaxgrad.ones(2), "n": 1}, checkpoint_id=sys.argv[1])
assert before == (logging.getLogger().handlers, logging.getLogger().level)
"""
    command = [sys.executable, "-W", "error", "-c", program, str(tmp_path)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    assert process.returncode == 0 and not process.stdout + process.stderr, process.stderr


# ---- states of models and optimizers


def trained(optimizer=torch.optim.Adam, steps=2, is_reversed=False, **options):
    model = torch.nn.Sequential(
        torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2)
    )
    params = list(model.parameters())[:: -1 if is_reversed else 1]
    instance = optimizer(params, lr=0.1, **options)
    for _ in range(steps):
        instance.zero_grad()
        model(torch.randn(5, 3)).square().sum().backward()
        instance.step()
    return model, instance


def same_states(one, other):
    (model, optimizer), (same, its) = one, other
    assert exact(dict(model.state_dict())) == exact(dict(same.state_dict()))
    for param, twin in zip(model.parameters(), same.parameters(), strict=True):
        assert exact(optimizer.state[param]) == exact(its.state[twin])
    return True


OPTIMIZERS = [
    (torch.optim.SGD, {"momentum": 0.9}),
    (torch.optim.SGD, {}),
    (torch.optim.Adam, {"amsgrad": True}),
    (torch.optim.AdamW, {}),
    (torch.optim.Adagrad, {}),
    (torch.optim.Rprop, {}),
    (torch.optim.NAdam, {}),
    (torch.optim.Adafactor, {}),
]


@pytest.mark.parametrize(("optimizer", "options"), OPTIMIZERS)
def test_an_optimizer_that_has_not_stepped_gets_its_state(optimizer, options, tmp_path):
    one = trained(optimizer, **options)
    other = trained(optimizer, steps=0, is_reversed=True, **options)
    of_model, of_optimizer = states.get_state_dict(*one)
    checkpoint.save({"model": of_model, "optimizer": of_optimizer}, checkpoint_id=tmp_path)
    before = exact(dict(other[0].state_dict()))
    state = dict(zip(("model", "optimizer"), states.get_state_dict(*other), strict=True))
    assert exact(dict(other[0].state_dict())) == before  # nothing has stepped
    checkpoint.load(state, checkpoint_id=tmp_path)
    keys = states.set_state_dict(
        *other, model_state_dict=state["model"], optim_state_dict=state["optimizer"]
    )
    assert not any(keys) and same_states(one, other)


def test_no_state_is_saved_as_none(tmp_path):
    one, other = trained(steps=0), trained(steps=0)
    state = {"optimizer": states.get_optimizer_state_dict(*one)}
    checkpoint.save(state, checkpoint_id=tmp_path)
    state = {"optimizer": states.get_optimizer_state_dict(*other)}
    checkpoint.load(state, checkpoint_id=tmp_path)
    assert state["optimizer"]["state"] == {}
    states.set_optimizer_state_dict(*other, state["optimizer"])
    states.set_optimizer_state_dict(*one, states.get_optimizer_state_dict(*one))
    assert not one[1].state and not other[1].state


@pytest.mark.slow
def test_objects_with_a_state_are_saved_and_loaded(tmp_path):
    one, other = trained(), trained(steps=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the scheduler starts after the optimizer
        schedulers = [torch.optim.lr_scheduler.StepLR(pair[1], 1) for pair in (one, other)]
        schedulers[0].step()
    names = ("model", "optimizer", "scheduler")
    saved_ones = dict(zip(names, (*one, schedulers[0]), strict=True))
    checkpoint.save(saved_ones | {"n": 1}, checkpoint_id=tmp_path)
    state = dict(zip(names, (*other, schedulers[1]), strict=True))
    checkpoint.load(state, checkpoint_id=tmp_path)
    assert same_states(one, other) and state["model"] is other[0]
    assert schedulers[0].state_dict() == schedulers[1].state_dict()


@pytest.mark.slow
def test_parameters_without_state_and_frozen_ones(tmp_path):
    one, other = trained(steps=0), trained(steps=0)
    for model, _ in (one, other):
        model[2].bias.requires_grad_(False)
    one[0](torch.randn(5, 3)).sum().backward()
    one[0][0].bias.grad = None  # has no state after the step
    one[1].step()
    checkpoint.save({"o": states.get_optimizer_state_dict(*one)}, checkpoint_id=tmp_path)
    state = {"o": states.get_optimizer_state_dict(*other)}
    checkpoint.load(state, checkpoint_id=tmp_path)
    states.set_optimizer_state_dict(*other, state["o"])
    assert len(other[1].state) == len(one[1].state) == 4
    options = states.StateDictOptions(ignore_frozen_params=True)
    of_model, of_optimizer = states.get_state_dict(*one, options=options)
    assert "2.bias" not in of_model and "2.bias" not in of_optimizer["param_groups"][0]["params"]
    assert "1.running_mean" in of_model


def test_groups_follow_the_names_of_their_parameters(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
    groups = [{"params": list(model[i].parameters()), "lr": 0.1 + i} for i in range(2)]
    state = states.get_optimizer_state_dict(model, torch.optim.SGD(groups))
    turned = torch.optim.SGD([{"params": list(model[i].parameters()), "lr": 9.0} for i in (1, 0)])
    states.set_optimizer_state_dict(model, turned, state)
    assert [group["lr"] for group in turned.param_groups] == [1.1, 0.1]
    options = states.StateDictOptions(flatten_optimizer_state_dict=True)
    flat = states.get_optimizer_state_dict(model, torch.optim.SGD(groups), options=options)
    assert flat["param_groups.1.bias.lr"] == 1.1
    turned = torch.optim.SGD([{"params": list(model[i].parameters()), "lr": 9.0} for i in (1, 0)])
    states.set_optimizer_state_dict(model, turned, flat, options=options)
    assert [group["lr"] for group in turned.param_groups] == [1.1, 0.1]
    part = {"state": {}, "param_groups": state["param_groups"][:1]}
    with pytest.raises(KeyError, match=r"no parameter '1\.weight'"):
        states.set_optimizer_state_dict(model, turned, part)
    stranger = torch.optim.SGD([torch.ones(3, requires_grad=True)])
    with pytest.raises(KeyError, match=r"parameter 0 of SGD, of shape \[3\], is none of the model"):
        states.get_optimizer_state_dict(model, stranger)


def test_wrappers_and_submodules_of_models():
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
    wrapped = torch.nn.DataParallel(torch.compile(model))
    assert list(states.get_model_state_dict(wrapped)) == list(model.state_dict())
    state = {key: torch.ones_like(value) for key, value in model.state_dict().items()}
    assert not any(states.set_model_state_dict(wrapped, state)) and model[1].bias.item() == 1
    part = states.get_model_state_dict(model, submodules={model[1]})
    assert list(part) == ["1.weight", "1.bias"]
    options = states.StateDictOptions(keep_submodule_prefixes=False, strict=False)
    part = states.get_model_state_dict(model, submodules={model[1]}, options=options)
    assert list(part) == ["weight", "bias"]
    sgd = torch.optim.SGD(model.parameters())
    part = states.get_optimizer_state_dict(model, sgd, submodules={model[1]})
    assert part["param_groups"][0]["params"] == ["1.weight", "1.bias"]
    keys = states.set_model_state_dict(model, {"0.bias": torch.zeros(2)}, options=options)
    assert len(keys.missing_keys) == 3
    with pytest.raises(ValueError, match="full_state_dict must be True"):
        states.get_model_state_dict(
            model, options=states.StateDictOptions(broadcast_from_rank0=True)
        )


# ---- several devices and processes


@pytest.mark.slow
def test_a_checkpoint_of_four_devices_loads_on_any_others(tmp_path):
    run("save_on_four", tmp_path, devices=4)
    run("load_on", tmp_path, 2, 2, devices=4)
    run("load_on", tmp_path, 2, devices=2)
    run("load_on", tmp_path)


@pytest.mark.slow
def test_processes_save_and_load_together(tmp_path):
    run("save_by_two", tmp_path, processes=2)
    assert os.listdir(tmp_path) == ["jaxgrad.2"]
    run("load_by_two", tmp_path, "own", processes=2)
    run("load_on", tmp_path)
    run("load_on", tmp_path, 2, 2, devices=4)
    run("save_on_four", tmp_path, devices=4)
    run("load_by_two", tmp_path, processes=2)


@pytest.mark.slow
def test_an_error_of_one_process_is_one_of_all(tmp_path):
    run("fail_by_two", tmp_path, processes=2)


@pytest.mark.slow
def test_groups_of_processes(tmp_path):
    run("groups_by_two", tmp_path, processes=2)


@pytest.mark.slow
def test_whole_states_go_from_one_process_to_all(tmp_path):
    run("whole_states_by_two", tmp_path, processes=2)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_training_goes_on_to_the_bit(kind, tmp_path):
    whole = run("train", tmp_path / "a", kind, 0, 6, "mesh", devices=4)
    run("train", tmp_path / "b", kind, 0, 3, "mesh", devices=4)
    assert run("train", tmp_path / "b", kind, 3, 6, "mesh", devices=4) == whole
    # on another number of devices it goes on too, with sums in another order
    run("train", tmp_path / "b", kind, 3, 6, "one")


# ---- whoever is killed


def load_numbers(folder):
    state = {"t": [torch.zeros(512, 1024) for _ in range(16)], "number": -1}
    checkpoint.load(state, checkpoint_id=folder)
    for tensor in state["t"]:
        assert (tensor == state["number"]).all().item()
    return state["number"]


def kill_at(folder, first, event):
    """The number of the last whole save of save_and_be_killed."""
    command = [sys.executable, str(PROGRAMS), "save_and_be_killed"]
    command += [str(folder), str(first), str(event)]
    killed = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=LIMIT)
    assert killed.returncode == -signal.SIGKILL
    return max(int(line.removeprefix("done ")) for line in killed.stdout.splitlines())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_save_that_is_killed_leaves_the_last_checkpoint(seed, tmp_path):
    draw = random.Random(seed)
    is_unfinished = False
    # the second event makes the folder of the save, and about the 25th gives it its name
    for run_number, event in enumerate((3, *draw.sample(range(4, 30), 3))):
        done = kill_at(tmp_path, 100 * run_number, event)
        is_unfinished |= any("tmp" in name for name in os.listdir(tmp_path))
        assert load_numbers(tmp_path) in (done, done + 1)
    assert is_unfinished  # at least one was killed while it wrote
    checkpoint.save({"n": 1}, checkpoint_id=tmp_path)
    assert len(os.listdir(tmp_path)) == 1


def test_one_of_two_processes_is_killed(tmp_path):
    command = [*LAUNCH, str(PROGRAMS), "killed_by_two", str(tmp_path)]
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=1", "JAX_PLATFORMS": "cpu"}
    process = subprocess.run(
        command, env=os.environ | flags, capture_output=True, text=True, timeout=LIMIT
    )
    assert process.returncode != 0 and "SIGKILL" in process.stderr, process.stderr[-4000:]
    assert load_numbers(tmp_path) in (2, 3)


@functools.cache
def losses_of_a_whole_run(folder):
    return processes.printed("resumed.py", folder, "no", processes=2)["losses"]


@pytest.mark.slow
@pytest.mark.parametrize(("killed_at", "resumed_at"), [("25", 20), ("save", 10)])
def test_a_killed_run_goes_on_to_the_losses_of_a_whole_one(
    killed_at, resumed_at, tmp_path_factory, tmp_path
):
    """To the bit: SIGKILL of one of two processes in the middle of a step, and of a save."""
    whole = losses_of_a_whole_run(tmp_path_factory.getbasetemp() / "whole")
    folder = tmp_path / "checkpoint"
    done = processes.run("resumed.py", folder, killed_at, processes=2)
    assert done.returncode == 128 + 9 and "FOUND" not in done.stdout
    resumed = processes.printed("resumed.py", folder, "no", processes=2)
    # where the save was complete before the kill, the run goes on from there
    assert resumed["begin"] in (resumed_at, resumed_at + 10 * (killed_at == "save"))
    assert resumed["losses"] == whole and len(whole) == 40
