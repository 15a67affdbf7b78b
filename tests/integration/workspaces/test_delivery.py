"""Commits come back through the import gate, or not at all."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from podium.core.errors import ImportRefused, NotPossibleNow
from podium.git.workspace import GitWorkspace
from tests.integration.workspaces.git_project import GitProject, agent_commits
from tests.integration.workspaces.workspace_harness import (
    BwrapLauncher,
    Place,
    commit,
    git,
    make_repository,
    needs_bwrap,
)
from tests.soaking import in_soak

pytestmark = needs_bwrap()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def _refusal(place: Place, workspace: GitWorkspace, script: str) -> str:
    """Return the gate's refusal of the commits that a script makes. Nothing of the user's may have changed."""
    await place.works(workspace, script)
    before = place.state()
    with pytest.raises(ImportRefused) as refused:
        await workspace.deliver()
    assert place.state() == before
    assert not list(Path(workspace.record.git_dir, "objects").glob("tmp_objdir*"))
    place.user("fsck", "--strict")
    return str(refused.value)


async def test_commits_come_back_to_the_one_branch_and_nothing_else_changes(place: Place) -> None:
    workspace = await place.make()
    before = place.state()
    await place.works(workspace, "echo 1 > a; git add a; git commit -qm one")
    await place.works(
        workspace, "echo 2 > a; git commit -qam two; git rm -q README; git commit -qm three"
    )
    delivery = await workspace.deliver()
    assert delivery.paths == ("README", "a")
    assert len(delivery.commits) == 3
    assert place.user("log", "--format=%s", "main..podium/t1") == "three\ntwo\none"
    assert place.user("rev-parse", "podium/t1") == delivery.after == delivery.commits[-1]
    after = place.state()
    assert {name for name in before if before[name] != after[name]} == {"refs"}
    assert (
        before["refs"].replace(
            delivery.before + " refs/heads/podium/t1", delivery.after + " refs/heads/podium/t1"
        )
        == after["refs"]
    )
    place.user("fsck", "--strict", "--no-dangling")


async def test_a_delivery_starts_git_a_dozen_times(tmp_path: Path) -> None:
    launcher = BwrapLauncher()
    place = Place(tmp_path, launcher)
    workspace = await place.make()
    await place.works(workspace, "echo 1 > a; git add a; git commit -qm one")
    launcher.spawns.clear()
    assert (await workspace.deliver()).paths == ("a",)
    assert len(launcher.spawns) <= 12


async def test_the_user_sees_a_clean_worktree_after_a_delivery(place: Place) -> None:
    workspace = await place.make()
    await place.works(workspace, "echo 1 > a; git add a; git commit -qm one; echo loose > b")
    await workspace.deliver()
    assert git(workspace.record.path, "status", "--porcelain") == "?? b"


async def test_nothing_new_is_no_error_and_later_work_comes_back_too(place: Place) -> None:
    workspace = await place.make()
    assert (await workspace.deliver()).commits == ()
    await place.works(workspace, "echo 1 > a; git add a; git commit -qm one")
    first = await workspace.deliver()
    assert (await workspace.deliver()).commits == ()
    await place.works(workspace, "echo 2 > a; git commit -qam two")
    second = await workspace.deliver()
    assert (second.before, len(second.commits)) == (first.after, 1)


async def test_amending_before_the_delivery_is_fine_and_after_it_is_refused(place: Place) -> None:
    workspace = await place.make()
    await place.works(
        workspace, "echo 1 > a; git add a; git commit -qm one; git commit -q --amend -m uno"
    )
    await workspace.deliver()
    refusal_message = await _refusal(place, workspace, "git commit -q --amend -m due")
    assert "rewritten" in refusal_message
    assert "git reset --soft" in refusal_message
    refusal_message = await _refusal(place, workspace, "git reset -q --hard HEAD~1")
    assert "rewritten" in refusal_message


async def test_a_history_without_the_base_is_refused(place: Place) -> None:
    workspace = await place.make()
    script = "c=$(git commit-tree HEAD^{tree} -m orphan); git update-ref refs/heads/podium/t1 $c"
    assert "rewritten" in await _refusal(place, workspace, script)


_TREE = "t=$(git ls-tree HEAD; {extra}); "
PLANTED: Mapping[str, tuple[str, str]] = {
    "a forbidden file": ("echo x > x; git add x; b=$(git hash-object -w x); "
        "git update-index --add --cacheinfo 100644,$b,conf/prod/key2; git commit -qm z", "'conf/prod' is forbidden"),
    "a forbidden file in other letters": ("b=$(echo x | git hash-object -w --stdin); "
        "git update-index --add --cacheinfo 100644,$b,Conf/PROD/x; git commit -qm z", "'conf/prod' is forbidden"),
    "a forbidden file that is gone again": ("b=$(echo x | git hash-object -w --stdin); "
        "git update-index --add --cacheinfo 100644,$b,conf/prod/x; git commit -qm z; "
        "git update-index --force-remove conf/prod/x; git commit -qm y", "'conf/prod' is forbidden"),
    "a file in place of a folder above the zone": ("b=$(echo x | git hash-object -w --stdin); "
        "git rm -rq --cached conf; git update-index --add --cacheinfo 100644,$b,conf; git commit -qm z", "forbidden"),
    "a zone that is removed": ("git rm -rq --cached conf/prod; git commit -qm z", "'conf/prod' is forbidden"),
    "a submodule": ("git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),sub; git commit -qm z", "submodule"),
    "a link to an absolute place": ("ln -s /etc/passwd l; git add l; git commit -qm z", "outside the repository"),
    "a link that leads out": ("ln -s ../../x src/l; git add src/l; git commit -qm z", "leads out"),
    "a link that leads out by another": ("mkdir -p p/q; ln -s ../.. p/q/l; ln -s p/q/l/../x m; git add p m; git commit -qm z", "'m'"),
    "a link into the git directory": ("ln -s .git/config l; git add l; git commit -qm z", "git directory"),
    "links that only differ by case": ("ln -s src A; mkdir a; echo x > a/x; git add A a; git commit -qm z", "case"),
    "submodule settings": ("echo x > .gitmodules; git add .gitmodules; git commit -qm z", "submodules"),
    "submodule settings elsewhere in odd letters": ("b=$(echo x | git hash-object -w --stdin); "
        "git update-index --add --cacheinfo 100644,$b,src/.GitModules; git commit -qm z", "submodules"),
    "a backslash that leads up": ("b=$(echo x | git hash-object -w --stdin); "
        "git update-index --add --cacheinfo '100644,'$b',src/..\\x'; git commit -qm z", "leads out"),
    "a branch that leads to another": (
        "git branch o; git symbolic-ref refs/heads/podium/t1 refs/heads/o; echo x > x; git add x; git commit -qm z", "no longer exists"),
    "another branch": ("git checkout -qb other; echo x > x; git add x; git commit -qm z", "checked out"),
    "no branch": ("git checkout -q --detach; echo x > x; git add x; git commit -qm z", "checked out"),
    "a branch that is gone": ("git symbolic-ref HEAD refs/heads/o; git update-ref -d refs/heads/podium/t1; "
        "git symbolic-ref HEAD refs/heads/podium/t1", "no longer exists"),
}  # fmt: skip


@pytest.mark.parametrize("what", PLANTED)
async def test_the_gate_refuses(place: Place, what: str) -> None:
    script, words = PLANTED[what]
    workspace = await place.make(forbidden=["conf/prod"])
    assert words in await _refusal(place, workspace, script)


DOT_GIT = {
    "plain": ".git",
    "upper": ".GIT",
    "short": "git~1",
    "zero-width": ".g\u200cit",
    "space": ".git ",
    "dot": ".git.",
    "stream": ".git::$INDEX_ALLOCATION",
}


@pytest.mark.parametrize(
    "name",
    [name if kind in ("plain", "zero-width") else in_soak(name) for kind, name in DOT_GIT.items()],
    ids=DOT_GIT,
)
async def test_the_gate_refuses_a_tree_with_a_git_directory(place: Place, name: str) -> None:
    workspace = await place.make()
    script = (
        "b=$(echo x | git hash-object -w --stdin); "
        f"t=$( (git ls-tree HEAD; printf '100644 blob %s\\t%s\\n' $b '{name}') | git mktree); "
        "c=$(git commit-tree $t -p HEAD -m z); git update-ref refs/heads/podium/t1 $c"
    )
    refusal_message = await _refusal(place, workspace, script)
    assert "git" in refusal_message


async def test_objects_that_are_missing_or_broken_are_refused(place: Place) -> None:
    workspace = await place.make()
    refusal_message = await _refusal(
        place,
        workspace,
        "t=$( (git ls-tree HEAD; printf '100644 blob %040d\\tx\\n' 1) | git mktree --missing); "
        "c=$(git commit-tree $t -p HEAD -m z); git update-ref refs/heads/podium/t1 $c",
    )
    assert "objects" in refusal_message or "taken out" in refusal_message


async def test_settings_that_the_agent_planted_are_not_used(place: Place) -> None:
    workspace = await place.make()
    await place.works(
        workspace,
        "echo 1 > a; git add a; git commit -qm one; printf '* filter=evil\\n' > .gitattributes; "
        "printf '[core]\\n\\tfsmonitor = touch /tmp/evil\\n' > $(git rev-parse --git-dir)/config.worktree",
    )
    await workspace.deliver()
    ended = await place.agent(workspace, "git config core.fsmonitor 'touch x'")
    assert b"could not lock" in ended.stderr or b"Read-only" in ended.stderr or ended.exit_code


async def test_a_branch_that_somebody_else_moved_is_left_alone(place: Place) -> None:
    workspace = await place.make()
    await place.works(workspace, "echo 1 > a; git add a; git commit -qm one")
    theirs = commit(workspace.record.path, "by hand", b="2\n")
    with pytest.raises(NotPossibleNow, match="someone else moved it"):
        await workspace.deliver()
    assert place.user("rev-parse", "podium/t1") == theirs


async def test_a_delivery_that_was_killed_after_moving_the_ref_is_known_for_ours(
    place: Place,
) -> None:
    workspace = await place.make()
    await place.works(workspace, "echo 1 > a; git add a; git commit -qm one")
    delivered = await workspace.deliver()
    private = Path(workspace.record.private)
    (private / "delivered").unlink()
    (private / "delivering").write_text(delivered.after)
    await place.works(workspace, "echo 2 > a; git commit -qam two")
    assert (await workspace.deliver()).before == delivered.after


async def test_a_merge_of_the_users_branch_brings_his_own_forbidden_changes(place: Place) -> None:
    workspace = await place.make(forbidden=["conf/prod"])
    theirs = commit(place.repository, "new key", conf__prod__key="k2\n")
    await place.works(workspace, "echo 1 > a; git add a; git commit -qm one")
    merged = "t=$(git merge-tree --write-tree HEAD %s); c=$(git commit-tree $t -p HEAD -p %s -m m)"
    await place.works(
        workspace, merged % (theirs, theirs) + "; git update-ref refs/heads/podium/t1 $c"
    )
    assert len((await workspace.deliver()).commits) == 2


async def test_a_merge_that_keeps_the_old_forbidden_files_is_refused(place: Place) -> None:
    workspace = await place.make(forbidden=["conf/prod"])
    theirs = commit(place.repository, "new key", conf__prod__key="k2\n")
    ours = f"c=$(git commit-tree HEAD^{{tree}} -p HEAD -p {theirs} -m m); git update-ref refs/heads/podium/t1 $c"
    assert "its merge changes" in await _refusal(place, workspace, ours)


async def test_what_a_snapshot_keeps_does_not_count_as_the_users(place: Place) -> None:
    workspace = await place.make(forbidden=["conf/prod"])
    script, words = PLANTED["a forbidden file"]
    await place.works(workspace, script)
    await workspace.snapshot("before the gate")
    with pytest.raises(ImportRefused, match=words):
        await workspace.deliver()


async def test_without_confinement_the_private_directory_is_taken_for_hostile(
    tmp_path: Path,
) -> None:
    place = Place(tmp_path, confined=False)
    workspace = await place.make()
    await place.works(workspace, "echo 1 > a; git add a; git commit -qm one")
    evil = tmp_path / "evil"
    private = Path(workspace.record.private, "git")
    (private / "config").write_text(
        f"[core]\n\tfsmonitor = touch {evil}\n[uploadpack]\n\tpackObjectsHook = touch {evil}\n"
    )
    assert len((await workspace.deliver()).commits) == 1
    assert not evil.exists()


async def test_a_link_through_a_link_of_the_project_that_leads_out_is_refused(place: Place) -> None:
    (place.repository / "out").symlink_to("/etc")
    commit(place.repository, "the user's own link")
    workspace = await place.make()
    refusal_message = await _refusal(
        place, workspace, "ln -s out/passwd l; git add l; git commit -qm z"
    )
    assert "'l' leads out" in refusal_message


async def test_links_inside_and_other_ordinary_work_come_back(place: Place) -> None:
    workspace = await place.make()
    await place.works(
        workspace,
        "ln -s ../README src/up; ln -s src/app direct; ln -s build/out later; chmod +x src/app; "
        "git mv src/lib src/library; printf 'a\\0b' > 'odd \\\\ name ü'; echo git > .gitignore; git add -A; git commit -qm all",
    )
    assert len((await workspace.deliver()).paths) == 8


async def test_file_of_an_invalid_mode_and_a_file_too_large_are_reported(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The real limit would need a file of half a gigabyte.
    monkeypatch.setattr("podium.git.import_gate.MAX_FILE_BYTES", 1000)
    workspace = await place.make()
    refusal_message = await _refusal(
        place, workspace, "head -c 1001 /dev/zero > big; git add big; git commit -qm z"
    )
    assert "'big' is larger" in refusal_message


async def test_more_than_a_delivery_may_hold_is_refused(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The real limit would need half a gigabyte of commits.
    monkeypatch.setattr("podium.git.delivery.MAX_PACK_BYTES", 1000)
    workspace = await place.make()
    refusal_message = await _refusal(
        place, workspace, "head -c 5000 /dev/urandom > big; git add big; git commit -qm z"
    )
    assert "at most 1000 bytes" in refusal_message


async def test_where_nothing_can_be_mounted_the_variables_lead_to_the_private_directory(
    place: Place,
) -> None:
    workspace = await place.make()
    before = place.state()
    confinement = await workspace.confinement()
    env = {**os.environ, **confinement.unmounted_env}
    path = workspace.record.path
    Path(path, "a").write_text("1\n")
    for words in (["add", "a"], ["commit", "-qm", "one"], ["log", "--oneline", "main..HEAD"]):
        done = subprocess.run(["git", *words], cwd=path, env=env, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
    assert place.state() == before
    assert len((await workspace.deliver()).commits) == 1


async def test_a_commit_that_only_a_strict_check_finds_wrong_is_refused(place: Place) -> None:
    workspace = await place.make()
    raw = (
        "tree %s\\nparent %s\\nauthor A <a@b> nonsense +0000\\ncommitter A <a@b> 1 +0000\\n\\nz\\n"
    )
    script = (
        f"c=$(printf '{raw}' $(git rev-parse 'HEAD^{{tree}}') $(git rev-parse HEAD) "
        "| git hash-object -w -t commit --literally --stdin); git update-ref refs/heads/podium/t1 $c"
    )
    assert "finds invalid objects in these commits" in await _refusal(place, workspace, script)


async def test_no_space_left_is_reported_to_the_person_and_changes_nothing(
    place: Place, tmp_path: Path
) -> None:
    small = tmp_path / "small"
    small.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=900k", "none", small], capture_output=True
    )
    if made.returncode:
        pytest.skip("only root, and only where it may mount, can make a small disk")
    try:
        place.repository = make_repository(small / "repo")
        workspace = await place.make(folder=str(tmp_path / "wt"))
        await place.works(
            workspace, "head -c 900000 /dev/urandom > big; git add big; git commit -qm big"
        )
        before = place.state()
        with pytest.raises(NotPossibleNow, match="No space left"):
            await workspace.deliver()
        assert place.state() == before
    finally:
        subprocess.run(["umount", small], check=True)


@needs_bwrap()
@pytest.mark.parametrize(
    "script",
    [
        "mkdir -p src/a/objects src/a/refs; echo 'ref: refs/heads/x' > src/a/HEAD; touch src/a/objects/k src/a/refs/k",
        "mkdir -p src/a; echo x > src/a/Head; echo ../../.git > src/a/CommonDir",
    ],
)
async def test_a_folder_that_git_would_take_for_a_repository_does_not_come_back(
    place: Place, script: str
) -> None:
    workspace = await place.make()
    before = place.state()
    await place.works(workspace, f"{script}; git add -f src; git commit -qm x")
    with pytest.raises(ImportRefused, match="repository"):
        await workspace.deliver()
    assert place.state() == before


@needs_bwrap()
async def test_files_with_such_names_are_ordinary_elsewhere(place: Place) -> None:
    workspace = await place.make()
    await place.works(
        workspace,
        "mkdir -p src/refs config; echo x > src/refs/a; echo y > config/HEAD; git add .; git commit -qm x",
    )
    assert set((await workspace.deliver()).paths) == {"config/HEAD", "src/refs/a"}


async def test_what_came_back_is_known_though_podium_was_killed_before_it_noted_that(
    tmp_path: Path,
) -> None:
    git_project = GitProject(tmp_path / "yard").build()
    workspace = await git_project.made()
    base = await workspace.delivered()
    tip = agent_commits(workspace.record, "work.txt")
    await workspace.deliver()
    assert await workspace.delivered() == tip
    private = Path(workspace.record.private)
    (private / "delivered").write_text(f"{base}\n")
    (private / "delivering").write_text(tip)
    assert await workspace.delivered() == tip
