"""The examples of the table, run by PyTorch: `make oracle`."""

import re

import pytest
import torch

from jaxgrad import ops

TABLE = ops.library.table
FOR_GPUS = {"_thnn_fused_lstm_cell", "_thnn_fused_gru_cell"}  # PyTorch has no others


def call_by_pytorch(name):
    return TABLE.example(name)[0].replace("torch.ops.", "torch.ops.aten.")


def has_pytorch(name):
    """Whether PyTorch can run the example here: it has not all names under `torch.ops`."""
    called = re.findall(r"torch\.ops\.aten\.(\w+)", call_by_pytorch(name))
    return all(
        hasattr(torch.ops.aten, operator) and operator not in FOR_GPUS for operator in called
    )


@pytest.mark.filterwarnings("ignore::UserWarning")  # of names that PyTorch deprecates
@pytest.mark.parametrize("name", [name for name in TABLE.names if has_pytorch(name)])
def test_pytorch_returns_what_the_example_says(name):
    result = eval(compile(call_by_pytorch(name), name, "eval"), {"torch": torch})
    assert " ".join(repr(result).split()) == " ".join(TABLE.example(name)[1].split())
