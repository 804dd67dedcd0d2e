"""What a recorder puts in place of functions of the library before the script begins."""

from __future__ import annotations

import functools
import importlib
import inspect

from .places import place_of_call
from .recorder import SPACES, TRANSFORMS, Recorder
from .values import replace


def install(recorder: Recorder):
    """Let a recorder see the calls of modules, optimizers, loaders, compiled functions, and of the
    functions in SPACES.
    """
    torch = recorder.torch
    wrap_modules(recorder, torch)
    wrap_optimizers(recorder)
    loader = importlib.import_module("torch.utils.data").DataLoader
    begin = loader.__iter__
    loader.__iter__ = lambda self: Batches(recorder, begin(self), self.num_workers)
    for space in SPACES:
        module = importlib.import_module(f"torch.{space}")
        for name in names_of_functions(module):
            setattr(module, name, wrapped(recorder, name, getattr(module, name)))
    wrap_distributions(recorder)
    wrap_schedulers(recorder)
    wrap_compile(recorder)
    wrap_transforms(recorder)


def wrap_modules(recorder, torch):
    kind, original = torch.nn.Module, torch.nn.Module.__call__

    def call(self, *args, **kwargs):
        return recorder.module_call(original, self, *args, **kwargs)

    kind.__call__ = call
    recorder.boundaries.add(call.__code__)
    members = importlib.import_module("torch.nn.modules.module")
    members.register_module_parameter_registration_hook(recorder.register_parameter)
    members.register_module_buffer_registration_hook(recorder.register_parameter)


def wrap_optimizers(recorder):
    module = importlib.import_module("torch.optim.optimizer")
    module.register_optimizer_step_post_hook(recorder.after_step)
    begin = module.Optimizer.__init__

    @functools.wraps(begin)
    def init(self, *args, **kwargs):
        begin(self, *args, **kwargs)
        recorder.note_options(self, type(self).__name__, place_of_call()[0])

    module.Optimizer.__init__ = init


def wrapped(recorder, name, original):
    @functools.wraps(original)
    def call(*args, **kwargs):
        return recorder.boundary_call(name, original, *args, **kwargs)

    recorder.boundaries.add(call.__code__)
    return call


def names_of_functions(module):
    names = getattr(module, "__all__", None) or dir(module)
    public = [name for name in names if not name.startswith("_")]
    return [name for name in public if inspect.isfunction(getattr(module, name, None))]


def wrap_distributions(recorder):
    space = importlib.import_module("torch.distributions")
    kinds = {value for value in vars(space).values() if inspect.isclass(value)}
    for kind in kinds:
        if not issubclass(kind, space.Distribution):
            continue
        for name, method in list(vars(kind).items()):
            if inspect.isfunction(method) and not name.startswith("_") and name != "expand":
                setattr(kind, name, wrapped(recorder, f"{kind.__name__}.{name}", method))


def wrap_schedulers(recorder):
    space = importlib.import_module("torch.optim.lr_scheduler")
    kinds = [value for value in vars(space).values() if inspect.isclass(value)]
    for kind in kinds:
        if "step" in vars(kind) and kind.__module__.partition(".")[0] in ("torch", "jaxgrad"):
            kind.step = after(kind.step, functools.partial(note_rates, recorder))


def after(original, note):
    @functools.wraps(original)
    def step(self, *args, **kwargs):
        result = original(self, *args, **kwargs)
        note(self)
        return result

    return step


def note_rates(recorder, scheduler):
    """Record the learning rates that a scheduler has set, at the function of the user that says
    them, else where it was called.
    """
    place, _ = place_of_call()
    optimizer = getattr(scheduler, "optimizer", None)
    if optimizer is None:
        return
    functions = [*getattr(scheduler, "lr_lambdas", ()), getattr(type(scheduler), "get_lr", None)]
    codes = [function.__code__ for function in functions if hasattr(function, "__code__")]
    users = [code for code in codes if "torch" not in code.co_filename.split("/")]
    if len(functions) > 1 and users:
        place = users[0].co_filename, users[0].co_firstlineno, users[0].co_name
    recorder.note_options(optimizer, type(scheduler).__name__, place)


def wrap_compile(recorder):
    """Let calls of compiled functions be recorded as wholes."""
    torch = recorder.torch
    original = torch.compile

    @functools.wraps(original)
    def compile(model=None, **options):
        if model is None:
            return lambda function: compile(function, **options)
        result = original(model, **options)
        if isinstance(result, torch.nn.Module):
            recorder.compiled.add(result)
            return result

        @functools.wraps(model)
        def call(*args, **kwargs):
            if recorder.is_paused or not recorder.log.is_of_this_process():
                return result(*args, **kwargs)
            return recorder.compiled_call(call, result, args, kwargs)

        return call

    replace("compile", compile)


def wrap_transforms(recorder):
    """Let calls of transformed functions be recorded: inside of them tensors have no numbers."""
    space = importlib.import_module("torch.func")
    for name in TRANSFORMS:
        transform = transforming(recorder, name, getattr(space, name))
        setattr(space, name, transform)
        if name == "vmap":
            replace(name, transform)


def transforming(recorder, name, original):
    @functools.wraps(original)
    def transform(*args, **kwargs):
        return wrapped(recorder, name, original(*args, **kwargs))

    return transform


class Batches:
    """The iterator of a DataLoader with so many workers, whose batches are recorded."""

    def __init__(self, recorder, batches, workers):
        self.recorder, self.batches, self.workers = recorder, batches, workers

    def __iter__(self):
        return self

    def __next__(self):
        values = next(self.batches)
        self.recorder.batch(values, place_of_call()[0], self.workers)
        return values

    def __len__(self):
        return len(self.batches)

    def __getattr__(self, name):
        return getattr(self.batches, name)
