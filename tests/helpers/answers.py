"""What PyTorch answered, as text that a diff shows: recorders write it here, and tests read it.

Tables are JSON beside what reads them: test_printing.answers.json beside test_printing.py.
What a piece of PyTorch code returned (as_torch.py) is a text in the test, or if it is long in
test_views.answers.txt beside test_views.py, below the test's name. In such a text,

    tensor([1.0, 2.0], requires_grad=True)
    tensor([], shape=[0, 3], dtype=float64)
    tensor(shape=[2, 3], strides=[3, 1], dtype=float32, device='meta')
    [1.0-2.0j, nan, {'a': None}]
    RuntimeError('the words of an error')
    no_error
    warned([UserWarning('its words')], 'the result of the call')

are the items of a list, and lines `name = 1.0` would be those of a dict. A tensor has PyTorch's
default dtype unless it says another.
"""

import ast
import functools
import json
import keyword
import math
import re
import textwrap
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]

WIDTH = 100
LONGEST_LITERAL = 84
HANGING = 8  # items begin in the line of a bracket that opens before this column

DTYPES = {bool: "torch.bool", int: "torch.int64", float: "torch.float32", dict: "torch.complex64"}
PRECISION = {"torch.float32": 1e-6, "torch.complex64": 1e-6, "torch.float16": 0.0}
NAMES = {"nan": math.nan, "inf": math.inf, "nanj": math.nan, "infj": math.inf}
ADDRESS = re.compile(r"\b0x[0-9a-f]{8,}\b")
NO_ERROR = {"error": None, "says": ""}


def beside(file, ending="json"):
    """The file of the answers to the tests of a file, which is named by its path in tests/."""
    return (TESTS / file).with_suffix(f".answers.{ending}")


# layout: a node is a string, or an opening bracket, nodes, what separates them and a closing one


def group(opening, items, separator, closing):
    return (opening, items, separator, closing) if items else opening + closing


def joined(node):
    if isinstance(node, str):
        return node
    opening, items, separator, closing = node
    return opening + f"{separator} ".join(map(joined, items)) + closing


def prefixed(prefix, node):
    return prefix + node if isinstance(node, str) else (prefix + node[0], *node[1:])


def lines(node, room):
    """A node on one line if it fits, else its items below each other, numbers side by side."""
    flat = joined(node)
    if isinstance(node, str) or len(flat) <= room:
        return [flat]
    opening, items, separator, closing = node
    hangs = len(opening) <= HANGING
    indent = len(opening) if hangs else 1
    body = []
    for number, item in enumerate(items, 1):
        first, *rest = lines(item, room - indent - 2)
        short = separator and body and isinstance(item, str) and isinstance(items[number - 2], str)
        if short and len(body[-1]) + len(first) < room - indent - 1:
            body[-1] += f" {first}"
        else:
            body += [first, *rest]
        body[-1] += separator if number < len(items) else closing
    if hangs:
        return [opening + body[0], *(" " * indent + line for line in body[1:])]
    return [opening, *(" " * indent + line for line in body)]


# tables


def json_node(value):
    if isinstance(value, dict):
        items = [prefixed(f"{json.dumps(key)}: ", json_node(item)) for key, item in value.items()]
        return group("{", items, ",", "}")
    if isinstance(value, list):
        return group("[", list(map(json_node, value)), ",", "]")
    return json.dumps(value)


def as_json(table):
    """JSON with an entry on each line, or on several."""
    opening, items, separator, closing = json_node(table)
    entries = ("\n".join(lines(item, WIDTH)) for item in items)
    return "\n".join([opening, f"{separator}\n".join(entries), closing, ""])


def load(path):
    """The table in a file; empty if there is no such file."""
    return json.loads(path.read_text()) if path.exists() else {}


def save(path, table, relative=0.0, absolute=0.0):
    """Write a table, except for what differs by less from the numbers that the file has."""
    table = json.loads(json.dumps(table))
    path.write_text(as_json(kept(load(path), table, relative, absolute)))


def kept(old, new, relative, absolute=0.0):
    """A new value, with the old digits of the numbers that agree with it and the old addresses.

    Processors round differently: without this, recording again would change what is right.
    """
    if isinstance(old, str) and isinstance(new, str):
        return old if ADDRESS.sub("", old) == ADDRESS.sub("", new) else new
    if isinstance(old, float) and isinstance(new, float):
        return old if math.isclose(old, new, rel_tol=relative, abs_tol=absolute) else new
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = zip(old, new, strict=True)
        return [kept(*pair, relative, absolute) for pair in pairs]
    if isinstance(old, dict) and isinstance(new, dict):
        relative = PRECISION.get(str(new.get("dtype")), relative)
        return {name: kept(old.get(name), new[name], relative, absolute) for name in new}
    return new


# what pieces of code returned, in the form that as_torch.described gives it


def as_text(value, room=WIDTH):
    """The lines of an answer."""
    node = text_node(value)
    if isinstance(value, list) and len(value) > 1:
        nodes = node[1]
    elif node[0] == "{" and value and all(map(can_be_name, value)):
        nodes = [prefixed(f"{name} = ", text_node(item)) for name, item in value.items()]
    else:
        nodes = [node]
    return [line for node in nodes for line in lines(node, room)]


def can_be_name(key):
    return key.isidentifier() and not keyword.iskeyword(key)


