"""The modules and optimizers of PyTorch's own lists against the installed PyTorch, in samples of a
seed: results, gradients, state, text, copies, wrong arguments, and the names that objects have.

make oracle ARGUMENTS=modules     (`--seed N` repeats a run)
"""

import copy
import io
import pickle
import random
import warnings

import numpy as np
import pytest
import torch
from oracle.seed import SEED
from torch.testing._internal.common_modules import module_db
from torch.testing._internal.common_optimizers import optim_db

import jaxgrad

pytestmark = pytest.mark.filterwarnings("ignore")

SAMPLES_OF_A_MODULE = 4

# what PyTorch cannot compute on CPUs, and options that change how it computes
REFUSED = ("capturable", "fused")


def sampled(values, count, label):
    values = list(values)
    return random.Random(f"{SEED} {label}").sample(values, min(count, len(values)))


def converted(value):
    """The value with jaxgrad's objects in the place of PyTorch's."""
    if isinstance(value, torch.nn.Module):
        file = io.BytesIO()
        torch.save(value, file)
        file.seek(0)
        return jaxgrad.load(file, weights_only=False)
    if isinstance(value, torch.Tensor):
        tensor = jaxgrad.tensor(value.detach().numpy().copy())
        if isinstance(value, torch.nn.Parameter):
            return jaxgrad.nn.Parameter(tensor)
        return tensor.requires_grad_(value.requires_grad)
    if isinstance(value, torch.dtype):
        return getattr(jaxgrad, str(value).removeprefix("torch."))
    if isinstance(value, dict):
        return {name: converted(part) for name, part in value.items()}
    if isinstance(value, torch.nn.utils.rnn.PackedSequence):
        return jaxgrad.nn.utils.rnn.PackedSequence(*map(converted, value))
    if isinstance(value, list | tuple):
        return type(value)(map(converted, value))
    if callable(value) and (getattr(value, "__module__", None) or "").startswith("torch"):
        spaces = jaxgrad, jaxgrad.nn.functional, jaxgrad.nn, jaxgrad.optim
        name = value.__name__
        return next(getattr(space, name) for space in spaces if hasattr(space, name))
    return value


def plain(value):
    """Numbers, shapes and dtypes of all tensors."""
    if isinstance(value, torch.Tensor | jaxgrad.Tensor):
        dense = value.detach().to_dense() if value.is_sparse else value.detach()
        numbers = np.asarray(dense).astype(np.complex128)
        return str(value.dtype), value.requires_grad, numbers
    if isinstance(value, dict):
        return {str(name): plain(part) for name, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, list | tuple) else value


def check(result, expected, label):
    if isinstance(expected, dict):
        assert list(result) == list(expected), label
        result, expected = list(result.values()), list(expected.values())
    if isinstance(expected, list | tuple):
        assert len(result) == len(expected), label
        for parts in zip(result, expected, strict=True):
            check(*parts, label)
    elif isinstance(expected, np.ndarray):
        np.testing.assert_allclose(result, expected, 1e-6, 1e-7, err_msg=label)
    else:
        assert result == expected, label


def answer(function):
    """What a call returns, or its error."""
    try:
        return function(), None
    except Exception as error:
        return None, error


def seeded(module, arguments):
    jaxgrad.manual_seed(SEED)
    return module(*arguments[0], **arguments[1])


def without_dropout(module):
    for part in module.modules():
        if isinstance(getattr(part, "dropout", None), float):
            part.dropout = 0.0
        if type(part).__name__.endswith(("Dropout", "Dropout1d", "Dropout2d", "Dropout3d")):
            part.eval()
    return module


def total(value):
    """A number that depends on all elements that have a gradient."""
    if isinstance(value, torch.Tensor | jaxgrad.Tensor):
        real = value.abs() if value.is_complex() else value
        return (real * real.detach() + real).sum() if value.requires_grad else 0
    parts = value.values() if isinstance(value, dict) else value
    return sum(map(total, parts)) if isinstance(value, dict | list | tuple) else 0


MODULES = {info.name: info for info in module_db if not info.name.startswith("nn.Lazy")}


@pytest.mark.parametrize("name", MODULES)
def test_modules(name):
    info = MODULES[name]
    kind = getattr(jaxgrad.nn, info.module_cls.__name__)
    options = {"device": "cpu", "dtype": torch.float64, "requires_grad": True}
    for training in (True, False):
        torch.manual_seed(SEED)
        samples = info.module_inputs_func(info, training=training, **options)
        for sample in sampled(samples, SAMPLES_OF_A_MODULE, name):
            if sample.forward_input is not None:
                compare_modules(info.module_cls, kind, sample, training, f"SEED={SEED} {name}")


