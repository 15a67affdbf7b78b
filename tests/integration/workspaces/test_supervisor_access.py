"""Podium's own operations in a workspace: looking, reading, writing, committing."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from podium.core.errors import BadInput, NotPossibleNow, WorkspaceTampered
from podium.core.workspaces import SetupSpec, WorkspaceSpec
from podium.git.workspace import GitWorkspace
from tests.integration.workspaces.workspace_harness import BwrapLauncher, Place, git, needs_bwrap
from tests.soaking import in_soak

pytestmark = needs_bwrap()

WHY = {"Podium-Run": "run_1", "Podium-Step": "plan"}


@pytest.fixture(params=[True, in_soak(False)], ids=["confined", "unconfined"])
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    return Place(tmp_path, confined=request.param)


def _top(workspace: GitWorkspace) -> Path:
    return Path(workspace.record.path)


def _own(workspace: GitWorkspace) -> Path:
    return Path(workspace.record.private, "git/worktrees", workspace.record.admin)


async def test_a_fresh_workspace_is_clean(place: Place) -> None:
    workspace = await place.make()
    state = await workspace.state()
    assert (state.head, state.is_clean, state.changed) == (workspace.record.base, True, ())


async def test_a_second_look_at_a_clean_tree_starts_git_once(place: Place) -> None:
    workspace = await place.make()
    await workspace.state()
    assert isinstance(place.launcher, BwrapLauncher)
    place.launcher.spawns.clear()
    assert (await workspace.state()).is_clean
    assert await workspace.reset(workspace.record.base, "nothing is wrong") == []
    assert [("status" in spawn.argv) for spawn in place.launcher.spawns] == [True, True]


async def test_a_commit_of_new_and_removed_files_starts_one_process(place: Place) -> None:
    workspace = await place.make()
    await workspace.write({"it's new/$(one) file": "1\n"})
    (_top(workspace) / "README").unlink()
    await workspace.state()
    assert isinstance(place.launcher, BwrapLauncher)
    place.launcher.spawns.clear()
    await workspace.commit("both", ["it's new/$(one) file", "README"])
    assert len(place.launcher.spawns) == 1
    assert (await workspace.state()).is_clean


async def test_state_reports_changed_deleted_and_untracked_files_but_no_ignored_ones(
    place: Place,
) -> None:
    workspace = await place.make()
    await place.works(
        workspace,
        "echo '*.log' > .gitignore; git add .gitignore; git commit -qm i; git mv README MOVED; "
        "rm src/lib; mkdir -p 'a b'; echo 1 > 'a b/ü x'; echo 1 > x.log; echo 2 > src/app",
    )
    state = await workspace.state()
    assert set(state.changed) == {"README", "MOVED", "src/lib", "a b/ü x", "src/app"}
    assert state.on_branch
    assert not state.is_clean
    assert state.head == await place.works(workspace, "git rev-parse HEAD")


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "trick",
    [
        "git update-index --assume-unchanged README; echo hidden > README",
        "git update-index --skip-worktree README; echo hidden > README",
        "echo /README >> $(git rev-parse --git-common-dir)/info/exclude; git rm -q --cached README; echo x > README",
        "echo '* -diff' > $(git rev-parse --git-common-dir)/info/attributes; echo hidden > README",
        "echo junk > $(git rev-parse --git-dir)/index; echo hidden > README",
        "rm $(git rev-parse --git-dir)/index; echo hidden > README",
        "touch $(git rev-parse --git-dir)/index.lock; echo hidden > README",
        "git config --file $(git rev-parse --git-dir)/config.worktree core.bare true; echo hidden > README",
    ],
)
async def test_nothing_in_the_agents_git_directory_hides_a_change(place: Place, trick: str) -> None:
    workspace = await place.make()
    await place.works(workspace, trick)
    assert (await workspace.state()).changed == ("README",)


async def test_untracked_files_cannot_be_hidden_by_the_agents_own_list(place: Place) -> None:
    workspace = await place.make()
    await place.works(
        workspace, "echo '*' >> $(git rev-parse --git-common-dir)/info/exclude; echo 1 > left"
    )
    assert (await workspace.state()).changed == ("left",)


async def test_head_elsewhere_and_an_open_merge_are_reported(place: Place) -> None:
    workspace = await place.make()
    await place.works(workspace, "git checkout -q --detach")
    state = await workspace.state()
    assert not state.on_branch
    assert state.head == workspace.record.base
    assert not state.is_clean
    await place.works(
        workspace,
        "git checkout -q podium/t1; git checkout -qb o; echo o > README; git commit -qam o; "
        "git checkout -q podium/t1; echo p > README; git commit -qam p; git merge o || true",
    )
    state = await workspace.state()
    assert state.on_branch
    assert state.merging
    assert state.changed == ("README",)


async def test_a_head_that_says_nothing_is_no_error(place: Place) -> None:
    workspace = await place.make()
    (_own(workspace) / "HEAD").write_text("what?\n")
    state = await workspace.state()
    assert (state.head, state.on_branch) == ("", False)


async def test_what_the_set_up_left_is_no_change_until_somebody_changes_it(tmp_path: Path) -> None:
    place = Place(tmp_path, confined=False)
    spec = WorkspaceSpec(
        task="t1",
        repository=str(place.repository),
        set_up=SetupSpec(after_create=(("sh", "-c", "echo made > made; echo more >> README"),)),
    )
    workspace = await place.workspaces.create(spec)
    assert (await workspace.state()).is_clean
    assert await workspace.reset(workspace.record.base, "x") == []
    (_top(workspace) / "made").write_text("other\n")
    (_top(workspace) / "new").write_text("n\n")
    assert (await workspace.state()).changed == ("made", "new")
    assert await workspace.reset(workspace.record.base, "x", keep=["made"]) == ["new"]
    assert (_top(workspace) / "README").read_text() == "hello\nmore\n"
    assert (_top(workspace) / "made").read_text() == "other\n"


@pytest.mark.soak
async def test_very_many_changes_are_reported_in_part(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A limit that real trees reach only with hundreds of thousands of files.
    monkeypatch.setattr("podium.git.worktree_status._MAX_BYTES", 1000)
    workspace = await place.make()
    for number in range(300):
        (_top(workspace) / f"file-{number:04}").write_text("x")
    state = await workspace.state()
    assert 10 < len(state.changed) < 300
    assert all(len(path) == len("file-0000") for path in state.changed)
    assert len(await workspace.reset(workspace.record.base, "x")) >= 10
    assert (await workspace.state()).is_clean


# Reading and writing.


async def test_files_are_written_with_their_folders_and_read_back(place: Place) -> None:
    workspace = await place.make()
    (_top(workspace) / "README").chmod(0o755)
    await workspace.write({"docs/plans/a.md": "# Plan ü\n", "README": "new\n"})
    assert await workspace.read("docs/plans/a.md") == "# Plan ü\n"
    assert (_top(workspace) / "README").stat().st_mode & 0o777 == 0o755
    assert await workspace.read("docs/none.md") is None
    assert await workspace.read("README/below") is None
    assert await workspace.read("docs") is None
    assert (await workspace.state()).changed == ("README", "docs/plans/a.md")


async def test_long_file_is_read_up_to_a_whole_character(place: Place) -> None:
    workspace = await place.make()
    await workspace.write({"a": "ü" * 100})
    assert await workspace.read("a", most_bytes=7) == "üüü"
    (_top(workspace) / "b").write_bytes(b"a\xffb")
    assert await workspace.read("b") == "a\ufffdb"
    os.truncate(_top(workspace) / "b", 1 << 40)
    assert await workspace.read("b", most_bytes=3) == "a\ufffdb"


WAYS_OUT = (
    "../out", "/etc/passwd", "a/../../x", "", ".", "a\0b", ".git", ".git/config", "x/.GIT/hooks/h",
    "git~1/config", ".g\u200cit/x", "conf/prod/key", "Conf/PROD/new", "conf", "\ud800",
)  # fmt: skip


async def test_no_path_leads_out_or_into_git_or_a_zone(place: Place) -> None:
    workspace = await place.make(forbidden=["conf/prod"])
    for path in WAYS_OUT:
        with pytest.raises(WorkspaceTampered):
            await workspace.read(path)
        with pytest.raises(WorkspaceTampered):
            await workspace.write({"fine": "x", path: "x"})
        with pytest.raises(WorkspaceTampered):
            await workspace.commit("m", [path])
        with pytest.raises(WorkspaceTampered):
            await workspace.commit("m", [], moved={"README": path})
        assert not (_top(workspace) / "fine").exists()


async def test_links_are_not_followed(place: Place, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    workspace = await place.make()
    (_top(workspace) / "docs").symlink_to(outside)
    (_top(workspace) / "leaf").symlink_to(outside / "secret")
    for path in ("docs/secret", "docs/new"):
        with pytest.raises(WorkspaceTampered, match="link, 'docs', in place of a folder"):
            await workspace.read(path)
        with pytest.raises(WorkspaceTampered, match="link, 'docs', in place of a folder"):
            await workspace.write({"ok": "x", path: "x"})
        with pytest.raises(WorkspaceTampered, match="link, 'docs', in place of a folder"):
            await workspace.commit("m", [path])
        with pytest.raises(WorkspaceTampered, match="link, 'docs', in place of a folder"):
            await workspace.commit("m", [], moved={"README": path})
    assert await workspace.read("leaf") is None
    with pytest.raises(WorkspaceTampered, match="is a link"):
        await workspace.write({"leaf": "x"})
    assert {file.name for file in outside.iterdir()} == {"secret"}
    assert (outside / "secret").read_text() == "secret"
    assert not (_top(workspace) / "ok").exists()


async def test_pipes_sockets_and_folders_are_no_files_and_nobody_waits_for_them(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = await place.make()
    os.mkfifo(_top(workspace) / "pipe")
    monkeypatch.chdir(_top(workspace))  # names of sockets are short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        for name in ("pipe", "socket", "src"):
            assert await workspace.read(name) is None
            with pytest.raises(WorkspaceTampered, match="cannot be written"):
                await workspace.write({name: "x"})
    with pytest.raises(WorkspaceTampered, match="cannot be committed"):
        await workspace.commit("m", ["pipe"])
    assert (await workspace.state()).is_clean


async def test_a_draft_that_a_killed_podium_left_is_cleared_away(place: Place) -> None:
    workspace = await place.make()
    await workspace.write({"a": "1"})
    names = set(os.listdir(_top(workspace)))
    from podium.platform.safe_files import draft_name

    (_top(workspace) / draft_name("a")).write_text("half")
    await workspace.write({"a": "2"})
    assert set(os.listdir(_top(workspace))) == names
    assert await workspace.read("a") == "2"


# Committing.


async def test_just_the_named_paths_are_committed_as_podium(place: Place) -> None:
    workspace = await place.make()
    await place.works(
        workspace, "echo loose > loose; echo 2 > src/app; git add src/app; rm src/lib"
    )
    await workspace.write({"docs/plan.md": "plan\n"})
    tip = await workspace.commit("Plan the work", ["docs/plan.md", "src/lib"], trailers=WHY)
    assert tip == await place.works(workspace, "git rev-parse podium/t1")
    shown = await place.works(
        workspace, "git show --no-renames --format='%an <%ae> %cn <%ce>%n%B' --name-status HEAD"
    )
    assert shown.splitlines()[0] == "Podium <podium@localhost> Podium <podium@localhost>"
    assert "Podium-Run: run_1\nPodium-Step: plan" in shown
    assert shown.splitlines()[-2:] == ["A\tdocs/plan.md", "D\tsrc/lib"]
    assert await place.works(workspace, "git status --porcelain") == "M src/app\n?? loose"
    (seen,) = await workspace.history(workspace.record.base)
    assert (seen.id, seen.subject, seen.trailers) == (tip, "Plan the work", WHY)
    assert seen.parents == (workspace.record.base,)


async def test_a_commit_is_made_once_however_often_it_is_asked_for(place: Place) -> None:
    workspace = await place.make()
    await workspace.write({"a": "1"})
    first = await workspace.commit("m", ["a"], trailers=WHY)
    assert await workspace.commit("m", ["a"], trailers=WHY) == first
    await workspace.write({"a": "2"})
    assert await workspace.commit("m", ["a"], trailers=WHY) == first
    second = await workspace.commit("m", ["a"], trailers={**WHY, "Podium-Step": "next"})
    assert await workspace.commit("m", ["a"], trailers=WHY) == second
    assert [entry.id for entry in await workspace.history(workspace.record.base)] == [first, second]


async def test_an_agent_cannot_stand_in_for_a_commit_of_podium(place: Place) -> None:
    workspace = await place.make()
    words = " ".join(f"--trailer '{key}: {value}'" for key, value in WHY.items())
    await place.works(workspace, f"git commit -q --allow-empty -m m {words}")
    await workspace.write({"a": "1"})
    tip = await workspace.commit("m", ["a"], trailers=WHY)
    assert len(await workspace.history(workspace.record.base)) == 2
    assert await place.works(workspace, f"git show {tip}:a") == "1"


async def test_nothing_to_commit_makes_no_commit(place: Place) -> None:
    workspace = await place.make()
    assert await workspace.commit("m", ["README", "none"], trailers=WHY) == workspace.record.base
    assert await workspace.commit("m", []) == workspace.record.base
    assert await workspace.history(workspace.record.base) == []


async def test_a_commit_that_was_cut_off_before_the_branch_moved_is_made_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = await place.make()
    await workspace.write({"a": "1"})

    def killed(*_: object) -> None:
        raise NotPossibleNow("killed")

    with monkeypatch.context() as patch:
        # There is no other way to stop between two steps of one call.
        patch.setattr("podium.git.supervisor_repo.SupervisorRepo.publish", killed)
        with pytest.raises(NotPossibleNow, match="killed"):
            await workspace.commit("m", ["a"], moved={"README": "docs/R"}, trailers=WHY)
    assert (await workspace.state()).head == workspace.record.base
    tip = await workspace.commit("m", ["a"], moved={"README": "docs/R"}, trailers=WHY)
    (seen,) = await workspace.history(workspace.record.base)
    assert seen.id == tip
    assert (await workspace.state()).is_clean
    assert await place.works(workspace, "git status --porcelain") == ""


async def test_moved_files_keep_their_content_and_overwrite_nothing(place: Place) -> None:
    workspace = await place.make()
    await workspace.write({"docs/a.md": "a\n"})
    await workspace.commit("m", ["docs/a.md"])
    tip = await workspace.commit("archive", [], moved={"docs/a.md": "docs/done/2026/a.md"})
    shown = await place.works(workspace, f"git show --format= --name-status -M {tip}")
    assert shown == "R100\tdocs/a.md\tdocs/done/2026/a.md"
    with pytest.raises(NotPossibleNow, match="already exists"):
        await workspace.commit("m", [], moved={"README": "src/app"})
    with pytest.raises(NotPossibleNow, match="does not exist"):
        await workspace.commit("m", [], moved={"none": "other"})
    assert (await workspace.state()).is_clean


async def test_folders_odd_names_and_ignored_files_can_be_committed(place: Place) -> None:
    workspace = await place.make()
    await place.works(
        workspace,
        "echo '*.log' > .gitignore; git add .gitignore; git commit -qm i; mkdir d e; echo 1 > d/one; echo 2 > d/x.log; "
        "echo 3 > ':(top)odd'; echo 4 > '*'; printf 5 > $'new\\nline'; echo 6 > named.log; rm -r src; git init -q d/inner",
    )
    paths = ["./d//", "e", ":(top)odd", "*", "new\nline", "named.log", "src"]
    tip = await workspace.commit("m", paths)
    listed = await place.works(
        workspace, f"git -c core.quotePath=off ls-tree -rz --name-only {tip} | tr '\\0' '|'"
    )
    assert set(listed.split("|")) == {
        "", ".gitignore", "README", "conf/prod/key", "d/one", ":(top)odd", "*", "new\nline", "named.log",
    }  # fmt: skip
    assert (await workspace.state()).is_clean


@pytest.mark.soak
async def test_thousands_of_paths_go_into_one_commit(place: Place) -> None:
    workspace = await place.make()
    files = {f"many/{'x' * 150}-{number}": "x" for number in range(3000)}
    await workspace.write(files)
    await workspace.commit("m", list(files))
    assert (await workspace.state()).is_clean
    for path in files:
        (_top(workspace) / path).unlink()
    await workspace.commit("m", list(files))
    assert (await workspace.state()).is_clean


async def test_filters_hooks_and_signing_of_anybody_stay_out_of_a_commit(
    place: Place, tmp_path: Path
) -> None:
    evil = tmp_path / "evil"
    for key in ("filter.x.clean", "filter.x.process", "gpg.program", "core.fsmonitor"):
        git(place.repository, "config", key, f"touch {evil}; cat")
    git(place.repository, "config", "commit.gpgsign", "true")
    workspace = await place.make()
    private = Path(workspace.record.private, "git")
    (private / "config").write_text(
        f'[filter "x"]\n\tclean = touch {evil}; cat\n[core]\n\tfsmonitor = touch {evil}\n'
    )
    (private / "hooks/pre-commit").write_text(f"#!/bin/sh\ntouch {evil}\n")
    (private / "hooks/pre-commit").chmod(0o755)
    await workspace.write({".gitattributes": "* filter=x\n", "a": "1\n"})
    await workspace.commit("m", [".gitattributes", "a"])
    await workspace.state()
    await workspace.diff(workspace.record.base)
    assert not evil.exists()
    assert not (_top(workspace) / "evil").exists()


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "trick",
    [
        "touch $(git rev-parse --git-dir)/index.lock $(git rev-parse --git-dir)/HEAD.lock",
        "echo junk > $(git rev-parse --git-dir)/index",
        "echo /nowhere > $(git rev-parse --git-common-dir)/objects/info/alternates",
        "echo nonsense > $(git rev-parse --git-dir)/commondir",
        "git pack-refs --all; mkdir -p $(git rev-parse --git-common-dir)/refs/heads/podium; "
        "touch $(git rev-parse --git-common-dir)/refs/heads/podium/t1.lock",
        "git update-index --assume-unchanged README; git update-index --skip-worktree src/app",
    ],
)
async def test_a_commit_is_made_whatever_is_odd_in_the_agents_git_directory(
    place: Place, trick: str
) -> None:
    workspace = await place.make()
    await place.works(workspace, trick)
    await workspace.write({"README": "new\n"})
    tip = await workspace.commit("m", ["README"])
    assert (await workspace.state()).is_clean
    assert Path(workspace.record.private, "git", workspace.record.branch).read_text().strip() == tip


async def test_a_commit_needs_its_branch_and_no_open_merge(place: Place) -> None:
    workspace = await place.make()
    await workspace.write({"a": "1"})
    await place.works(workspace, "git checkout -q --detach")
    with pytest.raises(NotPossibleNow, match="no longer checked out"):
        await workspace.commit("m", ["a"])
    await place.works(
        workspace,
        "git checkout -q podium/t1; git rev-parse HEAD > $(git rev-parse --git-dir)/MERGE_HEAD",
    )
    with pytest.raises(NotPossibleNow, match="unfinished git operation"):
        await workspace.commit("m", ["a"])
    with pytest.raises(BadInput, match="message"):
        await workspace.commit(" \n", ["a"])
    with pytest.raises(BadInput, match="trailer"):
        await workspace.commit("m", ["a"], trailers={"a b": "c"})


async def test_the_agent_goes_on_from_a_commit_of_podium_and_all_is_delivered(place: Place) -> None:
    workspace = await place.make()
    seen = await workspace.begin_turn()
    await place.works(workspace, "echo 1 > a; git add a; git commit -qm one; echo left > b")
    await workspace.end_turn(seen)
    await workspace.write({"docs/r.md": "report\n"})
    await workspace.commit("Report", ["docs/r.md"], trailers=WHY)
    await place.works(workspace, "git add b; git commit -qm two")
    delivery = await workspace.deliver()
    assert place.user("log", "--format=%s", "main..podium/t1") == "two\nReport\none"
    assert delivery.paths == ("a", "b", "docs/r.md")
    assert (await workspace.state()).is_clean


# Looking back.


async def test_the_difference_is_that_of_the_branch_since_it_left(place: Place) -> None:
    workspace = await place.make()
    await place.works(workspace, "echo 1 > a; git add a; git commit -qm one; echo 2 > b")
    (place.repository / "theirs").write_text("x\n")
    place.user("add", "theirs")
    place.user("commit", "-qm", "meanwhile")
    text = await workspace.diff("main")
    assert "+++ b/a" in text
    assert "theirs" not in text
    assert "b/b" not in text
    assert await workspace.diff(workspace.record.base, most_bytes=10) == text[:10]
    assert [entry.subject for entry in await workspace.history("main")] == ["one"]
    for name in ("none", "--output=/tmp/x", ""):
        with pytest.raises(BadInput):
            await workspace.diff(name)
        with pytest.raises(BadInput):
            await workspace.history(name)


async def test_histories_without_anything_in_common_have_words(place: Place) -> None:
    workspace = await place.make()
    orphan = place.user("commit-tree", "main^{tree}", "-m", "orphan")
    with pytest.raises(NotPossibleNow, match="no common ancestor"):
        await workspace.diff(orphan)
    assert len(await workspace.history(orphan)) == 2
