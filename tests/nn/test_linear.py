"""Linear and bilinear layers against PyTorch."""

from helpers.layers import in_float64, irregular, of_layer


@in_float64
def test_linear_and_bilinear(torch):
    nn = torch.nn
    return [
        of_layer(torch, nn.Linear(3, 2), irregular(torch, 2, 4, 3)),
        of_layer(torch, nn.Linear(3, 2, bias=False), irregular(torch, 3)),
        of_layer(
            torch, nn.Bilinear(3, 2, 2), irregular(torch, 4, 3), irregular(torch, 4, 2, first=9)
        ),
    ]
