"""Dependencies of the flow, and an agent held to the limits of a whole run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from podium.agents.budget_tracker import BEGINNING, BudgetTracker
from podium.agents.turn_step import RoleAgent
from podium.core.decisions import CountedScope, Usage, spent_since, usage_counted
from podium.core.errors import BudgetSpent, TimedOut
from podium.core.events import ModelAnswered
from podium.core.folder_snapshots import FolderChanges, WorkingFolder
from podium.core.turns import Reply, StopKind, Turn, TurnLimits, TurnStop
from podium.jobs.playbook.models import PlaybookJob, PlaybookLimits, PluginProfile
from podium.ports import Agent, Clock, EventQuery, Store, StoreView, Toolbox
from podium.render.text import counted


class WorkingFolders(Protocol):
    """Prepares working folders, and restores them."""

    async def prepare(
        self, run_id: str, root: str, is_closed: Callable[[str], bool], *, as_copy: bool
    ) -> WorkingFolder:
        """Snapshot the folder for a restore, or work in a copy of it.

        `is_closed` tells if a path, relative to the root, must not be changed.

        A run that asks again gets the same folder. Raises `NotPossibleNow` when a copy cannot be made.
        """
        ...

    async def changes(
        self, folder: WorkingFolder, root: str, is_closed: Callable[[str], bool]
    ) -> FolderChanges:
        """Compare the folder with its prepared state."""
        ...

    async def leave(self, folder: WorkingFolder) -> None:
        """Remove a copy. A folder that was worked on in place stays as it is."""
        ...


@dataclass(frozen=True)
class AgentSession:
    """Agent of one run, limited by the plugin's profile, and the toolbox that runs the criteria."""

    role_agent: RoleAgent
    prover: Toolbox
    """Toolbox with which Podium itself runs the criteria."""


@dataclass(frozen=True)
class PlaybookDeps:
    """Dependencies of the flow."""

    store: Store
    clock: Clock
    budget_tracker: BudgetTracker
    folders: WorkingFolders
    off_limits: Callable[[PluginProfile], Callable[[str], bool]]
    """Builds a predicate for paths, relative to the root, that the profile protects from changes."""
    open_session: Callable[[PlaybookJob, WorkingFolder], Awaitable[AgentSession]]
    """Builds agent and tools. Raises `BadInput` for an agent that is unknown or whose own tools cannot be disabled."""


MAX_ANSWERS = 1_000_000
_KINDS: dict[str, StopKind] = {"turns": "turns", "tokens": "tokens", "usd": "usd"}


