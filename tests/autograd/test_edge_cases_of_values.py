"""Edge cases 29 to 40: writes, numbers, nested passes, threads and compiled steps."""

from concurrent.futures import ThreadPoolExecutor

import jax
import pytest
from helpers.as_torch import as_torch, error, leaf, strict
from helpers.compiled import under_jit

import jaxgrad
from jaxgrad.tape.tensor import wrap


def numbers(torch, *values, **options):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True, **options)


# ---- memory that is shared and written to


@pytest.mark.row("edge_29")
@as_torch
def test_views_and_writes_to_them(torch):
    x = numbers(torch, 1.0, 2.0, 3.0)
    b = x * 1
    view = b[1:]
    b.mul_(3)
    (seen,) = torch.autograd.grad(view.sum(), x, retain_graph=True)
    view.mul_(5)
    (through,) = torch.autograd.grad(b.sum(), x, retain_graph=True)
    c = x * 1
    first, last = c[0:2], c[1:3]
    first.mul_(2)
    (overlapping,) = torch.autograd.grad(last.sum(), x)
    y = leaf(torch, 1.0, 1.0)
    chain = y * 2
    chain[0].mul_(2).mul_(3)
    chain[0].backward(retain_graph=True)
    parts = (x * 1).unbind(0)
    with torch.no_grad():
        made_there = (x * 1).detach().requires_grad_()
        quiet = made_there[:2]
    several = "is a view and is being modified inplace"
    return (
        (b, view, seen, through, overlapping, chain, y.grad),
        error(parts[0].mul_, 2.0, words=several),
        error(quiet.mul_, 2.0, words="is being"),
    )


OVERWRITTEN = "has been modified by an inplace operation"


@pytest.mark.row("edge_30")
@as_torch
def test_strictly_saved_and_then_modified(torch):
    with strict(torch):
        x = numbers(torch, 1.0, 2.0)
        y = x.exp()
        y.add_(1)
        direct = error(y.sum().backward, words=OVERWRITTEN)
        y = x.exp()
        y.detach().add_(1)
        detached = error(y.sum().backward, words=OVERWRITTEN)
        product, multiple = (x * x).sum(), (x * 2.0).sum()
        with torch.no_grad():
            x -= 0.1
        saved = error(product.backward, words=OVERWRITTEN)
        multiple.backward()
    return direct, detached, saved, x.grad


@pytest.mark.row("edge_30")
def test_what_was_saved_stays_what_it_was():
    """The gradient is that of the value that was used; PyTorch raises, or for `.data` is wrong."""
    x = numbers(jaxgrad, 0.0, 1.0)
    writes = (
        lambda y: y.add_(1),
        lambda y: y.detach().add_(1),
        lambda y: y.data.zero_(),
    )
    for write in writes:
        x.grad, y = None, x.exp()
        write(y)
        y.sum().backward()
        assert x.grad.tolist() == pytest.approx([1.0, 2.718281828459045], rel=1e-14)


@pytest.mark.row("edge_31")
@as_torch("""
    [True, True, 'CopySlices']
    tensor([2.0, 7.0, 0.0], dtype=float64, requires_grad=True)
    tensor([7.0, 0.0], dtype=float64, requires_grad=True)
    tensor([10.0, 6.0], dtype=float64)
""")
def test_setting_items_with_gradients(torch):
    x = numbers(torch, 2.0, 3.0)
    b = torch.zeros(3, dtype=torch.float64)
    view = b[1:]
    b[:2] = x
    kinds = b.requires_grad, view.requires_grad, b.grad_fn.name().split("::")[-1]
    (view * view).sum().backward(retain_graph=True)
    b[1] = 7.0
    (b * 10).sum().backward()
    return kinds, b, view, x.grad


@pytest.mark.row("edge_32")
@as_torch("""
    tensor([[24.0], [24.0], [24.0]])
    tensor([12.0, 12.0, 12.0, 12.0])
    tensor(60.0)
    RuntimeError(
     'unsupported operation: more than one element of the written-to tensor refers to a '
     'single memory location. Please clone() the tensor before performing the operation.')
""")
def test_broadcasting_of_gradients(torch):
    column = torch.arange(1.0, 4.0).reshape(3, 1).requires_grad_()
    row, scalar = torch.arange(1.0, 5.0).requires_grad_(), leaf(torch, 2.0)
    (column * row * scalar + column).sum().backward()
    expanded = torch.zeros(3, 1).expand(3, 4)
    words = "unsupported operation: more than one element of the written-to tensor refers to"
    return column.grad, row.grad, scalar.grad, error(expanded.add_, 1.0, words=words)


