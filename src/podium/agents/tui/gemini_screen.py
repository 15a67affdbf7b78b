"""What Gemini CLI's screen says: its composer between two lines, its title, its boxes."""

from __future__ import annotations

import re
from itertools import pairwise

from podium.agents.headless.ending import plain_words
from podium.agents.tui.adapting import Status
from podium.agents.tui.capturing import Screen
from podium.agents.tui.drawn import surely_drawn
from podium.agents.tui.seeing import Composer

_ASKING = "✋"
_WORKING = ("✦", "⏲")
RESUMED = "resumed: "
"""What its title has for one that was started in an old conversation."""
_UNTRUSTED = "ℹ This folder is untrusted"
_PROMPT = " > "
_NOTHING = "Type your message or @path/to/file"
_RULE = re.compile(r"─{20,}")
_STAND_IN = re.compile(r"\[PastedText:(\d+)(lines|chars)(?:#\d+)?\]")
"""Without its blanks."""
_MOST_LINES, _MOST_CHARACTERS = 5, 500
"""What is longer is shown by a stand-in."""
_FRAME = "│╭╮╰╯─"
_SURE_LENGTH = 60


def composer_on(screen: Screen, words: str) -> Composer:
    place = _composer(screen)
    if place is None or _only_comes_up(screen, place):
        return "unseen"
    shown = [line.removeprefix(_PROMPT) for line in screen.lines[place]]
    if [line.strip() for line in shown] == [_NOTHING]:
        return "empty"
    if not _is_beginning(surely_drawn("".join(shown)), words):
        return "other"
    return "unsent" if not shown[-1].strip() and not words.endswith("\n") else "ours"


def status_on(screen: Screen) -> Status:
    """By its title and its composer, which a question stands in the place of.

    The title alone says ready also before anything is painted and above most questions, and working above some.
    """
    place = _composer(screen)
    if screen.title.startswith(_ASKING) or _box(screen):
        return "asking"
    if screen.title.startswith(_WORKING):
        return "busy"
    return "starting" if place is None or _only_comes_up(screen, place) else "ready"


def question_on(screen: Screen) -> str:
    """What stands in the lowest box, without its frame."""
    lines = _box(screen) or screen.lines[-15:]
    return plain_words(" ".join(line.strip(f" {_FRAME}") for line in lines))


def _composer(screen: Screen) -> slice | None:
    """Where what was typed stands: between the last two lines that go all the way and hold a prompt.

    Below may stand what an earlier painting left: it does not wipe the last lines away when a long answer shrinks.
    """
    rules = [at for at, line in enumerate(screen.lines) if _RULE.fullmatch(line)]
    if _box(screen):
        return None
    for begin, end in reversed(list(pairwise(rules))):
        if f"{screen.lines[begin + 1]} ".startswith(_PROMPT):
            return slice(begin + 1, end)
    return None


def _only_comes_up(screen: Screen, composer: slice) -> bool:
    """Whether there is nothing above its composer yet, or only what it says before it shows an old conversation.

    It paints the composer first, takes pastes as pastes a moment later, and then says that the folder is not trusted. An
    old conversation comes even later, and with it what was pasted is gone.
    """
    above = screen.lines[: composer.start - 2]
    first = next((line for line in above if line.strip() and not _RULE.fullmatch(line)), "")
    return not first or (RESUMED in screen.title and first.startswith(_UNTRUSTED))


def _box(screen: Screen) -> tuple[str, ...]:
    """The lines of the box at the very bottom. Empty: there is none."""
    begins = [at for at, line in enumerate(screen.lines) if line.strip().startswith("╭")]
    at_bottom = bool(screen.lines) and screen.lines[-1].strip().startswith("╰")
    return screen.lines[begins[-1] :] if begins and at_bottom else ()


def _is_beginning(shown: str, words: str) -> bool:
    """Whether what is surely shown is these words, their stand-in, or what fits of them."""
    stand_in = _STAND_IN.fullmatch(shown)
    if stand_in is not None and is_long(words):
        lines = words.count("\n") + 1
        return lines == int(stand_in[1]) if stand_in[2] == "lines" else lines <= _MOST_LINES
    whole = surely_drawn(words)
    return len(shown) >= min(len(whole), _SURE_LENGTH) and shown in whole


def is_long(words: str) -> bool:
    """Whether it shows a stand-in for them, and takes them as they are."""
    characters = len(words.encode("utf-16-le", errors="replace")) // 2
    return words.count("\n") >= _MOST_LINES or characters > _MOST_CHARACTERS
