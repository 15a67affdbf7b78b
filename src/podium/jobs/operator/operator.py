"""Operator: a message passes the layers one after the other, with the tools of one or several packs."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from podium.core.approval_steps import approval_named_in
from podium.core.approvals import Approver
from podium.core.decisions import Approval, ApprovalStatus, Receipt, Tier, spent_since
from podium.core.errors import (
    BadInput,
    LockHeld,
    NotPossibleNow,
    PlanNotGated,
    PlanRejected,
    StoreFull,
    UnknownId,
)
from podium.core.model import Json
from podium.core.packs import Pack, PackTool, Skill
from podium.core.work import Run, RunStatus
from podium.jobs.operator.answers import Answers
from podium.jobs.operator.flow import Brain
from podium.jobs.operator.judgement.embedded.tokens import plain_tokens
from podium.jobs.operator.judgement.ground_check import FindUngrounded
from podium.jobs.operator.judgement.judge import SURE_ENOUGH, FindConflict, holds_reference, judge
from podium.jobs.operator.models import (
    Conflict,
    Intent,
    IntentClassification,
    Message,
    OperatorAnswer,
    OperatorJob,
    OperatorMode,
    Reading,
    RecordRef,
    RunPlan,
)
from podium.jobs.operator.plan import make_plan, undo_plan
from podium.jobs.operator.plan_gate import inspect
from podium.jobs.operator.ports import Classifier, Habits
from podium.jobs.operator.resolution import ReferenceResolution, Resolve, unresolved
from podium.platform.invisible_text import hidden_in, written
from podium.ports import Ids, Transaction

MAX_CHARACTERS = 20_000
MAX_CONTEXT_BYTES = 3_000_000
"""Limit of the context: the plan is stored with the run, and a record holds 4 MB."""
_HARMLESS = ("Zl", "Zp", "Co", "Cn")
_WORDS_BEFORE, _MAX_BEFORE = 3, 60


def input_problems(message: Json, mode: Json, context: Json) -> list[str]:
    """List everything that keeps a message from being read, for its sender."""
    return [*_message_problems(message), *_mode_problems(mode), *_context_problems(context)]


def _message_problems(message: Json) -> Iterator[str]:
    if not isinstance(message, str):
        yield f"the message must be text, not {type(message).__name__}"
        return
    if not message.strip():
        yield "the message is empty; say what to do"
    if len(message) > MAX_CHARACTERS:
        yield (
            f"the message has {len(message)} characters, the limit is {MAX_CHARACTERS}; "
            "put data in a file and pass it with --context-file"
        )
        return
    hidden = next(
        ((at, character) for at, character in hidden_in(message) if _is_refused(character)), None
    )
    if hidden is not None:
        yield _hidden_character_problem(message, *hidden)


def _is_refused(character: str) -> bool:
    """Return whether a hidden character is refused. Separators and unassigned characters are invisible too, and harmless."""
    return character != "\r" and unicodedata.category(character) not in _HARMLESS


def _hidden_character_problem(message: str, at: int, character: str) -> str:
    # Cs: half of a surrogate pair, which no text has.
    control = unicodedata.category(character) in ("Cc", "Cs")
    kind = "control character" if control else "hidden character"
    name = unicodedata.name(character, "")
    called = f"{written(character)} ({name.lower()})" if name else written(character)
    before = " ".join(message[:at].split()[-_WORDS_BEFORE:])[-_MAX_BEFORE:]
    where = f"after {before!r}" if before else "at its beginning"
    return (
        f"the message contains the {kind} {called} {where}, so it may not be what it looks like; "
        "retype it as plain text"
    )


def _mode_problems(mode: Json) -> Iterator[str]:
    if mode not in list(OperatorMode):
        yield f"unknown mode {str(mode)[:40]!r}; modes: {', '.join(OperatorMode)}"


def _context_problems(context: Json) -> Iterator[str]:
    if context is None:
        return
    if not isinstance(context, dict):
        yield f"the context must be an object of names and values, not {type(context).__name__}"
        return
    try:
        # As it is: half of a surrogate pair can be written as \ud800 and stored nowhere.
        size = len(json.dumps(context, allow_nan=False, ensure_ascii=False).encode())
    except (TypeError, ValueError, RecursionError) as error:
        yield f"the context is not plain JSON: {error}"
        return
    if holds_reference(context):
        yield "a name in the context begins with `$`, which is reserved for plans; rename it"
    if size > MAX_CONTEXT_BYTES:
        yield (
            f"the context has {size} bytes, the limit is {MAX_CONTEXT_BYTES}; "
            "pass files by path instead of embedding them"
        )


@dataclass(frozen=True)
class SessionContext:
    """Additions of a conversation to one message."""

    full_text: str = ""
    about: str = ""
    focus: tuple[RecordRef, ...] = ()
    latest: int = 0
    shown: tuple[RecordRef, ...] = ()
    pack: str = ""
    """Pack of the message before, where this one has a word that stands for something of it."""
    along: Callable[[Transaction, OperatorJob, str], None] | None = None
    """Done in the transaction that stores the run of a plan, with the run's id."""

    def of_message(self) -> dict[str, Json]:
        return {
            "full_text": self.full_text,
            "about": self.about,
            "focus": self.focus,
            "latest": self.latest,
            "shown": self.shown,
        }

    def along_with(
        self, job: OperatorJob, run_id: str | None
    ) -> Callable[[Transaction], None] | None:
        along = self.along
        if along is None or run_id is None:
            return None
        return lambda tx: along(tx, job, run_id)


