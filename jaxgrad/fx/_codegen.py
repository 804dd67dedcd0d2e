"""The code of graphs: functions whose lines are the nodes."""

from __future__ import annotations

import enum
import re
import types
import typing
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..core.device import device
from ..tape.tensor import Tensor
from ..utils import _pytree as pytree
from . import _names
from ._annotations import comment_of, shown_type
from ._namespace import _custom_builtins
from .node import Node, base_types

_BINARY = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "floordiv": "//",
    "truediv": "/",
    "div": "/",
    "mod": "%",
    "pow": "**",
    "lshift": "<<",
    "rshift": ">>",
    "and_": "&",
    "or_": "|",
    "xor": "^",
    "matmul": "@",
}
reflectable_magic_methods = {name: f"{{}} {sign} {{}}" for name, sign in _BINARY.items()}
reflectable_magic_methods["getitem"] = "{}[{}]"

_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "gt": ">", "le": "<=", "ge": ">="}
magic_methods = {name: f"{{}} {sign} {{}}" for name, sign in _COMPARISONS.items()}
magic_methods |= {"pos": "+{}", "neg": "-{}", "invert": "~{}"} | reflectable_magic_methods

inplace_methods = {
    f"i{name.removesuffix('_')}": f"{{}} {sign}= {{}}"
    for name, sign in _BINARY.items()
    if name != "div"
} | {"setitem": "{}[{}] = {}"}


@dataclass
class PythonCode:
    """The text of a function and the global names that it needs. _lineno_map: by the line of the
    text the number of the node; _prologue_start: the first line of the head.
    """

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None = None
    _prologue_start: int = 0


class _PyTreeInfo(NamedTuple):
    """What a function with containers as arguments takes and returns: the names of its arguments,
    and the structures of arguments and result.
    """

    orig_args: list[str]
    in_spec: Any
    out_spec: Any


def _format_target(base: str, target: str) -> str:
    """The expression of an attribute of an attribute: `self.features.weight`."""
    expression = base
    for name in target.split("."):
        if name.isidentifier():
            expression = f"{expression}.{name}"
        else:
            expression = f'getattr({expression}, "{name}")'
    return expression


def _is_from_torch(value) -> bool:
    """Whether code names a value after `torch`."""
    if getattr(value, "__module__", None) is not None:
        return _names.is_own(value)
    return _names.public_name(value) is not None


class CodeGen:
    """Writes the code of a graph. Subclasses change the head, the arguments and the result."""

    _func_name = "forward"

    def __init__(self):
        self._body_transformer = None

    def gen_fn_def(
        self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False
    ) -> str:
        """Return the line with the name and the arguments of the function.

        free_vars: the arguments; `self` comes first where it is not among them.

        >>> from jaxgrad.fx.graph import CodeGen
        >>> CodeGen().gen_fn_def(["x", "y = 1"], "")
        'def forward(self, x, y = 1):'
        """
        names = free_vars if "self" in free_vars[:1] else ["self", *free_vars]
        if expanded_def:
            shown = f"\n    {', '.join(names[:1])},\n" if names else ""
            shown += "".join(f"    {name},\n" for name in names[1:])
            return f"def {self._func_name}({shown}){maybe_return_annotation}:"
        return f"def {self._func_name}({', '.join(names)}){maybe_return_annotation}:"

    def generate_output(self, output_args, *, descs=None, repr_fn=None) -> str:
        """Return the line that returns the result. repr_fn: the text of a value."""
        return f"return {repr_fn(output_args) if repr_fn else repr(output_args)}"

    def process_inputs(self, *args):
        """Return the values of the placeholders for the arguments of a call."""
        return args

    def process_outputs(self, outputs):
        """Return the result of a call for the value of the output."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Return further names that the code needs, with their values."""
        return []

    def _gen_python_code(self, nodes, root_module: str, namespace, **options) -> PythonCode:
        return Writer(self, nodes, root_module, namespace, **options).code()


