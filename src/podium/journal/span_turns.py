"""Spans of turns: an agent that is asked, and within it each answer of its model."""

from __future__ import annotations

from collections.abc import Iterator

from podium.domain.events import AgentAsked, AgentReplied, AgentStopped, Event, ModelAnswered
from podium.domain.gating import Usage
from podium.journal.hosted import HostedRun
from podium.journal.span_begun import Begun, OpenTurn, current
from podium.journal.span_places import Attribute, Span, lasting, place_of, step_place, word


def turn_spans(event: Event, run: HostedRun, begun: Begun) -> Iterator[Span]:
    match event.body:
        case AgentAsked() as asked:
            begun.turns.append(_opened(event, run, begun, asked.step, asked.role, asked.agent))
        case ModelAnswered() as answered:
            turn = _turn_of(answered, begun)
            if turn is None:  # asked by a process before this one, whose answers it goes on with
                place = answered.step, answered.role, answered.agent
                turn = _opened(event, run, begun, *place)
                begun.turns.append(turn)
            yield _chat(event, answered, turn)
            turn.answers += 1
            turn.heard = event.at
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


def unanswered(event: Event, begun: Begun) -> Iterator[Span]:
    """Turns that no answer will come to."""
    for turn in begun.turns:
        about = {**_about_agent(turn.role, turn.agent), "podium.answers": turn.answers}
        name = f"invoke_agent {word(turn.role)}"
        yield Span(turn.place, turn.parent, name, turn.since, event.at, about, "no_answer")
    begun.turns.clear()


def _opened(
    event: Event, run: HostedRun, begun: Begun, step: str, role: str, agent: str
) -> OpenTurn:
    opened = begun.steps.get(step)
    parent = step_place(run, step, opened.attempt) if opened else current(run, begun)
    place = place_of(run.id, "turn", event.seq)
    return OpenTurn(event.at, place, parent, step, role, agent, heard=event.at)


def _turn_of(answered: ModelAnswered, begun: Begun) -> OpenTurn | None:
    return next((each for each in begun.turns if each.step == answered.step), None)


def _first_of(role: str, begun: Begun) -> OpenTurn | None:
    return next((each for each in begun.turns if each.role == role), None)


def _chat(event: Event, answered: ModelAnswered, turn: OpenTurn) -> Span:
    answer = answered.answer
    model = word(answer.model)
    return Span(
        place_of(event.run_id, "chat", event.seq),
        turn.place,
        f"chat {model}".rstrip(),
        turn.heard,
        event.at,
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": model,
            "gen_ai.response.model": model,
            "gen_ai.agent.name": word(answered.agent),
            **_about_usage(answer.usage),
            "podium.role": word(answered.role),
            "podium.answer": answer.number,
            "podium.calls": len(answer.calls),
        },
    )


def _replied(event: Event, reply: AgentReplied, turn: OpenTurn) -> Span:
    about: dict[str, Attribute] = {
        **_about_agent(reply.role, reply.agent),
        "gen_ai.request.model": word(reply.model),
        "gen_ai.response.model": word(reply.model),
        **_about_usage(reply.usage),
        "podium.answers": turn.answers,
    }
    if turn.stop:
        about["podium.stop"] = turn.stop
    return Span(
        turn.place,
        turn.parent,
        f"invoke_agent {word(reply.role)}",
        turn.since,
        event.at,
        about,
        f"stopped_{turn.stop}" if turn.stop else "",
    )


def _about_agent(role: str, agent: str) -> dict[str, Attribute]:
    return {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": word(agent),
        "podium.role": word(role),
    }


def _about_usage(used: Usage) -> dict[str, Attribute]:
    return {
        "gen_ai.usage.input_tokens": used.input_tokens,
        "gen_ai.usage.output_tokens": used.output_tokens,
        "podium.usd": used.usd,
    }
