"""torch.utils.tensorboard: what is in the files, against what PyTorch writes."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers.answers import beside, load
from helpers.as_torch import differences
from helpers.tensorboard_calls import pixels, read, write

import jaxgrad
from jaxgrad.utils.tensorboard import SummaryWriter

RECORDED = load(beside(__file__))


def values(folder, tag):
    events = [event for events in read(folder).values() for event in events]
    entries = [value for e in events for value in e.get("summary", {}).get("value", ())]
    return [value for value in entries if value["tag"] == tag]


@pytest.mark.slow
def test_files_are_those_of_pytorch(tmp_path):
    write(jaxgrad, SummaryWriter, str(tmp_path))
    files = json.loads(json.dumps(read(tmp_path)))
    assert files.keys() == RECORDED.keys()
    for name in RECORDED:
        differences(RECORDED[name], files[name], name, precision=1e-7)


def test_default_folders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    writer = SummaryWriter(comment="_small", filename_suffix=".end")
    writer.add_scalar("x", 1)
    writer.close()
    (folder,) = Path("runs").iterdir()
    assert re.fullmatch(r"[A-Z][a-z]{2}\d{2}_\d{2}-\d{2}-\d{2}_.*_small", folder.name)
    (file,) = folder.iterdir()
    assert file.name.endswith(".end") and writer.get_logdir() == str(folder)
    writer.close()  # a second time changes nothing


def test_tensors_of_all_kinds(tmp_path):
    leaf = jaxgrad.tensor(2.0, requires_grad=True)
    with SummaryWriter(tmp_path) as writer:
        for value in (leaf, leaf.bfloat16(), leaf.detach()._array, np.float64(2), [2.0], True):
            writer.add_scalar("x", value)
        writer.flush()
        writer.add_histogram("h", leaf * jaxgrad.ones(3))
    assert [value["simpleValue"] for value in values(tmp_path, "x")] == [2.0] * 5 + [1.0]
    assert leaf.grad is None


def test_numbers_that_are_not_known_raise(tmp_path):
    writer = SummaryWriter(tmp_path)

    @jaxgrad.jit
    def step(x):
        writer.add_scalar("x", x)

    with pytest.raises(RuntimeError, match="being traced"):
        step(jaxgrad.ones(()))
    writer.close()


def test_boxes_and_figures(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        boxes = jaxgrad.tensor([[1, 2, 4, 5], [-3, 6, 2, 20]])
        writer.add_image_with_boxes("boxes", jaxgrad.zeros(3, 8, 9), boxes)
        with pytest.raises(NotImplementedError, match="labels and rescale are not provided"):
            writer.add_image_with_boxes("boxes", jaxgrad.zeros(3, 8, 9), boxes, labels=["a", "b"])
        with pytest.raises(NotImplementedError, match="add_video is not provided by jaxgrad"):
            writer.add_video("v", jaxgrad.zeros(1, 2, 3, 4, 4))
        with pytest.warns(UserWarning, match="add_graph.. is not provided by jaxgrad"):
            writer.add_graph(jaxgrad.nn.Identity(), jaxgrad.ones(1))
    (entry,) = values(tmp_path, "boxes")
    red = np.array(entry["image"]["pixels"])[:, :, 0] == 255
    expected = np.zeros((8, 9), bool)
    expected[2, 1:5] = expected[5, 1:5] = expected[2:6, 1] = expected[2:6, 4] = True
    expected[6, :3] = expected[6:, 2] = True  # of the second the part inside of the image
    assert (red == expected).all()


def test_hyperparameters(tmp_path):
    hyperparameters = {"b": True, "n": jaxgrad.tensor(3), "s": "x", "f": 0.5}
    with SummaryWriter(tmp_path) as writer:
        writer.add_hparams(hyperparameters, {"loss": 1.0}, {"s": ["x", "y"]}, run_name="one")
        for wrong, kind in (([], TypeError), ({"a": []}, ValueError)):
            with pytest.raises(kind, match=r"should be a dictionary|value should be one of int"):
                writer.add_hparams(wrong, {})
        with pytest.raises(TypeError, match="should be a list of same type as"):
            writer.add_hparams({"s": "x"}, {}, {"s": [1]})
    assert [v["simpleValue"] for v in values(tmp_path / "one", "loss")] == [1.0]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda w: w.add_scalar("x", [1, 2]), AssertionError, "Tensor should contain one element"),
        (lambda w: w.add_histogram("x", []), ValueError, "The input has no element"),
        (lambda w: w.add_histogram("x", [9.0], bins=[0, 1]), ValueError, "The histogram is empty"),
        (lambda w: w.add_histogram_raw("x", 0, 1, 1, 1, 1, [1], []), ValueError, "1 and 0"),
        (lambda w: w.add_image("x", np.ones((2, 2))), AssertionError, "format is 'CHW'"),
        (lambda w: w.add_image("x", np.ones((2, 2)), dataformats="HH"), AssertionError, "once"),
        (lambda w: w.add_tensor("x", np.ones(2, complex)), ValueError, "unsupported tensor dtype"),
        (lambda w: w.add_audio("x", np.ones((2, 2))), AssertionError, "should be 1 dimensional"),
        (lambda w: w.add_embedding(np.ones(2)), AssertionError, "mat should be 2D"),
        (lambda w: w.add_embedding(np.ones((2, 2)), ["a"]), AssertionError, "#labels should equal"),
        (lambda w: w.add_custom_scalars({"a": {"b": ["Margin", []]}}), AssertionError, "3 tags"),
    ],
)
def test_errors(tmp_path, call, error, words):
    with SummaryWriter(tmp_path) as writer, pytest.raises(error, match=re.escape(words)):
        call(writer)


def test_loud_sound_is_clipped(tmp_path):
    with SummaryWriter(tmp_path) as writer, pytest.warns(UserWarning, match="out of range"):
        writer.add_audio("x", np.array([2.0, -2.0]))


def test_pictures_are_read_back():
    image = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)
    for channels in (1, 3, 4):
        picture = image[:, :, :channels]
        png = jaxgrad.utils.tensorboard.writer._images.png(picture)
        assert pixels(png) == picture.tolist()


@pytest.mark.slow
def test_without_the_package_the_error_says_what_to_install(tmp_path):
    (tmp_path / "a.py").write_text("from torch.utils.tensorboard import SummaryWriter")
    code = """
import sys
sys.modules["tensorboard"] = None
import jaxgrad
from jaxgrad.compat import scan
from pathlib import Path
assert not hasattr(jaxgrad.utils, "tensorboard") and scan.scan(Path(sys.argv[1])) == []
import jaxgrad.utils.tensorboard
"""
    command = [sys.executable, "-c", code, str(tmp_path / "a.py")]
    told = subprocess.run(command, capture_output=True, text=True)
    assert told.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: torch.utils.tensorboard writes its files by the package tensorboard, "
        "which is not installed: pip install tensorboard"
    )
