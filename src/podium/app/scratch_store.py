"""Temporary store, removed at the end."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from podium.app.app import Podium
from podium.store import SqlStore


@asynccontextmanager
async def scratch_store(podium: Podium, key_dir: Path | None = None) -> AsyncIterator[SqlStore]:
    """A store in a folder for temporary files, gone at the end."""
    with tempfile.TemporaryDirectory(prefix="podium-doctor-") as folder:
        path = Path(folder)
        store = await SqlStore.open(
            path, clock=podium.clock, ids=podium.ids, key_dir=key_dir or path / "vault"
        )
        try:
            yield store
        finally:
            await store.close()
