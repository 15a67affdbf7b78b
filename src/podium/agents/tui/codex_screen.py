"""Reading codex's screen: its composer at the bottom, what it is at above, and its dialogs.

• Working (3s • esc to interrupt)

› what is typed
  and goes on

  GPT-5.5 default · /home/me/project
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from podium.agents.headless.ending import plain_words
from podium.agents.tui.adapting import Status
from podium.agents.tui.capturing import Screen
from podium.agents.tui.seeing import Composer

STAND_IN_BEYOND_CHARACTERS = 1000
"""A longer paste is shown by a stand-in, and taken as it is: none of it is a command then."""

_MARK, _SHELL_MARK, _INDENT = "›", "!", "  "
_MARK_COLUMNS = 2
_PLACEHOLDER = "Ask Codex to do anything"
_STAND_IN = re.compile(r"\[Pasted Content (\d+) chars\]")
_WORKING = re.compile(r"(\S.* )?\((\d+[hm] )*\d+s • esc to interrupt\)")
_OVER = re.compile(r"  Worked for |■ ")
_OPTION = re.compile(r"\s*[›>] \d+\. ")
_HINT = re.compile(r"\s*(press |↑|enter\b|esc\b|tab\b|ctrl\b|space\b)", re.IGNORECASE)
_COMPLETION = "esc close"
_SURE_CHARACTERS = 60
_MOST_LINES_SEEN = 8
_QUESTION_LINES = 12
_LONGEST_QUESTION = 400


@dataclass(frozen=True)
class _Input:
    """The composer, found on a screen."""

    mark: str
    text: str
    above: Sequence[str]


def composer(screen: Screen, words: str) -> Composer:
    """What stands in the composer. It is not to be seen while codex works: words that it is given then end its answer."""
    found = _input(screen.lines)
    if found is None or _works(found.above):
        return "unseen"
    if found.mark == _SHELL_MARK or any(_COMPLETION in line for line in found.above[-2:]):
        return "other"
    if found.text in ("", _PLACEHOLDER) and screen.cursor[0] == _MARK_COLUMNS:
        return "empty"
    return "ours" if _shows(found.text, words) else "other"


def status(screen: Screen) -> Status:
    """What codex is at. While it starts it shows a composer already, but not yet what stands below it."""
    found = _input(screen.lines)
    if found is not None:
        return "busy" if _works(found.above) else "ready"
    if any(_OPTION.match(line) for line in screen.lines):
        return "asking"
    return "busy" if _works(screen.lines) else "starting"


def question(screen: Screen) -> str:
    """The dialog in one line, with what may be answered."""
    options = [at for at, line in enumerate(screen.lines) if _OPTION.match(line)]
    first = options[-1] if options else len(screen.lines)
    lines = [line.strip() for line in screen.lines[max(first - _QUESTION_LINES, 0) :]]
    return plain_words(" ".join(line for line in lines if line), _LONGEST_QUESTION)


def as_paste(words: str) -> str:
    """The words as codex takes them for nothing but words.

    What begins with `/` or `!` would be a command, a name at the end after `@` or `$` would be completed by Enter, a single
    path may be an image, and of many short lines a low terminal shows too few. Blanks behind make it a long paste; codex
    drops them.
    """
    is_command = words.lstrip().startswith(("/", "!"))
    is_completed = re.search(r"[@$]\S*\Z", words) is not None
    is_tall = words.count("\n") > _MOST_LINES_SEEN
    if is_command or is_completed or is_tall or len(words.split()) == 1:
        return words.ljust(STAND_IN_BEYOND_CHARACTERS + 1)
    return words


def _input(lines: Sequence[str]) -> _Input | None:
    """The composer above the last line, which is neither its own nor the hint below a dialog."""
    if not lines or not lines[-1].startswith(_INDENT) or _HINT.match(lines[-1]):
        return None
    for at in range(len(lines) - 2, -1, -1):
        line = lines[at]
        if line[:1] in (_MARK, _SHELL_MARK) and line[1:2] in ("", " "):
            inner = (line[_MARK_COLUMNS:], *(each[len(_INDENT) :] for each in lines[at + 1 : -1]))
            return _Input(line[0], "\n".join(inner).strip(), lines[:at])
        if line and not line.startswith(_INDENT):
            return None
    return None


def _works(above: Sequence[str]) -> bool:
    """Whether what is shown last says that it works: an answer may quote that line, but then its end is shown below."""
    for line in reversed(above):
        if _OVER.match(line):
            return False
        if _WORKING.match(line):
            return True
    return False


def _shows(shown: str, words: str) -> bool:
    """Whether this is the words: their stand-in, or all of them, or their end when they are too tall."""
    stand_in = _STAND_IN.fullmatch(shown)
    if stand_in:
        return int(stand_in[1]) == len(words)
    seen, whole = _letters(shown), _letters(words)
    return seen == whole or (len(seen) >= _SURE_CHARACTERS and whole.endswith(seen))


def _letters(text: str) -> str:
    """What of a text comes through a terminal as it was: lines are broken, tabs and some signs are drawn otherwise."""
    return "".join(filter(str.isalnum, text))
