"""`podium workspaces`, on real repositories."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import pytest

from podium.app.app import Podium
from podium.cli.commands.workspaces import age, size, span
from podium.core.errors import BadInput
from podium.core.ids import short_id
from podium.core.work import RunStatus
from podium.core.workspaces import SetupSpec, WorkspaceRecord, WorkspaceSpec
from podium.ports import Workspace
from tests.integration.cli.command_runner import CommandRunner

GIT = {
    "GIT_AUTHOR_NAME": "Ann",
    "GIT_AUTHOR_EMAIL": "ann@example.org",
    "GIT_COMMITTER_NAME": "Ann",
    "GIT_COMMITTER_EMAIL": "ann@example.org",
}


@pytest.fixture
def project(cli: CommandRunner) -> CommandRunner:
    """A project in a repository with one commit, whose agents run unconfined."""
    cli.home.mkdir(exist_ok=True)
    (cli.home / "config.yaml").write_text("sandbox: none\n")
    (cli.project / "README").write_text("hello\n")
    for words in (
        ("init", "--quiet", "--initial-branch=main"),
        ("add", "--all"),
        ("commit", "--quiet", "--message=first"),
    ):
        git(cli, *words)
    return cli


def git(cli: CommandRunner, *words: str) -> str:
    environ = {**cli.environ, **GIT}
    return subprocess.run(
        ["git", *words], cwd=cli.project, env=environ, capture_output=True, text=True, check=True
    ).stdout.strip()


def with_workspace(
    cli: CommandRunner,
    task: str = "fix-login",
    *,
    run_id: str = "",
    then: Callable[[Workspace], Awaitable[object]] | None = None,
) -> WorkspaceRecord:
    async def work(podium: Podium) -> WorkspaceRecord:
        spec = WorkspaceSpec(
            task=task, repository=str(cli.project), run_id=run_id, set_up=SetupSpec()
        )
        workspace = await podium.workspaces.create(spec)
        if then is not None:
            await then(workspace)
        return workspace.record

    return cli.within(work)


def untracked(record: WorkspaceRecord) -> Path:
    file = Path(record.path) / "untracked.txt"
    file.write_text("work")
    return file


def test_nothing_is_listed_and_nothing_made_where_there_is_none(project: CommandRunner) -> None:
    result = project.run("workspaces", "list")
    assert (result.code, result.out) == (0, "")
    assert "no workspaces" in result.err
    assert project.run("workspaces", "list", "--json").json == {
        "workspaces": [],
        "leftovers": [],
        "removed": [],
        "elsewhere": 0,
    }
    assert not (project.home / "state" / "workspaces").exists()
    assert not (project.project / ".podium" / "podium.db").exists()


def test_a_list_says_where_work_is_safe_and_why(project: CommandRunner) -> None:
    record = with_workspace(project)
    untracked(with_workspace(project, "other"))
    result = project.run("workspaces", "list")
    assert result.code == 0
    rows = result.out.splitlines()
    assert "unchanged" in rows[1]
    assert record.path in rows[1]
    assert "unknown" in rows[2]
    assert "'untracked.txt' not committed" in rows[2]
    (first, second) = project.run("workspaces", "list", "--json").json["workspaces"]
    assert (first["kept"], second["kept"]) == ("unchanged", "unknown")
    assert first["record"]["id"] == record.id
    assert first["bytes"] > 0


def test_gc_removes_what_is_safe_and_says_why_the_rest_stays(project: CommandRunner) -> None:
    safe = with_workspace(project)
    file = untracked(with_workspace(project, "other"))
    dry = project.run("workspaces", "gc", "--dry-run")
    assert dry.code == 0
    assert f"would remove: {short_id(safe.id)} fix-login" in dry.out
    assert Path(safe.path).exists()
    result = project.run("workspaces", "gc")
    assert result.code == 0
    assert f"removed: {short_id(safe.id)} fix-login" in result.out
    assert "stays" in result.out
    assert "1 removed" in result.err
    assert not Path(safe.path).exists()
    assert file.read_text() == "work"


def test_gc_of_a_named_one_that_must_stay_leaves_with_four(project: CommandRunner) -> None:
    untracked(with_workspace(project))
    result = project.run("workspaces", "gc", "fix-login", "--json")
    assert result.code == 4
    (removal,) = result.json["removals"]
    assert (removal["removed"], removal["kept"]) == (False, "unknown")


def test_gc_of_one_whose_run_waits_leaves_with_seven(project: CommandRunner) -> None:
    run = project.add_run(status=RunStatus.WAITING)
    record = with_workspace(project, run_id=run.id)
    result = project.run("workspaces", "gc", "fix-login")
    assert result.code == 7
    assert "waiting" in result.out
    assert Path(record.path).exists()


def test_gc_leaves_alone_what_changed_lately(project: CommandRunner) -> None:
    record = with_workspace(project)
    result = project.run("workspaces", "gc", "--older-than", "1h")
    assert (result.code, result.out) == (0, "")
    assert Path(record.path).exists()
    assert project.run("workspaces", "gc", "--older-than", "soon").code == 2


def test_work_that_is_nowhere_else_is_snapshotted_removed_recovered_and_forgotten(
    project: CommandRunner,
) -> None:
    record = with_workspace(project)
    untracked(record)
    made = project.run("workspaces", "snapshot", "fix-login", "--json")
    assert made.code == 0
    assert project.run("workspaces", "gc", "fix-login").code == 0
    assert not Path(record.path).exists()
    listed = project.run("workspaces", "list", "--removed")
    assert "fix-login" in listed.out
    back = project.run("workspaces", "recover", "fix-login", "--branch", "again")
    assert back.code == 0
    assert "again" in back.out
    assert git(project, "show", "again:untracked.txt") == "work"
    refused = project.run("workspaces", "forget", "fix-login")
    assert refused.code == 1
    assert "--yes" in refused.err
    ref = made.json["snapshot"]["ref"]
    assert ref in git(project, "for-each-ref")
    dropped = project.run("workspaces", "forget", "fix-login", "--yes")
    assert dropped.code == 0
    assert ref in dropped.out
    assert ref not in git(project, "for-each-ref")


def test_leftover_of_a_killed_creation_is_reported_and_cleared_away(project: CommandRunner) -> None:
    record = with_workspace(project)
    private = Path(record.private)
    (private / "record.json").rename(private / "creating.json")
    result = project.run("workspaces", "list")
    assert (
        f"leftover {short_id(record.id)}: the creation of 'fix-login' was interrupted" in result.out
    )
    assert record.path in result.out
    done = project.run("workspaces", "gc")
    assert done.code == 0
    assert "interrupted" in done.out
    assert not Path(record.path).exists()
    assert project.run("workspaces", "list", "--json").json["leftovers"] == []
    assert "podium/fix-login" not in git(project, "branch", "--list")


def test_an_unknown_name_is_a_usage_error(project: CommandRunner) -> None:
    for command in ("gc", "snapshot", "recover", "forget"):
        result = project.run("workspaces", command, "nothing")
        assert result.code == 2, command
        assert "no workspace 'nothing'" in result.err


def test_escapes_in_names_do_not_reach_the_terminal(project: CommandRunner) -> None:
    record = with_workspace(project)
    os.close(os.open(Path(record.path) / "a\x1b[31mb", os.O_CREAT))
    assert "\x1b" not in project.run("workspaces", "list").out


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("30m", 1800), ("12h", 43_200), ("7d", 604_800), ("2w", 1_209_600)],
)
def test_spans_of_time_are_read(text: str, seconds: int) -> None:
    assert span(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "7", "d", "-1d", "1.5d", "9999999d", "1y"])
def test_what_is_no_span_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="7d"):
        span(text)


def test_sizes_and_ages_are_short() -> None:
    assert [size(count) for count in (0, 999, 1500, 25_000_000, 3_000_000_000_000)] == [
        "0 B",
        "999 B",
        "1.5 KB",
        "25 MB",
        "3.0 TB",
    ]
    assert [age(timedelta(seconds=seconds)) for seconds in (-5, 40, 130, 7300, 200_000)] == [
        "0s",
        "40s",
        "2m",
        "2h",
        "2d",
    ]


@pytest.mark.soak
def test_recovered_branch_reports_what_only_the_snapshot_has(project: CommandRunner) -> None:
    (project.project / ".git" / "info" / "exclude").write_text("*.log\n")
    record = with_workspace(project)
    (untracked(record).parent / "big.log").write_bytes(bytes(2_000_000))
    (Path(record.path) / "notes.log").write_text("notes")
    kept = project.run("workspaces", "snapshot", "fix-login")
    assert "left out: ignored: 'big.log' (2.0 MB)" in kept.out
    back = project.run("workspaces", "recover", "fix-login")
    assert "only in the snapshot: notes.log" in back.out
    assert "git show refs/podium/snapshots/" in back.err
    assert "everything except" in project.run("workspaces", "gc").out


def test_workspaces_of_other_repositories_are_left_alone_without_all(
    project: CommandRunner,
) -> None:
    record = with_workspace(project)
    private = Path(record.private)
    facts = json.loads((private / "record.json").read_text())
    other = str(project.project.parent / "other")
    facts |= {"repository": other, "git_dir": f"{other}/.git"}
    (private / "record.json").write_text(json.dumps(facts))
    result = project.run("workspaces", "list")
    assert (result.code, result.out) == (0, "")
    assert "1 workspace in other repositories; list them with --all" in result.err
    assert other in project.run("workspaces", "list", "--all").out
    assert project.run("workspaces", "gc").out == ""
    for command in ("gc", "snapshot", "recover"):
        refused = project.run("workspaces", command, "fix-login")
        assert refused.code == 1
        assert f"belongs to '{other}'" in refused.err


def test_unknown_name_is_reported_with_the_command_that_lists(project: CommandRunner) -> None:
    assert "`podium workspaces list`" in project.run("workspaces", "snapshot", "nothing").err


def test_the_doctor_clears_away_what_a_killed_process_left_when_asked_to(
    project: CommandRunner,
) -> None:
    project.add_run()
    record = with_workspace(project)
    private = Path(record.private)
    (private / "record.json").rename(private / "creating.json")
    state = project.project / ".podium"
    state.chmod(0o755)
    looked = project.run("doctor", "--json").json
    assert "fixed" not in looked
    assert Path(record.path).exists()
    state.chmod(0o755)
    closed, cleared = project.run("doctor", "--fix", "--json").json["fixed"]
    assert closed == f"removed the permissions of other users on {state}"
    assert cleared.startswith(f"removed leftover {record.id}: ")
    assert state.stat().st_mode & 0o777 == 0o700
    assert not Path(record.path).exists()
    assert project.run("doctor", "--fix", "--json").json["fixed"] == []
