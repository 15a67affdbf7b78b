"""`podium candidates` and `podium deploy`."""

from __future__ import annotations

import shutil
import sys
from typing import Annotated

import typer

from podium.app.app import Podium
from podium.cli.app import command_app
from podium.cli.context import CliContext, RootToo, naming_root, root_option, take_root
from podium.cli.identity import approver
from podium.cli.progress import Progress
from podium.cli.screen import Screen, is_terminal
from podium.core.decisions import Approval
from podium.core.ids import short_id
from podium.core.model import Json
from podium.core.work import Mode, Run
from podium.jobs.sense.candidate_report import (
    ReportContext,
    next_commands,
    reason_text,
    render_candidate,
    report_context,
    weight_text,
)
from podium.jobs.sense.candidates import (
    CandidateView,
    deploy_candidate,
    load_candidate,
    load_candidates,
)
from podium.jobs.sense.models import CandidateState, no_operations
from podium.jobs.sense.orders.work_order import WorkOrder, order_text
from podium.jobs.sense.tick_report import INDENT
from podium.render.text import escaped_line, escaped_text, local_time

app = command_app()

HEADERS = ("STATE", "ID", "TIER", "ZONES", "TARGET", "TITLE", "SINCE", "APPROVAL")
MAX_TITLE = 60
WIDE_COLUMNS = 130
"""Minimum width of a terminal for the table."""


@app.callback(invoke_without_command=True)
def candidates(
    context: typer.Context,
    all_: Annotated[
        bool, typer.Option("--all", help="Include delivered, refused and logged candidates.")
    ] = False,
    root: RootToo = None,
) -> None:
    """List the open work orders that the sense loop proposes, newest first.

    `podium approve ID`, `podium reject ID --why …` and `podium deploy ID` accept their ids, in full
    or as a prefix. With --all, an order that a worker took is done, failed, refused or parked.

    \b
    Example:
      podium candidates
      podium candidates --all --json
    """
    take_root(context, root)
    if context.invoked_subcommand is not None:
        return
    cli = CliContext(context.obj, lenient=True)
    views: list[CandidateView] = []
    if cli.has_state:

        async def work(podium: Podium) -> list[CandidateView]:
            return await load_candidates(podium, ended=all_)

        views = cli.run(work)
    record = {"candidates": [_record(candidate) for candidate in views]}
    cli.screen.answer(record, lambda: _list(cli, views, all_=all_))


@app.command()
def show(
    context: typer.Context,
    candidate: Annotated[
        str, typer.Argument(metavar="ID", help="ID or prefix, of the work order or its run.")
    ],
    root: RootToo = None,
) -> None:
    """Show a candidate in full: what it would do, its tier and zones, and the work order itself.

    \b
    Example:
      podium candidates show WO-FIX-OPAL_API
      podium candidates show WO-FIX-OPAL_API --json
    """
    take_root(context, root)
    cli = CliContext(context.obj, lenient=True)
    folder = cli.configuration.folders.project
    with naming_root(folder):
        cli.must_have_state("candidate", candidate)

    async def work(podium: Podium) -> _CandidateDetail:
        candidate_view, run = await load_candidate(podium, candidate)
        asked = await (await podium.store()).read(
            lambda view: view.approvals(run_id=run.id, limit=1)
        )
        around = await report_context(podium, [candidate_view.standing])
        return _CandidateDetail(candidate_view, run, asked[0] if asked else None, around)

    with naming_root(folder):
        detail = cli.run(work)
    cli.screen.answer(detail.record(), lambda: detail.render(cli.screen))


class _CandidateDetail:
    """A candidate with its order: as somebody was asked about it, else as it was planned."""

    def __init__(
        self, view: CandidateView, run: Run, asked: Approval | None, around: ReportContext
    ) -> None:
        import yaml

        self.view = view
        self.around = around
        planned = WorkOrder.model_validate(run.input["order"])
        self.text = str(asked.arguments["content"]) if asked else order_text(planned)
        self.order = WorkOrder.model_validate(yaml.safe_load(self.text))

    def record(self) -> dict[str, Json]:
        order = self.order.model_dump(mode="json", exclude_defaults=True)
        return {"candidate": _record(self.view), "order": order, "text": self.text}

    def render(self, screen: Screen) -> None:
        status = self.view.standing
        screen.facts(
            [
                ("candidate", status.wo_id),
                ("state", self.view.state),
                ("why", escaped_line(reason_text(status, self.around))),
                ("no operations", escaped_line("" if self.order.ops else no_operations(status))),
                ("title", escaped_line(status.title)),
                ("target", escaped_line(status.target)),
                ("tier", status.tier),
                ("zones", ", ".join(status.zones)),
                ("sources", escaped_line(", ".join(self.order.provenance))),
                ("since", local_time(self.view.since)),
                ("approval", status.approval_id),
                ("run", status.run_id),
                ("file", status.file),
            ]
        )
        ops = [op.line for op in self.order.ops]
        screen.line(f"\n{'operations' if ops else 'tasks; no operations have been planned yet'}")
        for number, line in enumerate(ops or self.order.tasks, start=1):
            screen.line(f"  {number}. {escaped_line(line)}")
        screen.line("\nwork order")
        for line in escaped_text(self.text).splitlines():
            screen.line(f"  {line}")
        for line in next_commands(status, self.around):
            screen.stderr_line(line)


