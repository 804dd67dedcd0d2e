"""autograd.profiler, row by row of PyTorch's behaviour. Times cannot be compared with PyTorch's;
what is inside of what, and what is added to what, can.
"""

import asyncio
import contextlib
import sqlite3
import tempfile
import threading
import weakref
from pathlib import Path

import jax
import numpy as np
import pytest
from helpers.as_torch import as_torch, error, leaf, parameters, warned
from helpers.kernels import states
from helpers.profiles import named, names, square

import jaxgrad
from jaxgrad.autograd import profiler
from jaxgrad.autograd._engine import observers
from jaxgrad.core import executor, kernel
from jaxgrad.tape import interception, node_annotations

# ---- O01: profile


@pytest.mark.row("O01")
@as_torch
def test_signature_of_profile(torch):
    wanted = parameters(torch.autograd.profiler.profile.__init__)
    return [parameter for parameter in wanted if parameter[0] != "jax_trace"]


@pytest.mark.row("O01")
@as_torch("""
    RuntimeError('Profiler context manager is not reentrant')
    RuntimeError('Profiler context manager is not reentrant')
    ValueError('post_processing_timeout_s must be non-negative')
    AssertionError('Device-only events supported only with Kineto (use_kineto=True)')
    AssertionError('No activities specified for the profiler')
    AssertionError(
     'Legacy MTIA profiling is not supported. Requires use_kineto=True on MTIA devices.')
    'AssertionError'
""")
def test_errors_of_profile(torch):
    profile = torch.autograd.profiler.profile

    def entered_twice():
        prof = profile()
        with prof, prof:
            pass

    def entered_again():
        prof = profile()
        for _ in range(2):
            with prof:
                pass

    return [
        error(entered_twice),
        error(entered_again),
        error(lambda: profile(post_processing_timeout_s=-1)),
        error(lambda: profile(use_cpu=False)),
        error(lambda: profile(use_cpu=False, use_kineto=True)),
        error(lambda: profile(use_device="mtia")),
        error(lambda: profile().export_stacks("nowhere"), words="")["error"],
    ]


@pytest.mark.row("O01")
@as_torch
def test_devices_that_are_not_there(torch):
    profile = torch.autograd.profiler.profile
    return [
        warned(lambda: profile(use_cuda=True).use_device),
        *[
            warned(lambda name=name: profile(use_device=name).use_device)
            for name in ("cuda", "xpu", "hpu", "abacus")
        ],
    ]


@pytest.mark.row("O01")
@as_torch("None")
def test_a_disabled_profile_has_no_effect(torch):
    prof = torch.autograd.profiler.profile(False)
    with prof as entered:
        torch.ones(2) + 1
    with prof:
        pass
    return entered


@pytest.mark.row("O01")
@as_torch("""
    ['<unfinished torch.autograd.profile>', '<unfinished torch.autograd.profile>']
    True
    True
""")
def test_what_a_profile_is_before_it_ends(torch):
    prof = torch.autograd.profiler.profile()
    before = repr(prof), str(prof)
    with contextlib.suppress(ValueError), prof as entered:
        torch.ones(2) + 1
        raise ValueError
    inside = entered is prof
    return before, inside, "aten::add" in [event.name for event in prof.function_events]


@pytest.mark.row("O01")
def test_results_before_the_end_are_an_error():
    """PyTorch 2.13 returns an empty list, as if nothing had run."""
    prof = profiler.profile()
    asked = [
        prof.key_averages,
        prof.table,
        prof.total_average,
        lambda: prof.function_events,
        lambda: prof.self_cpu_time_total,
        lambda: prof.export_chrome_trace("nowhere"),
    ]
    for ask in asked:
        with pytest.raises(AssertionError, match="Expected profiling results"):
            ask()
    with prof:
        for ask in asked:
            with pytest.raises(AssertionError, match="Expected profiling results"):
                ask()
    assert prof.table() == ""
    with pytest.raises(AssertionError, match=r"Expected profiling results.*enabled=False"):
        profiler.profile(enabled=False).key_averages()


@pytest.mark.row("O01")
def test_a_profile_inside_of_another():
    """Both record; in PyTorch 2.13 the outer one ends empty."""
    x = jaxgrad.ones(2)
    with profiler.profile() as outer:
        x + 2
        with profiler.profile() as inner:
            x * 2
        x - 2
    assert names(outer) == ["aten::add", "aten::mul", "aten::sub"]
    assert names(inner) == ["aten::mul"]


