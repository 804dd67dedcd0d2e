"""Random nested tensors of both layouts in PyTorch and here: functions, gradients, encoders.

make oracle     (`--seed N` repeats a run: a failure names its seed)
"""

import warnings

import numpy
import pytest
import torch
from helpers import checks
from oracle.seed import SEED

import jaxgrad

# PyTorch sets variables of the environment at its first use of the jagged layout
torch.nested.nested_tensor([torch.ones(1)], layout=torch.jagged).exp()

# of components that differ in every extent
STRIDED = [
    "x.abs()",
    "x.neg()",
    "x.relu()",
    "x.sin()",
    "x.tanh()",
    "x.sqrt()",
    "x.sgn()",
    "x.isnan()",
    "x.double()",
    "x.bool()",
    "x.clone()",
    "x+x",
    "x+1",
    "2*x",
    "x/2",
    "x-1",
    "x*x",
    "x/(x*x+1)",
    "x.ge(0.5)",
    "x>0",
    "x.softmax(-1)",
    "x.softmax(1)",
    "x.transpose(1,2)",
    "x.transpose(1,2)+1",
    "x.transpose(1,2).contiguous()",
    "x@x.transpose(1,2)",
    "x.transpose(1,2)@x",
    "x.unsqueeze(-1)",
    "x.unsqueeze(1)",
    "x.unbind()",
    "x[0]",
    "x[-1]",
    "x.to_padded_tensor(0.5)",
    "x.zero_()",
    "x.add_(1)",
    "x.mul_(2)",
    "torch.zeros_like(x)",
    "torch.cat([x,x])",
    "x.narrow(0,1,1)",
    "x.masked_fill(x>0,1)",
    "x.dim()",
    "x.numel()",
    "x._nested_tensor_size()",
    "x.transpose(1,2)._nested_tensor_strides()",
    "x.transpose(1,2).is_contiguous()",
    "F.gelu(x)",
    "F.silu(x)",
    "F.dropout(x,0.)",
]
# of components that share the last extent
ROWS = [
    "x.size(2)",
    "x.sum(-1,keepdim=True)",
    "x.chunk(4,-1)",
    "x.chunk(2,-1)[1]",
    "x.split_with_sizes([1,3],-1)",
    "x.select(2,1)",
    "x.reshape(2,-1,2,2)",
    "x.view(2,-1,2,2).transpose(1,2)",
    "x.reshape(2,-1,2,2).transpose(1,2)",
    "F.linear(x,w)",
    "F.linear(x,w,b)",
    "F.layer_norm(x,(4,),b,b)",
    "torch.bmm(x,x.transpose(1,2))",
    "torch.cat([x,x],0)",
    "F.scaled_dot_product_attention(x,x*0.5,x*2)",
    "(x*2).fill_(3)",
    "F.scaled_dot_product_attention(*[x.view(2,-1,2,2).transpose(1,2).contiguous()]*3)",
]
# of the jagged layout
JAGGED = [
    "x.exp()",
    "x+1",
    "x*x",
    "x/2",
    "x+b",
    "x.softmax(-1)",
    "x.softmax(1)",
    "x.sum(1)",
    "x.sum(-1)",
    "x.mean(1,keepdim=True)",
    "x.amax(1)",
    "x.max(1)[0]",
    "x.unsqueeze(-1)",
    "x.transpose(1,2)",
    "x.unflatten(-1,(2,2))",
    "x.chunk(2,-1)",
    "x.values()",
    "x.offsets()",
    "x.to_padded_tensor(-1.)",
    "x.unbind()",
    "torch.cat([x,x],-1)",
    "x[...,:2]",
    "x.chunk(2,0)",
    "x.max()",
    "x.min()",
    "F.l1_loss(x,2*x)",
    "1/(x*x+1)",
    "2**x",
    "7%(x*x+1)",
    "x.split([1,3],-1)",
    "x.unsqueeze(-1).expand(len(x),-1,4,2)",
    "x.unsqueeze(-1).expand_as(torch.stack([x,x],-1))",
    "torch.stack([x,x*2],-1)",
    "torch.stack([x,x*2],2)",
    "x@w.t()",
    "x.relu()",
    "x.double()",
    "F.linear(x,w,b)",
    "F.layer_norm(x,(4,),b,b)",
    "x.sum()",
    "x.mean()",
    "torch.where(x>0,x,-x)",
    "x.masked_fill(x>0,0)",
    "F.gelu(x)",
    "x.view(2,-1,2,2)",
    "x.numel()",
    "F.scaled_dot_product_attention(*[x.unflatten(-1,(2,2)).transpose(1,2)]*3)",
]

