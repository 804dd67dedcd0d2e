"""`Module`, the base class of layers and networks."""

from __future__ import annotations

import copy
import importlib
import sys
import warnings
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

from ..autograd.grad_mode import no_grad
from ..core import dtypes
from ..core.device import DeviceLike
from ..core.tracebacks import shows_users_frames, users_stacklevel
from ..frontend import factories
from ..frontend.memory_methods import show
from ..frontend.to import _target
from ..late import LateModule
from ..names.missing import missing_in
from ..storage.commit import clear_gradients
from ..tape.settings import process
from ..tape.tensor import Tensor, may_require_grad
from .module_call import ModuleCall, UncompiledCall
from .module_members import Members
from .parameter import Parameter, is_lazy
from .state import ModuleState

# imported late: few programs compile a module, or pickle one
torch_compile = LateModule("jaxgrad.compiled.torch_compile")
pickled_module = LateModule("jaxgrad.nn.pickled_module")
script_constants = LateModule("jaxgrad.nn.script_constants")
utils = LateModule("jaxgrad.utils")


_COMPLEX = (
    "Complex modules are a new feature under active development: not every layer computes with "
    "complex parameters"
)


class _Constants:
    """The attributes that TorchScript takes for constants, of layers that name some."""

    def __get__(self, module, owner):
        return script_constants.of(owner)


