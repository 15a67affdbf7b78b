"""Texts about the base as it was before any agent: for prompts, the pull request and the report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from podium.app.checks import CheckResult
from podium.core.forge import check_ending
from podium.core.model import Json
from podium.jobs.pipeline.agent_text import fenced, in_code
from podium.jobs.pipeline.state import BaseReport, StageContext

_MAX_LISTED = 5
_MAX_NAME = 120
_MAX_TAIL = 1_500


def missing_parts_of(report: BaseReport) -> Iterator[str]:
    """Sentences about parts of the project that a workspace does not contain."""
    if report.empty_submodules:
        yield (
            f"Submodules are empty in the workspace: {_listed(report.empty_submodules)}. Fill them with a command under "
            "`workspaces: after_create:` if the checks need them."
        )
    if report.lfs_pointers:
        yield (
            f"Git LFS files are pointers in the workspace: {_listed(report.lfs_pointers)}. Fetch them with a command under "
            "`workspaces: after_create:` if the checks need them."
        )


def base_prompt(context: StageContext, *, with_output: bool) -> str:
    """Facts about the base for an agent; the output of red checks only for who works on the project."""
    report = context.state.before
    if report is None:
        return ""
    parts = list(missing_parts_of(report))
    if report.red:
        parts.insert(
            0,
            f"Red before any work, on the base {report.commit[:12]}: {', '.join(map(ended, report.red))}. A check that ends in "
            "the same way later is not held against the work; one that was green and is red later is.",
        )
    if with_output:
        parts += [
            f"End of the output of {in_code(result.command)} on the base:\n{fenced(result.tail[-_MAX_TAIL:])}"
            for result in report.red
            if result.tail.strip()
        ]
    return "\n\n".join(parts)


def base_lines(report: BaseReport | None) -> list[str]:
    """The base's checks and missing parts, one per line, for the report and the pull request."""
    if report is None:
        return []
    ran = [
        f"{in_code(result.command, 160)} {check_ending(result.model_dump())}"
        f" ({result.seconds:.1f} s, output {in_code(result.output_sha256[:16])})"
        for result in report.results
    ]
    return [*ran, *missing_parts_of(report)]


def base_record(report: BaseReport | None) -> Json:
    """The base in the result of a run; None: it was not looked at."""
    if report is None:
        return None
    record = report.model_dump(mode="json", exclude={"remote": True, "not_runnable": True})
    record["results"] = [
        result.model_dump(mode="json", exclude={"tail"}) for result in report.results
    ]
    return record


def red_before_lines(context: StageContext) -> Iterator[str]:
    """Checks that the branch leaves as red as they were, for a person."""
    for result in context.state.red_as_before:
        failed = f" ({_listed(result.failed)})" if result.failed else ""
        yield f"{in_code(result.command, 160)} was red before this work and is red in the same way{failed}"


def ended(result: CheckResult) -> str:
    """A check with its end and the first of its failed tests."""
    failed = f" ({_listed(result.failed)})" if result.failed else ""
    return f"{in_code(result.command, 160)} {check_ending(result.model_dump())}{failed}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
    return ", ".join(in_code(name, _MAX_NAME) for name in names[:_MAX_LISTED]) + more
