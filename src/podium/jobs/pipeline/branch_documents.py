"""Documents that the supervisor commits to the branch: paths, contents, merging of lists, and results of checks as text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date

from podium.app.checks import CheckResult
from podium.app.kernel_flows import DeliveryDeps, deliver_approved
from podium.core.decisions import Refusal
from podium.core.errors import BadInput, ImportRefused, NeedsHuman, NotPossibleNow
from podium.core.events import NoteTaken
from podium.core.forge import check_ending, check_passed
from podium.core.model import FrozenModel, Json
from podium.core.turns import Reply
from podium.jobs.pipeline.agent_text import fenced, harmless, in_code, shortened, whole
from podium.jobs.pipeline.memory import with_items, with_lessons
from podium.jobs.pipeline.payloads import Answer
from podium.jobs.pipeline.state import BACKLOG, MEMORY, AwaitsApproval, StageContext
from podium.render.text import counted

_TAIL_CHARACTERS = 4_000
_NO_TESTS = (
    "ran 0 tests, which counts as a failure. Make this exact command find the tests (their file names, folders and imports "
    "decide that); if the command itself is wrong for this project, say so in `disputed_checks`"
)

_AS_BEFORE = (
    ", and failed in the same way. It is not held against this work: make it pass if the task asks for that, else leave it; "
    "a person decides about it before delivery"
)


def results_line(results: Sequence[CheckResult]) -> str:
    """One line for people: what ran and how it ended."""
    if not results:
        return "no checks"
    return ", ".join(
        f"`{result.command}` {check_ending(result.model_dump())}" for result in results
    )


def failed_checks_text(results: Sequence[CheckResult]) -> str:
    """Each failed check with the end of its output, for the role that has to make it pass."""
    return "\n\n".join(
        f"`{result.command}` {_NO_TESTS if result.ran_no_tests else 'failed'}{_base_note(result)}:\n"
        f"{result.tail[-_TAIL_CHARACTERS:]}"
        for result in results
        if not result.passed
    )


def _base_note(result: CheckResult) -> str:
    if not result.before:
        return ""
    was = "red" if result.red_before else "green"
    alike = _AS_BEFORE if result.as_before else ""
    return f" (it was {was} before this work: {result.before}{alike})"


_NEEDS_QUOTES = re.compile(r'[\s"\\]|^[#!]')
_GLOB = re.compile(r"([*?\[\\])")


def with_union(text: str | None, paths: Sequence[str]) -> str:
    """`.gitattributes` in which these paths are merged by keeping the lines of both sides.

    What it says already about merging one of them stays as it is.
    """
    current = text or ""
    decided = {path for line in current.splitlines() for path in _decided_by(line)}
    new = [path for path in dict.fromkeys(paths) if path.removeprefix("/") not in decided]
    if not new:
        return current
    end = "\r\n" if "\r\n" in current else "\n"
    gap = end if current and not current.endswith("\n") else ""
    return current + gap + "".join(f"{_pattern(path)} merge=union{end}" for path in new)


def _pattern(path: str) -> str:
    """The path from the repository's root on, and nothing else."""
    rooted = _GLOB.sub(r"\\\1", "/" + path.removeprefix("/"))
    if not _NEEDS_QUOTES.search(rooted):
        return rooted
    return '"' + rooted.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _decided_by(line: str) -> list[str]:
    """The path whose merging this line decides."""
    entry = line.strip()
    if entry.startswith('"'):
        quoted, _, rest = entry[1:].rpartition('"')
        pattern = re.sub(r"\\(.)", r"\1", re.sub(r"\\(.)", r"\1", quoted))
    else:
        pattern, _, rest = entry.partition(" ")
        pattern = re.sub(r"\\(.)", r"\1", pattern)
    if not re.search(r"(?:^|\s)[-!]?merge(?:=\S+)?(?:\s|$)", rest.replace("\t", " ")):
        return []
    return [pattern.removeprefix("/")]


_ATTRIBUTES = ".gitattributes"
APPENDICES = (BACKLOG, MEMORY, _ATTRIBUTES)
"""Files that the supervisor writes besides documents."""


class Filed(FrozenModel):
    """Result of bringing commits back into the user's repository."""

    head: str
    commits: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    alike: tuple[str, ...] = ()
    """Places in test data that look like secrets."""