def text_node(value):
    if isinstance(value, str):
        pieces = pieces_of(value)
        return pieces[0] if len(pieces) == 1 else ("(", pieces, "", ")")
    if isinstance(value, list):
        return group("[", list(map(text_node, value)), ",", "]")
    if not isinstance(value, dict):
        return repr(value)
    keys = list(value)
    if keys[:3] == ["dtype", "shape", "requires_grad"]:
        return tensor_node(**value)
    if keys == ["real", "imag"] and isinstance(value["real"], float):
        sign = "-" if math.copysign(1, value["imag"]) < 0 else "+"
        return f"{value['real']!r}{sign}{abs(value['imag'])!r}j"
    if keys[:2] == ["error", "says"]:
        return error_node(value["error"], value["says"])
    if keys == ["warnings", "result"]:
        return "warned(", list(map(text_node, value.values())), ",", ")"
    items = [prefixed(f"{key!a}: ", text_node(item)) for key, item in value.items()]
    return group("{", items, ",", "}")


def error_node(error, says):
    return "no_error" if error is None else (f"{error}(", pieces_of(says), "", ")")


def tensor_node(dtype, shape, requires_grad, values=None, strides=None):
    items = []
    if strides is None:
        items.append(text_node(values))
    if shape != shape_of(values):
        items.append(f"shape={shape}")
    if strides is not None:
        items.append(f"strides={strides}")
    if dtype != dtype_of(values):
        items.append(f"dtype={dtype.removeprefix('torch.')}")
    if strides is not None:
        items.append("device='meta'")
    if requires_grad:
        items.append("requires_grad=True")
    return "tensor(", items, ",", ")"


def pieces_of(string):
    """The literals of a string; a long string has several."""
    if len(ascii(string)) <= LONGEST_LITERAL:
        return [ascii(string)]
    pieces = [""]
    for word in re.findall(r"\S*\s?", string):
        if pieces[-1].endswith("\n") or len(ascii(pieces[-1] + word)) > LONGEST_LITERAL:
            pieces.append("")
        pieces[-1] += word
    return [ascii(piece) for piece in pieces if piece]


def shape_of(values):
    """The shape of nested lists, as far as their lengths say it."""
    return [len(values), *(shape_of(values[0]) if values else [])] if is_list(values) else []


def dtype_of(values):
    """The dtype that PyTorch has for nested lists of numbers."""
    while is_list(values) and values:
        values = values[0]
    return DTYPES.get(type(values))


def is_list(value):
    return isinstance(value, list)


def read(text):
    """The answer that a text stands for."""
    items = map(item_of, ast.parse(textwrap.dedent(text)).body)
    names, values = zip(*items, strict=True)
    if None not in names:
        return dict(zip(names, values, strict=True))
    if any(names):
        raise ValueError(f"an answer cannot have lines of names and others: {text}")
    return list(values) if len(values) > 1 else values[0]


def item_of(statement):
    """The name of a line, or None, and its value."""
    match statement:
        case ast.Expr(value):
            return None, value_of(value)
        case ast.Assign([ast.Name(name)], value):
            return name, value_of(value)
    raise ValueError(f"an answer cannot have {ast.unparse(statement)}")


def value_of(node):
    """What an expression stands for, in the form that as_torch.described gives it."""
    match node:
        case ast.Constant(value):
            return value
        case ast.Name("no_error"):
            return NO_ERROR
        case ast.Name(name):
            return NAMES[name]
        case ast.UnaryOp(ast.USub(), operand):
            return -value_of(operand)
        case ast.BinOp(left, sign, right):
            imag = value_of(right)
            imag = imag.imag if isinstance(imag, complex) else imag
            return {"real": value_of(left), "imag": -imag if isinstance(sign, ast.Sub) else imag}
        case ast.List(items):
            return list(map(value_of, items))
        case ast.Dict(keys, values):
            return dict(zip(map(value_of, keys), map(value_of, values), strict=True))
        case ast.Call(ast.Name("tensor"), arguments, options):
            return tensor_of(*map(value_of, arguments), **{o.arg: o.value for o in options})
        case ast.Call(ast.Name("warned"), [warnings, result], []):
            return {"warnings": value_of(warnings), "result": value_of(result)}
        case ast.Call(ast.Name(error), [says], []):
            return {"error": error, "says": value_of(says)}
    raise ValueError(f"an answer cannot have {ast.unparse(node)}")


def tensor_of(values=None, *, dtype=None, **options):
    options = {name: value_of(option) for name, option in options.items()}
    options.pop("device", None)
    shape, requires_grad = options.pop("shape", None), options.pop("requires_grad", False)
    return {
        "dtype": f"torch.{dtype.id}" if dtype else dtype_of(values),
        "shape": shape_of(values) if shape is None else shape,
        "requires_grad": requires_grad,
        **(options if "strides" in options else {"values": values}),
    }


# long texts


@functools.cache
def sections(path):
    """The texts of a file, by what stands above them."""
    if not path.exists():
        return {}
    _, *parts = re.split(r"^(\S+):\n", path.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def save_sections(path, texts):
    """Write texts with what stands above them; no file if there are none."""
    if texts:
        path.write_text("\n".join(f"{name}:\n{text}" for name, text in texts.items()))
    else:
        path.unlink(missing_ok=True)
