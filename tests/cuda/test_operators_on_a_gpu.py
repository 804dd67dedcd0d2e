"""The results and the gradients of every operator are on the GPU of its arguments, which is not
JAX's default device. GPUs are pretended.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import hangs

PROGRAM = Path(__file__).parent / "operators.py"
PARTS = 12
# batch sizes and lengths are on the CPU, as in PyTorch
MIXED = {"ops._pack_padded_sequence", "ops._pad_packed_sequence"}


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_results_are_beside_arguments(part):
    flags = "--xla_force_host_platform_device_count=3"
    child = subprocess.run(
        [sys.executable, str(PROGRAM), str(part), str(PARTS)],
        env=os.environ | {"XLA_FLAGS": flags},
        capture_output=True,
        text=True,
        timeout=hangs.LIMIT,
    )
    assert child.returncode == 0, child.stderr
    count, elsewhere = json.loads(child.stdout)
    assert count > 50
    for name in MIXED & elsewhere.keys():
        assert elsewhere.pop(name) == ["cpu", "cuda:1"]
    assert not elsewhere
