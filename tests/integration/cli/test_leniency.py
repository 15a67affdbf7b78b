"""Broken settings do not keep anybody from looking and stopping, and only from that."""

from __future__ import annotations

import pytest

from podium.core.work import RunStatus
from tests.integration.cli.command_runner import CommandRunner

BROKEN = "mode: supervised\nagnets: {}\nmood: bad\n"


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "command",
    [("runs",), ("show", "RUN"), ("logs", "RUN"), ("approvals",), ("receipts", "list")],
)
def test_looking_goes_on_with_one_line_of_warning(
    cli: CommandRunner, command: tuple[str, ...]
) -> None:
    run = cli.add_run(status=RunStatus.SUCCEEDED)
    cli.add_approval(run)
    cli.says(BROKEN)
    result = cli.run(*(run.id if word == "RUN" else word for word in command), "--json")
    assert result.code == 0
    assert result.json
    assert len(result.err.splitlines()) == 1
    assert result.err.startswith(
        f"podium: {cli.project.resolve()}/podium.yaml:2:1: agnets: unknown"
    )
    assert result.err.endswith("(and 1 more); using the defaults\n")


def test_a_run_can_be_stopped_and_a_call_refused_by_the_right_person(cli: CommandRunner) -> None:
    run = cli.add_run()
    asked = cli.add_approval(run)
    cli.says(BROKEN)
    refused = cli.run("reject", asked.id, "--why", "no", "--json")
    assert refused.json["approval"]["rejected_by"] == "ann"
    assert cli.run("cancel", run.id, "--json").json["run"]["status"] == "cancelled"


@pytest.mark.parametrize(
    "command",
    [("approve", "ID"), ("resume", "RUN"), ("rehearse",), ("policy", "check", "--", "ls")],
)
def test_what_needs_a_policy_refuses_as_before(
    cli: CommandRunner, command: tuple[str, ...]
) -> None:
    run = cli.add_run()
    asked = cli.add_approval(run)
    cli.says(BROKEN)
    result = cli.run(*({"RUN": run.id, "ID": asked.id}.get(word, word) for word in command))
    assert result.code == 2
    assert "podium.yaml:2:1: agnets: unknown key" in result.err
    assert "using the defaults" not in result.err
