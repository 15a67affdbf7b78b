"""Flow of several tasks: each is a run of its own, and an integration queue merges what they deliver into one branch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass, replace
from functools import partial
from itertools import count

from podium.agents.budget_tracker import BEGINNING
from podium.app.checks import CheckResult, Detection, detect_in
from podium.core.decisions import Usage, usage_counter
from podium.core.errors import NeedsHuman, NotPossibleNow
from podium.core.events import BranchDelivered, ChecksRan, NoteTaken
from podium.core.forge import PullRequest, PullRequestDraft
from podium.core.ids import short_id
from podium.core.model import FrozenModel, Json
from podium.core.work import QueueSpec, Run, RunStatus
from podium.core.workspaces import WorkspaceRecord
from podium.engine.run_engine import ticking
from podium.jobs.pipeline.agent_text import one_line
from podium.jobs.pipeline.attempts import Attempt, comparison_text, measured, ranked
from podium.jobs.pipeline.batch_forge import BATCH_BRANCHES
from podium.jobs.pipeline.batch_report import body_of_batch
from podium.jobs.pipeline.events import BatchTaskChanged, BatchTaskStatus
from podium.jobs.pipeline.fix_proof import proof_lines
from podium.jobs.pipeline.flow import look_at_the_remote
from podium.jobs.pipeline.handover import hand_over
from podium.jobs.pipeline.integration_queue import (
    FinishedBranch,
    Integration,
    integrate,
    merge_remote_base,
)
from podium.jobs.pipeline.pull_request import title_of
from podium.jobs.pipeline.spec import PIPELINE
from podium.jobs.pipeline.state import (
    Baseline,
    FixProof,
    PipelineDeps,
    PipelineJob,
    PipelineState,
    StageContext,
    ask_a_person,
)
from podium.jobs.pipeline.task_list import BatchTask, start_order
from podium.jobs.pipeline.verdict_routes import integration_of
from podium.jobs.pipeline.workspace_recovery import recovering, restore_workspace
from podium.ports import FlowBody, FlowContext, StepContext, StoreView, Workspace
from podium.render.text import counted

LEAVE_OUT = "leave out"
"""Answer of a person, to deliver without the tasks that cannot be merged."""


class BatchJob(PipelineJob):
    """Several tasks, and what all of them have in common."""

    tasks: tuple[BatchTask, ...]
    parallel: int = 3
    """Tasks that run at the same time."""
    group: int = 1
    """Finished branches that are verified together."""
    attempts: bool = False
    """The tasks are attempts at one task: the best of them is delivered."""


@dataclass(frozen=True)
class BatchDeps:
    """Dependencies of the flow."""

    pipeline: PipelineDeps
    serve: Callable[[Sequence[QueueSpec]], AbstractAsyncContextManager[None]]
    """Host the runs of these queues in this process, while open."""


class BatchTaskState(FrozenModel):
    """One task between two steps."""

    number: int
    task: BatchTask
    status: BatchTaskStatus = "queued"
    run_id: str = ""
    """The run that works on it now, or did last."""
    runs: int = 0
    """Number of its runs since a person last looked."""
    all_runs: tuple[str, ...] = ()
    branch: str = ""
    commit: str = ""
    merge: str = ""
    """Commit of its merge into the integration branch."""
    verified: bool = True
    why: str = ""
    """Reason for which it is not merged."""
    proof: tuple[str, ...] = ()
    """Proof of the fix by the first of its runs that had one, for the pull request."""
    integrity: tuple[str, ...] = ()
    """Findings about its tests and checks, with how each was resolved."""
    usage: Usage = Usage()


@dataclass(frozen=True)
class _Batch:
    """The whole batch between two steps."""

    context: StageContext
    job: BatchJob
    tasks: tuple[BatchTaskState, ...]
    checks: tuple[CheckResult, ...] = ()
    """Of the newest commit of the integration branch."""

    def title(self, task: BatchTaskState) -> str:
        """The task's beginning, or who makes the attempt."""
        agent = task.task.agent or self.job.agent or "the configured agents"
        return f"attempt by {agent}" if self.job.attempts else task.task.title

    def having(self, *statuses: BatchTaskStatus) -> list[BatchTaskState]:
        return [task for task in self.tasks if task.status in statuses]

    def with_task(self, changed: BatchTaskState) -> _Batch:
        tasks = (changed if task.number == changed.number else task for task in self.tasks)
        return replace(self, tasks=tuple(tasks))

    def note(self, task: BatchTaskState) -> None:
        self.context.flow.note(
            BatchTaskChanged(
                number=task.number,
                total=len(self.tasks),
                id=task.task.id,
                title=self.title(task),
                status=task.status,
                run_id=task.run_id,
                words=task.why or task.merge,
            )
        )


