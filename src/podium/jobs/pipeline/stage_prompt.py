"""Prompt of a stage: its template, inputs, people's notes and the project's memory."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from podium.agents.turn_step import ANSWERED, ASK_HUMAN
from podium.app.checks import all_passed
from podium.core.errors import WorkspaceTampered
from podium.core.model import FrozenModel
from podium.jobs.pipeline.agent_text import fenced, in_code, shortened
from podium.jobs.pipeline.base_report import base_prompt
from podium.jobs.pipeline.branch_change import sections_of
from podium.jobs.pipeline.branch_documents import results_line
from podium.jobs.pipeline.fix_proof import proof_prompt
from podium.jobs.pipeline.issue import task_text
from podium.jobs.pipeline.memory import relevant
from podium.jobs.pipeline.quoted_files import (
    HumanNote,
    excerpts,
    named_files,
    notes_of,
    relevant_conventions,
    resolved,
)
from podium.jobs.pipeline.spec import NONCE_SLOT, PLACEHOLDER, Stage
from podium.jobs.pipeline.state import INPUTS, MEMORY, Remark, StageContext
from podium.ports import StepContext, StoreView
from podium.render.text import counted

_INLINE_CHARACTERS = 20_000
_DOCUMENT_CHARACTERS = 12_000
"""Of one document in a prompt; the rest is in its file."""
_SHORT_CHARACTERS = 4_000
"""Of a document that is told beside what a turn is about."""
_MAX_OPEN_CHARACTERS = 16_000
_MAX_COMMITS = 30
_MAX_PATHS = 100
_FILES_CHARACTERS = 16_000
"""Of all source files in one prompt."""
_EXCERPT_CHARACTERS = 8_000
"""Of one file that is too long to be shown whole, in the lines that the plan names."""
_MAX_NAMED_FILES = 20
_REMOVED = re.compile(r"^diff --git a/(.+) b/.+\ndeleted file mode", re.MULTILINE)
_JUDGES = ("review", "audit")
_QUESTION_CHARACTERS = 500
_MAX_ANSWERS = 20

Kind = Literal[
    "task", "documents", "files", "findings", "diff", "evidence", "people", "conventions", "memory"
]


class Brief(FrozenModel):
    """The words for a turn, and where some of them came from."""

    prompt: str
    notes: tuple[HumanNote, ...] = ()
    remembered: tuple[str, ...] = ()
    sizes: dict[str, int] = Field(default_factory=dict)
    """Characters by part: `instructions`, and the kinds of input."""


@dataclass(frozen=True)
class _Input:
    kind: Kind
    text: str


async def build_brief(context: StageContext, name: str, stage: Stage, number: int) -> Brief:
    """Put the prompt together, remembered as a step: files and people may say something else later."""

    async def work(step: StepContext) -> Brief:
        notes = await _notes(context, stage)
        remembered = await _remembered(context)
        answers = await _answers(context)
        inputs = [
            *([] if "task" in stage.gives else answers),
            *[part async for part in _inputs(context, name, stage, number, answers)],
            *_open_findings(context, name if stage.does in _JUDGES else ""),
            *_base(context, stage),
            *_people(context, notes),
            *_conventions(context),
            *_memory(remembered),
        ]
        today = f"{context.deps.clock.now():%Y-%m-%d}"
        head = f"Stage: {name}, round {number}. Today is {today}. You work in a git worktree on branch {in_code(context.state.branch)}."
        material = "\n\n".join([head, *(part.text for part in inputs)])
        prompt = _filled(context, name, stage, number, material)
        sizes = Counter[str]()
        for part in inputs:
            sizes[part.kind] += len(part.text)
        sizes["instructions"] = len(prompt) - sizes.total()
        lessons = tuple(f"{lesson} ({why})" for lesson, why in remembered)
        return Brief(prompt=prompt, notes=notes, remembered=lessons, sizes=dict(sizes))

    return await context.flow.step(f"brief:{name}", work, index=number, returns=Brief)


async def build_triage_brief(context: StageContext, remark: Remark) -> Brief:
    """The prompt for the triager, with the remark and what it is about; remembered as a step."""

    async def work(step: StepContext) -> Brief:
        task, inputs = fenced(context.state.job.task), await _triage_inputs(context, remark)
        template = context.state.job.prompts["triage"]
        return Brief(prompt=filled(template, {"task": task, "inputs": inputs}))

    return await context.flow.step(
        f"brief:triage-{remark.stage}", work, index=remark.round, returns=Brief
    )


async def _triage_inputs(context: StageContext, remark: Remark) -> str:
    state = context.state
    parts = [
        f"Stage: triage, round {remark.round}. You work in a git worktree on branch {in_code(state.branch)}.",
        task_text(state.job.task, state.job.issue),
        *(answer.text for answer in await _answers(context)),
    ]
    if state.plan:
        parts.append((await _document(context, "The plan", state.plan, _SHORT_CHARACTERS)).text)
    changed = dict(sections_of(await state.workspace.diff(state.base), state.own_documents))
    parts.append(
        f"Files that the branch has changed so far, without Podium's own:\n{_paths(changed)}"
    )
    wrote = f" It wrote {remark.document}." if remark.document else ""
    parts.append(
        f"The stage {remark.stage} (role {remark.role}, round {remark.round}) ended with "
        f"{remark.verdict}.{wrote} Its remark:\n{fenced(remark.text)}"
    )
    return "\n\n".join(parts)


def _filled(context: StageContext, name: str, stage: Stage, number: int, inputs: str) -> str:
    state, checks = context.state, context.checks
    values = {
        "inputs": inputs,
        "task": fenced(state.job.task),
        "document": state.document_of(stage, number),
        "verification": state.document_of(stage, number),
        "feat": state.feat,
        "round": str(number),
        "checks": "\n".join(f"* `{check.command}`" for check in checks)
        or "* none were found; the tests that this work adds become the check",
    }
    template = state.job.prompt(name)
    prompt = filled(template, values)
    # A project's own prompt may have left them out.
    has_inputs = "inputs" in PLACEHOLDER.findall(template)
    return prompt if has_inputs else f"{prompt}\n\n{_without_slots(inputs)}"


def filled(template: str, values: Mapping[str, str]) -> str:
    """The prompt with these values. Only slots of the template itself get the nonce, and none of the material."""
    slots = {name: _without_slots(value) for name, value in values.items()} | {"nonce": NONCE_SLOT}
    return PLACEHOLDER.sub(lambda match: slots.get(match[1], match[0]), template)


def _without_slots(text: str) -> str:
    return text.replace(NONCE_SLOT, "{{ nonce }}")


async def _inputs(
    context: StageContext, name: str, stage: Stage, number: int, answers: Sequence[_Input]
) -> AsyncIterator[_Input]:
    state = context.state
    for kind in stage.gives:
        match kind:
            case "task":
                yield _Input("task", task_text(state.job.task, state.job.issue))
                for answer in answers:
                    yield answer
            case "reports":
                for path in state.reports:
                    is_earlier = stage.does == "report" and path != state.document_of(stage, number)
                    title = (
                        "An earlier report. Start from its open question"
                        if is_earlier
                        else "Report"
                    )
                    yield await _document(context, title, path)
            case "plan" if state.plan:
                yield await _document(context, "The plan", state.plan)
            case "files":
                async for part in _files(context):
                    yield part
            case "verification" if state.verification:
                if stage.does == "work":
                    title, characters = "Your verification report so far", _SHORT_CHARACTERS
                else:
                    title, characters = "The developer's verification report", _DOCUMENT_CHARACTERS
                yield await _document(context, title, state.verification, characters)
            case "review":
                async for part in _review(context, name, stage):
                    yield part
            case "feedback" if state.feedback:
                yield _Input(
                    "findings",
                    f"{_findings_title(stage, number)}:\n{fenced(state.feedback)}",
                )
            case "committed" if number > 1:
                async for part in _committed(context):
                    yield part
            case "evidence" if state.evidence:
                yield _Input("evidence", _evidence(context))
            case "conflicts" if state.conflicts:
                listed = "\n".join(f"* {in_code(path)}" for path in state.conflicts)
                yield _Input(
                    "diff",
                    f"Files in conflict:\n{listed}\n\nGit output:\n{fenced(state.conflict_text)}",
                )
            case "diff":
                yield _Input("diff", await _diff(context, stage, number))
            case "merged":
                yield _Input("diff", await _merged(context, stage, number))


async def _answers(context: StageContext) -> list[_Input]:
    """Answers of people to questions of this run's agents, for every role: they change what the task asks for."""
    parts = [
        f"The {role} asked: {in_code(question, _QUESTION_CHARACTERS)}\nA person answered:\n{fenced(answer)}"
        for role, question, answer in await context.deps.budget.store.read(
            lambda view: _questions(view, context.state.run_id)
        )
    ]
    if not parts:
        return []
    title = "Questions about the task that a person answered. The answers belong to the task, and a later one overrides an earlier one"
    return [_Input("people", "\n\n".join([f"{title}:", *parts]))]


