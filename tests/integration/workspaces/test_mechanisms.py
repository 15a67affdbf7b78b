"""Workspaces under every way of confining that this machine has, by the launcher that is really used."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.sandbox import ProcessLauncher
from tests.integration.workspaces.workspace_harness import Place, commit


@pytest.mark.parametrize("name", ["bubblewrap", "landlock"])
async def test_an_agent_works_delivers_and_goes_back(tmp_path: Path, name: str) -> None:
    trials = {trial.mechanism.name: trial for trial in await ProcessLauncher().survey()}
    if name not in trials or not trials[name].works:
        pytest.skip(f"{name} does not confine on this machine")
    place = Place(tmp_path, ProcessLauncher(mechanism=trials[name].mechanism))
    workspace = await place.make(forbidden=["conf/prod", "infra/secret"])
    seen, before = await workspace.begin_turn(), place.state()
    await place.works(workspace, "cd src; echo 1 > a; git add a; git commit -qm one; git status")
    refused = await place.agent(
        workspace, "echo x > conf/prod/key || mv conf c2 || touch infra/secret/x"
    )
    assert refused.exit_code != 0
    await place.agent(
        workspace,
        f"set +e; echo x > {place.repository}/README; git update-ref refs/heads/main HEAD~1; true",
    )
    assert place.state() == before
    ended = await workspace.end_turn(seen)
    assert (ended.violations, ended.changed_meanwhile) == ((), ())
    assert (await workspace.deliver()).paths == ("src/a",)
    snapshot = await workspace.snapshot("x")
    await place.works(workspace, "cd src; rm app; git commit -qam two")
    await workspace.restore(snapshot)
    assert Path(workspace.record.path, "src/app").exists()
    assert (await workspace.deliver()).commits == ()


@pytest.mark.parametrize("name", ["bubblewrap", "landlock", ""])
async def test_podium_itself_commits_merges_and_puts_back(tmp_path: Path, name: str) -> None:
    trials = {trial.mechanism.name: trial for trial in await ProcessLauncher().survey()}
    if name and (name not in trials or not trials[name].works):
        pytest.skip(f"{name} does not confine on this machine")
    mechanism = trials[name].mechanism if name else None
    place = Place(tmp_path, ProcessLauncher(mechanism=mechanism), confined=bool(name))
    workspace = await place.make(forbidden=["conf/prod"])
    assert (await workspace.state()).is_clean
    await workspace.write({"docs/plan.md": "plan\n"})
    await workspace.commit("Plan", ["docs/plan.md"], trailers={"Podium-Step": "plan"})
    commit(place.repository, "theirs", top="x\n", conf__prod__key="newer\n")
    merge = await workspace.merge("main", "Merge main", {})
    assert Path(workspace.record.path, "conf/prod/key").read_text() == "newer\n"
    assert (await workspace.deliver()).after == merge.commit
    assert await place.works(workspace, "git status --porcelain; git log --format=%s -1") == (
        "Merge main"
    )
    Path(workspace.record.path, "left").write_text("x")
    assert await workspace.reset(merge.commit, "x") == ["left"]
    assert (await workspace.state()).is_clean
