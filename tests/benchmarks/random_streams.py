"""Random numbers of both streams, PyTorch's and JAX's, eager and compiled, in turns in one process,
beside PyTorch where it is installed.

    .venv-torch/bin/python tests/benchmarks/random_streams.py [--rounds 9] [NAME ...]

Prints the least processor time of a call, and the ratio of the stream "torch" to the stream "jax".
A call of jaxgrad ends when its result is on the host.
"""

import argparse
import importlib
import importlib.util
import os
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jaxgrad

SUBJECTS = ("torch stream", "jax stream", "torch stream, compiled", "jax stream, compiled")


def dropout(*shape):
    def build(torch, jit):
        x = torch.ones(shape)
        return jit(lambda: torch.nn.functional.dropout(x, 0.1))

    return build


def dropout_and_back(*shape):
    def build(torch, jit):
        x = torch.ones(shape, requires_grad=True)

        def step():
            y = torch.nn.functional.dropout(x * 2, 0.1)
            return torch.autograd.grad(y.square().sum(), x)[0]

        return jit(step)

    return build


def numbers(name, *arguments):
    return lambda torch, jit: jit(lambda: getattr(torch, name)(*arguments))


def filled(name, *arguments):
    def build(torch, jit):
        x = torch.empty(10_000_000)
        return lambda: getattr(x, name)(*arguments)

    return build


def linear_layers(torch):
    return torch.nn.Sequential(*[torch.nn.Linear(2048, 2048, bias=False) for _ in range(24)])


def model_of_100m(torch, jit):
    """24 layers of 4.2 million weights."""
    return lambda: torch.stack([p[0, 0] for p in linear_layers(torch).parameters()])


def model_of_100m_from_file(torch, jit):
    """The same model, whose weights are then replaced."""
    state = {name: torch.zeros(p.shape) for name, p in linear_layers(torch).state_dict().items()}

    def load():
        model = linear_layers(torch)
        model.load_state_dict(state)
        return model[0].weight[0, 0].detach()

    return load


def trained(torch, jit, model, draw_batch, loss_of):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch = draw_batch()

    def step():
        optimizer.zero_grad()
        loss = loss_of(model, *batch)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return jit(step)


def convolutional(torch, jit):
    """The MNIST example of PyTorch: two convolutions and two dropouts, a batch of 64."""
    nn = torch.nn
    head = nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 10)
    convolutions = nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU()
    model = nn.Sequential(*convolutions, nn.MaxPool2d(2), nn.Dropout(0.25), *head)

    def batch():
        return torch.rand(64, 1, 28, 28), torch.randint(0, 10, (64,))

    def loss_of(model, images, labels):
        return nn.functional.cross_entropy(model(images), labels)

    return trained(torch, jit, model, batch, loss_of)


def transformer(torch, jit):
    """Two encoder layers with dropout 0.1, width 256, 16 x 64 tokens."""
    nn = torch.nn
    layer = nn.TransformerEncoderLayer(256, 4, 1024, 0.1, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    return trained(
        torch, jit, model, lambda: (torch.rand(16, 64, 256),), lambda m, x: m(x).square().mean()
    )


def autoencoder(torch, jit):
    """The variational autoencoder of PyTorch's examples, a batch of 128."""
    nn = torch.nn
    encoder = nn.Sequential(nn.Linear(784, 400), nn.ReLU(), nn.Linear(400, 40))
    decoder = nn.Sequential(nn.Linear(20, 400), nn.ReLU(), nn.Linear(400, 784), nn.Sigmoid())
    model = nn.ModuleList([encoder, decoder])

    def loss_of(model, images):
        mean, log_variance = encoder(images).chunk(2, 1)
        sample = mean + torch.randn_like(mean) * (log_variance / 2).exp()
        error = nn.functional.binary_cross_entropy(decoder(sample), images, reduction="sum")
        divergence = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum()
        return (error + divergence) / len(images)

    return trained(torch, jit, model, lambda: (torch.rand(128, 784),), loss_of)


def small(torch, jit):
    """A small network with dropout: what a step takes besides its numbers."""
    nn = torch.nn
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 1))
    return trained(
        torch, jit, model, lambda: (torch.rand(32, 16),), lambda m, x: m(x).square().mean()
    )


