"""A generative adversarial network on points of a circle, in the manner of DCGAN's example."""

import json

import numpy as np
import torch
import torch.nn as nn
import torch.nn.parallel
import torch.optim as optim
import torch.utils.data

rng = np.random.RandomState(7)
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
nz, ngf, ndf, batch_size = 8, 16, 16, 16


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find("Linear") != -1:
        m.weight.data.copy_(torch.from_numpy(rng.normal(0.0, 0.3, m.weight.shape)))
        if m.bias is not None:
            m.bias.data.fill_(0)
    elif classname.find("BatchNorm") != -1:
        m.weight.data.copy_(torch.from_numpy(rng.normal(1.0, 0.02, m.weight.shape)))
        nn.init.zeros_(m.bias)


class Generator(nn.Module):
    def __init__(self):
        super(Generator, self).__init__()
        self.main = nn.Sequential(
            nn.Linear(nz, ngf, bias=False),
            nn.BatchNorm1d(ngf),
            nn.ReLU(True),
            nn.Linear(ngf, 2),
            nn.Tanh(),
        )

    def forward(self, input):
        return self.main(input)


class Discriminator(nn.Module):
    def __init__(self):
        super(Discriminator, self).__init__()
        self.main = nn.Sequential(
            nn.Linear(2, ndf),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Linear(ndf, ndf),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Linear(ndf, 1),
            nn.Sigmoid(),
        )

    def forward(self, input):
        return self.main(input).view(-1, 1).squeeze(1)


def real_batch():
    angle = rng.uniform(0, 2 * np.pi, batch_size)
    points = np.stack([np.cos(angle), np.sin(angle)], 1) * 0.8
    return torch.from_numpy(points.astype("float32"))


def gradient_penalty(net, real, fake):
    alpha = torch.from_numpy(rng.rand(real.size(0), 1).astype("float32")).to(device)
    mixed = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    out = net(mixed)
    gradients = torch.autograd.grad(
        outputs=out,
        inputs=mixed,
        grad_outputs=torch.ones_like(out),
        create_graph=True,
        retain_graph=True,
        only_inputs=True,
    )[0]
    return ((gradients.norm(2, dim=1) - 1) ** 2).mean()


netG, netD = Generator().to(device), Discriminator().to(device)
netG.apply(weights_init)
netD.apply(weights_init)
criterion = nn.BCELoss()
fixed_noise = torch.from_numpy(rng.randn(4, nz).astype("float32")).to(device)
optimizerD = optim.Adam(netD.parameters(), lr=0.01, betas=(0.5, 0.999))
optimizerG = optim.Adam(netG.parameters(), lr=0.01, betas=(0.5, 0.999))
history = []

for iteration in range(8):
    # update D: maximize log(D(x)) + log(1 - D(G(z)))
    netD.zero_grad()
    real = real_batch().to(device)
    label = torch.full((batch_size,), 1.0, dtype=real.dtype, device=device)
    output = netD(real)
    errD_real = criterion(output, label)
    errD_real.backward()
    D_x = output.mean().item()
    noise = torch.from_numpy(rng.randn(batch_size, nz).astype("float32")).to(device)
    fake = netG(noise)
    label.fill_(0.0)
    output = netD(fake.detach())
    errD_fake = criterion(output, label)
    errD_fake.backward()
    penalty = 0.1 * gradient_penalty(netD, real.data, fake.data)
    penalty.backward()
    errD = errD_real + errD_fake + penalty
    optimizerD.step()

    # update G: maximize log(D(G(z)))
    netG.zero_grad()
    for p in netD.parameters():
        p.requires_grad_(False)
    label.fill_(1.0)
    output = netD(fake)
    errG = criterion(output, label)
    errG.backward()
    D_G_z2 = output.mean().item()
    optimizerG.step()
    for p in netD.parameters():
        p.requires_grad_(True)
    history.append([errD.item(), errG.item(), D_x, D_G_z2])

netG.eval()
with torch.no_grad():
    samples = netG(fixed_noise).cpu().numpy()
print(json.dumps({"history": history, "samples": samples.tolist()}))
