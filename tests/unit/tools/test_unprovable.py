"""Nothing is done that could not be proved afterwards."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from podium.core.decisions import Effect
from podium.core.errors import StoreUnusable
from podium.store import SqlStore
from podium.testing import FixedClock, SteadyIds
from tests.unit.tools.toolbox_harness import always, make_harness


async def test_a_call_is_not_performed_when_its_receipt_could_not_be_sealed(
    tmp_path: Path,
) -> None:
    vault = tmp_path / "vault"
    store = await SqlStore.open(
        tmp_path / "state", clock=FixedClock(), ids=SteadyIds(), key_dir=vault
    )
    harness = make_harness(tmp_path, store=store, gate=always(Effect.ALLOW))
    await harness.use("write_file", path="first.txt", content="x")
    await store.close()
    shutil.rmtree(vault)
    again = await SqlStore.open(
        tmp_path / "state", clock=FixedClock(), ids=SteadyIds(), key_dir=vault
    )
    harness = make_harness(tmp_path, store=again, gate=always(Effect.ALLOW))
    with pytest.raises(StoreUnusable, match="key of the receipts"):
        await harness.use("write_file", 1, path="second.txt", content="x")
    assert not (harness.root / "second.txt").exists()
    await again.close()
