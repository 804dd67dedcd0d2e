"""The reference: a page for each namespace of torch with an entry for each public name, made from
docstrings, signatures and the table.

A name has its full entry on the first page that has it, in torch's order of namespaces; on later
pages a line leads there. jaxgrad's own names are on the page of `jaxgrad`.
"""

import enum
import html
import importlib
import inspect
import re
import sys
import types
import typing
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

from differences import differences
from docstrings import Docstring, example
from formulas import mathml, tex
from plots import plot
from values import is_value

import jaxgrad
from jaxgrad import coverage, ops, scripting
from jaxgrad.frontend.factory_options import FactoryOptions, _names_of
from jaxgrad.frontend.random import RandomOptions
from jaxgrad.names.not_provided import is_placeholder
from jaxgrad.ops.cards import sections
from jaxgrad.ops.documentation import Text
from jaxgrad.stubs.public_names import MODULES, public_names

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT / "tests"))

from commands import cards  # noqa: E402

# names that PyTorch does not have
JAXGRADS = (
    *("jit", "from_jax", "to_jax", "compilation_cache", "summary", "scan", "fori_loop"),
    *("recurrent", "set_eager", "set_traceback_filtering", "synchronize", "compat.install"),
    *("tracing.number", "tracing.outside"),
)
# their entries are where programs find them, and the page of jaxgrad leads there
JAXGRADS_ELSEWHERE = (
    *("autograd.graph.explain", "autograd.graph.draw", "autograd.graph.memory_report"),
    *("autograd.graph.record_lines", "autograd.graph.strict_versions", "func.value_and_grad"),
    "compiler.set_cache_limits",
)
# names without an underscore that are no part of a namespace
INTERNAL = {
    *("torch.MissingName", "torch.nn.attention.enable", "torch.nn.attention.enabled"),
    *("torch.nn.parameter.from_data", "torch.nn.parameter.kind_of", "torch.nn.parameter.mark"),
    *("torch.nn.parameter.TransientBuffer", "torch.nn.utils.parametrizations.as_matrix"),
    *("torch.nn.utils.parametrizations.channel_dim", "torch.nn.utils.rnn.batch_of"),
    *("torch.nn.utils.parametrizations.check_iterations", "torch.autograd.forward_ad.shown"),
    *("torch.autograd.function.DelayedError", "torch.autograd.variable.VariableMethods"),
    *("torch.distributions.constraints.holds", "torch.distributions.kl.Pair"),
    *("torch.utils.checkpoint.CheckpointOptions", "torch.utils.checkpoint.SavedMetadata"),
    *("torch.utils.collect_env.parallel_info", "torch.utils.data.sampler.new_seed"),
    *("torch.cuda.Properties", "torch.hub.urlparse", "torch.utils.benchmark.timer"),
    *("torch.nn.parameter.mark_buffer", "torch.nn.parameter.new_parameter"),
    *("torch.optim.optimizer.StateLoader", "torch.utils.data.sampler.seeded"),
    *("Node.more", "Node.is_freed", "Node.outputs", "Node.edge_at", "Node.retain"),
    *("Node.retained_at", "Node.hooks_of"),
}
NO_PAGE = {"torch.compat", "torch.tracing", "torch.nn.module", "torch.ops"}
# modules with a page, whose own sources are their type stubs
FURTHER = (
    *("torch.jit", "torch.futures", "torch.fx", "torch.fx.experimental.optimization"),
    *("torch.fx.passes.shape_prop", "torch.fx.passes.split_module", "torch.fx.subgraph_rewriter"),
    *("torch.ao.quantization", "torch.ao.quantization.quantize_fx", "torch.ao.nn.intrinsic"),
    *("torch.ao.nn.qat", "torch.ao.nn.quantizable", "torch.ao.nn.quantized"),
    *("torch.ao.nn.quantized.dynamic", "torch.ao.nn.quantized.functional", "torch.cuda.amp"),
    *("torch.distributed.fsdp.wrap", "torch.distributed.nn", "torch.nn.grad", "torch.types"),
    *("torch.utils.data.datapipes.iter", "torch.utils.flop_counter", "torch.utils.weak"),
)
OPERATORS = "jaxgrad.ops"
LARGE = 60  # a page with more entries has no table of contents at its side
MODULE = re.compile(r"\b(?:jaxgrad|collections|typing|dtypes|devices)\.(?:\w+\.)*(?=\w)")
FORWARD = re.compile(r"ForwardRef\('([^']*)'\)")
# annotations that stand for others in the sources
ALIASES = {
    **{"Extents": "int | Sequence[int]", "Ratios": "float | Sequence[float]"},
    **{
        "Number": "int | float | bool",
        "Rate": "float | Tensor",
        "DeviceLike": "device | str | int",
    },
    **{"Params": "Iterable[Tensor] | Iterable[dict]", "Options": "dict"},
}
ALIAS = re.compile(rf"\b({'|'.join(ALIASES)})\b")
OPTIONS = {"FactoryOptions": FactoryOptions, "RandomOptions": RandomOptions}
PART = re.compile(r"(?<=\w)([._/]+)(?=[^\W\d_])")
CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
LONG_WORD = re.compile(r"[A-Za-z0-9]{20,}")
OF_SOURCES = re.compile(r"\w\.py\b|is imported|of the table whose|leaf state")
PLAIN = (bool, int, float, str, type(None))