@pytest.mark.row("edge_33")
@as_torch("""
    [tensor([[0.0, 6.0], [2.0, 8.0], [4.0, 10.0]]), [1, 3], [1, 3]]
    [tensor([[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]), [3, 1], [3, 1]]
    [tensor([[[0.0, 6.0]], [[2.0, 8.0]], [[4.0, 10.0]]]), [1, 6, 3], [1, 6, 3]]
""")
def test_strides_of_gradients(torch):
    layouts = []
    for turn in (lambda t: t.t(), lambda t: t, lambda t: t.unsqueeze(0).permute(2, 0, 1)):
        x = turn(torch.arange(6.0).reshape(2, 3)).detach().requires_grad_()
        (x * x).sum().backward()
        layouts.append((x.grad, list(x.grad.stride()), list(x.stride())))
    return layouts


# ---- numbers


@pytest.mark.row("edge_34")
@pytest.mark.slow
@as_torch("""
    [tensor(2.0+4.0j)]
    [tensor(3.0+0.0j), tensor(1.0)]
    [tensor(0.0+0.0j)]
    [tensor(0.0+0.0j)]
    [tensor(6.0+8.0j)]
""")
def test_gradients_of_complex_numbers(torch):
    def gradient(function, *values):
        leaves = [torch.tensor(value, requires_grad=True) for value in values]
        return torch.autograd.grad(function(*leaves), leaves)

    return (
        gradient(lambda z: (z * z).abs(), 1 + 2j),
        gradient(lambda z, x: (z * x).real, 1 + 2j, 3.0),
        gradient(lambda z: z.abs(), 0j),
        gradient(lambda z: z.angle(), 0j),
        gradient(lambda z: (z * z.conj()).real, 3 + 4j),
    )


@pytest.mark.row("edge_35")
@as_torch("""
    [False, False, False, False]
    tensor([2.0, 1.0, 0.0], dtype=float64)
    tensor([2.0, 1.0, 0.0], dtype=float64)
""")
def test_integers_and_indices(torch):
    x = numbers(torch, 1.0, 2.0, 3.0)
    none = [tensor.requires_grad for tensor in (x.argmax(), x > 2, x.long(), x.sign() > 0)]
    index = torch.tensor([0, 0, 1])
    x[index].sum().backward()
    gradient = x.grad
    x.grad = None
    x.gather(0, index).sum().backward()
    return none, gradient, x.grad


@pytest.mark.row("edge_35")
def test_indices_out_of_range():
    """JAX would take the last one."""
    x, index = numbers(jaxgrad, 1.0, 2.0, 3.0), jaxgrad.tensor([0, 3])
    words = "index 3 is out of bounds for dimension 0 with size 3"
    for read in (lambda: x[index], lambda: x[3], lambda: x.index_select(0, index)):
        with pytest.raises(IndexError, match=words):
            read()
    with pytest.raises(RuntimeError, match=words):
        x.gather(0, index)


def kinks(torch):
    """Functions and arguments where the gradient is a convention."""
    F, t = torch.nn.functional, torch.tensor
    return {
        "relu": (F.relu, 0.0),
        "relu6": (F.relu6, 6.0),
        "abs": (torch.abs, 0.0),
        "max": (torch.max, [1.0, 1.0, 0.0]),
        "max_dim": (lambda x: x.max(0)[0], [1.0, 1.0, 0.0]),
        "amax": (torch.amax, [1.0, 1.0, 0.0]),
        "maximum": (torch.maximum, 1.0, 1.0),
        "fmax": (torch.fmax, 1.0, 1.0),
        "clamp": (lambda x: x.clamp(0, 6), [0.0, 6.0]),
        "hardtanh": (F.hardtanh, 1.0),
        "leaky_relu": (F.leaky_relu, 0.0),
        "elu": (F.elu, 0.0),
        "pow": (torch.pow, 0.0, 0.0),
        "prod": (torch.prod, [0.0, 2.0, 3.0]),
        "atan2": (torch.atan2, 0.0, 0.0),
        "hypot": (torch.hypot, 0.0, 0.0),
        "std": (torch.std, [1.0, 1.0]),
        "sqrt": (torch.sqrt, 0.0),
        "xlogy": (torch.xlogy, 0.0, 0.0),
        "scatter": (lambda s: torch.zeros(1).scatter(0, t([0, 0]), s), [1.0, 2.0]),
        "where": (lambda x: torch.where(x > 0, x.log(), torch.zeros(())), 0.0),
        "remainder": (torch.remainder, 5.0, 3.0),
        "fmod": (torch.fmod, 5.0, 3.0),
        "angle": (lambda z: z.angle(), 0j),
    }


