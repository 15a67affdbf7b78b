"""View of a run on the command line: one line per event while it runs, then the report of branch, checks and cost."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from podium.app.app import Podium
from podium.app.run_list import RunListing
from podium.app.run_report import show_run
from podium.cli.context import CliContext
from podium.cli.progress import LinesView, Progress, result_record
from podium.cli.run_host import next_steps
from podium.cli.screen import Screen
from podium.core import events as e
from podium.core.decisions import Usage
from podium.core.errors import PodiumError
from podium.core.events import ChecksRan, Event
from podium.core.forge import check_ending, check_passed
from podium.core.ids import short_id
from podium.core.model import FrozenModel, Json
from podium.core.work import AGENT_LOST, PULL_SIGNAL, RATE_LIMIT, Run, RunStatus
from podium.jobs.pipeline.events import BaseChecked, StageBegan, StageEnded
from podium.ports import EventQuery, Store, StoreView
from podium.render.approval import arguments_line
from podium.render.event import MAX_ARGUMENTS, about, describe, shorten, usage_text
from podium.render.text import counted, escaped_line, safe_line

if TYPE_CHECKING:
    from podium.app.app import Podium

SUPERVISOR = "PODIUM"
SENT_BACK, RED = "SENT_BACK", "RED"
"""The supervisor's own verdicts, beside those of the roles."""
_MAX_CHARACTERS = 400
_MAX_LISTED = 10


@dataclass(frozen=True)
class Doing:
    """Current activity of the run, and until when it pauses."""

    what: str
    until: datetime | None = None


class PipelineLines:
    """Turns the events of one run into lines, in the order in which they came."""

    def __init__(self) -> None:
        self._role = ""
        self._head = ""
        self._ended: set[StageEnded] = set()
        self._began: dict[tuple[str, int], datetime] = {}
        self._had_no_news = False
        self.doing = Doing("setting up")

    def know(self, stages: Iterable[StageEnded]) -> None:
        """Remember what an earlier process printed: a resumed run may record its last stage again."""
        for stage in stages:
            self._ended.add(stage)
            self._head, self._role = stage.commit, stage.role

    def lines(self, event: e.Event) -> list[str]:
        """The lines that an event is worth; most are worth none."""
        at = event.at.astimezone().strftime("%H:%M:%S")
        self._follow(event)
        lines = [
            f"[{at}] {who}: {safe_line(text, _MAX_CHARACTERS)}"
            for who, text in self._entries(event)
        ]
        # Looks at the pull request that find no news are worth one line together.
        if is_look := _is_look(event.body):
            lines = [] if self._had_no_news else lines
        if lines:
            self._had_no_news = is_look
        return lines

    def _follow(self, event: e.Event) -> None:
        match event.body:
            case StageBegan() as began:
                self._role = began.role
                self._began[began.stage, began.round] = event.at
                self.doing = Doing(f"{in_capitals(began.role)}{_where(began)}")
            case e.RunWaiting(signal=signal, deadline=until) if signal.startswith(RATE_LIMIT):
                self.doing = Doing("rate limited", until)
            case e.RunWaiting(signal=signal, deadline=until) if signal.startswith(AGENT_LOST):
                self.doing = Doing("retrying soon", until)
            case e.RunWaiting(signal=signal, deadline=until) if signal.startswith(PULL_SIGNAL):
                self.doing = Doing("following the pull request", until)
            case e.RunWaiting():
                self.doing = Doing("waiting for a person")
            case StageEnded() | e.ChecksRan():
                self.doing = Doing("supervising")
            case e.WaitExpired() | e.SignalReceived() | e.RunStarted() if self._role:
                self.doing = Doing(in_capitals(self._role))

    def _entries(self, event: e.Event) -> Iterator[tuple[str, str]]:
        body = event.body
        match body:
            case StageBegan():
                yield from _stage_began(body)
            case StageEnded() if body not in self._ended:
                self._ended.add(body)
                began = self._began.get((body.stage, body.round))
                elapsed = (event.at - began).total_seconds() if began else body.seconds
                yield from _stage_ended(body, elapsed, moved=body.commit != self._head)
                self._head = body.commit
            case e.ChecksRan():
                yield from _check_lines(body)
            case BaseChecked() if body.results:
                ran = ", ".join(map(check_line, body.results))
                yield SUPERVISOR, f"Checks on the base, before any work: {ran}"
            case e.ToolRefused(effect="deny"):
                yield SUPERVISOR, f"Denied {in_capitals(self._role)}: {_call(body)}"
            case e.WorkspaceChecked() if body.violations or body.moved_away:
                yield SUPERVISOR, f"Tampered with by {in_capitals(self._role)}: {describe(body)}"
            case _:
                if text := _of_the_run(body, event.run_id):
                    yield SUPERVISOR, text


