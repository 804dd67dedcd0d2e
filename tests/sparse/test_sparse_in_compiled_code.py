"""Sparse tensors in compiled functions, where indices are not known: results, patterns and
gradients are those of the uncompiled function.
"""

import pytest

import jaxgrad as torch

nn, optim = torch.nn, torch.optim


def repeated():
    """Two elements at one index."""
    indices, values = [[0, 1, 1, 0], [1, 0, 0, 2]], [1.0, 2.0, 3.0, -4.0]
    return torch.sparse_coo_tensor(indices, values, (2, 3), requires_grad=True)


def other():
    """One index in common with `repeated`, in another order."""
    indices, values = [[1, 0, 0], [0, 0, 2]], [0.5, 2.0, 1.5]
    return torch.sparse_coo_tensor(indices, values, (2, 3), requires_grad=True)


def sorted_one():
    return repeated().detach().coalesce().requires_grad_()


def sorted_other():
    return other().detach().coalesce().requires_grad_()


def zero_sum():
    return torch.sparse_coo_tensor([[0, 1, 1]], [1.0, 2.0, -2.0], (3,), requires_grad=True)


def rows():
    values = torch.arange(6.0).reshape(3, 2) - 2
    return torch.sparse_coo_tensor([[0, 1, 1]], values, (3, 2), requires_grad=True)


def empty():
    indices = torch.zeros(2, 0, dtype=torch.int64)
    return torch.sparse_coo_tensor(indices, torch.zeros(0), (2, 3), requires_grad=True)


def wide():
    return (torch.arange(6.0).reshape(2, 3) - 2).requires_grad_()


def tall():
    return torch.arange(6.0).reshape(3, 2).requires_grad_()


def places():
    return torch.tensor([[0, 1, 1], [1, 0, 0]])


def shown(value):
    """Tensors as numbers, sparse ones with their pattern."""
    if isinstance(value, list | tuple):
        return list(map(shown, value))
    if not isinstance(value, torch.Tensor):
        return value
    if value.layout is not torch.sparse_coo:
        return torch.round(value.detach().double(), decimals=4).tolist()
    pattern = value.is_coalesced(), value._indices().tolist(), list(value.shape)
    return [*pattern, shown(value._values()), value.requires_grad]


def made_of(d, indices):
    return torch.sparse_coo_tensor(indices, d.reshape(-1)[:3], (2, 3))


def sum_with_factor(s, t):
    factor = s.coalesce()
    return factor * t + factor - factor * t * factor


FUNCTIONS = {
    "square": (lambda s: s * s, repeated),
    "square of coalesced": (lambda s: s * s, sorted_one),
    "cube": (lambda s: s.pow(3), repeated),
    "abs": (lambda s: s.abs(), repeated),
    "root": (lambda s: (s * s).sqrt(), repeated),
    "root of elements alone": (lambda s: (s.square() + s.square()).sqrt(), repeated),
    "abs of sums that are zero": (lambda s: (s * s, s.abs()), zero_sum),
    "rows": (lambda s: (s * s, s.abs().sum()), rows),
    "no elements": (lambda s: s * s, empty),
    "coalesce": (lambda s: s.coalesce(), repeated),
    "coalesce and dense": (lambda s: s.coalesce().to_dense(), repeated),
    "values of coalesced": (lambda s: s.values(), sorted_one),
    "is_coalesced": (lambda s: [t.is_coalesced() for t in (s, s * s, s.coalesce())], repeated),
    "product": (lambda s, t: s * t, repeated, other),
    "product of coalesced": (lambda s, t: s * t, sorted_one, sorted_other),
    "product with itself made anew": (lambda s: (s * 1) * s, repeated),
    "with a number": (lambda s: s.coalesce() * 3 / 2, repeated),
    "with infinity": (lambda s: (s.detach().coalesce() * float("inf")).to_dense(), repeated),
    "by zero": (lambda s: (s.detach().coalesce() / 0).to_dense(), repeated),
    "floor division": (lambda s: torch.div(s.detach(), 2, rounding_mode="floor"), repeated),
    "with a dense one": (lambda s, d: (s * d, s * s * d), repeated, wide),
    "sum of two": (lambda s, t: s + t, repeated, other),
    "sum of coalesced": (lambda s, t: s + t, sorted_one, sorted_other),
    "sum of both kinds": (lambda s, t: (s * s + t, s * s + t * t), repeated, other),
    "sums of a product and a factor": (
        lambda s, t: (s * t + s, s.coalesce() * t + s.coalesce(), sum_with_factor(s, t)),
        repeated,
        other,
    ),
    "square of a difference": (lambda s, t: (s - t).square(), repeated, other),
    "sum": (torch.sparse.sum, repeated),
    "sum of squares": (lambda s: torch.sparse.sum(s * s), repeated),
    "sum of rows": (lambda s: torch.sparse.sum(s, 0), repeated),
    "sum of columns of squares": (lambda s: torch.sparse.sum(s * s, 1), repeated),
    "squares of sums": (lambda s: torch.sparse.sum(s, 0).square(), repeated),
    "mm": (lambda s, d: torch.sparse.mm(s, d), repeated, tall),
    "mm of squares": (lambda s, d: torch.sparse.mm(s * s, d) + (s * s) @ d, repeated, tall),
    "added to a dense one": (lambda s, d: d + s * s, repeated, wide),
    "transpose": (lambda s: (s * s).t(), repeated),
    "square of a transpose": (lambda s: s.t().square(), repeated),
    "cat": (lambda s: torch.cat([s * s, s]), repeated),
    "square of a cat": (lambda s: torch.cat([s * s, s]).square(), repeated),
    "mask": (lambda s, d: d.sparse_mask(s), repeated, wide),
    "mask of a product": (lambda s, d: d.sparse_mask(s * s), repeated, wide),
    "sparse mask": (lambda s, t: s.sparse_mask(t), repeated, other),
    "detach": (lambda s: (s * s).detach(), repeated),
    "other dtype": (lambda s: (s * s).to(torch.float64), repeated),
    "gradient": (lambda s: torch.autograd.grad((s * s).to_dense().sum(), s)[0], repeated),
    "made inside": (lambda d, i: made_of(d, i).square(), wide, places),
    "made of constants": (lambda d: made_of(d, places()).square(), wide),
}


