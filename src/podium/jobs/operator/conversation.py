"""OperatorConversation: messages of one session, each read after those before it, and remembered with what came of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from podium.core.errors import NotPossibleNow
from podium.core.model import Json
from podium.core.packs import Pack
from podium.core.work import RunStatus
from podium.jobs.operator.answers import Answers
from podium.jobs.operator.flow import results_of
from podium.jobs.operator.follow_up import ContinuedMessage, EmbeddedReader, Interpreter
from podium.jobs.operator.models import (
    AnswerStatus,
    CallResult,
    OperatorAnswer,
    OperatorJob,
    OperatorMode,
    RecordRef,
    RunPlan,
)
from podium.jobs.operator.operator import PackSelection, SessionContext, Started, no_listener
from podium.jobs.operator.records import is_plain_id
from podium.jobs.operator.references import points_back
from podium.jobs.operator.session import (
    MAX_RECORDS,
    Session,
    SessionMemory,
    SessionTurn,
    distinct,
    small,
)
from podium.ports import StoreView, Transaction

_BY_RUN: Mapping[RunStatus, AnswerStatus] = {
    RunStatus.SUCCEEDED: "succeeded",
    RunStatus.FAILED: "failed",
    RunStatus.CANCELLED: "cancelled",
}


@dataclass(frozen=True)
class OperatorConversationDeps:
    """Dependencies of a conversation."""

    selection: PackSelection
    memory: SessionMemory
    readers: Mapping[str, Callable[[], EmbeddedReader]]
    """Pack → Podium's own reading of it."""
    now: Callable[[], datetime]
    look: Callable[[Callable[[StoreView], Session]], Awaitable[Session]]
    """Reads what the session needs of the store."""
    withdraw: Callable[[Transaction, str, str], None]
    """Closes the approval of a plan that another run takes the place of."""
    cancel: Callable[[str], Awaitable[None]]
    """Ends the run of a plan that nobody wants any more."""
    may_approve: bool = True
    """False where approvals are given in another way than by a message."""


class OperatorConversation:
    """Answers the messages of one session; see `Operator.process`."""

    def __init__(self, deps: OperatorConversationDeps) -> None:
        self._deps = deps

    async def process(
        self,
        message: str,
        mode: str = OperatorMode.ANALYZE,
        context: Mapping[str, Json] | None = None,
        explicit_approval: bool = False,
        *,
        started: Started = no_listener,
        mode_explicit: bool = True,
    ) -> OperatorAnswer:
        """Answer a message of a person. On return the turn is durable, and so is what it did.

        Raises `NotPossibleNow` when another process went on with the session meanwhile; nothing was done then.
        """
        turn = _Turn(self._deps, await self._loaded())
        follow_up = turn.read(message)
        if follow_up.act == "drop":
            return await turn.drop(message)
        if follow_up.act == "done":
            return turn.done(message)
        if follow_up.act == "approve" and not self._deps.may_approve:
            return turn.approve_elsewhere(message)
        return await turn.ask(
            follow_up, mode, context or {}, explicit_approval, started, mode_explicit=mode_explicit
        )

    async def _loaded(self) -> Session:
        """The session, with the results of runs that ended since."""
        session = await self._deps.memory.load()
        if all(turn.settled for turn in session.turns):
            return session
        return await self._deps.look(lambda view: _settled(view, session, self._pack_of))

    def _pack_of(self, name: str) -> Pack | None:
        reader = self._deps.readers.get(name)
        return reader().pack if reader else None


