"""What a role is told: its prompt, its inputs, what people wrote down, and what is remembered."""

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
from podium.jobs.pipeline.branch_change import sections_of
from podium.jobs.pipeline.check_text import in_words
from podium.jobs.pipeline.memory import relevant
from podium.jobs.pipeline.plain_text import fenced, in_code, shortened
from podium.jobs.pipeline.quoted_files import (
    HumanNote,
    conventions_told,
    excerpts,
    named_files,
    notes_of,
    resolved,
)
from podium.jobs.pipeline.spec import Stage
from podium.jobs.pipeline.state import MEMORY, Desk, Remark
from podium.ports import StepContext, StoreView

INPUTS = ".podium-inputs"
"""A folder that ignores itself: what is too long for a prompt and belongs in no commit."""
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
PLACEHOLDER = re.compile(r"\{\{\s*(\w+)\s*\}\}")
NONCE_SLOT = "{{nonce}}"
"""Stands in a prompt's examples for the word that proves an answer to be of its turn."""
PLACEHOLDERS = ("inputs", "task", "document", "verification", "feat", "round", "checks", "nonce")
"""What a prompt may leave to be filled in."""
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


async def brief(desk: Desk, name: str, stage: Stage, number: int) -> Brief:
    """Put the prompt together, remembered as a step: files and people may say something else later."""

    async def work(step: StepContext) -> Brief:
        notes = await _notes(desk, stage)
        remembered = await _remembered(desk)
        answers = await _answers(desk)
        inputs = [
            *([] if "task" in stage.gives else answers),
            *[part async for part in _inputs(desk, name, stage, number, answers)],
            *_open_findings(desk, name if stage.does in _JUDGES else ""),
            *_people(desk, notes),
            *_conventions(desk),
            *_memory(remembered),
        ]
        today = f"{desk.kit.clock.now():%Y-%m-%d}"
        head = f"Stage: {name}, round {number}. Today is {today}. You work in a git worktree on branch {in_code(desk.trip.branch)}."
        told = "\n\n".join([head, *(each.text for each in inputs)])
        words = _filled(desk, name, stage, number, told)
        sizes = Counter[str]()
        for each in inputs:
            sizes[each.kind] += len(each.text)
        sizes["instructions"] = len(words) - sizes.total()
        lessons = tuple(f"{lesson} ({why})" for lesson, why in remembered)
        return Brief(prompt=words, notes=notes, remembered=lessons, sizes=dict(sizes))

    return await desk.ctx.step(f"brief:{name}", work, index=number, returns=Brief)


async def brief_triage(desk: Desk, remark: Remark) -> Brief:
    """The prompt for the triager, with the remark and what it is about; remembered as a step."""

    async def work(step: StepContext) -> Brief:
        task, inputs = fenced(desk.trip.job.task), await _triage_inputs(desk, remark)
        template = desk.trip.job.prompts["triage"]
        return Brief(prompt=filled(template, {"task": task, "inputs": inputs}))

    return await desk.ctx.step(
        f"brief:triage-{remark.stage}", work, index=remark.round, returns=Brief
    )


async def _triage_inputs(desk: Desk, remark: Remark) -> str:
    trip = desk.trip
    parts = [
        f"Stage: triage, round {remark.round}. You work in a git worktree on branch {in_code(trip.branch)}.",
        f"The task, in the user's words:\n{fenced(trip.job.task)}",
        *(answer.text for answer in await _answers(desk)),
    ]
    if trip.plan:
        parts.append((await _document(desk, "The plan", trip.plan, _SHORT_CHARACTERS)).text)
    changed = dict(sections_of(await trip.workspace.diff(trip.base), trip.own_documents))
    parts.append(
        f"Files that the branch has changed so far, without Podium's own:\n{_paths(changed)}"
    )
    wrote = f" It wrote {remark.document}." if remark.document else ""
    parts.append(
        f"The stage {remark.stage} (role {remark.role}, round {remark.round}) ended with "
        f"{remark.verdict}.{wrote} Its remark:\n{fenced(remark.text)}"
    )
    return "\n\n".join(parts)


