"""Whether test scenarios say what is to come out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from podium.flows.pipeline.markdown import Line
from podium.flows.pipeline.placeholders import LOOKED_AT, cells_of, is_delimiter, says_something

_SAYS_WHAT = re.compile(
    r"""-{1,2}>|=>|[→⇒⟶➜➔↦]|==|!=|≠|≥|≤|>=|<=|^\W*then\b
    |\b(?:expect(?:s|ed|ing|ation)?|returns?|yields?|raises?|throws?|prints?|outputs?|equals?|becomes
    |results?\s+in|evaluates\s+to|responds?\s+with|exits?\s+with|exit\s+(?:code|status)|assert\w*)\b""",
    re.VERBOSE | re.IGNORECASE,
)
"""What comes after one of these is a result, whatever it is."""
_MAYBE_WHAT = re.compile(
    r"\b(?:should|must|shall|is|are|be|has|have|gives?|shows?|displays?|stays|contains?|keeps?)\b|=",
    re.IGNORECASE,
)
"""After these it is one only when it looks like a value."""
_VALUE = re.compile(
    r"""\d|["'`“‘«]\S|\b(?:true|false|none|null|nil|empty|on|off|enabled|disabled|checked|unchecked)\b"""
    r"""|\b[a-z]\w+(?:error|exception)\b""",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"\bexpected\s+(?:values?|results?|outcomes?|outputs?|behaviou?r)\b", re.IGNORECASE
)
_COLUMN = re.compile(
    r"expect|result|output|outcome|then|return|should|value|status|after|response", re.IGNORECASE
)
_CODE = re.compile(r"`[^`]+`|\"[^\"]*\"|'[^']*'|\[\]|\{\}")
_LEADING = " \t:*_`-–—=>~"
_MOST_MARKERS = 20
"""Of a line."""


def holds_expected_values(body: Sequence[Line]) -> bool:
    """A table with results in it, or lines that say what comes out, with a value."""
    return _in_table(body) or _in_lines(body)


def _in_table(body: Sequence[Line]) -> bool:
    columns: list[int] = []
    for number, line in enumerate(body):
        if "|" not in line.text:
            columns = []
        elif is_delimiter(line.text):
            columns = _result_columns(body[number - 1].text) if number else []
        elif any(_cell(line.text, each) for each in columns):
            return True
    return False


def _result_columns(head: str) -> list[int]:
    cells = cells_of(head)
    named = [number for number, cell in enumerate(cells) if _COLUMN.search(cell)]
    return named or ([len(cells) - 1] if len(cells) > 1 else [])


def _cell(row: str, number: int) -> bool:
    cells = cells_of(row)
    return number < len(cells) and _is_value(cells[number])


def _in_lines(body: Sequence[Line]) -> bool:
    """A line, or a heading below the section's own, says `expected`, and a value follows."""
    waiting = False
    for line in body:
        text = line.text[:LOOKED_AT].strip()
        if not text or (text.startswith("|") and not line.code):
            continue
        if waiting and _is_value(text):
            return True
        waiting, found = _look(text)
        if found:
            return True
    return False


def _look(line: str) -> tuple[bool, bool]:
    """Whether the line leaves its value to the next one, and whether it names one itself."""
    plain = _LABEL.sub("expected", line)
    ends_open = False
    for marker in islice(_SAYS_WHAT.finditer(plain), _MOST_MARKERS):
        rest = plain[marker.end() :].strip(_LEADING)
        ends_open = not rest
        if rest and _is_value(rest):
            return False, True
    for marker in islice(_MAYBE_WHAT.finditer(plain), _MOST_MARKERS):
        rest = plain[marker.end() :]
        if _VALUE.search(rest) and says_something(rest.strip(_LEADING)):
            return False, True
    return ends_open, False


def _is_value(text: str) -> bool:
    """Words, numbers or code that are no placeholder. Nothing at all can be a result too."""
    plain = text.strip(_LEADING + ".")
    return (
        says_something(plain)
        or plain.casefold() in ("none", "nothing", "null")
        or _CODE.search(text) is not None
    )
