"""Screen of a pane as plain or coloured text, and what an adapter reads from it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol

from podium.agents.tui.control import Control, ProgramEnded
from podium.agents.tui.ledger import HELD
from podium.core.model import FrozenModel
from podium.core.terminals import PaneFrame

_PIECES = re.compile(
    r"\x1b\[(?P<codes>[0-9;:]*)m"  # how the characters after it look
    r"|(?P<shift>[\x0e\x0f])"  # line-drawing characters from here on, or no more
    r"|\x1b[\]P^_X](?:[^\x07\x1b]|\x1b(?!\\))*(?:\x07|\x1b\\|$)"  # titles, clipboards, links
    r"|\x1b\[[0-?]*[ -/]*[@-~]?|\x1b[ -/]*[0-~]?"  # whatever else an escape begins
    r"|(?P<text>[^\x00-\x1f\x7f-\x9f]+)"
    r"|(?P<control>.)",
    re.DOTALL,
)
_DRAWN = str.maketrans("`afgjklmnopqrstuvwxyz{|}~", "◆▒°±┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·")
_RESET = "\x1b[0m"
_MAX_CODES = 32
"""In one escape; tmux writes fewer."""


def separate_lines(lines: Iterable[str]) -> tuple[str, ...]:
    """Each line with the colours that tmux carries over from the one before it, and reset at its end.

    Colours and printable characters are all that is left: no title, clipboard, link, question or movement of a cursor.
    """
    look: dict[str, str] = {}
    separated, drawing = [], False
    for line in lines:
        parts = [_written(look)]
        for piece in _PIECES.finditer(line):
            if piece["codes"] is not None:
                parts.append(_changed(look, piece["codes"]))
            elif piece["shift"]:
                drawing = piece["shift"] == "\x0e"
            elif piece["text"]:
                parts.append(piece["text"].translate(_DRAWN) if drawing else piece["text"])
            elif piece["control"]:
                parts.append(" ")
        separated.append("".join(parts) + _RESET)
    return tuple(separated)


def _written(look: dict[str, str]) -> str:
    return f"\x1b[{';'.join(look.values())}m" if look else ""


def _changed(look: dict[str, str], codes: str) -> str:
    """Note what the escape changes, and give it back in our own words."""
    parts = codes.split(";")[:_MAX_CODES]
    at = 0
    while at < len(parts):
        at += _note(look, parts[at:])
    return f"{_RESET}{_written(look)}"


def _note(look: dict[str, str], codes: list[str]) -> int:
    """Note the first of the codes. Gives how many words it had."""
    first = codes[0].partition(":")[0] or "0"
    if first == "0":
        look.clear()
        return 1
    length = 1
    if codes[0] in ("38", "48", "58"):  # a colour by its number, or by red, green and blue
        length = {"5": 3, "2": 5}.get(codes[1] if len(codes) > 1 else "", len(codes))
    if kind := _kind(int(first[:4])):
        look.pop(kind, None)
        look[kind] = ";".join(codes[:length])
    return length


def _kind(code: int) -> str:
    """Return what a code is about: the next of its kind takes its place. Empty: nothing that is shown."""
    if 30 <= code <= 39 or 90 <= code <= 97:
        return "ink"
    if 40 <= code <= 49 or 100 <= code <= 107:
        return "paper"
    if code in (58, 59):
        return "line"
    return _ATTRIBUTES.get(code, "")


_ATTRIBUTES = {
    1: "bold", 2: "faint", 22: "bold", 3: "italics", 23: "italics", 4: "under", 21: "under", 24: "under",
    5: "blink", 25: "blink", 7: "reverse", 27: "reverse", 8: "hidden", 28: "hidden",
    9: "struck", 29: "struck", 53: "over", 55: "over",
}  # fmt: skip


_FACTS = (
    "pane_width", "pane_height", "cursor_x", "cursor_y", "alternate_on", "pane_in_mode", "pane_dead",
    "pane_dead_status", HELD, "pane_title",
)  # fmt: skip
_PAINT_FACTS = ("pane_width", "pane_height", "cursor_x", "cursor_y", "cursor_flag", "pane_dead")
_LAST_OUTPUT_LINES = 20


@dataclass(frozen=True)
class TerminalScreen:
    """A pane at one moment."""

    lines: tuple[str, ...]
    """Visible lines, without colours and without blanks at the ends. Lines that tmux wrapped are one."""
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
    """The window title that the program sets."""
    held: bool = False
    """A person has its keyboard, or has not returned it though its time is over."""

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


async def look(control: Control, pane: str) -> TerminalScreen:
    """Return what the pane shows now. Raises `PaneGone` when it was closed."""
    form = "\t".join(f"#{{{fact}}}" for fact in _FACTS)
    (answer,), lines = await control.ask_together(
        f"display-message -p -t {pane} '{form}'", f"capture-pane -p -J -t {pane}"
    )
    facts = answer.split("\t", len(_FACTS) - 1)
    columns, rows, x, y, alternate, mode, dead, status, held, title = facts
    return TerminalScreen(
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
    (facts,), answer, lines = await control.ask_together(
        f"display-message -p -t {pane} '{form}'", further, f"capture-pane -e -N -p -t {pane}"
    )
    columns, rows, x, y, cursor, dead = facts.split("\t")
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
    """Return the number of lines that have scrolled off and are kept."""
    (line,) = await control.ask(f"display-message -p -t {pane} '#{{history_size}}'")
    return int(line)


async def refuse_dead(control: Control, pane: str, screen: TerminalScreen) -> None:
    """Raise `ProgramEnded` with its last words when the program is no more."""
    if not screen.dead:
        return
    lines = [line for line in await history(control, pane) if line]
    last_output = "\n".join(lines[-_LAST_OUTPUT_LINES:])
    how = "" if screen.exit_code is None else f" with exit code {screen.exit_code}"
    raise ProgramEnded(f"the program in pane {pane} ended{how}; start it again", last_output)


def _clean(lines: list[str]) -> tuple[str, ...]:
    cleaned = [line.rstrip() for line in lines]
    while cleaned and not cleaned[-1]:
        cleaned.pop()
    return tuple(cleaned)


Manner = Literal["paste", "reference", "lines"]
"""Way of input: as a bracketed paste; as one line that names a file, where a program takes no such
paste; or line by line, each with Enter, for a program that reads plain lines."""

Composer = Literal["empty", "ours", "unsent", "other", "unseen"]
"""Content of the program's input: nothing; the text that was put there, or its stand-in; that text with
the Enter that was to send them, taken for a newline; something else; or the place is not to be seen: the program starts,
works or asks."""


class Eyes(Protocol):
    """Reads one kind of program's screen. Knows no tmux and does nothing."""

    @property
    def manner(self) -> Manner: ...

    def composer(self, screen: TerminalScreen, text: str) -> Composer:
        """Read the composer, compared with this text."""
        ...


