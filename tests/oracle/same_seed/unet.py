"""A U-Net that segments discs in noise, with a loss of cross-entropy and Dice."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(8)


class DoubleConv(nn.Module):
    def __init__(self, in_channels, out_channels, dropout=0.1):
        super().__init__()
        self.double_conv = nn.Sequential(
            nn.Conv2d(in_channels, out_channels, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(inplace=True),
            nn.Dropout2d(dropout),
            nn.Conv2d(out_channels, out_channels, kernel_size=3, padding=1),
            nn.InstanceNorm2d(out_channels, affine=True),
            nn.LeakyReLU(0.1),
        )

    def forward(self, x):
        return self.double_conv(x)


class UNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.inc = DoubleConv(1, width)
        self.down = DoubleConv(width, 2 * width)
        self.bottom = DoubleConv(2 * width, 4 * width)
        self.up1 = nn.ConvTranspose2d(4 * width, 2 * width, kernel_size=2, stride=2)
        self.conv1 = DoubleConv(4 * width, 2 * width)
        self.up2 = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
        self.conv2 = DoubleConv(3 * width, width)
        self.outc = nn.Conv2d(width, 1, kernel_size=1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down(F.max_pool2d(x1, 2))
        x3 = self.bottom(F.avg_pool2d(x2, 2))
        x = self.conv1(torch.cat([x2, self.up1(x3)], dim=1))
        x = self.conv2(torch.cat([x1, self.up2(x)], dim=1))
        return self.outc(x)


def discs(count, size=16):
    rows, columns = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    centres = torch.randint(4, size - 4, (count, 2, 1, 1)).float()
    radii = torch.empty(count, 1, 1).uniform_(2, 5)
    distance = ((rows - centres[:, 0]) ** 2 + (columns - centres[:, 1]) ** 2).sqrt()
    masks = (distance < radii).float().unsqueeze(1)
    return masks + torch.randn(count, 1, size, size).mul_(0.5), masks


def dice_loss(logits, target, epsilon=1e-6):
    probability = torch.sigmoid(logits)
    overlap = (probability * target).sum(dim=(1, 2, 3))
    total = probability.sum(dim=(1, 2, 3)) + target.sum(dim=(1, 2, 3))
    return 1 - ((2 * overlap + epsilon) / (total + epsilon)).mean()


loader = DataLoader(TensorDataset(*discs(40)), batch_size=4, shuffle=True)
net = UNet()
optimizer = torch.optim.RMSprop(net.parameters(), lr=1e-4, momentum=0.9, weight_decay=1e-8)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "min", patience=2)
for epoch in range(2):
    total = 0.0
    for images, masks in loader:
        logits = net(images)
        loss = F.binary_cross_entropy_with_logits(logits, masks) + dice_loss(logits, masks)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_value_(net.parameters(), 0.5)
        optimizer.step()
        total += loss.item()
        print(f"epoch {epoch} loss {loss.item():.9g}")
    scheduler.step(total)
