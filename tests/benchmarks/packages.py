"""Programs of packages for PyTorch, by torch and by jaxgrad in its place (`python -m jaxgrad run`):
a model is built, takes three steps of AdamW, and is evaluated, on small inputs. Each runs in a
process of its own, and a second one tells what is faster once a program has run.

    python tests/benchmarks/packages.py [NAME ...]
    python tests/benchmarks/packages.py --run NAME        # this process, as JSON

It needs, by `pip install --no-deps` since they ask for torch: torchvision==0.28.0, kornia==0.9.0,
kornia-rs, normflows==1.7.3, stable-baselines3==2.9.2, gymnasium, farama-notifications, pandas,
x-transformers==2.31.10, vector-quantize-pytorch==1.32.0 (with einx, loguru, torch-einops-utils and
frozendict), and torchdiffeq==0.2.5. A row whose package is not installed says so.
"""

import argparse
import importlib.util
import json
import math
import os
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import figures
import numpy as np
from tutorials import failure

STEPS = 3
COMMANDS = {"torch": (), "jaxgrad": ("-m", "jaxgrad", "run")}


def images(torch, size, count=2):
    draw = np.random.default_rng(0)
    return torch.from_numpy(draw.random((count, 3, size, size)).astype(np.float32))


def classifier(name, **options):
    """A row: a network of torchvision on two images of 64x64."""

    def row(torch):
        if "jaxgrad" not in sys.modules:
            define_operators(torch)
        models = importlib.import_module("torchvision.models")
        pixels, labels = images(torch, 64), torch.tensor([1, 2])

        def build():
            model = getattr(models, name)(num_classes=10, **options)
            loss_of = torch.nn.functional.cross_entropy
            return model, lambda: loss_of(model(pixels), labels), lambda: model(pixels)

        return build

    return row


def define_operators(torch):
    """Names that torchvision describes even where it cannot load its operators in C++, since PyPI's
    wheels are for PyTorch with CUDA. No row calls them.
    """
    (folder,) = importlib.util.find_spec("torchvision").submodule_search_locations
    try:
        torch.ops.load_library(f"{folder}/_C.so")
    except OSError:
        for name in ("nms", "qnms"):
            signature = "(Tensor boxes, Tensor scores, float threshold) -> Tensor"
            torch.library.define(f"torchvision::{name}", signature)


def kornia_geometry(torch):
    """Aligns images by a rotation, a scale, a translation and a homography."""
    geometry = importlib.import_module("kornia.geometry")
    pixels, nn = images(torch, 32), torch.nn

    class Alignment(nn.Module):
        def __init__(self):
            super().__init__()
            self.angle = nn.Parameter(torch.full((2,), 5.0))
            self.factor = nn.Parameter(torch.full((2, 2), 1.1))
            self.shift = nn.Parameter(torch.full((2, 2), 1.5))
            self.homography = nn.Parameter(torch.eye(3).repeat(2, 1, 1))

        def forward(self, pixels):
            center = torch.full((2, 2), 15.5)
            matrix = geometry.get_rotation_matrix2d(center, self.angle, self.factor)
            turned = geometry.warp_affine(pixels, matrix, (32, 32))
            moved = geometry.translate(turned, self.shift)
            return geometry.warp_perspective(moved, self.homography, (32, 32))

    def build():
        model, target = Alignment(), geometry.hflip(pixels)
        return model, lambda: ((model(pixels) - target) ** 2).mean(), lambda: model(pixels)

    return build


def normalizing_flow(torch):
    """A real NVP of normflows on points of the plane."""
    normflows = importlib.import_module("normflows")
    draw = np.random.default_rng(0)
    points = torch.from_numpy(draw.standard_normal((64, 2)).astype(np.float32))

    def build():
        flows = []
        for _ in range(4):
            network = normflows.nets.MLP([1, 32, 32, 2], init_zeros=True)
            flows.append(normflows.flows.AffineCouplingBlock(network))
            flows.append(normflows.flows.Permute(2, mode="swap"))
        model = normflows.NormalizingFlow(normflows.distributions.DiagGaussian(2), flows)
        return model, lambda: model.forward_kld(points), lambda: model.log_prob(points)

    return build


def transformer(torch):
    """A decoder of x-transformers on sequences of 32 tokens."""
    package = importlib.import_module("x_transformers")
    draw = np.random.default_rng(0)
    tokens = torch.from_numpy(draw.integers(0, 64, (2, 33)))

    def build():
        layers = package.Decoder(dim=64, depth=2, heads=4, rotary_pos_emb=True)
        network = package.TransformerWrapper(num_tokens=64, max_seq_len=64, attn_layers=layers)
        model = package.AutoregressiveWrapper(network)
        return model, lambda: model(tokens), lambda: network(tokens)

    return build


def differential_equation(torch):
    """A network as the right side of an equation that torchdiffeq solves, by the adjoint."""
    package = importlib.import_module("torchdiffeq")
    nn = torch.nn

    class Field(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))

        def forward(self, t, y):
            return self.net(y)

    def build():
        model, begin, times = Field(), torch.ones(4, 2), torch.linspace(0.0, 1.0, 5)

        def solve():
            return package.odeint_adjoint(model, begin, times, rtol=1e-4, atol=1e-5)

        return model, lambda: solve().square().mean(), solve

    return build


