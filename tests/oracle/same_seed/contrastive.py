"""Contrastive learning of two random views of each image, as in SimCLR."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(42)


class TwoViews(Dataset):
    def __init__(self, count=80):
        self.images = torch.rand(count, 3, 8, 8)

    def __len__(self):
        return len(self.images)

    def augment(self, image):
        if torch.rand(1) < 0.5:
            image = image.flip(-1)
        top, left = torch.randint(0, 3, (2,)).tolist()
        image = F.pad(image, (1, 1, 1, 1), mode="reflect")[:, top : top + 8, left : left + 8]
        return image * torch.empty(1).uniform_(0.8, 1.2) + 0.05 * torch.randn_like(image)

    def __getitem__(self, index):
        return self.augment(self.images[index]), self.augment(self.images[index])


class Encoder(nn.Module):
    def __init__(self, width=16, projection=8):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride=2, padding=1),
            nn.GroupNorm(4, width),
            nn.ELU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        self.projector = nn.Sequential(
            nn.Linear(width, width), nn.PReLU(), nn.AlphaDropout(0.05), nn.Linear(width, projection)
        )
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        return F.normalize(self.projector(self.features(x)), dim=1)


def nt_xent(a, b, temperature=0.5):
    z = torch.cat([a, b])
    similarity = z @ z.T / temperature
    similarity.fill_diagonal_(float("-inf"))
    n = len(a)
    targets = torch.cat([torch.arange(n, 2 * n), torch.arange(n)])
    return F.cross_entropy(similarity, targets)


loader = DataLoader(TwoViews(), batch_size=8, shuffle=True, num_workers=0)
model = Encoder()
optimizer = torch.optim.SGD(
    model.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-4
)
for epoch in range(2):
    for first, second in loader:
        loss = nt_xent(model(first), model(second))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.9g}")
