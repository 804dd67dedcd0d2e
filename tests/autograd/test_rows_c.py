"""Modes that stand in no other file; and all of them in generators, tasks and threads."""

import asyncio
import threading

import pytest
from as_torch import as_torch, error, leaf, warned

import jaxgrad

autograd = jaxgrad.autograd

# each mode as an object that switches it to what it is not, and how to see what it is
MODES = {
    "no_grad": (autograd.no_grad, jaxgrad.is_grad_enabled),
    "enable_grad": (autograd.enable_grad, jaxgrad.is_grad_enabled),
    "set_grad_enabled": (lambda: autograd.set_grad_enabled(False), jaxgrad.is_grad_enabled),
    "inference_mode": (autograd.inference_mode, jaxgrad.is_inference_mode_enabled),
    "set_multithreading_enabled": (
        lambda: autograd.set_multithreading_enabled(False),
        autograd.is_multithreading_enabled,
    ),
    "enforce_grad_layout_policy": (
        lambda: autograd.enforce_grad_layout_policy(False),
        autograd.enforce_grad_layout_policy.kept.get,
    ),
    "force_original_view_tracking": (
        lambda: autograd._force_original_view_tracking(True),
        autograd.is_view_replay_enabled,
    ),
    "strict_versions": (
        autograd.graph.strict_versions,
        lambda: jaxgrad.tape.version_counter.strict.get(),
    ),
}


@pytest.fixture(params=MODES)
def mode(request):
    """What makes the mode, what reads it, and what it reads outside and inside."""
    make, read = MODES[request.param]
    if request.param == "enable_grad":
        with autograd.no_grad():
            yield make, read, False, True
    else:
        with make():
            inside = read()
        assert read() is not inside
        yield make, read, read(), inside


@as_torch
def test_C09_no_versions_and_views_in_inference_mode(torch):
    with torch.inference_mode():
        x = torch.arange(6.0)
        x.add_(1)
        row = x.view(2, 3)[0]
        row.mul_(2)
        shown = row.is_inference(), row._is_view(), x, row
    words = "Inference tensors do not track version counter"
    return shown, error(lambda: x._version, words=words), error(lambda: row._version, words=words)


@as_torch
def test_C09_of_a_tensor_made_outside(torch):
    x = torch.zeros(3)
    with torch.inference_mode():
        x.add_(1)
        view = x[1:]
        kinds = x.is_inference(), view.is_inference(), view._is_view()
    return kinds, x._version, x


WRITTEN_OUTSIDE = "Inplace update to inference tensor outside InferenceMode is not allowed"


@as_torch
def test_C12_writes_to_inference_tensors_outside(torch):
    with torch.inference_mode():
        x, y = torch.ones(3), torch.ones(3)
        x.mul_(2)
    calls = (x.add_, 1.0), (x.copy_, torch.zeros(3)), (x[0].zero_,)
    found = [error(*call, words=WRITTEN_OUTSIDE) for call in calls]
    return found, y + 1, (y * y).is_inference()


def test_C12_a_write_that_is_refused_changes_nothing():
    """PyTorch has written when it raises."""
    with jaxgrad.inference_mode():
        x = jaxgrad.ones(3)
    for write in (lambda: x.add_(1), lambda: x[1:].zero_(), lambda: x.copy_(jaxgrad.zeros(3))):
        with pytest.raises(RuntimeError, match=WRITTEN_OUTSIDE):
            write()
    with jaxgrad.inference_mode():
        x.mul_(2)
        assert x.tolist() == [2, 2, 2]


@as_torch
def test_C13_is_inference(torch):
    x = leaf(torch, 1.0, 2.0)
    with torch.inference_mode():
        made = torch.ones(2)
        tensors = [made, made * 2, x * 2, x, x.detach(), made.clone(), x.view(2)]
        inside = [torch.is_inference(tensor) for tensor in tensors]
        with torch.inference_mode(False):
            within = torch.ones(2).is_inference(), made.clone().is_inference()
    outside = [torch.is_inference(tensor) for tensor in (made, made * 2, made[:1], made.detach())]
    return inside, within, outside, error(torch.is_inference, 3, words="must be Tensor, not int")


@as_torch
def test_C15_enforce_grad_layout_policy(torch):
    x = torch.ones(2, 3).t().detach().requires_grad_()
    with torch.autograd.enforce_grad_layout_policy():
        (x * 2).sum().backward()
    found = list(x.grad.stride()), x.grad
    y = leaf(torch, 1.0, 2.0)
    policy = torch.autograd.enforce_grad_layout_policy(False)
    with policy, torch.autograd.enforce_grad_layout_policy(enable=True):
        (y * y).sum().backward()
    decorated = torch.autograd.enforce_grad_layout_policy(False)(lambda v: (v * v).sum().backward())
    decorated(y)
    return found, y.grad, policy.mode


@as_torch
def test_C16_force_original_view_tracking(torch):
    enabled = torch.autograd.is_view_replay_enabled
    force = torch.autograd._force_original_view_tracking
    found = [enabled()]
    with force(True):
        found.append(enabled())
        with force(False):
            found.append(enabled())
        x = leaf(torch, 1.0, 2.0, 3.0) * 1
        view = x[1:]
        x.mul_(3)
        node = view.grad_fn.name()
        (gradient,) = torch.autograd.grad(view.sum(), x)
    found.append(enabled())
    force(True)
    found.append(enabled())
    force(False)
    return found, force(True)(enabled)(), enabled(), gradient, node


@as_torch
def test_C17_unsafe_preserve_version_counter(torch):
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


def test_C17_tensors_alone():
    with pytest.raises(TypeError, match="takes tensors, not int"):
        autograd._unsafe_preserve_version_counter((3,))


