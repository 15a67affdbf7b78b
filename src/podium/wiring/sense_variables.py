"""Variables that the sense loop reads."""

from __future__ import annotations

from collections.abc import Mapping

MODE_VARIABLE = "GMX_ORCH_MODE"
"""Lowers the mode of the loop, and never raises it."""
SCHEDULED_VARIABLE = "PODIUM_SENSE_SCHEDULED"
"""Set by a scheduler: a tick plans only when something changed."""


def is_scheduled(environ: Mapping[str, str]) -> bool:
    return environ.get(SCHEDULED_VARIABLE, "") not in ("", "0")
