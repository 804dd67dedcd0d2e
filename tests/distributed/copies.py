"""The program that test_copies.py runs in two processes: compiled steps of DistributedDataParallel,
and between them uses of the parameter, whose memory the next step takes. It prints the differences
from NumPy.
"""

import copy
import json

import numpy as np

import jaxgrad as torch
import jaxgrad.distributed as dist

ROWS, WIDTH, RATE = 8, 4, 0.1
draw = np.random.default_rng(0)
X = draw.standard_normal((ROWS, WIDTH)).astype(np.float32)
Y = draw.standard_normal((ROWS, 1)).astype(np.float32)
WEIGHT = draw.standard_normal((1, WIDTH)).astype(np.float32)


def stepped(weight):
    """The weight after a step of gradient descent on all rows."""
    return weight - RATE * 2 / ROWS * (X @ weight.T - Y).T @ X


class Training:
    """A linear model whose weight follows `expected`, which is NumPy's."""

    def __init__(self, returns_loss):
        self.model = torch.nn.Linear(WIDTH, 1, bias=False)
        self.weight, self.expected = self.model.weight, WEIGHT
        with torch.no_grad():
            self.weight.copy_(torch.tensor(WEIGHT))
        wrapped = torch.nn.parallel.DistributedDataParallel(self.model)
        optimizer = torch.optim.SGD(wrapped.parameters(), lr=RATE)

        @torch.jit
        def step(x, y):
            loss = (wrapped(x) - y).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss if returns_loss else loss.detach()

        half = slice(dist.get_rank(), None, 2)
        self.batch, self.compiled = [torch.tensor(array[half]) for array in (X, Y)], step

    def step(self):
        self.compiled(*self.batch)
        self.expected = stepped(self.expected)

    def differences(self):
        """By use the difference between what it gave and what it must give. A use that is a step
        back must see the weight of before, read only after the next step.
        """
        weight, model = self.weight, self.model
        with torch.autograd.detect_anomaly():
            self.step()
        yield "anomaly mode", weight, self.expected
        self.step()
        # a program of one process takes its own copy, also where the others do not call it
        evaluated = torch.jit(lambda x: model(x).detach())
        for _ in range(3):
            self.step()
            if dist.get_rank() == 0:
                output = evaluated(torch.tensor(X))
                yield "program of one process", output, X @ self.expected.T
                yield "its devices", len(output._array.sharding.device_set), 1
        self.step()
        self.step()
        # no code has read this weight, and what is computed of it is only noted
        before, twice = self.expected, weight * 2
        self.step()
        yield "product", twice, 2 * before
        before, array = self.expected, weight._array
        self.step()
        yield "array", array, before
        yield "read", weight.numpy(force=True), self.expected
        before, clone = self.expected, weight.detach().clone()
        self.step()
        yield "clone", clone, before
        view, before = weight.detach(), self.expected
        rows = [*view]
        self.step()
        yield "view", view, self.expected
        yield "row of a view", rows[0], self.expected[0]
        before, copied = self.expected, copy.deepcopy(model)
        saved = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        self.step()
        yield "deepcopy", copied.weight, before
        yield "state_dict", saved["weight"], before
        model.load_state_dict(saved)
        self.expected = before
        self.step()
        yield "load_state_dict", weight, self.expected
        with torch.no_grad():
            weight.mul_(0.5)
        self.expected = self.expected * np.float32(0.5)
        self.step()
        yield "write", weight, self.expected
        average, wanted = torch.zeros(1, WIDTH), np.zeros((1, WIDTH), np.float32)
        for _ in range(4):
            self.step()
            average.lerp_(weight.detach(), 0.5)
            wanted = wanted + (self.expected - wanted) * np.float32(0.5)
        yield "average", average, wanted
        before, output = self.expected, model(torch.tensor(X))
        self.step()
        output.sum().backward()
        yield "gradient of what came before", weight.grad, X.sum(0)[None]
        yield "output", output, X @ before.T
        weight.grad = None
        self.step()
        yield "at the end", weight, self.expected


def found_anomaly() -> str:
    """The error of a step that anomaly mode runs again, operator by operator."""
    training = Training(returns_loss=False)
    for _ in range(3):
        training.step()
    x, y = training.batch
    try:
        with torch.autograd.detect_anomaly():
            training.compiled(x * float("nan"), y)
    except RuntimeError as error:
        return str(error)


def number(value):
    return value.numpy(force=True) if isinstance(value, torch.Tensor) else np.asarray(value)


def main():
    dist.init_process_group()
    differences = {}
    for returns_loss in (False, True):
        training = Training(returns_loss)
        for use, value, wanted in training.differences():
            difference = float(np.abs(number(value) - wanted).max())
            differences[f"{use}, loss {'returned' if returns_loss else 'detached'}"] = difference
        assert len(training.compiled.traces) <= 2, training.compiled.explain()
    differences["anomaly"] = found_anomaly()
    if dist.get_rank() == 0:
        print("FOUND", json.dumps(differences))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
