"""Chat commands: parsed, performed by the services, answered in a few lines."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

from podium.app.approvals import approve, list_approvals, reject
from podium.app.id_lookup import find_id
from podium.app.inbox import resolve_approval
from podium.app.run_continuation import how_it_continues
from podium.app.run_list import list_runs, with_host_status
from podium.config.chat_settings import SenderSettings
from podium.core.approvals import Approver, Authentication
from podium.core.decisions import Approval, ApprovalStatus
from podium.core.errors import PodiumError, UnknownId
from podium.core.ids import short_id
from podium.core.job import ChatVerb, all_jobs, load
from podium.core.model import FrozenModel
from podium.core.work import Run, RunStatus
from podium.ports import RunQuery, StoreView
from podium.render.approval import what_line
from podium.render.text import escaped_line, escaped_text

if TYPE_CHECKING:
    from podium.app.app import Podium


Answer = Callable[["Podium", str, str], Awaitable[str]]
Role = Literal["", "operator", "approver"]

REQUIRED_ROLE: dict[str, Role] = {  # the keys are CHAT_VERBS of the registry of jobs
    "status": "",
    "approve": "approver",
    "answer": "approver",
    "reject": "approver",
    "help": "",
}
"""Role that each of the kernel's own verbs takes; those of jobs take the operator."""

_OWN_HELP = """status [ID]: what runs and what waits, or one run or approval
APPROVE: ID, or answer ID TEXT for a question
reject ID REASON
help"""

_FIRST_WORD = re.compile(r"^\s*/?(?P<verb>[A-Za-z]+)(?:@\w+)?:?(?:\s+(?P<rest>.*))?$", re.DOTALL)
"""`run …`; as bots are spoken to `/run …` or `/run@name …`; and `APPROVE: …`."""
_WITH_AN_ID = ("approve", "answer", "reject")


class ChatRequest(FrozenModel):
    """A message that could be read."""

    verb: str
    target: str = ""
    """The id of what it is about."""
    text: str = ""


def parse_request(message: str, verbs: Mapping[str, ChatVerb]) -> ChatRequest | str:
    """The request, or a sentence on what is missing. `verbs` are those of the jobs."""
    match = _FIRST_WORD.match(message)
    verb = match["verb"].lower() if match else ""
    rest = ((match["rest"] if match else "") or "").strip()
    if verb in verbs and verb not in REQUIRED_ROLE:
        argument = verbs[verb].argument
        return ChatRequest(verb=verb, text=rest) if rest else f"Write it as `{verb} {argument}`."
    if verb not in REQUIRED_ROLE:
        return f"Not a command of this chat.\n{help_text(verbs)}"
    if verb not in _WITH_AN_ID:
        return ChatRequest(verb=verb, target=rest)
    target, _, text = rest.partition(" ")
    return _parse_answer(verb, target, text.strip())


def _parse_answer(verb: str, target: str, text: str) -> ChatRequest | str:
    if not target:
        return f"Write the id of the approval after `{verb}`; `status` lists those that wait."
    if verb == "approve" and text:
        return "Write `APPROVE: ID` and nothing after it; `answer ID TEXT` answers a question."
    if verb != "approve" and not text:
        what = "a reason" if verb == "reject" else "the answer"
        return f"Write {what} after the id."
    return ChatRequest(verb=verb, target=target, text=text)


def help_text(verbs: Mapping[str, ChatVerb]) -> str:
    """All that can be written, a line each."""
    of_jobs = (f"{name} {verb.argument}: {verb.help}" for name, verb in verbs.items())
    return "\n".join((*of_jobs, _OWN_HELP))


DEDUP_WINDOW = timedelta(days=3)
"""Time for which a repeated message is recognised: services retry for about a day."""
MAX_TEXT = 20_000
MAX_ANSWER = 1_800
"""Below the 2,000 characters that Discord takes."""
MAX_LINE = 200
MAX_LISTED = 8
GOING_ON = (RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.WAITING, RunStatus.NEEDS_HUMAN)


