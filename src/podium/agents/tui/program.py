"""Which tmux there is, and what to do when there is none that will do."""

from __future__ import annotations

import re

from podium.domain.errors import ToolMissing
from podium.domain.launching import ProcessLimits, Spawn
from podium.ports import Launcher

OLDEST = (3, 2)
"""The first that can keep a client from getting every pane's output, and give each pane variables of its own."""

_INSTALL = "install tmux 3.2 or newer (Debian, Ubuntu: sudo apt-get install tmux; macOS: brew install tmux), or do without terminals: `podium duet up --transport headless`"
_SECONDS = 30.0


async def require_tmux(launcher: Launcher, program: str = "tmux") -> str:
    """The version of tmux as it names itself. Raises `ToolMissing` when there is none, or only one too old."""
    spawn = Spawn(argv=(program, "-V"), cwd="/", limits=ProcessLimits(seconds=_SECONDS))
    try:
        ended = await launcher.run(spawn)
    except ToolMissing as error:
        raise ToolMissing(f"{program!r} is not there; {_INSTALL}") from error
    said = ended.stdout.decode(errors="replace").strip()
    if ended.exit_code != 0 or not is_new_enough(said):
        raise ToolMissing(f"{program!r} is {said or 'of no known version'!r}; {_INSTALL}")
    return said


def is_new_enough(said: str) -> bool:
    """Whether this version will do. Builds without a number, as `tmux master`, are newer than any."""
    found = re.search(r"(\d+)\.(\d+)", said)
    if found is None:
        return bool(re.fullmatch(r"tmux (master|openbsd.*)", said))
    return (int(found[1]), int(found[2])) >= OLDEST
