"""no_grad, enable_grad, set_grad_enabled, inference_mode, row by row of PyTorch's behaviour."""

import asyncio
import contextlib
import contextvars
import functools
import threading

import jax
import jax.numpy as jnp
import numpy
import pytest
from helpers import hangs
from helpers.as_torch import as_torch, error, leaf, warned
from helpers.compiled import under_jit

import jaxgrad


def state(torch):
    return torch.is_grad_enabled(), torch.is_inference_mode_enabled()


def of_a_new_thread(function):
    results = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join()
    return results[0]


@pytest.fixture(autouse=True)
def grad_is_enabled_before_and_after():
    assert state(jaxgrad) == (True, False)
    yield
    assert state(jaxgrad) == (True, False)


@pytest.mark.row("C01")
@as_torch("""
    None
    tensor([2.0, 4.0])
    [False, False]
    [True, False]
    tensor([2.0, 4.0], requires_grad=True)
    True
    None
""")
def test_no_grad_as_a_context(torch):
    x = leaf(torch, 1.0, 2.0)
    with torch.no_grad() as entered:
        inside = x * 2
        within = state(torch)
    after = x * 2
    return entered, inside, within, state(torch), after, inside.is_leaf, inside.grad_fn


@pytest.mark.row("C01")
@as_torch("""
    [[tensor([2.0, 4.0]), tensor([3.0, 6.0]), 'double', 'Doubles.'],
     [tensor([2.0, 4.0]), tensor([3.0, 6.0]), 'double', 'Doubles.']]
    [True, False]
""")
def test_no_grad_as_a_decorator(torch):
    def double(x, *, factor=2):
        """Doubles."""
        return x * factor

    x = leaf(torch, 1.0, 2.0)
    answers = []
    for decorated in (torch.no_grad(double), torch.no_grad()(double)):
        answers.append(
            (decorated(x), decorated(x, factor=3), decorated.__name__, decorated.__doc__)
        )
    return answers, state(torch)


@pytest.mark.row("C01")
@as_torch("""
    tensor(6.0)
    tensor(6.0)
""")
def test_no_grad_of_a_method(torch):
    class Model:
        weight = leaf(torch, 2.0)

        @torch.no_grad()
        def call(self, x):
            return x * self.weight

        @classmethod
        @torch.no_grad
        def tripled(cls):
            return cls.weight * 3

    return Model().call(3), Model.tripled()


@pytest.mark.row("C01")
@as_torch("""
    [[False, [True, False]], [False, [True, False]], [False, [True, False]], 'returned']
    [False, False]
    [True, False]
""")
def test_no_grad_of_a_generator(torch):
    @torch.no_grad()
    def steps(count):
        for _ in range(count):
            received = yield torch.is_grad_enabled()
            assert received in (None, "sent")
        return "returned"

    def delegate():
        answers.append((yield from steps(2)))

    answers = []
    generator = steps(3)
    answers.append((next(generator), state(torch)))
    answers.append((generator.send("sent"), state(torch)))
    with torch.enable_grad():
        answers.append((next(generator), state(torch)))
    return answers, list(delegate()), state(torch)


@pytest.mark.row("C01")
@as_torch("""
    False
    KeyError("'key'")
    [['caught', False], ['closed', False], ['closed', False]]
    [True, False]
""")
def test_a_generator_that_catches_and_closes(torch):
    def record(place):
        records.append((place, torch.is_grad_enabled()))

    @torch.no_grad()
    def patient():
        try:
            while True:
                try:
                    yield torch.is_grad_enabled()
                except ValueError:
                    record("caught")
        finally:
            record("closed")

    records = []
    generator = patient()
    next(generator)
    thrown = generator.throw(ValueError())
    generator.close()
    other = patient()
    next(other)
    return thrown, error(other.throw, KeyError("key")), records, state(torch)


@pytest.mark.row("C01")
@as_torch("""
    ValueError('inside')
    [True, False]
    ValueError('in context')
    [True, False]
""")
def test_an_error_inside_no_grad_restores_the_mode(torch):
    @torch.no_grad()
    def fails():
        raise ValueError("inside")

    def fails_in_context():
        with torch.no_grad():
            raise ValueError("in context")

    return error(fails), state(torch), error(fails_in_context), state(torch)


