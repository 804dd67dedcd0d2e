"""Transformations of functions, row by row of PyTorch's behaviour."""

import pytest
from helpers.as_torch import as_torch, error, parameters

import jaxgrad

# where our message says more, or names a structure in JAX's form
STRUCTURE = "Expected pytree structure of cotangents to be the same as pytree structure of outputs"
PRIMALS = (
    "jvp(f, primals, tangents): Expected primals and tangents to have the same python structure"
)
SCALAR = "Expected f(*args) to return a scalar Tensor, got tensor with {} dims"


def point(torch, *values):
    return torch.tensor(values or (1.0, 2.0), dtype=torch.float64)


def f(x, y):
    return (x.sin() * y).sum()


@pytest.mark.row("K01")
@pytest.mark.slow
@as_torch
def test_func_grad(torch):
    grad, x = torch.func.grad, point(torch)
    return [
        parameters(grad),
        grad(f)(x, point(torch, 3.0, -1.0)),
        grad(lambda x, y: (x * y).sum())(x, 2.0),
        grad(lambda x: (x.conj() * x).real.sum())(torch.tensor([3 + 4j])),
        grad(lambda x: x.sum().detach())(x),
        grad(lambda x, *, k: (x * k).sum())(x, k=x),
        error(grad(lambda x: x), x, words=SCALAR.format(1)),
        error(grad(lambda x: x.sum().view(1, 1)), x, words=SCALAR.format(2)),
        error(grad(lambda x: 1.0), x),
        error(grad(lambda x: (x.sum(), 1)), x),
        error(grad(lambda x: x), 1.0),
        error(grad(lambda x: x.sum()), torch.tensor([3]), words="only Tensors of floating point"),
    ]


@pytest.mark.row("K02")
@as_torch
def test_argnums_of_func_grad(torch):
    def of(argnums):
        return torch.func.grad(f, argnums=argnums)(point(torch), point(torch, 3.0, -1.0))

    wrong = (4, -3, (0, 0), (0, -2), (), "x", (0, "x"), [0], 1.0, None)
    return [
        [of(argnums) for argnums in (0, 1, -1, (0,), (1, 0), (0, -1))],
        [error(of, w) for w in wrong],
    ]


@pytest.mark.row("K03")
@as_torch("""
    [{'w': tensor([6.0, 8.0], dtype=float64),
      'b': [tensor([2.0, 2.0], dtype=float64), tensor([0.0], dtype=float64)],
      'pair': [tensor([0.0], dtype=float64), tensor(11.75, dtype=float64)]},
     tensor([2.0, 4.0], dtype=float64)]
    tensor([0.0, 0.0], dtype=float64)
""")
def test_trees_of_arguments_and_unused_ones(torch):
    def loss(params, x):
        return (params["w"] * x + params["b"][0]).sum() * params["pair"][1]

    params = {
        "w": point(torch),
        "b": [point(torch, 0.5, 0.25), point(torch, 1.0)],
        "pair": (point(torch, 5.0), torch.tensor(2.0, dtype=torch.float64)),
    }
    gradients = torch.func.grad(loss, argnums=(0, 1))(params, point(torch, 3.0, 4.0))
    return gradients, torch.func.grad(lambda x, y: y.sum())(point(torch), point(torch))


@pytest.mark.row("K04")
@as_torch
def test_has_aux_returns_more_beside_the_gradient(torch):
    grad, x = torch.func.grad, point(torch)
    gradient, aux = grad(lambda x: (x.sin().sum(), {"twice": x * 2, "x": x}), has_aux=True)(x)
    return [
        gradient,
        aux,
        error(grad(lambda x: x.sum(), has_aux=True), x),
        error(grad(lambda x: (x.sum(), 1, 2), has_aux=True), x),
        error(grad(lambda x: [x.sum(), 1], has_aux=True), x),
    ]


@pytest.mark.row("K04")
@as_torch("""
    [[tensor([1.0, 4.0], requires_grad=True), tensor([3.0, 3.0])],
     [tensor([1.0, 4.0], requires_grad=True), tensor([3.0, 3.0])]]
    [tensor([1.0, 4.0], requires_grad=True), tensor([3.0, 3.0])]
""")
def test_aux_keeps_the_history_that_is_somebody_elses(torch):
    w, x, func = torch.tensor([1.0, 2.0], requires_grad=True), torch.ones(2), torch.func

    def value(x):
        return (x * w.detach()).sum(), (w * w, x * 3)

    results = [transform(value, has_aux=True)(x)[1] for transform in (func.grad, func.jacrev)]
    return results, func.vjp(value, x, has_aux=True)[2]


