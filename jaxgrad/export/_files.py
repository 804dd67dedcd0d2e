"""Files of exported programs: zip files of a program, tensors, and a description in JSON.

program.jax         what `jax.export.deserialize` reads
state.safetensors   parameters, buffers and constants by their paths
example.safetensors the tensors of the example
lifted.safetensors  the constants that are inputs of the graph
jaxgrad.json        the rest
extra/...           the files of the user
"""

from __future__ import annotations

import io
import json
import os
import zipfile
import zlib
from collections.abc import Callable

import jax

from ..core import dtypes
from ..nn.parameter import Parameter
from ..serialization import load as load_tensors
from ..serialization import save as save_tensors
from ..serialization._archive import ArchiveWriter, records
from ..serialization._refused import MissingFolder
from ..serialization._replace import replacing
from ..serialization._source import opened
from ..tape.tensor import Tensor
from ..utils import _pytree as pytree
from ..version import __version__
from ._extents import UNBOUNDED, Range, extent_of_text
from ._saved_graph import read as read_graph
from ._saved_graph import written
from ._serialized import deserialized
from ._signature import ConstantInput, Signature, TensorInput
from ._state import Slot
from ._structures import described, structure
from ._tracing import PARAMETERS, Results
from .exported_program import ExportedProgram
from .graph_signature import InputKind

FORMAT, VERSION = "jaxgrad exported program", 1
DESCRIPTION, PROGRAM, STATE, EXAMPLE, LIFTED = (
    *("jaxgrad.json", "program.jax"),
    *("state.safetensors", "example.safetensors", "lifted.safetensors"),
)
EXTRA = "extra/"


def write_program(program: ExportedProgram, f, extra_files=None, **notes):
    """Write a program to a path or binary file. notes: further entries of the description."""
    entries = _entries(program, extra_files or {}, notes)
    if isinstance(f, str | os.PathLike):
        path = os.path.realpath(f)
        if not os.path.isdir(os.path.dirname(path)):
            raise MissingFolder(f"Parent directory {os.path.dirname(path)} does not exist.")
        with replacing(path) as file:
            _write(entries, file.write)
    else:
        _write(entries, f.write)


def _write(entries, write: Callable):
    archive = ArchiveWriter(write)
    for name, data in entries.items():
        archive.add(name, data)
    archive.close()


def _entries(program, extra_files, notes) -> dict[str, bytes]:
    signature = program._signature
    state = {slot.path: t.detach() for slot, t in program._tensors.items()}
    entries = {
        DESCRIPTION: json.dumps(_description(program, notes), indent=1).encode(),
        PROGRAM: program.serialized,
        STATE: _tensor_file(state),
    }
    if program.example_inputs is not None:
        leaves, _ = pytree.tree_flatten(program.example_inputs)
        tensors = [leaf.detach() for leaf in leaves if isinstance(leaf, Tensor)]
        entries[EXAMPLE] = _tensor_file(dict(zip(signature.tensor_names(), tensors, strict=True)))
    if program._recorder is not None and program._recorder.lifted:
        entries[LIFTED] = _tensor_file(program._graph.graph.lifted)
    for name, data in extra_files.items():
        entries[EXTRA + name] = data.encode() if isinstance(data, str) else bytes(data)
    return entries


def _tensor_file(tensors) -> bytes:
    file = io.BytesIO()
    save_tensors(tensors, file, format="safetensors")
    return file.getvalue()


def _description(program, notes) -> dict:
    signature, exported = program._signature, program.exported
    results = signature.results
    return {
        "format": FORMAT,
        "version": VERSION,
        "jaxgrad": __version__,
        "jax": jax.__version__,
        "calling_convention": exported.calling_convention_version,
        "platforms": list(exported.platforms),
        "with_vjp": program.with_vjp,
        "state": [
            {
                "kind": slot.kind.name,
                "paths": list(slot.paths),
                "persistent": slot.persistent,
                "requires_grad": tensor.requires_grad,
            }
            for slot, tensor in program._tensors.items()
        ],
        "inputs": [_of_input(known) for known in signature.inputs],
        "arguments": described(signature.in_spec),
        "results": described(results.spec),
        "leaves": [list(leaf) if isinstance(leaf, tuple) else leaf for leaf in results.leaves],
        "changed": results.changed,
        "origins": results.origins,
        "carried": results.carried,
        "draws": results.draws,
        "ranges": {
            symbol: [bounds.lower, None if bounds.upper == UNBOUNDED else bounds.upper]
            for symbol, bounds in signature.ranges.items()
        },
        "graph": written(program._recorder),
        **notes,
    }


def _of_input(known) -> dict:
    if isinstance(known, ConstantInput):
        return {"name": known.name, "value": known.value}
    shape = [str(e) if isinstance(e, tuple) else e for e in known.extents]
    return {"name": known.name, "shape": shape, "dtype": known.dtype.name}


# ---- reading


