"""Two programs that one hands blocks to the other, and the clock between them."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from podium.core.turns import TAG

PANE = Path(__file__).with_name("handoff_pane.py")
WAIT_SECONDS = 60.0
LINES = 20


@dataclass
class Ends:
    """The mouth, which prints blocks, and the ear, which takes them: programs that talk over sockets of their own."""

    folder: Path
    name: str
    _reported: dict[str, asyncio.Queue[dict[str, str | float]]] = field(default_factory=dict)
    _sockets: dict[str, socket.socket] = field(default_factory=dict)

    def open(self) -> None:
        """Listen to both. They are started by whoever carries between them."""
        self.transcripts.mkdir()
        for end in ("mouth", "ear"):
            line = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            line.bind(str(self.folder / f"{self.name}.{end}.bench"))
            line.setblocking(False)
            self._sockets[end] = line
            self._reported[end] = asyncio.Queue()
            asyncio.get_running_loop().add_reader(line, self._received, end)

    @property
    def transcripts(self) -> Path:
        """Folder in which the mouth writes down what it says."""
        return self.folder / f"{self.name}.said"

    def command(self, end: str) -> tuple[str, ...]:
        own, bench = (str(self.folder / f"{self.name}.{end}{kind}") for kind in ("", ".bench"))
        transcript = str(self.transcripts / f"{end}.jsonl")
        return (sys.executable, "-IS", str(PANE), own, bench, transcript)

    async def are_up(self) -> None:
        for end in ("mouth", "ear"):
            await self._next(end, "up")

    async def handoff(self, number: int) -> float:
        """Seconds from the block's last byte printed until all of it was given and submitted."""
        block = a_block(number)
        printed = block.replace("\n", "\r\n") + "\r\n"
        own = str(self.folder / f"{self.name}.mouth")
        self._sockets["mouth"].sendto(printed.encode(), own)
        output = await self._next("mouth", "printed")
        taken = await self._next("ear", "submitted")
        if f"step {number}.{LINES}" not in str(taken["given"]):
            raise RuntimeError(f"block {number} did not arrive whole: {taken['given']!r}")
        return float(taken["at"]) - float(output["at"])

    def close(self) -> None:
        for line in self._sockets.values():
            asyncio.get_running_loop().remove_reader(line)
            line.close()

    def _received(self, end: str) -> None:
        self._reported[end].put_nowait(json.loads(self._sockets[end].recv(1 << 20)))

    async def _next(self, end: str, what: str) -> dict[str, str | float]:
        async with asyncio.timeout(WAIT_SECONDS):
            while (output := await self._reported[end].get())["what"] != what:
                pass
        return output


def a_block(number: int) -> str:
    """Of twenty lines, 1.4 KB."""
    steps = (
        f"step {number}.{step} - read the file, change it, run the tests, say what came of it"
        for step in range(1, LINES + 1)
    )
    header = f'[[{TAG} {{"to":"EXECUTER","type":"plan","id":"T-{number:08}"}}]]'
    return "\n".join((header, "<PLAN>", *steps, "</PLAN>", f"[[/{TAG}]]"))


@dataclass(frozen=True)
class Carrier:
    """One way to carry blocks from the mouth to the ear."""

    name: str
    handoff: Callable[[int], Awaitable[float]]
    """Carries block so and so, and gives the seconds from its last byte printed until it was submitted."""
    stop: Callable[[], Awaitable[None]]
