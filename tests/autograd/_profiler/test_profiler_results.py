"""What an autograd.profiler gives: events, sums, tables, files. Times cannot be compared with
PyTorch's; events with times that are known can.
"""

import json
import tempfile
import weakref
from pathlib import Path

import jax
import pytest
from helpers.as_torch import as_torch, error, warned
from helpers.modes import eager
from helpers.profiles import named, names, profiled, square

import jaxgrad
from jaxgrad.autograd import profiler
from jaxgrad.autograd._profiler import recorder


def hand_made(torch):
    """Events with times that are known."""
    profiler = torch.autograd.profiler
    rows = [
        ("label", 0, 100.0, 4100.0),
        ("aten::mul", 0, 150.0, 1150.0),
        ("aten::mul", 0, 1200.0, 1700.0),
        ("aten::sin", 0, 1800.0, 4000.0),
        ("aten::cos", 0, 1900.0, 3900.0),
        ("aten::a_name_that_is_longer_than_the_column_may_be_wide_by_default", 1, 0.0, 2500000.0),
    ]
    events = profiler.EventList(
        [
            profiler.FunctionEvent(number, name, thread, start, end)
            for number, (name, thread, start, end) in enumerate(rows, 1)
        ]
    )
    for event in events:
        event.overload_name, event.stack, event.input_shapes, event.flops = "", [], [], 0
    events._build_tree()
    return events


@pytest.mark.row("O02")
@as_torch("""
    [['label', 4000.0, 300.0, [2, 3, 4], None, '4.000ms', '300.000us'],
     ['aten::mul', 1000.0, 1000.0, [], 1, '1.000ms', '1.000ms'],
     ['aten::mul', 500.0, 500.0, [], 1, '500.000us', '500.000us'],
     ['aten::sin', 2200.0, 200.0, [5], 1, '2.200ms', '200.000us'],
     ['aten::cos', 2000.0, 2000.0, [], 4, '2.000ms', '2.000ms'],
     ['aten::a_name_that_is_longer_than_the_column_may_be_wide_by_default', 2500000.0, 2500000.0,
      [], None, '2.500s', '2.500s']]
    2504000.0
""")
def test_what_is_inside_of_what(torch):
    events = hand_made(torch)
    return [
        (
            event.key,
            event.cpu_time_total,
            event.self_cpu_time_total,
            [child.id for child in event.cpu_children],
            event.cpu_parent and event.cpu_parent.id,
            event.cpu_time_total_str,
            event.self_cpu_time_total_str,
        )
        for event in events
    ], events.self_cpu_time_total


@pytest.mark.row("O02")
@as_torch
def test_tables_of_events(torch):
    events = hand_made(torch)
    averages = events.key_averages()
    return [
        str(events),
        events.table(sort_by="self_cpu_time_total"),
        events.table(sort_by="cpu_time_total", row_limit=2, header="Times"),
        events.table(top_level_events_only=True, time_unit="ms"),
        events.table(max_name_column_width=None),
        averages.table(sort_by="count"),
        averages.table(time_unit="s", max_name_column_width=12),
        torch.autograd.profiler.EventList([]).table(),
        error(lambda: events.table(sort_by="weight"))["error"],
    ]


@pytest.mark.row("O02")
@as_torch
def test_tables_with_shapes_stacks_memory_and_flops(torch):
    profiler = torch.autograd.profiler
    events = hand_made(torch)
    for event in events:
        event.input_shapes = [[event.id, 2], []] if event.id != 2 else []
        event.stack = [f"file_{event.id % 2}.py(12): run", "main.py(3): <module>"]
        event.cpu_memory_usage = 1000 * 30**event.id - 5 * 1000**2
        event.flops = 10**event.id if event.id > 3 else 0
    averages = events.key_averages(group_by_input_shapes=True, group_by_stack_n=1)
    by_width = events.table(max_src_column_width=14, max_shapes_column_width=9)
    table_of_averages = averages.table()
    for event in events:  # PyTorch 2.13 puts FLOPs in the column of the stack where it shows both
        event.stack = []
    shown = profiler.EventList(events, profile_memory=True, with_flops=True)
    return [
        by_width,
        table_of_averages,
        shown.table(),
        [(average.key, average.count, average.stack, average.input_shapes) for average in averages],
    ]


@pytest.mark.row("O02")
@as_torch
def test_averages_of_events(torch):
    events = hand_made(torch)
    events[1].overload_name, events[2].overload_name = "Tensor", "Scalar"
    averages = [
        events.key_averages(),
        events.key_averages(group_by_overload_name=True),
        events.key_averages(group_by_stack_n=5),
    ]
    total = events.total_average()
    numbers = [
        [
            (a.key, a.count, a.cpu_time, a.cpu_time_total, a.self_cpu_time_total, a.overload_name)
            for a in event_list
        ]
        for event_list in averages
    ]
    unbuilt = torch.autograd.profiler.EventList([])
    of_two = averages[0][1]
    return [
        numbers,
        (total.key, total.count, total.cpu_time_total, total.self_cpu_time_total),
        error(unbuilt.key_averages),
        error(lambda: of_two.add(averages[0][0]), words="")["error"],
    ]


