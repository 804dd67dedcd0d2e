"""Questions to the operating system: about files and folders, sockets, processes, the working
folder.

A question that may be repeated is an event, as a draw is: each call asks again and compares the
answers. A call that consumes its result, such as reading bytes of a socket, or that returns a new
object, such as an open file, is refused: no later call of a program could repeat it.
"""

from __future__ import annotations

import builtins
import io
import os
import select
import socket
import subprocess
import uuid

# of the module os: they tell of files, folders and the process
REPEATED = (
    "stat",
    "lstat",
    "fstat",
    "statvfs",
    "listdir",
    "access",
    "readlink",
    "getcwd",
    "getcwdb",
    "getloadavg",
    "times",
    "cpu_count",
    "sched_getaffinity",
    "getppid",
    "getrandom",
    "urandom",
    "get_terminal_size",
    "isatty",
)

FILE = "it opens a file"
_BYTES, _PROCESS = "it reads from a file", "it waits for a process"
_SOCKET = "it reads from a socket"
# where it is, its name, and why it is refused
REFUSED = (
    *[(module, "open", FILE) for module in (builtins, io)],
    (builtins, "input", "it asks for input"),
    (os, "open", FILE),
    *[(os, name, _BYTES) for name in ("read", "pread", "readv", "preadv")],
    (os, "scandir", "it goes through a folder"),
    *[(os, name, _PROCESS) for name in ("wait", "waitpid", "wait3", "wait4", "waitid")],
    (subprocess.Popen, "__init__", "it starts a process"),
    *[(subprocess.Popen, name, _PROCESS) for name in ("poll", "wait", "communicate")],
    (socket.socket, "__init__", "it opens a socket"),
    *[
        (socket.socket, name, _SOCKET)
        for name in (
            "accept",
            "recv",
            "recv_into",
            "recvfrom",
            "recvfrom_into",
            "recvmsg",
            "recvmsg_into",
        )
    ],
    *[(select, name, "it waits for input") for name in ("select", "poll", "epoll", "kqueue")],
    (uuid, "uuid1", "it makes a name that is the only one"),
)

# the same of modules that a program may have imported: a class or None, names, and why
REFUSED_OF_MODULES = {
    "multiprocessing.connection": [
        ("_ConnectionBase", ("recv", "recv_bytes", "poll"), "it reads from another process")
    ],
    "resource": [(None, ("getrusage",), "it reads what the process has used")],
    "ssl": [("SSLSocket", ("read", "recv", "recv_into"), _SOCKET)],
    "tempfile": [("_RandomNameSequence", ("__next__",), "it makes a name that is the only one")],
}

# they read the code of a function for its tracebacks and warnings
_READERS_OF_CODE = ("tokenize", "linecache", "inspect", "traceback", "warnings")

# what they read changes no result of a function
_ONCE = ("importlib._bootstrap", "jaxgrad.core.disk_cache")


def is_of_function(frame) -> bool:
    """Whether a read from outside is for the function, and not for the import of a module, whose
    code runs once, for an executable on disk, or for a warning or a traceback.
    """
    if frame.f_globals.get("__name__") in _READERS_OF_CODE:
        return False
    while frame is not None:
        if frame.f_globals.get("__name__") in _ONCE:
            return False
        frame = frame.f_back
    return True


def is_read(why: str, args, kwargs) -> bool:
    """Whether a call reads: a call that opens a file does so only in a mode for reading alone."""
    if why != FILE:
        return True
    opened = kwargs.get("mode", args[1] if len(args) > 1 else "r")
    if isinstance(opened, int):  # flags of os.open
        return opened & (os.O_WRONLY | os.O_RDWR) != os.O_WRONLY
    return isinstance(opened, str) and ("r" in opened or "+" in opened)
