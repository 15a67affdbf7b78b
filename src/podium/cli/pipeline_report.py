"""What a run of the pipeline has to show for itself: branch, documents, checks, cost, and how to merge."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from podium.cli.pipeline_words import check_words, duration, in_capitals, money
from podium.cli.screen import Screen
from podium.domain.errors import PodiumError
from podium.domain.events import ChecksRan, Event, StageEnded
from podium.domain.gating import Usage
from podium.domain.model import Json, Noun
from podium.domain.work import Run
from podium.ports import EventQuery, Store, View
from podium.telling.wording import counted
from podium.usecases import show_run

if TYPE_CHECKING:
    from podium.wiring import Podium

FLOW = "pipeline"
MOST_COMMITS = 100
_PAGE = 1000
_TYPES = ("stage_ended", "checks_ran")


class Passage(Noun):
    """What a run has been through so far, as the journal has it."""

    stages: tuple[StageEnded, ...] = ()
    checks: ChecksRan | None = None
    """Those that ran last."""

    def record(self) -> list[Json]:
        return [each.model_dump(mode="json", exclude={"type", "version"}) for each in self.stages]


class LookBack(Noun):
    """All that the report is made of, beside the run itself."""

    passage: Passage = Passage()
    usage: Usage = Usage()
    branch: str = ""
    workspace: str = ""
    commits: tuple[str, ...] = ()
    """Short id and subject, the oldest first."""


async def passage_of(store: Store, run_id: str) -> Passage:
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
    return Passage(stages=tuple(stages), checks=checks)


def _page(run_id: str, after: int, view: View) -> list[Event]:
    return view.events(EventQuery(run_id=run_id, types=_TYPES, after_seq=after, limit=_PAGE))


async def look_back(podium: Podium, run: Run) -> LookBack:
    """Gather it. What git cannot tell any more is left out."""
    store = await podium.store()
    report = await show_run(store, run.id, last_events=0)
    mine = [each for each in podium.workspaces.known() if each.run_id == run.id]
    branch = mine[-1].branch.removeprefix("refs/heads/") if mine else ""
    job = run.input if isinstance(run.input, Mapping) else {}
    base, repository = str(job.get("base", "")), str(job.get("repository", ""))
    branch = str(result_of(run).get("branch") or branch)
    return LookBack(
        passage=await passage_of(store, run.id),
        usage=report.work.usage,
        branch=branch,
        workspace=mine[-1].path if mine else "",
        commits=await _commits(podium, repository, base, branch) if branch else (),
    )


async def _commits(podium: Podium, repository: str, base: str, branch: str) -> tuple[str, ...]:
    span = f"refs/heads/{base}..refs/heads/{branch}"
    try:
        told = await podium.repository_git.run(
            "-C", repository, "log", "--format=%h %s", f"--max-count={MOST_COMMITS}", span, "--"
        )
    except PodiumError:
        return ()
    return tuple(reversed(told.stdout.decode(errors="replace").splitlines()))


def result_of(run: Run) -> Mapping[str, Json]:
    """What the flow gave back; empty while it has not."""
    return run.result if isinstance(run.result, Mapping) else {}


def show_report(screen: Screen, run: Run, back: LookBack, *beside: tuple[str, str]) -> None:
    """The report, as it stands: of a run that did not come to its end there is less to tell.

    `beside` are further names and values to begin with.
    """
    screen.facts([*beside, *_facts(run, back)])
    if back.commits:
        more = " or more" if len(back.commits) == MOST_COMMITS else ""
        screen.line(f"\n{counted(len(back.commits), 'commit')}{more}")
        for commit in back.commits:
            screen.line(f"  {commit}")
    show_stages(screen, back.passage.stages)
    _listed(screen, "documents", _documents(run, back.passage))
    _listed(screen, "checks", _checks(run, back.passage))
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
    place = shlex.quote(str(_of(run.input, "repository")))
    base = shlex.quote(str(_of(run.input, "base")))
    merge = f"cd {place} && git switch {base} && {command}" if command else ""
    return [
        ("pull request", f"{url}{existed}" if url else f"{file}{why}"),
        ("to merge", merge),
    ]


def _documents(run: Run, passage: Passage) -> list[str]:
    """Where they were archived; before that, where they lie on the branch."""
    made = dict.fromkeys(each.document for each in passage.stages if each.document)
    return _strings(result_of(run).get("documents")) or list(made)


def _checks(run: Run, passage: Passage) -> list[str]:
    known = result_of(run).get("checks")
    if not isinstance(known, Sequence):
        known = passage.checks.results if passage.checks else ()
    ran = [check_words(each) for each in known if isinstance(each, Mapping)]
    disputed = dict.fromkeys(text for each in passage.stages for text in each.disputed)
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
                each.phase,
                in_capitals(each.role) + (f", round {each.round}" if each.round > 1 else ""),
                each.verdict,
                each.agent,
                duration(each.seconds),
                money(each.usage),
                each.commit[:7],
                posixpath.basename(each.document),
            )
            for each in stages
        ],
    )


def _listed(screen: Screen, what: str, lines: Sequence[str]) -> None:
    if lines:
        screen.line(f"\n{what}")
    for line in lines:
        screen.line("  " + " ".join(line.split()))


def _strings(found: Json) -> list[str]:
    return [str(each) for each in found] if isinstance(found, list | tuple) else []


def _of(data: Json, key: str) -> Json:
    return data.get(key, "") if isinstance(data, Mapping) else ""
