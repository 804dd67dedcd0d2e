"""Builds the Rule of an entry: sorts its keys and parses its formulas, each in its scope."""

import re
from dataclasses import dataclass, replace

from ..cached import cached_property
from .formula import (
    INPUT_WORDS,
    OUTPUT_WORDS,
    Formula,
    FormulaError,
    Word,
    parse_formula,
    parse_word,
)
from .grammar import Scope
from .mistakes import listed, mean, shown
from .schema import Schema, SchemaError, parse_schema
from .source import Collection, Scalar

MAX_OUTPUTS = 64
FLAGS_KEY = "output_differentiability"
HELP_KEYS = ("doc", "arguments", "example")
OWN_KEYS = (*HELP_KEYS, "alias", "tags", "protocol", "forward", "write", "node", "saves", FLAGS_KEY)
RESERVED = re.compile(
    r"grads?|grad_input_mask|retain_variables|result\d*|lax|jnp|name|forward|write"
)
INTEGRAL = re.compile(
    r"(.*_)?(indices|index|mask)|count|pivots|info|is_.*|P|constant_.*"
)  # names of outputs that hold integers or booleans: a schema has no dtypes; P is a permutation,
# and what else is a constant of formulas that account for its derivative is called so
NODE = re.compile(r"[A-Z]\w*", re.ASCII)
NUMBERED = re.compile(r"\bresult(\d{1,2})\b|\bgrads\[(\d{1,2})\]")
BOOLEANS = {"True": True, "true": True, "False": False, "false": False}
NON_DIFFERENTIABLE = Word("non_differentiable")
BROKEN = Word("broken")  # in place of a formula whose mistakes have been reported


@dataclass(frozen=True, eq=False)
class Rule:
    """One entry.

    `gradients`: pairs of input names and their formula; `tangents`: the formula of each output;
    `places`: line and column of the formula of each input and output, and of `name`; `node`: the
    name of its autograd node; `has_no_formulas`: whether the entry says nothing about derivatives;
    `saves`: what PyTorch saves for its backward pass, None where that is what the formulas read;
    `tags`: what the table says besides of its operator.
    """

    schema: Schema
    forward: Formula | None
    gradients: tuple[tuple[tuple[str, ...], Formula | Word], ...]
    tangents: dict[str, Formula | Word]
    output_differentiability: tuple[bool, ...]
    path: str
    line: int
    outputs: tuple[str, ...]
    places: dict[str, tuple[int, int]]
    write: Formula | None = None
    node: str = ""
    has_no_formulas: bool = False
    saves: tuple[str, ...] | None = None
    tags: frozenset[str] = frozenset()

    @cached_property
    def tensor_arguments(self):
        """The names of the Tensor arguments, lists included, without an `out` argument."""
        return self.schema.tensors

    @cached_property
    def non_differentiable(self):
        return frozenset(
            name for names, value in self.gradients if value == NON_DIFFERENTIABLE for name in names
        )

    @cached_property
    def differentiable_inputs(self):
        return tuple(n for n in self.tensor_arguments if n not in self.non_differentiable)

    @cached_property
    def differentiable_outputs(self):
        flags = zip(self.outputs, self.output_differentiability, strict=True)
        return tuple(name for name, flag in flags if flag)

    @cached_property
    def is_recorded(self):
        """Whether its calls can have a node: it has a differentiable input and output."""
        return bool(self.differentiable_inputs and self.differentiable_outputs)

    @property
    def inplace(self):
        return self.schema.inplace

    @property
    def is_view(self):
        """Whether the result shares memory with the first argument."""
        return self.schema.is_view

    @property
    def returns_list(self):
        """Whether the only output is a list of tensors; `grads` then holds their gradients."""
        return len(self.outputs) == 1 and self.schema.returns[0].type.list

    @cached_property
    def formulas(self):
        """All gradient and tangent formulas, without Words."""
        values = [*(value for _, value in self.gradients), *self.tangents.values()]
        return tuple(value for value in values if isinstance(value, Formula))

    def gradient(self, name):
        """The Formula or Word of the input `name`, or None if there is no such input."""
        return next((value for names, value in self.gradients if name in names), None)


