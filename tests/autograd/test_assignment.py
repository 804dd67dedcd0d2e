"""Assignment to parts of tensors, `out=`, and tensors that come to show something else: rows D18,
D27, D28, E05 and edge case 31 with all that they touch, as PyTorch has them.
"""

import jax
import pytest
from helpers.as_torch import as_torch, error
from helpers.compiled import under_jit

import jaxgrad
import jaxgrad.nn.functional as F

# x[index] = value


@pytest.mark.slow
@as_torch("tensor([[1.0, 5.0, 11.0, 6.0], [0.0, 1.0, 2.0, 13.0], [1.0, 5.0, 1.0, 6.0]])")
def test_setitem_lists_and_index_tensors(torch):
    x = torch.zeros(3, 4)
    x[[0, 2]] = 1.0
    x[:, torch.tensor([1, 3])] = torch.tensor([5.0, 6.0])
    x[1, ...] = torch.arange(4)
    x[torch.tensor([0, 1]), torch.tensor([2, 3])] += 10
    return x


@as_torch("tensor([[0.0, 1.0, 2.0, 3.0], [4.0, 0.0, 1.0, 2.0], [0.0, 1.0, 2.0, 3.0]])")
def test_setitem_masks(torch):
    x = torch.arange(12.0).reshape(3, 4)
    x[x > 8] = -1
    x[x == 0] = torch.tensor(7.0)
    x[torch.tensor([True, False, True])] = torch.arange(4.0)
    x[x > 4] = torch.arange(float((x > 4).sum()))
    return x


@as_torch("tensor([[0.0, 2.0, 4.0, 6.0], [0.0, 2.0, 4.0, 6.0], [0.0, 2.0, 4.0, 6.0]])")
def test_setitem_whole_none_and_leading_ones(torch):
    x = torch.zeros(3, 4)
    x[:] = 7
    x[...] = torch.arange(4.0)
    x[0:2, None, 1] = torch.ones(1, 1, 1)
    x[()] = x * 2
    return x


@as_torch("""
    tensor([5, 2, 3])
    RuntimeError(
     'Index put requires the source and destination dtypes match, got Long for the '
     'destination and Float for the source.')
""")
def test_setitem_converts_to_the_tensors_dtype(torch):
    a = torch.zeros(3, dtype=torch.int64)
    a[1] = 2.7
    a[2] = torch.tensor(3.9)
    a[torch.tensor([0])] = 5
    return a, error(a.__setitem__, torch.tensor([0]), torch.tensor([5.5]), words="dtypes match")


@as_torch
def test_setitem_errors(torch):
    x = torch.zeros(3, 4)
    return [
        error(x.__setitem__, 0, torch.zeros(5), words="must match the existing size"),
        error(x.__setitem__, 7, 0.0, words="out of bounds"),
        error(x.__setitem__, 0, [1, 2], words="can't assign a list"),
        error(x.__setitem__, torch.ones(2, dtype=torch.bool), 1.0, words="shape of the mask"),
        x,
    ]


@pytest.mark.slow
@as_torch("""
    tensor([6.0, 8.0, 15.0], requires_grad=True)
    tensor([0.0, 10.0, 7.0])
""")
def test_setitem_gradients(torch):
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 1
    y[0] = y[1].clone() * y[2].clone()
    y[1:] += y[:2].clone()
    y[torch.tensor([2])] *= 3
    y.sum().backward()
    return y, x.grad


@as_torch("""
    tensor([2.0, 5.0, 0.0], requires_grad=True)
    tensor([8.0, 0.0, 0.0])
""")
def test_setitem_of_a_number_clears_the_gradient(torch):
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 2
    y[1] = 5.0
    y[x > 2] = 0
    (y * y).sum().backward()
    return y, x.grad


