"""View of an event, as each job makes it of its own: text, colour, and what it begins or ends on the timeline of its run."""

from __future__ import annotations

from typing import Literal, NamedTuple

Outcome = Literal["good", "bad", "wait", "live", "plain"]


class BarStart(NamedTuple):
    """Start of a piece of work."""

    key: str
    lane: str
    """The role that works."""
    label: str
    round: int = 1
    """Above 1: it does again what was sent back."""
    ends_open: Outcome | None = None
    """Outcome of an open piece of work with this key. None: nobody knows, so it is drawn as lost."""


class BarEnd(NamedTuple):
    """End of the piece of work with this key, if it is open."""

    key: str
    outcome: Outcome
    text: str = ""
    agent: str = ""


class EventView(NamedTuple):
    """View of an event."""

    text: str
    """One line. Empty: its fields are shown as they are."""
    outcome: Outcome = "plain"
    """Style of its line. `bad` also counts as a failure where failures are looked for."""
    brief: str = ""
    """Text in a list of runs for a run that is at work. Empty: nothing."""
    bar: BarStart | BarEnd | None = None
    """The bar that it begins or ends on the timeline."""
