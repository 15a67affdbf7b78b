"""`podium uninstall` where something belongs to others, changes meanwhile or cannot be removed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from podium.app.inventory import foreign_contents
from podium.platform.file_lock import take_folder_lock
from tests.integration.cli.command_runner import CommandRunner
from tests.integration.cli.test_receipts import perform
from tests.integration.cli.test_uninstall import (
    in_folder,
    make_repository,
    make_workspace,
    vault_of,
    why,
)
from tests.integration.workspaces.git_project import run_git


@pytest.mark.parametrize("options", [(), ("--all",)])
def test_a_file_of_the_user_beside_the_keys_of_projects_stays(
    cli: CommandRunner, options: tuple[str, ...]
) -> None:
    perform(cli, "a")
    file = vault_of(cli).with_name("README")
    file.write_text("mine\n")
    assert cli.run("uninstall", "--yes", *options).code == 0
    assert file.read_text() == "mine\n"
    assert not (cli.project / ".podium").exists()


def test_a_copy_of_the_record_that_the_user_made_blocks(cli: CommandRunner) -> None:
    perform(cli, "a")
    record = cli.project / ".podium" / "podium.db"
    stderr = record.with_name("podium.db-20260102T030405Z")  # as `podium db begin-anew` names it
    shutil.copy(record, stderr)
    assert cli.run("uninstall", "--yes", "--dry-run", "--json").json["blockers"] == []
    copy = record.with_name("podium.db-before-upgrade")
    shutil.copy(record, copy)
    result = cli.run("uninstall", "--yes", "--json")
    assert (result.code, f"{copy} holds" in why(result)) == (4, True)


def test_a_trashed_link_to_a_folder_blocks(cli: CommandRunner) -> None:
    perform(cli, "a")
    (cli.project / ".podium" / "trash").mkdir()
    (cli.project / ".podium" / "trash" / "link").symlink_to(cli.home)
    result = cli.run("uninstall", "--yes", "--json")
    assert (result.code, "files that were trashed" in why(result)) == (4, True)


def test_a_folder_that_may_not_be_written_blocks_before_anything_is_removed(
    cli: CommandRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Patched, because root may write everywhere."""
    make_repository(cli.project)
    perform(cli, "a")
    worktree = make_workspace(cli, "done")
    allowed = os.access

    def access(path: Any, mode: int, **options: bool) -> bool:
        return not (mode & os.W_OK and path == cli.project) and allowed(path, mode, **options)

    monkeypatch.setattr(os, "access", access)
    result = cli.run("uninstall", "--yes", "--json")
    assert (result.code, f"{cli.project} cannot be written" in why(result)) == (4, True)
    assert worktree.is_dir()


def test_a_state_folder_that_vanishes_during_the_look_is_a_lock_and_not_a_refusal(
    cli: CommandRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    perform(cli, "a")

    def removed_meanwhile(state: Path) -> Any:
        shutil.rmtree(state)
        return foreign_contents(state)

    monkeypatch.setattr("podium.app.uninstall.foreign_contents", removed_meanwhile)
    result = cli.run("uninstall", "--yes", "--json")
    assert (result.code, "meanwhile; run `podium uninstall` again" in why(result)) == (7, True)


def test_two_do_not_finish_the_same_removal_at_once(cli: CommandRunner) -> None:
    away = cli.project / ".podium-removed-none"
    away.mkdir()
    handle = take_folder_lock(away, shared=False)
    result = cli.run("uninstall", "--yes", "--json")
    os.close(handle)
    assert (result.code, away.exists()) == (7, True)
    assert cli.run("uninstall", "--yes").code == 0
    assert not away.exists()


def test_keys_of_an_earlier_record_in_this_folder_are_named(cli: CommandRunner) -> None:
    perform(cli, "a")
    vault = vault_of(cli)
    shutil.rmtree(cli.project / ".podium")
    result = cli.run("uninstall", "--yes")
    assert (result.code, f"stays: {vault}: keys of an earlier record" in result.out) == (0, True)
    perform(cli, "b")
    result = cli.run("uninstall", "--yes", "--json")
    assert (result.code, str(vault) in result.json["remaining"][0]) == (0, True)
    assert (vault / "receipt.key").exists()


@pytest.mark.parametrize("missing", [True, False])
def test_a_scheduled_loop_blocks_where_no_record_is_left(cli: CommandRunner, missing: bool) -> None:
    perform(cli, "a")
    assert cli.run("sense", "install", "systemd", env={}).code == 0
    if missing:
        cli.project.rename(cli.project.with_name("away"))
        cli.project.with_name("other").mkdir()
        in_folder(cli, cli.project.with_name("other"))
    else:
        shutil.rmtree(cli.project / ".podium")
    result = cli.run("uninstall", "--all", "--yes", "--json", env={})
    assert (result.code, "`podium sense uninstall systemd`" in why(result)) == (7, True)


def test_work_of_a_project_that_is_not_there_does_not_block_another(cli: CommandRunner) -> None:
    theirs = cli.project
    make_repository(theirs)
    worktree = make_workspace(cli, "fix", work=True)
    theirs.rename(theirs.with_name("unmounted"))
    own = in_folder(cli, theirs.with_name("own"))
    own.project.mkdir()
    make_repository(own.project)
    perform(own, "a")
    result = own.run("uninstall", "--yes", "--json")
    assert (result.code, result.json["blockers"]) == (0, [])
    assert result.json["projects"][0]["workspaces"] == []
    assert (worktree / "new.txt").exists()


def test_workspaces_of_the_main_checkout_are_not_those_of_a_worktree_of_the_user(
    cli: CommandRunner,
) -> None:
    make_repository(cli.project)
    worktree = make_workspace(cli, "done")
    mine = cli.project.with_name("mine")
    run_git("worktree", "add", "--quiet", str(mine), cwd=cli.project)
    assert in_folder(cli, mine).run("uninstall", "--yes").code == 0
    assert worktree.is_dir()


@pytest.mark.parametrize("options", [(), ("--all",)])
def test_within_a_workspace_nothing_is_removed(
    cli: CommandRunner, options: tuple[str, ...]
) -> None:
    make_repository(cli.project)
    repository, worktree = cli.project, make_workspace(cli, "done")
    result = in_folder(cli, worktree).run("uninstall", "--yes", "--json", *options)
    assert (result.code, f"workspace done of {repository}" in why(result)) == (4, True)
    assert worktree.is_dir()


def test_a_look_names_the_sentences_that_a_removal_takes(cli: CommandRunner) -> None:
    perform(cli, "a")
    cli.add_run()
    assert "--confirm 'abandon 1 run'" in cli.run("uninstall", "--dry-run").err
