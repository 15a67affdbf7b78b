"""What tmux says over a control connection, cut into answers.

Each command is answered by a block, `%begin T N F` … `%end T N F`, and what a pane shows stands in
such a block as it is. A program can draw a line that looks like the end of one. So every question is
followed by a request to print a random word: a program cannot know it, and only what comes right
before it ends a block.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from podium.agents.tui.trouble import PaneGone, TmuxRefused

_BEGIN = re.compile(rb"%begin (\d+ \d+ 1)")
_ERROR = re.compile(rb"%error (\d+ \d+ 1)")


def answer_of(lines: Sequence[bytes], command: str) -> list[str]:
    """The answer to one command out of all that came before its random word.

    Raises `TmuxRefused` or `PaneGone` when tmux answered with an error.
    """
    begin, mark = _first_block(lines, command)
    end = next(at for at in reversed(range(len(lines))) if lines[at] in _ends(mark))
    return _body(lines[begin + 1 : end + 1], command)


def answers_of(lines: Sequence[bytes], commands: Sequence[str]) -> list[list[str]]:
    """The answers to several commands. Only the last of them may show what a program drew."""
    found = []
    for command in commands[:-1]:
        begin, mark = _first_block(lines, command)
        end = next(at for at in range(begin, len(lines)) if lines[at] in _ends(mark))
        found.append(_body(lines[begin + 1 : end + 1], command))
        lines = lines[end + 1 :]
    return [*found, answer_of(lines, commands[-1])]


def refuse_errors(lines: Sequence[bytes], commands: str) -> None:
    """Raise for the first of several commands that failed. None of them may show a pane's content."""
    for at, line in enumerate(lines):
        if failed := _ERROR.fullmatch(line):
            begin = lines.index(b"%begin " + failed[1])
            words = b"\n".join(lines[begin + 1 : at]).decode(errors="replace")
            raise refusal(commands, words)


def refusal(command: str, words: str) -> TmuxRefused | PaneGone:
    """The error for what tmux said. Of the command only its name is told: the rest may be private."""
    name = command.split(" ", 1)[0]
    if words.startswith(("can't find pane", "can't find window")):
        return PaneGone(f"tmux {name}: {words}; start the program again")
    return TmuxRefused(f"tmux {name}: {words or 'failed without a word'}")


def _body(block: Sequence[bytes], command: str) -> list[str]:
    *shown, end = block
    body = [line.decode(errors="replace") for line in shown]
    if end.startswith(b"%error"):
        raise refusal(command, "\n".join(body))
    return body


def _first_block(lines: Sequence[bytes], command: str) -> tuple[int, bytes]:
    for at, line in enumerate(lines):
        if found := _BEGIN.fullmatch(line):
            return at, found[1]
    raise refusal(command, "it was not answered")


def _ends(mark: bytes) -> tuple[bytes, bytes]:
    return b"%end " + mark, b"%error " + mark
