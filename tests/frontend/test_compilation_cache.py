"""The persistent cache of what is compiled."""

import os
import subprocess
import sys

import jax
import pytest

import jaxgrad

CODE = """
import sys, jax, jaxgrad
found = []
jax.monitoring.register_event_listener(lambda event, **_: found.append(event))
jaxgrad.set_eager("compiled")
x = jaxgrad.ones(3)  # compiles before the directory is known
jaxgrad.compilation_cache(sys.argv[1])
w = jaxgrad.tensor([1.0, 2.0], requires_grad=True)
(w.sin() * w).sum().backward()
step = jaxgrad.jit(lambda a: a.cos() + 1)
step(w.detach())
counts = [found.count(f"/jax/compilation_cache/cache_{kind}") for kind in ("hits", "misses")]
print(*counts, w.grad.tolist())
"""


def run(directory):
    environment = {k: v for k, v in os.environ.items() if k != "JAX_COMPILATION_CACHE_DIR"}
    command = [sys.executable, "-c", CODE, str(directory)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    hits, misses, grad = done.stdout.strip().split(maxsplit=2)
    return int(hits), int(misses), grad


@pytest.mark.slow
def test_a_second_process_loads_what_the_first_one_compiled(tmp_path):
    hits, misses, grad = run(tmp_path / "new" / "cache")
    assert hits == 0 and misses >= 3 and any((tmp_path / "new" / "cache").iterdir())
    assert run(tmp_path / "new" / "cache") == (misses, 0, grad)


def test_a_path_from_the_home_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    before = jax.config.jax_compilation_cache_dir
    try:
        jaxgrad.compilation_cache("~/cache")
        assert jax.config.jax_compilation_cache_dir == str(tmp_path / "cache")
    finally:
        jaxgrad.compilation_cache(before)


def test_a_path_that_cannot_be_a_directory_changes_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    before = jax.config.jax_compilation_cache_dir
    with pytest.raises(OSError, match="file"):
        jaxgrad.compilation_cache(tmp_path / "file")
    assert jax.config.jax_compilation_cache_dir == before
