"""Jobs: what each one brings along, named by import path, and the registry that finds them.

The kernel imports no job. It asks the registry for a part, such as the command or the flow of a job, and the part is loaded then.
A job is a folder of `podium.jobs`, or an installed package with an entry point in the group `podium.jobs`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pkgutil import resolve_name
from types import MappingProxyType
from typing import Any, NamedTuple

GROUP = "podium.jobs"
"""Group of entry points whose values are `module:JOB`."""

CHAT_VERBS = ("status", "approve", "answer", "reject", "help")
"""Words of chats that are the kernel's own."""

BUILT_IN = ("pipeline", "operator", "sense", "playbook", "duet", "rehearsal")

ImportPath = str
"""An object's import path, as `module:name`."""


class Command(NamedTuple):
    """Typer app of a command, its line in the list of commands and the heading above it."""

    app: ImportPath
    help: str
    group: str = "Jobs"
    """One of `podium.cli.app.GROUPS`; any other stands after them."""


class ChatVerb(NamedTuple):
    """A word with which people in a chat ask the job for something."""

    answer: ImportPath
    """`async (app, text, by) -> str`: does it and says what came of it. Raises `PodiumError`."""
    argument: str
    """What follows the word, such as TASK."""
    help: str


class FlowSpec(NamedTuple):
    """A flow whose parts are loaded by the first run of it."""

    build: ImportPath
    """`async (app) -> FlowBody`: the body with the ports it uses."""
    input: ImportPath
    """Model of the input; empty for plain JSON."""
    code: ImportPath
    """Function whose source is the flow: a run resumed under another source records `FlowCodeChanged`."""
    version: int = 1
    """Raise it when recorded runs of the old code cannot continue under the new."""
    check: ImportPath = ""
    """`(configuration)`: called before any run is hosted, where settings have options of this flow. Raises `ConfigInvalid`."""


class Job(NamedTuple):
    """Parts of one job. What it does not have is empty."""

    name: str
    flows: Mapping[str, FlowSpec]
    options: ImportPath = ""
    """Model of `flows: <name>:` in podium.yaml."""
    commands: Mapping[str, Command] = MappingProxyType({})
    benches: Mapping[str, ImportPath] = MappingProxyType({})
    """Benchmark → typer app of `podium bench <name>`."""
    report: ImportPath = ""
    """`async (app, run) -> RunSection`: what `podium show` adds for a run; see `podium.cli.commands.show`."""
    run_view: ImportPath = ""
    """Class that shows a run in the foreground; see `podium.cli.run_host.RunView`."""
    request: ImportPath = ""
    """Model of what a request for work may say beside its text."""
    submit: ImportPath = ""
    """`async (Submission) -> Run`: takes a request; see `podium.app.work_request`."""
    request_label: str = "The task"
    """Label of a request's text in forms; empty when it takes none."""
    choices: ImportPath = ""
    """`(app) -> option → possible values`, for forms; an option that is not listed takes free text. Raises `PodiumError`."""
    branch: ImportPath = ""
    """`async (app, run) -> BranchWork`: documents and last commit of a run's branch; see `podium.app.run_branch`."""
    worker: ImportPath = ""
    """Class of what a worker does beside hosting runs; see `podium.cli.queue_worker.WorkerTask`."""
    steering: ImportPath = ""
    """`(configuration) -> name → command or address` of sources that count only when the project's file is trusted."""
    queues: ImportPath = ""
    """`(configuration) -> queues of its own`, beside those that podium.yaml names."""
    pages: ImportPath = ""
    """Router of its pages in the console."""
    api: ImportPath = ""
    """Router of its part of the API, below `/api/v1`."""
    sockets: ImportPath = ""
    """Router of its websockets, below `/api/v1` and not in the API's description."""
    webhooks: ImportPath = ""
    """`(app) -> router` below `/hooks`, which strangers can reach: it proves who sends. None: there is nothing to receive."""
    chat: Mapping[str, ChatVerb] = MappingProxyType({})
    """Word → what people in a chat can ask with it, if they have the role operator."""
    mcp_tools: ImportPath = ""
    """Tools of its own in Podium's MCP server; see `podium.mcp.run_tools`."""
    guarded_files: ImportPath = ""
    """Tuple of paths in a repository that steer the job: an agent's change of them needs an approval."""
    planned_call: ImportPath = ""
    """`(run input, plan hash, number) -> PlannedCall | None`: calls that the approval of a whole plan covers."""
    events: Mapping[str, ImportPath] = MappingProxyType({})
    """Type of event → its class, a subclass of `EventBody`."""
    upcasts: Mapping[tuple[str, int], ImportPath] = MappingProxyType({})
    """(type, version) → `(data) -> data`: lifts a stored event of that version to the next one."""
    event_view: ImportPath = ""
    """`(body) -> EventView`: how its events are shown; see `podium.render.event_view`."""
    approvals: ImportPath = ""
    """Class of how approvals that its runs ask for are named, shown and edited; see `podium.app.inbox.JobApprovals`."""
    uninstall: ImportPath = ""
    """Class that looks for what keeps a project from being removed; see `podium.app.inventory.UninstallCheck`."""
    metrics: ImportPath = ""
    """Class of the counters of its events; see `podium.telemetry.metrics.JobMetrics`."""


