"""In-place operators and version counters, row by row of PyTorch's behaviour.

What a backward pass needs stays what it was when it was saved: jaxgrad's gradients are right where
PyTorch raises, and it raises the same only under `strict_versions`.
"""

import re

import pytest
from helpers.as_torch import as_torch, error, leaf, strict
from helpers.compiled import under_jit

import jaxgrad

OVERWRITTEN = (
    "one of the variables needed for gradient computation has been modified by an inplace operation"
)


def kind(tensor):
    """The name of the operator that a tensor comes from."""
    return None if tensor.grad_fn is None else tensor.grad_fn.name().split("::")[-1]


def vector(torch, **options):
    return leaf(torch, 1.0, 2.0, 3.0, dtype=torch.float64, **options)


def matrix(torch):
    values = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def set_item(tensor, index, value):
    tensor[index] = value


def augmented(tensor, value):
    tensor += value


# ---- leaves


@pytest.mark.row("E01")
@as_torch
def test_a_leaf_in_place(torch):
    x = vector(torch)
    calls = [
        (x.add_, 1.0),
        (x.mul_, x),
        (x.zero_,),
        (x.copy_, torch.zeros(3)),
        (x.clamp_, 0.0, 1.0),
        (x.masked_fill_, x > 2, 0.0),
        (x.index_add_, 0, torch.tensor([0]), torch.zeros(1, dtype=torch.float64)),
        (x.unsqueeze_, 0),
        (augmented, x, 1.0),
    ]
    return [error(*call) for call in calls], x, x._version


@pytest.mark.row("E01")
@as_torch("""
    tensor([5.0, 3.0, 3.0])
    True
    3
    True
""")
def test_a_plain_leaf_may_be_written(torch):
    x = torch.zeros(3)
    returned = x.add_(1)
    x += 2
    x[0] = 5
    return x, returned is x, x._version, x.is_leaf


@pytest.mark.row("E02")
@as_torch
def test_a_view_of_a_leaf_in_place(torch):
    x = matrix(torch)
    calls = [
        (x[0].mul_, 2.0),
        (x.t().add_, 1.0),
        (x.view(-1)[1:].zero_,),
        (set_item, x, 0, 1.0),
        (set_item, x, (slice(None), 1), 1.0),
        (set_item, x[0], 1, 1.0),
    ]
    return [error(*call) for call in calls], x


@pytest.mark.row("E02")
@as_torch("""
    RuntimeError('a leaf Variable that requires grad is being used in an in-place operation.')
    RuntimeError('a leaf Variable that requires grad is being used in an in-place operation.')
    tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype=float64, requires_grad=True)
""")
def test_setting_where_a_mask_is_true_of_a_leaf(torch):
    x = matrix(torch)
    index = torch.tensor([0])
    return error(set_item, x, x > 2, 1.0), error(set_item, x, index, 1.0), x


@pytest.mark.row("E03")
@as_torch("""
    [3, True, True, None, tensor([7.0, 3.0, 5.0], dtype=float64, requires_grad=True)]
    tensor([14.0, 6.0, 10.0], dtype=float64)
    tensor(14.0, dtype=float64, requires_grad=True)
""")
def test_a_leaf_in_place_under_no_grad(torch):
    x = vector(torch)
    y = (x * x).sum()
    with torch.no_grad():
        x -= 0.5
        x[0] = 7.0
        x[1:].mul_(2.0)
    state = x._version, x.is_leaf, x.requires_grad, x.grad_fn, x
    (x * x).sum().backward()
    return state, x.grad, y


@pytest.mark.row("E03")
@as_torch("""
    [tensor(144.0, dtype=float64),
     tensor(3.1883673600000018, dtype=float64),
     tensor(1.5980661832456913, dtype=float64),
     tensor(0.888087259245612, dtype=float64)]
    tensor([0.44116213213198147, 0.8823242642639629, 1.3234863963959445],
           dtype=float64, requires_grad=True)
    tensor([0.0, 0.0, 0.0], dtype=float64)
    4
""")
def test_steps_of_an_optimizer(torch):
    w = vector(torch)
    losses = []
    for _ in range(4):
        loss = ((w * w).sum() - 2.0) ** 2
        loss.backward()
        losses.append(loss.detach())
        with torch.no_grad():
            w -= 0.01 * w.grad
            w.grad.zero_()
    return losses, w, w.grad, w._version


@pytest.mark.row("E03")
@as_torch("""
    tensor([2.0, 8.0, 18.0], dtype=float64, requires_grad=True)
    'MulBackward0'
    tensor([2.0, 2.0, 2.0], dtype=float64)
""")
def test_no_history_is_kept_under_no_grad(torch):
    x = vector(torch)
    y = x * 2
    with torch.no_grad():
        y.mul_(x)
    y.sum().backward()
    return y, kind(y), x.grad


