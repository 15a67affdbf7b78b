"""What is wrong with a reply, in words that can be quoted to the agent that gave it."""

from __future__ import annotations

import re
from typing import Literal

from podium.domain.errors import ReplyInvalid

Problem = Literal[
    "missing",  # nothing of the kind is there
    "cut off",  # it begins and does not end
    "malformed",  # it is no JSON, and mending it would be guessing
    "misfit",  # it is JSON and does not fit the contract
    "ambiguous",  # there are two, and they differ
    "misplaced",  # it stands where an answer does not: in a list, a sentence, a quotation
    "trailing",  # what follows takes it back; without a nonce, too much follows
    "thinking",  # it was only thought
    "nonce",  # it is not of this turn
    "too large",
]

REMEDIES: dict[Problem, str] = {
    "missing": "End your reply with one JSON object that fits the schema.",
    "cut off": "Send the whole object again, shorter if it was too long.",
    "malformed": "Send it again as plain JSON: double quotes, no comments, no trailing commas, "
    "quotes and line breaks inside strings escaped.",
    "misfit": "Send the whole object again with these fields put right.",
    "ambiguous": "Send only the one that counts, once.",
    "misplaced": "Send the object by itself on lines of its own at the end of the reply.",
    "trailing": "Say what you have to say first and put the object at the very end.",
    "thinking": "Send the object after your thinking, at the end of the reply.",
    "nonce": "Send the object again with the nonce of this turn, as the instructions say.",
    "too large": "Send less: put long text into a file and name its path.",
}


MOST_WORDS = 2000
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class NotAnAnswer(ReplyInvalid):
    """A reply, or a part of it, that is not taken for the answer. `problem` says in a word why."""

    def __init__(self, problem: Problem, words: str) -> None:
        super().__init__(f"{on_one_line(words)}. {REMEDIES[problem]}")
        self.problem = problem


def on_one_line(words: str, most: int = MOST_WORDS) -> str:
    """Words that may hold an agent's own, made so that they cannot pass for lines of a prompt."""
    line = words[:most]
    if not line.isprintable():
        line = "".join(char if char.isprintable() else " " for char in line)
    return line if len(words) <= most else f"{line}…"


def excerpt(text: str, most: int = 300) -> str:
    """The end of a text, cut short, fit for a prompt and for any encoding."""
    kept = _CONTROLS.sub(" ", text[-most:]).encode("utf-8", "backslashreplace").decode()
    return kept if len(text) <= most else f"[… {len(text) - most} characters before] {kept}"
