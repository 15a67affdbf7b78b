"""The agent's part of a playbook: one conversation over all its turns, until the criteria are met or nothing helps."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from podium.domain.asking import Reply
from podium.domain.gating import CallRecord, CallStatus, Tier
from podium.domain.playbook_runs import Criterion, Ending, Ground, PlaybookJob
from podium.flows.asking import Conversation, TurnText, WriteText
from podium.flows.playbook.agreeing import commands_of
from podium.flows.playbook.kit import Bench, PlaybookKit
from podium.flows.playbook.limiting import LimitedAgent
from podium.flows.playbook.news import (
    TURN,
    calls_made,
    discarded_attempt,
    go_on,
    in_a_new_conversation,
    not_met,
    turn_key,
)
from podium.flows.playbook.prompting import build_prompt
from podium.flows.playbook.proving import proved
from podium.ports import FlowContext, Step, View

MOST_IDLE_ENDS = 2
"""How often in a row an agent may end without having changed anything while criteria are not met."""


async def followed(
    ctx: FlowContext, kit: PlaybookKit, bench: Bench, job: PlaybookJob, ground: Ground
) -> Ending:
    """Let the agent follow the playbook, and go back to it with the criteria that its end has left unmet."""
    agent = LimitedAgent(bench.player.agent, kit.store, kit.clock, job.limits)
    conversation = Conversation(
        ctx,
        replace(bench.player, agent=agent),
        _turn_text(ctx, kit, job),
        purse=kit.purse,
        name=TURN,
        workspace=ground.root,
        go_on=go_on(commands_of(job.profile, job.playbook.head)),
    )
    patience = _Patience(job.limits.same_results)
    reply, words = await conversation.answer(), ""
    for ends in count(1):
        # A limit may end a turn before it has said anything.
        words = reply.text or words
        criteria = await proved(ctx, bench.prover, job, ground, ends - 1)
        changing = await _changing_calls(ctx, kit, ends - 1, criteria)
        over = patience.over(reply, criteria, changing)
        if over is not None:
            last = reply.model_copy(update={"text": words})
            return Ending(reply=last, criteria=criteria, ends=ends, why=over)
        idle = ends > 1 and patience.idle > 0
        reply = await conversation.answer(not_met(criteria, idle=idle))
    raise AssertionError("ends are counted without end")


def _turn_text(ctx: FlowContext, kit: PlaybookKit, job: PlaybookJob) -> WriteText:
    """The assignment or the news, and what became of the turn where a person had it asked again."""
    assignment = build_prompt(job.profile, job.playbook, job.inputs, job.facts).text

    async def recall(step: Step) -> str:
        return await kit.store.read(lambda view: calls_made(view, step.run_id))

    async def write_text(number: int, last: Reply | None, news: str) -> TurnText:
        run_id, prompt = ctx.run.id, assignment
        if last is not None:
            # Only an agent that has forgotten them needs to be told of its calls.
            calls = ""
            if last.session is None:
                calls = await ctx.step("recall", recall, index=number)
            prompt = in_a_new_conversation(assignment, last, calls, news)
        discarded = await kit.store.read(
            lambda view: discarded_attempt(view, run_id, turn_key(number))
        )
        if discarded is None:
            return TurnText(prompt, news)
        told = discarded.told()
        return TurnText(
            f"{prompt.rstrip()}\n\n{told}\n", f"{news.rstrip()}\n\n{told}\n" if news else ""
        )

    return write_text


class _Patience:
    """Whether it is worth going back to the agent once more."""

    def __init__(self, most_same: int | None) -> None:
        self._most_same = most_same
        self._unmet: list[tuple[str, str]] = []
        self._same = 0
        self._changing = 0
        self.idle = 0
        """Ends in a row before which nothing was changed."""

    def over(self, reply: Reply, criteria: tuple[Criterion, ...], changing: int) -> str | None:
        """Why the agent is not asked again, in words where it could have been. None: it is."""
        unmet = [each for each in criteria if not each.met]
        if not unmet or reply.stopped is not None:
            return ""
        if any(not each.ran for each in unmet):
            return "no work of the agent's can change that a criterion was not run"
        known = [(each.command, each.output_sha256) for each in unmet]
        self._same = self._same + 1 if known == self._unmet else 1
        self.idle = self.idle + 1 if changing == self._changing else 0
        self._unmet, self._changing = known, changing
        if self.idle >= MOST_IDLE_ENDS:
            return f"it ended {self.idle} times in a row without having changed anything"
        if self._most_same is not None and self._same >= self._most_same:
            return f"they failed with the same output {self._same} times in a row"
        return None


async def _changing_calls(
    ctx: FlowContext, kit: PlaybookKit, number: int, criteria: tuple[Criterion, ...]
) -> int:
    """How many of the agent's calls may have changed something so far. Not counted where all is met."""
    if all(each.met for each in criteria):
        return 0

    async def look(step: Step) -> int:
        return await kit.store.read(lambda view: _changing(view, step.run_id))

    return await ctx.step("look-back", look, index=number)


def _changing(view: View, run_id: str) -> int:
    return sum(each.agent != "" and _may_have_changed(each) for each in view.calls(run_id))


def _may_have_changed(call: CallRecord) -> bool:
    """A command that failed may have; a tool that failed and gave nothing has not."""
    if call.decision.tier == Tier.T0 or call.outcome is None:
        return False
    done = call.status is CallStatus.COMPLETED
    return done or (call.status is CallStatus.FAILED and call.outcome.result is not None)
