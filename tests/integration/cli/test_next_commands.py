"""Commands that are printed for a person to type work as printed."""

from __future__ import annotations

import re
import shlex

import pytest

from tests.integration.cli.command_runner import CommandRunner

pytestmark = pytest.mark.usefixtures("roofing")

_COMMAND = re.compile(r"`(podium [^`]+)`|: (podium .+)$", re.MULTILINE)


def printed(text: str) -> list[list[str]]:
    """Every command in the text, without `podium`; of two joined by `&&` both."""
    found = [one or two for one, two in _COMMAND.findall(text)]
    parts = [part.strip() for item in found for part in item.split("&&")]
    return [shlex.split(part)[1:] for part in parts]


def test_what_the_operator_says_to_do_next_can_be_done_one_after_the_other(
    cli: CommandRunner,
) -> None:
    looked = cli.run("ask", "create a task: call Jo")
    plan, execute = printed(looked.out)
    assert cli.run(*plan).code == 0
    done = cli.run(*execute)
    assert done.code == 0
    proof, undo = printed(done.out)
    assert cli.run(*proof).code == 0
    assert cli.run(*undo).code == 0


def test_a_plan_that_waits_names_commands_that_answer_it(cli: CommandRunner) -> None:
    lead = cli.run("ask", "-m", "new lead: Jo 0400123456 in Clayton", "-M", "execute", "--json")
    lead_id = lead.json["results"][0]["fields"]["lead_id"]
    waits = cli.run("ask", "-m", f"create a quote for lead {lead_id}", "-M", "execute")
    assert waits.code == 3
    approve, see, refuse = printed(waits.out)
    assert cli.run(*see).code == 0
    assert cli.run(*approve).code == 0
    assert refuse[:1] == ["reject"]


@pytest.mark.soak
def test_what_the_doctor_advises_a_newcomer_can_be_typed(cli: CommandRunner) -> None:
    advice = next(
        check["mend"]
        for check in cli.run("doctor", "--json").json["checks"]
        if check["name"] == "agents"
    )
    start, listed, example, rehearse = printed(advice)
    assert (start, rehearse) == (["init"], ["rehearse"])
    for command in (listed, example, rehearse):
        assert cli.run(*command).code == 0, command
