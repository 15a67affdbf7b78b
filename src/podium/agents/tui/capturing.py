"""What a pane shows, as plain text."""

from __future__ import annotations

from dataclasses import dataclass

from podium.agents.tui.colours import separate_lines
from podium.agents.tui.control import Control
from podium.agents.tui.ledger import HELD
from podium.agents.tui.trouble import ProgramEnded
from podium.domain.terminals import PaneFrame

_FACTS = (
    "pane_width", "pane_height", "cursor_x", "cursor_y", "alternate_on", "pane_in_mode", "pane_dead",
    "pane_dead_status", HELD, "pane_title",
)  # fmt: skip
_PAINT_FACTS = ("pane_width", "pane_height", "cursor_x", "cursor_y", "cursor_flag", "pane_dead")
_LAST_WORDS_LINES = 20


@dataclass(frozen=True)
class Screen:
    """A pane at one moment."""

    lines: tuple[str, ...]
    """What is visible, without colours and without blanks at the ends. Lines that tmux wrapped are one."""
    columns: int
    rows: int
    cursor: tuple[int, int]
    """Column and row, from 0; the row counts what is visible, wrapped lines as several."""
    alternate: bool
    """The program uses the second screen: what scrolls off it is gone."""
    in_mode: bool
    """A person scrolls back: keys go to tmux."""
    dead: bool
    exit_code: int | None
    """Of a program that ended. None also when a signal ended it, and while tmux does not know: one in a hundred
    it learns only when `Activity` has it look."""
    title: str
    """What the program calls its window."""
    held: bool = False
    """A person has its keyboard, or has not returned it though its time is over."""

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


async def look(control: Control, pane: str) -> Screen:
    """What the pane shows now. Raises `PaneGone` when it was closed."""
    form = "\t".join(f"#{{{fact}}}" for fact in _FACTS)
    (told,), lines = await control.ask_together(
        f"display-message -p -t {pane} '{form}'", f"capture-pane -p -J -t {pane}"
    )
    facts = told.split("\t", len(_FACTS) - 1)
    columns, rows, x, y, alternate, mode, dead, status, held, title = facts
    return Screen(
        lines=_clean(lines),
        columns=int(columns),
        rows=int(rows),
        cursor=(int(x), int(y)),
        alternate=alternate == "1",
        in_mode=mode not in ("", "0"),
        dead=dead == "1",
        exit_code=int(status) if status else None,
        title=title,
        held=held == "1",
    )


async def painted(control: Control, pane: str, further: str) -> tuple[PaneFrame, list[str]]:
    """The pane with its colours, and the answer to a further question, both of one moment. Raises as `look` does."""
    form = "\t".join(f"#{{{fact}}}" for fact in _PAINT_FACTS)
    # With `-N` blanks at the ends of lines stay: they may have a colour.
    (told,), answer, lines = await control.ask_together(
        f"display-message -p -t {pane} '{form}'", further, f"capture-pane -e -N -p -t {pane}"
    )
    columns, rows, x, y, cursor, dead = told.split("\t")
    frame = PaneFrame(
        columns=int(columns),
        rows=int(rows),
        lines=separate_lines(lines[: int(rows)]),
        cursor_column=int(x),
        cursor_row=int(y),
        cursor_shown=cursor == "1",
        dead=dead == "1",
    )
    return frame, answer


async def history(control: Control, pane: str, lines: int | None = None) -> tuple[str, ...]:
    """Everything that the pane still has, oldest first, down to the last line it shows.

    With `lines` only so many of those that have scrolled off, and the screen.
    """
    start = "-" if lines is None else f"-{lines}"
    return _clean(await control.ask(f"capture-pane -p -J -S {start} -E - -t {pane}"))


async def history_size(control: Control, pane: str) -> int:
    """How many lines have scrolled off and are kept."""
    (line,) = await control.ask(f"display-message -p -t {pane} '#{{history_size}}'")
    return int(line)


async def refuse_dead(control: Control, pane: str, screen: Screen) -> None:
    """Raise `ProgramEnded` with its last words when the program is no more."""
    if not screen.dead:
        return
    said = [line for line in await history(control, pane) if line]
    words = "\n".join(said[-_LAST_WORDS_LINES:])
    how = "" if screen.exit_code is None else f" with {screen.exit_code}"
    raise ProgramEnded(f"the program in pane {pane} ended{how}; start it again", words)


def _clean(lines: list[str]) -> tuple[str, ...]:
    kept = [line.rstrip() for line in lines]
    while kept and not kept[-1]:
        kept.pop()
    return tuple(kept)
