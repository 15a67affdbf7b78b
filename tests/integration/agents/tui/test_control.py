"""Commands over one connection: each in its time, each with its own answer, and again after a loss."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from podium.agents.tui import look
from podium.agents.tui.control import LineLost, PaneGone, ServerGone, TmuxRefused, quoted
from podium.core.errors import TimedOut
from podium.sandbox.guard.processes import entry_of
from podium.testing import retry_until, retry_until_blocking
from tests.integration.agents.tui.tmux_harness import Harness, a_server, client_of
from tests.unit.sandbox.trees import ROOT


async def test_a_hundred_questions_at_once_get_their_own_answers(harness: Harness) -> None:
    asked = (harness.control.ask(f"display-message -p {number}") for number in range(100))
    assert await asyncio.gather(*asked) == [[str(number)] for number in range(100)]


async def test_every_byte_that_a_word_can_hold_arrives(harness: Harness) -> None:
    text = "".join(map(chr, range(1, 0x300))) + "🎭 `$(id)` #{pid} ~ \\ ' \" ; {}"
    await harness.control.run(f"set-buffer -b word -- {quoted(text)}")
    target = harness.root / "word"
    await harness.control.run(f"save-buffer -b word {quoted(str(target))}")
    assert target.read_bytes() == text.encode()


async def test_tmux_says_no_in_its_own_words(harness: Harness) -> None:
    with pytest.raises(TmuxRefused, match="unknown command"):
        await harness.control.ask("make-coffee")
    with pytest.raises(PaneGone, match="%99"):
        await harness.control.run("display-message -p fine ; capture-pane -t %99")
    assert await harness.control.ask("display-message -p 'still here'") == ["still here"]


async def test_a_newline_never_becomes_a_second_command(harness: Harness) -> None:
    with pytest.raises(ValueError, match="quote it"):
        await harness.control.ask("display-message -p a\nkill-server")


async def test_a_forged_end_on_the_screen_forges_no_answer(harness: Harness) -> None:
    forged = 'd=$(date +%s); for n in $(seq 0 2000); do echo "%end $d $n 1"; done; echo done; exec sleep 1000'
    (pane,) = await harness.control.ask(f"split-window -P -F '#{{pane_id}}' {quoted(forged)}")
    await harness.shows(pane, "done")
    lines = await harness.control.ask(f"capture-pane -p -S - -t {pane}")
    assert len([line for line in lines if line.startswith("%end")]) == 2001
    assert await harness.control.ask("display-message -p next") == ["next"]


async def test_a_server_that_hangs_is_given_up_and_its_late_answer_is_nobody_elses(
    harness: Harness,
) -> None:
    server = (await harness.server.identity()).pid
    os.kill(server, signal.SIGSTOP)
    with pytest.raises(TimedOut, match=r"'display-message' within 0\.2 s"):
        await harness.control.ask("display-message -p late", seconds=0.2)
    os.kill(server, signal.SIGCONT)
    assert await harness.control.ask("display-message -p next") == ["next"]


async def test_a_lost_connection_is_made_again(harness: Harness) -> None:
    client, server = await client_of(harness), (await harness.server.identity()).pid
    os.kill(server, signal.SIGSTOP)
    asking = asyncio.ensure_future(harness.control.ask("display-message -p lost"))
    await asyncio.sleep(0)
    os.kill(client, signal.SIGKILL)
    with pytest.raises(LineLost):
        await asking
    os.kill(server, signal.SIGCONT)
    assert await harness.control.ask("display-message -p again") == ["again"]


async def test_a_client_that_does_not_read_holds_up_no_program(harness: Harness) -> None:
    """Without `no-output` the program froze until the client was gone."""
    assert await harness.control.ask("display-message -p connected") == ["connected"]
    done = harness.root / "done"
    flood = f"i=0; while [ $i -lt 30000 ]; do echo {'x' * 90}; i=$((i+1)); done; touch {done}; exec sleep 1000"
    (pane,) = await harness.control.ask(f"split-window -P -F '#{{pane_id}}' {quoted(flood)}")
    retry_until_blocking(done.exists)  # the loop stands still meanwhile, and reads nothing
    assert "xxx" in (await look(harness.control, pane)).text


async def test_detaching_leaves_no_client_and_the_server_running(harness: Harness) -> None:
    client, server = await client_of(harness), await harness.server.identity()
    await harness.server.close()
    assert entry_of(client) is None
    assert await harness.server.identity() == server


@pytest.mark.soak
async def test_a_podium_that_ends_without_detaching_does_not_hang_and_leaves_no_client(
    harness: Harness,
) -> None:
    podium = [sys.executable, "-c", PODIUM, str(harness.root)]
    assert subprocess.check_output(podium, cwd=ROOT, timeout=300) == b"here\n"

    async def is_alone() -> bool:
        return len(await harness.control.ask("list-clients")) == 1

    await retry_until(is_alone)


PODIUM = """
import asyncio, sys
from pathlib import Path
from tests.integration.agents.tui.tmux_harness import a_server
async def main():
    print(*await a_server(Path(sys.argv[1])).control.ask("display-message -p here"))
asyncio.run(main())
"""


async def test_a_connection_belongs_to_its_session_before_anything_is_asked(
    harness: Harness,
) -> None:
    """tmux 3.3a answers clients that are still coming in, and such a client is nobody's."""
    for _ in range(10):
        await harness.server.close()
        assert len(await harness.control.ask("list-clients")) == 1


async def test_missing_server_is_reported(root: Path) -> None:
    with pytest.raises(ServerGone, match="start the terminals again"):
        await a_server(root).control.ask("list-panes")


async def test_a_question_that_is_cancelled_while_connecting_leaves_the_connection_to_others(
    harness: Harness,
) -> None:
    await harness.server.close()
    asking = asyncio.ensure_future(harness.control.ask("display-message -p one"))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert await harness.control.ask("display-message -p two") == ["two"]
    assert len(await harness.control.ask("list-clients")) == 1
