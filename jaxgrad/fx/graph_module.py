"""Modules whose forward pass is a graph, as torch.fx.graph_module."""

from __future__ import annotations

import contextlib
import copy
import linecache
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ..late import LateModule
from ..names.not_provided import names_of
from ..nn.module import Module
from ..tape.tensor import Tensor
from . import _names
from ._module_attributes import _assign_attr as _assign_attr
from ._module_attributes import _copy_attr as _copy_attr
from ._module_attributes import _del_attr as _del_attr
from ._module_attributes import _get_attr as _get_attr
from ._module_attributes import _has_attr as _has_attr
from ._module_attributes import used_paths
from ._namespace import _custom_builtins
from .graph import Graph, PythonCode, _format_target, _PyTreeCodeGen

serialization = LateModule("jaxgrad.serialization")
symbolic_trace = LateModule("jaxgrad.fx._symbolic_trace")

__getattr__, __dir__ = names_of(__name__)

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
FX_GRAPH_MODULE_FILE_PREFIX = "fx_generated_"

# ---- running code


class _EvalCacheLoader:
    """Keeps the texts of generated functions, which tracebacks and `inspect` show."""

    def __init__(self):
        self.eval_cache: dict[str, str] = {}
        self.next_id = 0

    def cache(self, src: str, globals: dict[str, Any], co_fields=None) -> str:
        """Keep a text, and return the name of the file that it stands for."""
        key = f"<eval_with_key>.{self.next_id}"
        self.next_id += 1
        self.eval_cache[key] = src
        linecache.lazycache(key, {**globals, "__file__": key, "__name__": key, "__loader__": self})
        return key

    def get_source(self, module_name: str) -> str | None:
        """The text that stands for a file."""
        return self.eval_cache.get(module_name)


_loader = _EvalCacheLoader()


def _exec_with_source(src: str, globals: dict[str, Any], co_fields=None):
    key = _loader.cache(src, globals, co_fields)
    exec(compile(src, key, "exec"), globals)


def _method_from_src(method_name: str, src: str, globals: dict[str, Any], co_fields=None):
    """The function of a name that a text defines."""
    scope = globals.copy()
    _exec_with_source(src, scope, co_fields)
    return scope[method_name]


def _forward_from_src(src: str, globals: dict[str, Any], co_fields=None) -> Callable:
    return _method_from_src("forward", src, globals, co_fields)


# ---- modules from what was written


def _import_statement(name: str, value) -> str:
    """The line that makes a global name of code elsewhere."""
    path = _names.qualified_name(value) if callable(value) else _names.type_name(value)
    if path.startswith("torch."):
        return f"{name} = {path}"
    module, _, member = path.rpartition(".")
    if not module:
        return f"from builtins import {member} as {name}"
    return f"from {module} import {member} as {name}"


def _import_block(globals: dict[str, Any]) -> str:
    """The lines that make the global names of code, but for those that all graphs have."""
    names = sorted(name for name in globals if name not in _custom_builtins)
    return "\n".join(_import_statement(name, globals[name]) for name in names)


class _CodeOnlyModule(Module):
    """A module with attributes alone, whose forward pass is to be traced."""

    def __init__(self, body: dict[str, Any]):
        super().__init__()
        self.__dict__.update(body)


def reduce_graph_module(body: dict[Any, Any], import_block: str) -> Module:
    """Return the module of attributes and code that were written. import_block: the lines that
    the code needs before it.
    """
    source = body.get("_code") or body["code"]
    known = {name: builtin.obj for name, builtin in _custom_builtins.items()}
    forward = _forward_from_src(f"{import_block}\n{source}", known)
    return _deserialize_graph_module(forward, body)


def _deserialize_graph_module(forward: Callable, body: dict, graph_module_cls=None) -> Module:
    """The module of a function and attributes: the function is traced, submodules as leaves."""
    kind = type("CodeOnlyModule", (_CodeOnlyModule,), {"forward": forward})
    root = kind(body)
    tracer_cls = body.get("_tracer_cls") or symbolic_trace.Tracer

    class KeepModules(tracer_cls):
        def is_leaf_module(self, m, module_qualified_name):
            return True

    graph = KeepModules().trace(root, **(body.get("_tracer_extras") or {}))
    graph._tracer_cls = body.get("_tracer_cls")
    module = (graph_module_cls or GraphModule)(root, graph)
    for key, value in body.items():
        if not hasattr(module, key):
            setattr(module, key, value)
    return module