class _Turn:
    """One message of a conversation."""

    def __init__(self, deps: OperatorConversationDeps, session: Session) -> None:
        self._deps = deps
        self._session = session
        self._before = session

    @property
    def _last(self) -> SessionTurn | None:
        return self._session.last

    def read(self, message: str) -> ContinuedMessage:
        last = self._last
        reader = self._deps.readers.get(last.pack) if last and last.pack else None
        return Interpreter(
            self._session, message, self._deps.now(), reader() if reader else None
        ).read()

    async def ask(
        self,
        follow_up: ContinuedMessage,
        mode: str,
        context: Mapping[str, Json],
        explicit_approval: bool,
        started: Started,
        *,
        mode_explicit: bool,
    ) -> OperatorAnswer:
        last, session = self._last, self._session
        approving = follow_up.act == "approve" and last is not None
        text = f"APPROVE: {last.action_id}" if approving and last else follow_up.text
        known = {**follow_up.context, **context}

        def along(tx: Transaction, job: OperatorJob, run_id: str) -> None:
            if follow_up.continues and last is not None and last.action_id:
                self._deps.withdraw(tx, last.action_id, run_id)
            turn = self._turn(follow_up, known, job.plan).model_copy(
                update={"run_id": run_id, "status": "enqueued", "settled": False}
            )
            self._session = self._before.with_turn(turn, replaces=follow_up.continues)
            self._deps.memory.save(tx, self._before, self._session)

        context_of_session = SessionContext(
            full_text=follow_up.full_text,
            about=follow_up.about,
            focus=session.focus,
            latest=len(last.records) if last else 0,
            shown=session.shown,
            pack=last.pack if last and points_back(follow_up.text) else "",
            along=along,
        )
        answer = await self._deps.selection.process(
            text, mode, known, explicit_approval,
            started=started, mode_explicit=mode_explicit, session=context_of_session, pack=follow_up.pack,
        )  # fmt: skip
        taken_over = follow_up.continues and last is not None and last.action_id
        if taken_over and last is not None and answer.run_id not in (None, last.run_id):
            # Its approval is closed; whoever hosts it may have ended it already.
            with suppress(NotPossibleNow):
                await self._deps.cancel(last.run_id)
        await self._remember(follow_up, known, answer, approving=approving)
        return answer

    async def drop(self, message: str) -> OperatorAnswer:
        """Answer `never mind`: the plan that waits is cancelled, the question is not asked any more."""
        last = self._last
        if last is not None and last.action_id:
            await self._deps.cancel(last.run_id)
        if last is not None:
            closed = last.model_copy(
                update={"status": "cancelled", "action_id": "", "missing": (), "options": ()}
            )
            session = self._session.with_turn(closed, replaces=True)
            await self._deps.memory.keep(self._before, session)
        return Answers().dropped(message, last.full_text if last else "")

    def done(self, message: str) -> OperatorAnswer:
        last = self._last
        return Answers().already_done(message, last.run_id if last else "")

    def approve_elsewhere(self, message: str) -> OperatorAnswer:
        action_id = self._last.action_id if self._last else ""
        problem = f"approvals cannot be sent as messages here; run `podium approve {action_id}` or use the card"
        return Answers().not_understood(message, OperatorMode.ENQUEUE, [problem])

    # --- what is remembered ------------------------------------------------------------------

    async def _remember(
        self,
        follow_up: ContinuedMessage,
        context: Mapping[str, Json],
        answer: OperatorAnswer,
        *,
        approving: bool,
    ) -> None:
        last, stored = self._last, self._session is not self._before
        if answer.status == "error" and answer.run_id is None:
            return
        if approving and last is not None:
            turn = last.model_copy(update={"action_id": "", "settled": True})
        else:
            turn = self._turn(follow_up, context, answer.plan)
        classification = answer.classification
        candidates = classification.tool_candidates if classification else ()
        turn = turn.model_copy(update={"pack": turn.pack or self._pack_with(candidates)})
        pack = self._pack(turn.pack)
        shown = tuple(_shown(answer.results, pack)) if pack else ()
        created = tuple(_created(answer.results, pack)) if pack else ()
        options = answer.options
        turn = turn.model_copy(
            update={
                "status": answer.status,
                "missing": classification.missing_evidence if classification else (),
                "tools": turn.tools or candidates,
                "options": options,
                "option_field": classification.option_field if classification and options else "",
                "run_id": answer.run_id or turn.run_id,
                "action_id": answer.action_id or "",
                "settled": answer.status not in ("awaiting_approval", "enqueued"),
                "shown": options or shown,
                "records": distinct([*created, *_alone(shown), *turn.records])[:MAX_RECORDS],
            }
        )
        replaces = stored or follow_up.continues or approving
        session = self._session.with_turn(turn, replaces=replaces)
        try:
            await self._deps.memory.keep(self._session, session)
        except NotPossibleNow:
            # What was done is found by its run; only an answer that did nothing would be lost.
            if not stored:
                raise

    def _turn(
        self, follow_up: ContinuedMessage, context: Mapping[str, Json], plan: RunPlan | None
    ) -> SessionTurn:
        pack = self._pack(plan.pack) if plan else None
        return SessionTurn(
            at=self._deps.now(),
            text=follow_up.text,
            full_text=follow_up.full_text or follow_up.text,
            about=follow_up.about,
            context=small(context),
            pack=plan.pack if plan else follow_up.pack,
            tools=plan.tool_sequence if plan else (),
            records=distinct(_planned(plan, pack)) if plan and pack else (),
        )

    def _pack_with(self, tools: tuple[str, ...]) -> str:
        """The pack that has the first of these tools; empty: none."""
        packs = (reader().pack for reader in self._deps.readers.values())
        having = (
            pack.name for pack in packs if tools and (pack.tool(tools[0]) or pack.skill(tools[0]))
        )
        return next(having, "")

    def _pack(self, name: str) -> Pack | None:
        reader = self._deps.readers.get(name)
        return reader().pack if reader else None


