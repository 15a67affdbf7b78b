"""The last ticks of a root, as the loop's telemetry has them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from podium.bridge.sources.finding import find, read_end
from podium.bridge.sources.kit import NotSensed
from podium.domain.sensing import TickOutcome

_END_BYTES = 400_000


def last_ticks(root: Path, telemetry: str, *, most: int = 20) -> tuple[TickOutcome, ...]:
    """Newest first, of the file that is written to now. Lines of anybody else are passed over."""
    found = find(root, telemetry, lambda _: False)
    if found.fault is not None:
        return ()
    try:
        end, _ = read_end(root, found, _END_BYTES)
    except NotSensed:
        return ()
    ticks = []
    for outcome in _read(end):
        ticks.append(outcome)
        if len(ticks) == most:
            break
    return tuple(ticks)


def _read(end: bytes) -> Iterator[TickOutcome]:
    for line in reversed(end.splitlines()):
        try:
            document = json.loads(line)
            document.pop("event", None)
            yield TickOutcome.model_validate_json(json.dumps(document))
        except (ValueError, AttributeError, TypeError, RecursionError, ValidationError):
            continue
