# mypy: disallow-any-expr
"""What checkers know of nn and optim: no expression here is of type Any (test_stubs.py)."""

from typing import Literal, assert_type

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad import Tensor, nn, optim
from jaxgrad.nn.utils import clip_grad_norm_
from jaxgrad.optim.lr_scheduler import ReduceLROnPlateau, StepLR

x = torch.ones(4, 2)
target = torch.zeros(4, dtype=torch.int64)

linear = nn.Linear(2, 3)
assert_type(linear.in_features, int)
assert_type(linear.weight, Tensor)
logits = linear.forward(x)
assert_type(logits, Tensor)
assert_type(linear.extra_repr(), str)
linear.reset_parameters()
assert_type(next(linear.children(), linear), nn.Module | nn.Linear)

activation = nn.LeakyReLU(0.2)
assert_type(activation.negative_slope, float)
assert_type(activation.forward(logits), Tensor)
convolution = nn.Conv2d(1, 2, kernel_size=3, padding="same")
assert_type(convolution.kernel_size, tuple[int, ...])
assert_type(convolution.forward(torch.ones(1, 1, 4, 4)), Tensor)
pool = nn.MaxPool2d(2)
assert_type(pool.forward(torch.ones(1, 1, 4, 4)), Tensor)
attention = nn.MultiheadAttention(2, 1)
assert_type(attention.forward(x, x, x), tuple[Tensor, Tensor | None])
output, state = nn.LSTMCell(2, 2).forward(x)
assert_type(output, Tensor)
layers = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
assert_type(layers[0], nn.Module)
assert_type(layers[:1], nn.Sequential)
assert_type(nn.ModuleDict({"a": linear})["a"], nn.Module)
assert_type(clip_grad_norm_(linear.parameters(), 1.0), Tensor)

assert_type(F.relu(x), Tensor)
assert_type(F.cross_entropy(logits, target), Tensor)
assert_type(F.layer_norm(x, (2,)), Tensor)
assert_type(nn.CrossEntropyLoss(label_smoothing=0.1).forward(logits, target), Tensor)
assert_type(nn.init.zeros_(linear.bias), Tensor)

optimizer = optim.AdamW(linear.parameters(), lr=0.1, betas=(0.9, 0.99))
schedule = StepLR(optimizer, step_size=2)


def closure() -> Tensor:
    optimizer.zero_grad()
    loss = F.cross_entropy(linear.forward(x), target)
    loss.backward()
    return loss


assert_type(optimizer.step(closure), Tensor)
optimizer.step()
assert_type(optim.LBFGS(linear.parameters()).step(closure), Tensor)
schedule.step()
assert_type(schedule.get_last_lr(), list[float | Tensor])
assert_type(schedule.gamma, float)
plateau = ReduceLROnPlateau(optimizer, "min", patience=1)
assert_type(plateau.in_cooldown, bool)
mode: Literal["min", "max"] = "max"
plateau = ReduceLROnPlateau(optimizer, mode)
plateau.step(0.5)
