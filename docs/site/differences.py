"""The rows of docs/conventions.md by the names that their first cells mention."""

import html
import re
from functools import cache
from pathlib import Path

CONVENTIONS = Path(__file__).resolve().parents[1] / "conventions.md"
CODE = re.compile(r"`([^`]+)`")
NAME = re.compile(r"[\w.]+")


@cache
def differences() -> dict[str, list[str]]:
    """What a row says, as HTML, by name: `ldexp`, `linalg.cond`."""
    differences: dict[str, list[str]] = {}
    for line in CONVENTIONS.read_text().splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) != 3 or cells[1].startswith(("---", "PyTorch 2")):
            continue
        what, theirs, ours = (_inline(cell.replace("\\|", "|")) for cell in cells)
        difference = f"{what}: {ours} (PyTorch: {theirs})."
        for name in dict.fromkeys(NAME.match(code)[0] for code in _codes(cells[0])):
            differences.setdefault(name.removeprefix("torch."), []).append(difference)
    return differences


def _codes(text):
    """What a row is about, and not after what it happens."""
    codes = (code for code in CODE.finditer(text) if not text.endswith("after ", 0, code.start()))
    return [code[1] for code in codes if NAME.match(code[1])]


def _inline(text: str) -> str:
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return CODE.sub(r"<code>\1</code>", html.escape(text, False))
