"""A process that is forked after jaxgrad was used raises; the alternative is to wait forever."""

import subprocess
import sys

import pytest
from helpers import hangs

from jaxgrad.core import fork

SCRIPT = """
import os
import jaxgrad as torch

torch.random.default_generator  # an import alone is no use
if {used}:
    x = torch.ones(3, requires_grad=True)
    (x * 2).sum().backward()
    double = torch.jit(lambda x: x * 2)
    double(x.detach())
    new = torch.tensor([1.0, 2.0])  # not read yet
calls = {calls}
for call in calls:
    child = os.fork()
    if child == 0:
        try:
            print("gave", call(), flush=True)
        except RuntimeError as raised:
            print("raised", raised, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
print("parent", (torch.ones(2) * 3).tolist())
"""
CALLS = """(
    lambda: x * 2, lambda: x.sin(), lambda: x.double(), lambda: (x * x).sum().backward(),
    lambda: double(x.detach()),
    lambda: torch.zeros(5000, 5000) + 1, lambda: torch.rand(3),
    lambda: torch.jit(lambda x: x + 1)(x),
    lambda: torch.func.grad(lambda x: (x * x).sum())(x), lambda: x[0].item(),
)"""


def lines_of(used, calls):
    script = SCRIPT.format(used=used, calls=calls)
    command = [sys.executable, "-W", "ignore", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=hangs.LIMIT)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_every_computation_of_a_forked_process_raises():
    *children, parent = lines_of(True, CALLS)
    assert len(children) == 10 and parent == "parent [3.0, 3.0]"
    assert all(line.startswith("raised jaxgrad had tensors before") for line in children)
    assert all('start method "spawn"' in line for line in children)


@pytest.mark.slow
def test_a_forked_process_reads_values():
    calls = """(
        lambda: (x.tolist(), x.detach().numpy().sum().item()),
        lambda: (new.device, new.tolist(), new.numpy().sum().item()),
    )"""
    old, new, _ = lines_of(True, calls)
    assert old == "gave ([1.0, 1.0, 1.0], 3.0)"
    assert new == "gave (device(type='cpu'), [1.0, 2.0], 3.0)"


@pytest.mark.slow
def test_a_forked_process_makes_tensors_of_data():
    calls = """(
        lambda: torch.zeros(5000, 5000).shape, lambda: torch.tensor([1.0, 2.0]).tolist(),
        lambda: torch.from_numpy(__import__("numpy").ones((3000, 3000))).numpy().sum(),
        lambda: torch.ones(2), lambda: (torch.ones(2).device, torch.arange(3).dtype),
    )"""
    *children, _ = lines_of(True, calls)
    assert children == [
        "gave torch.Size([5000, 5000])",
        "gave [1.0, 2.0]",
        "gave 9000000.0",
        "gave tensor([1., 1.])",
        "gave (device(type='cpu'), torch.int64)",
    ]


@pytest.mark.slow
def test_a_process_forked_before_the_first_tensor_computes():
    child, parent = lines_of(False, "(lambda: (torch.ones(3) * 2).tolist(),)")
    assert child == "gave [2.0, 2.0, 2.0]" and parent == "parent [3.0, 3.0]"


def test_kernels_of_a_forked_process_say_why_they_refuse(monkeypatch):
    monkeypatch.setattr(fork, "is_forked", False)
    monkeypatch.setattr(fork, "_refusal", fork.REFUSAL)
    assert fork.note("this process was forked") and fork.is_forked
    assert not fork.note("this process was forked")  # is not new
    with pytest.raises(RuntimeError, match="this process was forked"):
        fork.refuse_call()
