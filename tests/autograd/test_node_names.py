"""Names and edges of nodes are PyTorch's, for every sample of every operator.

test_node_names.answers.json has PyTorch's names (`make record PARTS=operators`).
"""

import functools

import jax
import numpy
import pytest
from helpers import checks, recorded
from helpers.as_torch import as_torch, leaf
from helpers.recorded import name_of_node, node_and_next
from samples import special

import jaxgrad
from jaxgrad.tape.tensor import wrap

COMPOSITE = "PyTorch composes it of several nodes, of which the last depends on the arguments"
NUMBERS = "PyTorch's C++ has other overloads for numbers"
LAST = "PyTorch has another node before the last, whose name ours bears"
OF_VALUES = "PyTorch's operator is one on sparse tensors, here a stand-in around it"
MORE = "ours has gradients for weights or targets, PyTorch's has not"
FUSED = "PyTorch composes it of several nodes on CPUs, or for some dimensions"
RUNNING = "ours has gradients for running statistics, PyTorch's has not"
OLD_NAME = "an operator of early PyTorch, whose stand-in is PyTorch's of today"
NO_DERIVATIVE = "PyTorch has no derivative of it, or not the operator"
ON_GPUS = "PyTorch composes it on CPUs; ours is its one node on GPUs"

# Operators whose nodes have other names than PyTorch's for some arguments.
OTHER_NAMES = {
    **dict.fromkeys(["matmul", "Tensor.matmul", "ops.linalg_matmul"], COMPOSITE),
    **dict.fromkeys(["nn.functional.linear", "nn.functional.cross_entropy"], COMPOSITE),
    **dict.fromkeys(["nn.functional.l1_loss", "ops.l1_loss"], COMPOSITE),
    **dict.fromkeys(["nn.functional.kl_div", "ops.kl_div"], COMPOSITE),
    **dict.fromkeys(["nn.functional.nll_loss", "diag", "movedim", "chunk"], COMPOSITE),
    **dict.fromkeys(["linalg.matrix_power", "nuclear_norm"], COMPOSITE),
    **dict.fromkeys(["einsum", "cdist", "linalg.multi_dot", "linalg.matrix_norm"], COMPOSITE),
    **dict.fromkeys(
        ["ops._coo_tensor", "ops._coo_values", "ops._coo_t", "ops._coo_mask"], OF_VALUES
    ),
    **dict.fromkeys(["ops._coo_transpose", "ops._coo_permute", "ops._coo_to_sparse"], OF_VALUES),
    **dict.fromkeys(["ops._coo_to_sparse_dim", "ops._coo_group", "ops._coo_ungroup"], OF_VALUES),
    **dict.fromkeys(["ops._coo_sum", "ops._coo_add", "ops._coo_sub", "ops._coo_matmul"], OF_VALUES),
    **dict.fromkeys(["ops._coo_sampled_mm", "ops._coo_softmax"], OF_VALUES),
    "ops._coo_log_softmax": OF_VALUES,
    **dict.fromkeys(["nn.functional.rms_norm", "rms_norm", "ops._fused_rms_norm"], FUSED),
    "nn.functional.smooth_l1_loss": "with beta=0 it is l1_loss",
    **dict.fromkeys(["quantile", "nanquantile"], "PyTorch's last step is in place"),
    **dict.fromkeys(["trapezoid", "trapz", "cumulative_trapezoid"], NUMBERS),
    **dict.fromkeys(["conv2d", "conv_transpose2d"], "of complex numbers PyTorch composes it"),
    "diff": "PyTorch's copy of the input for n=0 is a write",
    "masked.std": "the slope at 0 is masked out",
    "linalg.tensorinv": "PyTorch's inverse is stored by columns, so that its reshape is another",
    **dict.fromkeys(["ops.gesv", "ops.btrifact", "ops.btrifact_with_info", "ops.potri"], OLD_NAME),
    **dict.fromkeys(["ops.pstrf", "ops._fused_drop", "ops._native_drop"], OLD_NAME),
    **dict.fromkeys(["ops.max_unpool2d_backward", "ops.RoiPooling2d_forward"], OLD_NAME),
    "ops._fill_diagonal": "PyTorch has it in place only, where it is a write through a view",
    **dict.fromkeys(f"{special.EVERYWHERE} {special.POSITIVE}".split(), NO_DERIVATIVE),
    **dict.fromkeys(special.POLYNOMIALS.split(), NO_DERIVATIVE),
    **dict.fromkeys(["ops._airy_ai_derivative", "ops._gegenbauer_polynomial"], NO_DERIVATIVE),
    **dict.fromkeys(["ops._laguerre_polynomial", "ops._fft_with_size"], NO_DERIVATIVE),
    **dict.fromkeys(["ops._rrelu", "ops.l1_loss_backward", "ops.kl_div_backward"], OLD_NAME),
    **dict.fromkeys(["ops.hardsigmoid_backward", "ops.mish_backward"], NO_DERIVATIVE),
    "ops.multi_margin_loss_backward": NO_DERIVATIVE,
    "special.ndtr": "ours is composed of erfc, which is accurate in the tail",
    **dict.fromkeys(["lstm", "gru", "rnn_tanh", "rnn_relu", "lstm_cell", "gru_cell"], ON_GPUS),
    **dict.fromkeys(["ops._thnn_fused_lstm_cell", "ops._thnn_fused_gru_cell"], ON_GPUS),
    "ops._pad_packed_sequence": "PyTorch writes into a tensor of padding",
    "ops._scaled_dot_product_flash_attention_for_cpu": "PyTorch's logsumexp has no derivative",
    "ops._scaled_dot_product_flash_attention_for_cpu_backward": NO_DERIVATIVE,
    "ops._attention_with_dropout": FUSED,
    "ops._attention_with_dropout_backward": NO_DERIVATIVE,
    "nn.functional.scaled_dot_product_attention": "ours is one node where PyTorch's kernel is not",
    **dict.fromkeys(["stft", "Tensor.stft"], "PyTorch transposes and squeezes in place"),
}

