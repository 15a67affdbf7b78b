"""Making workspaces: what is there afterwards, what an agent sees inside, and that a failure leaves nothing."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from podium.core.errors import NotPossibleNow
from podium.core.workspaces import WorkspaceSpec
from tests.integration.workspaces.workspace_harness import (
    Place,
    commit,
    git,
    make_repository,
    needs_bwrap,
)

pytestmark = needs_bwrap()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def test_a_workspace_is_a_worktree_beside_the_checkout_on_its_own_branch(
    place: Place,
) -> None:
    workspace = await place.make("fix-login")
    record = workspace.record
    assert record.path == str(place.repository.parent / ".worktrees/fix-login")
    assert git(record.path, "symbolic-ref", "HEAD") == "refs/heads/podium/fix-login"
    assert git(record.path, "rev-parse", "HEAD") == place.user("rev-parse", "main") == record.base
    assert git(record.path, "status", "--porcelain") == ""
    assert os.stat(record.private).st_mode & 0o777 == 0o700
    assert json.loads(Path(record.private, "record.json").read_text())["task"] == "fix-login"
    assert not Path(record.private, "creating.json").exists()


async def test_folders_of_an_earlier_podium_are_taken_from_others_when_a_workspace_is_opened(
    place: Place,
) -> None:
    record = (await place.make()).record
    folders = (Path(record.path).parent, Path(record.path))
    for folder in folders:
        folder.chmod(0o755)
    await place.workspaces.open(record.id)
    assert [folder.stat().st_mode & 0o777 for folder in folders] == [0o700, 0o700]


async def test_the_agent_commits_inside_and_the_users_repository_does_not_notice(
    place: Place,
) -> None:
    workspace = await place.make()
    before = place.state()
    await place.works(workspace, "echo new > src/new; git add -A; git commit -qm 'from inside'")
    assert await place.works(workspace, "git log --format=%an:%s -1") == "Uma User:from inside"
    assert await place.works(
        workspace, "git status --porcelain; git diff --stat main...HEAD | tail -1"
    )
    assert place.state() == before


async def test_the_repository_is_found_from_any_folder_in_it_also_through_a_link(
    place: Place, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(place.repository)
    place.repository = tmp_path / "link/src"
    workspace = await place.make()
    assert workspace.record.repository == str(tmp_path / "repo")
    await place.works(workspace, "echo 1 > a; git add a; git commit -qm one")
    assert len((await workspace.deliver()).commits) == 1


async def test_a_workspace_can_start_from_a_linked_worktree_of_the_user(
    place: Place, tmp_path: Path
) -> None:
    place.user("worktree", "add", "-q", str(tmp_path / "linked"), "feature")
    place.repository = tmp_path / "linked"
    workspace = await place.make()
    assert workspace.record.base == place.user("rev-parse", "feature")
    assert workspace.record.git_dir == str(tmp_path / "repo/.git")
    await place.works(workspace, "echo 1 > a; git add a; git commit -qm one")
    assert len((await workspace.deliver()).commits) == 1


async def test_branch_base_and_folder_can_be_chosen(place: Place, tmp_path: Path) -> None:
    workspace = await place.make(base="v1", branch="topic/x", folder=str(tmp_path / "elsewhere"))
    assert workspace.record.path == str(tmp_path / "elsewhere")
    assert workspace.record.branch == "refs/heads/topic/x"
    assert workspace.record.base == place.user("rev-parse", "v1^{commit}")


async def test_worktrees_inside_another_repository_are_not_seen_by_it(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    place = Place(tmp_path / "inner")
    await place.make()
    assert ".worktrees" not in git(tmp_path, "status", "--porcelain", "--untracked-files=all")


async def test_where_the_parent_cannot_be_written_the_state_home_is_used(place: Place) -> None:
    (place.repository.parent / ".worktrees").symlink_to("/nowhere")
    workspace = await place.make()
    assert workspace.record.path == str(place.state_home / "worktrees/repo-t1")


async def test_the_users_repository_is_out_of_reach(place: Place) -> None:
    workspace = await place.make(forbidden=["conf/prod", "infra/secret"])
    repo, before = place.repository, place.state()
    attacks = [
        "git update-ref refs/heads/main HEAD~1",
        "git branch -f feature HEAD~1; git tag -d v1; git stash drop",
        f"echo x > {repo}/README",
        f"ls {repo}/src",
        "git config core.fsmonitor evil",
        "printf '#!/bin/sh\\n' > $(git rev-parse --git-common-dir)/hooks/pre-commit",
        "echo x > .git; rm -f .git; mv .git x",
        "rm -rf $(git rev-parse --git-common-dir)/base-objects/*",
        "echo x > conf/prod/key; rm -rf conf; mv conf conf2; mkdir -p conf/prod",
        "touch infra/secret/x; rmdir infra/secret; mv infra i2",
        "git gc --prune=now; git reflog expire --expire=now --all",
    ]
    for attack in attacks:
        await place.agent(workspace, f"set +e; {attack}; true")
    assert place.state() == before
    assert Path(workspace.record.path, "conf/prod/key").read_text() == "k\n"
    assert list(Path(workspace.record.path, "infra/secret").iterdir()) == []
    assert git(workspace.record.path, "status", "--porcelain") == ""
    place.user("fsck", "--strict")


async def test_a_workspace_can_be_cloned_inside_without_complaint(place: Place) -> None:
    workspace = await place.make()
    check = "git fsck --no-dangling --no-progress && git log -1 --format=%H"
    line = f'git clone -q "$PWD" /tmp/clone && cd /tmp/clone && {check}'
    output = await place.works(workspace, f"({line}) 2>&1")
    assert output.split() == [git(workspace.record.path, "rev-parse", "HEAD").strip()]


async def test_objects_that_are_borrowed_from_elsewhere_are_seen_inside(
    place: Place, tmp_path: Path
) -> None:
    git(tmp_path, "clone", "-q", "--shared", str(place.repository), "second")
    git(tmp_path, "clone", "-q", "--shared", str(tmp_path / "second"), "third")
    place.repository = tmp_path / "third"
    workspace = await place.make()
    await place.works(
        workspace, "git fsck; git log -p > /dev/null; echo 1 > a; git add a; git commit -qm one"
    )
    assert len((await workspace.deliver()).commits) == 1


async def test_a_shallow_clone_works(place: Place, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{place.repository}", "shallow")
    place.repository = tmp_path / "shallow"
    workspace = await place.make()
    assert await place.works(workspace, "git log --oneline | wc -l") == "1"
    await place.works(workspace, "echo 1 > a; git add a; git commit -qm one")
    assert len((await workspace.deliver()).commits) == 1


@pytest.mark.soak
async def test_a_repository_with_sha256_objects_works(place: Place, tmp_path: Path) -> None:
    place.repository = make_repository(tmp_path / "sha256", "--object-format=sha256")
    workspace = await place.make()
    await place.works(workspace, "echo 1 > a; git add a; git commit -qm one; echo u > u")
    assert len((await workspace.deliver()).after) == 64
    await workspace.restore(await workspace.snapshot("x"))


@pytest.mark.soak
async def test_submodules_stay_as_they_are_and_the_rest_works(place: Place, tmp_path: Path) -> None:
    make_repository(tmp_path / "library")
    git(
        place.repository,
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        str(tmp_path / "library"),
        "lib",
    )
    git(place.repository, "commit", "-qm", "with a submodule")
    workspace = await place.make()
    assert await place.works(workspace, "git status --porcelain; ls lib") == ""
    await place.works(workspace, "echo 1 > a; git add -A; git commit -qm one")
    assert (await workspace.deliver()).paths == ("a",)
    snapshot = await workspace.snapshot("x")
    assert place.user("ls-tree", snapshot.commit, "lib").startswith("160000")
    await workspace.restore(snapshot)
    assert await place.works(workspace, "git status --porcelain") == ""


async def test_pointers_of_large_files_stay_pointers_and_no_filter_runs(
    place: Place, tmp_path: Path
) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n"
    commit(
        place.repository, "large", **{".gitattributes": "*.bin filter=lfs\n", "big.bin": pointer}
    )
    for key in ("smudge", "clean", "process"):
        git(place.repository, "config", f"filter.lfs.{key}", f"touch {tmp_path}/ran; false")
    git(place.repository, "config", "filter.lfs.required", "true")
    workspace = await place.make()
    assert Path(workspace.record.path, "big.bin").read_text() == pointer
    await place.works(workspace, "echo 1 > a; git add -A; git commit -qm one")
    assert (await workspace.deliver()).paths == ("a",)
    assert not (tmp_path / "ran").exists()


async def test_the_users_hooks_do_not_run(place: Place, tmp_path: Path) -> None:
    for name in ("post-checkout", "reference-transaction", "pre-commit", "post-index-change"):
        hook = place.repository / ".git/hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
        hook.chmod(0o755)
    workspace = await place.make()
    await place.works(workspace, "echo 1 > a; git add a; git commit -qm one")
    await workspace.deliver()
    await workspace.snapshot("x")
    assert not (tmp_path / "ran").exists()


async def test_two_at_once_for_the_same_task_make_one(place: Place) -> None:
    results = await asyncio.gather(
        place.make(), place.opened(seed=7).create(WorkspaceSpec(task="t1", repository=str(place.repository))),
        return_exceptions=True,
    )  # fmt: skip
    made = [result for result in results if not isinstance(result, BaseException)]
    refused = [result for result in results if isinstance(result, NotPossibleNow)]
    assert (len(made), len(refused)) == (1, 1)
    assert place.user("rev-parse", "podium/t1") == made[0].record.base
    assert len(place.workspaces.records.ids()) == 1


async def test_many_at_once_for_different_tasks_all_succeed(place: Place) -> None:
    made = await asyncio.gather(*(place.make(f"t{number}") for number in range(4)))
    assert len({item.record.path for item in made}) == 4


@pytest.mark.soak
async def test_a_checkout_that_is_itself_a_submodule_works(place: Place, tmp_path: Path) -> None:
    top = make_repository(tmp_path / "top")
    git(
        top,
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        str(place.repository),
        "lib",
    )
    git(top, "commit", "-qm", "with a submodule")
    place.repository = top / "lib"
    workspace = await place.make(folder=str(tmp_path / "wt"))
    assert workspace.record.git_dir == str(top / ".git/modules/lib")
    await place.works(workspace, "echo 1 > a; git add a; git commit -qm one; git status")
    await workspace.deliver()
    await workspace.restore(await workspace.snapshot("x"))
    assert git(workspace.record.path, "status", "--porcelain") == ""
    assert git(place.repository, "status", "--porcelain") == ""


async def test_odd_paths_are_no_hindrance(tmp_path: Path) -> None:
    place = Place(tmp_path / "a folder: with ü, 'quotes' and $signs")
    workspace = await place.make(forbidden=["conf/prod"])
    script = "printf x > $'new\\nline'; printf y > '*'; printf z > ' -x'; git add -A; git commit -qm odd; echo u > $'\\xff'"
    await place.works(workspace, script)
    assert len((await workspace.deliver()).paths) == 3
    snapshot = await workspace.snapshot("x")
    names = set(os.listdir(os.fsencode(workspace.record.path)))
    for name in (b"new\nline", b"*", b"\xff"):
        os.unlink(os.path.join(os.fsencode(workspace.record.path), name))
    await workspace.restore(snapshot)
    assert set(os.listdir(os.fsencode(workspace.record.path))) == names
