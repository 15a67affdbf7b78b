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
from tests.integration.cli.desk import Desk, Said
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


def done(desk: Desk, command: list[str]) -> Said:
    if command[0] in all_commands():
        return desk.run(*command, env={"PATH": PATH})
    shim = subprocess.run(
        command,
        cwd=desk.project,
        env={**desk.environ, "PATH": PATH, "PODIUM": desk.command()[0]},
        capture_output=True,
        text=True,
        timeout=TICK_SECONDS,
        check=False,
    )
    return Said(shim.returncode, shim.stdout, shim.stderr)


def summary(desk: Desk) -> str:
    log = (desk.project / "logs/gmx_clc_orchestrator.log").read_text()
    return [line for line in log.splitlines() if "SUMMARY" in line][-1]


def plist(desk: Desk) -> dict[str, Any]:
    content = (desk.project / "LaunchAgents" / f"{LABEL}.plist").read_bytes()
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
def test_the_verification_plan_holds(desk: Desk, name: str, planner: str, status: str) -> None:
    assert desk.run("sense", "scaffold", env={}).code == 0
    desk.says(f"flows: {{sense: {{planner: {planner}}}}}\n")
    way = WAYS[name]

    # 1, 6: what launchd is to start, and that it is told to change nothing
    wanted = plist(desk)
    assert wanted["Label"] == LABEL
    assert (wanted["StartInterval"], wanted["RunAtLoad"]) == (300, True)
    assert wanted["ProgramArguments"][1:] == [str(desk.project / SHIM)]
    assert wanted["EnvironmentVariables"]["GMX_ORCH_MODE"] == "sensing"

    # 2, 3: a tick by hand, and its line in the log
    ticked = done(desk, way.orchestrate)
    assert ticked.code == 0, ticked.err
    assert summary(desk).endswith(f"GMX_Call_Status={status}, WOs_Created=0, WO_IDs=[]")
    assert summary(desk).partition("SUMMARY")[2] in ticked.out

    # 4: the parser on the samples
    for sample in way.samples:
        parsed = done(desk, [*way.parse, "--input", f"g/tools/samples/{sample}"])
        assert parsed.code == 0, parsed.err
        assert parsed.out.splitlines()[: len(SAMPLES[sample])] == SAMPLES[sample]

    # 5: no work order was made
    assert list((desk.project / "bridge/inbox/CLC").iterdir()) == []

    # and the telemetry has it
    lines = (desk.project / "g/telemetry/gmx_clc_orch.jsonl").read_text().splitlines()
    (tick,) = (json.loads(line) for line in lines)
    assert (tick["mode"], tick["status"], tick["tick"]) == ("sensing", status, 1)
    assert (desk.project / "logs/gmx_clc_parse_plan.log").is_file()


@pytest.mark.soak
def test_a_scheduled_tick_only_watches_whatever_podium_yaml_says_and_however_much_is_broken(
    desk: Desk,
) -> None:
    """As launchd starts it: with its words and its environment, and nothing else."""
    assert desk.run("sense", "scaffold", env={}).code == 0
    desk.says("flows: {sense: {planner: rules, mode: autonomous}}\n")
    broken = {"checks": [{"name": "opal_api", "status": "failed"}]}
    (desk.project / "g/telemetry/health_check_latest.json").write_text(json.dumps(broken))
    wanted = plist(desk)
    script = wanted["ProgramArguments"][1]
    environ = {
        **wanted["EnvironmentVariables"],
        "HOME": str(desk.home),
        "PODIUM_HOME": str(desk.home),
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
        line = summary(desk)
        assert "Mode=sensing, " in line
        assert line.endswith(f"GMX_Call_Status={expected}, WOs_Created=0, WO_IDs=[]")
    assert list((desk.project / "bridge/inbox/CLC").iterdir()) == []
    assert list((desk.project / "g/reports/wo_candidates").iterdir()) == []


@pytest.mark.soak
def test_the_shim_hands_on_what_it_is_given(desk: Desk) -> None:
    assert desk.run("sense", "scaffold", env={}).code == 0
    desk.says("flows: {sense: {planner: none}}\n")
    said = done(desk, [SHELL, SHIM, "--mode", "dry-run", "--json"])
    assert said.json["mode"] == "dry-run"
    refused = done(desk, [SHELL, SHIM, "--mode", "bold"])
    assert refused.code == 2
    assert list((desk.project / "bridge/inbox/CLC").iterdir()) == []
