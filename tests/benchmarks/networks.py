"""Further networks for the benchmark of training steps: those of tests/models in their real widths,
VGG11 and a ResNet of bottlenecks.

By hand, images are (batch, height, width, channels) and kernels (height, width, in, out), which
XLA's CPU backend convolves fastest. Running statistics of batch norms are not kept by hand.
"""

import functools
import pathlib
import sys

import jax
import jax.numpy as jnp
import numpy as np
from training import Case, attend_heads, cross_entropy, layer_norm, linear

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

import models

CLASSES = 10


def network(name, change=None, **constants):
    """A function of `torch` that makes a model of tests/models with other constants."""

    def make(torch):
        file = models.load(name, torch.__name__)
        for constant, value in constants.items():
            assert hasattr(file, constant)
            setattr(file, constant, value)
        model = file.model()
        if change is not None:
            change(torch, file, model)
        return model.float()

    return make


# ---- layers by hand


def conv(weights, name, x, stride=1, padding=0, groups=1):
    kernel = weights[f"{name}.weight"]
    x = jax.lax.conv_general_dilated(
        x,
        kernel,
        (stride, stride),
        [(padding, padding)] * 2,
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=groups,
    )
    return x + weights[f"{name}.bias"] if f"{name}.bias" in weights else x


def conv_transpose(weights, name, x):
    kernel = weights[f"{name}.weight"]
    output = jax.lax.conv_transpose(x, kernel, (2, 2), "VALID", transpose_kernel=True)
    return output + weights[f"{name}.bias"]


def batch_norm(weights, name, x):
    mean = x.mean((0, 1, 2))
    variance = (x * x).mean((0, 1, 2)) - mean * mean
    scale = weights[f"{name}.weight"] * jax.lax.rsqrt(variance + 1e-5)
    return (x - mean) * scale + weights[f"{name}.bias"]


def pool(x, size, initial=-jnp.inf, function=jax.lax.max):
    window = 1, size, size, 1
    return jax.lax.reduce_window(x, initial, function, window, window, "VALID")


relu = jax.nn.relu


def relu6(x):
    return jnp.clip(x, 0, 6)


# ---- ResNets of 32x32 images: the first convolution has stride 1, and no pooling follows

WIDTHS = (64, 128, 256, 512)


def small_images(torch, file, model):
    model.conv1 = torch.nn.Conv2d(3, WIDTHS[0], 3, padding=1, bias=False)
    model.maxpool = torch.nn.Identity()


def downsampled(weights, name, x, stride):
    if f"{name}.downsample.0.weight" not in weights:
        return x
    x = conv(weights, f"{name}.downsample.0", x, stride)
    return batch_norm(weights, f"{name}.downsample.1", x)


def resnet_block(weights, name, x, stride):
    y = relu(batch_norm(weights, f"{name}.bn1", conv(weights, f"{name}.conv1", x, stride, 1)))
    y = batch_norm(weights, f"{name}.bn2", conv(weights, f"{name}.conv2", y, 1, 1))
    return relu(y + downsampled(weights, name, x, stride))


def bottleneck_block(weights, name, x, stride):
    y = relu(batch_norm(weights, f"{name}.bn1", conv(weights, f"{name}.conv1", x)))
    y = relu(batch_norm(weights, f"{name}.bn2", conv(weights, f"{name}.conv2", y, stride, 1)))
    y = batch_norm(weights, f"{name}.bn3", conv(weights, f"{name}.conv3", y))
    return relu(y + downsampled(weights, name, x, stride))


def resnet_loss(weights, images, labels, block, depths):
    x = relu(batch_norm(weights, "bn1", conv(weights, "conv1", images, 1, 1)))
    for stage, depth in enumerate(depths):
        for number in range(depth):
            stride = 2 if stage and not number else 1
            x = block(weights, f"layers.{stage}.{number}", x, stride)
    return cross_entropy(linear(weights, "fc", x.mean((1, 2))), labels)


DEPTHS = (3, 4, 6, 3)  # of ResNet-50


