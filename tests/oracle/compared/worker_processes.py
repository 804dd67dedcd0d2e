"""Random examples made by worker processes, and a model that is checkpointed in parts."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset, random_split


class Noisy(Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, number):
        generator = torch.Generator().manual_seed(number)
        x = torch.randn(3, generator=generator) + 0.1 * torch.randn(3)
        return torch.sin(x), int(x.sum() > 0)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList(nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.1)) for _ in "ab")
        self.head = nn.Linear(3, 2)

    def forward(self, x):
        for part in self.parts:
            x = x + checkpoint(part, x, use_reentrant=False)
        return self.head(x)


if __name__ == "__main__":
    data, held_out = random_split(Noisy(), [32, 8])
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), 0.01)
    rates = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.01, total_steps=4)
    for x, y in DataLoader(data, 8, shuffle=True, num_workers=2):
        nn.functional.cross_entropy(model(x), y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        rates.step()
        optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        correct = [(model(x).argmax(1) == y).sum() for x, y in DataLoader(held_out, 4)]