class Entry(NamedTuple):
    """A public name, `torch.func.grad`, and what it means in jaxgrad."""

    path: str
    value: object

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]


# ---- which names there are


@cache
def namespaces() -> dict[str, list[Entry]]:
    """The entries of each page, by namespace: jaxgrad's own, torch's in its order, the others."""
    entries = {
        "jaxgrad": [Entry(f"jaxgrad.{n}", v) for n in JAXGRADS if (v := _find(n)) is not None]
    }
    for name in coverage.torch_names():
        names = entries.setdefault(name.space, [])
        if name.is_there:
            names.append(Entry(name.path, coverage.find(name.path)))
    for space in (*("torch" + module.removeprefix("jaxgrad") for module in MODULES), *FURTHER):
        if space not in NO_PAGE:
            entries.setdefault(space, []).extend(_others(space, entries.get(space, [])))
    entries[OPERATORS] = [Entry(f"{OPERATORS}.{n}", getattr(ops, n)) for n in _operators()]
    entries["jaxgrad"] += [Entry(f"jaxgrad.{name}", _find(name)) for name in JAXGRADS_ELSEWHERE]
    return entries


def _find(name: str):
    return coverage.find(f"jaxgrad.{name}")


def _operators():
    return public_names(ops)


def _others(space: str, there: list[Entry]):
    """The public names of a module that the list of PyTorch's names does not have."""
    known = {entry.path for entry in there} | INTERNAL
    for name, value in _offered(space).items():
        path = f"{space}.{name}"
        is_inplace = space == "torch" and hasattr(value, "operator")  # or of the table alone
        if path not in known and not isinstance(value, types.ModuleType) and not is_inplace:
            yield Entry(path, value)


def _offered(space: str) -> dict[str, object]:
    """The public names of a module, or of the function `torch.jit`, with their values."""
    if space == "torch.jit":
        jit = jaxgrad.jit
        values = {name: getattr(jit, name) for name in dir(jit) if not name.startswith("_")}
        return {name: value for name, value in values.items() if not is_placeholder(value)}
    module = _module(space)
    return {name: getattr(module, name) for name in public_names(module)}


def missing(space: str) -> list[coverage.Name]:
    """The names of a namespace that jaxgrad leaves out, with the reason."""
    return [n for n in coverage.torch_names() if n.space == space and not n.is_there]


# ---- where each has its entry


def _key(entry: Entry):
    """What two names have in common that mean the same."""
    operator = getattr(entry.value, "operator", None)
    if operator is not None:
        return entry.name if is_inplace(entry) else operator.name
    if isinstance(entry.value, (*PLAIN, property)):
        return entry.path
    return id(entry.value)


def is_inplace(entry: Entry) -> bool:
    operator = getattr(entry.value, "operator", None)
    return operator is not None and type(operator).__name__ == "InPlace"


