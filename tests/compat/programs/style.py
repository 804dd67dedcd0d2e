"""Style transfer: an image is optimized by LBFGS until the features of hooks fit."""

import copy
import json

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

rng = np.random.RandomState(21)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.set_default_dtype(torch.float64)


def gram_matrix(input):
    a, b, c, d = input.size()
    features = input.view(a * b, c * d)
    G = torch.mm(features, features.t())
    return G.div(a * b * c * d)


class ContentLoss(nn.Module):
    def __init__(self, target):
        super(ContentLoss, self).__init__()
        self.target = target.detach()

    def forward(self, input):
        self.loss = F.mse_loss(input, self.target)
        return input


class StyleLoss(nn.Module):
    def __init__(self, target_feature):
        super(StyleLoss, self).__init__()
        self.target = gram_matrix(target_feature).detach()

    def forward(self, input):
        self.loss = F.mse_loss(gram_matrix(input), self.target)
        return input


class Normalization(nn.Module):
    def __init__(self, mean, std):
        super(Normalization, self).__init__()
        self.mean = mean.clone().detach().view(-1, 1, 1)
        self.std = std.clone().detach().view(-1, 1, 1)

    def forward(self, img):
        return (img - self.mean) / self.std


features = nn.Sequential(
    nn.Conv2d(3, 4, 3, padding=1),
    nn.ReLU(inplace=True),
    nn.AvgPool2d(2),
    nn.Conv2d(4, 6, 3, padding=1),
    nn.ReLU(inplace=True),
)
for p in features.parameters():
    p.data.copy_(torch.from_numpy(rng.randn(*p.shape) * 0.5))
cnn = features.to(device).eval()
for param in cnn.parameters():
    param.requires_grad_(False)
content_img = torch.from_numpy(rng.rand(1, 3, 8, 8)).to(device)
style_img = torch.from_numpy(rng.rand(1, 3, 8, 8)).to(device)


def get_style_model_and_losses(cnn):
    cnn = copy.deepcopy(cnn)
    content_losses, style_losses = [], []
    model = nn.Sequential(Normalization(torch.tensor([0.48] * 3), torch.tensor([0.22] * 3)))
    i = 0
    for layer in cnn.children():
        if isinstance(layer, nn.Conv2d):
            i += 1
            name = "conv_{}".format(i)
        elif isinstance(layer, nn.ReLU):
            name = "relu_{}".format(i)
            layer = nn.ReLU(inplace=False)
        elif isinstance(layer, nn.AvgPool2d):
            name = "pool_{}".format(i)
        else:
            raise RuntimeError("Unrecognized layer: {}".format(layer.__class__.__name__))
        model.add_module(name, layer)
        if name == "conv_2":
            content_loss = ContentLoss(model(content_img).detach())
            model.add_module("content_loss_{}".format(i), content_loss)
            content_losses.append(content_loss)
        if name.startswith("conv"):
            style_loss = StyleLoss(model(style_img).detach())
            model.add_module("style_loss_{}".format(i), style_loss)
            style_losses.append(style_loss)
    return model, style_losses, content_losses


activations, gradients = {}, {}


def save_activation(name):
    def hook(module, input, output):
        activations[name] = output.detach().abs().mean().item()

    return hook


def save_gradient(module, grad_input, grad_output):
    gradients[module.__class__.__name__] = grad_output[0].norm().item()


model, style_losses, content_losses = get_style_model_and_losses(cnn)
handles = [model.relu_1.register_forward_hook(save_activation("relu_1"))]
handles.append(model.conv_2.register_forward_hook(save_activation("conv_2")))
handles.append(model.pool_1.register_full_backward_hook(save_gradient))
input_img = content_img.clone()
optimizer = optim.LBFGS([input_img.requires_grad_()], max_iter=4, line_search_fn="strong_wolfe")
run, scores = [0], []
while run[0] <= 12:

    def closure():
        with torch.no_grad():
            input_img.clamp_(0, 1)
        optimizer.zero_grad()
        model(input_img)
        style_score = 100 * sum(sl.loss for sl in style_losses)
        content_score = sum(cl.loss for cl in content_losses)
        loss = style_score + content_score
        loss.backward()
        run[0] += 1
        scores.append([style_score.item(), content_score.item()])
        return loss

    optimizer.step(closure)
for handle in handles:
    handle.remove()
seen = dict(activations)
model(input_img * 2)
with torch.no_grad():
    input_img.clamp_(0, 1)
names = [name for name, _ in model.named_children()]
print(
    json.dumps(
        {
            "scores": scores[:12],
            "image": input_img.mean(dim=(2, 3)).tolist(),
            "activations": activations,
            "gradients": gradients,
            "removed": seen == activations,
            "names": names,
        }
    )
)