@pytest.mark.row("O02")
@as_torch("""
    [warned([FutureWarning('`cuda_time` is deprecated, please use `device_time` instead.')], 0.0),
     warned([FutureWarning('`cuda_time_total` is deprecated. Use `device_time_total` instead.')],
            0),
     warned([FutureWarning(
              '`self_cuda_time_total` is deprecated. Use `self_device_time_total` instead.')],
            0)]
    [0, False, 1, 'DeviceType.CPU']
""")
def test_old_names_of_events(torch):
    (event, *_) = hand_made(torch)
    return [
        warned(getattr, event, name)
        for name in ("cuda_time", "cuda_time_total", "self_cuda_time_total")
    ], [event.device_time_total, event.is_async, event.count, str(event.device_type)]


@pytest.mark.row("O02")
@as_torch
def test_stacks_in_a_file(torch):
    events = hand_made(torch)
    for event in events[:4]:
        event.stack = [f"file.py({event.id}): a function", "main.py(1): <module>"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "stacks")
        events.export_stacks(str(path), "self_cpu_time_total")
        text = path.read_text()
        events.export_stacks(str(path), "self_cuda_time_total")
        empty = path.read_text()
    metrics = events.supported_export_stacks_metrics()
    wrong = error(
        lambda: events.export_stacks("nowhere", "weight"), words="metric should be one of"
    )
    return text, empty, metrics, wrong


@pytest.mark.row("O02")
def test_operators_forward_and_backward():
    prof = profiled()
    assert names(prof) == [
        *("aten::mul", "aten::sin", "aten::sum", "aten::ones_like"),
        *("SumBackward0", "SinBackward0", "MulBackward0", "aten::add"),
        "torch::autograd::AccumulateGrad",
    ]
    averages = {average.key: average.count for average in prof.key_averages()}
    assert averages["aten::mul"] == 1 and averages["MulBackward0"] == 1
    (node,), (addition,) = named(prof, "MulBackward0"), named(prof, "aten::add")
    assert addition.cpu_parent is node and addition in node.cpu_children


@pytest.mark.row("O02")
def test_times_add_up(monkeypatch):
    moment = 0  # in nanoseconds, on a clock that advances with each reading

    def read():
        nonlocal moment
        moment += 1000
        return moment

    monkeypatch.setattr(recorder, "perf_counter_ns", read)
    x = jaxgrad.ones(2)
    square(jaxgrad.ones(3, 4).requires_grad_())  # compile all of it: JAX's clock is another
    (x + 1).tolist()
    with profiler.profile() as prof:
        square(jaxgrad.ones(3, 4).requires_grad_())
        with profiler.record_function("waiting"):
            moment += 20_000_000
            x + 1
    passed = moment / 1000
    top = sum(e.cpu_time_total for e in prof.function_events if e.cpu_parent is None)
    assert prof.self_cpu_time_total == pytest.approx(top)
    assert prof.self_cpu_time_total == pytest.approx(prof.total_average().self_cpu_time_total)
    assert 20e3 < prof.self_cpu_time_total < passed
    (waiting,) = named(prof, "waiting")
    assert 20e3 < waiting.self_cpu_time_total < waiting.cpu_time_total


@pytest.mark.row("O02")
def test_an_operator_lasts_until_its_result_is_there():
    x = jaxgrad.ones(1000, 1000)
    with profiler.profile():
        assert (x @ x)._array.is_ready()
        assert jaxgrad.jit(lambda x: x @ x)(x)._array.is_ready()


@pytest.mark.row("O02")
def test_compiling_is_an_event_of_its_own():
    x = jaxgrad.ones(7, 1, 3)
    with eager("compiled"), profiler.profile() as first:
        x.atan()
    with eager("compiled"), profiler.profile() as second:
        x.atan()
    (operator,) = named(first, "aten::atan")
    inside = {child.name for child in operator.cpu_children}
    assert {"jax::lower", "jax::compile"} <= inside
    assert operator.self_cpu_time_total < operator.cpu_time_total
    traces = [e for e in first.function_events if e.name == "jax::trace"]
    (line,) = first.key_averages(by_line=True)
    assert line.count == 1 + sum(e.cpu_parent is None for e in traces)
    top = [e.cpu_time_total for e in first.function_events if e.cpu_parent is None]
    assert line.cpu_time_total == pytest.approx(sum(top))
    assert [event.name for event in second.function_events] == ["aten::atan"]


