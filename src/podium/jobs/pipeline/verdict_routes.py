"""Routing of verdicts: which stage comes next, how often, and when a person has to decide."""

from __future__ import annotations

from dataclasses import replace

from podium.core.events import NoteTaken
from podium.jobs.pipeline.agent_text import in_code, shortened
from podium.jobs.pipeline.branch_change import why_not_small
from podium.jobs.pipeline.findings import Finding, findings_of, repeats
from podium.jobs.pipeline.spec import BACK, DELIVER, FORWARD, HUMAN, PipelineSpec
from podium.jobs.pipeline.state import RED, SENT_BACK, Settled, StageContext, ask_a_person
from podium.render.text import counted

_MAX_LISTED = 12
_MAX_OTHER = 2_000
_BY_PODIUM = {
    SENT_BACK: "Podium rejected the answer of {name}",
    RED: "the checks failed after {name}",
}


async def next_stage(
    context: StageContext, name: str, settled: Settled
) -> tuple[StageContext, str]:
    """The stage that comes next. A loop that does not converge, or lasts too long, waits for a person."""
    state, stage, verdict = context.state, context.stage(name), settled.verdict
    by_itself = verdict in (SENT_BACK, RED)
    target = stage.next.get(verdict, name) if by_itself else stage.next[verdict]
    if verdict in FORWARD:
        # Until a judge is content both sides of a disagreement are told what a person said.
        guidance = () if stage.does in ("review", "audit") else state.guidance
        left_open = {edge: texts for edge, texts in state.open.items() if edge[0] != name}
        state = replace(state, feedback="", open=left_open, guidance=guidance)
        context, target = await _made_up_for(context.with_state(state), name, target)
        target = _proved(context, _past_skipped(context, target))
        return context, _resolved(context, name, target)
    edge = (name, verdict)
    findings = findings_of(settled.words)
    state = replace(
        state,
        after_review=("", ""),
        feedback=settled.words,
        taken={**state.taken, edge: state.taken.get(edge, 0) + 1},
        open={**state.open, edge: _with_earlier(state.open.get(edge, ()), settled)},
    )
    context = context.with_state(state)
    reason = _why_stuck(context, name, settled, findings, target)
    context = context.with_state(
        replace(state, last_findings={**state.last_findings, edge: findings})
    )
    if reason:
        context = await ask_a_person(context, name, reason)
        taken = {edge: times for edge, times in state.taken.items() if edge[0] != name}
        context = context.with_state(replace(context.state, taken=taken, last_findings={}))
    return context, _resolved(context, name, BACK if target == HUMAN else target)


async def _made_up_for(context: StageContext, name: str, target: str) -> tuple[StageContext, str]:
    """Next stage: a review that was skipped and that the change turned out to need, or the one after it."""
    state, spec = context.state, context.state.job.spec
    mode, (after, producer) = spec.mode(state.job.mode), state.after_review
    if after and name in mode.skip:
        state = replace(state, after_review=("", ""), producer=producer)
        return context.with_state(state), after
    if context.stage(name).does != "work" or state.too_large or not mode.skip:
        return context, target
    too_large = await why_not_small(context, name, mode)
    if not too_large:
        return context, target
    context.flow.note(
        NoteTaken(text=f"{too_large}, so {', '.join(mode.skip)} will not be skipped.")
    )
    planner = next(
        (candidate for candidate, stage in spec.stages.items() if stage.does == "plan"), name
    )
    state = replace(
        state, too_large=too_large, after_review=(target, state.producer), producer=planner
    )
    return context.with_state(state), mode.skip[0]


def _past_skipped(context: StageContext, target: str) -> str:
    """The next stage that is worth a visit."""
    state, spec = context.state, context.state.job.spec
    mode = spec.mode(state.job.mode)
    unmoved: tuple[str, ...] = ()
    if not (state.merged_onto or state.is_unreviewed) and spec.unmoved_base == "deliver":
        unmoved = tuple(review for review in spec.merge_reviews if review not in mode.always)
    skipped = (*unmoved, *(() if state.too_large else mode.skip))
    while target in skipped:
        if target in unmoved:
            base = state.remote_base.name or state.job.base
            context.flow.note(NoteTaken(text=f"{base} has no new commits; skipping {target}."))
        forward = spec.stages[target].next
        target = next(forward[verdict] for verdict in forward if verdict in FORWARD)
    return target


def _with_earlier(earlier: tuple[str, ...], settled: Settled) -> tuple[str, ...]:
    """A judge says all anew each time. Of what the supervisor sent back, one thing can hide another."""
    if settled.verdict != SENT_BACK:
        return (settled.words,) if settled.words.strip() else ()
    return tuple(dict.fromkeys((*settled.problems, *earlier)))[:_MAX_LISTED]


def _proved(context: StageContext, target: str) -> str:
    """Nothing goes out that was changed after the checks ran: it is checked and looked at once more."""
    again = integration_of(context.state.job.spec)
    return again if target == DELIVER and context.state.is_stale and again else target


def integration_of(spec: PipelineSpec) -> str:
    """The stage that merges the base. Empty: there is none."""
    return next((name for name, stage in spec.stages.items() if stage.does == "integrate"), "")


def _resolved(context: StageContext, name: str, target: str) -> str:
    return (context.state.producer or name) if target == BACK else target


def _why_stuck(
    context: StageContext, name: str, settled: Settled, findings: tuple[Finding, ...], target: str
) -> str:
    """Reason to ask a person; empty when the run can continue by itself."""
    state, verdict = context.state, settled.verdict
    times = state.taken[name, verdict]
    most = context.stage(name).most.get(verdict, state.job.spec.rounds)
    disputed = [f"- disputed check: {shortened(text, _MAX_OTHER)}" for text in state.disputed]
    listed = "\n".join([*(f"- {finding.text}" for finding in findings), *disputed[:_MAX_LISTED]])
    if settled.no_plan:
        return (
            f"{name} found nothing to plan (`podium cancel {state.run_id}` ends the run):\n{listed}"
        )
    if _only_disputes(context, settled):
        return f"{name} disputes a check (`checks:` in podium.yaml decides):\n{listed}"
    if target == HUMAN:
        return f"{name} returned {verdict}:\n{listed}"
    who = _BY_PODIUM.get(verdict, "{name} returned {verdict}").format(name=name, verdict=verdict)
    if times > most:
        return "\n".join([f"{who} {counted(times, 'time')} (limit {most})", *disputed])
    if repeats(state.last_findings.get((name, verdict), ()), findings):
        return "\n".join([f"{who} again, with no new findings", *disputed])
    return ""


def _only_disputes(context: StageContext, settled: Settled) -> bool:
    """True when only disputed checks are open that this run did not break: another round would change nothing."""
    if not settled.disputed or settled.rules < 1:
        return False
    if settled.verdict == SENT_BACK:
        return settled.gives_up
    return all(
        (check.red_before or not check.before)
        and any(text.startswith(f"{in_code(check.command)}:") for text in settled.disputed)
        for check in context.state.evidence
        if not check.passed
    )
