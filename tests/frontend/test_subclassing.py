"""Attributes on tensors, subclasses of `Tensor` and `Parameter`, and `__torch_function__`."""

import copy
import pickle
import sys
import threading

import jax
import pytest
from helpers.as_torch import as_torch, error

import jaxgrad
from jaxgrad import nn


class Image(jaxgrad.Tensor):
    pass


class Scaled(nn.Parameter):
    """A parameter with an attribute and a method."""

    def __new__(cls, data, requires_grad=True, scale=1.0):
        tensor = super().__new__(cls, data, requires_grad)
        tensor.scale = scale
        return tensor

    def scaled(self):
        return self * self.scale


def kind(value):
    return type(value).__name__


# ---- attributes


@as_torch
def test_attributes_of_tensors_are_kept_by_copies(torch):
    x, p = torch.ones(2), torch.nn.Parameter(torch.ones(2))
    x.tag, p.no_decay, p._is_initialized = [1, 2], True, True
    ways = copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))
    seen = [way(value).__dict__ for value in (x, p) for way in ways]
    seen += [x.detach().__dict__, (x + 1).__dict__]
    shared = copy.copy(x).tag is x.tag, copy.deepcopy(x).tag is x.tag
    del x.tag
    return [*seen, *shared, hasattr(x, "tag")]


@as_torch("""
    AttributeError("'Tensor' object has no attribute 'no_decay'")
""")
def test_a_missing_attribute(torch):
    return error(getattr, torch.ones(2), "no_decay")


def test_attributes_of_parameters_survive_what_modules_do():
    layer = nn.Linear(2, 2)
    layer.bias.no_decay = True
    layer.to(jaxgrad.float64).load_state_dict(layer.state_dict())
    assert layer.bias.no_decay and vars(layer.weight) == {}
    assert copy.copy(layer).bias.no_decay and pickle.loads(pickle.dumps(layer)).bias.no_decay


# ---- subclasses


@pytest.mark.slow
@as_torch
def test_results_are_of_the_class_of_the_arguments(torch):
    class Image(torch.Tensor):
        pass

    x = torch.ones(2, 2).as_subclass(Image)
    plain = torch.zeros(2, 2)
    results = [
        x + 1,
        1 + x,
        1 - x,
        2 / x,
        2**x,
        x @ plain,
        plain @ x,
        plain + x,
        x > 0,
        -x,
        x.sum(),
        x[0],
        x[x > 0],
        x.T,
        x.data,
        x.detach(),
        x.clone(),
        x.to(torch.float64),
        x.double(),
        x.reshape(4),
        x.contiguous(),
        torch.stack([plain, x]),
        torch.cat((x, x)),
        torch.ones_like(x),
        x.new_zeros(2),
        torch.nn.functional.relu(x),
        torch.nn.functional.layer_norm(x, (2,)),
        torch.nn.functional.linear(plain, x),
        torch.where(x > 0, x, plain),
        torch.linalg.norm(x),
        torch.einsum("ij->j", x),
        torch.fft.fft(x),
        x.where(x > 0, plain),
        copy.copy(x),
        plain.add_(x),
        x.add_(1),
        x.requires_grad_(False),
    ]
    several = [*x.max(1), *x.unbind(), *x, *torch.split(x, 1), *torch.linalg.svd(x)]
    others = [plain, plain.add_(1), x.tolist(), x.shape, x.numel(), x.max(1)]
    return [*map(kind, results), *map(kind, several), *map(kind, others)]


@as_torch("""
    tensor([5.0, 7.0])
    'Tensor'
    'AliasBackward0'
    tensor([27.0])
    tensor([3.0])
    'Tensor'
    True
""")
def test_gradients_of_subclasses(torch):
    class Image(torch.Tensor):
        pass

    leaf = torch.tensor([1.0, 2.0], requires_grad=True)
    x = leaf.as_subclass(Image)
    (x * x).sum().backward()
    image = torch.tensor([3.0]).as_subclass(Image).requires_grad_()
    (grad,) = torch.autograd.grad((image**3).sum(), image, create_graph=True)
    (image * leaf).sum().backward()
    node = x.grad_fn.name()
    return (
        leaf.grad,
        kind(leaf.grad),
        node,
        grad.detach(),
        image.grad,
        kind(image.grad),
        image.is_leaf,
    )