@cache
def homes() -> dict[object, Entry]:
    """The entry to which each meaning belongs, by its key."""
    by_key: dict[object, Entry] = {}
    for entries in namespaces().values():
        for entry in entries:
            if entry.path.removeprefix("jaxgrad.") not in JAXGRADS_ELSEWHERE:
                by_key.setdefault(_key(entry), entry)
    return by_key


@cache
def others() -> dict[object, list[Entry]]:
    """The further names of each meaning, by its key."""
    by_key: dict[object, list[Entry]] = {}
    for entry in (entry for entries in namespaces().values() for entry in entries):
        key = entry.value.operator.name if is_inplace(entry) else _key(entry)
        if entry != homes().get(key):
            by_key.setdefault(key, []).append(entry)
    return by_key


@cache
def addresses() -> dict[str, str]:
    """The address of each public name, relative to a page of the reference."""
    names = [(e.path, space) for space, entries in namespaces().items() for e in entries]
    names += [(n.path, space) for space in namespaces() for n in missing(space)]
    names += [(path, space) for path, space in names if path.startswith("torch.")]
    return {path: f"{space}.html#{path}" for path, space in names}


def linker(space: str):
    """Gives the address of what code in a docstring of `space` names."""

    def address(text: str) -> str | None:
        if not text.replace(".", "").isidentifier() or text in ("input", "self", "out", "grad"):
            return None
        name = text.removeprefix("jaxgrad.").removeprefix("torch.")
        places = (f"{space}.{text}", f"torch.{name}", f"jaxgrad.{name}", f"torch.nn.{name}")
        return next((addresses()[place] for place in places if place in addresses()), None)

    return address


# ---- an entry as HTML


