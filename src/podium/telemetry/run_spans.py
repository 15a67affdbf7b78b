"""Spans out of events: a run is a trace; its steps, turns and calls are spans.

Ids are derived, not drawn: processes on many machines that host a run in turn add to one trace, and
a run's trace is found by its id. Of what was said and done, a span has names and figures alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from podium.core.decisions import Usage
from podium.core.events import (
    AgentAsked,
    AgentReplied,
    AgentStopped,
    Event,
    ModelAnswered,
    RunCancelled,
    RunFailed,
    RunNeededHuman,
    RunParked,
    RunStarted,
    RunSucceeded,
    StepBroke,
    StepCompleted,
    StepStarted,
    ToolAbandoned,
    ToolCompleted,
    ToolFailed,
    ToolInDoubt,
    ToolRefused,
    ToolRequested,
)
from podium.telemetry.event_feed import MAX_RUNS, HostedRun
from podium.telemetry.span_model import (
    Attribute,
    FinishedSpan,
    OpenRun,
    OpenStep,
    OpenTurn,
    SpanRef,
    current,
    host_span,
    lasting,
    printable_name,
    span_ref_of,
    step_span,
    turn_in,
)


def call_spans(event: Event, run: HostedRun, begun: OpenRun) -> Iterator[FinishedSpan]:
    match event.body:
        case ToolRequested(call=call):
            # Taken now: a call that is a step of its own is settled with it, after its end.
            begun.calls[call] = event.at, event.body, _span_of_call(call, run, begun)
        case ToolRefused() as refused:
            about = _about_call(refused.tool, refused.effect, refused.tier, refused.rule)
            span_ref = span_ref_of(run.id, "refused", event.seq)
            parent = _span_of_call(refused.call, run, begun)
            name = f"execute_tool {printable_name(refused.tool)}"
            yield FinishedSpan(span_ref, parent, name, event.at, event.at, about)
        case ToolCompleted(call=call, seconds=seconds):
            yield settled(event, run, begun, call, "completed", seconds)
        case ToolFailed(call=call, seconds=seconds):
            yield settled(event, run, begun, call, "failed", seconds)
        case ToolInDoubt(call=call):
            yield settled(event, run, begun, call, "in_doubt", 0.0)
        case ToolAbandoned(call=call):
            yield settled(event, run, begun, call, "abandoned", 0.0)


def settled(
    event: Event, run: HostedRun, begun: OpenRun, call: str, outcome: str, seconds: float
) -> FinishedSpan:
    """A call that ended, or will not end here."""
    asked = begun.calls.pop(call, None)
    if turn := turn_in(_step_of(call, run), begun):
        turn.active_at = event.at
    if asked is None:  # by a process before this one
        start, parent = event.at - lasting(seconds), _span_of_call(call, run, begun)
        tool = str(getattr(event.body, "tool", ""))
        about: dict[str, Attribute] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": printable_name(tool),
        }
    else:
        start, requested, parent = asked
        tool = requested.tool
        about = _about_call(tool, "allow", requested.tier, requested.rule)
    return FinishedSpan(
        span_ref_of(run.id, "call", call, run.fence, event.seq),
        parent,
        f"execute_tool {printable_name(tool)}",
        start,
        event.at,
        {**about, "podium.outcome": outcome},
        outcome if outcome in ("failed", "in_doubt") else "",
    )


def _about_call(tool: str, decision: str, tier: str, rule: str) -> dict[str, Attribute]:
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": printable_name(tool),
        "podium.decision": decision,
        "podium.tier": printable_name(tier),
        "podium.rule": printable_name(rule),
    }


def _span_of_call(call: str, run: HostedRun, begun: OpenRun) -> SpanRef:
    """The turn or else the step that a call was made in."""
    step = _step_of(call, run)
    if turn := turn_in(step, begun):
        return turn.ref
    opened = begun.steps.get(step)
    return step_span(run, step, opened.attempt) if opened else current(run, begun)


def _step_of(call: str, run: HostedRun) -> str:
    """The step that a call's key names: run, step and call, with colons between."""
    return call.removeprefix(f"{run.id}:").rpartition(":")[0]


