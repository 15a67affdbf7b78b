"""Chat commands: parsed, performed by the services, answered in a few lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

from podium.app.approvals import approve, list_approvals, reject
from podium.app.id_lookup import find_id
from podium.app.run_continuation import how_it_continues
from podium.app.run_list import how_they_stand, list_runs
from podium.app.submission import submit
from podium.app.work_request import Wish
from podium.config.chat_settings import SenderSettings
from podium.core.approvals import Approver, Authentication
from podium.core.decisions import Approval, ApprovalStatus
from podium.core.errors import PodiumError, UnknownId
from podium.core.ids import short_id
from podium.core.model import FrozenModel
from podium.core.work import Run, RunStatus
from podium.jobs.operator.models import OperatorAnswer, OperatorMode
from podium.jobs.operator.submission import ask
from podium.jobs.sense.candidate_lookup import approval_meant
from podium.ports import RunQuery, StoreView
from podium.render.approval import what_line
from podium.render.text import escaped_line, escaped_text

if TYPE_CHECKING:
    from podium.app.app import Podium


Verb = Literal["run", "ask", "status", "approve", "answer", "reject", "help"]
Needs = Literal["", "operator", "approver"]

NEEDED_ROLE: dict[Verb, Needs] = {
    "run": "operator",
    "ask": "operator",
    "status": "",
    "approve": "approver",
    "answer": "approver",
    "reject": "approver",
    "help": "",
}
"""What somebody must be for each; everybody who is heard may look."""

HELP = """run TASK: a task becomes a branch
ask MESSAGE: the operator plans it, and asks before it acts
status [ID]: what goes on and what waits, or one run or approval
APPROVE: ID, or answer ID WORDS for a question
reject ID WHY
help"""

_FIRST_WORD = re.compile(r"^\s*/?(?P<verb>[A-Za-z]+)(?:@\w+)?:?(?:\s+(?P<rest>.*))?$", re.DOTALL)
"""`run …`; as bots are spoken to `/run …` or `/run@name …`; and `APPROVE: …`."""
_WITH_AN_ID: tuple[Verb, ...] = ("approve", "answer", "reject")


class ChatWish(FrozenModel):
    """What is wished for."""

    verb: Verb
    target: str = ""
    """The id of what it is about."""
    words: str = ""


def understood(text: str) -> ChatWish | str:
    """The wish, or words that say what is missing of it."""
    found = _FIRST_WORD.match(text)
    verb = next((each for each in NEEDED_ROLE if found and found["verb"].lower() == each), None)
    if found is None or verb is None:
        return f"This is none of what can be said here.\n{HELP}"
    rest = (found["rest"] or "").strip()
    if verb in ("run", "ask"):
        what = "a task" if verb == "run" else "a message"
        return ChatWish(verb=verb, words=rest) if rest else f"Say {what} behind `{verb}`."
    if verb not in _WITH_AN_ID:
        return ChatWish(verb=verb, target=rest)
    target, _, words = rest.partition(" ")
    return _about(verb, target, words.strip())


def _about(verb: Verb, target: str, words: str) -> ChatWish | str:
    if not target:
        return f"Say the id of what waits behind `{verb}`; `status` lists it."
    if verb == "approve" and words:
        return "A yes is `APPROVE: ID` and nothing behind it; `answer ID WORDS` answers a question."
    if verb != "approve" and not words:
        what = "a reason" if verb == "reject" else "the answer"
        return f"Say {what} behind the id."
    return ChatWish(verb=verb, target=target, words=words)


HEARD_FOR = timedelta(days=3)
"""How long a message is known again: services try on for about a day."""
MAX_TEXT = 20_000
MAX_ANSWER = 1_800
"""Below the 2,000 characters that Discord takes."""
MAX_LINE = 200
MAX_LISTED = 8
GOING_ON = (RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.WAITING, RunStatus.NEEDS_HUMAN)


class ChatDesk:
    """Answers people of chats. Who they are, their service has proved."""

    def __init__(self, podium: Podium) -> None:
        self._podium = podium

    async def answer(self, sender: SenderSettings, text: str, credential: str = "chat") -> str:
        """`credential` names what proved who speaks. What came of it, in words without secrets. What cannot be done is said, never raised."""
        if len(text) > MAX_TEXT:
            return f"{len(text)} characters are too many for a chat; {MAX_TEXT} are heard."
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
        runs = await list_runs(store, RunQuery(statuses=GOING_ON, limit=MAX_LISTED + 1))
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
        why = f"\n{_cut(escaped_line(run.failure.message))}" if run.failure else ""
        return "\n".join([line + why, *_listed("waits", waiting)])

    def _safe(self, text: str) -> str:
        shown = escaped_text(self._podium.redactor.text(text))
        return shown if len(shown) <= MAX_ANSWER else shown[: MAX_ANSWER - 1] + "…"


def _approver(sender: SenderSettings, credential: str) -> Approver:
    how = Authentication.CHAT
    return Approver(name=sender.person, authentication=how, credential=credential)


def _meant(view: StoreView, target: str) -> tuple[Run, list[Approval]]:
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
    yield from (_cut(escaped_line(each)) for each in words if each)


def _listed(heading: str, lines: list[str]) -> list[str]:
    more = ["and more; the console shows all"] if len(lines) > MAX_LISTED else []
    return [f"{heading}: {line}" for line in lines[:MAX_LISTED]] + more


def _waiting(approval: Approval) -> str:
    return f"{approval.tier} {short_id(approval.id)} {_cut(what_line(approval))}"


def _run_line(run: Run, status: str) -> str:
    return f"run {short_id(run.id)} ({run.flow}) {status} {_cut(escaped_line(run.task))}".rstrip()


def _cut(line: str) -> str:
    return line if len(line) <= MAX_LINE else line[: MAX_LINE - 1] + "…"
