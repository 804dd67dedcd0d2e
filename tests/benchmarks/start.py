"""First calls: how long a script waits before its first result. Each row runs in a process of its
own, with jaxgrad, with torch where it is installed, and with JAX by hand where a row has it.

    python tests/benchmarks/start.py [row ...]
"""

import importlib
import importlib.util
import os
import subprocess
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import figures
import jax
import numpy as np

ROUNDS = figures.rounds(3, 1)
CLASSES = 1000


class Clock:
    """Prints the seconds since it was made, or since the last lap."""

    def __init__(self):
        self.begun = time.perf_counter()

    def lap(self, what):
        print(f"{what}\t{time.perf_counter() - self.begun}", flush=True)
        self.begun = time.perf_counter()


def values(tensors):
    """Wait for the numbers of tensors."""
    for tensor in tensors:
        tensor.detach().numpy()


def mobilenet(torch):
    """MobileNetV2 as torchvision makes it: built, a second one loaded with its weights, and run."""
    import networks

    constants = {"TABLE": networks.TABLE, "FIRST": 32, "LAST": 1280, "CLASSES": CLASSES}
    make, draw = networks.network("mobilenet_v2", **constants), np.random.default_rng(0)
    clock = Clock()
    model = initialized(torch, make(torch))
    values(model.parameters())
    clock.lap("MobileNetV2 built")
    state = {name: value.clone() for name, value in model.state_dict().items()}
    other = make(torch)
    values([*state.values(), *other.state_dict().values()])
    clock = Clock()
    other.load_state_dict(state)
    values(other.state_dict().values())
    clock.lap("load_state_dict of it")
    images = torch.tensor(draw.standard_normal((1, 3, 224, 224)).astype(np.float32))
    model.eval()
    clock = Clock()
    with torch.no_grad():
        values([model(images)])
    clock.lap("its first eager forward pass, 224x224")


def initialized(torch, model):
    """The weights that torchvision draws."""
    init, nn = torch.nn.init, torch.nn
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d):
            init.kaiming_normal_(layer.weight, mode="fan_out")
        elif isinstance(layer, nn.BatchNorm2d):
            init.ones_(layer.weight)
            init.zeros_(layer.bias)
        elif isinstance(layer, nn.Linear):
            init.normal_(layer.weight, 0, 0.01)
            init.zeros_(layer.bias)
    return model


def transformer(torch):
    """Two eager steps of a transformer of four layers, with Adam."""
    import training

    clock = Clock()
    step, batch = training.script(torch, training.cases()["transformer"], {})
    clock.lap("a transformer of 4 layers built")
    for number in ("first", "second"):
        values([step(*batch)])
        clock.lap(f"its {number} eager step")


def lengths(torch, compiled=False):
    """Value and gradients of an encoder layer for sequences of new lengths."""
    layer = torch.nn.TransformerEncoderLayer(64, 4, 256, batch_first=True)

    def step(x):
        layer.zero_grad()
        layer(x).sum().backward()

    call = torch.compile(step) if compiled else step
    for length in (16, 17, 18, 19):
        x, clock = torch.randn(4, length, 64), Clock()
        call(x)
        values([parameter.grad for parameter in layer.parameters()])
        if length > 17:
            clock.lap(f"a new length of an encoder layer, {'compiled' if compiled else 'eager'}")


def compiled_lengths(torch):
    lengths(torch, compiled=True)


def lengths_by_hand():
    """The same layer, without dropout, as a pure function."""
    import jax.numpy as jnp
    from training import attend_heads, layer_norm, linear

    draw = np.random.default_rng(0).standard_normal
    sizes = {"qkv": (192, 64), "out": (64, 64), "up": (256, 64), "down": (64, 256)}
    weights = {f"{name}.weight": draw(size) * 0.1 for name, size in sizes.items()}
    weights |= {f"{name}.bias": np.zeros(size[0]) for name, size in sizes.items()}
    for name in ("first", "second"):
        weights |= {f"{name}.weight": np.ones(64), f"{name}.bias": np.zeros(64)}
    weights = jax.tree.map(lambda value: jnp.asarray(value, jnp.float32), weights)

    def loss(weights, x):
        attended = attend_heads(linear(weights, "qkv", x), 4, is_causal=False)
        x = layer_norm(weights, "first", x + linear(weights, "out", attended))
        inner = jax.nn.relu(linear(weights, "up", x))
        return layer_norm(weights, "second", x + linear(weights, "down", inner)).sum()

    step = jax.jit(jax.value_and_grad(loss))
    for length in (16, 17, 18, 19):
        x, clock = jnp.asarray(draw((4, length, 64)), jnp.float32), Clock()
        jax.block_until_ready(step(weights, x))
        if length > 17:
            clock.lap("a new length of an encoder layer, compiled")


def compiled_step(torch):
    """The first call of a compiled training step of MobileNetV2, with Adam."""
    import networks
    import training

    step, batch = training.script(torch, networks.cases()["MobileNet v2"], {})
    compiled, clock = torch.compile(step), Clock()
    values([compiled(*batch)])
    clock.lap("MobileNetV2: first compiled step, 8 of 64x64")


def compiled_step_by_hand():
    import networks
    import training

    case = networks.cases()["MobileNet v2"]
    step, arrays, inputs = training.by_hand(case, training.initial_weights(case))
    state = training.optax.adam(training.RATE).init(arrays)
    clock = Clock()
    jax.block_until_ready(step(arrays, state, *inputs))
    clock.lap("MobileNetV2: first compiled step, 8 of 64x64")


# the rows: a function of the library, and the same by hand
ROWS = {
    "mobilenet": (mobilenet, None),
    "transformer": (transformer, None),
    "lengths": (lengths, None),
    "compiled_lengths": (compiled_lengths, lengths_by_hand),
    "compiled_step": (compiled_step, compiled_step_by_hand),
}


def seconds(row: str, library: str) -> dict[str, float]:
    """The seconds of each lap of a row, in a new process; of laps of one name the mean."""
    command = [sys.executable, __file__, row, library]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    laps = {}
    for line in output.splitlines():
        name, duration = line.split("\t")
        laps.setdefault(name, []).append(float(duration))
    return {name: sum(durations) / len(durations) for name, durations in laps.items()}


def start(rows=()):
    """Print the least of each lap over rounds in turns."""
    has_torch = importlib.util.find_spec("torch") is not None
    print(f"(q) first calls in a new process, s, the least of {ROUNDS}")
    for row in rows or ROWS:
        libraries = ["jaxgrad", *["torch"] * has_torch, *["hand"] * (ROWS[row][1] is not None)]
        by_library = {library: [] for library in libraries}
        for _ in range(ROUNDS):
            for library in libraries:
                by_library[library].append(seconds(row, library))
        for lap in by_library["jaxgrad"][0]:
            least = {name: min(times[lap] for times in laps) for name, laps in by_library.items()}
            print(f"    {lap:<50}", *[f"{name} {value:.2f}" for name, value in least.items()])
            of_hand = {"hand": "JAX by hand"}
            chart = {lap: {of_hand.get(name, name): value for name, value in least.items()}}
            base = "JAX by hand" if "hand" in least else "torch"
            title = "Compiled" if "hand" in least else "Eager"
            figures.note("q", title, "s", base, chart)


if __name__ == "__main__":
    if sys.argv[2:] and sys.argv[2] in ("jaxgrad", "torch", "hand"):
        function, by_hand = ROWS[sys.argv[1]]
        by_hand() if sys.argv[2] == "hand" else function(importlib.import_module(sys.argv[2]))
    else:
        start(sys.argv[1:])
