"""Nodes and their saved tensors: reading them, hooks, copies on the host; edges in place of
tensors.
"""

import gc
import queue
import weakref

import jax
import jax.numpy as jnp
import numpy
import pytest
from helpers.as_torch import as_torch, error, leaf

import jaxgrad

AGAIN = "Trying to backward through the graph a second time"


def vector(torch):
    return leaf(torch, 1.0, 2.0, 3.0, dtype=torch.float64)


class Log:
    """A pair of hooks that keeps tensors in a list and records its arguments."""

    def __init__(self, torch):
        self.torch, self.packed, self.unpacked = torch, [], 0

    def pack(self, tensor):
        self.packed.append(tensor.detach().clone())
        return len(self.packed) - 1

    def unpack(self, position):
        self.unpacked += 1
        return self.packed[position]

    def hooks(self):
        return self.torch.autograd.graph.saved_tensors_hooks(self.pack, self.unpack)


# ---- H01 to H03: nodes


@pytest.mark.row("H01")
@as_torch
def test_a_node_is_a_Node_and_can_be_called(torch):
    Node = torch.autograd.graph.Node
    x = vector(torch)
    y = x.exp()
    accumulate = y.grad_fn.next_functions[0][0]
    y.grad_fn.metadata["mine"] = 1
    called = y.grad_fn(torch.ones(3, dtype=torch.float64))
    later = (x * 2).grad_fn._sequence_nr() > y.grad_fn._sequence_nr()
    return (
        [isinstance(node, Node) for node in (y.grad_fn, accumulate, y)],
        issubclass(type(y.grad_fn), Node),
        [y.grad_fn.name(), accumulate.name().split("::")[-1]],
        [number for _, number in y.grad_fn.next_functions],
        dict(y.grad_fn.metadata),
        len(y.grad_fn._input_metadata),
        called,
        later,
    )


@pytest.mark.row("H01")
@as_torch("""
    [tensor([1.0, 2.0, 3.0], dtype=float64, requires_grad=True),
     tensor([1.0, 2.0, 3.0], dtype=float64, requires_grad=True)]
    [False, False]
""")
def test_a_node_called_with_grad_mode_on_is_recorded(torch):
    x = vector(torch)
    node = (x * x).grad_fn
    gradient = torch.ones(3, dtype=torch.float64, requires_grad=True)
    results = node(gradient)
    with torch.no_grad():
        plain = node(gradient)
    return list(results), [result.requires_grad for result in plain]


@pytest.mark.row("H02")
@as_torch("""
    True
    'AccumulateGrad'
    []
""")
def test_the_node_of_a_leaf_has_the_leaf(torch):
    x = vector(torch)
    node = x.exp().grad_fn.next_functions[0][0]
    return node.variable is x, node.name().split("::")[-1], node.next_functions


@pytest.mark.row("H03")
@as_torch
def test_saved_attributes_of_nodes(torch):
    x = vector(torch)
    y = x.exp()
    product, power = x * y, y**3
    total, joined = x.sum(0, keepdim=True), torch.cat([x, y], dim=0)
    return (
        y.grad_fn._saved_result,
        y.grad_fn._saved_result.grad_fn is y.grad_fn,
        product.grad_fn._saved_self is x,
        product.grad_fn._saved_other,
        product.grad_fn._saved_other.grad_fn is y.grad_fn,
        power.grad_fn._saved_exponent,
        (total.grad_fn._saved_keepdim, joined.grad_fn._saved_dim),
        [hasattr(y.grad_fn, name) for name in ("_saved_self", "_saved_other", "_saved_result")],
    )


@pytest.mark.row("H03")
@as_torch("[tensor([2.718281828459045, 7.38905609893065, 20.085536923187668], dtype=float64)]")
def test_saved_attributes_have_their_history(torch):
    x = vector(torch)
    y = x.exp()
    saved = (y * y).grad_fn._saved_self
    return torch.autograd.grad(saved.sum(), x)


@pytest.mark.row("H03")
@as_torch
def test_saved_attributes_of_freed_nodes(torch):
    x = vector(torch)
    y = x.exp()
    y.sum().backward()
    node = y.grad_fn
    register = lambda: node._raw_saved_result.register_hooks(lambda t: t, lambda t: t)  # noqa: E731
    return (
        error(lambda: node._saved_result),
        error(register, words="Calling register_hooks on a saved tensor after it has been freed"),
    )


