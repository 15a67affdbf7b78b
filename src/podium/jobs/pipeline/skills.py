"""Skills that agents propose; one is active only after a person's approval."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace

from podium.core.decisions import Refusal
from podium.core.errors import BadInput
from podium.core.events import NoteTaken, RunRetried
from podium.core.ids import short_id
from podium.core.model import FrozenModel, UtcDatetime
from podium.jobs.pipeline.agent_text import ascii_of, harmless, one_line
from podium.jobs.pipeline.payloads import SkillProposal
from podium.jobs.pipeline.state import OfferedSkill, Settled, StageContext
from podium.ports import EventQuery, StepContext

MAX_NAME = 64
MAX_DESCRIPTION = 1024
MAX_STEPS = 50
MAX_STEP = 2_000

_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_BETWEEN = re.compile(r"[^a-z0-9]+")


def skill_name(text: str) -> str:
    """A name that the format allows, made of the text's words. Never empty."""
    slug = _BETWEEN.sub("-", ascii_of(text[:500])).strip("-")
    return slug[:MAX_NAME].strip("-") or "skill"


def skill_candidate(
    name: str, description: str, when: str, steps: Sequence[str], source: str
) -> str:
    """The skill as the text of a `SKILL.md`.

    Raises `BadInput` for a name that the format does not allow, and for a skill that says nothing.
    """
    if len(name) > MAX_NAME or not _NAME.fullmatch(name):
        raise BadInput(
            f"{name[:100]!r} is not a valid skill name; use at most {MAX_NAME} lower-case letters and digits "
            f"with single dashes between them, such as {skill_name(name)!r}"
        )
    summary = _description(description, when)
    done = [line for step in steps[:MAX_STEPS] if (line := harmless(step, MAX_STEP))]
    if not summary or not done:
        raise BadInput(f"skill {name!r} needs a description and at least one step")
    body = [
        f"# {name.replace('-', ' ').capitalize()}",
        harmless(description, MAX_DESCRIPTION),
        *([f"## When to use it\n\n{harmless(when, MAX_STEP)}"] if when.strip() else []),
        "## Steps\n\n"
        + "\n".join(f"{number}. {line}" for number, line in enumerate(done, start=1)),
    ]
    return _front_matter(name, summary, source) + "\n\n".join(body) + "\n"


def _description(description: str, when: str) -> str:
    """Describe the skill and when to use it: agents see nothing else before they choose a skill."""
    what = one_line(description, MAX_DESCRIPTION)
    use = one_line(when, MAX_DESCRIPTION)
    if not what or not use or use.casefold() in what.casefold():
        return what
    begins = use if re.match(r"(?i)use (?:this )?when\b", use) else f"Use when {_lower_first(use)}"
    return one_line(f"{what.rstrip('.')}. {begins}", MAX_DESCRIPTION)


def _lower_first(text: str) -> str:
    first = text.split(" ", 1)[0]
    trimmed = re.sub(r"(?i)^when\s+", "", text)
    return trimmed if first.isupper() or trimmed != text else text[:1].lower() + text[1:]


def _front_matter(name: str, description: str, source: str) -> str:
    # JSON's strings are YAML's: no words can end them or become something else than words.
    quoted = json.dumps(description, ensure_ascii=False)
    origin = json.dumps(one_line(source, 200), ensure_ascii=False)
    return f"---\nname: {name}\ndescription: {quoted}\nmetadata:\n  source: {origin}\n---\n\n"


SKILLS = ".agents/skills"
TAKE = "take-skill"
"""The step that writes an approved skill."""


class _Answer(FrozenModel):
    """Decision of the gate about a skill."""

    approval_id: str = ""
    deadline: UtcDatetime | None = None
    asked_for: bool = False
    """A person had the run go again from this very question, so that it is waited for."""
    written: bool = False
    words: str = ""


async def offer_skill(context: StageContext, name: str, settled: Settled) -> StageContext:
    """Ask a person whether the skill of an accepted answer is to be kept. Nobody waits for that yet."""
    if settled.skill is None:
        return context
    offered = _offered(context, settled.skill)
    if offered is None or any(skill.path == offered.path for skill in context.state.skills):
        return context
    answer = await _ask_gate(
        context, f"skill:{name}", offered, index=context.state.stage_runs[name]
    )
    asked = offered.model_copy(
        update={"approval_id": answer.approval_id, "deadline": answer.deadline}
    )
    context.flow.note(NoteTaken(text=f"Skill {offered.name!r}: {answer.words}"))
    state = context.state
    return context.with_state(replace(state, skills=(*state.skills, asked)))


async def taken_skills(context: StageContext) -> list[str]:
    """Paths of the skills that a person approved, written into the worktree."""
    state, taken = context.state, []
    for number, skill in enumerate(state.skills):
        if state.job.spec.skills == "wait" and skill.approval_id:
            await context.flow.wait(
                f"approval:{skill.approval_id}", index=number, until=skill.deadline
            )
        answer = await _ask_gate(context, TAKE, skill, index=number)
        if answer.asked_for:
            approval = answer.approval_id
            await context.flow.wait(f"approval:{approval}", index=number, until=answer.deadline)
            answer = await _ask_gate(context, f"{TAKE}-answered", skill, index=number)
        if answer.written:
            taken.append(skill.path)
        else:
            why = _why_out(context, answer, number)
            context.flow.note(NoteTaken(text=f"Skill {skill.name!r} is not included: {why}"))
    return taken


def _why_out(context: StageContext, answer: _Answer, number: int) -> str:
    if not answer.approval_id:
        return answer.words
    step = f"{TAKE}#{number}" if number else TAKE
    return (
        "it was not approved before the branch was delivered; to ask again and wait, run "
        f"`podium retry {short_id(context.state.run_id)} --from {step}`"
    )


def _offered(context: StageContext, proposal: SkillProposal) -> OfferedSkill | None:
    name = skill_name(proposal.name)
    source = f"{context.state.name} ({context.state.run_id})"
    try:
        text = skill_candidate(name, proposal.description, proposal.when, proposal.steps, source)
    except BadInput:
        return None
    return OfferedSkill(name=name, path=f"{SKILLS}/{name}/SKILL.md", text=context.deps.redact(text))


async def _ask_gate(
    context: StageContext, step_name: str, skill: OfferedSkill, *, index: int
) -> _Answer:
    """Write it if that may be done: the call is the same each time, and so is the approval it is bound to."""

    async def work(step: StepContext) -> _Answer:
        root = context.state.workspace.record.path
        toolbox = await context.deps.toolbox_in(root)
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
        reason = (
            f"needs approval: `podium approve {approval}`" if approval else outcome.decision.reason
        )
        return _Answer(
            approval_id=approval,
            deadline=outcome.deadline,
            asked_for=bool(approval) and await _retried_from(context, step.key),
            words=reason,
        )

    return await context.flow.step(step_name, work, index=index, returns=_Answer)


async def _retried_from(context: StageContext, step_key: str) -> bool:
    """True when the run's last retry was from the step that takes this skill, or an earlier one."""
    query = EventQuery(run_id=context.state.run_id, types=("run_retried",), limit=10_000)
    events = await context.deps.budget.store.read(lambda view: view.events(query))
    if not events or not isinstance(events[-1].body, RunRetried):
        return False
    discarded = events[-1].body.discarded_steps
    return step_key in discarded and discarded[0].startswith(TAKE)
