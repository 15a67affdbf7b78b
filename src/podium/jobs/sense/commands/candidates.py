"""`podium candidates`."""

from __future__ import annotations

import shutil
from typing import Annotated

import typer

from podium.app.app import Podium
from podium.cli.app import command_app
from podium.cli.context import Door, RootToo, naming_root, root_option, take_root
from podium.cli.screen import Screen, is_terminal
from podium.core.decisions import Approval
from podium.core.ids import short_id
from podium.core.model import Json
from podium.core.work import Run
from podium.jobs.sense.candidate_report import (
    Surroundings,
    look_around,
    next_commands,
    weight_words,
    why_words,
)
from podium.jobs.sense.candidates import CandidateSeen, candidate_seen, candidates_seen
from podium.jobs.sense.models import no_operations
from podium.jobs.sense.orders.work_order import WorkOrder, order_text
from podium.jobs.sense.tick_report import INDENT
from podium.render.text import moment, shown_line, shown_text

app = command_app()

HEADERS = ("STATE", "ID", "TIER", "ZONES", "TARGET", "TITLE", "SINCE", "APPROVAL")
MAX_TITLE = 60
WIDE_COLUMNS = 130
"""What a table of them needs at least."""


@app.callback(invoke_without_command=True)
def candidates(
    context: typer.Context,
    all_: Annotated[
        bool, typer.Option("--all", help="Also those that were delivered, refused or only told of.")
    ] = False,
    root: RootToo = None,
) -> None:
    """List the work orders that the sense loop proposes: those that wait for somebody, newest first.

    `podium approve ID`, `podium reject ID --why …` and `podium deploy ID` take their ids, whole or
    the beginning. With --all, what a worker performed is done, failed, refused or parked.

    \b
    Example:
      podium candidates
      podium candidates --all --json
    """
    take_root(context, root)
    if context.invoked_subcommand is not None:
        return
    door = Door(context.obj, lenient=True)
    found: list[CandidateSeen] = []
    if door.has_state:

        async def work(podium: Podium) -> list[CandidateSeen]:
            return await candidates_seen(podium, ended=all_)

        found = door.run(work)
    record = {"candidates": [_record(each) for each in found]}
    door.screen.answer(record, lambda: _list(door, found, all_=all_))


@app.command()
def show(
    context: typer.Context,
    candidate: Annotated[
        str, typer.Argument(metavar="ID", help="Of the work order, or the beginning; or its run's.")
    ],
    root: RootToo = None,
) -> None:
    """Show a candidate whole: what it would do, how it was weighed, and the order itself.

    \b
    Example:
      podium candidates show WO-FIX-OPAL_API
    """
    take_root(context, root)
    door = Door(context.obj, lenient=True)
    folder = door.configuration.folders.project
    with naming_root(folder):
        door.must_have_state("candidate", candidate)

    async def work(podium: Podium) -> _Whole:
        seen, run = await candidate_seen(podium, candidate)
        asked = await (await podium.store()).read(
            lambda view: view.approvals(run_id=run.id, limit=1)
        )
        around = await look_around(podium, [seen.standing])
        return _Whole(seen, run, asked[0] if asked else None, around)

    with naming_root(folder):
        whole = door.run(work)
    door.screen.answer(whole.record(), lambda: whole.tell(door.screen))


class _Whole:
    """A candidate with its order: as somebody was asked about it, else as it was planned."""

    def __init__(
        self, seen: CandidateSeen, run: Run, asked: Approval | None, around: Surroundings
    ) -> None:
        import yaml

        self.seen = seen
        self.around = around
        planned = WorkOrder.model_validate(run.input["order"])
        self.text = str(asked.arguments["content"]) if asked else order_text(planned)
        self.order = WorkOrder.model_validate(yaml.safe_load(self.text))

    def record(self) -> dict[str, Json]:
        order = self.order.model_dump(mode="json", exclude_defaults=True)
        return {"candidate": _record(self.seen), "order": order, "text": self.text}

    def tell(self, screen: Screen) -> None:
        stands = self.seen.standing
        screen.facts(
            [
                ("candidate", stands.wo_id),
                ("state", self.seen.state),
                ("why", shown_line(why_words(stands, self.around))),
                ("no ops", shown_line("" if self.order.ops else no_operations(stands))),
                ("title", shown_line(stands.title)),
                ("target", shown_line(stands.target)),
                ("tier", stands.tier),
                ("zones", ", ".join(stands.zones)),
                ("led to by", shown_line(", ".join(self.order.provenance))),
                ("since", moment(self.seen.since)),
                ("approval", stands.approval_id),
                ("run", stands.run_id),
                ("file", stands.file),
            ]
        )
        ops = [op.line for op in self.order.ops]
        screen.line(f"\n{'operations' if ops else 'in words; nobody has made operations of it'}")
        for number, line in enumerate(ops or self.order.tasks, start=1):
            screen.line(f"  {number}. {shown_line(line)}")
        screen.line("\nthe order")
        for line in shown_text(self.text).splitlines():
            screen.line(f"  {line}")
        for line in next_commands(stands, self.around):
            screen.stderr_line(line)


def _record(seen: CandidateSeen) -> dict[str, Json]:
    return {
        **seen.standing.model_dump(mode="json"),
        "state": seen.state,
        "since": seen.since.isoformat(),
        **({"answer": seen.ack.error} if seen.ack else {}),
    }


def _list(door: Door, found: list[CandidateSeen], *, all_: bool) -> None:
    screen, project = door.screen, root_option(door.configuration.folders.project)
    if found and is_terminal() and shutil.get_terminal_size().columns < WIDE_COLUMNS:
        for each in found:
            _entry(screen, each)
        return
    if found:
        screen.table(HEADERS, [_row(each) for each in found])
        return
    if all_:
        screen.line(
            f"the sense loop has proposed nothing yet; `podium sense --once{project}` makes a tick"
        )
    else:
        screen.line(
            f"no candidate waits; `podium candidates --all{project}` lists those that have ended"
        )


def _entry(screen: Screen, seen: CandidateSeen) -> None:
    """For screens on which a table would break the ids that people copy."""
    stands = seen.standing
    asked = f", approval {short_id(stands.approval_id)}" if stands.approval_id else ""
    screen.line(f"{seen.state:<{INDENT}}{stands.wo_id}")
    about = f"{stands.target}: {shown_line(stands.title, MAX_TITLE)}"
    for line in (about, weight_words(stands), f"since {moment(seen.since)}{asked}"):
        if line:
            screen.line(f"{'':{INDENT}}{line}")


def _row(seen: CandidateSeen) -> list[str]:
    stands = seen.standing
    return [
        seen.state,
        stands.wo_id,
        stands.tier,
        ", ".join(stands.zones),
        stands.target,
        shown_line(stands.title, MAX_TITLE),
        moment(seen.since),
        short_id(stands.approval_id) if stands.approval_id else "",
    ]
