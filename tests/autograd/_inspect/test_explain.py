"""Why a gradient is None, zero or NaN: one program for each cause, with its line.

That a gradient is None or zero at all, a backward pass says, which knows nothing of explanations.
"""

import sys
import threading

import pytest

import jaxgrad as torch
from jaxgrad.tape import untracked_reason

graph, cross_entropy = torch.autograd.graph, torch.nn.functional.cross_entropy


def here():
    """The caller's line, as nodes record it."""
    frame = sys._getframe(1)
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


def explained(tensor, loss, kind, place, *words):
    """Checks an explanation, and that the loss gives the tensor no gradient, or zero."""
    told = graph.explain(tensor, loss)
    assert (told.kind, told.place) == (kind, place), told
    for word in words:
        assert word in str(told)
    if loss is None or not loss.requires_grad or not tensor.requires_grad:
        return
    (gradient,) = torch.autograd.grad(loss, tensor, torch.ones_like(loss), True, allow_unused=True)
    assert gradient is None or not gradient.any().item()


# what does not require grad


def test_explains_a_detached_tensor():
    w, v = leaf(1.0, 2.0), leaf(3.0, 4.0)
    with graph.record_lines():
        cut, line = (w * 2).detach(), here()
        more = cut.exp()
        constant, loss = more.sum(), (v * more).sum()
    explained(more, None, "detached", line, "detach()")
    explained(w, constant, "detached", line, "The loss does not require grad")
    explained(w, loss, "detached", line, "does not depend on")


def test_detached_in_place_and_by_a_function():
    w, v = leaf(1.0, 2.0), leaf(3.0, 4.0)
    with graph.record_lines():
        y = w * 2
        y.detach_()
        line = f"{__file__}:{sys._getframe().f_lineno - 1}"
        loss = (y * v).sum()
    explained(y, None, "detached", line)
    explained(w, loss, "detached", line)
    with graph.record_lines():
        y, line = torch.detach(w), here()
    explained(y, None, "detached", line)


def test_explains_a_use_of_data():
    w, v = leaf(1.0, 2.0), leaf(3.0, 4.0)
    with graph.record_lines():
        cut, line = w.data, here()
        loss = (v * cut).sum()
    explained(cut, None, "detached", line)
    explained(w, loss, "detached", line)


def test_explains_a_Variable():
    w = leaf(1.0, 2.0)
    with graph.record_lines():
        v, line = torch.autograd.Variable(w, requires_grad=True), here()
        loss = (v * v).sum()
    explained(w, loss, "detached", line)
    assert graph.explain(v, loss).kind == "unreached"


def test_explains_no_grad():
    w, v = leaf(1.0, 2.0), leaf(3.0, 4.0)
    with graph.record_lines():
        with torch.no_grad():
            cut, line = w * 2, here()
        loss = (cut + v).sum()
    explained(cut, None, "no_grad", line, "mul", "no_grad")
    explained(w, loss, "no_grad", line, "mul", "no_grad")


def test_explains_inference_mode():
    w, v = leaf(1.0, 2.0), leaf(3.0, 4.0)
    with graph.record_lines(), torch.inference_mode():
        cut, line = w.exp(), here()
    explained(cut, None, "inference_mode", line, "exp")
    with graph.record_lines():
        loss = (cut + v).sum()
    explained(w, loss, "inference_mode", line)
    explained(torch.inference_mode()(lambda: torch.ones(2))(), None, "inference_mode", None)


@pytest.mark.parametrize("operator", ["argmax", "gt", "long", "isnan", "max"])
def test_operators_without_a_derivative(operator):
    w, v = leaf(1.0, 2.0), leaf(3.0, 4.0)
    calls = {
        "argmax": lambda: w.argmax(),
        "gt": lambda: w > 1,
        "long": lambda: w.long(),
        "isnan": lambda: w.isnan(),
        "max": lambda: w.max(0).indices,
    }
    call = calls[operator]
    line = f"{__file__}:{call.__code__.co_firstlineno}"
    with graph.record_lines():
        cut = call()
        loss = (v * cut).sum()
    name = {"long": "to"}.get(operator, operator)
    explained(cut, None, "operator", line, name, "no derivative", str(cut.dtype))
    explained(w, loss, "operator", line, name)


