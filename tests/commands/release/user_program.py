"""What users do first: train, compile, save and export. It runs away from the checkout."""

import io
import sys

import jaxgrad as torch

assert torch.__file__.startswith(sys.prefix), torch.__file__

torch.manual_seed(0)
x = torch.randn(32, 3)
y = x @ torch.tensor([[1.0], [-2.0], [0.5]]) + 0.25
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def step(x, y):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.detach()


losses = [step(x, y).item() for _ in range(20)]
compiled = torch.compile(step)
losses += [compiled(x, y).item() for _ in range(200)]
assert losses[-1] < 1e-6 < losses[0], losses
assert abs(model.bias.item() - 0.25) < 1e-3

file = io.BytesIO()
torch.save(model.state_dict(), file)
file.seek(0)
restored = torch.nn.Linear(3, 1)
restored.load_state_dict(torch.load(file))
assert torch.equal(restored(x), model(x))

file = io.BytesIO()
batch = torch.export.Dim("batch")
program = torch.export.export(model, (x,), dynamic_shapes=({0: batch},))
torch.export.save(program, file)
file.seek(0)
served = torch.export.load(file).module()
assert torch.allclose(served(x[:5]), model(x[:5]))
print("trained, compiled, saved and exported with jaxgrad", torch.__version__)
