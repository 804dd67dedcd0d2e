import math

import pytest

import jaxgrad as torch
from jaxgrad import fx, nn
from jaxgrad.export import Dim, default_decompositions, export
from jaxgrad.nn import functional as F

aten = torch.ops.aten


class Calling(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def targets(program):
    calls = [node.target for node in program.graph.nodes if node.op == "call_function"]
    names = [str(target).removeprefix("aten.").removesuffix(".default") for target in calls]
    return " ".join(name for name in names if "getitem" not in name)


def results(program, *args):
    supply, values = iter(args), []
    for spec in program.graph_signature.input_specs:
        known = {**program.state_dict, **program.constants}
        values.append(known[spec.target] if spec.target else next(supply))
    return fx.Interpreter(program.graph_module).run(*values)


def check_values(program, model, *args):
    expected = model(*args)
    expected = expected if isinstance(expected, tuple | list) else (expected,)
    torch.testing.assert_close([*results(program, *args)], [*expected])


ROW, ROWS, IMAGES = (2, 4, 6), (3, 4), (2, 4, 8, 8)

# the operators of PyTorch 2.13 after run_decompositions(), without getitem
OF_PYTORCH = [
    (nn.Linear(6, 5), [ROW], "view permute addmm view"),
    (nn.Linear(4, 2, bias=False), [ROWS], "permute mm"),
    (nn.LayerNorm(6), [ROW], "native_layer_norm"),
    (nn.GroupNorm(2, 4), [IMAGES], "native_group_norm"),
    (nn.BatchNorm2d(4).eval(), [IMAGES], "_native_batch_norm_legit_no_training"),
    (nn.InstanceNorm2d(4), [IMAGES], "view _native_batch_norm_legit.no_stats view"),
    (
        nn.InstanceNorm2d(4, affine=True),
        [IMAGES],
        "repeat repeat view _native_batch_norm_legit.no_stats view",
    ),
    (
        nn.GRUCell(4, 3),
        [ROWS, (3, 3)],
        "permute addmm split_with_sizes permute addmm split_with_sizes add.Tensor sigmoid "
        "add.Tensor sigmoid mul.Tensor add.Tensor tanh sub.Tensor mul.Tensor add.Tensor",
    ),
    (nn.RNNCell(4, 3), [ROWS, (3, 3)], "permute addmm permute addmm add.Tensor tanh"),
    (
        nn.utils.parametrizations.weight_norm(nn.Linear(4, 2)),
        [ROWS],
        "linalg_vector_norm div.Tensor mul.Tensor permute addmm",
    ),
    (nn.Dropout().eval(), [ROW], "clone"),
    (nn.Conv1d(4, 3, 2), [ROW], "convolution"),
    (nn.Conv2d(4, 3, 3, padding="same"), [IMAGES], "convolution"),
    (nn.ConvTranspose2d(4, 3, 2), [IMAGES], "convolution"),
    (nn.MaxPool2d(2), [IMAGES], "max_pool2d_with_indices"),
    (nn.MaxPool1d(2), [ROW], "unsqueeze max_pool2d_with_indices squeeze.dims"),
    (nn.AvgPool1d(2), [ROW], "unsqueeze avg_pool2d squeeze.dims"),
    (nn.AdaptiveAvgPool2d(1), [IMAGES], "mean.dim"),
    (nn.Flatten(), [IMAGES], "view"),
    (nn.PReLU(4), [ROW], "view gt.Scalar mul.Tensor where.self"),
    (lambda x: x.softmax(-1), [ROW], "_softmax"),
    (F.silu, [ROW], "sigmoid mul.Tensor"),
    (F.softplus, [ROW], "exp log1p gt.Scalar where.self"),
    (nn.Softplus(), [ROW], "mul.Tensor exp log1p div.Tensor gt.Scalar where.self"),
    (F.mish, [ROW], "exp log1p gt.Scalar where.self tanh mul.Tensor"),
    (F.hardswish, [ROW], "add.Tensor clamp clamp mul.Tensor div.Tensor"),
    (F.logsigmoid, [ROW], "full minimum abs neg exp log1p sub.Tensor"),
    (lambda x: torch.stack([x, x]), [ROW], "cat view"),
    (lambda x: x.unbind(0)[0], [ROW], "slice.Tensor squeeze.dims"),
    (lambda x: x.median(-1)[0], [ROW], "median.dim"),
    (lambda x: x // 2, [ROW], "div.Tensor_mode"),
    (lambda x: x.frac(), [ROW], "trunc sub.Tensor"),
    (lambda x: x.roll(1, 0), [ROW], "arange.start_step add.Tensor fmod.Scalar index_select"),
    (
        lambda x: x.tril(),
        [ROW],
        "arange.start_step unsqueeze arange.start_step unsqueeze sub.Tensor le.Scalar "
        "scalar_tensor where.self",
    ),
    (lambda x: F.glu(x, -1), [ROW], "slice.Tensor slice.Tensor sigmoid mul.Tensor"),
    (lambda x: x.chunk(3, -1), [ROW], "split_with_sizes"),
    (lambda x: x.repeat_interleave(2, 1), [ROW], "unsqueeze expand clone view"),
    (lambda x: x.transpose(0, 1).contiguous(), [ROW], "permute clone"),
    (lambda x: x.masked_fill(x > 0, 1.5), [ROW], "gt.Scalar scalar_tensor where.self"),
    (lambda x, y: x @ y, [ROW, (6, 3)], "view mm view"),
    (lambda x, y: x @ y, [ROWS, (4,)], "mul.Tensor sum.dim_IntList"),
    (F.mse_loss, [ROW, ROW], "sub.Tensor pow.Tensor_Scalar mean"),
    (
        F.smooth_l1_loss,
        [ROW, ROW],
        "sub.Tensor abs lt.Scalar pow.Tensor_Scalar mul.Tensor div.Tensor sub.Tensor where.self "
        "mean",
    ),
    (
        F.huber_loss,
        [ROW, ROW],
        "sub.Tensor abs lt.Scalar mul.Tensor mul.Tensor sub.Tensor mul.Tensor where.self mean",
    ),
    (F.soft_margin_loss, [ROW, ROW], "neg mul.Tensor exp log1p mean"),
    (
        lambda x: F.cross_entropy(x, (x[:, 0] > 0).long()),
        [ROWS],
        "select.int gt.Scalar _to_copy _log_softmax ne.Scalar scalar_tensor where.self unsqueeze "
        "gather squeeze.dims neg ne.Scalar scalar_tensor where.self ne.Scalar sum.dim_IntList "
        "_to_copy sum.dim_IntList div.Tensor",
    ),
    (lambda x: x.std(1), [ROW], "var.correction sqrt"),
    (lambda x: torch.std_mean(x, 1), [ROW], "var_mean.correction sqrt"),
    (
        lambda x: x.logsumexp(1),
        [ROW],
        "amax abs eq.Scalar scalar_tensor where.self squeeze.dims sub.Tensor exp sum.dim_IntList "
        "log add.Tensor",
    ),
    (lambda x: F.interpolate(x, (3, 2), mode="area"), [IMAGES], "_adaptive_avg_pool2d"),
    (
        lambda x, y: F.grid_sample(x, y, align_corners=True),
        [IMAGES, (2, 3, 3, 2)],
        "grid_sampler_2d",
    ),
    (lambda x: x.clone().add_(1).relu_(), [ROW], "clone add.Tensor relu"),
]


@pytest.mark.parametrize("function, shapes, expected", OF_PYTORCH, ids=range(len(OF_PYTORCH)))
def test_operators_of_pytorch(function, shapes, expected):
    torch.manual_seed(0)
    args = [torch.randn(shape) for shape in shapes]
    model = function if isinstance(function, nn.Module) else Calling(function)
    program = export(model, tuple(args)).run_decompositions()
    assert targets(program) == expected
    check_values(program, model, *args)


# values of a graph and of its operators: of several reductions, with weights and ignored targets
LOSSES = {
    "nll": lambda x, r: F.nll_loss(
        x, (x[:, 0] > 0).long(), x[0].abs(), ignore_index=1, reduction=r
    ),
    "binary": lambda x, r: F.binary_cross_entropy(x.sigmoid(), x.cos() ** 2, reduction=r),
    "ranking": lambda x, r: F.margin_ranking_loss(x, x * 2, x.sign(), 0.3, reduction=r),
    "hinge": lambda x, r: F.hinge_embedding_loss(x, x.sign(), 0.7, reduction=r),
    "triplet": lambda x, r: F.triplet_margin_loss(x, x * 2, -x, reduction=r),
}


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", LOSSES)
def test_graphs_of_losses(name, reduction):
    torch.manual_seed(0)
    model, x = Calling(lambda x: LOSSES[name](x, reduction)), torch.randn(ROWS)
    program = export(model, (x,))
    check_values(program, model, x)
    check_values(program.run_decompositions(), model, x)


def several_losses(x, y):
    """Losses in one program: a program for each takes seconds."""
    numbers, share = torch.tensor([0, 1, 3]), y.softmax(1)
    return (
        F.kl_div(x, share, reduction="sum"),
        F.kl_div(x, y, reduction="batchmean", log_target=True),
        F.poisson_nll_loss(x, y.exp() * 2, full=True),
        F.poisson_nll_loss(x.exp(), y.exp(), log_input=False, reduction="none"),
        F.gaussian_nll_loss(x, y, y.exp(), full=True),
        F.cosine_embedding_loss(x, y, torch.tensor([1.0, -1.0, 1.0]), 0.2),
        F.cross_entropy(x, numbers, label_smoothing=0.1, ignore_index=1),
        F.cross_entropy(x, share, label_smoothing=0.1, weight=y[0].exp()),
        F.cross_entropy(x.T[None], numbers[None], weight=y[0].exp()),
        F.binary_cross_entropy_with_logits(x, share, y[0].exp(), pos_weight=y[1].exp()),
        F.triplet_margin_loss(x, y, -x, p=3, swap=True),
        F.normalize(x, 1, 0),
        F.cosine_similarity(x, y, 0),
        F.local_response_norm(x[None], 3),
        F.softmin(x, 0),
        F.softsign(F.tanhshrink(x)),
        torch.special.xlogy(share, y.abs()),
    )


def test_functions_that_are_composed_of_operators():
    torch.manual_seed(0)
    model, x, y = Calling(several_losses), torch.randn(3, 4), torch.randn(3, 4)
    program = export(model, (x, y)).run_decompositions()
    whole = [name for name in targets(program).split() if name in ("loss", "norm", "similarity")]
    assert not whole and "function" not in targets(program)
    check_values(program, model, x, y)


# the operators are those that torch 2.13 printed
PRODUCT = "permute view permute view bmm view permute view"
EINSUMS = {
    "bi,oi->bo": f"unsqueeze permute unsqueeze permute {PRODUCT}",
    "bi,bi->": f"permute permute {PRODUCT}",
    "bi,oi->bio": "unsqueeze permute unsqueeze permute mul.Tensor",
    "bi->ib": "permute",
    "...i,ai": f"unsqueeze permute unsqueeze permute {PRODUCT}",
}


@pytest.mark.parametrize("equation", EINSUMS)
def test_graphs_of_einsum(equation):
    count = equation.partition("->")[0].count(",") + 1
    model = Calling(lambda *tensors: torch.einsum(equation, *tensors))
    inputs = [torch.arange(12.0).reshape(3, 4) + n for n in range(count)]
    program = export(model, (*inputs,)).run_decompositions()
    assert targets(program) == EINSUMS[equation]
    check_values(program, model, *inputs)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,kj,lk->il", [(2, 3), (4, 3), (5, 4)]),
        ("bii->bi", [(2, 3, 3)]),
        ("i...j,...jk->...k", [(2, 5, 3), (5, 3, 4)]),
        ("bqhd,bkhd->bhqk", [(2, 3, 2, 4), (2, 5, 2, 4)]),
        ("ij,k->", [(2, 3), (4,)]),
        ("ab,ab->ab", [(1, 3), (2, 3)]),
    ],
)
def test_values_of_einsum(equation, shapes):
    model = Calling(lambda *tensors: torch.einsum(equation, *tensors))
    inputs = [torch.arange(float(math.prod(shape))).reshape(shape).cos() for shape in shapes]
    program = export(model, (*inputs,)).run_decompositions()
    assert "einsum" not in targets(program)
    check_values(program, model, *inputs)