def test_an_argument_without_a_derivative(tmp_path):
    table = tmp_path / "weighted.yaml"
    table.write_text(
        "- name: weighted(Tensor self, Tensor weight) -> Tensor\n  forward: self * weight\n"
        "  self: grad * weight\n  weight: non_differentiable\n"
    )
    mine = torch.ops.load(table, namespace="for_explain")
    w, v = leaf(0.2, 0.8), leaf(3.0, 4.0)
    with graph.record_lines():
        y, line = mine.weighted(v, w), here()
        loss = y.view_as(w * 2).sum()
    explained(w, loss, "argument", line, "weighted")
    assert untracked_reason.of(loss.grad_fn.next_functions[0][0]) == ()


def test_an_output_that_a_function_marks():
    class Split(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            whole = x.floor()
            ctx.mark_non_differentiable(whole)
            return x - whole, whole

        @staticmethod
        def backward(ctx, grad, _):
            return grad

    w = leaf(1.25, 2.5)
    with graph.record_lines():
        (_, whole), line = Split.apply(w), here()
        loss = whole.sum()
    explained(whole, None, "marked", line, "SplitBackward")
    explained(w, loss, "marked", line)


def test_a_leaf_that_never_required_grad():
    x, w = torch.ones(2), leaf(1.0, 2.0)
    explained(x, None, "constant", None, "does not require grad", "requires_grad_()")
    explained(x, (x * w).sum() * 0, "constant", None)
    explained(w, (x * 2).sum(), "constant", None, "The loss does not require grad")


def test_written_to_by_what_was_cut_off():
    w, v = leaf(1.0, 2.0), leaf(3.0, 4.0)
    with graph.record_lines():
        total = torch.zeros(2)
        cut, line = w.detach(), here()
        total.add_(cut)
        loss = (v * total).sum()
    explained(w, loss, "detached", line)
    with torch.no_grad(), graph.record_lines():
        total.mul_(w)
        line = f"{__file__}:{sys._getframe().f_lineno - 1}"
    with graph.record_lines():
        loss = (v * total).sum()
    causes = untracked_reason.of(loss.grad_fn.next_functions[0][0])
    assert {(cause.kind, cause.place) for cause in causes} >= {("no_grad", line)}


def test_cut_off_twice():
    w, v, u = leaf(1.0, 2.0), leaf(3.0, 4.0), leaf(5.0, 6.0)
    with graph.record_lines():
        x = w * 2
        y = x.exp().detach() * v
        z, line = y.detach() * u, here()
        loss = z.sum()
    explained(w, loss, "detached", line)
    explained(x, loss, "detached", line)
    del y
    explained(v, loss, "detached", line)
    assert graph.explain(u, loss).kind == "unreached"


def test_what_came_before_a_new_leaf():
    w = leaf(1.0, 2.0)
    with graph.record_lines():
        p, line = w.exp().detach().requires_grad_(), here()
        loss = (p * p).sum()
    explained(w, loss, "detached", line)


def test_explains_without_recorded_lines():
    w, v = leaf(1.0, 2.0), leaf(3.0, 4.0)
    cut = w.detach()
    explained(cut, None, "constant", None, "record_lines()", "no_grad block")
    explained(w, (v * cut).sum(), "unused", None, "record_lines()")


@pytest.mark.filterwarnings("ignore:Converting a tensor")
@pytest.mark.parametrize("copied", [lambda w: [w[0], w[1] * 2], lambda w: w.tolist()])
def test_numbers_are_copied_while_lines_are_recorded(copied):
    w, v = leaf(1.0, 2.0), leaf(3.0, 4.0)
    with graph.record_lines():
        constant = torch.tensor(copied(w))
        for loss in (constant.sum(), (constant * v).sum()):
            explained(constant, None, "constant", None, "tolist()", "requires_grad_()")
            kind = "unused" if loss.requires_grad else "constant"
            explained(w, loss, kind, None, "item(), numpy()")
            assert "again" not in f"{graph.explain(constant)}{graph.explain(w, loss)}"
    assert "Run it again under autograd.graph.record_lines()" in str(graph.explain(constant))


def test_a_part_of_a_graph_without_lines():
    w, v = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y = v * w.detach()
    with graph.record_lines():
        explained(w, y.sum(), "unused", None, "outside of record_lines()")
        assert "again" not in str(graph.explain(w, y.sum()))


def test_a_frozen_parameter():
    layer, x = torch.nn.Linear(2, 1), leaf(1.0, 2.0)
    layer.requires_grad_(False)
    words = "It is a Parameter with requires_grad=False: call requires_grad_() on it"
    for loss in (None, layer(x).sum()):
        told = graph.explain(layer.weight, loss)
        assert told.kind == "constant" and words in str(told)
        assert "If it is a leaf" not in str(told)
    loss = (x * 2).sum()
    x.requires_grad_(False)
    explained(x, loss, "constant", None, "It is a leaf with requires_grad=False")
    assert "It is a Buffer" in str(graph.explain(torch.nn.Buffer(torch.ones(2))))


def test_a_loop_of_detached_states_keeps_few_causes():
    w, state = leaf(1.0, 2.0), torch.zeros(2)
    with graph.record_lines():
        for _ in range(50):
            state, line = state / 2 + w.detach(), here()
        loss = (state * leaf(1.0, 1.0)).sum()
    assert len(untracked_reason.of(state)) == 1
    explained(w, loss, "detached", line)


# what requires grad


def test_explains_the_grad_of_a_computed_tensor():
    w = leaf(1.0, 2.0)
    with graph.record_lines():
        y, line = w * 2, here()
    y.sum().backward(retain_graph=True)
    explained(y, None, "not a leaf", line, "MulBackward0", "retain_grad()")
    told = graph.explain(y, y.sum())
    assert told.kind == "not a leaf" and "leads to y" in str(told)
    y.retain_grad()
    y.sum().backward()
    assert graph.explain(y).kind == "filled"


def test_explains_a_leaf_that_is_never_reached():
    w = leaf(1.0, 2.0)
    assert graph.explain(w).kind == "unused"
    y = w * 2
    assert graph.explain(w).kind == "unreached"
    told = graph.explain(w, y.sum())
    assert told.kind == "unreached" and "a gradient that is not zero" in str(told)
    y.sum().backward()
    assert graph.explain(w).kind == "filled"


def test_unused_by_the_loss():
    w, v = leaf(1.0, 2.0), leaf(3.0, 4.0)
    with graph.record_lines():
        y = w * v
        loss = (v.exp() * leaf(1.0, 2.0).detach()).sum()
    explained(w, loss, "unused", None, "item(), numpy()")
    explained(y, loss, "unused", None)


def test_explains_a_freed_graph():
    w = leaf(1.0, 2.0)
    with graph.record_lines():
        y, line = w.exp(), here()
    loss = y.sum()
    torch.autograd.grad(loss, w)
    told = graph.explain(w, loss)
    assert (told.kind, told.place) == ("freed", line)
    assert "ExpBackward0" in str(told) and "w.grad" in str(told)


def test_explains_an_undefined_gradient():
    class Nothing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return None

    w = leaf(1.0, 2.0)
    with graph.record_lines():
        y, line = Nothing.apply(w), here()
    explained(w, y.sum(), "undefined", line, "NothingBackward", "None")


def test_zero_after_a_relu():
    w = leaf(1.0, 2.0)
    with graph.record_lines():
        h = w.exp() - 10
        y, line = h.relu(), here()
        loss = (y * 3).sum()
    explained(w, loss, "zero", line, "ReluBackward0", "flat")
    loss.backward()
    assert w.grad.tolist() == [0.0, 0.0]
    assert graph.explain(w).kind == "zero"


@pytest.mark.parametrize("operator", ["round", "floor", "sign", "trunc"])
def test_zero_by_steps(operator):
    w = leaf(1.25, 2.75)
    with graph.record_lines():
        y, line = getattr(w * 1, operator)(), here()
    explained(w, y.sum(), "zero", line, f"{operator.title()}Backward0", "zero everywhere")


def test_zero_by_what_it_is_multiplied_by():
    w = leaf(1.0, 2.0)
    with graph.record_lines():
        y, line = w * torch.zeros(2), here()
    explained(w, y.sum(), "zero", line, "MulBackward0", "multiplied")


def test_zero_by_saturation():
    w = leaf(200.0, 300.0)
    with graph.record_lines():
        y, line = w.sigmoid(), here()
    explained(w, y.sum(), "zero", line, "SigmoidBackward0", "saturated")


@pytest.mark.parametrize(
    ("function", "values"),
    [
        (lambda w: w.softmax(0).sum(), (1.0, 1.0, 1.0)),
        (lambda w: w.log_softmax(0).sum(), (1.0, 1.0)),
        (lambda w: w.sigmoid().sum() * 1e-30 * 1e-30, (1.0, 1.0)),
        (lambda w: (w[[0, 0]] * torch.tensor([1.0, -1.0])).sum(), (1.0, 2.0)),
        (lambda w: (w @ torch.ones(1, 2)) @ torch.tensor([1.0, -1.0]), (2.0,)),
        (lambda w: cross_entropy(w, torch.tensor([0.5, 0.5])), (1.0, 1.0)),
        (lambda w: cross_entropy(w[None], torch.tensor([-100]), reduction="sum"), (1.0, 2.0)),
    ],
)
def test_no_more_is_claimed_of_a_zero_than_is_so(function, values):
    w = leaf(*values)
    told = str(graph.explain(w, function(w)))
    assert "becomes zero in" in told
    wrong = "saturated", "all of its inputs", "other elements", "multiplied", "are ignored"
    assert not any(word in told for word in wrong)
    explained(w, function(w), "zero", None)


def test_zero_of_a_sum_of_probabilities():
    w = leaf(1.0, 1.0, 1.0)
    told = str(graph.explain(w, w.softmax(0).sum()))
    assert told == (
        "The gradient of w is zero: it becomes zero in SoftmaxBackward0 (its derivative is not "
        "zero, but its product with the gradient that arrives is)."
    )


@pytest.mark.parametrize(
    "function",
    [
        lambda w: w.softmax(0)[0],
        lambda w: w.softmax(0).sum(),
        lambda w: cross_entropy(w, torch.tensor(0)),
        lambda w: torch.nn.functional.nll_loss(w.log_softmax(0), torch.tensor(0)),
        lambda w: (w - 500).exp().sum(),
        lambda w: w[:1].tanh().sum(),
        lambda w: (w[:1].sigmoid() * torch.tensor([1.0])).sum(),
    ],
)
def test_saturation_is_named(function):
    w = leaf(300.0, 1.0, 2.0)
    explained(w, function(w), "zero", None, "it is saturated")


def test_a_relu_is_flat_where_a_gradient_arrives():
    w = leaf(-1.0, 2.0)
    loss = (w.relu() * torch.tensor([1.0, 0.0])).sum()
    explained(w, loss, "zero", None, "it is flat at all of its inputs that a gradient arrives at")


def test_targets_that_are_ignored():
    scores = torch.zeros(2, 3, requires_grad=True)
    loss = torch.nn.functional.nll_loss(scores, torch.tensor([-100, -100]), reduction="sum")
    explained(scores, loss, "zero", None, "NllLossBackward0", "targets are ignored")


def test_a_Function_named_as_an_operator():
    class Mul(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 0

    w = leaf(1.0, 2.0)
    loss = Mul.apply(w).sum()
    explained(w, loss, "zero", None, "becomes zero in MulBackward.")


@pytest.mark.slow
def test_saved_values_that_are_packed():
    w = leaf(300.0, 1.0)
    with graph.saved_tensors_hooks(lambda x: (x.half(), "packed"), lambda pair: pair[0].float()):
        loss = cross_entropy(w, torch.tensor(0))
        infinite = torch.where(w > 400, (w * 0).sqrt(), 0.0).sum()
    explained(w, loss, "zero", None, "becomes zero in NllLossBackward0.")
    assert "SqrtBackward0 makes the first" in str(graph.explain(w, infinite))


def test_a_sparse_gradient():
    w = torch.ones(4, 3, requires_grad=True)
    rows = torch.nn.functional.embedding(torch.tensor([0, 1]), w, sparse=True)
    loss = rows.sum()
    assert graph.explain(w, loss).kind == "unreached"
    loss.backward(retain_graph=True)
    assert w.grad.is_sparse
    assert graph.explain(w, loss).kind == graph.explain(w).kind == "filled"


def test_zero_of_a_part_that_is_not_looked_at():
    w = leaf(1.0, 2.0)
    with graph.record_lines():
        y = torch.cat([w, leaf(3.0)])
        z, line = y[2], here()
    explained(w, z, "zero", f"{line.rpartition(':')[0]}:{int(line.rpartition(':')[2]) - 1}", "Cat")


def test_zero_by_cancelling():
    w = leaf(1.0, 2.0)
    explained(w, (w.exp() - w.exp()).sum(), "cancelled", None, "cancel")


def test_zero_on_one_of_two_paths_is_no_zero():
    w = leaf(1.0, 2.0)
    told = graph.explain(w, ((w - 5).relu() + w).sum())
    assert told.kind == "unreached" and "not zero" in str(told)


def test_zero_by_a_hook():
    w = leaf(1.0, 2.0)
    w.register_hook(lambda grad: grad * 0)
    loss = (w * w).sum()
    loss.backward(retain_graph=True)
    told = graph.explain(w, loss)
    assert told.kind == "hooks" and "a leaf of shape [2]" in str(told)


def test_explains_zeroed_gradients():
    w = leaf(1.0, 2.0)
    loss = (w * w).sum()
    loss.backward(retain_graph=True)
    w.grad.zero_()
    told = graph.explain(w, loss)
    assert told.kind == "zero" and "it was set to zero" in str(told)


# NaN


class Nans(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad / torch.zeros_like(grad) * 0


def steep(x):
    """The square of the norm, with the roots of zeros in between."""
    return (x * x).sum().sqrt() ** 2


MAKERS_OF_NANS = {
    "where sqrt": (lambda x: torch.where(x > 0, x.sqrt(), 0.0).sum(), "SqrtBackward0"),
    "where log": (lambda x: torch.where(x > 0, x.log(), 0.0).sum(), "LogBackward0"),
    "quotient": (lambda x: ((x / x) * 0).sum(), "DivBackward0"),
    "sqrt": (lambda x: (x.sqrt() * 0).sum(), "SqrtBackward0"),
    "Function": (lambda x: Nans.apply(x.exp()).sum(), "NansBackward"),
    "norm": (lambda x: steep(x * 0), "SqrtBackward0"),
    "two": (lambda x: torch.where(x > 0, (x * 0).sqrt().log(), 0.0).sum(), "LogBackward0"),
}


@pytest.mark.parametrize("values", [(0.0,), (0.0, 4.0)])
@pytest.mark.parametrize("maker", MAKERS_OF_NANS)
def test_names_the_operator_that_makes_the_first_nan(maker, values):
    function, operator = MAKERS_OF_NANS[maker]
    line = f"{__file__}:{function.__code__.co_firstlineno}"
    if maker == "norm":
        line = f"{__file__}:{steep.__code__.co_firstlineno + 2}"
    w = leaf(*values)
    with graph.record_lines():
        loss = function(w)
    before = graph.explain(w, loss)
    loss.backward(retain_graph=True)
    assert w.grad.isnan().any().item()
    for told in (before, graph.explain(w, loss)):
        assert (told.kind, told.place) == ("nan", line), told
        assert f"{operator} at {line}" in str(told)
    without_lines = graph.explain(w, function(w))
    assert (without_lines.kind, without_lines.place) == ("nan", None)
    assert f"has NaNs: {operator} makes the first" in str(without_lines)


def test_a_nan_gradient_of_a_freed_graph():
    w = leaf(0.0, 1.0)
    loss = (w.sqrt() * 0).sum()
    loss.backward()
    assert w.grad.isnan().any()
    told = graph.explain(w)
    assert told.kind == "nan" and "explain(tensor, loss)" in str(told)
    told = graph.explain(w, loss)
    assert told.kind == "nan" and "retain_graph=True" in str(told)
    assert "explain() before that pass" in str(told)


def test_a_nan_of_the_forward_pass():
    w = leaf(-1.0, 4.0)
    loss = torch.where(w > 0, w.sqrt(), 0.0).sum()
    told = graph.explain(w, loss)
    assert told.kind == "nan" and "SqrtBackward0 makes the first" in str(told)
    assert "NaNs that it had saved" in str(told)
    loss.backward()
    assert w.grad.isnan().tolist() == [True, False]


def test_a_sum_of_gradients_that_is_nan():
    w = leaf(0.0)
    with graph.record_lines():
        y, line = w * 1, here()
        loss = (y.sqrt() - y.sqrt()).sum()
    told = graph.explain(w, loss)
    assert (told.kind, told.place) == ("nan", line) and "several paths to MulBackward0" in str(told)
    loss.backward()
    assert w.grad.isnan().all()


def test_nans_that_do_not_arrive():
    w, v = leaf(1.0, 2.0), leaf(0.0)
    loss = (torch.cat([w, Nans.apply(v)]) * 2).sum()
    assert graph.explain(w, loss).kind == "unreached"
    assert graph.explain(v, loss).kind == "nan"
    # the first NaNs go to elements that `where` takes from elsewhere
    first = torch.where(torch.tensor([True, False]), torch.zeros(2), w)
    loss = (w.exp() + torch.where(first > 0, first.sqrt(), 0.0)).sum()
    assert graph.explain(first, loss).kind == "not a leaf"
    assert "has NaNs: SqrtBackward0" in str(graph.explain(first, loss))
    assert graph.explain(w, loss).kind == "unreached"
    loss.backward()
    assert w.grad.isfinite().all()


def test_nans_that_come_from_elsewhere():
    w = leaf(1.0, 2.0)
    loss = (w * w).sum()
    (w.log() * float("nan")).sum().backward()
    told = graph.explain(w, loss)
    assert told.kind == "nan" and "from another pass" in str(told)
    w.grad = None
    w.register_hook(lambda grad: grad * float("nan"))
    loss.backward(retain_graph=True)
    told = graph.explain(w, loss)
    assert told.kind == "nan" and "hooks of a leaf of shape [2]" in str(told)


def test_a_gradient_that_is_zero_on_its_way_only():
    class Ones(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return torch.ones_like(grad)

    w = leaf(1.0, 2.0)
    loss = (Ones.apply(w) * 0).sum()
    assert graph.explain(w, loss).kind == "unreached"
    loss.backward()
    assert w.grad.tolist() == [1.0, 1.0]


# explaining changes nothing


def test_nothing_is_changed():
    called = []

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            (_,) = ctx.saved_tensors
            return grad * 2

    w, v = leaf(1.0, 2.0), leaf(-3.0, -4.0)
    with graph.record_lines():
        y = Twice.apply(w)
        y.retain_grad()
        z = y.exp() * v.relu()
        loss = z.sum()
    w.register_hook(called.append)
    z.register_hook(called.append)
    loss.grad_fn.register_hook(lambda *grads: called.append(grads))
    loss.grad_fn.register_prehook(lambda grads: called.append(grads))
    v.register_post_accumulate_grad_hook(called.append)
    version = w._version
    for tensor in (w, v, y, z, loss):
        for target in (None, loss):
            graph.explain(tensor, target)
    assert not called and w.grad is v.grad is None and version == w._version
    assert torch.is_grad_enabled() and y._leaf is None
    loss.backward()
    assert y.grad.tolist() == w.grad.tolist() == v.grad.tolist() == [0.0, 0.0]
    assert len(called) == 5


def test_a_function_whose_saved_tensors_are_read_once_is_not_run():
    class Once(torch.autograd.Function):
        clear_saved_tensors_on_access = True

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * 2 * x

    w = leaf(1.0, 2.0)
    loss = Once.apply(w).sum()
    told = graph.explain(w, loss)
    assert told.kind == "unknown" and "OnceBackward" in str(told)
    loss.backward()
    assert w.grad.tolist() == [2.0, 4.0]


def test_a_backward_that_raises():
    class Failing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            raise KeyError("no such thing")

    w = leaf(1.0, 2.0)
    told = graph.explain(w, Failing.apply(w).sum())
    assert told.kind == "unknown" and "no such thing" in str(told)
    assert torch.is_grad_enabled()


def test_strict_versions_are_asked_too():
    w = leaf(1.0, 2.0)
    with graph.strict_versions():
        y = w.exp()
        y.add_(1)
        assert "modified by an inplace operation" in str(graph.explain(w, y.sum()))


# kinds of graphs


def test_a_gradient_that_is_differentiated():
    w = leaf(1.0, 2.0)
    with graph.record_lines():
        (first,) = torch.autograd.grad((w.exp() * w).sum(), w, create_graph=True)
        cut, line = first.detach(), here()
        loss = cut.sum()
    assert graph.explain(w, first.sum()).kind == "unreached"
    explained(w, loss, "detached", line)


def test_views_and_writes():
    w = leaf(1.0, 2.0)
    with graph.record_lines():
        base = torch.zeros(3)
        base[1:].copy_(w)
        base[1:].mul_(0)
        line = f"{__file__}:{sys._getframe().f_lineno - 1}"
    explained(w, base.sum(), "zero", line, "MulBackward0")


def test_several_losses_and_edges():
    w, v = leaf(1.0, 2.0), leaf(3.0, 4.0)
    first, second = w.exp().sum(), v.exp().sum()
    assert graph.explain(w, [first, second]).kind == "unreached"
    assert graph.explain(w, graph.get_gradient_edge(second)).kind == "unused"
    assert graph.explain(w, graph.get_gradient_edge(first)).kind == "unreached"
    assert graph.explain(w, w).kind == "unreached"


@pytest.mark.slow
def test_explains_gradients_of_complex_numbers():
    w = torch.tensor([1 + 2j], requires_grad=True)
    assert graph.explain(w, (w * w.conj()).real.sum()).kind == "unreached"
    told = graph.explain(w, (w.real * 0).sum())
    assert told.kind == "zero"


def test_while_it_is_compiled():
    told = {}

    def step(w, v):
        with graph.record_lines():
            y, told["line"] = w.detach() * v, here()
            loss = y.sum()
        told["path"], told["cut"] = graph.explain(v, loss), graph.explain(w, loss)
        loss.backward()
        told["grad"] = graph.explain(v)
        return v.grad

    gradient = torch.jit(step)(leaf(1.0, 2.0), leaf(3.0, 4.0))
    assert gradient.tolist() == [1.0, 2.0]
    assert "no numbers yet" in str(told["path"])
    assert (told["cut"].kind, told["cut"].place) == ("detached", told["line"])
    assert told["grad"].kind == "filled"


def test_lines_are_recorded_in_this_thread_alone():
    w, tensors = leaf(1.0, 2.0), []
    with graph.record_lines():
        thread = threading.Thread(target=lambda: tensors.append(w * 2))
        thread.start()
        thread.join()
        assert "place" in (w * 2).grad_fn.metadata
    assert "place" not in tensors.pop().grad_fn.metadata
    assert "place" not in (w * 2).grad_fn.metadata


def test_record_lines_is_a_switch_too():
    w = leaf(1.0, 2.0)
    graph.record_lines()
    y, line = w * 2, here()
    graph.record_lines(False)
    assert y.grad_fn.metadata["place"] == line
    assert (w * 2).grad_fn.metadata == {}


@pytest.mark.parametrize("wrong", [3, None, [1.0]])
def test_what_is_no_tensor(wrong):
    with pytest.raises(TypeError, match="explain"):
        graph.explain(wrong)
    with pytest.raises(TypeError if wrong is not None else AssertionError, match=r"graph|^$"):
        graph.explain(leaf(1.0), wrong)
        raise AssertionError


def test_a_name_that_the_caller_has():
    params = {"w": leaf(1.0)}
    assert "params.w has no gradient" in str(graph.explain(params["w"]))
    assert "the tensor of shape [1] has" in str(graph.explain(leaf(2.0)))
