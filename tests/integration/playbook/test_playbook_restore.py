"""`podium playbook restore`: the folder of a run goes back to what it was, and that can be taken back."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from podium.app.app import Podium
from podium.core.work import Run, RunStatus
from podium.jobs.playbook.models import PLAYBOOK
from tests.integration.cli.command_runner import CommandResult, CommandRunner
from tests.integration.playbook.playbook_harness import EDIT, Stage, call, result_of


@pytest.fixture
def stage(cli: CommandRunner) -> Stage:
    stage = Stage(cli)
    stage.acts(EDIT, call("write_file", path="new.txt", content="new"))
    return stage


def ran(stage: Stage, *arguments: str) -> str:
    """The id of a run that ended well."""
    code, events = stage.events(*arguments)
    assert code == 0, events
    run: str = result_of(events)["run"]["id"]
    return run


def restore(stage: Stage, *arguments: str) -> CommandResult:
    return stage.cli.run("playbook", "restore", *arguments)


def add_run(stage: Stage, status: RunStatus, *, dry_run: bool = False) -> str:
    now = datetime.now(UTC)
    made = Run(
        id=stage.cli.ids.new("run"),
        flow=PLAYBOOK,
        input={"root": str(stage.root.resolve()), "dry_run": dry_run},
        status=status,
        created_at=now,
        finished_at=now if status.ended else None,
    )

    async def work(podium: Podium) -> None:
        store = await podium.store()
        await store.write(lambda tx: tx.add_run(made))

    stage.cli.within(work)
    return made.id


def test_a_run_is_put_back_and_that_is_taken_back(stage: Stage) -> None:
    run = ran(stage)
    assert stage.text("version.txt") == "2.0\n"
    result = restore(stage, run, "--yes")
    assert result.code == 0, result.err
    assert "restore  version.txt" in result.err
    assert "remove  new.txt" in result.err
    assert f"podium playbook restore {run} --undo" in result.out
    assert stage.text("version.txt") == "1.0\n"
    assert not (stage.root / "new.txt").exists()
    assert "nothing to restore" in restore(stage, run).out

    done = restore(stage, run, "--undo", "--yes", "--json")
    assert done.code == 0, done.err
    assert done.json["written"] == ["new.txt", "version.txt"]
    assert stage.text("version.txt") == "2.0\n"
    assert stage.text("new.txt") == "new"


@pytest.mark.soak
def test_without_anybody_to_ask_it_needs_a_yes(stage: Stage) -> None:
    run = ran(stage)
    result = restore(stage, run)
    assert result.code == 1
    assert "--yes" in result.err
    assert stage.text("version.txt") == "2.0\n"


def test_what_a_person_changed_since_is_named_and_kept_unless_they_say_otherwise(
    stage: Stage,
) -> None:
    run = ran(stage)
    (stage.root / "version.txt").write_text("mine\n")
    result = restore(stage, run, "--yes")
    assert result.code == 1
    assert "version.txt  (changed after the run)" in result.err
    assert "--over" in result.err
    assert stage.text("version.txt") == "mine\n"
    assert restore(stage, run, "--yes", "--over").code == 0
    assert stage.text("version.txt") == "1.0\n"


@pytest.mark.soak
def test_while_any_run_works_in_the_folder_nothing_is_put_back(stage: Stage) -> None:
    run = ran(stage)
    other = add_run(stage, RunStatus.WAITING)
    result = restore(stage, run, "--yes")
    assert result.code == 7
    assert other in result.err
    assert restore(stage, other, "--yes").code == 7
    assert stage.text("version.txt") == "2.0\n"


def test_a_rehearsal_another_flow_and_an_unknown_run_have_nothing_to_put_back(
    stage: Stage,
) -> None:
    assert restore(stage, "run_0000", "--yes").code == 2
    rehearsed = add_run(stage, RunStatus.SUCCEEDED, dry_run=True)
    assert "worked in a copy" in restore(stage, rehearsed, "--yes").err
    unkept = add_run(stage, RunStatus.SUCCEEDED)
    assert "has no snapshot of its folder" in restore(stage, unkept, "--yes").err
    other = stage.cli.add_run(status=RunStatus.SUCCEEDED)
    assert restore(stage, other.id, "--yes").code == 2
