"""Models as their papers have them, one file each, written for PyTorch with the import changed.

A file imports `jaxgrad as torch`; PyTorch runs the same lines with the word `torch` in the place of
`jaxgrad`. It defines

    model()               a module without randomness in training: dropout 0
    batch(numbers)        the arguments of the loss after the model; `numbers(2, 3)` is a tensor of
                          float64 of that shape, between -1 and 1, and `numbers(2, 3, below=5)` one
                          of integers from 0 to 4
    loss(model, *batch)   a tensor without dimensions
    optimizer(parameters)
    blocks(model)         the modules whose calls are checkpointed; by default the children

and may define `weights(model, numbers)`, which sets weights where those of `set_weights` do not
serve. `run` trains a model for three steps and tells losses, gradients and parameters by their
norms and two projections. tests/whole/test_models.py compares that with what PyTorch gave
(models/<name>.answers.json, by oracle/record_models.py), eager, compiled and checkpointed;
oracle/live_models.py with the installed PyTorch, on other weights.

To add a model, add its file and run `make record PARTS=models`.
"""

import importlib
import importlib.machinery
import importlib.util
import math
import pkgutil
import zlib
from pathlib import Path

import numpy
from helpers.answers import beside

NAMES = sorted(module.name for module in pkgutil.iter_modules(__path__))
MODES = ("eager", "compiled", "checkpointed")
STEPS = 3


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads a file with the name of another library in the place of `jaxgrad`."""

    def __init__(self, name, path, library):
        super().__init__(f"{name}_of_{library}", path)
        self.library = library

    def get_code(self, fullname):
        source = Path(self.path).read_text().replace("jaxgrad", self.library)
        return self.source_to_code(source, self.path)


def load(name, library="jaxgrad"):
    """The module of a file, importing `jaxgrad` or `torch`."""
    loader = _Loader(name, str(Path(__file__).with_name(f"{name}.py")), library)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


# weights and data


class Numbers:
    """Numbers without a pattern, for each purpose others: see above."""

    def __init__(self, torch, seed=0):
        self.torch, self.seed, self.count = torch, seed, 0

    def array(self, shape, purpose):
        # RandomState's streams never change, as those of numpy's newer generators may
        random = numpy.random.RandomState(zlib.crc32(f"{purpose} {self.seed}".encode()))
        return random.uniform(-1, 1, shape)

    def __call__(self, *shape, below=None):
        self.count += 1
        values = self.array(shape, self.count)
        if below is not None:
            values = numpy.floor((values + 1) / 2 * below).astype(numpy.int64)
        return self.torch.tensor(values)


def set_weights(model, numbers):
    """Matrices and kernels in proportion to 1 / sqrt(inputs), factors near 1, biases near 0."""
    for name, parameter in model.named_parameters():
        values = numbers.array(parameter.shape, name)
        if parameter.ndim > 1:
            values = values * math.sqrt(3 / math.prod(parameter.shape[1:]))
        else:
            values = 0.1 * values + name.endswith("weight")
        with numbers.torch.no_grad():
            parameter.copy_(numbers.torch.tensor(values))


def told(tensor, name):
    """The norm of a tensor and its products with two given tensors."""
    array = numpy.asarray(tensor.detach().tolist())
    pair = [Numbers(None).array(array.shape, f"{name} {i}") for i in range(2)]
    return [float(numpy.linalg.norm(array)), *(float((array * other).sum()) for other in pair)]


# training


def checkpoint_blocks(torch, blocks):
    """Let the modules recompute their calls in the backward pass."""
    checkpoint = importlib.import_module(f"{torch.__name__}.utils.checkpoint").checkpoint

    def checkpointed(forward):
        return lambda *args, **kwargs: checkpoint(forward, *args, use_reentrant=False, **kwargs)

    for block in blocks:
        block.forward = checkpointed(block.forward)


def run(name, library="jaxgrad", mode="eager", seed=0):
    """Losses, first gradients, and parameters and buffers after the steps, of a model; and how
    often the compiled step was traced.
    """
    torch = importlib.import_module(library)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        return _trained(torch, load(name, library), mode, Numbers(torch, seed))
    finally:
        torch.set_default_dtype(before)


def _trained(torch, file, mode, numbers):
    model = file.model()
    getattr(file, "weights", set_weights)(model, numbers)
    batch, optimizer = file.batch(numbers), file.optimizer(model.parameters())
    if mode == "checkpointed":
        blocks = getattr(file, "blocks", lambda model: model.children())
        checkpoint_blocks(torch, blocks(model))

    def step(*batch):
        optimizer.zero_grad()
        value = file.loss(model, *batch)
        value.backward()
        optimizer.step()
        return value.detach()

    step = torch.jit(step) if mode == "compiled" else step
    losses, gradients = [], {}
    for number in range(STEPS):
        losses.append(step(*batch).item())
        for name, parameter in model.named_parameters() if not number else ():
            if parameter.grad is not None:
                gradients[name] = told(parameter.grad, name)
    results = {"losses": losses, "gradients": gradients}
    results["state"] = {name: told(tensor, name) for name, tensor in model.state_dict().items()}
    return results, len(step.traces) if mode == "compiled" else 1


def path_of(name):
    """The file of what PyTorch gave for a model."""
    return beside(f"models/{name}.py")


def differences(theirs, ours, relative=1e-8):
    """What differs, by more than rounding, between two results of `run`.

    Projections may be small because of cancellation: their measure is the norm.
    """
    wrong = []
    for part in ("gradients", "state"):
        if list(theirs[part]) != list(ours[part]):
            wrong.append(f"{part}: {list(ours[part])} for {list(theirs[part])}")
            continue
        for name, expected in theirs[part].items():
            # gradients that are zero but for rounding, such as that of a key's bias
            size = relative * max(expected[0], 1e-4)
            if not numpy.allclose(expected, ours[part][name], rtol=0, atol=size):
                wrong.append(f"{part} of {name}: {ours[part][name]} for {expected}")
    if not numpy.allclose(theirs["losses"], ours["losses"], rtol=relative, atol=0):
        wrong.append(f"losses {ours['losses']} for {theirs['losses']}")
    return wrong