@pytest.mark.row("O02")
def test_a_compiled_function_is_one_event_and_tracing_it_others():
    @jaxgrad.jit
    def step(x):
        square(x)
        return x.grad

    x = jaxgrad.ones(5, 2).requires_grad_()
    with profiler.profile() as first:
        step(x)
    x.grad = None
    with profiler.profile() as second:
        step(x)
    assert names(first) == ["jaxgrad.jit::step"]
    (compiling,) = named(first, "jaxgrad.jit::step")
    kinds = [child.name for child in compiling.cpu_children]
    assert {"jax::trace", "jax::lower", "jax::compile"} == set(kinds)
    assert not any(trace.cpu_children for trace in named(first, "jax::trace"))
    assert [e.name for e in second.function_events] == ["jaxgrad.jit::step"]


@pytest.mark.row("O02")
def test_factories_random_numbers_and_moves():
    with profiler.profile() as prof:
        x = jaxgrad.zeros(3)
        jaxgrad.randn(3)
        jaxgrad.randperm(3)
        jaxgrad.arange(3)
        x.to("cpu", copy=True)
        x.clone()[0] = 1.0
    expected = ["aten::zeros", "aten::randn", "aten::randperm", "aten::arange", "aten::_to_copy"]
    assert names(prof)[:5] == expected


@pytest.mark.row("O02")
def test_shapes_of_events():
    def run(x):
        y = x @ jaxgrad.ones(4, 2)
        (y * 1.25).sum().backward()

    prof = profiled(run, record_shapes=True)
    assert named(prof, "aten::matmul")[0].input_shapes == [[3, 4], [4, 2]]
    assert named(prof, "aten::mul")[0].input_shapes == [[3, 2], []]
    assert named(prof, "MulBackward0")[0].input_shapes == [[3, 2]]
    assert named(profiled(run), "aten::mul")[0].input_shapes == []
    averages = prof.key_averages(group_by_input_shape=True)
    assert ("aten::matmul", [[3, 4], [4, 2]]) in [(a.key, a.input_shapes) for a in averages]
    assert "Input Shapes" in averages.table() and "Input Shapes" not in profiled(run).table()


@pytest.mark.row("O02")
def test_flops_are_those_of_the_formula():
    x = jaxgrad.ones(5, 7).requires_grad_()
    y = jaxgrad.ones(7, 3)
    with profiler.profile(with_flops=True) as prof:
        z = x @ y
        (z + z).backward(jaxgrad.ones(5, 3))
    assert prof.record_shapes
    assert named(prof, "aten::matmul")[0].flops == 2 * 5 * 7 * 3
    assert named(prof, "MmBackward0")[0].flops == 2 * 5 * 7 * 3  # of one of the two gradients
    assert named(prof, "aten::add")[0].flops == 15
    assert "FLOPs" in prof.key_averages().table()


@pytest.mark.row("O02")
@pytest.mark.slow
def test_memory_of_events():
    x = jaxgrad.ones(100, 100)
    x.sin(), x.cos(), x.tan()
    with profiler.profile(profile_memory=True) as prof:
        y = x.sin()
        y = y.cos()  # the first array is freed once this one exists
        del y
        x.tan()
    memory = [(e.name, e.cpu_memory_usage) for e in prof.function_events]
    assert memory == [
        *[("aten::sin", 40_000), ("aten::cos", 40_000), ("[memory]", -40_000)],
        *[("[memory]", -40_000), ("aten::tan", 40_000), ("[memory]", -40_000)],
    ]
    table = prof.key_averages().table()
    assert "Self CPU Mem" in table and "39.06 KB" in table and "-117.19 KB" in table


@pytest.mark.row("O02")
def test_memory_is_not_kept():
    x = jaxgrad.ones(100, 100)
    with profiler.profile(profile_memory=True) as prof:
        y = x.sin()
    array = weakref.ref(y._array)
    del y
    assert array() is None and prof.function_events


def inner(x):
    return x.exp()


def outer(x):
    return inner(x) * 2


@pytest.mark.row("O02")
def test_stacks_of_events():
    x = jaxgrad.ones(2).requires_grad_()
    with profiler.profile(with_stack=True) as prof:
        outer(x).sum().backward()
    (event,) = named(prof, "aten::exp")
    lines = [f"{__file__}({outer.__code__.co_firstlineno + 1}): outer"]
    lines.insert(0, f"{__file__}({inner.__code__.co_firstlineno + 1}): inner")
    assert event.stack[:2] == lines and event.stack[2].endswith(": test_stacks_of_events")
    (node,) = named(prof, "ExpBackward0")
    assert node.stack == event.stack
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "stacks")
        prof.export_stacks(str(path))
        written = path.read_text().splitlines()
        other = profiled()
        with pytest.raises(AssertionError, match=r"export_stacks\(\) requires with_stack=True"):
            other.export_stacks(str(path))
    assert all(int(line.rpartition(" ")[2]) > 0 for line in written)
    assert any("outer;" in line and "inner" in line for line in written)
    averages = prof.key_averages(group_by_stack_n=1)
    assert "Source Location" in averages.table()
    assert [a.stack for a in averages if a.key == "aten::exp"] == [lines[:1]]


