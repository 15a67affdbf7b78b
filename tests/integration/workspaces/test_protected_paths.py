"""Paths that no agent may touch: each layer by itself keeps them, under whatever spelling."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.config.folders import project_root
from podium.core.decisions import Access, Effect
from podium.core.errors import ImportRefused
from podium.core.processes import ProcessSpec
from podium.core.protected_paths import PROTECTED_NAMES, protected_in
from podium.git.commit_changes import CommitChange, change_problem
from podium.policy import default_policy
from tests.integration.wiring.test_podium import configured
from tests.integration.workspaces.workspace_harness import Place, commit, needs_bwrap
from tests.unit.gate.gate_harness import decide, gate_of, path, tool_call

SPELLINGS = [
    *(".podium", ".PODIUM", ".Podium", "PODIUM~1", "podiu~12", "PO1DB0~1", ".podium.", ".podium  "),
    *(".podium::$INDEX_ALLOCATION", ".pod\u200cium", "\ufeff.podium", ".pod\u00adium", ".\uff50odium"),
    *("docs\\.podium", ".podium\\prompts", ".pod\u0131um", "docs/.podium", "a/b/.Podium"),
]  # fmt: skip


@pytest.mark.parametrize("name", SPELLINGS)
def test_the_import_gate_and_the_policy_know_every_spelling_of_the_state_folder(name: str) -> None:
    file = f"{name}/prompts/plan.md"
    assert "Podium's own state" in change_problem(CommitChange("c", file, "000000", "100644", "b"))
    call = tool_call("write_file", paths=(path(file, Access.WRITE),), arguments={"path": file})
    decision = decide(gate_of(default=True), call)
    assert (decision.effect, decision.rule) == (Effect.DENY, "forbidden-zone:podium-state")


@pytest.mark.parametrize(
    "name", ["podium", "podium.yaml", ".podium-inputs", ".podiums", "podium~", "docs/podium/x"]
)
def test_ordinary_names_are_free(name: str) -> None:
    assert protected_in(name) is None


def test_the_policy_closes_every_name_of_the_list() -> None:
    zones = default_policy().zones
    for known in PROTECTED_NAMES:
        assert zones[known.zone].paths == (f"**/{known.name}",)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


_PLANT = "git update-index --add --cacheinfo 100644,$(echo evil | git hash-object -w --stdin),{}"


@pytest.mark.sample(1)
@needs_bwrap()
@pytest.mark.parametrize("file", [".podium/prompts/plan.md", "docs/.Podium/database", "PODIUM~1/x"])
async def test_state_committed_by_an_agent_never_comes_back(place: Place, file: str) -> None:
    workspace = await place.make()
    await place.works(workspace, f"{_PLANT.format(file)}; git commit -qm evil")
    with pytest.raises(ImportRefused, match="Podium's own state"):
        await workspace.deliver()
    await place.works(
        workspace, "git reset -q --mixed HEAD~1; git commit -q --allow-empty -m clean"
    )
    assert (await workspace.deliver()).commits


@needs_bwrap()
async def test_the_kernel_keeps_an_agent_from_making_a_state_folder(place: Place) -> None:
    workspace = await place.make()
    ended = await place.agent(workspace, "mkdir -p .podium/prompts")
    assert b"Read-only file system" in ended.stderr
    for script in ("rmdir .podium", "mv .podium x", "touch .podium/podium.db"):
        assert (await place.agent(workspace, script)).exit_code != 0
    assert not any(Path(workspace.record.path, ".podium").iterdir())
    assert (await workspace.state()).is_clean


@needs_bwrap()
async def test_planted_state_folders_are_moved_away_after_the_turn(place: Place) -> None:
    workspace = await place.make()
    seen = await workspace.begin_turn()
    await place.works(workspace, "mkdir -p src/.podium .PODIUM; touch src/.podium/a .PODIUM/b")
    ended = await workspace.end_turn(seen)
    assert set(ended.moved_away) == {"src/.podium", ".PODIUM"}
    assert not Path(workspace.record.path, "src/.podium").exists()


@needs_bwrap()
async def test_state_that_the_user_tracks_stays_and_no_agent_changes_it(place: Place) -> None:
    commit(
        place.repository, "tracked", **{".podium__prompts__plan.md": "a", "svc__.podium__x": "b"}
    )
    workspace = await place.make()
    for script in (
        "echo x > .podium/prompts/plan.md",
        "echo x >> svc/.podium/x",
        "rm svc/.podium/x",
    ):
        assert (await place.agent(workspace, script)).exit_code != 0
    seen = await workspace.begin_turn()
    await place.works(workspace, "echo w > w; git add -A; git commit -qm work")
    assert (await workspace.end_turn(seen)).moved_away == ()
    assert (await workspace.deliver()).paths == ("w",)
    await place.works(workspace, "git rm -q --cached svc/.podium/x; git commit -qm removed")
    with pytest.raises(ImportRefused, match=r"svc/\.podium/x"):
        await workspace.deliver()


_MERGE = "git update-ref HEAD $(git commit-tree -p HEAD -p {0} -m m $(git merge-tree --write-tree HEAD {0}))"


@pytest.mark.soak
@needs_bwrap()
async def test_a_merge_takes_the_users_state_and_bare_repositories_and_changes_neither(
    place: Place,
) -> None:
    workspace = await place.make()
    fixture = {
        "data__HEAD": "x",
        "data__objects__k": "x",
        "data__refs__k": "x",
        ".podium__x": "new",
    }
    newer = commit(place.repository, "newer", **fixture)
    await place.works(workspace, f"echo w > w; git add w; git commit -qm w; {_MERGE.format(newer)}")
    assert (await workspace.deliver()).commits
    await place.works(
        workspace, "git read-tree HEAD; git rm -rq --cached data; git commit -qm gone"
    )
    newest = commit(place.repository, "newest", **{".podium__x": "newest"})
    ours = f"git update-ref HEAD $(git commit-tree -p HEAD -p {newest} -m m 'HEAD^{{tree}}')"
    await place.works(workspace, ours)
    with pytest.raises(ImportRefused, match=r"merges '\.podium/x' differently"):
        await workspace.deliver()


@needs_bwrap()
@pytest.mark.parametrize("last", ["git rm -rqf data; git commit -qm clean", "true"])
async def test_a_bare_repository_in_any_commit_is_refused(place: Place, last: str) -> None:
    workspace = await place.make()
    base = workspace.record.base
    script = f"""
    mkdir data; echo x > data/HEAD; git add -f data; git commit -qm one; one=$(git rev-parse HEAD)
    git reset -q --hard {base}; mkdir -p data/objects data/refs
    touch data/objects/k data/refs/k; git add -f data; git commit -qm two
    {_MERGE.format("$one")}; git reset -q --hard
    {last}
    """
    await place.works(workspace, script)
    with pytest.raises(ImportRefused, match="git would treat the folder 'data' as a repository"):
        await workspace.deliver()


async def test_no_command_in_a_plain_folder_makes_a_state_folder(tmp_path: Path) -> None:
    podium = configured(tmp_path)
    root = podium.folders.project / "inner"
    for folder in ("sub/.Podium", "sub/.GIT"):
        (root / folder).mkdir(parents=True)
    fence = await podium.confinement_provider.confinement(str(root))
    script = "mkdir .podium/a; touch sub/.Podium/x; touch sub/.GIT/x; touch fine"
    await podium.launcher.run(
        ProcessSpec(argv=("sh", "-c", script), cwd=str(root), confinement=fence)
    )
    assert (root / "fine").exists()
    assert not any(any((root / name).iterdir()) for name in (".podium", "sub/.Podium", "sub/.GIT"))
    assert project_root(root) == podium.folders.project, "an empty one is nobody's project"
    await podium.close()
