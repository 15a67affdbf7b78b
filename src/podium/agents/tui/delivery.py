"""Delivery of outbound messages, each a private file, once: whoever is killed in between and whoever else sends.

Each message is a letter: a private file that is written before anything is put in. It has the words and the number that
they are to have. Whether they got it is known by the ledger alone, which has the letter's name for the number.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal, Protocol

from pydantic import ValidationError

from podium.agents.tui.adapter import Status, Written
from podium.agents.tui.control import Control, DeliveryInDoubt, NotListening, NumberTaken
from podium.agents.tui.injector import Injector
from podium.agents.tui.ledger import LedgerEntry
from podium.agents.tui.screen import TerminalScreen, history_size, look
from podium.agents.tui.server import ServerIdentity
from podium.core.decisions import digest_of
from podium.core.model import FrozenModel, Json, json_of
from podium.platform import make_private_folder
from podium.platform.atomic_write import atomic_write

MAX_MESSAGES = 300
"""Older ones are removed. The ledger knows far fewer owners."""
_SURE_LENGTH = 200
"""Programs may write a prompt down with other blanks: so much of its beginning and end tell it from others."""


class OutboundMessage(FrozenModel):
    """A message that is to be sent, or was."""

    owner: str
    """Its name in the ledger."""
    text: str
    number: int
    server: tuple[int, int]
    """The life of the server in which the number holds."""
    life: int = 0
    """Times the program had been started by then: a later one may know nothing of it."""
    mark: Json = None
    """End of what the program had written or shown before it took the message."""
    face: str = ""
    """Look of the program then, where that was seen: see `DeliveryProbe.face`."""
    given_up: bool = False
    """Nobody waits for its answer any more: asked again, it is sent again."""

    def is_taken_as(self, prompt: str) -> bool:
        """Return whether this is how its program wrote down that it took the message, or the file that it was handed as."""
        mine, theirs = "".join(self.text.split()), "".join(prompt.split())
        if self.owner in theirs:
            return True
        length = min(len(mine), len(theirs), _SURE_LENGTH)
        return (
            length > 0 and mine[:length] == theirs[:length] and mine[-length:] == theirs[-length:]
        )

    def may_be_in(self, prompt: str) -> bool:
        """Return whether its program may have taken the message as this: also with a person's text around it, or in part."""
        mine, theirs = "".join(self.text.split()), "".join(prompt.split())
        ends = (mine[:_SURE_LENGTH], mine[-_SURE_LENGTH:])
        return self.is_taken_as(prompt) or any(end in theirs for end in ends)


class OutboundMessages:
    """The letters of one program, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, owner: str) -> OutboundMessage | None:
        """None also for a file that somebody has damaged: it is as if it had not been sent."""
        try:
            return OutboundMessage.model_validate_json(self._file(owner).read_bytes())
        except (OSError, ValidationError):
            return None

    def keep(self, message: OutboundMessage) -> None:
        """On return it survives a crash."""
        make_private_folder(self._folder)
        atomic_write(self._file(message.owner), json_of(message).encode())

    def remove_old(self) -> None:
        """All but the newest."""
        by_age = sorted(self._folder.glob("*.json"), key=lambda file: file.stat().st_mtime)
        for file in by_age[:-MAX_MESSAGES]:
            file.unlink(missing_ok=True)

    def _file(self, owner: str) -> Path:
        return self._folder / f"{owner}.json"


def owner_of(key: str) -> str:
    """The name in the ledger of whatever is sent under this key."""
    return hashlib.sha256(key.encode(errors="replace")).hexdigest()[:20]


Fate = Literal["taken", "gone", "unknown"]
"""The program took them, or may have; they are gone, and it never had them; or that cannot be told as long as it works,
asks or has something in its input."""


class DeliveryProbe(Protocol):
    """Tells by what a program shows and writes. Does nothing to it."""

    async def face(self) -> str:
        """Stands for all that the pane shows and has shown. Another one as soon as anything changes."""
        ...

    async def of(self, message: OutboundMessage) -> Fate:
        """Return the state of a message that was put in by an earlier attempt."""
        ...

    async def is_bare(self, text: str = "") -> bool:
        """Return whether the program is ready, and has had nothing in its input for a while."""
        ...


class ScreenProbe:
    """Reads the state from one program's screen, and from its own transcript where it keeps one."""

    def __init__(
        self,
        control: Control,
        pane: str,
        injector: Injector,
        status: Callable[[TerminalScreen], Status],
        written: Written | None,
    ) -> None:
        self._control = control
        self._pane = pane
        self._injector = injector
        self._status = status
        self._written = written

    async def face(self) -> str:
        size, screen = await asyncio.gather(
            history_size(self._control, self._pane), look(self._control, self._pane)
        )
        return digest_of([size, *screen.lines])

    async def of(self, message: OutboundMessage) -> Fate:
        if self._written is not None and await self._is_written(self._written, message):
            return "taken"
        if not await self.is_bare(message.text):
            return "unknown"
        if message.given_up:  # whether it was or not, nobody waits for its answer
            return "taken"
        if self._written is not None:
            return "taken" if await self._is_written(self._written, message) else "gone"
        # Whoever takes a message shows something: where all is as it was before, nothing was taken.
        return "gone" if message.face == await self.face() else "taken"

    async def is_bare(self, text: str = "") -> bool:
        if not await self._injector.composer.stays_empty(text):
            return False
        return self._status(await look(self._control, self._pane)) == "ready"

    async def _is_written(self, written: Written, message: OutboundMessage) -> bool:
        entries, _ = await asyncio.to_thread(written.since, message.mark)
        return any(entry.kind == "prompt" and message.may_be_in(entry.text) for entry in entries)


