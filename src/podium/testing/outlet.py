"""An outlet that keeps what it was told, and fails when asked to."""

from __future__ import annotations

from collections.abc import Iterable

from podium.ports import Notice, Told


class MemoryOutlet:
    """Takes every message, after it gave the answers it was made with."""

    def __init__(self, name: str = "memory", answers: Iterable[Told] = ()) -> None:
        self._name = name
        self._answers = list(answers)
        self.told: list[Notice] = []
        """Messages that it took."""
        self.tries = 0

    @property
    def name(self) -> str:
        return self._name

    @property
    def texts(self) -> list[str]:
        """What it was told, part by part."""
        return [part.text for notice in self.told for part in notice.parts]

    async def tell(self, notice: Notice) -> Told:
        self.tries += 1
        answer = self._answers.pop(0) if self._answers else Told(done=True)
        if answer.done:
            self.told.append(notice)
        return answer
