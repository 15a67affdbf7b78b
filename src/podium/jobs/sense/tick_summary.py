"""SUMMARY line of a tick. Imports neither pydantic nor YAML: an idle tick uses it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def summary_line(
    *,
    mode: str,
    tick: int,
    counts: Mapping[str, int],
    idle_ticks: int,
    tokens: int,
    status: str,
    candidates: int = 0,
    skipped: int = 0,
    no_plan: str = "",
    created: Sequence[str] = (),
) -> str:
    """The line without its time. `no_plan` is said only where no plan is not the same as nothing to do."""
    sources = "".join(f"{name}={count}, " for name, count in counts.items())
    unplanned = f"No_Plan={no_plan}, " if no_plan else ""
    return (
        f"SUMMARY Mode={mode}, Tick={tick}, {sources}Candidates={candidates}, Skipped={skipped}, "
        f"Idle_Ticks={idle_ticks}, Tokens={tokens}, {unplanned}GMX_Call_Status={status}, "
        f"WOs_Created={len(created)}, WO_IDs=[{', '.join(created)}]"
    )
