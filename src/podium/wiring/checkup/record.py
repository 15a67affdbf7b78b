"""The database and the key of the receipts."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from podium.domain.errors import PodiumError
from podium.journal import SqlStore, quick_check
from podium.wiring.checkup.finding import Finding, bad, good, weak
from podium.wiring.podium import Podium

LITTLE_SPACE_BYTES = 500_000_000
TOO_LITTLE_SPACE_BYTES = 20_000_000


async def check_database(podium: Podium) -> Finding:
    """The project's own file is opened and looked through; without one, a fresh one is tried."""
    path = podium.database
    try:
        if not path.exists():
            return await _check_fresh(podium)
        await podium.store()
        verdict = await asyncio.to_thread(quick_check, path)
    except PodiumError as error:
        return bad("database", str(error), "put the file right as said, or move it away")
    if verdict != "ok":
        return bad(
            "database",
            f"{path}: {verdict}",
            "restore it from a backup, or move it away and start afresh",
        )
    return good("database", f"{path} is whole ({path.stat().st_size // 1000} kB)")


async def _check_fresh(podium: Podium) -> Finding:
    async with scratch_store(podium):
        return good("database", "none here yet; a fresh one can be made")


async def check_space(podium: Podium) -> Finding:
    place = _nearest(podium.folders.state)
    free = shutil.disk_usage(place).free
    says = f"{free // 1_000_000} MB free at {place}"
    if free < TOO_LITTLE_SPACE_BYTES:
        return bad("space", says, "make room: nothing can be recorded on a full disk")
    if free < LITTLE_SPACE_BYTES:
        return weak("space", says, "make room before long work")
    return good("space", says)


async def check_receipt_key(podium: Podium) -> Finding:
    """The key must be readable and whole, or its folder such that one can be made."""
    key = podium.vault / "receipt.key"
    if not key.exists():
        place = _nearest(podium.vault)
        if not os.access(place, os.W_OK | os.X_OK):
            return bad("receipts", f"{place} may not be written", f"let yourself write to {place}")
        return good("receipts", f"no key yet; the first receipt makes one in {key.parent.parent}")
    try:
        async with scratch_store(podium, podium.vault) as store:
            await asyncio.to_thread(lambda: store.sealer)
    except (PodiumError, OSError) as error:
        return bad("receipts", str(error), "restore the key: without it no receipt can be proved")
    return good("receipts", f"key at {key}")


def _nearest(folder: Path) -> Path:
    """The folder, or the nearest one above it that is there."""
    while not folder.exists():
        folder = folder.parent
    return folder


@asynccontextmanager
async def scratch_store(podium: Podium, vault: Path | None = None) -> AsyncIterator[SqlStore]:
    """A store in a folder for temporary files, gone at the end."""
    with tempfile.TemporaryDirectory(prefix="podium-doctor-") as folder:
        place = Path(folder)
        store = await SqlStore.open(
            place, clock=podium.clock, ids=podium.ids, vault=vault or place / "vault"
        )
        try:
            yield store
        finally:
            await store.close()
