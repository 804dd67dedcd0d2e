"""Takes ten architectures through each export, and runs the files in fresh processes without
jaxgrad: `make exports`.

It prints the greatest difference between a file's outputs and the model's, for other rows than
those of the export, and fails where one is beyond rounding.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "onnx"))
from architectures import BATCHED, CASES, architecture

import jaxgrad as torch

HERE = Path(__file__).parent
JAX = HERE.parent / "helpers/read_exported.py"
TOLERANCE = 1e-5


def shapes(name, args):
    batch = torch.export.Dim("batch")
    batched = BATCHED.get(name, (True,) * len(args))
    return tuple([{0: batch} if varies else None for varies in batched])


def exported(name, model, args, path):
    program = torch.export.export(model, args, dynamic_shapes=shapes(name, args))
    torch.export.save(program, path)


def traced(name, model, args, path):
    torch.jit.trace(model, args).save(path)


def converted(name, model, args, path):
    torch.onnx.export(model, args, path, dynamic_shapes=shapes(name, args), external_data=False)


EXPORTS = {
    "torch.export": (exported, ".pt2", JAX),
    "torch.jit": (traced, ".pt2", JAX),
    "ONNX": (converted, ".onnx", HERE / "read_by_onnxruntime.py"),
    "SavedModel": (exported, ".pt2", HERE / "read_by_tensorflow.py"),
}


def difference(path, results):
    """The greatest difference between the outputs in a file and results."""
    outputs = np.load(path.with_suffix(".outputs.npz"))
    greatest = 0.0
    for key, result in zip(outputs.files, results, strict=True):
        wanted, output = result.numpy(), outputs[key]
        if output.dtype != wanted.dtype or output.shape != wanted.shape:
            return np.inf
        greatest = max(greatest, float(abs(output.astype(float) - wanted.astype(float)).max()))
    return greatest


def batch_of(kind, name, args):
    """Three rows in place of the example's two; torch.jit.trace may fix sizes, so two again."""
    rows = (1, 0) if kind == "torch.jit" else (1, 0, 1)
    batched = BATCHED.get(name, (True,) * len(args))
    pairs = zip(args, batched, strict=True)
    return [torch.stack([arg[n] for n in rows]) if varies else arg for arg, varies in pairs]


def measured(kind, names, folder):
    """For each architecture the difference."""
    write, suffix, reader = EXPORTS[kind]
    expected = {}
    for name in names:
        model, args = architecture(name)
        path = folder / f"{name}{suffix}"
        write(name, model, args, path)
        others = batch_of(kind, name, args)
        np.savez(path.with_suffix(".inputs.npz"), *[arg.numpy() for arg in others])
        with torch.no_grad():
            results = model(*others)
        expected[path] = results if isinstance(results, tuple) else (results,)
    subprocess.run([sys.executable, reader, folder], check=True, cwd=folder)
    return {path.stem: difference(path, results) for path, results in expected.items()}


def names_of(known):
    """The type of an option with names, of these, with commas between them."""

    def parsed(text):
        names = text.split(",")
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(known)}")
        return names

    return parsed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", type=names_of(EXPORTS), default=[*EXPORTS], metavar="ONNX,...")
    parser.add_argument("--architectures", type=names_of(CASES), default=[*CASES])
    options = parser.parse_args()
    kinds, names = options.only, options.architectures
    table = {}
    for kind in kinds:
        with tempfile.TemporaryDirectory() as folder:
            table[kind] = measured(kind, names, Path(folder))
    print("| architecture |", " | ".join(kinds), "|")
    print("| --- |" + " --- |" * len(kinds))
    for name in names:
        print(f"| {name} |", " | ".join(f"{table[kind][name]:.1e}" for kind in kinds), "|")
    return any(not number <= TOLERANCE for row in table.values() for number in row.values())


if __name__ == "__main__":
    sys.exit(main())
