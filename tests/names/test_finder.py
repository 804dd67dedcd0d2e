"""Imports of jaxgrad under another name."""

import subprocess
import sys

PROGRAM = """
import sys, jaxgrad
sys.modules["torch"] = jaxgrad
import torch.nn as nn, torch.nn.functional as F, torch.utils.checkpoint
from torch.nn.utils import parametrizations
from torch import _meta_registrations
from torch.distributed.tensor._utils import DeviceMesh
print(nn is jaxgrad.nn, F is jaxgrad.nn.functional, nn.Linear.__module__.split(".")[0])
print(nn.__spec__.name, DeviceMesh is jaxgrad.distributed.device_mesh.DeviceMesh)
layer = parametrizations.weight_norm(nn.Linear(2, 2))
layer(torch.ones(1, 2)).sum().backward()
print(layer.bias.grad.tolist())
for text in ("import torch.nothing", "from torch.nn import nothing"):
    try:
        exec(text)
    except ImportError as error:
        print(error)
from torch.autograd.gradcheck import GradcheckError
from torch.nn.parallel.data_parallel import DataParallel
print(callable(torch.autograd.gradcheck), callable(torch.nn.parallel.data_parallel))
print([name for name in sys.modules if name.startswith("torch") and
       sys.modules[name].__name__.startswith("torch.nn")])
"""


def test_a_package_that_is_jaxgrad_has_its_modules():
    """Not second copies of them, with classes of their own: `sys.modules["torch"] = jaxgrad`."""
    child = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    lines = child.stdout.splitlines()
    assert lines[:4] == [
        "True True jaxgrad",
        "jaxgrad.nn True",
        "[1.0, 1.0]",
        "No module named 'torch.nothing'",
    ], child.stderr
    assert "cannot import name 'nothing'" in lines[4]
    assert lines[5] == "True True", "a module took the place of the function of its name"
    assert lines[6] == "[]"
