"""Confined programs in panes of a real tmux server, which outlives the Podium that started them."""

from __future__ import annotations

import asyncio
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from podium.agents.tui import TmuxServer
from podium.core.processes import ProcessSpec
from podium.sandbox.confining.canary import BUBBLEWRAP, LANDLOCK, Mechanism
from podium.testing import retry_until
from tests.integration.agents.tui.tmux_harness import Harness, a_server, short_folder
from tests.integration.sandbox.confined import Place, mechanism_here
from tests.integration.sandbox.test_on_terminal_reach import ASK, host
from tests.soaking import in_soak
from tests.unit.sandbox.trees import ESCAPES, ROOT, alive, new_token


@pytest.fixture(params=[BUBBLEWRAP, in_soak(LANDLOCK)])
def mechanism(request: pytest.FixtureRequest) -> Mechanism:
    """Both are tried in test_on_terminal.py, and attacked on a terminal in tests/attacks."""
    return mechanism_here(request.param)


PANE = "%0"

STARTER = """
import asyncio, os, signal, sys
from pathlib import Path
from podium.agents.tui import Panes, Program
from podium.core.processes import ProcessSpec
from podium.sandbox import ProcessLauncher, serve_network
from tests.integration.agents.tui.tmux_harness import a_server
from tests.integration.sandbox.confined import mechanisms

async def start(root, mechanism, spawn):
    server = a_server(Path(root))
    await server.come_up()
    launcher = ProcessLauncher(serve=serve_network({}), mechanism=mechanisms()[mechanism])
    argv = await launcher.on_terminal(spawn)
    panes = Panes(server.control, server.settings)
    await panes.open(Program(name="planner", argv=argv, cwd=Path(spawn.cwd)))
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(start(sys.argv[1], sys.argv[2], ProcessSpec.model_validate_json(sys.argv[3])))
"""

TRIES = (
    ASK
    + """
import signal
def connect(path):
    line = socket.socket(socket.AF_UNIX)
    line.connect(path)
def ask_tmux(path):
    return subprocess.run(["tmux", "-S", path, "list-panes"], capture_output=True).returncode == 0
def resized(number, frame):
    print("columns", os.get_terminal_size(0).columns, flush=True)
signal.signal(signal.SIGWINCH, resized)
signal.signal(signal.SIGINT, lambda *_: print("interrupted", flush=True))
print("up", flush=True)
for line in sys.stdin:
    if line.strip() == "get":
        print(get(int(sys.argv[3])), flush=True)
    elif line.strip() == "try":
        attempt("connect to tmux", lambda: connect(sys.argv[4]))
        attempt("ask tmux", lambda: ask_tmux(sys.argv[4]))
        attempt("hear of tmux", lambda: "TMUX" in os.environ or "TMUX_PANE" in os.environ)
        attempt("change something outside", lambda: write(outside + "/file"))
        print("managed:", done, flush=True)
    else:
        break
"""
)


@pytest.fixture
def root() -> Iterator[Path]:
    if shutil.which("tmux") is None:
        pytest.skip("no tmux on this machine; `sh scripts/need tmux` installs it")
    with short_folder() as folder:
        yield Path(folder)


@asynccontextmanager
async def left_by_a_dead_podium(
    root: Path, mechanism: Mechanism, spawn: ProcessSpec
) -> AsyncIterator[Harness]:
    """The server with the program in its pane, after who started both was killed."""
    words = [sys.executable, "-c", STARTER, str(root), mechanism.name, spawn.model_dump_json()]
    server: TmuxServer = a_server(root)
    try:
        ended = await asyncio.to_thread(
            subprocess.run, words, cwd=ROOT, capture_output=True, timeout=300
        )
        assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
        await server.come_up()
        yield Harness(server, root)
    finally:
        await server.departing()


@pytest.mark.soak
async def test_a_pane_goes_on_when_its_podium_is_killed_and_cannot_reach_its_tmux(
    mechanism: Mechanism, place: Place, root: Path
) -> None:
    async with host(b"from the listed") as port:
        confinement = place.confinement(network="listed", hosts=(f"127.0.0.1:{port}",))
        spawn = place.attempts(TRIES, str(port), str(root / "s"), confinement=confinement)
        async with left_by_a_dead_podium(root, mechanism, spawn) as harness:
            await harness.shows(PANE, "up")
            await harness.panes.press(PANE, "get", "Enter")
            await harness.shows(PANE, "from the listed")
            await harness.panes.press(PANE, "try", "Enter")
            await harness.shows(PANE, "managed: []")
            await harness.panes.resize(77, 30)
            await harness.shows(PANE, "columns 77")
            await harness.panes.press(PANE, "C-c")
            await harness.shows(PANE, "interrupted")
            await harness.panes.press(PANE, "leave", "Enter")
            await retry_until(lambda: _is_dead(harness))
    assert (place.outside / "file").read_text() == "as it was"


async def _is_dead(harness: Harness) -> bool:
    """Without its code: tmux 3.3a sometimes does not collect a pane's program for a long while."""
    return await harness.control.ask(f"display-message -p -t {PANE} '#{{pane_dead}}'") == ["1"]


@pytest.mark.sample(1)
@pytest.mark.parametrize("end", ["pane", "server"])
async def test_a_tree_dies_with_its_pane_and_with_the_server(
    mechanism: Mechanism, place: Place, root: Path, end: str
) -> None:
    token = new_token()
    code = ESCAPES + "escape(); print('up', flush=True); forever()"
    spawn = place.python(code, token)
    async with left_by_a_dead_podium(root, mechanism, spawn) as harness:
        await harness.shows(PANE, "up")
        assert alive(token)
        if end == "pane":
            await harness.control.run(f"split-window -d -t {PANE} ; kill-pane -t {PANE}")
            await retry_until(lambda: not alive(token))
    assert alive(token) == []
