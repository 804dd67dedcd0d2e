"""Tensors and graphs that die with their last reference, and cycles that the collector frees."""

import contextlib
import gc
import warnings
import weakref

import pytest

import jaxgrad

hooks = jaxgrad.autograd.graph.saved_tensors_hooks


def leaf(*shape):
    return jaxgrad.ones(*(shape or (3,)), requires_grad=True)


@contextlib.contextmanager
def without_collector():
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class Twice(jaxgrad.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x * 2
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


def retained():
    y = leaf() * 2
    y.retain_grad()
    return y, y / 2


def retained_and_filled():
    y = leaf().exp()
    y.retain_grad()
    y.sum().backward()
    return y, y.grad


def retained_and_written():
    y = leaf() * 2
    y.retain_grad()
    y.mul_(3)
    y.sum().backward()
    return y, y.grad


def saved_output():
    y = leaf().exp()
    return y, y.grad_fn


def saved_by_function():
    y = Twice.apply(leaf())
    return y, y.grad_fn


def read_saved_output():
    y = leaf().exp()
    return y.grad_fn._saved_result, y.grad_fn, y


def packed():
    with hooks(lambda t: t, lambda t: t):
        y = leaf().exp()
    return y, y.grad_fn


def packed_alone():
    y = leaf().exp()
    saved = y.grad_fn._raw_saved_result
    saved.register_hooks(lambda t: t, lambda t: t)
    return y, y.grad_fn, saved


def written_view():
    x = jaxgrad.ones(3)
    v = x[:2]
    v.add_(1)
    return v, x


def hooked():
    y = leaf() * 2
    y.register_hook(lambda gradient: gradient)
    return y, y.grad_fn


def pullback():
    output, function = jaxgrad.func.vjp(lambda a: (a * a).sum(), jaxgrad.ones(3))
    return output, function


def called_node():
    y = leaf().exp()
    return y.grad_fn(jaxgrad.ones(3)), y


FREED_AT_ONCE = [
    retained,
    retained_and_filled,
    retained_and_written,
    saved_output,
    saved_by_function,
    read_saved_output,
    packed,
    packed_alone,
    written_view,
    hooked,
    pullback,
    called_node,
]


@pytest.mark.parametrize("make", FREED_AT_ONCE, ids=lambda make: make.__name__)
def test_freed_with_the_last_reference(make):
    make()  # what operators keep of their first call
    with without_collector():
        objects = list(make())
        references = list(map(weakref.ref, objects))
        del objects[:]
        assert [reference() for reference in references] == [None] * len(references)


def hook_that_refers_to_its_tensor():
    y = leaf() * 2
    y.register_hook(lambda gradient: gradient * y)
    return y


def hook_of_a_leaf_that_refers_to_it():
    x = leaf()
    x.register_hook(lambda gradient: gradient * x)
    return x


def hook_after_accumulation():
    x = leaf()
    x.register_post_accumulate_grad_hook(lambda tensor: x)
    return x


def hook_of_a_node():
    y = leaf() * 2
    y.grad_fn.register_hook(lambda inputs, outputs: y)
    return y


def metadata():
    y = leaf().exp()
    y.grad_fn.metadata["y"] = y
    return y


def unpack_hook():
    y = leaf().exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda t: [t, y], lambda box: box[0])
    return y


def packed_with_its_result():
    box = []
    with hooks(lambda t: [t, box], lambda kept: kept[0]):
        y = leaf().exp()
    box.append(y)
    return y


def attribute_of_a_call():
    y = Twice.apply(leaf())
    y.grad_fn.y = y
    return y


def gradient_with_a_graph():
    x = leaf()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (x * x * x).sum().backward(create_graph=True)
    return x


def retained_gradient_with_a_graph():
    y = leaf().exp()
    y.retain_grad()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (y * y * y).sum().backward(create_graph=True)
    return y


def view_with_a_hook():
    v = (leaf() * 2)[:1]
    v.register_hook(lambda gradient: v)
    v.retain_grad()
    v.mul_(3)
    return v


def hook_of_several():
    x = leaf()
    y = x * 2
    jaxgrad.autograd.graph.register_multi_grad_hook((x, y), lambda gradients: (x, y))
    return y


FREED_BY_THE_COLLECTOR = [
    hook_that_refers_to_its_tensor,
    hook_of_a_leaf_that_refers_to_it,
    hook_after_accumulation,
    hook_of_a_node,
    metadata,
    unpack_hook,
    packed_with_its_result,
    attribute_of_a_call,
    gradient_with_a_graph,
    retained_gradient_with_a_graph,
    view_with_a_hook,
    hook_of_several,
]


@pytest.mark.parametrize("make", FREED_BY_THE_COLLECTOR, ids=lambda make: make.__name__)
def test_cycles_that_the_collector_frees(make):
    reference = weakref.ref(make())
    gc.collect()
    assert reference() is None
