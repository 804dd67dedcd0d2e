"""Programs that run elsewhere: modules exported as StableHLO, as torch.export."""

from __future__ import annotations

from ..names.not_provided import names_of
from ..utils._pytree import register_dataclass as register_dataclass
from ._exporting import program_of
from ._files import read_program, write_program
from .dynamic_shapes import Dim as Dim
from .dynamic_shapes import ShapesCollection as ShapesCollection
from .dynamic_shapes import dims as dims
from .exported_program import ExportedProgram as ExportedProgram
from .exported_program import default_decompositions as default_decompositions
from .graph_signature import ExportGraphSignature as ExportGraphSignature


def export(
    mod,
    args,
    kwargs=None,
    *,
    dynamic_shapes=None,
    strict: bool = False,
    preserve_module_call_signature=(),
    prefer_deferred_runtime_asserts_over_guards: bool = False,
    platforms=None,
    with_vjp: bool = False,
) -> ExportedProgram:
    """Trace a module for example arguments, and return its program.

    mod: an `nn.Module`; a function of tensors too. args, kwargs: a tuple and a dict of tensors,
    numbers, texts, None, and containers of these; what is no tensor is a part of the program.
    dynamic_shapes: the dimensions whose sizes vary: by the name of an argument (or a tuple, by
    position) a dict from numbers of dimensions to `Dim`s, `Dim.AUTO`, `Dim.DYNAMIC` or None.
    platforms: of "cpu", "cuda", "rocm", "tpu" those on which the program is to run; by default the
    first two and the last, as far as it can be lowered for them. with_vjp: whether `save` keeps the
    derivative too. The other arguments have no effect.

    Parameters and buffers are inputs of the program, and buffers that a call changes are outputs.
    Random numbers come from a key, which `module()` draws of the default generator at each call.

    Raises UserError, a RuntimeError, where a size that is to vary decides what the code does, and
    for `dynamic_shapes` that do not fit.

    >>> batch = jaxgrad.export.Dim("batch", max=64)
    >>> program = jaxgrad.export.export(
    ...     jaxgrad.nn.Linear(2, 1), (jaxgrad.ones(3, 2),), dynamic_shapes={"input": {0: batch}}
    ... )
    >>> program.module()(jaxgrad.ones(5, 2)).shape, program.range_constraints
    (torch.Size([5, 1]), {'batch': VR[1, 64]})
    """
    return program_of(mod, args, kwargs, dynamic_shapes, platforms=platforms, with_vjp=with_vjp)


def save(ep: ExportedProgram, f, *, extra_files=None, opset_version=None, pickle_protocol=None):
    """Write a program to a file, with its parameters and buffers.

    f: a path, by custom with the end .pt2, or a binary file. A file at the path is replaced after
    the new one is complete. extra_files: texts or bytes by name, which `load` gives. The other
    arguments have no effect.

    The file is a zip file: the program as `jax.export` writes it, the tensors as safetensors, a
    description in JSON. JAX reads a program for at least 6 months after the release that wrote it.

    >>> import io
    >>> program = jaxgrad.export.export(jaxgrad.nn.Linear(2, 1), (jaxgrad.ones(1, 2),))
    >>> file = io.BytesIO()
    >>> jaxgrad.export.save(program, file)
    >>> _ = file.seek(0)
    >>> jaxgrad.export.load(file).module()(jaxgrad.ones(1, 2)).shape
    torch.Size([1, 1])
    """
    if not isinstance(ep, ExportedProgram):
        raise TypeError(
            "The 'ep' parameter must be an instance of 'ExportedProgram', got "
            f"{type(ep).__name__!r} instead: save(export(module, args), path)"
        )
    write_program(ep, f, extra_files)


def load(f, *, extra_files=None, expected_opset_version=None) -> ExportedProgram:
    """Read a program from a file of `save`. Nothing of the file is executed.

    f: a path, or a binary file. extra_files: a dict that gets the user's files by their names:
    texts, and bytes of what is no UTF-8.

    Raises RuntimeError for a damaged file, for the files of PyTorch, and for a program that this
    version of JAX does not read.
    """
    program, _, extra = read_program(f)
    if extra_files is not None:
        extra_files |= {name: _text(data) for name, data in extra.items()}
    return program


def _text(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


__getattr__, __dir__ = names_of(__name__)
