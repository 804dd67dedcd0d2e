"""What the host runs for a step is what XLA compiles, and no trace grows with the parameters."""

import jax
import numpy
import pytest
from helpers.modes import eager

import jaxgrad
from jaxgrad.core import executor
from jaxgrad.core.host_values import HostValues
from jaxgrad.core.jax_internals import TRACE_EVENT
from jaxgrad.optim import group_block, initial_state, update_program

SHAPES = (3, 4), (1,), (), (5,), (5, 1, 1), (3, 4), (0, 2)
OPTIMIZERS = {
    "SGD": lambda params: jaxgrad.optim.SGD(params, 0.1, momentum=0.9, dampening=0.2),
    "plain SGD": lambda params: jaxgrad.optim.SGD(params, 0.1),
    "AdamW": lambda params: jaxgrad.optim.AdamW(params, 0.1, amsgrad=True),
    "Adam, rate as tensor": lambda params: jaxgrad.optim.Adam(params, jaxgrad.tensor(0.1)),
    "RMSprop": lambda params: jaxgrad.optim.RMSprop(params, centered=True, momentum=0.9),
    "Adagrad": lambda params: jaxgrad.optim.Adagrad(params, lr_decay=0.1),
    "Adadelta": lambda params: jaxgrad.optim.Adadelta(params),
    "Adamax": lambda params: jaxgrad.optim.Adamax(params),
    "NAdam": lambda params: jaxgrad.optim.NAdam(params),
    "RAdam": lambda params: jaxgrad.optim.RAdam(params),
    "Rprop": lambda params: jaxgrad.optim.Rprop(params),
    "ASGD": lambda params: jaxgrad.optim.ASGD(params, t0=1),
}
DTYPES = ["float32", "float64", "bfloat16", "complex64"]


def parameters(shapes, dtype):
    draw = numpy.random.default_rng(0)
    params = []
    for shape in shapes:
        param = jaxgrad.tensor(draw.standard_normal(shape)).to(getattr(jaxgrad, dtype))
        param.grad = jaxgrad.tensor(draw.standard_normal(shape)).to(param.dtype)
        params.append(param.requires_grad_())
    return params


@pytest.fixture
def programs(monkeypatch):
    """The programs of steps that have been prepared."""
    noted, prepare = [], executor.prepare

    def noting(program):
        if isinstance(program, update_program.UpdateProgram):
            noted.append(program)
        return prepare(program)

    monkeypatch.setattr(executor, "prepare", noting)
    jaxgrad.compiler.reset()
    return noted


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("piece", [group_block.PIECE, 4])
def test_the_block_of_a_group_computes_what_xla_does(name, dtype, piece, programs, monkeypatch):
    monkeypatch.setattr(group_block, "PIECE", piece)
    optimizer = OPTIMIZERS[name](parameters(SHAPES, dtype))
    for _ in range(2):
        optimizer.step()
    assert programs
    draw = numpy.random.default_rng(1)
    for program in programs:
        block = group_block.of(program)
        operands = [(0.5 + draw.random(form.shape)).astype(form.dtype) for form in block.inputs]
        for i in range(program.counts.start, len(operands)):
            is_count = i < program.counts.stop
            number = 3 if is_count else 0.1 + 0.01 * i
            operands[i] = numpy.full_like(operands[i], number)
        with numpy.errstate(all="ignore"):
            results = block.function(*operands)
        with jax.enable_x64(True):
            # hyperparameters are Python's numbers, which adapt to other dtypes
            pairs = zip(operands, program.inputs, strict=True)
            numbers = [array.item() if kind is float else array for array, kind in pairs]
            wanted = jax.jit(program.function)(*numbers)
        for result, expected, form in zip(results, wanted, block.outputs, strict=True):
            assert (numpy.shape(result), result.dtype) == form == (expected.shape, expected.dtype)
            wide = "complex128" if form.dtype.kind == "c" else "float64"
            eps = float(jax.numpy.finfo(form.dtype).eps)
            numpy.testing.assert_allclose(
                numpy.asarray(result, wide), numpy.asarray(expected, wide), rtol=64 * eps, atol=eps
            )


def traces_of_a_step(count) -> int:
    noted = []
    # no templates are shipped for this dtype
    params = parameters([(n, n + 1) for n in range(2, 2 + count)], "float64")
    optimizer = jaxgrad.optim.NAdam(params)
    jaxgrad.compiler.reset()

    def note(event, _seconds, **_):
        noted.append(event == TRACE_EVENT)

    jax.monitoring.register_event_duration_secs_listener(note)
    try:
        optimizer.step()
        params[0].tolist()
    finally:
        jax.monitoring.unregister_event_duration_listener(note)
    return sum(noted)


def test_traces_do_not_grow_with_the_parameters():
    with eager("deferred"):
        traces_of_a_step(8)  # JAX keeps parts of a trace
        few, many = traces_of_a_step(8), traces_of_a_step(40)
    assert 0 < many <= few


def test_the_first_state_leaves_a_parameter_and_itself_with_numpy():
    param = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
    state = initial_state.filled(param, 0.5)
    for tensor in (param, state):
        assert type(tensor._value.stretch) is HostValues and tensor._value.array is None
    assert state.tolist() == [0.5, 0.5] and state.device == param.device
