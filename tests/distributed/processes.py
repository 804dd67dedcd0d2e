"""Runs programs on several devices: of one process, or one of each of several processes."""

import json
import os
import subprocess
import sys
from pathlib import Path

from helpers.hangs import LIMIT

FOLDER = Path(__file__).parent
DEVICES = "--xla_force_host_platform_device_count"


def environment(devices=1):
    flags = [flag for flag in os.environ.get("XLA_FLAGS", "").split() if DEVICES not in flag]
    settings = {"XLA_FLAGS": " ".join([*flags, f"{DEVICES}={devices}"])}
    if devices > 1:
        # with several programs in flight their devices may wait for one another, until XLA ends the
        # process
        settings["JAX_CPU_ENABLE_ASYNC_DISPATCH"] = "false"
    return os.environ | settings


def command(program, *arguments, processes=None):
    """The command of a program of this folder."""
    path = [str(FOLDER / program), *map(str, arguments)]
    if processes is None:
        return [sys.executable, *path]
    return [sys.executable, "-m", "jaxgrad", "launch", "--nproc", str(processes), *path]


def run(program, *arguments, processes=None, devices=1):
    """The finished program, which may have failed."""
    return subprocess.run(
        command(program, *arguments, processes=processes),
        env=environment(devices),
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )


def printed(*arguments, **options):
    """What a program prints after FOUND, as JSON."""
    done = run(*arguments, **options)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]
    _, _, text = done.stdout.partition("FOUND ")
    return json.JSONDecoder().raw_decode(text)[0]