async def file(
    context: StageContext,
    step: str,
    message: str,
    *,
    written: Mapping[str, str],
    paths: Sequence[str] = (),
    answer: Answer | None = None,
    reply: Reply | None = None,
) -> Filed:
    """Write `written`, commit it with the files at `paths`, and bring the branch back.

    Asked again after a crash it finds its own commit by the trailers and makes no other. Raises `SecretsCommitted`.
    """
    workspace = context.state.workspace
    trailers = context.trailers(step, reply)
    if not await was_made(context, trailers):
        more = await _appendices(context, answer, step) if answer is not None else {}
        if written or more:
            texts = {**written, **more}
            await workspace.write({path: context.deps.redact(text) for path, text in texts.items()})
        if written or more or paths:
            await workspace.commit(message, [*written, *more, *paths], trailers=trailers)
    return await bring_back(context, step)


async def was_made(context: StageContext, trailers: Mapping[str, str]) -> bool:
    """Tell if a commit with these trailers is already on the branch."""
    return await context.state.workspace.was_committed(trailers)


async def clean_start(context: StageContext, why: str) -> str:
    """Put the worktree where the last delivery left it, which is past `head` when this very step was killed."""
    start = await context.state.workspace.delivered()
    await context.state.workspace.reset(start, why)
    return start


async def bring_back(context: StageContext, step: str, *, approved: Sequence[str] = ()) -> Filed:
    """Take whatever is committed through the import gate. Raises `NeedsHuman` when somebody else moved the branch.

    `AwaitsApproval` is raised for guarded files, but for the paths that were `approved` as they are already;
    `ImportRefused` for those that a person rejected.
    """
    state, deps = context.state, context.deps
    delivery_deps = DeliveryDeps(deps.workspaces, deps.toolbox_in, deps.redact)
    try:
        delivery = await deliver_approved(
            delivery_deps, state.workspace, state.run_id, f"deliver:{step}", approved=approved
        )
    except NotPossibleNow as error:
        raise NeedsHuman(f"{error}; then `podium resume {state.run_id}`") from error
    if isinstance(delivery, Refusal):
        files = ", ".join(map(str, delivery.call.arguments["files"]))
        if delivery.approval_id:
            what = f"Changes to guarded files are waiting for approval ({files})"
            raise AwaitsApproval(delivery.approval_id, delivery.deadline, what)
        raise ImportRefused(f"changes to {files} were not approved: {delivery.decision.reason}")
    return Filed(
        head=delivery.after,
        commits=delivery.commits,
        paths=delivery.paths,
        alike=delivery.lookalikes,
    )


async def _appendices(context: StageContext, answer: Answer, step: str) -> dict[str, str]:
    """Backlog and memory with what the answer adds to them."""
    workspace, day = context.state.workspace, context.deps.clock.now().date()
    source = f"{context.state.name} {step}"
    files: dict[str, str] = {}
    if answer.backlog_items:
        text = await workspace.read(BACKLOG)
        files[BACKLOG] = with_items(text, answer.backlog_items, source=source, day=day)
    if answer.lessons:
        text = await workspace.read(MEMORY)
        remembered = with_lessons(
            text, answer.lessons, source=source, day=day, looks_secret=context.deps.looks_secret
        )
        files[MEMORY] = remembered.text
        for refused in remembered.refused:
            context.flow.note(NoteTaken(text=f"A lesson was not saved: {refused.why}"))
    return await _that_changed(context, files)


async def _that_changed(context: StageContext, files: dict[str, str]) -> dict[str, str]:
    """Only what is new, with the attributes that let parallel tasks append without conflict."""
    workspace = context.state.workspace
    changed = {
        path: text for path, text in files.items() if text != (await workspace.read(path) or "")
    }
    if changed:
        old = await workspace.read(_ATTRIBUTES)
        new = with_union(old, [BACKLOG, MEMORY])
        if new != (old or ""):
            changed[_ATTRIBUTES] = new
    return changed


_ROOT = "docs/dev_docs"
_KINDS = ("research", "plans", "reviews")
ACTIVE_FOLDERS = tuple(f"{_ROOT}/{kind}" for kind in _KINDS)
ARCHIVE = f"{_ROOT}/archived"

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9._-]+")