def shown_signature(value, is_method: bool) -> str:
    """The signature as text, without `self` and without quotes around annotations; "" for none."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    parameters = [
        parameter.replace(
            annotation=_text(parameter.annotation), default=_default(parameter.default)
        )
        for parameter in _with_defaults(_without_unpack(value, signature))
    ]
    if is_method and parameters and parameters[0].name in ("self", "cls"):
        del parameters[0]
    returned = _text(signature.return_annotation)
    text = str(signature.replace(parameters=parameters, return_annotation=returned))
    return readable(text)


def readable(text: str) -> str:
    """Annotations in words that users know."""
    text = MODULE.sub("", FORWARD.sub(r"\1", text))
    return ALIAS.sub(lambda alias: ALIASES[alias[1]], text).replace(" | None | None", " | None")


def _with_defaults(parameters):
    """The parameters, with a default that shows where it is `Parameter.empty` itself."""
    has_default = False
    for parameter in parameters:
        is_positional = parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        if is_positional and has_default and parameter.default is parameter.empty:
            parameter = parameter.replace(default=Text("Parameter.empty"))
        has_default |= parameter.default is not parameter.empty
        yield parameter


def _without_unpack(function, signature: inspect.Signature):
    """The parameters, with one for each option that `Unpack[FactoryOptions]` stands for."""
    for parameter in signature.parameters.values():
        options = re.fullmatch(r"Unpack\[(\w+)\]", str(parameter.annotation))
        if options is None or options[1] not in OPTIONS:
            yield parameter
            continue
        names = {*_names_of(function.__name__), "generator"}
        for name, annotation in OPTIONS[options[1]].__annotations__.items():
            if name in names:
                text = getattr(annotation, "__forward_arg__", annotation)
                default = False if text == "bool" else None
                yield inspect.Parameter(
                    name, parameter.KEYWORD_ONLY, default=default, annotation=text
                )


def overloads(value) -> list[str]:
    """The signatures of an operator that has several, which its docstring lists."""
    if not hasattr(value, "operator"):
        return []
    blocks = re.split(r"\n\s*\n", inspect.getdoc(value) or "")
    listed = [block for block in blocks[1:3] if block.startswith("    ")]
    return [line.strip() for block in listed for line in block.splitlines()]


def members(kind: type) -> str:
    """The members of an enumeration, in place of the signature that Python gives it."""
    names = (f"{kind.__name__}.{member.name}" for member in kind)
    return "".join(f"<div><code>{name}</code></div>" for name in names)


def _text(annotation):
    return Text(annotation) if isinstance(annotation, str) else annotation


def _default(value):
    if value is inspect.Parameter.empty or (type(value) in (*PLAIN, Text)):
        return value
    if type(value) is tuple:
        return tuple(map(_default, value))
    if isinstance(value, enum.Enum):
        return Text(f"{type(value).__name__}.{value.name}")
    text, is_cut, _ = repr(value).partition(" at 0x")
    return Text(getattr(value, "__name__", None) or text + ("...>" if is_cut else ""))


class Body:
    """The HTML of an entry.

    level: the level of its heading; owner: the class whose method it is.
    """

    def __init__(self, entry: Entry, space: str, level: int = 3, owner: type | None = None):
        self.entry, self.space, self.level, self.owner = entry, space, level, owner
        self.link = linker(space)
        self.is_method = owner is not None or space == "torch.Tensor"

    def html(self) -> str:
        home = self.home()
        is_here = home.path == self.entry.path
        parts = self.parts() if is_here else self.elsewhere(home)
        return "\n".join([self.heading(is_here), *filter(None, parts)])

    def home(self) -> Entry:
        if self.owner is not None:
            return self.entry
        key = self.entry.value.operator.name if is_inplace(self.entry) else _key(self.entry)
        return homes().get(key) or homes().get(_key(self.entry), self.entry)

    def heading(self, is_found: bool) -> str:
        """The heading; the search finds only entries, which have all names."""
        path, tag = self.entry.path, f"h{self.level}"
        before, dot, name = path.rpartition(".")
        hidden = "" if is_found else " data-search-exclude"
        return (
            f'<{tag} class="name" id="{path}"{hidden}>'
            f'<span class="space">{before}{dot}</span>{name}'
            f'<a class="headerlink" href="#{path}">#</a></{tag}>'
        )

    def elsewhere(self, home: Entry):
        """One line for a name that has its entry on another page or under another name."""
        doc = self.docstring()
        sentence = doc.summary if doc else ""
        if is_inplace(self.entry):
            sentence = "Writes the result to the tensor itself."
        yield f"<p>{sentence} See {self.to(home.path)}.</p>"

    def also(self):
        """The other names of the entry."""
        names = others().get(_key(self.entry), []) if self.owner is None else []
        paths = [entry.path for entry in names if not entry.path.startswith(OPERATORS)]
        if paths:
            yield described("Also", ", ".join(map(self.to, paths)))

    def to(self, path: str) -> str:
        return f'<a href="{addresses()[path]}"><code>{path}</code></a>'

    def docstring(self) -> Docstring | None:
        value = self.entry.value
        text = inspect.getdoc(value) if _has_doc(value) else None
        for line in overloads(value):  # which stand above, as signatures
            text = text.replace(f"    {line}\n", "", 1)
        return Docstring(text, self.parameters(), self.link) if text else None

    def parameters(self) -> list[str]:
        try:
            return list(inspect.signature(self.entry.value).parameters)
        except (TypeError, ValueError):
            return []

    def parts(self):
        value = self.entry.value
        if not _is_ours(value):
            yield f"<p>The same as <code>{_origin(value)}</code>.</p>"
            return
        yield self.signatures()
        doc = self.docstring()
        if doc is None:
            yield f"<p>{html.escape(_plain(value))}</p>"
            return
        yield f'<p class="summary">{doc.summary}</p>'
        yield self.picture(doc.summary)
        yield doc.html()
        yield from self.differences()
        yield from self.also()
        yield self.card()
        if inspect.isclass(value) and value is not jaxgrad.Tensor:
            yield from self.methods(value)
        if value is jaxgrad.Tensor:
            yield '<p>Its methods have <a href="torch.Tensor.html">a page of their own</a>.</p>'

    def picture(self, summary: str) -> str:
        """The formula of an operator, if its summary has one that is the value of all numbers, and
        the plot of its values.
        """
        if not self.is_operator() or is_inplace(self.entry):
            return ""
        code = [html.unescape(part) for part in re.findall("<code>(.*?)</code>", summary)]
        formulas = [part for part in code if re.search(r"[(*/+]", part) and tex(part)]
        formula = next((tex(part) for part in formulas if is_value(self.entry.value, part)), None)
        shown = f'<p class="tex">{mathml(formula)}</p>' if formula else ""
        return shown + plot(self.entry.value)

    def signatures(self) -> str:
        value = self.entry.value
        if isinstance(value, property) or _is_union(value):
            return ""
        if isinstance(value, enum.EnumMeta):
            return f'<div class="signature">{members(value)}</div>'
        text = shown_signature(value, self.is_method and not inspect.isclass(value))
        kind = '<span class="kind">class</span> ' if inspect.isclass(value) else ""
        shown = list(map(readable, overloads(value))) or (
            [f"{self.entry.name}{text}"] if text else []
        )
        lines = (f"<div>{kind}<code>{html.escape(line, False)}</code></div>" for line in shown)
        return f'<div class="signature">{"".join(lines)}</div>' if shown else ""

    def differences(self):
        if self.owner is None:
            rows = differences().get(self.entry.name, []) if self.is_operator() else []
            rows = rows or differences().get(self.entry.path.removeprefix("torch."), [])
            if rows:
                yield described("Differs from PyTorch", "<br>".join(rows))

    def is_operator(self) -> bool:
        return hasattr(self.entry.value, "operator")

    def card(self) -> str:
        operator = getattr(self.entry.value, "operator", None)
        section = sections().get(operator.name) if operator is not None else None
        if section is None:
            return ""
        page = f"../api/operators/{cards.file_name(section)}.html#{_heading(operator.name)}"
        return f'<p class="card">Nodes and what is saved: <a href="{page}">the card</a>.</p>'

    def methods(self, kind: type):
        """The public methods and properties that the class defines."""
        for name, value in _methods(kind).items():
            yield Body(Entry(f"{self.entry.path}.{name}", value), self.space, 4, kind).html()


def described(term: str, description: str) -> str:
    return f'<dl class="described"><dt>{term}</dt><dd>{description}</dd></dl>'


def _heading(name: str) -> str:
    return cards.cards.public_path(name).lower().replace(".", "")


@cache
def _bases(kind: type) -> list[type]:
    """The bases of a class that have no entry, and that no base with an entry has."""
    with_entries = [base for base in kind.__mro__[1:] if id(base) in homes()]
    elsewhere = {base for entry in with_entries for base in entry.__mro__}
    ours = (base for base in kind.__mro__[1:] if base.__module__.split(".")[0] == "jaxgrad")
    return [base for base in ours if base not in elsewhere]


@cache
def _parts() -> set[type]:
    """The bases that one class of the reference has alone: its members are on several of them."""
    kinds = {e.value for e in homes().values() if inspect.isclass(e.value) and _is_ours(e.value)}
    counts = Counter(base for kind in kinds for base in _bases(kind))
    return {base for base, count in counts.items() if count == 1}


def _methods(kind: type) -> dict[str, object]:
    names = {}
    parts = [kind, *(base for base in _bases(kind) if base in _parts())]
    members = [pair for part in reversed(parts) for pair in vars(part).items()]
    for name, value in members:
        value = getattr(value, "__func__", value)
        if f"{kind.__name__}.{name}" in INTERNAL:
            continue
        is_shown = isinstance(value, property) or (
            # and no function of a module, as a layer has one
            inspect.isfunction(value) and "." in value.__qualname__
        )
        if is_shown and not name.startswith("_") and value.__doc__:
            names[name] = value
    return names


def _has_doc(value) -> bool:
    return callable(value) or isinstance(value, property)


def _is_ours(value) -> bool:
    module = getattr(value, "__module__", None)
    # torch is what jaxgrad calls itself where programs look
    is_value = not callable(value) or _is_union(value)
    return is_value or module is None or module.split(".")[0] in ("jaxgrad", "torch")


def _is_union(value) -> bool:
    return isinstance(value, types.UnionType) or typing.get_origin(value) is typing.Union


def _origin(value) -> str:
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", repr(value))
    package, short = value.__module__.partition(".")[0], name.rpartition(".")[2]
    is_public = hasattr(importlib.import_module(package), short)
    return f"{package}.{short}" if is_public else f"{value.__module__}.{name}"


def _short(value) -> str:
    """The text of a value, with classes by their last names."""
    return MODULE.sub("", re.sub(r"<class '([\w.]+)'>", r"\1", str(value)))


def _plain(value) -> str:
    """What is known of a name without a docstring."""
    if isinstance(value, jaxgrad.dtype):
        return f"A dtype; its elements have {value.itemsize} bytes."
    if isinstance(value, PLAIN):
        return f"The constant {value!r}."
    if _is_union(value):
        return f"The type {_short(value)}."
    if inspect.isclass(value) or callable(value):
        return ""
    if type(value) in (dict, tuple):
        return f"The {type(value).__name__} {_short(value)}."
    if value.__doc__ and type(value) is not object:
        return " ".join(value.__doc__.partition("\n\n")[0].split())
    return f"An object of type {type(value).__name__}."


# ---- the cards of the operators


CARD = re.compile(r'<h2 id="([^"]+)">.*?</h2>\s*<p>.*?</p>', re.DOTALL)
EXAMPLE = re.compile(r'<div class="highlight".*?</div>', re.DOTALL)


@cache
def _bodies() -> dict[str, Body]:
    """The entry of each operator, by the anchor of its card."""
    entries = [entry for entry in homes().values() if hasattr(entry.value, "operator")]
    return {
        _heading(entry.value.operator.name): Body(entry, entry.path.rpartition(".")[0])
        for entry in entries
        if not is_inplace(entry)
    }


def public_path(entry: Entry) -> str:
    """The name under which users know an operator, where functions of that name call it."""
    spaces = ("torch", "torch.nn.functional", "torch.Tensor", "torch.linalg")
    paths = [f"{space}.{entry.name}" for space in spaces if entry.path.startswith(OPERATORS)]
    return next((path for path in paths if path in addresses()), entry.path)


def _example(doc: Docstring | None) -> str:
    """The first example of a docstring as HTML, "" for none."""
    shown = EXAMPLE.search(doc.html()) if doc else None
    return shown[0] if shown else ""


def with_examples(content: str) -> str:
    """A page of cards with the formula, the plot and the example of each operator's entry."""

    def shown(card):
        body = _bodies().get(card[1])
        doc = body.docstring() if body else None
        if doc is None:
            return card[0]
        path = public_path(body.entry)
        place = f'<p>Arguments and errors: <a href="../../reference/{addresses()[path]}">'
        parts = (card[0], body.picture(doc.summary), _example(doc))
        return "\n".join([*parts, f"{place}<code>{path}</code></a>.</p>"])

    return CARD.sub(shown, content)