@pytest.mark.row("edge_36")
@pytest.mark.slow
@as_torch
def test_ties_and_kinks(torch):
    gradients = {}
    for name, (function, *values) in kinks(torch).items():
        leaves = [torch.tensor(value, requires_grad=True) for value in values]
        gradients[name] = torch.autograd.grad(function(*leaves).sum(), leaves)
    return gradients


# where PyTorch's forward and reverse mode agree
AGREEING = (
    *("relu", "abs", "max", "max_dim", "maximum", "clamp", "hardtanh", "leaky_relu", "elu"),
    *("pow", "prod", "remainder", "fmod", "relu6", "amax", "sqrt", "hypot"),
)


@pytest.mark.row("edge_36")
@pytest.mark.slow
@as_torch
def test_ties_and_kinks_forward(torch):
    forward, tangents = torch.autograd.forward_ad, {}
    cases = kinks(torch)
    for name in AGREEING:
        function, *values = cases[name]
        with forward.dual_level():
            points = [torch.tensor(value) for value in values]
            duals = [forward.make_dual(point, torch.ones_like(point)) for point in points]
            tangents[name] = forward.unpack_dual(function(*duals)).tangent
    return tangents


@pytest.mark.row("edge_37")
@pytest.mark.slow
@as_torch
def test_empty_and_without_dimensions(torch):
    x = torch.zeros(0, 3, requires_grad=True)
    (x * 2).sum().backward()
    y = torch.zeros(0, requires_grad=True)
    reduced = [y.sum(), y.prod(), y.mean()]
    gradients = [torch.autograd.grad(value, y) for value in reduced]
    half, scalar = torch.ones(2, dtype=torch.float16, requires_grad=True), leaf(torch, 2.0)
    product = half * scalar
    product.sum().backward()
    integer = torch.tensor(3) * leaf(torch, 2.0)
    return x.grad, reduced, gradients, product, half.grad, scalar.grad, integer


# ---- passes inside passes, many nodes, threads


@pytest.mark.row("edge_38")
@as_torch("""
    tensor(3.0)
    tensor(3.0)
    tensor(3.0)
""")
def test_a_pass_inside_a_pass(torch):
    class Nested(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, depth):
            ctx.save_for_backward(x)
            ctx.depth = depth
            return x * 2

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            with torch.enable_grad():
                inner = x.detach().requires_grad_()
                y = Nested.apply(inner, ctx.depth - 1) if ctx.depth else inner * 3
                y.backward()
            return g * inner.grad, None

    gradients = []
    for depth in (0, 1, 4):
        x = leaf(torch, 1.0)
        Nested.apply(x, depth).backward()
        gradients.append(x.grad)
    return gradients


@pytest.mark.row("edge_38")
def test_a_pass_inside_a_pass_of_depth_200():
    class Count(jaxgrad.autograd.Function):
        @staticmethod
        def forward(ctx, x, depth):
            ctx.depth = depth
            return x * 1

        @staticmethod
        def backward(ctx, g):
            if not ctx.depth:
                return g + 1, None
            with jaxgrad.enable_grad():
                inner = leaf(jaxgrad, 1.0)
                Count.apply(inner, ctx.depth - 1).backward()
            return inner.grad + 1, None

    x = leaf(jaxgrad, 1.0)
    Count.apply(x, 200).backward()
    assert x.grad.item() == 202


