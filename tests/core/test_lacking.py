"""Operators without a kernel on a platform: the error at the call, with the CPU as such a platform.

A process of its own, since JAX keeps what is registered.
"""

import subprocess
import sys

PROGRAM = """
from jax import lax
import jaxgrad as torch
from jaxgrad.core import executor, lacking

cure = "move the matrix to another device"
lacking.refuse(lax.linalg.eig_p, "linalg.eig, and linalg.eigvals", "cpu", cure)
executor.choose("compiled")  # NumPy computes no eager call
x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])


def raises(function):
    try:
        function(x)
    except NotImplementedError as error:
        expected = "linalg.eig, and linalg.eigvals: there is no kernel for the platform cpu: "
        return str(error) == expected + cure
    return False


print(raises(torch.linalg.eig), raises(torch.linalg.eigvals))
print(raises(torch.jit(torch.linalg.eig)), raises(torch.jit(torch.linalg.eigvals)))
print(torch.linalg.eigh(torch.eye(2)).eigenvalues.tolist())
"""


def test_call_without_a_kernel():
    command = [sys.executable, "-c", PROGRAM]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    assert process.stdout.split("\n") == ["True True", "True True", "[1.0, 1.0]", ""]
