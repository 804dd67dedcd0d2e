"""Executables on disk: what one process compiles, later ones load.

`compile` looks at the disk before it calls `jax.stages.Lowered.compile`. The key of an executable
is the lowered program together with all that decides how XLA compiles it. So each process must
trace and lower the program, and a key cannot name another program.

Only JAX's persistent cache can give an executable to a jitted function: JAX has no other public
way. The process has one folder for that cache. So the cache is on only while something compiles
here, with an empty temporary folder: the file of the wanted executable is put there, or taken from
there. JAX compares a key of its own (the program, the options of the compiler, the devices, the
versions), so it would not use a wrong file.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import platform
import re
import shutil
import tempfile
import threading
import warnings
from collections import defaultdict
from importlib.util import find_spec
from pathlib import Path

import jax

from ..late import LateModule
from .file_cache import VARIABLE, FileCache, open_directory, wanted_directory

backend = LateModule("jax.extend.backend")
jax_cache = LateModule("jax.experimental.compilation_cache.compilation_cache")
jaxlib = LateModule("jaxlib")

# JAX's settings while something compiles here: executables of any size and any time to compile, and
# no other caches of XLA's
FOLDER = "jax_compilation_cache_dir"
SETTINGS = {
    "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_persistent_cache_min_entry_size_bytes": -1,
    "jax_persistent_cache_enable_xla_caches": "",
    "jax_compilation_cache_max_size": -1,
}

# the variables of the environment that JAX and XLA read
VARIABLES = ("JAX_", "XLA_", "LIBTPU_", "TF_XLA_")


@functools.cache
def current() -> FileCache | None:
    """The cache of this process; None where it is off."""
    try:
        directory = wanted_directory()
        if directory is not None:
            open_directory(directory)
            return FileCache(directory)
    except (OSError, RuntimeError) as error:  # RuntimeError: the user has no home
        # by default there is none, silently; asked for, it must not be missing unnoticed
        wanted, why = os.environ.get(VARIABLE), getattr(error, "strerror", None) or error
        if wanted:
            warnings.warn(f"{VARIABLE}={wanted}: {why}; nothing is kept on disk", stacklevel=2)
    return None


@functools.cache
def environment() -> bytes:
    """A hash of everything besides the program that decides how it is compiled: jaxgrad with its
    table, JAX, their flags, the platform and the processor.
    """
    hasher = hashlib.sha256()
    for path in sources():
        hasher.update(Path(path).read_bytes())
    flags = sorted(pair for pair in os.environ.items() if pair[0].startswith(VARIABLES))
    client, device = backend.get_backend(), jax.devices()[0]
    described = [
        *(jax.__version__, jaxlib.__version__, flags, processor()),
        *(client.platform, client.platform_version, device.device_kind),
    ]
    hasher.update(json.dumps(described).encode())
    return hasher.digest()


def sources() -> list[str]:
    """The paths of jaxgrad's modules, then of the table."""
    rules, paths = Path(find_spec("jaxgrad.rules").origin).parent, set()
    for folder in (Path(__file__).parents[1], rules):
        for place, _, names in os.walk(folder):
            paths.update(os.path.join(place, name) for name in names if name.endswith(".py"))
    return [*sorted(paths), str(rules.parent / "derivatives.yaml")]


def processor() -> list[str]:
    """The kind of the processor, its instructions, and how many of its cores this process may use:
    XLA compiles for these.
    """
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    described = [platform.machine(), platform.processor(), str(count)]
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
        names = ("model name", "flags", "Features", "CPU implementer", "CPU part")
        described += [line for line in lines if line.startswith(names)]
    return described