NO_SESSION = SessionContext()
"""A message outside of any conversation."""

Started = Callable[[Run], Awaitable[None]]
"""Called with the run as soon as it is stored."""


async def no_listener(run: Run) -> None:
    """Do nothing: the caller does not follow the run."""
    return


async def nothing_resolved(message: Message, reading: Reading) -> ReferenceResolution:
    """Resolve nothing: all arguments are in the message or its context."""
    return unresolved(reading, message.text)


async def nothing_mentioned(message: Message) -> Message:
    """Find nothing: no records are known."""
    return message


async def nothing_completed(message: Message) -> Mapping[str, Json]:
    """Complete nothing: the context is as it was handed in."""
    return message.context


async def nothing_previewed(plan: RunPlan) -> RunPlan:
    """Preview nothing: the arguments of the calls say all that is sent."""
    return plan


@dataclass(frozen=True)
class OperatorDeps:
    """Dependencies of the operator."""

    pack: Pack
    classifier: Classifier
    find_conflict: FindConflict
    find_ungrounded: FindUngrounded
    """Finds the parts of a reading that nobody said."""
    context_problems: Callable[[Mapping[str, Json]], Awaitable[Sequence[str]]]
    """Problems of the named parts of a context, each with its pointer."""
    now: Callable[[], datetime]
    """Local time, for words such as `tomorrow`."""
    ids: Ids
    brain: Callable[[], Awaitable[Brain]]
    """Opens the record and the engine on first use."""
    worker_is_there: Callable[[Run], Awaitable[None]]
    """Ensures that a worker serves the operator's queue."""
    approve: Callable[[str], Awaitable[Approval]]
    """Approves in the name of the caller."""
    approver: Callable[[], Approver]
    """Caller with proof of identity. Called only where their approval counts."""
    habits: Habits
    user: str
    resolve: Resolve = nothing_resolved
    """Takes arguments that the message leaves out from records, and what `x-resolve` names."""
    mention: Callable[[Message], Awaitable[Message]] = nothing_mentioned
    """Finds the records that the message names."""
    complete: Callable[[Message], Awaitable[Mapping[str, Json]]] = nothing_completed
    """Fills the parts of a context that may leave out which record they are about."""
    max_tool_calls: int = 50
    pack_folder: str = ""
    """Folder of the pack, when it did not come with Podium."""
    preview: Callable[[RunPlan], Awaitable[RunPlan]] = nothing_previewed
    """Adds to a plan what its calls send out of the machine."""


