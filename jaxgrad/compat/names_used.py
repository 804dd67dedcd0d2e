"""The names of torch that a Python file uses, found in its syntax tree: the file is not run."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from typing import NamedTuple

FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
SCOPES = FUNCTIONS | COMPREHENSIONS | ast.ClassDef

# what catches an import that fails, and an attribute that is missing
_CATCH_ALL = {"Exception", "BaseException"}
_CATCH_IMPORTS = {"ImportError", "ModuleNotFoundError", *_CATCH_ALL}
_CATCH_ATTRIBUTES = {"AttributeError", *_CATCH_ALL}


class Use(NamedTuple):
    """A use of a name of torch, under whatever name the file imports it.

    names: the full name, such as `torch.nn.functional.relu`, or several if the file imports one of
    several. optional: the part of the name that the program can do without, "" for none. keywords:
    the keyword arguments of a call of it, with their code. is_of_star: whether it is a bare name
    that may come from one of several modules.
    """

    line: int
    names: tuple[str, ...]
    optional: str = ""
    keywords: tuple[tuple[str, str], ...] = ()
    is_of_star: bool = False


class Alias(NamedTuple):
    """The meaning of a name. optional: the part of it that the program can do without; is_of_star:
    whether it may come from a module from which everything is imported.
    """

    name: str
    optional: str = ""
    is_of_star: bool = False


def names_used(tree: ast.Module) -> list[Use]:
    """The uses of names of torch, except names that the file asks for by `hasattr`, and names whose
    error it catches.
    """
    caught_imports, caught_attributes = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Try):
            names = {name for handler in node.handlers for name in _caught(handler.type)}
            inside = {id(part) for statement in node.body for part in ast.walk(statement)}
            caught_imports |= inside if names & _CATCH_IMPORTS else set()
            caught_attributes |= inside if names & _CATCH_ATTRIBUTES else set()
        elif isinstance(node, ast.If) and _name_of(node.test).endswith("TYPE_CHECKING"):
            node.body = []
    reader = Reader(caught_imports, caught_attributes)
    uses = list(reader.uses_in(Scope(tree, None, reader)))
    return [use for use in uses if not any(name in reader.asked for name in _prefixes(use))]


def _caught(kind) -> Iterator[str]:
    """The names of the classes of exceptions that a handler catches."""
    if kind is None:
        yield "BaseException"
    for expression in kind.elts if isinstance(kind, ast.Tuple) else [kind]:
        yield _name_of(expression).rpartition(".")[2]


def _name_of(node) -> str:
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _prefixes(use):
    for name in use.names:
        parts = name.split(".")
        yield from (".".join(parts[:length]) for length in range(1, len(parts) + 1))


# ---- what names stand for


class Scope:
    """The names of a module, a function, a class or a comprehension.

    aliases: the names that stand for names of torch, with their meaning; others: the names that
    stand for something else; stars: the modules from which everything is imported.
    """

    def __init__(self, node, parent: Scope | None, reader: Reader):
        self.node, self.parent = node, parent
        self.aliases: dict[str, list[Alias]] = {}
        self.others: set[str] = set()
        self.stars: list[str] = []
        if isinstance(node, FUNCTIONS):
            self.others |= {part.arg for part in ast.walk(node.args) if isinstance(part, ast.arg)}
        nodes = list(own_nodes(node))
        outer = {name for part in nodes if isinstance(part, ast.Global) for name in part.names}
        assigned = {
            id(target) for node in nodes if isinstance(node, ast.Assign) for target in node.targets
        }
        for part in nodes:
            if isinstance(part, ast.Import | ast.ImportFrom):
                self._bind_import(part, id(part) in reader.caught_imports)
            elif isinstance(part, ast.Assign):
                self._bind_assignment(part)
            elif id(part) not in assigned:
                self.others |= set(_bound_by(part))
        self.others -= outer

    def _bind_assignment(self, node):
        aliases = self.find_chain(node.value)
        for target in node.targets:
            if not isinstance(target, ast.Name):
                continue
            if aliases:
                self.aliases.setdefault(target.id, []).extend(aliases)
            elif not (isinstance(node.value, ast.Constant) and node.value.value is None):
                self.others.add(target.id)  # None: as where torch could not be imported

    def _bind_import(self, node, is_optional):
        origin = node.module or "" if isinstance(node, ast.ImportFrom) and not node.level else ""
        for alias in node.names:
            if isinstance(node, ast.Import):
                bound, name = alias.asname or alias.name.partition(".")[0], alias.name
                name = name if alias.asname else bound
            elif alias.name == "*":
                self.stars.append(origin)
                continue
            else:
                bound, name = alias.asname or alias.name, f"{origin}.{alias.name}"
            if is_torch(name):
                self.aliases.setdefault(bound, []).append(Alias(name, name if is_optional else ""))
            else:
                self.others.add(bound)

    def find(self, name: str) -> list[Alias]:
        """The meaning of a name that this scope uses; nothing if it may have another one."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.others:
                return []
            if name in scope.aliases:
                return scope.aliases[name]
            root, scope = scope, scope.parent
            while scope is not None and isinstance(scope.node, ast.ClassDef):
                scope = scope.parent
        is_known = hasattr(builtins, name) or not all(map(is_torch, root.stars))
        return [] if is_known else [Alias(f"{star}.{name}", "", True) for star in root.stars]

    def find_chain(self, node) -> list[Alias]:
        """The meaning of a name with attributes."""
        path = _name_of(node)
        if not path:
            return []
        first, dot, rest = path.partition(".")
        return [alias._replace(name=alias.name + dot + rest) for alias in self.find(first)]


