"""Letters: the messages that are to be sent to a program, or were. Each is a private file."""

from __future__ import annotations

import hashlib
from pathlib import Path

from pydantic import ValidationError

from podium.agents.private_files import write_private
from podium.domain.model import Json, Noun, json_of
from podium.platform import make_private_folder

MOST_LETTERS = 300
"""Older ones are removed. The ledger knows far fewer owners."""
_SURE_LENGTH = 200
"""Programs may write a prompt down with other blanks: so much of its beginning and end tell it from others."""


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
    face: str = ""
    """What the program looked like then, where that was seen: see `Fates.face`."""
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

    def may_be_in(self, prompt: str) -> bool:
        """Whether its program may have taken the letter as this: also with a person's words around it, or in part."""
        mine, theirs = "".join(self.text.split()), "".join(prompt.split())
        ends = (mine[:_SURE_LENGTH], mine[-_SURE_LENGTH:])
        return self.is_taken_as(prompt) or any(end in theirs for end in ends)


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
        make_private_folder(self._folder)
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
