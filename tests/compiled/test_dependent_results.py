"""Results of one compiled call that depend on one another.

Each program gets `jit`, which compiles or does nothing, and gives numbers that must be the same.
"""

import gc
import weakref

import pytest

import jaxgrad as torch
from jaxgrad.compiled import opening

nn, grad = torch.nn, torch.autograd.grad


def leaf():
    return torch.tensor([0.5, 1.0], requires_grad=True)


def squares(x):
    h = x * 2
    return (h * h).sum(), h


def numbers(value):
    """Tensors in nested lists and tuples as lists of numbers."""
    if isinstance(value, torch.Tensor):
        return value.tolist()
    return list(map(numbers, value)) if isinstance(value, list | tuple) else value


def test_retain_grad_of_a_result():
    x = leaf()
    loss, h = torch.jit(squares)(x)
    h.retain_grad()
    loss.backward()
    assert (h.grad.tolist(), x.grad.tolist()) == ([2, 4], [4, 8])


def test_hook_changes_what_flows_on():
    x, arrived = leaf(), []

    def hook(gradient):
        arrived.append(gradient.tolist())
        return gradient * 10

    loss, h = torch.jit(squares)(x)
    h.register_hook(hook)
    (loss * 3 + h.sum()).backward()
    assert (arrived, x.grad.tolist()) == ([[7, 13]], [140, 260])


def gradients_of_results(jit):
    x = leaf()
    loss, h = jit(squares)(x)
    return grad(loss, [h, x])


def second_order(jit):
    x = leaf()
    loss, h = jit(squares)(x)
    (first,) = grad((loss * loss).sum(), h, create_graph=True)
    return first, grad(first.sum(), [h, x])


def computed_from_before_it_is_asked(jit):
    x = leaf()
    loss, h = jit(squares)(x)
    outside = loss * 3 + h.sum()
    h.retain_grad()
    outside.backward()
    return h.grad, x.grad


def passes_that_keep_the_graph(jit):
    x = leaf()
    loss, h = jit(squares)(x)
    h.retain_grad()
    loss.backward(retain_graph=True)
    loss.backward()
    return h.grad, x.grad


def sums_alone(jit):
    x = leaf()

    def f(x):
        h = x + 2
        return h.sum(), h, (h * x).sum()

    total, h, product = jit(f)(x)
    h.retain_grad()
    total.backward()
    total.backward()
    product.backward()
    return h.grad, x.grad


def chain_of_three(jit):
    x, w, order = leaf(), torch.ones(2, requires_grad=True), []

    def f(x):
        a = x * w
        b = a.exp()
        return a, b, (a * b).sum()

    results = jit(f)(x)
    for name, result in zip("abc", results, strict=True):
        result.retain_grad()
        result.register_hook(lambda gradient, name=name: order.append((name, gradient.tolist())))
    (results[2] + results[1].sum()).backward()
    return order, [result.grad for result in results], x.grad, w.grad


def bound_in_state(jit):
    class Network(nn.Module):
        def forward(self, x):
            self.hidden = x * 2
            return (self.hidden * self.hidden).sum()

    network, x = Network(), leaf()
    loss = jit(network)(x)
    network.hidden.retain_grad()
    loss.backward()
    return network.hidden.grad, x.grad


def left_by_a_hook_of_a_module(jit):
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Tanh(), nn.Linear(3, 1))
    features, x = [], torch.randn(4, 2)
    layers[2].register_forward_hook(lambda module, inputs, result: features.append(result))

    def f(x):
        features.clear()
        return layers(x)

    step, gradients = jit(f), []
    for _ in range(2):
        scores = step(x)
        (feature,) = features
        feature.retain_grad()
        scores.sum().backward()
        gradients.append(feature.grad)
    return gradients, int(layers[1].num_batches_tracked)


def written_state(jit):
    x, state = leaf(), torch.zeros(2)

    def f(x):
        state.add_(x * 3)
        return (state * state).sum()

    loss = jit(f)(x)
    state.retain_grad()
    loss.backward()
    return state.grad, x.grad


