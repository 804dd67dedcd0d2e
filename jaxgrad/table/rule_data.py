"""Rules as plain data that JSON can write, so that a process need not parse the entries again.

The data is the checked content of an entry. It has the text of a formula and not its tree: the text
is parsed when the formula is compiled.
"""

from functools import lru_cache

from .formula import Formula, Word
from .rule import Rule
from .schema import REQUIRED, Argument, Return, Schema, Type


def data_of(rule: Rule) -> list:
    """The data of a rule."""
    schema = rule.schema
    arguments = [*map(_argument_data, schema.arguments)]
    returns = [[result.name, _type_data(result.type)] for result in schema.returns]
    return [
        [schema.name, schema.overload, arguments, returns, schema.text],
        _value_data(rule.forward),
        [[[*names], _value_data(value)] for names, value in rule.gradients],
        {name: _value_data(value) for name, value in rule.tangents.items()},
        [*rule.output_differentiability],
        rule.line,
        [*rule.outputs],
        {name: [*place] for name, place in rule.places.items()},
        _value_data(rule.write),
        rule.node,
        rule.has_no_formulas,
        None if rule.saves is None else [*rule.saves],
        sorted(rule.tags),
    ]


def rule_of(data: list, path: str) -> Rule:
    """The rule of some data, of the table in the file `path`."""
    schema, forward, gradients, tangents, flags, line, outputs, places, *others = data
    write, node, has_no_formulas, saves, tags = others
    name, overload, arguments, returns, text = schema
    schema = Schema(
        name,
        overload,
        tuple([_argument(*argument) for argument in arguments]),
        tuple([Return(name, _type(*kind)) for name, kind in returns]),
        text,
    )
    return Rule(
        schema,
        _value(forward, path),
        tuple([(tuple(names), _value(value, path)) for names, value in gradients]),
        {name: _value(value, path) for name, value in tangents.items()},
        tuple(flags),
        path,
        line,
        tuple(outputs),
        {name: tuple(place) for name, place in places.items()},
        _value(write, path),
        node,
        has_no_formulas,
        None if saves is None else tuple(saves),
        frozenset(tags),
    )


def _type_data(kind: Type) -> list:
    return [kind.base, kind.optional, kind.list, kind.size, kind.alias, kind.optional_items]


_type = lru_cache(maxsize=1024)(Type)


def _argument_data(argument: Argument) -> list:
    data = [argument.name, _type_data(argument.type), argument.keyword_only]
    return data if argument.default is REQUIRED else [*data, argument.default]


def _argument(name, kind, keyword_only, default=REQUIRED) -> Argument:
    default = tuple(default) if type(default) is list else default
    return Argument(name, _type(*kind), default, keyword_only)


def _value_data(value: Formula | Word | None) -> list | None:
    """The data of a formula, which is longer than that of a word."""
    if value is None:
        return None
    if isinstance(value, Word):
        return [value.kind, value.message]
    names = [sorted(group) for group in (value.names, value.values, value.calls)]
    indexed = [[*pair] for pair in sorted(value.indexed)]
    return [
        *(value.text, value.line, value.column, value.label, *names),
        *(indexed, value.places, value.element),
    ]


def _value(data, path) -> Formula | Word | None:
    if data is None:
        return None
    if len(data) == 2:
        return Word(*data)
    text, line, column, label, names, values, calls, indexed, places, element = data
    groups = [*map(frozenset, (names, values, calls, map(tuple, indexed)))]
    return Formula(text, path, line, column, label, *groups, places, element)
