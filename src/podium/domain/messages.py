"""Messages that agents hand to each other: tagged blocks in what they say, known by an id that no block of a prompt has.

[[POLI:MSG {"to":"EXECUTER","type":"plan","id":"TASK-NONCE"}]]
<PLAN>
…
</PLAN>
[[/POLI:MSG]]
"""

from __future__ import annotations

import json
from typing import Literal

from pydantic import Field

from podium.domain.model import NonEmpty, Noun

TAG = "POLI:MSG"

Side = Literal["PLANNER", "EXECUTER"]
Address = Literal["PLANNER", "EXECUTER", "USER"]
MessageType = Literal["plan", "result", "report", "status", "blocker"]

SECTIONS: dict[str, str] = {
    "plan": "PLAN",
    "result": "RESULT",
    "report": "REPORT",
    "status": "STATUS",
    "blocker": "BLOCKER",
}
"""How the body of each type is wrapped. It need not be."""


class Message(Noun):
    """A block that was read: whom it is for, what it is, and its body without its section's tags."""

    to: str
    type: str
    id: str
    body: str
    mended: bool = False
    """A terminal's marks had to be taken off."""


class Ignored(Noun):
    """Something that looked like a block and could not be read."""

    why: str
    shown: str = ""
    """Its beginning."""


class Heard(Noun):
    """All blocks of a text in their order, and what only looked like one."""

    messages: tuple[Message, ...] = ()
    ignored: tuple[Ignored, ...] = ()


ADDRESSEES: dict[str, tuple[Address, ...]] = {
    "plan": ("EXECUTER",),
    "result": ("PLANNER",),
    "report": ("USER",),
    "status": ("PLANNER", "EXECUTER", "USER"),
    "blocker": ("PLANNER", "EXECUTER", "USER"),
}
"""Whom a message of each type may be for."""


class Awaited(Noun):
    """The message that a turn is to bring."""

    sender: Side
    types: tuple[MessageType, ...] = Field(min_length=1)
    """Any of these will do, and always a `blocker`."""
    task: NonEmpty
    nonce: NonEmpty
    """Of this turn alone. No block of a prompt has it, and where a screen is read a prompt names it in halves."""
    or_words: bool = False
    """Words without a block are an answer too: the whole of what was said when the turn is over."""
    longest_seconds: float = Field(default=14_400.0, gt=0)
    """However often it tells of its progress, which begins the turn's time anew."""

    @property
    def id(self) -> str:
        return f"{self.task}-{self.nonce}"

    def found_in(self, heard: Heard) -> Message | None:
        """The last that is the message. None: there is none."""
        return next((each for each in reversed(heard.messages) if self.is_met_by(each)), None)

    def is_met_by(self, message: Message) -> bool:
        """Whether this is the message: of the turn's id, of a type that was wanted, and for whom that is."""
        return message.type in (*self.types, "blocker") and not self.fault_of(message)

    def is_progress(self, message: Message) -> bool:
        """Whether the agent tells how far it is."""
        return message.type == "status" and not self.fault_of(message)

    def fault_of(self, message: Message) -> str:
        """Why it is no message of this turn. Empty: it is one."""
        if message.id != self.id:
            return "its id is not this turn's"
        if message.to == self.sender:
            return "it is for whoever sent it"
        if message.to not in ADDRESSEES.get(message.type, ()):
            return f"a message of type {message.type!r} cannot be for {message.to!r}"
        return ""


def block_of(message: Message) -> str:
    """The message as a block, its body in its section."""
    header = json.dumps({"to": message.to, "type": message.type, "id": message.id})
    return f"[[{TAG} {header}]]\n{section_of(message)}\n[[/{TAG}]]"


def section_of(message: Message) -> str:
    """The body in its section, without the id of the turn that brought it."""
    section = SECTIONS.get(message.type, "")
    wrapped = message.body.startswith(f"<{section}>") and message.body.endswith(f"</{section}>")
    return message.body if wrapped or not section else f"<{section}>\n{message.body}\n</{section}>"
