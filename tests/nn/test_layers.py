"""Layers and their functions with given weights: values and gradients."""

import functools
import math

import pytest
from helpers.as_torch import as_torch, error


def close(body):
    """`as_torch` with the precision of float64 sums added up in another order."""

    @functools.wraps(body)
    def wide(torch):
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        try:
            return body(torch)
        finally:
            torch.set_default_dtype(before)

    return pytest.mark.slow(as_torch(wide, precision=1e-8))


def nested(values, shape):
    """A row of values as nested lists of a shape."""
    for extent in reversed(shape[1:]):
        values = [values[i : i + extent] for i in range(0, len(values), extent)]
    return values if shape else values[0]


def numbers(torch, *shape, scale=1.0, first=0):
    """Numbers without a pattern that a mistake could reproduce."""
    count = math.prod(shape)
    values = [scale * math.sin(1.3 * (i + first) ** 2 + 0.7) for i in range(count)]
    return torch.tensor(nested(values, shape))


def ties(torch, *shape):
    values = [round(2 * math.sin(1.3 * i**2 + 0.7)) for i in range(math.prod(shape))]
    return torch.tensor(nested([float(value) for value in values], shape))


def clean(tensor):
    """The numbers with rounding errors of zero removed."""

    def rounded(value):
        return [rounded(entry) for entry in value] if isinstance(value, list) else round(value, 12)

    return None if tensor is None else [str(tensor.dtype), rounded(tensor.detach().tolist())]


def with_fixed_weights(torch, module):
    """The module with fixed weights."""
    for position, parameter in enumerate(module.parameters()):
        parameter.data = numbers(torch, *parameter.shape, scale=0.5, first=position)
    return module


def derivatives(torch, function, *inputs, second=False):
    """Values of a function, its gradients, and their gradients."""
    output = function(*inputs)
    outputs = output if isinstance(output, tuple) else (output,)
    weights = numbers(torch, *outputs[0].shape, first=5)
    first = torch.autograd.grad(outputs[0], inputs, weights, create_graph=second)
    results = [list(map(clean, outputs)), list(map(clean, first))]
    if second:
        first = [gradient for gradient in first if gradient.requires_grad]
        weights = [numbers(torch, *gradient.shape, first=8) for gradient in first]
        twice = torch.autograd.grad(first, inputs, weights, allow_unused=True)
        # zeros and None are the same
        results.append([None if g is None or not g.any() else clean(g) for g in twice])
    return results


def of_layer(torch, module, *inputs, second=False):
    """`derivatives` of a module with respect to its inputs and parameters."""
    module = with_fixed_weights(torch, module)
    leaves = [
        tensor.requires_grad_() if tensor.is_floating_point() else tensor for tensor in inputs
    ]
    wanted = [leaf for leaf in leaves if leaf.requires_grad]
    return derivatives(
        torch, lambda *_: module(*leaves), *wanted, *module.parameters(), second=second
    )


def of_function(torch, function, *inputs, second=False):
    inputs = [tensor.requires_grad_() for tensor in inputs]
    return derivatives(torch, function, *inputs, second=second)


@close
def test_linear_and_bilinear(torch):
    nn = torch.nn
    return [
        of_layer(torch, nn.Linear(3, 2), numbers(torch, 2, 4, 3)),
        of_layer(torch, nn.Linear(3, 2, bias=False), numbers(torch, 3)),
        of_layer(torch, nn.Bilinear(3, 2, 2), numbers(torch, 4, 3), numbers(torch, 4, 2, first=9)),
    ]


@close
def test_convolutions_equal_pytorchs(torch):
    nn, x = torch.nn, numbers(torch, 2, 4, 5, 4)
    return [
        of_layer(torch, nn.Conv2d(4, 3, 3, stride=2, padding=1), x.detach(), second=True),
        of_layer(
            torch,
            nn.Conv2d(4, 2, (2, 3), padding=(0, 1), dilation=(2, 1), groups=2, bias=False),
            x.detach(),
        ),
        of_layer(torch, nn.Conv1d(4, 2, 2), numbers(torch, 4, 5)),
        of_layer(torch, nn.Conv3d(1, 2, 2), numbers(torch, 1, 1, 3, 3, 2)),
    ]


