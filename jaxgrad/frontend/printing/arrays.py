"""Tensors as text, character for character as PyTorch prints them.

A large array shrinks to its edges. Each remaining element becomes a text, all texts have one width,
and brackets group them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy

from ...core import dtypes
from ...tape import settings


@dataclass(frozen=True)
class PrintOptions:
    """The options of `set_printoptions`."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_PROFILES = {
    "default": PrintOptions(),
    "short": PrintOptions(precision=2, edgeitems=2),
    "full": PrintOptions(threshold=math.inf),
}
_INDENT = len("tensor(")
_CUT = " ..."  # marks omitted elements


def set_printoptions(
    precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None
) -> None:
    """Set how tensors print; None keeps an option, except for `sci_mode`.

    precision: digits after the point. threshold: print only the edges of a tensor with more
    elements; `inf` prints all. edgeitems: the length of an edge. linewidth: characters in a line.
    profile: "default", "short" or "full"; other arguments override it. sci_mode: True or False for
    scientific notation, None if the values decide.

    Raises ValueError for another profile, and for counts that are not ints of 0 or more.

    >>> from jaxgrad.frontend.printing import arrays as printing
    >>> printing.set_printoptions(profile="short")
    >>> printing.tensor_str(numpy.array([0.5, 2.25]), dtypes.float32)
    'tensor([0.50, 2.25])'
    >>> printing.set_printoptions(profile="default")
    """
    if profile is not None and profile not in _PROFILES:
        raise ValueError(f"set_printoptions: profile is {profile!r}, must be one of {[*_PROFILES]}")
    counts = {"precision": precision, "threshold": threshold}
    counts |= {"edgeitems": edgeitems, "linewidth": linewidth}
    overrides = {name: value for name, value in counts.items() if value is not None}
    for name, value in overrides.items():
        _check_count(name, value)
    options = replace(_PROFILES.get(profile, _options()), **overrides, sci_mode=sci_mode)
    settings.put("print_options", options)


def _options() -> PrintOptions:
    return settings.get("print_options") or _PROFILES["default"]


def _check_count(name, value):
    if name == "threshold" and value == math.inf:
        return
    if not isinstance(value, int) or value < 0:
        raise ValueError(f"set_printoptions: {name} is {value!r}, must be an integer of 0 or more")


def get_printoptions() -> dict:
    """Return the options of `set_printoptions` as a dict.

    >>> from jaxgrad.frontend.printing import arrays as printing
    >>> printing.get_printoptions()["precision"]
    4
    """
    return dict(vars(_options()))


def tensor_str(
    array,
    dtype,
    requires_grad=False,
    grad_fn_name=None,
    device=None,
    further=(),
    start="tensor(",
    contents=None,
) -> str:
    """The text of a tensor.

    array: its values, of numpy; without data, anything that has its shape. device: shown unless it
    is None. further: more suffixes. start: the text before the values. contents: a text in place of
    that of the values.
    """
    has_data = isinstance(array, numpy.ndarray)
    shape, shown_count = tuple(array.shape), array.size if has_data else 0
    suffixes = []
    if device is not None:
        suffixes.append(f"device='{device}'")
    is_telling = array.ndim == 1 if shown_count == 0 else _options().edgeitems != 0
    if contents is None and not (has_data and is_telling):
        suffixes.append(f"size={shape}")
    if dtype not in _unmarked_dtypes(shown_count):
        suffixes.append(f"dtype={dtype!r}")
    if grad_fn_name is not None:
        suffixes.append(f"grad_fn=<{grad_fn_name}>")
    elif requires_grad:
        suffixes.append("requires_grad=True")
    suffixes.extend(further)
    if contents is None:
        contents = body(array, dtype, len(start)) if has_data else "..."
    return with_suffixes(start + contents, suffixes, indent=len(start))


def sparse_tensor_str(
    parts, dtype, size, layout, count, requires_grad=False, grad_fn_name=None
) -> str:
    """The text of a sparse tensor: its indices and values, then its size and all else.

    parts: by their names the indices and the values, pairs of an array of numpy and its dtype.
    size: the sizes of the tensor, a tuple; count: the number of its elements.
    """
    texts = []
    for name, (array, kind) in parts.items():
        start = f"{name}=tensor("
        shown = body(array, kind, _INDENT + len(start))
        texts.append(start + shown + ("" if array.size else f", size={array.shape}") + ")")
    text = "tensor(" + (",\n" + " " * _INDENT).join(texts)
    suffixes = [f"size={size}", f"nnz={count}"]
    if dtype not in _unmarked_dtypes(1 if parts["values"][0].size else 0):
        suffixes.append(f"dtype={dtype!r}")
    suffixes.append(f"layout={layout!r}")
    if grad_fn_name is not None:
        suffixes.append(f"grad_fn=<{grad_fn_name}>")
    elif requires_grad:
        suffixes.append("requires_grad=True")
    return with_suffixes(text, suffixes, is_on_new_line="indices" in parts)


