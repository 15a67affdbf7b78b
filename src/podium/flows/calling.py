"""One call by itself: judged, approved where a person must, performed, receipted.

For whoever is no agent of ours and asks for a single act, such as the client of another protocol.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import count

from pydantic import Field

from podium.domain.errors import CallRefused, ToolBroke
from podium.domain.gating import Outcome, Refusal
from podium.domain.model import Json, NonEmpty, Noun
from podium.flows.resolved import said_not_to_have_happened
from podium.ports import FlowBody, FlowContext, Step, Store, Toolbox

CALL = "call"
"""The flow's name."""
MOST_ASKED = 5
"""How often a person is asked about it: a question whose time ran out is put again."""


class CallJob(Noun):
    """The call that is wanted."""

    tool: NonEmpty
    arguments: dict[str, Json] = Field(default_factory=dict)
    role: str = ""
    """As what it is asked for."""
    asked_by: str = ""
    provenance: tuple[str, ...] = ()
    """Untrusted sources of the wish."""


@dataclass(frozen=True)
class CallKit:
    """What the story needs of the house."""

    store: Store
    toolbox: Toolbox


def calling(kit: CallKit) -> FlowBody:
    """The flow, with its kit in hand."""

    async def call(ctx: FlowContext, job: CallJob) -> Json:
        for asked in count():
            found: Outcome | Refusal = await ctx.step(
                "call", partial(_act, kit, job), index=asked, returns=Outcome | Refusal
            )
            if isinstance(found, Outcome):
                return _result(found)
            if found.approval_id is None or asked >= MOST_ASKED:
                raise CallRefused(found.say)
            signal = f"approval:{found.approval_id}"
            await ctx.wait(signal, index=asked, until=found.deadline)
        raise AssertionError("questions are counted without end")

    return call


async def _act(kit: CallKit, job: CallJob, step: Step) -> Outcome | Refusal:
    again = await kit.store.read(partial(said_not_to_have_happened, step))
    call = kit.toolbox.normalise(
        job.tool,
        job.arguments,
        run_id=step.run_id,
        step_key=step.key,
        index=again,
        role=job.role,
        provenance=job.provenance,
    )
    return await kit.toolbox.perform(call, step.checkpoint)


def _result(outcome: Outcome) -> Json:
    if not outcome.ok:
        raise ToolBroke(outcome.error)
    return outcome.result