# ---- pages


def pages() -> dict[str, str]:
    """The source of each page by its path; `body` gives what stands below the heading."""
    texts = {"reference/index.md": "# Reference\n"}
    for space in namespaces():
        texts[f"reference/{space}.md"] = f"# {space}\n"
    return texts


@cache
def body(space: str) -> str:
    """The HTML of a page."""
    if space == "index":
        return _index()
    entries = namespaces()[space]
    bodies = [Body(entry, space) for entry in entries]
    shown = [body.html() for body in bodies]
    parts = [_about(space), _modules(space), _names(space, entries), _more(space)]
    if not any(map(EXAMPLE.search, [*parts, *shown])):  # all entries are on other pages
        parts.append(next(filter(None, (_example(body.docstring()) for body in bodies)), ""))
    parts += [f'<section class="entry">{entry}</section>' for entry in shown]
    out = missing(space)
    if out:
        parts.append('<h2 id="left-out">Left out</h2><dl class="described">')
        parts += [f'<dt id="{n.path}"><code>{n.path}</code></dt><dd>{n.reason}</dd>' for n in out]
        parts.append("</dl>")
    return "\n".join(filter(None, parts))


def _about(space: str) -> str:
    if space == "torch.Tensor":
        return "<p>The methods and properties of tensors.</p>"
    if space == "torch":
        return "<p>Functions on tensors, what makes tensors, dtypes, devices and modes.</p>"
    if space == "jaxgrad":
        return "<p>What jaxgrad has and PyTorch does not have.</p>"
    doc = _module(space).__doc__
    return (
        f"<p>{Docstring(_without_name(doc, space), link=linker(space)).summary}</p>" if doc else ""
    )


