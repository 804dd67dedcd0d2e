"""The memory format of weights; the strides are PyTorch's."""

import jaxgrad as torch


def test_memory_format_of_weights():
    layers = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 2), torch.nn.Conv3d(3, 4, 2))
    weights = [layer.weight for layer in layers]
    utils = torch.nn.utils
    assert utils.convert_conv2d_weight_memory_format(layers, torch.channels_last) is layers
    assert [weight.stride() for weight in weights] == [(12, 1, 6, 3), (24, 8, 4, 2, 1)]
    utils.convert_conv3d_weight_memory_format(layers, torch.channels_last_3d)
    assert [weight.stride() for weight in weights] == [(12, 1, 6, 3), (24, 1, 12, 6, 3)]
    assert layers[0].weight is weights[0]


def test_memory_format_of_modules():
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 2), torch.nn.BatchNorm2d(4))
    module[0](torch.ones(1, 3, 4, 4)).sum().backward()
    module.to(memory_format=torch.channels_last)
    weight = module[0].weight
    assert weight.stride() == weight.grad.stride() == (12, 1, 6, 3)
    assert module(torch.ones(2, 3, 4, 4)).stride() == (36, 1, 12, 4)
    assert module.double()[0].weight.stride() == (12, 1, 6, 3)
