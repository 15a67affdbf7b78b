"""Commits that nobody has judged do not come back by a merge, nor by another workspace."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.core.errors import GuardedFilesChanged, ImportRefused
from podium.core.protected_paths import is_spelling_of
from tests.integration.workspaces.workspace_harness import Place, commit, needs_bwrap

_MERGE = """
echo work > work; git add work; git commit -qm work
export GIT_INDEX_FILE=$HOME/ix
{index}
T=$(git write-tree); unset GIT_INDEX_FILE
git update-ref HEAD $(git commit-tree -p HEAD -p {other} -m merge $T)
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@needs_bwrap()
async def test_a_merge_with_an_old_commit_takes_no_forbidden_path_back(place: Place) -> None:
    old = commit(place.repository, "old", safe__prod="v1")
    commit(place.repository, "new", safe__prod="v2")
    workspace = await place.make(forbidden=("safe",))
    index = f"git read-tree HEAD; git update-index --cacheinfo 100644,$(git rev-parse {old}:safe/prod),safe/prod"
    await place.works(workspace, _MERGE.format(index=index, other=old))
    with pytest.raises(ImportRefused, match="'safe' is forbidden"):
        await workspace.deliver()


@needs_bwrap()
async def test_a_merge_with_an_unrelated_branch_deletes_no_forbidden_path(place: Place) -> None:
    commit(place.repository, "safe", safe__prod="v1")
    place.user("checkout", "-q", "--orphan", "pages")
    place.user("rm", "-rqf", ".")
    pages = commit(place.repository, "pages", page="p")
    place.user("checkout", "-q", "main")
    workspace = await place.make(forbidden=("safe",))
    index = "git read-tree HEAD; git rm -rq --cached safe"
    await place.works(workspace, _MERGE.format(index=index, other=pages))
    with pytest.raises(ImportRefused, match="'safe' is forbidden"):
        await workspace.deliver()


@needs_bwrap()
async def test_a_merge_with_an_unrelated_branch_that_keeps_all_comes_back(place: Place) -> None:
    commit(place.repository, "safe", safe__prod="v1")
    place.user("checkout", "-q", "--orphan", "pages")
    place.user("rm", "-rqf", ".")
    pages = commit(place.repository, "pages", page="p")
    place.user("checkout", "-q", "main")
    workspace = await place.make(forbidden=("safe",))
    await place.works(workspace, _MERGE.format(index="git read-tree HEAD", other=pages))
    assert (await workspace.deliver()).commits


@needs_bwrap()
async def test_a_merge_of_a_branch_of_the_users_may_take_what_he_changed_on_it(
    place: Place,
) -> None:
    commit(place.repository, "safe", safe__prod="v1", safe__test="v1")
    place.user("checkout", "-q", "-b", "other")
    commit(place.repository, "theirs", safe__prod="v2")
    place.user("checkout", "-q", "main")
    commit(place.repository, "mine", safe__test="v2")
    workspace = await place.make(forbidden=("safe",))
    await place.works(
        workspace,
        "echo w > w; git add w; git commit -qm w; T=$(git merge-tree --write-tree HEAD other); "
        "git update-ref HEAD $(git commit-tree -p HEAD -p other -m merge $T)",
    )
    assert (await workspace.deliver()).commits
    tip = "podium/t1"
    assert place.user("show", f"{tip}:safe/prod") == "v2"
    assert place.user("show", f"{tip}:safe/test") == "v2"


@needs_bwrap()
async def test_merge_on_a_side_branch_counts_as_the_users_too(place: Place) -> None:
    commit(place.repository, "safe", safe__prod="v1")
    workspace = await place.make(forbidden=("safe",))
    newest = commit(place.repository, "newer", safe__prod="v2")
    await place.works(
        workspace,
        f"""
        echo w > w; git add w; git commit -qm w
        H=$(git rev-parse HEAD)
        M=$(git commit-tree -p {newest} -p {newest}~1 -m aside $(git rev-parse {newest}^{{tree}}))
        export GIT_INDEX_FILE=$HOME/ix
        git read-tree $H; git update-index --cacheinfo 100644,$(git rev-parse {newest}:safe/prod),safe/prod
        git update-ref HEAD $(git commit-tree -p $H -p $M -m merge $(git write-tree))
        """,
    )
    assert (await workspace.deliver()).commits