@pytest.mark.row("O02")
def test_events_by_source_line():
    def run(x):
        y = x.exp()
        z = y * y + y.sin()
        return z.sum()

    x = jaxgrad.ones(2).requires_grad_()
    run(x).backward()  # all of it is compiled
    with profiler.profile() as prof:
        total = run(x)
        total.backward()
    first = run.__code__.co_firstlineno
    averages = prof.key_averages(by_line=True)
    lines = {int(average.key.partition(":")[2].partition(" ")[0]): average for average in averages}
    assert set(lines) == {first + 1, first + 2, first + 3, first + 9}
    assert lines[first + 2].key == f"test_profiler_results.py:{first + 2}  z = y * y + y.sin()"
    for offset, (forward, backward) in {
        1: (["aten::exp"], ["ExpBackward0"]),
        2: (
            ["aten::mul", "aten::sin", "aten::add"],
            ["AddBackward0", "SinBackward0", "MulBackward0"],
        ),
        3: (["aten::sum"], ["SumBackward0"]),
    }.items():
        events = [e for name in forward for e in named(prof, name) if e.cpu_parent is None]
        events = [e for e in events if e.place[1] == first + offset]
        expected = sum(e.cpu_time_total for e in events)
        assert lines[first + offset].forward_time_total == pytest.approx(expected)
        events = [e for name in backward for e in named(prof, name)]
        expected = sum(e.cpu_time_total for e in events)
        assert lines[first + offset].backward_time_total == pytest.approx(expected)
    assert sum(average.self_cpu_time_total for average in averages) == pytest.approx(
        prof.self_cpu_time_total
    )
    assert all(
        average.forward_time_total + average.backward_time_total
        == pytest.approx(average.self_cpu_time_total)
        for average in averages
    )
    table = averages.table(max_name_column_width=None)
    assert "Forward" in table and "Backward" in table and "z = y * y + y.sin()" in table


@pytest.mark.row("O02")
def test_the_file_of_a_chrome_trace():
    prof = profiled(record_shapes=True, with_stack=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        prof.export_chrome_trace(str(path), metadata={"run": 3})
        written = json.loads(path.read_text())
        prof.function_events.export_chrome_trace(str(path))
        again = json.loads(path.read_text())
    assert written["run"] == 3 and written["trace_id"] == prof.trace_id
    assert again["traceEvents"] == written["traceEvents"]
    bars = [e for e in written["traceEvents"] if e["ph"] == "X"]
    assert [b["name"] for b in bars] == [e.name for e in prof.function_events]
    for bar, event in zip(bars, prof.function_events, strict=True):
        assert (bar["ts"], bar["dur"]) == (event.time_range.start, event.cpu_time_total)
        assert bar["args"].get("Input Dims", []) == event.input_shapes
    by_number = {b["args"]["External id"]: b for b in bars}
    assert len(by_number) == len(bars)
    arrows = {}
    for entry in written["traceEvents"]:
        if entry["ph"] in "sf":
            assert entry["cat"] == "fwdbwd" and entry.get("bp") == (
                "e" if entry["ph"] == "f" else None
            )
            arrows.setdefault(entry["id"], {})[entry["ph"]] = entry["ts"]
    at = {b["ts"]: b["name"] for b in reversed(bars)}
    assert sorted((at[a["s"]], at[a["f"]]) for a in arrows.values()) == [
        ("aten::mul", "MulBackward0"),
        ("aten::sin", "SinBackward0"),
        ("aten::sum", "SumBackward0"),
    ]


@pytest.mark.row("O02")
def test_time_of_a_device_that_is_there(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    prof = profiled(use_device="cuda")
    assert prof.use_device == "cuda"
    (event,) = named(prof, "aten::mul")
    assert event.device_time_total == event.cpu_time_total
    table = prof.key_averages().table(sort_by="self_cuda_time_total")
    assert "Self CUDA" in table and "CUDA total" in table


@pytest.mark.row("O02")
def test_memory_records_of_a_profile():
    class Record:
        def __init__(self, start):
            self.start = start

        def start_ns(self):
            return self.start

    records = [[Record(start), False] for start in (5, 1, 3, 3, 9)]
    accumulator = profiler.MemRecordsAcc(records)
    assert [record[0].start for record in accumulator.in_interval(3, 5)] == [3, 3, 5]
    assert list(profiler.MemRecordsAcc([]).in_interval(0, 1)) == []
