"""Runs, newest first, and how they really stand: a dead process cannot say that it is gone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from podium.domain.model import Json, Noun
from podium.domain.work import Run, RunStatus
from podium.ports import Engine, RunQuery, Store

INTERRUPTED = "interrupted"
"""What a run is called that is stored as running and that nobody alive hosts."""


class Standing(Noun):
    """A run, and whether somebody alive hosts it."""

    run: Run
    hosted: bool

    @property
    def interrupted(self) -> bool:
        return self.run.status is RunStatus.RUNNING and not self.hosted

    @property
    def shown_status(self) -> str:
        """The status as it is shown to people."""
        return INTERRUPTED if self.interrupted else self.run.status.value

    def record(self) -> dict[str, Json]:
        """The run as JSON, with how it stands."""
        stands = {"shown_status": self.shown_status, "hosted": self.hosted}
        return {**self.run.model_dump(mode="json"), **stands}


async def list_runs(store: Store, query: RunQuery | None = None) -> list[Run]:
    """The runs that fit, newest first."""
    wanted = query or RunQuery()
    return await store.read(lambda view: view.runs(wanted))


async def how_they_stand(
    runs: Sequence[Run], engine: Callable[[], Awaitable[Engine]]
) -> list[Standing]:
    """The same runs with how they stand. The engine is made only when one of them has an owner."""
    owned = [run.id for run in runs if run.owner is not None and not run.status.ended]
    hosted = await (await engine()).hosted(owned) if owned else set()
    return [Standing(run=run, hosted=run.id in hosted) for run in runs]