def compare_modules(expected_kind, kind, sample, training, label):
    constructor, call = sample.constructor_input, sample.forward_input
    label += f" {sample.desc} {constructor.args} {constructor.kwargs}"
    theirs = expected_kind(*constructor.args, **constructor.kwargs).double().train(training)
    ours = (
        kind(*converted(list(constructor.args)), **converted(constructor.kwargs))
        .double()
        .train(training)
    )
    ours.load_state_dict(converted(dict(theirs.state_dict())))
    without_dropout(theirs), without_dropout(ours)
    names = [n for n in dir(theirs) if n[0] != "_" or n in ("__constants__", "_call_impl")]
    assert [name for name in names if not hasattr(ours, name)] == [], label
    assert getattr(ours, "__constants__", None) == getattr(theirs, "__constants__", None), label
    assert repr(ours) == repr(theirs), label
    arguments = converted(list(call.args)), converted(call.kwargs)
    expected, expected_error = answer(lambda: theirs(*call.args, **call.kwargs))
    result, error = answer(lambda: ours(*arguments[0], **arguments[1]))
    assert type(error).__name__ == type(expected_error).__name__, (label, error, expected_error)
    if error is not None:
        return
    check(plain(result), plain(expected), label)
    if isinstance(total(expected), torch.Tensor):
        total(expected).backward()
        total(result).backward()
        gradients = ({n: p.grad for n, p in m.named_parameters()} for m in (ours, theirs))
        check(*map(plain, gradients), label)
    check(plain(dict(ours.state_dict())), plain(dict(theirs.state_dict())), label)
    for again in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        check(plain(dict(again.state_dict())), plain(dict(ours.state_dict())), label)
        check(*(plain(seeded(module, arguments)) for module in (again, ours)), label)


@pytest.mark.parametrize(
    "name", [name for name in MODULES if MODULES[name].module_error_inputs_func]
)
def test_wrong_calls_of_modules(name):
    info = MODULES[name]
    wrong = info.module_error_inputs_func(info, "cpu", torch.float32, True, True)
    kind = getattr(jaxgrad.nn, info.module_cls.__name__)
    for case in wrong:
        constructor, call = (
            case.module_error_input.constructor_input,
            case.module_error_input.forward_input,
        )

        def run(kind=kind, constructor=constructor, call=call):
            module = kind(*converted(list(constructor.args)), **converted(constructor.kwargs))
            return None if call is None else module(*converted(list(call.args)))

        label = f"SEED={SEED} {name} {constructor.args} {constructor.kwargs}"
        with pytest.raises(case.error_type) as raised:
            run()
        assert raised.value.args, label


OPTIMIZERS = {info.optim_cls.__name__: info for info in optim_db}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name):
    for case in OPTIMIZERS[name].optim_inputs_func(device="cpu"):
        if any(case.kwargs.get(option) for option in REFUSED):
            continue
        runs = [steps(library, name, case.kwargs) for library in (jaxgrad, torch)]
        check(*runs, f"SEED={SEED} {name} {case.kwargs}")


def steps(library, name, options):
    """The parameters after steps on random numbers, and the state."""
    numbers = np.random.default_rng(SEED)
    shapes = ((3, 4), (2, 3)) if name == "Muon" else ((3, 4), (5,), ())
    params = [
        library.nn.Parameter(library.tensor(numbers.standard_normal(shape))) for shape in shapes
    ]
    convert = converted if library is jaxgrad else copy.deepcopy
    optimizer = getattr(library.optim, name)(params, **convert(options))
    target = [library.tensor(numbers.standard_normal(shape)) for shape in shapes]

    def closure():
        optimizer.zero_grad()
        loss = sum(((p - t) ** 2 + p**4 / 10).sum() for p, t in zip(params, target, strict=True))
        loss.backward()
        if name == "SparseAdam":
            for param in params:
                param.grad = param.grad.to_sparse() if param.ndim else None
        return loss

    for _ in range(3):
        if name == "LBFGS":
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()
    state = optimizer.state_dict()
    groups = [sorted(map(str, group)) for group in state["param_groups"]]
    kept = {} if name in ("LBFGS", "SparseAdam") else state["state"]
    return [plain(params), groups, plain(kept)]


def test_the_names_of_objects():
    with warnings.catch_warnings(action="ignore"):
        for label, make in {
            "scheduler": lambda t: t.optim.lr_scheduler.StepLR(
                t.optim.SGD([t.zeros(1, requires_grad=True)], lr=1.0), 1
            ),
            "distribution": lambda t: t.distributions.Gamma(1.0, 2.0),
            "dtype": lambda t: t.float32,
            "size": lambda t: t.Size([1]),
            "packed": lambda t: t.nn.utils.rnn.pack_sequence([t.ones(2)]),
        }.items():
            ours, theirs = make(jaxgrad), make(torch)
            assert not [name for name in dir(theirs) if not hasattr(ours, name)], label
