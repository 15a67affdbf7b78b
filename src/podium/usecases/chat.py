"""What somebody wrote in a chat, as one of the few things that can be wished for there."""

from __future__ import annotations

import re
from typing import Literal

from podium.domain.model import Noun

Verb = Literal["run", "ask", "status", "approve", "answer", "reject", "help"]
Needs = Literal["", "operator", "approver"]

NEEDED_ROLE: dict[Verb, Needs] = {
    "run": "operator",
    "ask": "operator",
    "status": "",
    "approve": "approver",
    "answer": "approver",
    "reject": "approver",
    "help": "",
}
"""What somebody must be for each; everybody who is heard may look."""

HELP = """run TASK: a task becomes a branch
ask MESSAGE: the operator plans it, and asks before it acts
status [ID]: what goes on and what waits, or one run or approval
APPROVE: ID, or answer ID WORDS for a question
reject ID WHY
help"""

_FIRST_WORD = re.compile(r"^\s*/?(?P<verb>[A-Za-z]+)(?:@\w+)?:?(?:\s+(?P<rest>.*))?$", re.DOTALL)
"""`run …`; as bots are spoken to `/run …` or `/run@name …`; and `APPROVE: …`."""
_WITH_AN_ID: tuple[Verb, ...] = ("approve", "answer", "reject")


class ChatWish(Noun):
    """What is wished for."""

    verb: Verb
    target: str = ""
    """The id of what it is about."""
    words: str = ""


def understood(text: str) -> ChatWish | str:
    """The wish, or words that say what is missing of it."""
    found = _FIRST_WORD.match(text)
    verb = next((each for each in NEEDED_ROLE if found and found["verb"].lower() == each), None)
    if found is None or verb is None:
        return f"This is none of what can be said here.\n{HELP}"
    rest = (found["rest"] or "").strip()
    if verb in ("run", "ask"):
        what = "a task" if verb == "run" else "a message"
        return ChatWish(verb=verb, words=rest) if rest else f"Say {what} behind `{verb}`."
    if verb not in _WITH_AN_ID:
        return ChatWish(verb=verb, target=rest)
    target, _, words = rest.partition(" ")
    return _about(verb, target, words.strip())


def _about(verb: Verb, target: str, words: str) -> ChatWish | str:
    if not target:
        return f"Say the id of what waits behind `{verb}`; `status` lists it."
    if verb == "approve" and words:
        return "A yes is `APPROVE: ID` and nothing behind it; `answer ID WORDS` answers a question."
    if verb != "approve" and not words:
        what = "a reason" if verb == "reject" else "the answer"
        return f"Say {what} behind the id."
    return ChatWish(verb=verb, target=target, words=words)