def archived(path: str, *, day: date, task: str, feat: str = "") -> str:
    """The place of a document in the archive, with day and task before its name.

    The task's words (`feat`) are taken out of the name itself: they stand before it now.
    A path that is there already is given back. Raises `BadInput` for one that is in no active folder.
    """
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts) or "\0" in path:
        raise BadInput(f"{path[:200]!r} cannot be archived: not a plain path inside the project")
    if path.startswith(f"{ARCHIVE}/"):
        return path
    for kind in _KINDS:
        folder = f"{_ROOT}/{kind}/"
        if path.startswith(folder):
            # Of a folder the first part carries the prefix, so that no two documents meet.
            name = path.removeprefix(folder)
            plain = name.replace(f"_{feat}", "", 1) if feat else name
            return f"{ARCHIVE}/{kind}/{day:%Y-%m-%d}_{_name(task)}_{plain}"
    folders = ", ".join(ACTIVE_FOLDERS)
    raise BadInput(f"{path[:200]!r} cannot be archived: it is not in any of {folders}")


def _name(task: str) -> str:
    return _NOT_IN_A_NAME.sub("-", task[:100]).strip("-.") or "task"


MAX_TASK = 4_000
MAX_FEEDBACK = 60_000
LAST_LINES = 60
MAX_TAIL = 8_000
"""Of what one check wrote."""
MAX_CHECKS = 50


def review_file(
    *,
    title: str,
    task: str,
    role: str,
    agent: str,
    verdict: str,
    round: int,
    day: date,
    feedback: str,
    run_id: str,
) -> str:
    """A gatekeeper's verdict in Markdown. What agents and people said stands in it as data."""
    facts = [
        ("Verdict", f"**{harmless(verdict, 40)}**"),
        ("Role", in_code(role, 80)),
        ("Agent", in_code(agent, 120)),
        ("Round", str(round)),
        ("Date", f"{day:%Y-%m-%d}"),
        ("Run", in_code(run_id, 80)),
    ]
    quoted = shortened(whole(feedback).strip(), MAX_FEEDBACK)
    parts = [
        f"# {harmless(title, 120) or 'Review'}: {harmless(verdict, 40)}",
        _list(facts),
        _task(task),
        f"## Feedback\n\n{fenced(quoted) if quoted else 'No feedback.'}",
    ]
    return "\n\n".join(parts) + "\n"


def evidence_file(
    *,
    task: str,
    commit: str,
    results: Sequence[Mapping[str, Json]],
    day: date,
    run_id: str,
) -> str:
    """Results of the supervisor's own checks of a commit, in Markdown.

    A result holds `name`, `command`, `exit_code`, `seconds`, `output_sha256`, `tail`, `timed_out` and
    `ran_no_tests`.
    """
    green = bool(results) and all(check_passed(result) for result in results)
    outcome = ("all passed" if green else "not all passed") if results else "no checks were run"
    facts = [
        ("Outcome", f"**{outcome}**"),
        ("Commit", in_code(commit, 80)),
        ("Date", f"{day:%Y-%m-%d}"),
        ("Run", in_code(run_id, 80)),
    ]
    parts = ["# Evidence: checks run by the supervisor", _list(facts), _task(task)]
    parts += [_check(number, result) for number, result in enumerate(results[:MAX_CHECKS], start=1)]
    if left_out := len(results) - MAX_CHECKS:
        parts += [f"And {counted(left_out, 'more check')}."] if left_out > 0 else []
    return "\n\n".join(parts) + "\n"


def _check(number: int, result: Mapping[str, Json]) -> str:
    name = harmless(str(result.get("name") or result.get("command") or ""), 120)
    facts = [
        ("Command", in_code(str(result.get("command", "")), 1_000)),
        ("Result", check_ending(result)),
        ("Duration", f"{float(result.get('seconds') or 0):.1f} s"),
        ("SHA-256 of the output", in_code(str(result.get("output_sha256") or ""), 80)),
    ]
    tail = "\n".join(_last_lines(str(result.get("tail") or "")))
    output = f"Last lines:\n\n{fenced(tail)}" if tail.strip() else "No output."
    return f"## {number}. {name or 'Check'}\n\n{_list(facts)}\n\n{output}"


def _last_lines(tail: str) -> list[str]:
    lines = whole(tail[-4 * MAX_TAIL :]).rstrip().split("\n")[-LAST_LINES:]
    return "\n".join(lines)[-MAX_TAIL:].split("\n")


def _task(task: str) -> str:
    return f"## Task\n\n{fenced(shortened(whole(task[: 4 * MAX_TASK]).strip(), MAX_TASK))}"


def _list(facts: Sequence[tuple[str, str]]) -> str:
    return "\n".join(_lines(facts))


def _lines(facts: Sequence[tuple[str, str]]) -> Iterator[str]:
    return (f"- {name}: {value}" for name, value in facts if value)
