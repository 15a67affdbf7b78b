"""The metrics page of a worker: fetched as Prometheus does, read by its own parser, closed to all else."""

from __future__ import annotations

import asyncio
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TypeVar

import pytest
from prometheus_client.parser import text_string_to_metric_families

from podium.app.app import Podium
from podium.cli import metrics_page as page_module
from podium.cli import metrics_server
from podium.cli.metrics_page import MetricsReading, metrics_page
from podium.cli.metrics_server import Address, MetricsPage, read_address, served
from podium.config.configuration import load_configuration
from podium.core.errors import BadInput, StoreBusy, UserMustAct
from podium.core.work import QueueSpec
from podium.engine import FlowDefinition
from podium.ports import FlowContext, StepContext, StoreView
from podium.telemetry.exposition import StoreFigures
from podium.testing import FixedClock, MemoryStore, retry_until

T = TypeVar("T")

SECRET = "the words of a task, hunter2"


async def _work(ctx: FlowContext, input: object) -> str:
    async def think(step: StepContext) -> str:
        return SECRET

    return await ctx.step("think", think)


async def opened(folder: Path, **environ: str) -> Podium:
    """A Podium with one flow, on a file or on the database that the environment names."""
    for name in ("project", "home"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "project/podium.yaml").touch()
    home = str(folder / "home")
    settings = {"PATH": "/usr/bin:/bin", "HOME": home, "PODIUM_HOME": home, **environ}
    podium = Podium(load_configuration(settings, project=folder / "project"), settings, flows={})
    (await podium.engine()).register(FlowDefinition("work", _work))
    return podium


@pytest.fixture
async def podium(tmp_path: Path) -> AsyncIterator[Podium]:
    podium = await opened(tmp_path)
    yield podium
    await podium.close()