@pytest.mark.row("O01")
@as_torch("""
    1
    2
""")
def test_acc_events_keeps_what_was_recorded(torch):
    prof = torch.autograd.profiler.profile(acc_events=True)
    counts = []
    for _ in range(2):
        prof.entered = False
        with prof:
            torch.ones(2).sin()
        counts.append([event.name for event in prof.function_events].count("aten::sin"))
    return counts


@pytest.mark.row("O01")
def test_collection_can_be_paused():
    x = jaxgrad.ones(2)
    with profiler.profile() as prof:
        x.sin()
        prof.toggle_collection_dynamic(False, [])
        x.cos()
        prof.toggle_collection_dynamic(True, [])
        x.tan()
    assert names(prof) == ["aten::sin", "aten::tan"]


@pytest.mark.row("O01")
def test_trace_ids_of_profile():
    with profiler.profile(custom_trace_id_callback=lambda: "mine") as prof:
        pass
    assert prof.trace_id == "mine"
    with profiler.profile() as prof:
        pass
    assert len(prof.trace_id) == 32 and int(prof.trace_id, 16) >= 0


# ---- O03: record_function


@pytest.mark.row("O03")
@as_torch
def test_labels_of_record_function(torch):
    profiler = torch.autograd.profiler

    @profiler.record_function("function")
    def function(x):
        return x.sin()

    x = torch.ones(2)
    function(x)
    with profiler.profile() as prof:
        with profiler.record_function("outside", "said of it") as label:
            function(x)
            with contextlib.suppress(ValueError), profiler.record_function("raising"):
                raise ValueError
        function(x)
    wanted = ("function", "outside", "raising", "aten::sin")
    events = [event for event in prof.function_events if event.name in wanted]
    shown = [
        (
            event.name,
            event.scope,
            event.is_user_annotation,
            event.cpu_parent and event.cpu_parent.name,
        )
        for event in events
    ]
    return shown, isinstance(label, profiler.record_function), label.name, label.args


@pytest.mark.row("O03")
@as_torch
def test_errors_of_record_function(torch):
    record_function = torch.autograd.profiler.record_function
    return [
        error(lambda: record_function())["error"],
        error(
            lambda: record_function(3).__enter__(),
            words="Expected a value of type 'str' for argument 'name' but instead found type 'int'",
        ),
        error(
            lambda: record_function("never entered").__exit__(None, None, None),
            words="Expected record to be set",
        ),
        error(lambda: record_function("no profile").__enter__())["error"],
    ]


@pytest.mark.row("O03")
def test_a_label_that_is_entered_again_inside_of_itself():
    label = profiler.record_function("again")

    @label
    def count(number):
        if number:
            count(number - 1)

    with profiler.profile() as prof, label, label:
        count(1)
    first, second, third, fourth = named(prof, "again")
    assert [e.cpu_parent for e in (first, second, third, fourth)] == [None, first, second, third]


@pytest.mark.row("O03")
def test_labels_are_in_compiled_programs():
    @jaxgrad.jit
    def step(x):
        with profiler.record_function("the_label"):
            return x.sin()

    text = step.lower(jaxgrad.ones(3)).as_text(debug_info=True)
    assert "the_label" in text


@pytest.mark.row("O03")
@pytest.mark.slow
def test_labels_are_in_traces_of_jax(tmp_path):
    x = jaxgrad.ones(3)
    label = profiler.record_function("the label")
    with profiler.profile(jax_trace=str(tmp_path)) as prof, label:
        x.atanh()
    (path,) = tmp_path.rglob("*.xplane.pb")
    data = jax.profiler.ProfileData.from_file(str(path))
    told = {event.name for plane in data.planes for line in plane.lines for event in line.events}
    assert {"the label", "aten::atanh"} <= told
    assert names(prof) == ["the label", "aten::atanh"]


# ---- O04: what belongs to CUDA


@pytest.mark.row("O04")
@as_torch("""
    RuntimeError('ITT annotation context manager is not reentrant')
    None
    [[['enabled', True], ['record_shapes', False]], [['enabled', True], ['record_shapes', False]]]
""")
def test_annotations_are_not_reentrant(torch):
    def twice():
        emit = torch.autograd.profiler.emit_itt()
        with emit, emit:
            pass

    with torch.autograd.profiler.emit_itt(enabled=False) as disabled:
        pass
    signatures = [
        parameters(getattr(torch.autograd.profiler, name)) for name in ("emit_itt", "emit_nvtx")
    ]
    return error(twice), disabled, signatures


