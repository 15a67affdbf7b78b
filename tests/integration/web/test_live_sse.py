"""Server-sent events as they are written: any text arrives whole, and who is slow is told what they missed."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import aclosing
from pathlib import Path

from podium.core.events import NoteTaken, RunCancelled
from podium.core.work import RunStatus
from podium.ports import Transaction
from podium.testing import retry_until
from podium.web import server
from podium.web.live.sse import Part, Topic, topic_updates
from podium.web.settings import ConsoleSettings
from tests.integration.web.console_harness import Stage, console
from tests.integration.web.records import a_past
from tests.integration.web.test_api import FLOWS

EVENTS = 4000
LONG = "x" * 3000


def test_every_kind_of_line_break_stays_within_its_message() -> None:
    output = Part("a\nb\r\nc\rd", event="gap", id="7").text()
    assert output == "event: gap\nid: 7\ndata: a\ndata: b\ndata: c\ndata: d\n\n"


async def test_mark_that_cannot_be_determined_ends_no_stream(tmp_path: Path) -> None:
    asked = 0

    async def mark() -> object:
        nonlocal asked
        asked += 1
        if asked < 3:
            raise OSError("the disk is away")
        return asked

    async with (
        console(tmp_path, flows=FLOWS) as stage,
        aclosing(topic_updates(stage.context.hub, [Topic("work", (), mark)])) as output,  # type: ignore[type-var]  # it is a generator
    ):
        assert [(await anext(output)).event for _ in range(2)] == ["work", "work"]
        assert asked >= 3


async def test_reader_that_does_not_read_is_notified_of_the_gap_and_costs_others_nothing(
    tmp_path: Path,
) -> None:
    async with console(tmp_path, flows=FLOWS) as stage:
        run_id = (await a_past(stage.podium)).waiting
        store = await stage.podium.store()
        slow = await _connected(stage, run_id)
        before = await store.read(lambda view: view.last_seq(run_id))
        await retry_until(lambda: stage.context.hub.followers == 1)
        for _ in range(EVENTS // 100):
            await store.write(lambda tx: _scribble(tx, run_id))
        await store.write(lambda tx: _end(tx, run_id))
        output, gaps = await asyncio.to_thread(_read, slow)
        assert gaps
        assert len(output) < EVENTS
        missed = {seq for gap in gaps for seq in range(gap["after"] + 1, gap["to"] + 1)}
        assert missed.isdisjoint(output)
        assert sorted({*output, *missed}) == list(range(1, before + EVENTS + 2))


async def _connected(stage: Stage, run_id: str) -> socket.socket:
    host, port = stage.url.removeprefix("http://").split(":")
    slow = socket.socket()
    # Little is kept for it on the way.
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    await asyncio.to_thread(slow.connect, (host, int(port)))
    slow.settimeout(120)
    slow.sendall(
        f"GET /api/v1/runs/{run_id}/events/stream HTTP/1.1\r\nHost: {host}:{port}\r\n"
        f"Authorization: Bearer {stage.token}\r\nConnection: close\r\n\r\n".encode()
    )
    return slow


def _scribble(tx: Transaction, run_id: str) -> None:
    for _ in range(100):
        tx.append(run_id, NoteTaken(text=LONG))


def _end(tx: Transaction, run_id: str) -> None:
    run = tx.run(run_id)
    assert run
    tx.append(run_id, RunCancelled())
    tx.save_run(run.model_copy(update={"status": RunStatus.CANCELLED}))


def _read(slow: socket.socket) -> tuple[list[int], list[dict[str, int]]]:
    """The numbers of all events, and the gaps."""
    output, gaps, kind = [], [], ""
    with slow, slow.makefile("rb") as lines:
        for line in lines:
            field, _, value = line.decode().strip().partition(": ")
            if field == "event":
                kind = value
            elif field == "data" and kind == "gap":
                gaps.append(json.loads(value))
            elif field == "data" and value:
                output.append(json.loads(value)["seq"])
            elif not field:
                kind = ""
    return output, gaps


def test_what_is_small_is_sent_at_once() -> None:
    with server._listening(ConsoleSettings(port=0)) as listening:
        assert listening.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
