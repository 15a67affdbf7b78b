"""Composition of the operator: packs, classifier, flow; the answer of a run, and the plan that reverses a receipt."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from podium.app.packs import is_shipped, open_pack, shipped_pack_names, zone_of
from podium.app.receipts import find_undoable
from podium.config.flow_options import flow_options
from podium.core.approvals import Approver
from podium.core.errors import NotPossibleNow, UnknownId
from podium.core.json_schema import validator_for
from podium.core.model import Json
from podium.core.packs import ContextShape, Pack
from podium.core.work import Run
from podium.jobs.operator import OPERATOR, Bench, Brain, Operator, OperatorDeps, OperatorFlowDeps
from podium.jobs.operator.answers import Answers
from podium.jobs.operator.flow import results_of
from podium.jobs.operator.models import OperatorAnswer, OperatorJob, OperatorMode
from podium.jobs.operator.options import OperatorOptions
from podium.ports import FlowBody, StoreView, Transaction

if TYPE_CHECKING:
    from podium.app.app import Podium
    from podium.core.decisions import Approval
    from podium.core.packs import PackTool
    from podium.core.plan_approval import Outgoing
    from podium.core.work import Run
    from podium.jobs.operator.conversation import OperatorConversation
    from podium.jobs.operator.habits import FileHabits
    from podium.jobs.operator.judgement.fields import FieldExtractor
    from podium.jobs.operator.models import Message, Reading, RunPlan, ToolIntent
    from podium.jobs.operator.operator import PackReader, PackSelection
    from podium.jobs.operator.resolution import ReadAlone, ReferenceResolution, Resolve
    from podium.jobs.operator.session import Session, SessionMemory


WorkerIsThere = Callable[["Run"], Awaitable[None]]


OWN, ROOFING = "podium", "roofing"
"""The default pack, and the default of earlier versions."""


def operator_options(podium: Podium) -> OperatorOptions:
    """Read the operator's options from podium.yaml. Raises `ConfigInvalid` with the position of a problem."""
    return OperatorOptions.model_validate(flow_options(podium.configuration, OPERATOR))


async def bench_of(podium: Podium, pack: Pack) -> Bench:
    """Build the pack's tools behind a tool door of their own."""
    from podium.jobs.operator.services import operator_services
    from podium.tools import Registry
    from podium.tools.packs import pack_tools

    state, services = podium.folders.state / "packs" / pack.name, operator_services(podium)
    registry = Registry(pack_tools(pack, settings=podium.environ, state=state, services=services))
    door = await podium.tool_door(registry=registry)
    toolbox = podium.toolbox_behind(door, registry=registry)
    return Bench(pack=pack, toolbox=toolbox, store=await podium.store())


async def operator_body(podium: Podium) -> FlowBody:
    """Build the body of the flow, which loads the pack of each run."""
    from podium.jobs.operator import operator as operator_flow

    benches: dict[str, Bench] = {}

    async def bench_for(name: str) -> Bench:
        pack = open_pack(podium, name)
        # A pack that was edited meanwhile is another one.
        if pack.digest not in benches:
            benches[pack.digest] = await bench_of(podium, pack)
        return benches[pack.digest]

    deps = OperatorFlowDeps(
        store=await podium.store(),
        clock=podium.clock,
        ids=podium.ids,
        bench_for=bench_for,
        approval_seconds=podium.gate.approval_seconds,
    )
    return operator_flow(deps)


@dataclass(frozen=True)
class OperatorSetup:
    """Settings of an operator that its caller chooses, beside those of podium.yaml."""

    pack: str | tuple[str, ...] = ""
    """Names or folders. Empty: as podium.yaml says."""
    classifier: str = ""
    worker_is_there: WorkerIsThere | None = None
    user: str = ""
    approver: Callable[[], Approver] | None = None
    """Proves the identity of the caller, where their approval counts. None: the name is unproved."""


@dataclass(frozen=True)
class ChosenPacks:
    """Packs whose tools a message may mean."""

    names: tuple[str, ...]
    first_wins: bool = False
    """Of packs that fit equally well the first is taken, without a question."""


def chosen_packs(podium: Podium, requested: str | tuple[str, ...] = "") -> ChosenPacks:
    """Select the requested packs, else those of podium.yaml.

    Where neither names one, Podium's own; a project with records of the roofing pack, which was the default
    before, keeps that in the first place.
    """
    if (
        not requested
        and not _names_pack(podium)
        and (podium.folders.state / "packs" / ROOFING).is_dir()
    ):
        return ChosenPacks((ROOFING, OWN), first_wins=True)
    named = requested or operator_options(podium).pack
    return ChosenPacks((named,) if isinstance(named, str) else tuple(dict.fromkeys(named)))