@close
def test_convolutions_turned_around(torch):
    nn, x = torch.nn, numbers(torch, 2, 4, 3, 2)
    one = nn.ConvTranspose2d(
        4, 6, (2, 3), stride=(2, 1), padding=(0, 1), output_padding=(1, 0), groups=2
    )
    results = of_layer(torch, one, x, second=True)
    two = with_fixed_weights(torch, nn.ConvTranspose1d(2, 1, 3, stride=2))
    results.append(two(numbers(torch, 1, 2, 3), output_size=(8,)).detach())
    words = "requested an output size of"
    return results, error(lambda: two(numbers(torch, 1, 2, 3), output_size=(9,)), words=words)


@close
def test_padding_of_convolutions(torch):
    nn, x = torch.nn, numbers(torch, 1, 2, 4, 3)
    outputs = []
    for mode in ("zeros", "reflect", "replicate", "circular"):
        layer = with_fixed_weights(torch, nn.Conv2d(2, 1, 3, padding="same", padding_mode=mode))
        outputs.append(layer(x).detach())
    return outputs, with_fixed_weights(torch, nn.Conv2d(2, 1, 2, padding="valid"))(x[0]).detach()


@close
def test_greatest_of_windows(torch):
    """The first of equal elements gets the gradient, as in PyTorch, and the last of NaNs."""
    F, x = torch.nn.functional, ties(torch, 2, 2, 5, 6)
    lost = x.detach()
    lost[0, 0, 0, 0] = lost[0, 0, 1, 1] = math.nan
    whole = torch.arange(16).reshape(1, 4, 4)
    options = [
        (2, {}),
        (3, {"stride": 2, "padding": 1, "ceil_mode": True, "return_indices": True}),
        ((3, 2), {"stride": (2, 1), "dilation": (1, 2)}),
    ]
    results = [
        of_function(
            torch, lambda x, s=size, o=o: F.max_pool2d(x, s, **o), x.detach(), second=size == 2
        )
        for size, o in options
    ]
    return [
        results,
        F.max_pool2d(lost, 2, return_indices=True),
        F.max_pool2d(whole, 2),
        F.max_pool1d(ties(torch, 1, 40), 18, 5, return_indices=True),
        torch.nn.MaxPool3d(2, 1)(ties(torch, 1, 2, 3, 3)),
    ]


@close
def test_means_of_windows(torch):
    F, x = torch.nn.functional, numbers(torch, 1, 2, 5, 6)
    options = [
        {},
        {"stride": 2, "padding": 1, "ceil_mode": True},
        {"stride": 2, "padding": 1, "ceil_mode": True, "count_include_pad": False},
        {"divisor_override": 5},
    ]
    means = [F.avg_pool2d(x, (3, 2), **keywords) for keywords in options]
    gradient = of_function(torch, lambda x: F.avg_pool2d(x, 2, 1, 1), x.detach())
    sizes = [1, (2, 3), (None, 4)]
    adaptive = [F.adaptive_avg_pool2d(x.detach(), size) for size in sizes]
    return [
        means,
        gradient,
        adaptive,
        of_function(torch, lambda x: F.adaptive_avg_pool1d(x, 3), numbers(torch, 2, 4)),
        F.avg_pool1d(numbers(torch, 1, 40), 18, 5, 2),
        torch.nn.AvgPool3d(2)(numbers(torch, 1, 2, 2, 4)),
    ]


@close
def test_normalization_of_samples(torch):
    nn, x = torch.nn, numbers(torch, 2, 4, 3)
    return [
        of_layer(torch, nn.LayerNorm(3), x.detach(), second=True),
        of_layer(torch, nn.LayerNorm((4, 3), bias=False), x.detach()),
        of_layer(torch, nn.RMSNorm(3, eps=1e-3), x.detach()),
        of_layer(torch, nn.GroupNorm(2, 4), x.detach()),
        of_layer(torch, nn.InstanceNorm1d(4), x.detach()),
        nn.LayerNorm(3, elementwise_affine=False)(x.half()),
    ]