# of PyTorch: those of the components differ from them, and are ours (tests/nested)
WRONG_GRADIENTS = ["x.softmax(1)"]


def outcome(library, call):
    """The components of a result as arrays; the class of an error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return plain(call(library))
    except Exception as error:
        return type(error)


def plain(result):
    if getattr(result, "is_nested", False):
        kind = "jagged" if "jagged" in str(result.layout) else "strided"
        return [kind, *(part.detach().contiguous().numpy() for part in result.unbind())]
    if isinstance(result, tuple | list):
        return [part for value in result for part in plain(value)]
    return [result.detach().numpy() if hasattr(result, "detach") else result]


def compare(call, where):
    """The outcomes of a call are equal, where PyTorch has one."""
    theirs = outcome(torch, call)
    if isinstance(theirs, type):
        return
    ours = outcome(jaxgrad, call)
    assert not isinstance(ours, type), f"{where}: {ours}"
    assert len(ours) == len(theirs), where
    for value, other in zip(ours, theirs, strict=True):
        if not isinstance(other, numpy.ndarray):
            assert value == other, where
            continue
        assert (value.dtype, value.shape) == (other.dtype, other.shape), where
        numpy.testing.assert_allclose(value, other, 1e-4, 1e-5, err_msg=where)
    checks.count("nested")


def parts_of(random, kind):
    shapes = random.integers(1, 5, (2, 2))
    if kind != "strided":
        shapes[:, 1] = 4
    return [random.standard_normal(shape).astype("float32") for shape in shapes]


def evaluated(library, source, parts, layout, requires_grad=False):
    random = numpy.random.default_rng(parts[0].size)
    names = {
        "torch": library,
        "F": library.nn.functional,
        "x": library.nested.nested_tensor(
            [library.tensor(part) for part in parts],
            layout=getattr(library, layout),
            requires_grad=requires_grad,
        ),
        "w": library.tensor(random.standard_normal((3, 4)).astype("float32")),
        "b": library.tensor(
            random.standard_normal(4 if "norm" in source else 3), dtype=library.float32
        ),
    }
    return names["x"], eval(source, names)


CASES = [(source, "strided") for source in STRIDED]
CASES += [(source, "rows") for source in ROWS] + [(source, "jagged") for source in JAGGED]


@pytest.mark.parametrize(("source", "kind"), CASES)
def test_functions_and_gradients(source, kind):
    random = numpy.random.default_rng([SEED, *source.encode()])
    layout = "jagged" if kind == "jagged" else "strided"
    for _ in range(3):
        parts = parts_of(random, kind)

        def value(library, parts=parts):
            return evaluated(library, source, parts, layout)[1]

        def gradient(library, parts=parts):
            x, result = evaluated(library, source, parts, layout, requires_grad=True)
            parts = result.unbind() if result.is_nested else [result]
            sum((part * part.sin()).sum() for part in parts).backward()
            return x.grad

        is_wrong = layout == "jagged" and source in WRONG_GRADIENTS
        for call in (value,) if is_wrong else (value, gradient):
            compare(call, f"SEED={SEED} {source} {layout} {[part.shape for part in parts]}")


def filled(library, module, random):
    with library.no_grad():
        for parameter in module.parameters():
            numbers = random.standard_normal(tuple(parameter.shape)).astype("float32") * 0.5
            parameter.copy_(library.tensor(numbers))
    return module.eval()


@pytest.mark.parametrize("number", range(12))
def test_encoders(number):
    """Encoders of nested tensors, and of padded ones whose padding PyTorch leaves out."""
    random = numpy.random.default_rng([SEED, number])
    lengths, seed = random.integers(1, 4, 3), int(random.integers(2**30))
    options = {"norm_first": bool(number % 2), "activation": ("relu", "gelu")[number // 2 % 2]}
    values = random.standard_normal((3, 3, 4)).astype("float32")
    is_padded = numpy.arange(3) >= lengths[:, None]
    if number % 5 == 4:
        is_padded = is_padded[:, ::-1].copy()

    def encoder(library):
        layer = library.nn.TransformerEncoderLayer(4, 2, 5, batch_first=True, **options)
        stack = library.nn.TransformerEncoder(layer, 2, library.nn.LayerNorm(4))
        return filled(library, stack, numpy.random.default_rng(seed))

    def of_padded(library):
        with library.no_grad():
            mask = library.tensor(is_padded)
            return encoder(library)(library.tensor(values), src_key_padding_mask=mask)

    def of_nested(library):
        parts = [library.tensor(value[:n]) for value, n in zip(values, lengths, strict=True)]
        with library.no_grad():
            return encoder(library)(library.nested.nested_tensor(parts))

    for call in (of_padded, of_nested):
        compare(call, f"SEED={SEED} {number}")