@pytest.mark.row("O04")
def test_nvtx_annotations_are_not_reentrant():
    emit = profiler.emit_nvtx()
    refusal = "NVTX annotation context manager is not reentrant"
    with pytest.raises(RuntimeError, match=refusal), emit, emit:
        pass


@pytest.mark.row("O04")
@pytest.mark.slow
def test_annotations_are_those_of_jax(tmp_path):
    x = jaxgrad.ones(3).requires_grad_()
    with jax.profiler.trace(str(tmp_path)), profiler.emit_nvtx(record_shapes=True):
        y = x.asinh()
        number = y.grad_fn._sequence_nr()
        y.backward(jaxgrad.ones(3))
    (path,) = tmp_path.rglob("*.xplane.pb")
    data = jax.profiler.ProfileData.from_file(str(path))
    told = {event.name for plane in data.planes for line in plane.lines for event in line.events}
    assert "aten::asinh, sizes = [[3]]" in told
    assert f"AsinhBackward0, stashed seq = {number}, sizes = [[3]]" in told


def nvprof_file(folder, kind=211):
    """A file as nvprof writes it: two ranges and the three kernels launched in them."""
    path = Path(folder, "nvprof.sqlite")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            """
            CREATE TABLE StringTable (_id_ INTEGER, value TEXT);
            CREATE TABLE CUPTI_ACTIVITY_KIND_MARKER (id INTEGER, name INTEGER, timestamp INTEGER);
            CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME
                (_id_ INTEGER, cbid INTEGER, start INTEGER, end INTEGER, correlationId INTEGER);
            CREATE TABLE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL
                (start INTEGER, end INTEGER, name INTEGER, correlationId INTEGER);
            INSERT INTO StringTable VALUES (1, 'mul'), (2, 'add'), (3, 'kernel');
            INSERT INTO CUPTI_ACTIVITY_KIND_MARKER VALUES
                (8, 2, 200), (8, 0, 300), (7, 1, 100), (7, 0, 190);
            INSERT INTO CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL VALUES
                (150, 180, 3, 1), (160, 165, 3, 2), (400, 450, 3, 3);
            """
        )
        connection.executemany(
            "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, ?)",
            [(1, kind, 110, 120, 1), (2, kind, 130, 140, 2), (3, kind, 210, 220, 3)],
        )
        connection.commit()
    return str(path)


@pytest.mark.row("O04")
@as_torch("""
    [[7, 'mul', 0, 0, 100, 190, 1], [8, 'add', 0, 0, 200, 300, 1]]
    [[[0, 30], [0, 5]], [[0, 50]]]
    [True, 'list']
    2
    AssertionError('Expected cbid to be 211, but got 13')
    'OperationalError'
""")
def test_load_nvprof_reads_a_database(torch):
    profiler = torch.autograd.profiler
    with tempfile.TemporaryDirectory() as folder:
        events = profiler.load_nvprof(nvprof_file(folder))
        parsed = profiler.parse_nvprof_trace(nvprof_file(tempfile.mkdtemp(dir=folder)))
        other = nvprof_file(tempfile.mkdtemp(dir=folder), kind=13)
        refused = error(lambda: profiler.load_nvprof(other))
        missing = error(lambda: profiler.load_nvprof(str(Path(folder, "none"))))["error"]
    shown = [
        (e.id, e.name, e.node_id, e.thread, e.time_range.start, e.time_range.end, e.count)
        for e in events
    ]
    kernels = [[(k.device, k.duration) for k in e.kernels] for e in events]
    kind = isinstance(events, profiler.EventList), type(parsed).__name__
    return shown, kernels, kind, len(parsed), refused, missing


@pytest.mark.row("O04")
@as_torch("""
    RuntimeError("duplicate key: (1, 'a')")
""")
def test_enforce_unique_refuses_a_second_name(torch):
    unique = torch.autograd.profiler.EnforceUnique()
    unique.see(1, "a")
    unique.see("a", 1)
    return error(lambda: unique.see(1, "a"))


@pytest.mark.row("O04")
@as_torch("""
    [1, 2, 3, 3, 3]
    8
    1
    [True, True, True, False]
""")
def test_steps_of_emit_functions(torch):
    tracker = torch.autograd.profiler.KinetoStepTracker
    first = tracker.current_step()
    tracker.init_step_count("a")
    seen = [tracker.increment_step(who) - first for who in "abba"]
    seen.append(tracker.current_step() - first)
    tracker._step_dict["c"] = first + 7
    jump = warned(lambda: tracker.increment_step("c") - first)
    erased = [tracker.erase_step_count(who) for who in "abca"]
    return seen, jump["result"], len(jump["warnings"]), erased