# ---- history


@pytest.mark.row("E04")
@as_torch("""
    ['MulBackward0', True, 1, False]
    tensor([2.0, 4.0, 6.0], dtype=float64, requires_grad=True)
    tensor([2.0, 2.0, 2.0], dtype=float64)
""")
def test_what_is_no_leaf_in_place(torch):
    x = vector(torch)
    y = x.clone()
    returned = y.mul_(2)
    state = kind(y), returned is y, y._version, y.is_leaf
    y.sum().backward()
    return state, y, x.grad


@pytest.mark.row("E04")
@as_torch("""
    tensor([0.826821810431806, 0.1561460412675079, 0.8637314889945044],
           dtype=float64, requires_grad=True)
    tensor([-0.7568024953079283, -1.609718754001305, -5.433470172039743], dtype=float64)
    tensor([0.44842056277784187, -0.9950728153671159, -3.787192132698306], dtype=float64)
    5
""")
def test_a_chain_of_operators(torch):
    x, c = vector(torch), vector(torch)
    y = x * 1
    y.mul_(c).add_(x).sin_().mul_(y.detach().clone())
    y *= c
    y.sum().backward()
    return y, x.grad, c.grad, y._version


@pytest.mark.row("E04")
@as_torch("""
    tensor([8.0, 8.0, 27.0], dtype=float64, requires_grad=True)
    tensor([0.0, 48.0, 81.0], dtype=float64, requires_grad=True)
    [tensor([0.0, 72.0, 81.0], dtype=float64)]
""")
def test_the_second_derivative(torch):
    x = vector(torch)
    y = x * x
    y.mul_(x)
    y[0] = x[1] ** 3
    (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    first = first * 1
    first.mul_(x)
    return y, first, torch.autograd.grad(first.sum(), x)


@pytest.mark.row("E04")
@as_torch("""
    [True, False, 'MulBackward0']
    tensor([1.0, 1.0, 1.0], dtype=float64)
    no_error
""")
def test_a_plain_tensor_times_one_that_requires_grad(torch):
    x, y = vector(torch), torch.ones(3, dtype=torch.float64)
    y.mul_(x)
    state = y.requires_grad, y.is_leaf, kind(y)
    y.sum().backward()
    return state, x.grad, error(y.data.add_, 1.0)


@pytest.mark.row("E04")
@as_torch("""
    tensor([2.5, 2.5])
    tensor([2, -2])
    tensor([True, False])
    [RuntimeError("result type Float can't be cast to the desired output type Long"),
     RuntimeError("result type Float can't be cast to the desired output type Long"),
     RuntimeError("result type Long can't be cast to the desired output type Bool"),
     RuntimeError("result type ComplexFloat can't be cast to the desired output type Float"),
     no_error]
""")
def test_the_result_keeps_the_dtype(torch):
    single, double = torch.ones(2), torch.ones(2, dtype=torch.float64)
    whole, truth = torch.tensor([1, 2]), torch.tensor([True, False])
    single.add_(double * 1.5)
    whole += True
    refused = [
        error(whole.add_, 1.5),
        error(whole.div_, 2, words="result type Float can't be cast to the desired output type"),
        error(truth.add_, 1),
        error(single.add_, 1j),
        error(whole.copy_, torch.tensor([2.9, -2.9])),
    ]
    return single, whole, truth, refused


@pytest.mark.row("E04")
@as_torch("""
    tensor([[2.0, 2.0, 2.0], [2.0, 2.0, 2.0]])
    [RuntimeError("output with shape [3] doesn't match the broadcast shape [2, 3]"),
     RuntimeError("output with shape [3] doesn't match the broadcast shape [1, 3]"),
     RuntimeError("output with shape [3] doesn't match the broadcast shape [2, 3]"),
     RuntimeError("output with shape [] doesn't match the broadcast shape [3]")]
""")
def test_broadcasting_never_enlarges(torch):
    small, large = torch.ones(3), torch.ones(2, 3)
    refused = [
        error(small.add_, large),
        error(small.mul_, torch.ones(1, 3)),
        error(small.copy_, large),
        error(torch.ones(()).add_, small),
    ]
    return large.add_(small), refused


@pytest.mark.row("E05")
@as_torch("""
    [True, False, 'CopySlices', 1]
    tensor([3.0, 0.0, 0.0], requires_grad=True)
    tensor(2.0)
""")
def test_setting_into_a_plain_tensor(torch):
    x, b = leaf(torch, 3.0), torch.zeros(3)
    b[0] = x
    state = b.requires_grad, b.is_leaf, kind(b), b._version
    (b * torch.tensor([2.0, 3.0, 4.0])).sum().backward()
    return state, b, x.grad


@pytest.mark.row("E05")
@pytest.mark.slow
@as_torch
def test_every_kind_of_index(torch):
    indices = [
        1,
        (0, 2),
        slice(0, 1),
        (slice(None), slice(None, None, 2)),
        (..., 1),
        (slice(None), None, 1),
        torch.tensor([[True, False, True], [False, True, False]]),
        torch.tensor([True, False]),
        torch.tensor([1, 0]),
        (torch.tensor([1, 0]), torch.tensor([2, 0])),
        (torch.tensor([1]), slice(1, None)),
        [0],
    ]
    answers = []
    for index in indices:
        x, value = matrix(torch), leaf(torch, 0.5, dtype=torch.float64)
        y = x * 1
        y[index] = value
        (y * y * y).sum().backward()
        answers.append((y, x.grad, value.grad))
    return answers


@pytest.mark.row("E05")
@pytest.mark.slow
@as_torch("""
    tensor([[5.0, 1.0, 2.0], [6.0, 1.0, 2.0]], dtype=float64, requires_grad=True)
    tensor([[4.0, 8.0, 0.0], [0.0, 0.0, 0.0]], dtype=float64)
    [RuntimeError(
      'The expanded size of the tensor (3) must match the existing size (2) at '
      'non-singleton dimension 0.  Target sizes: [3].  Tensor sizes: [2]'),
     IndexError('index 2 is out of bounds for dimension 0 with size 2')]
""")
def test_a_value_that_is_broadcast(torch):
    x, y = matrix(torch), torch.zeros(2, 3, dtype=torch.float64)
    y[:, 1:] = x[0, :2]
    y[:, 0:1] = x[:, 2:].detach()
    y[0, 0] = 5
    (y * y).sum().backward()
    refused = [
        error(set_item, y, 0, torch.ones(2), words="must match the existing size"),
        error(set_item, y, 2, 1.0),
    ]
    return y, x.grad, refused


@pytest.mark.row("E05")
@as_torch("""
    tensor([0.0, 3.0, 0.0, 3.0], dtype=float64, requires_grad=True)
    tensor([1.0, 0.0, 5.0, 0.0], dtype=float64, requires_grad=True)
    tensor([6.0, 6.0, 6.0], dtype=float64)
""")
def test_an_index_twice(torch):
    x = vector(torch)
    y = torch.zeros(4, dtype=torch.float64)
    y.index_add_(0, torch.tensor([1, 1, 3]), x)
    z = torch.zeros(4, dtype=torch.float64)
    z.index_put_((torch.tensor([0, 2, 2]),), x, accumulate=True)
    (y * z + y * y).sum().backward()
    return y, z, x.grad


# ---- views


@pytest.mark.row("E06")
@as_torch("""
    [True, 'CopySlices', 1, 1, 1]
    tensor([4.0, 8.0, 3.0], dtype=float64, requires_grad=True)
    tensor([4.0, 8.0], dtype=float64, requires_grad=True)
    tensor([8.0, 3.0], dtype=float64, requires_grad=True)
    [tensor([32.0, 64.0, 6.0], dtype=float64), tensor(40.0, dtype=float64)]
    tensor([32.0, 128.0, 12.0], dtype=float64)
    tensor(72.0, dtype=float64)
""")
def test_a_write_to_a_view(torch):
    x, c = vector(torch), leaf(torch, 4.0, dtype=torch.float64)
    b = x * 1
    v, other = b[:2], b[1:]
    v.mul_(c)
    state = b.requires_grad, kind(b), b._version, v._version, other._version
    (b * b).sum().backward(retain_graph=True)
    first = x.grad.clone(), c.grad.clone()
    (other * other).sum().backward()
    return state, b, v, other, first, x.grad, c.grad


@pytest.mark.row("E06")
@as_torch("""
    tensor([1.0, 8.0, 36.0], dtype=float64, requires_grad=True)
    tensor([8.0, 36.0], dtype=float64, requires_grad=True)
    tensor([36.0], dtype=float64, requires_grad=True)
    tensor([2.0, 64.0, 864.0], dtype=float64)
    True
""")
def test_a_view_of_a_view(torch):
    x = vector(torch)
    b = x * 1
    v = b[1:]
    w = v[1:]
    w.mul_(3)
    v.mul_(4)
    (b * b).sum().backward()
    return b, v, w, x.grad, w._base is b


@pytest.mark.row("E06")
@as_torch("""
    [True, True, True, False, False]
    tensor([[0.0, 0.0], [3.0, 0.0]], requires_grad=True)
    tensor(6.0)
""")
def test_a_view_of_a_plain_tensor(torch):
    x, b = leaf(torch, 3.0), torch.zeros(2, 2)
    row = b[1]
    row[0] = x
    column = b[:, 0]
    flags = b.requires_grad, row.requires_grad, column.requires_grad, b.is_leaf, row.is_leaf
    (column * column).sum().backward()
    return flags, b, x.grad


@pytest.mark.row("E07")
@as_torch("""
    False
    [True, False, 1]
    tensor([2.0, 3.0], dtype=float64, requires_grad=True)
    tensor([0.0, 4.0, 6.0], dtype=float64)
""")
def test_a_write_to_the_base(torch):
    x, b = vector(torch), torch.zeros(3, dtype=torch.float64)
    v = b[1:]
    before = v.requires_grad
    b.add_(x)
    after = v.requires_grad, v.is_leaf, v._version
    (v * v).sum().backward()
    return before, after, v, x.grad


@pytest.mark.row("E07")
@as_torch("""
    tensor(91.0, dtype=float64, requires_grad=True)
    tensor([[2.0, 4.0, 6.0], [8.0, 10.0, 12.0]], dtype=float64, requires_grad=True)
    tensor([[2.0, 5.0], [3.0, 6.0], [4.0, 7.0]], dtype=float64, requires_grad=True)
    [tensor([[4.0, 6.0, 8.0], [10.0, 12.0, 14.0]], dtype=float64)]
""")
def test_a_view_that_was_read_before(torch):
    x = matrix(torch)
    b = x * 1
    v = b.t()
    early = (v * v).sum()
    late = b * 2
    b += 1
    return early, late, v, torch.autograd.grad((v * v).sum(), x)


@pytest.mark.row("E08")
@as_torch("""
    [tensor([0.0, 2.0, 1.0], dtype=float64)]
    [tensor([2.0, 2.0, 1.0], dtype=float64)]
""")
def test_overlapping_views(torch):
    x = vector(torch)
    b = x * 1
    c, d = b[0:2], b[1:3]
    c.mul_(2)
    return torch.autograd.grad(d.sum(), x, retain_graph=True), torch.autograd.grad(b.sum(), x)


@pytest.mark.row("E08")
@as_torch("""
    tensor([3.0, 2.2431975046920716, 0.1411200080598672], dtype=float64, requires_grad=True)
    tensor([3.0, 2.2431975046920716], dtype=float64, requires_grad=True)
    tensor([2.2431975046920716, 0.1411200080598672], dtype=float64, requires_grad=True)
    tensor([14.305905076511634, -32.35384289946463, -14.57744123175995], dtype=float64)
    tensor([14.305905076511634, -18.047937822952996, 24.74884009172907], dtype=float64)
""")
def test_both_overlapping_views_written(torch):
    x, w = vector(torch), vector(torch)
    b = x * 1
    c, d = b[0:2], b[1:3]
    c.mul_(w[:2])
    d.sin_()
    c.add_(w[1:])
    (b * b * d.sum()).sum().backward()
    return b, c, d, x.grad, w.grad


# ---- version counters


@pytest.mark.row("E09")
def test_the_gradient_is_that_of_the_value_that_was_saved():
    x = vector(jaxgrad)
    y = x.exp()
    saved = y.tolist()
    y.add_(1)
    y.sum().backward()
    assert x.grad.tolist() == saved


@pytest.mark.row("E09")
def test_a_factor_that_was_overwritten():
    x = vector(jaxgrad)
    a, b = x * 1, x * 2
    product = a * b
    a.zero_()
    product.sum().backward()
    assert x.grad.tolist() == [4.0, 8.0, 12.0]  # of 2 x^2


def overwrite(torch, saving):
    """The error of a backward pass whose operator saved a tensor that is overwritten."""
    y = vector(torch) * 1
    z = saving(y)
    with torch.no_grad():
        y.add_(1)
        z.add_(1)
    return error(z.sum().backward, words=OVERWRITTEN if saving in SAVING else None)


SAVING = (
    lambda y: y.exp(),
    lambda y: y * y,
    lambda y: y.sin(),
    lambda y: y[:2] ** 2,
    lambda y: y / y,
)
SAVING_NOTHING = (
    lambda y: y + y,
    lambda y: y * 3,
    lambda y: y.clone(),
    lambda y: y[1:] * 1,
    lambda y: -y,
)


@pytest.mark.row("E09")
@as_torch
def test_strictly_a_saved_value_that_was_overwritten(torch):
    with strict(torch):
        return [overwrite(torch, saving) for saving in SAVING]


@pytest.mark.row("E09")
@as_torch("""
    RuntimeError(
     'one of the variables needed for gradient computation has been modified by an '
     'inplace operation: [torch.DoubleTensor [3]], which is output 0 of Mul, is at '
     'version 2; expected version 0 instead. Hint: enable anomaly detection to find the '
     'operation that failed to compute its gradient, with '
     'torch.autograd.set_detect_anomaly(True, check_nan=False).')
    no_error
""")
def test_strictly_a_write_through_a_view(torch):
    with strict(torch):
        y = vector(torch) * 1
        z = y * y
        y[0] = 3
        w = y[1:].exp()
        y.mul_(2)
        refusal = error(z.sum().backward, words=OVERWRITTEN)
        return refusal, error(w.sum().backward, words=None)


@pytest.mark.row("E09")
def test_strictly_what_the_error_says():
    with jaxgrad.autograd.graph.strict_versions():
        y = vector(jaxgrad).exp()  # saved here
        y.add_(1)  # written here
        with pytest.raises(RuntimeError) as raised:
            y.sum().backward()
    said = str(raised.value)
    assert "Exp" in said
    assert "[3]" in said
    assert "is at version 1; expected version 0" in said
    lines = [int(line) for line in re.findall(r"test_inplace\.py:(\d+)", said)]
    first = test_strictly_what_the_error_says.__code__.co_firstlineno
    assert sorted(lines) == [first + 3, first + 4]


@pytest.mark.row("E09")
def test_strict_versions_is_a_switch_and_a_context():
    def refused():
        y = vector(jaxgrad).exp()
        y.add_(1)
        return error(y.sum().backward)["error"]

    strict_versions = jaxgrad.autograd.graph.strict_versions
    assert refused() is None
    with strict_versions():
        assert refused() == "RuntimeError"
        with strict_versions(False):
            assert refused() is None
        assert refused() == "RuntimeError"
    assert refused() is None
    strict_versions(True)
    try:
        assert refused() == "RuntimeError"
    finally:
        strict_versions(mode=False)
    assert refused() is None


@pytest.mark.row("E10")
@as_torch("""
    no_error
    no_error
    no_error
    no_error
    no_error
""")
def test_strictly_what_was_not_saved_may_be_overwritten(torch):
    with strict(torch):
        return [overwrite(torch, operator) for operator in SAVING_NOTHING]


@pytest.mark.row("E10")
@as_torch("""
    RuntimeError(
     'one of the variables needed for gradient computation has been modified by an '
     'inplace operation: [torch.DoubleTensor [3]] is at version 1; expected version 0 '
     'instead. Hint: enable anomaly detection to find the operation that failed to '
     'compute its gradient, with torch.autograd.set_detect_anomaly(True, '
     'check_nan=False).')
    no_error
    tensor([3.0, 3.0, 3.0], dtype=float64)
""")
def test_strictly_a_step_before_backward(torch):
    def step(loss):
        with torch.no_grad():
            w.add_(1)
        return error(loss.sum().backward, words=OVERWRITTEN)

    with strict(torch):
        w = vector(torch)
        saved = step(w * w)
        return saved, error((w * 3).sum().backward), w.grad


def second_forward(layer, shape):
    x = jaxgrad.ones(shape, requires_grad=True)
    (layer(x) + layer(x * 2)).sum().backward()


def unpooling():
    x, indices = jaxgrad.ones(1, 1, 1, 1, requires_grad=True), jaxgrad.zeros(1, 1, 1, 1).long()
    total = jaxgrad.nn.functional.max_unpool2d(x, indices, 2).sum()
    with jaxgrad.no_grad():
        x.mul_(2)
    total.backward()


@pytest.mark.parametrize(
    "program",
    [
        lambda: second_forward(jaxgrad.nn.BatchNorm1d(3), (4, 3)),
        lambda: second_forward(jaxgrad.nn.InstanceNorm1d(3, track_running_stats=True), (4, 3, 5)),
        unpooling,
    ],
)
def test_strictly_what_pytorch_permits(program):
    """PyTorch's kernels do not count their writes to running statistics."""
    with strict(jaxgrad):
        program()


@pytest.mark.row("E10")
def test_a_step_before_backward():
    w = vector(jaxgrad)
    loss = (w * w).sum()
    with jaxgrad.no_grad():
        w.add_(1)
    loss.backward()
    assert w.grad.tolist() == [2.0, 4.0, 6.0]


@pytest.mark.row("E11")
@as_torch("""
    RuntimeError(
     'one of the variables needed for gradient computation has been modified by an '
     'inplace operation: [torch.DoubleTensor [3]], which is output 0 of Mul, is at '
     'version 1; expected version 0 instead. Hint: enable anomaly detection to find the '
     'operation that failed to compute its gradient, with '
     'torch.autograd.set_detect_anomaly(True, check_nan=False).')
    tensor([0.0, 0.0, 0.0], dtype=float64, requires_grad=True)
    1
""")
def test_strictly_a_write_through_detach(torch):
    with strict(torch):
        y = vector(torch) * 1
        z = y * y
        y.detach().zero_()
        return error(z.sum().backward, words=OVERWRITTEN), y, y._version


@pytest.mark.row("E11")
def test_a_write_through_detach():
    x = vector(jaxgrad)
    y = x * 1
    z = y * y
    y.detach().zero_()
    z.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0, 6.0]
    assert y.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.row("E11")
