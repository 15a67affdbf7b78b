"""What came of the handoffs of a duet, held against what its programs said and took."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from podium.domain.events import MessageHeard
from podium.domain.messages import Message, section_of
from podium.domain.model import Noun
from podium.testing.tui_zoo.prompts import whole_prompt
from podium.wiring.bench_duet_stage import ZooSeat


class Handoff(Noun):
    """One message that the router took from a side and handed on."""

    sender: str
    """Kind of program that said it."""
    receiver: str
    """Kind of program that was to take it. Empty: it was for the person."""
    way: str
    exact: bool
    """Its body is what the program said, to the byte."""
    meant: bool
    """The program said a block of this id, type and address as an answer: nothing else was taken for it."""
    copies: int
    """How often the receiver took it."""

    @property
    def wrong(self) -> bool:
        """It was not the answer, did not arrive, or arrived more than once."""
        return not self.meant or self.copies != 1


class KindScore(Noun):
    """How one kind of program did, on whichever side."""

    kind: str
    said: int
    """Messages of it that were handed on."""
    exact: int
    taken: int
    """Messages that it took from the other side."""
    enters: float
    """Presses of Enter for each message that it took, on average."""
    wrong: int


def handoff_of(
    heard: MessageHeard,
    sender: ZooSeat,
    receiver: ZooSeat | None,
    ways: Sequence[str],
    *,
    since: int = 0,
) -> Handoff:
    """The marks of one message that was handed on.

    `since`: prompts that the receiver had taken before this task. Programs say the same body in many tasks.
    """
    message = heard.message
    told = sender.happened()
    asked = [each.text for each in told if each.what == "asked"]
    said = [each for each in told if each.what == "said" and each.text == message.id]
    meant = [each for each in said if (each.to, each.type) == (message.to, message.type)]
    return Handoff(
        sender=sender.kind,
        receiver=receiver.kind if receiver else "",
        way=ways[asked.index(message.id) % len(ways)] if message.id in asked else "",
        exact=bool(meant) and meant[-1].body == message.body,
        meant=bool(meant),
        copies=_copies(message, receiver, since) if receiver else 1,
    )


def score(kind: str, handoffs: Iterable[Handoff], seats: Iterable[ZooSeat]) -> KindScore:
    all_of_them = list(handoffs)
    said = [each for each in all_of_them if each.sender == kind]
    taken = [each for each in all_of_them if each.receiver == kind]
    enters = [
        each.enters
        for seat in seats
        if seat.kind == kind
        for each in seat.happened()
        if each.what == "took"
    ]
    return KindScore(
        kind=kind,
        said=len(said),
        exact=sum(each.exact for each in said),
        taken=sum(each.copies > 0 for each in taken),
        enters=sum(enters) / len(enters) if enters else 0.0,
        wrong=sum(each.wrong for each in said),
    )


def _copies(message: Message, receiver: ZooSeat, since: int) -> int:
    """How often the program took it; what it was given again because it had died counts once."""
    text = "\n".join(prompts_of(receiver)[since:])
    again = sum(each.what == "died" for each in receiver.happened())
    copies = text.count(section_of(message))
    return max(copies - again, 1) if copies else 0


def prompts_of(seat: ZooSeat) -> list[str]:
    """All that a program took; what was handed over as a file, from there."""
    if not seat.record.exists():
        return []
    return [whole_prompt(json.loads(line)) for line in seat.record.read_text().splitlines()]