def _names_pack(podium: Podium) -> bool:
    """Return whether the effective settings of the operator name a pack."""
    flows = [layer.settings.flows for layer in podium.configuration.layers]
    return next(
        ("pack" in options[OPERATOR] for options in reversed(flows) if OPERATOR in options), False
    )


async def build_selection(podium: Podium, setup: OperatorSetup | None = None) -> PackSelection:
    """Build the operators of all chosen packs, with the selection between them."""
    from podium.jobs.operator.operator import PackSelection

    setup = setup or OperatorSetup()
    chosen = chosen_packs(podium, setup.pack)
    operators = [await build_operator(podium, replace(setup, pack=name)) for name in chosen.names]
    packs = [open_pack(podium, name) for name in chosen.names]
    readers = [_reader(podium, pack) for pack in packs] if len(packs) > 1 else []

    def others() -> Iterator[PackReader]:
        chosen_names = {pack.name for pack in packs}
        for name in shipped_pack_names():
            if name not in chosen_names:
                yield _reader(podium, open_pack(podium, name))

    return PackSelection(operators, readers, first_wins=chosen.first_wins, others=others)


async def build_conversation(
    podium: Podium, setup: OperatorSetup, memory: SessionMemory, *, may_approve: bool = True
) -> OperatorConversation:
    """Build the operators of all chosen packs, for the messages of one session."""
    from podium.app.resubmission import close_as_edited
    from podium.app.run_control import cancel as cancel_run
    from podium.jobs.operator.conversation import OperatorConversation, OperatorConversationDeps
    from podium.jobs.operator.follow_up import EmbeddedReader

    packs = [open_pack(podium, name) for name in chosen_packs(podium, setup.pack).names]
    by = setup.user or podium.settings.user

    def reader_of(pack: Pack) -> Callable[[], EmbeddedReader]:
        return cache(lambda: EmbeddedReader(pack, *_own_reading(pack)))

    async def look(work: Callable[[StoreView], Session]) -> Session:
        return await (await podium.store()).read(work)

    def withdraw(tx: Transaction, approval: str, run_id: str) -> None:
        close_as_edited(tx, podium.clock, podium.ids, approval, by, run_id)

    async def cancel(run_id: str) -> None:
        why = "withdrawn in its conversation"
        await cancel_run(await podium.store(), await podium.engine(), run_id, by=by, why=why)

    zone = zone_of(packs[0], podium.environ)
    return OperatorConversation(
        OperatorConversationDeps(
            selection=await build_selection(podium, setup),
            memory=memory,
            readers={pack.name: reader_of(pack) for pack in packs},
            now=lambda: podium.clock.now().astimezone(zone),
            look=look,
            withdraw=withdraw,
            cancel=cancel,
            may_approve=may_approve,
        )
    )


def _reader(podium: Podium, pack: Pack) -> PackReader:
    from podium.jobs.operator.judgement.embedded import EmbeddedClassifier
    from podium.jobs.operator.judgement.fields import FieldExtractor
    from podium.jobs.operator.operator import PackReader

    zone = zone_of(pack, podium.environ)
    read = EmbeddedClassifier(pack, FieldExtractor(pack)).reading
    return PackReader(pack, read, lambda: podium.clock.now().astimezone(zone))


def _resolver(podium: Podium, pack: Pack) -> Resolve:
    """Build the resolver of arguments that a message leaves to records, for tools of this pack."""
    from podium.jobs.operator.record_reader import open_records
    from podium.jobs.operator.resolution import Resolver, unresolved

    own_reading = cache(lambda: _own_reading(pack))

    async def resolve(message: Message, reading: Reading) -> ReferenceResolution:
        resolution = unresolved(reading, message.text)
        # Text of strangers looks nothing up.
        records = None if message.provenance else open_records(podium, pack)
        if records is not None:
            extract, read_alone = own_reading()
            resolver = Resolver(pack, extract, records, message)
            resolution = await resolver.resolve(reading, read_alone)
        arguments = [
            {**await resolved(message, intent, {*values, resolution.option_field}), **values}
            for intent, values in zip(resolution.reading.calls, resolution.arguments, strict=True)
        ]
        return replace(resolution, arguments=tuple(arguments))

    async def resolved(message: Message, intent: ToolIntent, settled: set[str]) -> dict[str, Json]:
        tool = pack.tool(intent.tool)
        sources = {
            name: str(shape["x-resolve"])
            for name, shape in (tool.properties if tool else {}).items()
            if "x-resolve" in shape and name not in message.context and name not in settled
        }
        # The words themselves are taken whole, whatever was read of them.
        unresolved = {
            name: source
            for name, source in sources.items()
            if source == "message" or name not in intent.arguments
        }
        if not unresolved:
            return {}
        from podium.jobs.operator.services import resolved_context

        return await resolved_context(podium, unresolved, message.text)

    return resolve


