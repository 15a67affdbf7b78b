"""Long text cut in its middle, so that a reply can be kept beside the others."""

from __future__ import annotations

MOST_CHARACTERS = 200_000


def bounded(text: str, most: int = MOST_CHARACTERS) -> str:
    """At most that many characters: head and tail, with a line between that says what is missing."""
    if len(text) <= most:
        return text
    # The note's own length depends on the figure in it by a digit at most.
    room = most - len(_note(len(text)))
    head = room // 2
    tail = room - head
    return f"{text[:head]}{_note(len(text) - room)}{text[len(text) - tail :]}"


def _note(left_out: int) -> str:
    return f"\n[… {left_out} characters left out here; the transcript has all …]\n"
