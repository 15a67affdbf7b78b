"""Lines of a conversation with a program, as its transcript keeps them: one JSON value each."""

from __future__ import annotations

import json


def sent_line(line: str) -> str:
    """A line of JSON that was said to the program."""
    return f'{{"sent": {line}}}'


def heard_line(line: str) -> str:
    """A line that the program wrote. What is no JSON is kept as the text it is."""
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return printed_line(line)
    return line


def printed_line(line: str) -> str:
    # Not escaped more than need be: secrets are looked for in what is written.
    return json.dumps({"printed": line}, ensure_ascii=False)
