"""`podium init` in real repositories: what it finds, asks, tries and leaves alone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from tests.integration.cli.command_runner import CommandRunner
from tests.integration.cli.test_on_terminals import at_a_terminal
from tests.integration.cli.test_workspaces import git
from tests.integration.wiring.test_project_venv import make_venv

UNITTEST = "import unittest\n\nclass T(unittest.TestCase):\n    def test_one(self): {}\n"
FOUND = f"{'python' if shutil.which('python') else 'python3'} -m unittest discover -q"


def commit(cli: CommandRunner, **files: str) -> None:
    for name, text in files.items():
        (cli.project / name).write_text(text)
    git(cli, "init", "-q", "-b", "main")
    git(cli, "add", "-A")
    git(cli, "commit", "-qm", "first")


def own_agents(cli: CommandRunner, **kinds: str) -> None:
    cli.home.mkdir(exist_ok=True)
    agents = {name: {"kind": kind} for name, kind in kinds.items()}
    (cli.home / "config.yaml").write_text(yaml.safe_dump({"agents": agents}))


def everything_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("body", "state", "summary", "next_command"),
    [
        ("self.assertTrue(True)", "green", "green in ", "what should be done"),
        ("self.fail()", "red", "red before any work (exit 1): FAILED", "Fix the failing check"),
        ("import flask_is_missing", "cannot_run", "cannot run: ModuleNotFoundError", "what should be done"),
    ],
)  # fmt: skip
def test_a_check_is_tried_once_and_nothing_of_that_is_left(
    cli: CommandRunner, body: str, state: str, summary: str, next_command: str
) -> None:
    commit(cli, **{"test_a.py": UNITTEST.format(body), ".gitignore": "*.log\n"})
    own_agents(cli, brain="claude")
    result = cli.run("init", "--try-checks", "--json")
    assert result.code == 0, result.err
    assert result.json["checks"] == [{"command": FOUND, "source": "test_a.py"}]
    assert result.json["trial"]["state"] == state
    assert result.json["trial"]["summary"].startswith(summary)
    assert result.json["next"] == f'podium run "{next_command}"'
    assert yaml.safe_load((cli.project / "podium.yaml").read_text())["checks"] == [FOUND]
    assert git(cli, "branch", "--list").split() == ["*", "main"]
    assert git(cli, "status", "--porcelain") == "?? podium.yaml"
    assert not (cli.project.parent / ".worktrees").exists()
    assert cli.run("workspaces", "list", "--json").json["workspaces"] == []


def test_person_is_asked_at_most_three_times_and_enter_takes_the_proposals(
    cli: CommandRunner,
) -> None:
    commit(cli, **{"test_a.py": UNITTEST.format("pass")})
    own_agents(cli, brain="claude", other="codex")
    left, shown = at_a_terminal(cli, "other\n\nn\n", "init")
    assert left == 0, shown
    assert shown.count("? ") == 3, shown
    assert f"[{FOUND}]: " in shown
    assert "role auditor: brain, then other\n" in shown
    assert shown.endswith('next: podium run "what should be done"\n')
    settings = yaml.safe_load((cli.project / "podium.yaml").read_text())
    assert settings["roles"] == {
        "default": {"agent": ["other", "brain"]},
        "auditor": {"agent": ["brain", "other"]},
    }
    assert settings["checks"] == [FOUND]


def test_existing_file_is_left_alone_and_shown_what_it_could_contain(cli: CommandRunner) -> None:
    commit(cli, **{"test_a.py": UNITTEST.format("pass"), "podium.yaml": "mode: sensing\n"})
    result = cli.run("init", "--yes")
    assert result.code == 1
    assert f"checks:\n  - {FOUND}  # found in test_a.py\n" in result.out
    assert "already exists; nothing was changed" in result.err
    assert f"  - {FOUND}" in cli.run("init", "--json").json["could_add"]
    assert (cli.project / "podium.yaml").read_text() == "mode: sensing\n"
    assert everything_in(cli.project) == {".git", "podium.yaml", "test_a.py"}


def test_odd_files_are_named_and_nothing_of_the_repository_is_run(
    cli: CommandRunner, tmp_path: Path
) -> None:
    (tmp_path / "outside.json").write_text('{"scripts": {"test": "touch sprung"}}')
    (cli.project / "package.json").symlink_to(tmp_path / "outside.json")
    commit(
        cli,
        **{
            "pyproject.toml": "[tool.pytest",
            "Makefile": "$(shell touch sprung)\ntest:\n\ttouch sprung\n",
        },
    )
    result = cli.run("init", "--yes")
    assert result.code == 0, result.err
    assert (
        "note: checks may be missing: package.json is not a plain file; links are not" in result.out
    )
    assert "note: checks may be missing: pyproject.toml is not valid TOML" in result.out
    assert not (cli.project / "sprung").exists()


def test_a_git_directory_and_a_broken_link_are_left_as_they_are(cli: CommandRunner) -> None:
    commit(cli, a="")
    result = cli.run("init", "--project", str(cli.project / ".git"))
    assert result.code == 2
    assert "is a git directory" in result.err
    assert not (cli.project / ".git/podium.yaml").exists()
    (cli.project / "podium.yaml").symlink_to("nowhere")
    result = cli.run("init")
    assert result.code == 1
    assert "is a link to a missing file" in result.err
    assert everything_in(cli.project) == {".git", "a", "podium.yaml"}


def test_folder_without_commits_or_git_is_reported_with_how_to_start(cli: CommandRunner) -> None:
    result = cli.run("init")
    assert result.code == 0, result.err
    assert "will not start here yet" in result.out
    assert "is not in a git repository" in result.out
    (cli.project / "podium.yaml").unlink()
    git(cli, "init", "-q", "-b", "main")
    (cli.project / "test_a.py").write_text(UNITTEST.format("pass"))
    result = cli.run("init", "--try-checks", "--json")
    assert result.code == 0, result.err
    assert result.json["checks"] == [{"command": FOUND, "source": "test_a.py"}]
    assert "has no commit yet" in result.json["trial"]["summary"]
    assert any("has no commit yet" in note for note in result.json["notes"])


FAKE_PYTEST = """\
import pathlib, sys
try:
    pathlib.Path(__file__).write_text("")