@pytest.mark.row("K04")
def test_aux_is_anything():
    gradient, aux = jaxgrad.func.grad(lambda x: (x.sum(), {"n": 1, "s": "x"}), has_aux=True)(
        jaxgrad.ones(2)
    )
    assert gradient.tolist() == [1, 1] and aux == {"n": 1, "s": "x"}


@pytest.mark.row("K05")
@as_torch("""
    [['func', 'required'], ['argnums', 0], ['has_aux', False]]
    [tensor([1.6209069176044193, 0.4161468365471424], dtype=float64),
     tensor(1.6151155275980076, dtype=float64)]
    [[tensor([0.8414709848078965, 0.9092974268256817], dtype=float64),
      tensor([1.6209069176044193, 0.4161468365471424], dtype=float64)],
     tensor(1.6151155275980076, dtype=float64)]
    [tensor([1.0, 1.0], dtype=float64),
     [tensor(3.0, dtype=float64), tensor([2.0, 4.0], dtype=float64)]]
""")
def test_grad_and_value(torch):
    of, x, y = torch.func.grad_and_value, point(torch), point(torch, 3.0, -1.0)
    return [
        parameters(of),
        of(f)(x, y),
        of(f, argnums=(1, 0))(x, y),
        of(lambda x: (x.sum(), x * 2), has_aux=True)(x),
    ]


@pytest.mark.row("K06")
@pytest.mark.slow
@as_torch("""
    [tensor([12.0, 24.0], dtype=float64),
     tensor([12.0, 24.0], dtype=float64),
     tensor([[2.0, 0.0], [0.0, 4.0]], dtype=float64),
     tensor([[12.0, 0.0], [0.0, 12.0]], dtype=float64)]
    tensor([12.0, 24.0], dtype=float64)
    tensor([0.0, 0.0], dtype=float64)
    tensor([3.0, 12.0], dtype=float64)
""")
def test_no_grad_outside_and_inside(torch):
    def partly(x):
        with torch.no_grad():
            shift = x * 5
        return ((x + shift) ** 2).sum()

    def wholly(x):
        with torch.no_grad():
            return (x * x).sum()

    def then_more(x):
        with torch.no_grad():
            inner = torch.func.grad(lambda y: (y**3).sum())(x)
        return (inner * x).sum()

    x, (grad, vjp) = point(torch), (torch.func.grad, torch.func.vjp)
    with torch.no_grad():
        outside = [grad(partly)(x), vjp(partly, x)[1](point(torch, 1.0)[0])[0]]
        outside += [torch.func.jacrev(lambda x: x * x)(x), torch.func.hessian(partly)(x)]
    return outside, grad(partly)(x), grad(wholly)(x), grad(then_more)(x)


@pytest.mark.row("K07")
@as_torch
def test_func_vjp(torch):
    vjp, x = torch.func.vjp, point(torch)
    tree, pull = vjp(lambda x, y: {"s": x.sin(), "p": (x * y).sum()}, x, x * 2)
    cotangents = {"s": x, "p": x[1]}
    output, pull_one, aux = vjp(lambda x: (x * x, x + 1), x, has_aux=True)
    return [
        parameters(vjp),
        tree,
        [pull(cotangents), pull(cotangents)],
        [output, aux, pull_one(x)],
        error(vjp, lambda x: (x > 0).long(), x),
        error(pull, x, words=STRUCTURE),
        error(pull_one, point(torch, 1.0, 2.0, 3.0)),
        error(vjp, lambda x: 3, x),
        error(vjp, lambda x: x, 3),
        error(lambda: vjp(lambda x: x, x, has_aux=True)),
        vjp(lambda: x)[0],
    ]


