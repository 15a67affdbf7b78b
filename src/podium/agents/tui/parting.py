"""How a program in a pane is ended for good, before its home is laid out anew."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress

from podium.agents.tui.capturing import look
from podium.agents.tui.control import Control
from podium.domain.errors import NotPossibleNow

_LONGEST_SECONDS = 15.0
"""What started it gives it two to leave, and kills its whole tree then."""
_PAUSE_SECONDS = 0.02


async def end_program(control: Control, pane: str, seconds: float = _LONGEST_SECONDS) -> None:
    """End what runs in the pane. On return all that has its terminal has ended, and the pane still stands.

    It is asked to leave, after so many seconds killed. Harmless when it has ended. Raises `NotPossibleNow` when it does not end, and `PaneGone`.
    """
    for signum, patience in ((signal.SIGHUP, seconds), (signal.SIGKILL, _LONGEST_SECONDS)):
        if (await look(control, pane)).dead:
            return
        (answer,) = await control.ask(f"display-message -p -t {pane} '#{{pane_pid}}'")
        pid = int(answer)
        with suppress(ProcessLookupError):
            os.kill(pid, signum)
        if await _is_gone(control, pane, pid, patience):
            return
    raise NotPossibleNow(
        f"the program in pane {pane} does not end; end what holds its terminal, then retry"
    )


async def _is_gone(control: Control, pane: str, pid: int, seconds: float) -> bool:
    """Whether pane and process end in time. tmux calls a pane dead once its terminal is closed, which is a moment earlier."""
    give_up_at = asyncio.get_running_loop().time() + seconds
    while asyncio.get_running_loop().time() < give_up_at:
        if (await look(control, pane)).dead and not _exists(pid):
            return True
        await asyncio.sleep(_PAUSE_SECONDS)
    return False


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
