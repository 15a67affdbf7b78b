"""Each mechanism in turn, for tests that confine."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from podium.sandbox import ProcessLauncher
from podium.sandbox.confining.canary import BUBBLEWRAP, LANDLOCK, Mechanism
from tests.integration.sandbox.confined import Place, launcher_by, mechanism_here


@pytest.fixture(params=[BUBBLEWRAP, LANDLOCK])
def mechanism(request: pytest.FixtureRequest) -> Mechanism:
    return mechanism_here(request.param)


@pytest.fixture
def launcher(mechanism: Mechanism) -> ProcessLauncher:
    return launcher_by(mechanism)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    if len(os.fsencode(tmp_path)) < 85:
        yield Place(tmp_path)
        return
    with tempfile.TemporaryDirectory(dir="/tmp") as short:  # for the sockets in it
        yield Place(Path(short))