def _record(view: CandidateView) -> dict[str, Json]:
    return {
        **view.standing.model_dump(mode="json"),
        "state": view.state,
        "since": view.since.isoformat(),
        **({"answer": view.ack.error} if view.ack else {}),
    }


def _list(cli: CliContext, views: list[CandidateView], *, all_: bool) -> None:
    screen, project = cli.screen, root_option(cli.configuration.folders.project)
    if views and is_terminal() and shutil.get_terminal_size().columns < WIDE_COLUMNS:
        for view in views:
            _entry(screen, view)
        return
    if views:
        screen.table(HEADERS, [_row(view) for view in views])
        return
    if all_:
        screen.line(f"no candidates yet; run a tick with `podium sense --once{project}`")
    else:
        screen.line(f"no open candidates; list closed ones with `podium candidates --all{project}`")


def _entry(screen: Screen, view: CandidateView) -> None:
    """Print a candidate on a terminal too narrow for a table: it would break the ids that people copy."""
    status = view.standing
    asked = f", approval {short_id(status.approval_id)}" if status.approval_id else ""
    screen.line(f"{view.state:<{INDENT}}{status.wo_id}")
    about = f"{status.target}: {escaped_line(status.title, MAX_TITLE)}"
    for line in (about, weight_text(status), f"since {local_time(view.since)}{asked}"):
        if line:
            screen.line(f"{'':{INDENT}}{line}")


def _row(view: CandidateView) -> list[str]:
    status = view.standing
    return [
        view.state,
        status.wo_id,
        status.tier,
        ", ".join(status.zones),
        status.target,
        escaped_line(status.title, MAX_TITLE),
        local_time(view.since),
        short_id(status.approval_id) if status.approval_id else "",
    ]


deploy_app = command_app()

EXIT_CODES: dict[CandidateState, int] = {
    "delivered": 0,
    "waiting": 3,
    "approved": 3,
}
"""Exit codes by state; all others (refused, rejected, expired) exit with 4. In a dry run the person moves the file: 3."""
REFUSED = 4


@deploy_app.command()
def deploy(
    context: typer.Context,
    candidate: Annotated[
        str, typer.Argument(metavar="ID", help="ID of the work order, or a prefix.")
    ],
    mode: Annotated[
        Mode | None, typer.Option("--mode", help="Mode to use instead of the configured one.")
    ] = None,
    root: RootToo = None,
) -> None:
    """Approve a candidate and deliver it to the inbox.

    If it is approved already, it is only delivered. A dry run moves nothing; the output says which
    file to move. Exits with 0 if it was delivered, 3 if it is waiting for a person, and 4 if it was
    refused or rejected.

    \b
    Example:
      podium deploy WO-FIX-OPAL_API
      podium deploy WO-FIX-OPAL_API --mode dry-run
    """
    take_root(context, root)
    context.obj.mode = mode or ""
    cli = CliContext(context.obj)
    folder = cli.configuration.folders.project
    with naming_root(folder):
        cli.must_have_state("candidate", candidate)
    project = (f" --mode {mode}" if mode else "") + root_option(folder)
    cli.options.parting_note = (
        f"approved; continue with `podium deploy {candidate}{project}` or "
        f"`podium worker{root_option(folder)}`"
    )

    who = approver(cli)

    async def work(podium: Podium) -> tuple[CandidateView, ReportContext]:
        with Progress(sys.stderr) as progress:
            progress.doing(f"delivering {candidate}")
            view = await deploy_candidate(podium, candidate, by=who)
        return view, await report_context(podium, [view.standing])

    with naming_root(folder):
        view, around = cli.run(work)
    record: dict[str, Json] = {
        "candidate": {**view.standing.model_dump(mode="json"), "state": view.state}
    }
    cli.screen.answer(record, lambda: render_candidate(cli.screen, view.standing, around))
    raise typer.Exit(EXIT_CODES.get(view.standing.state, REFUSED))