def _questions(view: StoreView, run_id: str) -> list[tuple[str, str, str]]:
    """Role, question and answer of the last questions, the oldest first."""
    answered = [
        approval
        for approval in view.approvals(run_id=run_id, statuses=ANSWERED)
        if approval.tool == ASK_HUMAN and approval.said
    ]
    rows = []
    for approval in reversed(answered[:_MAX_ANSWERS]):
        call = view.call(approval.call_key)
        role = call.role.replace("_", " ") if call is not None and call.role else "agent"
        rows.append((role, str(approval.arguments.get("question", "")), approval.said))
    return rows


def _findings_title(stage: Stage, number: int) -> str:
    attempt = "about your last attempt" if number > 1 else "from an earlier stage"
    match stage.does:
        case "edit":
            return "The remark about the documentation"
        case "plan" if number > 1:
            return "Findings about your last plan. Improve that plan and resolve each one"
        case "work" | "integrate":
            return f"Findings {attempt}. Fix each one, or show that it is not a problem"
    return f"Findings {attempt}. Resolve each one"


async def _document(
    context: StageContext, title: str, path: str, characters: int = _DOCUMENT_CHARACTERS
) -> _Input:
    """A document in the prompt itself: asking for it would cost a request that sends everything again."""
    text = (await _read(context, path) or "").strip()
    if not text:
        return _Input("documents", f"{title}: {path}")
    excerpt = shortened(text, characters)
    more = "" if excerpt == text else f", the first {characters} of {len(text)} characters"
    return _Input("documents", f"{title} ({path}{more}):\n{fenced(excerpt, 'markdown')}")