@pytest.mark.row("K08")
@as_torch
def test_func_jvp(torch):
    jvp, x, t = torch.func.jvp, point(torch), point(torch, 3.0, -1.0)
    return [
        parameters(jvp),
        jvp(lambda x, y: {"s": x.sin(), "p": (x * y).sum()}, (x, t), (t, x)),
        jvp(lambda x: torch.ones(2), (x,), (t,)),
        jvp(lambda x: (x * x, x + 1), (x,), (t,), has_aux=True),
        error(jvp, lambda x: x, x, t),
        error(jvp, lambda x: x, (x,), (t, t), words=PRIMALS),
        error(jvp, lambda x: x, (x,), [t], words=PRIMALS),
        error(lambda: jvp(lambda x: torch.ones(2), (x,), (t,), strict=True)),
        error(jvp, lambda x: x, (3.0,), (t,)),
        error(jvp, lambda x: x, (), ()),
        error(jvp, lambda x: 3, (x,), (t,)),
        error(lambda: jvp(lambda x: x, (x,), (t,), has_aux=True)),
        error(jvp, lambda x: x, (x,), (point(torch, 1.0),), words="a different size than that of"),
    ]


@pytest.mark.row("K09")
@as_torch
def test_func_linearize(torch):
    x, t = point(torch), point(torch, 3.0, -1.0)
    output, linear = torch.func.linearize(lambda x: (x.sin(), (x * x).sum()), x)
    return [
        output,
        [linear(t), linear(x)],
        error(linear, point(torch, 1.0, 2.0, 3.0)),
        error(linear, t.float()),
        error(lambda: linear(t, t), words="to have the same argspec as the primals"),
    ]


@pytest.mark.row("K10", "K11", "K12")
@pytest.mark.slow
@as_torch
def test_errors_of_jacobians(torch):
    func, x, z = torch.func, point(torch), torch.tensor([1j])
    randomly = func.jacfwd(lambda x: x * torch.rand(2), randomness="same")
    return [
        [parameters(transform)[:4] for transform in (func.jacrev, func.jacfwd, func.hessian)],
        error(lambda: func.jacrev(lambda x: x, chunk_size=0)),
        error(func.jacrev(lambda x: x), z),
        error(func.jacrev(lambda x: x * 1j), x),
        error(func.jacfwd(lambda x: x), z),
        error(func.jacfwd(lambda x: x * torch.rand(2)), x),
        error(func.jacfwd(lambda x: x, randomness="q"), x),
        list(randomly(x).shape),
        func.hessian(f, argnums=(0, 1))(x, x * 2),
        func.jacrev(lambda x: {"a": x.sin(), "b": x[0] * x}, chunk_size=1)(x),
        func.jacfwd(lambda x: {"a": x.sin(), "b": x[0] * x})(x),
    ]


@pytest.mark.row("K11")
def test_derivatives_of_complex_results():
    """PyTorch refuses them: a derivative along a real number is as complex as the result."""
    jacobian = jaxgrad.func.jacfwd(lambda x: x * 1j)(jaxgrad.ones(2))
    assert jacobian.tolist() == [[1j, 0], [0, 1j]]


@pytest.mark.row("K13")
@pytest.mark.slow
@as_torch
def test_what_vmap_takes_and_gives(torch):
    vmap, x, y = torch.func.vmap, torch.arange(6.0).view(3, 2), torch.ones(2)
    return [
        parameters(vmap),
        vmap(lambda x: (x, y * 2), out_dims=(0, None))(x),
        vmap(lambda x: y * 2, out_dims=None)(x),
        vmap(lambda x: {"a": x, "b": (y, x)}, out_dims={"a": 1, "b": (None, 0)})(x),
        error(vmap(lambda x: x, out_dims=None), x),
        error(vmap(lambda x: (y, x), out_dims=(None, None)), x),
        error(vmap(lambda x: x, out_dims=(0, 0)), x, words="out_dims is not compatible with the"),
        error(vmap(lambda x: x, out_dims="a"), x),
        error(vmap(lambda x: x, out_dims=5), x),
        error(vmap(lambda x, y: x), x, torch.ones(2)),
        error(lambda: vmap(lambda x: x, chunk_size=0)(x)),
        error(vmap(lambda x: 3), x),
        error(vmap(lambda: y)),
        error(vmap(lambda x: x), torch.ones(())),
        error(vmap(lambda x: x, in_dims=(0, 0)), x, words="is not compatible with the structure"),
        error(vmap(lambda x: x, in_dims="a"), x),
        error(vmap(lambda x: x, in_dims=1.5), x),
        error(vmap(lambda x: x, in_dims=(None,)), x, words="Expected at least one Tensor to vmap"),
        error(vmap(lambda x: x, in_dims=3), x),
        error(vmap(lambda x: x), 3.0),
    ]


