"""`podium sense trust`: autonomy that was earned, granted or taken back."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from podium.app.app import Podium
from podium.cli.app import command_app
from podium.cli.context import CliContext, take_root
from podium.cli.identity import approver, identity
from podium.core.decisions import Tier
from podium.core.errors import BadInput, CallRefused
from podium.core.model import Json
from podium.jobs.sense import SenseOptions
from podium.jobs.sense.composition import sense_options, trust_of
from podium.jobs.sense.trust import (
    EarnedTrust,
    Promotion,
    demote,
    earned_trust,
    plan_promotion,
    promote,
)
from podium.render.text import counted, escaped_line, local_time

trust_app = command_app()

HEADERS = ("TARGET", "ZONE", "AGREED", "DISAGREED", "INCIDENTS", "GRANTED", "PROPOSAL")
Target = Annotated[str, typer.Argument(metavar="TARGET", help="Target, as named in the plans.")]
Zones = Annotated[
    list[str] | None,
    typer.Option("--zone", metavar="ZONE", help="Only in this zone; repeatable."),
]
Root = Annotated[
    Path | None,
    typer.Option("--root", metavar="DIR", help="Root folder (default: the project folder)."),
]


@trust_app.callback(invoke_without_command=True)
def trust(context: typer.Context, root: Root = None) -> None:
    """Show the autonomy that the loop has earned; grant or revoke it.

    AGREED counts consecutive approvals of orders that autonomous mode would have delivered without
    approval. An incident revokes a grant automatically; only a person can grant autonomy.

    \b
    Example:
      podium sense trust
      podium sense trust promote opal_api --zone state --up-to T1
    """
    take_root(context, root)
    if context.invoked_subcommand is not None:
        return
    cli = CliContext(context.obj)

    async def work(podium: Podium) -> tuple[SenseOptions, Sequence[EarnedTrust], Sequence[str]]:
        book = trust_of(podium)
        trust = earned_trust(book.entries())
        return sense_options(podium), trust, book.problems

    options, trust, problems = cli.run(work)
    _render_trust(cli, trust, options.promote_after, problems)


@trust_app.command("promote")
def promote_(
    context: typer.Context,
    target: Target,
    zone: Zones = None,
    up_to: Annotated[
        str,
        typer.Option(
            "--up-to", metavar="TIER", help="T0, T1 or T2 (default: the highest tier approved)."
        ),
    ] = "",
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Promote even with too few agreements.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    root: Root = None,
) -> None:
    """Deliver orders for a target without approval in autonomous mode. Your name is recorded.

    Without --zone, this applies to the zones that have earned it. Exits with 4 if there are fewer
    agreements in a row than `promote_after` in podium.yaml requires.

    \b
    Example:
      podium sense trust promote opal_api
      podium sense trust promote opal_api --zone state --up-to T1 --yes
    """
    take_root(context, root)
    cli = CliContext(context.obj)
    tier = _tier(up_to)
    who = approver(cli)

    async def look(podium: Podium) -> tuple[int, Promotion]:
        needed = sense_options(podium).promote_after
        trust = earned_trust(trust_of(podium).entries())
        plan = plan_promotion(trust, target, zone or (), up_to=tier, needed=needed, anyway=anyway)
        return needed, plan

    async def grant(podium: Podium) -> tuple[Sequence[EarnedTrust], Sequence[str]]:
        book = trust_of(podium)
        return promote(book, podium.clock, plan, by=who.name), book.problems

    needed, plan = cli.run(look)
    if not yes:
        _ask(cli, plan)
    trust, problems = cli.run(grant)
    _render_trust(cli, trust, needed, problems)


@trust_app.command("demote")
def demote_(
    context: typer.Context,
    target: Target,
    zone: Zones = None,
    why: Annotated[str, typer.Option("--why", help="Reason, which is recorded.")] = "",
    root: Root = None,
) -> None:
    """Revoke the autonomy of a target: its orders need approval again.

    \b
    Example:
      podium sense trust demote opal_api --why "its restarts made things worse"
      podium sense trust demote opal_api --zone g/reports
    """
    take_root(context, root)
    cli = CliContext(context.obj)
    who, _ = identity(cli)

    async def work(podium: Podium) -> tuple[int, Sequence[EarnedTrust], Sequence[str]]:
        book = trust_of(podium)
        left = demote(book, podium.clock, target, zone or (), by=who.name, why=why)
        return sense_options(podium).promote_after, left, book.problems

    needed, trust, problems = cli.run(work)
    _render_trust(cli, trust, needed, problems)


def _tier(text: str) -> Tier | None:
    if not text:
        return None
    if text.upper() not in ("T0", "T1", "T2"):
        raise BadInput(f"--up-to {text!r} cannot be granted; use T0, T1 or T2")
    return Tier[text.upper()]


def _ask(cli: CliContext, plan: Promotion) -> None:
    for trust, tier in plan.grants:
        cli.screen.stderr_line(
            f"{escaped_line(trust.target)} in {escaped_line(trust.zone)}: orders up to {tier} would be delivered "
            f"without approval in autonomous mode ({counted(trust.agreed, 'agreement')} in a row, "
            f"{counted(trust.disagreed, 'disagreement')}, {counted(trust.incidents, 'incident')})"
        )
    if not sys.stdin.isatty():
        raise BadInput("not a terminal; pass --yes to confirm")
    if typer.prompt("Type yes to confirm", default="no", err=True).strip().lower() != "yes":
        raise CallRefused("cancelled; nothing was granted")


def _render_trust(
    cli: CliContext, trust: Sequence[EarnedTrust], needed: int, problems: Sequence[str]
) -> None:
    rows = [_row(entry, needed) for entry in trust]
    record: dict[str, Json] = {
        "promote_after": needed,
        "standings": [
            {**entry.model_dump(mode="json"), "proposes": entry.proposes(needed)} for entry in trust
        ],
        "faults": list(problems),
    }

    def show() -> None:
        if rows:
            cli.screen.table(HEADERS, rows)
        else:
            cli.screen.line(
                "no target has earned autonomy yet; approvals in supervised mode count towards it"
            )
        for entry in trust:
            if entry.why:
                where = f"{entry.target} in {entry.zone}"
                cli.screen.stderr_line(
                    f"{escaped_line(where)} was demoted: {escaped_line(entry.why)}"
                )

    cli.screen.answer(record, show)
    for problem in problems:
        cli.screen.stderr_line(f"podium: {problem}")


def _row(trust: EarnedTrust, needed: int) -> list[str]:
    granted = "nothing"
    if trust.granted is not None:
        day = local_time(trust.granted_at).partition(" ")[0]
        granted = f"up to {trust.granted} by {trust.granted_by}, {day}"
    # Agreements are counted anew after a promotion: those that are missing are for a higher tier.
    further = "for a higher tier " if trust.granted is not None else ""
    missing = needed - trust.agreed
    proposal = f"{further}after {missing} more" if missing > 0 else ""
    if trust.proposes(needed):
        proposal = f"promote up to {max(trust.highest_agreed, Tier.T1)}"
    return [
        trust.target,
        trust.zone,
        str(trust.agreed),
        str(trust.disagreed),
        str(trust.incidents),
        granted,
        proposal,
    ]