LAYERS = [
    (nn.LSTM(3, 2, 2, bidirectional=True), (4, 2, 3), "lstm.input"),
    (nn.GRU(3, 2, batch_first=True), (2, 4, 3), "gru.input"),
    (nn.RNN(3, 2, bias=False), (4, 2, 3), "rnn_tanh.input"),
    (nn.LSTM(3, 4, 2, proj_size=2), (4, 2, 3), "lstm.input"),
    (nn.LSTMCell(3, 2), (4, 3), "lstm_cell"),
    (nn.RMSNorm(4), (2, 4), "rms_norm"),
    (nn.Upsample((5, 7), mode="bicubic"), (1, 2, 4, 4), "upsample_bicubic2d.vec"),
    (nn.Upsample(7, mode="linear", align_corners=True), (1, 2, 4), "upsample_linear1d.vec"),
    (nn.Upsample(scale_factor=1.5, mode="trilinear"), (1, 2, 4, 2, 3), "upsample_trilinear3d.vec"),
    (nn.Upsample(scale_factor=1.7, mode="nearest-exact"), (1, 2, 4, 5), "interpolate"),
    (
        Calling(lambda x: F.embedding_bag((x > 0).long(), x[:2], mode="max").exp()),
        (3, 4),
        "embedding_bag",
    ),
    (
        Calling(lambda x: F.scaled_dot_product_attention(x, x[:, :2], x[:, :2], enable_gqa=True)),
        (2, 4, 3, 4),
        "scaled_dot_product_attention",
    ),
    (nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval(), (2, 3, 4), "linear"),
    (Calling(lambda x: torch.einsum("bij,kj->kb", x, x[0])), (2, 3, 4), "einsum"),
    (Calling(lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True)), (2, 3, 4), "sdpa"),
]


