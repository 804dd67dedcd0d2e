"""A Swin transformer: attention inside windows, which every second block shifts, with a bias for
each relative position; patches are merged between the stages. Source: Liu et al., "Swin
Transformer: Hierarchical Vision Transformer using Shifted Windows", 2021.
"""

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad import nn

SIZE, PATCH, WINDOW, WIDTH, HEADS, CLASSES = 16, 2, 2, 4, 2, 3


def windows(x):
    """(batch, height, width, channels) as (batch, windows, WINDOW**2, channels)."""
    batch, height, width, channels = x.shape
    x = x.view(batch, height // WINDOW, WINDOW, width // WINDOW, WINDOW, channels)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(batch, -1, WINDOW**2, channels)


def from_windows(x, height, width):
    batch, channels = x.shape[0], x.shape[-1]
    x = x.view(batch, height // WINDOW, width // WINDOW, WINDOW, WINDOW, channels)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(batch, height, width, channels)


def relative_positions():
    """Which row of the table of biases belongs to each pair of places in a window."""
    ways = torch.arange(WINDOW), torch.arange(WINDOW)
    places = torch.stack(torch.meshgrid(*ways, indexing="ij")).flatten(1)
    apart = places[:, :, None] - places[:, None, :] + WINDOW - 1
    return apart[0] * (2 * WINDOW - 1) + apart[1]


class WindowAttention(nn.Module):
    def __init__(self, channels):
        super().__init__()
        biases = torch.zeros((2 * WINDOW - 1) ** 2, HEADS)
        self.relative_position_bias_table = nn.Parameter(biases)
        self.register_buffer("relative_position_index", relative_positions())
        self.qkv, self.proj = nn.Linear(channels, 3 * channels), nn.Linear(channels, channels)

    def forward(self, x, mask):
        batch, count, places, channels = x.shape
        qkv = self.qkv(x).reshape(batch, count, places, 3, HEADS, channels // HEADS)
        q, k, v = qkv.permute(3, 0, 1, 4, 2, 5)
        scores = (q * (channels // HEADS) ** -0.5) @ k.transpose(-2, -1)
        bias = self.relative_position_bias_table[self.relative_position_index.view(-1)]
        scores = scores + bias.view(places, places, HEADS).permute(2, 0, 1)
        if mask is not None:
            scores = scores + mask.unsqueeze(1)
        output = scores.softmax(-1) @ v
        return self.proj(output.transpose(-3, -2).reshape(batch, count, places, channels))


class Block(nn.Module):
    def __init__(self, channels, height, shift):
        super().__init__()
        self.shift = shift
        self.norm1, self.norm2 = nn.LayerNorm(channels), nn.LayerNorm(channels)
        self.attn = WindowAttention(channels)
        self.mlp = nn.Sequential(
            nn.Linear(channels, 2 * channels), nn.GELU(), nn.Linear(2 * channels, channels)
        )
        mask = None
        if shift:  # what the shift brought together from opposite sides does not attend
            regions = torch.zeros(1, height, height, 1)
            slices = slice(-WINDOW), slice(-WINDOW, -shift), slice(-shift, None)
            for i, rows in enumerate(slices):
                for j, columns in enumerate(slices):
                    regions[:, rows, columns, :] = 3 * i + j
            regions = windows(regions).squeeze()
            apart = regions.unsqueeze(1) - regions.unsqueeze(2)
            mask = torch.zeros_like(apart).masked_fill(apart != 0, -100.0)
        self.register_buffer("mask", mask)

    def forward(self, x):
        height, width = x.shape[1:3]
        y = self.norm1(x)
        if self.shift:
            y = torch.roll(y, (-self.shift, -self.shift), (1, 2))
        y = from_windows(self.attn(windows(y), self.mask), height, width)
        if self.shift:
            y = torch.roll(y, (self.shift, self.shift), (1, 2))
        x = x + y
        return x + self.mlp(self.norm2(x))


class Merging(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.LayerNorm(4 * channels)
        self.reduction = nn.Linear(4 * channels, 2 * channels, bias=False)

    def forward(self, x):
        parts = [x[:, i::2, j::2] for j in (0, 1) for i in (0, 1)]
        return self.reduction(self.norm(torch.cat(parts, -1)))


class Swin(nn.Module):
    def __init__(self):
        super().__init__()
        height = SIZE // PATCH
        self.patches, self.norm = nn.Conv2d(3, WIDTH, PATCH, stride=PATCH), nn.LayerNorm(WIDTH)
        self.layers = nn.Sequential(
            Block(WIDTH, height, 0),
            Block(WIDTH, height, WINDOW // 2),
            Merging(WIDTH),
            Block(2 * WIDTH, height // 2, 0),
            Block(2 * WIDTH, height // 2, WINDOW // 2),
        )
        self.last = nn.LayerNorm(2 * WIDTH)
        self.head = nn.Linear(2 * WIDTH, CLASSES)

    def forward(self, images):
        x = self.norm(self.patches(images).permute(0, 2, 3, 1))
        return self.head(self.last(self.layers(x)).mean((1, 2)))


model = Swin


def batch(numbers):
    return numbers(2, 3, SIZE, SIZE), numbers(2, below=CLASSES)


def loss(model, images, classes):
    return F.cross_entropy(model(images), classes)


def optimizer(parameters):
    return torch.optim.AdamW(parameters, lr=0.01, weight_decay=0.05)


def blocks(model):
    return model.layers
