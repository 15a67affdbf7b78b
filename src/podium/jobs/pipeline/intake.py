"""Intake: issues with a label become queued runs, each claimed once among all machines.

A pass may be killed anywhere. What it knows is at the forge (claims, labels, results) and in the store (runs, with their
issues): the next pass reads both and continues.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeVar

from podium.core.errors import ForgeUnavailable, LockHeld, NotPossibleNow
from podium.core.events import NoteTaken
from podium.core.forge import Issue, LabelEvent
from podium.core.model import FrozenModel
from podium.core.work import Run, RunStatus
from podium.jobs.pipeline.agent_text import fingerprint
from podium.jobs.pipeline.composition import intake_worker, pipeline_job
from podium.jobs.pipeline.issue import (
    PinnedIssue,
    Trust,
    claims_in,
    delivered_text,
    issue_number,
    own_login,
    pinned_issue_of,
    safe_title,
    task_of,
    unfinished_text,
    valid_claim,
)
from podium.jobs.pipeline.issue_claim import IssueWork, is_edited, pinned
from podium.jobs.pipeline.spec import FLOW, IntakeOptions, pipeline_spec
from podium.jobs.pipeline.state import PipelineJob
from podium.platform.file_lock import take_file_lock
from podium.ports import Engine, EventQuery, Ids, IssueTracker, Journal, RunQuery, Store

if TYPE_CHECKING:
    from podium.app.app import Podium

BY = "podium intake"
_LOCK = "intake.lock"
_MAX_RUNS = 1000
_LOOKS = 3
"""Times that a question to a forge that is down is asked in one pass."""
_MAX_OUTAGES = 3
_PAUSE_SECONDS = 2.0
SETTLE_SECONDS = 2.0
"""Pause between writing claims and reading them: an answer of GitHub may be older than what was written."""

_T = TypeVar("_T")

Action = Literal[
    "queued",
    "would_queue",
    "working",
    "claimed_elsewhere",
    "not_allowed",
    "stopped",
    "reported",
    "finished",
    "lost",
    "unavailable",
]


class IntakeItem(FrozenModel):
    """Outcome of a pass for one issue."""

    number: int
    action: Action
    title: str = ""
    run: str = ""
    reason: str = ""
    edited: bool = False
    """The issue was edited since its text was pinned."""


@dataclass(frozen=True)
class _Candidate:
    issue: Issue
    label: LabelEvent
    work: IssueWork


@dataclass
class IntakePass:
    """One look at the issues of a project."""

    tracker: IssueTracker
    options: IntakeOptions
    worker: str
    store: Store
    engine: Engine
    journal: Journal
    ids: Ids
    work_on: Callable[[int, str, str], IssueWork]
    """Work on an issue by a run, whose claim is of this account. Empty: not known yet."""
    start: Callable[[Issue, str, str], Awaitable[Run]]
    """Queue a run for the issue under this id, claimed by this account."""
    settle_seconds: float = SETTLE_SECONDS
    dry_run: bool = False
    items: list[IntakeItem] = field(default_factory=list)
    _own: str = ""
    """Login of Podium's account, once a claim has shown it."""
    _outages: int = 0
    """Issues that the forge gave no answer about."""
    _writers: dict[str, bool] = field(default_factory=dict)

    async def look(self) -> list[IntakeItem]:
        """Tend the runs that work on issues, then claim new ones. Raises `RateLimited` or `ForgeUnavailable`."""
        labeled = await self._asked(lambda: self.tracker.with_label(self.options.label))
        claimed = await self._asked(
            lambda: self.tracker.with_label(self.options.claimed_label, state="all")
        )
        known = {issue.number: issue for issue in (*labeled, *claimed)}
        runs = await self._runs(claimed)
        for number in sorted(runs):
            await self._about(number, partial(self._tend, runs[number], known.get(number)))
        busy = {number for number, run in runs.items() if not run.status.ended}
        done = {item.number for item in self.items if item.action in ("finished", "stopped")}
        candidates = []
        for issue in labeled:
            if issue.number not in busy | done:
                candidate = await self._about(issue.number, partial(self._candidate, issue))
                candidates += [candidate] if candidate else []
        await self._claim(candidates)
        return sorted(self.items, key=lambda item: item.number)

    async def _about(
        self, number: int, work: Callable[[], Awaitable[_Candidate | None]]
    ) -> _Candidate | None:
        """Do something about one issue. One that was deleted, moved or locked stops no other."""
        try:
            return await self._asked(work)
        except NotPossibleNow as error:
            self._add(number, "unavailable", reason=str(error))
            return None
        except ForgeUnavailable as error:
            # About one issue an answer can be missing for days. About several it is the forge.
            self._outages += 1
            if self._outages >= _MAX_OUTAGES:
                raise
            self._add(number, "unavailable", reason=str(error))
            return None

    async def _asked(self, question: Callable[[], Awaitable[_T]]) -> _T:
        """Ask again, a few times, while the forge is down. Everything here may be done twice."""
        for attempt in range(1, _LOOKS):
            try:
                return await question()
            except ForgeUnavailable:
                await asyncio.sleep(_PAUSE_SECONDS * attempt)
        return await question()

    def _add(self, number: int, action: Action, **more: object) -> None:
        self.items.append(IntakeItem.model_validate({"number": number, "action": action, **more}))

    # --- runs that work on issues -----------------------------------------------------------

    async def _runs(self, claimed: Sequence[Issue]) -> dict[int, Run]:
        """The newest claimed run of each issue: those that are not over, and those whose issue still has the label."""
        live = tuple(status for status in RunStatus if not status.ended)
        runs = await self.store.read(
            lambda view: [
                *view.runs(RunQuery(flow=FLOW, statuses=live, limit=_MAX_RUNS)),
                *view.runs(RunQuery(flow=FLOW, limit=_MAX_RUNS)),
            ]
        )
        labeled = {issue.number for issue in claimed}
        newest: dict[int, Run] = {}
        for run in runs:
            issue = pinned_issue_of(run)
            if issue is None or issue.repository != self.tracker.repository:
                continue
            self._own = self._own or issue.claimed_by
            if not run.status.ended or (issue.is_claimed and issue.number in labeled):
                newest.setdefault(issue.number, run)
        return newest

    async def _tend(self, run: Run, listed: Issue | None) -> None:
        """Keep the claim of a run, stop the run where people say so, and report what became of it."""
        issue = pinned_issue_of(run)
        if issue is None:
            return
        current = listed or await self.tracker.issue(issue.number)
        work = self.work_on(issue.number, run.id, issue.claimed_by)
        about = {"title": safe_title(current), "run": run.id, "edited": is_edited(issue, current)}
        if self.dry_run:
            self._add(issue.number, "working", **about)
        elif run.status.ended:
            await self._finish(work, issue, run, current)
            self._add(issue.number, "finished", **about, reason=_reason(run))
        elif current.has_label(self.options.stop_label):
            await self._stop(work, issue, run, current)
            self._add(issue.number, "stopped", **about)
        elif issue.is_claimed and (lost := await work.renew(waits=_waits(run))):
            await self.engine.cancel(run.id, by=BY, why=f"issue #{issue.number}: {lost}")
            self._add(issue.number, "lost", **about, reason=lost)
        else:
            await self._show_edit(run, issue, current)
            reported = await self._report_waiting(work, issue, run)
            self._add(
                issue.number, "reported" if reported else "working", **about, reason=_reason(run)
            )

    async def _stop(self, work: IssueWork, issue: PinnedIssue, run: Run, current: Issue) -> None:
        why = f"issue #{issue.number} has the label {self.options.stop_label!r}"
        await self.engine.cancel(run.id, by=BY, why=why)
        await work.report(issue, unfinished_text(run, "cancelled", why), "cancelled")
        if issue.is_claimed:
            await work.release(current)

    async def _finish(self, work: IssueWork, issue: PinnedIssue, run: Run, current: Issue) -> None:
        """The flow reports a delivery itself; here is what it could not report, and runs that failed."""
        if run.status is RunStatus.SUCCEEDED:
            result = run.result if isinstance(run.result, dict) else {}
            request = result.get("pull_request") or {}
            text = delivered_text(
                run.id,
                url=str(request.get("url") or ""),
                branch=str(result.get("branch") or ""),
                edited=is_edited(issue, current),
            )
            await work.finish(issue, text, "delivered")
        elif run.status is RunStatus.CANCELLED:
            await work.finish(issue, unfinished_text(run, "cancelled", _reason(run)), "cancelled")
        else:
            await work.finish(issue, unfinished_text(run, "failed", _reason(run)), "failed")

    async def _report_waiting(self, work: IssueWork, issue: PinnedIssue, run: Run) -> bool:
        if not _waits(run):
            return False
        reason = _reason(run)
        text = unfinished_text(run, "needs_person", reason)
        return await work.report(issue, text, "needs_person", fingerprint(reason))

    async def _show_edit(self, run: Run, issue: PinnedIssue, current: Issue) -> None:
        """Note an edit in the run, once for each new text."""
        if not is_edited(issue, current):
            return
        name = current.digest[:16]
        events = await self.journal.read(EventQuery(run_id=run.id, types=("note_taken",)))
        if any(isinstance(event.body, NoteTaken) and name in event.body.text for event in events):
            return
        await self.journal.append(
            run.id,
            NoteTaken(
                text=f"Issue #{issue.number} was edited since this run began (new text: SHA-256 {name}). The run keeps to the text "
                f"as it was. To start again with the new text: `podium cancel {run.id}`, then add the label "
                f"{self.options.label!r} again. See {issue.url}."
            ),
        )

    # --- issues to take ---------------------------------------------------------------------

    async def _candidate(self, issue: Issue) -> _Candidate | None:
        about = {"title": safe_title(issue)}
        trust = Trust(associations=self.options.authors, users=self.options.users, own=self._own)
        if issue.has_label(self.options.stop_label):
            return None
        if not trust.allows(issue.author, issue.association):
            reason = f"its author {issue.author!r} ({issue.association}) is not allowed; see `flows: pipeline: intake:`"
            self._add(issue.number, "not_allowed", **about, reason=reason)
            return None
        label = await self.tracker.labeled(issue.number, self.options.label)
        if label is None or not await self._may_label(label.actor, trust):
            who = repr(label.actor) if label else "nobody known"
            reason = f"the label {self.options.label!r} was added by {who}, who is not allowed to"
            self._add(issue.number, "not_allowed", **about, reason=reason)
            return None
        return await self._unclaimed(issue, label, trust)

    async def _unclaimed(self, issue: Issue, label: LabelEvent, trust: Trust) -> _Candidate | None:
        look = self.work_on(issue.number, "", "")
        valid = valid_claim(await look.claims(), trust, look.clock.now(), label.at)
        if valid is None:
            return _Candidate(issue, label, self.work_on(issue.number, self.ids.new("run"), ""))
        run = valid.claim.run
        is_own = valid.claim.worker == self.worker
        if is_own and not await self.store.read(lambda view: view.run(run)):
            # Killed between the claim and the run.
            return _Candidate(issue, label, self.work_on(issue.number, run, valid.author))
        if is_own and not self.dry_run:
            # A pass that was killed had not taken the labels off yet.
            await self.work_on(issue.number, run, valid.author).release(issue)
        self._add(
            issue.number,
            "claimed_elsewhere",
            title=safe_title(issue),
            run=run,
            reason=f"worker {valid.claim.worker} until {valid.claim.until:%Y-%m-%d %H:%M} UTC",
        )
        return None

    async def _may_label(self, login: str, trust: Trust) -> bool:
        if trust.names(login):
            return True
        if login not in self._writers:
            self._writers[login] = await self.tracker.can_write(login)
        return self._writers[login]

    async def _claim(self, candidates: Sequence[_Candidate]) -> None:
        """Write all claims, wait once, then look which of them count."""
        if self.dry_run:
            for candidate in candidates:
                self._add(candidate.issue.number, "would_queue", title=safe_title(candidate.issue))
            return
        posted = []
        for candidate in candidates:
            if await self._about(candidate.issue.number, partial(self._post, candidate)):
                posted.append(candidate)
        if posted:
            await asyncio.sleep(self.settle_seconds)
        for candidate in posted:
            await self._about(candidate.issue.number, partial(self._decide, candidate))

    async def _post(self, candidate: _Candidate) -> _Candidate:
        mine = candidate.work.own(await candidate.work.claims()) or await candidate.work.post()
        self._own = mine.author
        return candidate

    async def _decide(self, candidate: _Candidate) -> None:
        """Queue the run where the claim is the oldest that stands; take it back where another is."""
        issue, work = candidate.issue, candidate.work
        claims = await work.claims()
        own = own_login(claims, {work.run_id}) or self._own
        trust = work.trust.model_copy(update={"own": own})
        winner = valid_claim(claims, trust, work.clock.now(), candidate.label.at)
        about = {"title": safe_title(issue)}
        if winner is None or winner.claim.run != work.run_id:
            if winner is not None and (mine := work.own(claims, own)) is not None:
                await self.tracker.delete_comment(mine.id)
            who = f"worker {winner.claim.worker}" if winner else "its own claim is not visible yet"
            self._add(issue.number, "claimed_elsewhere", **about, reason=who)
            return
        await self.tracker.add_label(issue.number, self.options.claimed_label)
        run = await self.start(issue, work.run_id, winner.author)
        self._add(issue.number, "queued", **about, run=run.id)


