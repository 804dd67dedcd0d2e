"""The times of training steps and the memory of the process, without records."""

from __future__ import annotations

import functools
import importlib
import os
import time

from .values import replace

PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def resident_bytes() -> int | None:
    """The memory that the process has at present, in bytes; None where the system does not say."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * PAGE
    except OSError:
        return None


class Clock:
    """Writes a record after each step of an optimizer, backward pass and call of a compiled
    function.
    """

    def __init__(self, torch, log):
        self.torch, self.log = torch, log

    def tick(self, kind: str):
        if self.log.is_of_this_process():
            memory = resident_bytes()
            self.log.write("tick", of=kind, time=time.perf_counter(), memory=memory)

    def install(self):
        self.tick("begin")
        optimizer = importlib.import_module("torch.optim.optimizer")
        optimizer.register_optimizer_step_post_hook(lambda *_: self.tick("step"))
        self.torch.Tensor.backward = self.ticking(self.torch.Tensor.backward, "backward")
        original = self.torch.compile

        @functools.wraps(original)
        def compile(model=None, **options):
            if model is None:
                return lambda function: compile(function, **options)
            result = original(model, **options)
            is_module = isinstance(result, self.torch.nn.Module)
            return result if is_module else self.ticking(result, "compiled")

        replace("compile", compile)

    def ticking(self, function, kind):
        @functools.wraps(function)
        def call(*args, **kwargs):
            result = function(*args, **kwargs)
            self.tick(kind)
            return result

        return call