class _PyTreeCodeGen(CodeGen):
    """Writes code of a function that takes containers of placeholders and returns one."""

    def __init__(self, pytree_info: _PyTreeInfo):
        super().__init__()
        self.pytree_info = pytree_info

    def process_inputs(self, *inputs):
        """Return the leaves of the arguments."""
        return pytree.arg_tree_leaves(*inputs)

    def process_outputs(self, out):
        """Return the leaves of the output as a tree of the structure of the result."""
        if self.pytree_info is None or self.pytree_info.out_spec is None:
            return out
        leaves = out if isinstance(out, list | tuple) else [out]
        return pytree.tree_unflatten(leaves, self.pytree_info.out_spec)

    def gen_fn_def(self, free_vars, maybe_return_annotation, *, expanded_def=False) -> str:
        """Return the head of the function, and the line that takes the arguments apart."""
        if self.pytree_info is None:
            return super().gen_fn_def(free_vars, maybe_return_annotation, expanded_def=expanded_def)
        names = list(self.pytree_info.orig_args)
        if not names or names[0] != "self":
            names.insert(0, "self")
        head = super().gen_fn_def(names, maybe_return_annotation, expanded_def=expanded_def)
        if not free_vars:
            return head
        leaves = [text.split(":")[0].split("=")[0].strip() for text in free_vars]
        kinds = [text for text in free_vars if ":" in text]
        typed = "".join(f"\n    {text}" for text in kinds)
        return f"{head}{typed}\n    {', '.join(leaves)}, = {self._flattening(names[1:])}"

    def _flattening(self, names: list[str]) -> str:
        spec = self.pytree_info.in_spec
        is_pair = spec.type is tuple and spec.num_children == 2
        args, kwargs = spec.children() if is_pair else (spec, None)
        if is_pair and args.type is tuple and kwargs.type is dict:
            count = args.num_children
            by_name = ", ".join(f"'{name}':{name}" for name in names[count:])
            shown = f"([{', '.join(names[:count])}], {{{by_name}}})"
        else:
            shown = f"[{', '.join(names)}]"
        return f"fx_pytree.tree_flatten_spec({shown}, self._in_spec)"

    def generate_output(self, output_args, *, descs=None, repr_fn=None) -> str:
        """Return the line that returns the leaves of the result in its structure."""
        shown = repr_fn(output_args) if repr_fn else repr(output_args)
        if self.pytree_info is None or not self.pytree_info.out_spec:
            return f"return {shown}"
        if not isinstance(output_args, list | tuple):
            return f"return pytree.tree_unflatten({shown}, self._out_spec)"
        return f"return pytree.tree_unflatten({shown}, self._out_spec)"


