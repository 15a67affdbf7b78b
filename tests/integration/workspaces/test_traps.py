"""Traps that an agent leaves for Podium's own git: none of them runs, and none keeps Podium waiting."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from podium.core.errors import WorkspaceTampered
from podium.core.workspaces import WorkLocation, WorkspaceListing, WorkspaceRecord
from podium.git import commit_trees, planted
from podium.git.planted import find_planted
from podium.git.workspace import GitWorkspace
from podium.platform.folder_tree import clear_away
from tests.integration.workspaces.workspace_harness import Place, needs_bwrap
from tests.soaking import in_soak

_TRAP = """
mkdir nest && cd nest && git init -q . && echo a > f && git add f
git -c user.name=a -c user.email=b@c commit -qm n && cd ..
git add nest && git commit -qm gitlink && cd nest
echo '* filter=x' > .git/info/attributes
printf '[filter "x"]\\n\\tclean = touch {proof}\\n' >> .git/config
echo other > f
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def _seen(place: Place, record: WorkspaceRecord) -> WorkspaceListing:
    return next(row for row in await place.workspaces.listed() if row.record.id == record.id)


async def _trapped(place: Place) -> tuple[GitWorkspace, Path]:
    """A nested repository with a filter that would run wherever somebody asks it for changes."""
    workspace = await place.make()
    proof = place.state_home / "proof"
    await place.works(workspace, _TRAP.format(proof=proof))
    return workspace, proof


def _deepen(folder: Path) -> None:
    """Folders within folders, further down than any path reaches."""
    inner = os.open(folder, os.O_RDONLY)
    for _ in range(120):
        os.mkdir("d" * 100, dir_fd=inner)
        deeper = os.open("d" * 100, os.O_RDONLY, dir_fd=inner)
        os.close(inner)
        inner = deeper
    os.mkdir(".git", dir_fd=inner)
    os.close(inner)


@pytest.mark.sample(1)
@needs_bwrap()
@pytest.mark.parametrize("how", ["list", "remove", "snapshot"])
async def test_a_filter_of_a_nested_repository_never_runs_after_podium_was_killed(
    place: Place, how: str
) -> None:
    workspace, proof = await _trapped(place)
    match how:
        case "list":
            assert (await _seen(place, workspace.record)).kept is WorkLocation.UNKNOWN
        case "remove":
            assert not (await place.workspaces.remove(workspace.record.id)).removed
        case _:
            await workspace.snapshot("now")
    assert not proof.exists()
    assert not (Path(workspace.record.path) / "nest/.git").exists()


@needs_bwrap()
async def test_a_nested_repository_that_cannot_be_moved_is_unknown_and_nothing_runs(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, proof = await _trapped(place)

    def refused(source: Path, target: Path) -> None:
        raise WorkspaceTampered("it cannot be moved")

    monkeypatch.setattr(planted, "carry", refused)
    found = await _seen(place, workspace.record)
    assert found.kept is WorkLocation.UNKNOWN
    assert "cannot be moved" in found.because
    assert not proof.exists()


@pytest.mark.soak
@needs_bwrap()
async def test_folders_deeper_than_any_path_keep_nothing_from_being_moved_away(
    place: Place,
) -> None:
    workspace, proof = await _trapped(place)
    _deepen(Path(workspace.record.path))
    try:
        assert (await _seen(place, workspace.record)).kept is WorkLocation.UNKNOWN
        assert not proof.exists()
        assert not any(find_planted(Path(workspace.record.path)))
        # And everything works again.
        seen = await workspace.begin_turn()
        await place.works(workspace, "git status && echo more > more")
        await workspace.end_turn(seen)
        taken = await workspace.snapshot("now")
        assert not taken.complete
        assert (await _seen(place, workspace.record)).kept is WorkLocation.UNKNOWN
    finally:
        clear_away(Path(workspace.record.private))


@needs_bwrap()
async def test_findings_are_moved_before_an_unreadable_folder_is_reported(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = await place.make()
    worktree = Path(workspace.record.path)
    seen = await workspace.begin_turn()
    for name in ("a", "odd", "z"):
        (worktree / name / ".git").mkdir(parents=True)
    real = os.scandir

    def scandir(folder: str) -> object:
        if str(folder).endswith("/odd/"):
            raise OSError(5, "Input/output error")
        return real(folder)

    monkeypatch.setattr("podium.git.planted.os.scandir", scandir)
    with pytest.raises(WorkspaceTampered, match="odd"):
        await workspace.end_turn(seen)
    assert not (worktree / "a/.git").exists()
    assert not (worktree / "z/.git").exists()


@needs_bwrap()
async def test_a_submodule_of_the_users_is_neither_change_nor_loss(place: Place) -> None:
    base = place.user("rev-parse", "HEAD")
    place.user("update-index", "--add", "--cacheinfo", f"160000,{base},sub")
    place.user("commit", "-qm", "a submodule")
    workspace = await place.make()
    assert (await _seen(place, workspace.record)).kept is WorkLocation.UNCHANGED
    taken = await workspace.snapshot("now")
    assert "160000" in place.user("ls-tree", taken.commit, "sub")
    (Path(workspace.record.path) / "sub").mkdir(exist_ok=True)
    (Path(workspace.record.path) / "sub/work").write_text("work")
    assert (await _seen(place, workspace.record)).kept is WorkLocation.UNKNOWN
    taken = await workspace.snapshot("again")
    assert place.user("show", f"{taken.commit}:sub/work") == "work"


@pytest.mark.sample(1)
@needs_bwrap()
@pytest.mark.parametrize(
    "name",
    [".gitattributes", in_soak(".gitignore"), "src/.gitignore", in_soak(".GITIGNORE")],
)
async def test_pipes_that_git_would_read_from_are_moved_away(place: Place, name: str) -> None:
    workspace = await place.make()
    pipe = Path(workspace.record.path, name)
    pipe.parent.mkdir(exist_ok=True)
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)
    os.mkfifo(Path(workspace.record.path, "pipe"))
    await _seen(place, workspace.record)
    assert not pipe.exists()
    assert Path(workspace.record.path, "pipe").exists()
    assert (await workspace.snapshot("now")).complete


@pytest.mark.sample(1)
@needs_bwrap()
@pytest.mark.parametrize(
    "name",
    [
        "objects/info/alternates",
        "packed-refs",
        in_soak("shallow"),
        in_soak("info/grafts"),
        in_soak("objects/aa"),
    ],
)
async def test_pipes_in_the_private_git_directory_keep_nobody_waiting(
    place: Place, name: str
) -> None:
    workspace = await place.make()
    await place.works(workspace, "echo a > a; git add a; git commit -qm a")
    pipe = Path(workspace.record.private, "git", name)
    pipe.parent.mkdir(exist_ok=True)
    if pipe.is_dir():
        pipe = pipe / "pipe"
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)
    assert (await _seen(place, workspace.record)).kept is WorkLocation.UNKNOWN
    await workspace.snapshot("now")
    await workspace.deliver()