class Window:
    """The time while JAX's persistent cache is on. Threads share it.

    Programs that other threads compile meanwhile for the user go to the same folder, which is
    deleted with the window.
    """

    def __init__(self):
        # a signal handler may compile too
        self.lock, self.inside = threading.RLock(), 0
        self.folder, self.before = None, {}

    @contextlib.contextmanager
    def opened(self):
        """The folder of JAX's cache; None if the user has another one, or if none can be made."""
        with self.lock:
            folder = self.enter()
        try:
            yield folder
        finally:
            if folder is not None:
                with self.lock:
                    self.leave()

    def enter(self) -> Path | None:
        if not self.inside:
            self.restore()  # after an interrupt something may be left
        config, window = jax.config, str(self.folder) if self.inside else None
        if not config.jax_enable_compilation_cache or config.jax_compilation_cache_dir != window:
            return None
        if not self.inside:
            self.folder = Path(tempfile.mkdtemp(prefix="jaxgrad-"))
            for name, ours in (SETTINGS | {FOLDER: str(self.folder)}).items():
                self.before[name] = getattr(config, name), ours
                config.update(name, ours)
            jax_cache.reset_cache()  # JAX looks for a folder once
        self.inside += 1
        return self.folder

    def leave(self):
        self.inside -= 1
        if not self.inside:
            self.restore()

    def restore(self):
        """Leave JAX's settings as they were."""
        if self.folder is None:
            return
        for name, (before, ours) in self.before.items():
            if getattr(jax.config, name) == ours:  # else the user has set it meanwhile
                jax.config.update(name, before)
        jax_cache.reset_cache()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder, self.before = None, {}


window = Window()

# by the names of programs: the files of two that are compiled at a time could not be told apart
_locks: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)


def compile(lowered: jax.stages.Lowered) -> jax.stages.Compiled:
    """The executable of `lowered.compile()`, from this process or an earlier one."""
    cache = current()
    # several processes may compile together, so all of them must
    if cache is None or jax.process_count() > 1:
        return lowered.compile()
    text = lowered.as_text()
    name = name_of(text)
    key = hashlib.sha256(environment() + text.encode()).hexdigest()
    with _locks[name], contextlib.ExitStack() as stack:
        before, kept = None, unpacked(cache.get(key))
        with contextlib.suppress(OSError):  # there may be no room for temporary files
            folder = stack.enter_context(window.opened())
            before = None if folder is None else put_files(kept, name, folder)
        compiled = lowered.compile()
        new_files = set() if before is None else files_of(name, folder) - before
        if new_files:
            with contextlib.suppress(OSError):
                # one for each device and each choice of options
                kept.update({file: (folder / file).read_bytes() for file in new_files})
                cache.put(key, packed(kept))
    return compiled


def put_files(kept: dict[str, bytes], name: str, folder: Path) -> set[str]:
    """Write the kept files of a program for JAX; returns the files of its name."""
    for file, content in kept.items():
        unfinished = folder / f"{file}.unfinished"
        unfinished.write_bytes(content)
        unfinished.rename(folder / file)
    return files_of(name, folder)


def name_of(text: str) -> str:
    """The name of a lowered program. MLIR puts one that is no identifier into quotes, and writes
    its other bytes in hexadecimal.
    """
    match = re.search(r'module @(?:"([^"]+)"|([^\s"]+))', text)
    name = (match[1] or match[2]).encode() if match else b""
    return re.sub(rb"\\([0-9A-F]{2})", lambda byte: bytes.fromhex(byte[1].decode()), name).decode()


def files_of(name: str, folder: Path) -> set[str]:
    """JAX's files of programs of a name.

    Leans on how JAX names them. If that changes, nothing is kept.
    """
    wanted = re.compile(re.escape(name) + "-[0-9a-f]+-cache")
    return {path.name for path in folder.glob("*-cache") if wanted.fullmatch(path.name)}


def packed(files: dict[str, bytes]) -> bytes:
    """The contents of files as one."""
    sizes = json.dumps({name: len(content) for name, content in files.items()})
    return b"\n".join([sizes.encode(), b"".join(files.values())])


def unpacked(content: bytes | None) -> dict[str, bytes]:
    """The files in what `packed` gave."""
    if content is None:
        return {}
    sizes, _, rest = content.partition(b"\n")
    files, begin = {}, 0
    for name, size in json.loads(sizes).items():
        files[name], begin = rest[begin : begin + size], begin + size
    return files


def compile_for(jitted, arrays):
    """Compile a jitted function for these arrays, so that a call finds it compiled."""
    if current() is None or jax.config.jax_disable_jit:
        return
    if not any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(arrays)):
        compile(jitted.lower(*arrays))


def from_disk(jitted):
    """`jitted`, whose first call looks for the executable on disk. A function that only moves
    arrays has no executable.
    """
    if current() is None or not hasattr(jitted, "lower"):
        return jitted
    waiting = [True]

    @functools.wraps(jitted)
    def call(*arrays):
        if waiting:
            waiting.clear()
            compile_for(jitted, arrays)
        return jitted(*arrays)

    return call
