"""The verification plan of the orchestrator's specification, step by step: with Podium's commands and with the shims."""

from __future__ import annotations

import json
import plistlib
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from podium.cli.app import all_commands
from tests.integration.cli.command_runner import CommandResult, CommandRunner
from tests.soaking import in_soak

SHELL = shutil.which("zsh") or "/bin/sh"
LABEL = "com.02luka.gmx-clc-orchestrator"
SHIM = "g/tools/gmx_clc_orchestrator.zsh"
PARSER = "g/tools/gmx_clc_parse_plan.py"
SAMPLES = {
    "gmx_plan_idle.json": ["candidate_count: 0"],
    "gmx_plan_single_task.json": ["candidate_count: 1"],
    "gmx_plan_multi_task.json": ["candidate_count: 2", "skipped: 2"],
}
TICK_SECONDS = 300


@dataclass(frozen=True)
class Way:
    """Commands for the two actions that the plan tells a person to do, and the samples that are parsed."""

    orchestrate: list[str]
    parse: list[str]
    samples: tuple[str, ...]


WAYS = {
    "commands": Way(["sense", "--once"], ["plan", "parse"], tuple(SAMPLES)),
    "shims": Way([SHELL, SHIM], [sys.executable, PARSER], ("gmx_plan_multi_task.json",)),
}
PATH = "/usr/bin:/bin"
"""Without a planner's CLI on it, wherever this is run."""


def done(cli: CommandRunner, command: list[str]) -> CommandResult:
    if command[0] in all_commands():
        return cli.run(*command, env={"PATH": PATH})
    shim = subprocess.run(
        command,
        cwd=cli.project,
        env={**cli.environ, "PATH": PATH, "PODIUM": cli.command()[0]},
        capture_output=True,
        text=True,
        timeout=TICK_SECONDS,
        check=False,
    )
    return CommandResult(shim.returncode, shim.stdout, shim.stderr)


def summary(cli: CommandRunner) -> str:
    log = (cli.project / "logs/gmx_clc_orchestrator.log").read_text()
    return [line for line in log.splitlines() if "SUMMARY" in line][-1]


def plist(cli: CommandRunner) -> dict[str, Any]:
    content = (cli.project / "LaunchAgents" / f"{LABEL}.plist").read_bytes()
    return dict(plistlib.loads(content))


@pytest.mark.parametrize(
    ("name", "planner", "status"),
    [
        ("commands", "rules", "OK"),
        ("shims", "gemini", "MOCK"),
        in_soak("commands", "gemini", "MOCK"),
        in_soak("shims", "rules", "OK"),
    ],
)
def test_the_verification_plan_holds(
    cli: CommandRunner, name: str, planner: str, status: str
) -> None:
    assert cli.run("sense", "scaffold", env={}).code == 0
    cli.says(f"flows: {{sense: {{planner: {planner}}}}}\n")
    way = WAYS[name]

    # 1, 6: what launchd is to start, and that it is told to change nothing
    wanted = plist(cli)
    assert wanted["Label"] == LABEL
    assert (wanted["StartInterval"], wanted["RunAtLoad"]) == (300, True)
    assert wanted["ProgramArguments"][1:] == [str(cli.project / SHIM)]
    assert wanted["EnvironmentVariables"]["GMX_ORCH_MODE"] == "sensing"

    # 2, 3: a tick by hand, and its line in the log
    ticked = done(cli, way.orchestrate)
    assert ticked.code == 0, ticked.err
    assert summary(cli).endswith(f"GMX_Call_Status={status}, WOs_Created=0, WO_IDs=[]")
    assert summary(cli).partition("SUMMARY")[2] in ticked.out

    # 4: the parser on the samples
    for sample in way.samples:
        parsed = done(cli, [*way.parse, "--input", f"g/tools/samples/{sample}"])
        assert parsed.code == 0, parsed.err
        assert parsed.out.splitlines()[: len(SAMPLES[sample])] == SAMPLES[sample]

    # 5: no work order was made
    assert list((cli.project / "bridge/inbox/CLC").iterdir()) == []

    # and the telemetry has it
    lines = (cli.project / "g/telemetry/gmx_clc_orch.jsonl").read_text().splitlines()
    (tick,) = (json.loads(line) for line in lines)
    assert (tick["mode"], tick["status"], tick["tick"]) == ("sensing", status, 1)
    assert (cli.project / "logs/gmx_clc_parse_plan.log").is_file()


@pytest.mark.soak
def test_a_scheduled_tick_only_watches_whatever_podium_yaml_says_and_however_much_is_broken(
    cli: CommandRunner,
) -> None:
    """As launchd starts it: with its words and its environment, and nothing else."""
    assert cli.run("sense", "scaffold", env={}).code == 0
    cli.says("flows: {sense: {planner: rules, mode: autonomous}}\n")
    broken = {"checks": [{"name": "opal_api", "status": "failed"}]}
    (cli.project / "g/telemetry/health_check_latest.json").write_text(json.dumps(broken))
    wanted = plist(cli)
    script = wanted["ProgramArguments"][1]
    environ = {
        **wanted["EnvironmentVariables"],
        "HOME": str(cli.home),
        "PODIUM_HOME": str(cli.home),
    }
    for expected in ("OK", "SKIPPED"):
        ticked = subprocess.run(
            [SHELL, script],
            cwd=wanted["WorkingDirectory"],
            env=environ,
            capture_output=True,
            text=True,
            timeout=TICK_SECONDS,
            check=False,
        )
        assert ticked.returncode == 0, ticked.stderr
        line = summary(cli)
        assert "Mode=sensing, " in line
        assert line.endswith(f"GMX_Call_Status={expected}, WOs_Created=0, WO_IDs=[]")
    assert list((cli.project / "bridge/inbox/CLC").iterdir()) == []
    assert list((cli.project / "g/reports/wo_candidates").iterdir()) == []


@pytest.mark.soak
def test_the_shim_hands_on_what_it_is_given(cli: CommandRunner) -> None:
    assert cli.run("sense", "scaffold", env={}).code == 0
    cli.says("flows: {sense: {planner: none}}\n")
    output = done(cli, [SHELL, SHIM, "--mode", "dry-run", "--json"])
    assert output.json["mode"] == "dry-run"
    refused = done(cli, [SHELL, SHIM, "--mode", "bold"])
    assert refused.code == 2
    assert list((cli.project / "bridge/inbox/CLC").iterdir()) == []