@pytest.mark.row("K14")
@pytest.mark.slow
@as_torch
def test_randomness_is_asked_for(torch):
    vmap, x = torch.func.vmap, torch.zeros(4, 3)
    again = vmap(lambda x: x + torch.rand(3), randomness="same")(x)
    return [
        error(vmap(lambda x: x + torch.rand(3)), x),
        error(vmap(lambda x: torch.nn.functional.dropout(x)), x),
        error(lambda: vmap(lambda x: x, randomness="q")(x)),
        (again == again[0]).all(),
    ]


@pytest.mark.row("K15")
@as_torch
def test_errors_of_vmap(torch):
    vmap, x, shared = torch.func.vmap, torch.ones(3, 2), torch.zeros(2)
    item = "vmap: It looks like you're calling .item() on a Tensor"
    flow = (
        "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow"
    )
    shape = "vmap: We do not support batching operators that can"
    return [
        error(vmap(lambda x: x * x.sum().item()), x, words=item),
        error(vmap(lambda x: x * float(x[0])), x, words=item),
        error(vmap(lambda x: [1, 2, 3][x]), torch.tensor([0, 1]), words=item),
        error(vmap(lambda x: x if x.sum() > 0 else -x), x, words=flow),
        error(vmap(lambda x: x if x[0] and x[1] else -x), x, words=flow),
        error(vmap(lambda x: x.nonzero()), x, words=shape),
        error(vmap(lambda x: x[x > 0]), x, words=shape),
        error(vmap(lambda x: shared.add_(x)), x)["error"],
        error(vmap(vmap(lambda x: x if x > 0 else -x)), x, words=flow),
        shared,
    ]


@pytest.mark.row("K16")
@pytest.mark.slow
@as_torch("""
    {'weight': tensor([[[0.0, -5.0]], [[-14.0, -21.0]], [[-36.0, -45.0]]]),
     'bias': tensor([[-5.0], [-7.0], [-9.0]])}
    {'weight': tensor([[-50.0, -71.0]]), 'bias': tensor([-21.0])}
""")
def test_per_sample_gradients(torch):
    model = torch.nn.Linear(2, 1)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[1.0, -2.0]]))
        model.bias.fill_(0.5)
    params = {name: parameter.detach() for name, parameter in model.named_parameters()}

    def loss(params, x, y):
        return ((torch.func.functional_call(model, params, (x,)) - y) ** 2).sum()

    x, y = torch.arange(6.0).view(3, 2), torch.tensor([[1.0], [0.0], [-1.0]])
    per_sample = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))
    return per_sample(params, x, y), torch.func.grad(loss)(params, x, y)


@pytest.mark.row("K19")
@as_torch
def test_functionalize_and_norms(torch):
    func, x = torch.func, torch.arange(4.0)

    def writes(x):
        copy = x.clone()
        copy[1:].mul_(3)
        return copy

    net = torch.nn.Sequential(torch.nn.BatchNorm1d(2), torch.nn.InstanceNorm1d(2))
    net.add_module("inner", torch.nn.Sequential(torch.nn.BatchNorm2d(1, affine=False)))
    same = func.replace_all_batch_norm_modules_(net) is net
    norm = net[0].eval()
    return [
        parameters(func.functionalize),
        func.functionalize(writes)(x),
        func.functionalize(writes, remove="mutations_and_views")(x),
        error(lambda: func.functionalize(writes, remove="q")(x), words="received invalid argument"),
        [same, norm.running_mean, norm.track_running_stats, net[2][0].num_batches_tracked],
        list(net.state_dict()),
        norm(torch.tensor([[1.0, 2.0], [3.0, 6.0]])),
        parameters(func.debug_unwrap),
        func.debug_unwrap(x),
        func.grad(lambda x: func.debug_unwrap(x).requires_grad * x.sum() + x.sum())(x),
    ]


