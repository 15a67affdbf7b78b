"""Snapshots keep everything, and a workspace goes back to one of them exactly."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from podium.core.errors import BadInput, NotPossibleNow
from podium.core.workspaces import WorktreeSnapshot
from podium.git.workspace import GitWorkspace
from tests.integration.workspaces.workspace_harness import Place, commit, git, needs_bwrap

pytestmark = needs_bwrap()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def _files(workspace: GitWorkspace) -> dict[str, bytes]:
    top = Path(workspace.record.path)
    return {
        str(path.relative_to(top)): path.read_bytes() if not path.is_symlink() else os.fsencode(path.readlink())
        for path in top.rglob("*")
        if path.is_symlink() or path.is_file()
    }  # fmt: skip


def _shown(place: Place, snapshot: WorktreeSnapshot, path: str) -> str:
    return place.user("show", f"{snapshot.commit}:{path}")


async def test_a_snapshot_holds_changed_untracked_and_small_ignored_files(place: Place) -> None:
    commit(place.repository, "ignore", **{".gitignore": "*.env\nnode_modules\n"})
    workspace = await place.make()
    before = place.state()
    await place.works(
        workspace,
        "echo changed > README; rm src/lib; echo u > untracked; echo SECRET > local.env; ln -s README link; "
        "mkdir node_modules; head -c 1100000 /dev/zero > node_modules/big",
    )
    snapshot = await workspace.snapshot("before a retry")
    names = place.user("ls-tree", "-r", "--name-only", snapshot.commit).split()
    assert {"untracked", "local.env", "link", "README"} <= set(names)
    assert not {"src/lib", "node_modules/big", ".git"} & set(names)
    assert _shown(place, snapshot, "README") == "changed"
    assert (snapshot.why, snapshot.complete) == ("before a retry", True)
    assert snapshot.left_out == ("ignored: 'node_modules/' (1.1 MB)",)
    assert place.user("rev-parse", snapshot.ref) == snapshot.commit
    after = place.state()
    assert {name for name in before if before[name] != after[name]} == {"refs"}
    place.user("fsck", "--strict", "--no-dangling")


async def test_commits_that_no_branch_holds_any_more_are_kept(place: Place) -> None:
    workspace = await place.make()
    script = "echo 1 > a; git add a; git commit -qm lost; git rev-parse HEAD; git reset -q --hard HEAD~1; "
    script += (
        "echo 2 > b; git add b; git stash -q; git rev-parse refs/stash; git checkout -qb side; "
    )
    script += (
        "echo 3 > c; git add c; git commit -qm side; git rev-parse HEAD; git checkout -q podium/t1"
    )
    lost = (await place.works(workspace, script)).split()
    snapshot = await workspace.snapshot("x")
    for item in lost:
        place.user("merge-base", "--is-ancestor", item, snapshot.commit)
    assert place.user("rev-parse", f"{snapshot.commit}^1") == workspace.record.base


async def test_nothing_new_makes_no_second_snapshot(place: Place) -> None:
    workspace = await place.make()
    first = await workspace.snapshot("one")
    assert await workspace.snapshot("two") == first
    Path(workspace.record.path, "README").write_text("new\n")
    second = await workspace.snapshot("three")
    assert second.ref.endswith("/2")


async def test_attributes_and_filters_of_the_agent_do_nothing_to_a_snapshot(
    place: Place, tmp_path: Path
) -> None:
    evil = tmp_path / "evil"
    git(place.repository, "config", "filter.lfs.clean", f"touch {evil}; cat")
    git(place.repository, "config", "filter.lfs.smudge", f"touch {evil}; cat")
    workspace = await place.make()
    script = "printf '* filter=lfs text eol=lf ident\\n' > .gitattributes; printf 'a\\r\\n$Id$\\r\\n' > crlf"
    await place.works(workspace, script)
    files = _files(workspace)
    snapshot = await workspace.snapshot("x")
    Path(workspace.record.path, "crlf").unlink()
    await workspace.restore(snapshot)
    assert _files(workspace) == files
    assert not evil.exists()


async def test_going_back_restores_files_branch_and_index_and_keeps_what_was_there(
    place: Place,
) -> None:
    commit(place.repository, "ignore", **{".gitignore": "*.env\n"})
    workspace = await place.make()
    await place.works(
        workspace, "echo 1 > a; git add a; git commit -qm one; echo loose > b; echo e > x.env"
    )
    files = _files(workspace)
    head = await place.works(workspace, "git rev-parse HEAD")
    good = await workspace.snapshot("good")
    await place.works(
        workspace,
        "rm -r src b; mkdir b; echo x > b/c; echo 2 > a; git add -A; git commit -qm bad; rm x.env; touch y.env",
    )
    bad = await place.works(workspace, "git rev-parse HEAD")
    await workspace.restore(good)
    assert _files(workspace) == files
    assert await place.works(workspace, "git rev-parse HEAD") == head
    assert await place.works(workspace, "git status --porcelain") == "?? b"
    newest = place.user("for-each-ref", "--format=%(refname)", "refs/podium/snapshots").split()[-1]
    place.user("merge-base", "--is-ancestor", bad, newest)
    assert place.user("show", f"{newest}:b/c") == "x"
    await place.works(workspace, "echo 3 > a; git commit -qam three")
    assert [
        place.user("log", "-1", "--format=%s", item) for item in (await workspace.deliver()).commits
    ] == ["one", "three"]


@pytest.mark.soak
async def test_going_back_twice_leads_forward_again(place: Place) -> None:
    workspace = await place.make()
    first = await workspace.snapshot("first")
    await place.works(workspace, "echo 1 > a; git add a; git commit -qm one; echo u > u")
    files = _files(workspace)
    second = await workspace.snapshot("second")
    await workspace.restore(first)
    assert "a" not in _files(workspace)
    await workspace.restore(second)
    assert _files(workspace) == files
    assert await place.works(workspace, "git log -1 --format=%s") == "one"


async def test_a_swap_that_was_killed_halfway_is_finished_by_the_next_look(place: Place) -> None:
    workspace = await place.make()
    private = Path(workspace.record.private)
    (private / "git").rename(private / "git.next")
    await workspace.confinement()
    assert await place.works(workspace, "git status --porcelain") == ""


async def test_a_snapshot_of_another_workspace_is_refused(place: Place) -> None:
    one, two = await place.make("one"), await place.make("two")
    snapshot = await one.snapshot("x")
    with pytest.raises(BadInput, match="not a snapshot of workspace"):
        await two.restore(snapshot)
    place.user("update-ref", "-d", snapshot.ref)
    with pytest.raises(NotPossibleNow, match="is gone"):
        await one.restore(snapshot)


async def test_commits_that_git_finds_wrong_are_left_out_and_reported(place: Place) -> None:
    workspace = await place.make()
    await place.works(
        workspace,
        "b=$(echo x | git hash-object -w --stdin); "
        "t=$( (git ls-tree HEAD; printf '100644 blob %s\\t.git\\n' $b) | git mktree); "
        "c=$(git commit-tree $t -p HEAD -m z); git update-ref refs/heads/evil $c; echo w > work",
    )
    snapshot = await workspace.snapshot("x")
    assert "objects" in snapshot.left_out[0]
    assert _shown(place, snapshot, "work") == "w"
    listed = await workspace._snapshots.listed(workspace.record)
    assert listed == [snapshot]


async def test_without_confinement_snapshots_hold_the_same(tmp_path: Path) -> None:
    place = Place(tmp_path, confined=False)
    workspace = await place.make()
    lost = await place.works(
        workspace,
        "echo 1 > a; git add a; git commit -qm x; git rev-parse HEAD; git reset -q --hard HEAD~1",
    )
    snapshot = await workspace.snapshot("x")
    place.user("merge-base", "--is-ancestor", lost, snapshot.commit)


@pytest.mark.soak
async def test_a_sparse_checkout_stays_sparse_and_loses_nothing(place: Place) -> None:
    git(place.repository, "sparse-checkout", "set", "src")
    workspace = await place.make()
    assert not Path(workspace.record.path, "conf").exists()
    assert (
        await place.works(
            workspace, "echo 1 > src/a; git add src/a; git commit -qm one; git status --porcelain"
        )
        == ""
    )
    await place.works(
        workspace, "mkdir -p conf/prod other; echo n > other/new; echo o > conf/prod/key"
    )
    snapshot = await workspace.snapshot("x")
    assert _shown(place, snapshot, "conf/prod/key") == "o"
    assert _shown(place, snapshot, "other/new") == "n"
    assert _shown(place, snapshot, "README") == "hello"
    await place.works(workspace, "rm -r other conf")
    assert _shown(place, await workspace.snapshot("y"), "conf/prod/key") == "k"
    await workspace.restore(snapshot)
    assert Path(workspace.record.path, "other/new").read_text() == "n\n"
    await place.works(workspace, "rm -r other conf")
    assert (await workspace.deliver()).paths == ("src/a",)
    assert git(workspace.record.path, "status", "--porcelain") == ""
