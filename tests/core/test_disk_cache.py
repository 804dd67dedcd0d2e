"""Executables on disk: what is kept, what is ignored, and what stays as it was."""

import json
import os
import stat
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import hangs
from helpers.modes import eager

import jaxgrad
from jaxgrad import cli
from jaxgrad.core import disk_cache
from jaxgrad.core.file_cache import MAGIC, FileCache, open_directory, wanted_directory

# ---- files


@pytest.fixture
def files(tmp_path):
    return FileCache(tmp_path)


def test_a_value_comes_back_in_another_cache_of_the_directory(files, tmp_path):
    files.put("key", b"\x00\xff value")
    assert FileCache(tmp_path).get("key") == b"\x00\xff value"
    assert files.get("other") is None
    assert stat.S_IMODE(files.path("key").stat().st_mode) == 0o600


def flip_last_bit(content):
    return content[:-1] + bytes([content[-1] ^ 1])


@pytest.mark.parametrize(
    "damage",
    [
        flip_last_bit,
        lambda content: flip_last_bit(content[: len(MAGIC) + 1]) + content[len(MAGIC) + 1 :],
        lambda content: content[:-1],
        lambda content: content[: len(MAGIC) + 5],
        lambda content: b"",
        lambda content: content + b"more",
        lambda content: b"a text of somebody else",
        lambda content: content.replace(b"cache 1", b"cache 0"),  # an older form
    ],
)
def test_a_damaged_foreign_or_old_file_warns_once_and_is_removed(files, damage):
    for key in ("first", "second"):
        files.put(key, b"value of " + key.encode())
        files.path(key).write_bytes(damage(files.path(key).read_bytes()))
    with pytest.warns(RuntimeWarning, match="first.* is damaged, or of another program"):
        assert files.get("first") is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert files.get("second") is None
    assert not files.files()
    files.put("first", b"new")
    assert files.get("first") == b"new"


def test_a_file_under_the_name_of_another_one_is_a_foreign_one(files):
    files.put("first", b"value")
    files.path("first").rename(files.path("second"))
    with pytest.warns(RuntimeWarning, match="damaged"):
        assert files.get("second") is None


def test_the_least_recently_used_files_go(tmp_path):
    files = FileCache(tmp_path, limit=8000)
    (tmp_path / "of the user").write_bytes(bytes(9000))
    for number in range(40):
        files.put(str(number), bytes(400))
        # the order of use, which the clock of a file system may be too coarse to tell
        os.utime(files.path(str(number)), ns=(number, number))
        files.get("0")
        total = sum(size for _, size, _ in files.files())
        assert total <= 8000
    kept = [number for number in range(40) if files.get(str(number))]
    assert kept == [0, *range(kept[1], 40)] and len(kept) > 10
    assert (tmp_path / "of the user").exists()


def test_a_value_larger_than_a_share_of_the_limit_is_not_kept(tmp_path):
    files = FileCache(tmp_path, limit=8000)
    files.put("key", bytes(1001))
    assert files.get("key") is None


def test_files_that_a_process_left_unfinished_go_too(files, tmp_path):
    (tmp_path / "abc.unfinished").write_bytes(bytes(100))
    assert len(files.files()) == 1
    files.shrink(0)
    assert not os.listdir(tmp_path)


def test_the_default_directory_is_in_the_users_cache(monkeypatch, tmp_path):
    monkeypatch.delenv("JAXGRAD_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "own"))
    assert wanted_directory() == tmp_path / "own" / "jaxgrad"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "relative paths are to be ignored")
    monkeypatch.setattr(sys, "platform", "linux")
    assert wanted_directory() == tmp_path / ".cache" / "jaxgrad"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert wanted_directory() == tmp_path / "Library" / "Caches" / "jaxgrad"


def test_the_environment_chooses_the_directory(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("JAXGRAD_CACHE", "~/kept")
    assert wanted_directory() == tmp_path / "kept"
    monkeypatch.setenv("JAXGRAD_CACHE", "off")
    assert wanted_directory() is None


def test_only_the_user_may_use_a_new_directory(tmp_path):
    open_directory(tmp_path / "new" / "cache")
    assert stat.S_IMODE((tmp_path / "new" / "cache").stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o770, 0o702])
def test_a_directory_that_others_may_write_to_is_refused(tmp_path, mode):
    tmp_path.chmod(mode)
    with pytest.raises(PermissionError, match="others may write"):
        open_directory(tmp_path)


def test_a_directory_of_another_user_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.raises(PermissionError, match="another user"):
        open_directory(tmp_path)


# ---- executables


