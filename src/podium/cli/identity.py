"""Identity at the command line: the operating-system user, or the person who signed in with a token."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from pydantic import TypeAdapter

from podium.app.app import Podium
from podium.cli.context import CliContext
from podium.config.os_user import os_user
from podium.core.approvals import Approver
from podium.core.errors import BadInput, NotPossibleNow
from podium.web.access.tokens import ConsoleRole, Person, PrivateJsonFile, TokenBook, console_folder

FILE = "credentials.json"
MAX_BYTES = 1_000_000
_SHAPE = TypeAdapter(dict[str, str])


class Login:
    """Personal token that this account signed in with, per project. Only the owner can read the file."""

    def __init__(self, cli: CliContext) -> None:
        folders = cli.configuration.folders
        self._project = str(folders.project)
        self._key_dir = Podium(cli.configuration, os.environ).key_dir
        self.file: Path = folders.user_config / FILE
        broken = "so nobody is signed in; move it away, then run `podium login`"
        self._tokens: PrivateJsonFile[dict[str, str]] = PrivateJsonFile(
            self.file, _SHAPE, {}, MAX_BYTES, broken
        )

    @property
    def token(self) -> str:
        """Stored token; empty when nobody signed in."""
        return self._tokens.read().get(self._key_dir.name, "")

    def person(self, token: str) -> Person:
        """Return the token's person. Raises `NotPossibleNow` when it is expired, revoked or of another project."""
        book = TokenBook(console_folder(self._key_dir))
        person = book.person_with(token, datetime.now(UTC))
        if person is None:
            raise NotPossibleNow(
                f"this token is unknown to project {self._project!r}, expired or revoked; "
                "create one with `podium serve tokens add NAME --role approver`"
            )
        return person

    def store(self, token: str) -> None:
        """Sign in. On return it survives a restart."""
        with self._tokens.alone():
            self._tokens.write({**self._tokens.read(), self._key_dir.name: token})

    def forget(self) -> bool:
        """Sign out; False when nobody was signed in. The token itself stays valid until it is revoked."""
        with self._tokens.alone():
            others = dict(self._tokens.read())
            token = others.pop(self._key_dir.name, None)
            if token is not None:
                self._tokens.write(others)
        return token is not None


def identity(cli: CliContext) -> tuple[Approver, Person | None]:
    """Return the approver at this command line, and the token's person where they signed in.

    Raises `NotPossibleNow` for a login that no longer holds: nobody falls back to another name unseen.
    """
    account, login = os_user(), Login(cli)
    if not (token := login.token):
        return account, None
    try:
        person = login.person(token)
    except NotPossibleNow as error:
        raise NotPossibleNow(
            f"the stored login is not valid: {error}. Sign in again with `podium login`; after `podium logout` "
            f"you answer as {account.name!r}"
        ) from None
    return person.approver.model_copy(update={"account": account.name}), person


def approver(cli: CliContext) -> Approver:
    """Return the approver. Refuses a name without proof, and a token without the role."""
    who, person = identity(cli)
    if cli.user != who.name and cli.names_user:
        raise BadInput(
            f"PODIUM_USER or `user` names {cli.user!r}, but you are {who.name!r} ({who.how}); a name alone proves nothing. "
            f"Sign in with the personal token of {cli.user!r}: `podium login`; or unset it to answer as {who.name!r}"
        )
    if person is not None and not person.may(ConsoleRole.APPROVER):
        raise NotPossibleNow(
            f"the token of {who.name!r} does not have the role approver; get one that does, then run `podium login`"
        )
    return who