def _unmarked_dtypes(size):
    """The dtypes that the printed values imply, which PyTorch does not print."""
    default = dtypes.get_default_dtype()
    if size == 0:
        return {default}
    default_complex = dtypes.complex128 if default is dtypes.float64 else dtypes.complex64
    return {default, default_complex, dtypes.int64, dtypes.bool}


def with_suffixes(text, suffixes, is_on_new_line=False, indent=_INDENT):
    """The text with suffixes; is_on_new_line: whether these begin on a line of their own."""
    column, width = len(text) - text.rfind("\n") + 1, _options().linewidth
    for suffix in suffixes:
        if is_on_new_line or column + len(suffix) + 2 > width:
            text, column = f"{text},\n{' ' * indent}{suffix}", indent + len(suffix)
            is_on_new_line = False
            continue
        text, column = f"{text}, {suffix}", column + len(suffix) + 2
    return text + ")"


def body(array, dtype, indent=_INDENT):
    """The text of values, in brackets. indent: the number of characters before it in its line."""
    if array.size == 0:
        return "[]"
    summarized = array.size > _options().threshold
    if summarized and _options().edgeitems == 0 and array.ndim:
        return "[...]"
    shown = _edges(array) if summarized else array
    texts, width = _element_texts(shown, dtype)
    texts = numpy.array(texts, dtype=object).reshape(shown.shape)
    if not array.ndim:
        return texts.item()
    cut = [kept < length for kept, length in zip(shown.shape, array.shape, strict=True)]
    return _brackets(texts, cut, width, indent)


def _edges(array):
    """The first and last items along each long dimension."""
    count = _options().edgeitems
    for axis, length in enumerate(array.shape):
        if length > 2 * count:
            array = array.take([*range(count), *range(length - count, length)], axis)
    return array


def _brackets(texts, cut, width, indent):
    """Group texts in brackets. cut: for each dimension, whether its middle was omitted."""
    if texts.ndim == 1:
        return f"[{_line_by_line(_with_cut(texts.tolist(), cut[0]), width, indent)}]"
    rows = [_brackets(row, cut[1:], width, indent + 1) for row in texts]
    rows = _with_cut(rows, cut[0], "...")
    separator = "," + "\n" * (texts.ndim - 1) + " " * (indent + 1)
    return f"[{separator.join(rows)}]"


def _with_cut(items, is_cut, mark=_CUT):
    middle = len(items) // 2
    return [*items[:middle], mark, *items[middle:]] if is_cut else items


def _line_by_line(items, width, indent):
    in_line = max(1, (_options().linewidth - indent) // (width + len(", ")))
    lines = [", ".join(items[at : at + in_line]) for at in range(0, len(items), in_line)]
    return (",\n" + " " * (indent + 1)).join(lines)


def _element_texts(shown, dtype):
    """The text of each element, and the width that PyTorch counts for one."""
    flat = shown.reshape(-1)
    if dtype.is_complex:
        return _complex_texts(flat)
    if dtype.is_floating_point:
        return _float_texts(flat)
    texts = [str(value) for value in flat.tolist()]
    width = max(map(len, texts))
    return [text.rjust(width) for text in texts], width


def _complex_texts(flat):
    reals, real_width = _float_texts(flat.real)
    imaginaries, imaginary_width = _float_texts(flat.imag)
    texts = [
        real + ("" if imaginary.lstrip().startswith("-") else "+") + imaginary.lstrip() + "j"
        for real, imaginary in zip(reals, imaginaries, strict=True)
    ]
    return texts, real_width + imaginary_width + len("j")


def _float_texts(flat):
    values = flat.astype(numpy.float64)
    telling = values[numpy.isfinite(values) & (values != 0)]
    write = _notation(telling)
    width = max((len(write(value)) for value in telling.tolist()), default=1)
    return [write(value).rjust(width) for value in values.tolist()], width


def _notation(telling) -> Callable[[float], str]:
    """The notation of all floats, chosen by those that are finite and not zero."""
    if telling.size == 0:
        return _whole
    sizes = numpy.abs(telling)
    low, high = sizes.min(), sizes.max()
    whole = bool((telling == numpy.ceil(telling)).all())
    scientific = high / low > 1000 or high > 1e8 or (low < 1e-4 and not whole)
    if _options().sci_mode is not None:
        scientific = _options().sci_mode
    if scientific:
        return f"{{:.{_options().precision}e}}".format
    return _whole if whole else f"{{:.{_options().precision}f}}".format


def _whole(value):
    return f"{value:.0f}." if math.isfinite(value) else f"{value:.0f}"
