"""Programs as bytes, by `jax.export`."""

from __future__ import annotations

import contextlib

import jax

from ..late import LateModule
from ..serialization._refused import RefusedFile
from ..tape.symbolic_size import exporting

jax_export = LateModule("jax.export")


@contextlib.contextmanager
def _with_flatbuffers():
    try:
        yield
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "jax.export needs the package flatbuffers to write and read programs: pip install "
            "flatbuffers",
            name="flatbuffers",
        ) from error


def serialized(exported, with_vjp: bool) -> bytes:
    """The bytes of a program, with that of its derivative if asked for."""
    # the derivative is traced here
    with _with_flatbuffers(), exporting(), jax.enable_x64(True):
        return bytes(exported.serialize(vjp_order=int(with_vjp)))


def deserialized(data: bytes):
    """The program of these bytes. Raises RefusedFile if this version of JAX does not read them."""
    try:
        with _with_flatbuffers():
            return jax_export.deserialize(bytearray(data))
    except ValueError as error:
        raise RefusedFile(
            f"this version of JAX ({jax.__version__}) does not read the program: {error}. JAX "
            "reads programs for 6 months after the release that wrote them: export it again with a "
            "version near this one"
        ) from error