def batch(deps: BatchDeps) -> FlowBody:
    """Build the flow with its dependencies."""

    async def run_batch(ctx: FlowContext, job: BatchJob) -> Json:
        queue = queue_of(ctx.run.id, job.parallel)
        # A queue of its own: no other process starts what an interrupted batch has left.
        async with deps.serve((queue,)):
            return await _see_through(ctx, deps.pipeline, job)

    return run_batch


def queue_of(run_id: str, parallel: int) -> QueueSpec:
    """The queue of a batch's tasks, which only the host of the batch serves."""
    return QueueSpec(name=f"batch-{short_id(run_id)}", worker_concurrency=parallel)


async def _see_through(ctx: FlowContext, deps: PipelineDeps, job: BatchJob) -> Json:
    await look_at_the_remote(ctx, deps, job)
    state = await _set_up(ctx, deps, job)
    await _check_budget(state)
    for index in start_order(job.tasks, job.parallel):
        state = await _start(state, state.tasks[index])
    if job.attempts:
        return await _best_attempt(state)
    for turn in count():
        if ready := state.having("finished"):
            state = await _integrated(state, ready, turn)
        elif state.having("running"):
            state = await _watched(state, turn)
        elif stuck := state.having("stuck"):
            state = await _asked(state, stuck)
        else:
            break
    return await _delivered(state)


async def _check_budget(batch: _Batch) -> None:
    """Raise `BudgetSpent` before anything is started that could not go on."""

    async def work(step: StepContext) -> bool:
        await batch.context.deps.budget.check(batch.context.flow.run, step.key)
        return True

    await batch.context.flow.step("budget", work)


async def _set_up(ctx: FlowContext, deps: PipelineDeps, job: BatchJob) -> _Batch:
    async def make(step: StepContext) -> WorkspaceRecord:
        for existing in deps.workspaces.existing():
            if existing.run_id == step.run_id:
                return existing
        name = f"batch-{short_id(step.run_id)}"
        for left in await deps.workspaces.leftovers():
            if left.task == name:
                await deps.workspaces.clear(left.id)
        branch = f"{BATCH_BRANCHES}{short_id(step.run_id)}"
        spec = deps.workspace_spec(name, base=job.base, branch=branch, run_id=step.run_id)
        return (await deps.workspaces.create(spec)).record

    record: WorkspaceRecord = await ctx.step("workspace", make, returns=WorkspaceRecord)
    ctx, workspace = await recovering(ctx, deps, job, record)
    await ctx.pin()
    for warning in job.warnings:
        ctx.note(NoteTaken(text=warning))

    async def find_checks(step: StepContext) -> Baseline:
        named = deps.checks()
        detection = Detection() if named is not None else await detect_in(workspace, deps.run_check)
        return Baseline(**detection.model_dump(), ignored=tuple(await workspace.ignored()))

    state = PipelineState(
        job=job, run_id=ctx.run.id, workspace=workspace, head=record.base, base=record.base
    )
    baseline = await ctx.step("find-checks", find_checks, returns=Baseline)
    tasks = (BatchTaskState(number=number, task=task) for number, task in enumerate(job.tasks, 1))
    return _Batch(StageContext(ctx, deps, state, baseline), job, tuple(tasks))


async def _start(batch: _Batch, task: BatchTaskState) -> _Batch:
    """Queue a run for the task; for one that was merged in vain, to join it with what was merged before."""
    context, job = batch.context, batch.job
    fields = {name: getattr(job, name) for name in PipelineJob.model_fields}
    again = {"start_at": task.commit, "start": integration_of(job.spec)} if task.commit else {}
    own = PipelineJob.model_validate(
        {
            **fields,
            "task": task.task.text,
            "mode": task.task.mode or job.mode,
            "agent": task.task.agent or job.agent,
            "base": context.state.branch,
            "warnings": (),
            "shares_budget": job.attempts,
            **again,
        }
    )
    run_id = await context.flow.start_child(
        f"task-{task.number}",
        PIPELINE,
        own.model_dump(mode="json"),
        queue=queue_of(context.state.run_id, job.parallel).name,
        index=len(task.all_runs),
        # Joining goes before starting something new.
        priority=len(task.all_runs),
        task=own.task,
    )
    started = task.model_copy(
        update={
            "status": "running",
            "run_id": run_id,
            "runs": task.runs + 1,
            "all_runs": (*task.all_runs, run_id),
        }
    )
    batch.note(started.model_copy(update={"status": "sent_back" if again else "queued"}))
    return batch.with_task(started)