def test_a_write_through_data_is_seen():
    x = vector(jaxgrad)
    y = x * 1
    z = y * y
    y.data.mul_(5)
    assert (y._version, y.tolist()) == (1, [5.0, 10.0, 15.0])
    z.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0, 6.0]


@pytest.mark.row("E11")
def test_strictly_a_write_through_data_is_refused():
    with jaxgrad.autograd.graph.strict_versions():
        y = vector(jaxgrad) * 1
        z = y * y
        y.data.mul_(5)
        with pytest.raises(RuntimeError, match=OVERWRITTEN):
            z.sum().backward()


# ---- what is refused


MULTIPLE = "is a view and is being modified inplace"


@pytest.mark.row("E12")
@as_torch
def test_one_of_several_views_in_place(torch):
    makers = [
        lambda y: y.unbind(0)[0],
        lambda y: y.split(1)[1],
        lambda y: y.chunk(2)[0],
        lambda y: y.unbind(1)[2][1:],
    ]
    answers = []
    for make in makers:
        y = matrix(torch) * 1
        answers.append((error(make(y).mul_, 2.0, words=MULTIPLE), y))
    return answers


@pytest.mark.row("E12")
@as_torch("""
    tensor([[2.0, 2.0, 2.0], [8.0, 0.0, 0.0]])
    tensor([2.0, 2.0, 2.0])
    tensor([8.0, 0.0, 0.0])
    4
""")
def test_one_of_several_views_without_derivatives(torch):
    b = torch.zeros(2, 3)
    first, second = b.unbind(0)
    first.add_(1)
    with torch.no_grad():
        second[0] = 4
    for row in b.split(1):
        row.mul_(2)
    return b, first, second, b._version


