"""Answers of a fake TUI, read from a file at its start, and the events that it records."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:  # fake TUIs start without it
    from pathlib import Path


class ScriptedAnswers(NamedTuple):
    """Answers to messages. Without such a file it takes them and stays silent."""

    ways: tuple[str, ...] = ("plain",)
    """Names of `brain.WAYS`, one for each turn's id in its order, over and over."""
    bodies: tuple[str, ...] = ("1. look\n2. mend",)
    """Of the blocks, one for each turn's id, over and over."""
    plans: int = 1
    """Number of plans it makes for a task before it reports."""
    statuses: int = 2
    """Blocks of progress, where its way is to send them."""
    start_seconds: float = 0.0
    think_seconds: float = 0.05
    """Pause before its answer, and between its parts."""
    line_seconds: float = 0.0
    """Between the pieces that it paints."""
    transcript: str = ""
    """File for what it heard and said, line by line. Empty: none."""

    def write_to(self, file: Path) -> Path:
        """Write the answers to the file, atomically for programs that start meanwhile. Returns the file."""
        part = file.with_name(f"{file.name}.part")
        part.write_text(json.dumps(self._asdict()))
        return part.replace(file)


def read_answers(file: str) -> ScriptedAnswers:
    with open(file) as opened:  # noqa: PTH123 — pathlib loads slowly
        fields: dict[str, Any] = json.load(opened)
    lists = {name: tuple(fields[name]) for name in ("ways", "bodies")}
    return ScriptedAnswers(**{**fields, **lists})


class Happened(NamedTuple):
    """An event that a fake TUI recorded of itself."""

    at: float
    """By the clock `time.monotonic`, which all processes share."""
    what: str
    """`state`, `took`, `asked`, `half`, `said`, `died`, `interrupted`."""
    text: str = ""
    """The state, the message's beginning, or the id of the block."""
    to: str = ""
    type: str = ""
    body: str = ""
    """Of `said`: to the byte."""
    enters: int = 0
    """Of `took`: number of presses of Enter for it."""


def events_file(record: str) -> str:
    """Return the file of recorded events."""
    return f"{record}.happened"


def happened(record: str | Path) -> list[Happened]:
    """Read the events recorded so far, complete lines only."""
    try:
        with open(events_file(str(record))) as file:  # noqa: PTH123 — pathlib loads slowly
            lines = file.read().split("\n")[:-1]
    except FileNotFoundError:
        return []
    return [Happened(**json.loads(line)) for line in lines]


CODE = """1. Read `src/app.py` and list every call of connect().
2. Then:
    def retry(fn, n=3):
        for i in range(n):
            try:
                return fn()
            except OSError as e:  # keep ]] and [[ as they are

                last = e
        raise last
3. Run it."""
MARKDOWN = """# Result
**Done**, _mostly_:
- `tests/test_app.py`: 14 passed
- [docs](docs/app.md) say so, too
> a quotation
| a | b |
|---|---|
| 1 | 2 |
1) and <b>no</b> more"""
UNICODE = "Grüße, 漢字かな, Ελλάδα, עברית, 🙂👍🏽\n→ “quoted” … ¼ €\ne\u0301 and é"
LONG_LINE = (
    "Every call that passes a literal timeout must be moved behind the configuration. " * 8 + "End."
)
UNBROKEN = "sha256=" + "9f86d081884c7d659a2feaa0c55ad015" * 12
TALL = "\n".join(f"{number}. step {number} of many" for number in range(1, 121))
HUGE = "\n".join(f"{number:05} " + "0123456789abcdef " * 5 + "end" for number in range(690))
"""64 KB."""

SHORT = (CODE, MARKDOWN, UNICODE, "1. look\n2. mend")
LONG = (LONG_LINE, UNBROKEN, TALL, HUGE)
