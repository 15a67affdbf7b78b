"""Commands `podium approvals`, `approve` and `reject`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from podium.app.app import Podium
from podium.app.approvals import NewestApprovals, newest_approvals, show_approval
from podium.app.approvals import approve as say_yes
from podium.app.approvals import reject as say_no
from podium.app.inbox import CardKind, job_approvals, resolve_approval
from podium.app.run_continuation import how_it_continues
from podium.cli.app import command_app
from podium.cli.context import CliContext, RootToo, root_option, take_root
from podium.cli.identity import approver
from podium.cli.screen import Screen
from podium.core.approval_steps import approval_named_in
from podium.core.decisions import Approval, ApprovalStatus, Grant
from podium.core.errors import NotPossibleNow
from podium.core.ids import short_id
from podium.core.model import FrozenModel, Json
from podium.core.work import Run
from podium.ports import Store, StoreView
from podium.render.approval import DELIVERY, plan_question_in, waits_for, what_line, what_lines
from podium.render.text import escaped_line, local_time

if TYPE_CHECKING:
    from podium.core.plan_approval import PlanQuestion


MAX_MESSAGE = 300


def print_approval(screen: Screen, approval: Approval) -> None:
    """Print everything an approval is bound to, with its approvers and deadline."""
    question = plan_question_in(approval)
    asked = escaped_line(question.message, MAX_MESSAGE) if question else ""
    screen.facts(
        [
            ("approval", approval.id),
            ("status", approval.status.value),
            ("run", approval.run_id),
            ("tool", "" if question else escaped_line(approval.tool)),
            ("plan for", asked),
            ("tier", str(approval.tier)),
            ("reason", escaped_line(approval.reason)),
            ("approvers", ", then ".join(approval.approvers) or "anybody"),
            ("approved by", ", ".join(map(_grant_text, approval.grants))),
            ("comment", escaped_line(approval.said)),
            ("waiting for", waits_for(approval) if approval.approvers else ""),
            ("rejected by", _rejected_text(approval)),
            ("because", escaped_line(approval.why)),
            ("deadline", local_time(approval.deadline)),
        ]
    )
    if approval.arithmetic:
        screen.line("\ntier")
        for term in approval.arithmetic:
            screen.line(f"  {term.tier}: {escaped_line(term.because)}")
    screen.line(f"\nwhat will run{_how_many(question)}")
    for line in what_lines(approval):
        # What is hidden is written out in it already, and joined emoji are to stay joined.
        screen.pass_on(f"  {line}\n".encode(errors="replace"))


def _how_many(question: PlanQuestion | None) -> str:
    many = question is not None and len(question.calls) > 1
    return f": {len(question.calls)} calls, in this order" if question and many else ""


def _grant_text(grant: Grant) -> str:
    group = f" for {grant.group}" if grant.group else ""
    how = f" ({escaped_line(grant.how)})" if grant.how else ""
    return f"{escaped_line(grant.by)}{group}{how}"


def _rejected_text(approval: Approval) -> str:
    how = f" ({approval.rejected_how.replace('_', ' ')})" if approval.rejected_how else ""
    return f"{escaped_line(approval.rejected_by)}{how}"


app = command_app()


@app.command()
def approvals(
    context: typer.Context,
    approval: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="Approval to show in full.", show_default=False),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Include answered, used and expired ones.")
    ] = False,
) -> None:
    """List approvals that wait for a person, or show one in full.

    Invisible characters are escaped, as in \\x1b or \\u202e.

    \b
    Example:
      podium approvals
      podium approvals 3e9d1f5a
    """
    cli = CliContext(context.obj, lenient=True)
    if approval is not None:
        _one(cli, approval)
        return
    statuses = () if everything else (ApprovalStatus.PENDING,)
    newest = NewestApprovals()
    if cli.has_state:

        async def work(podium: Podium) -> NewestApprovals:
            return await newest_approvals(await podium.store(), podium.clock, statuses=statuses)

        newest = cli.run(work)

    def render() -> None:
        if not newest.approvals:
            cli.screen.stderr_line("no approvals are waiting")
            return
        headers = ("APPROVAL", "STATUS", "TIER", "RUN", "WAITS FOR", "DEADLINE", "WHAT")
        cli.screen.table(headers, [_row(approval) for approval in newest.approvals])
        if newest.more:
            cli.screen.stderr_line(f"and {newest.more} older ones")
        cli.screen.stderr_line("show one in full with `podium approvals ID`")

    listed = [one.model_dump(mode="json") for one in newest.approvals]
    cli.screen.answer({"approvals": listed, "more": newest.more}, render)


def _one(cli: CliContext, approval: str) -> None:
    cli.must_have_state("approval", approval_named_in(approval) or approval)

    async def work(podium: Podium) -> Approval:
        return await show_approval(await podium.store(), podium.clock, approval)

    loaded = cli.run(work)
    record = {"approval": loaded.model_dump(mode="json")}
    cli.screen.answer(record, lambda: print_approval(cli.screen, loaded))


def _row(approval: Approval) -> tuple[str, ...]:
    return (
        short_id(approval.id),
        approval.status.value,
        str(approval.tier),
        short_id(approval.run_id),
        waits_for(approval),
        local_time(approval.deadline),
        what_line(approval),
    )


class ApprovalResult(FrozenModel):
    """An approval after its answer, and what is left to do for its run."""

    approval: Approval
    hosted: bool = False
    continues: bool = False
    """The run continues by itself."""
    next: str = ""
    """Next step for the run; empty when it continues by itself, or not at all."""

    def record(self) -> dict[str, Json]:
        return {
            "approval": self.approval.model_dump(mode="json"),
            "hosted": self.hosted,
            "continues": self.continues,
            "next": self.next,
        }


async def answered(podium: Podium, approval: Approval) -> ApprovalResult:
    """Return the answered approval with the state of its run."""
    store = await podium.store()
    run = await store.read(lambda view: view.run(approval.run_id))
    if run is not None and approval.status is not ApprovalStatus.PENDING:
        is_granted = approval.status is ApprovalStatus.GRANTED
        step = await job_approvals(run).next_step(podium, run, granted=is_granted)
        if step is not None:
            return ApprovalResult(approval=approval, next=step)
    goes_on = await how_it_continues(store, podium.engine, approval)
    return ApprovalResult(
        approval=approval, hosted=goes_on.hosted, continues=goes_on.continues, next=goes_on.next
    )


approve_app = command_app()


@approve_app.command()
def approve(
    context: typer.Context,
    approval: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="Id of the approval, a short form, APPROVE: ID, or a work order.",
        ),
    ],
    say: Annotated[
        str,
        typer.Option(
            "--say",
            metavar="TEXT",
            help="Comment for the agent, or the answer to its question: with choices, one of them, its number, or "
            "your own answer.",
        ),
    ] = "",
    root: RootToo = None,
) -> None:
    """Approve a call, or answer an agent's question. The approval is valid once, for exactly what it shows, until its deadline.

    \b
    Example:
      podium approve 3e9d1f5a
      podium approve 3e9d1f5a --say "the second one"
      podium approve WO-FIX-OPAL_API
    """
    take_root(context, root)
    cli = CliContext(context.obj)
    cli.must_have_state("approval", approval_named_in(approval) or approval)

    who = approver(cli)

    async def work(podium: Podium) -> ApprovalResult:
        groups = podium.settings.approvers
        store = await podium.store()
        meant = await store.read(lambda view: resolve_approval(view, approval))
        yes = await say_yes(
            store, podium.clock, podium.ids, meant, by=who, groups=groups, comment=say
        )
        return await answered(podium, yes)

    result = cli.run(work)
    granted = result.approval

    def render() -> None:
        if granted.status is ApprovalStatus.GRANTED:
            cli.screen.line(f"approved {granted.id}\n")
        else:
            group = waits_for(granted)
            cli.screen.line(f"recorded; {granted.id} still needs an approval by {group!r}\n")
        if granted.tool == DELIVERY:
            # `podium candidates show` has the order whole.
            cli.screen.line(what_line(granted))
        else:
            print_approval(cli.screen, granted)
        if result.next:
            cli.screen.stderr_line(result.next)

    cli.screen.answer(result.record(), render)


reject_app = command_app()


@reject_app.command()
def reject(
    context: typer.Context,
    approval: Annotated[
        str,
        typer.Argument(metavar="ID", help="Id of the approval, a short form, or a work order."),
    ],
    why: Annotated[str, typer.Option("--why", help="Reason, which the agent is told.")],
    root: RootToo = None,
) -> None:
    """Reject a call, with the reason. This is final, and the agent is told the reason.

    \b
    Example:
      podium reject 3e9d1f5a --why "not before the release"
      podium reject WO-FIX-OPAL_API --why "wrong target"
    """
    take_root(context, root)
    cli = CliContext(context.obj, lenient=True)
    cli.must_have_state("approval", approval)

    who = approver(cli)

    async def work(podium: Podium) -> ApprovalResult:
        store = await podium.store()
        meant = await store.read(lambda view: resolve_approval(view, approval))
        try:
            no = await say_no(store, podium.clock, podium.ids, meant, by=who, why=why)
        except NotPossibleNow as too_late:
            raise await _with_a_way(store, podium, meant, too_late) from None
        return await answered(podium, no)

    result = cli.run(work)

    def render() -> None:
        cli.screen.line(f"rejected {result.approval.id}\n")
        if result.approval.tool == DELIVERY:
            _print_undelivered(cli.screen, result.approval)
        else:
            print_approval(cli.screen, result.approval)
        if result.next:
            cli.screen.stderr_line(result.next)

    cli.screen.answer(result.record(), render)


def _print_undelivered(screen: Screen, refused: Approval) -> None:
    """Print a rejected order in short; `podium candidates show` has all of it."""
    screen.facts(
        [
            ("what", what_line(refused)),
            ("rejected by", escaped_line(refused.rejected_by)),
            ("because", escaped_line(refused.why)),
        ]
    )


async def _with_a_way(
    store: Store, podium: Podium, meant: str, too_late: NotPossibleNow
) -> NotPossibleNow:
    """Return the error; for an approved candidate that is not delivered yet, with the command that stops it."""
    granted = await store.read(lambda view: _undelivered(view, meant))
    if granted is None:
        return too_late
    command = f"podium cancel {short_id(granted.run_id)}{root_option(podium.folders.project)}"
    return NotPossibleNow(f"{too_late}; it is not delivered yet: stop it with `{command}`")


def _undelivered(view: StoreView, meant: str) -> Approval | None:
    for approval_id in view.find_ids("approval", meant)[:1]:
        approval = view.approval(approval_id)
        run = view.run(approval.run_id) if approval else None
        is_granted = approval is not None and approval.status is ApprovalStatus.GRANTED
        if is_granted and run is not None and not run.status.ended and _is_candidate(run):
            return approval
    return None


def _is_candidate(run: Run) -> bool:
    return job_approvals(run).kinds.get(run.flow) is CardKind.CANDIDATE
