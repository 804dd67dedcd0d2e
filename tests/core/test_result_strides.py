"""The strides of results against those that PyTorch 2.13 gives."""

import pytest

import jaxgrad as torch
import jaxgrad.nn.functional as F

# an expression, and the strides of its value in PyTorch
CASES = {
    "F.max_pool2d(images, 2)": (12, 1, 6, 3),
    "F.avg_pool2d(images, 2)": (12, 1, 6, 3),
    "F.adaptive_avg_pool2d(images, 2)": (12, 1, 6, 3),
    "F.adaptive_avg_pool2d(images, 1)": (3, 1, 3, 3),
    "F.adaptive_max_pool2d(images, 2)": (12, 1, 6, 3),
    "F.max_pool3d(volumes, 2)": (8, 1, 8, 4, 2),
    "F.avg_pool3d(volumes, 2)": (8, 4, 4, 2, 1),
    "F.adaptive_avg_pool3d(volumes, 1)": (2, 1, 2, 2, 2),
    "F.max_pool2d(images, 2, return_indices=True)[1]": (12, 1, 6, 3),
    "F.batch_norm(images, None, None, training=True)": (60, 1, 15, 3),
    "F.batch_norm(torch.empty_strided((1, 4, 3, 1), (12, 1, 4, 12)), fours, fours)": (12, 1, 4, 4),
    "F.batch_norm(torch.empty_strided((1, 4, 3, 1), (12, 3, 1, 7)), fours, fours)": (12, 3, 1, 1),
    "F.group_norm(images, 3)": (60, 1, 15, 3),
    "F.instance_norm(images)": (60, 20, 5, 1),
    "F.layer_norm(images, (5,))": (60, 20, 5, 1),
    "F.interpolate(images, scale_factor=2)": (240, 1, 30, 3),
    'F.interpolate(images, scale_factor=2, mode="bilinear")': (240, 1, 30, 3),
    'F.interpolate(images, size=(2, 2), mode="bicubic", antialias=True)': (12, 1, 6, 3),
    'F.interpolate(volumes, scale_factor=2, mode="trilinear")': (960, 1, 160, 20, 2),
    "F.pixel_shuffle(torch.cat([images] * 4, 1), 2)": (240, 1, 30, 3),
    "F.channel_shuffle(images, 3)": (60, 1, 15, 3),
    "F.pad(images, (1, 1))": (84, 1, 21, 3),
    'F.pad(images, (1, 1, 1, 1), "reflect")': (126, 1, 21, 3),
    'F.pad(images, (1, 1, 1, 1), "circular")': (126, 42, 7, 1),
    "F.conv2d(images, kernels)": (48, 1, 16, 4),
    "F.conv2d(rows, kernels)": (48, 12, 4, 1),
    "F.conv2d(rows, kernels.to(memory_format=torch.channels_last))": (48, 1, 16, 4),
    "F.conv2d(rows, kernels[:, :, :1, :1])": (80, 20, 5, 1),
    "F.conv_transpose2d(images, kernels.transpose(0, 1))": (120, 1, 24, 4),
    "F.conv3d(volumes, torch.ones(4, 2, 2, 2, 2))": (96, 1, 48, 16, 4),
    "F.conv3d(volumes[:1], torch.ones(4, 2, 2, 2, 2))": (96, 24, 12, 4, 1),
    "F.conv3d(volumes.double(), torch.ones(4, 2, 2, 2, 2).double())": (96, 24, 12, 4, 1),
    "F.conv1d(rows[:, :, 0], kernels[:, :, 0])": (16, 4, 1),
    "F.conv1d(rows[:, :, 0], kernels[:, :, 0].transpose(1, 2).contiguous().transpose(1, 2))": (
        16,
        1,
        4,
    ),
    "torch.cat([images, images], 1)": (120, 1, 30, 6),
    "torch.cat([images, rows])": (60, 20, 5, 1),
    "torch.cat([images, torch.ones(0)])": (60, 20, 5, 1),
    "torch.stack([images, images])": (120, 60, 1, 15, 3),
    "torch.stack([images, images], 4)": (120, 40, 10, 2, 1),
    "torch.vstack([images, images])": (60, 1, 15, 3),
    "2.0**images": (60, 20, 5, 1),
    "torch.float_power(2.0, images)": (60, 20, 5, 1),
    "torch.linalg.matrix_power(torch.ones(2, 3, 3).mT, 1)": (9, 3, 1),
    "torch.linalg.matrix_power(torch.ones(2, 3, 3).mT, 0)": (9, 3, 1),
    "images.flip(1)": (60, 1, 15, 3),
    "images.roll(1, 1)": (60, 1, 15, 3),
    "images.roll((1, 1), (0, 1))": (60, 1, 15, 3),
    "images.rot90(1, (1, 2))": (60, 15, 1, 3),
    "images.sort(1).values": (60, 1, 15, 3),
    "images.argsort(2)": (60, 1, 15, 3),
    "images.softmax(1)": (60, 20, 5, 1),
    "images[[1, 0]]": (60, 1, 15, 3),
    "images[:, [1, 0]]": (40, 20, 5, 1),
    "images[[1, 0], :, [1, 0]]": (15, 1, 3),
    "images[:, torch.zeros(2, 3, dtype=torch.int64).t()]": (120, 20, 60, 5, 1),
    "images.index_put((torch.tensor([1]),), torch.ones(3, 4, 5))": (60, 1, 15, 3),
    "images.select_scatter(torch.ones(2, 4, 5), 1, 0)": (60, 1, 15, 3),
    "F.glu(torch.cat([images, images], 1), 1)": (60, 1, 15, 3),
    "F.prelu(images, torch.ones(3))": (60, 1, 15, 3),
    "F.dropout(images)": (60, 1, 15, 3),
    'F.mse_loss(images, images, reduction="none")': (60, 1, 15, 3),
    'F.huber_loss(images, images, reduction="none")': (60, 1, 15, 3),
    "torch.max(images, images)": (60, 1, 15, 3),
    "images.max(1).values": (20, 5, 1),
    "images.sum(1)": (20, 5, 1),
    "torch.linalg.inv(matrices)": (9, 1, 3),
    "torch.linalg.cholesky(matrices)": (9, 1, 3),
    "torch.linalg.qr(matrices).Q": (9, 1, 3),
    "torch.linalg.eigh(matrices).eigenvectors": (9, 1, 3),
    "torch.linalg.eigh(matrices).eigenvalues": (3, 1),
    "torch.linalg.lu_factor(matrices).pivots": (3, 1),
    "torch.linalg.solve(matrices, torch.ones(2, 3))": (1, 2),
    "torch.linalg.solve(matrices, torch.ones(2, 3, 4))": (12, 1, 3),
    "torch.linalg.solve(matrices, torch.ones(2, 4, 3), left=False)": (12, 3, 1),
    "torch.fft.fft(images)": (60, 5, 15, 1),
    "torch.fft.fft(rows, dim=1)": (60, 1, 15, 3),
    "torch.fft.rfft2(images, dim=(0, 2))": (3, 6, 1, 18),
    "torch.fft.irfft2(images, dim=(0, 1))": (4, 1, 40, 8),
    "torch.nonzero(images)": (1, 119),
    "torch.nonzero(images, as_tuple=True)[1]": (1,),
    "torch.unravel_index(torch.tensor([[3, 4], [1, 2]]), (3, 2, 4))[1]": (6, 3),
    "torch.linalg.svd(matrices[:, :2]).U": (4, 1, 2),
    "torch.linalg.svd(matrices[:, :2]).Vh": (9, 1, 3),
    "torch.svd(matrices[:, :2]).U": (4, 1, 2),
    "torch.svd(matrices[:, :2]).V": (6, 2, 1),
    "torch.svd_lowrank(rows[0, 0], 2)[2]": (2, 1),
    "images.index_fill(1, torch.tensor([1]), 2)": (60, 1, 15, 3),
    "torch.tensor(3.0).index_fill(0, torch.tensor([0, 0])[::2], 4)": (),
    "torch.unsafe_split(rows, 1, 1)[0]": (60, 20, 5, 1),
    "torch.unique(images, dim=1)": (20, 40, 5, 1),
    "torch.permute_copy(images, (0, 2, 3, 1))": (60, 15, 3, 1),
    "torch.unsafe_split(images, 1, 1)[0]": (60, 1, 15, 3),
    "torch.unravel_index(torch.tensor([[3, 4, 9], [1, 2, 5]]).t(), (3, 2, 4))[1]": (3, 9),
    "torch.linalg.lstsq(torch.eye(4)[:, :3], torch.ones(4, 2)).solution": (1, 4),
    "torch.linalg.lstsq(torch.eye(4)[:3], torch.ones(3, 2)).solution": (1, 4),
    "torch.linalg.lstsq(torch.eye(4).expand(2, 4, 4)[..., :3], torch.ones(2, 4)).solution": (4, 1),
    "torch.rsub(rows[0, 0], rows[0, 0].contiguous().t().contiguous().t())": (1, 4),
    "F.dropout2d(rows.transpose(0, 1))": (20, 60, 5, 1),
    "F.conv1d(torch.ones(1, 4).as_strided((1, 1, 4), (4, 1, 1)), torch.ones(2, 1, 1))": (8, 1, 2),
    "F.logsigmoid(images)": (60, 20, 5, 1),
    "F.rrelu(images)": (60, 20, 5, 1),
    "F.instance_norm(images[:1])": (60, 20, 5, 1),
    "torch.kron(images, images)": (3600, 1, 225, 9),
    'F.binary_cross_entropy_with_logits(rows, images, reduction="none")': (60, 1, 15, 3),
    "images.roll(3, 1)": (60, 20, 5, 1),
    "images.roll(2, 1)": (60, 1, 15, 3),
    "column > 0": (20, 1, 5, 1),
    "column + 1": (20, 1, 5, 1),
    "torch.where(column > 0, column, 0)": (20, 1, 5, 1),
    "column.lerp(column, 0.5)": (20, 20, 5, 1),
    "F.prelu(column, fours[:1])": (20, 1, 5, 1),
    "empty.nan_to_num()": (7, 3, 1),
    "F.hardtanh(empty)": (7, 3, 1),
    "torch.frexp(empty).exponent": (7, 3, 1),
    "column.clone()": (20, 1, 5, 1),
    "column.to(torch.float64)": (20, 1, 5, 1),
    "column.to(copy=True)": (20, 1, 5, 1),
    "rows[..., ::2].to(copy=True)": (36, 12, 3, 1),
    'rows[..., ::2].to("meta")': (36, 12, 3, 1),
    "torch.ones(0).resize_(2, 1, 4, 5, memory_format=torch.channels_last)": (20, 1, 5, 1),
    "F.scaled_dot_product_attention(*[images.transpose(1, 2)] * 3)": (60, 15, 5, 1),
    "torch.nn.LSTM(5, 2, batch_first=True)(rows[:, 0])[0]": (2, 4, 1),
}


