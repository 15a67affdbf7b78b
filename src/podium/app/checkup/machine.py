"""Checks of Python, git, tmux, agent CLIs and their hooks, approver groups, and kernel confinement with a canary."""

from __future__ import annotations

import asyncio
import json
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from pathlib import Path

from podium.agents.kinds import ABOUT
from podium.app.agent_builder import KINDS
from podium.app.agent_status import agent_status, login_remedy
from podium.app.app import Podium
from podium.app.checkup.check import CheckFinding, Trial, attempt, bad, good, weak
from podium.app.dry_run import ClosedDoor, scratch_store
from podium.config.settings import SandboxSettings
from podium.core.events import KERNEL_EVENTS
from podium.core.job import find_installed_jobs
from podium.core.turns import Turn
from podium.ports import Launcher
from podium.sandbox import HookServer, Mechanism, MechanismTrial, can_make_groups, hook_command
from podium.store import StoreJournal

OLDEST_PYTHON = (3, 11)
OLDEST_TMUX = (3, 2)


async def check_python() -> CheckFinding:
    says = f"{platform.python_version()} at {sys.executable}"
    if sys.version_info < OLDEST_PYTHON:
        return bad("python", says, "install Python 3.11 or newer")
    return good("python", says)


async def check_jobs() -> CheckFinding:
    """Report jobs of other packages that are left out: their commands and runs are missing."""
    jobs, problems = find_installed_jobs()
    problems += tuple(
        f"job {job.name!r} lists event types that belong to Podium: {', '.join(sorted(taken))}"
        for job in jobs
        if (taken := KERNEL_EVENTS.keys() & job.events.keys())
    )
    if problems:
        return weak("jobs", "; ".join(problems), "upgrade or uninstall the package")
    names = ", ".join(job.name for job in jobs)
    return good("jobs", f"from other packages: {names}" if names else "none from other packages")


async def check_git(launcher: Launcher) -> CheckFinding:
    """Git must be there and able to make a repository."""
    version = await attempt(launcher, "git", "--version")
    mend = "install git (apt-get install git, brew install git)"
    if not version.worked:
        return bad("git", version.complaint, mend)
    with tempfile.TemporaryDirectory(prefix="podium-doctor-") as folder:
        made = await attempt(launcher, "git", "init", "--quiet", folder)
        looked = await attempt(launcher, "git", "-C", folder, "status", "--porcelain")
    for trial in (made, looked):
        if not trial.worked:
            return bad("git", f"{version.first_line}, but: {trial.complaint}", mend)
    return good("git", version.first_line.removeprefix("git version "))


async def check_tmux(launcher: Launcher) -> CheckFinding:
    """Tmux must be new enough and able to keep a session, on a socket of our own."""
    mend = "install tmux 3.2 or newer (apt-get install tmux); live terminal agents need it"
    version = await attempt(launcher, "tmux", "-V")
    if not version.worked:
        return weak("tmux", version.complaint, mend)
    match = re.search(r"(\d+)\.(\d+)", version.first_line)
    if match is None or (int(match[1]), int(match[2])) < OLDEST_TMUX:
        return weak("tmux", f"{version.first_line} is too old", mend)
    with tempfile.TemporaryDirectory(prefix="podium-doctor-") as folder:
        session = await attempt(
            launcher,
            *("tmux", "-S", str(Path(folder) / "socket"), "-f", "/dev/null"),
            *("new-session", "-d", "-s", "doctor", "cat", ";"),
            *("list-sessions", ";", "kill-server"),
        )
    if "doctor" not in session.output:
        return weak("tmux", f"{version.first_line}, but: {session.complaint}", mend)
    return good("tmux", version.first_line.removeprefix("tmux "))