def _without_name(doc: str, space: str) -> str:
    """A docstring of a module without "as torch.nn", which its page has in the heading."""
    name = re.escape(space)
    doc = re.sub(
        rf"(?:,\s+as(?:\s+in)?|:|\s+as)\s+{name}(?=[.:,]\s|[.:,]?$)",
        "",
        doc,
        count=1,
        flags=re.MULTILINE,
    )
    return re.sub(rf"^{name}: (\w)", lambda first: first[1].upper(), doc)


def _more(space: str) -> str:
    """What the docstring of a module says to its users below the first sentence."""
    if space in ("torch", "torch.Tensor", "jaxgrad"):
        return ""
    doc = inspect.cleandoc(_module(space).__doc__ or "")
    blocks = [block for block in re.split(r"\n\s*\n", doc)[1:] if not OF_SOURCES.search(block)]
    return Docstring("\n\n".join(["About.", *blocks]), link=linker(space)).html() if blocks else ""


def _modules(space: str) -> str:
    """The namespaces below one."""
    below = [name for name in namespaces() if _parent(name) == space]
    links = ", ".join(f'<a href="{name}.html"><code>{name}</code></a>' for name in below)
    return described("Modules", links) if below else ""


def _parent(space: str) -> str:
    """The nearest namespace around one that has a page."""
    while space and (space := space.rpartition(".")[0]) not in namespaces():
        pass
    return space


