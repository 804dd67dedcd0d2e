"""An index of a compiled function that is a tensor without dimensions: it gives a view, as an int
does. Against the same code on NumPy's arrays, and against the function uncompiled with ints.
"""

import operator

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxgrad as torch
from jaxgrad.autograd import forward_ad
from jaxgrad.utils.checkpoint import checkpoint

KEYS = {
    "q[i]": lambda i: i,
    "q[i, :]": lambda i: (i, slice(None)),
    "q[:, i]": lambda i: (slice(None), i),
    "q[i, 1:]": lambda i: (i, slice(1, None)),
    "q[1:, i]": lambda i: (slice(1, None), i),
    "q[..., i]": lambda i: (..., i),
    "q[None, i]": lambda i: (None, i),
    "q[i, ..., None]": lambda i: (i, ..., None),
    "q[i, 0]": lambda i: (i, 0),
    "q[i, :, i]": lambda i: (i, slice(None), i),
}
INDICES = {
    "argument": lambda i: i,
    "computed": lambda i: (i + 4) % 3,
    "negative": lambda i: i - 3,
    "int32": lambda i: i.to(torch.int32) if isinstance(i, torch.Tensor) else i,
    "int8": lambda i: (i - 3).to(torch.int8) if isinstance(i, torch.Tensor) else i,
}


def assigned(target, value):
    target[...] = value
    return target


WRITES = {"add": operator.iadd, "assign": assigned, "scale": operator.imul}


def through_views(q, key, write, x):
    """Writes to a view, its sibling, a view of it and the base; what each shows at the end."""
    view, sibling = q[key], q[1:]
    view = write(view, x)
    again = q[key]
    sibling = write(sibling, x)
    again[..., 1:] = again[..., :1] * 10
    q = write(q, x)
    return view, sibling, again, q


def by_key(q, key, write, x):
    """Writes to the part that a key selects; the part after each, and the whole."""
    q[key] = x
    first = q[key] + 0
    q[key] += x
    view = q[key]
    q[key] = write(view, x) * 2
    return first, view, q


def numbers(*shape):
    return np.arange(1.0, np.prod(shape) + 1).reshape(shape)


def arrays(tensors):
    return [np.asarray(tensor.detach().numpy()) for tensor in tensors]


@pytest.mark.slow
@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("body", [through_views, by_key])
def test_writes_arrive_as_in_numpy(body, name):
    # every write with every key, and every index with every key
    cases = [*zip(INDICES.values(), [*WRITES.values()] * 2, strict=False)]

    @torch.jit
    def compiled(states, i, x):
        results = [
            body(q, KEYS[name](index(i)), write, x)
            for q, (index, write) in zip(states, cases, strict=True)
        ]
        return [[part.clone() for part in parts] for parts in results]

    states = [torch.tensor(numbers(3, 3, 3)) for _ in cases]
    wanted = [numbers(3, 3, 3) for _ in cases]
    for i in (1, 2):
        results = compiled(states, torch.tensor(i), torch.tensor(2.0, dtype=torch.float64))
        for parts, q, (index, write) in zip(results, wanted, cases, strict=True):
            for part, array in zip(parts, body(q, KEYS[name](index(i)), write, 2.0), strict=True):
                np.testing.assert_array_equal(part.numpy(), array)
        for state, q in zip(states, wanted, strict=True):
            np.testing.assert_array_equal(state.numpy(), q)
    assert len(compiled.traces) == 1


def test_a_queue_of_captured_tensors_is_traced_once():
    queue, step, places = torch.zeros(3, 2), torch.tensor(0), torch.tensor(1)

    @torch.jit
    def push(x):
        queue[step % 3].copy_(x)
        queue[:, places].add_(1)
        row = queue[step % 3]
        step.add_(1)  # the view stays where it was taken
        row.mul_(2)
        return queue.sum()

    wanted = np.zeros((3, 2), np.float32)
    for count in range(5):
        total = push(torch.tensor([count + 1.0, 2.0]))
        wanted[count % 3] = [count + 1.0, 2.0]
        wanted[:, 1] += 1
        wanted[count % 3] *= 2
        assert (queue.tolist(), total.item()) == (wanted.tolist(), wanted.sum())
    assert len(push.traces) == 1