class Writer:
    """One writing of the code of a graph."""

    def __init__(
        self,
        codegen: CodeGen,
        nodes,
        root: str,
        namespace,
        *,
        verbose=False,
        include_stride=False,
        include_device=False,
        colored=False,
        expanded_def=False,
        record_func=False,
        additional_meta=None,
    ):
        self.codegen, self.nodes, self.root, self.namespace = codegen, list(nodes), root, namespace
        self.verbose, self.expanded = verbose, expanded_def
        self.shows = {"stride": include_stride, "device": include_device}
        self.additional_meta = additional_meta or ()
        self.body, self.globals, self.wrapped = [], {}, {}
        self.free, self.returned = [], ""
        self.dying = self._last_uses()
        self.comment = None

    def _last_uses(self) -> dict[Node, list[Node]]:
        """By a node those that no later node needs."""
        last, dying = {}, defaultdict(list)
        for user in reversed(self.nodes):
            for node in user._input_nodes:
                if node not in last:
                    last[node] = user
                    dying[user].append(node)
        return dying

    # ---- names

    def name_global(self, hint: str, value) -> str:
        """The expression of a global value: `torch.relu`, or a name that is set in the globals."""
        if _is_from_torch(value) and value is not device and not _names.method_name(value):
            return _names.qualified_name(value)
        name = self.namespace.create_name(hint.replace(".", "_"), value)
        self.globals.setdefault(name, value)
        return name

    def name_type(self, annotation) -> str:
        """The expression of an annotation."""
        if annotation == ():
            return "()"
        name = _names.type_name(annotation)
        origin = typing.get_origin(annotation)
        if origin is not None:
            if origin is typing.Union or origin is types.UnionType:
                base = self.name_global("typing.Union", typing.Union)
            elif isinstance(annotation, types.GenericAlias):
                base = self.name_global(origin.__name__, origin)
            else:
                base = self.name_global(
                    f"typing.{annotation._name}", getattr(typing, annotation._name)
                )
            inner = [self.name_type(kind) for kind in typing.get_args(annotation)]
            return f"{base}[{','.join(inner)}]" if inner else base
        return self.name_global(name, annotation)

    # ---- values

    def text(self, value) -> str:
        """The expression of an argument."""
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            name = self.name_global(_names.type_name(type(value)), type(value))
            return f"{name}{self.text(tuple(value))}"
        if isinstance(value, Node):
            return repr(value)
        if isinstance(value, list):
            return f"[{', '.join(map(self.text, value))}]"
        if isinstance(value, tuple):
            return f"({', '.join(map(self.text, value))}{',' if len(value) == 1 else ''})"
        if isinstance(value, slice):
            parts = map(self.text, (value.start, value.stop, value.step))
            return f"slice({', '.join(parts)})"
        if isinstance(value, dict):
            return f"{{{', '.join(f'{key!r}: {self.text(item)}' for key, item in value.items())}}}"
        if isinstance(value, enum.Enum):
            name = self.name_global(_names.type_name(type(value)), type(value))
            return f"{name}.{value.name}"
        if isinstance(value, Tensor):
            size = list(value.size())
            return f"Tensor(size={size}, dtype={value.dtype})"
        is_function = callable(value) and hasattr(value, "__name__")
        if is_function and not isinstance(value, base_types):
            return self.name_global(_names.qualified_name(value), value)
        return repr(value)

    def arguments(self, args: tuple, kwargs: dict) -> str:
        """The text between the brackets of a call."""
        shown = [self.text(value) for value in args]
        return ", ".join(shown + [f"{name} = {self.text(value)}" for name, value in kwargs.items()])

    # ---- lines

    def emit(self, node: Node):
        """Add the line of a node to the body, but for how it ends."""
        kind = "" if node.type is None else f" : {self.name_type(node.type)}"
        if self.verbose and (shown := shown_type(node, **self.shows)):
            kind = f': "{shown}"'
        getattr(self, f"_emit_{node.op}")(node, kind)

    def _emit_placeholder(self, node, kind):
        default = f" = {self.text(node.args[0])}" if node.args else ""
        self.free.append(f"{node.target}{kind}{default}")
        name = node.target.replace("*", "")
        if name != repr(node):
            self.body.append(f"{node!r} = {name}\n")

    def _emit_get_attr(self, node, kind):
        self.body.append(f"{node!r}{kind} = {_format_target(self.root, node.target)}")

    def _emit_call_method(self, node, kind):
        callee = _format_target(self.text(node.args[0]), node.target)
        arguments = self.arguments(node.args[1:], node.kwargs)
        self.body.append(f"{node!r}{kind} = {callee}({arguments})")

    def _emit_call_module(self, node, kind):
        callee = _format_target(self.root, node.target)
        self.body.append(f"{node!r}{kind} = {callee}({self.arguments(node.args, node.kwargs)})")

    def _emit_call_function(self, node, kind):
        name = getattr(node.target, "__name__", "")
        args = node.args
        if getattr(node.target, "__module__", None) == "_operator" and not node.kwargs:
            if name in magic_methods and _fills(magic_methods[name], args):
                expression = magic_methods[name].format(*map(self.text, args))
                self.body.append(f"{node!r}{kind} = {expression}")
                return
            if name in inplace_methods and _fills(inplace_methods[name], args):
                statement = inplace_methods[name].format(*map(self.text, args))
                self.body.append(f"{statement};  {node!r}{kind} = {self.text(args[0])}")
                return
        callee = _names.qualified_name(node.target)
        is_attribute = callee == "getattr" and len(args) == 2 and isinstance(args[1], str)
        if is_attribute and args[1].isidentifier():
            self.body.append(f"{node!r}{kind} = {_format_target(self.text(args[0]), args[1])}")
            return
        shown = self.name_global(callee, node.target)
        if node.meta.get("is_wrapped"):
            self.wrapped[shown] = None
        self.body.append(f"{node!r}{kind} = {shown}({self.arguments(args, node.kwargs)})")

    def _emit_output(self, node, kind):
        if node.type is not None:
            self.returned = f" -> {self.name_type(node.type)}"
        self.body.append(self.codegen.generate_output(node.args[0], repr_fn=self.text))

    def end(self, user: Node):
        """End the line of a node: names that no later line needs are released."""
        if user.op == "placeholder":
            return
        if user.op == "output":
            self.body.append("\n")
            return
        dead = [*self.dying.get(user, ()), *([] if user.users else [user])]
        released = " = ".join([*map(repr, dead), "None"])
        self.body.append(f";  {released}\n" if dead else "\n")

    def _note_comment(self, node: Node):
        """Add a comment on where the next lines come from, if that changes."""
        if not self.verbose or node.op in ("placeholder", "output"):
            return
        comment = comment_of(node, self.additional_meta)
        if comment != self.comment:
            self.comment = comment
            self.body.append(f"\n# {comment}\n" if comment else "\n")

    # ---- the whole

    def code(self) -> PythonCode:
        """The code of all nodes."""
        for name, builtin in _custom_builtins.items():
            self.globals[name] = builtin.obj
        starts = {}
        for position, node in enumerate(self.nodes):
            self._note_comment(node)
            starts[len(self.body)] = position
            self.emit(node)
            self.end(node)
        if not self.body:
            self.body.append("pass\n")
        if self.codegen._body_transformer:
            self.body = self.codegen._body_transformer(self.body)
        return self._assembled(starts)

    def _assembled(self, starts: dict[int, int]) -> PythonCode:
        wraps = "\n".join(f'{_WRAP}("{name}")' for name in self.wrapped)
        for name, value in self.codegen.additional_globals():
            self.name_global(name, value)
        head = self.codegen.gen_fn_def(self.free, self.returned, expanded_def=self.expanded)
        lines = "\n".join(f"    {line}" for line in _lines(self.body))
        text = f"\n{wraps}\n\n{head}\n{lines}"
        numbers, line = {}, 0
        for index, piece in enumerate(self.body):
            if index in starts:
                numbers[line + 1] = starts[index]
            line += piece.count("\n")
        first = len(wraps.split("\n")) + 3
        return PythonCode(text, self.globals, numbers, _prologue_start=first)


_WRAP = "torch.fx._symbolic_trace.wrap"


def _lines(body: list[str]) -> list[str]:
    return "".join(body).lstrip("\n").split("\n")


def _fills(template: str, args: tuple) -> bool:
    """Whether there are as many arguments as an expression has places."""
    return len(re.findall(r"\{\}", template)) == len(args)
