"""What the player says, line by line, and how its end is read."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, ValidationError

from podium.agents.headless.ending import after_seconds, lost, out_of_time
from podium.agents.scripted.script import ScriptedFailure, ScriptedUsage
from podium.domain.errors import (
    AgentLost,
    AgentNotLoggedIn,
    AgentRefused,
    AgentRejected,
    AgentUnavailable,
    ContextOverflow,
    PodiumError,
    RateLimited,
)
from podium.domain.events import ProgressKind
from podium.domain.gating import Usage
from podium.domain.launching import Ended
from podium.domain.model import Noun, whole_text

NounT = TypeVar("NounT", bound=Noun)


class End(Noun):
    """The player's answer."""

    reply: Annotated[str, AfterValidator(whole_text)]
    next_act: int | None


class Played:
    """Gathers what a player says. Lines that are no record of it are passed over."""

    def __init__(
        self,
        agent: str,
        tell: Callable[[ProgressKind, str], None],
        keep: Callable[[str], None] | None,
    ) -> None:
        self._agent = agent
        self._tell = tell
        self._keep = keep
        self._end: End | None = None
        self._failure: ScriptedFailure | None = None
        self._used: list[ScriptedUsage] = []

    def hear(self, line: str) -> None:
        if self._keep is not None:
            self._keep(line)
        match _record(line):
            case {"say": str(words)}:
                self._tell("text", whole_text(words) + "\n")
            case {"usage": data} if (used := _valid(ScriptedUsage, data)) is not None:
                self._used.append(used)
            case {"fail": data}:
                self._failure = _valid(ScriptedFailure, data)
            case {"reply": _} as data:
                self._end = _valid(End, data)

    def usage(self, ended: Ended) -> Usage:
        return Usage(
            input_tokens=sum(used.input for used in self._used),
            output_tokens=sum(used.output for used in self._used),
            usd=sum(used.usd for used in self._used),
            turns=1,
            seconds=ended.seconds,
            complete=self._end is not None or self._failure is not None,
        )

    def end(self, ended: Ended, now: datetime) -> End:
        """The answer, if the process both ended well and gave one: neither alone is enough."""
        if ended.timed_out:
            raise out_of_time(self._agent, ended)
        if self._failure is not None:
            raise _trouble(self._agent, self._failure, now)
        if ended.exit_code != 0:
            raise lost(self._agent, ended)
        if self._end is None:
            raise AgentLost(f"agent {self._agent!r} gave no answer that can be read")
        return self._end


def _record(line: str) -> dict[str, Any]:
    """The record in a line; nothing when it holds none."""
    if not line.startswith("{"):
        return {}
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def _valid(kind: type[NounT], data: object) -> NounT | None:
    try:
        return kind.model_validate(data)
    except ValidationError:
        return None


def _trouble(agent: str, failure: ScriptedFailure, now: datetime) -> PodiumError:
    who = f"agent {agent!r}"
    match failure.kind:
        case "not_logged_in":
            return AgentNotLoggedIn(f"{who} is not logged in, says its script; change the script")
        case "rate_limited":
            seconds = failure.retry_seconds
            retry_at = None if seconds is None else after_seconds(seconds, now)
            return RateLimited(f"{who} has been asked too much, says its script", retry_at)
        case "unavailable":
            return AgentUnavailable(f"{who} cannot reach its model, says its script")
        case "overflow":
            return ContextOverflow(f"the conversation is too long for {who}, says its script")
        case "refused":
            return AgentRefused(f"{who} will not do this, says its script")
        case "rejected":
            return AgentRejected(f"{who} was told that the request is wrong, says its script")
