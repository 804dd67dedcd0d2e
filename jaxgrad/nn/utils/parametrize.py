"""Parameters that are functions of other tensors, as torch.nn.utils.parametrize.

A parametrized tensor of a module is a property of a class of the module's own, which calls the
`ParametrizationList` in `module.parametrizations`. The tensors that it starts from are parameters
of that list.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from ...autograd.grad_mode import no_grad
from ...names.missing import missing_in
from ...tape import mode
from ...tape.tensor import Tensor
from ..containers import ModuleDict, ModuleList
from ..module import Module
from ..parameter import Parameter


class _Cache:
    """The tensors computed inside of `cached()`, by module and name."""

    def __init__(self):
        self.depth, self.tensors = 0, {}


# by the trace in which `cached()` was entered, None outside: a tensor of one trace has no value in
# another
_caches: dict = {}


@contextlib.contextmanager
def cached() -> Iterator[None]:
    """Compute each parametrized tensor once while the context is open, at its first use.

    In a function that `jaxgrad.jit` traces, a context that was opened outside has no effect.

    >>> from jaxgrad.nn.utils import parametrize
    >>> layer = jaxgrad.nn.utils.parametrizations.orthogonal(jaxgrad.nn.Linear(2, 2))
    >>> with parametrize.cached():
    ...     layer.weight is layer.weight
    True
    """
    scope = mode.scope.get()
    cache = _caches.setdefault(scope, _Cache())
    cache.depth += 1
    try:
        yield
    finally:
        cache.depth -= 1
        if not cache.depth:
            _caches.pop(scope, None)


def _check_same(before: Tensor, after, flag: str, names: tuple[str, str]):
    """Raise ValueError unless a parametrization keeps dtype and shape."""
    if not isinstance(after, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(after).__name__}.")
    for kind in ("dtype", "shape"):
        one, other = getattr(before, kind), getattr(after, kind)
        if one != other:
            raise ValueError(
                f"Registering a parametrization may not change the {kind} of the tensor, unless "
                f"{flag} flag is enabled.\n{names[0]}{kind}: {one}\n{names[1]}{kind}: {other}"
            )


def _register(module: Module, name: str, tensor: Tensor):
    """Make a tensor a parameter or a buffer of a module, by its type."""
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor; called, it returns the parametrized tensor.

    modules: the parametrizations, the first one is applied first. original: the tensor to
    parametrize. unsafe: leave out the checks of dtype and shape. The tensor that the first one is
    applied to is the parameter or buffer `original`; if its `right_inverse` returns several, they
    are `original0`, `original1` and so on. Raises ValueError for no modules, and for results of
    another type, dtype or shape.

    >>> layer = jaxgrad.nn.utils.parametrizations.weight_norm(jaxgrad.nn.Linear(2, 3))
    >>> [(name, tuple(x.shape)) for name, x in layer.parametrizations.weight.named_parameters()]
    [('original0', (3, 1)), ('original1', (3, 2))]
    """

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False):
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        new = self._first_originals(original)
        if not isinstance(new, Tensor | Sequence):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            self._keep_one(original, new)
        else:
            self._keep_several(original, new)
        if not unsafe:
            with no_grad():
                like = original.new_empty(shape, dtype=dtype)
            _check_same(like, self(), "`unsafe`", ("unparametrized ", "parametrized "))

    @no_grad()
    def _first_originals(self, value):
        for module in reversed(list(self)):
            if hasattr(module, "right_inverse"):
                with contextlib.suppress(NotImplementedError):
                    value = module.right_inverse(value)
        return value

    def _keep_one(self, original, new):
        for kind in ("dtype", "device"):
            one, other = getattr(original, kind), getattr(new, kind)
            if one != other:
                raise ValueError(
                    f"When `right_inverse` outputs one tensor, it may not change the {kind}.\n"
                    f"original.{kind}: {one}\nright_inverse(original).{kind}: {other}"
                )
        with no_grad():
            original.set_(new)
        _register(self, "original", original)

    def _keep_several(self, original, new):
        for position, tensor in enumerate(new):
            if not isinstance(tensor, Tensor):
                raise ValueError(
                    "'right_inverse' must return a Tensor or a Sequence of tensors (list, "
                    f"tuple...). Got element {position} of the sequence with type "
                    f"{type(tensor).__name__}."
                )
            if isinstance(original, Parameter):
                tensor = Parameter(tensor, original.requires_grad)
            tensor.requires_grad_(original.requires_grad)
            _register(self, f"original{position}", tensor)

    @property
    def _originals(self) -> list[Tensor]:
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{position}") for position in range(self.ntensors)]

    def right_inverse(self, value: Tensor) -> None:
        """Set the original tensors so that the parametrized tensor is `value`, where it can be.

        Calls `right_inverse` of the parametrizations, the last one first. Raises RuntimeError for
        one that has none, ValueError for results of another type, number or dtype.

        >>> layer = jaxgrad.nn.utils.parametrizations.weight_norm(jaxgrad.nn.Linear(1, 1))
        >>> layer.parametrizations.weight.right_inverse(jaxgrad.tensor([[3.0]]))
        >>> layer.weight.tolist()
        [[3.0]]
        """
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse."
                    )
                value = module.right_inverse(value)
            for original, tensor in zip(self._originals, self._checked(value), strict=True):
                original.set_(tensor)

    def _checked(self, value) -> list[Tensor]:
        """Return what a `right_inverse` returned as a list, of the number and dtypes of before."""
        if self.is_tensor:
            if not isinstance(value, Tensor):
                raise ValueError(
                    f"`right_inverse` should return a tensor. Got {type(value).__name__}"
                )
            if value.dtype != self.original.dtype:
                raise ValueError(
                    f"The tensor returned by `right_inverse` has dtype {value.dtype} while "
                    f"`original` has dtype {self.original.dtype}"
                )
            return [value]
        what = "'right_inverse' must return a sequence of tensors"
        if not isinstance(value, Sequence):
            raise ValueError(f"{what}. Got {type(value).__name__}.")
        if len(value) != self.ntensors:
            raise ValueError(
                f"{what} of length {self.ntensors}. Got a sequence of length {len(value)}."
            )
        for position, (tensor, original) in enumerate(zip(value, self._originals, strict=True)):
            if not isinstance(tensor, Tensor):
                raise ValueError(f"{what}. Got element {position} of type {type(tensor).__name__}")
            if tensor.dtype != original.dtype:
                raise ValueError(
                    f"Tensor {position} returned by `right_inverse` has dtype {tensor.dtype} while "
                    f"`original{position}` has dtype {original.dtype}"
                )
        return list(value)

    def forward(self) -> Tensor:
        first, *others = self
        result = first(*self._originals)
        for module in others:
            result = module(result)
        return result


