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
from podium.cli.context import Door, RootToo, root_words, take_root
from podium.cli.login import approver
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
    """Everything a yes would be bound to, and who may say it until when."""
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
            ("why asked", escaped_line(approval.reason)),
            ("approvers", ", then ".join(approval.approvers) or "anybody"),
            ("approved by", ", ".join(map(_grant_words, approval.grants))),
            ("said", escaped_line(approval.said)),
            ("waits for", waits_for(approval) if approval.approvers else ""),
            ("rejected by", _rejected_words(approval)),
            ("because", escaped_line(approval.why)),
            ("deadline", local_time(approval.deadline)),
        ]
    )
    if approval.arithmetic:
        screen.line("\nhow the tier adds up")
        for term in approval.arithmetic:
            screen.line(f"  {term.tier}: {escaped_line(term.because)}")
    screen.line(f"\nwhat will happen{_how_many(question)}")
    for line in what_lines(approval):
        # What is hidden is written out in it already, and joined emoji are to stay joined.
        screen.pass_on(f"  {line}\n".encode(errors="replace"))


def _how_many(question: PlanQuestion | None) -> str:
    many = question is not None and len(question.calls) > 1
    return f": {len(question.calls)} calls, in this order" if question and many else ""


def _grant_words(grant: Grant) -> str:
    group = f" for {grant.group}" if grant.group else ""
    how = f" ({escaped_line(grant.how)})" if grant.how else ""
    return f"{escaped_line(grant.by)}{group}{how}"


def _rejected_words(approval: Approval) -> str:
    how = f" ({approval.rejected_how.replace('_', ' ')})" if approval.rejected_how else ""
    return f"{escaped_line(approval.rejected_by)}{how}"


app = command_app()


@app.command()
def approvals(
    context: typer.Context,
    approval: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="Show this one in full.", show_default=False),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Answered, used and expired ones too.")
    ] = False,
) -> None:
    """List what waits for a person, or show one approval in full.

    Characters that cannot be seen are written out, as in \\x1b or \\u202e.

    \b
    Example:
      podium approvals
      podium approvals 3e9d1f5a
    """
    door = Door(context.obj, lenient=True)
    if approval is not None:
        _one(door, approval)
        return
    statuses = () if everything else (ApprovalStatus.PENDING,)
    found = NewestApprovals()
    if door.has_state:

        async def work(podium: Podium) -> NewestApprovals:
            return await newest_approvals(await podium.store(), podium.clock, statuses=statuses)

        found = door.run(work)

    def words() -> None:
        if not found.approvals:
            door.screen.aside("nothing waits for a person")
            return
        headers = ("APPROVAL", "STATUS", "TIER", "RUN", "WAITS FOR", "DEADLINE", "WHAT")
        door.screen.table(headers, [_row(approval) for approval in found.approvals])
        if found.more:
            door.screen.aside(f"… and {found.more} more, which are older")
        door.screen.aside("`podium approvals ID` shows one in full")

    listed = [one.model_dump(mode="json") for one in found.approvals]
    door.screen.answer({"approvals": listed, "more": found.more}, words)


def _one(door: Door, approval: str) -> None:
    door.must_have_state("approval", approval_named_in(approval) or approval)

    async def work(podium: Podium) -> Approval:
        return await show_approval(await podium.store(), podium.clock, approval)

    found = door.run(work)
    record = {"approval": found.model_dump(mode="json")}
    door.screen.answer(record, lambda: print_approval(door.screen, found))


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


class Answered(FrozenModel):
    """An approval after its answer, and what is left to do for its run."""

    approval: Approval
    hosted: bool = False
    continues: bool = False
    """The run goes on by itself."""
    next: str = ""
    """How the run goes on; empty when it does so by itself, or not at all."""

    def record(self) -> dict[str, Json]:
        return {
            "approval": self.approval.model_dump(mode="json"),
            "hosted": self.hosted,
            "continues": self.continues,
            "next": self.next,
        }


