"""Trains a small network on the digits 0 to 4 and writes digits_0_to_4.pt. Run it by PyTorch:

    python docs/tutorials/data/make_checkpoint.py

The file is what the tutorial on fine-tuning begins with. It holds a dict as training scripts write
it: the number of epochs and the state of the model.
"""

import pathlib

import sklearn.datasets
import torch
from torch import nn

EPOCHS = 20


def network(classes: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1),
        nn.BatchNorm2d(12),
        nn.ReLU(),
        nn.Conv2d(12, 24, 3, padding=1),
        nn.BatchNorm2d(24),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(24, 24, 3, padding=1),
        nn.BatchNorm2d(24),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(24, classes),
    )


def main() -> None:
    torch.manual_seed(0)
    images, labels = sklearn.datasets.load_digits(return_X_y=True)
    x = torch.tensor(images, dtype=torch.float32).reshape(-1, 1, 8, 8) / 16
    y = torch.tensor(labels)
    x, y = x[y < 5], y[y < 5]
    model = network(5)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(y)).split(64):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            loss.backward()
            optimizer.step()
    model.eval()
    print(f"accuracy on the training data: {(model(x).argmax(1) == y).float().mean():.3f}")
    path = pathlib.Path(__file__).with_name("digits_0_to_4.pt")
    torch.save({"epoch": EPOCHS, "model": model.state_dict()}, path)


if __name__ == "__main__":
    main()
