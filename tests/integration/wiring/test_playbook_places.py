"""Removal of snapshots and copies for runs of playbooks once nobody will continue them."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.app.workspaces import tidy_grounds
from podium.core.work import Run, RunStatus
from podium.jobs.playbook.working_folder import working_folders
from tests.integration.wiring.test_podium import configured


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("status", "stays"), [(RunStatus.WAITING, True), (RunStatus.SUCCEEDED, False), (None, False)]
)
async def test_a_copy_stays_while_its_run_may_go_on(
    tmp_path: Path, status: RunStatus | None, stays: bool
) -> None:
    podium = configured(tmp_path)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a").write_text("1")
    try:
        store = await podium.store()
        if status is not None:
            made = Run(id="run_1", flow="story", status=status, created_at=podium.clock.now())
            await store.write(lambda tx: tx.save_run(made))
        kept = await working_folders(podium).prepare("run_2", str(folder))
        copy = await working_folders(podium).prepare("run_1", str(folder), as_copy=True)
        assert Path(copy.root).is_relative_to(podium.folders.user_state)
        await tidy_grounds(podium.folders.grounds, podium.repository_git, store, podium.clock)
        assert Path(copy.root).exists() is stays
        (folder / "a").write_text("2")
        assert (await working_folders(podium).changes(kept, str(folder))).paths == ("a",)
    finally:
        await podium.close()
