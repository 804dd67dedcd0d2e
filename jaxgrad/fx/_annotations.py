"""What code in its readable form says of nodes besides their lines: shapes, and where they come
from.
"""

from __future__ import annotations

import re

_SHORT = {
    "float32": "f32",
    "float64": "f64",
    "float16": "f16",
    "bfloat16": "bf16",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "bool": "b8",
    "complex64": "c64",
    "complex128": "c128",
    "complex32": "c32",
    "float8_e4m3fn": "f8e4m3fn",
    "float8_e5m2": "f8e5m2",
    "float8_e4m3fnuz": "f8e4m3fnuz",
    "float8_e5m2fnuz": "f8e5m2fnuz",
}


def dtype_abbr(dtype) -> str:
    """The short name of a dtype: `f32` of float32."""
    name = str(dtype).removeprefix("torch.")
    return _SHORT.get(name, name)


def shown_type(node, stride: bool = False, device: bool = False) -> str:
    """The dtype and shape of a node's tensor, where a pass noted them: `f32[3, 2]`."""
    value = node.meta.get("val", node.meta.get("example_value", node.meta.get("tensor_meta")))
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is None or dtype is None:
        return ""
    text = f"{dtype_abbr(dtype)}[{', '.join(map(str, shape))}]"
    if stride and callable(getattr(value, "stride", None)):
        text += f"[{', '.join(map(str, value.stride()))}]"
    if device and hasattr(value, "device"):
        text += str(value.device)
    return text


_FRAME = re.compile(r'^File "(.+)", line (\d+), in (.+)$')


def comment_of(node, additional_meta=()) -> str:
    """The comment on the lines that come from one line of the program."""
    further = "".join(
        f" {name}: {node.meta[name]}" for name in additional_meta if name in node.meta
    )
    if not node.stack_trace:
        return f"No stacktrace found for following nodes{further}"
    lines = [line.strip() for line in node.stack_trace.strip().split("\n")]
    for number in range(len(lines) - 2, -1, -1):
        frame = _FRAME.match(lines[number])
        if frame:
            file, line, function = frame.groups()
            return f"File: {file}:{line} in {function}, code: {lines[number + 1]}{further}"
    return ""