@as_torch("""
    tensor([4, 4, 4, 4])
    True
    7
    tensor([0.5, 1.0])
""")
def test_augmented_assignment(torch):
    i = torch.zeros(4, dtype=torch.int64)
    before = i
    i += 3
    i //= 2
    i **= 2
    i %= 3
    i |= 4
    i ^= 1
    i &= 6
    f = torch.ones(2)
    f /= 2
    f -= 0.25
    f *= torch.tensor([2.0, 4.0])
    return i, i is before, i._version, f


# out=


@as_torch("""
    True
    tensor([[2.5, 2.5, 2.5], [2.5, 2.5, 2.5]], dtype=float64)
    1
""")
def test_out_is_written_and_returned(torch):
    out = torch.zeros(2, 3, dtype=torch.float64)
    same = torch.mul(torch.ones(2, 3), 2.5, out=out) is out
    return same, out, out._version


@as_torch("""
    tensor([[2.0, 2.0, 2.0], [2.0, 2.0, 2.0]])
    tensor([1.0, 1.0, 0.0])
""")
def test_out_that_is_empty_is_resized(torch):
    empty, joined = torch.zeros(0), torch.zeros(0)
    torch.add(torch.ones(2, 3), 1, out=empty)
    torch.cat([torch.ones(2), torch.zeros(1)], out=joined)
    return empty, joined


@as_torch("""
    tensor([5.0, 7.0])
    tensor([1, 0])
    True
""")
def test_out_of_several_results(torch):
    values, indices = torch.zeros(0), torch.zeros(0, dtype=torch.int64)
    results = torch.max(torch.tensor([[1.0, 5.0], [7.0, 2.0]]), 1, out=(values, indices))
    return values, indices, results[0] is values


@as_torch("tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 0.0]])")
def test_out_that_is_a_view(torch):
    x = torch.zeros(3, 2)
    torch.exp(torch.zeros(2), out=x[1])
    torch.ones(3, out=x[:, 0])
    return x


@as_torch("""
    RuntimeError("result type Float can't be cast to the desired output type Long")
    RuntimeError(
     "add(): functions with out=... arguments don't support automatic differentiation, "
     'but one of the arguments requires grad.')
    RuntimeError(
     "add(): functions with out=... arguments don't support automatic differentiation, "
     'but one of the arguments requires grad.')
    tensor([0, 0])
""")
def test_out_errors(torch):
    x, leaf = torch.ones(2), torch.ones(2, requires_grad=True)
    integers = torch.zeros(2, dtype=torch.int64)
    words = "functions with out=... arguments don't support automatic differentiation"
    return [
        error(lambda: torch.mul(x, 2.5, out=integers), words="can't be cast to"),
        error(lambda: torch.add(leaf, x, out=torch.zeros(2)), words=words),
        error(lambda: torch.add(x, x, out=leaf), words=words),
        integers,
    ]


@as_torch("""
    tensor([2.0, 2.0], requires_grad=True)
    True
""")
def test_out_without_grad_mode(torch):
    x, leaf = torch.ones(2), torch.ones(2, requires_grad=True)
    with torch.no_grad():
        torch.add(leaf, x, out=leaf)
    return leaf, leaf.is_leaf


# what a tensor shows


@as_torch("""
    tensor([5.0, 5.0])
    tensor([1.0, 1.0, 1.0])
    tensor([0.0, 0.0, 0.0], requires_grad=True)
    True
    RuntimeError(
     'data set to a tensor that requires gradients must be floating point or complex '
     'dtype')
""")
def test_data_set_to_another_tensor(torch):
    a = torch.zeros(2, 3)
    row, source = a[0], torch.ones(2)
    a.data = source
    source.mul_(5)
    row.add_(1)
    leaf = torch.ones(2, requires_grad=True)
    leaf.data = torch.zeros(3)
    integers = torch.zeros(2, dtype=torch.int64)
    words = "must be floating point or complex"
    return a, row, leaf, leaf.is_leaf, error(setattr, leaf, "data", integers, words=words)