async def _files(context: StageContext) -> AsyncIterator[_Input]:
    """The files that plan and reports name, as they are now, as far as there is room."""
    state = context.state
    plan = await _read(context, state.plan) or "" if state.plan else ""
    reports = [await _read(context, path) or "" for path in state.reports]
    named = [file for file in named_files(plan, reports) if file.path not in state.own_documents]
    if not named:
        return
    specs = [spec for file in named[:_MAX_NAMED_FILES] for spec in file.pathspecs]
    tracked = await state.workspace.tracked(*specs)
    sections, left_out, left = [], [], _FILES_CHARACTERS
    for file in resolved(named, tracked):
        content = await _read(context, file.path)
        if content is None or "\0" in content:
            continue
        if len(content) <= min(left, file.whole_characters):
            left -= len(content)
            sections.append(f"{file.path}:\n{fenced(content)}")
            continue
        lines = content.count("\n")
        parts = excerpts(content, file.ranges, min(left, _EXCERPT_CHARACTERS))
        for first, text in parts:
            left -= len(text)
            last = first + len(text.splitlines()) - 1
            sections.append(f"{file.path}, lines {first} to {last} of {lines}:\n{fenced(text)}")
        if not parts:
            left_out.append(f"{file.path} ({counted(lines, 'line')})")
    if left_out:
        sections.append(f"Also named, but too long to show here: {', '.join(left_out)}")
    if sections:
        yield _Input(
            "files",
            "\n\n".join(
                ["Files named above, as they are now; you need not read them again:", *sections]
            ),
        )


