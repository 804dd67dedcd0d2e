"""The command `jaxgrad launch`, with workers that are small programs without JAX."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys

import pytest
from helpers.hangs import LIMIT, eventually

from jaxgrad.distributed import _launcher
from jaxgrad.distributed.run import get_args_parser, main, parse_args, run

LAUNCH = [sys.executable, "-m", "jaxgrad", "launch"]
GRACE = {"wait": LIMIT, "stubborn": 0.5}

pytestmark = pytest.mark.usefixtures("no_signal_is_ignored")

SHOW = """
import json, os, sys
print(json.dumps([dict(os.environ), sys.argv[1:]]))
"""

# Rank 1 does what the arguments say, once the other has started.
FAIL = """
import os, pathlib, signal, sys, time
folder, how = pathlib.Path(sys.argv[1]), sys.argv[2]
if os.environ["RANK"] == "0":
    if how == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    (folder / "started").touch()
    time.sleep(3600)
while not (folder / "started").exists():
    time.sleep(0.01)
if how == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
if how == "exit":
    sys.exit(7)
raise LookupError("what went wrong")
"""

# Each rank writes the numbers of its process, of its child and of the launcher above it.
WAIT = """
import os, pathlib, signal, subprocess, sys, time
folder, how = pathlib.Path(sys.argv[1]), sys.argv[2]
if how == "stubborn":  # the child ignores them too
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
child = subprocess.Popen(["sleep", "3600"])
file = folder / os.environ["RANK"]
file.write_text(f"{os.getpid()} {child.pid} {os.getppid()}")
file.rename(file.with_suffix(".pids"))
if how != "leave":
    time.sleep(3600)
"""


@pytest.fixture
def program(tmp_path):
    def write(text, name="program.py"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def launch(*arguments, **options):
    return subprocess.run(
        [*LAUNCH, *map(str, arguments)], capture_output=True, text=True, timeout=LIMIT, **options
    )


def shown(folder, *ranks):
    return [json.loads((folder / f"rank-{rank}.out").read_text()) for rank in ranks]


def is_alive(pid):
    """Whether a process runs. One that has ended and that nobody waits for does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, timeout=LIMIT
    ).stdout
    return not state.startswith("Z") and state != ""


def none_left(pids):
    eventually(lambda: not any(map(is_alive, pids)), "a process has been left")


@pytest.fixture
def waiting(program, tmp_path):
    """Starts two workers that wait: the command's process, and the pids of all below it."""
    with contextlib.ExitStack() as stack:

        def start(how, *options):
            command = [*LAUNCH, "--nproc=2", *options, str(program(WAIT)), str(tmp_path), how]
            started = stack.enter_context(
                subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
            )
            stack.callback(started.kill)
            files = [tmp_path / "0.pids", tmp_path / "1.pids"]
            eventually(lambda: all(file.exists() for file in files), "the workers did not start")
            pids = {int(pid) for file in files for pid in file.read_text().split()}
            assert len(pids) == 5 and started.pid not in pids
            stack.callback(end, pids)
            return started, pids

        yield start


