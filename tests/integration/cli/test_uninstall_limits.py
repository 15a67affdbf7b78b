"""`podium uninstall` where something belongs to others, changes meanwhile or cannot be removed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from podium.app.inventory import foreign_contents
from podium.platform.file_lock import take_folder_lock
from tests.integration.cli.desk import Desk
from tests.integration.cli.test_receipts import perform
from tests.integration.cli.test_uninstall import (
    in_folder,
    make_repository,
    make_workspace,
    vault_of,
    why,
)
from tests.integration.workspaces.yard import run_git


@pytest.mark.parametrize("options", [(), ("--all",)])
def test_a_file_of_the_user_beside_the_keys_of_projects_stays(
    desk: Desk, options: tuple[str, ...]
) -> None:
    perform(desk, "a")
    file = vault_of(desk).with_name("README")
    file.write_text("mine\n")
    assert desk.run("uninstall", "--yes", *options).code == 0
    assert file.read_text() == "mine\n"
    assert not (desk.project / ".podium").exists()


def test_a_copy_of_the_record_that_the_user_made_blocks(desk: Desk) -> None:
    perform(desk, "a")
    record = desk.project / ".podium" / "podium.db"
    aside = record.with_name("podium.db-20260102T030405Z")  # as `podium db begin-anew` names it
    shutil.copy(record, aside)
    assert desk.run("uninstall", "--yes", "--dry-run", "--json").json["blockers"] == []
    copy = record.with_name("podium.db-before-upgrade")
    shutil.copy(record, copy)
    result = desk.run("uninstall", "--yes", "--json")
    assert (result.code, f"{copy} holds" in why(result)) == (4, True)


def test_a_trashed_link_to_a_folder_blocks(desk: Desk) -> None:
    perform(desk, "a")
    (desk.project / ".podium" / "trash").mkdir()
    (desk.project / ".podium" / "trash" / "link").symlink_to(desk.home)
    result = desk.run("uninstall", "--yes", "--json")
    assert (result.code, "files that were trashed" in why(result)) == (4, True)


def test_a_folder_that_may_not_be_written_blocks_before_anything_is_removed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Patched, because root may write everywhere."""
    make_repository(desk.project)
    perform(desk, "a")
    worktree = make_workspace(desk, "done")
    allowed = os.access

    def access(path: Any, mode: int, **options: bool) -> bool:
        return not (mode & os.W_OK and path == desk.project) and allowed(path, mode, **options)

    monkeypatch.setattr(os, "access", access)
    result = desk.run("uninstall", "--yes", "--json")
    assert (result.code, f"{desk.project} cannot be written" in why(result)) == (4, True)
    assert worktree.is_dir()


def test_a_state_folder_that_vanishes_during_the_look_is_a_lock_and_not_a_refusal(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    perform(desk, "a")

    def removed_meanwhile(state: Path) -> Any:
        shutil.rmtree(state)
        return foreign_contents(state)

    monkeypatch.setattr("podium.app.uninstall.foreign_contents", removed_meanwhile)
    result = desk.run("uninstall", "--yes", "--json")
    assert (result.code, "meanwhile; run `podium uninstall` again" in why(result)) == (7, True)


def test_two_do_not_finish_the_same_removal_at_once(desk: Desk) -> None:
    away = desk.project / ".podium-removed-none"
    away.mkdir()
    handle = take_folder_lock(away, shared=False)
    result = desk.run("uninstall", "--yes", "--json")
    os.close(handle)
    assert (result.code, away.exists()) == (7, True)
    assert desk.run("uninstall", "--yes").code == 0
    assert not away.exists()


def test_keys_of_an_earlier_record_in_this_folder_are_named(desk: Desk) -> None:
    perform(desk, "a")
    vault = vault_of(desk)
    shutil.rmtree(desk.project / ".podium")
    result = desk.run("uninstall", "--yes")
    assert (result.code, f"stays: {vault}: keys of an earlier record" in result.out) == (0, True)
    perform(desk, "b")
    result = desk.run("uninstall", "--yes", "--json")
    assert (result.code, str(vault) in result.json["remaining"][0]) == (0, True)
    assert (vault / "receipt.key").exists()


@pytest.mark.parametrize("missing", [True, False])
def test_a_scheduled_loop_blocks_where_no_record_is_left(desk: Desk, missing: bool) -> None:
    perform(desk, "a")
    assert desk.run("sense", "install", "systemd", env={}).code == 0
    if missing:
        desk.project.rename(desk.project.with_name("away"))
        desk.project.with_name("other").mkdir()
        in_folder(desk, desk.project.with_name("other"))
    else:
        shutil.rmtree(desk.project / ".podium")
    result = desk.run("uninstall", "--all", "--yes", "--json", env={})
    assert (result.code, "`podium sense uninstall systemd`" in why(result)) == (7, True)


def test_work_of_a_project_that_is_not_there_does_not_block_another(desk: Desk) -> None:
    theirs = desk.project
    make_repository(theirs)
    worktree = make_workspace(desk, "fix", work=True)
    theirs.rename(theirs.with_name("unmounted"))
    own = in_folder(desk, theirs.with_name("own"))
    own.project.mkdir()
    make_repository(own.project)
    perform(own, "a")
    result = own.run("uninstall", "--yes", "--json")
    assert (result.code, result.json["blockers"]) == (0, [])
    assert result.json["projects"][0]["workspaces"] == []
    assert (worktree / "new.txt").exists()


def test_workspaces_of_the_main_checkout_are_not_those_of_a_worktree_of_the_user(
    desk: Desk,
) -> None:
    make_repository(desk.project)
    worktree = make_workspace(desk, "done")
    mine = desk.project.with_name("mine")
    run_git("worktree", "add", "--quiet", str(mine), cwd=desk.project)
    assert in_folder(desk, mine).run("uninstall", "--yes").code == 0
    assert worktree.is_dir()


@pytest.mark.parametrize("options", [(), ("--all",)])
def test_within_a_workspace_nothing_is_removed(desk: Desk, options: tuple[str, ...]) -> None:
    make_repository(desk.project)
    repository, worktree = desk.project, make_workspace(desk, "done")
    result = in_folder(desk, worktree).run("uninstall", "--yes", "--json", *options)
    assert (result.code, f"workspace done of {repository}" in why(result)) == (4, True)
    assert worktree.is_dir()


def test_a_look_names_the_sentences_that_a_removal_takes(desk: Desk) -> None:
    perform(desk, "a")
    desk.add_run()
    assert "--confirm 'abandon 1 run'" in desk.run("uninstall", "--dry-run").err
