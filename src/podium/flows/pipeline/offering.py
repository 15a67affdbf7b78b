"""Skills: what an agent would have others know how to do is active only after a person said yes."""

from __future__ import annotations

from podium.domain.errors import BadInput
from podium.domain.events import NoteTaken, RunRetried
from podium.domain.gating import Refusal
from podium.domain.ids import short_id
from podium.domain.model import Moment, Noun
from podium.flows.pipeline.desk import Desk
from podium.flows.pipeline.payloads import SkillWish
from podium.flows.pipeline.skills import skill_candidate, skill_name
from podium.flows.pipeline.trip import OfferedSkill, Settled
from podium.ports import EventQuery, Step

SKILLS = ".agents/skills"
TAKE = "take-skill"
"""The step that writes an approved skill."""


class _Answer(Noun):
    """What the gate said to a skill."""

    approval_id: str = ""
    deadline: Moment | None = None
    asked_for: bool = False
    """A person had the run go again from this very question, so that it is waited for."""
    written: bool = False
    words: str = ""


async def offer_skill(desk: Desk, name: str, settled: Settled) -> None:
    """Ask a person whether the skill of an accepted answer is to be kept. Nobody waits for that yet."""
    if settled.skill is None:
        return
    offered = _offered(desk, settled.skill)
    if offered is None or any(each.path == offered.path for each in desk.trip.skills):
        return
    answer = await _ask_gate(desk, f"skill:{name}", offered, index=desk.trip.visits[name])
    desk.trip.skills.append(
        offered.model_copy(update={"approval_id": answer.approval_id, "deadline": answer.deadline})
    )
    desk.ctx.note(NoteTaken(text=f"Skill {offered.name!r}: {answer.words}"))


async def taken_skills(desk: Desk) -> list[str]:
    """Paths of the skills that a person approved, written into the worktree."""
    trip, taken = desk.trip, []
    for number, each in enumerate(trip.skills):
        if trip.job.spec.skills == "wait" and each.approval_id:
            await desk.ctx.wait(f"approval:{each.approval_id}", index=number, until=each.deadline)
        answer = await _ask_gate(desk, TAKE, each, index=number)
        if answer.asked_for:
            approval = answer.approval_id
            await desk.ctx.wait(f"approval:{approval}", index=number, until=answer.deadline)
            answer = await _ask_gate(desk, f"{TAKE}-answered", each, index=number)
        if answer.written:
            taken.append(each.path)
        else:
            why = _why_out(desk, answer, number)
            desk.ctx.note(NoteTaken(text=f"Skill {each.name!r} stays out: {why}"))
    return taken


def _why_out(desk: Desk, answer: _Answer, number: int) -> str:
    if not answer.approval_id:
        return answer.words
    step = f"{TAKE}#{number}" if number else TAKE
    return (
        "nobody approved it before the branch went out; "
        f"`podium retry {short_id(desk.trip.run_id)} --from {step}` asks again and waits"
    )


def _offered(desk: Desk, wish: SkillWish) -> OfferedSkill | None:
    name = skill_name(wish.name)
    source = f"{desk.trip.name} ({desk.trip.run_id})"
    try:
        text = skill_candidate(name, wish.description, wish.when, wish.steps, source)
    except BadInput:
        return None
    return OfferedSkill(name=name, path=f"{SKILLS}/{name}/SKILL.md", text=desk.kit.redact(text))


async def _ask_gate(desk: Desk, step_name: str, skill: OfferedSkill, *, index: int) -> _Answer:
    """Write it if that may be done: the call is the same each time, and so is the approval it is bound to."""

    async def work(step: Step) -> _Answer:
        root = desk.trip.workspace.record.path
        toolbox = await desk.kit.toolbox_in(root)
        call = toolbox.normalise(
            "write_file",
            {"path": skill.path, "content": skill.text},
            run_id=step.run_id,
            step_key=step.key,
            index=0,
            role="podium",
            root=root,
        )
        outcome = await toolbox.perform(call)
        if not isinstance(outcome, Refusal):
            return _Answer(written=outcome.ok, words=outcome.error or "written")
        approval = outcome.approval_id or ""
        words = f"waits for `podium approve {approval}`" if approval else outcome.decision.reason
        return _Answer(
            approval_id=approval,
            deadline=outcome.deadline,
            asked_for=bool(approval) and await _retried_from(desk, step.key),
            words=words,
        )

    return await desk.ctx.step(step_name, work, index=index, returns=_Answer)


async def _retried_from(desk: Desk, step_key: str) -> bool:
    """Whether the run's last retry was one from the step that takes this skill, or another skill before it."""
    query = EventQuery(run_id=desk.trip.run_id, types=("run_retried",), limit=10_000)
    events = await desk.kit.purse.store.read(lambda view: view.events(query))
    if not events or not isinstance(events[-1].body, RunRetried):
        return False
    discarded = events[-1].body.discarded_steps
    return step_key in discarded and discarded[0].startswith(TAKE)