@pytest.mark.row("E12")
def test_the_base_of_several_views_may_be_written():
    x = matrix(jaxgrad)
    b = x * 1
    first, second = b.unbind(0)
    b.mul_(3)
    (first * second).sum().backward()
    rows = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    assert x.grad.tolist() == [[9 * value for value in row] for row in reversed(rows)]


@pytest.mark.row("E13")
@as_torch
def test_a_view_that_was_made_under_no_grad(torch):
    y = matrix(torch) * 1
    with torch.no_grad():
        v = y[0]
    calls = (v.mul_, 2.0), (v[1:].add_, 1.0), (set_item, v, 0, 1.0)
    words = "created in no_grad mode and is being modified inplace with grad mode enabled"
    refused = [error(*call, words=words) for call in calls]
    with torch.no_grad():
        v.mul_(2)
    return refused, y


@pytest.mark.row("E13")
@as_torch("""
    RuntimeError(
     'A view was created in no_grad mode and is being modified inplace with grad mode '
     'enabled. Given that this use case is ambiguous and error-prone, it is forbidden. '
     'You can clarify your code by moving both the view and the inplace either both '
     "inside the no_grad block (if you don't want the inplace to be tracked) or both "
     'outside (if you want the inplace to be tracked).')
    tensor([1.0, 1.0, 1.0], dtype=float64)
    tensor([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]], dtype=float64)
""")
def test_a_plain_view_that_was_made_under_no_grad(torch):
    x, b = vector(torch), torch.zeros(2, 3, dtype=torch.float64)
    with torch.no_grad():
        v = b[0]
    v.add_(1)
    return error(v.mul_, x), v, b


