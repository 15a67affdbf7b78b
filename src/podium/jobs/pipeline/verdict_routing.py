"""Routing of verdicts: which stage comes next, how often, and when a person has to decide."""

from __future__ import annotations

from collections.abc import Iterator

from podium.core.events import NoteTaken
from podium.jobs.pipeline.branch_change import why_not_small
from podium.jobs.pipeline.findings import Finding, findings_of, repeats
from podium.jobs.pipeline.plain_text import in_code, shortened
from podium.jobs.pipeline.spec import BACK, DELIVER, FORWARD, HUMAN, PipelineSpec
from podium.jobs.pipeline.state import RED, SENT_BACK, Desk, Settled, ask_a_person

_MAX_LISTED = 12
_MAX_OTHER = 2_000
_BY_PODIUM = {
    SENT_BACK: "Podium sent the answer of {name} back",
    RED: "the checks failed after {name}",
}


async def next_stage(desk: Desk, name: str, settled: Settled) -> str:
    """The stage that comes next. A loop that does not converge, or lasts too long, waits for a person."""
    trip, stage, verdict = desk.trip, desk.stage(name), settled.verdict
    by_itself = verdict in (SENT_BACK, RED)
    target = stage.next.get(verdict, name) if by_itself else stage.next[verdict]
    if verdict in FORWARD:
        trip.feedback = ""
        _close(desk, name)
        if stage.does in ("review", "audit"):
            # Until then both sides of a disagreement are told what a person said.
            trip.guidance.clear()
        target = await _made_up_for(desk, name, target)
        return _resolved(desk, name, _proved(desk, _past_skipped(desk, target)))
    trip.after_review = ("", "")
    trip.feedback = settled.words
    edge = (name, verdict)
    trip.taken[edge] += 1
    found = findings_of(settled.words)
    trip.open[edge] = _with_earlier(trip.open.get(edge, ()), settled)
    reason = _why_stuck(desk, name, settled, found, target)
    trip.found[edge] = found
    if reason:
        await ask_a_person(desk, name, reason)
        for each in [each for each in trip.taken if each[0] == name]:
            del trip.taken[each]
        trip.found.clear()
    return _resolved(desk, name, BACK if target == HUMAN else target)


async def _made_up_for(desk: Desk, name: str, target: str) -> str:
    """Where this stage leads: to a review that was skipped and that the change turned out to need, or back from it."""
    trip, spec = desk.trip, desk.trip.job.spec
    mode, (after, producer) = spec.mode(trip.job.mode), trip.after_review
    if after and name in mode.skip:
        trip.after_review, trip.producer = ("", ""), producer
        return after
    if desk.stage(name).does != "work" or trip.too_large or not mode.skip:
        return target
    trip.too_large = await why_not_small(desk, name, mode)
    if not trip.too_large:
        return target
    desk.ctx.note(NoteTaken(text=f"{trip.too_large}: {', '.join(mode.skip)} is not skipped."))
    trip.after_review = (target, trip.producer)
    trip.producer = next(
        (each for each, stage in spec.stages.items() if stage.does == "plan"), name
    )
    return mode.skip[0]


def _past_skipped(desk: Desk, target: str) -> str:
    """The next stage that is worth a visit."""
    trip, spec = desk.trip, desk.trip.job.spec
    mode = spec.mode(trip.job.mode)
    unmoved: tuple[str, ...] = ()
    if not (trip.merged_onto or trip.is_unreviewed) and spec.unmoved_base == "deliver":
        unmoved = tuple(each for each in spec.merge_reviews if each not in mode.always)
    skipped = (*unmoved, *(() if trip.too_large else mode.skip))
    while target in skipped:
        if target in unmoved:
            base = trip.remote_base.name or trip.job.base
            desk.ctx.note(NoteTaken(text=f"{base} brought nothing new: no {target} is needed."))
        forward = spec.stages[target].next
        target = next(forward[verdict] for verdict in forward if verdict in FORWARD)
    return target


def _close(desk: Desk, name: str) -> None:
    """What a stage found is settled once it lets the work pass."""
    for edge in [edge for edge in desk.trip.open if edge[0] == name]:
        del desk.trip.open[edge]


def _with_earlier(earlier: tuple[str, ...], settled: Settled) -> tuple[str, ...]:
    """A judge says all anew each time. Of what the supervisor sent back, one thing can hide another."""
    if settled.verdict != SENT_BACK:
        return (settled.words,) if settled.words.strip() else ()
    return tuple(dict.fromkeys((*settled.problems, *earlier)))[:_MAX_LISTED]


def _proved(desk: Desk, target: str) -> str:
    """Nothing goes out that was changed after the checks ran: it is checked and looked at once more."""
    again = integration_of(desk.trip.job.spec)
    return again if target == DELIVER and desk.trip.is_stale and again else target


def integration_of(spec: PipelineSpec) -> str:
    """The stage that merges the base. Empty: there is none."""
    return next((name for name, stage in spec.stages.items() if stage.does == "integrate"), "")


def _resolved(desk: Desk, name: str, target: str) -> str:
    return (desk.trip.producer or name) if target == BACK else target


def _why_stuck(
    desk: Desk, name: str, settled: Settled, found: tuple[Finding, ...], target: str
) -> str:
    """Why it makes no sense to go on alone; empty when it does."""
    trip, verdict = desk.trip, settled.verdict
    times = trip.taken[name, verdict]
    most = desk.stage(name).most.get(verdict, trip.job.spec.rounds)
    listed = "\n".join([*(f"- {each.text}" for each in found[:_MAX_LISTED]), *_others(desk)])
    if settled.no_plan:
        return (
            f"{name} found nothing to plan (`podium cancel {trip.run_id}` ends the run):\n{listed}"
        )
    if _only_disputes(desk, settled):
        return f"{name} disputes a check (`checks:` in podium.yaml decides):\n{listed}"
    if target == HUMAN:
        return f"{name} said {verdict}:\n{listed}"
    who = _BY_PODIUM.get(verdict, "{name} said {verdict}").format(name=name, verdict=verdict)
    if times > most:
        return f"{who} {times} times, {most} are allowed. Open findings:\n{listed}"
    if repeats(trip.found.get((name, verdict), ()), found):
        return f"{who} again, with nothing new. Open findings:\n{listed}"
    return ""


def _only_disputes(desk: Desk, settled: Settled) -> bool:
    """Whether nothing is open but disputed checks that no work of this run broke: another round would change nothing."""
    if not settled.disputed or settled.rules < 1:
        return False
    if settled.verdict == SENT_BACK:
        return settled.gives_up
    return all(
        (check.red_before or not check.before)
        and any(text.startswith(f"{in_code(check.command)}:") for text in settled.disputed)
        for check in desk.trip.evidence
        if not check.passed
    )


def _others(desk: Desk) -> Iterator[str]:
    """What is open beside the last answer's findings, each on a line that says where it is from."""
    for text in desk.trip.open_before()[:_MAX_LISTED]:
        yield f"- {shortened(text, _MAX_OTHER)}"
    for text in desk.trip.disputed[:_MAX_LISTED]:
        yield f"- a check is disputed by who did the work: {shortened(text, _MAX_OTHER)}"