def test_C17_strictly_a_write_that_was_hidden():
    """The check of versions does not see the write, as the name says; the gradient stays right."""
    x = leaf(jaxgrad, 1.0, 2.0)
    with autograd.graph.strict_versions():
        y = x.exp()
        with autograd._unsafe_preserve_version_counter(y):
            y.add_(1)
        y.sum().backward()
    assert x.grad.tolist() == pytest.approx([2.718281828, 7.389056099])


# ---- every mode, in every place


def test_C01_C06_C09_C14_C15_C16_nested_in_itself(mode):
    make, read, outside, inside = mode
    one = make()
    found = []
    with one:
        found.append(read())
        with one:
            found.append(read())
        found.append(read())
        with make(), one:
            found.append(read())
        found.append(read())
    assert found == [inside] * 5 and read() is outside


def test_C01_C06_C09_C14_C15_C16_after_an_error(mode):
    make, read, outside, inside = mode
    with pytest.raises(ZeroDivisionError), make():
        assert read() is inside
        1 / 0  # noqa: B018
    assert read() is outside

    @make()
    def failing():
        assert read() is inside
        1 / 0  # noqa: B018

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            failing()
        assert read() is outside


def test_C01_C06_C09_C14_C15_C16_of_a_recursive_function(mode):
    make, read, outside, inside = mode

    @make()
    def count(n):
        return [read(), *(count(n - 1) if n else []), read()]

    assert count(3) == [inside] * 8 and read() is outside


def test_C01_C06_C09_C14_C15_C16_of_a_generator(mode):
    make, read, outside, inside = mode

    @make()
    def generate(count):
        """Its mode at every step."""
        for _ in range(count):
            try:
                yield read()
            except KeyError:
                yield "caught", read()
        return read()

    running, other = generate(3), generate(1)
    found = [next(running), read(), next(other), read(), running.throw(KeyError()), read()]
    found += [next(running), read()]
    assert found == [inside, outside, inside, outside, ("caught", inside), outside, inside, outside]
    with pytest.raises(StopIteration) as stopped:
        next(other)
    assert stopped.value.value is inside and read() is outside
    running.close()
    assert generate.__doc__ == "Its mode at every step." and read() is outside


def test_C01_C06_C09_C14_C15_C16_of_a_coroutine_and_its_tasks(mode):
    make, read, outside, inside = mode

    @make()
    async def within(turns):
        for _ in range(turns):
            await asyncio.sleep(0)
            assert read() is inside
        return read()

    async def without(turns):
        for _ in range(turns):
            await asyncio.sleep(0)
            assert read() is outside
        with make():
            await asyncio.sleep(0)
            return read()

    async def all_of_them():
        assert await within(1) is inside and read() is outside
        return await asyncio.gather(within(5), without(7), within(2), without(3))

    assert asyncio.run(all_of_them()) == [inside] * 4 and read() is outside


def test_C01_C06_C09_C14_C15_C16_of_an_asynchronous_generator(mode):
    make, read, outside, inside = mode
    closed = []

    @make()
    async def generate(count):
        try:
            for _ in range(count):
                await asyncio.sleep(0)
                try:
                    received = yield read()
                except KeyError:
                    received = yield "caught", read()
                assert received is None or read() is inside
        finally:
            closed.append(read())

    async def consume():
        found = []
        async for item in generate(2):
            found += [item, read()]
        running = generate(3)
        found += [await running.asend(None), read(), await running.athrow(KeyError()), read()]
        found += [await running.asend("told"), read()]
        await running.aclose()
        return found

    steps = [inside, outside]
    assert asyncio.run(consume()) == [*steps * 3, ("caught", inside), outside, *steps]
    assert closed == [inside, inside] and read() is outside


def test_C08_C01_C06_C09_C14_C15_C16_of_several_threads(mode):
    """A mode is of the thread that entered it, and one object serves several."""
    make, read, _, inside = mode
    one, found, barrier = make(), [], threading.Barrier(4)
    with one:  # settings hold from the call on
        assert read() is inside

    def work(enter):
        before = read()
        barrier.wait(10)
        if not enter:
            found.append((before, read()))
            return
        with one:
            barrier_of_those_inside.wait(10)
            found.append((before, read()))
        found.append((before, read()))

    barrier_of_those_inside = threading.Barrier(2)
    default = _in_a_new_thread(read)
    threads = [threading.Thread(target=work, args=(i % 2,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = [(default, default)] * 4 + [(default, inside)] * 2
    assert sorted(found) == sorted(expected)


def _in_a_new_thread(function):
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


@as_torch
def test_C07_of_other_types(torch):
    numbers = [0, 1, 0.0, "True", None, [True], torch.tensor(True)]
    words = "argument 'enabled' (position 1) must be bool, not "
    found = [error(torch.set_grad_enabled, number, words=words) for number in numbers]
    return found, torch.is_grad_enabled(), error(torch.set_grad_enabled, words="mode")


@as_torch
def test_C07_C14_settings_of_other_types(torch):
    words = "argument 'enabled' (position 1) must be bool, not str"
    names = (
        *("set_grad_enabled", "set_multithreading_enabled", "enforce_grad_layout_policy"),
        "_force_original_view_tracking",
    )
    return [error(getattr(torch.autograd, name), "no", words=words) for name in names]


@as_torch
def test_C04_every_mode_of_a_class(torch):
    class Module:
        def __init__(self):
            self.enabled = torch.is_grad_enabled()

    told = warned(lambda: torch.set_grad_enabled(False)(Module)().enabled)
    return [each["error"] for each in told["warnings"]], told["result"], torch.is_grad_enabled()
