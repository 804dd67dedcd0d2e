"""Pickles that Python wrote under PyTorch, read under jaxgrad's import hook, and names of
libraries that programs ask for.
"""

import pickle
import subprocess
import sys

import pytest

import jaxgrad
from jaxgrad.names.not_provided import is_placeholder

# expressions, and what PyTorch pickled of them
PICKLES = {
    "torch.sin": (
        "gASVSQAAAAAAAACMCGJ1aWx0aW5zlIwHZ2V0YXR0cpSTlIwIdG9yY2guX0OUjBdfVmFyaWFibGVGdW5jdGlv"
        "bnNDbGFzc5STlIwDc2lulIaUUpQu"
    ),
    "torch.Tensor.add_": (
        "gASVPQAAAAAAAACMCGJ1aWx0aW5zlIwHZ2V0YXR0cpSTlIwIdG9yY2guX0OUjApUZW5zb3JCYXNllJOUjARh"
        "ZGRflIaUUpQu"
    ),
    "torch.sparse_coo": (
        "gASVPgAAAAAAAACME3RvcmNoLnNlcmlhbGl6YXRpb26UjAtfZ2V0X2xheW91dJSTlIwQdG9yY2guc3BhcnNl"
        "X2Nvb5SFlFKULg=="
    ),
    "functools.partial(torch.add, alpha=2)": (
        "gASVegAAAAAAAACMCWZ1bmN0b29sc5SMB3BhcnRpYWyUk5SMCGJ1aWx0aW5zlIwHZ2V0YXR0cpSTlIwIdG9y"
        "Y2guX0OUjBdfVmFyaWFibGVGdW5jdGlvbnNDbGFzc5STlIwDYWRklIaUUpSFlFKUKGgLKX2UjAVhbHBoYZRL"
        "AnNOdJRiLg=="
    ),
    "torch.nn.Parameter(torch.tensor([1.0, 2.0]))": (
        "gASVrQEAAAAAAACMDHRvcmNoLl91dGlsc5SMEl9yZWJ1aWxkX3BhcmFtZXRlcpSTlGgAjBJfcmVidWlsZF90"
        "ZW5zb3JfdjKUk5QojA10b3JjaC5zdG9yYWdllIwQX2xvYWRfZnJvbV9ieXRlc5STlEIDAQAAgAKKCmz8nEb5"
        "IGqoUBkugAJN6QMugAJ9cQAoWBAAAABwcm90b2NvbF92ZXJzaW9ucQFN6QNYDQAAAGxpdHRsZV9lbmRpYW5x"
        "AohYCgAAAHR5cGVfc2l6ZXNxA31xBChYBQAAAHNob3J0cQVLAlgDAAAAaW50cQZLBFgEAAAAbG9uZ3EHSwR1"
        "dS6AAihYBwAAAHN0b3JhZ2VxAGN0b3JjaApGbG9hdFN0b3JhZ2UKcQFYDgAAADk0NjM1NjM1NDA3MzYwcQJY"
        "AwAAAGNwdXEDSwJOdHEEUS6AAl1xAFgOAAAAOTQ2MzU2MzU0MDczNjBxAWEuAgAAAAAAAAAAAIA/AAAAQJSF"
        "lFKUSwBLAoWUSwGFlImMC2NvbGxlY3Rpb25zlIwLT3JkZXJlZERpY3SUk5QpUpR0lFKUiGgPKVKUh5RSlC4="
    ),
}

PROGRAM = """
from jaxgrad.compat import install
install()
import base64, functools, pickle, torch
for text, data in {pickles!r}.items():
    value, wanted = pickle.loads(base64.b64decode(data)), eval(text)
    if isinstance(wanted, torch.nn.Parameter):
        print(type(value).__name__, value.tolist(), value.requires_grad)
    elif isinstance(wanted, functools.partial):
        print(value.func is wanted.func, value.keywords)
    else:
        print(value is wanted)
"""


def test_pickles_of_pytorch():
    code = PROGRAM.format(pickles=PICKLES)
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert child.returncode == 0, child.stderr
    assert child.stdout.splitlines() == [
        *["True"] * 3,
        "True {'alpha': 2}",
        "Parameter [1.0, 2.0] True",
    ]


@pytest.mark.parametrize("name", ["sin", "add_", "view", "__add__", "to", "cov"])
def test_methods_are_pickled_by_their_names(name):
    method = getattr(jaxgrad.Tensor, name)
    assert pickle.loads(pickle.dumps(method)) is method


@pytest.mark.parametrize("name", ["cudnn_convolution", "miopen_rnn", "mkldnn_max_pool2d"])
def test_functions_of_libraries_are_there_and_raise_when_called(name):
    assert hasattr(jaxgrad, name) and is_placeholder(getattr(jaxgrad, name))
    with pytest.raises(NotImplementedError, match=f"torch.{name} is not provided by jaxgrad"):
        getattr(jaxgrad, name)(jaxgrad.ones(1, 1, 2, 2))


def test_private_names_that_programs_test_for_are_not_there():
    assert not hasattr(jaxgrad, "_scaled_grouped_mm") and not hasattr(jaxgrad, "npu")


def test_names_of_libraries_that_work():
    assert jaxgrad.has_lapack and not jaxgrad.is_vulkan_available()
    assert not jaxgrad.cudnn_is_acceptable(jaxgrad.ones(2))
    assert jaxgrad.crow_indices_copy(jaxgrad.eye(2).to_sparse_csr()).tolist() == [0, 1, 2]
    assert jaxgrad.autocast_increment_nesting() == 1 and jaxgrad.autocast_decrement_nesting() == 0
    assert jaxgrad.wait(jaxgrad.fork(lambda x: x + 1, jaxgrad.ones(1))).tolist() == [2.0]
    assert str(jaxgrad.parse_schema("aten::a(Tensor x) -> Tensor")) == "aten::a(Tensor x) -> Tensor"
    image, weight = jaxgrad.ones(1, 1, 2, 2), jaxgrad.ones(1, 1, 1, 1)
    result = jaxgrad.mkldnn_convolution(image, weight, None, [0, 0], [2, 2], [1, 1], 1)
    assert result.tolist() == [[[[1.0]]]]
    with pytest.raises(RuntimeError, match="Invalid value range for 7 between"):
        jaxgrad.sym_constrain_range(7, min=1, max=5)
    with pytest.raises(TypeError, match="set_flush_denormal expects a bool"):
        jaxgrad.set_flush_denormal(1)
