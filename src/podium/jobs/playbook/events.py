"""Events of a run of a playbook, and how each is shown."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from podium.core.model import EventBody, Json
from podium.core.turns import TurnStop
from podium.render.event import stop_text
from podium.render.event_view import EventView


class PlaybookBegan(EventBody):
    """A run of a playbook began, with exactly these texts."""

    type: Literal["playbook_began"] = "playbook_began"
    playbook: str
    playbook_digest: str
    profile: str
    profile_digest: str
    tools: tuple[str, ...] = ()
    dry_run: bool = False
    job: dict[str, Json] = Field(default_factory=dict)
    """The whole job, so that the trace alone can be replayed; its root is `.`."""


class ToolsGiven(EventBody):
    """An agent without tools of its own is about to be asked, with exactly these tools."""

    type: Literal["tools_given"] = "tools_given"
    role: str
    tools: dict[str, str]
    """Name → digest of the tool as it is registered."""


class PlaybookEnded(EventBody):
    """Result by the playbook's own criteria."""

    type: Literal["playbook_ended"] = "playbook_ended"
    met: bool
    criteria: tuple[dict[str, Json], ...] = ()
    stop: TurnStop | None = None
    changed: tuple[str, ...] = ()
    """Changed files, relative to the root."""
    trespasses: tuple[str, ...] = ()
    """Protected paths that were changed."""
    unknown: str = ""
    """Reason why the changes are unknown; empty when they are known."""


def view_event(body: EventBody) -> EventView:
    """Show an event of a playbook."""
    match body:
        case PlaybookBegan():
            mode = " (dry run)" if body.dry_run else ""
            tools = f" with {', '.join(body.tools)}" if body.tools else " without tools"
            return EventView(f"{body.playbook} for {body.profile}{mode}{tools}")
        case ToolsGiven():
            return EventView(f"{body.role}: {', '.join(body.tools) or 'none'}")
        case PlaybookEnded():
            return EventView(_ending_text(body), outcome="good" if body.met else "bad")
    return EventView("")


def _ending_text(body: PlaybookEnded) -> str:
    criteria = "1 criterion" if len(body.criteria) == 1 else f"{len(body.criteria)} criteria"
    met = f"met, by {criteria}" if body.met else f"NOT met, by {criteria}"
    stop = f"; {stop_text(body.stop)}" if body.stop else ""
    changed = f"; changed {', '.join(body.changed)}" if body.changed else ""
    return f"{met}{stop}{changed}"
