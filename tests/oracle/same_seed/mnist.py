"""A convolutional classifier of small images, with dropout and a schedule of learning rates."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, 1)
        self.conv2 = nn.Conv2d(8, 16, 3, 1)
        self.dropout1 = nn.Dropout(0.25)
        self.dropout2 = nn.Dropout(0.5)
        self.fc1 = nn.Linear(256, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = F.max_pool2d(x, 2)
        x = self.dropout1(x)
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        x = self.dropout2(x)
        return F.log_softmax(self.fc2(x), dim=1)


def synthetic_digits(count):
    labels = torch.randint(10, (count,))
    prototypes = torch.rand(10, 1, 12, 12)
    return prototypes[labels] + 0.3 * torch.randn(count, 1, 12, 12), labels


def train(model, loader, optimizer, epoch):
    model.train()
    for batch, (data, target) in enumerate(loader):
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()
        print(f"epoch {epoch} batch {batch} loss {loss.item():.9g}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--lr", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    loader = DataLoader(TensorDataset(*synthetic_digits(80)), batch_size=16, shuffle=True)
    model = Net()
    optimizer = optim.Adadelta(model.parameters(), lr=arguments.lr)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.7)
    for epoch in range(arguments.epochs):
        train(model, loader, optimizer, epoch)
        scheduler.step()


if __name__ == "__main__":
    main()
