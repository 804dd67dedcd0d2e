"""`torch.gradient`: the dtypes of values and coordinates."""

import pytest
from helpers.as_torch import as_torch

import jaxgrad


@as_torch(precision=1e-7)
def test_dtypes_of_results(torch):
    answers = {}
    for name in ("float16", "bfloat16", "float64", "int64", "int8", "complex64"):
        values = torch.tensor([0, 1, 4, 9]).to(getattr(torch, name))
        places = torch.tensor([0.0, 1.0, 4.0, 9.0], dtype=torch.float64)
        spacings = {
            "number": 2,
            "0-d": torch.tensor(2.0, dtype=torch.float64),
            "float64": (places,),
            "float32": (places.float(),),
            "int8": (places.to(torch.int8),),
        }
        for kind, spacing in spacings.items():
            (result,) = torch.gradient(values, spacing=spacing)
            answers[f"{name} {kind}"] = result
    return answers


@as_torch("""
    [tensor([630.0, 230.0, -170.0, -570.0])]
    [tensor([-100.0, -20.0, 60.0])]
""")
def test_integers_do_not_wrap_around_at_the_ends(torch):
    values = torch.tensor([0, 43, 46, 9], dtype=torch.int8)
    places = torch.tensor([0, 1, 2])
    return (
        torch.gradient(values, spacing=0.1, edge_order=2),
        torch.gradient(torch.tensor([100, 0, 60]), spacing=(places,)),
    )


def test_bytes_are_refused():
    with pytest.raises(RuntimeError, match="does not support uint8 input"):
        jaxgrad.gradient(jaxgrad.tensor([3, 1, 2], dtype=jaxgrad.uint8))