@as_torch
def test_constructors_of_subclasses(torch):
    class Image(torch.Tensor):
        pass

    class Named(torch.Tensor):
        @staticmethod
        def __new__(cls, data, name, *args, **kwargs):
            return super().__new__(cls, data, *args, **kwargs)

        def __init__(self, data, name):
            self.name_of_it = name

    class Strict(torch.Tensor):
        def __init__(self, *args):
            super().__init__(*args)

    images = [Image([1.0, 2.0]), Image(2, 3) * 0, Image(torch.ones(2)), Image()]
    named = Named([1.0], "one")
    leaf = torch.Tensor._make_subclass(Image, torch.ones(2), True)
    return (
        [kind(image) for image in images],
        [image.shape for image in images],
        images[0],
        kind(named),
        named.name_of_it,
        kind(named + 1),
        hasattr(named + 1, "name_of_it"),
        kind(leaf),
        leaf.requires_grad,
        leaf.is_leaf,
        error(Strict, [1.0], words="takes exactly one argument"),
        error(torch.ones(2).as_subclass, int, words="does not inherit from Tensor"),
    )


@as_torch(r"""
    'Image([1., 1.])'
    'Image([[0., 1., 2.],\n       [3., 4., 5.]])'
    'Image([1., 1.], requires_grad=True)'
    'Parameter containing:\nParameter(Scaled([1.], requires_grad=True))'
""")
def test_how_subclasses_print(torch):
    class Image(torch.Tensor):
        pass

    class Scaled(torch.nn.Parameter):
        pass

    x = torch.ones(2).as_subclass(Image)
    rows = torch.arange(6.0).reshape(2, 3).as_subclass(Image)
    return repr(x), repr(rows), repr(x.requires_grad_()), repr(Scaled(torch.ones(1)))


@as_torch
def test_parameters_of_a_subclass(torch):
    class Scaled(torch.nn.Parameter):
        def __new__(cls, data, requires_grad=True, scale=1.0):
            param = super().__new__(cls, data, requires_grad)
            param.scale = scale
            return param

        def scaled(self):
            return self * self.scale

    class Image(torch.Tensor):
        pass

    module = torch.nn.Module()
    module.weight = weight = Scaled(torch.ones(2), scale=3.0)
    module.image = torch.nn.Parameter(torch.ones(2).as_subclass(Image))
    weight.scaled().sum().backward()
    optimizer = torch.optim.SGD(module.parameters(), lr=1.0)
    optimizer.step()
    tensors = weight, module.image, weight * 2
    is_parameter = [isinstance(tensor, torch.nn.Parameter) for tensor in tensors]
    return (
        [(name, kind(param)) for name, param in module.named_parameters()],
        weight.detach() + 0,
        kind(weight.scaled()),
        kind(module.image * 2),
        is_parameter,
        isinstance(weight, Scaled),
        kind(copy.deepcopy(weight)),
        [*module.state_dict()],
        weight.scale,
    )


def test_copies_and_pickles_of_subclasses():
    weight = Scaled(jaxgrad.ones(2), scale=3.0)
    image = jaxgrad.ones(2, 2).t().as_subclass(Image)
    for copied in (copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))):
        again = copied(weight)
        assert type(again) is Scaled and again.scale == 3.0 and again.requires_grad
        assert isinstance(again, nn.Parameter) and again.scaled().tolist() == [3, 3]
        assert type(copied(image)) is Image and copied(image).stride() == (1, 2)


def test_subclasses_in_trees_of_jax():
    image = jaxgrad.tensor([1.0, 2.0]).as_subclass(Image)
    doubled = jax.tree.map(lambda tensor: tensor * 2, {"image": image})
    assert type(doubled["image"]) is Image and doubled["image"].tolist() == [2, 4]


