"""GitHub's webhook: wakes the runs that follow a pull request. What happened there, each run asks GitHub itself."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator
from contextlib import suppress

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from podium.app.app import Podium
from podium.core.errors import NotPossibleNow, UserMustAct
from podium.core.model import Json
from podium.core.work import PULL_RETRY, PULL_SIGNAL, Run, RunStatus
from podium.jobs.pipeline.spec import FLOW, pipeline_spec
from podium.ports import RunQuery, StoreView

PATH = "/github"
SIGNATURE = "x-hub-signature-256"
_MAX_RUNS = 1_000
_MAX_NUMBERS = 20


def webhook_router(podium: Podium) -> APIRouter | None:
    """Router of the webhook whose secret the settings name. None: they name none, or cannot be used."""
    try:
        reference = pipeline_spec(podium.configuration).follow_up.webhook_secret
        if not reference:
            return None
        secret = podium.resolve_secret(reference.removeprefix("secret://"))
    except UserMustAct as error:
        podium.notify(f"the webhook of GitHub is disabled: {error}")
        return None
    router = APIRouter()

    @router.post(PATH)
    async def wake(request: Request) -> Response:
        body = await request.body()  # bounded by the console's guard
        if not is_signed(request.headers.get(SIGNATURE, ""), body, secret):
            return JSONResponse({"detail": "the signature is missing or wrong"}, 401)
        numbers = set(pull_numbers(_json(body)))
        store, engine = await podium.store(), await podium.engine()
        waiting = await store.read(lambda view: _waiting(view, numbers))
        woken = 0
        for run, signal in waiting:
            with suppress(NotPossibleNow):  # it ended in between
                await engine.signal(run.id, signal, by="github")
                woken += 1
        return JSONResponse({"woken": woken})

    return router


def is_signed(signature: str, body: bytes, secret: str) -> bool:
    expected = f"sha256={hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}"
    return hmac.compare_digest(signature.encode(errors="replace"), expected.encode())


def pull_numbers(event: Json) -> Iterator[int]:
    """Yield numbers of the pull requests that an event is about. A commit status names none."""
    if not isinstance(event, dict):
        return
    checks = [event.get(name) for name in ("check_run", "check_suite", "workflow_run")]
    pulls: list[Json] = [event.get("pull_request"), event.get("issue")]
    for check in checks:
        listed = check.get("pull_requests") if isinstance(check, dict) else None
        pulls += listed[:_MAX_NUMBERS] if isinstance(listed, list) else []
    for pull in pulls:
        number = pull.get("number") if isinstance(pull, dict) else None
        if isinstance(number, int) and not isinstance(number, bool):
            yield number


def _waiting(view: StoreView, numbers: set[int]) -> list[tuple[Run, str]]:
    """Runs that wait for news of these pull requests, of any without a number, and have none yet."""
    query = RunQuery(flow=FLOW, statuses=(RunStatus.WAITING,), limit=_MAX_RUNS)
    signals = {f"{PULL_SIGNAL}{number}" for number in numbers}
    pairs = [
        (run, run.waiting_for)
        for run in view.runs(query)
        if run.follows_pull_request and run.waiting_for and not run.waiting_for.endswith(PULL_RETRY)
    ]
    pairs = [(run, signal) for run, signal in pairs if not numbers or signal in signals]
    sent = view.untaken_signals([run.id for run, _ in pairs])
    return [(run, signal) for run, signal in pairs if (run.id, signal) not in sent]


def _json(body: bytes) -> Json:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None
