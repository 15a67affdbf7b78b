from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from podium.core.decisions import Call, Effect, GateContext, Refusal
from podium.core.errors import BadArguments, BadInput
from podium.testing import ScriptedGate, decision
from podium.tools import checks_tool
from tests.unit.tools.toolbox_harness import SECRET, Harness, make_harness

CHECKS = {
    "tests": "echo all is well",
    "lint": ["sh", "-c", "echo bad line; echo why >&2; exit 3"],
    "slow": ["sleep", "60"],
}


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return make_harness(tmp_path, [checks_tool(CHECKS)])


async def test_every_check_is_reported_with_command_exit_code_time_and_hash(
    harness: Harness,
) -> None:
    outcome = await harness.use("run_checks", names=["tests", "lint"])

    assert outcome.ok
    assert (outcome.result["passed"], outcome.result["failed"]) == (False, ["lint"])
    tests, lint = outcome.result["checks"]
    assert (tests["command"], tests["exit_code"], tests["passed"]) == ("echo all is well", 0, True)
    assert tests["output"] == "all is well"
    assert tests["output_sha256"] == hashlib.sha256(b"all is well\n\0").hexdigest()
    assert tests["seconds"] >= 0
    assert (lint["error"], lint["exit_code"], lint["output"]) == ("exit code 3", 3, "bad line\nwhy")
    (receipt,) = await harness.receipts()
    assert receipt.status == "completed"
    assert receipt.fields["evidence"][1] == {
        "name": "lint",
        "exit_code": 3,
        "output_sha256": lint["output_sha256"],
    }


async def test_no_names_mean_all_and_a_name_counts_once(tmp_path: Path) -> None:
    harness = make_harness(tmp_path, [checks_tool({"a": "echo a", "b": ["echo", "b"]})])

    every = await harness.use("run_checks")
    twice = await harness.use("run_checks", names=["b", "b"])

    assert [check["name"] for check in every.result["checks"]] == ["a", "b"]
    assert every.result["passed"]
    assert [check["command"] for check in twice.result["checks"]] == ["echo b"]


async def test_a_check_that_takes_too_long_has_failed_and_the_next_still_runs(
    harness: Harness,
) -> None:
    outcome = await harness.use("run_checks", names=["slow", "tests"], timeout_seconds=0.2)

    slow, tests = outcome.result["checks"]
    assert slow["error"] == "timed out after 0.2 seconds"
    assert tests["passed"]


def test_a_check_that_nobody_named_cannot_be_asked_for(harness: Harness) -> None:
    with pytest.raises(BadArguments, match="not one of"):
        harness.call("run_checks", names=["deploy"])


def test_a_tool_without_checks_is_not_made() -> None:
    with pytest.raises(BadInput, match="no checks to run"):
        checks_tool({})


async def test_the_commands_behind_the_names_are_judged(tmp_path: Path) -> None:
    seen: list[Call] = []

    def judge(call: Call, context: GateContext) -> object:
        seen.append(call)
        return decision(Effect.DENY if ("sleep", "60") in call.commands else Effect.ALLOW)

    harness = make_harness(tmp_path, [checks_tool(CHECKS)], gate=ScriptedGate(judge))  # type: ignore[arg-type]

    allowed = await harness.use("run_checks", names=["tests"])
    refused = await harness.toolbox.perform(harness.call("run_checks"))

    assert allowed.ok
    assert isinstance(refused, Refusal)
    assert seen[0].commands == (("echo", "all", "is", "well"),)
    assert len(seen[1].commands) == 3


async def test_another_command_under_the_same_name_is_another_call(tmp_path: Path) -> None:
    one = make_harness(tmp_path, [checks_tool({"tests": "echo one"})])
    two = make_harness(tmp_path, [checks_tool({"tests": "echo two"})])

    digests = [
        item.call("run_checks").digest(item.registry.spec("run_checks")) for item in (one, two)
    ]

    assert digests[0] != digests[1]


async def test_a_script_that_changed_since_it_was_judged_is_not_run(tmp_path: Path) -> None:
    harness = make_harness(tmp_path, [checks_tool({"tests": "sh check.sh"})])
    (harness.root / "check.sh").write_text("echo fine\n")
    call = harness.call("run_checks")
    (harness.root / "check.sh").write_text("echo other\n")

    outcome = await harness.toolbox.perform(call)

    assert "'check.sh' was changed after" in outcome.error  # type: ignore[union-attr]


async def test_end_of_a_long_output_is_reported_and_no_check_is_cut_off(tmp_path: Path) -> None:
    loud = "for i in $(seq 1 3000); do echo line $i of this; done; echo the end"
    names = [f"check-{number}" for number in range(12)]
    harness = make_harness(tmp_path, [checks_tool({name: ["sh", "-c", loud] for name in names})])

    outcome = await harness.use("run_checks")

    assert [check["name"] for check in outcome.result["checks"]] == names
    assert all(check["output"].endswith("the end") for check in outcome.result["checks"])
    assert "characters in all]" in outcome.result["checks"][0]["output"]


async def test_secrets_in_an_output_are_not_reported(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace/x").write_text(SECRET)
    harness = make_harness(tmp_path, [checks_tool({"tests": "cat x"})])

    outcome = await harness.use("run_checks")

    assert outcome.result["checks"][0]["output"] == "[redacted:DOOR_KEY]"