def _planned(plan: RunPlan, pack: Pack) -> Iterator[RecordRef]:
    """The records that a plan is about: those that were looked up, and those that it names by their ids."""
    for step in plan.steps:
        for record in step.records:
            yield RecordRef(kind=record.kind, id=record.id, label=record.label)
        tool = pack.tool(step.tool)
        for name, shape in (tool.properties if tool else {}).items():
            kind = str(shape.get("x-kind", ""))
            value = step.arguments.get(name)
            if kind.startswith("id:") and isinstance(value, str) and is_plain_id(value):
                yield RecordRef(kind=kind.removeprefix("id:"), id=value)


def _created(results: tuple[CallResult, ...], pack: Pack) -> Iterator[RecordRef]:
    """The records that receipts name, in the order in which the registry lists their fields; the last call first."""
    kinds = {f"{lookup.kind}_id": lookup.kind for lookup in pack.registry.lookup}
    for result in reversed(results):
        tool = pack.tool(result.tool)
        if result.status != "completed" or tool is None:
            continue
        for name in tool.receipt_fields:
            value = result.fields.get(name)
            if name in kinds and isinstance(value, str) and is_plain_id(value):
                yield RecordRef(kind=kinds[name], id=value)


def _shown(results: tuple[CallResult, ...], pack: Pack) -> Iterator[RecordRef]:
    """The records of the last list among the results, in its order."""
    for result in reversed(results):
        for lookup in pack.registry.lookup:
            tool = pack.tool(result.tool)
            rows = result.fields.get(lookup.find.rows)
            if (
                tool is None
                or lookup.find.rows not in tool.receipt_fields
                or not isinstance(rows, list)
            ):
                continue
            ids = [row.get(lookup.id) for row in rows[:MAX_RECORDS] if isinstance(row, dict)]
            yield from (
                RecordRef(kind=lookup.kind, id=one)
                for one in ids
                if isinstance(one, str) and is_plain_id(one)
            )
            return


def _alone(shown: tuple[RecordRef, ...]) -> tuple[RecordRef, ...]:
    """A list of one record is about that record."""
    return shown if len(shown) == 1 else ()


def _settled(view: StoreView, session: Session, pack_of: Callable[[str], Pack | None]) -> Session:
    turns = [_settled_turn(view, turn, pack_of(turn.pack)) for turn in session.turns]
    return session.model_copy(update={"turns": tuple(turns)})


def _settled_turn(view: StoreView, turn: SessionTurn, pack: Pack | None) -> SessionTurn:
    """The turn with the results of its run, as far as it went."""
    run = view.run(turn.run_id) if turn.run_id and not turn.settled else None
    if run is None or pack is None:
        return turn
    results = results_of(view, run.id, OperatorJob.model_validate(run.input).plan)
    created = [*_created(results, pack), *turn.records]
    shown = tuple(_shown(results, pack)) or turn.shown
    pending = next((one for one in view.approvals(run_id=run.id) if one.status == "pending"), None)
    status = _BY_RUN.get(run.status, "awaiting_approval" if pending else turn.status)
    return turn.model_copy(
        update={
            "status": status,
            "action_id": pending.id if pending and not run.status.ended else "",
            "settled": run.status.ended,
            "shown": shown,
            "records": distinct([*created, *_alone(shown)])[:MAX_RECORDS],
        }
    )