@close
def test_normalization_of_batches(torch):
    nn, x = torch.nn, numbers(torch, 3, 2, 2, 2)
    layer = nn.BatchNorm2d(2, momentum=0.3)
    results = [of_layer(torch, layer, x.detach(), second=True)]
    layer(x * 2 + 1)
    results.append(list(layer.state_dict().values()))
    layer.eval()
    x.requires_grad_()
    results.append(derivatives(torch, layer, x))
    layer.reset_running_stats()
    results.append(list(layer.buffers()))
    mean_of_all = nn.BatchNorm1d(2, momentum=None, affine=False)
    for step in range(3):
        mean_of_all(numbers(torch, 4, 2, first=step))
    results.append(list(mean_of_all.buffers()))
    alone = nn.BatchNorm1d(2, track_running_stats=False).eval()
    results.append(alone(numbers(torch, 4, 2)).detach())
    tracked = nn.InstanceNorm1d(2, affine=True, track_running_stats=True)
    tracked(numbers(torch, 3, 2, 4))
    return results, list(tracked.buffers())


@close
def test_normalization_of_channels_and_over_processes(torch):
    nn, x = torch.nn, numbers(torch, 2, 4, 3)
    local = of_layer(torch, nn.LocalResponseNorm(3, alpha=0.5, k=2.0), x.detach())
    plain = nn.Sequential(nn.BatchNorm1d(4, momentum=0.3), nn.Sequential(nn.BatchNorm1d(4)))
    plain[0](x)
    same = nn.SyncBatchNorm.convert_sync_batchnorm(plain)
    kept = same[0].running_mean.tolist(), same[0].weight is plain[0].weight
    same.eval()
    return local, kept, repr(same), same(x).detach(), repr(nn.SyncBatchNorm(3, affine=False))


@close
def test_bags_of_embeddings(torch):
    nn, results = torch.nn, []
    places, starts = torch.tensor([1, 2, 2, 0, 4]), torch.tensor([0, 2, 2])
    for mode in ("sum", "mean", "max"):
        layer = with_fixed_weights(torch, nn.EmbeddingBag(5, 2, mode=mode, padding_idx=2))
        layer(places, starts).sum().backward()
        results.append((repr(layer), layer(places, starts).detach(), layer.weight.grad))
    short = nn.EmbeddingBag(5, 2, max_norm=0.5, norm_type=1.0)
    with_fixed_weights(torch, short)(torch.tensor([[1, 1], [2, 4]])).sum().backward()
    frozen = nn.EmbeddingBag.from_pretrained(numbers(torch, 5, 2), include_last_offset=True)
    ends = torch.tensor([0, 2, 5])
    return [
        results,
        (repr(short), short.weight.detach(), short.weight.grad),
        (frozen(places, ends), frozen.weight.requires_grad, list(frozen.state_dict())),
        nn.EmbeddingBag(3, 2, padding_idx=-1).weight[2].detach(),
    ]


@close
def test_embeddings_equal_pytorchs(torch):
    nn, F = torch.nn, torch.nn.functional
    places = torch.tensor([[1, 2, 2], [0, 4, 1]])
    plain = of_layer(torch, nn.Embedding(5, 2), places)
    padded = of_layer(torch, nn.Embedding(5, 2, padding_idx=-3), places)
    scaled = with_fixed_weights(torch, nn.Embedding(5, 2, scale_grad_by_freq=True))
    scaled(places).sum().backward()
    table = torch.nn.Parameter(numbers(torch, 5, 2) * 3)
    short = F.embedding(places, table, max_norm=1.0)
    frozen = nn.Embedding.from_pretrained(table.detach())
    return [
        plain,
        padded,
        scaled.weight.grad,
        short.detach(),
        table.detach(),
        frozen(torch.tensor(1)),
        nn.Embedding(3, 2, padding_idx=1).weight[1].detach(),
        error(F.embedding, torch.tensor([5]), table, words="index out of range in self"),
        error(F.embedding, torch.tensor([-1]), table, words="index out of range in self"),
    ]