_TRIES = 20
"""So often another may have been quicker before that is told."""


class Sender:
    """Gives letters their numbers and has them delivered."""

    def __init__(
        self,
        injector: Injector,
        messages: OutboundMessages,
        server: ServerIdentity,
        life: int,
        probe: DeliveryProbe,
    ) -> None:
        self._probe = probe
        self._injector = injector
        self._messages = messages
        self._life = life
        self._server = (server.pid, server.started)

    async def send(
        self, key: str, text: str, end_position: Callable[[], Awaitable[Json]]
    ) -> OutboundMessage:
        """Have the program take these words, once for each key. On return it has.

        `mark` is asked right before they are put in. Raises as `Injector.deliver` does; whoever comes later calls again
        with the same key and text. What an earlier attempt put in and nobody saw is put in again when the program
        surely never had it.
        """
        owner = owner_of(key)
        message = self._messages.read(owner)
        for _ in range(_TRIES):
            entry = await self._injector.ledger.read()
            if message is None or not self._has_its_number(message, entry):
                if not entry.is_settled:
                    await self._finish_another(entry)
                    continue
                # Not beside the ledger: a mark from before another's message would take that for ours.
                marked, face = await asyncio.gather(end_position(), self._probe.face())
                message = OutboundMessage(
                    owner=owner,
                    text=text,
                    number=entry.sent + 1,
                    server=self._server,
                    life=self._life,
                    mark=marked,
                    face=face,
                )
                await asyncio.to_thread(self._messages.keep, message)
            try:
                await self._deliver(message, again=entry.pasted >= message.number)
            except NumberTaken:
                continue
            return message
        raise NotListening(
            "other messages to the same program keep coming; wait until they are done"
        )

    async def is_on_its_way(self, key: str) -> bool:
        """Return whether the program took what is sent under this key, or has it in its input, in this life of the server."""
        message = self._messages.read(owner_of(key))
        if message is None:
            return False
        return self._has_its_number(message, await self._injector.ledger.read())

    def _has_its_number(self, message: OutboundMessage, entry: LedgerEntry) -> bool:
        """One so old that its owner is forgotten was sent: nothing is ever sent twice."""
        if message.server != self._server or entry.pasted < message.number:
            return False
        return entry.owners.get(message.number, message.owner) == message.owner

    async def _finish_another(self, entry: LedgerEntry) -> None:
        """Somebody's words stand in the input. He may be dead, so whoever comes next sends them."""
        owner = entry.owners.get(entry.pasted, "")
        message = self._messages.read(owner) if owner else None
        if message is not None:
            await self._let_through(message)
        elif await self._probe.is_bare():
            await self._injector.ledger.take_as_sent(entry.pasted)
        else:
            raise NotListening(
                f"message {entry.pasted} is in the program's input, and its text is unknown; check the pane, then send "
                "or remove it"
            )

    async def _deliver(self, message: OutboundMessage, *, again: bool) -> None:
        """`again`: it was put in before; now it may have become clear what became of it."""
        if again:
            await self._let_through(message)
        # It has left by now, or its number is free again.
        await self._injector.deliver(message.number, message.text, message.owner)

    async def _let_through(self, message: OutboundMessage) -> None:
        """Have what stands in the input leave, or know that it is not there. Raises `DeliveryInDoubt` when that is not known."""
        try:
            await self._injector.deliver(message.number, message.text, message.owner)
        except DeliveryInDoubt:
            fate = await self._probe.of(message)
            if fate == "unknown":
                raise
            if fate == "taken":
                await self._injector.ledger.take_as_sent(message.number)
            else:
                await self._injector.ledger.reopen(message.number)