def _module(space: str):
    if space == "torch.jit":  # a function, whose attributes this module has
        return scripting
    return importlib.import_module("jaxgrad" + space.removeprefix("torch").removeprefix("jaxgrad"))


def parted(name: str, capitals: bool = False) -> str:
    """A long name may break after its dots, underscores and slashes, and before its capitals:
    without `capitals` only those of words that are too long for a phone.
    """
    shown = PART.sub(r"\1<wbr>", name)
    if capitals:
        return CAPITAL.sub("<wbr>", shown)
    return LONG_WORD.sub(lambda word: CAPITAL.sub("<wbr>", word[0]), shown)


def _names(space: str, entries: list[Entry]) -> str:
    if len(entries) < 2:
        return ""
    prefix = len(space) + 1
    links = [f'<a href="#{e.path}">{parted(e.path[prefix:])}</a>' for e in entries]
    return f'<div class="names" data-search-exclude>{" ".join(links)}</div>'


def _index() -> str:
    rows = [
        f'<dt><a href="{space}.html"><code>{space}</code></a></dt>'
        f"<dd>{_about(space).removeprefix('<p>').removesuffix('</p>')}"
        f' <span class="count">({_count(entries)})</span></dd>'
        for space, entries in namespaces().items()
    ]
    anywhere = (
        "<p>Examples begin with <code>import jaxgrad as torch</code>, and <code>F</code> is "
        "<code>torch.nn.functional</code>. Python has the same text:</p>"
    )
    anywhere += example(">>> import jaxgrad as torch\n>>> help(torch.nn.functional.gelu)")
    return f'{anywhere}<dl class="described">{"".join(rows)}</dl>'


def _count(entries) -> str:
    return "1 name" if len(entries) == 1 else f"{len(entries)} names" if entries else "modules"


def contents(space: str) -> list[dict]:
    """The table of contents at the side of a page that is short enough for it."""
    entries = namespaces().get(space, [])
    if len(entries) > LARGE:
        return []
    return [
        {"level": 2, "id": e.path, "name": e.path[len(space) + 1 :], "children": []}
        for e in entries
    ]