def _bound_by(node) -> Iterator[str]:
    """The names that a node binds to something that is not known."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, _BINDING) and node.name:
        yield node.name


_DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_BINDING = _DEFINITIONS | ast.ExceptHandler | ast.MatchAs | ast.MatchStar


def is_torch(name: str) -> bool:
    return name.partition(".")[0] == "torch"


def own_nodes(scope) -> Iterator[ast.AST]:
    """The nodes of a scope, in their order, without those of the scopes inside."""
    if isinstance(scope, ast.Lambda):
        waiting = [scope.body]
    elif isinstance(scope, COMPREHENSIONS):
        waiting = [*ast.iter_child_nodes(scope)][::-1]
    else:
        waiting = scope.body[::-1]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend([*_outer_parts(node)][::-1])


def _outer_parts(node) -> Iterator[ast.AST]:
    """The parts of a node that belong to the scope it stands in."""
    if isinstance(node, COMPREHENSIONS | ast.Lambda):
        return
    for field, value in ast.iter_fields(node):
        if field == "body" and isinstance(node, SCOPES):
            continue
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, ast.AST):
                yield part


# ---- where they are used


class Reader:
    """Reads the uses in a file. asked: the names that it asks for by `hasattr`."""

    def __init__(self, caught_imports: set[int], caught_attributes: set[int]):
        self.caught_imports, self.caught_attributes = caught_imports, caught_attributes
        self.asked: set[str] = set()

    def uses_in(self, scope: Scope) -> Iterator[Use]:
        nodes = list(own_nodes(scope.node))
        inner = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
        calls = {id(node.func): node for node in nodes if isinstance(node, ast.Call)}
        for node in nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                yield from self._imported(node)
            elif isinstance(node, ast.Attribute | ast.Name) and id(node) not in inner:
                yield from self._used(scope, node, calls.get(id(node)))
            elif isinstance(node, ast.Call):
                yield from self._asked(scope, node)
            if isinstance(node, SCOPES):
                yield from self.uses_in(Scope(node, scope, self))

    def _imported(self, node):
        if id(node) in self.caught_imports:
            return
        for alias in node.names:
            if isinstance(node, ast.Import):
                name = alias.name
            else:
                origin = node.module or "" if not node.level else ""
                name = origin if alias.name == "*" else f"{origin}.{alias.name}"
            if is_torch(name):
                yield Use(node.lineno, (name,))

    def _used(self, scope, node, call):
        is_name = isinstance(node, ast.Name)
        if not isinstance(node.ctx, ast.Load):  # an attribute may be set that is not there
            node = node if is_name else node.value
        aliases = scope.find_chain(node)
        if not aliases or id(node) in self.caught_attributes:
            return
        names = tuple(alias.name for alias in aliases)
        optional = aliases[0].optional
        if is_name and not aliases[0].is_of_star:  # its import tells whether it is missing
            optional = names[-1]
        arguments = [argument for argument in call.keywords if argument.arg] if call else ()
        keywords = tuple((argument.arg, ast.unparse(argument.value)) for argument in arguments)
        yield Use(node.lineno, names, optional, keywords, aliases[0].is_of_star)

    def _asked(self, scope, call):
        """`hasattr(torch, "name")`, `getattr`, and `import_module("torch.name")`."""
        function, arguments = _name_of(call.func).rpartition(".")[2], call.args
        texts = [
            argument.value if isinstance(argument, ast.Constant) else None for argument in arguments
        ]
        if function == "import_module" and texts and is_torch(str(texts[0])):
            if id(call) not in self.caught_imports:
                yield Use(call.lineno, (texts[0],))
        elif function in ("hasattr", "getattr") and len(texts) > 1 and isinstance(texts[1], str):
            names = [f"{alias.name}.{texts[1]}" for alias in scope.find_chain(arguments[0])]
            if function == "hasattr" or len(texts) > 2:
                self.asked |= set(names)
            elif names and id(call) not in self.caught_attributes:
                yield Use(call.lineno, tuple(names))
