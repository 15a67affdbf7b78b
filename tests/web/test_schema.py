"""The OpenAPI description holds: every operation is tried with what fits it and with what does not."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema
from starlette.routing import BaseRoute

from podium.web.access import rates
from podium.web.api.schema import openapi
from podium.web.app import build_app
from podium.web.settings import ConsoleSettings
from tests.web.records import a_past
from tests.web.stage import ALL_ROLES, Stage, console
from tests.web.test_api import FLOWS

PUBLISHED = Path(__file__).parents[2] / "docs" / "openapi.json"
REFUSALS = ["2xx", "401", "403", "404", "409", "422"]
"""What is right by its shape may still be refused: a schema knows no ids, and no state."""


@pytest.fixture(autouse=True)
def many_wrong_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether tokens are looked at is tried too, which would soon be slowed down."""
    for name in ("FAILURES_PER_MINUTE", "ALL_FAILURES_PER_MINUTE"):
        monkeypatch.setattr(rates, name, 10_000_000)


@contextmanager
def served(folder: Path) -> Iterator[Stage]:
    """A console in a thread of its own: whoever tries the API blocks."""
    ready: list[Stage] = []
    begun, over = threading.Event(), threading.Event()

    async def serve() -> None:
        settings = ConsoleSettings(port=0, requests_per_minute=10_000_000)
        async with console(folder, flows=FLOWS, settings=settings) as stage:
            await a_past(stage.podium)
            ready.append(stage)
            begun.set()
            await asyncio.to_thread(over.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert begun.wait(120)
        yield ready[0]
    finally:
        over.set()
        thread.join(120)


def tried(stage: Stage, *, examples: int, coverage: bool) -> tuple[int, list[str]]:
    """How many requests were made of the whole API, and what was wrong with the answers."""
    config = SchemathesisConfig.from_dict(
        {
            "seed": 1,
            "base-url": stage.url,
            "headers": {"Authorization": f"Bearer {stage.token}"},
            "request-timeout": 60,
            "continue-on-failure": True,
            # A stream of what is to come would never end otherwise.
            "parameters": {"query.seconds": 0.05},
            "generation": {"max-examples": examples, "database": "none"},
            "checks": {"positive_data_acceptance": {"expected-statuses": REFUSALS}},
            "phases": {
                "coverage": {"enabled": coverage},
                "fuzzing": {"enabled": True},
                "stateful": {"enabled": False},
            },
        }
    )
    schema = schemathesis.openapi.from_dict(openapi(build_routes(stage)), config=config)
    requests, faults = 0, {}
    for event in from_schema(schema).execute():
        if isinstance(event, events.ScenarioFinished):
            requests += len(event.recorder.interactions)
            for checks in event.recorder.checks.values():
                for check in checks:
                    if check.failure_info:
                        failure = check.failure_info.failure
                        told = f"{event.recorder.label}: {failure.title}: {failure.message}"
                        told += check.failure_info.code_sample[:400]
                        faults.setdefault((event.recorder.label, check.name), told)
        elif isinstance(event, events.NonFatalError | events.FatalError):
            faults[("error", str(event))] = str(event)
    return requests, list(faults.values())


def build_routes(stage: Stage) -> list[BaseRoute]:
    return build_app(stage.desk).routes


def test_every_operation_answers_as_it_is_described(tmp_path: Path) -> None:
    with served(tmp_path) as stage:
        requests, faults = tried(stage, examples=3, coverage=False)
    assert "\n".join(faults) == ""
    assert requests > 60
