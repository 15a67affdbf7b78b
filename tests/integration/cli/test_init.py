"""`podium init` in real repositories: what it finds, asks, tries and leaves alone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from tests.integration.cli.desk import Desk
from tests.integration.cli.test_on_terminals import at_a_terminal
from tests.integration.cli.test_workspaces import git
from tests.integration.wiring.test_project_venv import make_venv

UNITTEST = "import unittest\n\nclass T(unittest.TestCase):\n    def test_one(self): {}\n"
FOUND = f"{'python' if shutil.which('python') else 'python3'} -m unittest discover -q"


def commit(desk: Desk, **files: str) -> None:
    for name, text in files.items():
        (desk.project / name).write_text(text)
    git(desk, "init", "-q", "-b", "main")
    git(desk, "add", "-A")
    git(desk, "commit", "-qm", "first")


def own_agents(desk: Desk, **kinds: str) -> None:
    desk.home.mkdir(exist_ok=True)
    agents = {name: {"kind": kind} for name, kind in kinds.items()}
    (desk.home / "config.yaml").write_text(yaml.safe_dump({"agents": agents}))


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
    desk: Desk, body: str, state: str, summary: str, next_command: str
) -> None:
    commit(desk, **{"test_a.py": UNITTEST.format(body), ".gitignore": "*.log\n"})
    own_agents(desk, brain="claude")
    said = desk.run("init", "--try-checks", "--json")
    assert said.code == 0, said.err
    assert said.json["checks"] == [{"command": FOUND, "source": "test_a.py"}]
    assert said.json["trial"]["state"] == state
    assert said.json["trial"]["summary"].startswith(summary)
    assert said.json["next"] == f'podium run "{next_command}"'
    assert yaml.safe_load((desk.project / "podium.yaml").read_text())["checks"] == [FOUND]
    assert git(desk, "branch", "--list").split() == ["*", "main"]
    assert git(desk, "status", "--porcelain") == "?? podium.yaml"
    assert not (desk.project.parent / ".worktrees").exists()
    assert desk.run("workspaces", "list", "--json").json["workspaces"] == []


def test_a_person_is_asked_three_times_at_most_and_enter_takes_the_proposals(desk: Desk) -> None:
    commit(desk, **{"test_a.py": UNITTEST.format("pass")})
    own_agents(desk, brain="claude", other="codex")
    left, shown = at_a_terminal(desk, "other\n\nn\n", "init")
    assert left == 0, shown
    assert shown.count("? ") == 3, shown
    assert f"[{FOUND}]: " in shown
    assert "role auditor: brain, then other\n" in shown
    assert shown.endswith('next: podium run "what should be done"\n')
    settings = yaml.safe_load((desk.project / "podium.yaml").read_text())
    assert settings["roles"] == {
        "default": {"agent": ["other", "brain"]},
        "auditor": {"agent": ["brain", "other"]},
    }
    assert settings["checks"] == [FOUND]


def test_an_existing_file_is_left_alone_and_told_what_it_could_say(desk: Desk) -> None:
    commit(desk, **{"test_a.py": UNITTEST.format("pass"), "podium.yaml": "mode: sensing\n"})
    said = desk.run("init", "--yes")
    assert said.code == 1
    assert f"checks:\n  - {FOUND}  # found in test_a.py\n" in said.out
    assert "already exists; nothing was changed" in said.err
    assert f"  - {FOUND}" in desk.run("init", "--json").json["could_add"]
    assert (desk.project / "podium.yaml").read_text() == "mode: sensing\n"
    assert everything_in(desk.project) == {".git", "podium.yaml", "test_a.py"}


def test_odd_files_are_named_and_nothing_of_the_repository_is_run(
    desk: Desk, tmp_path: Path
) -> None:
    (tmp_path / "outside.json").write_text('{"scripts": {"test": "touch sprung"}}')
    (desk.project / "package.json").symlink_to(tmp_path / "outside.json")
    commit(
        desk,
        **{
            "pyproject.toml": "[tool.pytest",
            "Makefile": "$(shell touch sprung)\ntest:\n\ttouch sprung\n",
        },
    )
    said = desk.run("init", "--yes")
    assert said.code == 0, said.err
    assert (
        "note: checks may be missing: package.json is not a plain file; links are not" in said.out
    )
    assert "note: checks may be missing: pyproject.toml is not valid TOML" in said.out
    assert not (desk.project / "sprung").exists()


def test_a_git_directory_and_a_broken_link_are_left_as_they_are(desk: Desk) -> None:
    commit(desk, a="")
    said = desk.run("init", "--project", str(desk.project / ".git"))
    assert said.code == 2
    assert "is a git directory" in said.err
    assert not (desk.project / ".git/podium.yaml").exists()
    (desk.project / "podium.yaml").symlink_to("nowhere")
    said = desk.run("init")
    assert said.code == 1
    assert "is a link to a missing file" in said.err
    assert everything_in(desk.project) == {".git", "a", "podium.yaml"}


def test_a_folder_without_commits_or_without_git_is_told_how_to_start(desk: Desk) -> None:
    said = desk.run("init")
    assert said.code == 0, said.err
    assert "will not start here yet" in said.out
    assert "is not in a git repository" in said.out
    (desk.project / "podium.yaml").unlink()
    git(desk, "init", "-q", "-b", "main")
    (desk.project / "test_a.py").write_text(UNITTEST.format("pass"))
    said = desk.run("init", "--try-checks", "--json")
    assert said.code == 0, said.err
    assert said.json["checks"] == [{"command": FOUND, "source": "test_a.py"}]
    assert "has no commit yet" in said.json["trial"]["summary"]
    assert any("has no commit yet" in note for note in said.json["notes"])


FAKE_PYTEST = """\
import pathlib, sys
try:
    pathlib.Path(__file__).write_text("")
