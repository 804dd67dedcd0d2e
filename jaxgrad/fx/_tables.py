"""Tables as text: columns with a line below their names."""

from __future__ import annotations


def table(rows: list[list], headers: list[str]) -> str:
    """The text of a table, of columns that are as wide as their longest text.

    Columns of numbers alone stand to the right.
    """
    cells = [[str(value) for value in row] for row in rows]
    columns = list(zip(headers, *cells, strict=True))
    widths = [max(map(len, column)) for column in columns]
    widths = [max(width, len(name) + 2) for width, name in zip(widths, headers, strict=True)]
    are_numbers = [all(map(_is_number, column[1:])) and bool(cells) for column in columns]

    def line(values):
        pairs = zip(values, widths, are_numbers, strict=True)
        shown = (text.rjust(width) if right else text.ljust(width) for text, width, right in pairs)
        return "  ".join(shown).rstrip()

    return "\n".join([line(headers), "  ".join("-" * width for width in widths), *map(line, cells)])


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
