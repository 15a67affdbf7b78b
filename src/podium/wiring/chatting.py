"""The chat door's wishes, done by the same use cases as every other door's, and answered in few words."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from podium.domain.approvals import Approver, Authentication
from podium.domain.errors import PodiumError, UnknownId
from podium.domain.gating import Approval, ApprovalStatus
from podium.domain.ids import short_id
from podium.domain.operating import OperatorAnswer, OperatorMode
from podium.domain.work import Run, RunStatus
from podium.ports import RunQuery, View
from podium.telling.approval_words import what_line
from podium.telling.untrusted import shown_line, shown_text
from podium.usecases import (
    approval_meant,
    approve,
    find_id,
    how_it_continues,
    how_they_stand,
    list_approvals,
    list_runs,
    reject,
)
from podium.usecases.chat import HELP, NEEDED_ROLE, ChatWish, understood
from podium.wiring.chat_settings import SenderSettings
from podium.wiring.submitting import ask, submit
from podium.wiring.wishes import Wish

if TYPE_CHECKING:
    from podium.wiring.podium import Podium

HEARD_FOR = timedelta(days=3)
"""How long a message is known again: services try on for about a day."""
LONGEST_TEXT = 20_000
LONGEST_ANSWER = 1_800
"""Below the 2,000 characters that Discord takes."""
LONGEST_LINE = 200
MOST_LISTED = 8
GOING_ON = (RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.WAITING, RunStatus.NEEDS_HUMAN)


class ChatDesk:
    """Answers people of chats. Who they are, their service has proved."""

    def __init__(self, podium: Podium) -> None:
        self._podium = podium

    async def answer(self, sender: SenderSettings, text: str, credential: str = "chat") -> str:
        """`credential` names what proved who speaks. What came of it, in words without secrets. What cannot be done is said, never raised."""
        if len(text) > LONGEST_TEXT:
            return f"{len(text)} characters are too many for a chat; {LONGEST_TEXT} are heard."
        wish = understood(text)
        if isinstance(wish, str):
            return wish
        needed = NEEDED_ROLE[wish.verb]
        if needed and needed not in sender.roles:
            return (
                f"Not done: {sender.person} is no {needed}. `chat` in podium.yaml names the roles."
            )
        try:
            said = await self._done(_approver(sender, credential), wish)
        except PodiumError as error:
            said = f"Not done: {error}"
        return self._safe(said)

    async def _done(self, by: Approver, wish: ChatWish) -> str:
        match wish.verb:
            case "run":
                run = await submit(self._podium, Wish(flow="pipeline", text=wish.words), by=by.name)
                return f"Run {short_id(run.id)} is queued. `status {short_id(run.id)}` tells how it goes."
            case "ask":
                return await self._asked(by.name, wish.words)
            case "status":
                return await (self._status_of(wish.target) if wish.target else self._status())
            case "approve" | "answer":
                return await self._approved(by, wish)
            case "reject":
                return await self._rejected(by, wish)
            case "help":
                return HELP

    async def _asked(self, by: str, words: str) -> str:
        answer = await ask(self._podium, words, mode=OperatorMode.ENQUEUE, by=by)
        store, action = await self._podium.store(), answer.action_id or ""
        asked = await store.read(lambda view: view.approval(action))
        return "\n".join(_operator_lines(answer, asked))

    async def _approved(self, by: Approver, wish: ChatWish) -> str:
        podium, store = self._podium, await self._podium.store()
        meant = await store.read(lambda view: approval_meant(view, wish.target))
        granted = await approve(
            store,
            podium.clock,
            podium.ids,
            meant,
            by=by,
            groups=podium.settings.approvers,
            said=wish.words,
        )
        if granted.status is not ApprovalStatus.GRANTED:
            return f"Noted. {short_id(granted.id)} still waits for somebody else of its chain."
        return f"Approved {short_id(granted.id)}: {_cut(what_line(granted))}{await self._next(granted)}"

    async def _next(self, approval: Approval) -> str:
        """What is left to a person after an answer, on a line of its own; empty when the run goes on by itself."""
        goes_on = await how_it_continues(await self._podium.store(), self._podium.engine, approval)
        return f"\n{goes_on.sentence}" if goes_on.next else ""

    async def _rejected(self, by: Approver, wish: ChatWish) -> str:
        podium, store = self._podium, await self._podium.store()
        meant = await store.read(lambda view: approval_meant(view, wish.target))
        refused = await reject(store, podium.clock, podium.ids, meant, by=by, why=wish.words)
        return f"Rejected {short_id(refused.id)}: {_cut(what_line(refused))}{await self._next(refused)}"

    async def _status(self) -> str:
        store = await self._podium.store()
        waiting = await list_approvals(store, self._podium.clock)
        runs = await list_runs(store, RunQuery(statuses=GOING_ON, limit=MOST_LISTED + 1))
        lines = [
            *_listed("waits", [_waiting(each) for each in waiting]),
            *_listed("goes on", await self._standings(runs)),
        ]
        return "\n".join(lines) or "Nothing goes on, and nothing waits for a person."

    async def _standings(self, runs: list[Run]) -> list[str]:
        stands = await how_they_stand(runs, self._podium.engine)
        return [_run_line(each.run, each.shown_status) for each in stands]

    async def _status_of(self, target: str) -> str:
        store = await self._podium.store()
        run, asked = await store.read(lambda view: _meant(view, target))
        (line,) = await self._standings([run])
        waiting = [_waiting(each) for each in asked if each.status is ApprovalStatus.PENDING]
        why = f"\n{_cut(shown_line(run.failure.message))}" if run.failure else ""
        return "\n".join([line + why, *_listed("waits", waiting)])

    def _safe(self, text: str) -> str:
        shown = shown_text(self._podium.redactor.text(text))
        return shown if len(shown) <= LONGEST_ANSWER else shown[: LONGEST_ANSWER - 1] + "…"


def _approver(sender: SenderSettings, credential: str) -> Approver:
    how = Authentication.CHAT
    return Approver(name=sender.person, authentication=how, credential=credential)


def _meant(view: View, target: str) -> tuple[Run, list[Approval]]:
    """The run by its own id, or by that of an approval of it."""
    try:
        run_id = find_id(view, "run", target)
    except UnknownId:
        approval = view.approval(find_id(view, "approval", approval_meant(view, target)))
        run_id = approval.run_id if approval else ""
    run = view.run(run_id)
    if run is None:
        raise UnknownId("run", target)
    return run, view.approvals(run_id=run_id)


def _operator_lines(answer: OperatorAnswer, asked: Approval | None) -> Iterator[str]:
    """How the operator took a message: what it wants a yes for, or why it does nothing."""
    run = f", run {short_id(answer.run_id)}" if answer.run_id else ""
    yield f"{answer.status.replace('_', ' ').capitalize()}{run}."
    if asked is not None:
        yield f"{asked.tier}: {_cut(what_line(asked))}"
        yield f"APPROVE: {short_id(asked.id)}"
    said = answer.classification
    words = (answer.reason, (said.question or said.reasoning) if said and not run else "")
    yield from (_cut(shown_line(each)) for each in words if each)


def _listed(heading: str, lines: list[str]) -> list[str]:
    more = ["and more; the console shows all"] if len(lines) > MOST_LISTED else []
    return [f"{heading}: {line}" for line in lines[:MOST_LISTED]] + more


def _waiting(approval: Approval) -> str:
    return f"{approval.tier} {short_id(approval.id)} {_cut(what_line(approval))}"


def _run_line(run: Run, status: str) -> str:
    return f"run {short_id(run.id)} ({run.flow}) {status} {_cut(shown_line(run.task))}".rstrip()


def _cut(line: str) -> str:
    return line if len(line) <= LONGEST_LINE else line[: LONGEST_LINE - 1] + "…"