@pytest.mark.row("C01")
@as_torch("True")
def test_no_grad_is_of_one_thread(torch):
    with torch.no_grad():
        other = of_a_new_thread(lambda: torch.is_grad_enabled())
    return other


@pytest.mark.row("C01")
def test_no_grad_of_a_coroutine():
    """PyTorch's decorator ends before the coroutine begins."""

    @jaxgrad.no_grad()
    async def inside():
        before = jaxgrad.is_grad_enabled()
        await asyncio.sleep(0)
        return before, jaxgrad.is_grad_enabled()

    assert asyncio.run(inside()) == (False, False)


@pytest.mark.row("C02")
@as_torch("""
    [tensor([1.0, 1.0], requires_grad=True),
     tensor([1.0], requires_grad=True),
     tensor([0.0, 0.0], requires_grad=True),
     tensor([1.0, 1.0], requires_grad=True)]
    tensor([2.0, 2.0])
    tensor([1.0, 1.0])
""")
def test_factories_heed_requires_grad(torch):
    with torch.no_grad():
        tensors = [
            torch.ones(2, requires_grad=True),
            torch.tensor([1.0], requires_grad=True),
            torch.zeros_like(torch.ones(2), requires_grad=True),
            torch.ones(2).requires_grad_(),
        ]
        doubled = tensors[0] * 2
    (tensors[0] * tensors[3]).sum().backward()
    return tensors, doubled, tensors[0].grad


@pytest.mark.row("C03")
def test_forward_mode_goes_on_under_no_grad():
    """Grad modes are of the tape; `detach` and `jax.lax.stop_gradient` stop a tangent."""

    def function(x):
        with jaxgrad.no_grad():
            return jaxgrad.ops.mul(x, jaxgrad.ops.sin(x))

    x = jnp.float32(0.7)
    value, tangent = jax.jvp(function, (x,), (jnp.float32(1.0),))
    expected = jax.jvp(lambda x: x * jnp.sin(x), (x,), (jnp.float32(1.0),))
    numpy.testing.assert_allclose((value, tangent), expected, rtol=1e-6)


@pytest.mark.row("C03")
@as_torch("""
    [tensor(9.0)]
    tensor(9.0)
""")
def test_reverse_mode_stops_under_no_grad(torch):
    def function(x):
        with torch.no_grad():
            constant = x * x
        return constant * x

    x = leaf(torch, 3.0)
    return torch.autograd.grad(function(x), x), torch.func.grad(function)(torch.tensor(3.0))


@pytest.mark.row("C04")
@pytest.mark.parametrize("mode", ["no_grad", "enable_grad", "inference_mode"])
def test_a_class_is_decorated_with_a_warning(mode):
    """PyTorch turns the class into a function."""
    words = "Decorating classes is deprecated and will be disabled in future versions"
    with pytest.warns(FutureWarning, match=words) as warnings:

        @getattr(jaxgrad, mode)()
        class Decorated:
            def __init__(self):
                self.modes = state(jaxgrad)

    assert warnings[0].filename == __file__
    with jaxgrad.no_grad():
        assert Decorated().modes == {
            "no_grad": (False, False),
            "enable_grad": (True, False),
            "inference_mode": (False, True),
        }.get(mode)
    assert isinstance(Decorated, type)


@pytest.mark.row("C04")
@as_torch("""
    warned([FutureWarning(
             'Decorating classes is deprecated and will be disabled in future versions. You '
             'should only decorate functions or methods. To preserve the current behavior of '
             'class decoration, you can directly decorate the `__init__` method and nothing '
             'else.')],
           None)
""")
def test_the_warning_of_a_decorated_class(torch):
    def decorate():
        torch.no_grad()(type("Made", (), {}))

    return warned(decorate)


@pytest.mark.row("C05")
@pytest.mark.parametrize(
    "make",
    [
        jaxgrad.no_grad,
        jaxgrad.inference_mode,
        functools.partial(jaxgrad.inference_mode, True),
        functools.partial(jaxgrad.set_grad_enabled, False),
    ],
    ids=["no_grad", "inference_mode", "inference_mode(True)", "set_grad_enabled"],
)
def test_one_no_grad_object_entered_again(make):
    """PyTorch 2.13 leaves grad mode off here."""
    mode = make()
    with mode:
        inside = state(jaxgrad)
        with mode, jaxgrad.enable_grad(), mode:
            assert state(jaxgrad) == inside
        assert state(jaxgrad) == inside
        assert not jaxgrad.is_grad_enabled()
    assert state(jaxgrad) == (True, False)
    with mode:
        assert state(jaxgrad) == inside
    assert state(jaxgrad) == (True, False)


