"""Shared helpers of the tests of `podium ask`: the five blocks, and the commands that they name."""

from __future__ import annotations

import json
import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

from tests.integration.cli.command_runner import CommandResult, CommandRunner

ROOT = Path(__file__).parents[3]
PUBLISHED = ROOT / "docs" / "operator-answer.schema.json"
TITLES = re.compile(r"^\[([A-Z][A-Z /]*)\]$", re.MULTILINE)
COMMAND = re.compile(r"(?:^|: )(podium .*)$")
NEW_LEAD = "new lead: Sarah 0400123456 in Clayton"


def five_blocks(result: CommandResult) -> dict[str, str]:
    """Title → its lines. Whatever was said, it is exactly these five, in this order."""
    found = TITLES.split(result.out)
    titles = found[1::2]
    assert titles[1:2] in (["PLAN"], ["RESULT"]), result.out + result.err
    rest = ["INTENT", *titles[1:2], "TOOL IMPACT", "RISKS / GATES", "NEXT ACTIONS"]
    assert (found[0], titles) == ("", rest)
    blocks = dict(zip(titles, found[2::2], strict=True))
    assert re.search(r"^  1\. \S", blocks["NEXT ACTIONS"], re.MULTILINE)
    return blocks


def object_of(result: CommandResult) -> dict[str, Any]:
    """The one JSON object of an answer, held against the published schema."""
    answer: dict[str, Any] = result.json
    faults = [fault.message for fault in _published().iter_errors(answer)]
    assert faults == []
    assert answer["exit_code"] == result.code
    return answer


@cache
def _published() -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(json.loads(PUBLISHED.read_text()))


def done(cli: CommandRunner, message: str, *options: str) -> dict[str, Any]:
    """Ask for something that must succeed, and give the fields of its last receipt."""
    answer = object_of(cli.run("ask", message, "-M", "execute", "--json", *options))
    assert answer["status"] == "succeeded", answer["text"]
    fields: dict[str, Any] = answer["results"][-1]["fields"]
    return fields


def commands_in(answer: dict[str, Any]) -> list[list[str]]:
    """The commands among the next actions, as a shell would read them, without `podium`."""
    found = [COMMAND.search(action) for action in answer["next_actions"]]
    return [shlex.split(match[1])[1:] for match in found if match]


def nothing_was_made(cli: CommandRunner) -> bool:
    return not (cli.project / ".podium").exists()
