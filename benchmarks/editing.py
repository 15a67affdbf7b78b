"""Outcome of `edit_file` for edits as agents send them, and the speed of finding their positions."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

from benchmarks.figures import Figure, median
from podium.tools.edits import EditRefused, TextEdit, apply_edits, decoded
from tests.edit_cases import EditCase, edit_cases

LINES = 25_000
"""Of forty characters: a file of a megabyte."""
ROUNDS = 5


async def measure() -> list[Figure]:
    cases = edit_cases()
    seen = [(case, *came_out(case)) for case in cases]
    by_shape = Counter((case.shape, verdict(case, after)) for case, after, _ in seen)
    by_level = Counter((level, verdict(case, after)) for case, after, level in seen)
    print("\n".join(_table("shape", by_shape)))
    print("\n".join(_table("found by", by_level)))
    counted = Counter(verdict(case, after) for case, after, _ in seen)
    wrong, right = counted["wrong"], counted["right"] + counted["refused"]
    return [
        Figure("edits made wrongly", wrong, "", most=0),
        Figure(
            "edits not as a person would, of all", 100 * (1 - right / len(cases)), "%", most=2.0
        ),
        *_quickness(),
    ]


def came_out(case: EditCase) -> tuple[bytes | None, str]:
    """The file afterwards and how the first place was found; None and why, when it was refused."""
    edits = [TextEdit(edit.find, edit.replace, edit.at_line) for edit in case.edits]
    try:
        coded = decoded(case.before)
        edited = apply_edits(coded.text, edits)
        return coded.encoded(edited.text), str(edited.done[0].level)
    except EditRefused as refused:
        return None, f"refused: {refused.reason}"


def verdict(case: EditCase, after: bytes | None) -> str:
    if after == case.after:
        return "refused" if after is None else "right"
    return "missed" if after is None else "wrong"


def _table(title: str, counted: Counter[tuple[str, str]]) -> Iterator[str]:
    kinds = ("right", "refused", "missed", "wrong")
    yield f"{title:<24}" + "".join(f"{kind:>9}" for kind in kinds)
    for name in sorted({name for name, _ in counted}):
        yield f"{name:<24}" + "".join(f"{counted[name, kind]:>9}" for kind in kinds)


def _quickness() -> Iterator[Figure]:
    """Against reading the same text line by line, which is the least that looking into it takes."""
    text = "".join(f"    value_{number:06} = compute({number:06})\n" for number in range(LINES))
    middle = text.split("\n")[LINES // 2 : LINES // 2 + 20]
    snippet = "\n".join(middle)
    dedented = "\n".join(line.strip() for line in middle)
    floor = _seconds(lambda: [line.strip(" \t") for line in text.split("\n")])
    for name, find in (
        ("an exact edit in 1 MB", snippet),
        ("an edit by its indentation in 1 MB", dedented),
        ("a refused edit in 1 MB, with the nearest", f"{dedented}\nnot there"),
    ):
        ours = _seconds(partial(_tried, text, TextEdit(find, f"{find}\nmore")))
        yield Figure(name, ours * 1e3, "ms", floor * 1e3, "ms its lines", most=1_000.0)
    yield _growth()


def _growth() -> Figure:
    """Equal lines without end are the worst for a search: twice as many must take twice as long."""

    def flood(count: int) -> float:
        text, find = "}\n" * count, " }\n" * (count // 2) + "end"
        return _seconds(lambda: _tried(text, TextEdit(find, "x")))

    half, whole = flood(100_000), flood(200_000)
    name = "200,000 equal lines, half of them sought"
    return Figure(name, whole * 1e3, "ms", half * 1e3, "ms half as many", most_ratio=3.0)


def _tried(text: str, edit: TextEdit) -> None:
    try:
        apply_edits(text, [edit])
    except EditRefused:
        return


def _seconds(work: Callable[[], object]) -> float:
    seconds = []
    for _ in range(ROUNDS):
        began = time.process_time()
        work()
        seconds.append(time.process_time() - began)
    return median(seconds)