async def _read(context: StageContext, path: str) -> str | None:
    try:
        return await context.state.workspace.read(path)
    except WorkspaceTampered:
        return None


async def _review(context: StageContext, name: str, stage: Stage) -> AsyncIterator[_Input]:
    """Judges get their own last review; who is judged has what it says in the findings."""
    state = context.state
    if stage.does in _JUDGES:
        if path := state.reviews.get(name):
            title = "Your review of the last round. Check whether each finding is resolved, and do not reopen those that are"
            yield await _document(context, title, path)
    elif state.review and state.feedback:
        yield _Input("documents", f"The last review: {state.review}")
    elif state.review:
        yield await _document(context, "The last review", state.review)


async def _committed(context: StageContext) -> AsyncIterator[_Input]:
    state = context.state
    commits = [
        commit
        for commit in await state.workspace.history(state.base)
        if "Podium-Run" not in commit.trailers
    ]
    if not commits:
        return
    listed = "\n".join(f"{commit.id[:12]} {commit.subject}" for commit in commits[-_MAX_COMMITS:])
    title = "Commits of earlier rounds. Keep them and change only what the findings ask for"
    yield _Input("documents", f"{title}:\n{fenced(listed)}")


def _evidence(context: StageContext) -> str:
    state = context.state
    green = "all passed" if all_passed(state.evidence) else "NOT all passed"
    return (
        f"Checks that Podium ran ({green}): {results_line(state.evidence)}. "
        f"Their output: {state.evidence_path}"
    )


def _base(context: StageContext, stage: Stage) -> Iterator[_Input]:
    if stage.does == "edit":
        return
    if text := base_prompt(context, with_output=stage.does not in _JUDGES):
        yield _Input("evidence", text)
    if stage.does in ("work", "audit") and (
        text := proof_prompt(context, works=stage.does == "work")
    ):
        yield _Input("evidence", text)


def _open_findings(context: StageContext, judge: str) -> Iterator[_Input]:
    # A judge has its own findings before it, in its last review.
    if before := context.state.open_before(judge):
        listed = shortened("\n".join(f"- {text}" for text in before), _MAX_OPEN_CHARACTERS)
        title = "Findings of earlier rounds that may still be open"
        yield _Input("findings", f"{title}:\n{fenced(listed)}")


async def _diff(context: StageContext, stage: Stage, number: int) -> str:
    """The change, in the prompt when it is short and as a file when not."""
    state = context.state
    sections = list(sections_of(await state.workspace.diff(state.base), state.own_documents))
    text = "".join(section for _, section in sections)
    gone = ", ".join(in_code(path) for path in _REMOVED.findall(text)[:50])
    removed = f"\n\nFiles that the change removes: {gone}" if gone else ""
    title = (
        f"The change (`git diff {state.base[:12]}...HEAD`, without the pipeline's own documents)"
    )
    return f"{await _patch(context, stage, number, title, text)}{removed}"


