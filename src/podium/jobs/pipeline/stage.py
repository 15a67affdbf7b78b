"""One stage from its prompt to its verdict, and what the supervisor does by itself on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count

from podium.agents.conversation import ask_until_answered
from podium.app.checks import Check, CheckResult, all_passed, detect_in, red_alike
from podium.core.errors import BadInput, BudgetSpent, ImportRefused, NotPossibleNow
from podium.core.events import ChecksRan, NoteTaken
from podium.core.forge import RemoteBase, check_ending
from podium.core.model import FrozenModel
from podium.core.turns import Reply
from podium.core.workspaces import MergeResult, WorktreeSnapshot
from podium.jobs.pipeline.agent_text import shortened
from podium.jobs.pipeline.branch_change import forecast_conflicts
from podium.jobs.pipeline.branch_documents import (
    bring_back,
    clean_start,
    evidence_file,
    failed_checks_text,
    file,
)
from podium.jobs.pipeline.events import StageBegan, StageEnded
from podium.jobs.pipeline.findings import findings_of
from podium.jobs.pipeline.fix_proof import prove_fix
from podium.jobs.pipeline.integrity_stage import compare_test_runs, compare_tests
from podium.jobs.pipeline.spec import DONE, FORWARD, NONCE_SLOT, Stage
from podium.jobs.pipeline.stage_evaluation import settle
from podium.jobs.pipeline.stage_prompt import build_brief
from podium.jobs.pipeline.state import (
    DEPENDENCIES,
    RED,
    SENT_BACK,
    PipelineState,
    Settled,
    StageContext,
    StageSummary,
    approved_step,
    ask_a_person,
    open_findings_text,
    with_tools_for,
)
from podium.ports import StepContext

_MAX_FINDINGS = 50
_MAX_FINDING = 600


class Merged(FrozenModel):
    """The base, merged or in conflict, and where the branch is."""

    merge: MergeResult | None = None
    """None: there was nothing that could be merged."""
    why_not: str = ""
    head: str
    paths: tuple[str, ...] = ()
    remote: RemoteBase = RemoteBase()
    branch: RemoteBase = RemoteBase()
    """The remote's own branch of this run, where the conflict is with that."""


async def run_stage(context: StageContext, name: str) -> tuple[StageContext, Settled]:
    """Let the stage's role do its part, and give the verdict under which it is left."""
    before, stage = context.state, context.stage(name)
    number = before.stage_runs.get(name, 0) + 1
    work_from = before.work_from if before.sent_back == name else before.head
    context = context.with_state(
        replace(before, stage_runs={**before.stage_runs, name: number}, work_from=work_from)
    )
    if stage.does == "integrate" and not before.feedback:
        context, merge = await _merge_base(context, name, number)
        moved = context.state.head != before.head
        if moved or merge.conflicts:
            merged_onto = before.merged_onto or before.head
            context = context.with_state(
                replace(context.state, merged_onto=merged_onto, is_unreviewed=True)
            )
        if not merge.conflicts:
            settled = _clean(context, moved)
            context, settled = await _checked(context, name, number, settled, moved=moved)
            by_itself = stage.model_copy(update={"role": "podium"})
            reply = Reply(text="", agent="podium")
            return _note_end(context, name, by_itself, number, settled, reply), settled
    context, reply = await _ask(context, name, stage, number)
    settled = await settle(context, name, stage, number, reply)
    context = context.with_state(_taken_in(context.state, name, stage, settled))
    if stage.does in ("work", "integrate") and settled.verdict == DONE:
        context = context.with_state(replace(context.state, producer=name))
        context, settled = await compare_tests(context, name, number, settled)
        if settled.verdict == DONE:
            context, settled = await _checked(context, name, number, settled, moved=True)
            if settled.verdict == DONE:
                context, settled = await compare_test_runs(context, name, settled)
            if stage.does == "work":
                context, settled = await prove_fix(context, name, number, settled)
            context = await forecast_conflicts(context, name)
    elif stage.does in ("report", "plan"):
        context = context.with_state(replace(context.state, producer=name))
    return _note_end(context, name, stage, number, settled, reply), settled