@pytest.fixture(scope="module")
def operands():
    rows = torch.arange(120.0).reshape(2, 3, 4, 5)
    images = rows.contiguous(memory_format=torch.channels_last)
    volumes = torch.ones(2, 2, 3, 4, 5).contiguous(memory_format=torch.channels_last_3d)
    kernels, fours = torch.ones(4, 3, 2, 2), torch.ones(4)
    matrices = torch.eye(3) + torch.ones(2, 3, 3)
    empty = torch.empty_strided((1, 0, 3), (7, 3, 1))
    column = torch.empty_strided((2, 1, 4, 5), (20, 1, 5, 1)).fill_(1)
    return {**locals(), "torch": torch, "F": F}


@pytest.mark.parametrize("expression", CASES)
def test_strides_of_results(operands, expression):
    assert eval(expression, operands).stride() == CASES[expression]


def test_compiled_functions_have_the_strides_of_eager_ones(operands):
    """Code that branches on the layout takes one branch, compiled or not."""

    def pooled(images, kernels):
        image = F.max_pool2d(F.relu(F.conv2d(images, kernels)), 2)
        return image + 1 if image.is_contiguous(memory_format=torch.channels_last) else image * 0

    images, rows, kernels = (operands[name] for name in ("images", "rows", "kernels"))
    compiled = torch.compile(pooled)
    for source in (images, rows, images):
        result = compiled(source, kernels)
        assert result.stride() == pooled(source, kernels).stride()
        assert bool(result.any()) is (source is images)


def test_gradients_through_results_by_columns():
    """The strides of a result change no number: d/dA of the sum of W * inv(A)."""
    matrix = torch.tensor([[2.0, 1.0], [0.0, 4.0]], requires_grad=True)
    weights = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    inverse = torch.linalg.inv(matrix)
    (inverse * weights).sum().backward()
    expected = -inverse.detach().T @ weights @ inverse.detach().T
    assert torch.allclose(matrix.grad, expected)
    assert inverse.stride() == (1, 2)