def _is_look(body: e.EventBody) -> bool:
    """Tell whether the run waits for its next look at the pull request."""
    return isinstance(body, e.RunWaiting) and body.signal.startswith(PULL_SIGNAL)


def _of_the_run(body: e.EventBody, run_id: str) -> str:
    """Text of an event about the run as a whole; empty for events that nobody has to read."""
    match body:
        case e.RunQueued():
            return f"Task received. Run {short_id(run_id)}."
        case e.RunStarted() if body.fence > 1:
            return "Resumed from the checkpoint."
        case e.NoteTaken():
            return body.text
        case e.AgentSwitched():
            who = in_capitals(body.role)
            return f"Switched {who} from agent {body.agent} to {body.next_agent}: {body.reason}"
        case e.ApprovalRequested():
            name = short_id(body.approval_id)
            what = escaped_line(" ".join(body.summary.split()), MAX_ARGUMENTS)
            return f"Approval needed [{body.tier}]: {what}; approve it with `podium approve {name}`"
        case e.BranchCollision():
            paths = escaped_line(", ".join(body.paths[:5]))
            return f"{body.other_branch!r} of run {short_id(body.other_run)} changes the same lines in {paths}"
        case e.RunWaiting(signal=signal) if signal.startswith(PULL_SIGNAL):
            return f"Waiting for news of pull request {signal.removeprefix(PULL_SIGNAL)}."
        case e.RunWaiting():
            return f"Waiting {describe(body)}".replace("Waiting rate", "Rate")
        case e.StepBroke() if not body.final:
            return f"Trying again: {describe(body)}"
        case e.RunParked():
            return f"Paused at its checkpoint: {body.reason}"
        case e.RunUnpinned():
            return f"Continued on another host: {escaped_line(body.reason)}"
        case e.RunNeededHuman():
            return f"Needs a person: {body.reason.splitlines()[0] if body.reason else ''}"
        case e.RunCancelRequested():
            return f"Cancel requested by {body.by}. {body.why}".rstrip()
    return _of_the_end(body)


def _of_the_end(body: e.EventBody) -> str:
    match body:
        case e.BranchDelivered():
            where = body.url or body.file
            ready = f"Pipeline success! Branch {body.branch!r} is ready for merge"
            if body.untested:
                ready = f"Branch {body.branch!r} was delivered UNTESTED ({body.untested})"
            return f"{ready}: {where}" if where else f"{ready}."
        case e.RunFailed():
            return f"Failed: {body.failure.message}"
        case e.RunCancelled():
            return "Cancelled."
        case e.RunRetried() | e.ToolInDoubt():
            return f"{body.type.replace('_', ' ').capitalize()}: {describe(body)}"
    return ""


def _stage_began(body: StageBegan) -> Iterator[tuple[str, str]]:
    yield SUPERVISOR, f"Spawning {in_capitals(body.role)}{_where(body)}..."
    for note in body.notes[:_MAX_LISTED]:
        yield SUPERVISOR, f"Your note goes to {in_capitals(body.role)}: {note}"


