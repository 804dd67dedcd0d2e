"""A program whose types the stubs of the wheel tell; mypy reads it, and nothing runs it."""

import jaxgrad as torch
from jaxgrad import Tensor


def loss(model: torch.nn.Linear, x: Tensor) -> Tensor:
    return (model.weight @ x).relu().sum()


parameters: list[torch.nn.Parameter] = [*torch.nn.Linear(2, 1).parameters()]
extents: tuple[int, ...] = torch.ones(2, 3).shape
number: float = float(torch.ones(2).sum().item())