# Operators whose nodes have PyTorch's names and other `next_functions`.
OTHER_EDGES = {
    **dict.fromkeys(["nn.functional.cross_entropy", "ops.cross_entropy_loss"], LAST),
    **dict.fromkeys(
        ["take_along_dim", "outer", "ger", "nn.functional.linear", "hstack", "vstack"], LAST
    ),
    **dict.fromkeys(["real", "imag", "nn.functional.kl_div", "nn.functional.mse_loss"], LAST),
    **dict.fromkeys(["einsum", "cartesian_prod", "combinations", "pairwise_distance"], LAST),
    **dict.fromkeys(["nn.functional.nll_loss", "ops.nll_loss"], MORE),
    **dict.fromkeys(["ops.nll_loss_forward", "ops.nll_loss_backward"], MORE),
    **dict.fromkeys(["ops.nll_loss2d", "ops.nll_loss2d_forward", "ops.nll_loss2d_backward"], MORE),
    **dict.fromkeys(["nn.functional.binary_cross_entropy_with_logits"], MORE),
    **dict.fromkeys(["ops.binary_cross_entropy_with_logits"], MORE),
    **dict.fromkeys(["nn.functional.binary_cross_entropy", "nn.functional.soft_margin_loss"], MORE),
    **dict.fromkeys(["ops.binary_cross_entropy_backward", "ops.soft_margin_loss_backward"], MORE),
    "nn.functional.multi_margin_loss": MORE,
    "row_stack": LAST,
    **dict.fromkeys(["nn.functional.batch_norm", "batch_norm", "native_batch_norm"], RUNNING),
    "ops.native_batch_norm_backward": RUNNING,
    "nn.functional.scaled_dot_product_attention": "ours has a gradient for masks",
    **dict.fromkeys(["ops._coo_to_dense", "ops._coo_add_to", "ops._coo_mm"], OF_VALUES),
    **dict.fromkeys(["ops._coo_mv", "ops._coo_addmm", "ops._coo_sparse_addmm"], OF_VALUES),
    "ops.copy": "PyTorch has it in place only, here on a clone",
    "cumulative_trapezoid": NUMBERS,
}


def answer(sample, field):
    """The names of our nodes. Nothing is computed where no indices or masks are given."""
    told, arrays = [], sample.draw(field)

    def run(*arrays):
        tensors = [
            jaxgrad.from_numpy(array) if isinstance(array, numpy.ndarray) else wrap(array)
            for array in arrays
        ]
        for tensor, flag in zip(tensors, sample.differentiated, strict=True):
            tensor.requires_grad_(flag)
        result = sample.call(jaxgrad, tensors)
        told.extend(map(node_and_next, [result] if isinstance(result, jaxgrad.Tensor) else result))

    if all(array.dtype.kind in "fc" for array in arrays):
        with jax.enable_x64(True):
            jax.eval_shape(run, *arrays)
    else:
        run(*arrays)
    return told