class Module(ModuleCall, ModuleState):
    """The base class of layers and networks: a function with parameters, buffers and submodules.

    A subclass calls `super().__init__()`, assigns its `Parameter`s and modules to attributes, and
    defines `forward`. A function compiled by `jaxgrad.jit` that calls the module is traced again
    after an attribute of it changed; `train()` and `eval()` switch between two programs.

    >>> class Scale(jaxgrad.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = jaxgrad.nn.Parameter(jaxgrad.tensor(2.0))
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> scale = Scale()
    >>> scale(jaxgrad.ones(2)).sum().backward()
    >>> scale.factor.grad
    tensor(2.)
    """

    training: bool
    dump_patches = False
    # whether `__init__` passes its arguments on to the base after Module
    call_super_init = False
    T_destination = TypeVar("T_destination", bound=dict)
    __constants__ = _Constants()

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        # PyTorch's are builtins, which do not bind: after `act = torch.relu`, self.act(x) works
        for name, value in [*vars(cls).items()]:
            if type(value) is FunctionType and _is_builtin(value):
                setattr(cls, name, staticmethod(value))

    def __init__(self, *args: Any, **kwargs: Any):
        if (args or kwargs) and not self.call_super_init:
            problem = (
                f"got an unexpected keyword argument {next(iter(kwargs))!r}"
                if kwargs
                else f"takes 1 positional argument but {len(args) + 1} were given"
            )
            raise TypeError(f"{type(self).__name__}.__init__() {problem}")
        super().__init__()
        if self.call_super_init:
            super(Members, self).__init__(*args, **kwargs)

    __setattr__ = Members._assign

    # ---- modes

    def train(self, mode: bool = True) -> Module:
        """Set `training` of this module and its descendants, which dropout and batch norm read.

        Returns the module. Raises ValueError unless `mode` is a bool.

        >>> jaxgrad.nn.Dropout().train(False).training
        False
        """
        if not isinstance(mode, bool):
            raise ValueError(f"training mode is expected to be boolean, not {mode!r}")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Module:
        """Call `train(False)` and return the module.

        >>> jaxgrad.nn.Dropout().eval().training
        False
        """
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Module:
        """Set `requires_grad` of all parameters and return the module.

        >>> jaxgrad.nn.Linear(1, 1).requires_grad_(False).weight.requires_grad
        False
        """
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def share_memory(self) -> Module:
        """Raise RuntimeError: processes cannot share XLA's arrays; `torch.multiprocessing` sends
        their values. A module without parameters and buffers is returned.
        """
        for tensor in (*self.parameters(), *self.buffers()):
            tensor.share_memory_()
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set `.grad` of all parameters to None, or with `set_to_none=False` fill it with zeros.

        >>> layer = jaxgrad.nn.Linear(1, 1)
        >>> layer(jaxgrad.ones(1)).backward()
        >>> layer.zero_grad()
        >>> layer.weight.grad is None
        True
        """
        if set_to_none:
            clear_gradients(self.parameters())
            return
        for parameter in self.parameters():
            gradient = parameter.grad
            if gradient is not None:
                with no_grad():
                    parameter.grad = gradient.detach().zero_()

    def apply(self, fn: Callable[[Module], None]) -> Module:
        """Call `fn` with each descendant and then with this module, and return the module.

        >>> seen = []
        >>> _ = jaxgrad.nn.Sequential(jaxgrad.nn.ReLU()).apply(lambda m: seen.append(type(m)))
        >>> [kind.__name__ for kind in seen]
        ['ReLU', 'Sequential']
        """
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def compile(self, **arguments: Any) -> None:
        """Compile the calls of this module, which stays the module that it is.

        arguments: those of `jaxgrad.compile`. A copy of the module is not compiled.

        >>> layer = jaxgrad.nn.Linear(2, 1)
        >>> layer.compile()
        >>> type(layer).__name__, layer(jaxgrad.ones(3, 2)).shape
        ('Linear', torch.Size([3, 1]))
        """
        arguments.setdefault("name", type(self).__name__)
        compiler = torch_compile.compiler(**arguments)
        self.__dict__["_compiled_call_impl"] = compiler(UncompiledCall(self))
        self._changes.count()

    # ---- dtypes and devices

    def _apply(self, fn, recurse: bool = True) -> Module:
        """Replace each parameter, its gradient and each buffer by `fn` of it."""
        for module in self.children() if recurse else ():
            module._apply(fn)
        for name, parameter in self._parameters.items():
            if parameter is not None:
                self._parameters[name] = _convert(parameter, fn)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = _converted(buffer, fn)
        self._changes.count()
        return self

    def to(self, *args: Any, **kwargs: Any) -> Module:
        """Convert floating-point parameters and buffers to a dtype, or move all to a device.

        `to(device)`, `to(dtype)`, `to(device, dtype)` or `to(tensor)`. memory_format: that of all
        parameters and buffers of 4 and 5 dimensions. Parameters keep their identity. Returns the
        module. Raises TypeError for an integer dtype.

        >>> jaxgrad.nn.Linear(1, 1).to(jaxgrad.float64).weight.dtype
        torch.float64
        """
        device, dtype, copies = _target(args, kwargs)
        if copies:
            raise RuntimeError(".to() does not accept copy argument: copy.deepcopy(module).to(...)")
        memory_format = kwargs.get("memory_format")
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                "nn.Module.to only accepts floating point or complex dtypes, but got desired "
                f"dtype={dtype}"
            )

        if dtype is not None and dtype.is_complex:
            warnings.warn(_COMPLEX, stacklevel=users_stacklevel())

        def converted(tensor):
            casts = dtype is not None and may_require_grad(tensor)
            layout = memory_format if tensor.ndim in (4, 5) else None
            return tensor.to(device, dtype if casts else tensor.dtype, memory_format=layout)

        return self._apply(converted)

    @shows_users_frames
    def to_empty(self, *, device: DeviceLike | None, recurse: bool = True) -> Module:
        """Move all parameters and buffers to a device without their values, and return the module.

        device: a device; None is the one where each of them is. recurse: also those of the
        descendants. Parameters keep their identity, and tensors that several modules share stay
        shared. Use it to give a module that was made on the device meta memory, before its values
        are loaded.

        >>> layer = jaxgrad.nn.Linear(2, 1, device="meta").to_empty(device="cpu")
        >>> layer.weight.device, layer.weight.shape
        (device(type='cpu'), torch.Size([1, 2]))
        """
        replacements: dict[int, tuple] = {}  # with each old tensor, so that none takes over its id

        def emptied(tensor):
            if id(tensor) not in replacements:
                replacements[id(tensor)] = tensor, factories.empty_like(tensor, device=device)
            return replacements[id(tensor)][1]

        return self._apply(emptied, recurse)

    def type(self, dst_type: dtypes.dtype | str) -> Module:
        """Convert all parameters and buffers to a dtype and return the module.

        >>> jaxgrad.nn.Linear(1, 1).type(jaxgrad.float64).weight.dtype
        torch.float64
        """
        return self._apply(lambda tensor: tensor.type(dst_type))

    def _cast(self, dtype) -> Module:
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def float(self) -> Module:
        """Convert floating-point parameters and buffers to float32 and return the module.

        >>> jaxgrad.nn.Linear(1, 1).half().float().weight.dtype
        torch.float32
        """
        return self._cast(dtypes.float32)

    def double(self) -> Module:
        """Convert floating-point parameters and buffers to float64 and return the module.

        >>> jaxgrad.nn.Linear(1, 1).double().weight.dtype
        torch.float64
        """
        return self._cast(dtypes.float64)

    def half(self) -> Module:
        """Convert floating-point parameters and buffers to float16 and return the module.

        >>> jaxgrad.nn.Linear(1, 1).half().weight.dtype
        torch.float16
        """
        return self._cast(dtypes.float16)

    def bfloat16(self) -> Module:
        """Convert floating-point parameters and buffers to bfloat16 and return the module.

        >>> jaxgrad.nn.Linear(1, 1).bfloat16().weight.dtype
        torch.bfloat16
        """
        return self._cast(dtypes.bfloat16)

    def cpu(self) -> Module:
        """Move all parameters and buffers to the CPU and return the module.

        >>> jaxgrad.nn.Linear(1, 1).cpu().weight.device.type
        'cpu'
        """
        return self._apply(lambda tensor: tensor.cpu())

    def cuda(self, device: DeviceLike | None = None) -> Module:
        """Move all parameters and buffers to a GPU, by default the current one, and return the
        module.
        """
        return self._apply(lambda tensor: tensor.cuda(device))

    def xpu(self, device: DeviceLike | None = None) -> Module:
        """Raise RuntimeError: JAX has no such device."""
        return self._apply(lambda tensor: tensor.xpu(device))

    def mtia(self, device: DeviceLike | None = None) -> Module:
        """Raise RuntimeError: JAX has no such device."""
        return self._apply(lambda tensor: tensor.mtia(device))

    def ipu(self, device: DeviceLike | None = None) -> Module:
        """Raise RuntimeError: JAX has no such device."""
        return self._apply(lambda tensor: tensor.ipu(device))

    # ---- by path

    def get_submodule(self, target: str) -> Module:
        """Return the submodule at a dotted path; the empty path is this module.

        Raises AttributeError if there is none.

        >>> jaxgrad.nn.Sequential(jaxgrad.nn.ReLU()).get_submodule("0")
        ReLU()
        """
        module = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Members):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put a module at a dotted path, in place of the one that is there.

        strict: raise AttributeError unless there is one. Raises ValueError for the empty path and
        for what is no module, AttributeError if the attribute there is no module.

        >>> network = jaxgrad.nn.Sequential(jaxgrad.nn.ReLU())
        >>> network.set_submodule("0", jaxgrad.nn.Tanh())
        >>> network
        Sequential(
          (0): Tanh()
        )
        """
        if not target:
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Members):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if not hasattr(parent, name):
            if strict:
                raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        elif not isinstance(getattr(parent, name), Members):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Tensor:
        """Return the parameter at a dotted path. Raises AttributeError if there is none.

        >>> jaxgrad.nn.Sequential(jaxgrad.nn.Linear(2, 1)).get_parameter("0.weight").shape
        torch.Size([1, 2])
        """
        return self._get(target, "_parameters", "is not an nn.Parameter")

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer at a dotted path. Raises AttributeError if there is none.

        >>> jaxgrad.nn.BatchNorm1d(2).get_buffer("running_mean")
        tensor([0., 0.])
        """
        return self._get(target, "_buffers", "is not a buffer")

    def _get(self, target, group, otherwise):
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
        if name not in getattr(module, group):
            raise AttributeError(f"`{name}` {otherwise}")
        return getattr(module, name)

    # ---- shown and copied

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """Return the text between the parentheses of `repr`; subclasses override it."""
        return ""

    def __repr__(self):
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        below = [f"({name}): {_indented(repr(module))}" for name, module in self._modules.items()]
        if not below and len(lines) <= 1:
            return f"{self._get_name()}({extra})"
        return _block(self._get_name(), lines + below)

    def _repr_html_(self):
        # imported late: few programs show modules in notebooks
        return importlib.import_module(f"{__package__}.module_html").of_module(self)

    def __getstate__(self):
        return pickled_module.pickled(self.__dict__)

    def __setstate__(self, state):
        pickled_module.restore(self, state)

    def __deepcopy__(self, memo):
        result = memo[id(self)] = object.__new__(type(self))
        state = _state(self)  # also of a class that refuses to be serialized
        result.__dict__.update({name: copy.deepcopy(value, memo) for name, value in state.items()})
        return result

    def _replicate_for_data_parallel(self) -> Module:
        """A copy without parameters that shares all else, as PyTorch makes one for each device."""
        replica = object.__new__(type(self))
        replica.__dict__.update(_state(self), _parameters={}, _is_replica=True)
        replica.__dict__.update(_buffers={**self._buffers}, _modules={**self._modules})
        return replica


def _state(module: Module) -> dict:
    """The attributes of a module, without its compiled form."""
    return {n: value for n, value in module.__dict__.items() if n != "_compiled_call_impl"}


def _converted(buffer: Tensor, fn) -> Tensor:
    if not is_lazy(buffer):
        return fn(buffer)
    _convert(buffer, fn)
    return buffer


def _convert(parameter: Tensor, fn) -> Tensor:
    """The parameter after `fn` has changed it, or another one in its place."""
    if is_lazy(parameter):
        parameter._with_type(lambda plain: _convert(plain, fn))
        return parameter
    with no_grad():
        result, gradient = fn(parameter), parameter.grad
        replaces = process.overwrites_parameters or process.swaps_parameters
        if replaces or result.layout is not parameter.layout:
            return _replacement(parameter, result, None if gradient is None else fn(gradient))
        if result is not parameter:
            show(parameter, result)
        if gradient is not None:
            parameter.grad = None
            result = fn(gradient)
            parameter.grad = result.requires_grad_(gradient.requires_grad)
    return parameter


def _replacement(parameter, result, gradient):
    """The parameter of a module in the place of one, by the settings of `torch.__future__`."""
    new = Parameter(result, parameter.requires_grad)
    if gradient is not None:
        new.grad = gradient.requires_grad_(parameter.grad.requires_grad)
    if not process.swaps_parameters:
        return new
    utils.swap_tensors(parameter, new)
    return parameter


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")


def _block(name: str, lines) -> str:
    """Return a name followed by indented lines in parentheses."""
    return f"{name}(\n  " + "\n  ".join(lines) + "\n)"


__getattr__ = missing_in(__name__)


def _is_builtin(function: FunctionType) -> bool:
    """Whether a function is one on tensors that users call by its name."""
    if not (function.__module__ or "").startswith(_PACKAGE):
        return False
    spaces = map(sys.modules.get, (_PACKAGE, *(f"{_PACKAGE}.{name}" for name in _FUNCTIONS)))
    return any(vars(space).get(function.__name__) is function for space in spaces if space)


_PACKAGE, _FUNCTIONS = __package__.partition(".")[0], ("nn.functional", "linalg", "fft", "special")
