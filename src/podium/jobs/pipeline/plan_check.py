"""Check that a plan has every part that a developer and a reviewer need, expected values included."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from podium.jobs.pipeline.agent_text import (
    BOLD,
    LOOKED_AT,
    MarkdownLine,
    cells_of,
    is_delimiter,
    lines_of,
    says_none,
    says_something,
    solid,
)

_SAYS_WHAT = re.compile(
    r"""-{1,2}>|=>|[→⇒⟶➜➔↦]|==|!=|≠|≥|≤|>=|<=|^\W*then\b
    |\b(?:expect(?:s|ed|ing|ation)?|returns?|yields?|raises?|throws?|prints?|outputs?|equals?|becomes
    |results?\s+in|evaluates\s+to|responds?\s+with|exits?\s+with|exit\s+(?:code|status)|assert\w*)\b""",
    re.VERBOSE | re.IGNORECASE,
)
"""Text after one of these is a result, whatever it is."""
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
_EXPECTED_LABEL = re.compile(
    r"\bexpected\s+(?:values?|results?|outcomes?|outputs?|behaviou?r)\b", re.IGNORECASE
)
_COLUMN = re.compile(
    r"expect|result|output|outcome|then|return|should|value|status|after|response", re.IGNORECASE
)
_CODE = re.compile(r"`[^`]+`|\"[^\"]*\"|'[^']*'|\[\]|\{\}")
_LEADING = " \t:*_`-–—=>~"
_MAX_MARKERS = 20
"""Of a line."""


def holds_expected_values(body: Sequence[MarkdownLine]) -> bool:
    """A table with results in it, or lines that say what comes out, with a value."""
    return _in_table(body) or _in_lines(body)


def _in_table(body: Sequence[MarkdownLine]) -> bool:
    columns: list[int] = []
    for number, line in enumerate(body):
        if "|" not in line.text:
            columns = []
        elif is_delimiter(line.text):
            columns = _result_columns(body[number - 1].text) if number else []
        elif any(_cell(line.text, column) for column in columns):
            return True
    return False


def _result_columns(head: str) -> list[int]:
    cells = cells_of(head)
    named = [number for number, cell in enumerate(cells) if _COLUMN.search(cell)]
    return named or ([len(cells) - 1] if len(cells) > 1 else [])


def _cell(row: str, number: int) -> bool:
    cells = cells_of(row)
    return number < len(cells) and _is_value(cells[number])


def _in_lines(body: Sequence[MarkdownLine]) -> bool:
    """A line, or a heading below the section's own, says `expected`, and a value follows."""
    waiting = False
    for line in body:
        text = line.text[:LOOKED_AT].strip()
        if not text or (text.startswith("|") and not line.code):
            continue
        if waiting and _is_value(text):
            return True
        waiting, has_value = _look(text)
        if has_value:
            return True
    return False


def _look(line: str) -> tuple[bool, bool]:
    """Tell if the line leaves its value to the next one, and if it names one itself."""
    plain = _EXPECTED_LABEL.sub("expected", line)
    ends_open = False
    for marker in islice(_SAYS_WHAT.finditer(plain), _MAX_MARKERS):
        rest = plain[marker.end() :].strip(_LEADING)
        ends_open = not rest
        if rest and _is_value(rest):
            return False, True
    for marker in islice(_MAYBE_WHAT.finditer(plain), _MAX_MARKERS):
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


REFERENCES = "reference documents"
LOGIC = "detailed logic"
TESTS = "test scenarios with expected values"
DOCUMENTATION = "documentation to update"
DELIVERABLES = "expected deliverables"
CHECKLIST = "completion checklist"
PARTS = (REFERENCES, LOGIC, TESTS, DOCUMENTATION, DELIVERABLES, CHECKLIST)
SHORT_PLAN = (LOGIC, TESTS, DELIVERABLES, CHECKLIST)
"""Parts of a plan that is not reviewed before the work begins."""

_MAX_HEADINGS = 5_000
"""That are looked at: a plan with more is none."""

_LABEL = re.compile(
    r" {0,3}(?:(?:[-*+]|\d{1,3}[.)])[ \t]+)?(\*\*|__)([^*_]{1,80})\1[ \t]*:?[ \t]*(?=\S)"
)
_CUTS = re.compile(r"\s+(?:and|und|plus|with)\s+|[&/,;:+()\[\]–—|]|\s-\s")
_WORD = re.compile(r"[a-z]+")
_LIST_ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,9}[.)])\s+|\s*\[[ xX]\]\s+|\s*[☐☑✅✓✔]")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")

