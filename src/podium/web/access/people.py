"""People of the console, and their roles."""

from __future__ import annotations

from enum import StrEnum

from podium.domain.approvals import Approver, Authentication
from podium.domain.model import Noun


class ConsoleRole(StrEnum):
    """What somebody may do. Everybody who comes in may look."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    """Starts, cancels, resumes and steers."""
    APPROVER = "approver"
    """Answers what waits for a person."""


class Person(Noun):
    """Who asks."""

    name: str
    """Stands in events and approvals."""
    roles: frozenset[ConsoleRole] = frozenset()
    token_id: str = ""
    """The token that let them in; gone with it."""
    card: str = ""
    """The one approval that a link from a notice is for; empty for whoever may see all."""

    by_session: bool = False
    """Came with a browser's session and not with the token itself."""

    @property
    def approver(self) -> Approver:
        """The same person as whoever answers an approval."""
        if not self.token_id:
            how = Authentication.CARD_LINK if self.card else ""
            return Approver(name=self.name, authentication=how)
        how = Authentication.CONSOLE_SESSION if self.by_session else Authentication.TOKEN
        return Approver(name=self.name, authentication=how, credential=f"token:{self.token_id}")

    def may(self, role: ConsoleRole) -> bool:
        return role is ConsoleRole.VIEWER or role in self.roles
