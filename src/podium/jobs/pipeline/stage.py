"""One stage from its prompt to its verdict, and what the supervisor does by itself on the way."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from podium.agents.turn_step import ask_until_answered
from podium.app.checks import Check, CheckResult, all_passed, detect_in
from podium.core.errors import BadInput, ImportRefused, NotPossibleNow
from podium.core.events import ChecksRan, NoteTaken
from podium.core.forge import RemoteBase, check_ending
from podium.core.model import FrozenModel
from podium.core.turns import Reply
from podium.core.workspaces import MergeResult, WorktreeSnapshot
from podium.jobs.pipeline.branch_change import look_around
from podium.jobs.pipeline.branch_documents import bring_back, clean_start, evidence_file, file
from podium.jobs.pipeline.check_text import red_words
from podium.jobs.pipeline.deps import with_tools_for
from podium.jobs.pipeline.events import StageBegan, StageEnded
from podium.jobs.pipeline.spec import DONE, FORWARD, Stage
from podium.jobs.pipeline.stage_evaluation import settle
from podium.jobs.pipeline.stage_prompt import INPUTS, NONCE_SLOT, brief
from podium.jobs.pipeline.state import (
    RED,
    SENT_BACK,
    Desk,
    Settled,
    Told,
    approved_step,
    ask_a_person,
)
from podium.ports import StepContext

DEPENDENCIES = ("node_modules", ".venv", "venv", "vendor", ".tox", ".nox", INPUTS)
"""Names of ignored folders that stay for the checks: what a project depends on is not built anew each time."""


class Merged(FrozenModel):
    """The base, merged or in conflict, and where the branch is."""

    merge: MergeResult | None = None
    """None: there was nothing that could be merged."""
    why_not: str = ""
    head: str
    paths: tuple[str, ...] = ()
    remote: RemoteBase = RemoteBase()


async def visit(desk: Desk, name: str) -> Settled:
    """Let the stage's role do its part, and give the verdict under which it is left."""
    trip, stage = desk.trip, desk.stage(name)
    trip.visits[name] += 1
    number = trip.visits[name]
    if trip.sent_back != name:
        trip.work_from = trip.head
    if stage.does == "integrate" and not trip.feedback:
        before = trip.head
        merge = await _merge_base(desk, name, number)
        moved = trip.head != before
        if moved or merge.conflicts:
            trip.merged_onto, trip.is_unreviewed = trip.merged_onto or before, True
        if not merge.conflicts:
            settled = await _checked(desk, name, number, _clean(desk, moved), moved=moved)
            by_itself = stage.model_copy(update={"role": "podium"})
            _tell_end(desk, name, by_itself, number, settled, Reply(text="", agent="podium"))
            return settled
    reply = await _ask(desk, name, stage, number)
    settled = await settle(desk, name, stage, number, reply)
    _take_in(desk, name, stage, settled)
    trip.sent_back = name if settled.verdict == SENT_BACK else ""
    if stage.does in ("work", "integrate") and settled.verdict == DONE:
        trip.producer = name
        settled = await _checked(desk, name, number, settled, moved=True)
        await look_around(desk, name)
    elif stage.does in ("report", "plan"):
        trip.producer = name
    _tell_end(desk, name, stage, number, settled, reply)
    return settled


