"""Memory of a fake TUI's conversation, which survives a restart."""

from __future__ import annotations

import json
import time
from typing import Any

from podium.testing.tui_zoo.answers import Happened, events_file, happened


class Memory:
    """Events in the file next to the record."""

    def __init__(self, record: str) -> None:
        self._file = events_file(record)
        self._all = happened(record)

    def note(self, what: str, text: str = "", **facts: Any) -> None:
        """Record an event after it happened."""
        event = Happened(time.monotonic(), what, text, **facts)
        self._all.append(event)
        with open(self._file, "a") as file:  # noqa: PTH123 — pathlib loads slowly
            file.write(json.dumps(event._asdict()) + "\n")

    def blocks(self) -> list[Happened]:
        """List the blocks that it has sent so far."""
        return [event for event in self._all if event.what == "said"]

    def has_died_over(self, id: str) -> bool:
        return any(event.what == "died" and event.text == id for event in self._all)

    def other_plans(self, task: str, id: str) -> int:
        """Count its plans for the task in turns of other ids."""
        ids = {event.text for event in self.blocks() if event.type == "plan"} - {id}
        return sum(block_id.startswith(f"{task}-") for block_id in ids)

    def asked(self) -> list[str]:
        """List the ids that it was asked for, each once, in order."""
        return list(dict.fromkeys(event.text for event in self._all if event.what == "asked"))

    def note_asked(self, id: str) -> None:
        if id not in self.asked():
            self.note("asked", id)