@pytest.mark.row("C05")
def test_one_no_grad_object_in_several_threads():
    mode, inside, leave = jaxgrad.no_grad(), threading.Event(), threading.Event()

    def other():
        with jaxgrad.no_grad(), mode:
            inside.set()
            leave.wait(hangs.LIMIT)
        return jaxgrad.is_grad_enabled()

    flags = []
    thread = threading.Thread(target=lambda: flags.append(other()))
    with mode:
        thread.start()
        inside.wait(hangs.LIMIT)
    assert jaxgrad.is_grad_enabled()  # the mode that this thread had, not the other one's
    leave.set()
    thread.join()
    assert flags == [True]


@pytest.mark.row("C05")
def test_one_no_grad_object_in_several_tasks():
    mode = jaxgrad.no_grad()

    async def task(enabled):
        jaxgrad.set_grad_enabled(enabled)
        flags = []
        for _ in range(3):
            with mode:
                await asyncio.sleep(0)
                flags.append(jaxgrad.is_grad_enabled())
            flags.append(jaxgrad.is_grad_enabled())
        return flags

    async def both():
        return await asyncio.gather(task(True), task(False))

    assert asyncio.run(both()) == [[False, True] * 3, [False, False] * 3]


@pytest.mark.row("C05")
def test_no_grad_objects_entered_and_left_out_of_order():
    modes = [jaxgrad.no_grad() for _ in range(4)]
    for mode in modes:
        mode.__enter__()
    flags = []
    for position in (1, 0, 3, 2):
        modes[position].__exit__(None, None, None)
        flags.append(jaxgrad.is_grad_enabled())
    assert flags == [False, True, False, False]  # each task restores its own mode
    jaxgrad.set_grad_enabled(True)


@pytest.mark.row("C05")
def test_a_no_grad_object_left_in_another_context():
    """The mode belongs to the context that entered; this one has nothing to restore."""
    mode = jaxgrad.no_grad()
    contextvars.copy_context().run(mode.__enter__)
    assert jaxgrad.is_grad_enabled()
    mode.__exit__(None, None, None)
    assert jaxgrad.is_grad_enabled()


@pytest.mark.row("C06")
@as_torch("""
    tensor([2.0, 4.0], requires_grad=True)
    tensor([2.0, 4.0], requires_grad=True)
    tensor([3.0, 6.0], requires_grad=True)
    tensor([2.0, 4.0])
    [False, False]
""")
def test_enable_grad_inside_no_grad(torch):
    x = leaf(torch, 1.0, 2.0)

    @torch.enable_grad()
    def double(x):
        return x * 2

    @torch.enable_grad
    def triple(x):
        return x * 3

    with torch.no_grad():
        with torch.enable_grad():
            inside = x * 2
        return inside, double(x), triple(x), x * 2, state(torch)


@pytest.mark.row("C07")
@as_torch("""
    tensor(4.0)
    tensor(4.0, requires_grad=True)
    [True, False]
""")
def test_set_grad_enabled_as_a_function(torch):
    x = leaf(torch, 2.0)
    torch.set_grad_enabled(False)
    off = x * 2
    torch.set_grad_enabled(mode=True)
    return off, x * 2, state(torch)


@pytest.mark.row("C07")
@as_torch("""
    [[False, False], [True, False], [True, False], [False, False], [False, False], [False, False]]
    [True, False]
""")
def test_set_grad_enabled_as_a_context(torch):
    states = []
    for outer in (True, False):
        with torch.set_grad_enabled(outer):
            with torch.set_grad_enabled(not outer):
                states.append(state(torch))
            states.append(state(torch))
    mode = torch.set_grad_enabled(False)
    states.append(state(torch))
    with mode:
        states.append(state(torch))
    return states, state(torch)


