"""A root with the layout that the sense loop expects, and something in it that is broken."""

from __future__ import annotations

import json
from typing import Any

from tests.integration.cli.desk import Desk

HEALTH = "g/telemetry/health_check_latest.json"
INBOX = "bridge/inbox/CLC"
SUMMARY_END = "GMX_Call_Status={status}, WOs_Created=0, WO_IDs=[]"


def lay_out(desk: Desk, *, mode: str = "", more: str = "", failing: tuple[str, ...] = ()) -> None:
    """Scaffold the project, planned for by rules. `more` are further lines of `flows: sense:`."""
    assert desk.run("sense", "scaffold").code == 0
    said = f"    mode: {mode}\n" if mode else ""
    desk.says(f"flows:\n  sense:\n    planner: rules\n{said}{more}")
    break_down(desk, *failing)


def break_down(desk: Desk, *names: str) -> None:
    """Let the health check say that these failed, and nothing else."""
    checks = [{"name": name, "status": "failed", "message": "no answer"} for name in names]
    (desk.project / HEALTH).write_text(json.dumps({"status": "known", "checks": checks}))


def ticked(desk: Desk, *words: str) -> Any:
    """Run one tick and return its JSON result."""
    said = desk.run("sense", "--once", "--json", *words)
    assert said.code == 0, said.err
    return said.json


def delivered(desk: Desk) -> list[str]:
    return sorted(path.name for path in (desk.project / INBOX).iterdir())
