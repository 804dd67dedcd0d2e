"""Tables as HTML, which notebooks show: small, without scripts, and in the colours of the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

SPACE = "\N{NO-BREAK SPACE}"
STEP = 4 * SPACE  # an indentation
MOST_LINES = 20  # of a text that is shown unasked


def table(titles: Sequence[str], rows: Iterable[Sequence], numbers: Iterable[int] = ()) -> str:
    """A table of texts and numbers; the text is escaped.

    titles: the first row. rows: the others; an int is shown with commas. numbers: the columns that
    are aligned to the right.

    >>> table(["name", "size"], [["a<b", 1000]], numbers=[1]).count("<td")
    2
    >>> "a&lt;b" in table(["name"], [["a<b"]])
    True
    """
    right = set(numbers)
    sides = ["right" if column in right else "left" for column in range(len(titles))]
    head = _row("th", titles, sides)
    body = "\n".join(_row("td", row, sides) for row in rows)
    # on a page without styles for tables the attributes hold
    style = 'cellpadding="4" rules="rows" style="border-collapse:collapse;margin:4px 0"'
    return f"<table {style}>\n<thead>{head}</thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def _row(tag, cells, sides) -> str:
    elements = (
        f'<{tag} style="text-align:{side}">{escape(_shown(cell))}</{tag}>'
        for cell, side in zip(cells, sides, strict=True)
    )
    return f"<tr>{''.join(elements)}</tr>"


def _shown(cell) -> str:
    return f"{cell:,}" if type(cell) is int else str(cell)


def line(text: str, is_bold: bool = False) -> str:
    """A line of text above or below a table; the text is escaped."""
    weight = ";font-weight:600" if is_bold else ""
    return f'<div style="font-size:90%;margin:4px 0{weight}">{escape(text)}</div>'


def code(text: str, title: str) -> str:
    """Text as it is printed; it is escaped. A long one is folded below a title."""
    style = "margin:4px 0;background:none;font:90%/1.3 monospace"
    shown = f'<pre style="{style}">{escape(text)}</pre>'
    if text.count("\n") < MOST_LINES:
        return shown
    return f"<details><summary>{escape(title)}</summary>{shown}</details>"