@as_torch("""
    tensor([5.0, 5.0, 5.0])
    tensor([2.0, 2.0, 2.0])
    2
    2
    True
""")
def test_data_set_twice_with_views_of_the_first_memory_around(torch):
    a = torch.zeros(2, 3)
    row = a[0]
    for value in (torch.ones(2), torch.ones(3)):
        a.data = value
        value.mul_(5)
        row.add_(1)
    return a, row, a._version, row._version, row._base is a


@as_torch("""
    tensor([4.0, 4.0])
    tensor([[0.0, 1.0], [2.0, 3.0]])
    RuntimeError('cannot resize variables that require grad')
""")
def test_set_and_resize(torch):
    x, source = torch.ones(3), torch.zeros(2)
    x.set_(source)
    source.add_(4)
    y = torch.arange(6.0)
    y.resize_(2, 2)
    leaf = torch.ones(3, requires_grad=True)
    return x, y, error(leaf.resize_, 2, words="cannot resize variables that require grad")


@as_torch("""
    [3, 2, 1]
    5
    tensor([[[3.0], [3.0]], [[3.0], [3.0]], [[3.0], [3.0]]])
    tensor([[3.0, 3.0, 3.0], [3.0, 3.0, 3.0]])
""")
def test_shape_in_place_with_views_around(torch):
    q = torch.zeros(2, 3)
    q.squeeze_()
    q.unsqueeze_(0)
    row = q[0]
    q.transpose_(0, 2)
    row.add_(1)
    q.mul_(3)
    return q.shape, q._version, q, row


@as_torch("""
    tensor([[0.0, 0.0], [2.0, 8.0], [4.0, 10.0]], requires_grad=True)
    tensor([0.0, 2.0, 4.0], requires_grad=True)
    tensor([[0.0, 4.0, 8.0], [0.0, 6.0, 10.0]])
""")
def test_shape_in_place_keeps_the_history(torch):
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    y = x * 2
    row = y[0]
    y.t_()
    y[0] = 0
    (y * torch.arange(6.0).reshape(3, 2)).sum().backward()
    return y, row, x.grad


@as_torch("""
    tensor([[0.0, 5.0, 0.0], [0.0, 5.0, 0.0]])
    tensor([[5.0, 5.0], [0.0, 0.0]])
    True
""")
def test_shape_in_place_of_a_view(torch):
    x = torch.zeros(2, 3)
    view = x[:, 1:]
    view.t_()
    view[0] += 5
    return x, view, view._is_view()


@as_torch("""
    tensor([[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0], [8.0, 9.0, 10.0, 11.0]])
    tensor([100.0, 104.0, 108.0, 101.0, 105.0, 109.0, 102.0, 106.0, 110.0, 103.0, 107.0, 111.0])
    tensor([[0.0, 4.0, 8.0], [1.0, 5.0, 9.0], [2.0, 6.0, 10.0], [3.0, 7.0, 11.0]])
    [1, 4]
    RuntimeError(
     "view size is not compatible with input tensor's size and stride (at least one "
     'dimension spans across two contiguous subspaces). Use .reshape(...) instead.')
""")
def test_strides_decide_whether_reshape_copies(torch):
    x = torch.arange(12.0).reshape(3, 4)
    copied = x.t().reshape(-1)
    copied.add_(100)
    z = x.t() * 1
    other = z.reshape(-1)
    other.zero_()
    return x, copied, z, z.stride(), error(x.t().view, -1, words="view size is not compatible")


@as_torch
def test_layouts_that_code_can_see(torch):
    x = torch.zeros(3, 4)
    return [
        x.t().stride(),
        torch.zeros_like(x.t()).stride(),
        x.t().contiguous().stride(),
        x.contiguous() is x,
        x[1:, 1].storage_offset(),
        x[1].data_ptr() - x.data_ptr(),
        x[1].untyped_storage().data_ptr() == x.untyped_storage().data_ptr(),
        x.clone().data_ptr() == x.data_ptr(),
        x.view(-1).data_ptr() == x.data_ptr(),
        x.untyped_storage().nbytes(),
        x.diagonal().stride(),
        x.unfold(1, 2, 2).stride(),
        x.expand(2, 3, 4).is_contiguous(),
        torch.zeros(1, 2, 2, 2).contiguous(memory_format=torch.channels_last).stride(),
    ]


