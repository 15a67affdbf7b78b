"""Temporary store, removed at the end."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from podium.app.app import Podium
from podium.store import SqlStore


@asynccontextmanager
async def scratch_store(podium: Podium, vault: Path | None = None) -> AsyncIterator[SqlStore]:
    """A store in a folder for temporary files, gone at the end."""
    with tempfile.TemporaryDirectory(prefix="podium-doctor-") as folder:
        place = Path(folder)
        store = await SqlStore.open(
            place, clock=podium.clock, ids=podium.ids, key_dir=vault or place / "vault"
        )
        try:
            yield store
        finally:
            await store.close()