def _mention_finder(podium: Podium, pack: Pack) -> Callable[[Message], Awaitable[Message]]:
    """Build what finds the records that a message names. Words of strangers look nothing up."""

    async def mention(message: Message) -> Message:
        records_folder = podium.folders.state / "packs" / pack.name
        if message.provenance or not (podium.has_record or records_folder.is_dir()):
            return message
        from podium.jobs.operator.mentions import MentionFinder
        from podium.jobs.operator.record_reader import open_records

        if (records := open_records(podium, pack)) is None:
            return message
        return await MentionFinder(pack, records).mentioned(message)

    return mention


def _own_reading(pack: Pack) -> tuple[FieldExtractor, ReadAlone]:
    """Podium's own reader of a pack, without a model."""
    from podium.jobs.operator.judgement.embedded import EmbeddedClassifier
    from podium.jobs.operator.judgement.fields import FieldExtractor

    extract = FieldExtractor(pack)
    return extract, EmbeddedClassifier(pack, extract).reading


def _completer(podium: Podium, pack: Pack) -> Callable[[Message], Awaitable[Mapping[str, Json]]]:
    """Build what fills a context's `records` with the record that the message means."""
    from podium.jobs.operator.record_reader import open_records
    from podium.jobs.operator.resolution import Resolver

    async def complete(message: Message) -> Mapping[str, Json]:
        parts = [shape for shape in pack.registry.contexts if shape.name in message.context]
        if message.provenance or not any(shape.records for shape in parts):
            return message.context
        context, records = dict(message.context), open_records(podium, pack)
        if records is None:
            return context
        resolver = Resolver(pack, _own_reading(pack)[0], records, message)
        for shape in parts:
            value = context[shape.name]
            for key, kind in shape.records.items() if isinstance(value, dict) else ():
                record = await resolver.one(kind) if key not in value else None
                if record is not None:
                    context[shape.name] = value = {**value, key: record.id}
        return context

    return complete


async def build_operator(podium: Podium, setup: OperatorSetup | None = None) -> Operator:
    """Build an operator for the first named pack. The record is opened when a call is to be performed, not before."""
    from podium.jobs.operator.classifier_factory import build_classifier, grounding_check_for
    from podium.jobs.operator.judgement.directives import find_conflict

    setup = setup or OperatorSetup()
    options = operator_options(podium)
    pack = open_pack(podium, chosen_packs(podium, setup.pack).names[0])
    choice = options.model_copy(update={"classifier": setup.classifier or options.classifier})
    user, zone = setup.user or podium.settings.user, zone_of(pack, podium.environ)

    async def brain() -> Brain:
        return await brain_of(podium)

    def approver() -> Approver:
        return setup.approver() if setup.approver else Approver(name=user)

    async def approve(action_id: str) -> Approval:
        from podium.app.approvals import approve as say_yes

        groups = podium.settings.approvers
        store = await podium.store()
        return await say_yes(
            store, podium.clock, podium.ids, action_id, by=approver(), groups=groups
        )

    return Operator(
        OperatorDeps(
            pack=pack,
            classifier=await build_classifier(podium, pack, choice),
            find_conflict=find_conflict,
            find_ungrounded=grounding_check_for(pack),
            context_problems=lambda context: context_problems(pack, context),
            now=lambda: podium.clock.now().astimezone(zone),
            ids=podium.ids,
            brain=brain,
            worker_is_there=setup.worker_is_there or _nobody_needed,
            approve=approve,
            approver=approver,
            habits=habits_of(podium),
            user=user,
            mention=_mention_finder(podium, pack),
            resolve=_resolver(podium, pack),
            complete=_completer(podium, pack),
            max_tool_calls=options.max_tool_calls,
            pack_folder="" if is_shipped(pack) else pack.folder,
            preview=lambda plan: preview_plan(podium, pack, plan),
        )
    )


