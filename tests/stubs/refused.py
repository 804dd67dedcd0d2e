"""Mistakes: mypy and pyright report one in every line that says so, and none elsewhere."""

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad import nn, optim

x = torch.ones(2, 3)
torch.summ(x)  # mistake
torch.sum("x")  # mistake
torch.sum(x, dim="rows")  # mistake
torch.sin(x, 1)  # mistake
x.sum(keepdim=1.5)  # mistake
x.sinn()  # mistake
x.view("2")  # mistake
torch.cat(x, y=1)  # mistake
torch.zeros(2, dtype="float32")  # mistake
n: int = torch.add(x, 1)  # mistake
torch.jit(donate=1.5)  # mistake
F.relu(input=3)  # mistake
nn.Linear(2)  # mistake
nn.Lienar(2, 3)  # mistake
optim.SGD()  # mistake
torch.autograd.grad()  # mistake
torch.surroundings()  # mistake
x.requires_grad = "no"  # mistake
