"""Merging the user's newer commits into a workspace, and branches that collide."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.core.errors import BadInput, ImportRefused, NotPossibleNow
from podium.core.workspaces import MergeResult
from podium.git.supervisor_repo import SupervisorRepo
from podium.git.workspace import GitWorkspace
from tests.integration.workspaces.workspace_harness import Place, commit, needs_bwrap
from tests.soaking import in_soak

pytestmark = needs_bwrap()

WHY = {"Podium-Step": "merge-1"}


@pytest.fixture(params=[True, in_soak(False)], ids=["confined", "unconfined"])
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    return Place(tmp_path, confined=request.param)


def _top(workspace: GitWorkspace) -> Path:
    return Path(workspace.record.path)


async def _merge(workspace: GitWorkspace) -> MergeResult:
    return await workspace.merge("main", "Merge main into podium/t1", WHY)


async def _in_conflict(place: Place) -> tuple[GitWorkspace, str]:
    workspace = await place.make()
    await place.works(
        workspace, "echo mine > README; git rm -q src/lib; git add -A; git commit -qm mine"
    )
    return workspace, commit(
        place.repository, "theirs", README="theirs\n", src__lib="changed\n", new="n\n"
    )


async def test_a_clean_merge_is_a_true_one_and_comes_back_through_the_gate(place: Place) -> None:
    workspace = await place.make(forbidden=["conf/prod"])
    await place.works(workspace, "echo 1 > src/a; git add -A; git commit -qm mine")
    await workspace.deliver()
    theirs = commit(place.repository, "theirs", conf__prod__key="newer\n", other="x\n")
    merge = await _merge(workspace)
    assert (merge.other, merge.conflicts) == (theirs, ())
    assert (_top(workspace) / "conf/prod/key").read_text() == "newer\n"
    assert (await workspace.state()).is_clean
    assert await place.works(workspace, "git status --porcelain") == ""
    newest = (await workspace.history(workspace.record.base))[-1]
    assert (newest.id, newest.trailers) == (merge.commit, WHY)
    assert newest.parents[1] == theirs
    assert (await workspace.deliver()).after == merge.commit
    assert (
        place.user("log", "-1", "--format=%an %s", "podium/t1")
        == "Podium Merge main into podium/t1"
    )
    again = await _merge(workspace)
    assert (again.commit, again.conflicts) == (merge.commit, ())


async def test_a_branch_without_work_gets_a_merge_commit_too(place: Place) -> None:
    workspace = await place.make()
    assert (await _merge(workspace)).commit == workspace.record.base
    theirs = commit(place.repository, "theirs", other="x\n")
    merge = await workspace.merge(theirs, "m", {})
    (_, newest) = await workspace.history(workspace.record.base)
    assert newest.parents == (workspace.record.base, theirs)
    assert newest.id == merge.commit
    assert (await workspace.deliver()).after == merge.commit


async def test_conflicts_are_left_for_the_agent_who_ends_them_with_a_plain_commit(
    place: Place,
) -> None:
    workspace, theirs = await _in_conflict(place)
    merge = await _merge(workspace)
    assert (merge.commit, merge.other, set(merge.conflicts)) == ("", theirs, {"README", "src/lib"})
    assert "CONFLICT" in merge.told
    assert "<<<<<<<" in (_top(workspace) / "README").read_text()
    state = await workspace.state()
    assert state.merging
    assert state.on_branch
    assert await _merge(workspace) == merge.model_copy(update={"told": "the merge has conflicts"})
    assert "both modified" in await place.works(workspace, "git status")
    await place.works(workspace, "echo both > README; git add README src/lib")
    solved = await _merge(workspace)
    assert (solved.commit, solved.conflicts) == ("", ())
    await place.works(workspace, "git commit -q --no-edit")
    newest = (await workspace.history(workspace.record.base))[-1]
    assert (newest.subject, newest.trailers) == ("Merge main into podium/t1", WHY)
    assert newest.parents[1] == theirs
    assert (await _merge(workspace)).commit == newest.id
    assert (await workspace.deliver()).after == newest.id


@pytest.mark.soak
async def test_renames_binary_files_and_folders_in_the_way_are_conflicts_by_name(
    place: Place,
) -> None:
    (place.repository / "bin").write_bytes(b"\0\1" * 50)
    commit(place.repository, "more", old="a\nb\nc\nd\n", plain="p\n")
    workspace = await place.make()
    await place.works(
        workspace,
        "git mv old renamed; printf '\\0mine' > bin; git rm -q plain; mkdir plain; echo 1 > plain/x; "
        "git add -A; git commit -qm mine",
    )
    (place.repository / "bin").write_bytes(b"\0theirs")
    place.user("rm", "-q", "old")
    commit(place.repository, "theirs", plain="changed\n")
    merge = await _merge(workspace)
    assert {"bin", "renamed"} <= set(merge.conflicts)
    assert any(path.startswith("plain") for path in merge.conflicts)
    assert await workspace.reset((await workspace.state()).head, "no use")
    assert (await workspace.state()).is_clean


async def test_what_cannot_be_merged_has_words_and_changes_nothing(place: Place) -> None:
    workspace = await place.make()
    for name in ("none", "", "--abort"):
        with pytest.raises(BadInput, match="no commit"):
            await workspace.merge(name, "m", {})
    orphan = place.user("commit-tree", "main^{tree}", "-m", "orphan")
    with pytest.raises(NotPossibleNow, match="unrelated histories"):
        await workspace.merge(orphan, "m", {})
    assert (await workspace.state()).is_clean
    commit(place.repository, "theirs", other="x\n")
    (_top(workspace) / "README").write_text("loose\n")
    with pytest.raises(NotPossibleNow, match="'README' is not committed"):
        await _merge(workspace)
    await place.works(workspace, "git checkout -q README; git checkout -q --detach")
    with pytest.raises(NotPossibleNow, match="no longer checked out"):
        await _merge(workspace)


async def test_another_open_merge_is_in_the_way(place: Place) -> None:
    workspace, _ = await _in_conflict(place)
    await _merge(workspace)
    commit(place.repository, "newer", other="x\n")
    with pytest.raises(NotPossibleNow, match="MERGE_HEAD"):
        await _merge(workspace)


@pytest.mark.parametrize("step", ["publish", "hand_over"])
async def test_a_merge_that_was_cut_off_when_git_was_done_is_found(
    place: Place, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    if step == "publish":
        workspace = await place.make()
        commit(place.repository, "theirs", other="x\n", README="y\n")
    else:
        workspace, _ = await _in_conflict(place)

    def killed(*_: object) -> None:
        raise NotPossibleNow("killed")

    with monkeypatch.context() as patch:
        # There is no other way to stop between two steps of one call.
        patch.setattr(SupervisorRepo, step, killed)
        with pytest.raises(NotPossibleNow, match="killed"):
            await _merge(workspace)
    before = (_top(workspace) / "README").read_text()
    merge = await _merge(workspace)
    assert bool(merge.commit) == (step == "publish")
    assert bool(merge.conflicts) == (step == "hand_over")
    assert (_top(workspace) / "README").read_text() == before
    assert place.user("for-each-ref", "refs/podium/snapshots") == ""


async def test_a_merge_that_was_cut_off_halfway_is_put_back_and_made_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, _ = await _in_conflict(place)
    await workspace.state()
    run = SupervisorRepo.run

    async def killed(self: SupervisorRepo, *words: str, **more: object) -> object:
        if words[0] == "merge":
            (_top(workspace) / "README").write_text("half\n")
            (_top(workspace) / "new").write_text("n\n")
            raise NotPossibleNow("killed")
        return await run(self, *words, **more)  # type: ignore[arg-type]  # handed through as they are

    with monkeypatch.context() as patch:
        patch.setattr(SupervisorRepo, "run", killed)
        with pytest.raises(NotPossibleNow, match="killed"):
            await _merge(workspace)
    assert (await workspace.state()).changed == ("README", "new")
    merge = await _merge(workspace)
    assert set(merge.conflicts) == {"README", "src/lib"}


async def test_a_merge_that_undoes_the_users_zone_is_refused_by_the_gate(place: Place) -> None:
    workspace = await place.make(forbidden=["conf/prod"])
    await place.works(workspace, "echo mine > README; git commit -qam mine")
    commit(place.repository, "theirs", README="theirs\n", conf__prod__key="newer\n")
    await _merge(workspace)
    script = "git checkout -q HEAD -- README; git update-index --cacheinfo 100644,$(git rev-parse HEAD:conf/prod/key),conf/prod/key; git commit -qm x"
    await place.works(workspace, script)
    with pytest.raises(ImportRefused, match="forbidden"):
        await workspace.deliver()


async def test_branches_that_collide_are_named_with_their_paths(place: Place) -> None:
    one, two, three = await place.make("one"), await place.make("two"), await place.make("three")
    await place.works(one, "echo 1 > README; git commit -qam one")
    await place.works(two, "echo 2 > README; echo x > x; git add x; git commit -qam two")
    await place.works(three, "echo 3 > z; git add z; git commit -qm three")
    assert await place.workspaces.collisions(one.record.id) == []
    for item in (one, two, three):
        await item.deliver()
    objects = sorted(Path(one.record.git_dir, "objects").rglob("*"))
    before = place.state()
    (found,) = await place.workspaces.collisions(one.record.id)
    assert (found.branch, found.other, found.paths) == ("podium/one", "podium/two", ("README",))
    assert await place.workspaces.collisions(three.record.id) == []
    assert sorted(Path(one.record.git_dir, "objects").rglob("*")) == objects
    assert place.state() == before


async def test_an_older_branch_of_the_user_brings_no_older_zone_back(place: Place) -> None:
    workspace = await place.make(forbidden=["conf/prod"])
    commit(place.repository, "theirs", conf__prod__key="newer\n")
    await _merge(workspace)
    await workspace.deliver()
    place.user("switch", "-q", "feature")
    commit(place.repository, "aside", side="x\n")
    script = (
        "git update-ref refs/heads/aside {other}; git merge -q --no-commit -s ours {other}; "
        "git update-index --cacheinfo 100644,$(git rev-parse {other}:conf/prod/key),conf/prod/key; git commit -qm x"
    )
    await place.works(workspace, script.format(other=place.user("rev-parse", "feature")))
    with pytest.raises(ImportRefused, match="forbidden"):
        await workspace.deliver()


async def test_submodules_stay_out_of_the_way(place: Place) -> None:
    place.user("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},sub")
    place.user("commit", "-qm", "a submodule")
    workspace = await place.make()
    assert (await workspace.state()).is_clean
    await place.works(workspace, "echo 1 > a; git add a; git commit -qm one")
    place.user("update-index", "--cacheinfo", f"160000,{'2' * 40},sub")
    place.user("commit", "-qm", "it moved")
    merge = await _merge(workspace)
    assert merge.conflicts == ()
    assert (await workspace.state()).is_clean
    assert (await workspace.deliver()).after == merge.commit