@pytest.mark.slow
@as_torch("tensor([4.0-1.0j, 1.0+5.0j])")
def test_writes_through_complex_views(torch):
    c = torch.zeros(2, dtype=torch.complex64)
    c.real.add_(1)
    c.imag[1] = 5
    torch.view_as_real(c)[0, 1] = 9
    c.conj()[0] = 4 + 1j
    return c


@as_torch("""
    tensor([[2.0], [2.0]])
    tensor([[2.0, 2.0, 2.0], [2.0, 2.0, 2.0]])
    RuntimeError(
     'unsupported operation: more than one element of the written-to tensor refers to a '
     'single memory location. Please clone() the tensor before performing the operation.')
""")
def test_fill_of_expanded_tensors(torch):
    x = torch.zeros(2, 1)
    wide = x.expand(2, 3)
    wide.fill_(2)
    return x, wide, error(wide.add_, 1, words="more than one element of the written-to tensor")


@as_torch("""
    tensor([[3.0, 0.0], [0.0, 3.0], [0.0, 0.0], [0.0, 0.0]])
    tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
""")
def test_fill_diagonal(torch):
    x = torch.zeros(4, 2)
    x.fill_diagonal_(3)
    return x, torch.zeros(5, 2).fill_diagonal_(1, wrap=True)


@as_torch("""
    True
    tensor([0.0, 0.0, 2.0], requires_grad=True)
    tensor([0.0, 0.0, 1.0])
    tensor([-0.5, 2.0])
    tensor([-0.6321205496788025])
""")
def test_activations_in_place(torch):
    functional = torch.nn.functional
    x = torch.tensor([-1.0, 0.0, 2.0], requires_grad=True)
    y = x * 1
    result = functional.relu(y, inplace=True)
    y.sum().backward()
    z = functional.leaky_relu_(torch.tensor([-1.0, 2.0]), 0.5)
    return result is y, y, x.grad, z, functional.elu(torch.tensor([-1.0]), inplace=True)


@as_torch("""
    RuntimeError(
     'A view was created in no_grad mode and is being modified inplace with grad mode '
     'enabled. Given that this use case is ambiguous and error-prone, it is forbidden. '
     'You can clarify your code by moving both the view and the inplace either both '
     "inside the no_grad block (if you don't want the inplace to be tracked) or both "
     'outside (if you want the inplace to be tracked).')
    tensor([[1.0, 1.0], [1.0, 1.0]], requires_grad=True)
""")
def test_a_view_made_under_no_grad_of_one_of_several(torch):
    base = torch.ones(2, 2, requires_grad=True) * 1
    piece = base.chunk(2)[0]
    with torch.no_grad():
        row = piece[0]
    words = "A view was created in no_grad mode and is being modified inplace with grad mode"
    return error(row.fill_, 2.0, words=words), base


# inside a compiled function, where PyTorch is no oracle


def test_a_compiled_function_writes_to_tensors_of_its_own():
    @jaxgrad.jit
    def f(x):
        b = x * 1
        h = jaxgrad.zeros(3, 2)
        for t in range(3):
            h[t] = b * t
        b.mul_(3)
        b[0] = 7.0
        h[:, 1].add_(b.sum())
        h[h > 5] = 0
        (h.sum() + (b * b).sum()).backward()
        return h.detach(), x.grad

    h, gradient = f(jaxgrad.tensor([1.0, 2.0], requires_grad=True))
    # h is [[0, 13], [1, 15], [2, 17]] before what is above 5 becomes 0; b is [7, 3 * x[1]]
    assert h.tolist() == [[0, 0], [1, 0], [2, 0]]
    assert gradient.tolist() == [3, 36]


def test_a_compiled_function_writes_to_its_constants():
    @jaxgrad.jit
    def f(x):
        c = jaxgrad.tensor([1.0, 2.0])
        c += x
        c[0] = 5
        return c

    assert f(jaxgrad.ones(2)).tolist() == [5, 3]