@pytest.mark.row("E13")
@as_torch("""
    tensor([2.0, 8.0, 18.0], dtype=float64, requires_grad=True)
    tensor([2.0, 8.0, 18.0], dtype=float64, requires_grad=True)
    tensor([6.0, 40.0, 126.0], dtype=float64)
""")
def test_a_detached_tensor_that_was_made_under_no_grad(torch):
    x = vector(torch)
    y = x * 1
    with torch.no_grad():
        d = y.detach()
    d.mul_(2)
    d.mul_(x)
    (d * y).sum().backward()
    return y, d, x.grad


@pytest.mark.row("E15")
@as_torch
def test_an_expanded_tensor_in_place(torch):
    x = vector(torch)
    wide = (x * 1).expand(2, 3)
    plain = torch.zeros(1, 3).expand(2, 3)
    calls = [
        (wide.add_, 1.0),
        (wide.mul_, 2.0),
        (wide.t().exp_,),
        (plain.add_, torch.ones(2, 3)),
        (plain.copy_, torch.ones(2, 3)),
        (set_item, plain, (slice(None), 0), torch.ones(2)),
    ]
    words = "more than one element of the written-to tensor refers to a single memory location"
    return [error(*call, words=words) for call in calls], plain


@pytest.mark.row("E15")
@as_torch("""
    [tensor([[2.0, 2.0, 2.0]]), tensor([[2.0, 2.0, 2.0], [2.0, 2.0, 2.0]])]
    tensor([[0.0, 0.0, 0.0]])
    2
""")
def test_one_number_everywhere_in_an_expanded_tensor(torch):
    base = torch.zeros(1, 3)
    wide = base.expand(2, 3)
    wide.fill_(2.0)
    copies = base.clone(), wide.clone()
    wide.zero_()
    return copies, base, base._version


