"""Ten models of different kinds, with the shapes of an input, for exports."""

import importlib

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad import nn


def mlp():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 3))


def cnn():
    return nn.Sequential(
        *(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(4, 8, 3, padding=1), nn.GELU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
        nn.Linear(8, 5),
    )


class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 8, 4, 4)
        self.token = nn.Parameter(torch.zeros(1, 1, 8))
        self.positions = nn.Parameter(torch.zeros(1, 5, 8))
        layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(8, 3)

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.positions
        return self.head(self.encoder(x)[:, 0])


class CachedGPT(nn.Module):
    """A layer of a decoder that reads one token, with the keys and values of those before."""

    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(17, 8), nn.Embedding(32, 8)
        self.qkv, self.projection = nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, token, keys, values):
        batch, heads, length, width = keys.shape
        x = self.tokens(token) + self.positions(torch.arange(length, length + 1))
        q, k, v = self.qkv(x).view(batch, 1, 3, heads, width).permute(2, 0, 3, 1, 4).unbind(0)
        keys, values = torch.cat([keys, k], 2), torch.cat([values, v], 2)
        y = F.scaled_dot_product_attention(q, keys, values)
        x = x + self.projection(y.transpose(1, 2).reshape(batch, 1, heads * width))
        return x @ self.tokens.weight.t(), keys, values


class LSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.lstm = nn.Embedding(11, 6), nn.LSTM(6, 5, batch_first=True)
        self.head = nn.Linear(5, 11)

    def forward(self, words):
        x, (hidden, _) = self.lstm(self.embedding(words))
        return self.head(x), hidden


class Detector(nn.Module):
    """A head with a grid of anchors, as of RetinaNet."""

    def __init__(self):
        super().__init__()
        self.features = nn.Conv2d(3, 8, 3, 2, 1)
        self.classes, self.boxes = nn.Conv2d(8, 2 * 4, 3, padding=1), nn.Conv2d(8, 2 * 4, 1)

    def forward(self, images):
        x = F.relu(self.features(images))
        batch, _, height, width = x.shape
        scores = self.classes(x).view(batch, 2, 4, height, width).permute(0, 3, 4, 1, 2)
        deltas = self.boxes(x).view(batch, 2, 4, height, width).permute(0, 3, 4, 1, 2)
        rows, columns = torch.meshgrid(
            torch.arange(height) + 0.5, torch.arange(width) + 0.5, indexing="ij"
        )
        centers = torch.stack([columns, rows], -1).view(1, height, width, 1, 2)
        boxes = torch.cat([centers + deltas[..., :2], deltas[..., 2:].exp()], -1)
        best, labels = scores.sigmoid().flatten(1, 3).max(-1)
        top, places = best.topk(3)
        return top, labels.gather(1, places), boxes.flatten(1, 3)


class GNN(nn.Module):
    """Two layers of a graph network with a dense matrix of neighbours."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(5, 8), nn.Linear(8, 3)

    def forward(self, features, adjacency):
        degrees = adjacency.sum(-1, keepdim=True).clamp(min=1)
        x = F.relu(self.first(adjacency @ features / degrees))
        return F.log_softmax(self.second(adjacency @ x / degrees), -1)


def of_models(name):
    return importlib.import_module(f"models.{name}").model


# by name: what makes the model, and its arguments for a size of the batch
MODELS = {
    "mlp": (mlp, lambda n: (torch.randn(n, 4),)),
    "cnn": (cnn, lambda n: (torch.randn(n, 1, 8, 8),)),
    "resnet": (of_models("resnet18"), lambda n: (torch.randn(n, 3, 16, 16),)),
    "vit": (ViT, lambda n: (torch.randn(n, 3, 8, 8),)),
    "bert": (
        of_models("bert"),
        lambda n: (torch.randint(0, 9, (n, 5)), torch.randint(0, 2, (n, 5))),
    ),
    "gpt": (
        CachedGPT,
        lambda n: (
            torch.randint(0, 17, (n, 1)),
            *(torch.randn(n, 2, 4, 4), torch.randn(n, 2, 4, 4)),
        ),
    ),
    "lstm": (LSTM, lambda n: (torch.randint(0, 11, (n, 6)),)),
    "unet": (of_models("unet"), lambda n: (torch.randn(n, 1, 44, 44),)),
    "detector": (Detector, lambda n: (torch.randn(n, 3, 8, 8),)),
    "gnn": (GNN, lambda n: (torch.randn(n, 6, 5), torch.rand(n, 6, 6).round())),
}
