"""A variational autoencoder with convolutions, trained through the reparameterization trick."""

import json

import numpy as np
import torch
import torch.utils.data
from torch import nn, optim
from torch.nn import functional as F

rng = np.random.RandomState(11)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
kwargs = {"num_workers": 1, "pin_memory": True} if torch.cuda.is_available() else {}


class VAE(nn.Module):
    def __init__(self, latent=3):
        super().__init__()
        self.enc = nn.Sequential(
            nn.Conv2d(1, 4, 3, stride=2, padding=1), nn.ELU(), nn.Conv2d(4, 8, 3, 2, 1), nn.ELU()
        )
        self.fc21 = nn.Linear(32, latent)
        self.fc22 = nn.Linear(32, latent)
        self.fc3 = nn.Linear(latent, 32)
        self.dec = nn.Sequential(
            nn.ConvTranspose2d(8, 4, 4, stride=2, padding=1),
            nn.GroupNorm(2, 4),
            nn.SiLU(),
            nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False),
            nn.Conv2d(4, 1, 3, padding=1, padding_mode="reflect"),
        )
        for p in self.parameters():
            p.data = torch.tensor(rng.randn(*p.shape) * 0.3, dtype=p.dtype)

    def encode(self, x):
        h1 = self.enc(x).flatten(1)
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.as_tensor(rng.randn(*std.shape), dtype=std.dtype, device=std.device)
        return eps.mul(std).add_(mu)

    def decode(self, z):
        h3 = F.relu(self.fc3(z)).view(-1, 8, 2, 2)
        return torch.sigmoid(self.dec(h3))

    def forward(self, x):
        mu, logvar = self.encode(x)
        z = self.reparameterize(mu, logvar)
        return self.decode(z), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x, reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


images = torch.from_numpy((rng.rand(24, 1, 8, 8) > 0.5).astype(np.float32))
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(images), batch_size=8, **kwargs)
model = VAE().to(device)
optimizer = optim.Adam(model.parameters(), lr=1e-2, weight_decay=1e-5, amsgrad=True)
scheduler = optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, factor=0.5)
losses = []
for epoch in range(3):
    model.train()
    train_loss = 0
    for (data,) in loader:
        data = data.to(device)
        optimizer.zero_grad()
        recon_batch, mu, logvar = model(data)
        loss = loss_function(recon_batch, data, mu, logvar)
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
    scheduler.step(train_loss)
    losses.append(train_loss / len(loader.dataset))
with torch.inference_mode():
    sample = torch.from_numpy(rng.randn(2, 3).astype(np.float32)).to(device)
    sample = model.decode(sample).cpu().view(2, -1).mean(-1)
print(json.dumps({"losses": losses, "sample": sample.tolist(), "kind": str(sample.dtype)}))
