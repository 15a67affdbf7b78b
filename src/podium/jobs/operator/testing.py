"""Fakes of the operator's ports."""

from __future__ import annotations

from collections.abc import Mapping

from podium.core.decisions import Usage
from podium.jobs.operator.models import Intent, Message, Reading


class FakeClassifier:
    """Readings by the message's exact words; anything else is refused."""

    name = "fake"
    usage = Usage()

    def __init__(self, readings: Mapping[str, Reading]) -> None:
        self._readings = dict(readings)
        self.messages: list[Message] = []

    async def read(self, message: Message) -> Reading:
        self.messages.append(message)
        nothing = Reading(intent=Intent.REFUSE, reasoning="No registered tool does this")
        return self._readings.get(message.text, nothing)


def sure(*intents: tuple[str, Mapping[str, object]], confidence: float = 0.9) -> Reading:
    """A reading that understood all of it."""
    return Reading.model_validate(
        {
            "intent": Intent.EXECUTE,
            "calls": [{"tool": tool, "arguments": arguments} for tool, arguments in intents],
            "confidence": confidence,
            "reasoning": "understood",
        }
    )