async def _merged(context: StageContext, stage: Stage, number: int) -> str:
    """Changes that came in from the base, and of both sides only the files that both have changed.

    A change that nobody has audited is shown whole.
    """
    state = context.state
    base = in_code(state.remote_base.name or state.job.base)
    if not state.merged_onto:
        nothing = f"Nothing was merged in: {base} has no new commits."
        return "\n\n".join([_scope(context), nothing, await _diff(context, stage, number)])
    ours = dict(sections_of(await state.workspace.diff(state.base), state.own_documents))
    theirs = dict(sections_of(await state.workspace.diff(state.merged_onto), state.own_documents))
    both = [path for path in theirs if path in ours]
    parts = [
        _scope(context),
        f"Files changed on {base}:\n{_paths(theirs)}",
        f"Files changed on this branch:\n{_paths(ours)}",
    ]
    if both:
        parts.append(
            await _patch(
                context,
                stage,
                number,
                "Changes on the base, in files that both sides changed",
                "".join(map(theirs.__getitem__, both)),
                "base",
            )
        )
        parts.append(
            await _patch(
                context,
                stage,
                number,
                "Changes on this branch, in the same files",
                "".join(map(ours.__getitem__, both)),
            )
        )
    else:
        parts.append("No file was changed on both sides.")
    if not _was_audited(context):
        parts.append(await _diff(context, stage, number))
    return "\n\n".join(parts)


def _scope(context: StageContext) -> str:
    if _was_audited(context):
        return "The change itself has already been reviewed: judge only how it works together with the base."
    return "The change itself has not been reviewed yet: judge it too, against the task and the plan, and check that its tests would fail without it."


def _was_audited(context: StageContext) -> bool:
    """True when an audit other than one of a merge has seen the code."""
    spec = context.state.job.spec
    return any(
        spec.stages[name].does == "audit" and name not in spec.merge_reviews
        for name in context.state.reviews
        if name in spec.stages
    )


def _paths(sections: Mapping[str, str]) -> str:
    listed = [f"* {in_code(path)}" for path in sections]
    more = [f"* and {len(listed) - _MAX_PATHS} more"] if len(listed) > _MAX_PATHS else []
    return "\n".join([*listed[:_MAX_PATHS], *more]) or "* none"


async def _patch(
    context: StageContext, stage: Stage, number: int, title: str, text: str, side: str = "diff"
) -> str:
    if len(text) <= _INLINE_CHARACTERS:
        return f"{title}:\n{fenced(text, 'diff')}"
    path = f"{INPUTS}/{side}_{stage.role}_{number}.patch"
    await context.state.workspace.write({f"{INPUTS}/.gitignore": "*\n", path: text})
    return f"{title}, {counted(len(text.splitlines()), 'line')}, as a file: {path}"


async def _notes(context: StageContext, stage: Stage) -> tuple[HumanNote, ...]:
    roles = {stage.role for stage in context.state.job.spec.stages.values()}
    notes = notes_of(await context.deps.human_notes(), roles=roles)
    return tuple(note for note in notes if note.role in ("", stage.role))


def _people(context: StageContext, notes: tuple[HumanNote, ...]) -> Iterator[_Input]:
    if notes:
        listed = "\n".join(f"* {note.text}" for note in notes)
        yield _Input("people", f"Notes from the project's owner:\n{listed}")
    for text in context.state.guidance:
        yield _Input("people", f"A person's note on this run:\n{fenced(text)}")


def _conventions(context: StageContext) -> Iterator[_Input]:
    for text in relevant_conventions(context.baseline.conventions, context.state.changed):
        yield _Input("conventions", text)


async def _remembered(context: StageContext) -> list[tuple[str, str]]:
    state = context.state
    text = await state.workspace.read(MEMORY)
    if not text:
        return []
    chosen = relevant(
        text,
        task=state.job.task,
        paths=sorted(context.state.changed),
        day=context.deps.clock.now().date(),
        most_tokens=state.job.spec.memory_tokens,
    )
    return [(entry.lesson, entry.why) for entry in chosen]


def _memory(remembered: list[tuple[str, str]]) -> Iterator[_Input]:
    if remembered:
        listed = "\n".join(f"* {lesson}" for lesson, _ in remembered)
        yield _Input("memory", f"What earlier agents learned here:\n{listed}")