class LimitedAgent:
    """Gives each turn what is left of the run's limits.

    A limit ends the turn with a reply, not an error, so that the criteria can still be run.
    """

    def __init__(self, agent: Agent, store: Store, clock: Clock, limits: PlaybookLimits) -> None:
        self._agent = agent
        self._store = store
        self._clock = clock
        self._limits = limits

    @property
    def name(self) -> str:
        return self._agent.name

    async def ask(self, turn: Turn) -> Reply:
        left = await self._store.read(lambda view: self._left(view, turn))
        spent = next(_spent(left, self._limits), None)
        if spent is not None:
            return self._stopped(spent, Usage())
        try:
            reply = await self._agent.ask(turn.model_copy(update={"limits": left}))
            return reply.model_copy(update={"stopped": reply.stopped or _overrun(left, reply)})
        except BudgetSpent as error:
            if error.scope != "turn" or error.measure not in _KINDS:
                raise
            stop = TurnStop(kind=_KINDS[error.measure], reason=str(error))
            return self._stopped(stop, error.usage)
        except TimedOut as error:
            if self._limits.minutes is None:
                raise
            reason = f"the agent has worked for {_amount('minutes', self._limits.minutes)}"
            return self._stopped(TurnStop(kind="minutes", reason=reason), error.usage)

    def _again(self, view: StoreView, turn: Turn) -> Usage:
        """Return the recorded usage of an earlier attempt at this turn, which counts again when its answers are replayed."""
        recorded = self._counted(view, turn, "step")
        answers = [
            answered.answer.usage
            for answered in _answered(view, turn)
            if answered.step == turn.step_key
        ]
        return Usage(
            input_tokens=min(recorded.input_tokens, sum(answer.input_tokens for answer in answers)),
            output_tokens=min(
                recorded.output_tokens, sum(answer.output_tokens for answer in answers)
            ),
            usd=min(recorded.usd, sum(answer.usd for answer in answers)),
        )

    def _counted(self, view: StoreView, turn: Turn, scope: CountedScope) -> Usage:
        return usage_counted(
            lambda counter: view.counted(counter, BEGINNING),
            scope,
            turn.run_id,
            turn.step_key,
            self._clock.now(),
        )

    def _stopped(self, stop: TurnStop, usage: Usage | None) -> Reply:
        used = usage or Usage(turns=1, complete=False)
        return Reply(text="", agent=self.name, stopped=stop, usage=used)

    def _left(self, view: StoreView, turn: Turn) -> TurnLimits:
        """Compute what earlier turns have left of the limits; this one may have started before a crash."""
        limits, run_id = self._limits, turn.run_id
        used = spent_since(self._again(view, turn), self._counted(view, turn, "run"))
        calls = sum(
            call.step_key != turn.step_key and call.agent != "" for call in view.calls(run_id)
        )
        seconds = None if limits.minutes is None else limits.minutes * 60
        others = sum(answered.step != turn.step_key for answered in _answered(view, turn))
        # The agent's own limits of one turn apply as well, except for time: here one turn may be all of the work.
        own = turn.limits
        tokens = _less(limits.tokens, used.input_tokens + used.output_tokens)
        return TurnLimits(
            seconds=_less(seconds, used.seconds),
            tokens=_whole(_lower(own.tokens, tokens)),
            usd=_lower(own.usd, _less(limits.usd, used.usd)),
            turns=_whole(_lower(own.turns, _less(limits.turns, others))),
            tool_calls=_whole(_less(limits.tool_calls, calls)),
            same_results=limits.same_results,
        )


def _answered(view: StoreView, turn: Turn) -> list[ModelAnswered]:
    query = EventQuery(run_id=turn.run_id, types=("model_answered",), limit=MAX_ANSWERS)
    bodies = (event.body for event in view.events(query))
    return [body for body in bodies if isinstance(body, ModelAnswered)]


def _less(limit: float | None, used: float) -> float | None:
    return None if limit is None else max(limit - used, 0.0)


def _lower(one: float | None, other: float | None) -> float | None:
    return min((limit for limit in (one, other) if limit is not None), default=None)


def _whole(number: float | None) -> int | None:
    return None if number is None else int(number)


def _spent(left: TurnLimits, limits: PlaybookLimits) -> Iterator[TurnStop]:
    """List limits that are used up before the turn begins."""
    kinds: tuple[tuple[StopKind, float | None, float | None], ...] = (
        ("minutes", left.seconds, limits.minutes),
        ("tokens", left.tokens, limits.tokens),
        ("usd", left.usd, limits.usd),
        ("turns", left.turns, limits.turns),
        ("tool_calls", left.tool_calls, limits.tool_calls),
    )
    for kind, rest, limit in kinds:
        if rest is not None and rest <= 0:
            yield TurnStop(
                kind=kind, reason=f"the run's limit of {_amount(kind, limit or 0)} is used up"
            )


def _overrun(left: TurnLimits, reply: Reply) -> TurnStop | None:
    """Return the limit that the turn exceeded without being stopped: not every agent reports usage on the way."""
    used = reply.usage
    tokens = used.input_tokens + used.output_tokens
    if left.tokens is not None and tokens > left.tokens:
        reason = f"the agent used {tokens} tokens, {left.tokens} were left, and it reported that only at its end"
        return TurnStop(kind="tokens", reason=reason)
    if left.usd is not None and used.usd > left.usd:
        reason = f"the agent used {used.usd:g} USD, {left.usd:g} were left, and it reported that only at its end"
        return TurnStop(kind="usd", reason=reason)
    return None


def _amount(kind: StopKind, limit: float) -> str:
    if kind == "usd":
        return f"{limit:g} USD"
    if kind == "minutes":
        return f"{limit:g} minute{'' if limit == 1 else 's'}"
    return counted(int(limit), {"tool_calls": "tool call", "turns": "answer"}.get(kind, "token"))