@close
def test_scaled_dot_product_attention_equals_pytorchs(torch):
    attend = torch.nn.functional.scaled_dot_product_attention

    def inputs(heads=2, length=4):
        return [
            numbers(torch, 1, 2, 3, 2),
            numbers(torch, 1, heads, length, 2, first=3),
            numbers(torch, 1, heads, length, 3, first=7),
        ]

    mask = numbers(torch, 3, 4)
    mask[1] = -math.inf
    mask[0, 2] = -math.inf

    def attended(options, *shape, second=False):
        return of_function(torch, lambda *a: attend(*a, **options), *inputs(*shape), second=second)

    return [
        attended({}, second=True),
        attended({"is_causal": True, "scale": 0.3}, 2, 3),
        attended({"attn_mask": mask}),
        attended({"attn_mask": mask > 0}),
        attended({"enable_gqa": True}, 1),
    ]


@as_torch("""
    tensor([0.6442176699638367, 0.9092974066734314, -0.3738766610622406, -0.16560417413711548])
    tensor([0.0, 0.0, 0.0, 0.0])
    tensor([0.6442176699638367, 0.9092974066734314, -0.3738766610622406, -0.16560417413711548])
    tensor([0.6442176699638367, 0.9092974066734314, -0.3738766610622406, -0.16560417413711548])
    tensor([0.6442176699638367, 0.9092974066734314, -0.3738766610622406, -0.16560417413711548])
    ValueError('dropout probability has to be between 0 and 1, but got 1.5')
    ValueError('dropout probability has to be between 0 and 1, but got -1')
""")
def test_dropout_where_nothing_is_left_to_chance(torch):
    nn, x = torch.nn, numbers(torch, 4)
    return [
        nn.Dropout(0.0)(x),
        nn.Dropout(1.0)(x).abs(),
        nn.Dropout(0.4).eval()(x),
        torch.nn.functional.dropout(x, 0.4, training=False),
        nn.AlphaDropout(0.4).eval()(x),
        error(torch.nn.functional.dropout, x, 1.5),
        error(nn.Dropout, -1),
    ]


@close
def test_activations_as_modules(torch):
    nn = torch.nn
    x = torch.tensor([-5.0, -2.5, -0.5, -0.1, 0.0, 0.4, 1.5, 2.9, 25.0])
    layers = [
        nn.ReLU(),
        nn.ReLU6(),
        nn.SELU(),
        nn.SiLU(),
        nn.Mish(),
        nn.Hardswish(),
        nn.ELU(0.5),
        nn.CELU(2.0),
        nn.LeakyReLU(0.2),
        nn.Hardtanh(-0.3, 2.0),
        nn.GELU(),
        nn.GELU("tanh"),
        nn.Softplus(2, 5),
        nn.Hardshrink(),
        nn.Softshrink(0.3),
        nn.Sigmoid(),
        nn.Tanh(),
        nn.LogSigmoid(),
        nn.Softsign(),
        nn.Tanhshrink(),
        nn.Softmax(0),
        nn.Softmin(0),
        nn.LogSoftmax(0),
        nn.Threshold(0.2, 3.0),
    ]
    results = []
    for layer in layers:
        leaf = x.detach().requires_grad_()
        output = layer(leaf)
        (output * x.cos()).sum().backward()
        results.append([output.detach(), leaf.grad])
    pairs = numbers(torch, 2, 4, 3)
    return [
        results,
        of_layer(torch, nn.PReLU(4), pairs.clone()),
        of_layer(torch, nn.PReLU(), pairs.clone()),
        of_function(torch, nn.GLU(1), pairs.clone()),
        nn.Softmax2d()(numbers(torch, 2, 1, 2)),
        nn.ReLU(inplace=True)(x.detach()),
        nn.Hardswish(inplace=True)(x.detach()),
    ]