async def _ask(
    context: StageContext, name: str, stage: Stage, number: int
) -> tuple[StageContext, Reply]:
    state = context.state
    brief = await build_brief(context, name, stage, number)
    fresh = [note for note in brief.notes if note.fingerprint not in state.notes_taken]
    context.flow.note(
        StageBegan(
            stage=name,
            phase=stage.phase,
            role=stage.role,
            round=number,
            remembered=brief.remembered,
            notes=tuple(note.text for note in fresh),
            sizes=brief.sizes,
        )
    )

    async def from_where_it_starts() -> bool:
        if state.draft is not None and await _restored(context, state.draft):
            return True
        keep = (
            [state.document_of(stage, number)] if stage.does in ("report", "plan", "audit") else []
        )
        await state.workspace.reset(state.head, "an unfinished turn", keep=keep)
        if state.conflicts and state.merging.commit:
            await _merge(context, name, number, state.merging, "merge-branch")
        elif state.conflicts:
            is_remote = state.base == state.remote_base.commit
            await _merge(context, name, number, state.remote_base if is_remote else None)
        return True

    still_open = open_findings_text(state)
    try:
        reply = await ask_until_answered(
            context.flow,
            with_tools_for(context.deps.role_agent_for(stage.role, state.job.agent), stage.does),
            brief.prompt,
            budget=context.deps.budget,
            name=f"{name}-{number}",
            workspace=state.workspace,
            contract=stage.contract,
            nonce_slot=NONCE_SLOT,
            prepare=from_where_it_starts,
            for_person=still_open,
        )
    except BudgetSpent as spent:
        spent.args = ("\n".join(filter(None, (str(spent), still_open))), *spent.args[1:])
        raise
    state = replace(
        state,
        notes_taken=state.notes_taken | {note.fingerprint for note in fresh},
        usage=state.usage.plus(reply.usage),
        draft=None,
    )
    return context.with_state(state), reply


async def _restored(context: StageContext, draft: WorktreeSnapshot) -> bool:
    """Restore uncommitted work into the workspace. False: it is not here; another host may not have it."""
    try:
        await context.state.workspace.restore(draft)
    except (BadInput, NotPossibleNow) as error:
        context.flow.note(NoteTaken(text=f"Uncommitted work could not be restored: {error}"))
        return False
    return True


def _taken_in(state: PipelineState, name: str, stage: Stage, settled: Settled) -> PipelineState:
    """The run's state with the stage's outcome."""
    edited = stage.does == "edit" and bool(settled.paths)
    passes = stage.does == "audit" and settled.verdict in FORWARD
    is_review_of_merge = passes and name in state.job.spec.merge_reviews
    state = replace(
        state,
        head=settled.head,
        changed=state.changed | set(settled.paths),
        is_stale=state.is_stale or edited,
        is_unreviewed=not passes and (state.is_unreviewed or edited),
        merged_onto="" if is_review_of_merge else state.merged_onto,
        sent_back=name if settled.verdict == SENT_BACK else "",
        draft=settled.draft,
        withheld=settled.withheld,
        backlog=(*state.backlog, *settled.backlog),
        alike=(*state.alike, *settled.alike),
        disputed=tuple(dict.fromkeys((*state.disputed, *settled.disputed))),
    ).with_documents(settled.documents)
    document = settled.document
    if not document:
        return state
    match stage.does:
        case "report":
            return replace(state, reports=tuple(dict.fromkeys((*state.reports, document))))
        case "plan":
            return replace(state, plan=document)
        case "work":
            return replace(state, verification=document)
        case "review" | "audit":
            return replace(state, review=document, reviews={**state.reviews, name: document})
    return state


async def _merge_base(
    context: StageContext, name: str, number: int
) -> tuple[StageContext, MergeResult]:
    """The base as it is now, in the branch or in conflict with it. Where it is gone, a person has to say."""
    for attempt in count():
        merged = await _try_merge(context, f"{name}:{attempt}" if attempt else name, number)
        context = context.with_state(replace(context.state, head=merged.head))
        context = with_remote_base(context, merged.remote)
        if merged.merge is not None:
            return _met(context, merged.merge, merged.branch), merged.merge
        context = await ask_a_person(context, f"merge-{name}", merged.why_not)
    raise AssertionError("attempts are counted without end")