@pytest.mark.row("E15")
@as_torch("""
    tensor([[5.0, 4.0, 6.0], [5.0, 4.0, 6.0]], dtype=float64, requires_grad=True)
    tensor([5.0, 4.0, 6.0], dtype=float64, requires_grad=True)
    tensor([0.0, 16.0, 24.0], dtype=float64)
""")
def test_a_row_of_an_expanded_tensor(torch):
    x = vector(torch)
    base = x * 1
    wide = base.expand(2, 3)
    wide[0].mul_(2)
    wide[1, 0] = 5
    (base * base).sum().backward()
    return wide, base, x.grad


# ---- functions of the counter


@pytest.mark.row("E16")
@as_torch("""
    3
    2
""")
def test_increment_version_of_tensors(torch):
    x, y = torch.zeros(2), torch.zeros(3)
    increment = torch.autograd.graph.increment_version
    increment(x)
    increment([x, y])
    increment(t for t in (x[:1], y))
    return x._version, y._version


@pytest.mark.row("E16")
@as_torch("""
    RuntimeError(
     'one of the variables needed for gradient computation has been modified by an '
     'inplace operation: [torch.DoubleTensor [3]], which is output 0 of Mul, is at '
     'version 1; expected version 0 instead. Hint: enable anomaly detection to find the '
     'operation that failed to compute its gradient, with '
     'torch.autograd.set_detect_anomaly(True, check_nan=False).')
""")
def test_strictly_a_version_that_was_incremented(torch):
    with strict(torch):
        y = vector(torch) * 1
        z = y * y
        torch.autograd.graph.increment_version(y)
        return error(z.sum().backward, words=OVERWRITTEN)