class Operator:
    """Turns a message into a validated, approved run with receipts."""

    def __init__(self, deps: OperatorDeps) -> None:
        self._deps = deps
        self._answers = Answers(deps.pack.name)

    @property
    def pack_name(self) -> str:
        return self._deps.pack.name

    async def process(
        self,
        message: str,
        mode: str = OperatorMode.ANALYZE,
        context: Mapping[str, Json] | None = None,
        explicit_approval: bool = False,
        *,
        provenance: tuple[str, ...] = (),
        started: Started = no_listener,
        mode_explicit: bool = True,
        session: SessionContext = NO_SESSION,
    ) -> OperatorAnswer:
        """Answer a message, whatever it contains.

        Without `mode_explicit` a plan that only reads is performed where its pack `reads_at_once`. `explicit_approval` is a yes to the very plan that comes of it, for this once; it counts for
        no chain of approvers. Raises only what concerns Podium itself, such as an unusable database.
        """
        problems = input_problems(message, mode, context)
        action_id = None if problems else approval_named_in(message)
        if action_id is not None and provenance:
            problems = [f"only a person can approve; {', '.join(provenance)} cannot"]
        elif action_id is not None:
            return await self._released(action_id, started)
        if problems:
            return self._answers.not_understood(message, mode, problems)
        request = Message(
            text=message,
            context=dict(context or {}),
            now=self._deps.now(),
            provenance=provenance,
            **session.of_message(),
        )
        problems = list(await self._deps.context_problems(request.context))
        if problems:
            completed = dict(await self._deps.complete(request))
            problems = list(await self._deps.context_problems(completed))
            request = request.model_copy(update={"context": completed})
        if problems:
            return self._answers.not_understood(message, mode, problems)
        before = self._deps.classifier.usage
        answer = await self._answered(
            request,
            OperatorMode(mode),
            explicit_approval,
            started,
            session,
            mode_explicit=mode_explicit,
        )
        self._deps.habits.remember(answer)
        used = spent_since(before, self._deps.classifier.usage)
        return answer.model_copy(update={"reading_usage": used})

    async def _answered(
        self,
        message: Message,
        mode: OperatorMode,
        explicit_approval: bool,
        started: Started,
        session: SessionContext,
        *,
        mode_explicit: bool,
    ) -> OperatorAnswer:
        classification = await self._classified(message)
        suggestions = tuple(self._deps.habits.suggestions(message.text, pack=self._deps.pack.name))
        if classification.intent is Intent.REFUSE:
            return self._answers.refused(message.shown_text, mode, classification)
        plan = make_plan(
            classification, message, self._deps.pack, plan_id=self._deps.ids.new("plan")
        )
        if classification.intent is Intent.CLARIFY:
            return self._answers.unclear(
                message.shown_text, mode, classification, plan, suggestions
            )
        report = inspect(plan, self._deps.pack, max_tool_calls=self._deps.max_tool_calls)
        if plan.status == "rejected" or not report.sound:
            return self._answers.gate_failed(message.shown_text, mode, classification, plan, report)
        if not mode_explicit and self._only_reads(plan):
            mode = OperatorMode.EXECUTE
        if not mode.acts:
            return self._answers.looked(
                message.shown_text, mode, classification, plan, report, suggestions
            )
        job = self._job(plan, explicit_approval, message.provenance)
        return await self.carry_out(job, mode, classification, started, session)

    def _only_reads(self, plan: RunPlan) -> bool:
        """Return whether the plan may be performed although no mode was given."""
        reads = self._deps.pack.registry.reads_at_once and plan.estimated_risk is Tier.T0
        return reads and not plan.requires_approval

    async def undo(
        self,
        receipt: Receipt,
        mode: str,
        explicit_approval: bool,
        *,
        started: Started = no_listener,
    ) -> OperatorAnswer:
        """Plan the reversal of a receipt, gated like any other plan and linked to the receipt."""
        text = f"undo receipt {receipt.number} of run {receipt.run_id} ({receipt.tool})"
        problems = input_problems(text, mode, None)
        if problems:
            return self._answers.not_understood(text, mode, problems)
        try:
            plan = undo_plan(
                receipt,
                self._deps.pack,
                plan_id=self._deps.ids.new("plan"),
                classification_id=self._deps.ids.new("cls"),
                message=text,
            )
        except PlanRejected as error:
            return self._answers.not_understood(text, mode, [str(error)])
        chosen, job = OperatorMode(mode), self._job(plan, explicit_approval, ())
        if not chosen.acts:
            report = inspect(plan, self._deps.pack, max_tool_calls=self._deps.max_tool_calls)
            return self._answers.looked(text, chosen, None, plan, report, ())
        return await self.carry_out(job, chosen, None, started)

    def _job(
        self, plan: RunPlan, explicit_approval: bool, provenance: tuple[str, ...]
    ) -> OperatorJob:
        return OperatorJob(
            plan=plan,
            asked_by=self._deps.user,
            approver=self._deps.approver() if explicit_approval else None,
            explicit_approval=explicit_approval,
            max_tool_calls=self._deps.max_tool_calls,
            provenance=provenance,
            pack_folder=self._deps.pack_folder,
        )

    async def _classified(self, message: Message) -> IntentClassification:
        message = await self._deps.mention(message)
        resolution = await self._deps.resolve(message, await self._deps.classifier.read(message))
        calls = tuple(
            intent.model_copy(update={"records": records})
            for intent, records in zip(resolution.reading.calls, resolution.records, strict=True)
        )
        classification = judge(
            message.model_copy(update={"text": resolution.text}),
            resolution.reading.model_copy(update={"calls": calls}),
            self._deps.pack,
            resolved=resolution.arguments,
            classification_id=self._deps.ids.new("cls"),
            find_conflict=self._conflict_finder(message),
            find_ungrounded=self._deps.find_ungrounded,
            classifier=self._deps.classifier.name,
        )
        return _asked(classification, resolution)

    def _conflict_finder(self, message: Message) -> FindConflict:
        """Judge the person's own words first, and then the message with the records in it."""
        find = self._deps.find_conflict

        def found(read: Message, reading: Reading, pack: Pack) -> Conflict | None:
            own = message.model_copy(update={"text": message.shown_text})
            return find(own, reading, pack) or find(read, reading, pack)

        return found

    async def carry_out(
        self,
        job: OperatorJob,
        mode: OperatorMode,
        classification: IntentClassification | None = None,
        started: Started = no_listener,
        session: SessionContext = NO_SESSION,
    ) -> OperatorAnswer:
        """Run layers 3 and 4 for a plan: wait for approvals, or run it and answer with its results."""
        brain = await self._deps.brain()
        queued = mode is not OperatorMode.EXECUTE
        if job.plan.requires_approval:
            job = job.model_copy(update={"plan": await self._deps.preview(job.plan)})
        try:
            run_id = self._deps.ids.new("run") if session.along else None
            run, approval = await brain.begin(
                job,
                self._deps.pack,
                queued=queued,
                run_id=run_id,
                along=session.along_with(job, run_id),
            )
        except PlanNotGated as error:
            return self._answers.stopped(job, mode, classification, str(error))
        await started(run)
        if queued:
            await self._deps.worker_is_there(run)
        pending = approval is not None and approval.status is ApprovalStatus.PENDING
        if mode is OperatorMode.ENQUEUE or (queued and pending):
            return self._answers.under_way(job, mode, classification, run, approval)
        ended = await brain.engine.finish(run.id, stop_when_waiting=True)
        return await self._result_answer(brain, ended, job.plan, mode, classification)

    async def _released(self, action_id: str, started: Started) -> OperatorAnswer:
        """Handle `APPROVE: <action_id>`: continue the plan with this id here."""
        brain = await self._deps.brain()
        try:
            approval = await self._deps.approve(action_id)
        except (BadInput, UnknownId, NotPossibleNow) as error:
            return self._answers.not_understood(
                f"APPROVE: {action_id}", OperatorMode.EXECUTE, [str(error)]
            )
        run = await brain.store.read(lambda view: view.run(approval.run_id))
        job = _job_of(run)
        if run is None or job is None:
            return self._answers.approved_elsewhere(approval)
        if approval.status is ApprovalStatus.PENDING:
            mode = OperatorMode.EXECUTE
            return self._answers.under_way(job, mode, None, run, approval)
        await started(run)
        if run.queue is not None:
            await self._deps.worker_is_there(run)
        else:
            # A worker may have taken it up already: then it is followed from here.
            with suppress(LockHeld, NotPossibleNow):
                await brain.engine.resume(run.id, by=self._deps.user)
        ended = await brain.engine.finish(run.id, stop_when_waiting=True)
        answer = await self._result_answer(brain, ended, job.plan, OperatorMode.EXECUTE, None)
        self._deps.habits.remember(answer)
        return answer

    async def _result_answer(
        self,
        brain: Brain,
        run: Run,
        plan: RunPlan,
        mode: OperatorMode,
        classification: IntentClassification | None,
    ) -> OperatorAnswer:
        results = await brain.look(run.id, plan)
        approvals = await brain.store.read(lambda view: view.approvals(run_id=run.id))
        stopped = _why_stopped(run, brain.engine.disk_full_error())
        return self._answers.ended(
            run, plan, mode, classification, results, approvals, stopped=stopped
        )