def epoch(torch, jit):
    """A shuffled pass over 4,096 examples in batches of 64."""
    data = torch.utils.data.TensorDataset(torch.rand(4096, 8))
    loader = torch.utils.data.DataLoader(data, batch_size=64, shuffle=True)
    return lambda: torch.stack([x.sum() for (x,) in loader])


CASES = {
    "dropout 64 x 1024": dropout(64, 1024),
    "dropout 8 x 1024 x 1024": dropout(8, 1024, 1024),
    "dropout and gradient 64 x 1024": dropout_and_back(64, 1024),
    "dropout and gradient 8 x 1024 x 1024": dropout_and_back(8, 1024, 1024),
    "rand(8)": numbers("rand", 8),
    "randn(64)": numbers("randn", 64),
    "randn(10M)": numbers("randn", 10_000_000),
    "normal_ of 10M": filled("normal_", 0.0, 0.02),
    "uniform_ of 10M": filled("uniform_", -0.1, 0.1),
    "bernoulli_ of 10M": filled("bernoulli_", 0.3),
    "exponential_ of 10M": filled("exponential_"),
    "model of 100M": model_of_100m,
    "model of 100M from a file": model_of_100m_from_file,
    "randperm(60,000)": numbers("randperm", 60_000),
    "randperm(1,000,000)": numbers("randperm", 1_000_000),
    "epoch of a loader": epoch,
    "small network": small,
    "convolutional network": convolutional,
    "transformer": transformer,
    "autoencoder": autoencoder,
}
ONLY_EAGER = "normal_", "uniform_", "bernoulli_", "exponential_", "model", "epoch"


def subjects_of(name):
    """By the name of a subject: its library, its stream, and what compiles."""
    subjects = {}
    if importlib.util.find_spec("torch") is not None:
        pytorch = importlib.import_module("torch")
        pytorch.set_num_threads(1)
        subjects["PyTorch"] = pytorch, None, lambda function: function
    for subject in SUBJECTS[: 2 if name.startswith(ONLY_EAGER) else 4]:
        jit = jaxgrad.jit if "compiled" in subject else lambda function: function
        subjects[subject] = jaxgrad, subject.split()[0], jit
    return subjects


def begin(torch, stream):
    if stream is not None:
        torch.random.use(stream)
    torch.rand(1)  # which starts the generator


def measured(name, rounds):
    """Milliseconds of processor time of a call, the least of some turns, by subject."""
    subjects, calls, times = subjects_of(name), {}, {}
    for subject, (torch, stream, jit) in subjects.items():
        begin(torch, stream)
        calls[subject] = CASES[name](torch, jit)
        for _ in range(3):
            calls[subject]().detach().numpy()
    for _ in range(rounds):
        for subject, (torch, stream, _) in subjects.items():
            begin(torch, stream)
            count = 0
            begun = time.process_time()
            while count == 0 or (time.process_time() - begun < 0.02 and count < 100):
                calls[subject]().detach().numpy()
                count += 1
            times.setdefault(subject, []).append((time.process_time() - begun) / count * 1e3)
    return {subject: min(of_subject) for subject, of_subject in times.items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    for name in arguments.names or CASES:
        times = measured(name, arguments.rounds)
        ratios = [
            times[f"torch stream{how}"] / times[f"jax stream{how}"]
            for how in ("", ", compiled")
            if f"torch stream{how}" in times
        ]
        shown = "  ".join(f"{subject} {value:.4g}" for subject, value in times.items())
        print(f"{name:<38}{shown}  ratios {[round(ratio, 2) for ratio in ratios]}", flush=True)


if __name__ == "__main__":
    main()
