from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from podium.core.decisions import Call, Effect, GateContext, Refusal
from podium.core.errors import BadArguments, BadInput
from podium.testing import ScriptedGate, decision
from podium.tools import checks_tool
from tests.unit.tools.rig import SECRET, Rig, make_rig

CHECKS = {
    "tests": "echo all is well",
    "lint": ["sh", "-c", "echo bad line; echo why >&2; exit 3"],
    "slow": ["sleep", "60"],
}


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return make_rig(tmp_path, [checks_tool(CHECKS)])


async def test_each_check_is_told_with_command_exit_code_time_and_hash(rig: Rig) -> None:
    outcome = await rig.use("run_checks", names=["tests", "lint"])

    assert outcome.ok
    assert (outcome.result["passed"], outcome.result["failed"]) == (False, ["lint"])
    tests, lint = outcome.result["checks"]
    assert (tests["command"], tests["exit_code"], tests["passed"]) == ("echo all is well", 0, True)
    assert tests["output"] == "all is well"
    assert tests["output_sha256"] == hashlib.sha256(b"all is well\n\0").hexdigest()
    assert tests["seconds"] >= 0
    assert (lint["error"], lint["exit_code"], lint["output"]) == ("exit code 3", 3, "bad line\nwhy")
    (receipt,) = await rig.receipts()
    assert receipt.status == "completed"
    assert receipt.fields["evidence"][1] == {
        "name": "lint",
        "exit_code": 3,
        "output_sha256": lint["output_sha256"],
    }


async def test_no_names_mean_all_and_a_name_counts_once(tmp_path: Path) -> None:
    rig = make_rig(tmp_path, [checks_tool({"a": "echo a", "b": ["echo", "b"]})])

    every = await rig.use("run_checks")
    twice = await rig.use("run_checks", names=["b", "b"])

    assert [each["name"] for each in every.result["checks"]] == ["a", "b"]
    assert every.result["passed"]
    assert [each["command"] for each in twice.result["checks"]] == ["echo b"]


async def test_a_check_that_takes_too_long_has_failed_and_the_next_still_runs(rig: Rig) -> None:
    outcome = await rig.use("run_checks", names=["slow", "tests"], timeout_seconds=0.2)

    slow, tests = outcome.result["checks"]
    assert slow["error"] == "timed out after 0.2 seconds"
    assert tests["passed"]


def test_a_check_that_nobody_named_cannot_be_asked_for(rig: Rig) -> None:
    with pytest.raises(BadArguments, match="not one of"):
        rig.call("run_checks", names=["deploy"])


def test_a_tool_without_checks_is_not_made() -> None:
    with pytest.raises(BadInput, match="no checks to run"):
        checks_tool({})


async def test_the_commands_behind_the_names_are_judged(tmp_path: Path) -> None:
    seen: list[Call] = []

    def judge(call: Call, context: GateContext) -> object:
        seen.append(call)
        return decision(Effect.DENY if ("sleep", "60") in call.commands else Effect.ALLOW)

    rig = make_rig(tmp_path, [checks_tool(CHECKS)], gate=ScriptedGate(judge))  # type: ignore[arg-type]

    allowed = await rig.use("run_checks", names=["tests"])
    refused = await rig.toolbox.perform(rig.call("run_checks"))

    assert allowed.ok
    assert isinstance(refused, Refusal)
    assert seen[0].commands == (("echo", "all", "is", "well"),)
    assert len(seen[1].commands) == 3


async def test_another_command_under_the_same_name_is_another_call(tmp_path: Path) -> None:
    one = make_rig(tmp_path, [checks_tool({"tests": "echo one"})])
    two = make_rig(tmp_path, [checks_tool({"tests": "echo two"})])

    digests = [
        each.call("run_checks").digest(each.registry.spec("run_checks")) for each in (one, two)
    ]

    assert digests[0] != digests[1]


async def test_a_script_that_changed_since_it_was_judged_is_not_run(tmp_path: Path) -> None:
    rig = make_rig(tmp_path, [checks_tool({"tests": "sh check.sh"})])
    (rig.root / "check.sh").write_text("echo fine\n")
    call = rig.call("run_checks")
    (rig.root / "check.sh").write_text("echo other\n")

    outcome = await rig.toolbox.perform(call)

    assert "'check.sh' was changed after" in outcome.error  # type: ignore[union-attr]


async def test_the_end_of_a_long_output_is_told_and_no_check_is_cut_off(tmp_path: Path) -> None:
    loud = "for i in $(seq 1 3000); do echo line $i of this; done; echo the end"
    names = [f"check-{number}" for number in range(12)]
    rig = make_rig(tmp_path, [checks_tool({name: ["sh", "-c", loud] for name in names})])

    outcome = await rig.use("run_checks")

    assert [each["name"] for each in outcome.result["checks"]] == names
    assert all(each["output"].endswith("the end") for each in outcome.result["checks"])
    assert "characters in all]" in outcome.result["checks"][0]["output"]


async def test_secrets_in_an_output_are_not_told(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace/x").write_text(SECRET)
    rig = make_rig(tmp_path, [checks_tool({"tests": "cat x"})])

    outcome = await rig.use("run_checks")

    assert outcome.result["checks"][0]["output"] == "[redacted:DOOR_KEY]"
