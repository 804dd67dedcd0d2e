"""Modules of `torch.jit` in files."""

from __future__ import annotations

import os

from ..export._files import read_program, write_program
from ..export._program_module import Runner
from ..nn.module import Module
from ._classes import RecursiveScriptModule


class LoadedModule(Runner, RecursiveScriptModule):
    """A module that runs the program of a file."""

    def __init__(self, program, description):
        super().__init__(program._call, program._signature, program._tensors)
        self._exported = program
        self.original_name = description.get("name", "Module")

    def train(self, mode: bool = True):
        """Set `training`, which changes nothing: a program is that of one mode."""
        return Module.train(self, mode)

    def save(self, f, _extra_files=None, **kwargs):
        """Write the program to a file, with the present parameters and buffers."""
        files = _extra_files or kwargs.get("extra_files")
        write_program(self._exported, f, files, name=self.original_name, kind="jit")

    @property
    def graph(self) -> str:
        """The program as text, in StableHLO."""
        return self._exported.stablehlo()

    inlined_graph = graph

    @property
    def code(self) -> str:
        """The calls of the module as code of Python; "" where there is none."""
        return self._exported.graph_text()

    def extra_repr(self) -> str:
        """The name of the class that was saved."""
        return f"original_name={self.original_name}"

    def _get_name(self):
        return "RecursiveScriptModule"


def loaded(f, map_location, extra_files) -> LoadedModule:
    """The module in a file."""
    if isinstance(f, str | os.PathLike) and not os.path.exists(f):
        raise ValueError(f"The provided filename {f} does not exist")
    program, description, extra = read_program(f, map_location)
    if extra_files:
        extra_files |= {name: data for name, data in extra.items() if name in extra_files}
    return LoadedModule(program, description)
