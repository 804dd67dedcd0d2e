"""Write the files of tests/oracle/pt with PyTorch, and what PyTorch says of the objects in them.

python tests/oracle/record_files.py     (needs torch 2.13)

The files contain no time, so recording them again changes none of their objects; PyTorch numbers
the storages of its old format by their addresses, which differ.
"""

import json
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import saved_objects
import torch
from saved_objects import FILES


def record(name, value, *, old=True, **options):
    """Write an object in both formats, and its description."""
    torch.save(value, FILES / f"{name}.pt", **options)
    if old:
        path = FILES / f"{name}_old.pt"
        torch.save(value, path, _use_new_zipfile_serialization=False, **options)


def main():
    FILES.mkdir(exist_ok=True)
    torch.manual_seed(0)
    objects = saved_objects.everything(torch)
    texts = {}
    for name, value in objects.items():
        record(name, value)
        texts[name] = saved_objects.described(torch, torch.load(FILES / f"{name}.pt"))
    record("arrays", saved_objects.arrays(), old=False)
    texts["arrays"] = saved_objects.described(torch, saved_objects.arrays())
    record("newest_protocol", objects["views"], old=False, pickle_protocol=5)
    names = saved_objects.module_names(torch)
    modules = {name: saved_objects.module(torch, name) for name in names}
    states = {n: saved_objects.numbered(torch, m).state_dict() for n, m in modules.items()}
    record("modules", states)
    trainings = {name: saved_objects.Training(torch, name) for name in saved_objects.OPTIMIZERS}
    record("training", {n: each.run(2).state() for n, each in trainings.items()}, old=False)
    texts["weights"] = {name: each.run(2).weights() for name, each in trainings.items()}
    record("generator", {"rng": torch.get_rng_state()}, old=False)
    (FILES / "objects.json").write_text(json.dumps(texts, indent=1) + "\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