@pytest.mark.row("C07")
@as_torch("""
    [[False, False], [True, False], [False, False], [True, False], [True, False], [False, False]]
    [True, False]
""")
def test_set_grad_enabled_as_a_decorator(torch):
    mode = torch.set_grad_enabled(False)
    states = [state(torch)]

    @mode
    def function():
        return state(torch)

    states += [state(torch), function(), state(torch)]
    with torch.no_grad():
        states += [torch.set_grad_enabled(True)(lambda: state(torch))(), state(torch)]
    return states, state(torch)


@pytest.mark.row("C07")
@as_torch("""
    'set_grad_enabled(mode=True)'
    [TypeError("set_grad_enabled(): argument 'enabled' (position 1) must be bool, not str"),
     TypeError("set_grad_enabled(): argument 'enabled' (position 1) must be bool, not int"),
     TypeError("set_grad_enabled(): argument 'enabled' (position 1) must be bool, not NoneType")]
    [True, False]
""")
def test_repr_and_errors(torch):
    text = repr(torch.set_grad_enabled(True))
    wrong = [error(torch.set_grad_enabled, value) for value in ("yes", 1, None)]
    return text.split(".")[-1], wrong, state(torch)


@pytest.mark.row("C08")
@as_torch("""
    True
    False
    True
    True
""")
def test_is_grad_enabled_tells_the_mode(torch):
    flags = [torch.is_grad_enabled()]
    with torch.no_grad():
        flags.append(torch.is_grad_enabled())
        flags.append(of_a_new_thread(torch.is_grad_enabled))
    torch.set_grad_enabled(False)
    flags.append(of_a_new_thread(torch.is_grad_enabled))
    torch.set_grad_enabled(True)
    return flags


@pytest.mark.row("C08")
def test_tasks_have_a_mode_each():
    async def off(turns):
        with jaxgrad.no_grad():
            for _ in range(turns):
                await asyncio.sleep(0)
                assert not jaxgrad.is_grad_enabled()

    async def on(turns):
        for _ in range(turns):
            await asyncio.sleep(0)
            assert jaxgrad.is_grad_enabled()

    async def run_all():
        await asyncio.gather(off(5), on(7), off(3), on(4))

    asyncio.run(run_all())


@pytest.mark.row("C09")
@as_torch("""
    tensor([2.0, 4.0])
    [False, True]
    [True, True, False]
    True
    [True, False]
""")
def test_inference_mode_records_nothing(torch):
    x = leaf(torch, 1.0, 2.0)
    with torch.inference_mode():
        created, computed, within = torch.ones(2), x * 2, state(torch)
    kinds = created.is_inference(), computed.is_inference(), x.is_inference()
    return computed, within, kinds, computed.is_leaf, state(torch)


@pytest.mark.row("C09")
@as_torch
def test_forms_of_inference_mode(torch):
    def function():
        return state(torch)

    answers = [
        torch.inference_mode(function)(),
        torch.inference_mode()(function)(),
        torch.inference_mode(True)(function)(),
        torch.inference_mode(mode=False)(function)(),
    ]
    with torch.inference_mode():
        answers.append(torch.inference_mode(False)(function)())
        with torch.inference_mode(False):
            answers.append((state(torch), leaf(torch, 2.0) * 2, torch.ones(1).is_inference()))
        answers.append(state(torch))
    with torch.no_grad(), torch.inference_mode(False):
        answers.append(state(torch))
    return answers, state(torch)


@pytest.mark.row("C10")
@as_torch("""
    [[True, True], tensor(4.0), True]
    [True, True]
    [False, True]
    [False, True]
""")
def test_enable_grad_inside_inference_mode(torch):
    x = leaf(torch, 2.0)
    with torch.inference_mode():
        with torch.enable_grad():
            inside = state(torch), x * 2, (x * 2).is_inference()
        with torch.set_grad_enabled(True):
            again = state(torch)
        with torch.no_grad():
            off = state(torch)
        return inside, again, off, state(torch)


@pytest.mark.row("C11")
@as_torch
def test_inference_tensors_are_not_saved(torch):
    x = leaf(torch, 1.0, 2.0)
    with torch.inference_mode():
        constant = torch.tensor([3.0, 4.0])
    added = x + constant
    added.sum().backward()
    usable = x * constant.clone()
    with torch.no_grad():
        plain = x * constant
    return (
        error(lambda: x * constant),
        error(lambda: constant * x),
        added,
        x.grad,
        usable,
        plain,
        (constant * constant).requires_grad,
        constant.clone().is_inference(),
    )


