"""What operators say of a PyTorch tensor. PyTorch is not installed where the tests run, so a class
of the same name stands for its own; tests/oracle/live_files.py takes PyTorch's own tensors.
"""

import pytest

import jaxgrad
from jaxgrad.core.pytorch_tensors import is_of_pytorch, type_name

Tensor = type("Tensor", (), {"__module__": "torch", "shape": (2,), "dtype": "torch.float32"})
THEIRS = Tensor()
OURS = jaxgrad.ones(2)

ADVICE = r"PyTorch tensor \(convert it by jaxgrad\.as_tensor\)"


def test_whose_tensor_it_is():
    parameter = type("Parameter", (Tensor,), {"__module__": "torch.nn.parameter"})()
    assert is_of_pytorch(THEIRS) and is_of_pytorch(parameter)
    for value in (OURS, jaxgrad.nn.Parameter(OURS), 1.0, None, [THEIRS], Tensor, "torch.Tensor"):
        assert not is_of_pytorch(value)
    assert type_name([OURS]) == "list"
    assert type_name([THEIRS]) == "list of PyTorch tensors (convert them by jaxgrad.as_tensor)"


CALLS = {
    "operator": lambda: jaxgrad.sin(THEIRS),
    "second argument": lambda: jaxgrad.matmul(OURS, THEIRS),
    "overloads": lambda: OURS + THEIRS,
    "reflected": lambda: THEIRS * OURS,
    "comparison": lambda: OURS == THEIRS,
    "list": lambda: jaxgrad.cat([OURS, THEIRS]),
    "in place": lambda: OURS.clone().add_(THEIRS),
    "assigned item": lambda: OURS.clone().__setitem__(0, THEIRS),
    "like": lambda: jaxgrad.zeros_like(THEIRS),
    "shape": lambda: jaxgrad.ones(THEIRS),
    "function": lambda: jaxgrad.einsum("i,i->", OURS, THEIRS),
    "module": lambda: jaxgrad.nn.Linear(2, 2)(THEIRS),
    "parameter": lambda: jaxgrad.nn.Parameter(THEIRS),
    "buffer": lambda: jaxgrad.nn.Module().register_buffer("a", THEIRS),
    "optimizer": lambda: jaxgrad.optim.SGD([THEIRS]),
    "gradient": lambda: setattr(OURS.clone(), "grad", THEIRS),
    "data": lambda: setattr(OURS.clone(), "data", THEIRS),
    "backward": lambda: jaxgrad.autograd.grad(THEIRS, OURS),
    "compiled": lambda: jaxgrad.jit(lambda x: x)([THEIRS]),
    "conversion": lambda: OURS.to(THEIRS),
    "foreach": lambda: jaxgrad._foreach_add([THEIRS], 1),
    "saving": lambda: jaxgrad.save([THEIRS], "/nowhere"),
    "comparing": lambda: jaxgrad.equal(OURS, THEIRS),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_errors_say_what_it_is(call):
    with pytest.raises(TypeError, match=r"PyTorch tensors? \(convert"):
        call()


def test_errors_of_other_types():
    with pytest.raises(IndexError, match=ADVICE):
        OURS[type("Tensor", (Tensor,), {"__index__": lambda self: 0, "__module__": "a"})()]
    with pytest.raises(ValueError, match=ADVICE):
        jaxgrad.func.vmap(lambda x: x)(THEIRS)
    with pytest.raises(ValueError, match=ADVICE):
        jaxgrad.func.grad(lambda x: x)(THEIRS)


def test_a_dtype_of_PyTorch():
    dtype = type("dtype", (), {"__module__": "torch"})()
    with pytest.raises(TypeError, match=r"must be torch\.dtype, not PyTorch's dtype"):
        jaxgrad.zeros(2, dtype=dtype)


def test_a_constant_of_a_program():
    with pytest.raises(RuntimeError, match=r"convert it outside by jaxgrad\.as_tensor"):
        jaxgrad.jit(lambda x: x + jaxgrad.as_tensor(THEIRS))(OURS)
