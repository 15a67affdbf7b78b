"""Without a tmux that will do, a person is told what to install."""

from __future__ import annotations

import pytest

from podium.agents.tui import TerminalSettings, TmuxServer, require_tmux
from podium.agents.tui.server import is_new_enough
from podium.core.errors import ToolMissing
from podium.core.processes import ProcessExit
from podium.testing import FakeLauncher


@pytest.mark.parametrize(
    ("text", "enough"),
    [
        ("tmux 3.2", True),
        ("tmux 3.3a", True),
        ("tmux next-3.6", True),
        ("tmux 10.0", True),
        ("tmux master", True),
        ("tmux 3.1c", False),
        ("tmux 2.9a", False),
        ("", False),
        ("usage: tmux", False),
    ],
)
def test_versions_are_distinguished(text: str, enough: bool) -> None:
    assert is_new_enough(text) is enough


async def test_a_missing_tmux_says_what_to_install() -> None:
    with pytest.raises(ToolMissing, match="apt-get install tmux") as error:
        await require_tmux(FakeLauncher())
    assert "brew install tmux" in str(error.value)


async def test_a_tmux_too_old_is_not_started_at_all(tmp_path: object) -> None:
    launcher = FakeLauncher({("tmux",): ProcessExit(exit_code=0, stdout=b"tmux 3.1c\n")})
    settings = TerminalSettings.model_validate(
        {"socket": f"{tmp_path}/s", "folder": f"{tmp_path}/own"}
    )
    with pytest.raises(ToolMissing, match=r"'tmux 3.1c'.*3\.2 or newer"):
        await TmuxServer(launcher, settings, lambda name: 0).come_up()
    assert len(launcher.spawns) == 1