async def _ask(desk: Desk, name: str, stage: Stage, number: int) -> Reply:
    trip = desk.trip
    words = await brief(desk, name, stage, number)
    fresh = [each for each in words.notes if each.fingerprint not in trip.notes_taken]
    trip.notes_taken |= {each.fingerprint for each in fresh}
    desk.ctx.note(
        StageBegan(
            stage=name,
            phase=stage.phase,
            role=stage.role,
            round=number,
            remembered=words.remembered,
            notes=tuple(each.text for each in fresh),
            sizes=words.sizes,
        )
    )

    async def from_where_it_starts() -> bool:
        if trip.draft is not None and await _restored(desk, trip.draft):
            return True
        keep = (
            [trip.document_of(stage, number)] if stage.does in ("report", "plan", "audit") else []
        )
        await trip.workspace.reset(trip.head, "a turn that did not end", keep=keep)
        if trip.conflicts:
            is_remote = trip.base == trip.remote_base.commit
            await _merge(desk, name, number, trip.remote_base if is_remote else None)
        return True

    reply = await ask_until_answered(
        desk.ctx,
        with_tools_for(desk.kit.player_for(stage.role, trip.job.agent), stage.does),
        words.prompt,
        budget=desk.kit.purse,
        name=f"{name}-{number}",
        workspace=trip.workspace,
        contract=stage.contract,
        nonce_slot=NONCE_SLOT,
        prepare=from_where_it_starts,
    )
    trip.usage = trip.usage.plus(reply.usage)
    trip.draft = None
    return reply


async def _restored(desk: Desk, draft: WorktreeSnapshot) -> bool:
    """Whether the work that was not committed lies in the workspace again. Another host may not have it."""
    try:
        await desk.trip.workspace.restore(draft)
    except (BadInput, NotPossibleNow) as error:
        desk.ctx.note(NoteTaken(text=f"Work that was not committed is not here: {error}"))
        return False
    return True


def _take_in(desk: Desk, name: str, stage: Stage, settled: Settled) -> None:
    """What is known now that was not before."""
    trip = desk.trip
    trip.head = settled.head
    trip.changed |= set(settled.paths)
    edited = stage.does == "edit" and bool(settled.paths)
    trip.is_stale |= edited
    trip.is_unreviewed |= edited
    if stage.does == "audit" and settled.verdict in FORWARD:
        trip.is_unreviewed = False
        if name in trip.job.spec.merge_reviews:
            trip.merged_onto = ""
    trip.draft = settled.draft
    trip.withheld = settled.withheld
    trip.backlog += settled.backlog
    trip.alike += settled.alike
    trip.disputed += [each for each in settled.disputed if each not in trip.disputed]
    trip.keep(settled.documents)
    if not settled.document:
        return
    match stage.does:
        case "report" if settled.document not in trip.reports:
            trip.reports.append(settled.document)
        case "plan":
            trip.plan = settled.document
        case "work":
            trip.verification = settled.document
        case "review" | "audit":
            trip.review = trip.reviews[name] = settled.document


async def _merge_base(desk: Desk, name: str, number: int) -> MergeResult:
    """The base as it is now, in the branch or in conflict with it. Where it is gone, a person has to say."""
    for attempt in count():
        merged = await _try_merge(desk, f"{name}:{attempt}" if attempt else name, number)
        desk.trip.head = merged.head
        looked_at(desk, merged.remote)
        if merged.merge is not None:
            return _met(desk, merged.merge)
        await ask_a_person(desk, f"merge-{name}", merged.why_not)
    raise AssertionError("attempts are counted without end")


def looked_at(desk: Desk, remote: RemoteBase) -> None:
    """Remember where the remote's base branch is, and say once why it is not known."""
    if remote.why_not and remote.why_not != desk.trip.remote_base.why_not:
        desk.ctx.note(NoteTaken(text=f"base not fetched: {remote.why_not}"))
    desk.trip.remote_base = remote


