"""Differences between a workspace before and after a turn, and the reaction to them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from podium.core.errors import LockHeld, WorkspaceTampered
from tests.integration.workspaces.workspace_harness import Place, commit, git, needs_bwrap

pytestmark = needs_bwrap()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def test_a_quiet_turn_finds_nothing(place: Place) -> None:
    workspace = await place.make()
    seen = await workspace.begin_turn()
    await place.works(workspace, "echo 1 > a; git add a; git commit -qm one")
    ended = await workspace.end_turn(seen)
    assert (ended.violations, ended.moved_away, ended.changed_meanwhile) == ((), (), ())


async def test_users_changes_during_a_confined_turn_stay_and_are_reported(place: Place) -> None:
    workspace = await place.make()
    seen = await workspace.begin_turn()
    theirs = commit(place.repository, "meanwhile", other="x\n")
    git(place.repository, "config", "alias.x", "status")
    git(place.repository, "switch", "-qc", "new")
    ended = await workspace.end_turn(seen)
    assert ended.violations == ()
    output = set(ended.changed_meanwhile)
    assert output == {"ref refs/heads/main", "ref refs/heads/new", "ref HEAD", "config"}
    assert place.user("rev-parse", "main") == theirs


async def test_without_confinement_everything_is_put_back_and_what_was_there_is_kept(
    tmp_path: Path,
) -> None:
    place = Place(tmp_path, confined=False)
    workspace = await place.make()
    seen = await workspace.begin_turn()
    before = place.state()
    wrong = commit(place.repository, "evil", other="x\n")
    place.user("branch", "-D", "feature")
    place.user("tag", "new-tag")
    place.user("stash", "drop")
    place.user("symbolic-ref", "HEAD", "refs/heads/elsewhere")
    git_dir = Path(workspace.record.git_dir)
    (git_dir / "hooks/pre-commit").write_text("#!/bin/sh\n")
    (git_dir / "hooks/pre-commit").chmod(0o755)
    (git_dir / "config").write_text("[core]\n\tfsmonitor = evil\n")
    ended = await workspace.end_turn(seen)
    assert all(violation.restored for violation in ended.violations)
    assert {violation.what for violation in ended.violations} == {
        "ref refs/heads/main", "ref refs/heads/feature", "ref refs/tags/new-tag", "ref refs/stash", "ref HEAD",
        "hook pre-commit", "config",
    }  # fmt: skip
    refs = place.user(
        "for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/tags", "refs/stash"
    )
    assert refs == before["refs"]
    assert (place.state()["HEAD"], place.state()["config"]) == (before["HEAD"], before["config"])
    assert not (git_dir / "hooks/pre-commit").exists()
    kept = place.user("for-each-ref", "--format=%(objectname)", "refs/podium/violations")
    assert wrong in kept.split()
    assert Path(workspace.record.private, "turn/after/hooks/pre-commit").exists()


async def test_without_confinement_deliveries_of_other_workspaces_stay(tmp_path: Path) -> None:
    place = Place(tmp_path, confined=False)
    one, two = await place.make("one"), await place.make("two")
    seen = await one.begin_turn()
    three = await place.make("three")
    await place.works(two, "echo 1 > a; git add a; git commit -qm one")
    delivery = await two.deliver()
    await three.snapshot("x")
    assert (await one.end_turn(seen)).violations == ()
    assert place.user("rev-parse", "podium/two") == delivery.after


async def test_planted_repositories_are_moved_away_and_kept(place: Place) -> None:
    workspace = await place.make()
    seen = await workspace.begin_turn()
    await place.works(
        workspace,
        "git init -q nested; git -C nested config core.fsmonitor evil; git init -q --bare src/bare; "
        "mkdir deep; echo 'gitdir: /x' > deep/.git; mkdir -p t/.GIT; ln -s /etc t2; mkdir w; ln -s ../nested/.git w/.git; "
        "mkdir c; echo 'ref: refs/heads/x' > c/HEAD; echo /evil > c/commondir",
    )
    ended = await workspace.end_turn(seen)
    samples = {path for path in ended.moved_away if path.startswith("src/bare/hooks/")}
    assert set(ended.moved_away) - samples == {
        "nested/.git", "src/bare/HEAD", "src/bare/config", "deep/.git", "t/.GIT", "w/.git", "c/HEAD",
        "c/commondir",
    }  # fmt: skip
    quarantine = Path(workspace.record.private, "quarantine")
    noted = {json.loads(note.read_text())["was"] for note in quarantine.glob("*.json")}
    assert noted == set(ended.moved_away)
    assert (await workspace.end_turn(await workspace.begin_turn())).moved_away == ()
    snapshot = await workspace.snapshot("x")
    assert "fsmonitor" in place.user("grep", "-h", "fsmonitor", f"{snapshot.commit}^2")


async def test_a_bare_repository_that_belongs_to_the_project_stays_but_for_what_was_added(
    place: Place,
) -> None:
    bare = place.repository / "tests/data.git"
    git(place.repository, "init", "-q", "--bare", "--template=", str(bare))
    (bare / "refs/keep").write_text("")
    (bare / "objects/keep").write_text("")
    commit(place.repository, "test data")
    workspace = await place.make()
    assert (await workspace.end_turn(await workspace.begin_turn())).moved_away == ()
    await place.works(
        workspace, "cd tests/data.git; mkdir hooks; echo evil > hooks/post-checkout; echo >> config"
    )
    ended = await workspace.end_turn(await workspace.begin_turn())
    assert set(ended.moved_away) == {"tests/data.git/config", "tests/data.git/hooks/post-checkout"}


async def test_a_workspace_is_for_one_turn_at_a_time(place: Place) -> None:
    workspace = await place.make()
    again = await place.opened().open(workspace.record.id)
    seen = await workspace.begin_turn()
    with pytest.raises(LockHeld, match="a run is using workspace"):
        await again.begin_turn()
    with pytest.raises(LockHeld):
        await again.deliver()
    await workspace.snapshot("by the holder")
    await workspace.end_turn(seen)
    await again.end_turn(await again.begin_turn())


async def test_a_pinned_path_that_became_a_link_ends_the_turn_with_words(place: Place) -> None:
    workspace = await place.make(forbidden=["infra/secret"])
    seen = await workspace.begin_turn()
    infra = Path(workspace.record.path, "infra")
    (infra / "secret").rmdir()
    infra.rmdir()
    infra.symlink_to("/etc")
    with pytest.raises(WorkspaceTampered, match="is a link"):
        await workspace.end_turn(seen)
    with pytest.raises(WorkspaceTampered, match="is a link"):
        await workspace.confinement()


async def test_folders_nested_deeper_than_any_path_are_moved_away_and_reported(
    tmp_path: Path,
) -> None:
    place = Place(tmp_path, confined=False)
    workspace = await place.make()
    seen, main = await workspace.begin_turn(), place.user("rev-parse", "main")
    await place.works(
        workspace,
        "d=$(printf 'x%.0s' {1..200}); for i in {1..25}; do mkdir $d; cd $d; done; mkdir .git; echo ref: x > .git/HEAD",
    )
    place.user("update-ref", "refs/heads/main", "main~1")
    ended = await workspace.end_turn(seen)
    assert [len(path.split("/")) > 10 for path in ended.moved_away] == [True]
    assert place.user("rev-parse", "main") == main


@pytest.mark.parametrize("broken", ["config", "HEAD"])
async def test_without_confinement_what_makes_git_refuse_its_service_is_put_back_too(
    tmp_path: Path, broken: str
) -> None:
    place = Place(tmp_path, confined=False)
    workspace = await place.make()
    seen, before = await workspace.begin_turn(), place.state()
    place.user("update-ref", "refs/heads/main", "main~1")
    Path(workspace.record.git_dir, broken).write_text("[nonsense\n")
    ended = await workspace.end_turn(seen)
    assert [violation.restored for violation in ended.violations] == [True, True]
    assert (place.state()[broken], place.state()["status"]) == (before[broken], before["status"])


async def test_refs_that_git_cannot_read_any_more_end_the_turn_with_words(tmp_path: Path) -> None:
    place = Place(tmp_path, confined=False)
    workspace = await place.make()
    place.user("pack-refs", "--all")
    seen = await workspace.begin_turn()
    Path(workspace.record.git_dir, "packed-refs").write_text("nonsense\n")
    with pytest.raises(WorkspaceTampered, match="copies from before the turn"):
        await workspace.end_turn(seen)
    assert Path(workspace.record.private, "turn/before/packed-refs").exists()


async def test_no_program_left_in_the_worktree_lends_its_owners_rights(place: Place) -> None:
    workspace = await place.make()
    seen = await workspace.begin_turn()
    left = Path(workspace.record.path, "src/mine")
    left.write_text("#!/bin/sh\n")
    left.chmod(0o6755)
    left.parent.chmod(0o2000)
    await workspace.end_turn(seen)
    left.parent.chmod(0o2755)
    assert left.stat().st_mode & 0o7777 == 0o755