def bottleneck_resnet(torch):
    nn = torch.nn

    class Bottleneck(nn.Module):
        def __init__(self, inputs, width, stride):
            super().__init__()
            outputs = 4 * width
            self.conv1, self.bn1 = nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width)
            self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
            self.bn2 = nn.BatchNorm2d(width)
            self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
            self.bn3, self.relu = nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)
            self.downsample = nn.Identity()
            if inputs != outputs:
                layer = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
                self.downsample = nn.Sequential(layer, nn.BatchNorm2d(outputs))

        def forward(self, x):
            y = self.relu(self.bn1(self.conv1(x)))
            y = self.bn3(self.conv3(self.relu(self.bn2(self.conv2(y)))))
            return self.relu(y + self.downsample(x))

    def change(torch, file, model):
        small_images(torch, file, model)
        inputs, stages = WIDTHS[0], []
        for stage, (width, depth) in enumerate(zip(WIDTHS, DEPTHS, strict=True)):
            strides = [2 if stage else 1] + [1] * (depth - 1)
            widths = [inputs] + [4 * width] * (depth - 1)
            pairs = zip(widths, strides, strict=True)
            stages.append(nn.Sequential(*(Bottleneck(wide, width, s) for wide, s in pairs)))
            inputs = 4 * width
        model.layers, model.fc = nn.Sequential(*stages), nn.Linear(inputs, CLASSES)

    return network("resnet18", change, WIDTHS=WIDTHS)(torch)


# ---- U-Net

LEVELS, BEFORE, AFTER = (16, 32, 64, 128), 140, 52


def double(weights, name, x):
    return relu(conv(weights, f"{name}.2", relu(conv(weights, f"{name}.0", x))))


def unet_loss(weights, images, labels):
    kept = [double(weights, "first", images)]
    for number in range(len(LEVELS) - 1):
        kept.append(double(weights, f"down.{number}", pool(kept[-1], 2)))
    x = kept.pop()
    for number in range(len(LEVELS) - 1):
        x, beside = conv_transpose(weights, f"up.{number}.up", x), kept.pop()
        edge = (beside.shape[1] - x.shape[1]) // 2
        beside = beside[:, edge:-edge, edge:-edge]
        x = double(weights, f"up.{number}.convolutions", jnp.concatenate([beside, x], -1))
    return cross_entropy(conv(weights, "last", x), labels)


# ---- a vision transformer

BLOCKS, HEADS, EMBEDDING, PATCH, SIDE = 6, 4, 128, 4, 32


def deeper(torch, file, model):
    model.blocks = torch.nn.Sequential(*(file.Block() for _ in range(BLOCKS)))
    for block in model.blocks:
        block.attention = torch.nn.MultiheadAttention(EMBEDDING, HEADS, batch_first=True)


def vit_loss(weights, images, labels):
    count = len(images)
    x = conv(weights, "patches", images, PATCH).reshape(count, -1, EMBEDDING)
    token = jnp.broadcast_to(weights["token"], (count, 1, EMBEDDING))
    x = jnp.concatenate([token, x], 1) + weights["positions"]
    norm = functools.partial(layer_norm, epsilon=1e-6)
    for number in range(BLOCKS):
        name = f"blocks.{number}"
        layer_weights = {
            "qkv.weight": weights[f"{name}.attention.in_proj_weight"],
            "qkv.bias": weights[f"{name}.attention.in_proj_bias"],
        }
        y = linear(layer_weights, "qkv", norm(weights, f"{name}.norm1", x))
        y = attend_heads(y, HEADS, is_causal=False)
        x = x + linear(weights, f"{name}.attention.out_proj", y)
        y = linear(weights, f"{name}.mlp.0", norm(weights, f"{name}.norm2", x))
        x = x + linear(weights, f"{name}.mlp.2", jax.nn.gelu(y, approximate=False))
    return cross_entropy(linear(weights, "head", norm(weights, "norm", x)[:, 0]), labels)


# ---- MobileNet v2

TABLE = [
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
]


def activated(weights, name, x, stride=1, groups=1):
    padding = weights[f"{name}.0.weight"].shape[0] // 2
    x = conv(weights, f"{name}.0", x, stride, padding, groups)
    return relu6(batch_norm(weights, f"{name}.1", x))


def inverted(weights, name, x, outputs, stride, expansion):
    hidden, y = x.shape[-1] * expansion, x
    layers = iter(range(4))
    if expansion != 1:
        y = activated(weights, f"{name}.conv.{next(layers)}", y)
    y = activated(weights, f"{name}.conv.{next(layers)}", y, stride, hidden)
    y = conv(weights, f"{name}.conv.{next(layers)}", y)
    y = batch_norm(weights, f"{name}.conv.{next(layers)}", y)
    return x + y if stride == 1 and x.shape[-1] == outputs else y