class _Ended(FrozenModel):
    """A run of a task that ended, or that needs a person while others are finished."""

    run_id: str
    status: RunStatus
    branch: str = ""
    commit: str = ""
    why: str = ""
    proof: tuple[str, ...] = ()
    integrity: tuple[str, ...] = ()
    usage: Usage = Usage()


async def _watched(batch: _Batch, turn: int) -> _Batch:
    """Wait until a task's run has ended. Raises `NeedsHuman` where all of them wait for a person.

    An attempt that waits is given up for now where another one is finished.
    """
    context = batch.context
    running = {task.run_id: task for task in batch.having("running")}

    async def work(step: StepContext) -> list[_Ended]:
        store = context.deps.budget.store
        noted: dict[str, BatchTaskStatus] = {}
        async with aclosing(ticking(store.changes(), _LOOK_SECONDS)) as changes:
            async for _ in changes:
                seen = await store.read(lambda view: [_seen(view, run_id) for run_id in running])
                ended = [_ended(run) for run, _ in seen if run.status.ended]
                if ended:
                    return ended
                for run, status in seen:
                    if status not in ("queued", noted.get(run.id)):
                        noted[run.id] = status
                        why = _waiting_text(run) if status == "waiting" else ""
                        update = {"status": status, "why": why}
                        batch.note(running[run.id].model_copy(update=update))
                if all(status == "waiting" for _, status in seen):
                    if batch.job.attempts and batch.having("finished"):
                        return [_ended(run) for run, _ in seen]
                    raise NeedsHuman(_people_text(batch, [run for run, _ in seen], running))
        raise AssertionError("changes end only when the store is closed")

    ended = await context.flow.step("watch", work, index=turn, returns=list[_Ended])
    for end in ended:
        task = running[end.run_id]
        changed = task.model_copy(
            update={
                "status": _STATUS_AFTER.get(end.status, "left_out"),
                "branch": end.branch or task.branch,
                "commit": end.commit or task.commit,
                "why": end.why,
                "proof": task.proof or end.proof,
                "integrity": tuple(dict.fromkeys((*task.integrity, *end.integrity))),
                "usage": task.usage.plus(end.usage),
            }
        )
        batch = batch.with_task(changed)
        batch.note(changed)
    return batch


_LOOK_SECONDS = 1.0
_STATUS_AFTER: Mapping[RunStatus, BatchTaskStatus] = {
    RunStatus.SUCCEEDED: "finished",
    RunStatus.NEEDS_HUMAN: "waiting",
    RunStatus.WAITING: "waiting",
}


def _seen(view: StoreView, run_id: str) -> tuple[Run, BatchTaskStatus]:
    """A run, and whether it waits for a person."""
    run = view.run(run_id)
    if run is None:
        raise NotPossibleNow(f"run {run_id} is not in the store any more")
    if run.status is RunStatus.NEEDS_HUMAN:
        return run, "waiting"
    if run.status is RunStatus.WAITING and not run.only_sleeps:
        answered = run.awaits(name for _, name in view.untaken_signals([run_id]))
        return run, "running" if answered else "waiting"
    return run, "queued" if run.status is RunStatus.QUEUED else "running"


def _ended(run: Run) -> _Ended:
    result = run.result if isinstance(run.result, Mapping) else {}
    proof, why = result.get("fix_proof"), ""
    if not run.status.ended:
        why = f"needs a person: {_waiting_text(run)}"
    elif run.status is RunStatus.CANCELLED:
        why = "its run was cancelled"
    elif run.failure is not None:
        why = f"its run failed: {one_line(run.failure.message, 300)}"
    return _Ended(
        run_id=run.id,
        status=run.status,
        branch=str(result.get("branch") or ""),
        commit=str(result.get("commit") or ""),
        why=why,
        proof=tuple(proof_lines(FixProof.model_validate(proof)) if proof else ()),
        integrity=tuple(map(str, result.get("test_integrity") or ())),
        usage=Usage.model_validate(result.get("usage") or {}),
    )