# ---- the class of a parametrized module


def _refuse_to_serialize(self):
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict(). Save that, "
        "and load it into a module with the same parametrizations"
    )


def _deepcopy(self, memo):
    """Copy a parametrized module; the copy gets a class of its own."""
    copy = super(type(self), self).__deepcopy__(memo)
    names = [*copy.parametrizations]
    copy.__class__ = _parametrized_class(type_before_parametrizations(self))
    for name in names:
        _add_property(type(copy), name)
    return copy


def _parametrized_class(base: type) -> type:
    members = {"__getstate__": _refuse_to_serialize, "__deepcopy__": _deepcopy}
    return type(f"Parametrized{base.__name__}", (base,), members)


def _add_property(kind: type, name: str):
    """Give a class a property that computes a parametrized tensor, and is set by its inverse."""

    def get(self):
        parametrization = self.parametrizations[name]
        cache = _caches.get(mode.scope.get()) if _caches else None
        if cache is None:
            return parametrization()
        if (self, name) not in cache.tensors:
            cache.tensors[self, name] = parametrization()
        return cache.tensors[self, name]

    def set_(self, value):
        self.parametrizations[name].right_inverse(value)

    setattr(kind, name, property(get, set_))


# ---- functions on modules


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Make a parameter or buffer of a module the result of `parametrization`, and return the
    module.

    `module.<tensor_name>` is then computed at each use; it may be assigned if the parametrization
    has a method `right_inverse`, which is also applied to the value of now. A second one is applied
    to the result of the first. The original tensor is `module.parametrizations.<tensor_name>.
    original`, or `original0`, `original1`, ... if `right_inverse` returns several. unsafe: allow it
    to change dtype or shape. Raises ValueError for a name that the module does not have, and unless
    `unsafe` if the parametrization changes dtype or shape.

    >>> class Symmetric(jaxgrad.nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).transpose(-1, -2)
    >>> layer = jaxgrad.nn.Linear(3, 3)
    >>> layer = jaxgrad.nn.utils.parametrize.register_parametrization(layer, "weight", Symmetric())
    >>> bool((layer.weight == layer.weight.T).all()), list(layer.state_dict())
    (True, ['bias', 'parametrizations.weight.original'])
    """
    if not isinstance(parametrization, Module):
        raise AttributeError(
            f"'{type(parametrization).__name__}' object has no attribute 'train': a "
            "parametrization is a Module; call a function in the forward of one"
        )
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_further(module, tensor_name, parametrization)
        module.parametrizations[tensor_name].append(parametrization)
        module.parametrizations[tensor_name].unsafe |= unsafe
        return module
    if tensor_name not in module._buffers and tensor_name not in module._parameters:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element "
            f"with name '{tensor_name}'"
        )
    original = getattr(module, tensor_name)
    parametrizations = ParametrizationList([parametrization], original, unsafe=unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        module.__class__ = _parametrized_class(type(module))
        module.parametrizations = ModuleDict()
    _add_property(type(module), tensor_name)
    module.parametrizations[tensor_name] = parametrizations
    return module


def _check_further(module, tensor_name, parametrization):
    """Raise ValueError if a further parametrization of a tensor changes its dtype or shape."""
    before = getattr(module, tensor_name)
    after = parametrization(before)
    path = f"module.{tensor_name}"
    names = f"{path}.", f"parametrization({path})."
    _check_same(before, after, "the `unsafe`", names)
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        inverse = parametrization.right_inverse(after)
    except NotImplementedError:
        return
    if not isinstance(inverse, Tensor):
        raise ValueError(
            f"parametrization.right_inverse must return a tensor. Got: {type(inverse).__name__}"
        )
    for kind in ("dtype", "shape"):
        one, other = getattr(before, kind), getattr(inverse, kind)
        if one != other:
            raise ValueError(
                f"The tensor returned by parametrization.right_inverse must have the same {kind} "
                f"as {path}, unless the `unsafe` flag is enabled.\n{path}.{kind}: {one}\n"
                f"returned {kind}: {other}"
            )


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Return whether a module has a parametrization, or one of the tensor of that name.

    >>> layer = jaxgrad.nn.utils.parametrizations.weight_norm(jaxgrad.nn.Linear(1, 1))
    >>> is_parametrized = jaxgrad.nn.utils.parametrize.is_parametrized
    >>> is_parametrized(layer), is_parametrized(layer, "bias")
    (True, False)
    """
    parametrizations = getattr(module, "parametrizations", None)
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Remove the parametrizations of a tensor, make it a parameter or buffer, return the module.

    leave_parametrized: the tensor keeps its value; otherwise it is the original one. Raises
    ValueError if it is not parametrized, or there are several originals to leave.

    >>> layer = jaxgrad.nn.utils.parametrizations.weight_norm(jaxgrad.nn.Linear(1, 1))
    >>> layer = jaxgrad.nn.utils.parametrize.remove_parametrizations(layer, "weight")
    >>> list(layer.state_dict())
    ['bias', 'weight']
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parametrization = module.parametrizations[tensor_name]
    if parametrization.is_tensor:
        original = parametrization.original
        if leave_parametrized:
            with no_grad():
                original.set_(getattr(module, tensor_name))
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
            "parametrized in terms of a sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """Return the class of a module without its parametrizations.

    >>> layer = jaxgrad.nn.utils.parametrizations.weight_norm(jaxgrad.nn.Linear(1, 1))
    >>> type(layer).__name__
    'ParametrizedLinear'
    >>> jaxgrad.nn.utils.parametrize.type_before_parametrizations(layer).__name__
    'Linear'
    """
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Give a module the parametrizations of another, with their original tensors, and return it.

    tensor_name: transfer those of that tensor alone. A tensor that `to_module` lacks is created.

    >>> one, other = jaxgrad.nn.Linear(2, 2), jaxgrad.nn.Linear(2, 2)
    >>> one = jaxgrad.nn.utils.parametrizations.orthogonal(one)
    >>> other = jaxgrad.nn.utils.parametrize.transfer_parametrizations_and_params(one, other)
    >>> bool((one.weight == other.weight).all())
    True
    """
    if not is_parametrized(from_module):
        return to_module
    names = [*from_module.parametrizations] if tensor_name is None else [tensor_name]
    for name in names:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        source = from_module.parametrizations[name]
        for parametrization in source:
            register_parametrization(to_module, name, parametrization)
        taken = to_module.parametrizations[name]
        if source.is_tensor:
            taken.original = source.original
            continue
        for position in range(source.ntensors):
            setattr(taken, f"original{position}", getattr(source, f"original{position}"))
    return to_module


__getattr__ = missing_in(__name__)
