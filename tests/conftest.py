"""Settings of every test, and the counter of executed checks (checks.py)."""

from helpers import xla_settings  # isort: skip  # noqa: F401  before anything imports JAX

import gc
import multiprocessing
import os
import random
import signal
import sys
import threading
import zlib
from collections import Counter

import hypothesis
import jax
import numpy
import pytest
from helpers import checks
from jax.extend.backend import get_backend
from jax.extend.core import set_current_trace

import jaxgrad
from jaxgrad.core import deferred
from jaxgrad.core.jax_internals import COMPILE_EVENT, current_trace
from jaxgrad.frontend import generator
from jaxgrad.frontend.printing import arrays as printing
from jaxgrad.multiprocessing import _contexts

# no clock decides: neither on an example, nor on how long it takes to draw some
hypothesis.settings.register_profile(
    "repeatable",
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("repeatable")

# Any of these options makes a run partial, and its counts meaningless.
SELECTIONS = (
    *("file_or_dir", "keyword", "markexpr", "deselect", "ignore", "ignore_glob"),
    *("lf", "stepwise", "collectonly"),
)

OUTCOMES = "passed", "failed", "error"

MANY_EXECUTABLES = 1000

# What collection makes lives to the end, so a search for garbage meanwhile finds nothing.
gc.disable()

# Tests hardly repeat anything, so deferred calls would pause for most of them. With REPEATS=0 in
# the environment every stretch of calls is compiled.
deferred.NEW_IN_A_ROW = 10**9
if "REPEATS" in os.environ:
    deferred.REPEATS = int(os.environ["REPEATS"])

findings = pytest.StashKey[list]()
left_out = pytest.StashKey[int]()  # how many tests a sample leaves out


@pytest.fixture(autouse=True)
def fixed_seeds():
    random.seed(0)
    numpy.random.seed(0)


@pytest.fixture(autouse=True)
def same_state_of_jax():
    """A test that leaves JAX's 64-bit types on, or a trace, fails itself, not those after it."""
    is_wide, trace = jax.config.jax_enable_x64, current_trace()
    yield
    is_same = jax.config.jax_enable_x64 == is_wide and current_trace() is trace
    if not is_same:
        jax.enable_x64(is_wide).__enter__()
        set_current_trace(trace).__enter__()
    assert is_same


def environment():
    return {name: os.environ[name] for name in os.environ if name != "PYTEST_CURRENT_TEST"}


def set_environment(before):
    for name in environment().keys() - before.keys():
        del os.environ[name]
    os.environ.update(before)


# What tests set, by name: how to read it, and how to set it.
STATE = {
    "default dtype": (jaxgrad.get_default_dtype, jaxgrad.set_default_dtype),
    "default device": (jaxgrad.get_default_device, lambda _: jaxgrad.set_default_device(None)),
    "grad mode": (jaxgrad.is_grad_enabled, jaxgrad.set_grad_enabled),
    "anomaly mode": (jaxgrad.is_anomaly_enabled, jaxgrad.autograd.set_detect_anomaly),
    "eager mode": (lambda: deferred.mode, jaxgrad.set_eager),
    "print options": (
        printing.get_printoptions,
        lambda options: printing.set_printoptions(**options),
    ),
    "environment": (environment, set_environment),
    "folder": (os.getcwd, os.chdir),
    "profile function": (sys.getprofile, sys.setprofile),
    "switch interval": (sys.getswitchinterval, sys.setswitchinterval),
    "garbage collection": (gc.isenabled, lambda enabled: gc.enable() if enabled else gc.disable()),
    "thresholds of garbage": (gc.get_threshold, lambda thresholds: gc.set_threshold(*thresholds)),
}


@pytest.fixture(autouse=True)
def same_state_of_process():
    """A test that leaves something set, as where it fails, leaves it to no other test."""
    before = {name: read() for name, (read, _) in STATE.items()}
    yield
    changed = [name for name, (read, _) in STATE.items() if read() != before[name]]
    for name in changed:
        STATE[name][1](before[name])
    assert not changed


def with_stream(stream):
    before = generator._chosen
    jaxgrad.random.use(stream)
    yield stream
    jaxgrad.random.use(before)


@pytest.fixture
def jax_stream():
    """Random numbers are those of JAX's keys."""
    yield from with_stream("jax")


@pytest.fixture(params=["torch", "jax"])
def stream(request):
    """Random numbers are those of one stream, and of the other one."""
    yield from with_stream(request.param)


@pytest.fixture
def start_method():
    """The start method of processes is not named, and afterwards what it was: it says how later
    tests start theirs.
    """
    before = multiprocessing.get_start_method(allow_none=True)
    multiprocessing.set_start_method(None, force=True)
    _contexts.set_method(None)
    yield
    multiprocessing.set_start_method(before, force=True)
    _contexts.set_method(None)


@pytest.fixture
def no_signal_is_ignored():
    """Processes that the test starts ignore none of the signals that a process may inherit as
    ignored: `nohup` and a shell that runs a command in the background ignore some.
    """
    numbers = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
    ignored = [number for number in numbers if signal.getsignal(number) == signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, signal.SIG_DFL)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


def shrink_heap():
    """Forget what earlier tests compiled, and hide what stays from the garbage collector.

    A full collection takes as long as there are objects: over a second with those of all tests.
    """
    jaxgrad.compiler.reset()
    jax.clear_caches()
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def pytest_collection_finish():
    shrink_heap()
    gc.enable()


@pytest.fixture(autouse=True)
def small_heap():
    if len(get_backend().live_executables()) > MANY_EXECUTABLES:
        shrink_heap()


@pytest.fixture(scope="module")
def nothing_compiled():
    """For tests that count what is alive, or collect garbage often: only what they make is
    searched.
    """
    shrink_heap()


@pytest.fixture
def compilations():
    """The thread of each compilation, from a state in which no program is known."""
    jaxgrad.compiler.reset()
    gc.collect()  # a program and its kernel refer to each other
    threads = []

    def note(name, _duration, **_):
        if name == COMPILE_EVENT:
            threads.append(threading.get_ident())

    jax.monitoring.register_event_duration_secs_listener(note)
    yield threads
    jax.monitoring.unregister_event_duration_listener(note)


@pytest.fixture(autouse=True)
def unverified(request):
    if request.node.get_closest_marker("unverified"):
        request.getfixturevalue("monkeypatch").setenv("JAXGRAD_JIT_VERIFY", "0")


def pytest_addoption(parser):
    parser.addoption(
        "--record-checks",
        action="store_true",
        help="write the number of executed checks to tests/helpers/expected_checks.json",
    )
    parser.addoption(
        "--one-of",
        type=int,
        default=1,
        metavar="N",
        help="of each file run the first test that is not slow, and every N-th after it",
    )
    parser.addoption(
        "--slow-one-of",
        type=int,
        default=1,
        metavar="N",
        help="of each file run the first slow test, and every N-th after it; 0: no slow test where"
        " there are others",
    )
    parser.addoption(
        "--shard",
        type=shard,
        default=(1, 1),
        metavar="K/N",
        help="run the K-th of N parts, which have no test in common",
    )


def shard(text):
    """The numbers of `K/N`. Raises ValueError unless 1 <= K <= N."""
    number, count = map(int, text.split("/"))
    if not 1 <= number <= count:
        raise ValueError(text)
    return number, count


def sample(items, step, slow_step):
    """Of each file the first test, and every `step`-th after it; slow ones are counted apart.

    Where all tests of a file are slow, the first one counts as one that is not, unless these are a
    sample themselves: no file is left out of `make test`.
    """
    positions, slow = Counter(), {item for item in items if item.get_closest_marker("slow")}
    represented = {item.path for item in items if step > 1 or item not in slow}
    for item in items:
        is_slow = item in slow and item.path in represented
        represented.add(item.path)
        position = positions[item.path, is_slow]
        positions[item.path, is_slow] += 1
        interval = slow_step if is_slow else step
        if interval and position % interval == 0:
            yield item


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config, items):
    yield  # -k and -m select first
    number, count = config.getoption("--shard")
    sampled = {
        item
        for item in sample(items, config.getoption("--one-of"), config.getoption("--slow-one-of"))
        if zlib.crc32(item.nodeid.encode()) % count == number - 1
    }
    deselected = [item for item in items if item not in sampled]
    items[:] = [item for item in items if item in sampled]
    if deselected:
        config.hook.pytest_deselected(items=deselected)
    config.stash[left_out] = len(deselected)


