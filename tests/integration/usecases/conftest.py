"""Fixtures of the use-case tests."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.unit.usecases.scene import Scene


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    scene = Scene()
    yield scene
    await scene.store.close()
