"""The end of a playbook: what was achieved, put down, and whether that is success."""

from __future__ import annotations

from podium.domain.asking import Reply
from podium.domain.errors import PlaybookNotMet, PlaybookStopped
from podium.domain.events import PlaybookEnded
from podium.domain.gating import Usage
from podium.domain.model import Json
from podium.domain.playbook_runs import (
    Changes,
    Criterion,
    Ending,
    Ground,
    PlaybookJob,
    PlaybookResult,
)
from podium.domain.playbooks import Profile
from podium.domain.spending import usage_counted
from podium.flows.playbook.kit import PlaybookKit
from podium.flows.spending import BEGINNING
from podium.ports import FlowContext, Step, Tx

MOST_PATHS = 1_000
LONGEST_WORDS = 20_000


async def ended(
    ctx: FlowContext,
    kit: PlaybookKit,
    job: PlaybookJob,
    ground: Ground,
    ending: Ending,
) -> PlaybookResult:
    """Look at what is different now, and record the end."""
    reply, criteria = ending.reply, ending.criteria

    async def look(step: Step) -> PlaybookResult:
        closed = kit.off_limits(job.profile)
        changes = await kit.grounds.changes(ground, job.root, closed)
        broken = _broken(changes, job.profile)
        result = PlaybookResult(
            met=_met(reply, criteria) and not broken,
            broken=broken,
            run_id=step.run_id,
            words=reply.text[:LONGEST_WORDS],
            criteria=criteria,
            ends=ending.ends,
            given_up=ending.why,
            stop=reply.stopped,
            changes=changes,
            usage=await _used(kit, step.run_id),
            dry_run=job.dry_run,
        )

        def record(tx: Tx) -> None:
            tx.append(step.run_id, _told(result))
            step.checkpoint(tx, result)

        await kit.store.write(record)
        return result

    return await ctx.step("end", look, returns=PlaybookResult)


def verdict(result: PlaybookResult) -> Json:
    """The run's result, if the goal was met. Raises `PlaybookStopped` or `PlaybookNotMet` if not."""
    if result.met:
        return result.model_dump(mode="json")
    failed = "; ".join(f"`{each.command}`: {each.why}" for each in result.unmet)
    if result.stop is not None:
        what = f"criteria are not met: {failed}" if failed else "nothing proves that it was done"
        raise PlaybookStopped(
            f"a limit ended the agent ({result.stop.reason}), and {what}; raise `limits` of the playbook, or look at "
            f"what was done{_where(result.changes)}",
            result.stop.exit_code,
        )
    if broken := result.broken:
        raise PlaybookNotMet(f"{broken}; `podium playbook restore` puts back what was there before")
    times = "" if result.ends == 1 else f" {result.ends} times"
    given_up = f"; it was not asked again: {result.given_up}" if result.given_up else ""
    raise PlaybookNotMet(
        f"the agent ended{times}, and criteria are not met: {failed}{given_up}; look at what was "
        f"done{_where(result.changes)}"
    )


def _met(reply: Reply, criteria: tuple[Criterion, ...]) -> bool:
    """Criteria decide. Where a playbook has none, an agent that was stopped has proved nothing."""
    if not all(each.met for each in criteria):
        return False
    return bool(criteria) or reply.stopped is None


def _broken(changes: Changes, profile: Profile) -> str:
    """What cannot be looked at may have been changed: where places are closed, that counts as much."""
    if changes.trespasses:
        return f"what nobody may change was changed: {', '.join(changes.trespasses[:10])}"
    if changes.unknown and (profile.forbidden_paths or profile.read_only_paths):
        return f"nobody can say whether closed paths were changed ({changes.unknown})"
    return ""


def _where(changes: Changes) -> str:
    if not changes.paths:
        return " (no file was changed)"
    more = "" if len(changes.paths) <= 3 else f" and {len(changes.paths) - 3} more"
    return f" ({', '.join(changes.paths[:3])}{more})"


def _told(result: PlaybookResult) -> PlaybookEnded:
    return PlaybookEnded(
        met=result.met,
        criteria=tuple(each.record() for each in result.criteria),
        stop=result.stop,
        changed=result.changes.paths[:MOST_PATHS],
        trespasses=result.changes.trespasses[:MOST_PATHS],
        unknown=result.changes.unknown,
    )


async def _used(kit: PlaybookKit, run_id: str) -> Usage:
    return await kit.store.read(
        lambda view: usage_counted(
            lambda counter: view.counted(counter, BEGINNING), "run", run_id, "", kit.clock.now()
        )
    )
