"""The OpenAPI description holds: every operation is tried with what fits it and with what does not."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from podium.web.access import limits
from podium.web.api.published import published
from podium.web.settings import ConsoleSettings
from tests.integration.web.console_harness import Stage, console
from tests.integration.web.records import a_past
from tests.integration.web.test_api import FLOWS

PUBLISHED = Path(__file__).parents[3] / "docs" / "openapi.json"
REFUSALS = ["2xx", "401", "403", "404", "409", "422"]
"""What is right by its shape may still be refused: a schema knows no ids, and no state."""
REJECTIONS = ["400", "401", "403", "404", "405", "409", "413", "414", "422", "431"]
"""What is wrong may be too large as well, and is not looked at any further then."""


@pytest.fixture(autouse=True)
def many_wrong_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lift the limits on wrong tokens: the check of tokens is tested too, and would soon be slowed down."""
    for name in ("FAILURES_PER_MINUTE", "ALL_FAILURES_PER_MINUTE"):
        monkeypatch.setattr(limits, name, 10_000_000)


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


def tried(stage: Stage, *, examples: int) -> tuple[int, list[str]]:
    """Return the number of requests to the whole API, with every limit of every field, and the problems in the responses."""
    # Half a second for every worker, and only the soak needs it.
    import schemathesis
    from schemathesis.config import SchemathesisConfig
    from schemathesis.engine import events, from_schema

    config = SchemathesisConfig.from_dict(
        {
            "seed": 1,
            "base-url": stage.url,
            "headers": {"Authorization": f"Bearer {stage.token}"},
            "request-timeout": 60,
            # A body that is refused unread may end the connection before the answer is read.
            "request-retries": 2,
            "continue-on-failure": True,
            # A stream of what is to come would never end otherwise.
            "parameters": {"query.seconds": 0.05},
            "generation": {"max-examples": examples, "database": "none"},
            "checks": {
                "positive_data_acceptance": {"expected-statuses": REFUSALS},
                "negative_data_rejection": {"expected-statuses": REJECTIONS},
            },
            "phases": {
                "coverage": {"enabled": True},
                "fuzzing": {"enabled": True},
                "stateful": {"enabled": False},
            },
        }
    )
    schema = schemathesis.openapi.from_dict(published(), config=config)
    requests = 0
    faults: dict[tuple[str, str], str] = {}
    for event in from_schema(schema).execute():
        if isinstance(event, events.ScenarioFinished):
            requests += len(event.recorder.interactions)
            for checks in event.recorder.checks.values():
                for check in checks:
                    if check.failure_info:
                        failure = check.failure_info.failure
                        text = f"{event.recorder.label}: {failure.title}: {failure.message}"
                        text += check.failure_info.code_sample[:400]
                        faults.setdefault((event.recorder.label, check.name), text)
        elif isinstance(event, events.NonFatalError | events.FatalError):
            faults[("error", str(event))] = str(event)
    return requests, list(faults.values())


@pytest.mark.soak
def test_every_operation_answers_as_it_is_described_a_thousand_times(tmp_path: Path) -> None:
    with served(tmp_path) as stage:
        requests, faults = tried(stage, examples=60)
    assert "\n".join(faults) == ""
    assert requests > 2000


def test_the_published_description_is_the_one_that_is_served(tmp_path: Path) -> None:
    written = json.loads(PUBLISHED.read_text())
    again = "write it anew: `python -m podium.web.api.published > docs/openapi.json`"
    assert written == json.loads(json.dumps(published())), again
    names = [
        operation["operationId"]
        for operations in written["paths"].values()
        for operation in operations.values()
    ]
    assert len(set(names)) == len(names)


@pytest.mark.soak
async def test_the_description_is_shown_to_those_who_may_come_in(tmp_path: Path) -> None:
    async with console(tmp_path, flows=FLOWS) as stage, stage.client() as client:
        answer = await client.get("/api/v1/openapi.json")
        assert answer.json()["paths"].keys() == published()["paths"].keys()
