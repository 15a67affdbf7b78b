"""End of a run: archive the documents, push the branch, open the pull request, report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import count

from podium.core.decisions import ApprovalStatus, Refusal
from podium.core.errors import ForgeUnavailable, Passing, RateLimited, WorkspaceTampered
from podium.core.events import BranchDelivered, NoteTaken
from podium.core.forge import PullRequest, PullRequestDraft, RemoteBase
from podium.core.model import FrozenModel, Json, UtcDatetime
from podium.core.protected_paths import GUARDED_TOOL
from podium.core.work import TIMER
from podium.jobs.pipeline.branch_documents import archived, bring_back, was_made
from podium.jobs.pipeline.plain_text import shortened
from podium.jobs.pipeline.plan_check import LOGIC, part_of
from podium.jobs.pipeline.pull_request import body_of, title_of
from podium.jobs.pipeline.skills import taken_skills
from podium.jobs.pipeline.stage import looked_at
from podium.jobs.pipeline.state import Desk, approved_step, ask_a_person
from podium.jobs.pipeline.verdict_routing import integration_of
from podium.ports import StepContext

FIRST_PAUSE = timedelta(seconds=20)
MAX_PAUSE = timedelta(minutes=15)
PATIENCE = timedelta(hours=6)
"""How long a forge may be out of reach before a person is asked."""
_MAX_DOUBLINGS = 16
_STEPS_OF_A_DELIVERY = 10_000
"""Tries of a later delivery are counted from there on: steps are known by their numbers."""


class Trouble(FrozenModel):
    """Why a forge could not be asked, which may pass by itself."""

    since: UtcDatetime
    times: int = 1
    again_at: UtcDatetime | None = None
    """None: it lasts too long, and a person has to look."""
    words: str

    @property
    def sentence(self) -> str:
        then = f"; tried again at {self.again_at:%Y-%m-%d %H:%M:%S} UTC" if self.again_at else ""
        return f"The branch is not handed over yet: {self.words}{then}"


class _Handed(FrozenModel):
    """The pull request, or what stood in the way."""

    request: PullRequest | None = None
    approval_id: str = ""
    deadline: UtcDatetime | None = None
    words: str = ""
    trouble: Trouble | None = None


async def hand_over(desk: Desk, wish: PullRequestDraft) -> PullRequest:
    """Push and open the pull request. What passes by itself is waited for, all else is for a person."""
    arguments, trouble = wish.model_dump(mode="json"), None
    for attempt in count((desk.trip.deliveries - 1) * _STEPS_OF_A_DELIVERY):
        handed = await _asked_gate(desk, arguments, attempt, trouble)
        trouble = handed.trouble
        if handed.request is not None:
            return handed.request
        if handed.approval_id:
            await desk.ctx.wait(
                f"approval:{handed.approval_id}", index=attempt, until=handed.deadline
            )
        elif trouble is not None and trouble.again_at is not None:
            desk.ctx.note(NoteTaken(text=trouble.sentence))
            await desk.ctx.wait(f"{TIMER}forge", index=attempt, until=trouble.again_at)
        else:
            await ask_a_person(desk, "hand-over", handed.words)
            trouble = None
    raise AssertionError("attempts are counted without end")


async def _asked_gate(
    desk: Desk, arguments: dict[str, Json], attempt: int, before: Trouble | None
) -> _Handed:
    root = desk.trip.workspace.record.path

    async def work(step: StepContext) -> _Handed:
        toolbox = await desk.kit.toolbox_in(root)
        call = toolbox.normalise(
            "hand_over", arguments,
            run_id=step.run_id, step_key=step.key, index=0, role="podium", root=root,
        )  # fmt: skip
        try:
            outcome = await toolbox.perform(call)
        except (ForgeUnavailable, RateLimited) as error:
            trouble = trouble_of(error, before, desk.kit.clock.now())
            return _Handed(trouble=trouble, words=_given_up(error, trouble))
        if isinstance(outcome, Refusal):
            return _Handed(
                approval_id=outcome.approval_id or "",
                deadline=outcome.deadline,
                words=f"the branch may not be handed over: {outcome.decision.reason}",
            )
        if not outcome.ok:
            return _Handed(words=f"the branch could not be handed over: {outcome.error}")
        fields = PullRequest.model_fields
        known = {key: outcome.result[key] for key in fields if key in outcome.result}
        return _Handed(request=PullRequest.model_validate(known))

    return await desk.ctx.step("pull-request", work, index=attempt, returns=_Handed)


def trouble_of(error: Passing, before: Trouble | None, now: datetime) -> Trouble:
    """When to try again: when the forge says so, else after pauses that grow; not at all after hours of it.

    A pause has its longest, whoever asks for it: a forge may name any day.
    """
    since = before.since if before else now
    times = before.times + 1 if before else 1
    grown = FIRST_PAUSE * 2 ** min(times - 1, _MAX_DOUBLINGS)
    # What it says may be in the past.
    pause = max(error.retry_at - now, FIRST_PAUSE) if error.retry_at else grown
    again_at = now + min(pause, MAX_PAUSE)
    lasts = now - since >= PATIENCE
    return Trouble(since=since, times=times, again_at=None if lasts else again_at, words=str(error))


def _given_up(error: Passing, trouble: Trouble) -> str:
    return (
        f"the branch could not be handed over in {trouble.times} tries since "
        f"{trouble.since:%Y-%m-%d %H:%M} UTC: {error}"
    )


_MAX_ALIKE = 30
_MAX_SUMMARY = 4_000


class _Archived(FrozenModel):
    head: str
    paths: dict[str, str]
    """Where each document was → where it is."""
    commits: tuple[str, ...] = ()
    """All that the branch adds to the base, oldest first: id and subject."""
    guarded: tuple[str, ...] = ()
    """Guarded files that it changes, with who approved that."""
    summary: str = ""
    """Cause and change, as the approved plan has them."""
    proof: str = ""
    """What the developer checked off."""


async def deliver(desk: Desk) -> Json:
    """Archive, push, open the pull request, and give the report.

    None: there is something to integrate or to check first.
    """
    trip = desk.trip
    if trip.alike:
        await ask_a_person(desk, "secrets", _alike_words(trip.alike))
        trip.alike.clear()
    trip.deliveries += 1
    if not await _may_go_out(desk):
        return None
    if not await _contains_remote_base(desk):
        return await _back_to_integration(desk)
    put_away = await _archive(desk, await taken_skills(desk))
    trip.head = put_away.head
    trip.archive(put_away.paths)
    request = await hand_over(desk, _wish(desk, put_away))
    if request.moved_base:
        return await _back_to_integration(desk)
    desk.ctx.note(
        BranchDelivered(
            branch=trip.branch,
            commit=trip.head,
            url=request.url,
            file=request.file,
            untested=trip.untested_reason if trip.untested else "",
        )
    )
    return _report(desk, put_away, request)


class _Named(FrozenModel):
    names: bool
    """Whether podium.yaml has `checks:`."""
    count: int = 0


async def _may_go_out(desk: Desk) -> bool:
    """Let a person decide about work that nothing was run on. False: there are checks now, to be run first.

    `checks: []` says once and for all that there are none.
    """
    trip = desk.trip
    if not trip.untested or trip.untested_reason:
        return True

    async def look(step: StepContext) -> _Named:
        named = desk.kit.checks()
        return _Named(names=named is not None, count=len(named or ()))

    index = trip.deliveries
    named = await desk.ctx.step("untested", look, index=index, returns=_Named)
    if not named.names:
        await ask_a_person(desk, "untested", _untested_words(desk))
        named = await desk.ctx.step("untested:answered", look, index=index, returns=_Named)
    if named.count and integration_of(trip.job.spec):
        trip.is_stale = True
        return False
    trip.untested_reason = (
        "podium.yaml says `checks: []`" if named.names else "no checks were found"
    )
    return True


def _untested_words(desk: Desk) -> str:
    lacks = "".join(f"\n- {each}" for each in desk.found.not_installed)
    return (
        "nothing was tested: podium.yaml has no `checks:`, and none were found that can be run here"
        f"{f':{lacks}' if lacks else ''}\nName them under `checks:`, and they are run first; resumed without any, the branch "
        "goes out untested (`checks: []` says that for every run)"
    )


class _Looked(FrozenModel):
    remote: RemoteBase
    contained: bool


async def _contains_remote_base(desk: Desk) -> bool:
    """Look once more: it may have moved while the merge was checked and reviewed."""
    trip = desk.trip

    async def work(step: StepContext) -> _Looked:
        remote = await desk.kit.forge.fetch_base(trip.job.repository, trip.job.base)
        contained = not remote.commit or await trip.workspace.holds(remote.commit)
        return _Looked(remote=remote, contained=contained)

    looked = await desk.ctx.step("base", work, index=trip.deliveries, returns=_Looked)
    looked_at(desk, looked.remote)
    return looked.contained


async def _back_to_integration(desk: Desk) -> None:
    """Bounded: where the base moves faster than it is integrated, a person has to say when."""
    trip = desk.trip
    trip.moved_bases += 1
    name = trip.remote_base.name or trip.job.base
    desk.ctx.note(
        NoteTaken(text=f"{name} has moved on: it is integrated before anything is pushed.")
    )
    if trip.moved_bases > trip.job.spec.rounds or not integration_of(trip.job.spec):
        reason = (
            f"{name} moved {trip.moved_bases} times while this branch was integrated, so nothing was pushed; "
            "resumed, it is integrated once more"
        )
        await ask_a_person(desk, "moved-base", reason)
        trip.moved_bases = 0


def _alike_words(places: Sequence[str]) -> str:
    listed = "\n".join(f"- {each}" for each in places[:_MAX_ALIKE])
    return (
        f"before the branch goes out, see that these lines of test data only look like secrets:\n{listed}\n"
        "Resumed, it goes out with them"
    )


async def _archive(desk: Desk, skills: Sequence[str]) -> _Archived:
    """The last commit before the branch goes out: active folders are left clean."""
    trip = desk.trip

    async def work(step: StepContext) -> _Archived:
        day = desk.kit.clock.now().date()
        moved = {
            path: archived(path, day=day, task=trip.name, feat=trip.feat) for path in trip.documents
        }
        plan = await _text(desk, trip.plan, moved)
        proof = await _text(desk, trip.verification, moved)
        again = trip.deliveries > 1 and trip.archived
        trailers = desk.trailers(f"archive-{trip.deliveries}" if again else "archive")
        if not await was_made(desk, trailers):
            why = "before the documents are archived"
            await trip.workspace.reset(trip.head, why, keep=skills)
            if moved or skills:
                await trip.workspace.commit(
                    f"Archive the documents of {trip.feat}", skills, moved=moved, trailers=trailers
                )
        head = (await bring_back(desk, "archive", approved=skills)).head
        commits = await trip.workspace.history(trip.base)
        told = tuple(f"{each.id[:12]} {each.subject}" for each in commits)
        guarded = await _guarded(desk, skills)
        return _Archived(
            head=head,
            paths=moved,
            commits=told,
            guarded=guarded,
            summary=shortened(part_of(plan, LOGIC), _MAX_SUMMARY),
            proof=shortened(proof.strip(), _MAX_SUMMARY),
        )

    index = trip.deliveries if trip.archived else 0
    put_away: _Archived = await approved_step(desk, "archive", work, index=index, returns=_Archived)
    return put_away


async def _text(desk: Desk, path: str, moved: Mapping[str, str]) -> str:
    """A document of the run, also where a step that was killed has archived it already."""
    for place in dict.fromkeys((path, moved.get(path, path))):
        try:
            text = await desk.trip.workspace.read(place) if place else None
        except WorkspaceTampered:
            text = None
        if text:
            return text
    return ""


async def _guarded(desk: Desk, skills: Sequence[str]) -> tuple[str, ...]:
    """Guarded files of the branch, with who approved them, as the record has it."""
    run_id, used = desk.trip.run_id, (ApprovalStatus.CONSUMED,)
    approvals = await desk.kit.purse.store.read(
        lambda view: view.approvals(run_id=run_id, statuses=used)
    )
    rows = [
        f"{file}, approved by {', '.join(grant.by for grant in approval.grants)} ({approval.id})"
        for approval in reversed(approvals)
        if approval.tool == GUARDED_TOOL
        for file in approval.arguments.get("files", ())
    ]
    return (*rows, *(f"{path} (new skill)" for path in skills))


def _check_notes(desk: Desk) -> list[str]:
    """What a person should know of the checks beside how they came out."""
    trip, found = desk.trip, desk.found
    ran = {each.command for each in trip.evidence}
    return [
        *([f"nothing was tested: {trip.untested_reason}"] if trip.untested else []),
        *(
            f"podium.yaml names no checks; `{each.command}` was found in {each.source}"
            for each in found.checks
            if each.command in ran
        ),
        *(
            f"the project had no checks; `{each.command}` ({each.source}) came with this work"
            for each in trip.added_checks
            if each.command in ran
        ),
        *(f"not run: {each}" for each in found.not_installed),
        *(f"disputed by who did the work: {each}" for each in trip.disputed),
    ]


def _wish(desk: Desk, put_away: _Archived) -> PullRequestDraft:
    trip, redact = desk.trip, desk.kit.redact
    body = body_of(
        task=trip.job.task,
        commits=put_away.commits,
        documents=list(trip.archived.values()),
        evidence=[each.model_dump() for each in trip.evidence],
        check_notes=_check_notes(desk),
        backlog=trip.backlog,
        base_not_fetched=trip.remote_base.why_not,
        usd=trip.usage.usd,
        run_id=trip.run_id,
        guarded=put_away.guarded,
        summary=put_away.summary,
        proof=put_away.proof,
    )
    return PullRequestDraft(
        repository=trip.workspace.record.repository,
        branch=trip.branch,
        base=trip.job.base,
        commit=trip.head,
        title=redact(title_of(trip.job.task)),
        body=redact(body),
        run_id=trip.run_id,
    )


def _report(desk: Desk, put_away: _Archived, request: PullRequest) -> Json:
    trip = desk.trip
    return {
        "branch": trip.branch,
        "base": trip.job.base,
        "remote_base": trip.remote_base.model_dump(mode="json"),
        "commit": trip.head,
        "commits": list(put_away.commits),
        "workspace": trip.workspace.record.path,
        "plan": trip.archived.get(trip.plan, trip.plan),
        "documents": sorted(trip.archived.values()),
        "guarded": list(put_away.guarded),
        "stages": [each.model_dump(mode="json") for each in trip.told],
        "checks": [each.model_dump(mode="json", exclude={"tail"}) for each in trip.evidence],
        "check_notes": _check_notes(desk),
        "backlog": trip.backlog,
        "skills": [
            each.model_dump(mode="json", include={"name", "path", "approval_id"})
            for each in trip.skills
        ],
        "usage": trip.usage.model_dump(mode="json"),
        "pull_request": request.model_dump(mode="json"),
    }
