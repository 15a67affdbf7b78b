"""What Claude Code's screen says: its composer between two lines, the sign that it works, its dialogs."""

from __future__ import annotations

import re

from podium.agents.headless.ending import plain_words
from podium.agents.tui.adapting import Status
from podium.agents.tui.capturing import Screen
from podium.agents.tui.drawn import surely_drawn
from podium.agents.tui.seeing import Composer

_PROMPT = "❯"
_RULE = "─" * 10
_WORKS = re.compile(r"[·✢✳✶✻✽*] .*(…|Retrying in )")
"""Above the composer, from the first column on. When its turn is over the same sign stands there with other words."""
_INTERRUPTIBLE = "esc to interrupt"
_HINT = re.compile(r'Try "|Press up to edit queued messages')
"""Shown in an empty composer, behind the cursor."""
_FIRST_COLUMN = 2
_STAND_IN = re.compile(r"\[Pasted text #\d+(?: \+(\d+) lines?)?\]")
_DIALOG = re.compile(
    r"\s*❯ +\d+\. |.*\b(Enter to (confirm|select|continue|submit)|Esc to (cancel|exit))\b",
    re.IGNORECASE,
)
_SURE_LENGTH = 60
_LINES_OF_QUESTION = 20


def composer_on(screen: Screen, words: str) -> Composer:
    place = _composer(screen)
    if place is None:
        return "unseen"
    shown = "\n".join(screen.lines[place]).removeprefix(_PROMPT).strip()
    if not shown or (_HINT.match(shown) and screen.cursor[0] == _FIRST_COLUMN):
        return "empty"
    return "ours" if _stands_for(shown, words) or _is_part(shown, words) else "other"


def status_on(screen: Screen) -> Status:
    place = _composer(screen)
    if place is None:
        return "asking" if any(map(_DIALOG.match, screen.lines)) else "starting"
    works = any(map(_WORKS.match, screen.lines[: place.start]))
    # It is not said while something stands in the composer, and the sign may have scrolled away.
    told = any(_INTERRUPTIBLE in line for line in screen.lines[place.stop :])
    return "busy" if works or told else "ready"


def question_on(screen: Screen) -> str:
    """The end of what it shows, from the line above the dialog on."""
    rules = [at for at, line in enumerate(screen.lines) if line.startswith(_RULE)]
    begin = rules[-1] + 1 if rules else 0
    lines = [line.strip() for line in screen.lines[begin:] if line.strip()]
    return plain_words(" ".join(lines[-_LINES_OF_QUESTION:]))


def _composer(screen: Screen) -> slice | None:
    """Where what was typed stands: between the last two lines that go all the way."""
    rules = [at for at, line in enumerate(screen.lines) if line.startswith(_RULE)]
    if len(rules) < 2 or not screen.lines[rules[-2] + 1].startswith(_PROMPT):
        return None
    return slice(rules[-2] + 1, rules[-1])


def _stands_for(shown: str, words: str) -> bool:
    """Whether it is what a long paste is shown by, of so many lines."""
    stand_in = _STAND_IN.fullmatch(shown)
    newlines = {words.count("\n"), words.strip().count("\n")}
    return stand_in is not None and int(stand_in[1] or 0) in newlines


def _is_part(shown: str, words: str) -> bool:
    """Whether it is these words, or what fits of them."""
    part, whole = surely_drawn(shown), surely_drawn(words)
    return len(part) >= min(len(whole), _SURE_LENGTH) and part in whole
