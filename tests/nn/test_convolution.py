"""Layers of convolutions and of windows, as PyTorch has them."""

import inspect
import math

import pytest
from helpers.as_torch import as_torch, error, leaf
from helpers.layers import fix_weights, in_float64, irregular, of_layer

import jaxgrad


def numbers(torch, *shape):
    """Numbers without a pattern that a mistake could reproduce."""
    count = math.prod(shape)
    values = [math.sin(1.3 * i**2 + 0.7) for i in range(count)]
    return leaf(torch, *values, dtype=torch.float64).reshape(shape)


@as_torch
def test_reprs_and_state_dicts_of_convolutions(torch):
    nn = torch.nn
    layers = [
        nn.Conv1d(4, 8, 3),
        nn.Conv2d(4, 8, (3, 2), padding="same", bias=False, dilation=2, groups=2),
        nn.Conv3d(2, 2, 1, 2, padding=(1, 0, 0), padding_mode="circular"),
        nn.ConvTranspose1d(4, 2, 3, output_padding=1, stride=2),
        nn.ConvTranspose2d(4, 2, 3, dilation=2, groups=2, bias=False),
        nn.Fold(4, 2, 1, (1, 0), 2),
        nn.Unfold((2, 3), padding=1),
    ]
    kept = [[(name, list(w.shape)) for name, w in layer.state_dict().items()] for layer in layers]
    options = [[layer.transposed, layer.output_padding] for layer in layers[:5]]
    return [*map(repr, layers)], kept, options


@as_torch("""
    ValueError('out_channels must be divisible by groups')
    ValueError('groups must be a positive integer')
    ValueError("Invalid padding string 'odd', should be one of {'same', 'valid'}")
    ValueError("padding='same' is not supported for strided convolutions")
    ValueError('ConvTranspose1D: for 3D input, output_size must have 1 or 3 elements (got 2)')
    RuntimeError(
     'Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: '
     '[4, 3]')
""")
def test_wrong_arguments_of_convolutions(torch):
    nn, x = torch.nn, torch.ones(1, 4, 3)
    turned = nn.ConvTranspose1d(4, 2, 3)
    return [
        error(nn.Conv2d, 4, 7, 3, 1, 0, 1, 2, words="out_channels must be divisible by groups"),
        error(nn.Conv2d, 4, 8, 3, 1, 0, 1, 0, words="groups must be a positive integer"),
        error(nn.Conv2d, 4, 8, 3, 1, "odd", words="Invalid padding string 'odd', should be one of"),
        error(nn.Conv2d, 4, 8, 3, 2, "same", words="not supported for strided convolutions"),
        error(turned, x, (1, 2), words="for 3D input, output_size must have 1 or 3 elements (got"),
        error(
            nn.Conv2d(4, 8, 3), torch.ones(4, 3), words="Expected 3D (unbatched) or 4D (batched)"
        ),
    ]


@as_torch(precision=1e-12)
def test_fold_and_unfold(torch):
    nn, x = torch.nn, numbers(torch, 2, 2, 4, 3)
    columns = nn.Unfold((2, 3), padding=(0, 1), stride=(2, 1))(x)
    image = nn.Fold((3, 2), 2, padding=1, stride=(2, 1))(numbers(torch, 8, 6))
    (grad,) = torch.autograd.grad((columns * columns).sum(), x)
    return columns.detach(), grad, image.detach()


@as_torch("""
    'torch.bfloat16'
    'torch.bfloat16'
    'torch.bfloat16'
    'torch.float32'
""")
def test_convolutions_under_autocast(torch):
    o, F = torch.ones, torch.nn.functional
    with torch.autocast("cpu"):
        outputs = [
            F.conv_tbc(o(4, 1, 2), o(3, 2, 3), o(3)),
            torch.conv3d(o(2, 2, 2, 2), o(3, 2, 1, 1, 1)),
            torch.conv_transpose2d(o(1, 2, 2), o(1, 3, 2, 2)),
            torch.convolution(o(1, 2, 4), o(3, 2, 3), None, [1], [0], [1], False, [0], 1),
        ]
    return [str(output.dtype) for output in outputs]