@pytest.fixture
def directory(monkeypatch, tmp_path):
    """A directory with the executables of this test."""
    path = tmp_path / "cache"
    monkeypatch.setenv("JAXGRAD_CACHE", str(path))
    disk_cache.current.cache_clear()
    yield path
    disk_cache.current.cache_clear()


@pytest.fixture
def loads():
    """How often JAX has found an executable in its persistent cache, and how often not."""
    events = []

    def note(event, **_):
        if event.startswith("/jax/compilation_cache/cache_"):
            events.append(event.rpartition("_")[2])

    jax.monitoring.register_event_listener(note)
    yield events
    jax.monitoring.unregister_event_listener(note)


X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


def cosine_of(scale):
    """A jitted function that JAX has not seen."""

    def cosine(x):
        return jnp.cos(x) * scale

    return jax.jit(cosine)


def compiled(scale):
    return disk_cache.compile(cosine_of(scale).lower(X))


def test_an_executable_is_loaded_and_computes_the_same(directory, loads):
    results, files = [], []
    for _ in range(2):
        results.append(np.asarray(compiled(2.5)(X)))
        files.append([path.stat().st_ino for path in directory.iterdir()])
    assert loads == ["misses", "hits"]
    assert files[0] == files[1], "a loaded one is not written again"
    for result in results:
        np.testing.assert_allclose(result, 2.5 * np.cos(X.astype(np.float64)), rtol=1e-6)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


@pytest.mark.parametrize("name", ["step", "my step-2 (new)", "<lambda>", "größe", "a/b", ""])
def test_a_program_may_have_any_name(directory, loads, name):
    for _ in range(2):
        function = cosine_of(2.5).__wrapped__
        function.__name__ = name
        disk_cache.compile(jax.jit(function).lower(X))
    assert loads == ["misses", "hits"]


def test_another_program_and_another_environment_are_others(directory, loads, monkeypatch):
    compiled(2.5)
    compiled(3.5)
    monkeypatch.setattr(disk_cache, "environment", lambda: b"another processor")
    compiled(2.5)
    assert loads == ["misses"] * 3
    assert len(FileCache(directory).files()) == 3


def test_what_decides_how_a_program_is_compiled_is_in_the_key(monkeypatch):
    environments = {disk_cache.environment.__wrapped__()}
    assert disk_cache.environment.__wrapped__() in environments
    with monkeypatch.context() as patch:
        patch.setenv("XLA_FLAGS", os.environ.get("XLA_FLAGS", "") + " --more")
        environments.add(disk_cache.environment.__wrapped__())
    with monkeypatch.context() as patch:
        patch.setattr(disk_cache, "processor", lambda: ["another"])
        environments.add(disk_cache.environment.__wrapped__())
    with monkeypatch.context() as patch:
        patch.setattr(disk_cache, "sources", lambda: [__file__])
        environments.add(disk_cache.environment.__wrapped__())
    with monkeypatch.context() as patch:
        patch.setattr(jax, "__version__", "0")
        environments.add(disk_cache.environment.__wrapped__())
    assert len(environments) == 5


def test_sources_are_the_modules_the_rules_and_the_table():
    names = {Path(path).name for path in disk_cache.sources()}
    assert {"disk_cache.py", "matmul.py", "derivatives.yaml"} <= names


def test_the_kinds_of_options_of_one_program_are_kept_together(directory, loads):
    for option in (None, {"xla_cpu_enable_fast_math": True}) * 2:
        disk_cache.compile(jax.jit(lambda x: x / 3, compiler_options=option).lower(X))
    assert loads == ["misses", "misses", "hits", "hits"]


def test_a_damaged_executable_is_compiled_anew_with_one_warning(directory, loads):
    for scale in (2.5, 3.5):
        compiled(scale)
    for path in directory.iterdir():
        path.write_bytes(flip_last_bit(path.read_bytes()))
    with pytest.warns(RuntimeWarning) as warned:
        results = [np.asarray(compiled(scale)(X)) for scale in (2.5, 3.5)]
    assert len(warned) == 1 and str(directory) in str(warned[0].message)
    assert loads == ["misses"] * 4
    np.testing.assert_allclose(results[1], 3.5 * np.cos(X.astype(np.float64)), rtol=1e-6)
    compiled(2.5)
    assert loads[-1] == "hits"


def test_an_executable_of_another_program_is_not_used(directory, loads):
    """A file with a right checksum, whose content belongs to another program."""
    compiled(2.5)
    ((_, _, path),) = FileCache(directory).files()
    value = FileCache(directory).get(Path(path).stem)
    text = cosine_of(3.5).lower(X).as_text()
    key = disk_cache.hashlib.sha256(disk_cache.environment() + text.encode()).hexdigest()
    FileCache(directory).put(key, value)
    np.testing.assert_allclose(compiled(3.5)(X), 3.5 * np.cos(X.astype(np.float64)), rtol=1e-6)
    assert loads == ["misses", "misses"]


