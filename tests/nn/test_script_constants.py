"""`__constants__` of layers, as PyTorch 2.13 has them."""

import pytest

import jaxgrad as torch
from jaxgrad import nn


@pytest.mark.parametrize(
    ("layer", "constants"),
    [
        (nn.Linear, "in_features out_features"),
        (nn.LazyLinear, "in_features out_features"),
        (nn.ReLU6, "min_val max_val inplace"),
        (nn.AvgPool1d, "kernel_size stride padding ceil_mode count_include_pad"),
        (
            nn.AvgPool3d,
            "kernel_size stride padding ceil_mode count_include_pad divisor_override",
        ),
        (
            nn.modules.conv._ConvNd,
            "stride padding dilation groups padding_mode output_padding in_channels out_channels "
            "kernel_size",
        ),
        (nn.SyncBatchNorm, "track_running_stats momentum eps num_features affine"),
        (nn.MultiMarginLoss, "p margin reduction"),
        (nn.ZeroPad2d, "padding value"),
        (nn.GRUCell, "input_size hidden_size bias"),
        (nn.RNNCell, "input_size hidden_size bias nonlinearity"),
    ],
)
def test_constants_of_a_layer(layer, constants):
    assert layer.__constants__ == constants.split()


@pytest.mark.parametrize("layer", [nn.Module, nn.Sigmoid, nn.MaxUnpool2d, nn.BCEWithLogitsLoss])
def test_layers_without_constants(layer):
    assert not hasattr(layer, "__constants__")
    assert not hasattr(nn.Identity(), "__constants__")


def test_a_subclass_adds_constants():
    class Padded(nn.Conv2d):
        __constants__ = (*nn.Conv2d.__constants__, "size")

    assert Padded.__constants__[-2:] == ("kernel_size", "size")
    assert nn.Conv2d.__constants__[-1] == "kernel_size"


def test_a_class_of_the_user_with_the_name_of_a_layer():
    class Linear(nn.Module):
        pass

    assert not hasattr(Linear, "__constants__")
    assert isinstance(torch.nn.Linear(1, 1).__constants__, list)
