"""What a program writes for TensorBoard, by PyTorch's writer or by jaxgrad's, and what is then in
the files.
"""

import base64
import struct
import zlib

import numpy as np
from google.protobuf.json_format import MessageToDict
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
from tensorboard.compat.proto.event_pb2 import Event

STEP, TIME = 3, 5.0


def write(torch, SummaryWriter, folder):
    """Call each method of a writer; numbers are exact in binary."""
    x = torch.arange(12.0).reshape(3, 4) / 16
    image = torch.stack([x, x / 2, x / 4])
    labels, scores = torch.tensor([0, 1, 1, 0, 1]), torch.tensor([0.125, 0.875, 0.5, 0.625, 0.75])
    at = {"global_step": STEP, "walltime": TIME}
    with SummaryWriter(folder) as w:
        w.add_scalar("a/b", x.sum(), **at)
        w.add_scalar("new", 2, **at, new_style=True)
        w.add_scalar("new", 0.1, **at, new_style=True, double_precision=True)
        w.add_scalars("main/x", {"p": 1, "q": x[0, 1]}, **at)
        for tensor in (x, x.double(), x.int(), x.long(), x.byte(), x > 0.25):
            w.add_tensor("tensor", tensor, **at)
        w.add_histogram("h", x - 0.25, **at)
        w.add_histogram("h", x, bins=5, **at)
        w.add_histogram("h", x * 100, bins="auto", **at)
        w.add_histogram("h", x * 128, max_bins=10, **at)
        w.add_histogram_raw("raw", 0, 1, 2, 3.0, 4.0, [0.5, 1], [1, 1], **at)
        w.add_image("image", image, **at)
        w.add_image("image", x, dataformats="HW", **at)
        w.add_image("image", (x[None] * 255).to(torch.uint8), **at)
        w.add_image("image", np.linspace(0, 2, 24).reshape(2, 3, 4), dataformats="HWC", **at)
        w.add_images("images", torch.stack([image * i / 16 for i in range(10)]), **at)
        w.add_images("images", x[None, :, :, None].repeat(2, 1, 1, 1), dataformats="NHWC", **at)
        w.add_audio("audio", x.reshape(-1) - 0.25, sample_rate=8000, **at)
        w.add_text("text", "hello *you*", **at)
        w.add_pr_curve("pr", labels, scores, **at)
        weights = np.array([1.0, 2, 3, 4, 5])
        w.add_pr_curve("pr", labels, scores, num_thresholds=5, weights=weights, **at)
        w.add_pr_curve_raw(
            "pr", [1, 2], [3, 4], [5, 6], [7, 8], [0.5, 0.25], [0.125, 1], STEP, 2, walltime=TIME
        )
        faces = torch.tensor([[[0, 1, 2]]])
        w.add_mesh("mesh", x[None, :, :3], x[None, :, :3] * 2, faces, {"b": 1, "a": 2}, **at)
        w.add_custom_scalars(
            {"c": {"t": ["Multiline", ["a", "b"]], "u": ["Margin", ["a", "b", "c"]]}}
        )
        w.add_custom_scalars_multilinechart(["a"])
        w.add_custom_scalars_marginchart(["a", "b", "c"], "k", "l")
        w.add_hparams({"lr": 0.5, "none": None}, {"acc": 0.5}, {"lr": [0.5, 0.25]}, "run", STEP)
        pictures = torch.stack([image] * 3)
        w.add_embedding(x, ["p", "q", "r"], pictures, 5, "tag/a")
        w.add_embedding(x, [["p", 1], ["q", 2], ["r", 3]], metadata_header=["u", "v"])
    writer = SummaryWriter(f"{folder}/again", purge_step=4)
    writer.close()
    writer.add_scalar("x", 1)
    writer.close()


def read(folder) -> dict:
    """The files of a folder: events as dicts, without the times that they were written at."""
    files = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_dir():
            continue
        if ".tfevents." in path.name:
            events = [
                MessageToDict(Event.FromString(raw)) for raw in RawEventFileLoader(str(path)).Load()
            ]
            files.setdefault(f"{path.parent.relative_to(folder)}", []).extend(map(cleaned, events))
        elif path.suffix == ".png":
            files[name] = pixels(path.read_bytes())
        else:
            files[name] = path.read_text()
    return files


def cleaned(event):
    event = {key: value for key, value in event.items() if key != "sourceMetadata"}
    if event.get("wallTime") != TIME:
        event.pop("wallTime")
    for value in event.get("summary", {}).get("value", ()):
        if "image" in value:
            data = base64.b64decode(value["image"].pop("encodedImageString"))
            value["image"]["pixels"] = pixels(data)
    return event


def pixels(png: bytes) -> list:
    """The rows of a PNG file without interlacing, of 8 bits a channel: PNG specification, chapters
    9 and 11.
    """
    chunks, at = {}, 8
    while at < len(png):
        (length,), kind = struct.unpack(">I", png[at : at + 4]), png[at + 4 : at + 8]
        chunks[kind] = chunks.get(kind, b"") + png[at + 8 : at + 8 + length]
        at += 12 + length
    width, height, depth, color, *_ = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert depth == 8
    size = {0: 1, 2: 3, 6: 4}[color]
    data, rows = zlib.decompress(chunks[b"IDAT"]), [bytes(width * size)]
    for row in range(height):
        start = row * (width * size + 1)
        rows.append(
            unfiltered(data[start], data[start + 1 : start + 1 + width * size], rows[-1], size)
        )
    return [[list(row[i : i + size]) for i in range(0, len(row), size)] for row in rows[1:]]


def unfiltered(kind, row, above, size):
    output = bytearray()
    for i, value in enumerate(row):
        left, corner = (output[i - size], above[i - size]) if i >= size else (0, 0)
        up = above[i]
        guess = left + up - corner
        nearest = min((left, up, corner), key=lambda neighbor: abs(guess - neighbor))
        output.append((value + (0, left, up, (left + up) // 2, nearest)[kind]) % 256)
    return bytes(output)