# ---- O05: forward and backward


@pytest.mark.row("O05")
@as_torch("""
    ['SumBackward0', 'aten::sum', True]
    ['CubeBackward', 'Cube', True]
    ['MulBackward0', 'aten::mul', True]
    ['SinBackward0', 'aten::sin', True]
""")
def test_a_node_has_the_number_of_its_operator(torch):
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            return gradient * 3 * x * x

    x = leaf(torch, 1.0, 2.0)
    with torch.autograd.profiler.profile() as prof:
        y = x.sin() * x
        z = Cube.apply(y)
        z.sum().backward()
    events = prof.function_events
    forward = {e.sequence_nr: e for e in events if e.scope == 0 and e.sequence_nr >= 0}
    for event in reversed(events):  # PyTorch also shows the operators that an operator calls
        if event.scope == 0 and event.sequence_nr >= 0 and "evaluate" not in event.name:
            forward[event.sequence_nr] = event
    pairs = [
        (e.name, forward[e.sequence_nr].name, e.fwd_thread == forward[e.sequence_nr].thread)
        for e in events
        if e.scope == 1 and e.sequence_nr >= 0
    ]
    return pairs


@pytest.mark.row("O05")
def test_numbers_are_those_of_the_graph():
    x = jaxgrad.ones(2).requires_grad_()
    with profiler.profile() as prof:
        y = x.tanh()
        z = y.exp()
        number = jaxgrad.autograd._get_sequence_nr()
        z.sum().backward()
    assert named(prof, "aten::tanh")[0].sequence_nr == y.grad_fn._sequence_nr()
    assert named(prof, "TanhBackward0")[0].sequence_nr == y.grad_fn._sequence_nr()
    assert named(prof, "ExpBackward0")[0].sequence_nr == z.grad_fn._sequence_nr() < number
    assert named(prof, "torch::autograd::AccumulateGrad")[0].sequence_nr == -1


@pytest.mark.row("O05")
def test_an_operator_that_records_no_node_has_no_number():
    """In PyTorch it has the number of the next node."""
    x = jaxgrad.ones(2).requires_grad_()
    with profiler.profile() as prof:
        y = x.tanh()
        y.gt(0)
        y.detach().exp()
        with jaxgrad.no_grad():
            y.sin()
        y.cos()
    numbered = [e.name for e in prof.function_events if e.sequence_nr >= 0]
    assert numbered == ["aten::tanh", "aten::cos"]


@pytest.mark.row("O05")
def test_a_node_that_no_operator_recorded_has_no_number_in_a_profile():
    base = jaxgrad.ones(2).requires_grad_() * 1
    first, second = base[:1], base[1:]
    first.fill_(2.0)
    with profiler.profile() as prof:
        jaxgrad.ones(2).gt(0)
        node = second.grad_fn  # the node is made now: the view has a new history
    assert node.name() == "SliceBackward0" and "aten::gt" in names(prof)
    assert {event.sequence_nr for event in prof.function_events} == {-1}


@pytest.mark.row("O05")
def test_forward_and_backward_matched_in_second_derivatives():
    x = jaxgrad.ones(2).requires_grad_()
    with profiler.profile() as prof:
        (slope,) = jaxgrad.autograd.grad(x.sin().sum(), x, create_graph=True)
        slope.sum().backward()
    (first,), (recorded,) = named(prof, "SinBackward0"), named(prof, "SinBackward")
    (second,) = named(prof, "SinBackwardBackward0")
    assert recorded.cpu_parent is first and first.scope == second.scope == 1
    assert recorded.sequence_nr == second.sequence_nr == slope.grad_fn._sequence_nr()


@pytest.mark.row("O05")
def test_a_node_that_a_pass_leaves_out_has_no_event():
    x, y = leaf(jaxgrad, 1.0), leaf(jaxgrad, 2.0)
    with profiler.profile() as prof:
        jaxgrad.autograd.grad(x.sin() * y.cos(), x)
    assert "SinBackward0" in names(prof) and "CosBackward0" not in names(prof)


@pytest.mark.row("O05")
def test_the_graph_of_outside_counts_for_the_line_of_the_pass():
    y = leaf(jaxgrad, 1.0).sin()
    with profiler.profile() as prof:
        y.backward()
        line = jaxgrad.tape.version_counter.place_of_caller()
    (node,) = named(prof, "SinBackward0")
    assert f"{node.place[0]}:{node.place[1] + 1}" == line