def _waiting_text(run: Run) -> str:
    if run.failure is not None:
        return one_line(run.failure.message, 300)
    waiting_for = run.waiting_for or ""
    if waiting_for.startswith("approval:"):
        return f"approve it with `podium approve {short_id(waiting_for.removeprefix('approval:'))}`"
    return f"see `podium show {short_id(run.id)}`"


def _people_text(batch: _Batch, runs: Iterable[Run], tasks: Mapping[str, BatchTaskState]) -> str:
    lines = []
    for run in runs:
        task, short = tasks[run.id], short_id(run.id)
        if (run.waiting_for or "").startswith("approval:"):
            how = _waiting_text(run)
        else:
            how = f'see `podium show {short}`, then `podium resume {short} --note "…"`'
        lines.append(
            f"- task {task.task.id} ({task.task.title}): {how}; or leave it out with `podium cancel {short}`"
        )
    listed = "\n".join(lines)
    return (
        f"{len(lines)} of {counted(len(batch.tasks), 'task')} need a person:\n{listed}\n"
        f"Then continue with `podium resume {batch.context.state.run_id}`"
    )


async def _integrated(batch: _Batch, ready: Sequence[BatchTaskState], turn: int) -> _Batch:
    """Merge the next finished branches; send one back that does not fit."""
    context = batch.context
    chosen = await _next_branches(batch, ready, turn)
    result = await integrate(context, chosen, turn)
    context = context.with_state(replace(context.state, head=result.head))
    batch = replace(batch, context=context, checks=result.checks or batch.checks)
    if result.checks:
        _note_checks(context, result)
    by_number = {task.number: task for task in batch.tasks}
    for merged in result.merged:
        task = by_number[merged.number].model_copy(
            update={
                "status": "merged",
                "merge": merged.commit,
                "verified": merged.verified,
                "why": "",
            }
        )
        batch = batch.with_task(task)
        batch.note(task)
    for refused in result.refused:
        task = by_number[refused.number].model_copy(update={"why": refused.why})
        if task.runs <= batch.job.spec.rounds and integration_of(batch.job.spec):
            batch = await _start(batch, task)
        else:
            task = task.model_copy(update={"status": "stuck"})
            batch = batch.with_task(task)
            batch.note(task)
    return batch


def _note_checks(context: StageContext, result: Integration) -> None:
    results = tuple(check.model_dump(mode="json") for check in result.checks)
    passed = all(check.passed for check in result.checks)
    context.flow.note(ChecksRan(commit=result.head, results=results, passed=passed))


async def _next_branches(
    batch: _Batch, ready: Sequence[BatchTaskState], turn: int
) -> list[FinishedBranch]:
    """The branches to merge next: first those that conflict with the fewest branches of other tasks."""

    async def work(step: StepContext) -> list[int]:
        workspaces = batch.context.deps.workspaces
        ids = {record.run_id: record.id for record in workspaces.existing() if record.run_id}
        others = {task.branch for task in batch.tasks if task.branch and task.status != "merged"}
        conflicts: dict[int, int] = {}
        for task in ready:
            # One alone needs no forecast.
            found = (
                await workspaces.collisions(ids[task.run_id])
                if len(ready) > 1 and task.run_id in ids
                else ()
            )
            conflicts[task.number] = sum(conflict.other in others for conflict in found)
        return sorted(conflicts, key=lambda number: (conflicts[number], number))

    order = await batch.context.flow.step("order", work, index=turn, returns=list[int])
    by_number = {task.number: task for task in ready}
    return [
        FinishedBranch(
            number=number,
            title=by_number[number].task.title,
            branch=by_number[number].branch,
            commit=by_number[number].commit,
        )
        for number in order[: batch.job.group]
    ]


