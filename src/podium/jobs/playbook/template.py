"""Placeholders `{{ name }}` in a playbook, filled with untrusted text that cannot leave its place."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from podium.core.errors import BadInput
from podium.jobs.playbook.models import INPUT_NAME
from podium.platform.invisible_text import written_out

_TICK_RUNS = re.compile(r"`+")
_LINE_ENDS = re.compile(r"\r\n?|[\v\f\x1c-\x1e\x85\u2028\u2029]")


def plain(text: str) -> str:
    """Normalise line ends, and write out every hidden character."""
    whole = text.encode(errors="replace").decode()
    return written_out(_LINE_ENDS.sub("\n", whole))


def as_data(text: str) -> str:
    """Format the text as a block whose fence is longer than any run of backticks in it."""
    body = plain(text).rstrip("\n")
    fence = "`" * max(3, _longest_run(body) + 1)
    return f"{fence}data\n{body}\n{fence}"


def in_code(line: str) -> str:
    """Format the text on one line, as a code span that nothing in it can end."""
    text = " ".join(plain(line).split("\n"))
    ticks = "`" * (_longest_run(text) + 1)
    gap = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{gap}{text}{gap}{ticks}"


def _longest_run(text: str) -> int:
    return max((len(run) for run in _TICK_RUNS.findall(text)), default=0)


_CONTAINER_PREFIX = r"(?:[ \t]*(?:>|(?:[-*+]|\d{1,9}[.)])(?=[ \t])))*+[ \t]*"
"""Prefix of a fence: markers of quotes and lists."""
_FENCE = re.compile(rf"{_CONTAINER_PREFIX}(`{{3,}}(?=[^`]*$)|~{{3,}})")
_BRACES = re.compile(r"(?P<escaped>\\\{\{)|\{\{(?:[ \t]*(?P<name>[^{}\n]{0,200}?)[ \t]*\}\})?")
_NAME = re.compile(INPUT_NAME)
_TICKS = re.compile(r"`+")
_SPAN = re.compile(r"(?<![\\`])(`+)(?!`).*?(?<!`)\1(?!`)")
"""Code in a line of prose: between two equal runs of backticks, the first of them not escaped."""


@dataclass(frozen=True)
class TemplateProblem:
    """Problem of a placeholder, with line and column counted from 1."""

    line: int
    column: int
    problem: str


def misused(text: str, names: Collection[str]) -> Iterator[TemplateProblem]:
    """Find placeholders of unknown inputs, and backticks that could let a value out of its code span."""
    fence = ""
    paragraph: list[tuple[int, str]] = []
    for number, line in enumerate(text.split("\n"), start=1):
        for match in _BRACES.finditer(line):
            if not match["escaped"] and (problem := _problem(match["name"], names)):
                yield TemplateProblem(number, match.start() + 1, problem)
        before, fence = fence, fence_after(line, fence)
        if line.strip() and not before and not fence:
            paragraph.append((number, line))
            continue
        yield from _loose_ticks(paragraph)
        paragraph.clear()
    yield from _loose_ticks(paragraph)


def _loose_ticks(paragraph: list[tuple[int, str]]) -> Iterator[TemplateProblem]:
    """Find unpaired backticks, which would pair with those around a value."""
    if not any(match["name"] for _, line in paragraph for match in _BRACES.finditer(line)):
        return
    for number, line in paragraph:
        for match in _TICKS.finditer(_SPAN.sub(lambda span: " " * len(span[0]), line)):
            problem = (
                "backticks next to an input must be plain pairs on one line; pair or remove these"
            )
            yield TemplateProblem(number, match.start() + 1, problem)


def _problem(name: str | None, names: Collection[str]) -> str:
    if name in names:
        return ""
    if name is None or not _NAME.fullmatch(name):
        return (
            r"only the name of an input is allowed between {{ and }}; write \{{ for literal braces"
        )
    listing = ", ".join(sorted(names)) or "none"
    return f"there is no input {name!r}; inputs: {listing}"


def fill(text: str, values: Mapping[str, str], longer: Collection[str] = ()) -> str:
    """Fill in the values, each as data: as a code span, or verbatim inside of code.

    Of `longer` inputs, which may have many lines, only the name is put in. Raises `BadInput` for a
    value that would end the code it stands in.
    """
    filled: list[str] = []
    fence = ""
    for line in text.split("\n"):
        before, fence = fence, fence_after(line, fence)
        filled.append(_filled(line, values, longer, block=bool(before or fence)))
        if fence_after(filled[-1], before) != fence:
            raise BadInput(
                f"an input would end the code block that it is used in: {line.strip()!r}"
            )
    return "\n".join(filled)


def fence_after(line: str, fence: str) -> str:
    """Return the fence of the code block that is open after this line; empty when none is."""
    if fence:
        closing = line.lstrip(" \t>").rstrip()
        closes = len(closing) >= len(fence) and closing == fence[0] * len(closing)
        return "" if closes else fence
    opened = _FENCE.match(line)
    return opened[1] if opened else ""


def _filled(line: str, values: Mapping[str, str], longer: Collection[str], *, block: bool) -> str:
    spans = [(0, len(line))] if block else [span.span() for span in _SPAN.finditer(line)]

    def value(match: re.Match[str]) -> str:
        name = match["name"]
        if match["escaped"]:
            return "{{"
        if name not in values:
            return match[0]
        if name in longer:
            return f"(the input {name}, given above)"
        if any(start <= match.start() < end for start, end in spans):
            return _in_the_code(name, values[name])
        if not values[name]:
            return "(nothing)"
        # Two runs of backticks side by side would be read as one.
        left = " " if line[: match.start()].endswith(("`", "}}")) else ""
        right = " " if line[match.end() :].startswith("`") else ""
        return f"{left}{in_code(values[name])}{right}"

    return _BRACES.sub(value, line)


def _in_the_code(name: str, value: str) -> str:
    if "`" in value:
        raise BadInput(
            f"input {name!r} contains a backtick and is used inside code in the playbook; "
            "remove the backtick, or use the input outside of the code"
        )
    return plain(value)