async def check_repository(podium: Podium) -> CheckFinding:
    """Look at the checkout that `podium run` starts from."""
    from podium.app.project_setup import look_at_repository

    look, problem = await look_at_repository(podium)
    if look is None:
        says, _, mend = problem.partition("; ")
        return weak("repository", says, f"for `podium run`: {mend or 'see the problem above'}")
    return good("repository", f"on branch {look.branch}" if look.branch else "HEAD is detached")


async def check_checks(podium: Podium) -> CheckFinding:
    """Look at the project's checks: tests that cannot be run stop every task before its first agent."""
    from podium.app.project_setup import look_at_checks

    says, mend = await look_at_checks(podium)
    return weak("checks", says, mend) if mend else good("checks", says)


def check_approvers(podium: Podium) -> CheckFinding:
    """Check approver groups: a request to a group without members waits until its deadline."""
    empty = {
        group: rule
        for rule, group in _asked_for(podium)
        if not podium.settings.approvers.get(group)
    }
    if empty:
        named = ", ".join(f"{group!r} (rule {rule!r})" for group, rule in sorted(empty.items()))
        mend = "add members under `approvers:`; until then nobody can approve"
        return weak("approvers", f"no members: {named}", mend)
    return good("approvers", "every group that a rule names has members")


def _asked_for(podium: Podium) -> list[tuple[str, str]]:
    """Rule and group, of every rule that names one; what is no list of rules was told already."""
    groups_by_rule = []
    for layer in podium.configuration.layers:
        rules = (layer.located.data.get("policy") or {}).get("rules")
        for rule in rules if isinstance(rules, list) else []:
            groups = rule.get("approvals") if isinstance(rule, dict) else None
            for group in groups if isinstance(groups, list) else []:
                groups_by_rule.append((str(rule.get("name", "")), str(group)))
    return groups_by_rule


Ways = Sequence[MechanismTrial]
"""Of confining, from the best on, each tried; none where the settings want none."""

ALLOW_NAMESPACES = (
    "bubblewrap is installed but lacks permissions: allow user namespaces (as root: `sysctl kernel.unprivileged_userns_clone=1`, "
    "on Ubuntu `sysctl kernel.apparmor_restrict_unprivileged_userns=0`); a container must be started so that /proc can be mounted"
)


async def confining_ways(podium: Podium) -> Ways:
    """Try them, unless nothing is to be confined anyway."""
    return () if podium.configuration.sandbox.kind == "none" else await podium.confining_ways()


async def check_limits(podium: Podium, ways: Awaitable[Ways]) -> CheckFinding:
    """Report the limits of processes and runs, and the mechanism that enforces each."""
    configuration, run = podium.configuration, podium.settings.budgets.run
    trees = _tree_limits(
        configuration.sandbox,
        next((trial.mechanism for trial in await ways if trial.works), None),
        grouped=await asyncio.to_thread(can_make_groups),
    )
    runs: dict[str, float | None] = {"tokens": run.tokens, "USD": run.usd}
    held = [f"{limit.label} ({limit.holder})" for limit in trees if limit.amount and limit.holder]
    used = [f"{amount:,} {what}" for what, amount in runs.items() if amount]
    says = f"per process tree: {', '.join(held) or 'none'}; per run: {', '.join(used) or 'none'}"
    mends = []
    for limit in trees:
        if limit.amount and not limit.holder:
            says += f"; not enforced: {limit.label} ({limit.why_not})"
            mends.append(limit.mend)
    off = [limit.what for limit in trees if not limit.amount]
    off += [what for what, amount in runs.items() if not amount]
    if off and sys.platform == "linux":
        says += f"; disabled: {', '.join(off)}"
        mends.append("see `podium config show`")
    if unheeded := configuration.unheeded_limits():
        says += f"; ignored in podium.yaml: {', '.join(unheeded)}, allowed only in your own file"
        mends.append("move it there, or remove it from podium.yaml")
    return weak("limits", says, "; ".join(mends)) if mends else good("limits", says)