@needs_bwrap()
async def test_commits_recovered_from_one_workspace_are_judged_in_another(place: Place) -> None:
    commit(place.repository, "safe", safe__prod="v1")
    first = await place.make("first", forbidden=("safe",))
    evil = await place.works(
        first,
        """
        export GIT_INDEX_FILE=$HOME/ix; git read-tree HEAD
        git update-index --cacheinfo 100644,$(echo evil | git hash-object -w --stdin),safe/prod
        T=$(git write-tree); unset GIT_INDEX_FILE
        git update-ref HEAD $(git commit-tree -p HEAD -m evil $T); git rev-parse HEAD
        """,
    )
    with pytest.raises(ImportRefused):
        await first.deliver()
    snapshot = await first.snapshot("now")
    with pytest.raises(
        ImportRefused, match=r"no branch was created.*'safe' is forbidden.*git log --patch"
    ):
        await place.workspaces.recover(first.record.id, "recovered/first")
    place.user("branch", "recovered/first", snapshot.carried)
    second = await place.make("second", forbidden=("safe",))
    await place.works(second, f"git update-ref HEAD {evil}")
    with pytest.raises(ImportRefused, match="'safe' is forbidden"):
        await second.deliver()


@needs_bwrap()
async def test_a_branch_that_another_workspace_was_made_from_stays_the_users(place: Place) -> None:
    commit(place.repository, "safe", safe__prod="v1")
    place.user("checkout", "-q", "-b", "topic")
    commit(place.repository, "feature", safe__prod="v2")
    place.user("checkout", "-q", "main")
    other = await place.make("other", base="topic")
    (Path(other.record.path) / "x").write_text("x")
    await other.snapshot("now")
    workspace = await place.make("mine", forbidden=("safe",))
    await place.works(
        workspace,
        "echo w > w; git add w; git commit -qm w; T=$(git merge-tree --write-tree HEAD topic); "
        "git update-ref HEAD $(git commit-tree -p HEAD -p topic -m merge $T)",
    )
    assert (await workspace.deliver()).commits


@pytest.mark.soak
@needs_bwrap()
async def test_what_a_removed_workspace_brought_back_stays_judged(place: Place) -> None:
    commit(place.repository, "safe", safe__prod="v1")
    first = await place.make("first", forbidden=("safe",))
    second = await place.make("second", forbidden=("safe",))
    newer = commit(place.repository, "newer", safe__prod="v2")
    merge = "T=$(git merge-tree --write-tree HEAD {0}); git update-ref HEAD $(git commit-tree -p HEAD -p {0} -m m $T)"
    await place.works(first, f"echo w > w; git add w; git commit -qm w; {merge.format(newer)}")
    await place.works(first, "git reset -q --mixed; git checkout-index -fq w")
    tip = (await first.deliver()).after
    place.user("merge", "-q", "--ff-only", "podium/first")
    await first.snapshot("now")
    assert (await place.workspaces.remove(first.record.id)).removed
    await place.works(second, f"echo x > x; git add x; git commit -qm x; {merge.format(tip)}")
    assert (await second.deliver()).commits


@pytest.mark.parametrize("name", ["gi7eba~1", "GI7EB~10", "gi7e~100", "gi7~1000", "gitmod~1"])
def test_short_names_of_the_list_of_submodules_are_known_however_long_their_number_is(
    name: str,
) -> None:
    assert is_spelling_of(name, ".gitmodules")


_TAKEN = {
    "as its own branch": "git reset -q --soft fork/main",
    "by a merge": "echo w > w; git add w; git commit -qm w; "
    "git update-ref HEAD $(git commit-tree -p HEAD -p fork/main -m merge fork/main^{tree})",
}


@pytest.mark.sample(1)
@needs_bwrap()
@pytest.mark.parametrize("way", _TAKEN)
async def test_what_only_a_remote_has_is_judged_like_the_agents_own(place: Place, way: str) -> None:
    place.user("checkout", "-q", "--detach")
    planted = commit(place.repository, "planted", **{".podium__prompts__x": "obey"})
    guards = commit(
        place.repository, "guards", **{"podium.yaml": "checks: []", ".podium__prompts__x": ""}
    )
    place.user("checkout", "-q", "main")
    place.user("update-ref", "refs/remotes/fork/main", guards)
    workspace = await place.make()
    await place.works(workspace, _TAKEN[way])
    with pytest.raises(ImportRefused, match=f"{planted[:12]} cannot be delivered.*podium"):
        await workspace.deliver()
    # On a branch of his own, the user has taken it over.
    place.user("branch", "taken", guards)
    assert planted not in (await workspace.deliver()).commits


@needs_bwrap()
async def test_guarded_files_of_a_remote_need_an_approval(place: Place) -> None:
    place.user("checkout", "-q", "--detach")
    place.user(
        "update-ref", "refs/remotes/fork/main", commit(place.repository, **{".envrc": "run"})
    )
    place.user("checkout", "-q", "main")
    workspace = await place.make()
    await place.works(workspace, "git reset -q --soft fork/main")
    with pytest.raises(GuardedFilesChanged) as asked:
        await workspace.deliver()
    assert asked.value.change.paths == (".envrc",)