def read(text: str) -> dict[str, float]:
    """Every sample of a page, as Prometheus reads it."""
    return {
        sample.name + "".join(f" {label}" for label in sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def get(url: str) -> tuple[str, str]:
    with urllib.request.urlopen(url, timeout=120) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


async def asked(address: Address, request: bytes) -> str:
    """Return the response to a raw request; empty when the connection was cut."""
    async with asyncio.timeout(120):
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(request)
        try:
            return (await reader.read()).decode()
        except ConnectionResetError:
            return ""
        finally:
            writer.close()


async def test_worker_reports_its_work_to_prometheus(podium: Podium) -> None:
    engine = await podium.engine()
    async with metrics_page(podium, "0") as url:
        runs = [await engine.start("work", task=SECRET, queue="default") for _ in range(3)]
        async with engine.serve([QueueSpec(name="default")]):
            for run in runs:
                await engine.finish(run.id)

            async def samples() -> dict[str, float]:
                kind, text = await asyncio.to_thread(get, url)
                assert kind == "text/plain; version=0.0.4; charset=utf-8"
                assert SECRET not in text
                assert not any(run.id in text or run.id[-8:] in text for run in runs)
                found = read(text)
                return found if found.get("podium_runs_ended_total work succeeded") == 3 else {}

            found = await retry_until(samples)
    assert url.startswith("http://127.0.0.1:")
    assert found["podium_runs_started_total work"] == 3
    assert found["podium_steps_total work completed"] == 3
    assert found["podium_step_seconds_count work"] == 3
    assert found["podium_queue_wait_seconds_count default"] == 3
    assert found["podium_store_up"] == 1
    assert found["podium_event_lag_seconds"] == 0
    assert found["podium_workers"] == 1
    assert found["podium_approvals_waiting"] == 0
    assert found["podium_store_commit_seconds_count"] > 3
    assert found["podium_store_reconnects_total"] == 0


async def test_the_sum_over_workers_on_one_postgresql_is_what_was_done(
    tmp_path: Path, postgres_url: str
) -> None:
    async with AsyncExitStack() as stack:
        workers = [
            await opened(tmp_path / name, PODIUM_DATABASE_URL=postgres_url) for name in ("a", "b")
        ]
        for worker in workers:
            stack.push_async_callback(worker.close)
        urls = [await stack.enter_async_context(metrics_page(item, "0")) for item in workers]
        engines = [await worker.engine() for worker in workers]
        runs = [await engines[0].start("work", queue="default") for _ in range(8)]
        for engine in engines:
            queue = QueueSpec(name="default", worker_concurrency=2)
            await stack.enter_async_context(engine.serve([queue]))
        for run in runs:
            await engines[0].finish(run.id)

        async def samples() -> list[dict[str, float]]:
            pages = [read((await asyncio.to_thread(get, url))[1]) for url in urls]
            ended = [page.get("podium_runs_ended_total work succeeded", 0) for page in pages]
            return pages if sum(ended) == 8 else []

        pages = await retry_until(samples)
    assert [page["podium_workers"] for page in pages] == [2, 2]
    assert sum(page.get("podium_steps_total work completed", 0) for page in pages) == 8
    assert all(page["podium_store_commit_seconds_count"] for page in pages)


async def test_runs_of_queues_are_shown_by_status(podium: Podium) -> None:
    engine = await podium.engine()
    await engine.start("work", queue="default")
    await engine.start("work", queue="default", delay_seconds=3600)
    async with metrics_page(podium, "127.0.0.1:0") as url:
        _, text = await asyncio.to_thread(get, url)
    found = read(text)
    assert found["podium_runs default queued"] == 1
    assert found["podium_runs default delayed"] == 1
    assert found["podium_queue_oldest_seconds default"] >= 0


class Away(MemoryStore):
    """A store whose database is away, after the first look."""

    looked = 0

    async def read(self, work: Callable[[StoreView], T]) -> T:
        self.looked += 1
        if self.looked > 1:
            raise StoreBusy("the database is away")
        return await super().read(work)


async def test_while_the_store_is_away_the_page_says_so_and_shows_what_was_counted() -> None:
    reading = await MetricsReading.open(Away(FixedClock()), "wrk_me", StoreFigures())
    found = read((await reading.page()).text)
    assert found["podium_store_up"] == 0
    assert "podium_workers" not in found


async def test_asking_often_costs_the_store_one_look_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = Away(FixedClock())
    reading = await MetricsReading.open(store, "wrk_me", StoreFigures())
    monkeypatch.setattr(page_module, "FRESH_SECONDS", 3600.0)  # no test is to depend on a second
    pages = await asyncio.gather(*(reading.page() for _ in range(50)))
    assert len(set(pages)) == 1
    assert store.looked == 2


async def _hello() -> MetricsPage:
    return MetricsPage("hello\n")


async def _broken() -> MetricsPage:
    raise ValueError(SECRET)


async def _late() -> MetricsPage:
    await asyncio.Event().wait()
    raise AssertionError("nobody sets it")


PAGES = {"/metrics": _hello, "/broken": _broken, "/late": _late}


@pytest.fixture
async def address() -> AsyncIterator[Address]:
    async with served(Address("127.0.0.1", 0), PAGES) as listening:
        yield listening


@pytest.mark.parametrize(
    ("request_head", "answer"),
    [
        (b"GET /metrics HTTP/1.1\r\n\r\n", "200"),
        (b"GET /metrics?x=1 HTTP/1.0\r\nHost: 127.0.0.1:9\r\n\r\n", "200"),
        (b"GET /metrics HTTP/1.1\r\nHost: [::1]:9\r\n\r\n", "200"),
        (b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", "200"),
        (b"GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n", "403"),
        (b"GET / HTTP/1.1\r\n\r\n", "404"),
        (b"GET /metrics/../etc/passwd HTTP/1.1\r\n\r\n", "404"),
        (b"POST /metrics HTTP/1.1\r\n\r\n", "405"),
        (b"HEAD /metrics HTTP/1.1\r\n\r\n", "405"),
        (b"GET /broken HTTP/1.1\r\n\r\n", "500"),
        (b"\x00\xff\xfe nonsense\r\n\r\n", "400"),
        (b"GET /metrics SPDY/3\r\n\r\n", "400"),
        (b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 100_000, "400"),
    ],
)
async def test_only_what_is_a_get_of_a_page_is_answered_with_one(
    address: Address, request_head: bytes, answer: str
) -> None:
    output = await asked(address, request_head)
    # The line may be cut while a request that is too long is still being sent.
    assert output.startswith(f"HTTP/1.1 {answer} ") or (answer == "400" and not output)
    assert SECRET not in output


async def test_who_is_slow_to_ask_or_to_be_answered_is_not_waited_for(
    address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics_server, "REQUEST_SECONDS", 0.01)
    assert (await asked(address, b"GET /metr")).startswith("HTTP/1.1 408 ")
    monkeypatch.setattr(metrics_server, "REQUEST_SECONDS", 30.0)
    monkeypatch.setattr(metrics_server, "ANSWER_SECONDS", 0.01)
    assert (await asked(address, b"GET /late HTTP/1.1\r\n\r\n")).startswith("HTTP/1.1 503 ")


async def test_more_lines_than_a_few_are_cut_and_those_before_still_answered(
    address: Address,
) -> None:
    held = [
        await asyncio.open_connection(address.host, address.port)
        for _ in range(metrics_server.MAX_CONNECTIONS)
    ]
    assert await asked(address, b"GET /metrics HTTP/1.1\r\n\r\n") == ""
    reader, writer = held[0]
    writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
    assert (await reader.read()).endswith(b"hello\n")
    for _, writer in held:
        writer.close()


async def test_closing_cuts_a_line_that_waits_for_its_page() -> None:
    entered = asyncio.Event()

    async def late() -> MetricsPage:
        entered.set()
        return await _late()

    async with served(Address("127.0.0.1", 0), {"/late": late}) as listening:
        waiting = asyncio.create_task(asked(listening, b"GET /late HTTP/1.1\r\n\r\n"))
        await entered.wait()
    assert await waiting == ""


async def test_a_name_may_be_asked_for_where_others_than_this_machine_may_ask() -> None:
    async with served(Address("0.0.0.0", 0), PAGES) as listening:
        here = Address("127.0.0.1", listening.port)
        head = b"GET /metrics HTTP/1.1\r\nHost: worker.example:9464\r\n\r\n"
        assert (await asked(here, head)).startswith("HTTP/1.1 200 ")


async def test_an_address_that_is_taken_is_refused_in_words(address: Address) -> None:
    with pytest.raises(UserMustAct, match=f"cannot listen on 127.0.0.1:{address.port}: .*in use"):
        async with served(address, PAGES):
            raise AssertionError("it listens twice")


def test_addresses_are_of_this_machine_unless_another_is_named() -> None:
    assert read_address("9464") == ("127.0.0.1", 9464)
    assert read_address(":9464") == ("127.0.0.1", 9464)
    assert read_address("0.0.0.0:9464") == ("0.0.0.0", 9464)
    assert read_address("[::1]:9464").url == "http://[::1]:9464"
    assert all(read_address(f"{host}:1").is_loopback for host in ("127.9.9.9", "::1", "localhost"))
    assert not read_address("10.0.0.1:1").is_loopback
    assert not read_address("worker.example:1").is_loopback


@pytest.mark.parametrize("text", ["", "x", "127.0.0.1:", "127.0.0.1:x", "1:65536", "1:-1", "a b:1"])
def test_what_is_no_address_is_refused_in_words(text: str) -> None:
    with pytest.raises(BadInput, match=r"use HOST:PORT such as 127\.0\.0\.1:9464"):
        read_address(text)