def turn_spans(event: Event, run: HostedRun, begun: OpenRun) -> Iterator[FinishedSpan]:
    match event.body:
        case AgentAsked() as asked:
            begun.turns.append(_opened(event, run, begun, asked.step, asked.role, asked.agent))
        case ModelAnswered() as answered:
            turn = _turn_of(answered, begun)
            if turn is None:  # asked by a process before this one, whose answers it goes on with
                turn_key = answered.step, answered.role, answered.agent
                turn = _opened(event, run, begun, *turn_key)
                begun.turns.append(turn)
            yield _chat(event, answered, turn)
            turn.answers += 1
            turn.active_at = event.at
        case AgentStopped(role=role, stop=stop):
            if (turn := _first_of(role, begun)) is not None:
                turn.stop = stop.kind
        case AgentReplied() as reply:
            turn = _first_of(reply.role, begun)
            if turn is None:
                turn = _opened(event, run, begun, "", reply.role, reply.agent)
                turn.since = event.at - lasting(reply.seconds)
            else:
                begun.turns.remove(turn)
            yield _replied(event, reply, turn)


def unanswered(event: Event, begun: OpenRun) -> Iterator[FinishedSpan]:
    """Turns that no answer will come to."""
    for turn in begun.turns:
        about = {**_about_agent(turn.role, turn.agent), "podium.answers": turn.answers}
        name = f"invoke_agent {printable_name(turn.role)}"
        yield FinishedSpan(turn.ref, turn.parent, name, turn.since, event.at, about, "no_answer")
    begun.turns.clear()


def _opened(
    event: Event, run: HostedRun, begun: OpenRun, step: str, role: str, agent: str
) -> OpenTurn:
    opened = begun.steps.get(step)
    parent = step_span(run, step, opened.attempt) if opened else current(run, begun)
    span_ref = span_ref_of(run.id, "turn", event.seq)
    return OpenTurn(event.at, span_ref, parent, step, role, agent, active_at=event.at)


def _turn_of(answered: ModelAnswered, begun: OpenRun) -> OpenTurn | None:
    return next((turn for turn in begun.turns if turn.step == answered.step), None)


def _first_of(role: str, begun: OpenRun) -> OpenTurn | None:
    return next((turn for turn in begun.turns if turn.role == role), None)


def _chat(event: Event, answered: ModelAnswered, turn: OpenTurn) -> FinishedSpan:
    answer = answered.answer
    model = printable_name(answer.model)
    return FinishedSpan(
        span_ref_of(event.run_id, "chat", event.seq),
        turn.ref,
        f"chat {model}".rstrip(),
        turn.active_at,
        event.at,
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": model,
            "gen_ai.response.model": model,
            "gen_ai.agent.name": printable_name(answered.agent),
            **_about_usage(answer.usage),
            "podium.role": printable_name(answered.role),
            "podium.answer": answer.number,
            "podium.calls": len(answer.calls),
        },
    )


def _replied(event: Event, reply: AgentReplied, turn: OpenTurn) -> FinishedSpan:
    about: dict[str, Attribute] = {
        **_about_agent(reply.role, reply.agent),
        "gen_ai.request.model": printable_name(reply.model),
        "gen_ai.response.model": printable_name(reply.model),
        **_about_usage(reply.usage),
        "podium.answers": turn.answers,
    }
    if turn.stop:
        about["podium.stop"] = turn.stop
    return FinishedSpan(
        turn.ref,
        turn.parent,
        f"invoke_agent {printable_name(reply.role)}",
        turn.since,
        event.at,
        about,
        f"stopped_{turn.stop}" if turn.stop else "",
    )


def _about_agent(role: str, agent: str) -> dict[str, Attribute]:
    return {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": printable_name(agent),
        "podium.role": printable_name(role),
    }


def _about_usage(used: Usage) -> dict[str, Attribute]:
    return {
        "gen_ai.usage.input_tokens": used.input_tokens,
        "gen_ai.usage.output_tokens": used.output_tokens,
        "podium.usd": used.usd,
    }


TRACED_TYPES = (
    "agent_asked",
    "agent_replied",
    "agent_stopped",
    "model_answered",
    "run_needed_human",
    "step_broke",
    "step_completed",
    "step_started",
    "tool_abandoned",
    "tool_completed",
    "tool_failed",
    "tool_in_doubt",
    "tool_refused",
    "tool_requested",
)
"""Events that spans are made of, beside those that tell who owns a run."""


