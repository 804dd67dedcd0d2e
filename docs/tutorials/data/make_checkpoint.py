"""Trains a small network on the digits 0 to 4 and writes digits_0_to_4.pt. Run it by PyTorch:

    python docs/tutorials/data/make_checkpoint.py

The file is what the tutorial on fine-tuning begins with. It holds a dict as training scripts write
it: the epoch, the state of the model, and the state of the optimizer.
"""

import pathlib

import sklearn.datasets
import torch
from torch import nn

EPOCHS = 20


def network(classes: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 4 * 4, classes),
    )


def main() -> None:
    torch.manual_seed(0)
    images, labels = sklearn.datasets.load_digits(return_X_y=True)
    x = torch.tensor(images, dtype=torch.float32).reshape(-1, 1, 8, 8) / 16
    y = torch.tensor(labels)
    x, y = x[y < 5], y[y < 5]
    model = network(5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(y)).split(64):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            loss.backward()
            optimizer.step()
    model.eval()
    print(f"accuracy on the training data: {(model(x).argmax(1) == y).float().mean():.3f}")
    path = pathlib.Path(__file__).with_name("digits_0_to_4.pt")
    states = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save({"epoch": EPOCHS, **states}, path)


if __name__ == "__main__":
    main()