@pytest.mark.row("E16")
@as_torch("RuntimeError('Inference tensors do not track version counter.')")
def test_a_tensor_of_inference_mode_has_no_version(torch):
    with torch.inference_mode():
        x = torch.zeros(2)
        torch.autograd.graph.increment_version(x)
    return error(lambda: x._version, words="Inference tensors do not track version counter")


@pytest.mark.row("E16")
@as_torch("""
    tensor([2.0, 2.0])
    0
    0
""")
def test_versions_that_are_preserved(torch):
    x, y = torch.zeros(2), torch.zeros(2)
    with torch.autograd._unsafe_preserve_version_counter(x):
        x.add_(1)
    with torch.autograd._unsafe_preserve_version_counter((x, y)):
        x.add_(1)
        y.mul_(1)
        y.mul_(1)
    return x, x._version, y._version


@pytest.mark.row("E17")
@as_torch("""
    tensor([14.778112197861299, 109.19630006628849, 806.8575869854702], dtype=float64)
    tensor([0.0, 0.0, 0.0], dtype=float64, requires_grad=True)
""")
def test_allow_mutation_on_saved_tensors(torch):
    x = vector(torch)
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        y = x.exp()
        z = y * y
        y.zero_()
        z.sum().backward()
    return x.grad, y


@pytest.mark.row("E17")
@as_torch("""
    RuntimeError('allow_mutation_on_saved_tensors contexts cannot be nested')
    AssertionError(
     "Trying to backward outside of the 'allow_mutation_on_saved_tensors' contextin "
     'which the graph was originally recorded.')
""")
def test_the_rules_of_allow_mutation_on_saved_tensors(torch):
    allow = torch.autograd.graph.allow_mutation_on_saved_tensors

    def nested():
        with allow(), allow():
            pass

    with allow():
        x = vector(torch)
        y = x * 1
        z = (y * y).sum()
        y.add_(1)
    words = "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context"
    return error(nested), error(z.backward, words=words)


# ---- hooks and gradients follow the tensor


@pytest.mark.row("edge_18")
@as_torch("""
    tensor([1.0, 1.0, 1.0], dtype=float64)
    True
""")
def test_retain_grad_follows_the_tensor(torch):
    b = vector(torch) * 1
    b.retain_grad()
    b.mul_(3)
    b.sum().backward()
    return b.grad, b.retains_grad


