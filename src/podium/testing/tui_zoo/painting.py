"""Width and rows of text on a terminal."""

from __future__ import annotations

from unicodedata import combining, east_asian_width


def width_of(text: str) -> int:
    """In columns."""
    if text.isascii():
        return len(text)
    return sum(
        0 if combining(character) else 1 + (east_asian_width(character) in "WF")
        for character in text
    )


def rows_of(line: str, columns: int) -> int:
    return max(1, -(-width_of(line) // columns))


def wrap_lines(line: str, columns: int) -> list[str]:
    """Broken between words where that is possible, as Ink breaks lines."""
    rows, row = [], ""
    for number, word in enumerate(line.split(" ")):
        longer = f"{row} {word}" if number else word
        if width_of(longer) <= columns:
            row = longer
            continue
        if row.strip():
            rows.append(row)
            longer = word
        *full, row = cut(longer, columns)
        rows.extend(full)
    return [*rows, row]


def cut(line: str, columns: int) -> list[str]:
    """Broken wherever the row is full."""
    rows, row = [], ""
    for character in line:
        if width_of(row + character) > columns:
            rows.append(row)
            row = ""
        row += character
    return [*rows, row]
