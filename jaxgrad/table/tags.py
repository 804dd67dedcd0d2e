"""Reads `tags:` and `protocol:`, which say what is true of an operator besides its formulas.

They hold for all overloads of an operator and stand in its first entry.
"""

from itertools import chain
from typing import NamedTuple

from .mistakes import mean, shown
from .operators import ITEM, misplaced, title_of
from .source import Scalar

# an operator has one tag of a line at most
EXCLUSIVE = (
    ("inplace", "inplace_function", "inplace_only"),
    (
        *("autocast_lower_precision", "autocast_fp32", "autocast_promote"),
        *("autocast_accelerator_lower_precision", "autocast_accelerator_fp32"),
        "autocast_accelerator_promote",
    ),
    (
        "exact_out",
        "exact_outs",
        "exact_real_out",
        "bool_out",
        "in_dtype_of_out",
        "in_floats_of_out",
    ),
    ("sparse", "sparse_linear", "sparse_zero_to_zero"),
    ("masked_unary", "masked_binary", "masked_reduction", "masked_move"),
    (
        "attention_strides",
        *("binary_strides", "cat_strides", "channels_strides", "column_strides"),
        *("contiguous_strides", "convolution_strides", "distinct_strides", "exact_strides"),
        "fft_strides",
        *("halves_strides", "index_strides", "least_squares_strides", "left_column_strides"),
        *("normalized_strides", "pointwise_strides", "power_strides"),
        *(
            "reshaped_strides",
            "reversed_strides",
            "rolled_strides",
            "rotated_strides",
            "same_strides",
            "solution_strides",
            "stack_strides",
        ),
        *("target_strides", "time_first_strides", "volume_channels_strides"),
    ),
)
TAGS = frozenset(
    (
        *("bits", "copy", "float8", "foreach", "may_copy", "no_method", "number_first", "old_form"),
        *("parts", "separate_out", "type_error_out", "warns"),
        *chain(*EXCLUSIVE),
    )
)

# Python's special methods that have a reflected form and one that writes in place, and the others
ARITHMETIC = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"),
    *("and", "or", "xor", "lshift", "rshift"),
)
IN_PLACE = frozenset(f"__i{name}__" for name in ARITHMETIC)
PROTOCOLS = IN_PLACE | {f"__{reflected}{name}__" for name in ARITHMETIC for reflected in ("", "r")}
PROTOCOLS |= {"__neg__", "__pos__", "__abs__"}
PROTOCOLS |= {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"}


def words(value):
    """The words of a value, which commas separate; none for a value that is no text."""
    return ITEM.findall(value.text) if isinstance(value, Scalar) else []


def tags_of(entries):
    """The tags of the operators that have some; entries: those of each operator."""
    tags = {name: frozenset(words(group[0].value("tags"))) for name, group in entries.items()}
    return {name: known for name, known in tags.items() if known}


def protocols_of(entries):
    """The operator of each special method of Python: `add` of `__add__`, `add_` of `__iadd__`."""
    owners = {}
    for name, group in entries.items():
        for method in words(group[0].value("protocol")):
            owners.setdefault(method, f"{name}_" if method in IN_PLACE else name)
    return owners


def _is_method(schema):
    first = schema.arguments[:1]
    return any(argument.name == "self" and argument.type.base == "Tensor" for argument in first)


def _has_inplace_form(schema):
    return _is_method(schema) and not schema.inplace


def _takes_two_tensors(schema):
    return [argument.type.base for argument in schema.arguments[:2]] == ["Tensor", "Tensor"]


def scales_tensors(schema):
    """Whether numbers that only keywords pass, such as `alpha`, scale the tensors of a call."""
    keywords = [argument for argument in schema.arguments if argument.keyword_only]
    return bool(keywords) and all(argument.type.base == "Scalar" for argument in keywords)


# what the schema of an overload must be for a tag, and the cause of the mistake where none is so
NEEDS = {
    "inplace": (_has_inplace_form, "its first argument is no `Tensor self` that it leaves alone"),
    "inplace_function": (
        _has_inplace_form,
        "its first argument is no `Tensor self` that it leaves alone",
    ),
    "inplace_only": (lambda schema: schema.name.startswith("_"), "it is a public operator"),
    "no_method": (_is_method, "its first argument is no `Tensor self`"),
    "foreach": (_is_method, "its first argument is no `Tensor self`"),
    "copy": (lambda schema: schema.is_view, "it is no view"),
    "may_copy": (lambda schema: schema.is_view, "it is no view"),
    "bits": (lambda schema: not schema.is_view, "it is a view, which takes every dtype"),
    "float8": (lambda schema: not schema.is_view, "it is a view, which takes every dtype"),
    "number_first": (_takes_two_tensors, "its first two arguments are no tensors"),
    "old_form": (scales_tensors, "it has no numbers that only keywords pass"),
}


class Operator(NamedTuple):
    """What words are checked against: an operator's name and tags, the schemas of its overloads,
    empty if one cannot be read, and the operator of each special method.
    """

    name: str
    tags: frozenset
    schemas: list
    protocols: dict


def check_tags(entries, operator, report):
    """Report each word of `tags:` and `protocol:` that is misplaced or unknown, or contradicts
    another word or the schemas of the operator.
    """
    first, title = entries[0], title_of(entries[0])
    for key, wrong in (("tags", _wrong_tag), ("protocol", _wrong_protocol)):
        for entry in entries:
            for place, cause, cure in misplaced(key, entry, entries):
                report(place, title_of(entry), cause, cure)
        value, before = first.value(key), []
        if value is not None and not words(value):
            report(value.place(), title, f"`{key}:` holds no words", WORDS)
        for word in ITEM.finditer(value.text) if words(value) else ():
            problem = wrong(word[0], before, operator)
            if word[0] in before:
                problem = f"{shown(word[0])} stands twice", "remove one of the two"
            if problem:
                report(value.place(word.start()), title, *problem)
            before.append(word[0])


WORDS = "write words, separated by commas"


def _wrong_tag(tag, before, operator):
    """Cause and cure if an operator cannot have a tag, else None."""
    if tag not in TAGS:
        return f"{shown(tag)} is no tag", mean(tag, TAGS, "the head of derivatives.yaml lists them")
    group = next((group for group in EXCLUSIVE if tag in group), ())
    others = [other for other in before if other in group]
    if others:
        return f"the tags {others[0]!r} and {tag!r} exclude each other", "remove one of them"
    schemas = operator.schemas
    needs, cause = NEEDS.get(tag, (None, None))
    if needs and schemas and not any(map(needs, schemas)):
        return f"the tag {tag!r}, but {cause}", "remove the tag"
    return None


def _wrong_protocol(method, _before, operator):
    """Cause and cure if a special method of Python cannot call an operator, else None."""
    if method not in PROTOCOLS:
        cure = mean(method, PROTOCOLS, "write one such as __add__, __radd__ or __iadd__")
        return f"{shown(method)} is no operator of Python", cure
    owner = operator.protocols[method]
    if owner.removesuffix("_") != operator.name:
        return f"{method} calls {owner!r} already", "remove one of the two"
    if method in IN_PLACE and "inplace" not in operator.tags:
        return f"{method}, but the operator has no in-place form", "add the tag `inplace`"
    return None
