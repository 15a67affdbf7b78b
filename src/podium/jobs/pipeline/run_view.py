"""View of a run on the command line: lines while it runs, then the report of branch, checks and cost."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from podium.app.app import Podium
from podium.app.run_list import RunListing
from podium.app.run_report import show_run
from podium.cli.context import Door
from podium.cli.progress import LinesView, Progress, result_record
from podium.cli.run_host import next_steps
from podium.cli.screen import Screen
from podium.core.decisions import Usage
from podium.core.errors import PodiumError
from podium.core.events import ChecksRan, Event
from podium.core.model import FrozenModel, Json
from podium.core.work import Run, RunStatus
from podium.jobs.pipeline.event_text import PipelineLines, check_line, duration, in_capitals, money
from podium.jobs.pipeline.events import StageEnded
from podium.ports import EventQuery, Store, StoreView
from podium.render.event import usage_words
from podium.render.text import counted

if TYPE_CHECKING:
    from podium.app.app import Podium


FLOW = "pipeline"
MAX_COMMITS = 100
_PAGE = 1000
_TYPES = ("stage_ended", "checks_ran")


class RunHistory(FrozenModel):
    """Stages and checks of a run so far, from the journal."""

    stages: tuple[StageEnded, ...] = ()
    checks: ChecksRan | None = None
    """Those that ran last."""

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
    after = 0
    while page := await store.read(partial(_page, run_id, after)):
        for event in page:
            if isinstance(event.body, StageEnded):
                stages[event.body] = None
            elif isinstance(event.body, ChecksRan):
                checks = event.body
        after = page[-1].seq
    return RunHistory(stages=tuple(stages), checks=checks)


def _page(run_id: str, after: int, view: StoreView) -> list[Event]:
    return view.events(EventQuery(run_id=run_id, types=_TYPES, after_seq=after, limit=_PAGE))


async def look_back(podium: Podium, run: Run) -> LookBack:
    """Gather it. What git cannot tell any more is left out."""
    store = await podium.store()
    report = await show_run(store, run.id, last_events=0)
    mine = [workspace for workspace in podium.workspaces.known() if workspace.run_id == run.id]
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
        *_delivered(run, result),
    ]


def _not_fetched(result: Mapping[str, Json]) -> str:
    remote = result.get("remote_base")
    why = str(remote.get("why_not") or "") if isinstance(remote, Mapping) else ""
    return f"base not fetched: {why}" if why else ""


def _delivered(run: Run, result: Mapping[str, Json]) -> list[tuple[str, str]]:
    request = result.get("pull_request")
    if not isinstance(request, Mapping):
        return []
    why = f" ({request['why_local']})" if request.get("why_local") else ""
    existed = " (it was there already)" if request.get("existed") else ""
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
    """Archived paths of the documents; before archiving, their paths on the branch."""
    made = dict.fromkeys(stage.document for stage in history.stages if stage.document)
    return _strings(result_of(run).get("documents")) or list(made)


def _checks(run: Run, history: RunHistory) -> list[str]:
    results = result_of(run).get("checks")
    if not isinstance(results, Sequence):
        results = history.checks.results if history.checks else ()
    ran = [check_line(result) for result in results if isinstance(result, Mapping)]
    disputed = dict.fromkeys(text for stage in history.stages for text in stage.disputed)
    notes = _strings(result_of(run).get("check_notes")) or [
        f"disputed: {text}" for text in disputed
    ]
    return [*(ran or (["none ran"] if run.result else [])), *notes]


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

    def __init__(self, door: Door, run: Run) -> None:
        super().__init__(door, run)
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
        show_report(self._screen, run, self._back, ("cost", usage_words(self._back.usage)))
        if run.status is RunStatus.NEEDS_HUMAN and run.failure is not None:
            self._screen.line(f"\na person has to look\n{run.failure.message}")
            self._screen.stderr_line(
                f'podium: it needs a person; `podium resume {run.id} --note "…"`'
            )
            return
        for line in next_steps(status):
            self._screen.stderr_line(line)