def retained_inside(jit):
    def f(x):
        h = x * 2
        h.retain_grad()
        return (h * h).sum(), h

    step, x = jit(f), leaf()
    for _ in range(2):
        loss, h = step(x)
        loss.backward()
    return h.retains_grad, h.grad, x.grad


def hooked_inside_and_outside(jit):
    x = leaf()

    def f(x):
        h = x * 2
        h.register_hook(lambda gradient: gradient * 10)
        return (h * h).sum(), h

    loss, h = jit(f)(x)
    h.register_hook(lambda gradient: gradient + 1)
    (loss + h.sum()).backward()
    return x.grad


def hooked_inside_alone(jit):
    x, arrived = leaf(), []

    def f(x):
        h = x * 2
        h.register_hook(lambda gradient: gradient * 10)
        return h

    h = jit(f)(x)
    h.retain_grad()
    h.register_hook(arrived.append)
    (h * h).sum().backward()
    return arrived, h.grad, x.grad


def hooks_of_several(jit):
    x, arrived = leaf(), []
    loss, h = jit(squares)(x)
    torch.autograd.graph.register_multi_grad_hook([h, x], arrived.append)
    loss.backward()
    return arrived


def gradient_edge(jit):
    loss, h = jit(squares)(leaf())
    return grad(loss, torch.autograd.graph.get_gradient_edge(h))


def hooks_of_its_node(jit):
    x, arrived = leaf(), []
    loss, h = jit(squares)(x)
    h.grad_fn.register_prehook(lambda gradients: arrived.append(gradients))
    h.grad_fn.register_hook(lambda results, gradients: arrived.append(results[0]))
    loss.backward()
    return arrived, h.grad_fn.name(), x.grad


def node_below_another(jit):
    loss, h = jit(squares)(leaf())
    node, arrived = (h * 3).grad_fn.next_functions[0][0], []
    node.register_prehook(lambda gradients: arrived.append(gradients))
    loss.backward()
    return node.name(), arrived


def chosen_inputs(jit):
    x = leaf()
    loss, h = jit(squares)(x)
    loss.backward(inputs=[h])
    return h.grad, x.grad


def written_afterwards(jit):
    x = leaf()
    _, h = jit(squares)(x)
    h.retain_grad()
    h.mul_(3)
    h.sum().backward()
    return h.grad, x.grad


def parameter_that_has_changed(jit):
    x, layer = leaf(), nn.Linear(2, 2)
    with torch.no_grad():
        layer.weight.fill_(1.0), layer.bias.zero_()

    def f(x):
        h = layer(x)
        return (h * h).sum(), h

    loss, h = jit(f)(x)
    layer.bias.data.add_(5)
    h.retain_grad()
    loss.backward()
    return h.grad, x.grad, layer.weight.grad


def input_that_was_written(jit):
    x = leaf()
    copy, w = x * 1, x * 2

    def f(x):
        h = w + x
        return (h * h).sum(), h

    loss, h = jit(f)(copy)
    copy.mul_(7), w.mul_(7)
    h.retain_grad()
    loss.backward()
    return h.grad, x.grad


