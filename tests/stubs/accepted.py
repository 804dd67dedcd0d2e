"""A script as users write it: it runs, and mypy and pyright accept it (test_stubs.py)."""

import io

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad import Tensor, nn, optim
from jaxgrad.optim.lr_scheduler import StepLR

x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
y = torch.zeros(2, 1, dtype=torch.float64, device="cpu")
total: Tensor = torch.sum(x, dim=0, keepdim=True) + x.sum(1).unsqueeze(-1) * 2
values, indices = torch.max(x, dim=1)
greatest: Tensor = x.max(1).values
parts: tuple[Tensor, ...] = torch.split(x, 1)
double: Tensor = torch.sum(x, dim=0, dtype=torch.float64) + x.softmax(0, dtype=torch.float64)
matrix = x.view(-1, 2) @ x.reshape((2, 2)).t()
x.detach().mul_(3).clamp_(min=-1, max=1)
numbers: list[float] = x.tolist()
shape: tuple[int, ...] = x.shape


class Network(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.layers(x))


model = Network(8).to(torch.float64)
optimizer = optim.Adam(model.parameters(), lr=0.01)
schedule = StepLR(optimizer, step_size=10)


@torch.jit(verify=100)
def step(x: Tensor, y: Tensor) -> Tensor:
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.detach()


@torch.no_grad()
def evaluate(x: Tensor) -> float:
    return float(model(x).mean())


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *grads: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 2 * x * grads[0]


loss: Tensor = step(x.double(), y)
score: float = evaluate(x.double())
(gradient,) = torch.autograd.grad(Square.apply(x).sum(), x)
per_sample = torch.func.vmap(torch.func.grad(lambda row: (row * row).sum()))(x)
with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
    x.grad = None
    weight = 1.0 - x / 2 + 3 * x**2
assert x.grad is None
schedule.step()
torch.manual_seed(0)
graph = torch.autograd.graph.draw(x.sum(), {"x": x})
buffer = io.BytesIO()
torch.save(model.state_dict(), buffer)
normal = torch.distributions.Normal(torch.zeros(2), 1.0)
likelihood: Tensor = normal.log_prob(normal.rsample((3,))).sum()
divergence: Tensor = torch.distributions.kl_divergence(normal, normal.expand((2,)))