@cache
def built_in_jobs() -> tuple[Job, ...]:
    """Jobs that Podium brings."""
    return tuple(resolve_name(f"podium.jobs.{name}.job:JOB") for name in BUILT_IN)


class InstalledJobs(NamedTuple):
    """Jobs of other packages that can be used, and why others cannot."""

    jobs: tuple[Job, ...]
    problems: tuple[str, ...]


@cache
def find_installed_jobs() -> InstalledJobs:
    """Load the jobs of other packages, in the order of their names.

    A package that is broken, or takes the name of a job, flow, command or type of event that exists, is left out and reported:
    it must not stop the other jobs. `podium doctor` shows the problems.
    """
    from importlib.metadata import (
        entry_points,  # late: it reads the folders of all installed packages
    )

    taken = {name for job in built_in_jobs() for name in _names_of(job)}
    jobs: list[Job] = []
    problems: list[str] = []
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
        try:
            job = entry.load()
        except Exception as error:
            problems.append(f"job {entry.name!r} ({entry.value}) cannot be loaded: {error!r}")
            continue
        if not isinstance(job, Job):
            problems.append(f"job {entry.name!r} ({entry.value}) is a {type(job).__name__}, not a Job")  # fmt: skip
            continue
        flows: Mapping[str, Any] = job.flows
        if wrong := [name for name, flow in flows.items() if not isinstance(flow, FlowSpec)]:
            problems.append(f"job {entry.name!r} ({entry.value}) has flows that are not a FlowSpec: {', '.join(wrong)}")  # fmt: skip
            continue
        if wrong := [
            verb for verb in job.chat if verb in CHAT_VERBS or not re.fullmatch("[a-z]+", verb)
        ]:
            problems.append(f"job {entry.name!r} ({entry.value}) has invalid chat commands: {', '.join(wrong)}")  # fmt: skip
            continue
        names = _names_of(job)
        if names & taken:
            problems.append(f"job {entry.name!r} ({entry.value}) uses names that are taken: {', '.join(sorted(names & taken))}")  # fmt: skip
            continue
        taken |= names
        jobs.append(job)
    return InstalledJobs(tuple(jobs), tuple(problems))


def _names_of(job: Job) -> set[str]:
    """Names that no other job may have."""
    return {job.name, *job.flows, *job.commands, *job.events, *job.chat}


def installed_jobs() -> tuple[Job, ...]:
    """Jobs of other packages. Those of Podium keep their names, flows and commands."""
    return find_installed_jobs().jobs


def all_jobs() -> tuple[Job, ...]:
    return (*built_in_jobs(), *installed_jobs())


def job_of_flow(flow: str) -> Job | None:
    """Job that a flow belongs to; None for a flow of the kernel or of an unknown job."""
    return _find_job(lambda job: flow in job.flows)


def job_of_event(name: str) -> Job | None:
    """Job that a type of event belongs to; None for one of the kernel or of an unknown job."""
    return _find_job(lambda job: name in job.events)


def job_event_types() -> tuple[str, ...]:
    """Types of the events of all jobs."""
    return tuple(name for job in all_jobs() for name in job.events)


def _find_job(fits: Callable[[Job], bool]) -> Job | None:
    """The first job that fits. Installed ones are looked for only if none of Podium's does."""
    for jobs in (built_in_jobs, installed_jobs):
        for job in jobs():
            if fits(job):
                return job
    return None


def load(path: ImportPath) -> Any:
    """Import the object at a path."""
    return resolve_name(path)


def load_parts(part: str) -> Iterator[tuple[Job, Any]]:
    """Load one part of every job that has it, such as `approvals`.

    A part of an installed job that cannot be loaded is left out and reported: it must not stop commands of the kernel.
    """
    for job in all_jobs():
        loaded = load_part(job, part)
        if loaded is not None:
            yield job, loaded


def load_part(job: Job | None, part: str) -> Any:
    """Load one part of a job; None when it has none, or is installed and its part cannot be loaded."""
    path: ImportPath = getattr(job, part) if job is not None else ""
    if not path:
        return None
    try:
        return load(path)
    except Exception as error:
        if job in built_in_jobs():
            raise
        _report_part(
            f"podium: {part} of job {job.name if job else ''!r} cannot be loaded from {path!r}: {error!r}"
        )
        return None


@cache
def _report_part(text: str) -> None:
    """Write it once in the life of the process. The application may not be there yet."""
    sys.stderr.write(f"{text}\n")