async def _try_merge(desk: Desk, place: str, number: int) -> Merged:
    async def work(step: StepContext) -> Merged:
        trip, workspace = desk.trip, desk.trip.workspace
        start = await clean_start(desk, "before the base is merged")
        remote = await desk.kit.forge.fetch_base(trip.job.repository, trip.job.base)
        try:
            merge = await _merge_both(desk, place, number, remote)
        except (BadInput, NotPossibleNow) as error:
            return Merged(why_not=str(error), head=start, remote=remote)
        except ImportRefused as refused:
            return Merged(why_not=f"what merging made may not come back: {refused}", head=start)
        if merge.conflicts:
            # Of two merges the first may have gone well, and been brought back.
            return Merged(merge=merge, head=await workspace.delivered(), remote=remote)
        try:
            filed = await bring_back(desk, f"merge-{place}-{number}")
        except ImportRefused as refused:
            why_not = f"what merging made may not come back: {refused}"
            return Merged(why_not=why_not, head=start, remote=remote)
        head = await workspace.delivered()
        return Merged(merge=merge, head=head, paths=filed.paths, remote=remote)

    merged: Merged = await approved_step(desk, f"merge:{place}", work, index=number, returns=Merged)
    return merged


async def _merge_both(desk: Desk, place: str, number: int, remote: RemoteBase) -> MergeResult:
    """The remote's base branch, then the user's own. Gives the merge that decides what the branch contains."""
    before = desk.trip.base
    theirs = None
    if remote.commit:
        theirs = await _merge(desk, place, number, remote)
        if theirs.conflicts:
            return theirs
        await bring_back(desk, f"merge-remote-{place}-{number}")
    own = await _merge(desk, place, number)
    if theirs is None or own.conflicts or not own.up_to_date:
        return own
    # All of the user's own was in it; where neither brought anything, the branch contains what it did.
    return theirs if not theirs.up_to_date else own.model_copy(update={"other": before})


def _met(desk: Desk, merge: MergeResult) -> MergeResult:
    trip = desk.trip
    trip.conflicts, trip.conflict_words, trip.base = merge.conflicts, merge.told, merge.other
    if trip.conflicts:
        listed = ", ".join(trip.conflicts[:10])
        name = trip.remote_base.name if merge.other == trip.remote_base.commit else trip.job.base
        desk.ctx.note(NoteTaken(text=f"Merging {name} conflicts in {listed}."))
    return merge


async def _merge(
    desk: Desk, name: str, number: int, remote: RemoteBase | None = None
) -> MergeResult:
    """Merge the remote's base branch, or without one the user's own."""
    trip = desk.trip
    shown, other = (remote.name, remote.commit) if remote else (trip.job.base, trip.job.base)
    step = f"merge-{name}-{number}" if remote is None else f"merge-remote-{name}-{number}"
    message = f"Merge {shown} into {trip.branch}"
    return await trip.workspace.merge(
        other, message, desk.trailers(step), trusted=remote is not None
    )


def _clean(desk: Desk, moved: bool) -> Settled:
    return Settled(verdict=DONE, words=_merge_words(desk, moved=moved), head=desk.trip.head)


def _merge_words(desk: Desk, *, moved: bool) -> str:
    base = desk.trip.remote_base.name or desk.trip.job.base
    return f"Merged {base} without conflict." if moved else f"{base} is merged already."


async def _checked(desk: Desk, name: str, number: int, settled: Settled, *, moved: bool) -> Settled:
    """The project's checks, run on the commit that came back; red ones are a verdict of their own.

    A branch that did not move is as it was when they ran last.
    """
    trip = desk.trip
    trip.head = settled.head
    if moved or trip.is_stale:
        trip.evidence = await _run_checks(desk, name, number)
        trip.is_stale = False
    if all_passed(trip.evidence) and settled.disputed and settled.rules:
        passing = f"you dispute {settled.disputed[0]}; every check passes, so answer without `disputed_checks`"
        told = {"verdict": SENT_BACK, "words": f"- {passing}", "problems": (passing,)}
        return settled.model_copy(update={**told, "disputed": (), "head": trip.head})
    if all_passed(trip.evidence):
        trip.conflicts = ()
        return settled.model_copy(update={"head": trip.head})
    words = red_words(trip.evidence)
    return settled.model_copy(update={"verdict": RED, "words": words, "head": trip.head})


class _Evidence(FrozenModel):
    results: tuple[CheckResult, ...]
    head: str
    added: tuple[Check, ...] = ()
    on_base: tuple[CheckResult, ...] = ()


