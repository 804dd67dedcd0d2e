"""Every mode: nested, after errors, in recursion, generators, tasks and threads."""

import asyncio
import threading

import pytest
from helpers import hangs
from helpers.as_torch import as_torch, error, warned

import jaxgrad

autograd = jaxgrad.autograd

# a constructor that changes each mode, and its reader
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
    """A constructor of the mode, its reader, and the reader's answers outside and inside."""
    make, read = MODES[request.param]
    if request.param == "enable_grad":
        with autograd.no_grad():
            yield make, read, False, True
    else:
        with make():
            inside = read()
        assert read() is not inside
        yield make, read, read(), inside


@pytest.mark.row("C01", "C06", "C09", "C14", "C15", "C16")
def test_modes_nested_in_themselves(mode):
    make, read, outside, inside = mode
    one = make()
    modes = []
    with one:
        modes.append(read())
        with one:
            modes.append(read())
        modes.append(read())
        with make(), one:
            modes.append(read())
        modes.append(read())
    assert modes == [inside] * 5 and read() is outside


@pytest.mark.row("C01", "C06", "C09", "C14", "C15", "C16")
def test_modes_after_an_error(mode):
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


@pytest.mark.row("C01", "C06", "C09", "C14", "C15", "C16")
def test_modes_of_a_recursive_function(mode):
    make, read, outside, inside = mode

    @make()
    def count(n):
        return [read(), *(count(n - 1) if n else []), read()]

    assert count(3) == [inside] * 8 and read() is outside


@pytest.mark.row("C01", "C06", "C09", "C14", "C15", "C16")
def test_modes_of_a_generator(mode):
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
    modes = [next(running), read(), next(other), read(), running.throw(KeyError()), read()]
    modes += [next(running), read()]
    assert modes == [inside, outside, inside, outside, ("caught", inside), outside, inside, outside]
    with pytest.raises(StopIteration) as stopped:
        next(other)
    assert stopped.value.value is inside and read() is outside
    running.close()
    assert generate.__doc__ == "Its mode at every step." and read() is outside


@pytest.mark.row("C01", "C06", "C09", "C14", "C15", "C16")
def test_modes_of_a_coroutine_and_its_tasks(mode):
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

    async def run_all():
        assert await within(1) is inside and read() is outside
        return await asyncio.gather(within(5), without(7), within(2), without(3))

    assert asyncio.run(run_all()) == [inside] * 4 and read() is outside


@pytest.mark.row("C01", "C06", "C09", "C14", "C15", "C16")
def test_modes_of_an_asynchronous_generator(mode):
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
        modes = []
        async for item in generate(2):
            modes += [item, read()]
        running = generate(3)
        modes += [await running.asend(None), read(), await running.athrow(KeyError()), read()]
        modes += [await running.asend("told"), read()]
        await running.aclose()
        return modes

    steps = [inside, outside]
    assert asyncio.run(consume()) == [*steps * 3, ("caught", inside), outside, *steps]
    assert closed == [inside, inside] and read() is outside


@pytest.mark.row("C08", "C01", "C06", "C09", "C14", "C15", "C16")
def test_modes_of_several_threads(mode):
    """A mode belongs to the thread that entered it; one object serves several threads."""
    make, read, _, inside = mode
    one, modes, barrier = make(), [], threading.Barrier(4)
    with one:  # a setting holds from its call on
        assert read() is inside

    def work(enter):
        before = read()
        barrier.wait(hangs.LIMIT)
        if not enter:
            modes.append((before, read()))
            return
        with one:
            barrier_of_those_inside.wait(hangs.LIMIT)
            modes.append((before, read()))
        modes.append((before, read()))

    barrier_of_those_inside = threading.Barrier(2)
    default = _in_a_new_thread(read)
    threads = [threading.Thread(target=work, args=(i % 2,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = [(default, default)] * 4 + [(default, inside)] * 2
    assert sorted(modes) == sorted(expected)


def _in_a_new_thread(function):
    results = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join()
    return results[0]


# ---- arguments


@pytest.mark.row("C07")
@as_torch
def test_set_grad_enabled_refuses_other_types(torch):
    numbers = [0, 1, 0.0, "True", None, [True], torch.tensor(True)]
    words = "argument 'enabled' (position 1) must be bool, not "
    errors = [error(torch.set_grad_enabled, number, words=words) for number in numbers]
    return errors, torch.is_grad_enabled(), error(torch.set_grad_enabled, words="mode")


@pytest.mark.row("C07", "C14")
@as_torch("""
    TypeError("set_grad_enabled(): argument 'enabled' (position 1) must be bool, not str")
    TypeError(
     "set_multithreading_enabled(): argument 'enabled' (position 1) must be bool, not "
     'str')
    TypeError(
     "set_grad_layout_enforcement_enabled(): argument 'enabled' (position 1) must be "
     'bool, not str')
    TypeError("set_view_replay_enabled(): argument 'enabled' (position 1) must be bool, not str")
""")
def test_settings_of_other_types(torch):
    words = "argument 'enabled' (position 1) must be bool, not str"
    names = (
        *("set_grad_enabled", "set_multithreading_enabled", "enforce_grad_layout_policy"),
        "_force_original_view_tracking",
    )
    return [error(getattr(torch.autograd, name), "no", words=words) for name in names]


@pytest.mark.row("C04")
@as_torch("""
    ['FutureWarning']
    False
    True
""")
def test_every_mode_of_a_class(torch):
    class Module:
        def __init__(self):
            self.enabled = torch.is_grad_enabled()

    told = warned(lambda: torch.set_grad_enabled(False)(Module)().enabled)
    return (
        [warning["error"] for warning in told["warnings"]],
        told["result"],
        torch.is_grad_enabled(),
    )