def test_a_class_that_jaxgrad_cannot_make():
    class Wrapped(jaxgrad.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func(*args)

    with pytest.raises(NotImplementedError, match="Wrapped: __torch_dispatch__"):
        jaxgrad.ones(2).as_subclass(Wrapped)
    with pytest.raises(NotImplementedError, match="Define __torch_function__"):
        jaxgrad.Tensor._make_wrapper_subclass(Image, (2,))

    with pytest.raises(TypeError, match=r"call Parameter\(tensor\)"):
        jaxgrad.ones(2).as_subclass(nn.Parameter)


# ---- __torch_function__


def recording(torch, seen):
    """A class that records the functions that are called with its tensors."""

    class Recorded(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            name = getattr(func, "__name__", "")
            if name != "__get__":  # jaxgrad leaves properties out
                is_method = getattr(torch.Tensor, name, None) is func
                seen.append((name, is_method, [type_.__name__ for type_ in types]))
            return super().__torch_function__(func, types, args, kwargs)

    return Recorded


@as_torch
def test_which_functions_a_class_sees(torch):
    seen = []
    kind = recording(torch, seen)
    x, n = torch.ones(2, 2).as_subclass(kind), torch.ones(2, dtype=torch.int64).as_subclass(kind)
    plain = torch.ones(2, 2)
    calls = [
        lambda: torch.add(x, 1),
        lambda: x.add(1),
        lambda: x + 1,
        lambda: 1 + x,
        lambda: x - 1,
        lambda: x * 2,
        lambda: x / 2,
        lambda: x % 2,
        lambda: x @ x,
        lambda: plain @ x,
        lambda: -x,
        lambda: abs(x),
        lambda: x == 1,
        lambda: x < 1,
        lambda: n & 1,
        lambda: n | 1,
        lambda: x.add_(1),
        lambda: x.mul_(2),
        lambda: torch.stack([plain, x]),
        lambda: x.sum(),
        lambda: bool(x.sum() > 0),
        lambda: float(x.sum()),
        lambda: x.sum().item(),
        lambda: x.tolist(),
        lambda: torch.nn.functional.relu(x),
        lambda: torch.nn.functional.layer_norm(x, (2,)),
        lambda: torch.nn.functional.linear(plain, x),
        lambda: x.to(torch.float64),
        lambda: x.detach(),
        lambda: x.clone(),
        lambda: x.reshape(-1),
        lambda: x.view(4),
        lambda: torch.linalg.det(x),
        lambda: torch.where(x > 0, x, plain),
        lambda: x.new_zeros(1),
        lambda: torch.add(plain, plain, out=x),
        lambda: torch.ones_like(x),
        lambda: x.numpy(),
    ]
    for call in calls:
        call()
    x += 1
    x -= 1
    x *= 2
    return seen


@as_torch
def test_which_class_is_asked(torch):
    class Above(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "above", [type_.__name__ for type_ in types]

    class Below(Above):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "below", [type_.__name__ for type_ in types]

    class Aside(torch.Tensor):
        pass

    class Refusing(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    above, below, aside, refusing = (
        torch.ones(1).as_subclass(subclass) for subclass in (Above, Below, Aside, Refusing)
    )
    return (
        torch.add(above, below),
        torch.add(below, above),
        torch.add(aside, above),
        torch.add(refusing, above),
        torch.add(torch.ones(1), above),
        torch.stack([aside, below]),
        error(torch.add, refusing, 1, words="Multiple dispatch failed for 'torch.add'"),
        error(torch.add, aside, refusing, words="returned NotImplemented"),
    )


@as_torch
def test_objects_that_stand_for_tensors(torch):
    class Scalar:
        def __init__(self, value):
            self.value = value

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__, [type_.__name__ for type_ in types], func is torch.mean

    x, plain = Scalar(1), torch.ones(2)
    functional = torch.nn.functional
    return (
        torch.mean(x),
        torch.add(plain, x),
        torch.add(x, plain),
        plain + x,
        plain.mul(x),
        torch.stack([x]),
        functional.linear(x, plain),
        functional.layer_norm(x, (1,)),
        torch.einsum("i->", x),
        torch.linalg.det(x),
        torch.sum(input=x),
        functional.relu(x),
    )


@pytest.mark.slow
def test_the_first_call_with_an_object_that_stands_for_a_tensor():
    # in a process that has met no class with a __torch_function__ before
    program = """
import jaxgrad as torch
class Scalar:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func.__name__
{}
"""
    import subprocess

    for call, name in (
        ("print(torch.einsum('i->', Scalar()))", "einsum"),
        ("print(torch.ones(2) + Scalar())", "add"),
        ("print(torch.mean(Scalar()))", "mean"),
        ("print(torch.ones(2).mul_(Scalar()))", "mul_"),
    ):
        run = subprocess.run([sys.executable, "-c", program.format(call)], capture_output=True)
        assert run.stdout.decode().strip() == name, run.stderr.decode()


@as_torch("""
    tensor([3.0, 8.0])
    ['x']
    tensor([4.0, 10.0])
    [['x'], 'x']
""")
def test_a_class_that_hides_itself(torch):
    class Metadata:
        """As in PyTorch's guide: a wrapper that is no tensor."""

        def __init__(self, data, note):
            self.data, self.note = data, note

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            notes = [argument.note for argument in args if isinstance(argument, cls)]
            args = [argument.data if isinstance(argument, cls) else argument for argument in args]
            return cls(func(*args, **(kwargs or {})), notes)

    x = Metadata(torch.tensor([1.0, 2.0]), "x")
    product = torch.mul(x, torch.tensor([3.0, 4.0]))
    again = torch.add(product, x)
    return product.data, product.note, again.data, again.note


# ---- modes


@as_torch
def test_modes(torch):
    from importlib import import_module

    overrides = import_module(f"{torch.__name__}.overrides")
    seen = []

    class Recording(overrides.TorchFunctionMode):
        def __init__(self, name):
            self.name = name

        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append((self.name, func.__name__))
            return func(*args, **(kwargs or {}))

    class Doubling(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            return result * 2 if func is torch.add else result

    class Refusing(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return NotImplemented

    x = torch.ones(2)
    with Recording("outer"), Recording("inner"):
        y = torch.add(x, 1) * 2
        x.sum()
    with Doubling():
        z = torch.add(x, 1)
    with Refusing():
        refused = error(torch.add, x, 1, words="returned NotImplemented")
    return y, z, torch.add(x, 1), seen, refused


def test_modes_end_and_belong_to_a_thread():
    from jaxgrad.overrides import TorchFunctionMode

    seen = []

    class Recording(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    x = jaxgrad.ones(2)
    with Recording():
        thread = threading.Thread(target=lambda: x + 1)
        thread.start()
        thread.join()
        assert seen == []
        x + 1
        with jaxgrad._C.DisableTorchFunction():
            x * 2
    x - 1
    with pytest.raises(ValueError, match="inside"), Recording():
        raise ValueError("inside")
    x / 2
    assert seen == ["add"] and not jaxgrad.tape.interception.is_general


# ---- torch.overrides


@as_torch
def test_the_functions_of_overrides(torch):
    from importlib import import_module

    overrides = import_module(f"{torch.__name__}.overrides")

    class Duck:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__, len(args), sorted(kwargs)

    class Image(torch.Tensor):
        pass

    @overrides.wrap_torch_function(lambda x, y=None: (x, y))
    def mine(x, y=None):
        return "called"

    duck, image, plain = Duck(), torch.ones(1).as_subclass(Image), torch.ones(1)
    with import_module(f"{torch.__name__}._C").DisableTorchFunctionSubclass():
        disabled = overrides.has_torch_function((image,)), kind(image + 1)
    return (
        [overrides.has_torch_function((value,)) for value in (duck, image, plain, 3)],
        overrides.has_torch_function_unary(image),
        overrides.has_torch_function_variadic(1, duck),
        [overrides.is_tensor_like(value) for value in (duck, image, plain, 3)],
        disabled,
        overrides.handle_torch_function(torch.add, (duck,), duck, 1, alpha=2),
        mine(1),
        mine(duck),
        mine(1, y=duck),
        overrides.is_tensor_method_or_property(torch.Tensor.add),
        overrides.is_tensor_method_or_property(torch.add),
        torch.add in overrides.get_overridable_functions()[torch],
        torch.Tensor.add in overrides.get_overridable_functions()[torch.Tensor],
        overrides.resolve_name(torch.nn.functional.layer_norm),
        overrides.resolve_name(torch.Tensor.add),
        overrides.resolve_name(len),
    )


def test_torch_function_sees_attributes():
    import jaxgrad as torch

    calls = []

    class Logged(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            calls.append(func.__name__)
            if func == torch.Tensor.dtype.__get__:
                return "asked"
            return super().__torch_function__(func, types, args, kwargs or {})

    x = torch.ones(2, 3).as_subclass(Logged)
    assert x.shape == (2, 3) and x.dtype == "asked" and not calls[2:]
    x.requires_grad = True
    assert (x.requires_grad, x.size(0), len(x), type(x.T)) == (True, 2, 2, Logged)
    assert calls == ["__get__", "__get__", "__set__", "__get__", "size", "__len__", "__get__"]
    calls.clear()
    with torch._C.DisableTorchFunctionSubclass():
        assert x.dtype is torch.float32 and not calls
    (x * 2).sum().backward()
    assert type(x.grad) is Logged and x.grad.tolist() == [[2.0] * 3] * 2


def test_a_parameter_made_of_data():
    make = jaxgrad.Tensor._make_subclass
    for requires_grad in (True, False):
        parameter = make(jaxgrad.nn.Parameter, jaxgrad.ones(2), requires_grad)
        assert type(parameter) is jaxgrad.nn.Parameter and parameter.requires_grad is requires_grad
    layer = jaxgrad.nn.Linear(2, 2)
    layer.weight = make(jaxgrad.nn.Parameter, jaxgrad.zeros(2, 2), True)
    assert layer(jaxgrad.ones(2)).tolist() == layer.bias.tolist()
