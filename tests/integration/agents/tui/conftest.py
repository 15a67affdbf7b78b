"""One tmux server for each test."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.integration.agents.tui.tmux_harness import Harness, housed, short_folder


@pytest.fixture
def root() -> Iterator[Path]:
    if shutil.which("tmux") is None:
        pytest.skip("no tmux on this machine; `sh scripts/need tmux` installs it")
    with short_folder() as folder:
        yield Path(folder)


@pytest.fixture
async def harness(root: Path) -> AsyncIterator[Harness]:
    async with housed(root) as made:
        yield made