@dataclass(frozen=True)
class _TreeLimit:
    """A limit of process trees, and who holds it; without a holder, why there is none and what helps."""

    what: str
    amount: int | None
    holder: str
    why_not: str = "on Linux only"
    mend: str = "run Podium on Linux"

    @property
    def label(self) -> str:
        return f"{self.amount} {self.what}"


def _tree_limits(
    sandbox: SandboxSettings, mechanism: Mechanism | None, *, grouped: bool
) -> list[_TreeLimit]:
    counted = "" if sys.platform != "linux" else "cgroup v2" if grouped else "counted by the guard"
    sized = "mounts, the guard for their sum" if mechanism and mechanism.limits_temporary else ""
    if mechanism is None and sandbox.kind != "none":
        why_not, mend = "no sandbox works here", "see `sandbox`"
    elif mechanism is None:
        why_not, mend = "`sandbox: none` mounts nothing", "enable the sandbox"
    elif mechanism.bubblewrap:
        why_not, mend = "bubblewrap is too old for it", "install bubblewrap 0.8 or later"
    else:
        why_not, mend = f"{mechanism.title} mounts nothing", "see `sandbox`"
    return [
        _TreeLimit("processes", sandbox.processes, counted),
        _TreeLimit("MB of memory", sandbox.memory_mb, counted),
        _TreeLimit("MB in a file", sandbox.file_mb, "rlimit"),
        _TreeLimit("MB of temporary files", sandbox.temporary_mb, sized, why_not, mend),
    ]


async def check_sandbox(podium: Podium, ways: Awaitable[Ways]) -> CheckFinding:
    """Check if and how agents' processes can be confined here, and which settings of a project do not count."""
    finding = _confinement(podium, await ways)
    unheeded = podium.configuration.ignored_settings()
    if not unheeded or finding.state == "fail":
        return finding
    wants = ", ".join(f"{setting}, allowed only {where}" for setting, where in unheeded.items())
    mend = "move it there, or remove it from podium.yaml"
    mends = f"{finding.mend}; {mend}" if finding.mend else mend
    return weak("sandbox", f"{finding.says}; ignored in podium.yaml: {wants}", mends)


def _confinement(podium: Podium, trials: Ways) -> CheckFinding:
    sandbox = podium.configuration.sandbox
    if sandbox.kind == "none":
        origin = podium.configuration.origin_of("sandbox.kind")
        by_variable = podium.environ.get("PODIUM_SANDBOX")
        mend = "unset PODIUM_SANDBOX" if by_variable else "remove `sandbox: none`"
        return weak("sandbox", f"disabled ({origin})", mend)
    works = [trial for trial in trials if trial.works]
    missed = "; ".join(
        f"{trial.mechanism.title}: {trial.why}" for trial in trials if not trial.works
    )
    if not works:
        mend = (
            "install bubblewrap and allow user namespaces, or set `sandbox: none` in your own file"
        )
        return bad("sandbox", f"no sandbox works here: {missed or 'Linux only'}", mend)
    says = f"{works[0].mechanism.title}; network {sandbox.network}"
    if missed and works[0] != trials[0]:
        installed = any(trial.mechanism.bubblewrap for trial in trials)
        mend = ALLOW_NAMESPACES if installed else "install bubblewrap"
        return weak("sandbox", f"{says}, used as a fallback ({missed})", mend)
    return good("sandbox", says)


CANARY = "the doctor's canary was denied as expected"


async def check_unused_agent(podium: Podium, kind: str) -> CheckFinding:
    """Start the CLI of a kind that no agent in the settings has. Only without agents it must be usable."""
    about = ABOUT[kind]
    [program] = about.program
    trial = await attempt(podium.launcher, program, "--version", seconds=20.0)
    if trial.missing and podium.settings.agents:
        return good(program, "not installed; none of your agents needs it")
    if not trial.worked:
        return weak(program, trial.complaint, f"to use it: {about.install}")
    remedy = "" if podium.settings.agents else login_remedy(podium, kind)
    if remedy:
        return weak(program, f"{trial.first_line}, not logged in", remedy)
    return good(program, trial.first_line)


