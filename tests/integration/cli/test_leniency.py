"""Broken settings do not keep anybody from looking and stopping, and only from that."""

from __future__ import annotations

import pytest

from podium.core.work import RunStatus
from tests.integration.cli.desk import Desk

BROKEN = "mode: supervised\nagnets: {}\nmood: bad\n"


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "command",
    [("runs",), ("show", "RUN"), ("logs", "RUN"), ("approvals",), ("receipts", "list")],
)
def test_looking_goes_on_with_one_line_of_warning(desk: Desk, command: tuple[str, ...]) -> None:
    run = desk.add_run(status=RunStatus.SUCCEEDED)
    desk.add_approval(run)
    desk.says(BROKEN)
    said = desk.run(*(run.id if word == "RUN" else word for word in command), "--json")
    assert said.code == 0
    assert said.json
    assert len(said.err.splitlines()) == 1
    assert said.err.startswith(f"podium: {desk.project.resolve()}/podium.yaml:2:1: agnets: unknown")
    assert said.err.endswith("(and 1 more); using the defaults\n")


def test_a_run_can_be_stopped_and_a_call_refused_by_the_right_person(desk: Desk) -> None:
    run = desk.add_run()
    asked = desk.add_approval(run)
    desk.says(BROKEN)
    refused = desk.run("reject", asked.id, "--why", "no", "--json")
    assert refused.json["approval"]["rejected_by"] == "ann"
    assert desk.run("cancel", run.id, "--json").json["run"]["status"] == "cancelled"


@pytest.mark.parametrize(
    "command",
    [("approve", "ID"), ("resume", "RUN"), ("rehearse",), ("policy", "check", "--", "ls")],
)
def test_what_needs_a_policy_refuses_as_before(desk: Desk, command: tuple[str, ...]) -> None:
    run = desk.add_run()
    asked = desk.add_approval(run)
    desk.says(BROKEN)
    said = desk.run(*({"RUN": run.id, "ID": asked.id}.get(word, word) for word in command))
    assert said.code == 2
    assert "podium.yaml:2:1: agnets: unknown key" in said.err
    assert "using the defaults" not in said.err