@pytest.mark.row("K19")
@as_torch
def test_rearrange_moves_dimensions(torch):
    rearrange, x = torch.func.rearrange, torch.arange(24.0).view(2, 3, 4)
    wrong = [
        "a b c -> a b",
        "a b -> a b",
        "a b c -> a b c d",
        "a a c -> a c",
        "a b c",
        "a -> b -> c",
        "a (b c -> a b c",
        "a b c -> a b ... c",
        "1a b c -> b c 1a",
        "(... a) b c -> ... a b c",
    ]
    words = ["only on one side", "Number of dimensions in pattern (2) must be equal", "only on one"]
    words += [
        "contains duplicate dimension 'a'",
        "single '->'",
        "single '->'",
        "Imbalanced parenth",
    ]
    words += ["Ellipsis found in right side", "Invalid axis identifier: 1a", "Ellipsis is parenth"]
    return [
        [
            rearrange(x, pattern)
            for pattern in (
                "a b c -> c (a b)",
                "... c -> c ...",
                "a ... -> (a ...)",
                "a b c->b c 1 a",
            )
        ],
        rearrange(x, "a b (c1 c2) -> c1 a b c2", c1=2),
        rearrange(x[:, :1], "a 1 c -> (a c)"),
        rearrange([x, x], "n a b c -> a b c n"),
        [error(rearrange, x, w, words=word) for w, word in zip(wrong, words, strict=True)],
        error(lambda: rearrange(x, "a b c -> a b c", z=2)),
        error(lambda: rearrange(x, "a b (c1 c2) -> a b c1 c2", c1="x")),
    ]


@pytest.mark.row("K19")
def test_a_dimension_that_is_not_one():
    """PyTorch uses the first of three."""
    with pytest.raises(ValueError, match="a dimension of size 3 is not made of"):
        jaxgrad.func.rearrange(jaxgrad.ones(2, 3), "a 1 -> a")
    with pytest.raises(ValueError, match="cannot infer the sizes of two dimensions"):
        jaxgrad.func.rearrange(jaxgrad.ones(4), "(a b) -> a b")


@pytest.mark.row("K20")
def test_requires_grad_inside():
    """Of a tensor that is made inside, which is a leaf there; PyTorch refuses it. What would lose
    the gradient that is asked for raises."""
    func = jaxgrad.func

    def through_a_leaf(x):
        w = jaxgrad.tensor([2.0, 3.0]).requires_grad_()
        (slope,) = jaxgrad.autograd.grad((w**2 * x).sum(), w, create_graph=True)
        return (slope * x).sum()  # of 2 w x^2

    x, words = jaxgrad.tensor([1.0, 5.0]), r"You are attempting to call Tensor.requires_grad_\(\)"
    assert func.grad(through_a_leaf)(x).tolist() == [8, 60]
    assert func.grad(lambda x: (x.requires_grad_() * x).sum())(x).tolist() == [2, 10]

    def switched_off(x):
        x.requires_grad_(False)
        return (x * x).sum()

    def product(x, **options):
        cube = jaxgrad.autograd.functional.vjp(lambda y: y**3, x, jaxgrad.ones(2), **options)
        return cube[1].sum()  # of 3 x^2

    for call in (
        lambda: func.grad(switched_off)(x),
        lambda: func.vjp(switched_off, x),
        lambda: func.jacrev(switched_off)(x),
        lambda: func.grad(product)(x),
    ):
        with pytest.raises(RuntimeError, match=words):
            call()
    assert func.grad(lambda x: product(x, create_graph=True))(x).tolist() == [6, 30]


@pytest.mark.row("K21")
def test_saved_tensor_hooks():
    """The hooks are called inside and around a transform, where PyTorch refuses them."""
    packed, func = [], jaxgrad.func

    def hooks():
        return jaxgrad.autograd.graph.saved_tensors_hooks(
            lambda x: packed.append(x.tolist()) or x, lambda x: x * 10
        )

    def cube(x):
        with hooks():
            return (x.exp().sin()).sum()

    x = jaxgrad.tensor([0.0])
    plain = func.grad(lambda x: x.exp().sin().sum())(x)
    for way in (
        lambda: func.grad(cube)(x),
        lambda: func.vjp(cube, x)[1](jaxgrad.ones(()))[0],
        lambda: func.jacrev(cube)(x),
    ):
        packed.clear()
        # exp's result and sine's argument are ten times as large in the backward pass
        assert abs(way().item() - 10 * jaxgrad.tensor(10.0).cos().item()) < 1e-5
        assert packed == [[1.0], [1.0]]
    with hooks():
        assert func.grad(lambda x: x.exp().sin().sum())(x) != plain
