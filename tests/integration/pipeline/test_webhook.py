"""GitHub's webhook wakes the runs that follow a pull request, and does nothing else."""

from __future__ import annotations

import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI

from podium.app.app import Podium
from podium.core.work import Run, RunStatus
from podium.jobs.pipeline.webhook import webhook_router
from tests.integration.pipeline.pipeline_harness import Project

SECRET = "hook-secret-0123456789"


async def post(app: FastAPI, event: Any, *, secret: str = SECRET) -> httpx.Response:
    body = json.dumps(event).encode()
    signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://console") as client:
        headers = {"X-Hub-Signature-256": f"sha256={signature}"}
        return await client.post("/hooks/github", content=body, headers=headers)


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
    options = {"enabled": True, "webhook_secret": "secret://HOOK"}
    settings = {"flows": {"pipeline": {"follow_up": options}}}
    project = Project(tmp_path).build([], settings=settings)
    project.home.mkdir(exist_ok=True)
    (project.home / "config.yaml").write_text("secrets: [HOOK]\n")
    project.environ["HOOK"] = SECRET
    async with project.podium() as podium:
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


async def test_without_a_secret_there_is_no_webhook(tmp_path: Path) -> None:
    async with Project(tmp_path).build([]).podium() as podium:
        assert webhook_router(podium) is None