def check_any(podium: Podium, agents: Sequence[CheckFinding]) -> CheckFinding:
    """Check that an agent is configured and usable, unless the flows in use need none. `agents` are those of `check_configured`."""
    names = ", ".join(sorted(podium.settings.agents))
    if any(finding.state == "ok" for finding in agents):
        return good("agents", f"configured: {names}")
    problem = f"none of them can be used: {names}" if names else "none configured"
    mend = "fix one of them, see above" if names else _first_agent(podium)
    needs = "`podium run`, playbooks and planners that are models need one"
    without = sorted(name for name in podium.settings.flows if _needs_nobody(podium, name))
    if without and len(without) == len(podium.settings.flows):
        says = f"{problem}; {', '.join(without)} as set up here works without, but {needs}"
        return weak("agents", says, f"to use those: {mend}")
    says = f"{problem}; {needs} (`podium ask` and `planner: rules` do not)"
    return bad("agents", says, mend)


def _needs_nobody(podium: Podium, flow: str) -> bool:
    planner = podium.settings.flows[flow].get("planner")
    return flow in ("operator", "duet") or (flow == "sense" and planner in ("rules", "none"))


def _first_agent(podium: Podium) -> str:
    """Advice for a first agent: of a kind whose program is installed, if any is."""
    search = podium.environ.get("PATH", "")
    programs = {kind: about.program[0] for kind, about in ABOUT.items() if about.program}
    there = [kind for kind, program in programs.items() if shutil.which(program, path=search)]
    kind = there[0] if there else "claude"
    write = f"add `agents: {{{kind}: {{kind: {kind}}}}}` to podium.yaml"
    listed = "`podium agents list` shows what is installed"
    if (podium.folders.project / "podium.yaml").is_file():
        return f"{write}; {listed}"
    trying = "`podium init --example && podium rehearse` tries it without a model"
    return f"`podium init`, then {write}; {listed}; {trying}"


def check_kinds(podium: Podium) -> CheckFinding:
    """An agent of a kind that is not there yet is found when its role is played, which is late."""
    strange = {
        name: agent.kind
        for name, agent in sorted(podium.settings.agents.items())
        if agent.kind not in KINDS
    }
    if strange:
        named = ", ".join(f"{name} ({kind!r})" for name, kind in strange.items())
        says = f"unknown kinds: {named}"
        return weak(
            "kinds", says, f"change `kind:` in podium.yaml; kinds: {', '.join(sorted(KINDS))}"
        )
    return good("kinds", "every agent's kind is known")


async def check_configured(podium: Podium, name: str) -> CheckFinding:
    """An agent of podium.yaml as it would be asked: its own command, key and login."""
    status, label = await agent_status(podium, name), f"agent {name}"
    if not status.ready:
        more = f"see `podium agents check {name}`"
        return weak(label, f"{status.kind}: {'; '.join(status.troubles)}", more)
    version = status.version or "installed"
    login = f"logged in with {status.login}" if status.logged_in == "yes" else "login not checked"
    return good(label, f"{status.kind} {version}, {login}")


def unused_kinds(podium: Podium) -> tuple[str, ...]:
    """Kinds of CLIs that no agent in the settings has."""
    used = {agent.kind for agent in podium.settings.agents.values()}
    return tuple(kind for kind, about in ABOUT.items() if about.program and kind not in used)


async def check_hooks(podium: Podium) -> CheckFinding:
    """Runs the real hook client against a live door that denies, and sees the denial come through."""
    with tempfile.TemporaryDirectory(prefix="podium-doctor-") as folder:
        async with scratch_store(podium) as store:
            trial = await _asked(podium, StoreJournal(store), folder)
    if trial.exit_code == 2 and CANARY in trial.complaint:
        return good("hooks", "a hook reaches Podium, and its denial is returned")
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
