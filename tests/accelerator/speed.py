"""Times on the device of JAX, beside PyTorch where it has the same kind of device."""

import importlib.util
import statistics
import sys
import time

import gpt2
import jax
import models

import jaxgrad
from accelerator.parts import Part

# The most that a chip computes in bfloat16, operations each second, without sparsity; by their
# makers' data sheets. A name is a part of JAX's `device_kind`.
PEAKS = {
    **{"H200": 989e12, "H100": 989e12, "A100": 312e12, "L4": 121e12, "V100": 125e12},
    **{"MI300X": 1307e12, "MI250": 383e12},
    **{"v6 lite": 918e12, "v5 lite": 197e12, "v5p": 459e12, "v5": 459e12, "v4": 275e12},
}
ROUNDS = 5


def peak_of(kind: str) -> float | None:
    return next((peak for name, peak in PEAKS.items() if name.lower() in kind.lower()), None)


class Library:
    """jaxgrad or PyTorch: `torch` is the module, `device` the word for its device."""

    def __init__(self, name: str):
        self.name = name
        if name == "torch":
            self.torch = importlib.import_module("torch")
            self.device = "cuda" if self.torch.cuda.is_available() else "cpu"
        else:
            self.torch, self.device = jaxgrad, str(jaxgrad.zeros(()).device)
        self.torch.manual_seed(0)

    def wait(self, result):
        if self.name != "torch":
            jax.block_until_ready(result._array)
        elif self.device == "cuda":
            self.torch.cuda.synchronize()

    def compiled(self, function):
        return self.torch.jit(function) if self.name == "jaxgrad" else function


def libraries() -> list[Library]:
    both = [Library("jaxgrad")]
    if importlib.util.find_spec("torch"):
        torch = Library("torch")
        is_gpu = jax.default_backend() in ("gpu", "cuda", "rocm")
        both += [torch] if (torch.device == "cuda") == is_gpu else []
    return both


def seconds(library: Library, call, part: Part, least=0.02) -> float | None:
    """The median time of a call; None where the time of the part is over before the first."""
    if part.is_over():
        return None
    for _ in range(3):  # traces, compiles, and notes that it repeats
        library.wait(call())
    count, times = 1, []
    while len(times) < ROUNDS and not (times and part.is_over()):
        begun = time.perf_counter()
        for _ in range(count):
            result = call()
        library.wait(result)
        duration = time.perf_counter() - begun
        if duration < least and count < 1024:
            count *= 2
            continue
        times.append(duration / count)
    return statistics.median(times)


def operators(part: Part):
    """Microseconds of a call of 2^22 numbers in float32, values alone."""
    part.result |= {"unit": "us", "rows": {}}
    for library in libraries():
        with library.torch.no_grad():
            for name, call in calls_of(library).items():
                row = part.result["rows"].setdefault(name, {})
                row[library.name] = in_units(seconds(library, call, part), 1e6)
                part.write()


def calls_of(library: Library) -> dict:
    torch, device = library.torch, library.device
    x = torch.rand(2048, 2048, device=device)
    index = torch.randint(0, 2048, (2048,), device=device)
    images = torch.rand(16, 16, 128, 128, device=device)
    kernel = torch.rand(16, 16, 3, 3, device=device)
    return {
        "add": lambda: x + x,
        "exp": lambda: torch.exp(x),
        "sum": lambda: x.sum(),
        "softmax": lambda: torch.softmax(x, -1),
        "layer_norm": lambda: torch.nn.functional.layer_norm(x, (2048,)),
        "matmul": lambda: x @ x,
        "conv2d": lambda: torch.nn.functional.conv2d(images, kernel, padding=1),
        "cumsum": lambda: x.cumsum(-1),
        "sort": lambda: x.sort(-1)[0],
        "index_select": lambda: x.index_select(0, index),
        "transpose, contiguous": lambda: x.t().contiguous(),
    }


def in_units(value: float | None, units: float):
    return None if value is None else float(f"{value * units:.4g}")


def training(part: Part):
    """Milliseconds of a step with Adam, compiled by jaxgrad, and as PyTorch runs it."""
    part.result |= {"unit": "ms", "rows": {}}
    for library in libraries():
        for name, parts_of in {"MLP": mlp, "CNN": cnn, "transformer": transformer}.items():
            step = step_of(library, *parts_of(library))
            row = part.result["rows"].setdefault(name, {})
            row[library.name] = in_units(seconds(library, step, part), 1e3)
            part.write()


