"""Contract of terminals, in this process and through the typed API."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest

from podium.core.errors import (
    AgentLost,
    BadInput,
    CallRefused,
    NeedsHuman,
    NotPossibleNow,
    PodiumError,
    TimedOut,
    ToolMissing,
)
from podium.core.keyboards import KeyboardHold
from podium.core.terminals import KeysPressed, PairSize, Terminal
from podium.ports import TerminalPairs
from podium.rpc import reach, reach_tls, serve, serve_tls
from podium.testing import MemoryTerminals, retry_until
from tests.integration.rpc.certificates import authority, certificates

PLANNER = Terminal(side="PLANNER")
EXECUTER = Terminal(side="EXECUTER")
TIMESTAMP = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)


class Bench(NamedTuple):
    terminals: TerminalPairs
    behind: MemoryTerminals


@pytest.fixture(params=["here", "socket", "tls"])
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    behind = MemoryTerminals()
    async with AsyncExitStack() as stack:
        terminals: TerminalPairs = behind
        if request.param == "socket":
            # A short path: the kernel takes no long one for a socket.
            socket = Path(stack.enter_context(TemporaryDirectory(prefix="p"))) / "api"
            await stack.enter_async_context(serve(behind, socket))
            terminals = await stack.enter_async_context(reach(socket))
        if request.param == "tls":
            ca = authority(tmp_path / "ca")
            server, client = certificates(ca, "server"), certificates(ca, "client")
            port = await stack.enter_async_context(serve_tls(behind, "127.0.0.1", 0, server))
            terminals = await stack.enter_async_context(reach_tls("127.0.0.1", port, client))
        yield Bench(terminals, behind)


async def test_pair_is_started_once_and_both_sides_are_notified_planner_first(bench: Bench) -> None:
    await bench.terminals.start("main")

    states = await bench.terminals.start("main")

    assert [state.terminal.side for state in states] == ["PLANNER", "EXECUTER"]
    assert {state.status for state in states} == {"ready"}
    assert bench.behind.starts == 1


async def test_status_of_both_is_reported_even_for_a_pair_that_is_not_up(bench: Bench) -> None:
    before = await bench.terminals.states("main")
    started = await bench.terminals.start("main")
    hold = KeyboardHold(who="sam", since=TIMESTAMP, until=TIMESTAMP + timedelta(minutes=15))
    bench.behind.holds["EXECUTER"] = hold

    after = await bench.terminals.states("main")

    assert [(item.terminal.side, item.status) for item in before] == [
        ("PLANNER", "gone"),
        ("EXECUTER", "gone"),
    ]
    assert after[0] == started[0]
    assert after[1].keyboard == hold
    assert bench.behind.starts == 1
    with pytest.raises(BadInput, match="no pair is called 'other'"):
        await bench.terminals.states("other")


async def test_keys_reach_the_side_they_were_meant_for(bench: Bench) -> None:
    await bench.terminals.start("main")
    odd = ("C-c", "é漢字🙂", "a b", "-t", "\x1b[201~", "x" * 10_000)

    await bench.terminals.send_keys(KeysPressed(terminal=EXECUTER, keys=odd))

    assert bench.behind.lines == {"PLANNER": [], "EXECUTER": [" ".join(odd)]}


async def test_a_picture_shows_what_is_visible_or_all_there_is(bench: Bench) -> None:
    await bench.terminals.start("main")
    bench.behind.lines["PLANNER"] = [f"line {number}" for number in range(60)]

    seen = await bench.terminals.capture(PLANNER, whole=False)
    whole = await bench.terminals.capture(PLANNER, whole=True)

    assert (seen.lines[0], seen.lines[-1], seen.columns, seen.rows) == (
        "line 10",
        "line 59",
        200,
        50,
    )
    assert (len(whole.lines), whole.left_out) == (60, 0)


async def test_a_pair_gets_another_size(bench: Bench) -> None:
    await bench.terminals.start("main")

    await bench.terminals.resize(PairSize(columns=120, rows=30))

    picture = await bench.terminals.capture(PLANNER, whole=False)
    assert (picture.columns, picture.rows) == (120, 30)


async def test_a_program_is_started_again(bench: Bench) -> None:
    await bench.terminals.start("main")
    await bench.terminals.send_keys(KeysPressed(terminal=PLANNER, keys=("x",)))

    state = await bench.terminals.resume(PLANNER)

    assert (state.terminal, state.status, state.sent) == (PLANNER, "ready", 0)


async def test_watcher_is_shown_the_current_state_and_then_the_changes(bench: Bench) -> None:
    async with aclosing(bench.terminals.watch("main")) as news:
        first = [await anext(news), await anext(news)]
        await bench.terminals.start("main")
        started = [await anext(news), await anext(news)]
        await bench.terminals.send_keys(KeysPressed(terminal=PLANNER, keys=("hello",)))
        pressed = await anext(news)

    assert [(item.state.status, item.picture) for item in first] == [("gone", None)] * 2
    assert {item.state.status for item in started} == {"ready"}
    assert pressed.picture is not None
    assert pressed.picture.lines == ("hello",)


async def test_a_watch_that_is_left_is_over_on_the_other_end_too(bench: Bench) -> None:
    async with aclosing(bench.terminals.watch("main")) as news:
        await anext(news)
        assert bench.behind.watchers == 1

    await retry_until(lambda: bench.behind.watchers == 0, seconds=30)


async def test_a_pair_that_is_not_known_or_not_up_is_refused_in_words(bench: Bench) -> None:
    with pytest.raises(BadInput, match="no pair is called 'other'"):
        await bench.terminals.start("other")
    with pytest.raises(NotPossibleNow, match="not running; start it with"):
        await bench.terminals.send_keys(KeysPressed(terminal=PLANNER, keys=("x",)))
    with pytest.raises(BadInput, match="no pair is called 'other'"):
        async with aclosing(bench.terminals.watch("other")) as news:
            await anext(news)


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    "error",
    [
        NeedsHuman("it asks: trust this folder?"),
        TimedOut("'planner' did not become ready; look at its pane"),
        ToolMissing("no tmux; install it"),
        CallRefused("nobody has granted '/x'"),
        AgentLost("é\n" * 600),
    ],
)
async def test_errors_come_through_as_they_are(bench: Bench, error: PodiumError) -> None:
    bench.behind.next_error = error

    with pytest.raises(type(error)) as raised:
        await bench.terminals.start("main")

    assert str(raised.value) == str(error)