def _stage_ended(
    body: StageEnded, elapsed_seconds: float, *, moved: bool
) -> Iterator[tuple[str, str]]:
    role = in_capitals(body.role)
    if role == SUPERVISOR and body.verdict == "DONE" and body.words:
        yield SUPERVISOR, body.words
        return
    made = [repr(body.document)] if body.document else []
    made += [f"commit {body.commit[:7]}"] if moved and body.verdict != SENT_BACK else []
    cost = f"{duration(elapsed_seconds)}, {money(body.usage)}"
    result = f"{body.verdict}. {', '.join(made)}".rstrip(". ")
    yield role, f"{result} ({cost})"
    for text in body.disputed[:_MAX_LISTED]:
        yield role, f"Disputes a check: {text}"
    yield from _sent_back(body, role)
    if body.discarded:
        listed = ", ".join(body.discarded[:_MAX_LISTED])
        yield SUPERVISOR, f"Reverted changes that {role} must not make: {listed}"


def _sent_back(body: StageEnded, role: str) -> Iterator[tuple[str, str]]:
    for problem in body.problems[:_MAX_LISTED]:
        yield SUPERVISOR, f"Sent back to {role}: {problem}"
    if body.verdict == RED:
        yield SUPERVISOR, f"Sent back to {role}: checks failed"
    elif body.verdict not in ("DONE", "APPROVE", "PASS", SENT_BACK) and body.words.strip():
        yield role, f"Reason: {body.words}"


def _check_lines(body: e.ChecksRan) -> Iterator[tuple[str, str]]:
    how = "passed" if body.passed else "FAILED"
    ran = ", ".join(check_line(result) for result in body.results) or "none"
    yield SUPERVISOR, f"Checks on {body.commit[:7]} {how}: {ran}"
    for result in body.results:
        if not check_passed(result):
            yield SUPERVISOR, f"Failed: {check_line(result)}: {_last_line(result)}"


def _last_line(check: Mapping[str, Json]) -> str:
    lines = [line for line in str(check.get("tail") or "").splitlines() if line.strip()]
    return lines[-1] if lines else "no output"


def check_line(check: Mapping[str, Json]) -> str:
    """A check and how it came out, as in `` `make test` exit 0 (1.2 s) ``."""
    took = duration(float(check.get("seconds") or 0.0))
    return f"`{check.get('command')}` {check_ending(check)} ({took})"


def _call(body: e.ToolRefused) -> str:
    arguments = about(body.arguments) or arguments_line(body.arguments, MAX_ARGUMENTS)
    return f"{body.tool} {escaped_line(arguments, MAX_ARGUMENTS)} ({shorten(escaped_line(body.reason))})"


def _where(body: StageBegan) -> str:
    parts = [body.phase] if body.phase else []
    parts += [f"round {body.round}"] if body.round > 1 else []
    return f" ({', '.join(parts)})" if parts else ""


def in_capitals(role: str) -> str:
    """`plan_reviewer` as it stands before what it says."""
    return role.replace("_", " ").upper() or "AN AGENT"


