"""Comment on the issue of a delivered run: a call behind the gate that a crash does not repeat."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from podium.core.decisions import Refusal, Tier, ToolSpec
from podium.core.errors import Passing
from podium.core.events import NoteTaken
from podium.core.forge import PullRequest
from podium.core.model import FrozenModel, Json, NonEmpty, UtcDatetime
from podium.core.work import TIMER
from podium.jobs.pipeline.issue import PinnedIssue, delivered_text
from podium.jobs.pipeline.issue_claim import is_edited
from podium.jobs.pipeline.state import StageContext
from podium.ports import StepContext

if TYPE_CHECKING:
    from podium.jobs.pipeline.issue_claim import IssueWorkFactory
    from podium.tools import Tool
    from podium.tools.scope import ToolScope

NAME = "report_on_issue"
_ATTEMPTS = 4
_PAUSE = timedelta(seconds=30)
_MAX_PAUSE = timedelta(minutes=65)
"""Rate limits of GitHub end within an hour."""
_STEPS_OF_A_DELIVERY = 10


class DeliveryReport(FrozenModel):
    """Arguments of the tool."""

    repository: NonEmpty
    """The user's checkout."""
    base: NonEmpty
    run_id: NonEmpty
    issue: PinnedIssue
    branch: NonEmpty
    url: str = ""
    """Of the pull request. Empty: there is none."""


def report_on_issue_tool(issue_work: IssueWorkFactory) -> Tool:
    """No agent is offered it: it stands in the supervisor's own registry."""
    from podium.tools import Tool

    async def report_on_issue(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
        report = DeliveryReport.model_validate(arguments)
        issue = report.issue
        work = await issue_work(
            report.repository, report.base, issue.number, report.run_id, issue.claimed_by
        )
        edited = is_edited(issue, await work.tracker.issue(issue.number))
        text = delivered_text(report.run_id, url=report.url, branch=report.branch, edited=edited)
        await work.finish(issue, text, "delivered")
        return {"issue": issue.name, "url": issue.url, "edited": edited}

    spec = ToolSpec(
        name=NAME,
        description="Write on the issue of a run that its pull request is open, and end the claim on it.",
        input_schema=DeliveryReport.model_json_schema(),
        tier=Tier.T1,
        receipt_fields=("issue", "url", "edited"),
        # It looks for its own comment first: a crash in between leaves no doubt.
        idempotent=True,
        timeout_seconds=300.0,
    )
    return Tool(spec, report_on_issue)


class _Reported(FrozenModel):
    note: str = ""
    again_at: UtcDatetime | None = None


async def report_delivery(context: StageContext, request: PullRequest) -> None:
    """Comment on the run's issue, where it has one. The branch is delivered already, so no trouble here ends the run.

    Later pushes to a pull request that is followed are no new result: the labels that the issue has by then are others'.
    """
    issue = context.state.job.issue
    if issue is None or context.state.followed is not None:
        return
    for attempt in range(_ATTEMPTS):
        index = (context.state.deliveries - 1) * _STEPS_OF_A_DELIVERY + attempt
        reported = await _reported(context, issue, request, index)
        if reported.note:
            context.flow.note(NoteTaken(text=reported.note))
        if reported.again_at is None:
            return
        await context.flow.wait(f"{TIMER}issue", index=index, until=reported.again_at)


async def _reported(
    context: StageContext, issue: PinnedIssue, request: PullRequest, index: int
) -> _Reported:
    state = context.state
    report = DeliveryReport(
        repository=state.workspace.record.repository,
        base=state.job.base,
        run_id=state.run_id,
        issue=issue,
        branch=state.branch,
        url=request.url,
    )

    async def work(step: StepContext) -> _Reported:
        root = state.workspace.record.path
        toolbox = await context.deps.toolbox_in(root)
        call = toolbox.normalise(
            NAME, report.model_dump(mode="json"),
            run_id=step.run_id, step_key=step.key, index=0, role="podium", root=root,
        )  # fmt: skip
        try:
            outcome = await toolbox.perform(call)
        except Passing as error:
            now = context.deps.clock.now()
            again_at = min(max(error.retry_at or now, now + _PAUSE), now + _MAX_PAUSE)
            return _Reported(note=_not_reported(issue, str(error)), again_at=again_at)
        if isinstance(outcome, Refusal):
            return _Reported(note=_not_reported(issue, outcome.decision.reason))
        if not outcome.ok:
            return _Reported(note=_not_reported(issue, outcome.error))
        edited = f"Issue #{issue.number} was edited since this run began; it followed the text as it was. See {issue.url}."
        return _Reported(note=edited if outcome.result.get("edited") else "")

    reported: _Reported = await context.flow.step(
        "issue-comment", work, index=index, returns=_Reported
    )
    return reported


def _not_reported(issue: PinnedIssue, reason: str | None) -> str:
    return f"No comment was written on issue #{issue.number}: {reason}."
