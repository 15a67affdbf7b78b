"""Podium from Python: profile, playbook, prompt and run, each usable alone.

profile = load_profile("plugin-profile.yaml")
playbook = load_playbook("bump.md")
print(build_prompt(profile, playbook, {"version": "2.0"}).text)
result = await run_playbook(playbook, profile, root=".", agent="gemini", inputs={"version": "2.0"})
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from podium.agents.deps import AgentMaker
from podium.app.app import Podium, open_podium
from podium.app.run_control import see_through
from podium.config.configuration import load_configuration
from podium.core.errors import NeedsHuman, StepFailed
from podium.core.events import Event
from podium.core.work import Run, RunStatus
from podium.jobs.playbook import build_prompt
from podium.jobs.playbook import loader as files
from podium.jobs.playbook.models import PLAYBOOK, Playbook, PlaybookResult, PluginProfile
from podium.ports import EventQuery
from podium.telemetry.event_feed import ListenerThread

__all__ = [
    "AgentMaker",
    "PlaybookResult",
    "build_prompt",
    "load_playbook",
    "load_profile",
    "run_playbook",
]

MADE = "made"
"""Name of an agent that a program brings along."""


def load_profile(path: str | Path = ".") -> PluginProfile:
    """The profile in a file; of a folder the nearest one upwards. Raises `ConfigInvalid` with every fault."""
    return files.load_profile(Path(path))


def load_playbook(path: str | Path) -> Playbook:
    """The playbook in a file, with what it includes. Raises `ConfigInvalid` with every fault."""
    return files.load_playbook(Path(path))


async def run_playbook(
    playbook: Playbook | str | Path,
    profile: PluginProfile | str | Path | None = None,
    *,
    root: str | Path = ".",
    agent: str | AgentMaker = "",
    inputs: Mapping[str, str] | None = None,
    dry_run: bool = False,
    on_event: Callable[[Event], None] | None = None,
    environ: Mapping[str, str] | None = None,
) -> PlaybookResult:
    """Let an agent follow the playbook in the folder `root`, and prove what came of it.

    `agent` is a name of podium.yaml, or makes an agent of the kit it is given, as
    `lambda kit: GeminiAgent(kit, os.environ.__getitem__)` does. `on_event` is called with every event, in a
    thread of its own; what it raises is told at the end and changes nothing. `environ` is read instead of the process's own.

    The record is kept in `.podium` beneath the project that `root` is in. Raises `BadInput` for what cannot be run,
    `NeedsHuman` when the run waits for a person, and `StepFailed` when it failed before anything could be
    proved. Criteria that are not met are no error: see `met` of the result.
    """
    surroundings = os.environ if environ is None else environ
    root_path = Path(root)
    plugin_profile = (
        profile if isinstance(profile, PluginProfile) else load_profile(profile or root_path)
    )
    pages = playbook if isinstance(playbook, Playbook) else load_playbook(playbook)
    made = {} if isinstance(agent, str) else {MADE: agent}
    configuration = load_configuration(surroundings, start=root_path)
    async with open_podium(configuration, surroundings, made_agents=made) as podium:
        from podium.jobs.playbook.composition import playbook_job

        job = playbook_job(
            podium,
            pages,
            plugin_profile,
            root=root_path,
            agent=agent if isinstance(agent, str) else MADE,
            inputs=inputs,
            dry_run=dry_run,
        )
        engine = await podium.hosting_engine()
        run = await engine.start(
            PLAYBOOK,
            job.model_dump(mode="json"),
            task=pages.head.name,
            settings=configuration.run_settings(),
        )
        run = await _run_to_end(podium, run, on_event)
        return await _result(podium, run)


async def _run_to_end(podium: Podium, run: Run, on_event: Callable[[Event], None] | None) -> Run:
    """To its end, or to where it waits."""
    engine = await podium.hosting_engine()
    if on_event is None:
        return await see_through(engine, run, wait=False)
    listening = ListenerThread(
        await podium.store(), EventQuery(run_id=run.id), on_event, name="on_event"
    )
    try:
        return await see_through(engine, run, wait=False)
    finally:
        await listening.close()
        for problem in listening.problems:
            podium.notify(problem)


async def _result(podium: Podium, run: Run) -> PlaybookResult:
    store = await podium.store()
    ended = await store.read(lambda view: view.step(run.id, "end"))
    if ended is not None and ended.output is not None:
        return PlaybookResult.model_validate(ended.output)
    if run.status in (RunStatus.WAITING, RunStatus.NEEDS_HUMAN):
        raise NeedsHuman(
            f"run {run.id} waits for a person: answer with `podium approvals`, then continue with "
            f"`podium resume {run.id}`"
        )
    failure = run.failure
    raise StepFailed(
        run.id,
        failure.kind if failure else "unknown",
        failure.message if failure else f"it is {run.status}",
        failure.exit_code if failure else 1,
    )
