"""Set-up shared by the roofing pack's tests: the surroundings of a call, as Podium would make them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from podium.tools.packs import PackScope

FOLDER = Path(__file__).parents[4] / "packs" / "roofing"
NOW = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)


def pack_scope(
    state: Path,
    settings: Mapping[str, str] | None = None,
    *,
    key: str = "run_1:call:1",
    tool: str = "leads.create",
    now: datetime = NOW,
    timeout_seconds: float = 30.0,
) -> PackScope:
    return PackScope(
        key=key,
        tool=tool,
        now=now,
        settings=dict(settings or {}),
        folder=FOLDER,
        state=state,
        timeout_seconds=timeout_seconds,
    )
