"""What a notebook shows of tensors, graphs, modules, optimizers and reports: a notebook runs with
nbclient, and its outputs are read.
"""

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import nbclient
import nbformat
import pytest
from helpers import hangs
from helpers.html_checks import Page

CHECKOUT = Path(__file__).parents[2]

SETUP = """
import jaxgrad as torch
from jaxgrad import nn, optim
from jaxgrad.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(30, 20), nn.Tanh(), nn.Linear(20, 10))
optimizer = optim.AdamW(model.parameters(), lr=1e-3)
x = torch.rand(40, 30)
step = torch.compile(lambda x: model(x).square().mean(), name="step")
"""
# what the last line of a cell shows, and a text that is in it
SHOWN = {
    "x": "Tensor [40, 30]",
    "x * 2 == 0": "torch.bool",
    "model[0].weight": None,
    "model": "830 parameters",
    "nn.Sequential(*[nn.Linear(600, 600) for _ in range(3)])[0].weight": "Parameter [600, 600]",
    "optimizer": "0.001",
    "loss = model(x).square().mean()\nloss.backward(retain_graph=True)\noptimizer": "no state yet",
    "optimizer.step(); optimizer": "state: 12 tensors",
    "loss.grad_fn": "MeanBackward0",
    "torch.autograd.graph.memory_report(loss)": "saved for the backward pass",
    "torch.summary(model, (40, 30))": "Total params: 830",
    "profile = torch.autograd.profiler.profile()\nwith profile: model(x)\nprofile": "Self CPU",
    "profile.key_averages()": "# of Calls",
}
# what shows as text
TEXTS = {
    "loss": r"tensor\(0\.\d+, grad_fn=<MeanBackward0>\)",
    "torch.empty(5000, device='meta')": r"tensor\(\.\.\., device='meta', size=\(5000,\)\)",
    "torch.eye(50).to_sparse()": r"tensor\(indices=",
    "torch.func.vmap(lambda row: (print(repr(row)), row)[1])(x)[0, 0]": r"tensor\(",
    "with torch.autograd.graph.record_lines():\n    y = x.requires_grad_().detach() * 2\n"
    "torch.autograd.graph.explain(y)": r"detached at In\[\d+\]:2: ",
    "_ = step(x); print(step.explain())": "traced once",
    "nn.LazyLinear(3).weight": "UninitializedParameter",
}
PROGRESS = """
from tqdm import tqdm
progress = tqdm(DataLoader(TensorDataset(x), batch_size=10))
for (batch,) in progress:
    progress.set_postfix(loss=step(batch))
"""


@pytest.fixture(scope="module")
def outputs():
    """The outputs of each cell, by its source."""
    sources = [SETUP, *SHOWN, "torch.autograd.graph.draw(loss)", *TEXTS, PROGRESS]
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    notebook = nbformat.v4.new_notebook(cells=cells)
    client = nbclient.NotebookClient(notebook, timeout=hangs.LIMIT, kernel_name="python3")
    client.execute()  # raises the error of a cell
    return {cell.source: cell.outputs for cell in notebook.cells}


def data_of(outputs) -> dict:
    (data,) = [output["data"] for output in outputs if output.output_type == "execute_result"]
    return data


pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize("source", SHOWN)
def test_html(outputs, source):
    data = data_of(outputs[source])
    assert data["text/plain"]
    if SHOWN[source] is None:
        assert "text/html" not in data
        return
    page = Page(data["text/html"])
    assert SHOWN[source] in page.text
    assert len(data["text/html"]) < 40_000


def test_a_drawing(outputs):
    data = data_of(outputs["torch.autograd.graph.draw(loss)"])
    root = ET.fromstring(data["image/svg+xml"])
    text = "".join(root.itertext())
    assert root.tag.endswith("svg") and "MeanBackward0" in text and "ipykernel" not in text


@pytest.mark.parametrize("source", TEXTS)
def test_text(outputs, source):
    texts = [output["text"] for output in outputs[source] if output.output_type == "stream"]
    results = [
        output["data"] for output in outputs[source] if output.output_type == "execute_result"
    ]
    assert all("text/html" not in data for data in results)
    assert re.search(TEXTS[source], "".join([*texts, *(data["text/plain"] for data in results)]))


def test_progress_bars_show_losses(outputs):
    text = "".join(output.get("text", "") for output in outputs[PROGRESS])
    assert "4/4" in text and re.search(r"loss=tensor\(0\.\d+", text)


@pytest.mark.checkout
def test_the_gallery_runs():
    command = [sys.executable, str(CHECKOUT / "docs" / "gallery.py")]
    environment = os.environ | {"MPLBACKEND": "Agg"}
    result = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert result.returncode == 0, result.stderr
    assert "it becomes zero in ReluBackward0" in result.stdout
    assert "cpu:3         [4:8, 3:6]" in result.stdout