# ---- H04 to H07: hooks on what is saved


@pytest.mark.row("H04")
@as_torch
def test_hooks_of_one_saved_tensor(torch):
    x = vector(torch)
    y = x * x
    log = Log(torch)
    y.grad_fn._raw_saved_self.register_hooks(log.pack, log.unpack)
    twice = error(lambda: y.grad_fn._raw_saved_self.register_hooks(log.pack, log.unpack))
    uncallable = error(
        lambda: y.grad_fn._raw_saved_other.register_hooks(3, log.unpack),
        words="register_hooks(): incompatible function arguments",
    )
    y.sum().backward()
    return log.packed, log.unpacked, twice, uncallable, x.grad


@pytest.mark.row("H04")
@as_torch("""
    [tensor([1.0, 2.0, 3.0], dtype=float64)]
    1
    tensor([2.0, 4.0, 6.0], dtype=float64)
""")
def test_hooks_of_the_saved_tensors_of_a_Function(torch):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            return 2 * x * gradient

    x, log = vector(torch), Log(torch)
    y = Square.apply(x)
    y.grad_fn._raw_saved_tensors[0].register_hooks(log.pack, log.unpack)
    y.sum().backward()
    return log.packed, log.unpacked, x.grad


@pytest.mark.row("H05")
@as_torch("""
    4
    4
    tensor([11.953731925572459, 43.502042920489615, 158.70431039230044], dtype=float64)
""")
def test_every_saved_tensor_goes_through_the_hooks(torch):
    x, log = vector(torch), Log(torch)
    with log.hooks():
        y = x.exp() * x + x.sin()
    z = y * 2
    z.sum().backward()
    return len(log.packed), log.unpacked, x.grad


@pytest.mark.row("H05")
@as_torch("tensor([20.0, 40.0, 60.0], dtype=float64)")
def test_backward_uses_what_unpack_returns(torch):
    x = vector(torch)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 10, lambda t: t):
        y = x * x
    y.sum().backward()
    return x.grad


@pytest.mark.row("H05")
@as_torch("""
    tensor([5.43656365691809, 22.16716829679195, 80.34214769275067], dtype=float64)
    [tensor([8.154845485377136, 29.5562243957226, 100.42768461593835], dtype=float64)]
""")
def test_second_derivatives_keep_their_history(torch):
    x, log = vector(torch), Log(torch)
    with log.hooks():
        y = (x.exp() * x).sum()
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    return first.detach(), torch.autograd.grad(first.sum(), x)


@pytest.mark.row("H05")
@as_torch("""
    2
    2
    tensor([3.0, 12.0, 27.0], dtype=float64)
    [tensor([6.0, 12.0, 18.0], dtype=float64)]
""")
def test_saved_tensors_hooks_of_a_Function(torch):
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x**3
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx, gradient):
            x, y = ctx.saved_tensors
            return 3 * y / x * gradient

    x, log = vector(torch), Log(torch)
    with log.hooks():
        y = Cube.apply(x)
    (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    return len(log.packed), log.unpacked, first.detach(), torch.autograd.grad(first.sum(), x)


@pytest.mark.row("H05")
@as_torch("""
    [[2, 2], [1, 1]]
    tensor([8.154845485377136, 22.16716829679195, 60.256610769563004], dtype=float64)
""")
def test_only_the_innermost_saved_tensors_hooks_run(torch):
    x, outer, inner = vector(torch), Log(torch), Log(torch)
    with outer.hooks():
        a = x.exp()
        with inner.hooks():
            b = x.exp()
        c = x.exp()
    (a + b + c).sum().backward()
    return [(len(log.packed), log.unpacked) for log in (outer, inner)], x.grad


@pytest.mark.row("H05")
@as_torch
def test_packed_values_are_freed_with_the_graph(torch):
    class Held:
        def __init__(self, tensor):
            self.tensor = tensor

    held, x = [], vector(torch)

    def pack(tensor):
        holder = Held(tensor)
        held.append(weakref.ref(holder))
        return holder

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda holder: holder.tensor):
        y = x.exp()
    z = y.sum()
    z.backward(retain_graph=True)
    kept = held[0]() is not None
    z.backward()
    return kept, held[0]() is None, error(z.backward), x.grad