def test_a_program_calls_the_functions_of_its_own_process(directory):
    """JAX keeps no such program in version 0.10, and later the number of the function."""

    def scaled(scale):
        like = jax.ShapeDtypeStruct(X.shape, X.dtype)
        return jax.jit(lambda x: jax.pure_callback(lambda x: scale * x, like, x)).lower(X)

    for scale in (2, 3):
        assert np.array_equal(disk_cache.compile(scaled(scale))(X), scale * X)


def test_settings_of_jax_stay_as_they_are(directory):
    before, inside = dict(jax.config.values), []
    with disk_cache.window.opened() as folder:
        inside.append(dict(jax.config.values))
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    compiled(2.5)
    assert dict(jax.config.values) == before != inside[0]
    assert not folder.exists()
    with pytest.raises(ZeroDivisionError), disk_cache.window.opened():
        1 / 0  # noqa: B018
    assert dict(jax.config.values) == before


def test_what_is_compiled_elsewhere_meanwhile_is_not_kept(directory):
    with disk_cache.window.opened() as folder:
        program = cosine_of(4.5).lower(X).compile()
        compiled(2.5)
    np.testing.assert_allclose(program(X), 4.5 * np.cos(X.astype(np.float64)), rtol=1e-6)
    ((_, _, path),) = FileCache(directory).files()
    kept = disk_cache.unpacked(FileCache(directory).get(Path(path).stem))
    assert len(kept) == 1 and not folder.exists()


def test_a_setting_that_the_user_changes_meanwhile_stays(directory, tmp_path):
    before = jax.config.jax_compilation_cache_dir
    try:
        with disk_cache.window.opened():
            jax.config.update("jax_compilation_cache_dir", str(tmp_path))
        assert jax.config.jax_compilation_cache_dir == str(tmp_path)
    finally:
        jax.config.update("jax_compilation_cache_dir", before)


def test_an_interrupt_between_two_settings_leaves_none(directory, monkeypatch):
    before = dict(jax.config.values)

    def interrupted():
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(disk_cache, "jax_cache", type("", (), {"reset_cache": interrupted}))
        with pytest.raises(KeyboardInterrupt), disk_cache.window.opened():
            pass
    with disk_cache.window.opened() as folder:
        assert folder is not None
    assert dict(jax.config.values) == before


def test_the_users_own_cache_is_used_alone(directory, tmp_path, loads):
    before = jax.config.jax_compilation_cache_dir
    try:
        jaxgrad.compilation_cache(tmp_path / "own")
        compiled(2.5)
    finally:
        jaxgrad.compilation_cache(before)
    assert any((tmp_path / "own").iterdir()) and not FileCache(directory).files()


def test_threads_compile_at_a_time(directory, loads):
    scales = [1 + number / 8 for number in range(8)]
    wanted = [scale * np.cos(X.astype(np.float64)) for scale in scales]
    for kind in ("misses", "hits"):
        results, loads[:] = {}, []

        def run(scale, results=results):
            results[scale] = compiled(scale)(X)

        threads = [threading.Thread(target=run, args=(scale,)) for scale in scales]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(hangs.LIMIT)
        np.testing.assert_allclose([results[scale] for scale in scales], wanted, rtol=1e-6)
        assert loads == [kind] * len(scales)
    assert jax.config.jax_compilation_cache_dir is None


def test_what_memory_a_loaded_program_needs_is_known(directory):
    """A compiled function asks before its first run."""
    new, loaded = (compiled(2.5).memory_analysis() for _ in range(2))
    assert loaded.output_size_in_bytes == new.output_size_in_bytes == X.nbytes


def train_once():
    """Eager operators, a stretch that is compiled as a whole, and compiled functions with and
    without changes of state; returns the gradient of the sum of sin(w) * w at 1 and 2.
    """
    # nothing that an earlier test has compiled serves
    jaxgrad.compiler.reset()
    jax.clear_caches()
    w = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
    with eager("compiled"):
        for _ in range(3):
            w.grad = None
            (w.sin() * w).sum().backward()
            gradient = w.grad.tolist()
    jaxgrad.jit(lambda x: x.cos() + 1)(w.detach()).tolist()

    @jaxgrad.jit
    def step():
        with jaxgrad.no_grad():
            w.mul_(2)

    step()
    assert w.tolist() == [2, 4]
    return gradient


