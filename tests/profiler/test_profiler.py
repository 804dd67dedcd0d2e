"""torch.profiler: schedules and cycles against PyTorch, files and errors."""

import gzip
import json
import warnings

import pytest
from helpers.as_torch import as_torch, error, warned

import jaxgrad
from jaxgrad import profiler


def actions(plan, count):
    return [plan(step).name for step in range(count)]


@as_torch
def test_schedules(torch):
    schedule = torch.profiler.schedule
    plans = [
        schedule(wait=1, warmup=1, active=2),
        schedule(wait=1, warmup=1, active=2, repeat=1, skip_first=2),
        schedule(wait=2, warmup=1, active=1, repeat=2, skip_first=1, skip_first_wait=1),
        schedule(wait=0, warmup=1, active=1, skip_first=3),
    ]
    refused = [
        error(lambda: schedule(wait=-1, warmup=0, active=1)),
        error(lambda: schedule(wait=0, warmup=0, active=0)),
    ]
    told = warned(lambda: schedule(wait=0, warmup=0, active=1)(0).name)
    return [actions(plan, 14) for plan in plans], refused, told


def cycles(torch, steps, **options):
    """At each call of `on_trace_ready` the step, the action, and how many products there are."""
    seen, x = [], torch.ones(3)

    def ready(prof):
        counts = {event.key: event.count for event in prof.key_averages()}
        labels = sorted(key for key in counts if "Step" in key)
        seen.append([prof.step_num, prof.current_action.name, counts.get("aten::mul", 0), labels])

    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(
        activities=activities, on_trace_ready=ready, acc_events=True, **options
    ) as prof:
        for step in range(steps):
            for _ in range(step + 1):
                x * x
            prof.step()
    return seen


@as_torch("""
    [[4, 'NONE', 7, ['ProfilerStep*']]]
    [[4, 'RECORD', 7, ['ProfilerStep*']]]
    [[2, 'RECORD', 3, []]]
""")
def test_cycles_of_a_schedule(torch):
    schedule = torch.profiler.schedule
    return [
        cycles(torch, 10, schedule=schedule(wait=1, warmup=1, active=2, repeat=1)),
        cycles(torch, 4, schedule=schedule(wait=1, warmup=1, active=5)),
        cycles(torch, 2),
    ]


@pytest.mark.slow
def test_a_cycle_has_its_own_events_or_all():
    def products(**options):
        counts = []
        plan = profiler.schedule(wait=0, warmup=1, active=1)
        with profiler.profile(
            schedule=plan, on_trace_ready=lambda p: counts.append(count(p)), **options
        ) as prof:
            for step in range(6):
                for _ in range(step + 1):
                    jaxgrad.ones(2).sin()
                prof.step()
        return counts

    def count(prof):
        return sum(e.count for e in prof.key_averages() if e.key == "aten::sin")

    assert products() == [2, 4, 6]
    assert products(acc_events=True) == [2, 6, 12]


def test_files_for_tensorboard(tmp_path):
    handler = profiler.tensorboard_trace_handler(tmp_path / "logs", "worker")
    packed = profiler.tensorboard_trace_handler(tmp_path / "packed", use_gzip=True)
    with profiler.profile(on_trace_ready=handler, record_shapes=True) as prof:
        jaxgrad.ones(2, 3).sin()
        prof.add_metadata("model", "small")
        prof.add_metadata_json("sizes", "[1, 2]")
    packed(prof)
    (plain,) = (tmp_path / "logs").iterdir()
    (zipped,) = (tmp_path / "packed").iterdir()
    assert plain.name.startswith("worker.") and plain.name.endswith(".pt.trace.json")
    trace = json.loads(plain.read_text())
    assert (trace["model"], trace["sizes"]) == ("small", [1, 2])
    assert any(event["name"] == "aten::sin" for event in trace["traceEvents"])
    assert zipped.name.endswith(".json.gz")
    assert json.loads(gzip.decompress(zipped.read_bytes()))["traceEvents"] == trace["traceEvents"]


def test_steps_are_labels():
    with profiler.profile(schedule=lambda step: profiler.ProfilerAction.RECORD) as prof:
        for _ in range(3):
            jaxgrad.ones(2)
            prof.step()
    labels = [event for event in prof.events() if event.key == "ProfilerStep*"]
    names = [f"ProfilerStep#{step}" for step in range(4)]
    assert [event.trace_name for event in labels] == names
    assert "ProfilerStep*" in prof.key_averages().table(sort_by="cpu_time_total")


def test_start_stop_and_collection():
    prof = profiler.profile(with_flops=True, custom_trace_id_callback=lambda: "mine")
    assert prof.get_trace_id() is None
    prof.start()
    jaxgrad.ones(2).sin()
    prof.toggle_collection_dynamic(False)
    jaxgrad.ones(2).cos()
    prof.stop()
    keys = {event.key for event in prof.events()}
    assert "aten::sin" in keys and "aten::cos" not in keys and prof.get_trace_id() == "mine"
    assert profiler.supported_activities() == {profiler.ProfilerActivity.CPU}
    assert profiler.kineto_available() is False
    with profiler.record_function("label"):
        pass


def test_errors_of_profiles():
    for call in (lambda p: p.key_averages(), lambda p: p.events(), lambda p: p.export_stacks("x")):
        with pytest.raises(AssertionError, match="Profiler must be initialized before"):
            call(profiler.profile())
    for wrong in ([], [profiler.ProfilerActivity.XPU]):
        with pytest.raises(AssertionError, match="No valid profiler activities found"):
            profiler.profile(activities=wrong)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a GPU that is not there
        both = [profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.CUDA]
        with profiler.profile(activities=both) as prof:
            jaxgrad.ones(2).sin()
    assert "aten::sin" in {event.key for event in prof.events()}
