"""Batch normalization as a part of the layer before, against PyTorch."""

from helpers.as_torch import as_torch, error


def linear(torch, rows=2, columns=3):
    layer = torch.nn.Linear(columns, rows)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[0.1, -0.2, 0.3], [0.5, -0.05, 0.6]]))
        layer.bias.copy_(torch.tensor([0.25, -0.5]))
    return layer


@as_torch(precision=1e-6)
def test_fusing_batch_norm_into_the_layer_before(torch):
    utils, results = torch.nn.utils, []
    norm = torch.nn.BatchNorm1d(2)
    norm.running_mean.copy_(torch.tensor([0.5, -1.0]))
    norm.running_var.copy_(torch.tensor([4.0, 0.25]))
    with torch.no_grad():
        norm.weight.copy_(torch.tensor([2.0, 3.0]))
        norm.bias.copy_(torch.tensor([0.1, 0.2]))
    layer = linear(torch)
    refused = error(utils.fuse_linear_bn_eval, layer, norm)
    norm.eval()
    fused = utils.fuse_linear_bn_eval(layer.eval(), norm)
    results += [fused.weight, fused.bias, isinstance(fused.bias, torch.nn.Parameter)]
    for transpose in (False, True):
        kind = torch.nn.ConvTranspose1d if transpose else torch.nn.Conv1d
        conv = kind(3, 2, 1, bias=transpose).eval()
        with torch.no_grad():
            conv.weight.copy_(layer.weight.reshape(conv.weight.shape))
            if transpose:
                conv.bias.fill_(0.5)
        conv.weight.requires_grad_(False)
        fused = utils.fuse_conv_bn_eval(conv, norm, transpose)
        results += [fused.weight, fused.bias]
    arguments = layer.weight, None, norm.running_mean, norm.running_var, 0.5, None, None
    results += utils.fuse_conv_bn_weights(*arguments)
    half = layer.weight.half(), layer.bias.double(), *arguments[2:5], norm.weight, norm.bias
    results += utils.fuse_linear_bn_weights(*half)
    few = error(utils.fuse_linear_bn_eval, layer, torch.nn.BatchNorm1d(3).eval())
    return [*results, refused, few]
