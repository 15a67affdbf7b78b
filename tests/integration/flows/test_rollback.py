"""Calls of a turn that did not end: rolled back with a disposable workspace, a person's matter elsewhere."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from podium.agents.turn_rollback import ROLLED_BACK, roll_back_calls
from podium.app.approvals import approve
from podium.app.receipts import verify_receipts
from podium.core.approval_steps import grant
from podium.core.decisions import Call, CallOutcome, CallStatus, Effect, Permit, Refusal
from podium.core.errors import CallInDoubt
from podium.core.events import ToolAbandoned
from podium.core.processes import FolderConfinement
from podium.core.work import Run, RunStatus
from podium.ports import RunQuery
from podium.testing import ScriptedGate, decision, retry_until_blocking
from tests.integration.pipeline.pipeline_harness import (
    RIGHT,
    TASK,
    VERIFICATION_PATH,
    Project,
    plans,
    says,
    smooth,
    turn,
    writes,
)
from tests.unit.tools.toolbox_harness import RUN, Harness, make_harness

WORKSPACE = FolderConfinement(network="model-only", disposable=True)
LISTED = FolderConfinement(network="listed", hosts=("example.org",), disposable=True)
FOLDER = FolderConfinement(network="none")
STEP = "work#0"


async def killed_in(harness: Harness, call: Call) -> Permit:
    """The permit of a call whose process dies before it can be settled."""
    permit = await harness.door.request(call)
    assert isinstance(permit, Permit)
    record = await harness.store.read(lambda view: view.call(call.key))
    assert record is not None
    assert record.status is CallStatus.REQUESTED
    return permit


async def rolled_back(harness: Harness) -> int:
    run = Run(id=RUN, flow="f", owner="wrk_1", fence=1, created_at=harness.clock.now())
    await harness.store.write(lambda tx: tx.add_run(run))
    return await roll_back_calls(harness.store, harness.clock, run, STEP)


async def test_a_command_cut_off_in_a_disposable_workspace_is_made_again_without_a_person(
    tmp_path: Path,
) -> None:
    harness = make_harness(tmp_path, held=WORKSPACE)
    call = harness.call("run_command", command=["true"])
    await killed_in(harness, call)
    assert await rolled_back(harness) == 1
    await harness.door.look_back(RUN, STEP)
    outcome = await harness.toolbox.perform(call)
    assert isinstance(outcome, CallOutcome)
    assert outcome.ok
    receipts = await harness.receipts()
    assert [receipt.status for receipt in receipts] == ["rolled_back", "completed"]
    assert receipts[0].error == ROLLED_BACK
    [gone] = [event for event in await harness.events() if isinstance(event, ToolAbandoned)]
    assert gone.rolled_back


async def test_what_a_turn_wrote_before_it_was_cut_off_is_written_again(tmp_path: Path) -> None:
    harness = make_harness(tmp_path, held=WORKSPACE)
    await harness.use("write_file", path="a.txt", content="x")
    (harness.root / "a.txt").unlink()  # as a rollback does
    assert await rolled_back(harness) == 1
    await harness.use("write_file", path="a.txt", content="x")
    assert (harness.root / "a.txt").read_text() == "x"
    assert [receipt.status for receipt in await harness.receipts()] == [
        "completed",
        "rolled_back",
        "completed",
    ]


@pytest.mark.parametrize("held", [LISTED, FOLDER, None], ids=["listed hosts", "folder", "none"])
async def test_a_command_that_may_have_acted_outside_stays_in_doubt(
    tmp_path: Path, held: FolderConfinement | None
) -> None:
    harness = make_harness(tmp_path, held=held)
    call = harness.call("run_command", command=["true"])
    await killed_in(harness, call)
    assert await rolled_back(harness) == 0
    with pytest.raises(CallInDoubt):
        await harness.door.look_back(RUN, STEP)


async def test_an_approval_held_by_a_call_that_was_rolled_back_is_good_again(
    tmp_path: Path,
) -> None:
    asks = ScriptedGate(
        lambda call, context: decision(Effect.ALLOW if context.approval else Effect.ASK)
    )
    harness = make_harness(tmp_path, gate=asks, held=WORKSPACE)
    call = harness.call("run_command", command=["true"])
    refusal = await harness.door.request(call)
    assert isinstance(refusal, Refusal)
    approval_id = refusal.approval_id or ""
    asked = await harness.store.read(lambda view: view.approval(approval_id))
    assert asked is not None
    yes = grant(asked, "ann", harness.clock.now())
    await harness.store.write(lambda tx: tx.save_approval(yes))
    await killed_in(harness, call)
    assert await rolled_back(harness) == 1
    again = await harness.door.request(call)
    assert isinstance(again, Permit)
    assert again.approval_id == approval_id, "a person was asked again"


SLOW = """import pathlib, time

with open("effects.txt", "a") as file:
    file.write("x\\n")
