"""A normalizing flow of affine couplings, which learns a density in two dimensions."""

import torch
from torch import nn
from torch.distributions import MultivariateNormal
from torch.utils.data import DataLoader, random_split

torch.manual_seed(12)


class Coupling(nn.Module):
    def __init__(self, features, hidden, flip):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(
            nn.Linear(features // 2, hidden),
            nn.SiLU(),
            nn.Dropout(0.05),
            nn.Linear(hidden, features),
        )
        nn.init.xavier_normal_(self.net[0].weight)
        nn.init.normal_(self.net[3].weight, std=0.05)

    def forward(self, x):
        a, b = x.chunk(2, dim=-1)
        if self.flip:
            a, b = b, a
        shift, scale = self.net(a).chunk(2, dim=-1)
        scale = torch.tanh(scale)
        b = b * scale.exp() + shift
        return torch.cat((b, a) if self.flip else (a, b), dim=-1), scale.sum(-1)


class Flow(nn.Module):
    def __init__(self, features=2, hidden=24, couplings=4):
        super().__init__()
        self.couplings = nn.ModuleList(
            Coupling(features, hidden, bool(i % 2)) for i in range(couplings)
        )
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("covariance", torch.eye(features))

    def log_prob(self, x):
        logdet = x.new_zeros(x.size(0))
        for coupling in self.couplings:
            x, change = coupling(x)
            logdet = logdet + change
        return MultivariateNormal(self.mean, self.covariance).log_prob(x) + logdet


def moons(count):
    angle = torch.rand(count) * torch.pi
    upper = torch.stack([angle.cos(), angle.sin()], dim=1)
    lower = torch.stack([1 - angle.cos(), 0.5 - angle.sin()], dim=1)
    which = torch.bernoulli(torch.full((count, 1), 0.5)).bool()
    return torch.where(which, upper, lower) + torch.normal(0.0, 0.1, (count, 2))


train, held_out = random_split(moons(200), [160, 40])
loader = DataLoader(train, batch_size=32, shuffle=True)
flow = Flow()
optimizer = torch.optim.Adam(flow.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
for _ in range(4):
    for batch in loader:
        loss = -flow.log_prob(batch).mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        scheduler.step()
        print(f"loss {loss.item():.9g}")
flow.eval()
with torch.no_grad():
    print(f"held out {-flow.log_prob(torch.stack(list(held_out))).mean().item():.6g}")