@pytest.mark.row("H05")
@as_torch
def test_errors_of_pack_and_unpack_hooks(torch):
    hooks = torch.autograd.graph.saved_tensors_hooks
    x = vector(torch)
    with hooks(lambda t: 3, lambda value: value):
        y = x * x
    with hooks(lambda t: t.add_(1), lambda t: t):
        written = error(x.exp)
    return error(y.sum().backward), written, x


@pytest.mark.row("H05")
@as_torch("[False]")
def test_saved_tensors_hooks_run_without_recording(torch):
    seen = []

    def note(value):
        seen.append(torch.is_grad_enabled())
        return value

    x = vector(torch)
    with torch.autograd.graph.saved_tensors_hooks(note, note):
        y = x.exp()
    y.sum().backward()
    return seen[:1]


@pytest.mark.row("H05")
def test_an_error_in_a_hook_passes_and_leaves_the_graph_usable():
    x, calls = vector(jaxgrad), []

    def unpack(value):
        calls.append(value)
        if len(calls) == 1:
            raise ZeroDivisionError("mine")
        return value

    with jaxgrad.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
        y = x.exp().sum()
    with pytest.raises(ZeroDivisionError, match="mine"):
        y.backward()
    assert x.grad is None
    y.backward()
    assert numpy.allclose(x.grad.numpy(), numpy.exp([1.0, 2.0, 3.0]))


@pytest.mark.row("H05")
def test_a_packed_array_is_released():
    x = jaxgrad.ones(1000, requires_grad=True)
    with jaxgrad.autograd.graph.saved_tensors_hooks(
        lambda t: t.numpy().astype("float16"), lambda a: jaxgrad.tensor(a.astype("float32"))
    ):
        y = x.exp()
    held = weakref.ref(y._array)
    z = y.sum()
    del y
    jaxgrad.synchronize()  # a sum that is noted holds what it reads
    gc.collect()
    assert held() is None
    z.backward()
    assert numpy.allclose(x.grad.numpy(), numpy.exp(numpy.ones(1000)).astype("float16"))


@pytest.mark.row("H05")
def test_saved_tensors_hooks_under_jit_run_when_the_program_is_traced():
    calls = queue.SimpleQueue()  # which capture cannot see into: a trace alone puts one

    @jaxgrad.jit
    def slope(x):
        def pack(tensor):
            calls.put(tensor.shape)
            return tensor * 2

        with jaxgrad.autograd.graph.saved_tensors_hooks(pack, lambda t: t / 2):
            y = x.exp().sum()
        y.backward()
        return x.grad

    for _ in range(3):
        gradient = slope(vector(jaxgrad))
    assert calls.qsize() == 1
    assert numpy.allclose(gradient.numpy(), numpy.exp([1.0, 2.0, 3.0]))


@pytest.mark.row("H06")
@as_torch("""
    tensor([7.436563656918089, 26.16716829679195, 86.34214769275067], dtype=float64)
    [tensor([10.154845485377134, 31.5562243957226, 102.42768461593835], dtype=float64)]
""")
def test_save_on_cpu_keeps_the_gradients(torch):
    x = vector(torch)
    with torch.autograd.graph.save_on_cpu():
        y = (x.exp() * x).sum()
    with torch.autograd.graph.save_on_cpu(pin_memory=False):
        z = (x * x).sum()
    (first,) = torch.autograd.grad(y + z, x, create_graph=True)
    return first.detach(), torch.autograd.grad(first.sum(), x)


@pytest.mark.row("H06")
def test_save_on_cpu_keeps_a_copy_on_the_host():
    x = jaxgrad.ones(1000, requires_grad=True)
    with jaxgrad.autograd.graph.save_on_cpu():
        y = x.exp()
    (packed,) = y.grad_fn.extras.packed.values()
    array, _ = packed.value
    assert array.devices() == {jax.local_devices(backend="cpu")[0]}
    assert array.unsafe_buffer_pointer() != y._array.unsafe_buffer_pointer()


@pytest.mark.row("H06")
@pytest.mark.slow
def test_save_on_cpu_under_jit():
    @jaxgrad.jit
    def slope(x):
        with jaxgrad.autograd.graph.save_on_cpu():
            y = (x.exp() * x).sum()
        y.backward()
        return x.grad

    values = jnp.array([1.0, 2.0, 3.0])
    expected = jax.grad(lambda v: (jnp.exp(v) * v).sum())(values)
    gradient = slope(jaxgrad.tensor([1.0, 2.0, 3.0], requires_grad=True))
    assert numpy.allclose(gradient.numpy(), expected, rtol=1e-6)