@pytest.mark.parametrize("model, shape, whole", LAYERS, ids=[row[2] for row in LAYERS])
def test_composed_operators_are_gone(model, shape, whole):
    x = torch.randn(shape)
    program = export(model, (x,)).run_decompositions()
    assert whole not in targets(program).split() and len(targets(program).split()) > 4
    check_values(program, Calling(lambda x: [*torch.utils._pytree.tree_leaves(model(x))]), x)


def test_sizes_that_vary():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 4), nn.Flatten(), nn.Linear(12, 2))
    rows = {0: Dim("rows", max=8)}
    program = export(model, (torch.randn(2, 3, 6),), dynamic_shapes=(rows,)).run_decompositions()
    assert program.graph.output_node().args[0][0].meta["val"].shape[1] == 2
    check_values(program, model, torch.randn(5, 3, 6))


def test_a_layer_in_training_mode_draws():
    model = nn.Dropout(0.5)
    program = export(model, (torch.ones(2, 3),)).run_decompositions()
    assert targets(program) == "native_dropout"  # torch 2.13


def test_a_table_chooses_the_operators():
    model, x = nn.Sequential(nn.Linear(3, 2), nn.SiLU()), torch.randn(4, 3)
    program = export(model, (x,))
    assert targets(program.run_decompositions({})) == "linear silu"
    table = default_decompositions()
    del table[aten.linear.default]
    assert targets(program.run_decompositions(table)) == "linear sigmoid mul.Tensor"

    def product(input, weight, bias):
        return input @ weight.t() + bias

    program = program.run_decompositions({aten.linear: product})
    assert targets(program) == "t matmul add.Tensor silu"
    check_values(program, model, x)
    (call, *_) = [node for node in program.graph.nodes if node.target is aten.t.default]
    assert call.meta["nn_module_stack"]["L__self__0"] == ("0", "torch.nn.Linear")
