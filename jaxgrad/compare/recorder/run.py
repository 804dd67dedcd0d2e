"""Runs and records a script, under PyTorch or jaxgrad: a process of `jaxgrad compare`."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import json
import os
import random
import runpy
import sys
import traceback

import numpy as np

from .hooks import install
from .log import Log
from .places import place_of_error
from .recorder import Recorder
from .timing import Clock, resident_bytes


def main(settings: str):
    """Run a script by settings, a JSON text: `library`, `script`, `arguments`, `log`, `seed`,
    `times` and the options of the recorder.
    """
    options = json.loads(settings)
    provide(options["library"])
    torch = importlib.import_module("torch")
    log = Log(options["log"])
    version = importlib.import_module(options["library"]).__version__
    log.write("start", version=version, memory=resident_bytes())
    seed(torch, options["seed"])
    if options.get("times"):
        Clock(torch, log).install()
        finish(log, run(options))
        return
    recorder = Recorder(torch, log, options)
    install(recorder)
    with recorder.mode:
        end = run(options)
    recorder.is_paused = True
    finish(log, end)


def provide(library: str):
    """Let both `import torch` and `import jaxgrad` give one library."""
    if library == "jaxgrad":
        importlib.import_module("jaxgrad.compat").install()
    else:
        sys.meta_path.insert(0, OtherName())


class OtherName(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds jaxgrad and its modules in PyTorch."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname.partition(".")[0] == "jaxgrad":
            return importlib.util.spec_from_loader(fullname, self)
        return None

    def create_module(self, spec):
        module = importlib.import_module(spec.name.replace("jaxgrad", "torch", 1))
        self.spec = module.__spec__
        return module

    def exec_module(self, module):
        module.__spec__ = self.spec


def seed(torch, number: int):
    random.seed(number)
    np.random.seed(number)
    torch.manual_seed(number)


def run(options: dict) -> dict:
    """Run the script, and return how it ended: `error`, its type, text, place and traceback, or
    `status`, its exit status.
    """
    path = os.path.abspath(options["script"])
    sys.argv = [options["script"], *options["arguments"]]
    sys.path.insert(0, os.path.dirname(path))
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as end:
        return {
            "error": None,
            "status": end.code if isinstance(end.code, int) else int(bool(end.code)),
        }
    except Exception as error:
        text = "".join(traceback.format_exception(error)[-1:]).strip()
        kind = type(error).__name__
        return {"error": {"type": kind, "text": text, "place": place_of_error(error)}, "status": 1}
    return {"error": None, "status": 0}


def finish(log, end: dict):
    log.write("end", memory=resident_bytes(), **end)
    log.close()