def with_remote_base(context: StageContext, remote: RemoteBase) -> StageContext:
    """Remember where the remote's base branch is, and say once why it is not known."""
    if remote.why_not and remote.why_not != context.state.remote_base.why_not:
        context.flow.note(NoteTaken(text=f"Base not fetched: {remote.why_not}"))
    return context.with_state(replace(context.state, remote_base=remote))


async def _try_merge(context: StageContext, label: str, number: int) -> Merged:
    async def work(step: StepContext) -> Merged:
        state, workspace = context.state, context.state.workspace
        start = await clean_start(context, "before merging the base")
        remote = await context.deps.forge.fetch_base(state.job.repository, state.job.base)
        try:
            branch, merge = await _merge_pushed(context, label, number)
            if merge is not None and merge.conflicts:
                head = await workspace.delivered()
                return Merged(merge=merge, head=head, remote=remote, branch=branch)
            merge = await _merge_both(context, label, number, remote)
        except (BadInput, NotPossibleNow) as error:
            return Merged(why_not=str(error), head=start, remote=remote)
        except ImportRefused as refused:
            return Merged(why_not=f"the merge was refused: {refused}", head=start)
        if merge.conflicts:
            # Of two merges the first may have gone well, and been brought back.
            return Merged(merge=merge, head=await workspace.delivered(), remote=remote)
        try:
            filed = await bring_back(context, f"merge-{label}-{number}")
        except ImportRefused as refused:
            why_not = f"the merge was refused: {refused}"
            return Merged(why_not=why_not, head=start, remote=remote)
        head = await workspace.delivered()
        return Merged(merge=merge, head=head, paths=filed.paths, remote=remote)

    merged: Merged = await approved_step(
        context, f"merge:{label}", work, index=number, returns=Merged
    )
    return merged


async def _merge_pushed(
    context: StageContext, label: str, number: int
) -> tuple[RemoteBase, MergeResult | None]:
    """Merge what others pushed to the branch of the pull request that is followed."""
    state = context.state
    if state.followed is None:
        return RemoteBase(), None
    branch = await context.deps.forge.fetch_branch(
        state.job.repository, state.job.base, state.branch
    )
    if not branch.commit:
        raise NotPossibleNow(branch.why_not)
    merge = await _merge(context, label, number, branch, "merge-branch")
    if not merge.conflicts:
        await bring_back(context, f"merge-branch-{label}-{number}")
    return branch, merge


async def _merge_both(
    context: StageContext, label: str, number: int, remote: RemoteBase
) -> MergeResult:
    """The remote's base branch, then the user's own. Gives the merge that decides what the branch contains."""
    before = context.state.base
    theirs = None
    if remote.commit:
        theirs = await _merge(context, label, number, remote)
        if theirs.conflicts:
            return theirs
        await bring_back(context, f"merge-remote-{label}-{number}")
    own = await _merge(context, label, number)
    if theirs is None or own.conflicts or not own.up_to_date:
        return own
    # All of the user's own was in it; where neither brought anything, the branch contains what it did.
    return theirs if not theirs.up_to_date else own.model_copy(update={"other": before})


def _met(context: StageContext, merge: MergeResult, branch: RemoteBase) -> StageContext:
    state = replace(
        context.state, conflicts=merge.conflicts, conflict_text=merge.told, merging=branch
    )
    if not branch.commit:
        state = replace(state, base=merge.other)
    if state.conflicts:
        listed = ", ".join(state.conflicts[:10])
        name = state.remote_base.name if merge.other == state.remote_base.commit else state.job.base
        name = branch.name or name
        context.flow.note(NoteTaken(text=f"Merging {name} has conflicts in {listed}."))
    return context.with_state(state)