except OSError:
    sys.exit(print("1 passed in 0.01s"))
sys.exit("the environment can be written")
"""


def test_the_environment_of_the_checkout_counts_without_being_activated(desk: Desk) -> None:
    commit(desk, **{"pyproject.toml": "[tool.pytest.ini_options]\n", ".gitignore": ".venv/\n"})
    make_venv(desk.project / ".venv", pytest=FAKE_PYTEST)
    own_agents(desk, brain="claude")
    said = desk.run("init", "--try-checks", "--json", env={})
    assert said.code == 0, said.err
    assert [check["command"] for check in said.json["checks"]] == ["python -m pytest -q"]
    assert said.json["trial"]["state"] == "green", said.json["trial"]


def test_the_checks_of_an_existing_file_are_tried(desk: Desk) -> None:
    checks = "checks: ['true', 'echo no; false', .venv/bin/python -m pytest]\n"
    commit(desk, **{"a.py": "", "podium.yaml": checks})
    said = desk.run("init", "--try-checks")
    assert said.code == 1
    green, red, missing = said.out.splitlines()
    assert green.startswith("check `true`: green in ")
    assert red == "check `echo no; false`: red before any work (exit 1): no"
    assert missing.endswith("use `python`, which comes from your checkout's .venv")
    assert (desk.project / "podium.yaml").read_text() == checks


def test_tests_without_their_runner_are_told_by_init_and_doctor(desk: Desk) -> None:
    commit(desk, **{"pyproject.toml": "[tool.pytest.ini_options]\n", ".gitignore": ".venv/\n"})
    make_venv(desk.project / ".venv")
    own_agents(desk, brain="claude")
    problem = "pytest is not installed. Run `.venv/bin/python -m pip install pytest`"
    [note] = desk.run("init", "--json", env={}).json["notes"]
    assert note.startswith("`podium run` will stop before the first agent: ")
    assert problem in note
    (desk.project / "podium.yaml").unlink()
    last = desk.run("init", env={}).out.splitlines()[-1]
    assert last == 'next: follow the notes, then podium run "what should be done"'
    said = desk.run("doctor", "--json", env={})
    [line] = [check for check in said.json["checks"] if check["name"] == "checks"]
    assert line["state"] == "warn"
    assert problem in line["says"]
