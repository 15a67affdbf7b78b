"""Requests for workspaces that cannot be made: refused with a message, and nothing is left behind."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from podium.core.errors import BadInput, NotPossibleNow, PodiumError
from podium.core.workspaces import SetupSpec, WorkspaceSpec
from tests.integration.workspaces.workspace_harness import Place, commit, git


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def _refused(place: Place, kind: type[PodiumError], words: str, **spec: object) -> None:
    """The wish is refused with these words, and everything is as before."""
    asked = {"task": "t1", "repository": str(place.repository), **spec}
    before, around = place.state(), sorted(os.listdir(place.repository.parent))
    with pytest.raises(kind, match=words):
        await place.workspaces.create(WorkspaceSpec.model_validate(asked))
    assert place.state() == before
    assert place.workspaces.records.ids() == []
    assert set(os.listdir(place.repository.parent)) - {"state"} == set(around) - {"state"}
    assert place.user("worktree", "list").count("\n") == 0


async def test_a_folder_that_is_no_repository(place: Place, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    await _refused(place, BadInput, "not in a git repository", repository=str(tmp_path / "plain"))
    await _refused(place, BadInput, "does not exist", repository=str(tmp_path / "nowhere"))


async def test_a_bare_repository_and_the_inside_of_a_git_directory(
    place: Place, tmp_path: Path
) -> None:
    git(tmp_path, "init", "-q", "--bare", "bare")
    await _refused(place, BadInput, "bare repository", repository=str(tmp_path / "bare"))
    await _refused(
        place, BadInput, "inside a git directory", repository=str(place.repository / ".git/refs")
    )


async def test_a_repository_without_a_commit(place: Place, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "empty")
    await _refused(place, NotPossibleNow, "no commit yet", repository=str(tmp_path / "empty"))


async def test_a_partial_clone(place: Place, tmp_path: Path) -> None:
    git(place.repository, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "-q", "--filter=blob:none", f"file://{place.repository}", "partial")
    await _refused(place, NotPossibleNow, "partial clone", repository=str(tmp_path / "partial"))


@pytest.mark.parametrize("base", ["nonsense", "--all", "", "HEAD:README", "main..feature"])
async def test_a_base_that_is_no_commit(place: Place, base: str) -> None:
    await _refused(place, BadInput, "commit", base=base)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "task", ["a/b", "..", "-x", "a b", "x.lock", "é", "a" * 101, "a..b", "x\n"]
)
async def test_a_task_that_is_no_name(place: Place, task: str) -> None:
    await _refused(place, BadInput, "not a valid task name", task=task)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "branch", ["a..b", "-x", "a b", "x.lock", "/x", "x/", "a//b", "HEAD", "@", "a@{b", ".x", "a\\b"]
)
async def test_a_branch_that_is_no_name(place: Place, branch: str) -> None:
    await _refused(place, BadInput, "not a valid branch name", branch=branch)


async def test_a_branch_that_exists(place: Place) -> None:
    await _refused(place, NotPossibleNow, "already exists", branch="feature")
    await _refused(place, NotPossibleNow, "folder of the other", branch="feature/x")


async def test_a_branch_that_differs_by_case_alone_where_case_does_not_count(place: Place) -> None:
    git(place.repository, "config", "core.ignorecase", "true")
    await _refused(place, NotPossibleNow, "only in case", branch="Feature")


async def test_files_that_differ_by_case_alone_where_case_does_not_count(place: Place) -> None:
    commit(place.repository, "twins", src__App="x\n")
    git(place.repository, "config", "core.ignorecase", "true")
    await _refused(place, NotPossibleNow, "'src/App' and 'src/app'")


@pytest.mark.parametrize("path", ["/etc", "../x", "a/../b", "", ".", ".git/config", "x/.GIT"])
async def test_a_forbidden_path_that_is_none_of_the_workspace(place: Place, path: str) -> None:
    await _refused(place, BadInput, "forbidden", forbidden=(path,))


async def test_a_forbidden_path_behind_a_link_of_the_project(place: Place) -> None:
    (place.repository / "linked").symlink_to("src")
    commit(place.repository, "link")
    await _refused(place, BadInput, "is a link", forbidden=("linked/app",))


async def test_a_folder_that_exists_or_lies_in_the_git_directory(
    place: Place, tmp_path: Path
) -> None:
    (tmp_path / "there").mkdir()
    await _refused(place, NotPossibleNow, "already exists", folder=str(tmp_path / "there"))
    await _refused(
        place, BadInput, "inside a git directory", folder=str(place.repository / ".git/wt")
    )
    await _refused(place, BadInput, "does not exist", folder=str(tmp_path / "no/such/parent"))


async def test_a_set_up_that_fails_is_undone(place: Place) -> None:
    set_up = SetupSpec(copy_files=("missing.env",))
    await _refused(place, PodiumError, "missing.env", set_up=set_up)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=200k", "none", folder], capture_output=True
    )
    if made.returncode:
        pytest.skip("only root, and only where it may mount, can make a small disk")
    yield folder
    subprocess.run(["umount", folder], check=True)


async def test_no_space_left_for_the_worktree(place: Place, small_disk: Path) -> None:
    commit(place.repository, "big", big="x" * 300_000)
    await _refused(place, NotPossibleNow, "no space left", folder=str(small_disk / "wt"))
    assert os.listdir(small_disk) == []


@pytest.mark.soak
async def test_no_space_left_for_what_is_kept_of_it(place: Place, small_disk: Path) -> None:
    (small_disk / "fill").write_bytes(b"x" * 150_000)
    place.state_home = small_disk / "state"
    place.workspaces = place.opened()
    for number in range(400):
        place.user("update-ref", f"refs/heads/{'n' * 100}{number}", "HEAD")
    await _refused(place, NotPossibleNow, "no space left")


async def test_a_repository_of_another_user(place: Place) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a repository to another user")
    for folder, _, names in os.walk(place.repository):
        for name in (".", *names):
            os.chown(Path(folder, name), 12345, 12345)
    with pytest.raises(NotPossibleNow, match=r"belongs to another user.*safe\.directory"):
        await place.make()