async def _merge(
    context: StageContext,
    name: str,
    number: int,
    remote: RemoteBase | None = None,
    kind: str = "merge-remote",
) -> MergeResult:
    """Merge the remote's base branch, or without one the user's own."""
    state = context.state
    title, other = (remote.name, remote.commit) if remote else (state.job.base, state.job.base)
    step = f"merge-{name}-{number}" if remote is None else f"{kind}-{name}-{number}"
    message = f"Merge {title} into {state.branch}"
    return await state.workspace.merge(
        other, message, context.trailers(step), trusted=remote is not None
    )


def _clean(context: StageContext, moved: bool) -> Settled:
    return Settled(verdict=DONE, words=_merge_text(context, moved=moved), head=context.state.head)


def _merge_text(context: StageContext, *, moved: bool) -> str:
    base = context.state.remote_base.name or context.state.job.base
    return f"Merged {base} without conflicts." if moved else f"{base} is already merged."


async def _checked(
    context: StageContext, name: str, number: int, settled: Settled, *, moved: bool
) -> tuple[StageContext, Settled]:
    """The project's checks, run on the commit that came back; red ones are a verdict of their own.

    A branch that did not move is as it was when they ran last.
    """
    context = context.with_state(replace(context.state, head=settled.head))
    if moved or context.state.is_stale:
        context = await _run_checks(context, name, number)
    state = context.state
    if all_passed(state.evidence) and settled.disputed and settled.rules:
        passing = f"you dispute {settled.disputed[0]}; every check passes, so answer without `disputed_checks`"
        update = {"verdict": SENT_BACK, "words": f"- {passing}", "problems": (passing,)}
        return context, settled.model_copy(update={**update, "disputed": (), "head": state.head})
    commands = frozenset(result.command for result in state.red_as_before)
    is_returned = state.job.spec.red_base == "deliver" or commands <= state.returned_red
    excused = commands if is_returned and not settled.disputed else frozenset[str]()
    if all_passed(state.evidence) or excused:
        context = context.with_state(
            replace(state, conflicts=(), merging=RemoteBase(), excused_red=excused)
        )
        return context, settled.model_copy(update={"head": state.head})
    context = context.with_state(replace(state, returned_red=state.returned_red | commands))
    update = {"verdict": RED, "words": failed_checks_text(state.evidence), "head": state.head}
    return context, settled.model_copy(update=update)


class _Evidence(FrozenModel):
    results: tuple[CheckResult, ...]
    head: str
    added: tuple[Check, ...] = ()
    on_base: tuple[CheckResult, ...] = ()


async def _run_checks(context: StageContext, name: str, number: int) -> StageContext:
    state = context.state
    label, checked = f"{name}-{number}", state.head
    path = f"docs/dev_docs/reviews/evidence_{state.feat}_{label}.md"

    async def work(step: StepContext) -> _Evidence:
        start = await clean_start(context, "before running the checks")
        # A commit is judged as whoever clones it would see it, with what it depends on.
        await state.workspace.clear_ignored(context.baseline.ignored, DEPENDENCIES)
        seconds = state.job.spec.check_seconds
        added = await _added_checks(context)
        checks = added or context.checks
        results = [
            await context.deps.run_check(state.workspace, check, seconds) for check in checks
        ]
        if not results:
            return _Evidence(results=(), head=start)
        red = [check for check, result in zip(checks, results, strict=True) if not result.passed]
        on_base = () if added else await _run_on_base(context, red)
        results = [_compared(context, result, on_base) for result in results]
        await state.workspace.reset(start, "changes left by the checks")
        text = evidence_file(
            task=state.job.task,
            commit=state.head,
            results=[result.model_dump() for result in results],
            day=context.deps.clock.now().date(),
            run_id=state.run_id,
        )
        filed = await file(
            context,
            f"checks-{label}",
            f"Evidence: checks on {state.head[:12]}",
            written={path: text},
        )
        return _Evidence(
            results=tuple(results), head=filed.head, added=added, on_base=tuple(on_base)
        )

    evidence = await context.flow.step(f"checks:{name}", work, index=number, returns=_Evidence)
    for check in evidence.added:
        if check not in state.added_checks:
            text = f"The project had no checks; this work adds `{check.command}` ({check.source})."
            context.flow.note(NoteTaken(text=text))
    on_base = {(state.base, result.command): result for result in evidence.on_base}
    state = replace(
        state,
        head=evidence.head,
        untested=not evidence.results,
        added_checks=evidence.added,
        on_base={**state.on_base, **on_base},
        evidence=evidence.results,
        excused_red=frozenset(),
        is_stale=False,
    )
    if not evidence.results:
        return context.with_state(state)
    results = tuple(result.model_dump(mode="json") for result in evidence.results)
    context.flow.note(
        ChecksRan(commit=checked, results=results, passed=all_passed(evidence.results))
    )
    return context.with_state(replace(state, evidence_path=path).with_documents([path]))