async def _asked(batch: _Batch, stuck: Sequence[BatchTaskState]) -> _Batch:
    """Let a person decide about branches that cannot be merged."""
    listed = "\n".join(
        f"- task {task.task.id} ({task.task.title}), {task.branch}: {task.why}" for task in stuck
    )
    reason = (
        f"{counted(len(stuck), 'task')} could not be merged into {batch.context.state.branch}:\n{listed}\n"
        f'Mend the branch, or answer `--note "{LEAVE_OUT}"` to deliver without'
    )
    context = await ask_a_person(batch.context, "integrate", reason)
    answer = (
        context.state.guidance[-1:]
        if context.state.guidance != batch.context.state.guidance
        else ()
    )
    batch = replace(batch, context=context)
    leaves_out = bool(answer) and LEAVE_OUT in answer[0].casefold()
    for task in stuck:
        update = {"status": "left_out"} if leaves_out else {"status": "finished", "runs": 0}
        batch = batch.with_task(task.model_copy(update=update))
    return batch


async def _best_attempt(batch: _Batch) -> Json:
    """Wait for the attempts, and deliver the best one that passes the checks on the integration branch."""
    for turn in count():
        if batch.having("running"):
            batch = await _watched(batch, turn)
            continue
        attempts = await _compared(batch, turn)
        for attempt in attempts:
            if attempt.rank and not batch.having("merged"):
                batch = await _merged_attempt(batch, attempt, len(batch.job.tasks) * turn)
        if batch.having("merged"):
            return await _delivered(batch, attempts)
        reason = f"no attempt can be delivered:\n{comparison_text(attempts)}\nContinue one of them"
        batch = replace(batch, context=await ask_a_person(batch.context, "attempts", reason))
        # What a person did to their runs is seen by another look.
        for task in batch.tasks:
            batch = batch.with_task(task.model_copy(update={"status": "running"}))
    raise AssertionError("turns are counted without end")


async def _merged_attempt(batch: _Batch, attempt: Attempt, first: int) -> _Batch:
    context, task = batch.context, batch.tasks[attempt.number - 1]
    branch = FinishedBranch(
        number=task.number, title=batch.title(task), branch=task.branch, commit=task.commit
    )
    result = await integrate(context, [branch], first + attempt.rank)
    context = context.with_state(replace(context.state, head=result.head))
    batch = replace(batch, context=context, checks=result.checks)
    if result.checks:
        _note_checks(context, result)
    update: dict[str, Json] = {"status": "left_out"}
    if result.merged:
        merge = result.merged[0]
        update = {"status": "merged", "merge": merge.commit, "verified": merge.verified}
    else:
        update["why"] = result.refused[0].why
    task = task.model_copy(update=update)
    batch.note(task)
    return batch.with_task(task)


async def _compared(batch: _Batch, turn: int) -> list[Attempt]:
    """The attempts, the best first, as their runs and branches are now."""
    context = batch.context

    async def work(step: StepContext) -> list[Attempt]:
        deps = context.deps
        ids = {record.run_id: record.id for record in deps.workspaces.existing()}
        attempts = []
        for task in batch.tasks:
            attempt = Attempt(
                number=task.number,
                agent=task.task.agent or batch.job.agent,
                status=task.status,
                run_id=task.run_id,
                branch=task.branch or await _branch_of(context, ids.get(task.run_id, "")),
                usd=await _spent_usd(context, task.run_id),
                why=task.why,
            )
            if task.status == "finished":
                run = await deps.budget.store.read(partial(_run_of, task.run_id))
                workspace = await _workspace_of(deps, run)
                diff = await workspace.diff(context.state.base)
                attempt = measured(attempt, run.result or {}, diff)
            attempts.append(attempt)
        return ranked(attempts)

    compared: list[Attempt] = await context.flow.step(
        "compare", work, index=turn, returns=list[Attempt]
    )
    return compared


def _run_of(run_id: str, view: StoreView) -> Run:
    run = view.run(run_id)
    if run is None:
        raise NotPossibleNow(f"run {run_id} is not in the store any more")
    return run


async def _workspace_of(deps: PipelineDeps, run: Run) -> Workspace:
    """Workspace of a run that has ended, made again if it is gone."""
    steps = await deps.budget.store.read(lambda view: view.steps(run.id))
    (made,) = (WorkspaceRecord.model_validate(s.output) for s in steps if s.key == "workspace")
    if await deps.workspaces.missing(made.id):
        return await restore_workspace(deps, PipelineJob.model_validate(run.input), run.id, made)
    return await deps.workspaces.open(made.id)


async def _branch_of(context: StageContext, workspace_id: str) -> str:
    """Branch of an attempt that is not delivered; empty when it has none yet."""
    if not workspace_id:
        return ""
    workspace = await context.deps.workspaces.open(workspace_id)
    return workspace.record.branch.removeprefix("refs/heads/")