def end(pids):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_environment_and_arguments(program, tmp_path):
    arguments = ["--epochs=3", "--nproc", "5", "--", "-m", "a b", "--"]
    options = ["--standalone", "--nproc=2", "--log-dir", tmp_path / "logs"]
    done = launch(*options, program(SHOW), *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (first, first_arguments), (second, second_arguments) = shown(tmp_path / "logs", 0, 1)
    assert first_arguments == second_arguments == arguments
    changed = {name for name in first if first[name] != second[name]}
    assert changed == {"RANK", "LOCAL_RANK", "ROLE_RANK"}
    assert [environment["RANK"] for environment in (first, second)] == ["0", "1"]
    assert [environment["LOCAL_RANK"] for environment in (first, second)] == ["0", "1"]
    one = {"GROUP_RANK": "0", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "GROUP_WORLD_SIZE": "1"}
    never = {"TORCHELASTIC_MAX_RESTARTS": "0", "TORCHELASTIC_RESTART_COUNT": "0"}
    assert first.items() >= (one | never | {"MASTER_ADDR": "127.0.0.1"}).items()
    assert 1024 <= int(first["MASTER_PORT"]) <= 65535 and first["TORCHELASTIC_RUN_ID"]
    assert first["PATH"] == os.environ["PATH"]
    assert first.get("OMP_NUM_THREADS") == os.environ.get("OMP_NUM_THREADS")


@pytest.mark.slow
def test_the_second_of_two_machines(program, tmp_path):
    nodes = ["--nnodes=2", "--node_rank=1", "--master_addr=host.example", "--nproc_per_node=2"]
    assert launch(*nodes, "--log_dir", tmp_path, program(SHOW)).returncode == 0
    (first, _), (second, _) = shown(tmp_path, 2, 3)
    assert [environment["RANK"] for environment in (first, second)] == ["2", "3"]
    assert [environment["LOCAL_RANK"] for environment in (first, second)] == ["0", "1"]
    expected = {
        **{"GROUP_RANK": "1", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2", "GROUP_WORLD_SIZE": "2"},
        **{"MASTER_ADDR": "host.example", "MASTER_PORT": "29500", "TORCHELASTIC_RUN_ID": "none"},
    }
    assert first.items() >= expected.items()


@pytest.mark.slow
def test_a_module(program, tmp_path):
    program(SHOW, "shows.py")
    done = launch("--nproc=1", "-m", "shows", "-m", "x", cwd=tmp_path)
    environment, arguments = json.loads(done.stdout)
    assert environment["RANK"] == "0" and arguments == ["-m", "x"]


@pytest.mark.slow
def test_a_program_that_is_not_python():
    done = launch("--nproc=3", "--no-python", "sh", "-c", "exit $RANK")
    assert done.returncode in (1, 2)


@pytest.mark.slow
def test_a_program_that_imports_torch(program):
    done = launch("--as-torch", program("import torch; print(torch.tensor([torch.pi]))"))
    assert (done.returncode, done.stdout) == (0, "tensor([3.1416])\n")


@pytest.mark.slow
def test_standard_input_reaches_a_worker(program):
    done = launch(program("print(input())"), input="hello\n")
    assert (done.returncode, done.stdout) == (0, "hello\n")


@pytest.mark.parametrize(
    ("how", "status", "told"),
    [
        ("raise", 1, "exited with status 1"),
        ("exit", 7, "exited with status 7"),
        ("kill", 137, "was killed by SIGKILL"),
        ("stubborn", 1, "exited with status 1"),
    ],
)
def test_a_failure_ends_all(how, status, told, program, tmp_path):
    """Rank 0 waits for an hour, and a command that does not end it hangs."""
    grace = GRACE.get(how, LIMIT)
    done = launch("--nproc=2", f"--grace={grace}", program(FAIL), tmp_path, how)
    lines = done.stderr.splitlines()
    assert done.returncode == status
    assert lines[-1].startswith("jaxgrad launch: failed first: rank 1 (pid ") and told in lines[-1]
    assert any(line.endswith("; ending the other workers") for line in lines)
    if how in ("raise", "stubborn"):
        assert "LookupError: what went wrong" in lines
    kills = "jaxgrad launch: killing the workers that have not ended: rank 0"
    assert (kills in lines) == (how == "stubborn")


@pytest.mark.slow
def test_workers_that_abort_after_another_has_failed(program, tmp_path):
    """As the runtime of JAX does. They do not become the cause."""
    follow = """
import os, pathlib, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: os.abort())
file = pathlib.Path(sys.argv[1], os.environ["RANK"])
file.touch()
while len(list(file.parent.glob("[012]"))) < 3:
    time.sleep(0.01)
if os.environ["RANK"] == "1":
    sys.exit(5)
time.sleep(3600)
"""
    done = launch("--nproc=3", program(follow), tmp_path)
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 5
    assert "rank 1" in last and "status 5" in last and "SIGABRT" not in last


@pytest.mark.slow
def test_the_failure_of_one_worker_is_told_once(program, tmp_path):
    done = launch("--log-dir", tmp_path, program("raise SystemExit(3)"))
    (line,) = done.stderr.splitlines()
    assert done.returncode == 3 and line.endswith(f"exited with status 3; see {tmp_path}")


def test_an_exit_status_comes_before_an_abort_of_the_same_moment(monkeypatch):
    monkeypatch.setattr(_launcher, "wakeup", lambda: None)
    monkeypatch.setattr(_launcher.Launcher, "end", lambda self, signals: None)
    launcher = _launcher.Launcher(None, {"workers": [0, 1, 2], "log_dir": None}, [])
    launcher.failures = [
        _launcher.Failure(0, 134, "rank 0 aborted"),
        _launcher.Failure(2, 9, "rank 2 failed"),
    ]
    expected = 9, "failed first: rank 2 failed; rank 0 aborted"
    assert launcher.end_after_failure() == expected


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
@pytest.mark.parametrize("how", ["wait", pytest.param("stubborn", marks=pytest.mark.slow)])
def test_a_signal_to_the_command_ends_all(name, how, waiting):
    started, pids = waiting(how, f"--grace={GRACE[how]}")
    number = signal.Signals[name]
    started.send_signal(number)
    _, errors = started.communicate(timeout=LIMIT)
    assert started.returncode == 128 + number
    none_left(pids)
    assert ("killing the workers" in errors) == (how == "stubborn")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SIGINT", "SIGHUP"])
def test_a_signal_that_is_ignored_from_the_start_ends_nothing(name, waiting):
    """`nohup` ignores one of them, and a shell the other for a command in the background."""
    number = signal.Signals[name]
    before = signal.signal(number, signal.SIG_IGN)
    try:
        started, pids = waiting("wait")
    finally:
        signal.signal(number, before)
    started.send_signal(number)
    started.send_signal(signal.SIGTERM)
    started.communicate(timeout=LIMIT)
    assert started.returncode == 128 + signal.SIGTERM
    none_left(pids)


@pytest.mark.slow
def test_a_second_interrupt_kills(waiting):
    started, pids = waiting("stubborn", "--grace=10000")
    started.send_signal(signal.SIGINT)
    while "a second one kills" not in started.stderr.readline():
        assert started.poll() is None
    started.send_signal(signal.SIGINT)
    started.communicate(timeout=LIMIT)
    assert started.returncode == 130
    none_left(pids)


@pytest.mark.parametrize("how", ["wait", pytest.param("stubborn", marks=pytest.mark.slow)])
def test_the_workers_of_a_command_that_is_killed(how, waiting):
    started, pids = waiting(how, f"--grace={GRACE[how]}")
    started.kill()
    started.wait(timeout=LIMIT)
    none_left(pids)


@pytest.mark.slow
def test_the_workers_of_a_launcher_that_is_killed(waiting, tmp_path):
    started, pids = waiting("wait")
    launcher = int((tmp_path / "0.pids").read_text().split()[2])
    os.kill(launcher, signal.SIGKILL)
    _, errors = started.communicate(timeout=LIMIT)
    assert started.returncode == 1
    assert f"the launcher (pid {launcher}) was ended by SIGKILL" in errors
    none_left(pids)


@pytest.mark.slow
def test_what_workers_leave_behind_ends(waiting):
    started, pids = waiting("leave")
    _, errors = started.communicate(timeout=LIMIT)
    assert (started.returncode, errors) == (0, "")
    none_left(pids)


@pytest.mark.slow
def test_a_worker_that_cannot_be_started(tmp_path):
    path = tmp_path / "broken"
    path.write_bytes(b"\x7fELF")
    path.chmod(0o700)
    done = launch("--nproc=2", "--no-python", path)
    assert done.returncode == 1
    assert "rank 0 could not be started: " in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["no/such/file.py"], "no file 'no/such/file.py'"),
        (["--no-python", "no_such_program"], "no program 'no_such_program'"),
        (["--no-python", "-m", "true"], "--no-python goes neither with --module nor"),
        (["--nproc=0", "."], "--nproc is 0, and at least one worker"),
        (["--nproc=-2", "."], "--nproc is -2, and"),
        (["--nproc=two", "."], "expected a number, auto, cpu or gpu, and got 'two'"),
        (["--nnodes=0", "."], "--nnodes is 0, and"),
        (["--nnodes=1:2", "."], "invalid int value: '1:2'"),
        (["--node-rank=1", "."], "--node-rank is 1, and --nnodes 1 allows 0 to 0"),
        (["--nnodes=2", "--master-addr=a", "--node-rank=-1", "."], "--node-rank is -1"),
        (["--nnodes=2", "."], "give --master-addr"),
        (["--nnodes=2", "--master-addr=a", "--standalone", "."], "--standalone is for one"),
        (["--master-port=0", "."], "--master-port is 0, and ports are 1 to 65535"),
        (["--master-port=65536", "."], "--master-port is 65536, and"),
        (["--grace=nan", "."], "--grace is nan"),
        (["--max-restarts=3", "."], "unrecognized arguments: --max-restarts=3"),
        (["--np=2", "."], "unrecognized arguments: --np=2"),
        (["--nproc=2"], "the following arguments are required: SCRIPT"),
        (["--"], "the following arguments are required: SCRIPT"),
    ],
)
def test_wrong_options(options, told, capfd):
    with pytest.raises(SystemExit) as raised:
        main(options)
    output, errors = capfd.readouterr()
    assert (raised.value.code, output) == (2, "")
    last = errors.splitlines()[-1]
    assert last.startswith("jaxgrad launch: ") and told in last


