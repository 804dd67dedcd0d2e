"""Attributes that users set on tensors, and tensors of subclasses, in compiled functions."""

import gc
import weakref

import pytest

import jaxgrad
from jaxgrad import nn


class Image(jaxgrad.Tensor):
    def doubled(self):
        return self * 2


def decayed(parameters):
    return [p for p in parameters if not getattr(p, "no_decay", False)]


def test_an_attribute_that_is_set_changed_and_deleted():
    weight, bias = nn.Parameter(jaxgrad.ones(3)), nn.Parameter(jaxgrad.ones(2))

    @jaxgrad.jit
    def penalty():
        return sum(p.sum() for p in decayed([weight, bias]))

    assert penalty().item() == 5 and penalty().item() == 5 and penalty.count == 1
    bias.no_decay = True
    assert penalty().item() == 3 and penalty.count == 2
    bias.no_decay = False
    assert penalty().item() == 5 and "no_decay was True, and is False" in penalty.explain()
    del bias.no_decay
    assert penalty().item() == 5
    weight.unread = 3
    assert penalty().item() == 5 and penalty.count == 3


def test_parameters_whose_values_are_not_read():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    model[0].bias.no_decay = True
    count = jaxgrad.jit(lambda x: x * len(decayed(model.parameters())))
    x = jaxgrad.ones(1)
    assert count(x).item() == 3
    model[1].bias.no_decay = True
    assert count(x).item() == 2
    del model[0].bias.no_decay
    assert count(x).item() == 3


def test_arguments_have_attributes_of_their_own():
    @jaxgrad.jit
    def scaled(x):
        return x * getattr(x, "scale", 1)

    first, second, third = (jaxgrad.ones(1) for _ in range(3))
    second.scale, third.scale = 2, 3
    for _ in range(2):
        assert [scaled(x).item() for x in (first, second, third)] == [1, 2, 3]
    second.scale = 5
    assert [scaled(x).item() for x in (second, third, first)] == [5, 3, 1]


@pytest.mark.slow
def test_attributes_that_a_compiled_function_sets():
    weight = nn.Parameter(jaxgrad.ones(2))

    @jaxgrad.jit
    def mark(x):
        x.seen = getattr(x, "seen", 0) + 1
        weight.last = x * 2
        if hasattr(weight, "old"):
            del weight.old
        return x

    one, other = jaxgrad.ones(1), jaxgrad.full((1,), 4.0)
    weight.old = True
    with pytest.warns(UserWarning, match="traced at every call"):
        for number in range(10):
            mark(one)
            assert one.seen == number + 1 and weight.last.item() == 2
    assert not hasattr(weight, "old")
    mark(other)
    assert (other.seen, one.seen, weight.last.item()) == (1, 10, 8)


def test_results_have_the_attributes_that_the_function_set():
    @jaxgrad.jit
    def described(x):
        y = x * 2
        y.tag, y.source, y.half, y.itself = "doubled", x, x / 2, y
        return y

    for value in (1.0, 3.0, 5.0):
        x = jaxgrad.tensor(value)
        y = described(x)
        assert (y.item(), y.tag, y.half.item()) == (2 * value, "doubled", value / 2)
        assert y.source is x and y.itself is y
    assert described.count == 1


def test_a_trace_that_fails_leaves_attributes_as_they_were():
    x, weight = jaxgrad.ones(1), jaxgrad.ones(1)
    weight.kept = 1

    @jaxgrad.jit
    def failing(x):
        x.spam, weight.kept = 1, 2
        raise ValueError("on purpose")

    with pytest.raises(ValueError, match="on purpose"):
        failing(x)
    assert vars(x) == {} and weight.kept == 1
    assert "__getattr__" not in vars(jaxgrad.Tensor) and "__setattr__" not in vars(jaxgrad.Tensor)


def test_containers_and_tensors_in_attributes():
    weight = nn.Parameter(jaxgrad.ones(2))
    weight.factors, weight.mask = [2.0], jaxgrad.tensor([1.0, 0.0])

    @jaxgrad.jit
    def masked():
        return (weight * weight.mask * weight.factors[0]).sum()

    assert masked().item() == 2
    weight.factors.append(1.0)
    weight.factors[0] = 3.0
    assert masked().item() == 3
    weight.mask.fill_(1.0)
    assert masked().item() == 6
    weight.mask = jaxgrad.tensor([5.0, 5.0])
    assert masked().item() == 30