class ChatService:
    """Answers people of chats. Who they are, their service has proved."""

    def __init__(self, podium: Podium) -> None:
        self._podium = podium

    async def answer(self, sender: SenderSettings, text: str, credential: str = "chat") -> str:
        """`credential` names what proved who speaks. What came of it, in words without secrets. What cannot be done is said, never raised."""
        if len(text) > MAX_TEXT:
            return f"The message has {len(text)} characters; the maximum is {MAX_TEXT}."
        verbs = {name: verb for job in all_jobs() for name, verb in job.chat.items()}
        request = parse_request(text, verbs)
        if isinstance(request, str):
            return request
        role = REQUIRED_ROLE.get(request.verb, "operator")
        if role and role not in sender.roles:
            return f"Not done: {sender.person} does not have the role {role}. Roles are set under `chat` in podium.yaml."
        try:
            response = await self._perform(_approver(sender, credential), request, verbs)
        except PodiumError as error:
            response = f"Not done: {error}"
        return self._safe(response)

    async def _perform(
        self, by: Approver, request: ChatRequest, verbs: Mapping[str, ChatVerb]
    ) -> str:
        match request.verb:
            case "status":
                return await (self._status_of(request.target) if request.target else self._status())
            case "approve" | "answer":
                return await self._approve(by, request)
            case "reject":
                return await self._reject(by, request)
            case "help":
                return help_text(verbs)
            case _:
                answer: Answer = load(verbs[request.verb].answer)
                return await answer(self._podium, request.text, by.name)

    async def _approve(self, by: Approver, request: ChatRequest) -> str:
        podium, store = self._podium, await self._podium.store()
        meant = await store.read(lambda view: resolve_approval(view, request.target))
        granted = await approve(
            store,
            podium.clock,
            podium.ids,
            meant,
            by=by,
            groups=podium.settings.approvers,
            comment=request.text,
        )
        if granted.status is not ApprovalStatus.GRANTED:
            return f"Recorded. {short_id(granted.id)} still needs another approval."
        return f"Approved {short_id(granted.id)}: {cut_line(what_line(granted))}{await self._next(granted)}"

    async def _next(self, approval: Approval) -> str:
        """Next step for a person after an answer, on a line of its own; empty when the run continues by itself."""
        goes_on = await how_it_continues(await self._podium.store(), self._podium.engine, approval)
        return f"\n{goes_on.sentence}" if goes_on.next else ""

    async def _reject(self, by: Approver, request: ChatRequest) -> str:
        podium, store = self._podium, await self._podium.store()
        meant = await store.read(lambda view: resolve_approval(view, request.target))
        refused = await reject(store, podium.clock, podium.ids, meant, by=by, why=request.text)
        return f"Rejected {short_id(refused.id)}: {cut_line(what_line(refused))}{await self._next(refused)}"

    async def _status(self) -> str:
        store = await self._podium.store()
        waiting = await list_approvals(store, self._podium.clock)
        runs = await list_runs(store, RunQuery(statuses=GOING_ON, limit=MAX_LISTED + 1))
        lines = [
            *_listed("waiting", [_waiting(approval) for approval in waiting]),
            *_listed("active", await self._run_lines(runs)),
        ]
        return "\n".join(lines) or "No runs are active, and nothing is waiting for a person."

    async def _run_lines(self, runs: list[Run]) -> list[str]:
        listings = await with_host_status(runs, self._podium.engine)
        return [_run_line(listing.run, listing.shown_status) for listing in listings]

    async def _status_of(self, target: str) -> str:
        store = await self._podium.store()
        run, asked = await store.read(lambda view: _meant(view, target))
        (line,) = await self._run_lines([run])
        waiting = [
            _waiting(approval) for approval in asked if approval.status is ApprovalStatus.PENDING
        ]
        why = f"\n{cut_line(escaped_line(run.failure.message))}" if run.failure else ""
        return "\n".join([line + why, *_listed("waits", waiting)])

    def _safe(self, text: str) -> str:
        visible = escaped_text(self._podium.redactor.text(text))
        return visible if len(visible) <= MAX_ANSWER else visible[: MAX_ANSWER - 1] + "…"


def _approver(sender: SenderSettings, credential: str) -> Approver:
    how = Authentication.CHAT
    return Approver(name=sender.person, authentication=how, credential=credential)


def _meant(view: StoreView, target: str) -> tuple[Run, list[Approval]]:
    """The run by its own id, or by that of an approval of it."""
    try:
        run_id = find_id(view, "run", target)
    except UnknownId:
        approval = view.approval(find_id(view, "approval", resolve_approval(view, target)))
        run_id = approval.run_id if approval else ""
    run = view.run(run_id)
    if run is None:
        raise UnknownId("run", target)
    return run, view.approvals(run_id=run_id)


def _listed(heading: str, lines: list[str]) -> list[str]:
    more = ["and more; the console shows all"] if len(lines) > MAX_LISTED else []
    return [f"{heading}: {line}" for line in lines[:MAX_LISTED]] + more


def _waiting(approval: Approval) -> str:
    return f"{approval.tier} {short_id(approval.id)} {cut_line(what_line(approval))}"


def _run_line(run: Run, status: str) -> str:
    return (
        f"run {short_id(run.id)} ({run.flow}) {status} {cut_line(escaped_line(run.task))}".rstrip()
    )


def cut_line(line: str) -> str:
    """The line as it is, or its beginning."""
    return line if len(line) <= MAX_LINE else line[: MAX_LINE - 1] + "…"
