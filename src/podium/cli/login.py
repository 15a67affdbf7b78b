"""Who answers at the command line: the operating-system user, or whoever signed in with a personal token."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from pydantic import TypeAdapter

from podium.app.app import Podium
from podium.cli.context import Door
from podium.config.os_user import os_user
from podium.core.approvals import Approver
from podium.core.errors import BadInput, NotPossibleNow
from podium.web.access.tokens import ConsoleRole, Person, PrivateJsonFile, TokenBook, console_folder

FILE = "credentials.json"
MAX_BYTES = 1_000_000
_SHAPE = TypeAdapter(dict[str, str])


class Login:
    """The personal token that this account signed in with, of one project. The file is for its owner alone."""

    def __init__(self, door: Door) -> None:
        folders = door.configuration.folders
        self._project = str(folders.project)
        self._vault = Podium(door.configuration, os.environ).key_dir
        self.file: Path = folders.user_config / FILE
        broken = "so nobody is signed in; move it away, then `podium login`"
        self._kept: PrivateJsonFile[dict[str, str]] = PrivateJsonFile(
            self.file, _SHAPE, {}, MAX_BYTES, broken
        )

    @property
    def token(self) -> str:
        """The token as it was stored; empty where nobody signed in."""
        return self._kept.read().get(self._vault.name, "")

    def person(self, token: str) -> Person:
        """Whose token this is, as of now. Raises `NotPossibleNow` when it is expired, revoked or of another project."""
        book = TokenBook(console_folder(self._vault))
        person = book.person_with(token, datetime.now(UTC))
        if person is None:
            raise NotPossibleNow(
                f"this token is not known to project {self._project!r}, or it is expired or revoked; "
                "`podium serve tokens add NAME --role approver` makes one"
            )
        return person

    def store(self, token: str) -> None:
        """Sign in. On return it survives a restart."""
        with self._kept.alone():
            self._kept.write({**self._kept.read(), self._vault.name: token})

    def forget(self) -> bool:
        """Sign out; False when nobody was signed in. The token itself stays valid until it is revoked."""
        with self._kept.alone():
            others = dict(self._kept.read())
            known = others.pop(self._vault.name, None)
            if known is not None:
                self._kept.write(others)
        return known is not None


def identity(door: Door) -> tuple[Approver, Person | None]:
    """Who is at this command line, and their token's person where they signed in.

    Raises `NotPossibleNow` for a login that no longer holds: nobody falls back to another name unseen.
    """
    account, login = os_user(), Login(door)
    if not (token := login.token):
        return account, None
    try:
        person = login.person(token)
    except NotPossibleNow as error:
        raise NotPossibleNow(
            f"you are signed in, and {error}. `podium login` signs in anew; after `podium logout` "
            f"you answer as {account.name!r}"
        ) from None
    return person.approver.model_copy(update={"account": account.name}), person


def approver(door: Door) -> Approver:
    """Who answers an approval here. A name that nothing proves is refused, and so is a token without the role."""
    who, person = identity(door)
    if door.user != who.name and door.names_user:
        raise BadInput(
            f"PODIUM_USER or `user` says {door.user!r}, and this is {who.name!r} ({who.how}); a name proves nobody. "
            f"Sign in as {door.user!r} with their personal token: `podium login`; or unset it to answer as {who.name!r}"
        )
    if person is not None and not person.may(ConsoleRole.APPROVER):
        raise NotPossibleNow(
            f"the token of {who.name!r} has not the role approver; ask for one that has, then `podium login`"
        )
    return who
