"""Write the files of tests/oracle/pt with PyTorch, and what PyTorch says of the objects in them.

make record PARTS=files

Files whose objects are those that they had stay: PyTorch numbers the storages of its old format by
their addresses, which differ.
"""

import warnings

import torch
from helpers import saved_objects
from helpers.answers import save
from helpers.saved_objects import FILES, TEXTS


def record(name, value, *, old=True, **options):
    """Write an object in both formats, if the files have another."""
    path = FILES / f"{name}.pt"
    if path.exists() and read(path) == saved_objects.described(torch, value):
        return
    torch.save(value, path, **options)
    if old:
        path = FILES / f"{name}_old.pt"
        torch.save(value, path, _use_new_zipfile_serialization=False, **options)


def read(path):
    return saved_objects.described(torch, torch.load(path, weights_only=False))


def main():
    FILES.mkdir(exist_ok=True)
    torch.manual_seed(0)
    objects = saved_objects.all_objects(torch)
    texts = {}
    for name, value in objects.items():
        record(name, value)
        texts[name] = read(FILES / f"{name}.pt")
    record("arrays", saved_objects.arrays(), old=False)
    texts["arrays"] = saved_objects.described(torch, saved_objects.arrays())
    record("newest_protocol", objects["views"], old=False, pickle_protocol=5)
    names = saved_objects.module_names(torch)
    modules = {name: saved_objects.module(torch, name) for name in names}
    states = {n: saved_objects.numbered(torch, m).state_dict() for n, m in modules.items()}
    record("modules", states)
    trainings = {name: saved_objects.Training(torch, name) for name in saved_objects.OPTIMIZERS}
    record("training", {n: training.run(2).state() for n, training in trainings.items()}, old=False)
    texts["weights"] = {name: training.run(2).weights() for name, training in trainings.items()}
    record("generator", {"rng": torch.get_rng_state()}, old=False)
    if not (FILES / "kinds.pt").exists():
        torch.save(saved_objects.kinds(torch), FILES / "kinds.pt")
    if not (FILES / "jagged.pt").exists():
        torch.save(saved_objects.jagged(torch), FILES / "jagged.pt")
    save(TEXTS, texts, 1e-6)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
