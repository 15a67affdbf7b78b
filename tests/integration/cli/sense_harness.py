"""A root with the layout that the sense loop expects, and something in it that is broken."""

from __future__ import annotations

import json
from typing import Any

from tests.integration.cli.command_runner import CommandRunner

HEALTH = "g/telemetry/health_check_latest.json"
INBOX = "bridge/inbox/CLC"
SUMMARY_END = "GMX_Call_Status={status}, WOs_Created=0, WO_IDs=[]"


def lay_out(
    cli: CommandRunner, *, mode: str = "", more: str = "", failing: tuple[str, ...] = ()
) -> None:
    """Scaffold the project, planned for by rules. `more` are further lines of `flows: sense:`."""
    assert cli.run("sense", "scaffold").code == 0
    output = f"    mode: {mode}\n" if mode else ""
    cli.says(f"flows:\n  sense:\n    planner: rules\n{output}{more}")
    break_down(cli, *failing)


def break_down(cli: CommandRunner, *names: str) -> None:
    """Let the health check say that these failed, and nothing else."""
    checks = [{"name": name, "status": "failed", "message": "no answer"} for name in names]
    (cli.project / HEALTH).write_text(json.dumps({"status": "known", "checks": checks}))


def ticked(cli: CommandRunner, *words: str) -> Any:
    """Run one tick and return its JSON result."""
    result = cli.run("sense", "--once", "--json", *words)
    assert result.code == 0, result.err
    return result.json


def delivered(cli: CommandRunner) -> list[str]:
    return sorted(path.name for path in (cli.project / INBOX).iterdir())
