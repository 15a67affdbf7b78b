"""Context of a pack's own code beside its arguments."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from podium.core.packs import Pack


@dataclass(frozen=True)
class PackScope:
    """The surroundings of one performed call, for a handler in a pack's folder."""

    key: str
    """The idempotency key: what is done twice under one key must have happened once."""
    tool: str
    now: datetime
    """In UTC."""
    settings: Mapping[str, str] = field(repr=False)
    """The settings that the registry declares, with their values; secrets are among them."""
    folder: Path
    """The pack's own files. Not to be written to."""
    state: Path
    """For files that the pack keeps: private, and there."""
    timeout_seconds: float
    """After this the handler is cancelled."""
    planned_at: datetime | None = None
    """Time at which the plan of this call was shown to people. Later changes are not what they approved."""


PackFunction = Callable[[dict[str, Any], PackScope], Awaitable[dict[str, Any]]]
"""Performs a tool. Raises `ToolBroke` with a sentence that says what to do."""

RowReader = Callable[
    [str, dict[str, Any], tuple[str, ...], PackScope], Awaitable[dict[str, Any] | None]
]
"""Reads one row: table, column → value, columns to give (none: all), scope. None: no such row."""


def settings_of(pack: Pack, environ: Mapping[str, str]) -> dict[str, str]:
    """The declared settings, each with its value in `environ` or else its default."""
    return {
        setting.name: environ.get(setting.name) or setting.default
        for setting in pack.registry.settings
    }
