"""Text of the pull request: what was asked for, what was done, and the evidence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from podium.core.forge import check_ending
from podium.core.model import Json
from podium.jobs.pipeline.agent_text import fenced, harmless, in_code, one_line, shortened, whole

MAX_TITLE = 72
MAX_BODY = 60_000
"""GitHub takes 65,536 characters."""

_MAX_ROWS = 100
_MAX_ROW = 300
_MAX_TEXT = 6_000
_SENTENCE_END = re.compile(r"(?<=[.!?])\s")
_LEADS_ELSEWHERE = re.compile(r"@(?=\w)|(?<=#)(?=\d)|(?<=\bGH-)(?=\d)", re.IGNORECASE)
_INVISIBLE = "<!-- -->"
_NOT_RUN = "No checks were run; this change is untested.\n"
_GUARDED = "This branch changes files that guard the project or run automatically:\n"


def title_of(task: str) -> str:
    """The task's first sentence, on one line of at most 72 characters."""
    text = one_line(task, 2_000)
    first = _SENTENCE_END.split(text, maxsplit=1)[0].rstrip(".")
    line = first or text or "Task"
    if len(line) <= MAX_TITLE:
        return line
    cut = line[: MAX_TITLE - 1]
    clipped = cut.rsplit(" ", 1)[0] if " " in cut[MAX_TITLE // 2 :] else cut
    return clipped.rstrip(" ,;:-") + "…"


@dataclass(frozen=True)
class _Section:
    heading: str
    text: str = ""
    rows: tuple[str, ...] = ()
    table_head: str = ""

    def within(self, most: int) -> str:
        """The section with as many rows as there is room for. Empty: there is nothing to say."""
        if not (self.text or self.rows):
            return ""
        lines = [f"## {self.heading}", "", *([self.text] if self.text else [])]
        lines += self.table_head.split("\n") if self.rows and self.table_head else []
        length = sum(len(line) + 1 for line in lines) + 40
        for number, row in enumerate(self.rows):
            length += len(row) + 1
            if length > most or number >= _MAX_ROWS:
                lines += ["", f"… and {len(self.rows) - number} more."]
                break
            lines.append(row)
        if length > most and not self.rows:
            lines[2:] = ["Too long to show here."]
        return "\n".join(lines)


def body_of(
    *,
    task: str,
    commits: Sequence[str],
    documents: Sequence[str],
    evidence: Sequence[Mapping[str, Json]],
    backlog: Sequence[str],
    usd: float,
    run_id: str,
    summary: str = "",
    proof: str = "",
    guarded: Sequence[str] = (),
    base_not_fetched: str = "",
    check_notes: Sequence[str] = (),
    base_checks: Sequence[str] = (),
    fix_proof: Sequence[str] = (),
    test_changes: Sequence[str] = (),
) -> str:
    """The body in Markdown, at most 60,000 characters. Words of agents stand in it as data.

    `evidence` holds results of checks as `evidence_file` takes them, `documents` archived paths. The
    most important comes first, and what there is no room for is counted.
    """
    foot = f"Created by Podium in run {in_code(run_id, 80)}; cost ${usd:.2f}."
    sections = (
        _Section("Task", text=fenced(shortened(whole(task.strip()[:20_000]), _MAX_TEXT))),
        _Section("Cause and change", text=_quiet_lines(summary)),
        _Section("Proof of the fix", rows=tuple(_list(fix_proof))),
        _Section("Guarded files", text=_GUARDED if guarded else "", rows=tuple(_list(guarded))),
        _Section("Changed tests and checks", rows=tuple(_list(test_changes))),
        _Section(
            "Evidence",
            text="\n".join(_about_checks(check_notes, ran=bool(evidence))),
            rows=tuple(_rows(evidence)),
            table_head=_TABLE_HEAD,
        ),
        _Section("Checks before this work", rows=tuple(_list(base_checks))),
        _Section("Verified by the developer", text=_quiet_lines(proof)),
        _Section(
            "Base not fetched",
            text=f"> {quiet(base_not_fetched)}\n\nIt may have new commits; check that this branch still merges."
            if base_not_fetched
            else "",
        ),
        _Section("Commits", rows=tuple(_list(commits))),
        _Section("Plan and reviews", rows=tuple(f"- {in_code(path)}" for path in documents)),
        _Section("Added to the backlog", rows=tuple(_list(backlog))),
    )
    parts: list[str] = []
    left = MAX_BODY - len(foot) - 1_000
    for section in sections:
        # The last sections must not lose all room to the first.
        rendered = section.within(min(left, MAX_BODY // 4))
        left -= len(rendered) + 2
        parts += [rendered] if rendered else []
    return "\n\n".join([*parts, "---", foot]) + "\n"


_TABLE_HEAD = "| Check | Result | Seconds | SHA-256 of the output |\n| --- | --- | ---: | --- |"


def _about_checks(notes: Sequence[str], *, ran: bool) -> Iterator[str]:
    if not ran:
        yield _NOT_RUN
    yield from _list(notes)
    if ran and notes:
        yield ""


def _rows(evidence: Sequence[Mapping[str, Json]]) -> Iterator[str]:
    for result in evidence[: _MAX_ROWS + 1]:
        command = in_code(str(result.get("command", "")), 160).replace("|", "\\|")
        digest = in_code(str(result.get("output_sha256") or "")[:16])
        seconds = f"{float(result.get('seconds') or 0):.1f}"
        yield f"| {command} | {check_ending(result)} | {seconds} | {digest} |"


def _list(items: Sequence[str]) -> Iterator[str]:
    return (f"- {quiet(item)}" for item in items if item.strip())


def _quiet_lines(text: str) -> str:
    lines = (quiet(line) for line in whole(text.strip()[:_MAX_TEXT]).split("\n"))
    return "\n".join(f"> {line}".rstrip() for line in lines) if text.strip() else ""


def quiet(text: str) -> str:
    """One harmless line that calls nobody and closes no issue: an agent must not do that in passing."""
    line = harmless(text, _MAX_ROW)
    return _LEADS_ELSEWHERE.sub(lambda match: match[0] + _INVISIBLE, line)