async def _run_checks(desk: Desk, name: str, number: int) -> tuple[CheckResult, ...]:
    trip = desk.trip
    label, checked = f"{name}-{number}", trip.head
    path = f"docs/dev_docs/reviews/evidence_{trip.feat}_{label}.md"

    async def work(step: StepContext) -> _Evidence:
        start = await clean_start(desk, "before the checks")
        # A commit is judged as whoever clones it would see it, with what it depends on.
        await trip.workspace.clear_ignored(desk.found.ignored, DEPENDENCIES)
        seconds = trip.job.spec.check_seconds
        added = await _added_checks(desk)
        checks = added or desk.checks
        results = [await desk.kit.run_check(trip.workspace, each, seconds) for each in checks]
        if not results:
            return _Evidence(results=(), head=start)
        red = [each for each, result in zip(checks, results, strict=True) if not result.passed]
        on_base = () if added else await _run_on_base(desk, red)
        results = [_compared(desk, each, on_base) for each in results]
        await trip.workspace.reset(start, "what the checks left")
        text = evidence_file(
            task=trip.job.task,
            commit=trip.head,
            results=[each.model_dump() for each in results],
            day=desk.kit.clock.now().date(),
            run_id=trip.run_id,
        )
        filed = await file(
            desk, f"checks-{label}", f"Evidence: checks on {trip.head[:12]}", written={path: text}
        )
        return _Evidence(
            results=tuple(results), head=filed.head, added=added, on_base=tuple(on_base)
        )

    found = await desk.ctx.step(f"checks:{name}", work, index=number, returns=_Evidence)
    trip.head = found.head
    trip.untested = not found.results
    for check in found.added:
        if check not in trip.added_checks:
            words = (
                f"The project had no checks; this work brings `{check.command}` ({check.source})."
            )
            desk.ctx.note(NoteTaken(text=words))
    trip.added_checks = found.added
    trip.on_base |= {(trip.base, each.command): each for each in found.on_base}
    if not found.results:
        return ()
    results = tuple(each.model_dump(mode="json") for each in found.results)
    desk.ctx.note(ChecksRan(commit=checked, results=results, passed=all_passed(found.results)))
    trip.evidence_path = path
    trip.keep([path])
    return found.results


async def _run_on_base(desk: Desk, red: Sequence[Check]) -> list[CheckResult]:
    """Run red checks on the base too, once each: nobody is to answer for what was red before."""
    trip = desk.trip
    fresh = [each for each in red if (trip.base, each.command) not in trip.on_base]
    if not fresh:
        return []
    await trip.workspace.reset(trip.base, "to run the checks without this work")
    await trip.workspace.clear_ignored(desk.found.ignored, DEPENDENCIES)
    seconds = trip.job.spec.check_seconds
    return [await desk.kit.run_check(trip.workspace, each, seconds) for each in fresh]


def _compared(desk: Desk, result: CheckResult, on_base: Sequence[CheckResult]) -> CheckResult:
    """A red result with how the same check ended on the base."""
    known = {each.command: each for each in on_base}
    before = known.get(result.command) or desk.trip.on_base.get((desk.trip.base, result.command))
    if result.passed or before is None:
        return result
    ending = check_ending(before.model_dump())
    return result.model_copy(update={"before": ending, "red_before": not before.passed})


async def _added_checks(desk: Desk) -> tuple[Check, ...]:
    """Checks that the work itself brings. A project that has checks of its own keeps to them."""
    if desk.kit.checks() is not None or desk.found.checks:
        return ()
    found = await detect_in(desk.trip.workspace, desk.kit.run_check)
    return found.checks or desk.trip.added_checks


def _tell_end(
    desk: Desk, name: str, stage: Stage, number: int, settled: Settled, reply: Reply
) -> None:
    told = Told(
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
    )
    desk.trip.told.append(told)
    desk.ctx.note(
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