@pytest.mark.row("edge_18")
@as_torch("tensor([5.0, 15.0, 20.0], dtype=float64)")
def test_retain_grad_of_a_base_and_a_view(torch):
    b = vector(torch) * 1
    b.retain_grad()
    b[1:].mul_(3)
    v = b[:2]
    v.retain_grad()
    b.add_(1)
    ((b * b).sum() + v.sum()).backward()
    return b.grad


@pytest.mark.row("edge_18")
@as_torch("""
    False
    RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
""")
def test_retain_grad_of_leaves_and_plain_tensors(torch):
    x = vector(torch)
    x.retain_grad()
    return x.retains_grad, error(torch.ones(2).retain_grad)


@pytest.mark.row("edge_29")
@as_torch("""
    tensor([13.0, 5.0, 31.0], dtype=float64, requires_grad=True)
    tensor([5.0, 31.0], dtype=float64, requires_grad=True)
    [tensor([222.0, 594.0, 300.0], dtype=float64)]
""")
def test_views_and_writes(torch):
    x = vector(torch)
    b = x * 1
    v = b[1:]
    b.mul_(2)
    v.add_(x[:2])
    b[0] = v[0] + v[1]
    v[1] = b[0] * 2 + b[1]
    return b, v, torch.autograd.grad((b * b).sum(), x)


@pytest.mark.row("edge_31")
@as_torch("""
    [True, True]
    tensor([[0.0, 2.0], [4.0, 0.0]], requires_grad=True)
    tensor([0.0, 2.0, 4.0, 0.0], requires_grad=True)
    tensor(5.0)
""")
def test_a_view_after_a_plain_base_was_set(torch):
    x, b = leaf(torch, 2.0), torch.zeros(2, 2)
    v = b.view(4)
    b[0, 1] = x
    flags = v.requires_grad, kind(v) is not None
    v[2] = x * x
    b.sum().backward()
    return flags, b, v, x.grad


@pytest.mark.row("edge_32")
@as_torch("""
    tensor([[4.0, 4.0, 4.0, 4.0], [4.0, 4.0, 4.0, 4.0], [4.0, 4.0, 4.0, 4.0]], requires_grad=True)
    tensor([[16.0], [16.0], [16.0]])
    tensor([12.0, 12.0, 12.0, 12.0])
    tensor(12.0)
""")
def test_broadcasting_sums_back(torch):
    column, row = torch.ones(3, 1, requires_grad=True), torch.ones(4, requires_grad=True)
    number = leaf(torch, 2.0)
    y = torch.zeros(3, 4)
    y.add_(column).mul_(row).mul_(number).add_(column * row, alpha=2)
    y.sum().backward()
    return y, column.grad, row.grad, number.grad


@pytest.mark.row("edge_33")
@as_torch("""
    [1, 3]
    tensor([[2.0, 8.0], [4.0, 10.0], [6.0, 12.0]])
    [1, 3]
    tensor([[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]])
""")
def test_gradients_of_transposed_leaves(torch):
    x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).t().requires_grad_()
    (x * x).sum().backward()
    (plain,) = torch.autograd.grad(x.sum(), x)
    return x.stride(), x.grad, x.grad.stride(), plain


def numbers(torch, *values, **options):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True, **options)


MODIFIED = "has been modified by an inplace operation"


@pytest.mark.row("edge_30")
@as_torch
def test_strictly_saved_and_then_modified_in_place(torch):
    with strict(torch):
        x = numbers(torch, 1.0, 2.0)
        y = x.exp()
        y.add_(1)
        direct = error(y.sum().backward, words=MODIFIED)
        y = x.exp()
        y.detach().add_(1)
        detached = error(y.sum().backward, words=MODIFIED)
        product, multiple = (x * x).sum(), (x * 2.0).sum()
        with torch.no_grad():
            x -= 0.1
        saved = error(product.backward, words=MODIFIED)
        multiple.backward()
    return direct, detached, saved, x.grad


@pytest.mark.row("edge_30")
def test_saved_values_survive_writes():
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


@pytest.mark.slow
@pytest.mark.parametrize(
    "test", [test_strictly_saved_and_then_modified_in_place], ids=lambda test: test.__name__
)
def test_under_jit(test):
    """The body of a test above, inside of one compiled function."""
    under_jit(test)()


def test_a_real_result_for_a_complex_tensor():
    z = jaxgrad.tensor([3 + 4j])
    for name in ("abs_", "absolute_"):
        with pytest.raises(RuntimeError, match="In-place abs is not supported for complex tensors"):
            getattr(z, name)()
    assert z.tolist() == [3 + 4j]
    # a bool is written, and a complex out= takes real numbers
    assert z.eq_(3 + 4j).tolist() == [1]
    assert jaxgrad.abs(jaxgrad.tensor([3 + 4j]), out=z) is z and z.tolist() == [5]