class Squared(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * x * w

    @staticmethod
    def backward(ctx, gradient):
        x, w = ctx.saved_tensors
        return 2 * x * gradient * w, gradient * x * x


def function_of_the_users(jit):
    x, w = leaf(), torch.tensor([2.0, 3.0], requires_grad=True)

    def f(x):
        h = Squared.apply(x * 2, w)
        return (h * h).sum(), h

    loss, h = jit(f)(x)
    h.retain_grad()
    first = grad(loss, [x, w, h], create_graph=True)
    (first[0].sum() + first[2].sum()).backward()
    return first, h.grad, x.grad, w.grad


def view(jit):
    x = leaf()

    def f(x):
        h = x * 2
        return (h * h).sum(), h, h[:1]

    loss, h, part = jit(f)(x)
    part.retain_grad(), h.retain_grad()
    (loss + part.sum()).backward()
    return h.grad, part.grad, x.grad


def asked_while_a_pass_runs(jit):
    x, arrived = leaf(), []
    loss, h = jit(squares)(x)
    outside = loss * 2

    def hook(gradient):
        h.register_hook(lambda gradient: arrived.append(gradient))

    outside.register_hook(hook)
    return grad(outside, x), arrived


def random_numbers(jit):
    torch.manual_seed(0)

    def f(x):
        h = nn.functional.dropout(x * 2)
        return (h * h).sum(), h

    loss, h = jit(f)(torch.ones(20, requires_grad=True))
    h.retain_grad()
    loss.backward()
    return (h.grad - 2 * h).tolist()


def number_that_varies(jit):
    def f(x, k):
        h = x * k
        return (h * h).sum(), h

    step, x = jit(f), leaf()
    for k in (2.0, 3.0, 4.0):
        loss, h = step(x, k)
    h.retain_grad()
    loss.backward()
    return h.grad, x.grad


def two_calls(jit):
    x, step = leaf(), jit(squares)
    _, first = step(x)
    loss, second = step(first)
    first.retain_grad(), second.retain_grad()
    loss.backward()
    return first.grad, second.grad, x.grad


def a_result_that_is_gone(jit):
    x = leaf()

    def f(x):
        h = x * 2
        k = h + 1
        return (k * k).sum(), h, k

    loss, h, k = jit(f)(x)
    del loss
    h.retain_grad()
    k.sum().backward()
    return h.grad, x.grad


def gradient_among_the_results(jit):
    x, w = leaf(), torch.tensor([2.0, 2.0], requires_grad=True)

    def f(x):
        h = x * w
        (slope,) = grad((h * h * h).sum(), h, create_graph=True)
        return (slope * slope).sum(), h, slope

    loss, h, slope = jit(f)(x)
    h.retain_grad(), slope.retain_grad()
    loss.backward()
    return h.grad, slope.grad, x.grad, w.grad


def without_history_inside(jit):
    x = leaf()

    def f(x):
        with torch.no_grad():
            z = x * 5
        h = x * z
        return (h * z).sum(), h, z

    loss, h, z = jit(f)(x)
    h.retain_grad()
    loss.backward()
    return h.grad, x.grad, z.requires_grad


def pass_inside(jit):
    x = leaf()

    def f(x):
        h = x * 2
        loss = (h * h).sum()
        loss.backward(retain_graph=True)
        return loss, h

    loss, h = jit(f)(x)
    h.retain_grad()
    loss.backward()
    return h.grad, x.grad


def anomaly_mode(jit):
    x = leaf()
    with torch.autograd.detect_anomaly(check_nan=True):
        loss, h = jit(squares)(x)
        h.retain_grad()
        loss.backward()
    return h.grad, x.grad


def below_transforms(jit):
    def slopes(x):
        loss, h = jit(squares)(x)
        return grad(loss, h, create_graph=True)[0].sum()

    slope = torch.func.grad(slopes)
    return slope(torch.ones(2)), torch.func.vmap(slope)(torch.ones(2, 2))


PROGRAMS = [
    gradients_of_results,
    second_order,
    computed_from_before_it_is_asked,
    passes_that_keep_the_graph,
    sums_alone,
    chain_of_three,
    bound_in_state,
    left_by_a_hook_of_a_module,
    written_state,
    retained_inside,
    hooked_inside_and_outside,
    hooked_inside_alone,
    hooks_of_several,
    gradient_edge,
    hooks_of_its_node,
    node_below_another,
    chosen_inputs,
    written_afterwards,
    parameter_that_has_changed,
    input_that_was_written,
    function_of_the_users,
    view,
    asked_while_a_pass_runs,
    random_numbers,
    number_that_varies,
    two_calls,
    a_result_that_is_gone,
    gradient_among_the_results,
    without_history_inside,
    pass_inside,
    anomaly_mode,
    below_transforms,
]


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_results_have_the_gradients_of_the_uncompiled_function(program):
    assert numbers(program(torch.jit)) == numbers(program(lambda function: function))


class Double(nn.Module):
    def forward(self, x):
        return x * 2


class Triple(nn.Module):
    def forward(self, x):
        return x * 3


def double(x):
    return x * 2


def triple(x):
    return x * 3


@pytest.mark.parametrize("is_opened", [True, False])
def test_code_and_classes_change_after_the_call(is_opened, monkeypatch):
    layer, x = Double(), leaf()

    def f(x):
        h = layer(double(x))
        return (h * h).sum(), h

    loss, h = torch.jit(f)(x)
    monkeypatch.setattr(double, "__code__", triple.__code__)
    layer.__class__ = Triple
    if is_opened:
        h.retain_grad()
        loss.backward()
        assert (h.grad.tolist(), x.grad.tolist()) == ([4, 8], [16, 32])
    else:
        (slope,) = grad(loss, x, create_graph=True)
        assert grad(slope.sum(), x)[0].tolist() == [32, 32]
    assert type(layer) is Triple and layer(double(1)) == 9


@pytest.mark.parametrize("asks_first", [True, False])
def test_pass_frees_the_graph(asks_first):
    loss, h = torch.jit(squares)(leaf())
    if asks_first:
        h.retain_grad()
    loss.backward()
    h.retain_grad()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        loss.backward()


def test_result_of_many_examples_says_that_no_gradient_arrives():
    examples = torch.ones(3, 2, requires_grad=True)
    losses, h = torch.func.vmap(squares)(examples)
    for ask in (h.retain_grad, lambda: h.register_hook(print), lambda: grad(losses.sum(), h)):
        with pytest.raises(RuntimeError, match="on which another result depends"):
            ask()
    losses.retain_grad()
    (losses.sum() + h.sum()).backward()
    assert losses.grad.tolist() == [1, 1, 1] and examples.grad.tolist() == [[10, 10]] * 3


@pytest.mark.unverified
def test_graph_dies_with_its_results():
    gc.collect()
    gc.disable()
    try:
        loss, h = torch.jit(squares)(leaf())
        h.retain_grad()
        loss.backward()
        node = weakref.ref(h.grad_fn)
        del loss, h
        assert node() is None
    finally:
        gc.enable()


@pytest.mark.unverified
def test_program_that_does_not_ask_is_not_run_again(monkeypatch):
    monkeypatch.setattr(opening, "Recording", None)
    step, x = torch.jit(squares), leaf()
    for _ in range(3):
        loss, h = step(x)
        (loss + h.sum()).backward()
        assert loss.grad_fn is not None and h.requires_grad and not h.is_leaf
        assert "Backward" in repr(h) and not h.retains_grad


def tripled_under_vmap(y):
    torch.vmap(lambda row: row.mul_(3))(y)
    return (y * y).sum()


def tripled(y):
    y.mul_(3)
    return (y * y).sum()


def tripled_in_part(y):
    y[0:1].mul_(3)
    return (y * y).sum()


# PyTorch's retained gradients of (f(y) + y.sum()): those of the value after the write
AFTER_WRITES = {
    tripled: [13.0, 25.0],
    tripled_in_part: [13.0, 9.0],
    tripled_under_vmap: [13.0, 25.0],
}


@pytest.mark.parametrize(
    ("function", "is_compiled"),
    # a compiled call of vmap cannot be asked for the gradient of a result
    [(tripled, False), (tripled, True), (tripled_in_part, False), (tripled_in_part, True)]
    + [(tripled_under_vmap, False)],
)
@pytest.mark.parametrize("has_view", [False, True])
def test_a_retained_gradient_is_that_of_the_written_value(function, is_compiled, has_view):
    y = torch.tensor([1.0, 2.0], requires_grad=True) * 2
    y.retain_grad()
    view = y[0] if has_view else None
    total = (torch.jit(function) if is_compiled else function)(y)
    (total + y.sum()).backward()
    assert y.grad.tolist() == AFTER_WRITES[function]
    assert view is None or view.item() == y[0].item()


def test_retain_grad_of_what_a_mapped_function_has_written():
    @torch.jit
    def squares(y):
        torch.vmap(lambda row: row.mul_(3))(y)
        return (y * y).sum()

    y = torch.tensor([1.0, 2.0], requires_grad=True) * 2
    loss = squares(y)
    y.retain_grad()
    (loss + y.sum()).backward()
    assert y.grad.tolist() == [13.0, 25.0]  # 2 y + 1 at the written values 6 and 12
