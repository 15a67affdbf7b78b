"""What a program of the zoo remembers of its conversation, also when it was started again."""

from __future__ import annotations

import json
import time
from typing import Any

from podium.testing.tui_zoo.answers import Happened, beside, happened


class Memory:
    """Lives in the file beside the record."""

    def __init__(self, record: str) -> None:
        self._file = beside(record)
        self._all = happened(record)

    def note(self, what: str, text: str = "", **facts: Any) -> None:
        """Write it down, after it was done."""
        told = Happened(time.monotonic(), what, text, **facts)
        self._all.append(told)
        with open(self._file, "a") as file:  # noqa: PTH123 — pathlib loads slowly
            file.write(json.dumps(told._asdict()) + "\n")

    def said(self) -> list[Happened]:
        """The blocks that it said so far."""
        return [each for each in self._all if each.what == "said"]

    def has_died_over(self, id: str) -> bool:
        return any(each.what == "died" and each.text == id for each in self._all)

    def other_plans(self, task: str, id: str) -> int:
        """How many plans it made for the task in turns of other ids."""
        ids = {each.text for each in self.said() if each.type == "plan"} - {id}
        return sum(each.startswith(f"{task}-") for each in ids)

    def asked(self) -> list[str]:
        """The ids that it was asked for, each once, in their order."""
        return list(dict.fromkeys(each.text for each in self._all if each.what == "asked"))

    def note_asked(self, id: str) -> None:
        if id not in self.asked():
            self.note("asked", id)