seen = pathlib.Path("__pycache__/seen")
if not seen.exists():
    pathlib.Path("leftover.txt").touch()
    seen.parent.mkdir(exist_ok=True)
    part = seen.with_suffix(".part")
    part.write_bytes(bytes(2_000_000))
    part.rename(seen)
    time.sleep(600)
"""
"""Cut off the first time. A large ignored file stays where it is, whatever is put back."""


@pytest.mark.soak  # the next test comes to it too
async def test_a_pipeline_killed_in_a_confined_command_repeats_the_turn_without_a_person(
    tmp_path: Path,
) -> None:
    command = {"call": "run_command", "with": {"command": ["python3", "slow.py"]}}
    developer = turn(
        "developer",
        writes("calc.py", RIGHT),
        command,
        writes(VERIFICATION_PATH, "# Verified\n\n- [x] add(2, 2) == 4\n"),
        {"commit": "Add"},
        {"payload": {"commit_hash": "HEAD", "status": "success"}},
    )
    turns = [plans(), says("plan_reviewer", "APPROVE"), developer, *smooth()]
    project = Project(tmp_path).build(turns, files={"slow.py": SLOW})
    with subprocess.Popen(
        [sys.executable, "-m", "podium", "run", TASK, "--project", project.folder],
        env=project.environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as supervisor:
        worktrees = project.folder.parent / ".worktrees"
        retry_until_blocking(lambda: list(worktrees.glob("*/__pycache__/seen")), seconds=60)
        supervisor.send_signal(signal.SIGKILL)
    async with project.podium() as podium:
        store = await podium.store()
        [run] = await store.read(lambda view: view.runs(RunQuery()))
    done = await project.resume(run.id)
    assert done.status is RunStatus.SUCCEEDED, done.failure
    assert project.tree(done.result["branch"])["effects.txt"] == "x", "it was not rolled back"
    async with project.podium() as podium:
        store = await podium.store()
        receipts = await store.read(lambda view: view.receipts(run.id))
        [cut_off] = [receipt for receipt in receipts if receipt.status == "rolled_back"]
        same = [receipt for receipt in receipts if receipt.call_key == cut_off.call_key]
        assert [item.status for item in same] == ["rolled_back", "completed"]


@pytest.mark.soak
async def test_a_pipeline_killed_in_a_turn_after_an_approval_repeats_it_from_what_the_last_one_left(
    tmp_path: Path,
) -> None:
    developer = turn(
        "developer",
        writes("calc.py", RIGHT),
        writes("draft.txt", "from the first turn\n"),
        {"call": "write_file", "with": {"path": "asked.txt", "content": "approved\n"}},
        {"call": "run_command", "with": {"command": ["python3", "slow.py"]}},
        writes(VERIFICATION_PATH, "# Verified\n\n- [x] add(2, 2) == 4\n"),
        {"commit": "Add"},
        {"payload": {"commit_hash": "HEAD", "status": "success"}},
    )
    turns = [plans(), says("plan_reviewer", "APPROVE"), developer, *smooth()]
    rule = {
        "name": "look",
        "tool": "write_file",
        "arguments": {"path": "asked.txt"},
        "decision": "ask",
    }
    project = Project(tmp_path).build(
        turns, settings={"policy": {"rules": [rule]}}, files={"slow.py": SLOW}
    )
    run = await project.run(mode="quick")
    assert run.status is RunStatus.WAITING, run.failure
    async with project.podium() as podium:
        store = await podium.store()
        approval = (run.waiting_for or "").removeprefix("approval:")
        await approve(store, podium.clock, podium.ids, approval, by="ann")
    with subprocess.Popen(
        [sys.executable, "-m", "podium", "resume", run.id, "--project", project.folder],
        env=project.environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as supervisor:
        worktrees = project.folder.parent / ".worktrees"
        retry_until_blocking(lambda: list(worktrees.glob("*/__pycache__/seen")), seconds=60)
        supervisor.send_signal(signal.SIGKILL)
    [worktree] = worktrees.iterdir()
    assert (worktree / "leftover.txt").exists()

    done = await project.resume(run.id)
    assert done.status is RunStatus.SUCCEEDED, done.failure
    tree = project.tree(done.result["branch"])
    assert tree["effects.txt"] == "x", "it was not rolled back"
    assert tree["draft.txt"] == "from the first turn"
    assert tree["asked.txt"] == "approved"
    assert "leftover.txt" not in tree
    async with project.podium() as podium:
        store = await podium.store()
        receipts = await store.read(lambda view: view.receipts(run.id))
        approvals = await store.read(lambda view: view.approvals(run_id=run.id))
        assert (await verify_receipts(store, await podium.verifier(), run.id)).sound
    gone = {receipt.call_key for receipt in receipts if receipt.status == "rolled_back"}
    assert [(receipt.tool, receipt.status) for receipt in receipts if receipt.call_key in gone] == [
        ("write_file", "completed"),
        ("write_file", "rolled_back"),
        ("run_command", "rolled_back"),
        ("write_file", "completed"),
        ("run_command", "completed"),
    ]
    assert len(approvals) == 1, "a person was asked again"