@functools.cache
def answers(family):
    """The names of PyTorch's nodes and of ours, for each sample and field."""
    return [
        (sample, f"{sample.id} over the {field} numbers", theirs, answer(sample, field))
        for sample in recorded.FAMILIES[family]
        for field, theirs in recorded.node_names(sample).items()
    ]


def compare(family, agree, exceptions):
    """Fails where two answers differ, or where a listed exception is not needed."""
    differences, excused = [], set()
    for sample, where, theirs, ours in answers(family):
        checks.count("node names")
        if not agree(theirs, ours) and sample.name in exceptions:
            excused.add(sample.name)
        elif not agree(theirs, ours):
            differences.append(f"{where}: {ours} for {theirs}")
    assert not differences, "\n".join(differences)
    assert excused == exceptions.keys() & {sample.name for sample in recorded.FAMILIES[family]}


def is_named(theirs, ours):
    return [told and told[0] for told in theirs] == [told and told[0] for told in ours]


@pytest.mark.row("H01")
@pytest.mark.slow
@pytest.mark.parametrize("family", recorded.FAMILIES)
def test_name_of_every_operator(family):
    compare(family, is_named, OTHER_NAMES)


def leads_on(theirs, ours):
    return not is_named(theirs, ours) or theirs == ours


@pytest.mark.row("H01")
@pytest.mark.slow
@pytest.mark.parametrize("family", recorded.FAMILIES)
def test_next_functions_of_every_operator(family):
    compare(family, leads_on, OTHER_EDGES)


@pytest.mark.row("H01")
@as_torch("""
    'AddBackward0'
    'ClampBackward1'
    'CopyBackwards'
    'CopySlices'
    'ZeroBackward0'
""")
def test_names_of_nodes_of_writes(torch):
    names, x = [], leaf(torch, 1.0, 2.0)
    y = x * 2
    for write in (
        lambda: y.add_(1),
        lambda: y.clamp_(0, 9),
        lambda: y.copy_(x),
        lambda: y[0].mul_(2),
        lambda: y.zero_(),
    ):
        write()
        names.append(name_of_node(y.grad_fn))
    return names


@pytest.mark.row("H01")
@as_torch("""
    ['MulBackward0', True]
    ['AccumulateGrad', True]
    ['SumBackward1', True]
    ['CopySlices', True]
    ['NoneType', False]
    ['SelectBackward0', True]
    ['ViewBackward0', True]
""")
def test_classes_of_nodes_have_pytorchs_names(torch):
    x = leaf(torch, 1.0, 2.0)
    y = x * 2
    written = torch.zeros(3)
    written[1:].mul_(x)
    nodes = [
        y.grad_fn,
        y.grad_fn.next_functions[0][0],
        y.sum(0).grad_fn,
        written.grad_fn,
        written.grad_fn.next_functions[0][0],
        y[0].grad_fn,
        x.view(2, 1).grad_fn,
    ]
    Node = torch.autograd.graph.Node
    return [[type(node).__name__, isinstance(node, Node)] for node in nodes]


@pytest.mark.row("H01")
def test_classes_have_the_names_of_nodes_that_check_versions():
    with jaxgrad.autograd.graph.strict_versions():
        node = leaf(jaxgrad, 1.0).exp().grad_fn
    assert type(node).__name__ == node.name() == "ExpBackward0"


@pytest.mark.row("H01")
@as_torch
def test_next_functions_of_numbers_and_what_is_absent(torch):
    x, told = leaf(torch, 1.0, 2.0), []
    three = torch.tensor(3.0)
    for tensor in (
        x * 2,
        2 * x,
        x * 0.3,
        x * three,
        x + 1,
        1 - x,
        x / 2,
        2 / x,
        x**2,
        2**x,
        x - three,
        x.sum(0),
        x.clamp(min=three),
        torch.where(x > 1, x, 0.0),
        torch.cat([x, three[None], x]),
    ):
        told.append(node_and_next(tensor))
    return told


@pytest.mark.row("F12")
@as_torch("""
    [[[tensor([2.0, 2.0]), None], [tensor([1.0, 1.0])]]]
    tensor([32.0, 32.0])
""")
def test_a_hook_sees_none_for_a_number(torch):
    seen, x = [], leaf(torch, 1.0, 2.0)
    y = x * 2
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append([inputs, outputs]))
    y.sum().backward()
    y = x * torch.tensor(3.0)
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 10, None))
    y.sum().backward()
    return seen, x.grad


def test_every_sample_is_recorded():
    recorded.check_complete(recorded.all_node_names(), [sample for _, sample in recorded.SAMPLES])
