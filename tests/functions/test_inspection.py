"""Questions about tensors with an answer that is no tensor."""

import pytest
from helpers.pytorch_answers import check_refusal, refusals

import jaxgrad

REFUSED = [
    ("torch.is_nonzero(zeros(2))", RuntimeError, "Boolean value of Tensor with more than one"),
]


@refusals(REFUSED)
def test_errors_match_pytorch(call, error, words):
    check_refusal(jaxgrad, call, error, words)


def test_queries_of_memory_devices_and_types():
    x = jaxgrad.ones(2)
    told = (x.is_pinned(), x.is_shared(), x.is_meta, x.is_distributed(), jaxgrad.is_distributed(x))
    assert told == (False,) * 5 and x.name is None
    with pytest.raises(RuntimeError, match="processes cannot share it"):
        x.share_memory_()
    assert jaxgrad.typename(x) == "torch.FloatTensor" and jaxgrad.typename([]) == "list"
    assert x.as_subclass(jaxgrad.Tensor)._is_view()
    with pytest.raises(TypeError, match="Parameter"):
        x.as_subclass(jaxgrad.nn.Parameter)