@pytest.mark.row("C12")
@as_torch("""
    RuntimeError(
     'Setting requires_grad=True on inference tensor outside InferenceMode is not '
     'allowed.')
    tensor([1.0, 1.0])
    [tensor([1.0, 1.0], requires_grad=True), tensor([1.0, 1.0], requires_grad=True)]
""")
def test_inference_tensors_require_no_grad(torch):
    with torch.inference_mode():
        constant = torch.ones(2)
        inside = torch.ones(2).requires_grad_(), torch.ones(2, requires_grad=True)
    return error(constant.requires_grad_), constant.requires_grad_(False), inside


@pytest.mark.row("C12")
def test_a_leaf_made_in_inference_mode_is_one():
    """PyTorch records nothing of products with it."""
    with jaxgrad.inference_mode():
        created = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
        asked = jaxgrad.tensor([1.0, 2.0]).requires_grad_()
    for x in (created, asked):
        (x * x).sum().backward()
        assert x.grad.tolist() == [2, 4]


@pytest.mark.row("C13")
@as_torch("""
    False
    False
    True
    True
    False
""")
def test_getters_of_inference_mode(torch):
    flags = [torch.is_inference_mode_enabled(), torch.ones(1).is_inference()]
    with torch.inference_mode():
        flags += [torch.is_inference_mode_enabled(), torch.ones(1).is_inference()]
        flags.append(of_a_new_thread(torch.is_inference_mode_enabled))
    return flags


@pytest.mark.row("C14", "A44")
@as_torch("""
    [True, False, False, False]
    tensor(6.0)
    TypeError(
     "set_multithreading_enabled(): argument 'enabled' (position 1) must be bool, not "
     'str')
""")
def test_set_multithreading_enabled(torch):
    autograd = torch.autograd
    flags = [autograd.is_multithreading_enabled()]
    with autograd.set_multithreading_enabled(False):
        flags.append(autograd.is_multithreading_enabled())
        x = leaf(torch, 3.0)
        (x * x).backward()
    autograd.set_multithreading_enabled(False)
    flags.append(autograd.is_multithreading_enabled())
    autograd.set_multithreading_enabled(True)
    decorated = autograd.set_multithreading_enabled(False)(autograd.is_multithreading_enabled)
    flags.append(decorated())
    autograd.set_multithreading_enabled(True)
    return flags, x.grad, error(autograd.set_multithreading_enabled, "no")


@pytest.mark.row("C14")
def test_set_multithreading_enabled_as_a_decorator():
    """PyTorch leaves it off."""
    jaxgrad.autograd.set_multithreading_enabled(False)(lambda: None)()
    assert jaxgrad.autograd.is_multithreading_enabled()


@pytest.mark.row("C18")
@as_torch("""
    tensor(3.0)
    True
    tensor(27.0)
""")
def test_detach_stops_the_gradient(torch):
    x = leaf(torch, 3.0)
    constant = x.detach()
    constant_again = (x * x).detach()
    (x * constant * constant_again).backward()
    return constant, constant_again.is_leaf, x.grad


# ---- backward passes and modes


@as_torch("""
    [[tensor(12.0, requires_grad=True), [tensor(12.0)], [False, False]],
     [tensor(12.0), [False, False]],
     [tensor(12.0, requires_grad=True), [tensor(12.0)], [True, False]],
     [tensor(12.0), [True, False]]]
    12.0
    [True, False]
""")
def test_a_backward_pass_heeds_no_mode(torch):
    x = leaf(torch, 2.0)
    y = x * x * x
    answers = []
    for mode in (torch.no_grad, torch.enable_grad):
        with mode():
            (first,) = torch.autograd.grad(y, x, create_graph=True)
            second = torch.autograd.grad(first, x, retain_graph=True)
            answers.append((first, second, state(torch)))
            (plain,) = torch.autograd.grad(y, x, retain_graph=True)
            answers.append((plain, state(torch)))
    with torch.inference_mode():
        y.backward()
    return answers, x.grad.item(), state(torch)


@as_torch
def test_the_mode_is_restored_after_a_failed_pass(torch):
    x = leaf(torch, 2.0)
    y = x * x
    y.backward()
    with torch.no_grad():
        answers = [error(y.backward), state(torch)]
    return answers, error(y.backward), state(torch)