def _filled(desk: Desk, name: str, stage: Stage, number: int, inputs: str) -> str:
    trip, checks = desk.trip, desk.checks
    values = {
        "inputs": inputs,
        "task": fenced(trip.job.task),
        "document": trip.document_of(stage, number),
        "verification": trip.document_of(stage, number),
        "feat": trip.feat,
        "round": str(number),
        "checks": "\n".join(f"* `{each.command}`" for each in checks)
        or "* none were found: the tests that the work adds become the check",
    }
    template = trip.job.prompt(name)
    words = filled(template, values)
    # A project's own prompt may have left them out.
    has_inputs = "inputs" in PLACEHOLDER.findall(template)
    return words if has_inputs else f"{words}\n\n{_without_slots(inputs)}"


def filled(template: str, values: Mapping[str, str]) -> str:
    """The prompt with these values. Only slots of the template itself get the nonce, and none of the material."""
    known = {name: _without_slots(value) for name, value in values.items()} | {"nonce": NONCE_SLOT}
    return PLACEHOLDER.sub(lambda found: known.get(found[1], found[0]), template)


def _without_slots(text: str) -> str:
    return text.replace(NONCE_SLOT, "{{ nonce }}")


async def _inputs(
    desk: Desk, name: str, stage: Stage, number: int, answers: Sequence[_Input]
) -> AsyncIterator[_Input]:
    trip = desk.trip
    for given in stage.gives:
        match given:
            case "task":
                yield _Input("task", f"The task, in the user's words:\n{fenced(trip.job.task)}")
                for answer in answers:
                    yield answer
            case "reports":
                for path in trip.reports:
                    is_earlier = stage.does == "report" and path != trip.document_of(stage, number)
                    title = (
                        "An earlier report. Start from its open question"
                        if is_earlier
                        else "Report"
                    )
                    yield await _document(desk, title, path)
            case "plan" if trip.plan:
                yield await _document(desk, "The plan", trip.plan)
            case "files":
                async for each in _files(desk):
                    yield each
            case "verification" if trip.verification:
                if stage.does == "work":
                    title, characters = "Your verification report so far", _SHORT_CHARACTERS
                else:
                    title, characters = "The developer's verification report", _DOCUMENT_CHARACTERS
                yield await _document(desk, title, trip.verification, characters)
            case "review":
                async for each in _review(desk, name, stage):
                    yield each
            case "feedback" if trip.feedback:
                yield _Input(
                    "findings",
                    f"{_findings_title(stage, number)}:\n{fenced(trip.feedback)}",
                )
            case "committed" if number > 1:
                async for each in _committed(desk):
                    yield each
            case "evidence" if trip.evidence:
                yield _Input("evidence", _evidence(desk))
            case "conflicts" if trip.conflicts:
                listed = "\n".join(f"* {in_code(path)}" for path in trip.conflicts)
                yield _Input(
                    "diff",
                    f"Files in conflict:\n{listed}\n\nGit said:\n{fenced(trip.conflict_words)}",
                )
            case "diff":
                yield _Input("diff", await _diff(desk, stage, number))
            case "merged":
                yield _Input("diff", await _merged(desk, stage, number))


