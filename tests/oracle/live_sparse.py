"""Operators on random sparse tensors against the installed PyTorch, in all layouts.

make oracle     (`--seed N` repeats a run: a failure names its seed)
"""

import warnings

import numpy
import pytest
import torch
from oracle.seed import SEED

import jaxgrad

LAYOUTS = ("coo", "uncoalesced", "csr", "csc", "bsr", "bsc")
COO = ("coo", "uncoalesced")
ROWS = ("csr",)


def arrays(draw):
    """The parts of a problem: sizes, indices, values, dense operands."""
    rows, columns = 2 * draw.integers(1, 4, 2)
    count = draw.integers(0, rows * columns + 1)
    return {
        "size": (int(rows), int(columns)),
        "indices": numpy.stack([draw.integers(0, n, count) for n in (rows, columns)]),
        "values": draw.normal(size=count),
        "w": draw.normal(size=(columns, 3)),
        "m": draw.normal(size=(rows, columns)),
        "rows": draw.integers(0, rows, 4),
    }


def sparse(framework, parts, layout):
    """The sparse matrix of a problem in a layout."""
    indices, values = map(framework.tensor, (parts["indices"], parts["values"]))
    tensor = framework.sparse_coo_tensor(indices, values, parts["size"])
    if layout == "uncoalesced":
        return tensor
    if layout == "coo":
        return tensor.coalesce()
    options = {"blocksize": (2, 2)} if layout.startswith("b") else {}
    dense = tensor.to_dense()
    return dense.to_sparse(layout=getattr(framework, f"sparse_{layout}"), **options)