async def _spent_usd(context: StageContext, run_id: str) -> float:
    name = usage_counter("usd", "run", run_id, "", context.deps.clock.now())
    return await context.deps.budget.store.read(lambda view: view.counted(name, BEGINNING))


async def _delivered(batch: _Batch, attempts: Sequence[Attempt] = ()) -> Json:
    """Push the integration branch and open its pull request, or write the local equivalent."""
    merged, left_out = batch.having("merged"), batch.having("left_out")
    if not merged:
        raise NotPossibleNow(f"no task could be merged:\n{_left_out_text(left_out)}")
    batch, request = await _handed_over(batch, attempts)
    context = batch.context
    context.flow.note(
        BranchDelivered(
            branch=context.state.branch,
            commit=context.state.head,
            url=request.url,
            file=request.file,
        )
    )

    async def work(step: StepContext) -> Json:
        return _report(batch, request, attempts)

    report = await context.flow.step("report", work)
    if left_out and not attempts:
        where = request.url or request.file
        raise NotPossibleNow(
            f"{len(merged)} of {counted(len(batch.tasks), 'task')} are in {context.state.branch} ({where}); "
            f"left out:\n{_left_out_text(left_out)}"
        )
    return report


async def _handed_over(batch: _Batch, attempts: Sequence[Attempt]) -> tuple[_Batch, PullRequest]:
    for attempt in count(1):
        context = batch.context
        merged = await merge_remote_base(context, attempt)
        state = replace(context.state, head=merged.head, deliveries=attempt)
        context = context.with_state(state)
        if merged.why_not:
            context = await ask_a_person(context, "merge-base", merged.why_not)
            batch = replace(batch, context=context)
            continue
        context, request = await hand_over(context, _draft(batch, context, attempts))
        batch = replace(batch, context=context)
        if not request.moved_base:
            return batch, request
        if attempt % batch.job.spec.rounds == 0:
            reason = f"{merged.name} got new commits {counted(attempt, 'time')} before the push"
            batch = replace(batch, context=await ask_a_person(context, "moved-base", reason))
    raise AssertionError("attempts are counted without end")


def _left_out_text(tasks: Iterable[BatchTaskState]) -> str:
    return "\n".join(f"- task {task.task.id} ({task.task.title}): {task.why}" for task in tasks)


def _draft(batch: _Batch, context: StageContext, attempts: Sequence[Attempt]) -> PullRequestDraft:
    state, redact = context.state, context.deps.redact
    body = body_of_batch(
        task=state.job.task if attempts else "",
        tasks=[] if attempts else _rows(batch),
        attempts=attempts,
        remarks=[
            (batch.title(task), task.proof, task.integrity) for task in batch.having("merged")
        ],
        evidence=[result.model_dump() for result in batch.checks],
        usd=_usage(batch).usd,
        run_id=state.run_id,
    )
    return PullRequestDraft(
        repository=state.workspace.record.repository,
        branch=state.branch,
        base=state.job.base,
        commit=state.head,
        title=redact(title_of(state.job.task)),
        body=redact(body),
        run_id=state.run_id,
    )


def _usage(batch: _Batch) -> Usage:
    total = Usage()
    for task in batch.tasks:
        total = total.plus(task.usage)
    return total


def _rows(batch: _Batch) -> list[dict[str, Json]]:
    return [
        {
            "number": task.number,
            "id": task.task.id,
            "task": task.task.text,
            "status": task.status,
            "branch": task.branch,
            "commit": task.commit,
            "merge": task.merge,
            "verified": bool(task.merge) and task.verified,
            "why": task.why,
            "runs": list(task.all_runs),
            "fix_proof": list(task.proof),
            "test_integrity": list(task.integrity),
            "usd": task.usage.usd,
        }
        for task in batch.tasks
    ]


def _report(batch: _Batch, request: PullRequest, attempts: Sequence[Attempt]) -> Json:
    state = batch.context.state
    return {
        "branch": state.branch,
        "base": state.job.base,
        "commit": state.head,
        "workspace": state.workspace.record.path,
        "tasks": _rows(batch),
        "attempts": [attempt.model_dump(mode="json") for attempt in attempts],
        "checks": [result.model_dump(mode="json", exclude={"tail"}) for result in batch.checks],
        "usage": _usage(batch).model_dump(mode="json"),
        "pull_request": request.model_dump(mode="json"),
    }
