"""Images as PNG files."""

from __future__ import annotations

import math
import struct
import zlib

import numpy as np

# the color type in a PNG file by the number of channels
_COLORS = {1: 0, 3: 2, 4: 6}


def png(pixels: np.ndarray) -> bytes:
    """A PNG file of an image (height, width, channels) of bytes, with 1, 3 or 4 channels."""
    height, width, channels = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, _COLORS[channels], 0, 0, 0)
    # each row begins with its filter, none
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    parts = (b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*part) for part in parts)


def _chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def rows_of(image: np.ndarray, dataformats: str) -> np.ndarray:
    """An image (height, width, channels), gray as three channels, of one in another order.

    dataformats: the order, letters of "NCHW". Several images (N) become one, in rows of 8.
    Raises AssertionError if the order does not fit the image.
    """
    order = dataformats.upper()
    if len(set(order)) != len(order) or not set("HW") <= set(order) <= set("NCHW"):
        raise AssertionError(
            f"dataformats={dataformats!r} must have the letters H and W, and may have C and N, once"
        )
    if image.ndim != len(order):
        raise AssertionError(
            "size of input tensor and input format are different: the tensor has the shape "
            f"{image.shape}, and the format is {dataformats!r}"
        )
    if "C" not in order:
        image, order = image[..., None], f"{order}C"
    if "N" in order:
        image = grid(image.transpose([order.index(letter) for letter in "NHWC"]), 8)
    else:
        image = image.transpose([order.index(letter) for letter in "HWC"])
    return np.repeat(image, 3, axis=2) if image.shape[2] == 1 else image


def grid(images: np.ndarray, columns: int) -> np.ndarray:
    """Images (n, height, width, channels) side by side, in rows of `columns`."""
    count, height, width, channels = images.shape
    columns = min(count, columns)
    rows = math.ceil(count / columns)
    whole = np.zeros((rows * columns, height, width, channels), images.dtype)
    whole[:count] = images
    whole = whole.reshape(rows, columns, height, width, channels).swapaxes(1, 2)
    return whole.reshape(rows * height, columns * width, channels)


def as_bytes(image: np.ndarray) -> np.ndarray:
    """The pixels of an image: bytes as they are, other numbers from 0 to 1 times 255."""
    factor = 1 if image.dtype == np.uint8 else 255
    return (image.astype(np.float32) * factor).clip(0, 255).astype(np.uint8)


def with_boxes(pixels: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """An image with red frames. boxes: (n, 4), of left, top, right and bottom."""
    pixels = pixels.copy()
    height, width, _ = pixels.shape
    red = np.array([255, 0, 0, 255], np.uint8)[: pixels.shape[2]]
    for left, top, right, bottom in np.asarray(boxes, int):
        columns = slice(max(left, 0), min(right, width - 1) + 1)
        rows = slice(max(top, 0), min(bottom, height - 1) + 1)
        for row in {top, bottom} & set(range(height)):
            pixels[row, columns] = red
        for column in {left, right} & set(range(width)):
            pixels[rows, column] = red
    return pixels