def test_programs_keep_no_tensor_for_its_attributes():
    x = jaxgrad.ones(1)
    x.scale = 2
    scaled = jaxgrad.jit(lambda x: x * x.scale)
    scaled(x)
    gone = weakref.ref(x)
    del x
    gc.collect()
    assert gone() is None


# ---- subclasses


def test_arguments_and_results_of_a_subclass():
    @jaxgrad.jit
    def added(x):
        return x + 1, type(x).__name__

    plain, image = jaxgrad.ones(1), jaxgrad.ones(1).as_subclass(Image)
    for _ in range(2):
        assert [type(added(x)[0]) for x in (plain, image)] == [jaxgrad.Tensor, Image]
        assert [added(x)[1] for x in (plain, image)] == ["Tensor", "Image"]
    assert added.count == 2 and "Image" in added.explain()


def test_a_captured_tensor_of_a_subclass():
    image = jaxgrad.tensor([1.0, 2.0]).as_subclass(Image).requires_grad_()

    @jaxgrad.jit
    def step(x):
        loss = (image.doubled() * x).sum()
        loss.backward()
        with jaxgrad.no_grad():
            image.sub_(image.grad)
        image.grad = None
        return loss.detach()

    x = jaxgrad.ones(2)
    assert [step(x).item(), step(x).item()] == [6, -2] and step.count == 1
    assert type(image) is Image and image.tolist() == [-3, -2]


def test_a_place_that_gets_a_tensor_of_another_class():
    class Model:
        state = None

    model = Model()
    model.state = jaxgrad.ones(1)

    @jaxgrad.jit
    def step():
        model.state = model.state * 2
        return model.state, isinstance(model.state, Image)

    step(), step(), step()
    model.state = model.state.as_subclass(Image)
    state, is_image = step()
    assert is_image and type(state) is Image and state.item() == 16


def test_overrides_in_a_compiled_function():
    class Counting(jaxgrad.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            result = super().__torch_function__(func, types, args, kwargs)
            return result * 10 if func is jaxgrad.add else result

    x = jaxgrad.ones(1).as_subclass(Counting)
    function = jaxgrad.jit(lambda x: jaxgrad.add(x, 1))
    assert function(x).item() == 20 and type(function(x)) is Counting
    assert function(jaxgrad.ones(1)).item() == 2


def test_a_mode_around_a_compiled_function():
    from jaxgrad.overrides import TorchFunctionMode

    seen = []

    class Recording(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    function = jaxgrad.jit(lambda x: x.sin() + 1)
    x = jaxgrad.zeros(1)
    function(x)
    for _ in range(2):
        with Recording():
            assert function(x).item() == 1
    assert seen == ["sin", "add", "item"] * 2


@pytest.mark.slow
def test_second_derivatives_have_the_class_and_the_attributes():
    class Power(jaxgrad.Tensor):
        exponent = 1

        def raised(self):
            return self**self.exponent

    function = jaxgrad.jit(lambda x: x.raised() * x.factor)
    for exponent in (3, 4):
        x = jaxgrad.tensor(2.0).as_subclass(Power).requires_grad_()
        x.exponent, x.factor = exponent, 10
        (slope,) = jaxgrad.autograd.grad(function(x), x, create_graph=True)
        (second,) = jaxgrad.autograd.grad(slope, x)
        assert slope.item() == 10 * exponent * 2 ** (exponent - 1)
        assert second.item() == 10 * exponent * (exponent - 1) * 2 ** (exponent - 2)


def test_attributes_of_the_class_of_a_tensor():
    class Power(jaxgrad.Tensor):
        exponent = 2

        def raised(self):
            return self**self.exponent

    captured, argument = (jaxgrad.tensor(3.0).as_subclass(Power) for _ in range(2))
    function = jaxgrad.jit(lambda x: (captured.raised(), x.raised()))

    def values():
        return [tensor.item() for tensor in function(argument)]

    assert values() == values() == [9, 9]
    captured.exponent = 3
    assert values() == [27, 9]
    argument.exponent = 1
    assert values() == [27, 3]
    del captured.exponent, argument.exponent
    Power.exponent = 4
    assert values() == [81, 81]
    Power.raised = lambda self: self + 1
    assert values() == [4, 4]
