"""What a role is told: its prompt, its inputs, what people wrote down, and what is remembered."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Mapping

from podium.domain.model import Noun
from podium.flows.pipeline.checks import all_passed, in_words
from podium.flows.pipeline.desk import Desk
from podium.flows.pipeline.human_notes import HumanNote, notes_of
from podium.flows.pipeline.memory import relevant
from podium.flows.pipeline.plain_text import fenced, in_code
from podium.flows.pipeline.spec import Stage
from podium.ports import Step

MEMORY = "AGENT_MEMORY.md"
INPUTS = ".podium-inputs"
"""A folder that ignores itself: what is too long for a prompt and belongs in no commit."""
_INLINE_CHARACTERS = 20_000
_MOST_OPEN_CHARACTERS = 16_000
_REMOVED = re.compile(r"^diff --git a/(.+) b/.+\ndeleted file mode", re.MULTILINE)
PLACEHOLDER = re.compile(r"\{\{\s*(\w+)\s*\}\}")
NONCE_SLOT = "{{nonce}}"
"""Stands in a prompt's examples for the word that proves an answer to be of its turn."""
PLACEHOLDERS = ("inputs", "task", "document", "verification", "feat", "round", "checks", "nonce")
"""What a prompt may leave to be filled in."""


class Brief(Noun):
    """The words for a turn, and where some of them came from."""

    prompt: str
    notes: tuple[HumanNote, ...] = ()
    remembered: tuple[str, ...] = ()


async def brief(desk: Desk, name: str, stage: Stage, number: int) -> Brief:
    """Put the prompt together, remembered as a step: files and people may say something else later."""

    async def work(step: Step) -> Brief:
        notes = await _notes(desk, stage)
        remembered = await _remembered(desk)
        inputs = "\n\n".join(
            [
                f"Stage: {name}, round {number}.",
                *[part async for part in _inputs(desk, stage, number)],
                *_open_findings(desk),
                *_people(desk, notes),
                *_memory(remembered),
            ]
        )
        words = _filled(desk, name, stage, number, inputs)
        told = tuple(f"{lesson} ({why})" for lesson, why in remembered)
        return Brief(prompt=words, notes=notes, remembered=told)

    return await desk.ctx.step(f"brief:{name}", work, index=number, returns=Brief)


def _filled(desk: Desk, name: str, stage: Stage, number: int, inputs: str) -> str:
    trip, checks = desk.trip, desk.checks
    values = {
        "inputs": inputs,
        "task": fenced(trip.job.task),
        "document": trip.document_of(stage, number),
        "verification": trip.document_of(stage, number),
        "feat": trip.feat,
        "round": str(number),
        "checks": "\n".join(f"* `{each.command}`" for each in checks) or "* none were found",
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


async def _inputs(desk: Desk, stage: Stage, number: int) -> AsyncIterator[str]:
    trip = desk.trip
    for given in stage.gives:
        match given:
            case "task":
                yield f"The task, in a person's words:\n{fenced(trip.job.task)}"
            case "reports" if trip.reports:
                yield "Reports:\n" + "\n".join(f"* {path}" for path in trip.reports)
            case "plan" if trip.plan:
                yield f"Plan: {trip.plan}"
            case "verification" if trip.verification:
                yield f"The developer's verification report: {trip.verification}"
            case "review" if trip.review:
                yield f"The review before this one: {trip.review}"
            case "feedback" if trip.feedback:
                yield f"What was said of the last attempt:\n{fenced(trip.feedback)}"
            case "evidence" if trip.evidence:
                green = "all passed" if all_passed(trip.evidence) else "NOT all passed"
                yield (
                    f"Checks that the supervisor ran itself ({green}): {in_words(trip.evidence)}. "
                    f"Whole evidence: {trip.evidence_path}"
                )
            case "conflicts" if trip.conflicts:
                listed = "\n".join(f"* {in_code(path)}" for path in trip.conflicts)
                yield f"Files in conflict:\n{listed}\n\nGit said:\n{fenced(trip.conflict_words)}"
            case "diff":
                yield await _diff(desk, stage, number)


def _open_findings(desk: Desk) -> Iterator[str]:
    if before := desk.trip.open_before:
        listed = "\n".join(f"- {text}" for text in before)[:_MOST_OPEN_CHARACTERS]
        yield f"Found before and not known to be settled:\n{fenced(listed)}"


async def _diff(desk: Desk, stage: Stage, number: int) -> str:
    """The whole change, in the prompt when it is short and as a file when not."""
    trip = desk.trip
    text = await trip.workspace.diff(trip.base)
    gone = ", ".join(in_code(path) for path in _REMOVED.findall(text)[:50])
    told = f"\n\nFiles that it removes, tests among them if so named: {gone}" if gone else ""
    return f"{await _shown(desk, stage, number, text)}{told}"


async def _shown(desk: Desk, stage: Stage, number: int, text: str) -> str:
    trip = desk.trip
    if len(text) <= _INLINE_CHARACTERS:
        return f"The change so far (`git diff {trip.base[:12]}...HEAD`):\n{fenced(text)}"
    path = f"{INPUTS}/diff_{stage.role}_{number}.patch"
    await trip.workspace.write({f"{INPUTS}/.gitignore": "*\n", path: text})
    return f"The change so far, {len(text.splitlines())} lines, as a file: {path}"


async def _notes(desk: Desk, stage: Stage) -> tuple[HumanNote, ...]:
    roles = {each.role for each in desk.trip.job.spec.stages.values()}
    notes = notes_of(await desk.kit.human_notes(), roles=roles)
    return tuple(each for each in notes if each.role in ("", stage.role))


def _people(desk: Desk, notes: tuple[HumanNote, ...]) -> Iterator[str]:
    if notes:
        yield "Notes of the project's owner:\n" + "\n".join(f"* {each.text}" for each in notes)
    for words in desk.trip.guidance:
        yield f"A person looked at this run and said:\n{fenced(words)}"


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


def _memory(remembered: list[tuple[str, str]]) -> Iterator[str]:
    if remembered:
        listed = "\n".join(f"* {lesson}" for lesson, _ in remembered)
        yield f"What earlier agents learned here:\n{listed}"