def _waits(run: Run) -> bool:
    """True where only a person can make it continue."""
    if run.status is RunStatus.NEEDS_HUMAN:
        return True
    goes_on = run.only_sleeps or run.follows_pull_request
    return run.status is RunStatus.WAITING and not goes_on


def _reason(run: Run) -> str:
    if run.failure is not None:
        return run.failure.message
    return f"it waits for {run.waiting_for}" if run.waiting_for else ""


# --- with the parts of a project --------------------------------------------------------------


async def job_of_issue(
    podium: Podium, text: str, *, mode: str, agent: str, base: str
) -> PipelineJob:
    """The input of a run whose task is an issue that a person named. Raises `BadInput` or `NotPossibleNow`."""
    tracker = await _tracker(podium, base)
    number = issue_number(text, tracker.host, tracker.repository)
    issue = await tracker.issue(number)
    pin = pinned(tracker, issue, nonce=podium.ids.new("nonce"))
    job = await pipeline_job(podium, task_of(issue), mode=mode, agent=agent, base=base, issue=pin)
    claim = valid_claim(
        claims_in(await tracker.comments(number)),
        Trust(associations=job.spec.intake.authors, users=job.spec.intake.users),
        podium.clock.now(),
    )
    if claim is None or claim.claim.state == "done":
        return job
    warning = (
        f"Issue #{number} is worked on already: run {claim.claim.run}, worker {claim.claim.worker}."
    )
    return job.model_copy(update={"warnings": (*job.warnings, warning)})