async def _run_on_base(context: StageContext, red: Sequence[Check]) -> list[CheckResult]:
    """Run red checks on the base too, once each: nobody is to answer for what was red before."""
    state = context.state
    fresh = [check for check in red if (state.base, check.command) not in state.on_base]
    if not fresh:
        return []
    await state.workspace.reset(state.base, "to run the checks without this work")
    await state.workspace.clear_ignored(context.baseline.ignored, DEPENDENCIES)
    seconds = state.job.spec.check_seconds
    return [await context.deps.run_check(state.workspace, check, seconds) for check in fresh]


def _compared(
    context: StageContext, result: CheckResult, on_base: Sequence[CheckResult]
) -> CheckResult:
    """A red result with how the same check ended on the base."""
    by_command = {base_result.command: base_result for base_result in on_base}
    before = by_command.get(result.command) or context.state.on_base.get(
        (context.state.base, result.command)
    )
    if result.passed or before is None:
        return result
    ending = check_ending(before.model_dump())
    # Runs of older code judge every red check alike.
    alike = context.state.job.spec.baseline == "run" and red_alike(before, result)
    update = {"before": ending, "red_before": not before.passed, "as_before": alike}
    return result.model_copy(update=update)


async def _added_checks(context: StageContext) -> tuple[Check, ...]:
    """Checks that the work itself brings. A project that has checks of its own keeps to them."""
    if context.deps.checks() is not None or context.baseline.checks:
        return ()
    detection = await detect_in(context.state.workspace, context.deps.run_check)
    return detection.checks or context.state.added_checks


def _note_end(
    context: StageContext, name: str, stage: Stage, number: int, settled: Settled, reply: Reply
) -> StageContext:
    summary = StageSummary(
        stage=name,
        phase=stage.phase,
        role=stage.role,
        round=number,
        verdict=settled.verdict,
        agent=reply.agent,
        document=settled.document,
        commit=settled.head,
        seconds=reply.seconds,
        usd=reply.usage.usd,
        findings=_findings(context.state, settled),
    )
    context.flow.note(
        StageEnded(
            stage=name,
            phase=stage.phase,
            role=stage.role,
            round=number,
            verdict=settled.verdict,
            words=settled.words[:2_000],
            document=settled.document,
            commit=settled.head,
            problems=settled.problems,
            disputed=settled.disputed,
            discarded=settled.discarded,
            agent=reply.agent,
            usage=reply.usage,
            seconds=reply.seconds,
        )
    )
    summaries = (*context.state.stage_summaries, summary)
    return context.with_state(replace(context.state, stage_summaries=summaries))


def _findings(state: PipelineState, settled: Settled) -> tuple[str, ...]:
    """Findings of an answer for which the work is sent back, the first of them, each bounded."""
    if settled.verdict in FORWARD:
        return ()
    if settled.verdict == RED:
        failed = [result for result in state.evidence if not result.passed]
        texts = [f"`{result.command}`: {check_ending(result.model_dump())}" for result in failed]
    elif settled.problems:
        texts = list(settled.problems)
    else:
        texts = [finding.text for finding in findings_of(settled.words)]
    return tuple(shortened(text, _MAX_FINDING) for text in texts[:_MAX_FINDINGS])