def test_a_compiled_function_reads_strides():
    @jaxgrad.jit
    def f(x):
        return x.stride(), x.t().reshape(-1)._is_view()

    x = jaxgrad.zeros(2, 3)
    assert f(x) == ((3, 1), False)
    assert f(x.t()) == ((1, 3), True)


def write_data(x):
    x.data = x * 2


WRITES = {
    "a tensor": lambda x: x.add_(1),
    "a view": lambda x: x[:1].add_(1),
    "a detached tensor": lambda x: x.detach().add_(1),
    "another shape": lambda x: x.unsqueeze_(0),
    "transposed": lambda x: x.t_(),
    "data": write_data,
    "all of it": lambda x: x.zero_(),
    "twice": lambda x: x.mul_(2).add_(x),
}


def with_its_view(x):
    return x, x[1:]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "make"),
    [(name, lambda x: (x, x)) for name in WRITES] + [(name, with_its_view) for name in WRITES],
)
def test_a_compiled_function_writes_to_an_argument_and_to_what_is_outside(name, make):
    def state(x, view):
        return x.tolist(), view.tolist(), x._version, x.stride(), x.shape

    def run(compile):
        argument, outside = (make(jaxgrad.arange(6.0).view(2, 3).clone()) for _ in range(2))
        to_argument = compile(lambda x: [WRITES[name](x)].clear())
        to_outside = compile(lambda: [WRITES[name](outside[0])].clear())
        for _ in range(2):
            to_argument(argument[0])
            to_outside()
            yield state(*argument), state(*outside)

    assert list(run(jaxgrad.jit)) == list(run(lambda function: function))


def test_a_compiled_function_writes_to_a_view_of_what_is_outside():
    base = jaxgrad.arange(4.0)
    view, other = base[1:3], base.view(2, 2)
    step = jaxgrad.jit(lambda: view.mul_(10))
    assert step() is view and step() is view
    assert (base.tolist(), other.tolist()) == ([0, 100, 200, 3], [[0, 100], [200, 3]])
    assert len(step.traces) == 1 and base._version == 2


def test_a_compiled_function_uses_two_tensors_of_one_memory():
    base = jaxgrad.arange(4.0)
    view = base[1:3]
    assert jaxgrad.jit(lambda: base.sum() + view.sum())().item() == 9
    assert jaxgrad.jit(lambda: view.add_(1).sum() + base.sum())().item() == 13
    assert base.tolist() == [0, 2, 3, 3] and base._version == 1
    assert view.add_(1)._base.tolist() == [0, 3, 4, 3]


def test_as_strided_of_what_does_not_show_its_memory():
    x = jaxgrad.arange(6.0)
    gaps, tail = x[::2].detach(), x[2:].detach()
    assert gaps.as_strided((2,), (1,)).tolist() == tail.as_strided((2,), (1,), 0).tolist() == [0, 1]
    assert tail.as_strided((2,), (2,)).tolist() == [2, 4]
    assert x.reshape(2, 3).t().as_strided((2,), (1,), 1).tolist() == [1, 2]


def test_a_view_of_what_was_taken_out_of_the_graph():
    x = jaxgrad.ones(2, requires_grad=True)
    y = x * 2
    view = y[0]
    y.mul_(3)
    y.detach_()
    assert not view.requires_grad and view.item() == 6


@pytest.mark.slow
def test_writes_under_vmap_and_grad_of_jax():
    def f(array):
        b = jaxgrad.as_tensor(array) * 1
        z = jaxgrad.zeros(3)
        z += b
        z[1] *= b[0]
        return (z * z).sum()._array

    def plain(b):
        z = b.at[1].multiply(b[0])
        return (z * z).sum()

    x = jax.numpy.arange(6.0).reshape(2, 3) + 1
    expected = jax.vmap(jax.grad(plain))(x)
    assert jax.numpy.allclose(jax.vmap(jax.grad(f))(x), expected)
    assert jax.numpy.allclose(jax.jit(jax.vmap(jax.grad(f)))(x), expected)
    tangent = jax.jvp(f, (x[0],), (x[1],))[1]
    assert jax.numpy.allclose(tangent, jax.jvp(plain, (x[0],), (x[1],))[1])


