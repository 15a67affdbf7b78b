"""End of a run: archive the documents, push the branch, open the pull request, report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count

from podium.core.decisions import ApprovalStatus, Refusal
from podium.core.errors import ForgeUnavailable, Passing, RateLimited, WorkspaceTampered
from podium.core.events import BranchDelivered, NoteTaken
from podium.core.forge import PullRequest, PullRequestDraft, RemoteBase
from podium.core.model import FrozenModel, Json, UtcDatetime
from podium.core.protected_paths import GUARDED_TOOL
from podium.core.work import TIMER
from podium.core.workspaces import SquashSpec, WorkspaceCommit
from podium.jobs.pipeline.agent_text import shortened
from podium.jobs.pipeline.base_report import base_lines, base_record, red_before_lines
from podium.jobs.pipeline.branch_change import changed_lines, sections_of
from podium.jobs.pipeline.branch_documents import Filed, archived, bring_back, was_made
from podium.jobs.pipeline.fix_proof import proof_lines, proof_record
from podium.jobs.pipeline.integrity_stage import integrity_lines
from podium.jobs.pipeline.issue import closing_line, title_without_references
from podium.jobs.pipeline.issue_report import report_delivery
from podium.jobs.pipeline.plan_check import LOGIC, part_of
from podium.jobs.pipeline.pull_request import (
    ChangedFile,
    PullRequestContent,
    body_of,
    squash_message,
    title_of,
)
from podium.jobs.pipeline.skills import taken_skills
from podium.jobs.pipeline.stage import with_remote_base
from podium.jobs.pipeline.state import (
    BACKLOG,
    MEMORY,
    PipelineState,
    StageContext,
    approved_step,
    ask_a_person,
)
from podium.jobs.pipeline.verdict_routes import integration_of
from podium.ports import StepContext
from podium.render.text import counted

FIRST_PAUSE = timedelta(seconds=20)
MAX_PAUSE = timedelta(minutes=15)
PATIENCE = timedelta(hours=6)
"""Longest outage of a forge before a person is asked."""
_MAX_DOUBLINGS = 16
_STEPS_OF_A_DELIVERY = 10_000
"""Tries of a later delivery are counted from there on: steps are known by their numbers."""


class ForgeOutage(FrozenModel):
    """Outage of a forge, which may pass by itself."""

    since: UtcDatetime
    times: int = 1
    again_at: UtcDatetime | None = None
    """None: it lasts too long, and a person has to look."""
    words: str

    @property
    def sentence(self) -> str:
        then = f"; next attempt at {self.again_at:%Y-%m-%d %H:%M:%S} UTC" if self.again_at else ""
        return f"The branch is not delivered yet: {self.words}{then}"


class _Handed(FrozenModel):
    """The pull request, or what stood in the way."""

    request: PullRequest | None = None
    approval_id: str = ""
    deadline: UtcDatetime | None = None
    words: str = ""
    trouble: ForgeOutage | None = None


async def hand_over(
    context: StageContext, draft: PullRequestDraft
) -> tuple[StageContext, PullRequest]:
    """Push and open the pull request. What passes by itself is waited for, all else is for a person."""
    # Without a number the approval of a first delivery is bound to what it was before there were numbers.
    arguments, outage = draft.model_dump(mode="json", exclude_none=True), None
    for attempt in count((context.state.deliveries - 1) * _STEPS_OF_A_DELIVERY):
        handed = await _asked_gate(context, arguments, attempt, outage)
        outage = handed.trouble
        if handed.request is not None:
            return context, handed.request
        if handed.approval_id:
            await context.flow.wait(
                f"approval:{handed.approval_id}", index=attempt, until=handed.deadline
            )
        elif outage is not None and outage.again_at is not None:
            context.flow.note(NoteTaken(text=outage.sentence))
            await context.flow.wait(f"{TIMER}forge", index=attempt, until=outage.again_at)
        else:
            context = await ask_a_person(context, "hand-over", handed.words)
            outage = None
    raise AssertionError("attempts are counted without end")


async def _asked_gate(
    context: StageContext, arguments: dict[str, Json], attempt: int, before: ForgeOutage | None
) -> _Handed:
    root = context.state.workspace.record.path

    async def work(step: StepContext) -> _Handed:
        toolbox = await context.deps.toolbox_in(root)
        call = toolbox.normalise(
            "hand_over", arguments,
            run_id=step.run_id, step_key=step.key, index=0, role="podium", root=root,
        )  # fmt: skip
        try:
            outcome = await toolbox.perform(call)
        except (ForgeUnavailable, RateLimited) as error:
            outage = outage_after(error, before, context.deps.clock.now())
            return _Handed(trouble=outage, words=_outage_text(error, outage))
        if isinstance(outcome, Refusal):
            return _Handed(
                approval_id=outcome.approval_id or "",
                deadline=outcome.deadline,
                words=f"delivery of the branch was denied: {outcome.decision.reason}",
            )
        if not outcome.ok:
            return _Handed(words=f"the branch could not be delivered: {outcome.error}")
        fields = PullRequest.model_fields
        values = {key: outcome.result[key] for key in fields if key in outcome.result}
        return _Handed(request=PullRequest.model_validate(values))

    return await context.flow.step("pull-request", work, index=attempt, returns=_Handed)


def outage_after(error: Passing, before: ForgeOutage | None, now: datetime) -> ForgeOutage:
    """Schedule the next attempt: when the forge says so, else after growing pauses; none after hours of outage.

    A pause has its longest, whoever asks for it: a forge may name any day.
    """
    since = before.since if before else now
    times = before.times + 1 if before else 1
    grown = FIRST_PAUSE * 2 ** min(times - 1, _MAX_DOUBLINGS)
    # What it says may be in the past.
    pause = max(error.retry_at - now, FIRST_PAUSE) if error.retry_at else grown
    again_at = now + min(pause, MAX_PAUSE)
    lasts = now - since >= PATIENCE
    return ForgeOutage(
        since=since, times=times, again_at=None if lasts else again_at, words=str(error)
    )


def _outage_text(error: Passing, outage: ForgeOutage) -> str:
    return (
        f"the branch could not be delivered in {counted(outage.times, 'attempt')} since "
        f"{outage.since:%Y-%m-%d %H:%M} UTC: {error}"
    )


_MAX_ALIKE = 30
_MAX_SUMMARY = 4_000


class _Archived(FrozenModel):
    head: str
    history: str = ""
    """Commit that has the whole history, where the branch was put together of it."""
    history_ref: str = ""
    paths: dict[str, str]
    """Old path of each document → its archived path."""
    commits: tuple[str, ...] = ()
    """All that the branch adds to the base, oldest first: id and subject."""
    files: tuple[ChangedFile, ...] = ()
    """Files that it changes, without the documents of the run."""
    guarded: tuple[str, ...] = ()
    """Guarded files that it changes, with who approved that."""
    summary: str = ""
    """Cause and change, as the approved plan has them."""
    proof: str = ""
    """Verification report of the developer."""


async def deliver(context: StageContext) -> tuple[StageContext, Json]:
    """Archive, push, open the pull request, and give the report.

    A report of None: there is something to integrate or to check first.
    """
    if context.state.alike:
        context = await ask_a_person(context, "secrets", _lookalike_question(context.state.alike))
    if context.state.red_as_before and not context.state.is_red_accepted:
        context = await _accept_red(context)
    state = replace(context.state, alike=(), deliveries=context.state.deliveries + 1)
    context, goes_out = await _may_go_out(context.with_state(state))
    if not goes_out:
        return context, None
    context, is_contained = await _contains_remote_base(context)
    if not is_contained:
        return await _back_to_integration(context), None
    put_away = await _archive(context, await taken_skills(context))
    state = replace(context.state, head=put_away.head)
    if put_away.paths:
        state = state.with_archived(put_away.paths)
    if put_away.history:
        histories = (*state.histories, put_away.history)
        state = replace(state, delivered=state.head, histories=histories)
        state = replace(state, history_ref=put_away.history_ref)
    context = context.with_state(state)
    context, request = await hand_over(context, _pull_request_draft(context, put_away))
    if request.moved_base or request.moved_branch:
        return await _back_to_integration(context, request.moved_branch), None
    if request.closed:
        return context, _report(context, put_away, request)
    context.flow.note(
        BranchDelivered(
            branch=state.branch,
            commit=state.head,
            url=request.url,
            file=request.file,
            untested=state.untested_reason if state.untested else "",
        )
    )
    await report_delivery(context, request)
    return context, _report(context, put_away, request)


async def _accept_red(context: StageContext) -> StageContext:
    """Let a person decide about checks that are as red as before the work, unless the settings have decided."""
    if context.state.job.spec.red_base != "deliver":
        listed = "\n".join(f"- {line}" for line in red_before_lines(context))
        question = (
            f"checks are still red:\n{listed}\nIf you resume, the branch is delivered with them (`flows: pipeline: red_base: "
            "deliver` allows that for every run)"
        )
        context = await ask_a_person(context, "red-base", question)
    return context.with_state(replace(context.state, is_red_accepted=True))


class _Named(FrozenModel):
    names: bool
    """podium.yaml has `checks:`."""
    count: int = 0


async def _may_go_out(context: StageContext) -> tuple[StageContext, bool]:
    """Let a person decide about work that nothing was run on. False: there are checks now, to be run first.

    `checks: []` says once and for all that there are none.
    """
    state = context.state
    if not state.untested or state.untested_reason:
        return context, True

    async def look(step: StepContext) -> _Named:
        named = context.deps.checks()
        return _Named(names=named is not None, count=len(named or ()))

    index = state.deliveries
    named = await context.flow.step("untested", look, index=index, returns=_Named)
    if not named.names:
        context = await ask_a_person(context, "untested", _untested_question(context))
        named = await context.flow.step("untested:answered", look, index=index, returns=_Named)
    if named.count and integration_of(state.job.spec):
        return context.with_state(replace(context.state, is_stale=True)), False
    reason = "podium.yaml says `checks: []`" if named.names else "no checks were found"
    return context.with_state(replace(context.state, untested_reason=reason)), True


def _untested_question(context: StageContext) -> str:
    lacks = "".join(f"\n- {text}" for text in context.baseline.not_installed)
    return (
        "nothing was tested: podium.yaml has no `checks:`, and Podium found none that it can run"
        f"{f':{lacks}' if lacks else ''}\nName checks under `checks:` to run them first; if you resume without any, the branch "
        "is delivered untested (`checks: []` allows that for every run)"
    )


class _Looked(FrozenModel):
    remote: RemoteBase
    contained: bool


async def _contains_remote_base(context: StageContext) -> tuple[StageContext, bool]:
    """Look once more: it may have moved while the merge was checked and reviewed."""
    state = context.state

    async def work(step: StepContext) -> _Looked:
        remote = await context.deps.forge.fetch_base(state.job.repository, state.job.base)
        contained = not remote.commit or await state.workspace.holds(remote.commit)
        return _Looked(remote=remote, contained=contained)

    looked = await context.flow.step("base", work, index=state.deliveries, returns=_Looked)
    return with_remote_base(context, looked.remote), looked.contained


async def reopen_history(context: StageContext) -> StageContext:
    """Let the run continue after a delivery: its documents are on the branch again, and its history is part of it.

    What is committed from here on comes on top of what was delivered, so that the next delivery adds commits to the
    branch and rewrites none: it puts together only what is new, and the documents go to the next ref.
    """
    state = context.state
    if not state.delivered or state.head != state.delivered:
        return context
    number = len(state.histories)

    async def work(step: StepContext) -> Filed:
        label = f"reopen-{number}"
        message = f"Continue the history of {state.feat}"
        # Its commits were judged before: nobody is asked about them again.
        await state.workspace.merge(
            state.histories[-1], message, context.trailers(label), trusted=True
        )
        return await bring_back(context, label)

    filed: Filed = await context.flow.step("archive:reopen", work, index=number, returns=Filed)
    return context.with_state(replace(state, head=filed.head))


async def _back_to_integration(context: StageContext, moved_branch: str = "") -> StageContext:
    """Bounded: where the base moves faster than it is integrated, a person has to say when."""
    state = replace(context.state, moved_bases=context.state.moved_bases + 1)
    context = context.with_state(state)
    name = state.branch if moved_branch else state.remote_base.name or state.job.base
    context.flow.note(
        NoteTaken(text=f"{name} has new commits; integrating them before anything is pushed.")
    )
    if state.moved_bases > state.job.spec.rounds or not integration_of(state.job.spec):
        reason = (
            f"{name} got new commits {counted(state.moved_bases, 'time')} while this branch was being integrated, so "
            "nothing was pushed; if you resume, it is integrated again"
        )
        context = await ask_a_person(context, "moved-base", reason)
        context = context.with_state(replace(context.state, moved_bases=0))
    return context


def _lookalike_question(locations: Sequence[str]) -> str:
    listed = "\n".join(f"- {location}" for location in locations[:_MAX_ALIKE])
    return (
        f"these lines of test data look like secrets; make sure that they are not:\n{listed}\n"
        "If you resume, the branch is delivered with them"
    )


async def _archive(context: StageContext, skills: Sequence[str]) -> _Archived:
    """The last commit before the branch goes out: active folders are left clean."""
    state = context.state

    async def work(step: StepContext) -> _Archived:
        day = context.deps.clock.now().date()
        to_archive = state.documents if state.job.spec.documents == "branch" else ()
        moved = {
            path: archived(path, day=day, task=state.name, feat=state.feat) for path in to_archive
        }
        for path, place in moved.items():
            if path in state.archived:  # by an earlier delivery
                stem, dot, suffix = place.rpartition(".")
                moved[path] = f"{stem}_{state.deliveries}{dot}{suffix}"
        plan = await _text(context, state.plan, moved)
        proof = await _text(context, state.verification, moved)
        again = state.deliveries > 1 and (state.archived or state.delivered)
        trailers = context.trailers(f"archive-{state.deliveries}" if again else "archive")
        if not await was_made(context, trailers):
            why = "before archiving the documents"
            await state.workspace.reset(state.head, why, keep=skills)
            if moved or skills:
                await state.workspace.commit(
                    f"Archive the documents of {state.feat}", skills, moved=moved, trailers=trailers
                )
        head = (await bring_back(context, "archive", approved=skills)).head
        result = _Archived(
            head=head,
            paths=moved,
            guarded=await _guarded(context, skills),
            summary=shortened(part_of(plan, LOGIC), _MAX_SUMMARY),
            proof=shortened(proof.strip(), _MAX_SUMMARY),
        )
        if state.job.spec.commits == "squash":
            return await _put_together(context, result)
        commits = await state.workspace.history(state.base)
        files = await _changed_files(context, tuple(moved.values()))
        return result.model_copy(update={"commits": _subjects(commits), "files": files})

    index = state.deliveries if state.archived or state.delivered else 0
    put_away: _Archived = await approved_step(
        context, "archive", work, index=index, returns=_Archived
    )
    return put_away


async def _put_together(context: StageContext, put_away: _Archived) -> _Archived:
    """One or two commits that stand for the history, which a ref of the run keeps."""
    state, redact = context.state, context.deps.redact
    tips = (state.base, state.workspace.record.base, state.remote_base.commit, state.delivered)
    spec = SquashSpec(
        run_id=state.run_id,
        onto=tuple(dict.fromkeys(tip for tip in tips if tip)),
        known=state.histories,
        left_out=state.documents_to_leave_out,
        lists=(BACKLOG, MEMORY),
        with_lists=(".gitattributes",),
        lists_message=f"Record backlog and lessons of {state.feat}",
    )

    def message(commits: Sequence[WorkspaceCommit]) -> str:
        written = [commit.subject for commit in commits if "Podium-Run" not in commit.trailers]
        title = title_of(state.job.subject)
        title = title_without_references(title) if state.job.issue else title
        return redact(squash_message(title, written))

    squashed = await state.workspace.squash(spec, message)
    own, files = state.own_documents, []
    for file in squashed.files:
        if file.path not in own and file.path not in put_away.paths.values():
            tier, zones = context.deps.change_risk(file.path, state.workspace.record.path)
            files.append(ChangedFile(**file.model_dump(), tier=tier, zones=zones))
    is_new = squashed.history != squashed.head
    return put_away.model_copy(
        update={
            "head": squashed.head,
            "history": squashed.history if is_new else "",
            "history_ref": squashed.history_ref,
            "commits": _subjects(squashed.commits),
            "files": tuple(files),
        }
    )


def _subjects(commits: Sequence[WorkspaceCommit]) -> tuple[str, ...]:
    return tuple(f"{commit.id[:12]} {commit.subject}" for commit in commits)


async def _changed_files(
    context: StageContext, documents: Sequence[str]
) -> tuple[ChangedFile, ...]:
    """Files that the branch changes, with the risk of each."""
    state = context.state
    own = {*state.own_documents, *documents}
    root, files = state.workspace.record.path, []
    for path, text in sections_of(await state.workspace.diff(state.base), own):
        tier, zones = context.deps.change_risk(path, root)
        added, removed = changed_lines(text)
        files.append(ChangedFile(path=path, added=added, removed=removed, tier=tier, zones=zones))
    return tuple(files)


async def _text(context: StageContext, path: str, moved: Mapping[str, str]) -> str:
    """A document of the run, also where a step that was killed has archived it already."""
    for candidate in dict.fromkeys((path, moved.get(path, path))):
        try:
            text = await context.state.workspace.read(candidate) if candidate else None
        except WorkspaceTampered:
            text = None
        if text:
            return text
    return ""


async def _guarded(context: StageContext, skills: Sequence[str]) -> tuple[str, ...]:
    """Guarded files of the branch, with who approved them, as the record has it."""
    run_id, used = context.state.run_id, (ApprovalStatus.CONSUMED,)
    approvals = await context.deps.budget.store.read(
        lambda view: view.approvals(run_id=run_id, statuses=used)
    )
    rows = [
        f"{file}, approved by {', '.join(grant.by for grant in approval.grants)} ({approval.id})"
        for approval in reversed(approvals)
        if approval.tool == GUARDED_TOOL
        for file in approval.arguments.get("files", ())
    ]
    return (*rows, *(f"{path} (new skill)" for path in skills))


def _check_notes(context: StageContext) -> list[str]:
    """Remarks on the checks besides their results."""
    state, baseline = context.state, context.baseline
    ran = {result.command for result in state.evidence}
    return [
        *([f"nothing was tested: {state.untested_reason}"] if state.untested else []),
        *(
            f"podium.yaml names no checks; `{check.command}` was found in {check.source}"
            for check in baseline.checks
            if check.command in ran
        ),
        *(
            f"the project had no checks; `{check.command}` ({check.source}) was added by this work"
            for check in state.added_checks
            if check.command in ran
        ),
        *(f"not run: {text}" for text in baseline.not_installed),
        *red_before_lines(context),
        *(f"disputed by the agent that did the work: {text}" for text in state.disputed),
    ]


def _pull_request_draft(context: StageContext, put_away: _Archived) -> PullRequestDraft:
    state, redact = context.state, context.deps.redact
    content = PullRequestContent(
        subject=state.job.subject,
        task=state.job.task,
        run_id=state.run_id,
        branch=state.branch,
        summary=put_away.summary,
        files=put_away.files,
        guarded=put_away.guarded,
        evidence=[result.model_dump() for result in state.evidence],
        check_notes=_check_notes(context),
        findings=state.findings,
        report=put_away.proof,
        remote_base=state.remote_base,
        commits=put_away.commits,
        documents=_documents(state),
        documents_ref=state.history_ref,
        history=state.histories[-1] if state.histories else "",
        backlog=state.backlog,
        usage=state.usage,
        integrity=integrity_lines(state),
        base_checks=base_lines(state.before),
        fix_proof=proof_lines(state.proof),
    )
    issue, body = state.job.issue, body_of(content)
    title = title_of(state.job.subject)
    return PullRequestDraft(
        repository=state.workspace.record.repository,
        branch=state.branch,
        base=state.job.base,
        commit=state.head,
        title=redact(title_without_references(title) if issue else title),
        body=redact(f"{body}\n{closing_line(issue)}\n" if issue else body),
        run_id=state.run_id,
        number=state.followed.number if state.followed else None,
    )


def _documents(state: PipelineState) -> list[str]:
    """Paths of plan, reports and reviews: in the archive, or on the ref of the history."""
    return sorted(state.archived.values()) or list(state.documents)


def _report(context: StageContext, put_away: _Archived, request: PullRequest) -> Json:
    state = context.state
    return {
        "branch": state.branch,
        "base": state.job.base,
        "remote_base": state.remote_base.model_dump(mode="json"),
        "commit": state.head,
        "commits": list(put_away.commits),
        "workspace": state.workspace.record.path,
        "plan": state.archived.get(state.plan, state.plan),
        "documents": _documents(state),
        "history": state.histories[-1] if state.histories else "",
        "history_ref": state.history_ref,
        "guarded": list(put_away.guarded),
        "stages": [summary.model_dump(mode="json") for summary in state.stage_summaries],
        "checks": [result.model_dump(mode="json", exclude={"tail"}) for result in state.evidence],
        "check_notes": _check_notes(context),
        "baseline": base_record(state.before),
        "fix_proof": proof_record(state.proof),
        "test_integrity": integrity_lines(state),
        "backlog": list(state.backlog),
        "skills": [
            skill.model_dump(mode="json", include={"name", "path", "approval_id"})
            for skill in state.skills
        ],
        "usage": state.usage.model_dump(mode="json"),
        "pull_request": request.model_dump(mode="json"),
    }
