"""Programs of other processes join the bus, are asked and answer once."""

from __future__ import annotations

import asyncio
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import zmq
import zmq.asyncio

from podium.agents.bus import Asked, Bus, BusAgent, BusPeer, BusSettings, socket_of
from podium.agents.bus.peer import Join, Notify
from podium.agents.deps import AgentDeps, AgentOptions
from podium.core.errors import AgentLost, BadInput, LockHeld, NotPossibleNow, TimedOut
from podium.core.turns import Turn, TurnLimits
from podium.testing import (
    FakeConfinementProvider,
    FakeHookDoors,
    FakeLauncher,
    FixedClock,
    MemoryTranscripts,
    retry_until,
)

PROGRAM = Path(__file__).with_name("plain_dealer.py")
PLANNER = Join(side="PLANNER", name="own")


@pytest.fixture
def folder() -> Iterator[Path]:
    with TemporaryDirectory(prefix="p") as short:  # a socket's path must be short
        yield Path(short)


@asynccontextmanager
async def bus_in(folder: Path, **fields: float) -> AsyncIterator[Bus]:
    settings = {"socket": folder / "bus" / "s", "beat_seconds": 0.1, **fields}
    bus = Bus(BusSettings.model_validate(settings))
    bus.open()
    try:
        yield bus
    finally:
        await bus.close()


def agent_on(bus: Bus, doors: FakeHookDoors | None = None, **options: str) -> BusAgent:
    deps = AgentDeps(
        launcher=FakeLauncher(),
        confinement_provider=FakeConfinementProvider(),
        doors=doors or FakeHookDoors(),
        transcripts=MemoryTranscripts(),
        clock=FixedClock(),
        hook_command=("false",),
        homes=bus.settings.socket.parent / "homes",
        user_home=bus.settings.socket.parent,
        environ={},
    )
    named = AgentOptions(name="outsider", options=options or {"side": "PLANNER"})
    return BusAgent(named, deps, bus)


def a_turn(prompt: str = "abc", seconds: float | None = 60.0) -> Turn:
    return Turn(
        run_id="run_1",
        step_key="ask#0",
        role="planner",
        prompt=prompt,
        workspace="/",
        limits=TurnLimits(seconds=seconds),
    )


@contextmanager
def program(bus: Bus, folder: Path, *ways: str) -> Iterator[subprocess.Popen[bytes]]:
    """In a process of its own, with nothing of Podium in it."""
    started = subprocess.Popen([sys.executable, str(PROGRAM), bus.endpoint, str(folder), *ways])
    try:
        yield started
    finally:
        started.kill()
        started.wait()


def done_in(folder: Path) -> list[str]:
    done = folder / "done"
    return done.read_text().splitlines() if done.exists() else []