def results_of(function, arguments):
    """The results of two calls, and the gradients of their squares."""
    results = []
    for _ in range(2):
        tensors = [argument() for argument in arguments]
        result = function(*tensors)
        results.append(shown(result))
        outputs = result if isinstance(result, tuple) else [result]
        outputs = [o for o in outputs if isinstance(o, torch.Tensor) and o.requires_grad]
        for output in outputs:
            (output.to_dense() ** 2).sum().backward(retain_graph=True)
        results.append([shown(x.grad if x.grad is None else x.grad.to_dense()) for x in tensors])
    return results


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_patterns_and_gradients(name):
    function, *arguments = FUNCTIONS[name]
    compiled = torch.jit(function)
    assert results_of(compiled, arguments) == results_of(function, arguments)
    assert len(compiled.traces) == 1


def test_squares_of_sums():
    (squares, dense), s = torch.jit(lambda s: (s * s, (s * s).to_dense()))(repeated()), repeated()
    assert squares.indices().tolist() == [[0, 0, 1], [1, 2, 0]]
    assert squares.values().tolist() == [1, 16, 25] and dense.tolist() == [[0, 1, 16], [25, 0, 0]]
    torch.jit(lambda s: torch.sparse.sum(s * s))(s).backward()
    assert s.grad.to_dense().tolist() == [[0, 2, -8], [10, 0, 0]]


def test_mask_with_two_elements_at_one_index():
    dense = wide()
    torch.jit(lambda d, mask: d.sparse_mask(mask))(dense, repeated().detach()).sum().backward()
    assert dense.grad.tolist() == [[0, 1, 1], [2, 0, 0]]  # as in PyTorch


def test_second_derivative():
    def f(s):
        (slope,) = torch.autograd.grad((s * s * s).to_dense().sum(), s, create_graph=True)
        return slope.to_dense()

    s = repeated()
    torch.jit(f)(s).sum().backward()
    assert s.grad.to_dense().tolist() == [[0, 6, -24], [30, 0, 0]]


COUNTED = {
    "values": lambda s: s.coalesce().values(),
    "indices": lambda s: (s * s).indices(),
    "_nnz": lambda s: (s * s)._nnz(),
    "_values": lambda s: (s * s)._values(),
    "select": lambda s: (s * s)[0],
    "unsqueeze": lambda s: (s * s).unsqueeze(0),
    "softmax": lambda s: torch.sparse.softmax(s, 1),
    "mm": lambda s: torch.sparse.mm(s, s.t()),
}


@pytest.mark.parametrize("name", COUNTED)
def test_what_depends_on_the_number_of_elements_says_so(name):
    with pytest.raises(RuntimeError, match=r"\(\) needs the numbers of a tensor.*being traced"):
        torch.jit(COUNTED[name])(repeated())


