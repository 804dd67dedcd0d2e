"""Printing against PyTorch's, as tests/oracle/record_printing.py recorded it."""

import numpy
import pytest
from helpers import checks
from helpers.answers import beside, load

from jaxgrad.core import dtypes
from jaxgrad.frontend.printing import arrays as printing

RECORDED = load(beside(__file__))


@pytest.fixture(autouse=True)
def default_settings():
    yield
    printing.set_printoptions(profile="default")
    dtypes.set_default_dtype(dtypes.float32)


def array_of(recorded):
    dtype = getattr(dtypes, recorded["dtype"])
    values = numpy.array(recorded.get("values", []))
    if "range" in recorded:
        values = numpy.arange(recorded["range"]) * recorded["scale"]
    elif dtype.is_complex:
        values = values.reshape(-1, 2).astype(float).view(complex)
    return values.astype(dtype.numpy).reshape(recorded["shape"])


@pytest.mark.parametrize("recorded", RECORDED)
def test_printed_text_is_pytorchs(recorded):
    dtypes.set_default_dtype(getattr(dtypes, recorded.get("default", "float32")))
    printing.set_printoptions(**recorded.get("options", {}))
    requires_grad = "requires_grad" in recorded or "grad_fn" in recorded
    text = printing.tensor_str(
        array_of(recorded),
        getattr(dtypes, recorded["dtype"]),
        requires_grad,
        recorded.get("grad_fn"),
    )
    assert text == recorded["text"]
    checks.count("printing")


def test_printed_text_names_other_devices():
    values = numpy.array([1.0, 2.0], numpy.float64)
    # as PyTorch prints torch.tensor([1., 2.], dtype=torch.float64, device="cuda:0")
    expected = "tensor([1., 2.], device='cuda:0', dtype=torch.float64)"
    assert printing.tensor_str(values, dtypes.float64, device="cuda:0") == expected


def test_sci_mode_is_dropped_unless_given_again():
    printing.set_printoptions(sci_mode=True)
    assert printing.get_printoptions()["sci_mode"] is True
    printing.set_printoptions(precision=3)
    assert printing.get_printoptions()["sci_mode"] is None
    assert printing.tensor_str(numpy.array(0.5), dtypes.float32) == "tensor(0.500)"


@pytest.mark.parametrize("wrong", [{"profile": "long"}, {"precision": -1}, {"edgeitems": "many"}])
def test_wrong_options_change_nothing(wrong):
    before = printing.get_printoptions()
    (name, value), *_ = wrong.items()
    with pytest.raises(ValueError, match=f"set_printoptions: {name} is {value!r}, must be"):
        printing.set_printoptions(**wrong)
    assert printing.get_printoptions() == before
