"""One task's path through the whole house, with the real parts, compared event by event."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from podium.app.app import Podium
from podium.app.approvals import approve, reject
from podium.app.receipts import verify_receipts
from podium.cli.error_report import run as run_podium
from podium.config.configuration import load_configuration
from podium.config.trust import TrustBook
from podium.core.decisions import ApprovalStatus
from podium.core.errors import ApprovalClosed
from podium.core.events import Event, ToolRefused
from podium.core.work import Run, RunStatus
from podium.jobs.rehearsal.flow import rehearsal_plan
from podium.ports import EventQuery
from podium.testing import retry_until


def project(
    folder: Path, *acts: dict[str, Any], env: dict[str, str] | None = None, **settings: Any
) -> Podium:
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
                **settings,
            }
        )
    )
    script = {"turns": [{"role": "tester", "acts": list(acts), "reply": "done"}]}
    (root / "script.yaml").write_text(yaml.safe_dump(script))
    environ = {"PODIUM_HOME": str(folder / "home"), "PATH": "/usr/bin:/bin", **(env or {})}
    return Podium(load_configuration(environ, project=root), environ)


async def begin(
    podium: Podium, *, workspace: Path | None = None, settings: dict[str, Any] | None = None
) -> Run:
    engine = await podium.hosting_engine()
    plan = rehearsal_plan(podium.configuration).model_dump(mode="json")
    if workspace is not None:
        plan["workspace"] = str(workspace)
    return await engine.start("rehearsal", plan, settings=settings)


async def events(podium: Podium, run: Run) -> list[Event]:
    return await (await podium.journal()).read(EventQuery(run_id=run.id))


async def test_a_retried_run_asks_anew_when_its_approval_was_closed_with_it(tmp_path: Path) -> None:
    podium = project(
        tmp_path, {"call": "write_file", "with": {"path": "careful/a.txt", "content": "x"}}
    )
    run = await begin(podium)
    engine, store = await podium.engine(), await podium.store()
    await engine.finish(run.id, stop_when_waiting=True)
    [closed] = await store.read(lambda view: view.approvals(run_id=run.id))
    await engine.cancel(run.id, by="ann")
    assert (await engine.finish(run.id)).status is RunStatus.CANCELLED
    with pytest.raises(ApprovalClosed, match="podium retry"):
        await approve(store, podium.clock, podium.ids, closed.id, by="ann")
    await engine.retry(run.id, by="ann")
    waits = await engine.finish(run.id, stop_when_waiting=True)
    pending = (ApprovalStatus.PENDING,)
    opened = await store.read(lambda view: view.approvals(run_id=run.id, statuses=pending))
    assert [f"approval:{item.id}" for item in opened] == [waits.waiting_for]
    await approve(store, podium.clock, podium.ids, opened[0].id, by="ann")
    assert (await engine.finish(run.id)).status is RunStatus.SUCCEEDED
    await podium.close()


async def test_whole_run_is_reported_event_by_event(tmp_path: Path) -> None:
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


async def test_rejected_call_is_not_performed_and_the_agent_is_notified(tmp_path: Path) -> None:
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
        {"sleep_seconds": 600},
        {"call": "write_file", "with": {"path": "b.txt", "content": "y"}},
    )
    run = await begin(podium)
    await retry_until(lambda: (tmp_path / "project" / "a.txt").exists())
    await (await podium.engine()).abandon()  # type: ignore[attr-defined]  # LocalEngine's own
    await podium.close()
    script = tmp_path / "project" / "script.yaml"
    script.write_text(script.read_text().replace("600", "0"))
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


@pytest.mark.soak
async def test_an_agent_that_is_lost_is_asked_again_after_a_pause(tmp_path: Path) -> None:
    podium = project(tmp_path, {"crash": 9})
    run = await begin(podium)

    async def tried_again() -> bool:
        types = [event.body.type for event in await events(podium, run)]
        return types.count("agent_asked") > 1 and types.count("step_broke") > 1

    await retry_until(tried_again, seconds=30)
    await podium.close()


WRITE = {"call": "write_file", "with": {"path": "a.txt", "content": "x"}}


async def refused_by(podium: Podium, run: Run) -> list[str]:
    bodies = [event.body for event in await events(podium, run)]
    return [body.rule for body in bodies if isinstance(body, ToolRefused)]


async def test_a_role_uses_only_the_tools_it_is_allowed(tmp_path: Path) -> None:
    roles = {"tester": {"agent": "player", "allowed_tools": ["read_file"]}}
    podium = project(
        tmp_path, WRITE, {"call": "read_file", "with": {"path": "notes.txt"}}, roles=roles
    )
    run = await begin(podium)
    done = await (await podium.engine()).finish(run.id)
    assert done.status is RunStatus.SUCCEEDED, done.failure
    assert not (tmp_path / "project" / "a.txt").exists()
    receipts = await (await podium.store()).read(lambda view: view.receipts(run.id))
    assert [receipt.tool for receipt in receipts] == ["read_file"]
    await podium.close()


async def test_an_agent_that_takes_longer_than_its_timeout_is_ended(tmp_path: Path) -> None:
    role_agent = {"kind": "scripted", "script": "script.yaml", "timeout_seconds": 0.3}
    podium = project(tmp_path, {"hang": True}, agents={"player": role_agent})
    run = await begin(podium)
    done = await (await podium.engine()).finish(run.id)
    assert done.failure is not None
    assert (done.failure.kind, done.failure.exit_code) == ("TimedOut", 6)
    await podium.close()


async def test_an_agent_gets_its_variables_once_its_project_is_trusted(tmp_path: Path) -> None:
    env = {"GREETING": "hello", "LICENCE": "secret://DEPLOY_LICENCE"}
    role_agent = {"kind": "scripted", "script": "script.yaml", "env": env}
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.yaml").write_text("secrets: [DEPLOY_LICENCE]\n")
    podium = project(
        tmp_path,
        {"dump_environment": True},
        env={"DEPLOY_LICENCE": "valid"},
        agents={"player": role_agent},
    )
    script = {"turns": [{"role": "tester", "acts": [{"dump_environment": True}]}]}
    (tmp_path / "project" / "script.yaml").write_text(yaml.safe_dump(script))
    engine = await podium.hosting_engine()
    refused = await engine.finish((await begin(podium)).id)
    assert refused.failure is not None
    assert refused.failure.kind == "NotPossibleNow"
    assert "podium trust" in refused.failure.message

    configuration = podium.configuration
    book = TrustBook(configuration.folders.user_state)
    book.trust(configuration.folders.project_file, configuration.project_digest)
    done = await engine.finish((await begin(podium)).id)
    assert {"GREETING=hello", "LICENCE=valid"} <= set(done.result["act"].splitlines())
    await podium.close()


async def test_calls_of_a_turn_are_judged_and_performed_in_the_turns_workspace(
    tmp_path: Path,
) -> None:
    careful = {"call": "write_file", "with": {"path": "careful/b.txt", "content": "y"}}
    podium = project(tmp_path, WRITE, careful)
    other = tmp_path / "other"
    (other / "careful").mkdir(parents=True)
    run = await begin(podium, workspace=other)
    engine, store = await podium.engine(), await podium.store()
    waiting = await engine.finish(run.id, stop_when_waiting=True)
    assert (other / "a.txt").read_text() == "x"
    assert not (tmp_path / "project" / "a.txt").exists()
    assert waiting.status is RunStatus.WAITING, "the zone was not looked for in the workspace"
    [asked] = await store.read(lambda view: view.approvals(run_id=run.id))
    await approve(store, podium.clock, podium.ids, asked.id, by="ann")
    assert (await engine.finish(run.id)).status is RunStatus.SUCCEEDED
    assert (other / "careful" / "b.txt").read_text() == "y"
    await podium.close()


async def test_a_run_started_to_look_only_never_acts_under_looser_settings(tmp_path: Path) -> None:
    podium = project(tmp_path, WRITE)
    run = await begin(podium, settings={"mode": "sensing"})
    await (await podium.engine()).finish(run.id)
    assert await refused_by(podium, run) == ["mode:sensing"]
    assert not (tmp_path / "project" / "a.txt").exists()
    await podium.close()


async def test_todays_stricter_mode_holds_for_a_run_started_under_a_looser_one(
    tmp_path: Path,
) -> None:
    podium = project(tmp_path, WRITE, mode="dry-run")
    run = await begin(podium, settings={"mode": "autonomous"})
    await (await podium.engine()).finish(run.id)
    assert await refused_by(podium, run) == ["mode:dry-run"]
    await podium.close()


def test_a_spent_budget_leaves_with_five_and_a_raised_one_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scenes = [{"name": name, "role": "tester", "prompt": "go"} for name in ("one", "two")]
    flows = {"rehearsal": {"scenes": scenes}}
    project(tmp_path, {"say": "hi"}, flows=flows, budgets={"run": {"turns": 1}})

    def podium(*arguments: str) -> tuple[int, Any]:
        capsys.readouterr()
        code = run_podium([*arguments, "--json", "--project", str(tmp_path / "project")])
        return code, json.loads(capsys.readouterr().out)["run"]

    monkeypatch.setenv("PODIUM_HOME", str(tmp_path / "home"))
    code, run = podium("rehearse")
    assert (code, run["status"], run["failure"]["kind"]) == (5, "needs_human", "BudgetSpent")
    assert run["settings"] == {"mode": "supervised", "budgets": []}
    file = tmp_path / "project" / "podium.yaml"
    file.write_text(file.read_text().replace("turns: 1", "turns: 2"))
    code, run = podium("resume", run["id"])
    assert (code, run["status"]) == (0, "succeeded")
    assert run["result"] == {"one": "done", "two": "done"}


def test_a_run_records_the_mode_and_the_budgets_it_is_started_with(tmp_path: Path) -> None:
    podium = project(tmp_path, budgets={"day": {"usd": 2.5}}, mode="sensing")
    terms = podium.configuration.run_settings()
    assert terms["mode"] == "sensing"
    budgets = [(budget["scope"], budget["usd"]) for budget in terms["budgets"]]
    assert budgets == [("run", 25.0), ("day", 2.5)]  # a run has limits by default