def test_a_port_that_is_in_use(capfd):
    with socket.create_server(("", 0)) as server:
        port = server.getsockname()[1]
        assert run(parse_args([f"--master-port={port}", "."])) == 2
    assert f"--master-port is {port}: Address already in use" in capfd.readouterr().err


def test_a_folder_of_output_that_cannot_be_made(tmp_path, capfd):
    file = tmp_path / "file"
    file.touch()
    assert run(parse_args([f"--log-dir={file}", "."])) == 2
    assert str(file) in capfd.readouterr().err


@pytest.mark.slow
def test_the_command_tells_wrong_options():
    done = launch("--nproc=2", "no/such/file.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "jaxgrad launch: no file 'no/such/file.py'\n"


@pytest.mark.parametrize(
    ("visible", "number"), [("", 0), ("0", 1), ("3,1", 2), ("0,-1,2", 1), ("GPU-a,GPU-b,GPU-c", 3)]
)
def test_visible_gpus(visible, number, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert parse_args(["--nproc=gpu", "x.py"]).nproc_per_node == number


def test_gpus_of_the_machine(monkeypatch, program, tmp_path):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert parse_args(["--nproc=gpu", "x.py"]).nproc_per_node == 0
    tool = program("#!/bin/sh\necho 'GPU 0: A'\necho '  MIG'\necho 'GPU 1: B'\n", "nvidia-smi")
    tool.chmod(0o700)
    assert parse_args(["--nproc=gpu", "x.py"]).nproc_per_node == 2


def test_cores_of_the_machine():
    for name in ("auto", "cpu"):
        number = parse_args([f"--nproc={name}", "x.py"]).nproc_per_node
        assert 1 <= number <= os.cpu_count()


def test_numbers_that_are_not_given():
    options = get_args_parser().parse_args(["x.py"])
    assert (options.nproc_per_node, options.nnodes, options.node_rank) == (1, 1, 0)
    assert options.training_script_args == []


def test_a_program_may_launch_others(capfd, program):
    handler = signal.getsignal(signal.SIGINT)
    main(["--nproc=2", str(program("print('x')"))])
    assert capfd.readouterr().out.count("x") == 2
    with pytest.raises(SystemExit) as raised:
        main([str(program("raise SystemExit(4)"))])
    assert raised.value.code == 4 and signal.getsignal(signal.SIGINT) is handler


def test_the_launcher_imports_only_the_standard_library():
    code = "import runpy, sys; runpy.run_path(sys.argv[1])"
    command = [sys.executable, "-P", "-S", "-c", code, _launcher.__file__]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    assert (done.returncode, done.stderr) == (0, "")
