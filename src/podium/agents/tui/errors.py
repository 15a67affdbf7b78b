"""Errors between Podium and a program on a terminal."""

from __future__ import annotations

from podium.core.errors import AgentLost, NeedsHuman, NotPossibleNow


class LineLost(AgentLost):
    """The control connection ended while an answer was awaited. Whether the command ran is not known."""


class ServerGone(AgentLost):
    """No tmux server answers at the socket. What ran in it is gone, and so is its ledger."""


class PaneGone(AgentLost):
    """The pane was closed, by a person or with its server."""


class ProgramEnded(AgentLost):
    """The program in the pane is no more. `last_output` is the end of what it wrote."""

    def __init__(self, message: str, last_output: str) -> None:
        super().__init__(message)
        self.last_output = last_output


class TmuxRefused(NotPossibleNow):
    """tmux would not do it. The message has its words."""


class NotListening(NotPossibleNow):
    """The program's input is not free, or does not let go of what stands in it. Nothing is lost: ask again."""


class KeyboardElsewhere(NotListening):
    """A person has the program's keyboard. Nothing was put in: wait until it is returned."""


class NumberTaken(NotPossibleNow):
    """Somebody else's words were sent by this number. Nothing was put in: take the next."""


class DeliveryInDoubt(NeedsHuman):
    """A message was pasted and never seen in the program's input. It is not sent again by itself."""
