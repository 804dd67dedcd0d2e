"""The recorder: a mode that sees the calls of functions, and hooks of modules and optimizers."""

from __future__ import annotations

import contextlib
import functools
import weakref

from .doubling import Doubling, SharedDraws
from .log import Log
from .places import LIBRARIES, place_of_call
from .summary import small_elements
from .values import is_inplace, name_of, plain, settings_of, tensors_in

SKIPPED = {
    *("__get__", "data", "register_hook", "detach", "requires_grad_", "retain_grad", "from_numpy"),
    *("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty"),  # hold any numbers
}
SPACES = ("nn.init", "nn.utils", "nn.utils.rnn", "distributions.kl")
# functions of `torch.func` that give functions
TRANSFORMS = ("grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "vmap")


class Recorder:
    """Records a run.

    torch: the library that runs. log: where records go. options: `modules`, whether only modules
    are recorded; `every`, of how many training steps one is; `double`, whether the script runs in
    double precision; `checkpoint`, a file whose state the first module with its keys gets.
    """

    def __init__(self, torch, log: Log, options: dict):
        self.torch, self.log, self.options = torch, log, options
        self.step, self.depth, self.is_paused = 0, 0, False
        self.noted = 0  # the last step at whose begin parameters were recorded
        self.silent, self.boundaries = set(SKIPPED), set()
        self.roots: list = []  # weak references to the outermost modules that were called
        self.paths = weakref.WeakKeyDictionary()  # of modules
        self.compiled = weakref.WeakSet()  # modules that are compiled
        self.under_way = None  # the name and place of the compiled function that runs
        self.stepping: set = set()  # of compiled functions with an optimizer's step
        self.lines: dict = {}  # where parameters were registered, by their id
        self.options_of = weakref.WeakKeyDictionary()  # the options of optimizers
        self.doubling = None
        if options.get("double"):
            draws = options.get("draws")
            is_first = options["library"] == "torch"
            self.doubling = Doubling(torch, SharedDraws(draws, is_first) if draws else None)
        self.state = options.get("checkpoint") and state_in(torch, options["checkpoint"])
        kind = torch.overrides.TorchFunctionMode
        handler = {"__torch_function__": lambda _, *call: self.call(*call)}
        self.mode = type("Recording", (kind,), handler)()

    def is_active(self) -> bool:
        """Whether calls are recorded at present."""
        if self.is_paused or not self.log.is_of_this_process():
            return False
        return self.is_recorded_step()

    @contextlib.contextmanager
    def pause(self):
        before, self.is_paused = self.is_paused, True
        try:
            yield
        finally:
            self.is_paused = before

    def tensors(self, *values) -> list:
        return tensors_in(values, self.torch.Tensor)

    # ---- calls of functions

    def call(self, function, types, args=(), kwargs=None):
        """The `__torch_function__` of the mode."""
        kwargs, name = kwargs or {}, name_of(function)
        if name == "backward":
            return self.backward(function, args, kwargs)
        if name in self.silent or self.options.get("modules") or not self.is_active():
            return self.run(function, args, kwargs)
        with self.pause():
            place, is_direct = place_of_call(self.boundaries)
            inputs = self.log.digests(self.tensors(args, kwargs)) if is_direct else []
            result = self.run(function, args, kwargs)
            outputs = self.tensors(args[:1] if is_inplace(name) else result)
            if not outputs:
                self.silent.add(name)
            elif is_direct:
                settings = settings_of(args, kwargs)
                self.write("call", name, place, inputs, outputs, settings=settings)
            return result

    def run(self, function, args, kwargs):
        if self.doubling is None:
            return function(*args, **kwargs)
        return self.doubling.call(function, args, kwargs)

    def write(self, kind, name, place, inputs, outputs, **fields):
        """Write the record of a call, and let the gradients of its results be recorded."""
        fields.update(name=name, place=place, inputs=inputs, step=self.step)
        fields["outputs"] = self.log.digests(outputs)
        fields["shapes"] = [[str(t.dtype).rpartition(".")[2], *t.shape] for t in outputs]
        number = self.log.write(kind, **fields)
        for position, tensor in enumerate(outputs):
            if takes_hooks(tensor) and fields["outputs"][position]:
                hook = functools.partial(self.note_gradient, number, position)
                with contextlib.suppress(Exception):  # of tensors that take no hooks
                    tensor.register_hook(hook)

    def note_gradient(self, number, position, gradient):
        with self.pause():
            digest = self.log.digest(gradient)
            self.log.write("gradient", of=number, position=position, outputs=[digest])

    def backward(self, function, args, kwargs):
        result = self.run(function, args, kwargs)
        if not self.is_paused and self.log.is_of_this_process():
            with self.pause():
                place, _ = place_of_call()
                self.note_loss(args[0] if args else next(iter(kwargs.values())), place)
                if self.is_recorded_step():
                    self.note_parameters("parameter gradient", place, lambda p: p.grad)
        return result

    def is_recorded_step(self) -> bool:
        return self.step % self.options.get("every", 1) == 0

    def note_loss(self, loss, place):
        losses = [t for t in self.tensors(loss) if t.numel() == 1]
        if losses:
            value = float(losses[0].detach().reshape(()))
            digest = self.log.digest(losses[0])
            fields = {"value": value, "place": place, "step": self.step}
            self.log.write("loss", name="loss", inputs=[digest], outputs=[digest], **fields)

    # ---- modules and parameters

    def module_call(self, original, module, *args, **kwargs):
        """A call of a module, whose result is recorded."""
        if self.is_paused or not self.log.is_of_this_process():
            return original(module, *args, **kwargs)
        place, _ = place_of_call()
        if self.depth == 0:
            self.meet(module, place)
            self.note_unrecorded_updates(place)
        if module in self.compiled:
            return self.compiled_call(module, original, (module, *args), kwargs)
        inputs = self.inputs_of(module, args, kwargs) if self.is_active() else None
        self.depth += 1
        try:
            result = original(module, *args, **kwargs)
        finally:
            self.depth -= 1
        outputs = self.tensors(result)
        if inputs is not None and outputs:
            with self.pause():
                path = self.paths.get(module, "")
                name = type(module).__name__
                fields = {"path": path, "settings": {"": module.extra_repr()}}
                self.write("module", name, place, inputs, outputs, **fields)
        return result

    def inputs_of(self, module, args, kwargs):
        """The hashes of the inputs of a module; for one of the library, of its parameters too."""
        with self.pause():
            tensors = self.tensors(args, kwargs)
            if type(module).forward.__module__.partition(".")[0] in LIBRARIES:
                tensors += module.parameters()
            return self.log.digests(tensors)

    def meet(self, module, place):
        """Note a module that is called from outside of modules, and its parameters, once."""
        module = uncompiled(module)
        if any(root() is module for root in self.roots):
            return
        with self.pause():
            self.load(module)
            self.roots.append(weakref.ref(module))
            for path, part in module.named_modules():
                self.paths.setdefault(part, f"{type(module).__name__}.{path}".strip("."))
            self.note_parameters("initial parameter", place, lambda p: p, [module])

    def note_unrecorded_updates(self, place):
        """Record the parameters that steps have changed which are not recorded, once a step."""
        if self.step != self.noted and self.is_active():
            if self.options.get("every", 1) > 1:
                with self.pause():
                    self.note_parameters("updated parameter", place, lambda p: p)
            self.noted = self.step

    def load(self, module):
        if self.state and set(self.state) == set(module.state_dict()):
            module.load_state_dict(self.state)
            self.log.write("loaded", name=type(module).__name__)
            self.state = None

    def note_parameters(self, kind, place, value_of, modules=None):
        """Write a record for each parameter, or for what belongs to it."""
        if modules is None:
            modules = filter(None, (root() for root in self.roots))
        for module in modules:
            for path, parameter in module.named_parameters():
                value = value_of(parameter)
                if value is not None:
                    line = self.lines.get(id(parameter)) if kind.startswith("initial") else None
                    self.note_parameter(
                        kind, f"{type(module).__name__}.{path}", line or place, value
                    )

    def note_parameter(self, kind, name, place, value, **fields):
        fields |= {"name": name, "place": place, "step": self.step}
        if kind == "parameter gradient":
            fields["small"] = small_elements(value)
        self.log.write(kind, outputs=[self.log.digest(value)], **fields)

    def register_parameter(self, module, name, parameter):
        """The hook of all registrations of parameters and buffers."""
        if parameter is None:
            return None
        if self.doubling is not None:
            parameter = self.doubling.parameter(parameter)
        place, _ = place_of_call()
        self.lines[id(parameter)] = place
        return parameter

    # ---- optimizers, loaders and compiled functions

    def after_step(self, optimizer, args, kwargs):
        if self.under_way:
            self.stepping.add(self.under_way)
        if self.is_paused or not self.log.is_of_this_process():
            return
        place, _ = place_of_call()
        self.note_options(optimizer, type(optimizer).__name__, place)
        with self.pause():
            if self.is_recorded_step():
                names = self.names_of_parameters()
                parameters = [(p, g) for g in optimizer.param_groups for p in g["params"]]
                for position, (parameter, group) in enumerate(parameters):
                    title = names.get(id(parameter), f"parameter {position}")
                    rate = number(group.get("lr", 0.0))
                    self.note_parameter("updated parameter", title, place, parameter, rate=rate)
        self.step += 1
        self.log.write("step", step=self.step)

    def note_options(self, optimizer, name, place):
        """Record the learning rates and other options of an optimizer where they have changed."""
        if self.is_paused or not self.log.is_of_this_process():
            return
        with self.pause():
            groups = [
                {key: number(value) for key, value in group.items() if key != "params"}
                for group in optimizer.param_groups
            ]
        options = {
            f"{key} of group {position}" if position else key: plain(value)
            for position, group in enumerate(groups)
            for key, value in group.items()
            if plain(value) is not None
        }
        if self.options_of.get(optimizer) != options:
            self.options_of[optimizer] = options
            fields = {"place": place, "step": self.step}
            self.log.write("options", name=name, settings=options, **fields)

    def names_of_parameters(self) -> dict:
        modules = [module for module in (root() for root in self.roots) if module is not None]
        return {
            id(parameter): f"{type(module).__name__}.{path}"
            for module in modules
            for path, parameter in module.named_parameters()
        }

    def boundary_call(self, name, original, *args, **kwargs):
        """A call of a function of the library that is written in Python: its result is recorded,
        and not what it calls.
        """
        place, is_direct = place_of_call(self.boundaries)
        is_recorded = is_direct and self.is_active() and not self.options.get("modules")
        inputs = None
        if is_recorded:
            with self.pause():
                inputs = self.log.digests(self.tensors(args, kwargs))
        result = original(*args, **kwargs)
        outputs = self.tensors(result)
        if inputs is not None and outputs:
            with self.pause():
                self.write("call", name, place, inputs, outputs)
        return result

    def compiled_call(self, function, original, args, kwargs):
        """A call of a compiled function: its inputs and results, and nothing of what it does. It is
        a training step if an optimizer steps in it, at its first call at least.
        """
        place, _ = place_of_call()
        function = uncompiled(function)
        name = getattr(function, "__name__", type(function).__name__)
        is_recorded = self.is_active()
        with self.pause():
            inputs = self.log.digests(self.tensors(args, kwargs)) if is_recorded else []
            self.mode.__exit__(None, None, None)
            self.under_way = name, place
            try:
                result = original(*args, **kwargs)
            finally:
                self.under_way = None
                self.mode.__enter__()
            outputs = self.tensors(result)
            if is_recorded:
                self.write("compiled", name, place, inputs, outputs)
            scalars = [tensor for tensor in outputs if tensor.numel() == 1]
            if scalars:
                value = float(scalars[0].detach().reshape(()))
                self.log.write("result", value=value, place=place, step=self.step)
            if (name, place) in self.stepping:
                self.step += 1
                self.log.write("step", step=self.step)
        return result

    def batch(self, values, place, workers):
        if self.is_active():
            with self.pause():
                outputs = self.tensors(values)
                self.write("batch", "DataLoader", place, [], outputs, workers=workers)


def takes_hooks(tensor) -> bool:
    try:
        return tensor.requires_grad and not tensor.is_leaf
    except RuntimeError:  # of a view that PyTorch will not differentiate
        return False


def uncompiled(module):
    """A module, without that which `torch.compile` puts around it."""
    return getattr(module, "_orig_mod", module)


def number(value):
    """A value; the number in a tensor that has one element."""
    is_tensor = hasattr(value, "numel") and value.numel() == 1
    return float(value) if is_tensor else value


def state_in(torch, path: str) -> dict:
    """The state of a module in a file, itself or below one of the usual keys."""
    state = torch.load(path, map_location="cpu", weights_only=True)
    for key in ("model_state_dict", "state_dict", "model", "module"):
        if isinstance(state, dict) and isinstance(state.get(key), dict):
            return state[key]
    return state
