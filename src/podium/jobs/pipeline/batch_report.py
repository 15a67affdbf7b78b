"""Pull request of several tasks, or of the best attempt at one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from podium.core.forge import check_ending
from podium.core.model import Json
from podium.jobs.pipeline.agent_text import fenced, in_code, shortened, whole
from podium.jobs.pipeline.attempts import HEADINGS, Attempt, cells
from podium.jobs.pipeline.pull_request import MAX_BODY, quiet

_MAX_TEXT = 6_000
_STATUS = {"merged": "merged", "left_out": "left out"}


def body_of_batch(
    *,
    task: str,
    tasks: Sequence[Mapping[str, Json]],
    attempts: Sequence[Attempt],
    remarks: Sequence[tuple[str, Sequence[str], Sequence[str]]],
    evidence: Sequence[Mapping[str, Json]],
    usd: float,
    run_id: str,
) -> str:
    """The body in Markdown: every task with its merge, or how the attempts compare, and the checks of the last merge.

    `remarks` have the title of each merged task, the proof of its fix, and what it changes of tests and checks.
    """
    lines = [
        *(_attempt_lines(task, attempts) if attempts else _task_lines(tasks)),
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
        *_remark_lines("Proof of the fix", [(title, proof) for title, proof, _ in remarks]),
        *_remark_lines(
            "Changed tests and checks", [(title, integrity) for title, _, integrity in remarks]
        ),
        "",
        "---",
        f"Created by Podium in run {in_code(run_id, 80)}; cost ${usd:.2f}.",
    ]
    return "\n".join(lines)[:MAX_BODY] + "\n"


def _remark_lines(heading: str, remarks: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    rows = [f"- {quiet(f'{title}: {line}')}" for title, lines in remarks for line in lines]
    return ["", f"## {heading}", "", *rows] if rows else []


def _task_lines(tasks: Sequence[Mapping[str, Json]]) -> list[str]:
    merged = sum(task["status"] == "merged" for task in tasks)
    return [
        f"{merged} of {len(tasks)} tasks, merged one after the other; the checks ran on top of those before.",
        "",
        "## Tasks",
        "",
        "| # | Task | Result | Merge | Branch | Cost |",
        "| ---: | --- | --- | --- | --- | ---: |",
        *(_row(task) for task in tasks),
    ]


def _attempt_lines(task: str, attempts: Sequence[Attempt]) -> list[str]:
    return [
        "## Task",
        "",
        fenced(shortened(whole(task.strip()[:20_000]), _MAX_TEXT)),
        "",
        "## Attempts",
        "",
        "This is the first of them: checks, proof, findings, size of the change and cost decide, in this order. "
        "The other branches are kept where the run was.",
        "",
        f"| {' | '.join(heading.capitalize() for heading in HEADINGS)} |",
        f"|{' --- |' * len(HEADINGS)}",
        *(f"| {' | '.join(map(_cell, cells(attempt)))} |" for attempt in attempts),
    ]


def _row(task: Mapping[str, Json]) -> str:
    status = str(task["status"])
    why = f": {_cell(str(task['why']))}" if status != "merged" and task["why"] else ""
    merge = in_code(str(task["merge"])[:12]) if task["merge"] else ""
    branch = in_code(str(task["branch"])) if task["branch"] else ""
    text = _cell(str(task["task"]))
    return f"| {task['id']} | {text} | {_STATUS.get(status, status)}{why} | {merge} | {branch} | ${task['usd']:.2f} |"


def _cell(text: str) -> str:
    return quiet(" ".join(text.split())[:200]).replace("|", "\\|")
