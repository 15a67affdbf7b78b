"""Skills: what an agent would have others know how to do is active only after a person said yes."""

from __future__ import annotations

from podium.domain.errors import BadInput
from podium.domain.events import NoteTaken
from podium.domain.gating import Refusal
from podium.domain.model import Moment, Noun
from podium.flows.pipeline.desk import Desk
from podium.flows.pipeline.payloads import SkillWish
from podium.flows.pipeline.skills import skill_candidate, skill_name
from podium.flows.pipeline.trip import OfferedSkill, Settled
from podium.ports import Step

SKILLS = ".agents/skills"


class _Answer(Noun):
    """What the gate said to a skill."""

    approval_id: str = ""
    deadline: Moment | None = None
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
        answer = await _ask_gate(desk, "take-skill", each, index=number)
        if answer.written:
            taken.append(each.path)
        else:
            desk.ctx.note(NoteTaken(text=f"Skill {each.name!r} stays out: {answer.words}"))
    return taken


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
        return _Answer(approval_id=approval, deadline=outcome.deadline, words=words)

    return await desk.ctx.step(step_name, work, index=index, returns=_Answer)