@pytest.mark.row("H07")
@as_torch("""
    RuntimeError('outer message')
    RuntimeError('inner message')
    RuntimeError('outer message')
    RuntimeError('within')
""")
def test_disabled_saved_tensors_hooks(torch):
    graph = torch.autograd.graph

    def enter():
        with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            return None

    with graph.disable_saved_tensors_hooks("outer message"):
        first = error(enter)
        with graph.disable_saved_tensors_hooks("inner message"):
            second = error(enter)
        third = error(enter)
    enter()
    with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        within = error(graph.disable_saved_tensors_hooks("within").__enter__)
    return first, second, third, within


# ---- H08 to H10: edges, and what has no meaning here


@pytest.mark.row("H08")
@as_torch
def test_edges_in_place_of_tensors(torch):
    edge_of = torch.autograd.graph.get_gradient_edge
    x = vector(torch)
    y = x.exp()
    total = (y * y).sum()
    edge, of_leaf, of_total = edge_of(y), edge_of(x), edge_of(total)
    grad = torch.autograd.grad
    gradients = [
        grad(total, edge, retain_graph=True),
        grad(total, of_leaf, retain_graph=True),
        grad(of_total, [x, edge], retain_graph=True),
    ]
    torch.autograd.backward(of_total, inputs=of_leaf)
    return (
        gradients,
        x.grad,
        [edge.output_nr, of_leaf.output_nr, edge.ownership_token is None],
        edge.node is y.grad_fn,
        error(edge_of, torch.ones(2), words="It is not possible to get the gradient edge"),
    )


@pytest.mark.row("H08")
@as_torch("""
    1
    [tensor(1.0, dtype=float64)]
""")
def test_the_edge_of_one_of_several_outputs(torch):
    x = vector(torch)
    first, second, _ = x.unbind()
    edge = torch.autograd.graph.get_gradient_edge(second)
    return edge.output_nr, torch.autograd.grad(first * second, edge)


@pytest.mark.row("H09")
@as_torch("""
    RuntimeError(
     'torch.autograd.graph.region_activation_memory_budget can only be used inside a '
     'torch.compile region; it has no effect in eager mode.')
    ValueError('torch.autograd.graph.region_activation_memory_budget: must be in [0, 1], got 2.0')
    ValueError('torch.autograd.graph.region_activation_memory_budget: must be in [0, 1], got -1.0')
    TypeError('torch.autograd.graph.region_activation_memory_budget: expects a float, got str')
    ValueError('torch.autograd.graph.region_activation_memory_budget: must be in [0, 1], got 3')
""")
def test_the_memory_budget_of_a_compiler(torch):
    budget = torch.autograd.graph.region_activation_memory_budget

    def enter(value):
        with budget(value):
            return None

    return [error(enter, value) for value in (0.5, 2.0, -1.0, "x", 3)]


@pytest.mark.row("H10")
@as_torch("""
    None
    None
""")
def test_switches_of_cuda_streams_are_accepted(torch):
    graph = torch.autograd.graph
    results = [
        graph.set_warn_on_accumulate_grad_stream_mismatch(True),
        graph.set_override_stale_capture_stream(False),
    ]
    graph.set_override_stale_capture_stream(False)
    return results


class Mark:
    """An object that weakref accepts; torch's nodes are not."""


@pytest.mark.row("H12")
@as_torch("""
    True
    True
""")
def test_a_graph_dies_with_its_last_output(torch):
    x = vector(torch)
    y = x.exp()
    y.grad_fn.metadata["mark"] = mark = Mark()
    mark = weakref.ref(mark)
    z = y.sum()
    del y
    kept = mark() is not None
    del z
    return kept, mark() is None


@pytest.mark.row("H13")
def test_a_pass_over_the_graph_is_part_of_the_jaxpr():
    def slope(array):
        x = jaxgrad.ops.mul(array, 1.0)
        w = jaxgrad.tensor([1.0, 2.0, 3.0], requires_grad=True)
        (w.exp() * jax.tree.unflatten(jax.tree.structure(w), [x])).sum().backward()
        return w.grad._array

    traced = jax.make_jaxpr(slope)(jnp.ones(3))
    assert numpy.allclose(jax.jit(slope)(jnp.ones(3)), numpy.exp([1.0, 2.0, 3.0]))
    assert "mul" in str(traced)