async def preview_plan(podium: Podium, pack: Pack, plan: RunPlan) -> RunPlan:
    """Add to a plan what its calls send out of the machine, for the people who approve it."""
    from podium.jobs.operator.plan_preview import previewed
    from podium.tools.packs import preview_call

    now, state = podium.clock.now(), podium.folders.state / "packs" / pack.name

    async def preview(tool: PackTool, arguments: Mapping[str, Json]) -> Outgoing | None:
        return await preview_call(
            pack, tool, arguments, settings=podium.environ, state=state, now=now
        )

    return await previewed(plan, pack, preview, now)


def habits_of(podium: Podium) -> FileHabits:
    """Open the memory of earlier messages."""
    from podium.jobs.operator.habits import FileHabits

    file = podium.folders.state / "operator" / "habits.jsonl"
    return FileHabits(file, podium.clock, podium.redactor.text)


async def brain_of(podium: Podium) -> Brain:
    """Build the starter of the operator's runs, with the record and the engine open."""
    return Brain(
        engine=await podium.hosting_engine(),
        store=await podium.store(),
        clock=podium.clock,
        ids=podium.ids,
        approval_seconds=podium.gate.approval_seconds,
        settings=podium.configuration.run_settings(),
        queue=operator_options(podium).queue,
    )


async def _nobody_needed(run: Run) -> None:
    """Do nothing: the caller serves the queue, or knows of a worker."""
    return


async def context_problems(pack: Pack, context: Mapping[str, Json]) -> list[str]:
    """List the problems of the parts of a context that have a shape, each with its pointer."""
    problems = []
    for shape in pack.registry.contexts:
        if shape.name in context:
            shape_problems = await _shape_problems(pack, shape, context[shape.name])
            problems += [f"context {shape.name}{problem}" for problem in sorted(shape_problems)]
    return problems


async def _shape_problems(pack: Pack, shape: ContextShape, value: Json) -> list[str]:
    """Validate by the schema, and then by the pack's own check."""
    problems = []
    for error in validator_for(pack.context_schemas[shape.name]).iter_errors(value):
        pointer = "".join(f"/{part}" for part in error.absolute_path)
        problems.append(f"{pointer}: {error.message[:300]}")
    if problems or not shape.check:
        return problems
    from podium.tools.packs import PackCode, python_handler

    check = PackCode(pack).function(python_handler(shape.check))
    checked: list[str] = await check(value)
    return checked


async def answer_of_run(podium: Podium, run: Run) -> OperatorAnswer:
    """Answer with the progress of a run's plan, by its receipts."""
    plan = OperatorJob.model_validate(run.input).plan
    store = await podium.store()
    results, approvals = await store.read(
        lambda view: (results_of(view, run.id, plan), view.approvals(run_id=run.id))
    )
    mode = OperatorMode.EXECUTE
    return Answers(plan.pack).ended(run, plan, mode, None, results, approvals)


async def pack_of_receipt(podium: Podium, receipt: str) -> str:
    """Find the pack whose tool a receipt is from. Raises as `find_undoable`, also for receipts of other flows."""
    store = await podium.store()
    undoable = await find_undoable(store, receipt)
    run = await store.read(lambda view: _operator_run(view, undoable.run_id, receipt))
    return OperatorJob.model_validate(run.input).plan.pack


async def undo(podium: Podium, receipt: str, *, mode: str, by: str) -> OperatorAnswer:
    """Process the plan that reverses receipt `RUN#NUMBER`, as far as the mode allows. It is gated like any other."""

    pack = await pack_of_receipt(podium, receipt)
    operator = await build_operator(podium, OperatorSetup(pack, user=by))
    undoable = await find_undoable(await podium.store(), receipt)
    return await operator.undo(undoable, mode, explicit_approval=False)


def operator_run(view: StoreView, run_id: str) -> Run:
    """Load the run of an operator's plan. Raises `UnknownId`."""
    run = view.run(run_id)
    if run is None or run.flow != OPERATOR:
        raise UnknownId("run of the operator", run_id)
    return run


def _operator_run(view: StoreView, run_id: str, receipt: str) -> Run:
    try:
        return operator_run(view, run_id)
    except UnknownId:
        raise NotPossibleNow(
            f"receipt {receipt!r} is not from a plan of the operator; see its run with `podium show`"
        ) from None
