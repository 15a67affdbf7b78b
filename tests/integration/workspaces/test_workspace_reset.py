"""A workspace is put back to a commit, and nothing that was there is lost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from podium.core.errors import BadInput, NotPossibleNow, WorkspaceTampered
from podium.git.workspace import GitWorkspace
from podium.git.workspace_reset import WorkspaceReset
from tests.integration.workspaces.workspace_harness import Place, commit, needs_bwrap
from tests.soaking import in_soak

pytestmark = needs_bwrap()


@pytest.fixture(params=[True, in_soak(False)], ids=["confined", "unconfined"])
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    return Place(tmp_path, confined=request.param)


def _top(workspace: GitWorkspace) -> Path:
    return Path(workspace.record.path)


def _newest(place: Place) -> str:
    return place.user(
        "for-each-ref", "--sort=refname", "--format=%(refname)", "refs/podium/snapshots"
    ).split()[-1]


async def _is_back(place: Place, workspace: GitWorkspace, head: str) -> None:
    state = await workspace.state()
    assert (state.head, state.is_clean) == (head, True)
    assert await place.works(workspace, "git status --porcelain; git rev-parse HEAD") == head
    assert await place.works(workspace, "git symbolic-ref HEAD") == "refs/heads/podium/t1"


async def test_changes_and_new_files_go_and_are_in_a_snapshot(place: Place) -> None:
    commit(place.repository, "ignore", **{".gitignore": "*.log\n"})
    workspace = await place.make()
    await place.works(
        workspace,
        "echo x > README; rm src/lib; mkdir -p n/m; echo n > n/m/new; echo l > a.log; chmod +x src/app",
    )
    put_back = await workspace.reset(workspace.record.base, "the planner writes nothing")
    assert put_back == ["README", "n/m/new", "src/app", "src/lib"]
    await _is_back(place, workspace, workspace.record.base)
    assert not (_top(workspace) / "n").exists()
    assert (_top(workspace) / "a.log").exists()
    snapshot = _newest(place)
    assert "the planner writes nothing" in place.user("log", "-1", "--format=%s", snapshot)
    assert place.user("show", f"{snapshot}:n/m/new") == "n"
    assert await workspace.reset(workspace.record.base, "again") == []
    assert _newest(place) == snapshot


async def test_kept_files_stay_as_they_lie_tracked_or_not(place: Place) -> None:
    workspace = await place.make()
    await place.works(
        workspace, "echo k > README; echo k > docs.md; echo x > src/app; echo 1 > away"
    )
    put_back = await workspace.reset(workspace.record.base, "x", keep=["README", "./docs.md"])
    assert put_back == ["away", "src/app"]
    assert (await workspace.state()).changed == ("README", "docs.md")
    assert await workspace.reset(workspace.record.base, "x", keep=["README", "docs.md"]) == []
    with pytest.raises(WorkspaceTampered):
        await workspace.reset(workspace.record.base, "x", keep=["../x"])


@pytest.mark.soak
async def test_commits_beyond_go_with_their_files_also_when_those_are_kept_or_ignored(
    place: Place,
) -> None:
    commit(place.repository, "ignore", **{".gitignore": "*.log\n"})
    workspace = await place.make()
    await place.works(
        workspace,
        "echo 1 > a; echo 1 > f.log; git add -f a f.log; echo 2 > README; git commit -qam one; echo 3 > keep; git add keep; "
        "git commit -qm two",
    )
    gone = (await workspace.state()).head
    assert await workspace.reset(workspace.record.base, "x", keep=["keep"]) == [
        "README",
        "a",
        "f.log",
    ]
    state = await workspace.state()
    assert (state.head, state.changed) == (workspace.record.base, ("keep",))
    assert not (_top(workspace) / "f.log").exists()
    place.user("merge-base", "--is-ancestor", gone, _newest(place))


async def test_a_commit_that_was_not_delivered_can_be_gone_back_to(place: Place) -> None:
    workspace = await place.make()
    await place.works(workspace, "echo 1 > a; git add a; git commit -qm one")
    good = (await workspace.state()).head
    await place.works(
        workspace,
        "git checkout -q --orphan bad; git rm -rqf .; echo z > z; git add z; git commit -qm bad; "
        "git branch -D podium/t1; rm -rf $(git rev-parse --git-common-dir)/logs $(git rev-parse --git-dir)/logs",
    )
    await workspace.reset(good, "x")
    await _is_back(place, workspace, good)
    assert (await workspace.deliver()).after == good


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "trick",
    [
        in_soak("git checkout -q --detach"),
        "git checkout -qb side; echo s > s; git add s; git commit -qm s",
        "git checkout -qb o; echo o > README; git commit -qam o; git checkout -q podium/t1; echo p > README; "
        "git commit -qam p; git merge o || true",
        in_soak("echo q > README; git commit -qam q; git rebase -q --onto HEAD~1 HEAD~1 HEAD || true; git cherry-pick HEAD || true"),
        in_soak("echo junk > $(git rev-parse --git-dir)/HEAD"),
        "rm -rf $(git rev-parse --git-dir)/*",
        in_soak("rm -rf $(git rev-parse --git-common-dir)/{objects,refs,worktrees,packed-refs} 2>/dev/null || true"),
        in_soak("d=$(git rev-parse --git-common-dir); mv $d/objects $d/o; ln -s o $d/objects"),
        in_soak("d=$(git rev-parse --git-common-dir); rm -rf $d/worktrees; echo x > $d/worktrees"),
        in_soak("d=$(git rev-parse --git-common-dir); git pack-refs --all; rm -rf $d/refs/heads; ln -s /tmp $d/refs/heads; echo x > x"),
        in_soak("rm -rf src; ln -s /etc src"),
        in_soak("rm README; mkdir README; echo x > README/x"),
        "rm README; mkfifo README",
        in_soak("git init -q nested; echo n > nested/n"),
        "echo 'src/' > .gitignore; echo 'h*' >> .gitignore; echo x > hidden; head -c 3000000 /dev/zero > large",
        in_soak("echo x > n; touch $(git rev-parse --git-dir)/index.lock; git update-index --assume-unchanged README || true"),
    ],
)  # fmt: skip
async def test_whatever_an_agent_leaves_is_put_back(place: Place, trick: str) -> None:
    workspace = await place.make()
    await place.agent(workspace, trick)
    await workspace.reset(workspace.record.base, "x")
    await _is_back(place, workspace, workspace.record.base)
    names = {str(path.relative_to(_top(workspace))) for path in _top(workspace).rglob("*")}
    assert names == {
        ".git",
        ".podium",
        "README",
        "src",
        "src/app",
        "src/lib",
        "conf",
        "conf/prod",
        "conf/prod/key",
    }
    assert await workspace.reset(workspace.record.base, "x") == []
    await place.works(workspace, "echo 1 > a; git add a; git commit -qm on")
    assert (await workspace.deliver()).paths == ("a",)


@pytest.mark.soak
async def test_a_large_file_that_the_agent_let_git_ignore_is_kept_before_it_goes(
    place: Place,
) -> None:
    workspace = await place.make()
    await place.works(workspace, "echo '*.bin' > .gitignore; head -c 3000000 /dev/zero > x.bin")
    await workspace.reset(workspace.record.base, "x")
    assert not (_top(workspace) / "x.bin").exists()
    assert len(place.user("cat-file", "-s", f"{_newest(place)}:x.bin")) == len("3000000")


@pytest.mark.sample(1)
@pytest.mark.parametrize("step", ["_put_files_back", in_soak("_renew"), "_write"])
async def test_a_reset_that_was_cut_off_is_ended_when_it_is_asked_again(
    place: Place, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    workspace = await place.make()
    script = "echo 1 > a; echo 2 > README; git add a; git commit -qam one; rm src/lib; echo u > u"
    await place.works(workspace, script)

    async def killed(*_: object) -> None:
        raise NotPossibleNow("killed")

    with monkeypatch.context() as patch:
        # There is no other way to stop between two steps of one call.
        patch.setattr(WorkspaceReset, step, killed)
        with pytest.raises(NotPossibleNow, match="killed"):
            await workspace.reset(workspace.record.base, "x")
    await workspace.reset(workspace.record.base, "x")
    await _is_back(place, workspace, workspace.record.base)


async def test_a_folder_that_may_not_be_written_is_no_hindrance(place: Place) -> None:
    workspace = await place.make()
    (_top(workspace) / "ro/inner").mkdir(parents=True)
    (_top(workspace) / "ro/inner/x").write_text("x")
    (_top(workspace) / "ro/inner").chmod(0o500)
    assert await workspace.reset(workspace.record.base, "x") == ["ro/inner/x"]
    assert not (_top(workspace) / "ro").exists()


async def test_nobody_goes_back_to_what_is_not_there(place: Place) -> None:
    workspace = await place.make()
    (_top(workspace) / "README").write_text("x\n")
    with pytest.raises(BadInput):
        await workspace.reset("none", "x")
    with pytest.raises(WorkspaceTampered, match="cannot reset to"):
        await workspace.reset("1" * 40, "x")
    assert (_top(workspace) / "README").read_text() == "x\n"


async def test_work_that_was_delivered_survives_a_broken_git_directory(place: Place) -> None:
    workspace = await place.make()
    await place.works(workspace, "echo 1 > a; git add a; git commit -qm one")
    good = (await workspace.deliver()).after
    await place.agent(
        workspace, "rm -rf $(git rev-parse --git-common-dir)/{objects,refs,worktrees} || true; rm a"
    )
    assert "a" in await workspace.reset(good, "x")
    await _is_back(place, workspace, good)
    assert os.listdir(_top(workspace)).count("a") == 1


@pytest.mark.soak
async def test_a_sparse_checkout_stays_sparse(place: Place) -> None:
    place.user("sparse-checkout", "set", "src")
    workspace = await place.make()
    assert (await workspace.state()).is_clean
    await workspace.write({"src/d": "d\n", "other/e": "e\n"})
    tip = await workspace.commit("m", ["src/d", "other/e"])
    assert (await workspace.state()).is_clean
    await place.works(workspace, "rm src/d; echo x > src/app; echo n > src/new")
    assert await workspace.reset(tip, "x") == ["src/app", "src/d", "src/new"]
    assert not (_top(workspace) / "conf").exists()
    assert (await workspace.deliver()).paths == ("other/e", "src/d")
