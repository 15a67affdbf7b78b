"""Panes over a websocket: who is let in, what is painted, and what a browser's keys become."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from podium.core.terminals import PaneFrame
from podium.jobs.duet.pane_socket import keys_of, repainted
from podium.web.access.tokens import ConsoleRole
from tests.integration.cli.command_runner import CommandRunner
from tests.integration.duet.terminals import Terminals, duet_terminals
from tests.integration.web.console_harness import Stage, console

WAIT_SECONDS = 60.0


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Terminals]:
    if shutil.which("tmux") is None:
        pytest.skip("no tmux on this machine; `sh scripts/need tmux` installs it")
    with duet_terminals(CommandRunner(tmp_path)) as harness:
        result = harness.duet("up", "--grant")
        assert result.code == 0, result.err
        yield harness


def place(stage: Stage, pane: str = "main/planner") -> str:
    return f"{stage.url.replace('http', 'ws')}/api/v1/panes/{pane}"


@asynccontextmanager
async def looking(
    stage: Stage, token: str | None = None, pane: str = "main/planner"
) -> AsyncIterator[ClientConnection]:
    headers = {"authorization": f"Bearer {token or stage.token}"}
    async with connect(place(stage, pane), additional_headers=headers) as socket:
        yield socket


async def next_message(socket: ClientConnection, kind: str, **fields: object) -> dict[str, Any]:
    """The next message of this kind in which these stand."""
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            message: dict[str, Any] = json.loads(await socket.recv())
            if message["type"] == kind and fields.items() <= message.items():
                return message


async def say(socket: ClientConnection, **message: object) -> None:
    await socket.send(json.dumps(message))


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, 401),
        ({"authorization": "Bearer pod_wrong"}, 401),
        ({"authorization": "Bearer TOKEN", "origin": "https://evil.example"}, 403),
        ({"cookie": "podium_session=forged.0"}, 401),
    ],
    ids=["nobody", "wrong token", "another site", "forged session"],
)
async def test_strangers_and_pages_of_other_sites_see_no_pane(
    tmp_path: Path, headers: dict[str, str], code: int
) -> None:
    async with console(tmp_path) as stage:
        payload = {name: value.replace("TOKEN", stage.token) for name, value in headers.items()}
        with pytest.raises(InvalidStatus) as refused:
            async with connect(place(stage), additional_headers=payload):
                pass
        assert refused.value.response.status_code == code


@pytest.mark.sample(1)
@pytest.mark.parametrize("pane", ["main/director", "ma.in/planner", "other/planner"])
async def test_missing_pane_is_reported_as_such(tmp_path: Path, pane: str) -> None:
    async with console(tmp_path) as stage:
        with pytest.raises((ConnectionClosed, InvalidStatus)) as refused:
            async with asyncio.timeout(WAIT_SECONDS), looking(stage, pane=pane) as socket:
                await socket.recv()
        if isinstance(refused.value, ConnectionClosed):
            assert refused.value.rcvd is not None
            assert refused.value.rcvd.code == 4404


async def test_only_an_operator_who_has_the_keyboard_types(tmp_path: Path, pair: Terminals) -> None:
    async with console(tmp_path, environ=pair.variables) as stage:
        viewer = stage.new_token("eve", ConsoleRole.VIEWER)
        async with looking(stage) as sam, looking(stage, viewer) as eve:
            first = await next_message(sam, "paint")
            assert (first["columns"], first["rows"]) == (200, 50)
            await say(sam, type="keys", data="x")
            assert "take it first" in (await next_message(sam, "refused"))["words"]
            for item in ({"type": "take"}, {"type": "keys", "data": "x"}):
                await say(eve, **item)
                assert "not an operator" in (await next_message(eve, "refused"))["words"]
            await say(sam, type="take")
            await next_message(sam, "state", mine=True)
            await next_message(eve, "state", who="sam", mine=False)
            await say(sam, type="keys", data="Enter ;-)")
            await say(sam, type="paste", text="two\nlines\x1b[201~")
            while "Enter ;-)two" not in (await next_message(sam, "paint"))["text"]:
                pass
            assert pair.happened("PLANNER", "took")[1:] == [], "a paste was sent line by line"
            await say(sam, type="give")
            await next_message(sam, "state", who="", mine=False)


@pytest.mark.soak
async def test_what_makes_no_sense_is_refused_and_the_pane_goes_on(
    tmp_path: Path, pair: Terminals
) -> None:
    async with (
        console(tmp_path, environ=pair.variables) as stage,
        looking(stage) as socket,
    ):
        await next_message(socket, "paint")
        for nonsense in (
            "{",
            "[]",
            '{"type": "quit"}',
            json.dumps({"type": "keys", "data": "x" * 5000}),
        ):
            await socket.send(nonsense)
            assert (await next_message(socket, "refused"))["words"] == "these keys cannot be typed"


@pytest.mark.soak
async def test_a_keyboard_comes_back_when_its_person_left_and_stays_gone(
    tmp_path: Path, pair: Terminals, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The grace is for people; the test would only wait.
    monkeypatch.setattr("podium.jobs.duet.pane_socket.GRACE_SECONDS", 0.1)
    async with console(tmp_path, environ=pair.variables) as stage:
        async with looking(stage) as socket:
            await say(socket, type="take")
            await next_message(socket, "state", mine=True)
        bob = stage.new_token("bob", ConsoleRole.OPERATOR)
        async with looking(stage, bob) as other:
            await next_message(other, "state", who="")


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        ("aä;-", ("a", "ä", ";", "-")),
        ("\r\t\x7f \x1b", ("Enter", "Tab", "BSpace", "Space", "Escape")),
        ("\x03\x1a", ("C-c", "C-z")),
        ("\x1b[A\x1bOB\x1b[5~\x1b[Z", ("Up", "Down", "PPage", "BTab")),
        ("\x1b[1;5C\x1b[3;2~", ("C-Right", "S-DC")),
        ("\x1bx", ("M-x",)),
        ("\x1b[?1;2c\x1b[99~\x9b\x1b[I", ()),
    ],
)
def test_what_a_browser_sends_becomes_keys_by_their_names(data: str, keys: tuple[str, ...]) -> None:
    assert keys_of(data) == keys


def test_only_lines_that_changed_are_painted_again() -> None:
    one = PaneFrame(columns=20, rows=5, lines=("a", "b"))
    other = one.model_copy(update={"lines": ("a", "c"), "cursor_row": 1, "cursor_column": 1})
    assert repainted(one, other) == "\x1b[?25l\x1b[2;1H\x1b[0m\x1b[2Kc\x1b[2;2H\x1b[?25h"
    smaller = one.model_copy(update={"rows": 2})
    assert "\x1b[2J" in repainted(one, smaller)
    assert repainted(None, one).startswith("\x1b[?25l\x1b[0m\x1b[2J\x1b[1;1H")


async def test_viewers_look_on_and_steer_nothing(tmp_path: Path) -> None:
    async with console(tmp_path) as stage:
        async with stage.client(stage.new_token("eve", ConsoleRole.VIEWER)) as eve:
            assert (await eve.get("/duet")).status_code == 200
            state = await eve.get("/duet/state")
            assert "podium duet up" in state.text
            for path in ("tasks", "tasks/run_x/nudge", "tasks/run_x/abort", "tasks/run_x/retry"):
                assert (await eve.post(f"/duet/{path}", data={"text": "x"})).status_code == 403
        async with stage.client() as sam:
            assert (await sam.get("/duet?pair=other")).status_code == 422
            assert (await sam.post("/duet/tasks/run_x/abort")).status_code == 404
            ungranted = await sam.post("/duet/tasks", data={"text": "tidy"})
            assert ungranted.status_code == 403
            assert "is not granted" in ungranted.text
