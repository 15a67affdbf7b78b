"""GitHub's webhook wakes the runs that follow a pull request, and does nothing else."""

from __future__ import annotations

import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from podium.app.app import Podium
from podium.config.configuration import load_configuration
from podium.core.errors import ConfigInvalid, NotPossibleNow
from podium.core.work import Run, RunStatus
from podium.jobs.pipeline.spec import pipeline_spec
from podium.jobs.pipeline.webhook import webhook_router
from podium.web.app import build_app
from podium.web.context import WebContext
from podium.web.settings import ConsoleSettings
from tests.integration.pipeline.pipeline_harness import Project

SECRET = "hook-secret-0123456789"


def following(folder: Path) -> Project:
    """A project whose runs follow their pull requests, with a webhook."""
    options = {"enabled": True, "webhook_secret": "secret://HOOK"}
    project = Project(folder).build([], settings={"flows": {"pipeline": {"follow_up": options}}})
    project.home.mkdir(exist_ok=True)
    (project.home / "config.yaml").write_text("secrets: [HOOK]\n")
    project.environ["HOOK"] = SECRET
    return project


async def post(
    app: FastAPI, event: Any, *, secret: str = SECRET, path: str = "/hooks/github"
) -> httpx.Response:
    body = json.dumps(event).encode()
    signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://console") as client:
        headers = {"X-Hub-Signature-256": f"sha256={signature}"}
        return await client.post(path, content=body, headers=headers)


async def waiting(podium: Podium, name: str, signal: str) -> str:
    run = Run(
        id=f"run_{name}", flow="pipeline", status=RunStatus.WAITING, waiting_for=signal,
        created_at=podium.clock.now(),
    )  # fmt: skip
    store = await podium.store()
    await store.write(lambda tx: tx.add_run(run))
    return run.id


async def test_only_a_signed_event_wakes_the_runs_of_its_pull_request_and_once(
    tmp_path: Path,
) -> None:
    async with following(tmp_path).podium() as podium:
        mine = await waiting(podium, "a", "pull_request:7")
        other = await waiting(podium, "b", "pull_request:8")
        limited = await waiting(podium, "c", "pull_request:7:retry")
        asked = await waiting(podium, "d", "approval:7")
        router = webhook_router(podium)
        assert router is not None
        app = FastAPI()
        app.include_router(router, prefix="/hooks")
        store = await podium.store()

        async def sent() -> set[tuple[str, str]]:
            runs = [mine, other, limited, asked]
            return await store.read(lambda view: view.untaken_signals(runs))

        event = {"action": "created", "issue": {"number": 7}}
        assert (await post(app, event, secret="another")).status_code == 401
        assert await sent() == set()
        assert (await post(app, event)).json() == {"woken": 1}
        assert (await post(app, event)).json() == {"woken": 0}
        assert await sent() == {(mine, "pull_request:7")}
        # The event of a commit status names no pull request.
        assert (await post(app, {"state": "failure"})).json() == {"woken": 1}
        assert await sent() == {(mine, "pull_request:7"), (other, "pull_request:8")}
        bodies: list[Any] = [[], 3, {"issue": [], "check_run": {"pull_requests": [None, {}]}}]
        for body in bodies:
            assert (await post(app, body)).status_code == 200


@pytest.mark.parametrize("secret", ["hook-secret-0123456789", "secret://", "secret://A B"])
def test_a_secret_in_the_settings_themselves_is_refused_and_not_shown(
    tmp_path: Path, secret: str
) -> None:
    settings = {"flows": {"pipeline": {"follow_up": {"webhook_secret": secret}}}}
    project = Project(tmp_path).build([], settings=settings)
    with pytest.raises(ConfigInvalid, match="must name a variable as secret://NAME") as raised:
        pipeline_spec(load_configuration(project.environ, project=project.folder))
    assert "hook-secret" not in str(raised.value)


async def test_the_console_takes_long_events_of_strangers_to_the_webhook_alone(
    tmp_path: Path,
) -> None:
    """An event holds the texts of an issue and of a comment, each up to 65,536 characters."""
    project = following(tmp_path)
    async with project.podium() as podium:
        app = build_app(WebContext(podium, ConsoleSettings(names=("console",))))
        mine = await waiting(podium, "a", "pull_request:7")
        event = {"issue": {"number": 7, "body": "\u00fc" * 65_536}}
        assert (await post(app, event)).json() == {"woken": 1}
        assert (await post(app, event, secret="another")).status_code == 401
        assert (await post(app, event, path="/chat/telegram")).status_code == 413
        assert (await post(app, {"body": "x" * 3_000_000})).status_code == 413
        store = await podium.store()
        assert await store.read(lambda view: view.untaken_signals([mine]))


async def test_a_run_that_ends_while_it_is_woken_keeps_no_other_asleep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with following(tmp_path).podium() as podium:
        runs = [await waiting(podium, name, "pull_request:7") for name in "abc"]
        app = FastAPI()
        router = webhook_router(podium)
        assert router is not None
        app.include_router(router, prefix="/hooks")
        engine = await podium.engine()
        sends = engine.signal

        async def signal(run_id: str, name: str, **more: Any) -> None:
            """As if the run had ended between the look at the store and the signal."""
            if run_id == runs[1]:
                raise NotPossibleNow("run is succeeded and accepts no more signals")
            await sends(run_id, name, **more)

        monkeypatch.setattr(engine, "signal", signal)
        assert (await post(app, {"issue": {"number": 7}})).json() == {"woken": 2}


async def test_without_a_secret_there_is_no_webhook(tmp_path: Path) -> None:
    async with Project(tmp_path).build([]).podium() as podium:
        assert webhook_router(podium) is None
