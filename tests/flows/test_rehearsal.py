"""One task's path through the whole house, with the real parts, compared event by event."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from podium.domain.events import Event
from podium.domain.work import Run, RunStatus
from podium.ports import EventQuery
from podium.testing import retry_until
from podium.usecases import approve, reject, verify_receipts
from podium.wiring.configuration import load_configuration
from podium.wiring.podium import Podium
from podium.wiring.rehearsing import rehearsal_plan


def project(folder: Path, *acts: dict[str, Any], env: dict[str, str] | None = None) -> Podium:
    """A project whose one scene does these acts. Its user folders lie beside it."""
    root = folder / "project"
    (root / "careful").mkdir(parents=True)
    (root / "notes.txt").write_text("hello\n")
    (root / "podium.yaml").write_text(
        yaml.safe_dump(
            {
                "agents": {"player": {"kind": "scripted", "script": "script.yaml"}},
                "roles": {"tester": {"agent": "player"}},
                "policy": {"zones": {"careful": {"paths": ["careful"], "write_tier": "T2"}}},
                "flows": {
                    "rehearsal": {"scenes": [{"name": "act", "role": "tester", "prompt": "go"}]}
                },
            }
        )
    )
    script = {"turns": [{"role": "tester", "acts": list(acts), "reply": "done"}]}
    (root / "script.yaml").write_text(yaml.safe_dump(script))
    environ = {"PODIUM_HOME": str(folder / "home"), "PATH": "/usr/bin:/bin", **(env or {})}
    return Podium(load_configuration(environ, project=root), environ)


async def begin(podium: Podium) -> Run:
    engine = await podium.hosting_engine()
    plan = rehearsal_plan(podium.configuration).model_dump(mode="json")
    return await engine.start("rehearsal", plan)


async def events(podium: Podium, run: Run) -> list[Event]:
    return await (await podium.journal()).read(EventQuery(run_id=run.id))


async def test_a_whole_run_is_told_event_by_event(tmp_path: Path) -> None:
    podium = project(
        tmp_path,
        {"call": "read_file", "with": {"path": "notes.txt"}},
        {"call": "run_command", "with": {"command": "git checkout main"}},
        {"call": "write_file", "with": {"path": "careful/a.txt", "content": "x"}},
    )
    run = await begin(podium)
    engine, store = await podium.engine(), await podium.store()
    waiting = await engine.finish(run.id, stop_when_waiting=True)
    assert waiting.status is RunStatus.WAITING
    [open_approval] = await store.read(lambda view: view.approvals(run_id=run.id))
    await approve(store, podium.clock, podium.ids, open_approval.id, by="ann")
    done = await engine.finish(run.id)
    assert (done.status, done.result) == (RunStatus.SUCCEEDED, {"act": "done"})
    assert [event.body.type for event in await events(podium, run)] == [
        "run_queued",
        "run_started",
        "step_started",
        "agent_asked",
        "tool_requested",  # read_file
        "tool_completed",
        "tool_refused",  # git checkout: denied
        "approval_requested",  # careful/a.txt
        "tool_refused",
        "agent_replied",
        "usage_recorded",
        "step_completed",
        "run_waiting",
        "approval_granted",
        "signal_sent",
        "signal_received",
        "step_started",
        "agent_asked",
        "tool_requested",  # careful/a.txt, permitted once
        "tool_completed",
        "approval_consumed",
        "agent_replied",
        "usage_recorded",
        "step_completed",
        "run_succeeded",
    ]
    verdict = await verify_receipts(store, await podium.verifier())
    assert (verdict.sound, verdict.receipts) == (True, 2)
    trace = podium.folders.state / "runs" / run.id / "execution_trace.jsonl"
    await podium.close()
    lines = [json.loads(line) for line in trace.read_text().splitlines()]
    assert [line["seq"] for line in lines] == list(range(1, 26))
    assert (tmp_path / "project" / "careful" / "a.txt").read_text() == "x"


async def test_a_rejected_call_is_not_performed_and_the_agent_is_told(tmp_path: Path) -> None:
    podium = project(
        tmp_path, {"call": "write_file", "with": {"path": "careful/a.txt", "content": "x"}}
    )
    run = await begin(podium)
    engine, store = await podium.engine(), await podium.store()
    await engine.finish(run.id, stop_when_waiting=True)
    [asked] = await store.read(lambda view: view.approvals(run_id=run.id))
    await reject(store, podium.clock, podium.ids, asked.id, by="ann", why="not today")
    done = await engine.finish(run.id)
    assert done.status is RunStatus.SUCCEEDED
    assert not (tmp_path / "project" / "careful" / "a.txt").exists()
    refused = [event.body for event in await events(podium, run)][-5:]
    assert any("not today" in str(body) for body in refused)
    await podium.close()


async def test_a_secret_of_the_environment_reaches_no_file_of_the_project(tmp_path: Path) -> None:
    secret = "s3cr3t-value-that-must-not-be-written"
    podium = project(
        tmp_path,
        {"dump_environment": True},
        {"call": "run_command", "with": {"command": "printenv"}},
        {"call": "write_file", "with": {"path": "leak.txt", "content": f"it is {secret}"}},
        {"say": f"the token is {secret}"},
        env={"DEPLOY_TOKEN": secret},
    )
    run = await begin(podium)
    engine, store = await podium.engine(), await podium.store()
    await engine.finish(run.id, stop_when_waiting=True)
    for pending in await store.read(lambda view: view.approvals(run_id=run.id)):
        await approve(store, podium.clock, podium.ids, pending.id, by="ann")
    await engine.finish(run.id)
    await podium.close()
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.name == "execution_trace.jsonl" for path in written)
    holding = [path.name for path in written if secret.encode() in path.read_bytes()]
    assert holding == ["script.yaml"]


async def test_a_turn_cut_off_by_a_crash_is_asked_again_and_its_calls_are_not_repeated(
    tmp_path: Path,
) -> None:
    podium = project(
        tmp_path,
        {"call": "run_command", "with": {"command": "python3 -m unittest -q careful.nothing"}},
        {"call": "write_file", "with": {"path": "a.txt", "content": "x"}},
        {"sleep_seconds": 3},
        {"call": "write_file", "with": {"path": "b.txt", "content": "y"}},
    )
    run = await begin(podium)
    await retry_until(lambda: (tmp_path / "project" / "a.txt").exists())
    await (await podium.engine()).abandon()  # type: ignore[attr-defined]  # LocalEngine's own
    await podium.close()
    again = Podium(
        podium.configuration, {"PODIUM_HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"}
    )
    engine = await again.hosting_engine()
    await engine.resume(run.id)
    done = await engine.finish(run.id)
    assert done.status is RunStatus.SUCCEEDED, done.failure
    receipts = await (await again.store()).read(lambda view: view.receipts(run.id))
    assert [receipt.tool for receipt in receipts] == ["run_command", "write_file", "write_file"]
    await again.close()


async def test_an_agent_that_is_lost_leaves_the_run_at_its_checkpoint(tmp_path: Path) -> None:
    podium = project(tmp_path, {"crash": 9})
    run = await begin(podium)
    engine = await podium.engine()
    left = await engine.finish(run.id)
    assert (left.status, left.owner) == (RunStatus.RUNNING, None)
    types = [event.body.type for event in await events(podium, run)]
    assert types[-1] == "run_parked"
    await podium.close()


def test_the_demo_kills_resumes_approves_and_verifies(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "podium", "demo", "--json"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["kills"] == 1
    assert len(told["approved"]) == 1
    assert told["verdict"]["faults"] == []
    statuses = [(receipt["tool"], receipt["status"]) for receipt in told["receipts"]]
    assert statuses.count(("write_file", "completed")) == 2
    assert ("run_command", "failed") in statuses
    assert list(tmp_path.iterdir()) == []
