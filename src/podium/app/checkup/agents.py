"""Agent CLIs, and the hooks through which they ask."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

from podium.agents.kinds import ABOUT
from podium.app.agent_builder import KINDS
from podium.app.agent_status import agent_status
from podium.app.app import Podium
from podium.app.checkup.check import Finding, Trial, attempt, bad, good, weak
from podium.app.dry_run import ClosedDoor
from podium.app.scratch_store import scratch_store
from podium.core.turns import Turn
from podium.ports import Launcher
from podium.sandbox import HookServer, hook_command
from podium.store import StoreJournal

AGENT_PROGRAMS = {about.program[0]: about.install for about in ABOUT.values() if about.program}
"""Program → how it is installed."""

CANARY = "the doctor's canary was denied as it should be"


async def check_agent(launcher: Launcher, program: str) -> Finding:
    """Starts the CLI and asks for its version."""
    trial = await attempt(launcher, program, "--version", seconds=20.0)
    if not trial.worked:
        return weak(program, trial.complaint, f"to use it: {AGENT_PROGRAMS[program]}")
    return good(program, trial.first_line)


def check_any(podium: Podium) -> Finding:
    """Check that an agent is configured, unless the flows in use need none."""
    names = sorted(podium.settings.agents)
    if names:
        return good("agents", f"configured: {', '.join(names)}")
    needs = "`podium run`, playbooks and a planner that is a model have nobody to ask"
    without = sorted(name for name in podium.settings.flows if _needs_nobody(podium, name))
    if without and len(without) == len(podium.settings.flows):
        says = f"none is configured; {', '.join(without)}, as set up here, needs none, but {needs}"
        return weak("agents", says, f"to use those: {_first_agent(podium)}")
    says = f"none is configured: {needs} (`podium ask` and `planner: rules` need none)"
    return bad("agents", says, _first_agent(podium))


def _needs_nobody(podium: Podium, flow: str) -> bool:
    planner = podium.settings.flows[flow].get("planner")
    return flow in ("operator", "duet") or (flow == "sense" and planner in ("rules", "none"))


def _first_agent(podium: Podium) -> str:
    """Advice for a first agent: of a kind whose program is installed, if any is."""
    search = podium.environ.get("PATH", "")
    programs = {kind: about.program[0] for kind, about in ABOUT.items() if about.program}
    there = [kind for kind, program in programs.items() if shutil.which(program, path=search)]
    kind = there[0] if there else "claude"
    write = f"write `agents: {{{kind}: {{kind: {kind}}}}}` into podium.yaml"
    listed = "`podium agents list` shows what is installed"
    if (podium.folders.project / "podium.yaml").is_file():
        return f"{write}; {listed}"
    trying = "`podium init --example && podium rehearse` tries it without a model"
    return f"`podium init`, then {write}; {listed}; {trying}"


def check_kinds(podium: Podium) -> Finding:
    """An agent of a kind that is not there yet is found when its role is played, which is late."""
    strange = {
        name: agent.kind
        for name, agent in sorted(podium.settings.agents.items())
        if agent.kind not in KINDS
    }
    if strange:
        named = ", ".join(f"{name} ({kind!r})" for name, kind in strange.items())
        says = f"this Podium does not have the kind of agent {named}"
        return weak(
            "kinds", says, f"change `kind:` in podium.yaml; kinds: {', '.join(sorted(KINDS))}"
        )
    return good("kinds", "every agent's kind is there")


async def check_configured(podium: Podium, name: str) -> Finding:
    """An agent of podium.yaml as it would be asked: its own command, key and login."""
    status, label = await agent_status(podium, name), f"agent {name}"
    if not status.ready:
        more = f"`podium agents check {name}` says more"
        return weak(label, f"{status.kind}: {'; '.join(status.troubles)}", more)
    version = status.version or "there"
    login = f"logged in by {status.login}" if status.logged_in == "yes" else "login not looked at"
    return good(label, f"{status.kind} {version}, {login}")


def other_programs(podium: Podium) -> tuple[str, ...]:
    """Programs of agents that podium.yaml does not name."""
    used = {agent.kind for agent in podium.settings.agents.values()}
    return tuple(
        about.program[0] for kind, about in ABOUT.items() if about.program and kind not in used
    )


async def check_hooks(podium: Podium) -> Finding:
    """Runs the real hook client against a live door that denies, and sees the denial come through."""
    with tempfile.TemporaryDirectory(prefix="podium-doctor-") as folder:
        async with scratch_store(podium) as store:
            trial = await _asked(podium, StoreJournal(store), folder)
    if trial.exit_code == 2 and CANARY in trial.complaint:
        return good("hooks", "a hook reaches the door, and a denial comes back")
    return bad(
        "hooks",
        f"the hook answered with exit code {trial.exit_code}: {trial.complaint}",
        "check that sockets work in the folder for temporary files (TMPDIR)",
    )


async def _asked(podium: Podium, journal: StoreJournal, folder: str) -> Trial:
    closed = ClosedDoor(CANARY)
    door = HookServer(closed, podium.toolbox_behind(closed, Path(folder)), journal)
    turn = Turn(run_id="doctor", step_key="doctor", role="doctor", prompt="", workspace=folder)
    question = {
        "hook_event_name": "PreToolUse",
        "tool_name": "read_file",
        "tool_input": {"path": "canary"},
    }
    async with door.open(turn) as opened:
        return await attempt(
            podium.launcher,
            *hook_command(),
            cwd=folder,
            stdin=json.dumps(question).encode(),
            env=opened.env,
        )