def read_program(f, map_location=None) -> tuple[ExportedProgram, dict, dict[str, bytes]]:
    """The program in a file, the description, and the files of the user by their names.

    Raises RefusedFile, a RuntimeError, for a damaged file, and for one of another kind.
    """
    with opened(f, False) as source:
        checksums = _checksums(f)
        _check_kind(source, checksums)
        entries = records(source)

        def read(name):
            if name not in entries:
                raise source.refuse(f"it lacks {name}: it is damaged")
            data = source.read(*entries[name], name)
            if zlib.crc32(data) != checksums.get(name):
                raise source.refuse(f"{name} has another checksum than was written: it is damaged")
            return data

        description = json.loads(read(DESCRIPTION))
        if description.get("format") != FORMAT or description.get("version") != VERSION:
            raise source.refuse(
                f"it has version {description.get('version')} of the format, and this version of "
                f"jaxgrad reads {VERSION}: use a later one"
            )
        state = load_tensors(io.BytesIO(read(STATE)), map_location)
        example = None
        if EXAMPLE in entries:
            example = load_tensors(io.BytesIO(read(EXAMPLE)), map_location)
        lifted = load_tensors(io.BytesIO(read(LIFTED))) if LIFTED in entries else {}
        data = read(PROGRAM)
        extra = {n.removeprefix(EXTRA): read(n) for n in entries if n.startswith(EXTRA)}
    recorder = None
    if isinstance(description["graph"], dict):  # in files of version 0.2 it is a text
        arrays = {name: tensor.numpy() for name, tensor in lifted.items()}
        recorder = read_graph(description["graph"], arrays)
    program = _program(description, deserialized(data), state, example, recorder)
    return program, description, extra


def _checksums(f) -> dict[str, int]:
    """The checksums of the entries of a zip file by their names, compressed ones too; none of
    another file.
    """
    place = f.tell() if hasattr(f, "tell") else None
    try:
        with zipfile.ZipFile(f) as archive:
            return {entry.filename: entry.CRC for entry in archive.infolist()}
    except zipfile.BadZipFile:
        return {}
    finally:
        if place is not None:
            f.seek(place)


def _check_kind(source, entries):
    """Refuse a file that PyTorch has written."""
    if DESCRIPTION in entries:
        return
    names = {name.partition("/")[2] for name in entries}
    if "models/model.json" in names or "archive_format" in names:
        what = "a program of PyTorch's torch.export, which has PyTorch's operators"
    elif "constants.pkl" in names:
        what = "a TorchScript file of PyTorch, which holds code for its interpreter"
    elif "data.pkl" in names:
        raise source.refuse("it is a file of torch.save: read it with torch.load")
    else:
        raise source.refuse("it is no file of torch.export.save or torch.jit.save")
    raise source.refuse(
        f"it is {what}: load the weights of the model by torch.load and load_state_dict, and "
        "export the model again with jaxgrad"
    )


def _origins(description) -> list[list]:
    """What results have derivatives with respect to. Files of version 0.2 say only whether."""
    known = description.get("tracked", ())
    return description.get("origins") or [[PARAMETERS] if flag else [] for flag in known]


def _program(description, exported, state, example, recorder) -> ExportedProgram:
    tensors = {
        Slot(InputKind[known["kind"]], tuple(known["paths"]), known["persistent"]): _member(
            known, state[known["paths"][0]]
        )
        for known in description["state"]
    }
    results = Results(
        structure(description["results"]),
        [tuple(leaf) if isinstance(leaf, list) else leaf for leaf in description["leaves"]],
        description["changed"],
        _origins(description),
        description.get("draws", False),  # files of version 0.2 have no such entry
        description.get("carried", ()),
    )
    ranges = {
        symbol: Range(low, UNBOUNDED if high is None else high)
        for symbol, (low, high) in description["ranges"].items()
    }
    inputs = tuple(map(_input, description["inputs"]))
    in_spec = structure(description["arguments"])
    signature = Signature(tuple(tensors), inputs, in_spec, results, ranges)
    return ExportedProgram(
        exported,
        signature,
        tensors,
        _example(signature, example),
        with_vjp=description["with_vjp"],
        recorder=recorder,
    )


def _member(known, tensor):
    if known["kind"] == InputKind.PARAMETER.name:
        return Parameter(tensor, known["requires_grad"])
    return tensor


def _input(known):
    if "shape" not in known:
        return ConstantInput(known["name"], known["value"])
    extents = tuple(map(extent_of_text, known["shape"]))
    dtype = next(dtype for dtype in dtypes.ALL if dtype.name == known["dtype"])
    return TensorInput(known["name"], extents, dtype)


def _example(signature, tensors):
    if tensors is None:
        return None
    leaves = [
        known.value if isinstance(known, ConstantInput) else tensors[known.name]
        for known in signature.inputs
    ]
    return pytree.tree_unflatten(leaves, signature.in_spec)
