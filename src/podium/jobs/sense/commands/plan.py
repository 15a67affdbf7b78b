"""`podium plan`."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli.app import command_app
from podium.cli.context import CliContext
from podium.cli.screen import Screen
from podium.core.model import Json
from podium.jobs.sense.models import Candidate, ParsedPlan
from podium.render.text import counted, safe_line

if TYPE_CHECKING:
    from podium.jobs.sense.planning.rule_language import PlanningRule


app = command_app(group=True)

BROKEN = 2


@app.callback()
def plan() -> None:
    """Parse a planner's plan or check planning rules."""


@app.command()
def parse(
    context: typer.Context,
    input_: Annotated[
        str, typer.Option("--input", metavar="FILE", help="File with the plan; `-` reads stdin.")
    ],
) -> None:
    """Parse a plan: list the work orders it would create, and why other items are skipped.

    Nothing is created or written, and no planner is asked. Exits with 0 if the document can be
    read, whatever it contains, and with 2 otherwise.

    \b
    Example:
      podium plan parse --input g/tools/samples/gmx_plan_idle.json
      podium plan parse --input - --json < plan.json
    """
    from podium.jobs.sense.planning.plan_parser import parse_plan

    screen = Screen(json=context.obj.json)
    content, problem = _content(input_)
    parsed = ParsedPlan(error=problem) if problem else parse_plan(content)
    screen.answer(parsed.record(), lambda: _render_plan(screen, parsed))
    if parsed.error:
        screen.stderr_line(f"podium: {parsed.error if problem else f'{input_!r}: {parsed.error}'}")
        raise typer.Exit(BROKEN)


@app.command()
def schema(
    context: typer.Context,
    order: Annotated[
        bool, typer.Option("--order", help="Print the schema of work orders instead.")
    ] = False,
) -> None:
    """Print the JSON Schema of plans, or of work orders in the inbox.

    \b
    Example:
      podium plan schema > gmx-plan.schema.json
      podium plan schema --order
    """
    import json

    from podium.jobs.sense.planning.plan_schema import plan_schema, work_order_schema

    screen = Screen(json=context.obj.json)
    document = work_order_schema() if order else plan_schema()
    screen.answer(document, lambda: screen.line(json.dumps(document, indent=2)))


@app.command()
def rules(
    context: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="A YAML file of rules.", show_default=False),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only report whether the rules are valid.")
    ] = False,
) -> None:
    """Show the rules that plan without a model, and test every rule with its own examples.

    Without FILE, the project's rules are used, or those that come with Podium. Invalid rules and
    failing examples are reported with file and line; the exit code is then 2.

    \b
    Example:
      podium plan rules
      podium plan rules my_rules.yaml --check
    """
    from podium.jobs.sense.planning.rules import load_rules, rules_file

    cli = CliContext(context.obj)
    loaded = load_rules(file or rules_file(cli.configuration))
    rows = [_row(rule) for rule in loaded.book.rules]
    examples = sum(row["examples"] for row in rows)
    record: dict[str, Json] = {"file": loaded.name, "rules": rows, "examples": examples}

    def show() -> None:
        if not check:
            headers = ("RULE", "SOURCE", "ACTION", "PRIORITY", "EXAMPLES", "ABOUT")
            cli.screen.table(
                headers, [[str(row[name.lower()]) for name in headers] for row in rows]
            )
        held = f"{counted(len(rows), 'rule')}, {counted(examples, 'example')}: all pass"
        cli.screen.line(f"{loaded.name}: {held}")

    cli.screen.answer(record, show)


def _row(rule: PlanningRule) -> dict[str, Json]:
    return {
        "rule": rule.name,
        "source": ", ".join(rule.when.sources),
        "action": rule.item.action,
        "priority": rule.item.priority,
        "examples": len(rule.examples),
        "about": rule.about,
    }


def _content(source: str) -> tuple[bytes, str]:
    """The bytes, or why there are none. More than a plan may have are not read."""
    from podium.jobs.sense.planning.plan_schema import MAX_BYTES

    try:
        if source == "-":
            return sys.stdin.buffer.read(MAX_BYTES + 1), ""
        # Opening a named pipe would wait for its other end.
        with open(source, "rb", opener=_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ValueError("not a regular file")
            return file.read(MAX_BYTES + 1), ""
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        return (
            b"",
            f"cannot read the plan {source!r} ({why}); pass a readable file, or `-` for stdin",
        )


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def _render_plan(screen: Screen, parsed: ParsedPlan) -> None:
    screen.line(f"candidate_count: {len(parsed.candidates)}")
    screen.line(f"skipped: {len(parsed.skipped_items)}")
    for candidate in parsed.candidates:
        _render_candidate(screen, candidate)
    for skipped in parsed.skipped_items:
        title = f" ({safe_line(skipped.title, longest=80)})" if skipped.title else ""
        screen.line(f"skipped item {skipped.index}{title}: {safe_line(skipped.reason)}")


def _render_candidate(screen: Screen, candidate: Candidate) -> None:
    item, suggestion = candidate.item, candidate.suggestion
    screen.line(f"candidate {candidate.wo_id} [{item.priority}] {item.target}: {suggestion.title}")
    for number, task in enumerate(suggestion.tasks, 1):
        screen.line(f"  {number}. {safe_line(task, longest=200)}")
    for op in suggestion.ops:
        screen.line(f"  op {safe_line(op.line, longest=200)}")
