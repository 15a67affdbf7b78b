"""What people said of calls that were in doubt, for a step that does one again."""

from __future__ import annotations

from podium.domain.events import ToolResolved
from podium.ports import EventQuery, Step, View


def said_not_to_have_happened(step: Step, view: View) -> int:
    """How often a person said of this step's call that it did not happen: each time it is a new one then."""
    beginning = f"{step.run_id}:{step.key}:"
    events = view.events(EventQuery(run_id=step.run_id, types=("tool_resolved",)))
    bodies = (event.body for event in events if isinstance(event.body, ToolResolved))
    return sum(body.call.startswith(beginning) and not body.happened for body in bodies)