@pytest.mark.filterwarnings("ignore:.*runs uncompiled")
def test_fallback_runs_it_uncompiled():
    function = torch.compile(lambda s: s.coalesce().values() * 2)
    assert function(repeated()).tolist() == [2, -8, 10]


# ---- state


def of_state(jit):
    holder, results = type("Holder", (), {})(), []
    holder.sum = repeated().detach()

    def f(x):
        holder.sum = holder.sum * x
        holder.square = holder.sum * holder.sum
        return holder.sum.to_dense()

    step = jit(f)
    for _ in range(3):
        results.append(shown([step(torch.tensor(2.0)), holder.sum, holder.square]))
    return results


def of_new_patterns(jit):
    holder, results = type("Holder", (), {})(), []
    holder.kept = repeated().detach()

    def f(indices):
        square = holder.kept * holder.kept
        holder.kept = made_of(torch.arange(6.0), indices)
        return square, holder.kept.abs()

    step = jit(f)
    for shift in range(5):
        results.append(shown(step((places() + shift) % 2)))
    return results


def of_a_captured_one(jit):
    s = repeated()
    return shown(jit(lambda x: (s.coalesce().values() * x, (s * s).indices()))(torch.tensor(2.0)))


def of_a_list(jit):
    kept = []

    def f(s):
        kept.append(s * s)
        return kept[-1].to_dense()

    step = jit(f)
    return [shown([step(repeated().detach()), *kept]) for _ in range(3)]


def of_a_buffer(jit):
    module, results = nn.Module(), []
    module.register_buffer("total", repeated().detach())

    def f(x):
        module.total = module.total * module.total + module.total * x
        return module.total.to_dense()

    step = jit(f)
    for _ in range(2):
        results.append(shown([step(torch.tensor(2.0)), module.total]))
    return results


def of_a_leaf(jit):
    s, results = repeated(), []

    def f(x):
        s.grad = None
        ((s * s).to_dense() * x).sum().backward()
        return s.grad.to_dense()

    step = jit(f)
    for x in (1.0, 2.0):
        results.append(shown([step(torch.tensor(x)), s.grad.to_dense()]))
    return results


def embedding():
    layer = nn.Embedding(5, 2, sparse=True)
    with torch.no_grad():
        layer.weight.copy_(torch.arange(10.0).reshape(5, 2) / 4)
    return layer


LOOKUPS = [1, 1, 3], [0, 2, 2], [4, 4, 4]


def of_gradients(jit):
    table, results = embedding(), []

    def f(i):
        table.zero_grad()
        (table(i) ** 2).sum().backward()
        gradient = table.weight.grad
        return gradient * gradient, gradient.coalesce().to_dense(), torch.sparse.sum(gradient)

    step = jit(f)
    for lookup in LOOKUPS:
        results.append(shown([*step(torch.tensor(lookup)), table.weight.grad]))
    return results


def of_steps(name, is_inside, change=lambda gradient: gradient, **options):
    def program(jit):
        table, results = embedding(), []

        def optimizer():
            return getattr(optim, name)(table.parameters(), lr=0.125, **options)

        outside = None if is_inside else optimizer()

        def f(i):
            opt = optimizer() if is_inside else outside
            for _ in range(2):
                opt.zero_grad()
                (table(i) ** 2).sum().backward()
                table.weight.grad = change(table.weight.grad)
                opt.step()
            return table.weight.detach() * 1

        step = jit(f)
        for lookup in LOOKUPS:
            results.append(shown(step(torch.tensor(lookup))))
        return results

    program.__name__ = f"{name}_{'inside' if is_inside else 'outside'}"
    return program


def shortened(gradient):
    return gradient * torch.sparse.sum(gradient * gradient).rsqrt()


STATE = [
    of_state,
    of_new_patterns,
    of_a_captured_one,
    of_a_list,
    of_a_buffer,
    of_a_leaf,
    of_gradients,
    of_steps("SparseAdam", True),
    of_steps("SparseAdam", False, lambda gradient: gradient * gradient),
    of_steps("SGD", True, momentum=0.5),
    of_steps("SGD", False, shortened),
    of_steps("Adagrad", True),
    of_steps("Adagrad", False, lambda gradient: gradient.coalesce() * 0.5),
]


@pytest.mark.parametrize("program", STATE, ids=lambda program: program.__name__)
def test_state_is_that_of_the_uncompiled_function(program):
    assert program(torch.jit) == program(lambda function: function)
