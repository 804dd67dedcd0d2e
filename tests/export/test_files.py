"""Files of exported programs."""

import io
import json
import subprocess
import sys
import zipfile
from collections import namedtuple
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from helpers import exported_models

import jaxgrad as torch
from jaxgrad import nn
from jaxgrad.export import Dim, export, load, save

READER = Path(exported_models.__file__).with_name("read_exported.py")


def saved(program, **options):
    file = io.BytesIO()
    save(program, file, **options)
    file.seek(0)
    return file


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(2)
        self.register_buffer("hidden", torch.tensor([3.0, 4.0]), persistent=False)
        self.norm.bias.requires_grad_(False)

    def forward(self, x, flag=True):
        return {"y": self.norm(x) + self.hidden, "parts": [x.shape[0], None, flag]}


def test_a_program_that_is_loaded():
    model = Net().eval()
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    program = export(model, (x,), dynamic_shapes={"x": {0: Dim("n", max=9)}})
    extra = {"labels.txt": "", "other": ""}
    files = {"labels.txt": "cat", "image": b"\xff"}
    again = load(saved(program, extra_files=files), extra_files=extra)
    assert extra == {"labels.txt": "cat", "other": "", "image": b"\xff"}
    assert again.graph_signature == program.graph_signature
    assert again.range_constraints == program.range_constraints
    assert again.call_spec == program.call_spec and str(again) == str(program)
    assert again.example_inputs[0][0].tolist() == x.tolist()
    result = again.module()(torch.ones(3, 2))
    torch.testing.assert_close(result, model(torch.ones(3, 2)))
    assert result["parts"] == [3, None, True]
    flags = {name: p.requires_grad for name, p in again.named_parameters()}
    assert flags == {"norm.weight": True, "norm.bias": False}
    assert "hidden" not in again.state_dict and "hidden" in again.constants
    with pytest.raises(RuntimeError, match="with_vjp=True"):
        result["y"].sum().backward()


@pytest.mark.slow
def test_a_training_that_goes_on_in_another_file(tmp_path):
    torch.manual_seed(0)
    model, x = nn.Linear(3, 1), torch.randn(4, 3)
    program = export(model, (x,), dynamic_shapes={"input": {0: Dim("n")}}, with_vjp=True)
    save(program, tmp_path / "m.pt2")
    module = load(tmp_path / "m.pt2").module()
    optimizers = [torch.optim.Adam(m.parameters(), lr=0.1) for m in (model, module)]
    for count in (4, 2, 3):
        batch = torch.randn(count, 3)
        for one, optimizer in zip((model, module), optimizers, strict=True):
            optimizer.zero_grad()
            (one(batch) - 1).square().mean().backward()
            optimizer.step()
    torch.testing.assert_close(module.weight, model.weight)
    assert not torch.equal(module.weight, load(tmp_path / "m.pt2").state_dict["weight"])


@pytest.mark.slow
def test_ten_models_in_a_process_without_jaxgrad(tmp_path):
    expected = {}
    for name, (make, arguments) in exported_models.MODELS.items():
        torch.manual_seed(0)
        model, example = make().eval(), arguments(3)
        shapes = tuple({0: Dim("batch")} for _ in example)
        save(export(model, example, dynamic_shapes=shapes), tmp_path / f"{name}.pt2")
        args = arguments(2)
        results = model(*args)
        expected[name] = results if isinstance(results, tuple) else (results,)
        np.savez(tmp_path / f"{name}.inputs.npz", *[np.asarray(t) for t in args])
    subprocess.run([sys.executable, READER, tmp_path], check=True, cwd=tmp_path)
    for name, results in expected.items():
        outputs = np.load(tmp_path / f"{name}.outputs.npz")
        for key, result in zip(outputs.files, results, strict=True):
            array = result.detach().numpy()
            assert outputs[key].dtype == array.dtype
            np.testing.assert_allclose(outputs[key], array, rtol=1e-4, atol=1e-5, err_msg=name)


def of_pytorch(*names):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, "x" * 99)
    file.seek(0)
    return file


@pytest.mark.parametrize(
    ("names", "message"),
    [
        # the entries of the files of torch 2.13
        (("t/models/model.json", "t/archive_format"), "torch.export, .* export the model again"),
        (("t/data.pkl", "t/code/x.py", "t/constants.pkl"), "a TorchScript file of PyTorch"),
        (("t/data.pkl", "t/data/0"), "a file of torch.save: read it with torch.load"),
        (("a.txt",), "no file of torch.export.save"),
    ],
)
def test_the_files_of_others(names, message):
    with pytest.raises(RuntimeError, match=message):
        load(of_pytorch(*names))
    with pytest.raises(RuntimeError, match=r"no file of torch\.export\.save"):
        load(io.BytesIO(b"text"))


def test_another_version_and_a_damaged_file():
    data = saved(export(nn.Identity(), (torch.ones(1),))).getvalue()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    description = {**json.loads(entries["jaxgrad.json"]), "version": 99}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in {**entries, "jaxgrad.json": json.dumps(description)}.items():
            archive.writestr(name, content)
    file.seek(0)
    with pytest.raises(RuntimeError, match="it has version 99 of the format"):
        load(file)
    with pytest.raises(RuntimeError, match=r"no file of torch\.export|damaged"):
        load(io.BytesIO(data[:-30]))
    for name in ("jaxgrad.json", "program.jax", "state.safetensors"):
        damaged = bytearray(data)
        damaged[data.index(entries[name]) + len(entries[name]) // 2] ^= 1
        with pytest.raises(RuntimeError, match=f"{name} has another checksum"):
            load(io.BytesIO(bytes(damaged)))
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            for other in entries.keys() - {name}:
                archive.writestr(other, entries[other])
        with pytest.raises(RuntimeError, match=f"lacks {name}|no file of torch"):
            load(io.BytesIO(file.getvalue()))
    with pytest.raises(RuntimeError, match="Parent directory"):
        save(export(nn.Identity(), (torch.ones(1),)), "/nowhere/a.pt2")


class Pair(NamedTuple):
    first: torch.Tensor
    rest: list


class Paired(nn.Module):
    def forward(self, pair):
        return Pair(pair.first + 1, [pair.rest[0].max(1)])


def test_named_tuples_are_in_a_file():
    pair = Pair(torch.zeros(2), [torch.eye(2)])
    program = export(Paired(), (pair,))
    result = load(saved(program)).module()(pair)
    assert result._fields == Pair._fields and result.first.tolist() == [1, 1]
    assert result.rest[0].indices.tolist() == [0, 1]
    other = namedtuple("Other", "first others")(*pair)
    for module in (program.module(), load(saved(program)).module()):
        with pytest.raises(ValueError, match="input tree spec"):
            module(other)