def _asked(
    classification: IntentClassification, resolution: ReferenceResolution
) -> IntentClassification:
    """The classification with the question which record is meant, where that is missing."""
    missing = resolution.option_field in classification.missing_evidence
    if not resolution.question or not missing or classification.intent is not Intent.CLARIFY:
        return classification
    return classification.model_copy(
        update={
            "question": resolution.question,
            "options": resolution.options,
            "option_field": resolution.option_field,
        }
    )


def _why_stopped(run: Run, full: StoreFull | None) -> str:
    """Explain why a run of this process, which no other would take, is no longer hosted; empty when it is."""
    if run.queue is not None or run.status is not RunStatus.RUNNING or run.owner is not None:
        return ""
    return str(full or "the run was stopped at its checkpoint")


def _job_of(run: Run | None) -> OperatorJob | None:
    if run is None or run.flow != "operator":
        return None
    return OperatorJob.model_validate(run.input)


NEAR = 0.12
"""Readings whose confidence differs by at most this much fit about equally."""
EXACT = 2.0
"""Fit of a message that is in the registry word for word: better than any confidence."""
_POLITE = frozenset({"please", "pls"})


@dataclass(frozen=True)
class PackReader:
    """A pack, and Podium's own reading of a message against it. No model is asked."""

    pack: Pack
    read: Callable[[Message], Reading]
    now: Callable[[], datetime]
    """Local time of the pack, for words such as `tomorrow`."""

    def fit(self, text: str, context: Mapping[str, Json]) -> tuple[float, str]:
        """Score the best tool, 0 for none, and name it."""
        reading = self.read(Message(text=text, context=dict(context), now=self.now()))
        if reading.intent is Intent.REFUSE or not reading.candidates:
            return 0.0, ""
        exact = _spoken(text) in _ways(self.pack)
        return EXACT if exact else reading.confidence, reading.candidates[0]

    def sentence(self, tool: str) -> str:
        """`system.status of pack podium (Report the status of Podium)`."""
        entry = self.pack.tool(tool) or self.pack.skill(tool)
        about = entry.description.split(". ")[0].split(":")[0].rstrip(".") if entry else ""
        return f"{tool} of pack {self.pack.name} ({about})"