@pytest.mark.slow
def test_views_of_several_roots():
    """Below a detached tensor, of `unbind`, of a transpose, and of an expanded tensor."""

    def body(q, i):
        part = q.unbind()[0][i]
        part.add_(1)
        q.detach()[i].mul_(2)
        q.t()[i][1:].zero_()
        shown = q[i].expand(2, 3)
        q.view(9)[i].add_(shown.sum())
        return part.clone(), shown.clone()

    state, wanted = torch.tensor(numbers(3, 3)), torch.tensor(numbers(3, 3))
    compiled = torch.jit(body)
    for i in (1, 2, 0):
        results = compiled(state, torch.tensor(i))
        assert [part.tolist() for part in results] == [part.tolist() for part in body(wanted, i)]
        assert state.tolist() == wanted.tolist()


def loss(w, i, x, names=("q[i]", "q[:, i]")):
    """A function of w that is not linear, by writes through views of each kind."""
    q = w * w
    for name in names:
        view = q[KEYS[name](i)]
        view.mul_(q[KEYS[name](i)] * x)
        q[:, 1:].mul_(view.mean())
        q[KEYS[name](i)] += 1
    return (q**2).mean() + view.sum()


def derivatives(w, i, x):
    first, gradient = torch.autograd.grad(loss(w, i, x), [w, x], create_graph=True)
    second = torch.autograd.grad((first**2).sum() + gradient, [w, x])
    return first.detach(), gradient.detach(), *second


def leaves():
    values = np.cos(numbers(3, 3, 3))
    return torch.tensor(values, requires_grad=True), torch.tensor(0.3, requires_grad=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["q[i]", "q[1:, i]", "q[i, ..., None]", "q[i, :, i]"])
def test_gradients_of_both_orders(name, i=1):
    w, x = leaves()
    one = lambda w, i, x: loss(w, i, x, [name])  # noqa: E731
    wanted = torch.func.grad(one)(w.detach(), i, x.detach())
    first, gradient = torch.autograd.grad(
        torch.jit(one)(w, torch.tensor(i), x), [w, x], create_graph=True
    )
    np.testing.assert_allclose(first.detach().numpy(), wanted.numpy(), rtol=1e-12)
    second = torch.autograd.grad((first**2).sum() + gradient, w)[0]
    value, slope = torch.autograd.grad(one(w, i, x), [w, x], create_graph=True)
    same = torch.autograd.grad((value**2).sum() + slope, w)[0]
    np.testing.assert_allclose(second.numpy(), same.numpy(), rtol=1e-11)


@pytest.mark.slow
def test_all_derivatives_inside():
    results = torch.jit(derivatives)(*indexed(torch.tensor(1)))
    for result, wanted in zip(results, derivatives(*indexed(1)), strict=True):
        np.testing.assert_allclose(result.numpy(), wanted.numpy(), rtol=1e-10)


def indexed(i):
    w, x = leaves()
    return w, i, x


@pytest.mark.slow
def test_tangents():
    def body(w, i, x):
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(w.detach(), torch.ones_like(w))
            return forward_ad.unpack_dual(loss(dual, i, x.detach())).tangent

    (w, x), i = leaves(), 2
    tangent = torch.jit(body)(w, torch.tensor(i), x)
    np.testing.assert_allclose(tangent.numpy(), body(w, i, x).numpy(), rtol=1e-12)
    nested = lambda i: torch.func.jacfwd(torch.func.jacrev(loss))(w.detach(), i, x.detach())  # noqa: E731
    np.testing.assert_allclose(nested(torch.tensor(1)).numpy(), nested(1).numpy(), rtol=1e-11)


@pytest.mark.slow
def test_each_example_of_a_vmap_has_an_index_of_its_own():
    w, x = (leaf.detach() for leaf in leaves())

    def body(q, i):
        q = q * 1
        q[i].add_(x)
        q[:, i - 1] = q[i] * 2
        return q

    examples = torch.func.vmap(body, (None, 0))(w, torch.tensor([0, 1, 2]))
    assert examples.tolist() == [body(w, i).tolist() for i in range(3)]
    mapped = torch.func.vmap(body)(torch.stack([w, w * 2]), torch.tensor([2, 0]))
    assert mapped.tolist() == [body(w, 2).tolist(), body(w * 2, 0).tolist()]
    slopes = torch.func.vmap(torch.func.grad(loss), (None, 0, None))(w, torch.tensor([0, 1, 2]), x)
    for slope, i in zip(slopes, range(3), strict=True):
        np.testing.assert_allclose(
            slope.numpy(), torch.func.grad(loss)(w, i, x).numpy(), rtol=1e-11
        )


