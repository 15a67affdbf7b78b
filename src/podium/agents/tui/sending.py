"""Sending a message once, whoever is killed in between and whoever else sends at the same time.

Each message is a letter: a private file that is written before anything is put in. It has the words and the number that
they are to have. Whether they got it is known by the ledger alone, which has the letter's name for the number.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path

from pydantic import ValidationError

from podium.agents.private_files import write_private
from podium.agents.tui.injecting import Injector
from podium.agents.tui.ledger import Entry
from podium.agents.tui.server import ServerIdentity
from podium.agents.tui.trouble import NotListening, NumberTaken
from podium.domain.model import Json, Noun, json_of

MOST_LETTERS = 300
"""Older ones are removed. The ledger knows far fewer owners."""
_SURE_LENGTH = 200
"""Programs may write a prompt down with other blanks: so much of its beginning and end tell it from others."""
_TRIES = 20
"""So often another may have been quicker before that is told."""


class Letter(Noun):
    """A message that is to be sent, or was."""

    owner: str
    """Its name in the ledger."""
    text: str
    number: int
    server: tuple[int, int]
    """The life of the server in which the number holds."""
    life: int = 0
    """How often the program had been started by then: a later one may know nothing of it."""
    mark: Json = None
    """Where what the program wrote or showed had its end before it took the message."""
    given_up: bool = False
    """Nobody waits for its answer any more: asked again, it is sent again."""

    def is_taken_as(self, prompt: str) -> bool:
        """Whether this is how its program wrote down that it took the letter; or took the file that it was handed as."""
        mine, theirs = "".join(self.text.split()), "".join(prompt.split())
        if self.owner in theirs:
            return True
        length = min(len(mine), len(theirs), _SURE_LENGTH)
        return (
            length > 0 and mine[:length] == theirs[:length] and mine[-length:] == theirs[-length:]
        )


class Letters:
    """The letters of one program, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, owner: str) -> Letter | None:
        """None also for a file that somebody has damaged: it is as if it had not been sent."""
        try:
            return Letter.model_validate_json(self._file(owner).read_bytes())
        except (OSError, ValidationError):
            return None

    def keep(self, letter: Letter) -> None:
        """On return it survives a crash."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_private(self._file(letter.owner), json_of(letter).encode())

    def remove_old(self) -> None:
        """All but the newest."""
        by_age = sorted(self._folder.glob("*.json"), key=lambda file: file.stat().st_mtime)
        for file in by_age[:-MOST_LETTERS]:
            file.unlink(missing_ok=True)

    def _file(self, owner: str) -> Path:
        return self._folder / f"{owner}.json"


def owner_of(key: str) -> str:
    """The name in the ledger of whatever is sent under this key."""
    return hashlib.sha256(key.encode(errors="replace")).hexdigest()[:20]


class Sender:
    """Gives letters their numbers and has them delivered."""

    def __init__(
        self, injector: Injector, letters: Letters, server: ServerIdentity, life: int
    ) -> None:
        self._injector = injector
        self._letters = letters
        self._life = life
        self._server = (server.pid, server.started)

    async def send(self, key: str, text: str, mark: Callable[[], Awaitable[Json]]) -> Letter:
        """Have the program take these words, once for each key. On return it has.

        `mark` is asked right before they are put in. Raises as `Injector.deliver` does; whoever comes later calls again
        with the same key and text.
        """
        owner = owner_of(key)
        letter = await asyncio.to_thread(self._letters.read, owner)
        for _ in range(_TRIES):
            entry = await self._injector.ledger.read()
            if letter is None or not self._has_its_number(letter, entry):
                if not entry.is_settled:
                    await self._finish_another(entry)
                    continue
                letter = Letter(
                    owner=owner,
                    text=text,
                    number=entry.sent + 1,
                    server=self._server,
                    life=self._life,
                    mark=await mark(),
                )
                await asyncio.to_thread(self._letters.keep, letter)
            try:
                await self._injector.deliver(letter.number, letter.text, owner)
            except NumberTaken:
                continue
            return letter
        raise NotListening("others send to the same program all the time; wait until they are done")

    async def is_on_its_way(self, key: str) -> bool:
        """Whether the program took what is sent under this key, or has it in its input, in this life of the server."""
        letter = await asyncio.to_thread(self._letters.read, owner_of(key))
        if letter is None:
            return False
        return self._has_its_number(letter, await self._injector.ledger.read())

    def _has_its_number(self, letter: Letter, entry: Entry) -> bool:
        """One so old that its owner is forgotten was sent: nothing is ever sent twice."""
        if letter.server != self._server or entry.pasted < letter.number:
            return False
        return entry.owners.get(letter.number, letter.owner) == letter.owner

    async def _finish_another(self, entry: Entry) -> None:
        """Somebody's words stand in the input. He may be dead, so whoever comes next sends them."""
        owner = entry.owners.get(entry.pasted, "")
        letter = await asyncio.to_thread(self._letters.read, owner) if owner else None
        if letter is None:
            raise NotListening(
                f"message {entry.pasted} stands in the input, and nobody knows its words; look at the pane, then send "
                "or remove it"
            )
        await self._injector.deliver(letter.number, letter.text, owner)
