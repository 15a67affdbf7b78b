"""Make `frozen/podium-VERSION.tar.xz` with this version: `python -m tests.integration.deploy.freeze`.

The archive holds a project and a home with runs of every job, by scripted agents and real git: finished ones, ones that
wait for an approval, and ones whose process was killed. The archives of earlier versions stay as they are.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from podium import __version__
from podium.app.app import Podium
from podium.core.work import RunStatus
from podium.testing.fake_tuis import ScriptedAnswers, tui_command
from tests.integration.cli.ask_harness import NEW_LEAD
from tests.integration.cli.command_runner import CommandRunner
from tests.integration.cli.pipeline_harness import (
    AUDITORS,
    CHECK,
    TASK,
    architects,
    developer,
    plan_reviewer,
    turn,
)
from tests.integration.cli.sense_harness import HEALTH, INBOX
from tests.integration.cli.test_run_command import NAMED
from tests.integration.deploy.frozen_project import (
    FROZEN,
    NO_VARIABLES,
    PODIUM,
    FrozenProject,
)
from tests.integration.playbook.playbook_harness import EDIT, HEAD, PAGE, PROFILE, READ
from tests.unit.cli.test_event_text import KINDS, sample

SETTINGS = {
    "agents": {"player": {"kind": "scripted", "script": "script.yaml"}},
    "checks": [CHECK],
    "policy": {"rules": [{"name": "count-first", "command": "wc **", "decision": "ask"}]},
    "flows": {"sense": {"planner": "rules", "mode": "supervised"}},
}
USER_SETTINGS = {
    "policy": {"approval_seconds": 3e9},
    "sandbox": {"kind": "none"},
    "flows": {"operator": {"pack": "roofing"}},
}
"""A century for every approval: the tests of later years answer them."""
PLAYBOOK_TURN = {"role": "playbook", "acts": [READ, EDIT], "reply": "Done."}
PLANNING = (*architects(), plan_reviewer())
COUNTING_DEVELOPER = developer({"run": "wc -l greeting.py"})
IGNORED = "__pycache__/\nscript.yaml\nstate/\nbridge/\ng/\nlogs/\n"


class Freezer(FrozenProject):
    """Calls Podium as a person does and fails at the first exit code that is not the expected one."""

    def podium(
        self, *arguments: str, code: int = 0, variables: Mapping[str, str] = NO_VARIABLES
    ) -> str:
        done = self.run(PODIUM, *arguments, variables=variables)
        if done.returncode != code:
            sys.exit(
                f"podium {shlex.join(arguments)}: {done.returncode}\n{done.stdout}{done.stderr}"
            )
        return done.stdout

    def kill(self, *arguments: str, role: str) -> None:
        """Kill the command's process once the role's agent is at work."""
        with subprocess.Popen(
            self.command(PODIUM, *arguments, "--json"),
            env=self.environ,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout
            for line in process.stdout:
                event = json.loads(line)
                if event["type"] == "agent_asked" and event["role"] == role:
                    os.kill(process.pid, signal.SIGKILL)
                    break

    def write(self, path: str, content: str) -> None:
        file = self.project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)

    def play(self, *turns: dict[str, Any]) -> None:
        """Let the scripted agent have these turns from now on."""
        self.write("script.yaml", yaml.safe_dump({"turns": turns}))


def make_project(project: Freezer) -> None:
    project.write("podium.yaml", yaml.safe_dump(SETTINGS))
    project.write("greeting.py", "HELLO = 1\n")
    project.write(".gitignore", IGNORED)
    project.write("version.txt", "1.0\n")
    project.write("plugin-profile.yaml", yaml.safe_dump(PROFILE))
    project.write("bump.md", f"---\n{yaml.safe_dump(HEAD)}---\n{PAGE}")
    project.home.mkdir()
    (project.home / "config.yaml").write_text(yaml.safe_dump(USER_SETTINGS))
    project.podium("sense", "scaffold")
    for words in (
        ("init", "-q", "-b", "main", "--template="),
        ("add", "."),
        ("commit", "-qm", "first"),
    ):
        done = project.run("git", *words, variables=NAMED)
        assert done.returncode == 0, done.stderr
    project.podium("trust", "--yes")


def run_pipeline(project: Freezer) -> None:
    """One delivered, one that waits for an approval within the developer's turn, one killed within the auditor's."""
    project.play(*PLANNING, developer(), *AUDITORS)
    project.podium("run", TASK)
    project.play(*PLANNING, developer(), turn("auditor", {"hang": True}))
    project.kill("run", TASK, "--mode", "quick", role="auditor")
    project.play(*PLANNING, COUNTING_DEVELOPER)
    project.podium("run", TASK, "--mode", "quick", code=3)


def run_operator(project: Freezer) -> None:
    """One that is done, and a plan that waits for an approval."""
    answer = json.loads(project.podium("ask", NEW_LEAD, "-M", "execute", "--json"))
    lead = answer["results"][-1]["fields"]["lead_id"]
    project.podium("ask", f"create a quote for {lead}", "-M", "execute", code=3)


def run_sense(project: Freezer) -> None:
    """A tick with a plan: one of its candidates becomes an order that a worker performs, the other waits."""
    checks = [{"name": name, "status": "failed", "message": "no answer"} for name in ("api", "db")]
    project.write(HEALTH, json.dumps({"status": "known", "checks": checks}))
    tick = json.loads(project.podium("sense", "--once", "--json"))
    order = tick["candidates"][0]["wo_id"]
    project.podium("deploy", order)
    file = project.project / INBOX / f"{order}.yaml"
    file.write_text(f"{file.read_text()}ops: [{{op: write, path: g/reports/a.md, content: a}}]\n")
    project.podium("worker", "--queue", "orders", "--once")


def run_playbooks(project: Freezer) -> None:
    """One that is finished, one killed within the agent's turn."""
    project.play(PLAYBOOK_TURN)
    project.podium("playbook", "run", "bump.md")
    project.write("version.txt", "1.0\n")
    project.play({"role": "playbook", "acts": [READ, {"hang": True}]})
    project.kill("playbook", "run", "bump.md", role="playbook")


