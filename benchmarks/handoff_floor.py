"""The floor of a handoff: two bare ptys, and nothing between them but a search for the closing tag."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from benchmarks.handoff_harness import Carrier, Ends
from benchmarks.handoff_pane import CLOSING


async def bare_ptys(folder: Path) -> Carrier:
    ends = Ends(folder, "floor")
    ends.open()
    loop = asyncio.get_running_loop()
    masters, programs = {}, []
    for end in ("mouth", "ear"):
        master, slave = os.openpty()
        command = ends.command(end)
        programs.append(
            await asyncio.create_subprocess_exec(*command, stdin=slave, stdout=slave, stderr=slave)
        )
        os.close(slave)
        masters[end] = master
    seen = bytearray()

    def carry() -> None:
        seen.extend(os.read(masters["mouth"], 1 << 16))
        if CLOSING in seen:
            begin = seen.index(b"[[")
            end = seen.index(CLOSING) + len(CLOSING)
            block = bytes(seen[begin:end]).replace(b"\r\n", b"\n")
            os.write(masters["ear"], b"\x1b[200~" + block + b"\x1b[201~\r")
            seen.clear()

    loop.add_reader(masters["mouth"], carry)
    loop.add_reader(masters["ear"], lambda: os.read(masters["ear"], 1 << 16))

    async def stop() -> None:
        for master in masters.values():
            loop.remove_reader(master)
        for program in programs:
            program.kill()
            await program.wait()
        for master in masters.values():
            os.close(master)
        ends.close()

    await ends.are_up()
    return Carrier("floor", ends.handoff, stop)
