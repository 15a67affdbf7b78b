"""A call at the door, with what is known about it at this moment."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from podium.domain.gating import Budget, Call, CallRecord, CallStatus, Decision, ToolSpec
from podium.domain.model import Noun
from podium.domain.work import Run
from podium.tools.bounding import DEFAULT_RESULT_BYTES


class DoorSettings(Noun):
    """What holds for every call that comes to one door."""

    root: str
    """Real path of the workspace of calls that name none."""
    mode: str = "supervised"
    """Today's; the stricter of it and the one that the call's run recorded holds."""
    attended: bool = False
    """A person is at the door right now."""
    budgets: tuple[Budget, ...] = ()
    """Today's limits, beside those of the policy and those that the call's run recorded."""
    owner: str = ""
    """Worker that must own a run for its calls to pass. Empty: whoever asks."""
    result_bytes: int = DEFAULT_RESULT_BYTES
    """How much of a result, or of the arguments, an event keeps."""


@dataclass(frozen=True)
class Wish:
    """A call that is being requested. One transaction long."""

    call: Call
    spec: ToolSpec | None
    """None: the registry does not know the tool."""
    digest: str
    now: datetime
    run: Run | None = None
    """Its run, where that was looked up already."""
    diff: str | None = None
    """What the write would change in the file it replaces. None: nobody looked yet."""

    @property
    def lacks_diff(self) -> bool:
        """True: a person would be asked to overwrite a file without seeing what is lost."""
        return self.diff is None and bool(self.call.files) and not self.call.commands

    @property
    def meaning(self) -> str:
        return self.call.meaning(self.spec)

    def record(
        self,
        status: CallStatus,
        decision: Decision,
        approval_id: str | None = None,
        *,
        disposable: bool = False,
    ) -> CallRecord:
        return CallRecord(
            key=self.call.key,
            run_id=self.call.run_id,
            step_key=self.call.step_key,
            tool=self.call.tool,
            digest=self.digest,
            meaning=self.meaning if self.call.files else "",
            status=status,
            decision=decision,
            arguments=self.call.arguments,
            observed=self.call.observed,
            disposable=disposable,
            agent=self.call.agent,
            role=self.call.role,
            approval_id=approval_id,
            undoes=self.call.plan.undoes if self.call.plan else "",
            requested_at=self.now,
        )