@close
def test_losses_as_modules(torch):
    nn, x = torch.nn, numbers(torch, 4, 3)
    y, signs = numbers(torch, 4, 3, first=4), numbers(torch, 4, first=2).sign()
    one, two, three = (numbers(torch, 4, 3, first=i) for i in (1, 2, 3))
    classes = torch.tensor([0, 2, 1, 0])
    weight = torch.tensor([0.5, 1.0, 2.0])
    probable, target = x.sigmoid(), (y > 0).double()
    edges = torch.tensor([0.0, 1.0, 1.0, 0.0])

    def of(loss, input, *rest):
        input = input.detach().clone().requires_grad_()
        value = loss(input, *rest)
        value.sum().backward()
        return [value.detach(), input.grad]

    return [
        of(nn.MSELoss(), x, y),
        of(nn.L1Loss(reduction="sum"), x, y),
        of(nn.SmoothL1Loss(beta=0.5), x, y),
        of(nn.HuberLoss("none", 0.4), x, y),
        of(nn.KLDivLoss(reduction="batchmean"), x, probable),
        of(nn.NLLLoss(weight), x, classes),
        of(nn.CrossEntropyLoss(weight, ignore_index=2, label_smoothing=0.1), x, classes),
        of(nn.BCELoss(), probable, target),
        of(nn.BCELoss(reduction="none"), edges, edges.flip(0) * 0.5),
        of(nn.BCEWithLogitsLoss(pos_weight=weight), x, target),
        of(nn.MarginRankingLoss(0.1), x[:, 0], y[:, 0], signs),
        of(nn.CosineEmbeddingLoss(0.1), one, two, signs),
        of(nn.TripletMarginLoss(swap=True), one, two, three),
        of(nn.PoissonNLLLoss(full=True), x, target * 3),
        of(nn.GaussianNLLLoss(full=True), x, y, probable),
        of(nn.SoftMarginLoss(), x[:, 0], signs),
        of(nn.HingeEmbeddingLoss(), x[:, 0], signs),
        of(nn.CosineSimilarity(), one, two),
        list(nn.CrossEntropyLoss(weight).state_dict()),
        error(nn.BCELoss(), x[:2], x, words="that is different to the input size"),
    ]


@close
def test_padding_equals_pytorchs(torch):
    F, x = torch.nn.functional, numbers(torch, 1, 2, 4, 3)
    results = [F.pad(x, (1, 2, -1, 3), value=2.5), F.pad(x, (-1, -1))]
    for mode in ("reflect", "replicate", "circular"):
        results.append(of_function(torch, lambda x, m=mode: F.pad(x, (1, 2, 3, -1), m), x.detach()))
    return [
        results,
        error(F.pad, x, (1,)),
        error(F.pad, x, (3, 0, 0, 0), "reflect", words="Padding size should be less than the"),
        error(F.pad, x, (1, 1), "bent", words="Unrecognised padding mode bent"),
    ]


@as_torch
def test_what_layers_refuse(torch):
    F, nn, t = torch.nn.functional, torch.nn, torch.ones
    image, kernel = t(1, 3, 5, 5), t(2, 3, 3, 3)
    return [
        error(F.conv2d, t(1, 1, 2, 3, 3), t(1, 2, 3, 3)),
        error(F.conv2d, t(1, 4, 5, 5), kernel, words="weight of size [2, 3, 3, 3], expected input"),
        error(F.conv2d, t(1, 3, 2, 2), kernel),
        error(F.conv2d, image, kernel, t(3)),
        error(F.conv2d, image, kernel, None, 2, "same"),
        error(F.conv2d, image, kernel, None, 1, "odd", words="Invalid padding string"),
        error(F.conv2d, image, kernel, None, 1, -1, words="negative padding is not supported"),
        error(F.conv2d, image, kernel, None, 0, words="non-positive stride is not supported"),
        error(F.max_pool2d, image, 2, 2, 2),
        error(F.max_pool2d, t(5, 5), 2, words="tensor expected for input"),
        error(F.max_pool2d, t(1, 1, 1), 2),
        error(F.layer_norm, image, [3]),
        error(F.layer_norm, image, [5], t(3)),
        error(F.layer_norm, image, []),
        error(F.batch_norm, t(1, 2), None, None, None, None, True),
        error(F.batch_norm, t(3, 2), t(3), t(3)),
        error(F.batch_norm, t(3, 2), None, None),
        error(nn.BatchNorm2d(3), t(2, 3)),
        error(nn.BatchNorm1d(3), image),
        error(nn.GroupNorm, 2, 3),
        error(F.group_norm, t(2, 3), 2),
        error(nn.Conv2d, 3, 4, 3, 1, 0, 1, 2, words="in_channels must be divisible by groups"),
        error(nn.Embedding, 3, 2, 5, words="Padding_idx must be within num_embeddings"),
        error(F.embedding, t(1), t(3, 2)),
        error(F.glu, t(3)),
        error(
            lambda: F.scaled_dot_product_attention(*[t(3, 5, 5)] * 3, t(5, 5), 0.0, True),
            words="Explicit attn_mask should not be set when is_causal=True",
        ),
    ]