@pytest.mark.row("edge_38")
@as_torch("""
    [RuntimeError('element 0 of tensors does not require grad and does not have a grad_fn'),
     tensor(6.0)]
    tensor(4.0)
""")
def test_a_pass_inside_a_hook(torch):
    x, seen = leaf(torch, 2.0), []

    def without(_):
        z = leaf(torch, 3.0)
        words = "element 0 of tensors does not require grad and does not have a grad_fn"
        seen.append(error((z * z).backward, words=words))

    def within(_):
        with torch.enable_grad():
            z = leaf(torch, 3.0)
            (z * z).backward()
        seen.append(z.grad)

    x.register_hook(without)
    x.register_hook(within)
    (x * x).backward()
    return seen, x.grad


@pytest.mark.row("edge_38")
@pytest.mark.slow
def test_a_chain_of_100_000():
    x = leaf(jaxgrad, 1.0)
    y = x
    for _ in range(100_000):
        y = y + 1
    y.backward()
    assert x.grad.item() == 1


@pytest.mark.row("edge_39")
def test_tasks_on_one_leaf():
    x = leaf(jaxgrad, 2.0)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: (x * x).backward(), range(100)))
    assert x.grad.item() == 400


@pytest.mark.row("edge_39")
def test_one_shared_graph_in_several_threads():
    x = leaf(jaxgrad, 2.0)
    y = (x * x).exp()

    def attempt(_):
        try:
            y.backward()
        except RuntimeError as error:
            assert "second time" in str(error)
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(8))) == 1


@pytest.mark.row("edge_39")
def test_grad_mode_is_of_one_thread():
    with jaxgrad.no_grad(), ThreadPoolExecutor(1) as pool:
        assert pool.submit(jaxgrad.is_grad_enabled).result()


# ---- compiled


@pytest.mark.row("edge_40")
def test_a_compiled_step():
    seen = []

    def step(w, x):
        w = w.detach().requires_grad_()
        hidden = (w * x).sin()
        hidden.register_hook(lambda g: seen.append(type(g)) or g * 2)
        hidden.sum().backward()
        return w.grad, (w - 0.1 * w.grad).detach()

    compiled = jaxgrad.jit(step)
    w = numbers(jaxgrad, 1.0, 2.0).detach()
    for scale in (1.0, 2.0, 3.0):
        x = numbers(jaxgrad, scale, scale).detach()
        eager, ours = step(w, x), compiled(w, x)
        for mine, theirs in zip(ours, eager, strict=True):
            assert mine.tolist() == pytest.approx(theirs.tolist(), rel=1e-14)
        w = ours[1]
    assert len(compiled.traces) == 1 and w.grad is None
    assert len(seen) == 3 + 3  # at each call, eager or compiled


@pytest.mark.row("edge_40")
def test_no_numbers_in_a_compiled_function():
    words = "needs the numbers of a tensor of shape .*, which is being traced: inside jaxgrad.jit"
    reads = (lambda x: x.item(), bool, float, "{:.2f}".format)
    for read in (*reads, lambda x: x.tolist(), lambda x: x.numpy()):
        with pytest.raises(RuntimeError, match=words):
            jaxgrad.jit(lambda x, read=read: read(x.sum()))(jaxgrad.ones(2))


@pytest.mark.row("edge_40")
def test_no_tracer_is_left_in_a_gradient():
    outside = leaf(jaxgrad, 2.0)
    jaxgrad.jit(lambda x: (outside * x).backward())(jaxgrad.tensor(3.0))
    assert outside.grad.item() == 3
    refused = pytest.raises(RuntimeError, match="traced, but the tensor was not")
    with refused, pytest.warns(UserWarning, match="is read while JAX traces"):
        jax.jit(lambda x: (outside * wrap(x)).backward())(3.0)
    assert outside.grad.item() == 3
    (outside * 3).backward()
    assert outside.grad.item() == 6


# Cases without an answer of PyTorch, and those of several threads, run uncompiled alone.
COMPILED = [test for test in list(globals().values()) if hasattr(test, "body")]


@pytest.mark.slow
@pytest.mark.parametrize("test", COMPILED, ids=lambda test: test.__name__)
def test_the_cases_compiled(test):
    under_jit(test)()