def test_all_that_runs_eagerly_or_compiled_is_loaded(directory, loads, monkeypatch):
    monkeypatch.setattr(jaxgrad.core.deferred, "REPEATS", 1)
    monkeypatch.setattr(jaxgrad.core.executor, "chosen", "compiled")
    exact = np.sin([1.0, 2.0]) + np.array([1.0, 2.0]) * np.cos([1.0, 2.0])
    np.testing.assert_allclose(train_once(), exact, rtol=1e-6)
    assert loads.count("misses") >= 5
    loads.clear()
    np.testing.assert_allclose(train_once(), exact, rtol=1e-6)
    # an earlier test may have left a pause, in which stretches are not compiled as a whole
    assert loads.count("hits") >= 5 and loads.count("misses") <= 1


def test_without_a_place_for_files_all_is_compiled(directory, monkeypatch, loads):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(disk_cache.tempfile, "mkdtemp", full)
    np.testing.assert_allclose(compiled(2.5)(X), 2.5 * np.cos(X.astype(np.float64)), rtol=1e-6)
    assert not loads and not FileCache(directory).files()


def test_without_room_for_a_file_all_is_compiled(directory, monkeypatch, loads):
    compiled(2.5)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "rename", full)
    np.testing.assert_allclose(compiled(2.5)(X), 2.5 * np.cos(X.astype(np.float64)), rtol=1e-6)
    assert loads == ["misses", "misses"]


@pytest.mark.parametrize("is_asked_for", [False, True])
def test_a_home_that_cannot_be_written_is_off(monkeypatch, tmp_path, is_asked_for):
    (tmp_path / "home").write_text("a file, under which the root too can make no directory")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("JAXGRAD_CACHE")
    if is_asked_for:
        monkeypatch.setenv("JAXGRAD_CACHE", str(tmp_path / "home" / "cache"))
    disk_cache.current.cache_clear()
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            assert disk_cache.current() is None
            compiled(2.5)
        assert len(warned) == is_asked_for
    finally:
        disk_cache.current.cache_clear()


# ---- the command


def test_the_command_tells_and_clears(directory, capsys):
    compiled(2.5)
    (directory / "of the user").write_text("")
    assert cli.main(["cache"]) == 0
    assert capsys.readouterr().out.startswith(f"{directory}: 1 files of 0.0 MB, at most 1000 MB")
    assert cli.main(["cache", "--clear"]) == 0
    assert capsys.readouterr().out.startswith(f"{directory}: removed 1 files")
    assert os.listdir(directory) == ["of the user"]


def test_the_command_says_that_it_is_off(monkeypatch, capsys):
    monkeypatch.setenv("JAXGRAD_CACHE", "off")
    assert cli.main(["cache"]) == 0
    assert capsys.readouterr().out == "off: the environment variable JAXGRAD_CACHE says so\n"


# ---- processes

CODE = """
import json, jax, jaxgrad
events = []
jax.monitoring.register_event_listener(lambda event, **_: events.append(event))
jaxgrad.set_eager("compiled")
jaxgrad.core.deferred.REPEATS = 1
w = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
for _ in range(3):
    w.grad = None
    (w.sin() * w).sum().backward()
    w.grad.tolist()
value = jaxgrad.jit(lambda a: a.cos() + 1)(w.detach()).tolist()

@jaxgrad.jit
def double():
    with jaxgrad.no_grad():
        w.mul_(2)

double()
assert w.tolist() == [2, 4]
counts = [events.count(f"/jax/compilation_cache/cache_{kind}") for kind in ("hits", "misses")]
print(json.dumps([counts, w.grad.tolist(), value]))
"""


def start(cache):
    environment = os.environ | {"JAXGRAD_CACHE": str(cache)}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    command = [sys.executable, "-W", "error", "-c", CODE]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )


def finish(process):
    printed, errors = process.communicate(timeout=hangs.LIMIT)
    assert process.returncode == 0, errors.decode()
    (hits, misses), gradient, value = json.loads(printed)
    points = np.array([1.0, 2.0])
    np.testing.assert_allclose(gradient, np.sin(points) + points * np.cos(points), rtol=1e-6)
    np.testing.assert_allclose(value, np.cos(points) + 1, rtol=1e-6)
    return hits, misses


@pytest.mark.slow
def test_a_second_process_loads_what_the_first_one_compiled(tmp_path):
    hits, misses = finish(start(tmp_path))
    assert hits == 0 and misses >= 5
    assert finish(start(tmp_path)) == (misses, 0)
    assert finish(start("off")) == (0, 0)


@pytest.mark.slow
def test_processes_share_a_directory_at_a_time(tmp_path):
    processes = [start(tmp_path) for _ in range(3)]
    counts = [sum(finish(process)) for process in processes]
    assert counts == counts[:1] * 3 and counts[0] >= 5
    assert finish(start(tmp_path)) == (counts[0], 0)
