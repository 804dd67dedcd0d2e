"""Saved tensors as objects, `node._raw_saved_self`, and what `dir` lists of a node."""

import pytest
from helpers.as_torch import as_torch, error, leaf

import jaxgrad


def vector(torch):
    return leaf(torch, 1.0, 2.0, dtype=torch.float64)


@as_torch
def test_what_a_saved_tensor_keeps(torch):
    x = vector(torch)
    saved = (x * x).grad_fn._raw_saved_self
    y = x.exp()
    output = y.grad_fn._raw_saved_result
    before = [saved.data is x, saved.unpack() is x, saved.unpack_hook, output.data]
    output.register_hooks(lambda t: ["box", t * 3], lambda box: box[1] * 10)
    kept, unpacked = output.data, y.grad_fn._saved_result
    y.sum().backward()
    after = [output.data, output.unpack_hook, x.grad]
    told = [error(output.unpack), error(output.register_hooks, min, min)]
    return before, kept, unpacked, after, told, isinstance(output, torch.autograd.SavedTensor)


@as_torch("""
    tensor([5.43656365691809, 14.7781121978613], dtype=float64)
    tensor([2.718281828459045, 7.38905609893065], dtype=float64, requires_grad=True)
    RuntimeError(
     'Calling register_hooks on a saved tensor whose hooks have already been set. Hint: '
     'only one pair of hooks is allowed at a time.')
""")
def test_default_hooks_show_in_the_saved_tensor(torch):
    x = vector(torch)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t / 2):
        y = x.exp()
    saved = y.grad_fn._raw_saved_result
    return saved.data, y.grad_fn._saved_result, error(saved.register_hooks, min, min)


@as_torch("""
    RuntimeError('Trying to create a SavedTensor object from Python is forbidden.')
    'TypeError'
""")
def test_a_program_cannot_make_a_saved_tensor(torch):
    make = torch.autograd.SavedTensor
    return error(make), error(make, vector(torch))["error"]


class Scaled:
    """A Function that saves an input, None and an output."""

    @staticmethod
    def of(torch):
        class Function(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                z = x * y
                ctx.save_for_backward(x, None, y, z)
                return z

            @staticmethod
            def backward(ctx, gradient):
                x, nothing, y, z = ctx.saved_tensors
                assert nothing is None and z is not None
                return gradient * y, gradient * x

        return Function


@as_torch
def test_the_saved_tensors_of_a_Function(torch):
    x, y = vector(torch), vector(torch)
    z = Scaled.of(torch).apply(x, y)
    saved = z.grad_fn._raw_saved_tensors
    kinds = [isinstance(saved_tensor, torch.autograd.SavedTensor) for saved_tensor in saved]
    data = [saved_tensor.data for saved_tensor in saved]
    nothing = error(saved[1].register_hooks, min, min)
    saved[0].register_hooks(lambda t: t.detach() * 2, lambda t: t)
    twice = error(saved[0].register_hooks, min, min)
    z.sum().backward()
    return kinds, data, nothing, twice, x.grad, y.grad, error(lambda: z.grad_fn._raw_saved_tensors)


def test_the_saved_output_of_a_Function_unpacks():  # PyTorch crashes
    x, y = vector(jaxgrad), vector(jaxgrad)
    z = Scaled.of(jaxgrad).apply(x, y)
    first, nothing, _, output = z.grad_fn._raw_saved_tensors
    assert first.unpack() is x and nothing.unpack() is None and nothing.unpack_hook is None
    assert output.unpack().grad_fn is z.grad_fn and output.unpack().tolist() == [1.0, 4.0]
    z.sum().backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        output.unpack()


def test_saved_tensors_of_one_place_are_equal():
    node = (vector(jaxgrad) * vector(jaxgrad)).grad_fn
    assert node._raw_saved_self == node._raw_saved_self
    assert node._raw_saved_self != node._raw_saved_other
    assert len({node._raw_saved_self, node._raw_saved_self, node._raw_saved_other}) == 2


@as_torch("""
    AttributeError("'AddBackward0' object has no attribute '_saved_self'")
    AttributeError("'AddBackward0' object has no attribute '_raw_saved_self'")
    AttributeError("'AddBackward0' object has no attribute 'missing'")
""")
def test_attributes_that_a_node_lacks(torch):
    node = (vector(torch) + 1).grad_fn
    return [error(getattr, node, name) for name in ("_saved_self", "_raw_saved_self", "missing")]


@as_torch("""
    exp = [['_raw_saved_result'], [[2, 2]]]
    mul = [['_raw_saved_other', '_raw_saved_self'], [[2, 2], [2, 2]]]
    pow = [['_raw_saved_self'], [[2, 2]]]
    softmax = [['_raw_saved_result'], [[2, 2]]]
    relu = [['_raw_saved_result'], [[2, 2]]]
    add = [[], []]
    std = [['_raw_saved_result', '_raw_saved_self'], [[2], [2, 2]]]
""")
def test_dir_lists_the_saved_tensors_of_this_node_alone(torch):
    x = torch.tensor([[0.5, 2.0], [1.5, 3.0]], dtype=torch.float64, requires_grad=True)
    results = {
        "exp": x.exp(),
        "mul": x * x,
        "pow": x**3,
        "softmax": x.softmax(1),
        "relu": x.relu(),
        "add": x + x,
        "std": x.std(1),
    }
    told = {}
    for name, result in results.items():
        node = result.grad_fn
        raw = [attribute for attribute in dir(node) if attribute.startswith("_raw_saved_")]
        told[name] = raw, [tuple(getattr(node, attribute).data.shape) for attribute in raw]
    return told


def test_every_listed_attribute_can_be_read():
    x = jaxgrad.rand(2, 3, requires_grad=True)
    for result in (x[0], x.sum(0), x @ x.t(), x.clamp(0, 1), x * 2, jaxgrad.cat([x, x]), x.max()):
        node = result.grad_fn
        for name in dir(node):
            if "_saved_" in name:
                getattr(node, name)


# ---- what an unpack hook returns


def packed(unpack):
    x = leaf(jaxgrad, 1.0, 2.0)
    with jaxgrad.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
        y = x.exp()
    return x, y


def test_an_unpacked_tensor_of_another_dtype_is_converted():
    for convert in (lambda t: t.double(), lambda t: t.half()):
        x, y = packed(convert)
        y.sum().backward()
        assert x.grad.dtype == jaxgrad.float32
        assert x.grad.tolist() == pytest.approx([2.718281828, 7.389056099], rel=1e-3)


def test_an_unpacked_tensor_of_another_shape_is_refused():  # PyTorch broadcasts it
    _, y = packed(lambda t: t[:1])
    with pytest.raises(RuntimeError, match=r"shape \[2\] was packed, and its unpack_hook returned"):
        y.sum().backward()


@as_torch("""
    [[tensor([1.0, 2.0], dtype=float64)], []]
    [[tensor([2.0, 4.0], dtype=float64)], [tensor([2.0, 4.0], dtype=float64)]]
""")
def test_raw_saved_tensors_in_backward_after_the_saved_ones_were_read(torch):
    seen = []

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            seen.append([saved.data.detach() for saved in ctx._raw_saved_tensors])
            return gradient * x * 2

    class SquareOnce(Square):
        clear_saved_tensors_on_access = True

    x = leaf(torch, 1.0, 2.0, dtype=torch.float64)
    slopes = [torch.autograd.grad(f.apply(x).sum(), x) for f in (Square, SquareOnce)]
    return seen, slopes
