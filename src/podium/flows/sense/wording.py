"""Operations made of words: by an agent under a contract, or by nobody."""

from __future__ import annotations

import json
from dataclasses import dataclass

from podium.domain.errors import StepFailed
from podium.domain.orders import WorkOrder
from podium.flows.asking import Player, ask
from podium.flows.sense.cleaning import ONLY_DATA, as_data, clean_line, cut
from podium.flows.sense.evidence import LONGEST_CANNOT, Evidence, ShowFile, evidence, evidence_words
from podium.flows.sense.kit import OpsReply
from podium.flows.sense.options import SenseOptions
from podium.flows.sense.plan_schema import operations_in_words, zones_in_words
from podium.flows.spending import Purse
from podium.ports import FlowContext, Store

OPERATIONS = "operations"
"""The step of the writer's answer."""
FILES = "files"
"""The source of what the writer is shown of files."""

_PROMPT = """\
You turn the steps of a work order, which are in words, into operations that a worker performs to the letter.

{only_data}

# The work order
{order}

{shown}# What to deliver
`ops`: the operations that do what the steps say, no more and no less, in the order in which they are performed. When what \
you are shown is not enough to be exact, give no operations, and say in `cannot` what is missing: a person reads it and \
decides.

# Rules
- You have no tools. Use only what stands here.
- Operations and their fields: {operations}.
- {zones}
- `edit` replaces a text that stands in its file exactly once: copy it letter by letter from the file as it is shown.
"""


@dataclass(frozen=True)
class Worded:
    """An order after its words were looked at."""

    order: WorkOrder
    """With operations, where it had some or some could be made."""
    cannot: str = ""
    """Why none could be made, says whoever was asked."""


async def with_ops(
    ctx: FlowContext,
    order: WorkOrder,
    *,
    writer: Player | None,
    store: Store,
    purse: Purse,
    desk: str,
    options: SenseOptions,
    show: ShowFile,
) -> Worded:
    """The order with operations. As it is where it has some, or where nobody could make any of its words."""
    if order.ops or not order.tasks or writer is None:
        return Worded(order)
    shown = await evidence(ctx, store, show, order, options.safe_zones, before=OPERATIONS)
    sources = (*order.provenance, *((FILES,) if shown.files else ()))
    try:
        reply = await ask(
            ctx, writer, writing_prompt(order, shown, options), purse=purse, name=OPERATIONS,
            workspace=desk, contract=OpsReply, provenance=sources,
        )  # fmt: skip
        made = OpsReply.model_validate(reply.payload)
    except StepFailed as failed:
        return Worded(order, f"the agent that makes operations failed: {failed}")
    if not made.ops:
        cannot = cut(clean_line(made.cannot), LONGEST_CANNOT)
        return Worded(order, cannot or "the agent that makes operations gave none and no reason")
    source = f"agent:{reply.agent or writer.agent.name}"
    return Worded(order.model_copy(update={"ops": made.ops, "provenance": (*sources, source)}))


def writing_prompt(order: WorkOrder, shown: Evidence, options: SenseOptions) -> str:
    words = {"title": order.title, "summary": order.summary, "tasks": order.tasks}
    found = evidence_words(shown)
    return _PROMPT.format(
        only_data=ONLY_DATA,
        order=as_data(json.dumps(words, ensure_ascii=False, indent=1)),
        shown=f"{found}\n\n" if found else "",
        operations=operations_in_words(),
        zones=zones_in_words(options.safe_zones, options.forbidden_zones),
    )
