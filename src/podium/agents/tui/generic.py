"""Any program on a terminal, known by its screen and cursor alone. Its options say what is not as usual."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property

from pydantic import Field, ValidationError, field_validator

from podium.agents.contract.reply_text import cells
from podium.agents.deps import AgentOptions
from podium.agents.program import Needs
from podium.agents.tui.adapter import Launch, ProgramContext, Status, Written
from podium.agents.tui.screen import (
    Composer,
    Manner,
    Patience,
    TerminalScreen,
    end_surely_drawn,
    surely_drawn,
)
from podium.core.errors import BadInput
from podium.core.model import FrozenModel, NonEmpty
from podium.core.turns import TAG
from podium.ports import Translate


@dataclass(frozen=True)
class BeforeCursor:
    """The lines down to the cursor."""

    lines: tuple[str, ...]
    """The last is cut where the cursor stands. Empty ones behind the last words are there too."""

    @property
    def at(self) -> int:
        """Index of the screen line that the cursor is in; beyond the last when only blanks follow."""
        return len(self.lines) - 1

    @property
    def blank_lines(self) -> int:
        """Number of lines at the end that have nothing in them."""
        blank = 0
        for line in reversed(self.lines):
            if line.strip():
                break
            blank += 1
        return blank

    def end_in(self, text: str, sure_length: int) -> bool:
        """Return whether the text stands right before the cursor; the end of a long one will do.

        Only what is surely drawn counts: programs change blanks, and leave out parts of emoji. But a line more than the
        words have is behind an Enter.
        """
        expected = end_surely_drawn(text, sure_length)
        visible = end_surely_drawn("\n".join(self.lines), sure_length)
        return (
            bool(expected) and visible.endswith(expected) and self.blank_lines <= _line_ends(text)
        )


def before_cursor(screen: TerminalScreen) -> BeforeCursor:
    column, row = screen.cursor
    for at, line in enumerate(screen.lines):
        height = max(1, -(-cells(line) // screen.columns))
        if row < height:
            last = _first_cells(line, row * screen.columns + column)
            return BeforeCursor((*screen.lines[:at], last))
        row -= height
    return BeforeCursor((*screen.lines, *[""] * (row + 1)))


def _first_cells(line: str, width: int) -> str:
    if line.isascii():
        return line[:width]
    used = 0
    for at, character in enumerate(line):
        used += cells(character)
        if used > width:
            return line[:at]
    return line


def _line_ends(text: str) -> int:
    return text[len(text.rstrip()) :].count("\n")


_SURE_LENGTH = 60
"""So much of the words, where they begin or end, tells them from all else."""
_MAX_INPUT_LINES = 12
_ASKING_LINES = 8
"""A question stands at the bottom."""
_LIVE_LINES = 20
"""Above that, what a program shows is of the past."""
_BLOCK_ENDS = f"[[/{TAG}]]"
_BORDER = re.compile(r"[\s\-_=─━═│┃|╭╮╰╯┌┐└┘+·]*")
_DRAWN_BORDER = re.compile(r"\s*[\-_=─━═╭╮╰╯┌┐└┘+]{2}[\s\-_=─━═│┃|╭╮╰╯┌┐└┘+·]*")
_FRAME_SIGNS = "│┃|"
_FRAME = re.compile(rf"^\s*[{_FRAME_SIGNS}]\s?|\s*[{_FRAME_SIGNS}]\s*$")


class GenericOptions(FrozenModel):
    """Options in podium.yaml of a program that Podium knows nothing of."""

    manner: Manner = "reference"
    """One line that names a file was right with every program that was tried. `paste` where it takes bracketed pastes,
    `lines` where it reads plain lines."""
    prompt: NonEmpty = r"[>›❯»](\s|$)"
    """Regular expression for what its input line begins with. Blanks at its end are there also in an empty line."""
    placeholder: str = ""
    """Regular expression for the hint that it shows in an empty input."""
    stand_in: str = r"\[[^\]]*[Pp]aste[^\]]*\]"
    """Regular expression for what it shows in place of a long paste."""
    busy: NonEmpty = r"(?i)\b(esc|ctrl\+c|ctrl-c)\b to (interrupt|cancel|stop)"
    """Regular expression for what it shows while it works."""
    asking: NonEmpty = (
        r"(?i)\(y/n\)|\[y/n\]|\(yes/no\)|do you (want|trust|wish)|press enter to (continue|confirm)"
    )
    """Regular expression for what it shows in place of its input when a person has to answer something."""
    interrupt_keys: tuple[NonEmpty, ...] = ()
    """Keys, by their tmux names. Empty: Escape, and Ctrl-C for a program that reads plain lines."""
    ready_seconds: float = Field(default=30.0, gt=0)
    paint_seconds: float = Field(default=15.0, gt=0)
    settle_seconds: float = Field(default=0.05, ge=0)
    enter_seconds: float = Field(default=2.0, gt=0)
    """These as in `Patience`."""

    @field_validator("prompt", "placeholder", "stand_in", "busy", "asking")
    @classmethod
    def _is_pattern(cls, pattern: str) -> str:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"{pattern!r} is not a valid regular expression: {error}") from None
        return pattern


class GenericTui:
    """Reads the screen of a program by patterns, and has no other way to know of it."""

    kind = "generic"
    translate: Translate | None = None

    def __init__(self, options: AgentOptions) -> None:
        """Raises `BadInput` for options that it does not have, and without a command."""
        if not options.command:
            raise BadInput(
                f"agent {options.name!r} of kind 'generic' has no program; set `command`"
            )
        try:
            self._own = GenericOptions.model_validate(options.options)
        except ValidationError as error:
            issue = error.errors()[0]
            key = ".".join(map(str, issue["loc"]))
            raise BadInput(f"agent {options.name!r}: option {key!r}: {issue['msg']}") from None
        self._last_at_cursor = ""
        """The words that were last seen right before the cursor: when it is elsewhere, they have left."""

    @property
    def manner(self) -> Manner:
        return self._own.manner

    @property
    def patience(self) -> Patience:
        own = self._own
        return Patience(
            ready_seconds=own.ready_seconds,
            paint_seconds=own.paint_seconds,
            settle_seconds=own.settle_seconds,
            enter_seconds=own.enter_seconds,
        )

    @property
    def interrupt_keys(self) -> tuple[str, ...]:
        return self._own.interrupt_keys or (("C-c",) if self.manner == "lines" else ("Escape",))

    def launch(self, context: ProgramContext, session: str | None) -> Launch:
        env = {"HOME": str(context.home), "TMPDIR": str(context.temporary), **context.options.env}
        argv = context.options.command
        needs = Needs(base_url=context.options.base_url, command=argv)
        return Launch(argv=argv, env=env, session="", needs=needs)

    def fitted(self, text: str, context: ProgramContext) -> str:
        return text

    def written(self, context: ProgramContext, session: str) -> Written | None:
        return None

    def status(self, screen: TerminalScreen) -> Status:
        if not screen.text.strip():
            return "starting"
        if self._is_busy(screen):
            return "busy"
        if self._question_at(screen) is not None:
            return "asking"
        return "unknown" if self._prompt_at(screen) is None else "ready"

    def question(self, screen: TerminalScreen) -> str:
        at = self._question_at(screen)
        return "" if at is None else screen.lines[at].strip(" │┃|")

    def composer(self, screen: TerminalScreen, text: str) -> Composer:
        before = before_cursor(_unframed(screen))
        # As it is, too: what looks like a frame may be a table's.
        if any(
            candidate.end_in(text, _SURE_LENGTH) for candidate in (before, before_cursor(screen))
        ):
            self._last_at_cursor = text
            return "ours"
        if not screen.text.strip() or self.status(screen) in ("busy", "asking"):
            return "unseen"
        at = self._prompt_at(screen)
        if self._last_at_cursor == text and (at is None or at < before.at):
            return self._after_enter(screen, text, before, at)
        return "empty" if at is None else self._at_prompt(screen, at, text)

    def _after_enter(
        self, screen: TerminalScreen, text: str, before: BeforeCursor, prompt_at: int | None
    ) -> Composer:
        """The cursor went on from the words. What is drawn beneath tells an input that has grown from one that was sent."""
        above = BeforeCursor(before.lines[:-1])
        has_grown = not before.lines[-1].strip() and above.end_in(text, _SURE_LENGTH)
        if has_grown and any(line.strip() for line in screen.lines[before.at :]):
            return "unsent"
        return "empty" if prompt_at is None else "unseen"

    def _at_prompt(self, screen: TerminalScreen, at: int, text: str) -> Composer:
        content = self._input(screen, at, _BORDER)
        if not content or (self._own.placeholder and self._placeholder.fullmatch(content)):
            return "empty"
        if self._stand_in.fullmatch(content):
            return "ours"
        # Of words that have empty lines themselves, the first of those is no border.
        is_ours = any(
            _are_the_same(self._input(screen, at, border), text)
            for border in (_BORDER, _DRAWN_BORDER)
        )
        return "ours" if is_ours else "other"

    def _input(self, screen: TerminalScreen, at: int, border: re.Pattern[str]) -> str:
        """Return the input's text, without its prompt and without spaces, which programs change."""
        lines = [self._behind_prompt(screen, screen.lines[at]) or ""]
        for line in screen.lines[at + 1 : at + _MAX_INPUT_LINES]:
            if border.fullmatch(line):
                break
            lines.append(_without_frame(line))
        return _squeezed("".join(lines))

    def _is_busy(self, screen: TerminalScreen) -> bool:
        """A program of plain lines leaves standing what it said: only its last line is of now.

        Others leave old marks standing when their terminal is resized: what is above a whole block is of the past.
        """
        lines = screen.lines[-1:] if self.manner == "lines" else screen.lines[-_LIVE_LINES:]
        _, _, live = "\n".join(lines).rpartition(_BLOCK_ENDS)
        return self._busy.search(live) is not None

    def _prompt_at(self, screen: TerminalScreen) -> int | None:
        """The lowest line that begins as the input does."""
        for at in reversed(range(len(screen.lines))):
            if self._behind_prompt(screen, screen.lines[at]) is not None:
                return at
        return None

    def _behind_prompt(self, screen: TerminalScreen, line: str) -> str | None:
        """The rest of a line that begins as the input does, else None."""
        bare = _without_frame(line).lstrip()
        # A pane's lines are captured without the blanks behind them, and a pattern may be for one of those.
        for visible in (bare.ljust(screen.columns), bare):
            if match := self._prompt.match(visible):
                return visible[match.end() :]
        return None

    def _question_at(self, screen: TerminalScreen) -> int | None:
        """The lowest line that asks, unless the input stands beneath it: then it is only talked of."""
        first = max(len(screen.lines) - _ASKING_LINES, 0)
        matches = [
            at for at, line in enumerate(screen.lines) if at >= first and self._asking.search(line)
        ]
        prompt_at = self._prompt_at(screen)
        if not matches or (prompt_at is not None and prompt_at > matches[-1]):
            return None
        return matches[-1]

    @cached_property
    def _prompt(self) -> re.Pattern[str]:
        return re.compile(rf"\s*(?:{self._own.prompt})")

    @cached_property
    def _placeholder(self) -> re.Pattern[str]:
        return re.compile(_spaceless(self._own.placeholder))

    @cached_property
    def _stand_in(self) -> re.Pattern[str]:
        return re.compile(_spaceless(self._own.stand_in))

    @cached_property
    def _busy(self) -> re.Pattern[str]:
        return re.compile(self._own.busy)

    @cached_property
    def _asking(self) -> re.Pattern[str]:
        return re.compile(self._own.asking)


def _unframed(screen: TerminalScreen) -> TerminalScreen:
    """Signs of a frame made blanks, so that all stays in its place."""
    lines = (
        _FRAME.sub(lambda match: " " * len(match[0]), line).rstrip()
        if _may_be_framed(line)
        else line
        for line in screen.lines
    )
    return replace(screen, lines=tuple(lines))


def _without_frame(line: str) -> str:
    return _FRAME.sub("", line) if _may_be_framed(line) else line


def _may_be_framed(line: str) -> bool:
    """To search a line that has no such sign costs a hundred times as much."""
    return any(sign in line for sign in _FRAME_SIGNS)


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _spaceless(pattern: str) -> str:
    """The pattern for text without spaces."""
    return pattern.replace(r"\s", "").replace(" ", "")


def _are_the_same(visible: str, text: str) -> bool:
    """Programs break lines and show a part: a good piece of the beginning or of the end will do."""
    part, whole = surely_drawn(visible), surely_drawn(text)
    if not whole or len(part) < min(len(whole), _SURE_LENGTH):
        return False
    return whole.startswith(part) or whole.endswith(part) or part.startswith(whole[:_SURE_LENGTH])
