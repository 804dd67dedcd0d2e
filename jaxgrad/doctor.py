"""`jaxgrad doctor`: whether jaxgrad can work here, and the first thing that is wrong.

Each check gives a line that tells what there is, and a complaint with what to do about it, None
where all is well.
"""

import importlib.util
import os
import shutil
import sys
from importlib import metadata
from typing import NamedTuple

import jax

from .core import file_cache
from .core.supported_jax import FIRST, FIRST_UNTESTED, is_supported

FIRST_PYTHON = 3, 11


class Line(NamedTuple):
    """What a check tells. `complaint`: what is wrong, and what to do."""

    name: str
    text: str
    complaint: str | None = None


def python() -> Line:
    wrong = None
    if sys.version_info < FIRST_PYTHON:
        wrong = f"jaxgrad needs Python {FIRST_PYTHON[0]}.{FIRST_PYTHON[1]} or later"
    return Line("Python", f"{sys.version.split()[0]}, {sys.executable}", wrong)


def version_of(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def libraries() -> Line:
    # of the code that runs: a checkout may be newer than what pip has noted of it
    versions = [f"jaxgrad {sys.modules[__package__].__version__}"]
    versions += [
        f"{package} {version_of(package)}" for package in ("jax", "jaxlib", "numpy", "optax")
    ]
    text = ", ".join(versions)
    wrong = None
    if not is_supported(jax.__version__):
        wrong = (
            f"jaxgrad is not tested with JAX {jax.__version__}: "
            f"pip install 'jax>={FIRST},<{FIRST_UNTESTED}'"
        )
    elif jax.__version__ != version_of("jaxlib"):
        wrong = f"jax and jaxlib differ: pip install 'jaxlib=={jax.__version__}'"
    return Line("packages", text, wrong)


def devices() -> Line:
    try:
        present = jax.devices()
    except RuntimeError as error:
        text = f"none: {error}"
        return Line("devices", text, "JAX has no device: unset JAX_PLATFORMS, or install jax anew")
    text = ", ".join(f"{device} ({device.device_kind})" for device in present)
    has_driver = shutil.which("nvidia-smi") is not None
    wrong = None
    if has_driver and {device.platform for device in present} == {"cpu"}:
        wrong = (
            "there is a driver of NVIDIA, and JAX uses the CPU alone: "
            "pip install 'jax[cuda13]', and unset JAX_PLATFORMS"
        )
    return Line("devices", text, wrong)


def computes() -> Line:
    """A gradient on the default device, compiled."""
    try:
        gradient = float(jax.jit(jax.grad(lambda x: x * x * x))(2.0))
    except Exception as error:  # of XLA, of a driver
        return Line("a gradient", f"{type(error).__name__}: {error}", "XLA compiles nothing here")
    wrong = None if gradient == 12.0 else "XLA computes wrong numbers here"
    return Line("a gradient", f"of x * x * x at 2 is {gradient:g}", wrong)


def cache() -> Line:
    directory = file_cache.wanted_directory()
    if directory is None:
        return Line("cache", f"off, by the environment variable {file_cache.VARIABLE}")
    try:
        file_cache.open_directory(directory)
    except OSError as error:
        wrong = (
            f"each process compiles anew: set {file_cache.VARIABLE} to a folder that you alone may "
            'write to, or to "off"'
        )
        return Line("cache", f"{directory}: {error.strerror or error}", wrong)
    kept = file_cache.FileCache(directory)
    files = kept.files()
    megabytes = sum(size for _, size, _ in files) / 1e6
    text = f"{directory}: {len(files)} files of {megabytes:.1f} of {kept.limit / 1e6:.0f} MB"
    return Line("cache", text)


def settings() -> Line:
    names = sorted(name for name in os.environ if name.startswith(("JAX", "XLA_")))
    text = ", ".join(f"{name}={os.environ[name]}" for name in names) or "none"
    wrong = None
    if jax.config.jax_disable_jit:
        wrong = "JAX_DISABLE_JIT is set: nothing is compiled, and all is slow"
    return Line("environment", text, wrong)


def pytorch() -> Line:
    """Whether `jaxgrad compare` finds PyTorch."""
    if importlib.util.find_spec("torch") is None:
        return Line("PyTorch", "not in this environment, which `jaxgrad compare` alone needs")
    return Line("PyTorch", version_of("torch"))


CHECKS = python, libraries, devices, computes, cache, settings, pytorch


def report() -> tuple[str, bool]:
    """The lines of all checks with the first complaint at the end, and whether there is none."""
    lines = [check() for check in CHECKS]
    width = max(len(line.name) for line in lines)
    texts = [f"{line.name:{width}}  {line.text}" for line in lines]
    complaint = next((line.complaint for line in lines if line.complaint), None)
    texts += ["", f"wrong: {complaint}" if complaint else "nothing is wrong"]
    return "\n".join(texts), complaint is None