class PackSelection:
    """Answers messages with the tools of one or several packs; see `Operator.process`."""

    def __init__(
        self,
        operators: Sequence[Operator],
        readers: Sequence[PackReader],
        *,
        first_wins: bool = False,
        others: Callable[[], Iterable[PackReader]] = tuple,
    ) -> None:
        """`readers` go with `operators`; one alone needs none. `first_wins`: of packs that fit alike the first is taken, and nobody is asked.

        `others` are packs that a refusal may point to; they are loaded when there is one.
        """
        self._operators = operators
        self._readers = readers
        self._first_wins = first_wins
        self._others = others

    async def process(
        self,
        message: str,
        mode: str = OperatorMode.ANALYZE,
        context: Mapping[str, Json] | None = None,
        explicit_approval: bool = False,
        *,
        provenance: tuple[str, ...] = (),
        started: Started = no_listener,
        mode_explicit: bool = True,
        session: SessionContext = NO_SESSION,
        pack: str = "",
    ) -> OperatorAnswer:
        """Answer with the pack that the message is for, or ask which one it is for. `pack`: it is for this one."""

        async def answered(operator: Operator) -> OperatorAnswer:
            return await operator.process(
                message, mode, context, explicit_approval,
                provenance=provenance, started=started, mode_explicit=mode_explicit, session=session,
            )  # fmt: skip

        if only := self._of_pack(pack):
            return await answered(only)
        readable = not input_problems(message, mode, context) and approval_named_in(message) is None
        fits = self._fits(message, context or {}) if readable and len(self._operators) > 1 else []
        if spoken_of := self._spoken_of(fits, session.pack):
            return await answered(spoken_of)
        if len(alike := _alike(fits)) > 1 and not self._first_wins:
            ways = {reader.pack.name: reader.sentence(tool) for reader, (_, tool) in alike}
            confidence = min(1.0, max(fit for _, (fit, _) in alike))
            return Answers().which_pack(message, OperatorMode(mode), ways, confidence)
        first, *rest = self._order(alike) if readable else self._operators[:1]
        answer = await answered(first)
        for operator in rest:
            if answer.status == "refused":
                other = await answered(operator)
                answer = answer if other.status == "refused" else other
        return self._with_hint(answer, message, context or {}) if readable else answer

    def _of_pack(self, name: str) -> Operator | None:
        return next((one for one in self._operators if name and one.pack_name == name), None)

    def _spoken_of(
        self, fits: Sequence[tuple[PackReader, tuple[float, str]]], pack: str
    ) -> Operator | None:
        """The operator of the pack that a pronoun may mean; None where another pack surely has a tool."""
        others = (fit for reader, (fit, _) in fits if reader.pack.name != pack)
        return self._of_pack(pack) if max(others, default=0.0) < SURE_ENOUGH else None

    def _fits(
        self, message: str, context: Mapping[str, Json]
    ) -> list[tuple[PackReader, tuple[float, str]]]:
        return [(reader, reader.fit(message, context)) for reader in self._readers]

    def _order(self, alike: Sequence[tuple[PackReader, tuple[float, str]]]) -> Sequence[Operator]:
        """Select the operator of the pack that fits; all in turn, where Podium finds none.

        A model may see more than Podium does.
        """
        if not alike:
            return self._operators
        at = next(
            position for position, reader in enumerate(self._readers) if reader is alike[0][0]
        )
        return self._operators[at : at + 1]

    def _with_hint(
        self, answer: OperatorAnswer, message: str, context: Mapping[str, Json]
    ) -> OperatorAnswer:
        """Add to a refusal for lack of a tool the pack that has one."""
        classification = answer.classification
        if (
            answer.status != "refused"
            or answer.run_id
            or classification is None
            or classification.conflict is not None
        ):
            return answer
        for reader in self._others():
            fit, tool = reader.fit(message, context)
            if fit >= SURE_ENOUGH:
                return Answers().with_other_pack(answer, message, reader.pack.name, tool)
        return answer


def _alike(
    fits: Sequence[tuple[PackReader, tuple[float, str]]],
) -> list[tuple[PackReader, tuple[float, str]]]:
    """The packs that fit best, about equally; none where no tool fits."""
    best = max((fit for _, (fit, _) in fits), default=0.0)
    return [(reader, (fit, tool)) for reader, (fit, tool) in fits if fit and fit >= best - NEAR]


def _ways(pack: Pack) -> set[tuple[str, ...]]:
    """Collect all phrases of the registry that ask for its tools."""
    subjects: list[PackTool | Skill] = [*pack.registry.tools, *pack.registry.skills]
    phrases = (
        way
        for subject in subjects
        for way in (*subject.synonyms, *(one.say for one in subject.examples))
    )
    return set(map(_spoken, phrases))


def _spoken(text: str) -> tuple[str, ...]:
    return tuple(token for token in plain_tokens(text) if token not in _POLITE)
