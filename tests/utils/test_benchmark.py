"""torch.utils.benchmark.Timer."""

import pytest

from jaxgrad.utils import benchmark


def test_a_statement_runs_as_often_as_is_asked():
    calls = []
    timer = benchmark.Timer("f()", globals={"f": lambda: calls.append(1)}, label="f")
    measured = timer.timeit(200)
    assert len(calls) == 202 and measured.number_per_run == 200 and len(measured.times) == 1
    assert measured.mean == measured.median == measured.raw_times[0] / 200 and measured.iqr == 0
    assert "f\n" in repr(measured) and "200 runs per measurement" in repr(measured)
    assert (measured.label, measured.stmt, measured.title) == ("f", "f()", "f")


def test_the_clock_is_read_when_results_are_there():
    moments = iter(range(100))
    timer = benchmark.Timer("x.sin()", "x = torch.ones(3)", timer=lambda: next(moments))
    assert timer.timeit(10).raw_times == [1]
    assert benchmark.timer() <= benchmark.timer()


def test_blocks_last_long_enough():
    moment, seen = 0.0, []

    def run():
        nonlocal moment
        moment += 1e-6

    timer = benchmark.Timer("run()", globals={"run": run}, timer=lambda: moment)
    measured = timer.blocked_autorange(lambda count, time: seen.append(count), min_run_time=0.01)
    assert sum(measured.raw_times) >= 0.01 and len(seen) == len(measured.raw_times) > 1
    assert measured.number_per_run > 1 and measured.median == pytest.approx(1e-6)
    stable = timer.adaptive_autorange(0.9, min_run_time=0.001, max_run_time=0.1)
    assert len(stable.times) > 3 and stable.iqr / stable.median < 0.9
    assert "IQR" in repr(stable)


def test_statistics():
    task = benchmark.TaskSpec("x", "pass", description="d")
    measured = benchmark.Measurement(2, [2.0, 4.0, 6.0, 8.0, 20.0], task)
    # numpy.quantile of 1, 2, 3, 4, 10
    assert (measured.median, measured.mean, measured.iqr) == (3.0, 4.0, 2.0)
    assert [benchmark.select_unit(t)[0] for t in (3e-9, 2e-5, 5e-3, 2.0)] == ["ns", "us", "ms", "s"]


def test_what_is_not_measured():
    with pytest.raises(NotImplementedError, match="measures Python code alone"):
        benchmark.Timer("x", language="c++")
    with pytest.raises(NotImplementedError, match="blocked_autorange"):
        benchmark.Timer("x").autorange()
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = benchmark.Measurement(1, [1.0], benchmark.TaskSpec("x", "")).nothing
