"""`podium uninstall`: what Podium keeps is listed and removed, and no work, key or file of anybody is lost."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podium.app.app import Podium
from podium.app.uninstall import RemovalOutcome, Uninstaller
from podium.cli.commands.uninstall import remove_package_command
from podium.core.work import RunStatus
from podium.jobs.duet.claims import claim
from podium.jobs.duet.models import Pair, PairSide
from podium.platform.file_lock import take_folder_lock
from tests.integration.cli.command_runner import CommandRunner
from tests.integration.cli.test_receipts import RUN, perform
from tests.integration.cli.test_run_command import a_worker
from tests.integration.workspaces.git_project import run_git


def in_folder(cli: CommandRunner, folder: Path) -> CommandRunner:
    cli.project = folder
    return cli


def make_repository(folder: Path) -> None:
    who = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    run_git("init", "--quiet", cwd=folder)
    run_git(*who, "commit", "--quiet", "--allow-empty", "--message=one", cwd=folder)


def make_workspace(cli: CommandRunner, task: str, *, work: bool = False) -> Path:
    assert cli.run("workspaces", "create", task).code == 0
    listed = cli.run("workspaces", "list", "--json").json["workspaces"]
    (path,) = [Path(item["record"]["path"]) for item in listed if item["record"]["task"] == task]
    if work:
        (path / "new.txt").write_text("work\n")
    return path


def vault_of(cli: CommandRunner) -> Path:
    name = (cli.project / ".podium" / "project-id").read_text().strip()
    return cli.home / "state" / "vaults" / name


def tree(*folders: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes() if path.is_file() else b""
        for folder in folders
        for path in folder.rglob("*")
    }


def why(result: Any) -> str:
    return " ".join(f"{blocker['what']} {blocker['why']}" for blocker in result.json["blockers"])


def test_everything_of_podium_goes_and_files_of_others_stay(
    cli: CommandRunner, tmp_path: Path
) -> None:
    make_repository(cli.project)
    cli.says("flows: {}\n")
    perform(cli, "a")
    # Settings and state in one folder, and files of somebody else in it.
    xdg = {"PODIUM_HOME": "", "XDG_CONFIG_HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}
    kept = (cli.home / "state").rename(tmp_path / "podium")
    assert cli.run("workspaces", "create", "done", env=xdg).code == 0
    (kept / "config.yaml").write_text("{}\n")
    (kept / "empty-file").touch()
    (kept / "letters").mkdir()
    (kept / "vaults" / "notes.txt").write_text("mine\n")
    result = cli.run("uninstall", "--all", "--yes", "--json", env=xdg)
    assert (result.code, result.json["blockers"]) == (0, [])
    assert result.json["projects"][0]["bytes"] > 0
    assert sorted(path.name for path in cli.project.iterdir()) == [".git", "a", "podium.yaml"]
    assert not (tmp_path / ".worktrees").exists()
    left = [str(path.relative_to(kept)) for path in sorted(kept.rglob("*"))]
    assert left == ["letters", "vaults", "vaults/notes.txt"]
    assert [line.partition(":")[0] for line in result.json["remaining"]] == [
        str(kept / "vaults" / "notes.txt"),
        str(kept / "letters"),
    ]


def test_looking_writes_nothing(cli: CommandRunner) -> None:
    make_repository(cli.project)
    perform(cli, "a")
    make_workspace(cli, "fix", work=True)
    before = tree(cli.project / ".podium", cli.home)
    for option in ("--json", "--all"):
        assert cli.run("uninstall", "--dry-run", option).code == 0
    assert tree(cli.project / ".podium", cli.home) == before
    empty = in_folder(cli, cli.project.with_name("empty"))
    empty.project.mkdir()
    assert "nothing to remove" in empty.run("uninstall", "--dry-run").out
    assert tree(empty.project) == {}


def test_without_a_terminal_nothing_is_removed_unless_requested(cli: CommandRunner) -> None:
    perform(cli, "a")
    result = cli.run("uninstall", stdin=b"y\ny\n")
    assert (result.code, "--yes" in result.err) == (2, True)
    assert vault_of(cli).is_dir()


def test_a_copy_does_not_take_the_keys_of_the_original_along(cli: CommandRunner) -> None:
    perform(cli, "a", "b")
    original = cli.project
    copy = Path(shutil.copytree(original, original.with_name("copy")))
    kept = vault_of(cli)
    result = in_folder(cli, copy).run("uninstall", "--yes", "--json")
    assert (result.code, result.json["removed"]) == (0, [str(copy / ".podium")])
    assert f"{kept}: of {original}" in result.json["remaining"][0]
    assert in_folder(cli, original).run("receipts", "verify").out.endswith("sound\n")


def test_a_project_from_a_folder_that_is_not_there_stays_until_its_identity_is_settled(
    cli: CommandRunner,
) -> None:
    """A copy of a project on a disk that is not mounted looks just like one that was moved."""
    perform(cli, "a")
    cli.add_run(run_id=RUN, status=RunStatus.SUCCEEDED)
    moved = cli.project.rename(cli.project.with_name("moved"))
    vault = vault_of(in_folder(cli, moved))
    result = cli.run("uninstall", "--yes", "--json")
    assert (result.code, "`podium runs`" in why(result)) == (4, True)
    assert (vault / "receipt.key").exists()
    assert cli.run("runs").code == 0
    assert cli.run("uninstall", "--yes").code == 0
    assert not vault.exists()


@pytest.mark.parametrize("everywhere", [True, False])
def test_unsaved_work_of_a_project_that_was_moved_blocks(
    cli: CommandRunner, everywhere: bool
) -> None:
    make_repository(cli.project)
    perform(cli, "a")
    worktree = make_workspace(cli, "fix", work=True)
    moved = in_folder(cli, cli.project.rename(cli.project.with_name("moved")))
    moved.run("runs")
    before = tree(moved.project, moved.home)
    result = moved.run("uninstall", "--yes", "--json", *(["--all"] if everywhere else []))
    assert result.code == 4
    assert f"{worktree} workspace fix: its repository" in why(result)
    assert tree(moved.project, moved.home) == before


def test_a_workspace_whose_record_cannot_be_read_blocks(cli: CommandRunner) -> None:
    make_repository(cli.project)
    worktree = make_workspace(cli, "fix", work=True)
    (record,) = (cli.home / "state" / "workspaces").glob("*/record.json")
    record.write_text("{")
    result = cli.run("uninstall", "--all", "--yes", "--json")
    assert (result.code, "is not a valid record of a workspace" in why(result)) == (4, True)
    assert (worktree / "new.txt").exists()
    assert record.exists()
    (removal,) = cli.run("workspaces", "gc", "--dry-run", "--json").json["removals"]
    assert removal["removed"] is False


def test_an_inner_project_keeps_all_that_is_its_own(cli: CommandRunner) -> None:
    make_repository(cli.project)
    outer = cli.project
    perform(cli, "a")
    inner = in_folder(cli, outer / "inner")
    inner.project.mkdir()
    inner.says("{}\n")
    perform(inner, "b")
    vault = vault_of(inner)
    run = inner.add_run(status=RunStatus.SUCCEEDED)

    async def work(podium: Podium) -> str:
        made = await podium.workspaces.create(podium.workspace_spec("inner-task", run_id=run.id))
        return str(made.record.path)

    worktree = Path(inner.within(work))
    state = tree(inner.project / ".podium", vault)
    assert in_folder(cli, outer).run("uninstall", "--yes").code == 0
    assert not (outer / ".podium").exists()
    assert tree(outer / "inner" / ".podium", vault) == state
    assert worktree.is_dir()


def test_a_project_within_the_state_folder_of_another_blocks(cli: CommandRunner) -> None:
    perform(cli, "a")
    inner = cli.project / ".podium" / "runs" / "inner"
    (inner / ".podium").mkdir(parents=True)
    (inner / ".podium" / "project-id").write_text("abc\n")
    result = cli.run("uninstall", "--yes", "--json")
    assert (result.code, f"{inner} is another project" in why(result)) == (4, True)
    assert (inner / ".podium" / "project-id").exists()


@pytest.mark.parametrize("name", ["prompts/plan.md", "trash/x/a.txt", "notes.txt"])
def test_files_of_the_user_in_the_state_folder_block(cli: CommandRunner, name: str) -> None:
    perform(cli, "a")
    file = cli.project / ".podium" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("mine\n")
    result = cli.run("uninstall", "--yes", "--json")
    assert (result.code, "move it away" in why(result)) == (4, True)
    assert file.exists()


@pytest.mark.parametrize("where", [".podium/home", "."])
def test_a_home_within_the_state_folder_or_around_it_blocks(cli: CommandRunner, where: str) -> None:
    perform(cli, "a")
    home = {"PODIUM_HOME": str(cli.project / where)}
    result = cli.run("uninstall", "--yes", "--json", env=home)
    assert (result.code, "overlaps with" in why(result)) == (4, True)
    assert vault_of(cli).is_dir()


@pytest.mark.parametrize("kind", ["vaults", "homes"])
def test_a_link_is_not_followed(cli: CommandRunner, tmp_path: Path, kind: str) -> None:
    perform(cli, "a")
    elsewhere = tmp_path / "elsewhere"
    name = vault_of(cli).name
    (elsewhere / name).mkdir(parents=True)
    (elsewhere / name / "file").touch()
    state = cli.home / "state"
    if (state / kind).exists():
        (state / kind).rename(state.with_name("aside"))
    (state / kind).symlink_to(elsewhere)
    result = cli.run("uninstall", "--all", "--yes", "--json")
    assert (result.code, "is a link" in why(result)) == (4, True)
    assert (elsewhere / name / "file").exists()
    assert (cli.project / ".podium").is_dir()


def test_runs_that_have_not_ended_are_given_up_only_by_a_sentence(cli: CommandRunner) -> None:
    perform(cli, "a")
    cli.add_run(status=RunStatus.WAITING)
    cli.add_run(status=RunStatus.QUEUED)
    for words in ((), ("--confirm", "abandon 1 run")):
        result = cli.run("uninstall", "--yes", *words)
        assert (result.code, "--confirm 'abandon 2 runs'" in result.err) == (4, True)
    assert "(waiting)" in result.out
    assert "(queued)" in result.out
    assert cli.run("runs").code == 0
    assert cli.run("uninstall", "--yes", "--confirm", "abandon 2 runs").code == 0
    assert not (cli.project / ".podium").exists()


def test_keys_of_a_project_that_is_not_there_are_deleted_only_by_a_sentence(
    cli: CommandRunner,
) -> None:
    perform(cli, "a")
    vault = vault_of(cli)
    away = cli.project.rename(cli.project.with_name("away"))
    cli.project.mkdir()
    result = cli.run("uninstall", "--all", "--yes", "--json")
    assert (result.code, result.json["confirm"]) == (4, ["delete keys of 1 missing project"])
    assert (vault / "receipt.key").exists()
    assert cli.run("uninstall", "--all", "--yes", "--confirm", result.json["confirm"][0]).code == 0
    assert not cli.home.exists()
    assert (away / ".podium" / "podium.db").exists()


def test_a_project_that_went_away_after_the_look_keeps_its_keys(cli: CommandRunner) -> None:
    perform(cli, "a")
    key = vault_of(cli) / "receipt.key"
    other = cli.project.with_name("other")
    other.mkdir()

    async def work(podium: Podium) -> RemovalOutcome:
        uninstaller = Uninstaller(podium)
        inventory = await uninstaller.survey(everywhere=True)
        podium.folders.project.with_name("project").rename(other / "project")
        return await uninstaller.remove(inventory, everywhere=True)

    outcome = in_folder(cli, other).within(work)
    assert (outcome.removed, len(outcome.blockers)) == ((), 1)
    assert key.exists()


def test_a_project_whose_keys_are_in_another_home_is_left_to_that(cli: CommandRunner) -> None:
    own, home = cli.project, cli.home
    theirs = in_folder(cli, own.with_name("theirs"))
    theirs.project.mkdir()
    make_repository(theirs.project)
    theirs.home = home.with_name("their-home")
    perform(theirs, "a")
    state = tree(theirs.project / ".podium")
    cli.home = home
    cli.within(lambda podium: podium.workspaces.create(podium.workspace_spec("fix")))
    result = in_folder(cli, own).run("uninstall", "--all", "--yes", "--json")
    assert (result.code, result.json["blockers"]) == (0, [])
    assert tree(own.with_name("theirs") / ".podium") == state
    assert "keys are elsewhere" in result.json["remaining"][0]


def test_a_record_on_a_server_and_its_keys_stay(cli: CommandRunner) -> None:
    perform(cli, "a")
    vault = vault_of(cli)
    (cli.project / ".podium" / "database").write_text("postgresql://db.example.org/one\n")
    other = in_folder(cli, cli.project.with_name("other"))
    other.project.mkdir()
    perform(other, "b")
    unreachable = {"PODIUM_DATABASE_URL": "postgresql://nowhere.invalid/two"}
    result = other.run("uninstall", "--all", "--yes", "--json", env=unreachable)
    assert (result.code, result.json["blockers"]) == (0, [])
    assert result.json["remaining"][0].startswith(
        "postgresql://db.example.org/one: the record; drop"
    )
    assert [path.name for path in vault.parent.iterdir()] == [vault.name]
    assert (vault / "receipt.key").exists()
    assert not (other.project / ".podium").exists()


def test_a_worker_blocks(cli: CommandRunner) -> None:
    perform(cli, "a")
    with a_worker(cli):
        result = cli.run("uninstall", "--yes", "--json")
    assert (result.code, result.json["removed"]) == (7, [])
    assert (cli.project / ".podium").is_dir()


def test_a_scheduled_loop_blocks(cli: CommandRunner) -> None:
    perform(cli, "a")
    assert cli.run("sense", "install", "systemd", env={}).code == 0
    result = cli.run("uninstall", "--yes", "--json", env={})
    assert (result.code, "`podium sense uninstall systemd`" in why(result)) == (7, True)
    assert (cli.project / ".podium").is_dir()


def test_a_pair_that_is_up_blocks(cli: CommandRunner, tmp_path: Path) -> None:
    perform(cli, "a")
    seat = PairSide(agent="claude", cwd=str(cli.project))
    pair = Pair(name="main", planner=seat, executer=seat, socket=str(tmp_path / "tmux"))
    cli.within(lambda podium: asyncio.to_thread(claim, podium, pair))
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(pair.socket)
        server.listen()
        result = cli.run("uninstall", "--yes", "--json")
    assert (result.code, "`podium duet down`" in why(result)) == (7, True)
    assert cli.run("uninstall", "--yes").code == 0  # the server is gone


def test_an_open_record_blocks_and_nobody_opens_it_during_a_removal(
    cli: CommandRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    perform(cli, "a")

    async def survey(podium: Podium) -> list[bool]:
        await podium.store()
        other = Uninstaller(Podium(podium.configuration, podium.environ))
        return [blocker.busy for blocker in (await other.survey(everywhere=False)).blockers]

    assert cli.within(survey) == [True]
    monkeypatch.setattr("podium.app.state_lock._UNINSTALL_SECONDS", 0.0)
    handle = take_folder_lock(cli.project / ".podium", shared=False)
    result = cli.run("runs")
    os.close(handle)
    assert (result.code, "podium uninstall" in result.err) == (7, True)


class _Killed(BaseException):
    """Ends a command at once, as far as a test can."""


def kill_in_removal(patching: pytest.MonkeyPatch, changes: int) -> None:
    """Let the command end after it has changed so many names of files of a project."""
    remove, left = Uninstaller._remove_project, [changes]

    def counted(change: Callable[..., None]) -> Callable[..., None]:
        def changed(*arguments: Any, **options: Any) -> None:
            if not left[0]:
                raise _Killed
            change(*arguments, **options)
            left[0] -= 1

        return changed

    def removed(*arguments: Any) -> None:
        for name in ("unlink", "rmdir", "rename"):
            patching.setattr(os, name, counted(getattr(os, name)))
        remove(*arguments)

    patching.setattr(Uninstaller, "_remove_project", removed)


def test_whenever_it_is_killed_the_next_one_finishes_it(
    cli: CommandRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.says("{}\n")
    perform(cli, "a")
    state, vault = cli.project / ".podium", vault_of(cli)
    (cli.home / "state" / "homes" / vault.name / "run").mkdir(parents=True)
    whole = tree(state, vault)
    kills = 0
    while True:
        with monkeypatch.context() as patching:
            kill_in_removal(patching, min(kills, 1))
            try:
                assert cli.run("uninstall", "--yes").code == 0
                break
            except _Killed:
                kills += 1
        assert kills < 100
        if state.exists():
            assert tree(state, vault) == whole
        elif vault.exists():
            assert cli.run("uninstall", "--all", "--dry-run", "--json").json["confirm"] == []
    assert kills > 10
    assert sorted(path.name for path in cli.project.iterdir()) == ["a", "podium.yaml"]
    assert not list((cli.home / "state" / "vaults").iterdir())
    assert not list((cli.home / "state" / "homes").iterdir())


def test_a_killed_removal_is_finished_without_the_keys_that_stay(
    cli: CommandRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    perform(cli, "a")
    key = vault_of(cli) / "receipt.key"
    (cli.project / ".podium" / "database").write_text("postgresql://db.example.org/one\n")
    with monkeypatch.context() as patching:
        kill_in_removal(patching, 1)
        with pytest.raises(_Killed):
            cli.run("uninstall", "--yes")
    (cut_off,) = cli.project.glob(".podium-removed-*")
    (cut_off / "database").unlink()  # it may have gone first
    assert cli.run("uninstall", "--yes").code == 0
    assert [path.name for path in cli.project.iterdir()] == ["a"]
    assert key.exists()


_KILLED = """
import os, signal, sys
from podium.app import uninstall
from podium.cli.start import run_command
remove, calls = uninstall._remove, []
def killed(path):
    calls.append(path)
    if len(calls) == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    remove(path)
uninstall._remove = killed
run_command(["uninstall", "--yes"])
"""


def test_a_removal_that_was_killed_is_finished_from_another_project(cli: CommandRunner) -> None:
    perform(cli, "a")
    command = [sys.executable, "-c", _KILLED]
    done = subprocess.run(command, cwd=cli.project, env=cli.environ, check=False)
    assert done.returncode == -signal.SIGKILL
    (cut_off,) = cli.project.glob(".podium-removed-*")
    other = in_folder(cli, cli.project.with_name("other"))
    other.project.mkdir()
    assert other.run("uninstall", "--all", "--yes").code == 0
    assert not cut_off.exists()
    assert not cli.home.exists()


@pytest.mark.parametrize(
    ("prefix", "command"),
    [
        ("/home/ann/.local/pipx/venvs/podium", "pipx uninstall podium"),
        ("/home/ann/.local/share/uv/tools/podium", "uv tool uninstall podium"),
    ],
)
def test_the_command_that_removes_the_package_fits_how_it_was_installed(
    monkeypatch: pytest.MonkeyPatch, prefix: str, command: str
) -> None:
    monkeypatch.setattr("sys.prefix", prefix)
    assert remove_package_command() == command