async def _answers(desk: Desk) -> list[_Input]:
    """What people answered to questions of this run's agents, for every role: it changes what the task asks for."""
    parts = [
        f"The {role} asked: {in_code(question, _QUESTION_CHARACTERS)}\nA person answered:\n{fenced(answer)}"
        for role, question, answer in await desk.kit.purse.store.read(
            lambda view: _questions(view, desk.trip.run_id)
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
    attempt = "on the last attempt" if number > 1 else "of an earlier stage"
    match stage.does:
        case "edit":
            return "The remark about the documentation"
        case "plan" if number > 1:
            return "Findings about your last plan. Improve that plan and settle each one"
        case "work" | "integrate":
            return f"Findings {attempt}. Repair each one, or show that it is no fault"
    return f"Findings {attempt}. Settle each one"


async def _document(
    desk: Desk, title: str, path: str, characters: int = _DOCUMENT_CHARACTERS
) -> _Input:
    """A document in the prompt itself: asking for it would cost a request that sends everything again."""
    text = (await _read(desk, path) or "").strip()
    if not text:
        return _Input("documents", f"{title}: {path}")
    shown = shortened(text, characters)
    more = "" if shown == text else f", the first {characters} of {len(text)} characters"
    return _Input("documents", f"{title} ({path}{more}):\n{fenced(shown, 'markdown')}")


async def _files(desk: Desk) -> AsyncIterator[_Input]:
    """The files that plan and reports name, as they are now, as far as there is room."""
    trip = desk.trip
    plan = await _read(desk, trip.plan) or "" if trip.plan else ""
    reports = [await _read(desk, path) or "" for path in trip.reports]
    named = [each for each in named_files(plan, reports) if each.path not in trip.own_documents]
    if not named:
        return
    specs = [spec for each in named[:_MAX_NAMED_FILES] for spec in each.pathspecs]
    tracked = await trip.workspace.tracked(*specs)
    shown, left_out, left = [], [], _FILES_CHARACTERS
    for each in resolved(named, tracked):
        content = await _read(desk, each.path)
        if content is None or "\0" in content:
            continue
        if len(content) <= min(left, each.whole_characters):
            left -= len(content)
            shown.append(f"{each.path}:\n{fenced(content)}")
            continue
        lines = content.count("\n")
        parts = excerpts(content, each.ranges, min(left, _EXCERPT_CHARACTERS))
        for first, text in parts:
            left -= len(text)
            last = first + len(text.splitlines()) - 1
            shown.append(f"{each.path}, lines {first} to {last} of {lines}:\n{fenced(text)}")
        if not parts:
            left_out.append(f"{each.path} ({lines} lines)")
    if left_out:
        shown.append(f"Named too, and too long to be shown here: {', '.join(left_out)}")
    if shown:
        yield _Input(
            "files",
            "\n\n".join(
                ["Files named above, as they are now; you need not read them again:", *shown]
            ),
        )


async def _read(desk: Desk, path: str) -> str | None:
    try:
        return await desk.trip.workspace.read(path)
    except WorkspaceTampered:
        return None


async def _review(desk: Desk, name: str, stage: Stage) -> AsyncIterator[_Input]:
    """Judges get their own last review; who is judged has what it says in the findings."""
    trip = desk.trip
    if stage.does in _JUDGES:
        if path := trip.reviews.get(name):
            title = "Your review of the last round. Is each finding settled? What is settled stays closed"
            yield await _document(desk, title, path)
    elif trip.review and trip.feedback:
        yield _Input("documents", f"The last review: {trip.review}")
    elif trip.review:
        yield await _document(desk, "The last review", trip.review)


async def _committed(desk: Desk) -> AsyncIterator[_Input]:
    trip = desk.trip
    commits = [
        each
        for each in await trip.workspace.history(trip.base)
        if "Podium-Run" not in each.trailers
    ]
    if not commits:
        return
    listed = "\n".join(f"{each.id[:12]} {each.subject}" for each in commits[-_MAX_COMMITS:])
    words = "Earlier rounds are committed. Keep them and change only what the findings ask for"
    yield _Input("documents", f"{words}:\n{fenced(listed)}")


def _evidence(desk: Desk) -> str:
    trip = desk.trip
    green = "all passed" if all_passed(trip.evidence) else "NOT all passed"
    return (
        f"Checks that Podium ran ({green}): {in_words(trip.evidence)}. "
        f"Their output: {trip.evidence_path}"
    )


def _open_findings(desk: Desk, judge: str) -> Iterator[_Input]:
    # A judge has its own findings before it, in its last review.
    if before := desk.trip.open_before(judge):
        listed = shortened("\n".join(f"- {text}" for text in before), _MAX_OPEN_CHARACTERS)
        words = "Found in earlier rounds and not known to be settled"
        yield _Input("findings", f"{words}:\n{fenced(listed)}")


async def _diff(desk: Desk, stage: Stage, number: int) -> str:
    """The change, in the prompt when it is short and as a file when not."""
    trip = desk.trip
    found = list(sections_of(await trip.workspace.diff(trip.base), trip.own_documents))
    text = "".join(section for _, section in found)
    gone = ", ".join(in_code(path) for path in _REMOVED.findall(text)[:50])
    told = f"\n\nFiles that it removes: {gone}" if gone else ""
    title = f"The change (`git diff {trip.base[:12]}...HEAD`, without the pipeline's own documents)"
    return f"{await _shown(desk, stage, number, title, text)}{told}"


async def _merged(desk: Desk, stage: Stage, number: int) -> str:
    """What came in from the base, and of both sides only the files that both have changed.

    A change that nobody has audited is shown whole.
    """
    trip = desk.trip
    base = in_code(trip.remote_base.name or trip.job.base)
    if not trip.merged_onto:
        nothing = f"Nothing came in: {base} has not moved."
        return "\n\n".join([_scope(desk), nothing, await _diff(desk, stage, number)])
    ours = dict(sections_of(await trip.workspace.diff(trip.base), trip.own_documents))
    theirs = dict(sections_of(await trip.workspace.diff(trip.merged_onto), trip.own_documents))
    both = [path for path in theirs if path in ours]
    parts = [
        _scope(desk),
        f"Files that came in with {base}:\n{_paths(theirs)}",
        f"Files of this change:\n{_paths(ours)}",
    ]
    if both:
        parts.append(
            await _shown(
                desk,
                stage,
                number,
                "What came in, in files that both changed",
                "".join(map(theirs.__getitem__, both)),
                "base",
            )
        )
        parts.append(
            await _shown(
                desk,
                stage,
                number,
                "This change in the same files",
                "".join(map(ours.__getitem__, both)),
            )
        )
    else:
        parts.append("No file was changed on both sides.")
    if not _was_audited(desk):
        parts.append(await _diff(desk, stage, number))
    return "\n\n".join(parts)


def _scope(desk: Desk) -> str:
    if _was_audited(desk):
        return "The change itself was reviewed before: judge only where it and the base meet."
    return "Nobody has reviewed the change itself: judge it too, against the task and the plan, and whether its tests would fail without it."


def _was_audited(desk: Desk) -> bool:
    """Whether an audit other than one of a merge has seen the code."""
    spec = desk.trip.job.spec
    return any(
        spec.stages[name].does == "audit" and name not in spec.merge_reviews
        for name in desk.trip.reviews
        if name in spec.stages
    )


def _paths(sections: Mapping[str, str]) -> str:
    listed = [f"* {in_code(path)}" for path in sections]
    more = [f"* and {len(listed) - _MAX_PATHS} more"] if len(listed) > _MAX_PATHS else []
    return "\n".join([*listed[:_MAX_PATHS], *more]) or "* none"


async def _shown(
    desk: Desk, stage: Stage, number: int, title: str, text: str, side: str = "diff"
) -> str:
    if len(text) <= _INLINE_CHARACTERS:
        return f"{title}:\n{fenced(text, 'diff')}"
    path = f"{INPUTS}/{side}_{stage.role}_{number}.patch"
    await desk.trip.workspace.write({f"{INPUTS}/.gitignore": "*\n", path: text})
    return f"{title}, {len(text.splitlines())} lines, as a file: {path}"


async def _notes(desk: Desk, stage: Stage) -> tuple[HumanNote, ...]:
    roles = {each.role for each in desk.trip.job.spec.stages.values()}
    notes = notes_of(await desk.kit.human_notes(), roles=roles)
    return tuple(each for each in notes if each.role in ("", stage.role))


def _people(desk: Desk, notes: tuple[HumanNote, ...]) -> Iterator[_Input]:
    if notes:
        listed = "\n".join(f"* {each.text}" for each in notes)
        yield _Input("people", f"Notes of the project's owner:\n{listed}")
    for words in desk.trip.guidance:
        yield _Input("people", f"A person looked at this run and said:\n{fenced(words)}")


def _conventions(desk: Desk) -> Iterator[_Input]:
    for text in conventions_told(desk.found.conventions, desk.trip.changed):
        yield _Input("conventions", text)


async def _remembered(desk: Desk) -> list[tuple[str, str]]:
    trip = desk.trip
    text = await trip.workspace.read(MEMORY)
    if not text:
        return []
    chosen = relevant(
        text,
        task=trip.job.task,
        paths=sorted(desk.trip.changed),
        day=desk.kit.clock.now().date(),
        most_tokens=trip.job.spec.memory_tokens,
    )
    return [(each.lesson, each.why) for each in chosen]


def _memory(remembered: list[tuple[str, str]]) -> Iterator[_Input]:
    if remembered:
        listed = "\n".join(f"* {lesson}" for lesson, _ in remembered)
        yield _Input("memory", f"What earlier agents learned here:\n{listed}")