@dataclass(frozen=True)
class IssueIntake:
    """Passes over the issues of one project."""

    podium: Podium
    tracker: IssueTracker
    """Of all passes: what has not changed is not transferred again."""
    options: IntakeOptions
    queue: str
    dry_run: bool = False
    settle_seconds: float = SETTLE_SECONDS

    @classmethod
    async def open(
        cls,
        podium: Podium,
        *,
        label: str = "",
        dry_run: bool = False,
        settle_seconds: float = SETTLE_SECONDS,
    ) -> IssueIntake:
        """Raises `BadInput` or `NotPossibleNow` for settings or a repository that no pass can work with."""
        from podium.app.work_request import QUEUE, queue_named

        options = pipeline_spec(podium.configuration).intake
        options = options.model_copy(update={"label": label}) if label else options
        queue = queue_named(podium.configuration, options.queue or QUEUE).name
        tracker = await _tracker(podium, options.base)
        return cls(podium, tracker, options, queue, dry_run, settle_seconds)

    async def look(self) -> list[IntakeItem]:
        """Make one pass. Raises `LockHeld` while another process does, and what `IntakePass.look` raises."""
        podium = self.podium
        # Before anything is claimed: a checkout that no run can start from.
        await pipeline_job(podium, "look", mode=self.options.mode, base=self.options.base)
        store, engine = await podium.store(), await podium.hosting_engine()
        worker = intake_worker(podium)  # the store gives the folder its identity

        def work_on(number: int, run_id: str, login: str) -> IssueWork:
            return IssueWork(
                self.tracker, number, run_id, worker, self.options, podium.clock, login
            )

        handle = _only_pass(podium)
        try:
            return await IntakePass(
                tracker=self.tracker,
                options=self.options,
                worker=worker,
                store=store,
                engine=engine,
                journal=await podium.journal(),
                ids=podium.ids,
                work_on=work_on,
                start=self._start,
                settle_seconds=self.settle_seconds,
                dry_run=self.dry_run,
            ).look()
        finally:
            os.close(handle)

    async def _start(self, issue: Issue, run_id: str, login: str) -> Run:
        podium, options = self.podium, self.options
        pin = pinned(self.tracker, issue, nonce=podium.ids.new("nonce"), claimed_by=login)
        job = await pipeline_job(
            podium, task_of(issue), mode=options.mode, base=options.base, issue=pin
        )
        engine = await podium.hosting_engine()
        return await engine.start(
            FLOW,
            job.model_dump(mode="json"),
            task=job.task,
            queue=self.queue,
            settings=podium.configuration.run_settings(),
            run_id=run_id,
        )


def _only_pass(podium: Podium) -> int:
    """Keep other passes of this project out until the handle is closed. Raises `LockHeld`."""
    try:
        return take_file_lock(podium.folders.state / _LOCK)
    except BlockingIOError:
        raise LockHeld(
            "another `podium intake` is looking at the issues of this project; try again when it has ended"
        ) from None


async def _tracker(podium: Podium, base: str) -> IssueTracker:
    """The issues of the repository that pull requests into this branch go to."""
    from podium.git.repository import look_at

    project = str(podium.folders.project)
    if not base:
        base = (await look_at(podium.repository_git, project)).branch
    return await podium.forge().issues(project, base)