_REFERENCE = re.compile(
    r"\b(?:references?|referenced|bibliography|citations?|sources|prior art|(?:further|background) reading"
    r"|(?:source|related|relevant|input|supporting|consulted|background|linked) (?:docs?|documents?"
    r"|documentation|materials?|files|reports?|reading|links)"
    r"|(?:docs?|documents?|files|reports?|materials?) (?:consulted|read|used|reviewed|cited|consulted)"
    r"|links)\b"
)
_DOCS = re.compile(r"\b(?:docs?|documents?|documentation|readme|changelog|user guides?|manuals?)\b")
_UPDATES = re.compile(
    r"\b(?:updat\w*|chang\w*|impact\w*|revis\w*|edit\w*|write|written|touch\w*)\b"
)
_TESTS = re.compile(
    r"\b(?:tests?|testing|scenarios?|test ?cases?|expected (?:values?|results?|outcomes?|behaviou?rs?)"
    r"|verification|validation|qa)\b"
)
_DELIVERABLES = re.compile(
    r"\b(?:deliver\w*|arti?facts?|artefacts?|outputs?|outcomes?|work products?|end products?"
    r"|files? (?:to be )?(?:changed|created|touched|modified|delivered|added|affected)"
    r"|(?:changed|new|affected|modified) files|files? to (?:be )?(?:chang|creat|touch|modif|add|edit)\w*)\b"
)
_CHECKLIST = re.compile(
    r"\b(?:check ?lists?|definition of done|done (?:when|criteria|means)|dod"
    r"|(?:completion|exit|acceptance|done|success) (?:criteria|conditions?|list|steps|checks?)"
    r"|completion|sign ?off|to ?do list)\b"
)
_LOGIC = re.compile(
    r"\b(?:logic|algorithms?|pseudo ?code|(?:detailed|technical|implementation|solution|low level) "
    r"(?:design|approach|details?|description|specification|spec|steps?|plan|strategy|changes?)"
    r"|how it works|step by step|control flow|data flow)\b"
)
_LOGIC_IF_NOTHING_ELSE = re.compile(
    r"\b(?:implementation|design|approach|solution|behaviou?r|architecture|changes|steps|details?"
    r"|mechanics|procedure|tasks|how)\b"
)
_NAMED: tuple[tuple[str, re.Pattern[str]], ...] = (
    (TESTS, _TESTS),
    (DELIVERABLES, _DELIVERABLES),
    (CHECKLIST, _CHECKLIST),
    (LOGIC, _LOGIC),
)


@dataclass(frozen=True, slots=True)
class _Section:
    heading: str
    body: tuple[MarkdownLine, ...]
    """With the headings below it."""


def missing_parts(plan: str) -> tuple[str, ...]:
    """Those of `PARTS` that the plan does not hold, in that order.

    A part counts when a heading speaks of it and something stands beneath: no placeholder, and
    where scenarios or a checklist are wanted, values or items.
    """
    present: set[str] = set()
    for section in _sections(lines_of(plan)):
        about = _parts_named(section.heading) - present
        present |= {part for part in about if _HOLDS[part](section.body)}
    return tuple(part for part in PARTS if part not in present)


def part_of(plan: str, part: str) -> str:
    """The text of one of `PARTS`, as it stands below its heading. Empty: the plan has none."""
    for section in _sections(lines_of(plan)):
        if part in _parts_named(section.heading):
            return "\n".join(line.text for line in section.body).strip()
    return ""


def _sections(lines: Sequence[MarkdownLine]) -> Iterator[_Section]:
    labelled = [piece for line in lines for piece in _with_label(line)]
    heads = [number for number, line in enumerate(labelled) if line.level]
    title = _title_of([labelled[number] for number in heads])
    ends = _ends_of(labelled, heads)
    for number in heads[:_MAX_HEADINGS]:
        if labelled[number] is not title:
            body = tuple(labelled[number + 1 : ends[number]])
            yield _Section(labelled[number].text, body)


def _with_label(line: MarkdownLine) -> list[MarkdownLine]:
    """`**References:** a.md` is a heading and what stands beneath it."""
    if line.level or line.code or not (label := _LABEL.match(line.text)):
        return [line]
    return [MarkdownLine(label[2].strip(), level=BOLD), MarkdownLine(line.text[label.end() :])]


def _title_of(headings: Sequence[MarkdownLine]) -> MarkdownLine | None:
    """A first heading that stands above all others names the task and no part of the plan."""
    if len(headings) < 2:
        return None
    first = headings[0]
    return first if all(heading.level > first.level for heading in headings[1:]) else None


def _ends_of(lines: Sequence[MarkdownLine], heads: Sequence[int]) -> dict[int, int]:
    """End of each section: the next heading that is not below it."""
    ends: dict[int, int] = {}
    open_heads: list[int] = []
    for number in heads:
        while open_heads and lines[open_heads[-1]].level >= lines[number].level:
            ends[open_heads.pop()] = number
        open_heads.append(number)
    return ends | dict.fromkeys(open_heads, len(lines))


def _parts_named(heading: str) -> set[str]:
    named: set[str] = set()
    # `References and documentation to update` speaks of two parts.
    for piece in _CUTS.split(_CAMEL.sub(" ", heading).casefold().replace("_", " ")):
        phrase = " ".join(_WORD.findall(piece))
        named |= _parts_in_phrase(phrase)
    if not named and _LOGIC_IF_NOTHING_ELSE.search(heading.casefold()):
        named.add(LOGIC)
    return named


def _parts_in_phrase(phrase: str) -> set[str]:
    named = {part for part, pattern in _NAMED if pattern.search(phrase)}
    if _DOCS.search(phrase) and (_UPDATES.search(phrase) or not _REFERENCE.search(phrase)):
        return named - {DELIVERABLES, LOGIC} | {DOCUMENTATION}
    if _REFERENCE.search(phrase):
        named.add(REFERENCES)
    return named


def _has_text(body: Sequence[MarkdownLine]) -> bool:
    return any(says_something(line.text) for line in solid(body))


def _has_text_or_none(body: Sequence[MarkdownLine]) -> bool:
    """That there are none is an answer too, where there may be none."""
    return any(says_something(line.text) or says_none(line.text) for line in solid(body))


def _has_items(body: Sequence[MarkdownLine]) -> bool:
    return any(_LIST_ITEM.match(line.text) and says_something(line.text) for line in solid(body))


_HOLDS: dict[str, Callable[[Sequence[MarkdownLine]], bool]] = {
    REFERENCES: _has_text_or_none,
    LOGIC: _has_text,
    TESTS: holds_expected_values,
    DOCUMENTATION: _has_text_or_none,
    DELIVERABLES: _has_text,
    CHECKLIST: _has_items,
}