def is_complete(config):
    is_all = config.getoption("--one-of") == config.getoption("--slow-one-of") == 1
    is_whole = config.getoption("--shard") == (1, 1)
    return is_all and is_whole and not any(config.getoption(name) for name in SELECTIONS)


def pytest_sessionfinish(session, exitstatus):
    config = session.config
    if hasattr(config, "workeroutput"):
        config.workeroutput["checks"] = dict(checks.totals)
        config.workeroutput["left_out"] = config.stash.get(left_out, 0)
        return
    if exitstatus != pytest.ExitCode.OK or not is_complete(config):
        return
    if config.getoption("record_checks"):
        checks.record()
    config.stash[findings] = checks.shortfalls()
    if config.stash[findings]:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    output = getattr(node, "workeroutput", {})
    checks.totals.update(output.get("checks", {}))
    if "left_out" in output:  # the same in each worker
        node.config.stash[left_out] = output["left_out"]


def pytest_terminal_summary(terminalreporter, config):
    if checks.totals:
        families = ", ".join(f"{name} {number}" for name, number in sorted(checks.totals.items()))
        terminalreporter.write_line(f"checks: {sum(checks.totals.values())} ({families})")
    for line in config.stash.get(findings, []):
        terminalreporter.write_line(f"FAILED {line}", red=True)


def pytest_unconfigure(config):
    """Say last what ran, and what a sample left out."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    count = config.stash.get(left_out, 0)
    if reporter and count and not hasattr(config, "workeroutput"):
        ran = sum(len(reporter.stats.get(outcome, ())) for outcome in OUTCOMES)
        reporter.write_line(
            f"{ran:,} tests ran, some of every feature; `make test-all` runs {count:,} more"
        )