class Echo:
    """Answers with the prompt, when it may."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.cancelled = 0
        self.may = asyncio.Event()
        self.may.set()

    async def __call__(self, asked: Asked, notify: Notify) -> str:
        self.asked.append(asked)
        try:
            await self.may.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return asked.prompt


@asynccontextmanager
async def joined(bus: Bus, answer: Any, join: Join = PLANNER, **more: Any) -> AsyncIterator[None]:
    serving = asyncio.create_task(BusPeer(bus.endpoint, join, **more).serve(answer))
    try:
        yield
    finally:
        serving.cancel()
        await asyncio.wait({serving})


async def test_a_program_of_another_process_is_asked_and_answers(folder: Path) -> None:
    doors = FakeHookDoors()
    async with bus_in(folder) as bus:
        with program(bus, folder):
            reply = await agent_on(bus, doors).ask(a_turn("é漢字🙂" * 20_000))

    assert reply.text == ("é漢字🙂" * 20_000)[::-1]
    assert (reply.agent, reply.usage.turns, reply.usage.complete) == ("outsider", 1, False)
    assert ("note", "half way") in doors.door.progress
    assert len(done_in(folder)) == 1


async def test_the_socket_is_its_users_alone_and_has_one_owner(folder: Path) -> None:
    async with bus_in(folder) as bus:
        assert stat.S_IMODE(bus.settings.socket.stat().st_mode) == 0o600
        assert stat.S_IMODE(bus.settings.socket.parent.stat().st_mode) == 0o700
        with pytest.raises(LockHeld, match="another Podium is listening"):
            Bus(bus.settings).open()

    assert not bus.settings.socket.exists()


async def test_seat_that_nobody_takes_is_reported_in_words(folder: Path) -> None:
    async with bus_in(folder, join_seconds=0.2) as bus:
        with pytest.raises(AgentLost, match="no program is connected as PLANNER of pair 'main'"):
            await agent_on(bus).ask(a_turn())


async def test_a_program_that_joins_late_gets_the_turn(folder: Path) -> None:
    async with bus_in(folder) as bus:
        asking = asyncio.create_task(agent_on(bus).ask(a_turn()))
        await asyncio.sleep(0)
        async with joined(bus, Echo()):
            assert (await asking).text == "abc"


async def test_a_turn_brings_the_variables_of_its_door(folder: Path) -> None:
    echo = Echo()
    async with bus_in(folder) as bus, joined(bus, echo):
        await agent_on(bus, FakeHookDoors({"PODIUM_DOOR": "here"})).ask(a_turn(seconds=33))

    (asked,) = echo.asked
    assert (asked.variables, asked.seconds) == ({"PODIUM_DOOR": "here"}, 33)


async def test_the_same_turn_is_not_done_twice_whoever_asks_again(folder: Path) -> None:
    echo = Echo()
    async with bus_in(folder) as first, joined(first, echo):
        await agent_on(first).ask(a_turn())
        await first.close()
        async with bus_in(folder) as second:
            again = await agent_on(second).ask(a_turn())
            other = await agent_on(second).ask(a_turn("other"))

    assert (again.text, other.text) == ("abc", "other")
    assert [item.prompt for item in echo.asked] == ["abc", "other"]


async def test_what_is_asked_anew_is_done_anew(folder: Path) -> None:
    echo = Echo()
    async with bus_in(folder) as bus, joined(bus, echo):
        await agent_on(bus).ask(a_turn())
        await agent_on(bus).ask(a_turn().model_copy(update={"asking": 1}))

    assert len(echo.asked) == 2


async def test_a_podium_that_ends_in_the_middle_is_answered_when_it_is_back(folder: Path) -> None:
    echo = Echo()
    echo.may.clear()
    async with bus_in(folder) as first, joined(first, echo):
        asking = asyncio.create_task(agent_on(first).ask(a_turn()))
        await retry_until(lambda: len(echo.asked) == 1, seconds=30)
        # As if killed: it says no word to the program.
        await first.close()
        asking.cancel()
        await asyncio.wait({asking})
        echo.may.set()
        async with bus_in(folder) as second:
            assert (await agent_on(second).ask(a_turn())).text == "abc"

    assert len(echo.asked) == 1


async def test_a_program_that_was_killed_gets_the_turn_again_when_it_is_back(folder: Path) -> None:
    async with bus_in(folder) as bus:
        asking = asyncio.create_task(agent_on(bus).ask(a_turn()))
        with program(bus, folder, "stuck"):
            await retry_until(lambda: len(done_in(folder)) == 1, seconds=60)
        with program(bus, folder):
            assert (await asking).text == "cba"

    first, second = done_in(folder)
    assert first == second


async def test_killed_program_that_stays_away_is_reported_as_lost(folder: Path) -> None:
    async with bus_in(folder, join_seconds=30) as bus:
        with program(bus, folder, "stuck"):
            asking = asyncio.create_task(agent_on(bus).ask(a_turn()))
            await retry_until(lambda: len(done_in(folder)) == 1, seconds=60)
            bus.settings = bus.settings.model_copy(update={"join_seconds": 0.2})
        with pytest.raises(AgentLost, match="'plain' disconnected as PLANNER"):
            await asking


async def test_what_a_program_remembers_outlives_it(folder: Path) -> None:
    echo, memory = Echo(), folder / "memory.json"
    async with bus_in(folder) as bus:
        for _ in range(2):
            async with joined(bus, echo, memory=memory):
                assert (await agent_on(bus).ask(a_turn())).text == "abc"
        memory.write_text("damaged")
        async with joined(bus, echo, memory=memory):
            assert (await agent_on(bus).ask(a_turn())).text == "abc"

    assert len(echo.asked) == 2
    assert stat.S_IMODE(memory.stat().st_mode) == 0o600


async def test_a_seat_that_is_taken_is_refused_to_another_and_given_to_the_same(
    folder: Path,
) -> None:
    first, second = Echo(), Echo()
    # Nobody is taken for silent here, however slow the machine is.
    async with bus_in(folder, beat_seconds=15) as bus, joined(bus, first):
        await agent_on(bus).ask(a_turn("one"))
        with pytest.raises(NotPossibleNow, match="'own' is already PLANNER of pair 'main'"):
            await BusPeer(bus.endpoint, Join(side="PLANNER", name="other")).serve(second)
        async with joined(bus, second):
            await retry_until(lambda: _asks(bus, second), seconds=30)


async def _asks(bus: Bus, echo: Echo) -> bool:
    await agent_on(bus).ask(a_turn(f"to {len(echo.asked)}"))
    return bool(echo.asked)


async def test_timeout_ends_the_turn_and_notifies_the_program(folder: Path) -> None:
    echo = Echo()
    async with bus_in(folder) as bus, joined(bus, echo):
        await agent_on(bus).ask(a_turn("it has joined"))
        echo.may.clear()
        with pytest.raises(TimedOut, match="gave no answer within 3 s"):
            await agent_on(bus).ask(a_turn(seconds=3))
        await retry_until(lambda: echo.cancelled == 1, seconds=30)


async def test_a_turn_that_is_cancelled_is_cancelled_there(folder: Path) -> None:
    echo = Echo()
    echo.may.clear()
    async with bus_in(folder) as bus, joined(bus, echo):
        asking = asyncio.create_task(agent_on(bus).ask(a_turn()))
        await retry_until(lambda: len(echo.asked) == 1, seconds=30)
        asking.cancel()
        await asyncio.wait({asking})
        await retry_until(lambda: echo.cancelled == 1, seconds=30)

    assert asking.cancelled()


async def test_a_program_that_cannot_answer_says_why(folder: Path) -> None:
    async def broken(asked: Asked, notify: Notify) -> str:
        raise RuntimeError("no idea")

    async with bus_in(folder) as bus, joined(bus, broken):
        with pytest.raises(AgentLost, match="'outsider' could not answer: RuntimeError: no idea"):
            await agent_on(bus).ask(a_turn())


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\xff\x00",
        b"[]",
        b'{"kind":"become_root"}',
        b'{"kind":"join","side":"USER","name":"x"}',
        b'{"kind":"join","side":"PLANNER","name":"../x"}',
        b'{"kind":"answered","id":"' + b"x" * 300 + b'","text":""}',
        b"[" * 100_000,
    ],
)
async def test_what_cannot_be_read_is_refused_and_the_others_are_served(
    folder: Path, frame: bytes
) -> None:
    async with bus_in(folder) as bus, joined(bus, Echo()):
        with zmq.asyncio.Context() as context, context.socket(zmq.DEALER) as line:
            line.set(zmq.LINGER, 0)
            line.connect(bus.endpoint)
            await line.send(frame)
            async with asyncio.timeout(60):
                refused = await line.recv()
        assert b'"kind":"refused"' in refused
        assert b"the message cannot be read" in refused
        assert (await agent_on(bus).ask(a_turn())).text == "abc"


async def test_an_answer_that_nobody_asked_for_is_dropped(folder: Path) -> None:
    async with bus_in(folder) as bus, joined(bus, Echo()):
        with zmq.asyncio.Context() as context, context.socket(zmq.DEALER) as line:
            line.set(zmq.LINGER, 0)
            line.connect(bus.endpoint)
            await line.send(b'{"kind":"answered","id":"x","text":"mine"}')
            async with asyncio.timeout(60):
                assert b'"kind":"who"' in await line.recv()
        assert (await agent_on(bus).ask(a_turn())).text == "abc"


@pytest.mark.parametrize(
    "endpoint",
    [
        "tcp://127.0.0.1:5555",
        "tcp://*:5555",
        "ws://x",
        "inproc://x",
        "ipc://@x",
        "ipc://x",
        "/x",
        "",
    ],
)
def test_nothing_but_a_local_file_is_ever_listened_at_or_spoken_to(endpoint: str) -> None:
    with pytest.raises(BadInput, match="give a local socket"):
        socket_of(endpoint)
    with pytest.raises(BadInput, match="give a local socket"):
        BusPeer(endpoint, PLANNER)


@pytest.mark.parametrize(
    "options", [{"pair": "main"}, {"side": "USER"}, {"side": "PLANNER", "host": "x"}]
)
def test_options_that_cannot_be_meant_are_refused(folder: Path, options: dict[str, str]) -> None:
    bus = Bus(BusSettings(socket=folder / "s"))

    with pytest.raises(BadInput, match="set `options:"):
        agent_on(bus, None, **options)