def test_nested_contexts_without_number():
    with contextlib.ExitStack() as stack:
        for position in range(1000):
            mode = jaxgrad.no_grad if position % 2 else jaxgrad.enable_grad
            stack.enter_context(mode())
        assert not jaxgrad.is_grad_enabled()


# ---- inference tensors, and the other switches


@pytest.mark.row("C09")
@as_torch("""
    [True, False, tensor([2.0, 4.0, 6.0, 4.0, 5.0, 6.0]), tensor([2.0, 4.0, 6.0])]
    RuntimeError('Inference tensors do not track version counter.')
    RuntimeError('Inference tensors do not track version counter.')
""")
def test_no_versions_and_views_in_inference_mode(torch):
    with torch.inference_mode():
        x = torch.arange(6.0)
        x.add_(1)
        row = x.view(2, 3)[0]
        row.mul_(2)
        shown = row.is_inference(), row._is_view(), x, row
    words = "Inference tensors do not track version counter"
    return shown, error(lambda: x._version, words=words), error(lambda: row._version, words=words)


@pytest.mark.row("C09")
@as_torch("""
    [False, False, True]
    1
    tensor([1.0, 1.0, 1.0])
""")
def test_inference_mode_with_a_tensor_made_outside(torch):
    x = torch.zeros(3)
    with torch.inference_mode():
        x.add_(1)
        view = x[1:]
        kinds = x.is_inference(), view.is_inference(), view._is_view()
    return kinds, x._version, x


WRITTEN_OUTSIDE = "Inplace update to inference tensor outside InferenceMode is not allowed"


@pytest.mark.row("C12")
@as_torch
def test_writes_to_inference_tensors_outside(torch):
    with torch.inference_mode():
        x, y = torch.ones(3), torch.ones(3)
        x.mul_(2)
    calls = (x.add_, 1.0), (x.copy_, torch.zeros(3)), (x[0].zero_,)
    errors = [error(*call, words=WRITTEN_OUTSIDE) for call in calls]
    return errors, y + 1, (y * y).is_inference()


@pytest.mark.row("C12")
def test_a_write_that_is_refused_changes_nothing():
    """PyTorch raises after it has written."""
    with jaxgrad.inference_mode():
        x = jaxgrad.ones(3)
    for write in (lambda: x.add_(1), lambda: x[1:].zero_(), lambda: x.copy_(jaxgrad.zeros(3))):
        with pytest.raises(RuntimeError, match=WRITTEN_OUTSIDE):
            write()
    with jaxgrad.inference_mode():
        x.mul_(2)
        assert x.tolist() == [2, 2, 2]


@pytest.mark.row("C13")
@as_torch("""
    [True, True, True, False, False, True, False]
    [False, False]
    [True, False, True, True]
    TypeError("is_inference(): argument 'input' (position 1) must be Tensor, not int")
""")
def test_is_inference_of_tensors(torch):
    x = leaf(torch, 1.0, 2.0)
    with torch.inference_mode():
        base = torch.ones(2)
        tensors = [base, base * 2, x * 2, x, x.detach(), base.clone(), x.view(2)]
        inside = [torch.is_inference(tensor) for tensor in tensors]
        with torch.inference_mode(False):
            within = torch.ones(2).is_inference(), base.clone().is_inference()
    outside = [torch.is_inference(tensor) for tensor in (base, base * 2, base[:1], base.detach())]
    return inside, within, outside, error(torch.is_inference, 3, words="must be Tensor, not int")


@pytest.mark.row("C15")
@as_torch("""
    [[1, 3], tensor([[2.0, 2.0], [2.0, 2.0], [2.0, 2.0]])]
    tensor([4.0, 8.0])
    False
""")
def test_enforce_grad_layout_policy(torch):
    x = torch.ones(2, 3).t().detach().requires_grad_()
    with torch.autograd.enforce_grad_layout_policy():
        (x * 2).sum().backward()
    layout = list(x.grad.stride()), x.grad
    y = leaf(torch, 1.0, 2.0)
    policy = torch.autograd.enforce_grad_layout_policy(False)
    with policy, torch.autograd.enforce_grad_layout_policy(enable=True):
        (y * y).sum().backward()
    decorated = torch.autograd.enforce_grad_layout_policy(False)(lambda v: (v * v).sum().backward())
    decorated(y)
    return layout, y.grad, policy.mode