def quantizer(torch):
    """An autoencoder whose code vector-quantize-pytorch quantizes."""
    package = importlib.import_module("vector_quantize_pytorch")
    nn, pixels = torch.nn, images(torch, 32)

    class Autoencoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.Conv2d(3, 16, 4, stride=4)
            self.code = package.VectorQuantize(16, 32, accept_image_fmap=True)
            self.decoder = nn.ConvTranspose2d(16, 3, 4, stride=4)

        def forward(self, pixels):
            code, _, commitment = self.code(self.encoder(pixels))
            return self.decoder(code), commitment

    def build():
        model = Autoencoder()

        def loss():
            decoded, commitment = model(pixels)
            return ((decoded - pixels) ** 2).mean() + commitment.sum()

        return model, loss, lambda: model(pixels)[0]

    return build


def reinforcement(torch):
    """PPO of stable-baselines3 on a pole on a cart, which steps by itself."""
    package = importlib.import_module("stable_baselines3")
    evaluation = importlib.import_module("stable_baselines3.common.evaluation")
    policy = {"optimizer_class": torch.optim.AdamW}
    options = {"n_steps": 32, "batch_size": 32, "n_epochs": STEPS, "policy_kwargs": policy}

    def build():
        agent = package.PPO("MlpPolicy", "CartPole-v1", seed=0, device="cpu", **options)

        def evaluate():
            environment = agent.get_env()
            mean, _ = evaluation.evaluate_policy(agent, environment, 1, warn=False)
            return torch.tensor(mean)

        return agent, lambda: agent.learn(32), evaluate

    return build


ROWS = {
    "mobilenet_v3_small": classifier("mobilenet_v3_small"),
    "squeezenet1_1": classifier("squeezenet1_1"),
    "efficientnet_b0": classifier("efficientnet_b0"),
    "swin_t": classifier("swin_t"),
    "vit_b_32": classifier("vit_b_32", image_size=64),
    "kornia.geometry": kornia_geometry,
    "normflows": normalizing_flow,
    "stable-baselines3": reinforcement,
    "x-transformers": transformer,
    "torchdiffeq": differential_equation,
    "vector-quantize-pytorch": quantizer,
}


def train(torch, model, loss_of):
    """Steps of AdamW, each with the wait for its loss. Gives their seconds."""
    optimizer, seconds = torch.optim.AdamW(model.parameters(), lr=1e-4), []
    for _ in range(STEPS):
        begun = time.perf_counter()
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        optimizer.step()
        assert math.isfinite(loss.item())
        seconds.append(time.perf_counter() - begun)
    return seconds


def run(name):
    """The seconds of the phases of a row in this process, where `torch` is what it is here."""
    begun = time.perf_counter()
    torch = importlib.import_module("torch")
    if "jaxgrad" not in sys.modules:  # what its optimizers import, in over a second
        importlib.import_module("torch._dynamo")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    build = ROWS[name](torch)
    laps = {"imports": time.perf_counter() - begun}
    begun, used = time.perf_counter(), time.process_time()
    model, loss_of, evaluate = build()
    laps["built"] = time.perf_counter() - begun
    if isinstance(model, torch.nn.Module):
        laps |= {f"step {n}": t for n, t in enumerate(train(torch, model, loss_of), 1)}
        model.eval()
    else:
        loss_of()
    begun_evaluation = time.perf_counter()
    with torch.no_grad():
        assert np.isfinite(evaluate().numpy()).all()
    laps["evaluation"] = time.perf_counter() - begun_evaluation
    laps |= {"whole": time.perf_counter() - begun, "processor": time.process_time() - used}
    return laps


def packages(names=()):
    """Print and note the seconds of each row; by torch only where it is installed."""
    has_torch = importlib.util.find_spec("torch") is not None
    print("(y) programs of packages in new processes, s; whole: all but imports")
    for name in names or ROWS:
        for library in ("torch", "jaxgrad")[not has_torch :]:
            with tempfile.TemporaryDirectory() as folder:
                two_runs(name, library, os.environ | {"JAXGRAD_CACHE": folder})


def two_runs(name, library, environment):
    """Print and note the seconds of a row in two processes, of which the second has what the first
    has kept.
    """
    for row in (name, f"{name}, again"):
        command = [sys.executable, *COMMANDS[library], __file__, "--run", name]
        child = subprocess.run(command, capture_output=True, text=True, env=environment)
        if child.returncode:
            print(f"    {name:<24}{library:<8} does not run: {failure(child.stderr)}")
            return
        laps = json.loads(child.stdout.splitlines()[-1])
        line = "  ".join(f"{what} {value:.3g}" for what, value in laps.items())
        print(f"    {row:<32}{library:<8} {line}", flush=True)
        chart = {row: {library: laps["whole"]}}
        figures.note("y", "A program of a package", "s", "torch", chart)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", choices=[*ROWS, []], metavar="NAME")
    parser.add_argument("--run", choices=ROWS, help="run one row here, and print JSON")
    options = parser.parse_args()
    if options.run:
        print(json.dumps(run(options.run)))
    else:
        packages(options.names)