@needs_bwrap()
async def test_tree_of_endless_paths_is_reported_and_read_by_nobody(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_trees, "MAX_PATHS", 5000)
    workspace = await place.make()
    await place.works(
        workspace,
        """
        T=$(printf "100644 blob $(echo x | git hash-object -w --stdin)\\tf\\n" | git mktree)
        for level in 1 2 3 4 5 6 7 8 9 10 11 12; do
          T=$(for i in 0 1 2 3 4 5 6 7 8 9; do printf "040000 tree $T\\td$i\\n"; done | git mktree)
        done
        T=$( (git ls-tree HEAD; printf "040000 tree $T\\tz\\n") | git mktree)
        git update-ref HEAD $(git commit-tree -p HEAD -m many $T)
        """,
    )
    found = await _seen(place, workspace.record)
    assert found.kept is WorkLocation.UNKNOWN
    assert "10000000000" in found.because
    with pytest.raises(Exception, match="10000000000"):
        await workspace.deliver()
    with pytest.raises(Exception, match="10000000000"):
        await workspace.snapshot("now")


@needs_bwrap()
async def test_file_too_large_to_keep_is_reported_and_the_rest_is_kept(place: Place) -> None:
    workspace = await place.make()
    worktree = Path(workspace.record.path)
    with (worktree / "big").open("wb") as file:
        file.truncate(2_000_000_000_000)
    (worktree / "small").write_text("small")
    found = await _seen(place, workspace.record)
    assert found.kept is WorkLocation.UNKNOWN
    assert "'big'" in found.because
    taken = await workspace.snapshot("now")
    assert not taken.complete
    assert "'big'" in taken.left_out[0]
    assert place.user("show", f"{taken.commit}:small") == "small"
    assert (await _seen(place, workspace.record)).kept is WorkLocation.UNKNOWN
    (worktree / "big").unlink()
    taken = await workspace.snapshot("now")
    assert taken.complete


@needs_bwrap()
async def test_a_large_file_that_git_ignores_is_in_nobodys_way(place: Place) -> None:
    workspace = await place.make()
    worktree = Path(workspace.record.path)
    with (worktree / ".gitignore").open("a") as file:
        file.write("\n*.weights\n")
    with (worktree / "model.weights").open("wb") as file:
        file.truncate(2_000_000_000_000)
    assert "not committed" in (await _seen(place, workspace.record)).because
    taken = await workspace.snapshot("now")
    assert taken.complete
    assert (await _seen(place, workspace.record)).kept is WorkLocation.SNAPSHOTTED


@pytest.mark.soak
@needs_bwrap()
async def test_logs_without_end_are_not_read_to_their_end(place: Place) -> None:
    workspace = await place.make()
    logs = Path(workspace.record.private, "git/logs/refs/x")
    logs.mkdir(parents=True)
    rows = (f"{'0' * 40} {number:040x} a <a@b> 1 +0000\tx\n" for number in range(1, 20_000))
    (logs / "0").write_text("".join(rows))
    for number in range(1, 900):
        os.link(logs / "0", logs / str(number))
    found = await _seen(place, workspace.record)
    assert found.kept is WorkLocation.UNKNOWN
    assert "logs" in found.because
    assert not (await workspace.snapshot("now")).complete