@close
def test_multihead_attention_equals_pytorchs(torch):
    attend, x = torch.nn.MultiheadAttention, numbers(torch, 3, 2, 4)
    other, third = numbers(torch, 4, 2, 3, first=2), numbers(torch, 4, 2, 5, first=3)
    skipped = torch.tensor([[False, True, False], [False, False, True]])
    causal = torch.ones(3, 3).tril() == 0
    added = numbers(torch, 4, 3, 3, first=6)

    def attended(layer, *inputs, **options):
        return [*map(clean, with_fixed_weights(torch, layer)(*inputs, **options))]

    def learned(layer, *inputs, **options):
        output, _ = with_fixed_weights(torch, layer)(*inputs, **options)
        return [*map(clean, torch.autograd.grad(output.sum(), layer.parameters()))]

    masks = {"key_padding_mask": skipped, "attn_mask": causal}
    return [
        attended(attend(4, 2), x, x, x),
        learned(attend(4, 2, add_bias_kv=True), x, x, x, key_padding_mask=skipped),
        attended(attend(4, 2, kdim=3, vdim=5, bias=False), x, other, third, need_weights=False),
        attended(attend(4, 2, add_bias_kv=True, add_zero_attn=True), x, x, x, **masks),
        attended(
            attend(4, 2, batch_first=True),
            *[x.transpose(0, 1)] * 3,
            attn_mask=added,
            average_attn_weights=False,
        ),
        attended(attend(4, 1), x[0], x[1], x[1], need_weights=False),
        attended(attend(4, 2), x, x, x, need_weights=False, is_causal=True, attn_mask=causal),
        list(attend(4, 2, kdim=3, add_bias_kv=True).state_dict()),
        error(attend, 4, 3, words="embed_dim must be divisible by num_heads"),
        error(lambda: attend(4, 2)(x, x, x, is_causal=True), words="Need attn_mask if specifying"),
    ]


@close
def test_layers_of_a_transformer(torch):
    nn, x = torch.nn, numbers(torch, 2, 3, 4)
    options = {"dim_feedforward": 5, "dropout": 0.0, "batch_first": True}
    skipped = torch.tensor([[False, True, False], [False, False, True]])
    first = with_fixed_weights(torch, nn.TransformerEncoderLayer(4, 2, **options))
    second = with_fixed_weights(
        torch, nn.TransformerEncoderLayer(4, 2, 5, 0.0, "gelu", norm_first=True)
    )
    many = nn.TransformerEncoder(first, 2, nn.LayerNorm(4), enable_nested_tensor=False)
    output = first(x, src_key_padding_mask=skipped)
    return [
        clean(output),
        clean(torch.autograd.grad(output.sum(), first.linear1.weight)[0]),
        clean(second(x, src_mask=numbers(torch, 2, 2))),
        clean(many(x)),
        list(many.state_dict()),
        error(lambda: nn.TransformerEncoderLayer(4, 2, activation="bent"), words="should be relu/"),
    ]
