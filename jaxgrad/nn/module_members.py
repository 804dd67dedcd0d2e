"""The parameters, buffers and submodules of a module."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.pytorch_tensors import type_name
from ..tape import interception, mode
from ..tape.noted_reads import noted_read
from ..tape.tensor import Tensor, kind_of
from .module_hooks import VALUE, Changes, ModuleRead, of_all, replaced
from .parameter import Buffer, Parameter, TransientBuffer

HOOKS = "_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks"


def note(module):
    """Add guards on `module` to the trace that is in progress.

    The traced program serves again while the attributes of the module are those at the end of the
    trace, and `training` is what it is now.
    """
    scope = mode.scope.get()
    if scope is not None and "_changes" in module.__dict__:  # else it is being made, as by `copy`
        scope.objects.guard(module, VALUE)
        scope.objects.guard(of_all, VALUE)
        scope.objects.guard_attribute(module, "training")


class Members:
    """The attributes of a module, sorted into parameters, buffers, submodules and others."""

    # reported to a trace by `note`, not observed
    _reported = frozenset(
        (
            "training",
            "_changes",
            "_parameters",
            "_buffers",
            "_modules",
            "_non_persistent_buffers_set",
            *HOOKS,
        )
    )
    _report = note  # where other code reads them

    _read_guard = ModuleRead

    @property
    def _replayed(self) -> list[dict]:
        """The submodules and hooks, which a replay of a traced function must find as they were."""
        attributes = self.__dict__
        return [attributes["_modules"], *[attributes[name] for name in HOOKS]]

    def __init__(self):
        attributes = self.__dict__
        attributes["training"], attributes["_changes"] = True, Changes()
        attributes["_parameters"], attributes["_buffers"], attributes["_modules"] = {}, {}, {}
        attributes["_non_persistent_buffers_set"] = set()

    # ---- by attribute

    def __getattr__(self, name: str):
        for group in ("_parameters", "_buffers", "_modules"):
            members = self.__dict__.get(group)
            if members is not None and name in members:
                if interception.read is not None:
                    note(self)
                return members[name]
        if interception.read is not None:
            note(self)  # it may be set later
        raise AttributeError(_no_attribute(self, name), name=name, obj=self)

    def _assign(self, name: str, value):
        """The work of `Module.__setattr__`."""
        members, kind = self.__dict__, _group_for(value)
        taken = _group_of(members, name)
        group = taken if kind is None else kind
        if group is None:
            Members.__setattr__(self, name, value)
        elif "_modules" not in members:
            raise AttributeError(_BEFORE_INIT.format(_GROUPS[group]))
        elif kind is None or _RANK.index(kind) > _RANK.index(taken or kind):
            self._replace(taken, name, value)
        else:
            self._release_name(name, kind)
            self._add(kind, name, value)

    def __setattr__(self, name: str, value):
        """Set an attribute that is no member, whatever it is. Packages call it for a module that
        is to be none, by `super(Module, self).__setattr__`: PyTorch's Module has no other base.
        """
        before = self.__dict__.get(name, self)
        object.__setattr__(self, name, value)
        changes, scope = self.__dict__.get("_changes"), mode.scope.get()
        if name == "training" and scope is not None:
            scope.objects.record_set(self, name, before)
        if changes is None or before is value or _is_same_word(before, value):
            return
        # An assignment made by `forward` under a trace is not a change by the user.
        if name != "training" and (scope is None or isinstance(value, Tensor)):
            changes.count()

    def _replace(self, group, name, value):
        """Assign a value of another kind to a member: None, or a tensor to a buffer."""
        if value is None or (group == "_buffers" and isinstance(value, Tensor)):
            if group != "_parameters":
                hooks = of_all.buffers if group == "_buffers" else of_all.modules
                value = replaced(hooks, self, name, value)
            self.__dict__[group][name] = value
            self._changes.count()
            return
        if group == "_parameters":
            raise TypeError(
                f"cannot assign '{_type_of(value)}' as parameter '{name}' (torch.nn.Parameter or "
                f"None expected){_OF_TENSOR if isinstance(value, Tensor) else ''}"
            )
        if group == "_modules":
            raise TypeError(
                f"cannot assign '{_type_of(value)}' as child module '{name}' (torch.nn.Module or "
                "None expected)"
            )
        raise TypeError(
            f"cannot assign '{_type_of(value)}' as buffer '{name}' (torch.nn.Buffer, torch.Tensor "
            "or None expected)"
        )

    def _add(self, group, name, value):
        if group == "_parameters":
            self.register_parameter(name, value)
        elif group == "_buffers":
            # a subclass may have a register_buffer of its own, without `persistent`
            persistent = kind_of(value) is not TransientBuffer
            self.register_buffer(name, value, *() if persistent else (False,))
        else:
            self._modules[name] = replaced(of_all.modules, self, name, value)
            self._changes.count()

    def _release_name(self, name, besides):
        """Remove a name from all groups but `besides`."""
        if besides != "_buffers":  # register_buffer raises for the name of another attribute
            self.__dict__.pop(name, None)
        for group in _GROUPS:
            if group != besides:
                self.__dict__[group].pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def __delattr__(self, name: str):
        group = _group_of(self.__dict__, name)
        if group is None:
            object.__delattr__(self, name)
        else:
            del self.__dict__[group][name]
            self._non_persistent_buffers_set.discard(name)
        self._changes.count()

    def __dir__(self):
        members = (*self._parameters, *self._buffers, *self._modules)
        names = {*object.__dir__(self), *members}
        return sorted(name for name in names if not name[0].isdigit())

    # ---- by name

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter under `name`; None reserves the name.

        Raises KeyError for a name that is taken, empty or has a dot, TypeError for another type,
        ValueError for a tensor with a `grad_fn`, AttributeError before `Module.__init__()`.

        >>> module = jaxgrad.nn.Module()
        >>> module.register_parameter("scale", jaxgrad.nn.Parameter(jaxgrad.ones(1)))
        >>> module.scale
        Parameter containing:
        tensor([1.], requires_grad=True)
        """
        if "_parameters" not in self.__dict__:
            raise AttributeError(_BEFORE_INIT.format("parameter"))
        self._check_name("parameter", name, self._parameters)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{_type_of(param)}' object to parameter '{name}' "
                "(torch.nn.Parameter or None required)"
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be "
                f"created explicitly: compute '{name}' in forward()."
            )
        if param is not None and of_all.parameters:
            param = replaced(of_all.parameters, self, name, param)
            if not isinstance(param, Parameter):
                raise TypeError(f"a registration hook replaced parameter '{name}' by no parameter")
        self._parameters[name] = param
        self._changes.count()

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a buffer under `name`: state that is not a parameter; None reserves the name.

        persistent: part of `state_dict()`. Errors are those of `register_parameter`.

        >>> module = jaxgrad.nn.Module()
        >>> module.register_buffer("steps", jaxgrad.zeros(()))
        >>> [name for name, buffer in module.named_buffers()]
        ['steps']
        """
        if "_buffers" not in self.__dict__:
            raise AttributeError(_BEFORE_INIT.format("buffer"))
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{_type_of(tensor)}' object to buffer '{name}' (torch Tensor or "
                "None required)"
            )
        self._buffers[name] = replaced(of_all.buffers, self, name, tensor)
        self._non_persistent_buffers_set.discard(name)
        if not persistent:
            self._non_persistent_buffers_set.add(name)
        self._changes.count()

    def add_module(self, name: str, module: Members | None) -> None:
        """Add a submodule under `name`. Errors are those of `register_parameter`.

        >>> module = jaxgrad.nn.Module()
        >>> module.add_module("head", jaxgrad.nn.Linear(2, 1))
        >>> module.head
        Linear(in_features=2, out_features=1, bias=True)
        """
        if module is not None and not isinstance(module, Members):
            raise TypeError(f"{_type_of(module)} is not a Module subclass{_hint(module)}")
        self._check_name("module", name, self._modules)
        self._modules[name] = replaced(of_all.modules, self, name, module)
        self._changes.count()

    def register_module(self, name: str, module: Members | None) -> None:
        """Call `add_module`.

        >>> module = jaxgrad.nn.Module()
        >>> module.register_module("head", jaxgrad.nn.ReLU())
        >>> module.head
        ReLU()
        """
        self.add_module(name, module)

    def _check_name(self, what, name, members):
        if not isinstance(name, str):
            raise TypeError(f"{what} name should be a string. Got {_type_of(name)}")
        if hasattr(self, name) and name not in members:
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'{what} name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError(f'{what} name can\'t be empty string ""')

    # ---- all of them

    def named_modules(
        self, memo: set | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Members]]:
        """Yield this module and its descendants with their dotted paths.

        memo: modules to leave out. remove_duplicate: yield a module with several paths once.

        >>> [name for name, _ in jaxgrad.nn.Sequential(jaxgrad.nn.ReLU()).named_modules()]
        ['', '0']
        """
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        note(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                below = f"{prefix}{'.' if prefix else ''}{name}"
                yield from module.named_modules(memo, below, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Members]:
        """Yield this module and its descendants.

        >>> list(jaxgrad.nn.Sequential(jaxgrad.nn.ReLU()).modules())[1]
        ReLU()
        """
        return (module for _, module in self.named_modules(remove_duplicate=remove_duplicate))

    def named_children(self) -> Iterator[tuple[str, Members]]:
        """Yield the direct submodules with their names, each once.

        >>> list(jaxgrad.nn.Sequential(jaxgrad.nn.ReLU()).named_children())
        [('0', ReLU())]
        """
        note(self)
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Members]:
        """Yield the direct submodules, each once.

        >>> list(jaxgrad.nn.Sequential(jaxgrad.nn.ReLU()).children())
        [ReLU()]
        """
        return (module for _, module in self.named_children())

    def _named_members(
        self, get_members_fn, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ):
        """Yield the tensors that `get_members_fn` lists for each module, with their paths."""
        seen = set()
        inside = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        note(self)
        for path, module in inside if recurse else [(prefix, self)]:
            for name, member in get_members_fn(module):
                if member is None or id(member) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(member))
                yield f"{path}{'.' if path else ''}{name}", member

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Yield the parameters of this module, and if `recurse` of its descendants, with dotted
        paths.

        remove_duplicate: yield a parameter with several paths once. prefix: precedes each path.

        >>> [name for name, _ in jaxgrad.nn.Linear(1, 2).named_parameters()]
        ['weight', 'bias']
        """
        return self._named_members(_parameters_of, prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yield the parameters of this module, and if `recurse` of its descendants.

        >>> [tuple(each.shape) for each in jaxgrad.nn.Linear(1, 2).parameters()]
        [(2, 1), (2,)]
        """
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield the buffers of this module, and if `recurse` of its descendants, with dotted paths.

        >>> [name for name, _ in jaxgrad.nn.BatchNorm1d(2).named_buffers()]
        ['running_mean', 'running_var', 'num_batches_tracked']
        """
        return self._named_members(_buffers_of, prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yield the buffers of this module, and if `recurse` of its descendants.

        >>> [tuple(each.shape) for each in jaxgrad.nn.BatchNorm1d(2).buffers()]
        [(2,), (2,), ()]
        """
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))


def _parameters_of(module):
    return module._parameters.items()


def _buffers_of(module):
    return module._buffers.items()


_BEFORE_INIT = "cannot assign {} before Module.__init__() call: call super().__init__() first"


def _no_attribute(module, name: str) -> str:
    text = f"{type(module).__name__!r} object has no attribute {name!r}"
    if name in ("device", "dtype"):
        return f"{text}: its parameters have one, as in next(module.parameters()).{name}"
    # as of DataParallel, DistributedDataParallel and AveragedModel
    inner = (module.__dict__.get("_modules") or {}).get("module")
    if inner is None:
        return text
    is_inside = hasattr(type(inner), name) or any(
        name in vars(inner).get(group, ()) for group in _GROUPS
    )
    return f"{text}: it is one of .module" if is_inside else text


def _hint(module) -> str:
    """What to do with what is given in place of a module: a list, a class, a function."""
    if isinstance(module, type) and issubclass(module, Members):
        return f": call the class, {module.__name__}(...), to make a layer"
    if isinstance(module, list | tuple):
        return ": pass its modules one by one, as in nn.Sequential(*modules)"
    return ": take the layer, nn.ReLU() in place of relu" if callable(module) else ""


_OF_TENSOR = ": wrap it in nn.Parameter, or write its values by copy_ under no_grad()"
_GROUPS = {"_parameters": "parameters", "_modules": "module", "_buffers": "buffer"}

# A name in one group may not be reassigned to a later group.
_RANK = tuple(_GROUPS)


def _group_for(value) -> str | None:
    """Return the group of members that a value belongs to, or None."""
    if isinstance(value, Members):
        return "_modules"
    if not isinstance(value, Tensor):
        return None
    kind = noted_read(value, kind_of)
    if kind is None:
        return "_parameters" if isinstance(value, Parameter) else None
    return "_buffers" if issubclass(kind, Buffer) else "_parameters"


def _group_of(members, name) -> str | None:
    """Return the group of members that holds `name`, or None."""
    for group in _GROUPS:
        if name in members.get(group, ()):
            return group
    return None


def _is_same_word(one, other) -> bool:
    """Return whether two values are the same number or string."""
    alike = type(one) is type(other) and type(one) in (int, float, str)
    return alike and repr(one) == repr(other)  # 0.0 is not -0.0


def _type_of(value) -> str:
    return value.type() if isinstance(value, Tensor) else type_name(value)