def duration(seconds: float) -> str:
    """`0.4 s`, `43 s`, `4 min 32 s`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def money(used: Usage) -> str:
    """Cost in dollars; `at least` where not all of it is known."""
    return f"${used.usd:.4f}" if used.complete else f"at least ${used.usd:.4f}"


FLOW = "pipeline"
MAX_COMMITS = 100
_PAGE = 1000
_TYPES = ("stage_ended", "checks_ran", "base_checked")


class RunHistory(FrozenModel):
    """Stages and checks of a run so far, from the journal."""

    stages: tuple[StageEnded, ...] = ()
    checks: ChecksRan | None = None
    """Those that ran last."""
    base: BaseChecked | None = None
    """The base before any work."""

    def record(self) -> list[Json]:
        return [stage.model_dump(mode="json", exclude={"type", "version"}) for stage in self.stages]


class LookBack(FrozenModel):
    """All that the report is made of, beside the run itself."""

    history: RunHistory = RunHistory()
    usage: Usage = Usage()
    branch: str = ""
    workspace: str = ""
    commits: tuple[str, ...] = ()
    """Short id and subject, the oldest first."""

    def record(self) -> dict[str, Json]:
        return {"stages": self.history.record()}

    def show(self, screen: Screen, run: Run) -> None:
        show_report(screen, run, self)


async def history_of(store: Store, run_id: str) -> RunHistory:
    """The stages that a run passed through, also those of earlier processes and of retried steps."""
    stages: dict[StageEnded, None] = {}  # one that was noted again when the run went on counts once
    checks: ChecksRan | None = None
    base: BaseChecked | None = None
    after = 0
    while page := await store.read(partial(_page, run_id, after)):
        for event in page:
            if isinstance(event.body, StageEnded):
                stages[event.body] = None
            elif isinstance(event.body, ChecksRan):
                checks = event.body
            elif isinstance(event.body, BaseChecked):
                base = event.body
        after = page[-1].seq
    return RunHistory(stages=tuple(stages), checks=checks, base=base)


def _page(run_id: str, after: int, view: StoreView) -> list[Event]:
    return view.events(EventQuery(run_id=run_id, types=_TYPES, after_seq=after, limit=_PAGE))


async def look_back(podium: Podium, run: Run) -> LookBack:
    """Gather it. What git cannot tell any more is left out."""
    store = await podium.store()
    report = await show_run(store, run.id, last_events=0)
    mine = [workspace for workspace in podium.workspaces.existing() if workspace.run_id == run.id]
    branch = mine[-1].branch.removeprefix("refs/heads/") if mine else ""
    job = run.input if isinstance(run.input, Mapping) else {}
    base, repository = str(job.get("base", "")), str(job.get("repository", ""))
    branch = str(result_of(run).get("branch") or branch)
    return LookBack(
        history=await history_of(store, run.id),
        usage=report.work.usage,
        branch=branch,
        workspace=mine[-1].path if mine else "",
        commits=await _commits(podium, repository, base, branch) if branch else (),
    )


async def _commits(podium: Podium, repository: str, base: str, branch: str) -> tuple[str, ...]:
    span = f"refs/heads/{base}..refs/heads/{branch}"
    try:
        output = await podium.repository_git.run(
            "-C", repository, "log", "--format=%h %s", f"--max-count={MAX_COMMITS}", span, "--"
        )
    except PodiumError:
        return ()
    return tuple(reversed(output.stdout.decode(errors="replace").splitlines()))


def result_of(run: Run) -> Mapping[str, Json]:
    """Result of the flow; empty until it has ended."""
    return run.result if isinstance(run.result, Mapping) else {}


def show_report(screen: Screen, run: Run, back: LookBack, *beside: tuple[str, str]) -> None:
    """The report, as it stands: of a run that did not come to its end there is less to tell.

    `beside` are further names and values to begin with.
    """
    screen.facts([*beside, *_facts(run, back)])
    if back.commits:
        more = " or more" if len(back.commits) == MAX_COMMITS else ""
        screen.line(f"\n{counted(len(back.commits), 'commit')}{more}")
        for commit in back.commits:
            screen.line(f"  {commit}")
    show_stages(screen, back.history.stages)
    _listed(screen, "documents", _documents(run, back.history))
    _listed(screen, "checks before this work", _base(back.history))
    _listed(screen, "checks", _checks(run, back.history))
    _listed(screen, "added to the backlog", _strings(result_of(run).get("backlog")))


def _facts(run: Run, back: LookBack) -> list[tuple[str, str]]:
    result = result_of(run)
    base = str(_of(run.input, "base"))
    commit = str(result.get("commit", ""))[:12]
    at = f" at {commit}" if commit else ""
    return [
        ("branch", f"{back.branch}{at}, from {base}" if back.branch else ""),
        ("remote base", _not_fetched(result)),
        ("workspace", str(result.get("workspace") or back.workspace)),
        ("plan", str(result.get("plan", ""))),
        ("history", str(result.get("history_ref", ""))),
        *delivery_facts(run, result),
    ]


def _not_fetched(result: Mapping[str, Json]) -> str:
    remote = result.get("remote_base")
    why = str(remote.get("why_not") or "") if isinstance(remote, Mapping) else ""
    return f"not fetched: {why}" if why else ""


def delivery_facts(run: Run, result: Mapping[str, Json]) -> list[tuple[str, str]]:
    """The pull request, and how to merge it here."""
    request = result.get("pull_request")
    if not isinstance(request, Mapping):
        return []
    why = f" ({request['why_local']})" if request.get("why_local") else ""
    existed = " (already existed)" if request.get("existed") else ""
    url, file = str(request.get("url") or ""), str(request.get("file") or "")
    command = str(request.get("merge_command") or "")
    checkout = shlex.quote(str(_of(run.input, "repository")))
    base = shlex.quote(str(_of(run.input, "base")))
    merge = f"cd {checkout} && git switch {base} && {command}" if command else ""
    return [
        ("pull request", f"{url}{existed}" if url else f"{file}{why}"),
        ("to merge", merge),
    ]


def _documents(run: Run, history: RunHistory) -> list[str]:
    """Paths of the documents: in the archive or on the ref of the history; before the delivery, on the branch."""
    made = dict.fromkeys(stage.document for stage in history.stages if stage.document)
    return _strings(result_of(run).get("documents")) or list(made)


def _base(history: RunHistory) -> list[str]:
    base = history.base
    return [] if base is None else [check_line(result) for result in base.results]


def _checks(run: Run, history: RunHistory) -> list[str]:
    results = result_of(run).get("checks")
    if not isinstance(results, Sequence):
        results = history.checks.results if history.checks else ()
    ran = [check_line(result) for result in results if isinstance(result, Mapping)]
    disputed = dict.fromkeys(text for stage in history.stages for text in stage.disputed)
    notes = _strings(result_of(run).get("check_notes")) or [
        f"disputed: {text}" for text in disputed
    ]
    return [*(ran or (["none were run"] if run.result else [])), *notes]


def show_stages(screen: Screen, stages: Sequence[StageEnded]) -> None:
    """One row a stage: who, how it came out, what it made and what it cost."""
    if not stages:
        return
    screen.line("\nstages")
    screen.table(
        ("PHASE", "ROLE", "VERDICT", "AGENT", "TIME", "COST", "COMMIT", "DOCUMENT"),
        [
            (
                stage.phase,
                in_capitals(stage.role) + (f", round {stage.round}" if stage.round > 1 else ""),
                stage.verdict,
                stage.agent,
                duration(stage.seconds),
                money(stage.usage),
                stage.commit[:7],
                posixpath.basename(stage.document),
            )
            for stage in stages
        ],
    )


def _listed(screen: Screen, what: str, lines: Sequence[str]) -> None:
    if lines:
        screen.line(f"\n{what}")
    for line in lines:
        screen.line("  " + " ".join(line.split()))


def _strings(value: Json) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list | tuple) else []


def _of(data: Json, key: str) -> Json:
    return data.get(key, "") if isinstance(data, Mapping) else ""


class PipelineRunView(LinesView):
    """Shows one run from its launch, or from where it goes on, to its end."""

    def __init__(self, cli: CliContext, run: Run) -> None:
        super().__init__(cli, run)
        self._lines = PipelineLines()
        self._doing = self._lines.doing
        self._back = LookBack()

    async def begin(self, store: Store) -> int:
        first = await super().begin(store)
        if self._run.fence > 1:
            self._lines.know((await history_of(store, self._run.id)).stages)
        return first

    def event(self, event: Event, progress: Progress) -> None:
        if self._screen.json:
            self._screen.record(event.line())
        for line in self._lines.lines(event):
            progress.line(line)
        if self._lines.doing is not self._doing:
            self._doing = self._lines.doing
            progress.doing(self._doing.what, self._doing.until)

    async def look_back(self, podium: Podium, run: Run) -> None:
        if not self._screen.json:
            self._back = await look_back(podium, run)

    def end(self, status: RunListing, exit_code: int) -> None:
        record = result_record(status, exit_code)
        self._screen.answer(record, lambda: self._report(status))

    def _report(self, status: RunListing) -> None:
        run = status.run
        self._screen.line(f"run {run.id} {status.shown_status}")
        show_report(self._screen, run, self._back, ("cost", usage_text(self._back.usage)))
        if run.status is RunStatus.NEEDS_HUMAN and run.failure is not None:
            self._screen.line(f"\nneeds a person:\n{run.failure.message}")
            self._screen.stderr_line(
                f'podium: run {run.id} needs a person; continue with `podium resume {run.id} --note "…"`'
            )
            return
        for line in next_steps(status):
            self._screen.stderr_line(line)