def mobilenet_loss(weights, images, labels):
    x, number = activated(weights, "features.0", images, 2), 1
    for expansion, outputs, blocks, stride in TABLE:
        for block in range(blocks):
            name = f"features.{number}"
            x = inverted(weights, name, x, outputs, 1 if block else stride, expansion)
            number += 1
    x = activated(weights, f"features.{number}", x).mean((1, 2))
    return cross_entropy(linear(weights, "classifier.1", x), labels)


# ---- VGG11

VGG = (64, "pool", 128, "pool", 256, 256, "pool", 512, 512, "pool", 512, 512, "pool")


def vgg11(torch):
    nn, layers, inputs = torch.nn, [], 3
    for entry in VGG:
        if entry == "pool":
            layers.append(nn.MaxPool2d(2))
        else:
            layers += [nn.Conv2d(inputs, entry, 3, padding=1), nn.ReLU(inplace=True)]
            inputs = entry
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(inputs, CLASSES))


def vgg_loss(weights, images, labels):
    x, number = images, 0
    for entry in VGG:
        if entry == "pool":
            x = pool(x, 2)
            number += 1
        else:
            x = relu(conv(weights, str(number), x, 1, 1))
            number += 2
    return cross_entropy(linear(weights, str(number + 1), x.reshape(len(x), -1)), labels)


# ---- a DenseNet

GROWTH, DENSE = 16, (6, 6, 6)


def normed_conv(weights, name, first, x, padding=0):
    x = relu(batch_norm(weights, f"{name}.{first}", x))
    return conv(weights, f"{name}.{first + 2}", x, 1, padding)


def densenet_loss(weights, images, labels):
    x, number = conv(weights, "features.0", images, 1, 1), 1
    for block, count in enumerate(DENSE):
        if block:
            x = pool(normed_conv(weights, "features", number, x), 2, 0.0, jax.lax.add) / 4
            number += 4
        for layer in range(count):
            name = f"features.{number}.{layer}.layers"
            y = normed_conv(weights, name, 3, normed_conv(weights, name, 0, x), 1)
            x = jnp.concatenate([x, y], -1)
        number += 1
    x = relu(batch_norm(weights, f"features.{number}", x))
    return cross_entropy(linear(weights, "classifier", x.mean((1, 2))), labels)


def cases():
    draw = np.random.default_rng(1)

    def images(count, side, channels=3):
        return draw.standard_normal((count, channels, side, side)).astype(np.float32)

    def labelled(*shape):
        return images(*shape), draw.integers(0, CLASSES, shape[0])

    image = functools.partial(Case, channels_last=True)
    resnet = functools.partial(resnet_loss, block=resnet_block, depths=(2, 2, 2, 2))
    resnet50 = functools.partial(resnet_loss, block=bottleneck_block, depths=DEPTHS)
    constants = {"CLASSES": CLASSES}
    vit_constants = constants | {"SIZE": SIDE, "PATCH": PATCH, "WIDTH": EMBEDDING}
    return {
        "ResNet-18": image(
            network("resnet18", small_images, WIDTHS=WIDTHS, **constants), resnet, labelled(8, 32)
        ),
        "U-Net": image(
            network("unet", WIDTHS=LEVELS, **constants),
            unet_loss,
            (images(2, BEFORE, 1), draw.integers(0, CLASSES, (2, AFTER, AFTER))),
        ),
        "ViT": image(network("vit", deeper, **vit_constants), vit_loss, labelled(16, SIDE)),
        "MobileNet v2": image(
            network("mobilenet_v2", TABLE=TABLE, FIRST=32, LAST=1280, **constants),
            mobilenet_loss,
            labelled(8, 64),
        ),
        "VGG11": image(vgg11, vgg_loss, labelled(8, 32)),
        "ResNet-50": image(bottleneck_resnet, resnet50, labelled(4, 32)),
        "DenseNet": image(
            network("densenet", GROWTH=GROWTH, BLOCKS=DENSE, **constants),
            densenet_loss,
            labelled(8, 32),
        ),
    }
