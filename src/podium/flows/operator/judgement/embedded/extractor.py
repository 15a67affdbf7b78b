"""What the classifier asks of whoever finds values in a text."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from podium.domain.model import Json
from podium.domain.operating import Message
from podium.domain.packs import PackTool, Skill
from podium.flows.operator.judgement.fields.entity import Entity


class Extractor(Protocol):
    def arguments(self, clause: str, tool: PackTool | Skill, message: Message) -> dict[str, Json]:
        """What the clause gives for the properties of the tool; only what was found."""
        ...

    def entities(self, text: str, now: datetime) -> Sequence[Entity]:
        """Every value of a kind that can be told without knowing the tool."""
        ...
