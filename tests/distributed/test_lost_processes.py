"""Where a process is lost, the others raise, and all end."""

import socket
import subprocess

import pytest
from distributed.processes import command, environment, run
from helpers.hangs import LIMIT

pytestmark = pytest.mark.slow

LOST = "DistBackendError: rank 0 of 2: a communication failed"


def by_hand(*arguments):
    """Two processes without a launcher, which would end the other one: their status and errors."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    known = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    workers = [
        subprocess.Popen(
            command("lost.py", *arguments),
            env=environment() | known | {"RANK": str(rank)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        errors = [worker.communicate(timeout=LIMIT)[1] for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    return [(worker.returncode, error) for worker, error in zip(workers, errors, strict=True)]


@pytest.mark.parametrize("mode", ["eager", "compiled"])
def test_the_other_process_raises_where_one_is_killed_in_the_middle_of_a_step(mode):
    (status, error), (of_killed, _) = by_hand("kill", mode, LIMIT)
    assert of_killed == -9 and status == 1
    assert LOST in error


def test_the_launcher_names_the_process_that_was_killed():
    done = run("lost.py", "kill", "compiled", LIMIT, processes=2)
    assert done.returncode == 128 + 9
    assert "failed first: rank 1" in done.stderr and "SIGKILL" in done.stderr


def test_a_process_that_raises_in_the_middle_of_a_step():
    done = run("lost.py", "raise", "eager", LIMIT, processes=2)
    assert done.returncode == 1
    assert "LookupError: what went wrong on rank 1" in done.stderr
    assert "failed first: rank 1" in done.stderr


def test_a_process_that_hangs_is_noticed_at_the_limit():
    """A stopped process keeps its connections: only the limit ends the wait."""
    done = run("lost.py", "stop", "compiled", 30, processes=2)
    assert done.returncode != 0
    assert LOST in done.stderr and "Timed out waiting" in done.stderr
