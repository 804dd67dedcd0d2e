"""Convolutions, their gradients, and windows as columns."""

from samples import Int, S, T

ALL = [True, True, True]

FUNCTIONS = [
    S("conv1d", T(2, 2, 5), T(3, 2, 3), T(3), stride=2, padding=1),
    S("conv1d", T(2, 4), T(2, 1, 2), padding="same", groups=2),
    S("conv2d", T(2, 2, 4, 3), T(3, 2, 3, 2), T(3), padding=(1, 0), complex=True),
    S("conv2d", T(1, 4, 5, 4), T(4, 2, 2, 3), None, (2, 1), (1, 1), (2, 1), 2),
    S("conv2d", T(2, 3, 3), T(4, 1, 2, 2), T(4), groups=2),
    S("conv2d", T(0, 2, 3, 3), T(2, 2, 2, 2), T(2)),
    S("conv2d", Int(1, 2, 3, 3), Int(1, 2, 2, 2)),
    S("conv3d", T(1, 2, 3, 2, 3), T(2, 2, 2, 2, 2), T(2), padding=(1, 0, 1), stride=(1, 1, 2)),
    S("conv_transpose1d", T(2, 2, 3), T(2, 2, 3), T(2), 2, 1, 1),
    S("conv_transpose2d", T(1, 2, 2, 3), T(2, 3, 2, 2), T(3), 2, complex=True),
    S("conv_transpose2d", T(1, 4, 2, 3), T(4, 1, 2, 3), None, (2, 1), (1, 2), (1, 0), 2, (1, 2)),
    S("conv_transpose2d", T(2, 2, 2), T(2, 1, 2, 2), T(2), output_padding=1, groups=2, dilation=2),
    S("conv_transpose3d", T(1, 2, 2, 2, 2), T(2, 1, 2, 1, 2), T(1), padding=(1, 0, 0)),
    S("conv_tbc", T(4, 2, 2), T(3, 2, 3), T(3), 1),
    S("conv_tbc", T(3, 1, 2), T(2, 2, 1), T(1)),
]


OPERATORS = [
    S("convolution", T(2, 2, 4), T(2, 2, 2), T(2), [2], [1], [2], False, [0], 1),
    S("convolution", T(1, 4, 3), T(4, 1, 2), T(2), [2], [0], [1], True, [1], 2),
    S("convolution", T(1, 2, 3), T(2, 1, 2), None, [1], [1], [1], False, [0], 2),
]


def gradients(grad, input, weight, *numbers):
    bias_size = grad.shape[1]
    return S("ops.convolution_backward", grad, input, weight, [bias_size], *numbers, ALL)


GRADIENTS = [
    gradients(
        T(2, 2, 2, 1), T(2, 2, 4, 3), T(2, 2, 3, 2), [2, 1], [1, 0], [1, 2], False, [0, 0], 1
    ),
    gradients(T(1, 2, 6), T(1, 4, 3), T(4, 1, 2), [2], [0], [1], True, [0], 2),
    gradients(T(1, 2, 4), T(1, 2, 3), T(2, 1, 2), [1], [1], [1], False, [0], 2),
]

COLUMNS = [
    S("nn.functional.unfold", T(2, 2, 4, 3), (2, 3), 1, (1, 0), 2, complex=True),
    S("nn.functional.unfold", T(1, 4, 5), 2, dilation=(2, 1), padding=1, stride=(1, 3)),
    S("nn.functional.unfold", T(0, 1, 2, 2), 2),
    S("nn.functional.fold", T(2, 4, 6), (4, 3), 2, complex=True),
    S("nn.functional.fold", T(4, 8), (4, 5), 2, dilation=(2, 1), padding=1, stride=(1, 3)),
    S("ops.im2col", T(1, 2, 3, 3), [2, 2], [1, 1], [0, 1], [1, 2]),
    S("ops.col2im", T(1, 8, 4), [3, 3], [2, 2], [1, 1], [0, 1], [1, 2]),
]

SAMPLES = FUNCTIONS + OPERATORS + GRADIENTS + COLUMNS
