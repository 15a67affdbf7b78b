"""Pull request of several tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from podium.core.forge import check_ending
from podium.core.model import Json
from podium.jobs.pipeline.agent_text import in_code
from podium.jobs.pipeline.pull_request import MAX_BODY, quiet

_STATUS = {"merged": "merged", "left_out": "left out"}


def body_of_batch(
    *,
    tasks: Sequence[Mapping[str, Json]],
    evidence: Sequence[Mapping[str, Json]],
    usd: float,
    run_id: str,
) -> str:
    """The body in Markdown: every task with its merge, and the checks of the newest commit."""
    merged = sum(task["status"] == "merged" for task in tasks)
    lines = [
        f"{merged} of {len(tasks)} tasks, merged one after the other; the checks ran on each on top of those before it.",
        "",
        "## Tasks",
        "",
        "| # | Task | Result | Merge | Branch | Cost |",
        "| ---: | --- | --- | --- | --- | ---: |",
        *(_row(task) for task in tasks),
        "",
        "## Checks of the last merge",
        "",
        *(
            [
                f"- {in_code(str(check.get('command', '')), 160)} {check_ending(check)}"
                for check in evidence
            ]
            or ["No checks were run; this change is untested."]
        ),
        "",
        "---",
        f"Created by Podium in run {in_code(run_id, 80)}; cost ${usd:.2f}.",
    ]
    return "\n".join(lines)[:MAX_BODY] + "\n"


def _row(task: Mapping[str, Json]) -> str:
    status = str(task["status"])
    why = f": {_cell(str(task['why']))}" if status != "merged" and task["why"] else ""
    merge = in_code(str(task["merge"])[:12]) if task["merge"] else ""
    branch = in_code(str(task["branch"])) if task["branch"] else ""
    text = _cell(str(task["task"]))
    return f"| {task['id']} | {text} | {_STATUS.get(status, status)}{why} | {merge} | {branch} | ${task['usd']:.2f} |"


def _cell(text: str) -> str:
    return quiet(" ".join(text.split())[:200]).replace("|", "\\|")
