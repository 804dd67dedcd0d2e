"""Messages between a process and its workers: a number and an object.

Large arrays do not go through the pipe: the sender writes them to a file without a name, in memory
where the system has that, and the receiver maps it. So a batch is not copied when it arrives, and
workers share a dataset's arrays until one writes to its copy.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import mmap
import os
import socket
import struct
import sys
import tempfile
import types
from collections import ChainMap
from multiprocessing import reduction
from typing import Any, NamedTuple

from ....frontend import sending  # noqa: F401  tensors with a history are refused

# from how many bytes on an array is mapped: smaller ones are faster through the pipe
LARGE = 1 << 16

# of the addresses of arrays that JAX takes over without a copy
_ALIGNMENT = 64

# the names of the user's script, as a module: the second in a process that was started anew
SCRIPTS = ("__main__", "__mp_main__")

# the object's protocol: arrays can leave their elements out of it
_PROTOCOL = 5


class Serialized(NamedTuple):
    """An object without the elements of its large arrays, and these."""

    data: memoryview
    buffers: list


def serialized(value, by_value=False) -> Serialized:
    """An object in the form that is sent.

    by_value: whether functions and classes of the user's script are part of it, instead of their
    names. Raises what the classes of the object raise.
    """
    file, buffers = io.BytesIO(), []

    def is_small(buffer):
        small = buffer.raw().nbytes < LARGE
        if not small:
            buffers.append(buffer)
        return small

    if by_value:
        pickler = _by_value()(file, _PROTOCOL, is_small)
    else:
        pickler = reduction.ForkingPickler(file, _PROTOCOL, True, is_small)
    pickler.dump(value)
    return Serialized(file.getbuffer(), buffers)


@functools.cache
def _by_value() -> type:
    """The class that serializes functions and classes of the user's script."""
    cloudpickle = importlib.import_module("cloudpickle")
    script = sys.modules["__main__"]
    if script.__name__ in SCRIPTS[1:]:  # it looks at the first name only
        cloudpickle.register_pickle_by_value(script)
    base = cloudpickle.Pickler
    table = {types.CodeType: functools.partial(_code, base.dispatch_table[types.CodeType])}

    def tables(pickler):
        # multiprocessing adds to its table when what shares memory is first used
        shared = reduction.ForkingPickler(io.BytesIO()).dispatch_table
        return ChainMap(table, shared, base.dispatch_table)

    return type("Pickler", (base,), {"dispatch_table": property(tables)})


def _code(reduced, code):
    make, arguments = reduced(code)
    return _code_of_file, (make, arguments, code.co_filename)


def _code_of_file(make, arguments, file):
    return make(*arguments).replace(co_filename=file)  # which tracebacks show


class Message:
    """A number and a serialized object, to be sent to one receiver or to several."""

    def __init__(self, number: int, content: Serialized):
        sizes = [buffer.raw().nbytes for buffer in content.buffers]
        self.head = struct.pack(f"<{len(sizes) + 2}q", number, len(sizes), *sizes)
        self.data = content.data
        self.file = _file_of(content.buffers) if sizes else None

    def send(self, connection):
        """Send it. Raises OSError where the receiver has ended."""
        connection.send_bytes(b"".join((self.head, self.data)))
        if self.file is not None:
            with _socket_of(connection) as channel:
                socket.send_fds(channel, [b"."], [self.file])

    def close(self):
        """Close the file with its arrays; receivers have their own access to it."""
        if self.file is not None:
            os.close(self.file)


def send(connection, number: int, content: Serialized):
    """Send a number and an object to one receiver. Raises OSError where that has ended."""
    with contextlib.closing(Message(number, content)) as message:
        message.send(connection)


class Received(NamedTuple):
    """A message that has arrived: `value()` makes its object."""

    number: int
    data: memoryview
    buffers: list

    def value(self) -> Any:
        return reduction.ForkingPickler.loads(self.data, buffers=self.buffers)


def receive(connection) -> Received:
    """Wait for a message. Raises EOFError or OSError where the sender has ended."""
    data = memoryview(connection.recv_bytes())
    number, count = struct.unpack_from("<2q", data)
    sizes = struct.unpack_from(f"<{count}q", data, 16)
    return Received(number, data[16 + 8 * count :], _mapped(connection, sizes) if count else [])


def _file_of(buffers) -> int:
    descriptor = _new_file()
    with open(descriptor, "wb", closefd=False) as file:
        for buffer in buffers:
            file.seek(-file.tell() % _ALIGNMENT, os.SEEK_CUR)
            file.write(buffer.raw())
    return descriptor


def _new_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("jaxgrad")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _mapped(connection, sizes) -> list[memoryview]:
    with _socket_of(connection) as channel:
        _, files, _, _ = socket.recv_fds(channel, 1, 1)
    if not files:
        raise EOFError("the sender has ended before it sent the file of its arrays")
    file = files[0]
    places, end = [], 0
    for size in sizes:
        start = end + -end % _ALIGNMENT
        end = start + size
        places.append(slice(start, end))
    try:
        # private: what one receiver writes, no other one sees
        whole = memoryview(mmap.mmap(file, end, mmap.MAP_PRIVATE))
    finally:
        os.close(file)
    return [whole[place] for place in places]


def _socket_of(connection) -> socket.socket:
    return socket.fromfd(connection.fileno(), socket.AF_UNIX, socket.SOCK_STREAM)


def hang_up(connection):
    """Let both sides find the end of the connection, also a thread that waits for it."""
    with _socket_of(connection) as channel, contextlib.suppress(OSError):
        channel.shutdown(socket.SHUT_RDWR)
