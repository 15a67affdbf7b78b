"""Operations written from an order's text by an agent under a contract, and the evidence it is shown."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from podium.agents.budget_tracker import BudgetTracker
from podium.agents.turn_step import RoleAgent, ask
from podium.core.errors import StepFailed
from podium.core.model import FrozenModel, Json
from podium.jobs.sense.deps import OpsReply, SenseJob, recorded_without
from podium.jobs.sense.job import SENSE
from podium.jobs.sense.models import Bundle, Sensed
from podium.jobs.sense.options import SenseOptions
from podium.jobs.sense.orders.work_order import WorkOrder
from podium.jobs.sense.planning.bundle import (
    ONLY_DATA,
    as_data,
    bundle_json,
    bundle_of,
    clean_line,
    cut,
)
from podium.jobs.sense.planning.plan_schema import operations_text, zones_text
from podium.ports import FlowContext, StepContext, Store, StoreView

BUNDLE_BYTES = 40_000
MAX_FILES = 10
FILES_CHARACTERS = 60_000
MAX_ANCESTORS = 5
MAX_CANNOT = 1_000
_PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)+")

ShowFile = Callable[[str], Sensed]
"""A text file of the root, without secrets, or why it is not shown. May block."""


class Evidence(FrozenModel):
    """The state and the files that the writer is shown."""

    state: str = ""
    """The bundle that was planned for, as JSON. Empty: nobody planned for it."""
    files: tuple[Sensed, ...] = ()


async def gather_evidence(
    ctx: FlowContext,
    store: Store,
    show: ShowFile,
    order: WorkOrder,
    safe_zones: Sequence[str],
    *,
    before: str,
) -> Evidence:
    """Gather the evidence once per run, as a step in front of the step `before`."""
    run_id = ctx.run.id

    async def look(step: StepContext) -> Evidence:
        names = (order.delivered_by, step.run_id)
        bundle = await store.read(lambda view: _bundle(view, names))
        paths = paths_in(order, safe_zones)
        files = await asyncio.to_thread(lambda: tuple(_within(show(path) for path in paths)))
        return Evidence(state=_state(bundle) if bundle else "", files=files)

    if await store.read(lambda view: recorded_without(view, run_id, "evidence", before=before)):
        # Nothing was shown then, and where the order came from has to stay as it was approved.
        return Evidence()
    return await ctx.step("evidence", look, returns=Evidence)


def paths_in(order: WorkOrder, safe_zones: Sequence[str]) -> list[str]:
    """Paths in the order's words that lie in the zones, in the order in which they are named."""
    text = "\n".join((order.title, order.summary, *order.tasks))
    named = (match.rstrip(".") for match in _PATH.findall(text))
    zones = tuple(f"{zone.rstrip('/')}/" for zone in safe_zones)
    inside = (path for path in named if path.startswith(zones) and ".." not in path.split("/"))
    return list(dict.fromkeys(inside))[:MAX_FILES]


def _within(files: Iterator[Sensed]) -> Iterator[Sensed]:
    """Yield all files; those that no longer fit only by name."""
    left = FILES_CHARACTERS
    for file in files:
        size = len(file.content) if isinstance(file.content, str) else 0
        if size > left:
            left_out = {
                "condition": "too_large",
                "why": "omitted, because the other files fill the available space",
            }
            yield file.model_copy(update={**left_out, "content": None})
        else:
            left -= size
            yield file


def _bundle(view: StoreView, names: Sequence[str]) -> Bundle | None:
    """Find the bundle that was planned for when the order was proposed, through the runs that led to it."""
    for name in names:
        run = view.run(name) if name else None
        for _ in range(MAX_ANCESTORS):
            if run is None:
                break
            if run.flow == SENSE:
                return SenseJob.model_validate(run.input).bundle
            run = view.run(run.parent_id) if run.parent_id else None
    return None


def _state(bundle: Bundle) -> str:
    return bundle_json(bundle_of(bundle.root, bundle.looks, limit_bytes=BUNDLE_BYTES))


