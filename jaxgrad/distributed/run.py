"""Start the processes that train together: torch.distributed.run, and the command
`jaxgrad launch`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

from ..names.missing import missing_in
from ._launcher import FORWARDED, say, signal_name

WRONG_OPTIONS = 2
PORT_OF_NODES = 29500  # what the nodes agree on without saying so, as with PyTorch


def main(args: list[str] | None = None) -> None:
    """Run a program in several processes, as the command `jaxgrad launch` does with `args`.

    Raises SystemExit where a worker fails, with its exit status, or 128 and the number of its
    signal; where a signal interrupts this process; and with status 2 for wrong options, before
    anything is started.

    >>> jaxgrad.distributed.run.main(["--nproc=2", "--no-python", "true"])
    """
    status = run(parse_args(args))
    if status:
        sys.exit(status)


def parse_args(args: list[str] | None) -> argparse.Namespace:
    """The options in the command line `args`.

    Raises SystemExit, with status 2, for an unknown option or a value that is no number.

    >>> options = jaxgrad.distributed.run.parse_args(["--nproc=2", "train.py", "--epochs=3"])
    >>> options.nproc_per_node, options.training_script, options.training_script_args
    (2, 'train.py', ['--epochs=3'])
    """
    return get_args_parser().parse_args(args)


def get_args_parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = argparse.ArgumentParser(prog="jaxgrad launch", allow_abbrev=False, description=__doc__)
    add_options(parser)
    return parser


def add_options(parser: argparse.ArgumentParser) -> None:
    """Give a parser the options of the command."""
    parser.usage = "%(prog)s [OPTION ...] SCRIPT [ARGUMENT ...]"
    add = parser.add_argument
    add(
        *("--nproc", "--nproc-per-node", "--nproc_per_node"),
        dest="nproc_per_node",
        type=_number_of_workers,
        default=1,
        metavar="N",
        help="workers on this machine: a number, `auto` or `cpu` for one per core, `gpu` for one "
        "per GPU (default: 1)",
    )
    add("--nnodes", type=int, default=1, metavar="N", help="machines (default: 1)")
    add(*_both("--node-rank"), type=int, default=0, metavar="N", help="the number of this machine")
    add(*_both("--master-addr"), metavar="HOST", help="the machine of rank 0")
    add(
        *_both("--master-port"), type=int, metavar="PORT", help="its port (one machine: a free one)"
    )
    add("--standalone", action="store_true", help="one machine, and a free port")
    add("-m", "--module", action="store_true", help="SCRIPT is a module")
    add(*_both("--no-python"), action="store_true", help="SCRIPT is a program of its own")
    add(*_both("--as-torch"), action="store_true", help="`import torch` gives jaxgrad in SCRIPT")
    add(*_both("--log-dir"), metavar="DIR", help="write output to DIR/rank-N.out and rank-N.err")
    add(
        "--grace",
        type=float,
        default=5.0,
        metavar="SECONDS",
        help="what workers have for ending before they are killed (default: 5)",
    )
    # as one positional, since argparse removes a "--" between two
    add("training_script", nargs=argparse.PARSER, action=_Program, metavar="SCRIPT", help="a file")


class _Program(argparse.Action):
    """Takes the program apart from its own arguments."""

    def __call__(self, parser, namespace, values, option_string=None):
        start = int(values[0] == "--")  # some versions of argparse leave it
        if start == len(values):
            parser.error("the following arguments are required: SCRIPT")
        namespace.training_script = values[start]
        namespace.training_script_args = values[start + 1 :]


def _both(option):
    return option, "--" + option.removeprefix("--").replace("-", "_")


def run(args: argparse.Namespace) -> int:
    """Run the program that options name, and return the exit status: 0 if all workers exit with 0,
    and else what `main` raises.

    >>> options = jaxgrad.distributed.run.parse_args(["--no-python", "false"])
    >>> jaxgrad.distributed.run.run(options)
    1
    """
    try:
        plan = _plan(args)
    except (OSError, ValueError) as error:
        say(str(error))
        return WRONG_OPTIONS
    return _supervise(plan)


def _number_of_workers(text):
    if text in ("auto", "cpu"):
        # the cores that this process may use, where the system tells them
        return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    if text == "gpu":
        return _number_of_gpus()
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected a number, auto, cpu or gpu, and got {text!r}"
        ) from None


def _number_of_gpus():
    """How many GPUs of NVIDIA a process of this machine sees, without starting JAX."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        names = [name.strip() for name in visible.split(",")]
        # CUDA stops reading at the first that is not valid
        return next((place for place, name in enumerate(names) if name in ("", "-1")), len(names))
    try:
        listed = subprocess.run(
            ["nvidia-smi", "-L"], capture_output=True, text=True, timeout=60, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return 0
    return sum(line.startswith("GPU ") for line in listed.splitlines())


def _plan(args):
    """The plan for _launcher.py. Raises ValueError or OSError for options that cannot work."""
    _check_numbers(args)
    command = _command(args)
    address, port = args.master_addr or "127.0.0.1", args.master_port
    if port is None:
        port = _free_port() if args.nnodes == 1 else PORT_OF_NODES
    elif args.node_rank == 0:
        _check_free(port)
    if args.log_dir is not None:
        Path(args.log_dir).mkdir(parents=True, exist_ok=True)
    run_id = uuid.uuid4().hex if args.nnodes == 1 else "none"  # the same on all nodes
    shared = {"MASTER_ADDR": address, "MASTER_PORT": str(port), "TORCHELASTIC_RUN_ID": run_id}
    workers = [_worker(args, place, shared) for place in range(args.nproc_per_node)]
    return {
        "command": command,
        "workers": workers,
        "log_dir": args.log_dir,
        "grace": args.grace,
    }


def _worker(args, place, shared):
    per_node = args.nproc_per_node
    rank = args.node_rank * per_node + place
    numbers = {
        "RANK": rank,
        "LOCAL_RANK": place,
        "GROUP_RANK": args.node_rank,
        "ROLE_RANK": rank,
        "WORLD_SIZE": args.nnodes * per_node,
        "LOCAL_WORLD_SIZE": per_node,
        "GROUP_WORLD_SIZE": args.nnodes,
        "ROLE_WORLD_SIZE": args.nnodes * per_node,
        "TORCHELASTIC_MAX_RESTARTS": 0,
        "TORCHELASTIC_RESTART_COUNT": 0,
        "PYTHONUNBUFFERED": 1,
    }
    texts = {name: str(number) for name, number in numbers.items()}
    return {"rank": rank, "environment": {**shared, "ROLE_NAME": "default", **texts}}


def _check_numbers(args):
    workers, nodes, port = args.nproc_per_node, args.nnodes, args.master_port
    if workers < 1:
        raise ValueError(f"--nproc is {workers}, and at least one worker is needed")
    if nodes < 1:
        raise ValueError(f"--nnodes is {nodes}, and at least one machine is needed")
    if not 0 <= args.node_rank < nodes:
        raise ValueError(
            f"--node-rank is {args.node_rank}, and --nnodes {nodes} allows 0 to {nodes - 1}"
        )
    if nodes > 1 and args.standalone:
        raise ValueError(f"--standalone is for one machine, and --nnodes is {nodes}")
    if nodes > 1 and not args.master_addr:
        raise ValueError(f"--nnodes is {nodes}: give --master-addr, the machine of rank 0")
    if port is not None and not 1 <= port <= 65535:
        raise ValueError(f"--master-port is {port}, and ports are 1 to 65535")
    if not args.grace >= 0:
        raise ValueError(f"--grace is {args.grace}, and a time is not negative")


def _command(args):
    script, arguments = args.training_script, args.training_script_args
    if args.no_python:
        if args.module or args.as_torch:
            raise ValueError("--no-python goes neither with --module nor with --as-torch")
        if shutil.which(script) is None:
            raise ValueError(f"no program {script!r}")
        return [script, *arguments]
    if not args.module and not os.path.exists(script):
        raise ValueError(f"no file {script!r}")
    is_torch = args.as_torch or any(map(_makes_torch, sys.meta_path))
    runner = ["-m", "jaxgrad", "run"] if is_torch else []
    return [sys.executable, *runner, *(["-m"] if args.module else []), script, *arguments]


def _makes_torch(finder) -> bool:
    """Whether a finder of modules is that of jaxgrad.compat, which this package does not import."""
    return type(finder).__module__ == "jaxgrad.compat.import_hook"


def _free_port():
    with socket.create_server(("", 0)) as server:
        return server.getsockname()[1]


def _check_free(port):
    try:
        socket.create_server(("", port)).close()
    except OSError as error:
        raise ValueError(f"--master-port is {port}: {error.strerror or error}") from None


class _Signals:
    """The signals that have come, which go on to the launcher once it can read them."""

    def __init__(self):
        self.received = []
        self.channel = None

    def receive(self, number, _frame):
        self.received.append(number)
        self.send()

    def send(self):
        while self.channel is not None and self.received:
            # the launcher may have ended
            with contextlib.suppress(OSError):
                self.channel.send(bytes([self.received.pop(0)]))

    @contextlib.contextmanager
    def handled(self):
        """Receive signals in the block, but those that whoever started this process ignores."""
        before = {}
        if threading.current_thread() is threading.main_thread():
            known = {number: signal.getsignal(number) for number in FORWARDED}
            before = {
                number: handler for number, handler in known.items() if handler != signal.SIG_IGN
            }
        for number in before:
            signal.signal(number, self.receive)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _supervise(plan):
    """Start the launcher, wait for it, and end what is left of its group."""
    signals = _Signals()
    ours, theirs = socket.socketpair()
    with ours, signals.handled():
        with theirs:
            # -P and -S: no folder and no package of the user can replace a standard module
            command = [sys.executable, "-P", "-S", str(Path(__file__).with_name("_launcher.py"))]
            launcher = subprocess.Popen(
                [*command, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        result = None
        try:
            result = _result(ours, plan, signals)
        finally:
            signals.channel = None
            if result is None:
                # before wait(), since until then no other group can have its number
                _signal_group(launcher.pid, signal.SIGKILL)
            status = launcher.wait()
            is_hurried = result is None or result["is_hurried"]
            _end_group(launcher.pid, 0.0 if is_hurried else plan["grace"], signals)
    if result is None:
        say(f"the launcher (pid {launcher.pid}) was ended by {signal_name(-status)}")
        return 1
    if result["text"] is not None:
        say(result["text"])
    return result["status"]


def _result(channel, plan, signals):
    """The launcher's answer to a plan, or None if it dies."""
    data = b""
    with contextlib.suppress(OSError):
        channel.sendall(json.dumps(plan).encode() + b"\n")
        signals.channel = channel
        signals.send()
        while received := channel.recv(65536):
            data += received
    return json.loads(data) if data.endswith(b"\n") else None


def _end_group(group, grace, signals):
    """End the processes that workers have left: ask, wait, kill, wait."""
    for number, seconds in ((signal.SIGTERM, grace), (signal.SIGKILL, 1.0)):
        if not _signal_group(group, number):
            return
        deadline = time.monotonic() + seconds
        while _signal_group(group, 0) and not signals.received and time.monotonic() < deadline:
            time.sleep(0.02)


def _signal_group(group, number):
    """Whether the group has processes, to which this sends a signal."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):  # macOS forbids signals to processes that ended
        return False
    return True


if __name__ == "__main__":
    main()


__getattr__ = missing_in(__name__)
