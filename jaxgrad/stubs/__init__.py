"""The type stubs of the public modules: operators from the table, everything else from the
imported modules.

    jaxgrad stubs      writes them, beside their modules

A wheel has them (build_backend.py). Stubs import only stubs, so that a type checker reads none of
the modules that users do not call. What the source annotates is taken from there; left_open.py
holds the types of what it leaves open.
"""

import importlib
import inspect
from pathlib import Path

from .annotations import ALIASED, HEADER, Types
from .classes import Class
from .functions import Functions
from .left_open import DECLARATIONS
from .operators import operator_lines
from .public_names import MODULES, Homes

PACKAGE = Path(__file__).parents[1]


class Stub:
    """The stub of one module."""

    def __init__(self, module: str, homes: Homes):
        self.name, self.module, self.homes = module, importlib.import_module(module), homes
        self.types = Types(module, homes)
        self.imports = self.types.imported

    def text(self) -> str:
        body = [line for name in self.homes.names[self.name] for line in self.declaration(name)]
        self.imports |= {(self.name, f"{child} as {child}") for child in self.children()}
        is_root = self.name == "jaxgrad"
        aliases = [f"_{name} = {name}" for name in ALIASED] if is_root else []
        aliases += self.types.declared.values()
        return "\n".join([HEADER, *import_lines(self.imports), *aliases, *body, ""])

    def children(self):
        """The public modules inside this one that it holds as attributes."""
        inner = (m.rpartition(".") for m in MODULES)
        names = [name for package, _, name in inner if package == self.name]
        return [name for name in names if inspect.ismodule(getattr(self.module, name, None))]

    def declaration(self, name) -> list[str]:
        value, path = getattr(self.module, name), f"{self.name}.{name}"
        if inspect.ismodule(value):
            package, _, last = value.__name__.rpartition(".")
            self.imports.add((package, f"{last} as {name}"))
            return []
        if self.homes.of(name, value) != self.name:
            self.imports.add((self.homes.of(name, value), f"{name} as {name}"))
            return []
        if path in DECLARATIONS:
            return list(map(self.types.spelled, DECLARATIONS[path]))
        if hasattr(value, "operator"):
            return operator_lines(name, value, self.types)
        if inspect.isclass(value):
            return Class(self.name, name, value, self.types).lines()
        if inspect.isroutine(value):
            return Functions(self.types).lines(name, value, path)
        return [f"{name}: {self.types.text(type(value))}"]


def import_lines(imports) -> list[str]:
    modules: dict[str, list[str]] = {}
    for module, name in sorted(imports):
        modules.setdefault(module, []).append(f"    {name},\n")
    return [f"from {module} import (\n{''.join(names)})" for module, names in modules.items()]


def stubs() -> dict[Path, str]:
    """The text of every stub by its path in the folder of jaxgrad."""
    homes = Homes()
    return {path_of(name): Stub(name, homes).text() for name in MODULES}


def path_of(module: str) -> Path:
    """`jaxgrad.nn.init` -> nn/init.pyi"""
    source = Path(importlib.import_module(module).__file__)
    return source.relative_to(PACKAGE).with_suffix(".pyi")


def write(folder: Path) -> int:
    """Write the stubs into a folder of stubs of jaxgrad, remove those of modules that are gone, and
    return how many there are.
    """
    texts = stubs()
    for path in folder.rglob("*.pyi"):
        if path.relative_to(folder) not in texts:
            path.unlink()
    for path, text in texts.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return len(texts)