def step_of(library, model, loss_of, inputs):
    torch = library.torch
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step(*inputs):
        optimizer.zero_grad()
        loss = loss_of(model, *inputs)
        loss.backward()
        optimizer.step()
        return loss.detach()

    compiled = library.compiled(step)
    return lambda: compiled(*inputs)


def labelled(library, *shape, classes=10):
    torch, device = library.torch, library.device
    inputs = torch.rand(*shape, device=device)
    return inputs, torch.randint(0, classes, shape[:1], device=device)


def classified(library):
    return lambda model, x, y: library.torch.nn.functional.cross_entropy(model(x), y)


def mlp(library):
    nn = library.torch.nn
    layers = [nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(1024, 10)).to(library.device)
    return model, classified(library), labelled(library, 256, 784)


def cnn(library):
    nn = library.torch.nn
    layers = []
    for before, after in ((3, 32), (32, 64), (64, 128)):
        convolution = nn.Conv2d(before, after, 3, padding=1)
        layers += [convolution, nn.BatchNorm2d(after), nn.ReLU(), nn.MaxPool2d(2)]
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(128 * 16, 10)).to(library.device)
    return model, classified(library), labelled(library, 64, 3, 32, 32)


def transformer(library):
    torch, nn = library.torch, library.torch.nn
    layer = nn.TransformerEncoderLayer(256, 8, 1024, dropout=0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).to(library.device)
    inputs = torch.rand(8, 128, 256, device=library.device)
    return model, lambda model, x: model(x).square().mean(), (inputs,)


LENGTHS = (512, 1024, 2048, 4096, 8192, 16384)


def attention(part: Part):
    """Milliseconds of causal attention and its gradients by length: 8 heads of 64 in bfloat16, in
    float32 on a CPU.
    """
    part.result |= {"unit": "ms", "rows": {}}
    for length in LENGTHS:
        for library in libraries():
            duration = seconds(library, attention_step(library, length), part, least=0.1)
            row = part.result["rows"].setdefault(str(length), {})
            row[library.name] = in_units(duration, 1e3)
            part.write()


def attention_step(library: Library, length: int):
    torch = library.torch
    dtype = torch.float32 if library.device.startswith("cpu") else torch.bfloat16
    options = {"device": library.device, "dtype": dtype}
    tensors = [torch.rand(1, 8, length, 64, **options).requires_grad_() for _ in range(3)]

    def step(*tensors):
        attend = torch.nn.functional.scaled_dot_product_attention
        result = attend(*tensors, is_causal=True).float().sum()
        return torch.autograd.grad(result, tensors)[0]

    compiled = library.compiled(step)
    return lambda: compiled(*tensors)


def gpt2_training(part: Part):
    """Tokens each second of GPT-2 of 124M parameters with AdamW under bfloat16 autocast, and the
    share of the chip's peak that the products of the model use: six operations for each parameter
    and token.
    """
    part.result |= {"unit": "tokens/s", "rows": {}}
    shape = (2, 129) if jax.default_backend() == "cpu" else (8, 1025)
    for library in libraries():
        torch, file = library.torch, models.load("gpt", library.name)
        for constant, value in gpt2.SIZES.items():
            setattr(file, constant, value)
        model = file.model().to(library.device)
        tokens = torch.randint(0, gpt2.SIZES["VOCABULARY"], shape, device=library.device)

        def loss_of(model, tokens, torch=torch, file=file, library=library):
            kind = library.device.partition(":")[0]
            with torch.autocast(kind, torch.bfloat16, enabled=kind != "cpu"):
                return file.loss(model, tokens)

        duration = seconds(library, step_of(library, model, loss_of, (tokens,)), part)
        row = part.result["rows"].setdefault(f"{shape[0]} x {shape[1] - 1} tokens", {})
        if duration is not None:
            rate = shape[0] * (shape[1] - 1) / duration
            row[library.name] = float(f"{rate:.4g}")
            peak = peak_of(jax.devices()[0].device_kind)
            if library.name == "jaxgrad" and peak:
                count = sum(p.numel() for p in model.parameters())
                part.result["share of the peak"] = float(f"{6 * count * rate / peak:.3g}")
        part.write()


if __name__ == "__main__":
    part = Part(*sys.argv[1:])
    functions = {"operators": operators, "training": training, "attention": attention}
    (functions | {"gpt2": gpt2_training})[part.name](part)
