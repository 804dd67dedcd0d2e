"""Settings of every test, and the counter of executed checks (checks.py)."""

import xla_settings  # isort: skip  # noqa: F401  before anything imports JAX

import gc
import multiprocessing
import os
import random
import signal
import sys
import threading
import zlib

import checks
import hypothesis
import jax
import numpy
import pytest
from jax.extend.backend import get_backend
from jax.extend.core import get_opaque_trace_state, set_current_trace, take_current_trace

import jaxgrad
from jaxgrad.core import deferred
from jaxgrad.frontend import printing
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

MANY_EXECUTABLES = 1000

# Tests hardly repeat anything, so deferred calls would pause for most of them. With REPEATS=0 in
# the environment every stretch of calls is compiled.
deferred.NEW_IN_A_ROW = 10**9
deferred.REPEATS = int(os.environ.get("REPEATS", deferred.REPEATS))

findings = pytest.StashKey[list]()


@pytest.fixture(autouse=True)
def fixed_seeds():
    random.seed(0)
    numpy.random.seed(0)


@pytest.fixture(autouse=True)
def same_state_of_jax():
    """A test that leaves JAX's 64-bit types on, or a trace, fails itself, not those after it."""
    is_wide, state = jax.config.jax_enable_x64, get_opaque_trace_state()
    with take_current_trace() as trace:
        pass
    yield
    is_same = jax.config.jax_enable_x64 == is_wide and get_opaque_trace_state() == state
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


@pytest.fixture(autouse=True)
def small_heap():
    """Forget what earlier tests compiled before it slows down each garbage collection."""
    if len(get_backend().live_executables()) > MANY_EXECUTABLES:
        jaxgrad.compiler.reset()
        jax.clear_caches()
        gc.collect()


@pytest.fixture(scope="module")
def nothing_compiled():
    """For tests that count what is alive, or collect garbage often: only what they make is
    searched.
    """
    jaxgrad.compiler.reset()
    jax.clear_caches()
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def compilations():
    """The thread of each compilation, from a state in which no program is known."""
    jaxgrad.compiler.reset()
    gc.collect()  # a program and its kernel refer to each other
    found = []

    def note(name, _duration, **_):
        if "backend_compile" in name:
            found.append(threading.get_ident())

    jax.monitoring.register_event_duration_secs_listener(note)
    yield found
    jax.monitoring.unregister_event_duration_listener(note)


@pytest.fixture(autouse=True)
def unverified(request):
    if request.node.get_closest_marker("unverified"):
        request.getfixturevalue("monkeypatch").setenv("JAXGRAD_JIT_VERIFY", "0")


def pytest_addoption(parser):
    parser.addoption(
        "--record-checks",
        action="store_true",
        help="write the number of executed checks to tests/expected_checks.json",
    )
    parser.addoption(
        "--one-of", type=int, default=1, metavar="N", help="run every N-th test, by its name"
    )
    parser.addoption(
        "--slow-one-of", type=int, default=1, metavar="N", help="run every N-th of the slow tests"
    )


def pytest_collection_modifyitems(config, items):
    count, count_of_slow = config.getoption("--one-of"), config.getoption("--slow-one-of")

    def is_chosen(item):
        # by name, so that each process of xdist chooses the same
        number = zlib.crc32(item.nodeid.encode())
        is_slow = item.get_closest_marker("slow") is not None
        return number % count == 0 and not (is_slow and number % count_of_slow)

    items[:] = filter(is_chosen, items)


def is_complete(config):
    is_all = config.getoption("--one-of") == config.getoption("--slow-one-of") == 1
    return is_all and not any(config.getoption(name) for name in SELECTIONS)


def pytest_sessionfinish(session, exitstatus):
    config = session.config
    if hasattr(config, "workeroutput"):
        config.workeroutput["checks"] = dict(checks.made)
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
    checks.made.update(getattr(node, "workeroutput", {}).get("checks", {}))


def pytest_terminal_summary(terminalreporter, config):
    if checks.made:
        families = ", ".join(f"{name} {number}" for name, number in sorted(checks.made.items()))
        terminalreporter.write_line(f"checks: {sum(checks.made.values())} ({families})")
    for line in config.stash.get(findings, []):
        terminalreporter.write_line(f"FAILED {line}", red=True)
