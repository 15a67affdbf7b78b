"""`podium replay`: what was recorded happens again."""

from __future__ import annotations

import pytest

from tests.integration.cli.command_runner import CommandRunner
from tests.integration.playbook.playbook_harness import READ, Stage, call, of_type, trace_of
from tests.integration.playbook.replay_harness import MIXED, WRITE, recorded, same, trace_file


@pytest.fixture
def stage(cli: CommandRunner) -> Stage:
    return Stage(cli)


def test_calls_of_every_kind_happen_again_byte_for_byte(stage: Stage) -> None:
    stage.acts(*MIXED)
    run_id = recorded(stage)
    assert same(stage, run_id)["run"] == run_id
    assert same(stage, trace_file(stage, run_id))["run"] == run_id


@pytest.mark.soak
def test_a_rejection_is_a_rejection_again(stage: Stage) -> None:
    stage.acts(call("ask_human", question="Which version?"), WRITE)
    run_id = recorded(stage, code=3)
    (asked,) = of_type(trace_of(stage.root, run_id), "approval_requested")
    stage.cli.run("reject", asked["approval_id"], "--why", "decide yourself")
    stage.cli.run("resume", run_id)
    same(stage, run_id)


@pytest.mark.soak  # half a minute of attempts
def test_a_run_without_an_end_is_replayed_as_far_as_it_came(stage: Stage) -> None:
    stage.acts(READ, {"fail": {"kind": "unavailable"}})
    run_id = recorded(stage, code=3)
    same(stage, run_id)
    stage.acts(READ, WRITE)
    assert stage.cli.run("resume", run_id).code == 0
    same(stage, run_id)


def test_a_run_that_changed_its_own_profile_is_replayed_with_the_one_it_was_given(
    stage: Stage,
) -> None:
    profile = stage.text("plugin-profile.yaml")
    other = profile.replace("kind: demo", "kind: other")
    stage.acts(WRITE, call("write_file", path="plugin-profile.yaml", content=other))
    same(stage, recorded(stage))