except OSError:
    sys.exit(print("1 passed in 0.01s"))
sys.exit("the environment can be written")
"""


def test_the_environment_of_the_checkout_counts_without_being_activated(cli: CommandRunner) -> None:
    commit(cli, **{"pyproject.toml": "[tool.pytest.ini_options]\n", ".gitignore": ".venv/\n"})
    make_venv(cli.project / ".venv", pytest=FAKE_PYTEST)
    own_agents(cli, brain="claude")
    result = cli.run("init", "--try-checks", "--json", env={})
    assert result.code == 0, result.err
    assert [check["command"] for check in result.json["checks"]] == ["python -m pytest -q"]
    assert result.json["trial"]["state"] == "green", result.json["trial"]


def test_the_checks_of_an_existing_file_are_tried(cli: CommandRunner) -> None:
    checks = "checks: ['true', 'echo no; false', .venv/bin/python -m pytest]\n"
    commit(cli, **{"a.py": "", "podium.yaml": checks})
    result = cli.run("init", "--try-checks")
    assert result.code == 1
    green, red, missing = result.out.splitlines()
    assert green.startswith("check `true`: green in ")
    assert red == "check `echo no; false`: red before any work (exit 1): no"
    assert missing.endswith("use `python`, which comes from your checkout's .venv")
    assert (cli.project / "podium.yaml").read_text() == checks


def test_tests_without_their_runner_are_reported_by_init_and_doctor(cli: CommandRunner) -> None:
    commit(cli, **{"pyproject.toml": "[tool.pytest.ini_options]\n", ".gitignore": ".venv/\n"})
    make_venv(cli.project / ".venv")
    own_agents(cli, brain="claude")
    problem = "pytest is not installed. Run `.venv/bin/python -m pip install pytest`"
    [note] = cli.run("init", "--json", env={}).json["notes"]
    assert note.startswith("`podium run` will stop before the first agent: ")
    assert problem in note
    (cli.project / "podium.yaml").unlink()
    last = cli.run("init", env={}).out.splitlines()[-1]
    assert last == 'next: follow the notes, then podium run "what should be done"'
    result = cli.run("doctor", "--json", env={})
    [line] = [check for check in result.json["checks"] if check["name"] == "checks"]
    assert line["state"] == "warn"
    assert problem in line["says"]