@pytest.mark.row("C16")
@as_torch("""
    [False, True, False, False, True]
    True
    False
    tensor([0.0, 1.0, 1.0])
    'SliceBackward0'
""")
def test_force_original_view_tracking(torch):
    enabled = torch.autograd.is_view_replay_enabled
    force = torch.autograd._force_original_view_tracking
    flags = [enabled()]
    with force(True):
        flags.append(enabled())
        with force(False):
            flags.append(enabled())
        x = leaf(torch, 1.0, 2.0, 3.0) * 1
        view = x[1:]
        x.mul_(3)
        node = view.grad_fn.name()
        (gradient,) = torch.autograd.grad(view.sum(), x)
    flags.append(enabled())
    force(True)
    flags.append(enabled())
    force(False)
    return flags, force(True)(enabled)(), enabled(), gradient, node


@pytest.mark.row("C17")
@as_torch("""
    [None, 2, 1, 0]
    [AssertionError('Expected tensors to be a tuple'),
     AssertionError('Expected tensors to be a tuple'),
     AssertionError('Expected tensors to be a tuple')]
    RuntimeError('Inference tensors do not track version counter.')
""")
def test_unsafe_preserve_version_counter(torch):
    preserve = torch.autograd._unsafe_preserve_version_counter
    x, y = torch.zeros(2), torch.zeros(2)
    x.add_(1)
    with preserve(x) as entered:
        x.add_(1)
        inside = x._version
    with preserve((x, y)):
        x.add_(1)
        y[0].mul_(1)
    with torch.inference_mode():
        z = torch.ones(2)
    words = "Expected tensors to be a tuple"
    version = "Inference tensors do not track version counter"
    return (
        (entered, inside, x._version, y._version),
        [error(preserve, wrong, words=words) for wrong in ([x, y], 3, None)],
        error(lambda: preserve(z).__enter__(), words=version),
    )


@pytest.mark.row("C17")
def test_unsafe_preserve_version_counter_takes_tensors_alone():
    with pytest.raises(TypeError, match="takes tensors, not int"):
        jaxgrad.autograd._unsafe_preserve_version_counter((3,))


@pytest.mark.row("C17")
def test_strictly_a_write_that_was_hidden():
    """The version check does not see the write, as the name says; the gradient stays right."""
    x = leaf(jaxgrad, 1.0, 2.0)
    with jaxgrad.autograd.graph.strict_versions():
        y = x.exp()
        with jaxgrad.autograd._unsafe_preserve_version_counter(y):
            y.add_(1)
        y.sum().backward()
    assert x.grad.tolist() == pytest.approx([2.718281828, 7.389056099])


@pytest.mark.row("edge_22")
@as_torch("""
    tensor(4.0)
    tensor(4.0)
    [[tensor(4.0), True], [tensor(6.0), True]]
    True
    [True]
    True
""")
def test_decorators_of_no_grad(torch):
    x = leaf(torch, 2.0)

    @torch.no_grad
    def bare(x):
        return x * 2

    @torch.no_grad()
    def called(x):
        return x * 2

    @torch.no_grad()
    def generator(x):
        yield x * 2
        yield x * 3

    steps = []
    for step in generator(x):
        steps.append((step, torch.is_grad_enabled()))
    with torch.no_grad():
        tensor = torch.ones(2, requires_grad=True)
        flags = []
        thread = threading.Thread(target=lambda: flags.append(torch.is_grad_enabled()))
        thread.start()
        thread.join()
    return bare(x), called(x), steps, tensor.requires_grad, flags, torch.is_grad_enabled()


@pytest.mark.row("edge_22")
def test_one_no_grad_object_nested_in_itself():
    """PyTorch leaves grad mode off after it."""
    mode = jaxgrad.no_grad()
    with mode:
        with mode:
            assert not jaxgrad.is_grad_enabled()
        assert not jaxgrad.is_grad_enabled()
    assert jaxgrad.is_grad_enabled()


@pytest.mark.parametrize("test", [test_decorators_of_no_grad], ids=lambda test: test.__name__)
def test_under_jit(test):
    """The body of a test above, inside of one compiled function."""
    under_jit(test)()