# ---- the class

HOOKS = ("_replace_hooks", "_create_node_hooks", "_erase_node_hooks", "_deepcopy_hooks")


def copied_body(module: Module, kind: type, memo: dict) -> Module:
    """A module of a class with deep copies of the attributes of another one, without hooks."""
    copied = kind.__new__(kind)
    memo[id(module)] = copied
    body = {name: value for name, value in module.__dict__.items() if name not in HOOKS}
    copied.__dict__.update(copy.deepcopy(body, memo))
    for name in HOOKS:
        object.__setattr__(copied, name, [])
    return copied


class GraphModule(Module):
    """A module whose forward pass is the code of a graph.

    root: a module, or a dict by names, from which it takes what the graph fetches and calls;
    class_name: the name of its class. After a change of `graph`, call `recompile()`.

    >>> gm = jaxgrad.fx.symbolic_trace(lambda x: x * 2)
    >>> print(gm.code.strip())
    def forward(self, x):
        mul = x * 2;  x = None
        return mul
    >>> gm(jaxgrad.ones(2))
    tensor([2., 2.])
    """

    def __new__(cls, *args, **kwargs):
        # a class of its own, since its forward method is its own
        bases = (base for base in cls.__mro__ if "GraphModuleImpl" not in base.__qualname__)
        base = next(bases)

        class GraphModuleImpl(base):
            pass

        return super().__new__(GraphModuleImpl)

    def __init__(
        self, root: Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule"
    ):
        super().__init__()
        type(self).__name__ = class_name
        paths = used_paths(graph)
        if isinstance(root, Module):
            self.training = getattr(root, "training", True)
            for path in paths:
                _copy_attr(root, self, path)
        elif isinstance(root, dict):
            for path in sorted(paths, key=lambda path: path.count(".")):
                if path not in root:
                    raise RuntimeError(
                        f"The graph uses {path!r}, which the root, a dict, does not have"
                    )
                _assign_attr(root[path], self, path)
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        self.graph = graph
        tracer_cls = graph._tracer_cls
        is_local = tracer_cls is not None and "<locals>" in tracer_cls.__qualname__
        self._tracer_cls = None if is_local else tracer_cls
        self._tracer_extras = graph._tracer_extras
        self.meta: dict[str, Any] = dict(getattr(root, "meta", None) or {})
        for name in HOOKS:
            object.__setattr__(self, name, [])

    @property
    def graph(self) -> Graph:
        """The graph. An assignment writes the code anew."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph):
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self._graph = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The code of the forward pass."""
        if not hasattr(self, "_code"):
            raise RuntimeError("the module has no code: call recompile()")
        return self._code

    def recompile(self) -> PythonCode:
        """Write the code of the graph, and run it from now on; return it.

        >>> gm = jaxgrad.fx.symbolic_trace(lambda x: x + 1)
        >>> gm.graph.find_nodes(op="call_function")[0].target = jaxgrad.mul
        >>> _ = gm.recompile()
        >>> gm(jaxgrad.full((2,), 3.0))
        tensor([3., 3.])
        """
        codegen = self._graph._codegen
        if isinstance(codegen, _PyTreeCodeGen) and codegen.pytree_info is not None:
            self._in_spec = codegen.pytree_info.in_spec
            self._out_spec = codegen.pytree_info.out_spec
        written = self._graph.python_code(root_module="self")
        self._code, self._lineno_map = written.src, written._lineno_map
        self._prologue_start = written._prologue_start
        type(self).forward = _forward_from_src(written.src, written.globals)
        return written

    def _recompile_submodules(self) -> list[tuple[str, PythonCode]]:
        inner = [(name, m) for name, m in self.named_modules() if isinstance(m, GraphModule)]
        return [(name, module.recompile()) for name, module in inner]

    # ---- submodules

    def add_submodule(self, target: str, m: Module) -> bool:
        """Add a submodule at a path, with empty modules on the way; say whether that is possible.

        >>> gm = jaxgrad.fx.symbolic_trace(lambda x: x)
        >>> gm.add_submodule("head.act", jaxgrad.nn.ReLU()), gm.head.act
        (True, ReLU())
        """
        *path, name = target.split(".")
        owner = self
        for step in path:
            if not hasattr(owner, step):
                setattr(owner, step, Module())
            owner = getattr(owner, step)
            if not isinstance(owner, Module):
                return False
        owner.add_module(name, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Remove the submodule at a path; say whether there was one.

        >>> gm = jaxgrad.fx.symbolic_trace(jaxgrad.nn.Sequential(jaxgrad.nn.ReLU()))
        >>> gm.delete_submodule("0"), gm.delete_submodule("0")
        (True, False)
        """
        owner_path, _, name = target.rpartition(".")
        try:
            owner = self.get_submodule(owner_path)
        except AttributeError:
            return False
        if not isinstance(getattr(owner, name, None), Module):
            return False
        delattr(owner, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Remove the submodules that the graph neither calls nor fetches from.

        >>> gm = jaxgrad.fx.symbolic_trace(jaxgrad.nn.Sequential(jaxgrad.nn.ReLU()))
        >>> gm.add_submodule("more", jaxgrad.nn.Tanh())
        True
        >>> gm.delete_all_unused_submodules()
        >>> [name for name, module in gm.named_children()]
        ['0']
        """
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op not in ("call_module", "get_attr"):
                continue
            steps = node.target.split(".")
            used |= {".".join(steps[: count + 1]) for count in range(len(steps))}
            with contextlib.suppress(AttributeError):
                inner = self.get_submodule(node.target)
                used |= {f"{node.target}.{name}" for name, _ in inner.named_modules() if name}
        for name in [name for name, _ in self.named_modules()]:
            if name and name not in used:
                self.delete_submodule(name)

    # ---- text

    def __str__(self) -> str:
        hint = "# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([super().__str__(), self.code, hint])

    def print_readable(
        self,
        print_output: bool = True,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        *,
        fast_sympy_print: bool = False,
        expanded_def: bool = False,
        additional_meta: list[str] | None = None,
    ) -> str:
        """Print the code as that of a class, with shapes and lines of the program as far as the
        nodes have them, and return it.

        print_output: print it; include_stride, include_device: show these of tensors; colored,
        fast_sympy_print: change nothing here.

        >>> _ = jaxgrad.fx.symbolic_trace(lambda x: x).print_readable()
        class <lambda>(torch.nn.Module):
            def forward(self, x):
                return x
        <BLANKLINE>
        """
        options = {
            "include_stride": include_stride,
            "include_device": include_device,
            "expanded_def": expanded_def,
            "additional_meta": additional_meta,
        }
        text = _readable(self, type(self).__name__, options)
        if print_output:
            print(text)
        return text

    # ---- copies

    def __copy__(self) -> GraphModule:
        copied = GraphModule(self, self.graph)
        copied.meta = dict(self.meta)
        return copied

    def __deepcopy__(self, memo) -> GraphModule:
        copied = copied_body(self, type(self), memo)
        type(copied).__name__ = "GraphModule"
        copied.graph = copied.__dict__["_graph"]
        for hook in self._deepcopy_hooks:
            hook(copied)
        return copied

    def __reduce__(self):
        left_out = ("_graph", *HOOKS)
        body = {name: value for name, value in self.__dict__.items() if name not in left_out}
        globals = self.graph.python_code(root_module="self").globals
        return reduce_graph_module, (body, _import_block(globals))

    def to_folder(self, folder: str | os.PathLike, module_name: str = "FxModule") -> None:
        """Write the module to a folder, from which Python imports it: its code, and its state.

        module_name: the name of the class. Raises TypeError for a submodule that no line of code
        makes again.

        >>> import tempfile, pathlib
        >>> gm = jaxgrad.fx.symbolic_trace(lambda x: x + 1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     gm.to_folder(folder, "Plus")
        ...     sorted(path.name for path in pathlib.Path(folder).iterdir())
        ['__init__.py', 'module.py', 'state_dict.pt']
        """
        folder = Path(folder)
        folder.mkdir(exist_ok=True)
        serialization.save(self.state_dict(), folder / "state_dict.pt")
        head = "\n".join(builtin.import_str for builtin in _custom_builtins.values())
        lines = [
            *("import torch", head, "", "from torch.nn import *"),
            f"class {module_name}(torch.nn.Module):",
            *("    def __init__(self):", "        super().__init__()"),
            *(f"        {line}" for line in _lines_of_members(self, "self")),
            f"        self.load_state_dict(torch.load(r'{folder}/state_dict.pt'))",
            _indented(self.code),
        ]
        (folder / "module.py").write_text("\n".join(lines) + "\n")
        (folder / "__init__.py").write_text("from .module import *")

    # ---- hooks of changes of the graph

    @contextlib.contextmanager
    def _set_replace_hook(self, f: Callable):
        self._replace_hooks.append(f)
        try:
            yield
        finally:
            self._replace_hooks.remove(f)

    def _register_create_node_hook(self, f: Callable):
        self._create_node_hooks.append(f)

    def _unregister_create_node_hook(self, f: Callable):
        self._create_node_hooks.remove(f)

    def _register_erase_node_hook(self, f: Callable):
        self._erase_node_hooks.append(f)

    def _unregister_erase_node_hook(self, f: Callable):
        self._erase_node_hooks.remove(f)

    def _register_replace_node_hook(self, f: Callable):
        self._replace_hooks.append(f)

    def _unregister_replace_node_hook(self, f: Callable):
        self._replace_hooks.remove(f)

    def _register_deepcopy_hook(self, f: Callable):
        self._deepcopy_hooks.append(f)

    def _unregister_deepcopy_hook(self, f: Callable):
        self._deepcopy_hooks.remove(f)


# modules whose text makes them again
_PLAIN = frozenset(
    (
        *("Linear", "Conv1d", "Conv2d", "Conv3d", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d"),
        *("ReLU", "Identity", "Sigmoid", "Tanh", "Dropout", "MaxPool2d", "AvgPool2d", "Flatten"),
    )
)


def _lines_of_members(module: Module, owner: str) -> Iterator[str]:
    """The lines that make the submodules and tensors of a module again, but for their values.

    owner: the expression of the module. Raises TypeError for a submodule whose text is no call that
    makes it.
    """
    for name, child in module.named_children():
        path = _format_target(owner, name)
        if type(child) is Module:
            yield f"setattr({owner}, {name!r}, torch.nn.Module())"
            yield from _lines_of_members(child, path)
        elif type(child).__name__ in _PLAIN and _names.is_own(type(child)):
            yield f"setattr({owner}, {name!r}, {child!r})"
        else:
            raise TypeError(
                f"to_folder(): no line of code makes {path}, of type {type(child).__name__}, "
                "again: save the state_dict(), or write the module by its own class"
            )
    for name, tensor in module._buffers.items():
        if tensor is not None:
            yield f"{owner}.register_buffer({name!r}, {_empty(tensor)})"
    for name, tensor in module._parameters.items():
        if tensor is not None:
            yield f"setattr({owner}, {name!r}, torch.nn.Parameter({_empty(tensor)}))"


def _empty(tensor: Tensor) -> str:
    return f"torch.empty({list(tensor.shape)}, dtype={tensor.dtype})"


def _readable(module: GraphModule, name: str, options: dict) -> str:
    """The readable code of a module and of the modules with graphs in it."""
    code = module._graph.python_code(root_module="self", verbose=True, **options)
    source = code.src.lstrip("\n")
    text = f"class {name}(torch.nn.Module):\n{_indented(source)}"
    inner = [text]
    for child, submodule in module.named_children():
        if hasattr(submodule, "_graph"):
            inner.append(_indented(_readable(submodule, child, options)))
    return "\n".join(inner)


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" if line.strip() else "" for line in text.split("\n"))