def run_duet(project: Freezer, sockets: str) -> None:
    """A task that two programs on a terminal have finished."""
    variables = {"TMUX_TMPDIR": sockets, "TMPDIR": sockets}
    for side in ("PLANNER", "EXECUTER"):
        answers = ScriptedAnswers().write_to(Path(sockets, f"{side}.json"))
        command = tui_command("composer", Path(sockets, side), answers)
        variables[f"{side}_CMD"] = shlex.join(command)
    try:
        project.podium("duet", "up", "--grant", variables=variables)
        project.podium("duet", "send", "tidy up", variables=variables)
    finally:
        project.podium("duet", "down", "--force", variables=variables)


def record_every_event(cli: CommandRunner) -> None:
    """A run with one event of every type, for the types that no run above has."""
    run = cli.add_run(task="one event of every type", status=RunStatus.SUCCEEDED)

    async def work(podium: Podium) -> None:
        store = await podium.store()
        await store.write(lambda tx: [tx.append(run.id, sample(kind)) for kind in KINDS])

    cli.within(work)


def main() -> None:
    archive = FROZEN / f"podium-{__version__}.tar.xz"
    with tempfile.TemporaryDirectory(prefix="pf", dir="/tmp") as folder:
        cli = CommandRunner(Path(folder))
        project = Freezer(Path(folder))
        make_project(project)
        run_pipeline(project)
        run_operator(project)
        run_sense(project)
        run_playbooks(project)
        with tempfile.TemporaryDirectory(prefix="pd", dir="/tmp") as sockets:
            run_duet(project, sockets)
        record_every_event(cli)
        project.play(*PLANNING, COUNTING_DEVELOPER, *AUDITORS, PLAYBOOK_TURN)
        with tarfile.open(archive, "w:xz", preset=9) as packed:
            packed.add(folder, ".")
    print(f"{archive}: {archive.stat().st_size} bytes")


if __name__ == "__main__":
    main()
