"""What the programs of tests/ecosystem/programs share: their register, weights and inputs that are
equal in every process, and training that keeps all its numbers.

The programs and this module know PyTorch's names alone. one.py runs a program under PyTorch and
under jaxgrad, run.py compares the two.
"""

import dataclasses
import os
import statistics
import time
import zlib
from collections.abc import Callable, Mapping

import numpy as np

TOLERANCES = {"float32": 1e-4, "float64": 1e-8}
STEPS_BEFORE_TIMING = 10
TIMED_STEPS = 5
MOST_SECONDS_OF_TIMING = 10


@dataclasses.dataclass(frozen=True)
class Program:
    """A function that returns numbers, arrays and tensors by name, and how to compare them."""

    package: str
    name: str
    function: Callable
    compiled: bool
    dtype: str
    tolerance: float
    module: str

    @property
    def key(self):
        return f"{self.package}/{self.name}"


PROGRAMS = {}
times = {}  # of the running program: seconds of the median step


def program(package, name, compiled=False, dtype="float32", tolerance=None, module=None):
    """Register the decorated function of no argument, which returns its results by name.

    `compiled` asks for one more run, in which `train` compiles its whole step. `module` is what
    the package is imported as, where that is not its name; its import is not timed.
    """

    def register(function):
        made_of = (package, name, function, compiled, dtype, tolerance or TOLERANCES[dtype])
        entry = Program(*made_of, module or package.replace("-", "_"))
        if entry.key in PROGRAMS:
            raise ValueError(f"two programs have the name {entry.key}")
        PROGRAMS[entry.key] = entry
        return function

    return register


def generator_of(name):
    """NumPy's generator that a name stands for, the same in every process."""
    return np.random.default_rng(zlib.crc32(name.encode()))


def normal(*shape, name="input", scale=1.0):
    """A tensor of normally distributed numbers that depend on its name and shape alone."""
    import torch

    values = generator_of(name).standard_normal(shape) * scale
    return torch.tensor(values, dtype=torch.get_default_dtype())


def uniform(*shape, name="input"):
    """A tensor of numbers between 0 and 1 that depend on its name and shape alone."""
    import torch

    return torch.tensor(generator_of(name).random(shape), dtype=torch.get_default_dtype())


def integers(high, *shape, low=0, name="input"):
    """A tensor of integers from `low` to `high` - 1 that depend on its name and shape alone."""
    import torch

    return torch.tensor(generator_of(name).integers(low, high, shape), dtype=torch.int64)


def fill(model, buffers=()):
    """Set a module's parameters, and the buffers whose names end so, from their names; return it.

    Matrices keep the variance of their input, scales of normalizations stay near 1.
    """
    import torch

    with torch.no_grad():
        for name, tensor in model.named_parameters():
            set_from_name(name, tensor)
        for name, tensor in model.named_buffers():
            if buffers and name.endswith(tuple(buffers)):
                set_from_name(name, tensor)
    return model


def set_from_name(name, tensor):
    import torch

    if not (tensor.is_floating_point() or tensor.is_complex()):
        return
    values = generator_of(name).standard_normal(tuple(tensor.shape))
    if tensor.dim() < 2:
        is_scale = name.endswith(("weight", "scale", "gamma", "running_var"))
        values = (1.0 if is_scale else 0.0) + 0.1 * values
    else:
        fan_in = tensor[0].numel()
        values = values / np.sqrt(max(fan_in, 1))
    tensor.copy_(torch.tensor(values, dtype=tensor.dtype))


def train(model, loss_of, steps=3, learning_rate=1e-2, parameters=None, optimizer=None):
    """Train and return all numbers: first outputs, losses, first gradients, last parameters.

    `loss_of(model)` returns a loss, or an object with the loss as `loss` and other outputs, or a
    pair of loss and outputs. The epsilon of AdamW is large, so that the update depends smoothly on
    gradients that are zero but for rounding (those of the biases of keys, for example).
    """
    import torch

    parameters = [*(model.parameters() if parameters is None else parameters)]
    if optimizer is None:
        optimizer = torch.optim.AdamW(parameters, lr=learning_rate, eps=1e-3)

    def step():
        optimizer.zero_grad()
        outputs = loss_of(model)
        loss = loss_in(outputs)
        loss.backward()
        optimizer.step()
        return outputs

    results = {}
    if os.environ.get("ECOSYSTEM_COMPILED"):
        step = torch.compile(step)
    for index in range(steps):
        outputs = step()
        results[f"loss.{index}"] = loss_in(outputs)
        if index == 0:
            results |= named(outputs, "output")
            results |= gradients(model)
    results |= state_of(model)
    results = {name: as_array(value) for name, value in results.items()}
    # how many steps are timed depends on the machine: what follows has the numbers from before
    kept = [(tensor, tensor.detach().clone()) for tensor in state_of(model).values()]
    time_steps(lambda: loss_in(step()).item(), steps)
    with torch.no_grad():
        for tensor, value in kept:
            tensor.copy_(value)
    return results


def loss_in(outputs):
    """The loss among the outputs of a model."""
    if hasattr(outputs, "loss") and outputs.loss is not None:
        return outputs.loss
    return outputs[0] if isinstance(outputs, tuple | list) else outputs


def gradients(model):
    """The gradients of all parameters by name; a parameter that has none is left out."""
    return {
        f"gradient.{name}": parameter.grad
        for name, parameter in model.named_parameters()
        if parameter.grad is not None
    }


def state_of(model):
    """Parameters and buffers of a module, by name."""
    parameters = {f"parameter.{name}": value for name, value in model.named_parameters()}
    return parameters | {f"buffer.{name}": value for name, value in model.named_buffers()}


def named(outputs, name):
    """All tensors and numbers in nested tuples, lists, mappings and data classes, by their path."""
    if outputs is None or isinstance(outputs, str):
        return {}
    if isinstance(outputs, Mapping):
        entries = outputs.items()
    elif isinstance(outputs, tuple | list):
        entries = enumerate(outputs)
    elif dataclasses.is_dataclass(outputs):
        entries = vars(outputs).items()
    else:
        return {name: outputs} if is_numeric(outputs) else {}
    results = {}
    for key, value in entries:
        results |= named(value, f"{name}.{key}")
    return results


def is_numeric(value):
    return hasattr(value, "detach") or isinstance(value, np.ndarray | np.generic | int | float)


def as_array(value):
    """A NumPy array with the numbers of a tensor, array, number or list of numbers."""
    if not hasattr(value, "detach"):
        array = np.array(value)
        if array.dtype == object:
            raise TypeError(f"a program may not return {value!r}")
        return array
    import torch

    tensor = value.detach().cpu()
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    if tensor.dtype in (torch.bfloat16, torch.float16):
        tensor = tensor.float()
    return np.array(tensor.resolve_conj().numpy())


def time_steps(step, steps_so_far=0):
    """Keep the time of the median step, from the eleventh on where the time for it suffices."""
    start, seconds = time.perf_counter(), []
    while time.perf_counter() - start < MOST_SECONDS_OF_TIMING:
        before = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - before)
        if len(seconds) + steps_so_far == STEPS_BEFORE_TIMING + TIMED_STEPS:
            break
    times["step"] = statistics.median(seconds[-TIMED_STEPS:])
    times["steps_before"] = max(0, len(seconds) + steps_so_far - TIMED_STEPS)
