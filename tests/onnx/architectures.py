"""Ten small architectures with arguments, which go through each export."""

import jaxgrad as torch
import jaxgrad.nn.functional as F
from jaxgrad import nn


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(8, 16),
            nn.ReLU(),
            nn.LayerNorm(16),
            nn.Linear(16, 16),
            nn.GELU(),
            nn.Dropout(0.1),
            nn.Linear(16, 3),
        )

    def forward(self, x):
        return self.layers(x).softmax(-1)


class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(4, 8, 3, padding=1, groups=2),
            nn.SiLU(),
            nn.AvgPool2d(2),
        )
        self.head = nn.Linear(8 * 4 * 4, 10)

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


class Block(nn.Module):
    def __init__(self, c_in, c_out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(c_in, c_out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(c_out)
        self.conv2 = nn.Conv2d(c_out, c_out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(c_out)
        self.down = (
            nn.Sequential(nn.Conv2d(c_in, c_out, 1, stride, bias=False), nn.BatchNorm2d(c_out))
            if stride > 1
            else nn.Identity()
        )

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = self.bn2(self.conv2(y))
        y += self.down(x)
        return F.relu(y)


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 8, 7, 2, 3, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, 1),
        )
        self.blocks = nn.Sequential(Block(8, 8, 1), Block(8, 16, 2))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(16, 5)

    def forward(self, x):
        return self.fc(torch.flatten(self.pool(self.blocks(self.stem(x))), 1))


class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 16, 4, 4)
        self.cls = nn.Parameter(torch.zeros(1, 1, 16))
        self.pos = nn.Parameter(torch.randn(1, 17, 16) * 0.02)
        layer = nn.TransformerEncoderLayer(
            16, 4, 32, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(16)
        self.head = nn.Linear(16, 5)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1) + self.pos
        return self.head(self.norm(self.encoder(x))[:, 0])


class BertLike(nn.Module):
    def __init__(self):
        super().__init__()
        self.word = nn.Embedding(50, 16, padding_idx=0)
        self.position = nn.Embedding(12, 16)
        self.norm = nn.LayerNorm(16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.pooler = nn.Linear(16, 16)
        self.register_buffer("position_ids", torch.arange(12).unsqueeze(0))

    def forward(self, input_ids, attention_mask):
        n = input_ids.shape[1]
        x = self.norm(self.word(input_ids) + self.position(self.position_ids[:, :n]))
        x = self.encoder(x, src_key_padding_mask=attention_mask == 0)
        return x, torch.tanh(self.pooler(x[:, 0]))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x, position, keys, values):
        b, t, c = x.shape
        q, k, v = (
            p.view(b, t, self.heads, c // self.heads).transpose(1, 2)
            for p in self.qkv(x).chunk(3, -1)
        )
        keys = keys.index_copy(2, position, k)
        values = values.index_copy(2, position, v)
        visible = torch.arange(keys.shape[2]) <= position[:, None]
        y = F.scaled_dot_product_attention(q, keys, values, attn_mask=visible)
        return self.out(y.transpose(1, 2).reshape(b, t, c)), keys, values


class GPT(nn.Module):
    def __init__(self, width=16, heads=2, length=12):
        super().__init__()
        self.word = nn.Embedding(50, width)
        self.place = nn.Embedding(length, width)
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 32), nn.GELU(approximate="tanh"), nn.Linear(32, width)
        )
        self.head = nn.Linear(width, 50, bias=False)

    def forward(self, tokens, position, keys, values):
        x = self.word(tokens) + self.place(position)
        y, keys, values = self.attention(self.norm1(x), position, keys, values)
        x = x + y
        x = x + self.mlp(self.norm2(x))
        return self.head(x), keys, values


class LSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 8)
        self.lstm = nn.LSTM(8, 8, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(16, 3)

    def forward(self, tokens):
        y, (h, _) = self.lstm(self.embedding(tokens))
        return self.head(y), h


class UNet(nn.Module):
    def __init__(self):
        super().__init__()

        def double(i, o):
            return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.GroupNorm(2, o), nn.ReLU())

        self.down1, self.down2 = double(1, 4), double(4, 8)
        self.up = nn.ConvTranspose2d(8, 4, 2, 2)
        self.out = double(8, 4)
        self.last = nn.Conv2d(4, 2, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        b = b + F.interpolate(
            F.avg_pool2d(b, 2), scale_factor=2, mode="bilinear", align_corners=False
        )
        return self.last(self.out(torch.cat([a, self.up(b)], 1)))


class Detection(nn.Module):
    """Boxes of anchors decoded and the best by score."""

    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(3, 8, 3, 2, 1), nn.LeakyReLU(0.1), nn.Conv2d(8, 8, 3, 2, 1), nn.Hardswish()
        )
        self.cls = nn.Conv2d(8, 2 * 3, 1)
        self.box = nn.Conv2d(8, 2 * 4, 1)
        y, x = torch.meshgrid(torch.arange(4.0), torch.arange(4.0), indexing="ij")
        self.register_buffer(
            "anchors",
            torch.stack([x, y], -1).reshape(1, 16, 1, 2).repeat(1, 1, 2, 1).reshape(1, 32, 2),
        )

    def forward(self, image):
        f = self.backbone(image)
        n = f.shape[0]
        scores = self.cls(f).permute(0, 2, 3, 1).reshape(n, 32, 3).sigmoid()
        t = self.box(f).permute(0, 2, 3, 1).reshape(n, 32, 4)
        centre = (t[..., :2].sigmoid() + self.anchors) * 4
        size = t[..., 2:].exp().clamp(max=4.0) * 4
        boxes = torch.cat([centre - size / 2, centre + size / 2], -1).clamp(0, 16)
        best, labels = scores.max(-1)
        top, index = best.topk(5, 1)
        return boxes.gather(1, index[..., None].expand(-1, -1, 4)), top, labels.gather(1, index)


class GNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1, self.l2 = nn.Linear(5, 8), nn.Linear(8, 3)

    def forward(self, x, adjacency):
        a = adjacency + torch.eye(adjacency.shape[-1])
        d = a.sum(-1).rsqrt()
        a = d.unsqueeze(-1) * a * d.unsqueeze(-2)
        x = F.elu(torch.matmul(a, self.l1(x)))
        return F.log_softmax(torch.einsum("bij,bjk->bik", a, self.l2(x)), -1)


def architecture(name):
    """A module in evaluation mode and its arguments. Its statistics are those of some data."""
    torch.manual_seed(0)
    module, args = CASES[name]()
    with torch.no_grad():
        module(*args)
    return module.eval(), args


def graph():
    edges = (torch.rand(2, 6, 6) > 0.5).float()
    return torch.randn(2, 6, 5), (edges + edges.mT).clamp(max=1)


def cached():
    cache = torch.zeros(2, 2, 12, 8)
    return torch.randint(0, 50, (2, 3)), torch.arange(3), cache, cache.clone()


def sentences():
    return torch.randint(1, 50, (2, 7)), torch.tensor([[1] * 7, [1] * 4 + [0] * 3])


CASES = {
    "mlp": lambda: (MLP(), (torch.randn(4, 8),)),
    "cnn": lambda: (CNN(), (torch.randn(2, 1, 16, 16),)),
    "resnet": lambda: (ResNet(), (torch.randn(2, 3, 32, 32),)),
    "vit": lambda: (ViT(), (torch.randn(2, 3, 16, 16),)),
    "bert": lambda: (BertLike(), sentences()),
    "gpt": lambda: (GPT(), cached()),
    "lstm": lambda: (LSTM(), (torch.randint(0, 20, (2, 5)),)),
    "unet": lambda: (UNet(), (torch.randn(2, 1, 16, 16),)),
    "detection": lambda: (Detection(), (torch.randn(2, 3, 16, 16),)),
    "gnn": lambda: (GNN(), graph()),
}
# of each argument whether its first dimension is that of the batch
BATCHED = {"gpt": (True, False, True, True)}
