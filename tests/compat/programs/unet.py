"""A U-Net that segments generated images, with a Dice loss and class weights."""

import json
import logging
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor, optim
from torch.utils.data import DataLoader, TensorDataset, random_split


class DoubleConv(nn.Module):
    """(convolution => [BN] => ReLU) * 2"""

    def __init__(self, in_channels, out_channels, mid_channels=None):
        super().__init__()
        if not mid_channels:
            mid_channels = out_channels
        self.double_conv = nn.Sequential(
            nn.Conv2d(in_channels, mid_channels, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(mid_channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(mid_channels, out_channels, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(inplace=True),
        )

    def forward(self, x):
        return self.double_conv(x)


class Up(nn.Module):
    def __init__(self, in_channels, out_channels, bilinear=True):
        super().__init__()
        if bilinear:
            self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
            self.conv = DoubleConv(in_channels, out_channels, in_channels // 2)
        else:
            self.up = nn.ConvTranspose2d(in_channels, in_channels // 2, kernel_size=2, stride=2)
            self.conv = DoubleConv(in_channels, out_channels)

    def forward(self, x1, x2):
        x1 = self.up(x1)
        diffY = x2.size()[2] - x1.size()[2]
        diffX = x2.size()[3] - x1.size()[3]
        x1 = F.pad(x1, [diffX // 2, diffX - diffX // 2, diffY // 2, diffY - diffY // 2])
        x = torch.cat([x2, x1], dim=1)
        return self.conv(x)


class UNet(nn.Module):
    def __init__(self, n_channels, n_classes, bilinear=False, width=4):
        super().__init__()
        factor = 2 if bilinear else 1
        self.inc = DoubleConv(n_channels, width)
        self.down1 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(width, 2 * width))
        self.down2 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(2 * width, 4 * width // factor))
        self.up1 = Up(4 * width, 2 * width // factor, bilinear)
        self.up2 = Up(2 * width, width, bilinear)
        self.outc = nn.Conv2d(width, n_classes, kernel_size=1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down1(x1)
        x3 = self.down2(x2)
        x = self.up1(x3, x2)
        x = self.up2(x, x1)
        return self.outc(x)


def dice_coeff(input: Tensor, target: Tensor, reduce_batch_first: bool = False, epsilon=1e-6):
    assert input.size() == target.size()
    sum_dim = (-1, -2) if input.dim() == 2 or not reduce_batch_first else (-1, -2, -3)
    inter = 2 * (input * target).sum(dim=sum_dim)
    sets_sum = input.sum(dim=sum_dim) + target.sum(dim=sum_dim)
    sets_sum = torch.where(sets_sum == 0, inter, sets_sum)
    return ((inter + epsilon) / (sets_sum + epsilon)).mean()


def dice_loss(input: Tensor, target: Tensor):
    return 1 - dice_coeff(input.flatten(0, 1), target.flatten(0, 1), reduce_batch_first=True)


def train_net(bilinear):
    rng = np.random.RandomState(3)
    images = rng.rand(6, 1, 10, 11).astype(np.float32)
    masks = torch.from_numpy((images[:, 0] > 0.6).astype(np.int64))
    dataset = TensorDataset(torch.from_numpy(images), masks)
    n_val = int(len(dataset) * 0.34)
    train_set, val_set = random_split(
        dataset, [len(dataset) - n_val, n_val], generator=torch.Generator().manual_seed(0)
    )
    train_set.indices, val_set.indices = [0, 1, 2, 3], [4, 5]  # not the random ones
    loader = DataLoader(train_set, shuffle=False, batch_size=2, num_workers=0)
    net = UNet(1, 2, bilinear).to(memory_format=torch.channels_last)
    for m in net.modules():
        if isinstance(m, (nn.Conv2d, nn.ConvTranspose2d)):
            m.weight.data = torch.tensor(rng.randn(*m.weight.shape) * 0.3).to(m.weight)
            if m.bias is not None:
                m.bias.data.zero_()
    optimizer = optim.RMSprop(net.parameters(), lr=1e-3, weight_decay=1e-8, momentum=0.9)
    criterion = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0]))
    losses = []
    for epoch in range(2):
        net.train()
        for image, true_mask in loader:
            image = image.to(memory_format=torch.channels_last)
            pred = net(image)
            one_hot = F.one_hot(true_mask, 2).permute(0, 3, 1, 2).float()
            loss = criterion(pred, true_mask)
            loss += dice_loss(F.softmax(pred, dim=1).float(), one_hot)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_value_(net.parameters(), 0.5)
            optimizer.step()
            losses.append(loss.item())
        logging.info(f"Epoch {epoch}: {losses[-1]}")
    net.eval()
    with torch.no_grad():
        image, true_mask = next(iter(DataLoader(val_set, batch_size=2)))
        prediction = net(image).argmax(dim=1)
        score = dice_coeff(prediction.float(), true_mask.float())
    return losses, score.item()


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    here = Path(__file__).name
    print(json.dumps({"losses": train_net(False), "file": here}))