def is_integral(name):
    return bool(INTEGRAL.fullmatch(name))


def camel_case(operator):
    """An operator's name as PyTorch writes it in the names of nodes: `Log1P` for `log1p`."""
    return "".join(word.title() for word in operator.split("_"))


def node_name(operator, number):
    """PyTorch's name for the node of an operator's overload.

    As its code generator (torchgen, `load_derivatives.py`) does: the overloads that have
    derivatives are numbered in the order of their entries, and `nll_loss_forward` has
    `NllLossBackward0`.
    """
    return f"{camel_case(operator)}Backward".replace("ForwardBackward", "Backward") + str(number)


def copying(rule):
    """The Rule of the operator that returns a copy of what a view shows: `expand_copy`."""
    name, text = rule.schema.name, re.sub(r"\(a[^)]*\)", "", rule.schema.text)
    schema = parse_schema(text.replace(name, f"{name}_copy", 1))
    # a view with the node of another one has no copy of that node
    is_other = not rule.node.startswith(f"{camel_case(name)}Backward")
    node = node_name(schema.name, 0) if is_other else f"{rule.node}_copy"
    tags = frozenset(["no_method", "exact_out", "float8"])
    return replace(rule, schema=schema, write=None, node=node, tags=tags)


class RuleBuilder:
    """Builds the Rule of one entry.

    `number`: how many earlier overloads have derivatives; `functions`: the names of value
    functions and helpers; `callables`: these and all operators; `report(place, entry, cause, cure)`
    is called for each mistake; `tags`: those of the operator.
    """

    def __init__(self, entry, number, path, functions, callables, report, tags):
        self.entry, self.number, self.path, self.report = entry, number, path, report
        self.tags = tags
        self.functions, self.callables = functions, callables
        self.title = entry.name.text.partition("(")[0].strip()
        self.mistake_count = 0

    def mistake(self, place, cause, cure):
        self.mistake_count += 1
        self.report(place, self.title, cause, cure)

    def build(self):
        """The Rule, before the checks of the whole entry; None if its schema or flags are wrong."""
        if not self.read_schema():
            return None
        self.keys, self.values = self.entry.keys, self.entry.values
        self.outputs = self.output_names()
        self.check_names()
        inputs, outputs = self.sort_keys()
        forward = self.read_forward()
        gradients = self.read_gradients(inputs)
        tangents = self.read_tangents(outputs, gradients)
        write = self.read_write()
        has_no_formulas = not (inputs or outputs or FLAGS_KEY in self.keys or self.schema.inplace)
        flags = (False,) * len(self.outputs) if has_no_formulas else self.read_flags()
        if len(flags) != len(self.outputs):
            return None
        if not any(flags):
            gradients = self.without_formulas([*gradients, *tangents.items()])
        places, node = self.places({**inputs, **outputs}), self.read_node(any(flags))
        saves = self.read_saves()
        return Rule(
            self.schema,
            forward,
            tuple(gradients),
            tangents,
            flags,
            self.path,
            self.entry.name.line,
            self.outputs,
            places,
            write,
            node,
            has_no_formulas,
            saves,
            self.tags,
        )

    # the schema and its names

    def read_schema(self):
        try:
            self.schema = parse_schema(self.entry.name.text.strip())
        except SchemaError as error:
            self.mistake(self.entry.name.place(error.offset), error.cause, error.cure)
            return False
        self.title = self.schema.full_name
        return True

    def output_names(self):
        returns = self.schema.returns
        if not self.schema.returns_known:
            count = self.count_outputs()
            return ("result",) if count == 1 else tuple(f"result{i}" for i in range(count))
        names = [None if r.name == "self" else r.name for r in returns]
        if names == [None]:
            return ("result",)
        return tuple(name or f"result{i}" for i, name in enumerate(names))

    def count_outputs(self):
        """The number of outputs that the keys and formulas of an entry without declared returns
        mention.
        """
        texts = [getattr(value, "text", "") for value in self.values.values()]
        numbers = [
            int(result or grad)
            for text in (*texts, *self.keys)
            for result, grad in NUMBERED.findall(text)
        ]
        flags = self.values.get(FLAGS_KEY)
        return max(1, len(getattr(flags, "items", ())), *(number + 1 for number in numbers))

    def check_names(self):
        place = self.entry.name.place()
        tensors = [f"{name}{end}" for name in self.schema.tensors for end in ("_p", "_t")]
        for name in self.schema.names:
            if RESERVED.fullmatch(name) or name in tensors:
                cause = f"an argument is called {name!r}, which formulas use for something else"
                self.mistake(place, cause, "rename it, `grad_output` for `grad`")
        twice = sorted(set(self.outputs) & set(self.schema.names))
        for name in (name for name in twice if not RESERVED.fullmatch(name)):
            self.mistake(place, f"an argument and an output are called {name!r}", "rename one")
        if len(set(self.outputs)) < len(self.outputs) or len(self.outputs) > MAX_OUTPUTS:
            self.mistake(place, "two outputs have the same name", "rename them")

    # keys

    def sort_keys(self):
        """The keys of inputs and the keys of outputs, each as `{key: names}`."""
        inputs, outputs, seen = {}, {}, set()
        for key, scalar in self.keys.items():
            names = tuple(name.strip() for name in key.split(","))
            if key in OWN_KEYS:
                continue
            if set(names) & set(self.schema.names):
                self.sort_key(inputs, key, names, self.schema.names, seen)
            elif all(self.canonical(name) for name in names):
                names = tuple(map(self.canonical, names))
                self.sort_key(outputs, key, names, self.outputs, seen)
            else:
                self.unknown_key(scalar, names)
        return inputs, outputs

    def canonical(self, name):
        """The output's own name for `name`: `result` is the only output, `result1` the second."""
        if name in self.outputs:
            return name
        numbers = {f"result{i}": output for i, output in enumerate(self.outputs)}
        return self.outputs[0] if name == "result" and len(self.outputs) == 1 else numbers.get(name)

    def sort_key(self, keys, key, names, known, seen):
        place = self.keys[key].place()
        for name in names:
            if name not in known:
                self.unknown_key(self.keys[key], (name,))
            elif name in seen:
                self.mistake(place, f"{name!r} has two formulas", "remove one of the two")
            elif known is self.schema.names and name not in self.schema.tensors:
                cause = f"a gradient for {name!r}, which is no Tensor input"
                self.mistake(place, cause, "remove the line")
            seen.add(name)
        keys[key] = names

    def unknown_key(self, scalar, names):
        known = frozenset((*self.schema.names, *self.outputs, *OWN_KEYS))
        name = next((name for name in names if name not in known), names[0])
        otherwise = f"inputs are {listed(self.schema.names)}; outputs {listed(self.outputs)}"
        cause = f"{shown(name)} is neither an argument nor an output"
        self.mistake(scalar.place(), cause, mean(name, known, otherwise))

    def places(self, keys):
        places = {n: self.values[key].place() for key, names in keys.items() for n in names}
        return {"name": self.entry.name.place()} | places

    # values

    def text_of(self, key):
        """The scalar under a key, or None after reporting a mistake."""
        value = self.values[key]
        if isinstance(value, Scalar) and value.one_line:
            return value
        if isinstance(value, Scalar):
            cure = "write it on one line; if it is long, move it to a helper function"
            self.mistake(value.place(), "a formula of several lines", cure)
        elif isinstance(value, Collection) and value.kind != "nothing":
            self.mistake(value.place(), f"a {value.kind} where a formula belongs", "write text")
        return None

    def read_value(self, key, words, scope, names, element=None):
        """The Word or Formula under a key, or BROKEN after reporting its mistakes."""
        scalar = self.text_of(key)
        if scalar is None:
            return BROKEN
        line, column = scalar.place()
        label = f"{self.title}.{','.join(names)}"
        where = {"path": self.path, "line": line, "column": column, "label": label}
        try:
            word = parse_word(scalar.text, words) if words else None
            return word or parse_formula(scalar.text, scope, element=element, **where)
        except FormulaError as error:
            for problem in error.problems:
                cause = f"in the formula of {names[0]!r}: {problem.cause}"
                self.mistake(scalar.place(problem.offset), cause, problem.cure)
        return BROKEN

    def read_forward(self):
        if "forward" in self.values:
            scope = self.scope(self.schema.names, namespaces=True)
            forward = self.read_value("forward", None, scope, ("forward",))
            if forward != BROKEN and self.schema.names and not forward.names:
                place = self.values["forward"].place()
                self.mistake(place, "the value reads no argument", "write it in terms of them")
            return forward
        # a function whose name begins with an underscore is private
        name, overload = self.schema.name.removeprefix("_"), self.schema.overload
        bases = {name, name.rstrip("_")} if self.schema.inplace else {name}
        if not self.functions & {*bases, *(f"{base}_{overload}" for base in bases)}:
            cause = f"no `forward:`, and no function is called {shown(name)}"
            self.mistake(self.entry.name.place(), cause, "write one of them")
        return None

    def read_write(self):
        """The formula that writes a value through a view, or None."""
        if "write" not in self.values:
            return None
        if not self.schema.is_view or "value" in self.schema.names:
            cause = "`write:` for an operator that is no view, or has an argument called 'value'"
            cure = "remove the line, or write `Tensor(a) self` and `-> Tensor(a)`"
            self.mistake(self.keys["write"].place(), cause, cure)
        scope = self.scope((*self.schema.names, "value"))
        return self.read_value("write", None, scope, ("write",))

    def read_node(self, is_differentiable):
        """The name of the entry's node: under `node:` where it is not the default."""
        default = node_name(self.schema.name, self.number)
        if "node" not in self.values:
            return default
        place, name = self.values["node"].place(), getattr(self.values["node"], "text", "")
        if not NODE.fullmatch(name):
            cure = "write a class name such as NameBackward1"
            self.mistake(place, f"{shown(name)} is no name of a node", cure)
        elif not is_differentiable:
            cause = f"`node: {name}`, but it is never recorded: no output is differentiable"
            self.mistake(place, cause, "remove the line")
        elif name == default:
            self.mistake(place, f"`node: {name}` is the default", "remove the line")
        return name

    def read_saves(self):
        """The names under `saves:`, none for `nothing`; None without the key."""
        if "saves" not in self.values:
            return None
        scalar = self.values["saves"]
        text = getattr(scalar, "text", "").strip()
        names = () if text == "nothing" else tuple(name.strip() for name in text.split(","))
        known = (*self.schema.tensors, *self.outputs)
        for name in (name for name in names if name not in known):
            cure = mean(name, frozenset(known), "name tensors and outputs, or write `nothing`")
            self.mistake(scalar.place(), f"{shown(name)} is no tensor that can be saved", cure)
        return names

    def read_gradients(self, keys):
        outputs = self.output_values()
        named = {f"grad_{r.name}" for r in self.schema.returns if r.name}
        reserved = {"grad", "grads", "grad_input_mask", "retain_variables"}
        scope = self.scope((*self.schema.names, *outputs, *reserved, *named), self.result_hint())
        return [(n, self.read_value(key, INPUT_WORDS, scope, n)) for key, n in keys.items()]

    def read_tangents(self, keys, gradients):
        if not keys:
            return {}
        still = {n for names, value in gradients if value == NON_DIFFERENTIABLE for n in names}
        moving = [name for name in self.schema.tensors if name not in still]
        fixed = [name for name in self.schema.names if name not in moving]
        primals = [f"{name}_p" for name in self.schema.tensors]
        tangents = [f"{name}_t" for name in moving]
        hints = {name: ambiguous(name) for name in moving} | self.result_hint()
        hints |= {f"{name}_t": tangentless(name) for name in still}
        scope = self.scope((*primals, *tangents, *fixed, *self.output_values()), hints)
        formulas = {}
        for key, names in keys.items():
            for position, name in enumerate(names):
                element = position if len(names) > 1 else None
                formulas[name] = self.read_value(key, OUTPUT_WORDS, scope, (name,), element)
        return formulas

    def output_values(self):
        """The names under which a formula may read the outputs."""
        numbered = (f"result{i}" for i in range(len(self.outputs)))
        return {*self.outputs, *numbered, *(["result"] if len(self.outputs) == 1 else [])}

    def result_hint(self):
        cause = f"'result' of {len(self.outputs)} outputs"
        return {"result": (cause, f"write {' or '.join(self.outputs[:3])}")}

    def scope(self, values, hints=None, namespaces=False):
        values, arguments = frozenset(values), self.schema.arguments
        plain = [a for a in arguments if not a.type.list and a.name in values]
        integers = frozenset(a.name for a in plain if a.type.base == "int")
        texts = frozenset(a.name for a in plain if a.type.base == "str")
        lists = frozenset(a.name for a in arguments if a.type.list)
        return Scope(values, self.callables, integers, texts, lists, hints or {}, namespaces)

    # output_differentiability

    def read_flags(self):
        """Whether each output is differentiable: by its flag, else if it is a float tensor."""
        if FLAGS_KEY in self.values:
            return self.explicit_flags(self.values[FLAGS_KEY])
        kinds = [r.type.tensor for r in self.schema.returns]
        kinds += [True] * (len(self.outputs) - len(kinds))
        named = zip(self.outputs, kinds, strict=True)
        return tuple(tensor and not is_integral(name) for name, tensor in named)

    def explicit_flags(self, value):
        if not isinstance(value, Collection) or value.kind != "list":
            self.mistake(value.place(), "output_differentiability is no list", FLAGS)
            return ()
        flags = [self.flag(item) for item in value.items]
        if len(flags) != len(self.outputs):
            cause = (
                f"output_differentiability of length {len(flags)} for {len(self.outputs)} outputs"
            )
            self.mistake(value.place(), cause, FLAGS)
        if self.schema.inplace and False in flags:
            cause = "an in-place operator's output cannot be non-differentiable"
            self.mistake(value.place(), cause, "leave output_differentiability out")
        return () if None in flags else tuple(flags)

    def flag(self, item):
        flag = BOOLEANS.get(getattr(item, "text", None))
        if flag is None:
            text = getattr(item, "text", "a list or map")
            self.mistake(item.place(), f"{shown(text)} is neither True nor False", FLAGS)
        return flag

    def without_formulas(self, values):
        """The gradients of an entry without differentiable outputs."""
        if any(value != NON_DIFFERENTIABLE for _, value in values):
            cause = "it has formulas, and none of its outputs is differentiable"
            self.mistake(self.entry.name.place(), cause, "remove them, or " + FLAGS)
        return [((name,), NON_DIFFERENTIABLE) for name in self.schema.tensors]


FLAGS = "write output_differentiability with True or False for each output: [True, False]"


def tangentless(name):
    cause = f"'{name}_t' is read, and {name!r} is non_differentiable"
    return cause, f"write {name}, or give it a gradient"


def ambiguous(name):
    cause = f"a forward-mode formula reads {name!r}, which is ambiguous"
    return cause, f"write {name}_p for its value, {name}_t for its tangent"
