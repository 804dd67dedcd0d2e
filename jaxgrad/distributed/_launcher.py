"""The program that starts the workers of a launch, watches them and ends them.

`run.py` starts it as a process of its own, which leads a session. The workers and their processes
are in its process group, so that one signal reaches all of them. A socket joins it to `run.py`:
each of the two learns by the end of the other that it has to end the group. It imports the
standard library alone, so that it starts fast and has no threads of JAX.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Failure(NamedTuple):
    """The failure of a worker."""

    rank: int
    status: int  # as a shell tells it: 128 + number for a signal
    text: str


class Launcher:
    """The workers of this machine."""

    def __init__(self, front: socket.socket, plan: dict, asked: list[int]):
        self.front, self.plan, self.asked = front, plan, asked
        self.is_front_gone = self.is_hurried = False
        self.running: dict[int, subprocess.Popen] = {}
        self.failures: list[Failure] = []
        self.wakeup = wakeup()

    def run(self) -> tuple[int, str | None]:
        """Start the workers, and return the exit status and the last line to print."""
        for worker in self.plan["workers"]:
            self.start(worker["rank"], worker["environment"])
        while self.running and not self.failures and not self.must_end():
            self.wait(None)
        if self.failures:
            return self.end_after_failure()
        if self.must_end():
            return self.end_when_asked()
        return 0, None

    def start(self, rank: int, environment: dict[str, str]):
        command, folder = self.plan["command"], self.plan["log_dir"]
        try:
            with contextlib.ExitStack() as files:
                output = errors = None
                if folder is not None:
                    paths = (Path(folder, f"rank-{rank}.{name}") for name in ("out", "err"))
                    output, errors = (files.enter_context(path.open("wb")) for path in paths)
                self.running[rank] = subprocess.Popen(
                    command, env={**os.environ, **environment}, stdout=output, stderr=errors
                )
        except OSError as error:
            self.failures.append(Failure(rank, 1, f"rank {rank} could not be started: {error}"))

    def wait(self, deadline: float | None):
        """Wait until a worker exits, `run.py` sends something or ends, or the deadline passes. Note
        the failures of all workers that have exited by then.
        """
        sources = [self.wakeup] if self.is_front_gone else [self.wakeup, self.front]
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        ready, _, _ = select.select(sources, [], [], left)
        if self.wakeup in ready:
            os.read(self.wakeup, 4096)
        if self.front in ready:
            received = self.front.recv(64)
            self.asked += received
            self.is_front_gone = not received
        for rank, process in list(self.running.items()):
            if process.poll() is not None:
                del self.running[rank]
                self.note_exit(rank, process)

    def note_exit(self, rank: int, process: subprocess.Popen):
        code = process.returncode
        if code > 0:
            text = f"rank {rank} (pid {process.pid}) exited with status {code}"
            self.failures.append(Failure(rank, code, text))
        elif code < 0:
            hint = " (perhaps for lack of memory)" if code == -signal.SIGKILL else ""
            text = f"rank {rank} (pid {process.pid}) was killed by {signal_name(-code)}{hint}"
            self.failures.append(Failure(rank, 128 - code, text))

    def must_end(self) -> bool:
        return bool(self.asked) or self.is_front_gone

    def end_after_failure(self) -> tuple[int, str]:
        # An abort often follows from the exit of another worker, and an exit status seldom does.
        first = sorted(self.failures, key=lambda failure: (failure.status >= 128, failure.rank))
        text = "; ".join(failure.text for failure in first)
        if self.running:
            say(f"{text}; ending the other workers")
        self.asked.clear()
        self.end([signal.SIGTERM])
        where = f"; see {self.plan['log_dir']}" if self.plan["log_dir"] is not None else ""
        failed = "failed" if len(self.plan["workers"]) == 1 else "failed first"
        return first[0].status, f"{failed}: {text}{where}"

    def end_when_asked(self) -> tuple[int, None]:
        number = self.asked.pop(0) if self.asked else signal.SIGTERM
        if number == signal.SIGINT:
            say("SIGINT: ending the workers; a second one kills them")
        # a process that computes in C++ does not see SIGINT
        steps = [number] if number == signal.SIGTERM else [number, signal.SIGTERM]
        self.end(steps)
        return 128 + number, None

    def end(self, signals: list[int]):
        """Send each signal to the group and wait for the workers, then kill those that are left.
        A signal that `run.py` sends meanwhile ends the waiting.
        """
        for number in signals:
            os.killpg(0, number)
            deadline = time.monotonic() + self.plan["grace"]
            while self.running and not self.asked and time.monotonic() < deadline:
                self.wait(deadline)
        self.is_hurried = bool(self.running or self.asked)
        if self.running:
            ranks = ", ".join(map(str, self.running))
            say(f"killing the workers that have not ended: rank {ranks}")
        for process in self.running.values():
            process.kill()
        for process in self.running.values():
            process.wait()


def wakeup() -> int:
    """A descriptor that can be read as soon as a worker has exited. The signals that end the group
    do nothing to this process, and what the workers do about them is not changed.
    """
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, *FORWARDED):
        if signal.getsignal(number) != signal.SIG_IGN or number == signal.SIGCHLD:
            signal.signal(number, lambda *_: None)
    return read


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # most real-time signals have no name
        return f"signal {number}"


def say(text: str):
    # the terminal may be gone
    with contextlib.suppress(OSError):
        print(f"jaxgrad launch: {text}", file=sys.stderr, flush=True)


def receive_plan(front: socket.socket) -> tuple[dict, list[int]]:
    """The plan, which is a line, and the signals that came after it."""
    data = b""
    while b"\n" not in data:
        received = front.recv(65536)
        if not received:
            sys.exit(1)
        data += received
    line, _, signals = data.partition(b"\n")
    return json.loads(line), list(signals)


def main(descriptor: str):
    front = socket.socket(fileno=int(descriptor))
    launcher = Launcher(front, *receive_plan(front))
    status, text = launcher.run()
    result = {"status": status, "text": text, "is_hurried": launcher.is_hurried}
    try:
        front.sendall(json.dumps(result).encode() + b"\n")
    except OSError:
        launcher.is_front_gone = True
    if launcher.is_front_gone:
        os.killpg(0, signal.SIGKILL)  # this process too


if __name__ == "__main__":
    main(sys.argv[1])
