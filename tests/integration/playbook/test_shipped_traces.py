"""Every playbook that comes with Podium has a trace, and the trace happens again, byte for byte."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from podium.jobs.playbook.samples import sample_names, shipped_playbooks
from tests.integration.cli.command_runner import CommandRunner

RECORD_ANEW = "if that is meant to be so, `sh scripts/playbook-traces` records the traces anew"


def trace_of(name: str) -> Path:
    return shipped_playbooks() / name / "trace.jsonl"


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", sample_names())
def test_a_shipped_trace_is_the_same_wherever_it_lies(cli: CommandRunner, name: str) -> None:
    moved = cli.project / "moved.jsonl"
    shutil.copy(trace_of(name), moved)
    for file in (trace_of(name), moved):
        result = cli.run("replay", str(file))
        assert (result.code, "byte for byte" in result.out) == (0, True), (
            f"{result.out}\n{RECORD_ANEW}"
        )


def test_a_shipped_playbook_that_was_edited_differs_from_its_trace(cli: CommandRunner) -> None:
    name = sample_names()[0]
    shutil.copytree(shipped_playbooks() / name, cli.project / name)
    page = cli.project / name / "playbook.md"
    page.write_text(f"{page.read_text()}\nAnd be quick.\n")
    result = cli.run("replay", str(cli.project / name / "trace.jsonl"))
    assert result.code == 1
    assert "differs: playbook_began" in result.out
    assert "And be quick." in result.out


def test_a_shipped_trace_names_no_place_of_the_machine_it_was_made_on() -> None:
    for name in sample_names():
        text = trace_of(name).read_text()
        assert not any(place in text for place in ("/home/", "/root/", "/tmp/", "/Users/"))