def evidence_text(evidence: Evidence) -> str:
    """The sections of a prompt that hold it."""
    return "\n\n".join(_sections(evidence))


def _sections(evidence: Evidence) -> Iterator[str]:
    if evidence.state:
        yield f"# The state of the system that led to it\n{as_data(evidence.state)}"
    for file in evidence.files:
        head = f"# The file {file.place}"
        if isinstance(file.content, str) and file.condition == "ok":
            yield f"{head}\n{as_data(file.content)}" if file.content else f"{head}\nIt is empty."
        else:
            yield f"{head}\nIt is not shown: {file.why or file.condition}."


def writer_refusal(view: StoreView, run_id: str) -> str:
    """Return the writer's reason for deriving no operations in this run. Empty: it was not asked, or it could."""
    step = view.step(run_id, "operations")
    output: Json = step.output if step is not None else None
    payload = output.get("payload") if isinstance(output, dict) else None
    cannot = payload.get("cannot") if isinstance(payload, dict) and not payload.get("ops") else ""
    return cut(clean_line(cannot), MAX_CANNOT) if isinstance(cannot, str) else ""


OPERATIONS = "operations"
"""The step of the writer's answer."""
FILES = "files"
"""The source of what the writer is shown of files."""

_PROMPT = """\
You turn the steps of a work order, which are written as text, into operations that a worker performs exactly as written.

{only_data}

# The work order
{order}

{shown}# What to deliver
`ops`: the operations that do what the steps say, no more and no less, in the order in which they are performed. If what you \
are shown is not enough to be exact, give no operations, and say in `cannot` what is missing: a person reads it and \
decides.

# Rules
- You have no tools. Use only what is written here.
- Operations and their fields: {operations}.
- {zones}
- `edit` replaces a text that occurs exactly once in its file: copy it exactly from the file as shown here.
"""


@dataclass(frozen=True)
class Worded:
    """An order after its words were looked at."""

    order: WorkOrder
    """With operations, where it had some or some could be made."""
    cannot: str = ""
    """Reason of the agent why it could make none."""


async def with_ops(
    ctx: FlowContext,
    order: WorkOrder,
    *,
    writer: RoleAgent | None,
    store: Store,
    budget: BudgetTracker,
    workspace: str,
    options: SenseOptions,
    show: ShowFile,
) -> Worded:
    """Return the order with operations; unchanged if it has some, or if none could be derived from its text."""
    if order.ops or not order.tasks or writer is None:
        return Worded(order)
    evidence = await gather_evidence(ctx, store, show, order, options.safe_zones, before=OPERATIONS)
    sources = (*order.provenance, *((FILES,) if evidence.files else ()))
    try:
        reply = await ask(
            ctx, writer, writing_prompt(order, evidence, options), budget=budget, name=OPERATIONS,
            workspace=workspace, contract=OpsReply, provenance=sources,
        )  # fmt: skip
        made = OpsReply.model_validate(reply.payload)
    except StepFailed as failed:
        return Worded(order, f"the agent that writes operations failed: {failed}")
    if not made.ops:
        cannot = cut(clean_line(made.cannot), MAX_CANNOT)
        return Worded(order, cannot or "the agent that writes operations gave none and no reason")
    source = f"agent:{reply.agent or writer.agent.name}"
    return Worded(order.model_copy(update={"ops": made.ops, "provenance": (*sources, source)}))


def writing_prompt(order: WorkOrder, evidence: Evidence, options: SenseOptions) -> str:
    document = {"title": order.title, "summary": order.summary, "tasks": order.tasks}
    sections = evidence_text(evidence)
    return _PROMPT.format(
        only_data=ONLY_DATA,
        order=as_data(json.dumps(document, ensure_ascii=False, indent=1)),
        shown=f"{sections}\n\n" if sections else "",
        operations=operations_text(),
        zones=zones_text(options.safe_zones, options.forbidden_zones),
    )