def test_writes_inside_func_grad():
    def f(x):
        y = x * 1
        y.mul_(x)
        y[0] = 0
        return y.sum()

    x = jaxgrad.tensor([1.0, 2.0, 3.0])
    assert jaxgrad.func.grad(f)(x).tolist() == [0, 4, 6]
    assert x.tolist() == [1, 2, 3]


@pytest.mark.slow
def test_writes_to_second_order():
    x = jaxgrad.tensor([1.0, 2.0, 3.0], dtype=jaxgrad.float64, requires_grad=True)
    y = x * 1
    y[1:].mul_(x[:2])
    y.pow_(3)
    (first,) = jaxgrad.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = jaxgrad.autograd.grad((first * first).sum(), x)

    def plain(x):
        y = jax.numpy.concatenate([x[:1], x[1:] * x[:2]])
        return (y**3).sum()

    with jax.enable_x64(True):
        values = x.detach()._array
        expected = jax.grad(lambda x: (jax.grad(plain)(x) ** 2).sum())(values)
        assert jax.numpy.allclose(second._array, expected, rtol=1e-12)


def test_numpy_arrays_are_read_only_and_stay_as_they_were():
    x = jaxgrad.ones(2)
    seen = x.numpy()
    x.add_(1)
    assert seen.tolist() == [1, 1]
    with pytest.raises(ValueError, match="read-only"):
        seen[0] = 5


def test_a_failed_write_changes_nothing():
    x = jaxgrad.arange(3.0)
    view = x[1:]
    for write in (
        lambda: x.add_(jaxgrad.ones(4)),
        lambda: x.add_(1j),
        lambda: view.copy_(jaxgrad.zeros(3)),
        lambda: F.threshold_(x, "a", 1),
    ):
        with pytest.raises((RuntimeError, TypeError)):
            write()
    assert x.tolist() == [0, 1, 2] and view.tolist() == [1, 2] and x._version == 0


@pytest.mark.parametrize("fill", [lambda x: x.fill_(1), lambda x: x.zero_()])
def test_filling_an_expanded_view_is_checked_like_other_writes(fill):
    base = jaxgrad.ones(2, 1, requires_grad=True) * 1
    with jaxgrad.no_grad():
        unrecorded = base.expand(2, 3)
    several = base.unsqueeze(0).expand(2, 2, 3).unbind()[0]
    for view, words in ((unrecorded, "no_grad mode"), (several, "multiple views")):
        with pytest.raises(RuntimeError, match=words):
            fill(view)
    fill(base.expand(2, 3))
    assert base.tolist() == [[fill(jaxgrad.ones(())).item()]] * 2


def numbers(torch, *values, **options):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True, **options)


@pytest.mark.row("edge_31")
@as_torch("""
    [True, True, 'CopySlices']
    tensor([2.0, 7.0, 0.0], dtype=float64, requires_grad=True)
    tensor([7.0, 0.0], dtype=float64, requires_grad=True)
    tensor([10.0, 6.0], dtype=float64)
""")
def test_setitem_with_gradients_of_both(torch):
    x = numbers(torch, 2.0, 3.0)
    b = torch.zeros(3, dtype=torch.float64)
    view = b[1:]
    b[:2] = x
    kinds = b.requires_grad, view.requires_grad, b.grad_fn.name().split("::")[-1]
    (view * view).sum().backward(retain_graph=True)
    b[1] = 7.0
    (b * 10).sum().backward()
    return kinds, b, view, x.grad


@pytest.mark.slow
@pytest.mark.parametrize(
    "test", [test_setitem_with_gradients_of_both], ids=lambda test: test.__name__
)
def test_under_jit(test):
    """The body of a test above, inside of one compiled function."""
    under_jit(test)()