# by name: the layouts that PyTorch takes, and the function of a framework, x, w and m
OPERATORS = {
    "to_dense": (LAYOUTS, lambda t, x, p: x.to_dense()),
    "dist": (COO, lambda t, x, p: t.dist(x, 2 * x.sin(), 3)),
    "dist of dense": (COO, lambda t, x, p: t.dist(p["m"], x)),
    "l1_loss": (COO, lambda t, x, p: t.nn.functional.l1_loss(x, x.sin(), reduction="sum")),
    "kl_div": (COO, lambda t, x, p: t.nn.functional.kl_div(x, p["m"].sigmoid(), reduction="sum")),
    "soft_margin_loss": (COO, lambda t, x, p: t.nn.functional.soft_margin_loss(p["m"], x)),
    "addr": (ROWS, lambda t, x, p: t.addr(x, p["m"][:, 0], p["m"][0], beta=0.5, alpha=2)),
    "detach of the class": (LAYOUTS, lambda t, x, p: t.Tensor.detach(x)),
    "t_ of the class": (COO, lambda t, x, p: t.Tensor.t_(x)),
    "indices of empty_like": (ROWS, lambda t, x, p: t.empty_like(x).col_indices().double()),
    "mask of itself": (COO, lambda t, x, p: x.sparse_mask(x)),
    "sum_to_size": (("coo", "csr"), lambda t, x, p: x.sum_to_size(1, x.shape[1])),
    "flatten of one dimension": (LAYOUTS, lambda t, x, p: t.flatten(x, -1)),
    "adjoint": (("csr", "csc", "bsr", "bsc"), lambda t, x, p: t.adjoint(x)),
    "sin": (LAYOUTS, lambda t, x, p: x.sin()),
    "abs": (LAYOUTS, lambda t, x, p: abs(x)),
    "neg": (LAYOUTS, lambda t, x, p: -x),
    "double": (LAYOUTS, lambda t, x, p: x * 2),
    "isnan": (LAYOUTS, lambda t, x, p: x.isnan().to_dense().double()),
    "transpose": (LAYOUTS, lambda t, x, p: x.t()),
    "to_sparse": (LAYOUTS, lambda t, x, p: x.to_sparse()),
    "csr to csc": (("coo", "csr", "csc"), lambda t, x, p: x.to_sparse_csc()),
    "csc to csr": (("coo", "csr", "csc"), lambda t, x, p: x.to_sparse_csr()),
    "matmul": (("coo", "uncoalesced", "csr", "csc"), lambda t, x, p: x @ p["w"]),
    "mul of a batch": (COO, lambda t, x, p: x * t.stack([p["m"], 2 * p["m"]])),
    "mul of a column": (COO, lambda t, x, p: x * p["m"][:, :1]),
    "broadcast_to": (COO, lambda t, x, p: t._sparse_broadcast_to(x, (3, *x.shape))),
    "add to nothing": (COO, lambda t, x, p: t.sparse_coo_tensor(x.shape).double() + x),
    "sum with a product": (ROWS, lambda t, x, p: t.addmm(p["m"] @ p["m"].T, x, x.t())),
    "mv": (("coo", "uncoalesced", "csr", "csc"), lambda t, x, p: x @ p["w"][:, 0]),
    "rmatmul": (("coo", "uncoalesced", "csr", "csc"), lambda t, x, p: p["m"].t() @ x),
    "sum": (LAYOUTS[:3], lambda t, x, p: x.sum()),
    "sum of rows": (ROWS, lambda t, x, p: x.sum(1, keepdim=True)),
    "add": (("coo", "uncoalesced", "csr"), lambda t, x, p: x + x),
    "dense sum": (("coo", "uncoalesced", "csr"), lambda t, x, p: p["m"] + x),
    "mul": (("coo", "uncoalesced", "csr"), lambda t, x, p: x * p["m"]),
    "sparse mm": (("coo", "csr"), lambda t, x, p: x @ x.t()),
    "reduced mm": (ROWS, lambda t, x, p: t.sparse.mm(x, p["w"], "amax")),
    "sampled_addmm": (ROWS, lambda t, x, p: t.sparse.sampled_addmm(x, p["m"] @ p["w"], p["w"].t())),
    "sparse sum": (COO, lambda t, x, p: t.sparse.sum(x, 0)),
    "softmax": (COO, lambda t, x, p: t.sparse.softmax(x, 1)),
    "index_select": (COO, lambda t, x, p: x.index_select(0, p["rows"])),
    "narrow_copy": (COO, lambda t, x, p: x.narrow_copy(1, 1, 1)),
    "select": (COO, lambda t, x, p: x[0]),
    "cat": (COO, lambda t, x, p: t.cat([x, x.t().t()], 1)),
    "stack": (COO, lambda t, x, p: t.stack([x, x])),
    "smm": (COO, lambda t, x, p: t.smm(x, p["w"])),
    "hspmm": (COO, lambda t, x, p: t.hspmm(x, p["w"])),
    "sspaddmm": (COO, lambda t, x, p: t.sspaddmm(t.smm(x, p["w"]), x, p["w"], beta=0.5, alpha=2)),
    "norm": (COO, lambda t, x, p: x.norm(3)),
    "sparse_mask": (COO, lambda t, x, p: p["m"].sparse_mask(x)),
    "any": (COO, lambda t, x, p: x.any().double()),
    "floor_divide": (COO, lambda t, x, p: x // 0.5),
    "mv of a sparse vector": (COO, lambda t, x, p: p["w"].t() @ x[0]),
    "matmul of a batch": (
        ("coo", "uncoalesced", "csr", "csc"),
        lambda t, x, p: t.stack([p["m"].t(), 2 * p["m"].t()]) @ x,
    ),
    "linear": (COO, lambda t, x, p: t.nn.functional.linear(p["w"].t()[0], x, p["m"][:, 0])),
    "outer": (COO, lambda t, x, p: t.outer(p["m"][0], x[0])),
    "expand_as": (COO, lambda t, x, p: p["m"][:1].expand_as(x)),
    "view_as_real": (COO, lambda t, x, p: t.view_as_real(x.to(t.complex128))),
    "full_like": (LAYOUTS[2:], lambda t, x, p: t.full_like(x, 2.5)),
    "vmap": (COO, lambda t, x, p: t.func.vmap(lambda row: t.sin(row) * 2)(x)),
    "vmap over columns": (COO, lambda t, x, p: t.func.vmap(lambda column: -column, 1)(x)),
    "vmap to dense": (COO, lambda t, x, p: t.func.vmap(lambda r, m: (r * m).to_dense())(x, p["m"])),
    "vmap that writes": (COO, lambda t, x, p: (t.func.vmap(lambda row: row.mul_(3))(x), x)[1]),
    "bmm": (COO, lambda t, x, p: t.bmm(t.stack([x, x]), t.stack([p["w"], 2 * p["w"]]))),
}
CASES = [(name, layout) for name, (layouts, _) in OPERATORS.items() for layout in layouts]


def result(framework, name, layout, parts):
    """The dense result of an operator, its layout, and the gradient at the elements."""
    dense = {key: framework.tensor(parts[key]) for key in ("w", "m", "rows")}
    x = sparse(framework, parts, layout)
    y = OPERATORS[name][1](framework, x, dense)
    return y.to_dense(), str(y.layout)


@pytest.mark.parametrize(("name", "layout"), CASES, ids=[f"{n}-{layout}" for n, layout in CASES])
def test_values(name, layout):
    for number in range(3):
        parts = arrays(numpy.random.default_rng((SEED, number)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings of PyTorch do not count
            expected, expected_layout = result(torch, name, layout, parts)
        value, layout_here = result(jaxgrad, name, layout, parts)
        assert layout_here == expected_layout, f"SEED={SEED}"
        numpy.testing.assert_allclose(
            value.numpy(), expected.numpy(), rtol=1e-10, atol=1e-12, err_msg=f"SEED={SEED}"
        )


DIFFERENTIABLE = ("to_dense", "neg", "double", "transpose", "matmul", "mv", "sum", "mul")


@pytest.mark.parametrize("layout", COO)
@pytest.mark.parametrize("name", [*DIFFERENTIABLE, "sparse sum", "softmax"])
def test_gradients(name, layout):
    parts = arrays(numpy.random.default_rng((SEED, 7)))
    gradients = []
    for framework in (torch, jaxgrad):
        dense = {key: framework.tensor(parts[key]) for key in ("w", "m", "rows")}
        x = sparse(framework, parts, layout).requires_grad_()
        y = OPERATORS[name][1](framework, x, dense).to_dense()
        weights = framework.tensor(numpy.cos(numpy.arange(y.numel()))).reshape(y.shape)
        (y * weights).sum().backward()
        mask = (sparse(framework, parts | {"values": parts["values"] * 0 + 1}, "coo")).to_dense()
        gradients.append((x.grad.to_dense() * (mask != 0)).numpy())
    numpy.testing.assert_allclose(
        gradients[1], gradients[0], rtol=1e-9, atol=1e-12, err_msg=f"SEED={SEED}"
    )


REFUSED = {
    "reshape": lambda t, x: x.reshape(-1),
    "flatten": lambda t, x: x.flatten(),
    "expand": lambda t, x: x.expand(2, *x.shape),
    "broadcast_to": lambda t, x: t.broadcast_to(x, (2, *x.shape)),
    "tile": lambda t, x: x.tile(2),
    "repeat": lambda t, x: x.repeat(2, 2),
    "is_contiguous": lambda t, x: None if x.layout is t.sparse_coo else x.is_contiguous(),
    "sort": lambda t, x: x.sort(),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", REFUSED)
def test_refusals_have_the_words_of_pytorch(name, layout):
    parts, errors = arrays(numpy.random.default_rng((SEED, 3))), []
    for framework in (torch, jaxgrad):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                REFUSED[name](framework, sparse(framework, parts, layout))
            errors.append(None)
        except RuntimeError as error:
            errors.append(error)
    theirs, ours = errors
    assert (ours is None) is (theirs is None), f"SEED={SEED}"
    if type(theirs) is RuntimeError and name != "sort":
        assert str(ours).startswith(str(theirs).split("\n")[0].rstrip(".")), f"SEED={SEED}"


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("upper", [False, True])
def test_triangular_systems(upper, transpose):
    for number in range(4):
        draw = numpy.random.default_rng((SEED, number))
        size = int(draw.integers(1, 6))
        matrix = numpy.triu(draw.normal(size=(size, size)) * (draw.random((size, size)) > 0.4))
        matrix[range(size), range(size)] = 2
        matrix, right = matrix if upper else matrix.T.copy(), draw.normal(size=(size, 2))
        solutions = [
            framework.triangular_solve(
                framework.tensor(right), framework.tensor(matrix).to_sparse_csr(), upper, transpose
            ).solution.numpy()
            for framework in (torch, jaxgrad)
        ]
        numpy.testing.assert_allclose(*solutions[::-1], 1e-9, 1e-12, err_msg=f"SEED={SEED}")


@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
def test_sampled_products(batch):
    draw = numpy.random.default_rng([SEED, len(batch), 9])
    rows, inner, columns = draw.integers(1, 5, 3)
    pattern = draw.normal(size=(rows, columns)) * (draw.random((rows, columns)) > 0.4)
    operands = draw.normal(size=(*batch, rows, inner)), draw.normal(size=(*batch, inner, columns))
    answers = []
    for framework in (torch, jaxgrad):
        input = framework.tensor(numpy.broadcast_to(pattern, (*batch, rows, columns)).copy())
        parts = input.to_sparse_csr(), *map(framework.tensor, operands)
        product = framework.sparse.sampled_addmm(*parts, beta=0.3, alpha=0.7)
        answers.append(product.to_dense().numpy())
    numpy.testing.assert_allclose(answers[1], answers[0], rtol=1e-9, atol=1e-9)