class SpanMaker:
    """Takes the events of hosted runs in order, and gives spans as they end."""

    def __init__(self) -> None:
        self._begun: dict[str, OpenRun] = {}

    def take(self, event: Event, run: HostedRun) -> list[FinishedSpan]:
        """The spans that ended with this event."""
        if isinstance(event.body, RunStarted):
            return self._begin(event, run)
        begun = self._begun.setdefault(run.id, OpenRun(run, event.at, event.at))
        begun.latest = event.at
        match event.body:
            case RunSucceeded() | RunFailed() | RunCancelled() | RunParked():
                del self._begun[run.id]
                return list(_let_go(event, run, begun))
            case RunNeededHuman():
                return list(_left_open(event, run, begun))
            case StepStarted() | StepCompleted() | StepBroke():
                return list(_step(event, run, begun))
            case AgentAsked() | ModelAnswered() | AgentStopped() | AgentReplied():
                return list(turn_spans(event, run, begun))
            case _:
                return list(call_spans(event, run, begun))

    def close(self) -> list[FinishedSpan]:
        """The hosting of runs that stopped without being let go of, such as for a person."""
        return [_hosting(self._begun.pop(run_id), "stopped") for run_id in list(self._begun)]

    def _begin(self, event: Event, run: HostedRun) -> list[FinishedSpan]:
        earlier = self._begun.pop(run.id, None)
        self._begun[run.id] = OpenRun(run, event.at, event.at)
        while len(self._begun) > MAX_RUNS:  # runs that others took over
            del self._begun[next(iter(self._begun))]
        return [] if earlier is None else [_hosting(earlier, "stopped")]


def _let_go(event: Event, run: HostedRun, begun: OpenRun) -> Iterator[FinishedSpan]:
    """All that was open, the hosting itself, and the whole run when this is its end."""
    yield from _left_open(event, run, begun)
    error = printable_name(event.body.failure.kind) if isinstance(event.body, RunFailed) else ""
    outcome = event.body.type.removeprefix("run_")
    yield _hosting(begun, outcome, error)
    if outcome != "parked":
        links = (span_ref_of(run.parent_id),) if run.parent_id else ()
        started = min(run.created_at, event.at)
        name, about = f"run {printable_name(run.flow)}", _about_run(run, outcome)
        yield FinishedSpan(span_ref_of(run.id), None, name, started, event.at, about, error, links)


def _hosting(begun: OpenRun, outcome: str, error: str = "") -> FinishedSpan:
    run = begun.run
    return FinishedSpan(
        host_span(run),
        span_ref_of(run.id),
        f"host {printable_name(run.flow)}",
        begun.since,
        begun.latest,
        {**_about_run(run, outcome), "podium.run.fence": run.fence},
        error,
    )


def _about_run(run: HostedRun, outcome: str) -> dict[str, Attribute]:
    return {
        "podium.run.id": printable_name(run.id),
        "podium.flow": printable_name(run.flow),
        "podium.flow.version": run.flow_version,
        "podium.queue": printable_name(run.queue or ""),
        "podium.outcome": outcome,
    }


def _left_open(event: Event, run: HostedRun, begun: OpenRun) -> Iterator[FinishedSpan]:
    """Steps, turns and calls that will not end here."""
    for call in list(begun.calls):
        yield settled(event, run, begun, call, "unsettled", 0.0)
    yield from unanswered(event, begun)
    for step in list(begun.steps):
        yield _ended_step(event, run, begun, step, "unfinished")


def _step(event: Event, run: HostedRun, begun: OpenRun) -> Iterator[FinishedSpan]:
    match event.body:
        case StepStarted(step=step, attempt=attempt):
            begun.steps[step] = OpenStep(event.at, attempt)
            begun.broken.discard(step)
        case StepCompleted(step=step) if step in begun.broken:
            # It recorded that it is tried again later, as another step.
            begun.broken.discard(step)
        case StepCompleted(step=step, seconds=seconds):
            begun.steps.setdefault(step, OpenStep(event.at - lasting(seconds), 1))
            yield _ended_step(event, run, begun, step, "completed")
        case StepBroke(step=step, failure=failure, final=final):
            if not final:
                begun.broken.add(step)
            if step in begun.steps and len(begun.steps) == 1:
                yield from unanswered(event, begun)
            yield _ended_step(event, run, begun, step, "failed", failure.kind)


def _ended_step(
    event: Event, run: HostedRun, begun: OpenRun, step: str, outcome: str, error: str = ""
) -> FinishedSpan:
    opened = begun.steps.pop(step, OpenStep(event.at, 1))
    return FinishedSpan(
        step_span(run, step, opened.attempt),
        # Not the hosting: that of a process that is killed is never sent.
        span_ref_of(run.id),
        f"step {printable_name(step.partition('#')[0])}",
        opened.at,
        event.at,
        {
            "podium.flow": printable_name(run.flow),
            "podium.step": printable_name(step),
            "podium.step.attempt": opened.attempt,
            "podium.outcome": outcome,
        },
        printable_name(error),
    )