# ---- threads, and what is left behind


@pytest.mark.row("O01")
def test_other_threads_and_tasks_are_not_recorded():
    entered, done = threading.Event(), threading.Event()

    def other():
        entered.wait()
        jaxgrad.ones(2).cos()
        done.set()

    thread = threading.Thread(target=other)
    thread.start()
    with profiler.profile() as prof:
        entered.set()
        done.wait()
        jaxgrad.ones(2).sin()
    thread.join()
    assert names(prof) == ["aten::ones", "aten::sin"]

    async def task(value):
        with profiler.profile() as prof:
            await asyncio.sleep(0.001)
            jaxgrad.ones(2) * value
            await asyncio.sleep(0.001)
        return names(prof)

    async def both():
        return await asyncio.gather(task(5.0), task(7.0))

    assert asyncio.run(both()) == [["aten::ones", "aten::mul"]] * 2


@pytest.mark.row("O01")
def test_a_pass_in_a_thread_of_its_own_is_recorded():
    def nested(depth):
        class Step(jaxgrad.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 1.5

            @staticmethod
            def backward(ctx, gradient):
                return gradient * nested(depth - 1) if depth else gradient

        x = leaf(jaxgrad, 1.0)
        with jaxgrad.enable_grad():
            Step.apply(x).backward()
        return x.grad

    with profiler.profile() as prof:
        nested(25)
    assert len(named(prof, "StepBackward")) == 26
    assert len({event.thread for event in prof.function_events}) == 2


@pytest.mark.row("O01")
@pytest.mark.slow
def test_many_threads_that_profile():
    recorded_names = []

    def work(number):
        for turn in range(4):
            x = jaxgrad.ones(turn + 3, 5).requires_grad_()  # compilation of new programs
            with profiler.profile() as prof:
                square(x)
            recorded_names.append(names(prof))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alone = jaxgrad.ones(2, 1).requires_grad_()
    with profiler.profile() as prof:
        square(alone)
    assert recorded_names == [names(prof)] * 24
    assert executor.observers == () and observers.started == ()
    assert kernel.OBSERVED not in states()


@pytest.mark.row("O01")
def test_nothing_is_left_behind():
    before = interception.is_noted
    with profiler.profile(profile_memory=True), profiler.emit_nvtx():
        assert executor.observers and observers.started
        square(jaxgrad.ones(2).requires_grad_())
    assert executor.observers == () and node_annotations.observers == () and observers.started == ()
    assert interception.is_noted == before
    assert kernel.OBSERVED not in states()
    assert not jaxgrad.autograd._profiler_enabled()
    result = jaxgrad.ones(3).atan()  # and compilation events are not recorded
    assert result.shape == (3,)


@pytest.mark.row("O01")
def test_profile_inside_of_anomaly_mode():
    x = leaf(jaxgrad, 0.0)
    mode, inside = jaxgrad.autograd.set_detect_anomaly(True), profiler.profile()
    told = pytest.warns(UserWarning, match="Error detected")
    raised = pytest.raises(RuntimeError, match="returned nan values")
    with profiler.profile() as outside, mode, inside, told, raised:
        (x.sqrt() * 0).backward()
    expected = ["aten::sqrt", "aten::mul", "aten::ones_like", "MulBackward0", "SqrtBackward0"]
    assert names(inside) == names(outside) == expected


@pytest.mark.row("O01")
def test_graphs_are_not_kept_by_a_profile():
    x = jaxgrad.ones(2).requires_grad_()
    with profiler.profile(record_shapes=True, with_stack=True) as prof:
        node = weakref.ref(square(x).grad_fn)
    assert node() is None
    assert prof.function_events


@pytest.mark.row("O01")
def test_names_of_the_native_profiler():
    assert profiler.FunctionEvent is jaxgrad.autograd.profiler_util.FunctionEvent
    assert str(jaxgrad.autograd.DeviceType.CPU) == "DeviceType.CPU"
    assert jaxgrad.autograd.ProfilerActivity.CUDA.value == 2
    assert jaxgrad.autograd.kineto_available() is False
    with pytest.raises(AttributeError, match="no attribute 'profilers'"):
        _ = jaxgrad.autograd.profilers
    np.testing.assert_equal(set(profiler.__all__) - set(dir(profiler)), set())
