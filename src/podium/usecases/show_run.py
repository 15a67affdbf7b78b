"""One run with everything that belongs to it, as it was at one moment."""

from __future__ import annotations

from podium.domain.errors import UnknownId
from podium.domain.events import Event
from podium.domain.gating import Approval, CallRecord, Receipt
from podium.domain.model import Json, Noun
from podium.domain.work import Run, StepRecord
from podium.ports import EventQuery, Store, View
from podium.usecases.find_id import find_id


class RunReport(Noun):
    """A run and all that is known of it. All parts are of one moment."""

    run: Run
    steps: tuple[StepRecord, ...] = ()
    calls: tuple[CallRecord, ...] = ()
    approvals: tuple[Approval, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    events: tuple[Event, ...] = ()
    """The last ones."""

    def record(self) -> dict[str, Json]:
        """The report as JSON, events flat as in traces."""
        return {
            "run": self.run.model_dump(mode="json"),
            "steps": [step.model_dump(mode="json") for step in self.steps],
            "calls": [call.model_dump(mode="json") for call in self.calls],
            "approvals": [approval.model_dump(mode="json") for approval in self.approvals],
            "receipts": [receipt.model_dump(mode="json") for receipt in self.receipts],
            "events": [event.line() for event in self.events],
        }


async def show_run(store: Store, run: str, *, last_events: int = 20) -> RunReport:
    """The run that `run` stands for. Raises `UnknownId` or `AmbiguousId`."""
    return await store.read(lambda view: _report(view, run, last_events))


def _report(view: View, text: str, last_events: int) -> RunReport:
    run_id = find_id(view, "run", text)
    run = view.run(run_id)
    if run is None:
        raise UnknownId("run", text)
    behind = max(0, view.last_seq(run_id) - last_events)
    return RunReport(
        run=run,
        steps=tuple(view.steps(run_id)),
        calls=tuple(view.calls(run_id)),
        approvals=tuple(view.approvals(run_id=run_id)),
        receipts=tuple(view.receipts(run_id)),
        events=tuple(view.events(EventQuery(run_id=run_id, after_seq=behind))),
    )