@pytest.mark.slow
def test_the_index_of_a_loop():
    def body(i, q):
        q = q * 1
        q[i].add_(1)
        column = q[:, i]
        column.mul_(2)
        q[i - 1] = column
        return q

    start = torch.tensor(numbers(3, 3))
    wanted = start
    for i in range(3):
        wanted = body(i, wanted)
    compiled = {
        "fori_loop": lambda q: torch.fori_loop(0, 3, body, q),
        "scan": lambda q: torch.scan(lambda q, i: (body(i, q), q[i]), q, torch.arange(3))[0],
        "while_loop": lambda q: torch.while_loop(
            lambda i, q: i < 3, lambda i, q: (i + 1, body(i, q)), (torch.tensor(0), q)
        )[1],
    }
    for loop in compiled.values():
        assert torch.jit(loop)(start).tolist() == wanted.tolist()
    leaf = start.clone().requires_grad_()
    slope = torch.autograd.grad((compiled["scan"](leaf) ** 2).sum(), leaf)[0]
    other = leaf
    for i in range(3):
        other = body(i, other)
    assert slope.tolist() == torch.autograd.grad((other**2).sum(), leaf)[0].tolist()


@pytest.mark.slow
def test_an_index_is_no_saved_tensor():
    """Hooks for saved tensors, among them a checkpoint, get tensors alone."""

    def body(w, i):
        q = w * w
        view = q[i]
        view.mul_(view)
        return (q**2).sum()

    w, dtypes = leaves()[0], set()
    wanted = torch.autograd.grad(body(w, 1), w)[0].numpy()
    for run in (body, lambda w, i: checkpoint(lambda w: body(w, i), w, use_reentrant=False)):
        step = torch.jit(lambda w, i, run=run: torch.autograd.grad(run(w, i), w)[0])
        with torch.autograd.graph.saved_tensors_hooks(
            lambda tensor: dtypes.add(tensor.dtype) or tensor, lambda tensor: tensor
        ):
            gradient = step(w, torch.tensor(1)).numpy()
        np.testing.assert_allclose(gradient, wanted, rtol=1e-12)
    assert dtypes == {torch.float64}


@pytest.mark.slow
@pytest.mark.unverified
def test_an_index_out_of_range_reads_nan_and_writes_nothing():
    state = torch.tensor(numbers(3, 2))

    @torch.jit
    def body(q, i):
        q[i].add_(1)
        q[i] = 5
        q[:, i - 1] += 7
        return q[i].clone(), (q > 0)[i] & False, torch.arange(3)[i].clone()

    for i in (3, -4, 100):
        row, _, number = body(state, torch.tensor(i))
        assert row.isnan().all()
        assert number.item() == np.iinfo(np.int64).min
        assert state.tolist() == numbers(3, 2).tolist()
    leaf = torch.tensor(numbers(3, 2), requires_grad=True)
    (slope,) = torch.autograd.grad(torch.jit(lambda q, i: q[i].sum())(leaf, torch.tensor(3)), leaf)
    assert slope.tolist() == np.zeros((3, 2)).tolist()


@pytest.mark.parametrize(
    "read",
    [
        lambda view: view.storage_offset(),
        lambda view: view.as_strided((1,), (1,)),
    ],
)
def test_the_offset_of_such_a_view_is_not_known(read):
    with pytest.raises(RuntimeError, match=r"offset of a view of shape \[2\] .* is not known"):
        torch.jit(lambda q, i: read(q[i]))(torch.zeros(3, 2), torch.tensor(1))


def test_wrong_places_raise_as_ints_do():
    q, i = torch.zeros(3, 2), torch.tensor(1)
    for index in (lambda i: (i, i, i), lambda i: (i, slice(None), 5)):
        for place in (1, i):
            with pytest.raises(IndexError, match="too many indices for tensor of dimension 2"):
                torch.jit(lambda q, i, index=index: q[index(i)])(q, place)
    with pytest.raises(IndexError, match="invalid index of a 0-dim tensor"):
        torch.jit(lambda q, i: q.sum()[i])(q, i)


@pytest.mark.parametrize(
    "write", [lambda view, q, i: view.add_(1), lambda view, q, i: q.__setitem__(i, 1)]
)
def test_memory_from_outside_is_not_written_to_under_a_trace_of_jax(write):
    q = torch.zeros(3, 2)

    def body(i):
        write(q[i], q, i)
        return q.sum()

    with pytest.raises(RuntimeError, match="from outside of the function that is being compiled"):
        jax.jit(torch.to_jax(body))(jnp.array(1))
    assert q.tolist() == np.zeros((3, 2)).tolist()