async def answered(podium: Podium, approval: Approval) -> Answered:
    """How things stand with the run of an approval that was just answered."""
    store = await podium.store()
    run = await store.read(lambda view: view.run(approval.run_id))
    if run is not None and approval.status is not ApprovalStatus.PENDING:
        is_granted = approval.status is ApprovalStatus.GRANTED
        step = await job_approvals(run).next_step(podium, run, granted=is_granted)
        if step is not None:
            return Answered(approval=approval, next=step)
    goes_on = await how_it_continues(store, podium.engine, approval)
    return Answered(
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
            help="Id of the approval, a short form, APPROVE: ID, or of the work order.",
        ),
    ],
    say: Annotated[
        str,
        typer.Option(
            "--say",
            metavar="WORDS",
            help="Words for the agent: the answer to its question. Where it has choices, one of them, its number, or "
            "your own words.",
        ),
    ] = "",
    root: RootToo = None,
) -> None:
    """Say yes to an approval. It holds once, for exactly what it shows, until its deadline.

    \b
    Example:
      podium approve 3e9d1f5a
      podium approve 3e9d1f5a --say "the second one"
      podium approve WO-FIX-OPAL_API
    """
    take_root(context, root)
    door = Door(context.obj)
    door.must_have_state("approval", approval_named_in(approval) or approval)

    who = approver(door)

    async def work(podium: Podium) -> Answered:
        groups = podium.settings.approvers
        store = await podium.store()
        meant = await store.read(lambda view: resolve_approval(view, approval))
        yes = await say_yes(
            store, podium.clock, podium.ids, meant, by=who, groups=groups, comment=say
        )
        return await answered(podium, yes)

    given = door.run(work)
    granted = given.approval

    def words() -> None:
        if granted.status is ApprovalStatus.GRANTED:
            door.screen.line(f"approved {granted.id}\n")
        else:
            group = waits_for(granted)
            door.screen.line(f"noted; {granted.id} still waits for somebody of {group!r}\n")
        if granted.tool == DELIVERY:
            # `podium candidates show` has the order whole.
            door.screen.line(what_line(granted))
        else:
            print_approval(door.screen, granted)
        if given.next:
            door.screen.aside(given.next)

    door.screen.answer(given.record(), words)


reject_app = command_app()


@reject_app.command()
def reject(
    context: typer.Context,
    approval: Annotated[
        str,
        typer.Argument(
            metavar="ID", help="Id of the approval, a short form, or of the work order."
        ),
    ],
    why: Annotated[str, typer.Option("--why", help="The reason, which the agent is told.")],
    root: RootToo = None,
) -> None:
    """Say no to an approval. That is final, and the agent hears why.

    \b
    Example:
      podium reject 3e9d1f5a --why "not before the release"
    """
    take_root(context, root)
    door = Door(context.obj, lenient=True)
    door.must_have_state("approval", approval)

    who = approver(door)

    async def work(podium: Podium) -> Answered:
        store = await podium.store()
        meant = await store.read(lambda view: resolve_approval(view, approval))
        try:
            no = await say_no(store, podium.clock, podium.ids, meant, by=who, why=why)
        except NotPossibleNow as too_late:
            raise await _with_a_way(store, podium, meant, too_late) from None
        return await answered(podium, no)

    given = door.run(work)

    def words() -> None:
        door.screen.line(f"rejected {given.approval.id}\n")
        if given.approval.tool == DELIVERY:
            _tell_undelivered(door.screen, given.approval)
        else:
            print_approval(door.screen, given.approval)
        if given.next:
            door.screen.aside(given.next)

    door.screen.answer(given.record(), words)


def _tell_undelivered(screen: Screen, refused: Approval) -> None:
    """Of an order that nobody will see; `podium candidates show` has it whole."""
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
    """The same refusal; of a candidate that has its yes and is not delivered yet, with how to stop it."""
    granted = await store.read(lambda view: _undelivered(view, meant))
    if granted is None:
        return too_late
    command = f"podium cancel {short_id(granted.run_id)}{root_words(podium.folders.project)}"
    return NotPossibleNow(f"{too_late}; it is not delivered yet: `{command}` stops it")


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