class Patience(FrozenModel):
    """Timeouts of one kind of program, and how much it can be handed at once."""

    ready_seconds: float = 30.0
    """Seconds until its composer is empty and can be pasted into."""
    paint_seconds: float = 15.0
    """From a paste until it shows."""
    settle_seconds: float = 0.05
    """Some programs take an Enter for a newline that comes right after the paste was painted. And only what is gone for
    so long has left the composer: a screen may be seen half drawn."""
    enter_seconds: float = 2.0
    """From Enter until the composer lets go; then Enter is pressed again."""
    most_enters: int = 10
    longest_paste_bytes: int = 65_536
    """Bytes of the longest paste; a longer text is handed over as a file."""
    spoilt: str = ""
    """Signs that it does not take as they are. Words with one of them are handed over as a file."""


_TONES_OF_SKIN = "\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
_VIRAMA = 9
"""Of the classes of combining: it joins two letters to one."""
_JOINING_SCRIPTS = (range(0x0900, 0x1D00), range(0xA800, 0xAC00))


def _joining_signs() -> str:
    """Signs of Indian and kindred scripts that take a cell with a letter or without, as a program sees it."""
    signs = (chr(code) for codes in _JOINING_SCRIPTS for code in codes)
    return "".join(
        sign
        for sign in signs
        if unicodedata.category(sign) == "Mc" or unicodedata.combining(sign) == _VIRAMA
    )


MEASURED_OTHERWISE = _TONES_OF_SKIN + _joining_signs()
"""Signs that tmux gives other cells than a program which goes by whole characters. Where one stands in its input,
that program paints beside what is there from then on, and what it shows can no longer be read."""

_ENOUGH_SIGNS = 8
_SURE = frozenset("LNP")
_SURE_SIGNS = ("Sc", "Sm")


def surely_drawn(text: str) -> str:
    """Letters, digits and punctuation, and all signs of ASCII but blanks: the same for a text and for its picture.

    Lines are broken and blanks drawn as programs like. Of emoji that are put together, one leaves out the tone of the skin,
    and tmux what is beyond the bytes of a cell; accents that stand alone are put on their letters.
    """
    if text.isascii():
        return "".join(text.split())
    return "".join(filter(_is_sure, unicodedata.normalize("NFD", text)))


def is_recognisable(text: str) -> bool:
    """Return whether the text can be recognised in an input: by all of its signs, or by enough of them."""
    sure = surely_drawn(text)
    return len(sure) >= _ENOUGH_SIGNS or (bool(sure) and sure == "".join(text.split()))


def end_surely_drawn(text: str, length: int) -> str:
    """The last so many signs of `surely_drawn(text)`. Of a long text it reads no more than it needs."""
    part = 4 * length
    while len(drawn := surely_drawn(text[-part:])) < length and part < len(text):
        part *= 4
    return drawn[-length:]


def _is_sure(character: str) -> bool:
    if character.isascii():
        return not character.isspace()
    kind = unicodedata.category(character)
    return kind[0] in _SURE or kind in _SURE_SIGNS