def test_names_that_subclasses_of_convolutions_use():
    class Halved(jaxgrad.nn.Conv2d):
        def forward(self, input):
            return self._conv_forward(input, self.weight / 2, None)

    layer = Halved(1, 1, (1, 3), padding=(0, 1), padding_mode="circular")
    with jaxgrad.no_grad():
        layer.weight.copy_(jaxgrad.tensor([2.0, 0.0, 4.0]).reshape(1, 1, 1, 3))
    # each is its left neighbour and twice its right neighbour, around the edges
    assert layer(jaxgrad.tensor([[[[1.0, 2.0, 3.0]]]])).tolist() == [[[[7.0, 7.0, 4.0]]]]
    assert layer._reversed_padding_repeated_twice == [1, 1, 0, 0]
    even = jaxgrad.nn.Conv1d(1, 1, 4, padding="same")
    assert even._reversed_padding_repeated_twice == [1, 2]


@pytest.mark.slow
@in_float64
def test_convolutions(torch):
    nn, x = torch.nn, irregular(torch, 2, 4, 5, 4)
    return [
        of_layer(torch, nn.Conv2d(4, 3, 3, stride=2, padding=1), x.detach(), second=True),
        of_layer(
            torch,
            nn.Conv2d(4, 2, (2, 3), padding=(0, 1), dilation=(2, 1), groups=2, bias=False),
            x.detach(),
        ),
        of_layer(torch, nn.Conv1d(4, 2, 2), irregular(torch, 4, 5)),
        of_layer(torch, nn.Conv3d(1, 2, 2), irregular(torch, 1, 1, 3, 3, 2)),
    ]


@pytest.mark.slow
@in_float64
def test_transposed_convolutions(torch):
    nn, x = torch.nn, irregular(torch, 2, 4, 3, 2)
    one = nn.ConvTranspose2d(
        4, 6, (2, 3), stride=(2, 1), padding=(0, 1), output_padding=(1, 0), groups=2
    )
    results = of_layer(torch, one, x, second=True)
    two = fix_weights(torch, nn.ConvTranspose1d(2, 1, 3, stride=2))
    results.append(two(irregular(torch, 1, 2, 3), output_size=(8,)).detach())
    words = "requested an output size of"
    return results, error(lambda: two(irregular(torch, 1, 2, 3), output_size=(9,)), words=words)


@pytest.mark.slow
@in_float64
def test_padding_modes_of_convolutions(torch):
    nn, x = torch.nn, irregular(torch, 1, 2, 4, 3)
    outputs = []
    for mode in ("zeros", "reflect", "replicate", "circular"):
        layer = fix_weights(torch, nn.Conv2d(2, 1, 3, padding="same", padding_mode=mode))
        outputs.append(layer(x).detach())
    return outputs, fix_weights(torch, nn.Conv2d(2, 1, 2, padding="valid"))(x[0]).detach()


def test_channels_that_come_last_are_named():
    images = jaxgrad.ones(1, 6, 5, 3)
    layer = jaxgrad.nn.Conv2d(3, 2, 3)
    with pytest.raises(RuntimeError, match=r"but got 6 channels instead: .*movedim\(-1, -3\)"):
        layer(images)
    assert layer(images.movedim(-1, -3)).shape == (1, 2, 4, 3)


@as_torch("""
    TypeError("Conv2d.__init__() got an unexpected keyword argument 'kernel'")
    TypeError(
     "Conv1d.__init__() missing 2 required positional arguments: 'out_channels' and "
     "'kernel_size'")
    TypeError("ConvTranspose3d.__init__() missing 1 required positional argument: 'kernel_size'")
    ['1', [1, 1]]
""")
def test_errors_of_arguments_name_the_layer(torch):
    nn = torch.nn
    return [
        error(lambda: nn.Conv2d(kernel=3), words="unexpected keyword argument"),
        error(lambda: nn.Conv1d(3), words="missing 2 required positional arguments"),
        error(lambda: nn.ConvTranspose3d(1, 2), words="missing 1 required positional argument"),
        [str(inspect.signature(nn.Conv2d).parameters["stride"].default), nn.Conv2d(1, 2, 3).stride],
    ]
