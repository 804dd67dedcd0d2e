"""The examples of the table, run by PyTorch: `make oracle`."""

import pytest
import torch

from jaxgrad import ops

TABLE = ops.library.table
# Operators that PyTorch has under no name.
OURS = {"_select", "_slice", "_fill_diagonal"}


@pytest.mark.parametrize("name", [name for name in TABLE.names if name not in OURS])
def test_pytorch_returns_what_the_example_says(name):
    call, result = TABLE.example(name)
    code = compile(call.replace("torch.ops.", "torch.ops.aten."), name, "eval")
    assert " ".join(repr(eval(code, {"torch": torch})).split()) == result
