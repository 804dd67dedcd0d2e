"""A residual network as model collections write it, with TorchScript's decorators and types."""

import json
from functools import partial
from typing import Callable, Dict, Optional, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.utils.checkpoint as cp
from torch import Tensor
from torch.jit import Final as JitFinal
from torch.jit.annotations import List as JitList
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.utils import _pair


@torch.jit.script
def swish(x):
    return x.mul(x.sigmoid())


@torch.jit.script
def fused_add(x: Tensor, y: Tensor, alpha: float) -> Tensor:
    return torch.add(x, y, alpha=alpha)


def drop_path(x, drop_prob: float = 0.0, training: bool = False):
    if drop_prob == 0.0 or not training:
        return x
    keep = 1 - drop_prob
    return x.div(keep) * x.new_empty((x.shape[0],) + (1,) * (x.ndim - 1)).bernoulli_(keep)


def make_divisible(v, divisor=8, min_value=None):
    min_value = min_value or divisor
    return max(min_value, int(v + divisor / 2) // divisor * divisor)


class SwishJit(torch.autograd.Function):
    """Saves memory: the gradient is computed from the input alone."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return swish(x)

    @staticmethod
    def backward(ctx, grad_output):
        x = ctx.saved_tensors[0]
        x_sigmoid = torch.sigmoid(x)
        return grad_output * (x_sigmoid * (1 + x * (1 - x_sigmoid)))


class ConvBnAct(nn.Module):
    is_final: JitFinal[bool]

    def __init__(self, cin, cout, kernel_size=3, stride=1, act=True, groups=1):
        super().__init__()
        self.is_final = not act
        padding = tuple((k - 1) // 2 for k in _pair(kernel_size))
        self.conv = nn.Conv2d(cin, cout, kernel_size, stride, padding, groups=groups, bias=False)
        self.bn = nn.BatchNorm2d(cout)

    def forward(self, x):
        x = self.bn(self.conv(x))
        if self.is_final:
            return x
        return SwishJit.apply(x)


class SqueezeExcite(nn.Module):
    __constants__ = ["memory_efficient"]

    def __init__(self, channels, ratio=0.25, memory_efficient: bool = False):
        super().__init__()
        reduced = make_divisible(channels * ratio, 4)
        self.fc1 = nn.Conv2d(channels, reduced, 1)
        self.fc2 = nn.Conv2d(reduced, channels, 1)
        self.memory_efficient = memory_efficient

    def gated(self, x: Tensor) -> Tensor:
        s = x.mean((2, 3), keepdim=True)
        s = self.fc2(F.silu(self.fc1(s), inplace=True))
        return x * s.sigmoid()

    @torch.jit.unused
    def call_checkpoint(self, x: Tensor) -> Tensor:
        return cp.checkpoint(self.gated, x, use_reentrant=False)

    def forward(self, x: Tensor) -> Tensor:
        if self.memory_efficient and self.training and not torch.jit.is_scripting():
            return self.call_checkpoint(x)
        return self.gated(x)


class Bottleneck(nn.Module):
    expansion: int = 2

    def __init__(self, cin, width, stride=1, memory_efficient: bool = False):
        super().__init__()
        cout = width * self.expansion
        self.layers = nn.Sequential(
            ConvBnAct(cin, width, 1),
            ConvBnAct(width, width, 3, stride, groups=2),
            SqueezeExcite(width, memory_efficient=memory_efficient),
            ConvBnAct(width, cout, 1, act=False),
        )
        self.shortcut: Optional[nn.Module] = None
        if stride != 1 or cin != cout:
            self.shortcut = ConvBnAct(cin, cout, 1, stride, act=False)

    def forward(self, x: Tensor) -> Tensor:
        residual = x if self.shortcut is None else self.shortcut(x)
        out = self.layers(x)
        return swish(fused_add(residual, drop_path(out, 0.0, self.training), 0.5))


class ResNet(nn.Module):
    features: JitList[nn.Module]

    def __init__(self, num_classes=5, norm: Optional[Callable[..., nn.Module]] = None):
        super().__init__()
        norm = norm or partial(nn.BatchNorm2d, eps=1e-3)
        self.stem = nn.Sequential(nn.Conv2d(3, 4, 3, 1, 1, bias=False), norm(4), nn.Hardswish())
        self.blocks = nn.ModuleDict(
            {"a": Bottleneck(4, 4), "b": Bottleneck(8, 4, stride=2, memory_efficient=True)}
        )
        self.head = nn.Linear(8, num_classes)
        self.apply(self._init_weights)

    @torch.jit.ignore
    def no_weight_decay(self):
        return {"head.bias"}

    @staticmethod
    def _init_weights(m):
        if isinstance(m, (nn.Conv2d, nn.Linear)):
            n = m.weight.numel()
            m.weight.data.copy_(torch.sin(torch.arange(n) * 1.3).view_as(m.weight) * 0.5)
            if m.bias is not None:
                nn.init.zeros_(m.bias)

    def forward_features(self, x) -> Tuple[Tensor, Dict[str, Tensor]]:
        seen: Dict[str, Tensor] = {}
        x = self.stem(x)
        for name, block in self.blocks.items():
            x = block(x)
            seen[name] = x
        return x, seen

    def forward(self, x):
        torch._assert(x.ndim == 4, "images have four dimensions")
        x, _ = self.forward_features(x)
        return self.head(x.mean([-2, -1]))


def param_groups(model, weight_decay):
    decay, no_decay = [], []
    for name, param in model.named_parameters():
        if not param.requires_grad:
            continue
        if param.ndim <= 1 or name in model.no_weight_decay():
            no_decay.append(param)
        else:
            decay.append(param)
    return [
        {"params": no_decay, "weight_decay": 0.0},
        {"params": decay, "weight_decay": weight_decay},
    ]


class ModelEma(nn.Module):
    def __init__(self, model, decay=0.9):
        super().__init__()
        import copy

        self.module = copy.deepcopy(model).eval()
        self.decay = decay

    def update(self, model):
        with torch.no_grad():
            for e, m in zip(self.module.state_dict().values(), model.state_dict().values()):
                e.copy_(self.decay * e + (1.0 - self.decay) * m)


model = ResNet()
ema = ModelEma(model)
optimizer = torch.optim.NAdam(param_groups(model, 1e-2), lr=1e-2)
images = torch.sin(torch.arange(4 * 3 * 8 * 8, dtype=torch.float32) * 0.37).view(4, 3, 8, 8)
target = torch.tensor([0, 2, 1, 4])
losses = []
for _ in range(3):
    loss = F.cross_entropy(model(images), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ema.update(model)
    losses.append(loss.item())
model.eval()
scripted = torch.jit.script(model)
traced = torch.jit.trace(model, images[:1], check_trace=False)
with torch.no_grad():
    plain, one, two = model(images[:1]), scripted(images[:1]), traced(images[:1])
same = torch.allclose(plain, one, atol=1e-6) and torch.allclose(plain, two, atol=1e-6)
with torch.no_grad():
    averaged = ema.module(images)
norms = [m.running_var.sum().item() for m in model.modules() if isinstance(m, _BatchNorm)]
told = {"losses": losses, "same": same, "ema": averaged.tolist(), "norms": norms}
print(json.dumps(told))
