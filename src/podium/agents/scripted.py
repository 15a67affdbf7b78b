"""`ScriptedAgent`: asks a process that plays a script, as it would ask any headless CLI, and reads its lines and end."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal, Self, TypeVar

from pydantic import AfterValidator, Field, ValidationError, model_validator

from podium import __version__
from podium.agents.outcome import after_seconds, finished, lost, out_of_time
from podium.agents.program import Needs, confinement_warnings, hear_out, record_of, with_needs
from podium.core.decisions import Usage
from podium.core.errors import (
    AgentLost,
    AgentNotLoggedIn,
    AgentRefused,
    AgentRejected,
    AgentUnavailable,
    BadInput,
    ContextOverflow,
    PodiumError,
    RateLimited,
)
from podium.core.events import ProgressKind
from podium.core.model import FrozenModel, Json, NonEmpty, whole_text
from podium.core.processes import ProcessExit, ProcessLimits, ProcessSpec
from podium.core.turns import Reply, Turn
from podium.ports import (
    Clock,
    ConfinementProvider,
    HookDoor,
    HookServers,
    Launcher,
    Transcript,
    Transcripts,
)

Flag = Literal[True] | None
"""An act without details. To leave it out, leave the line out."""

Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0, le=31 * 86_400, allow_inf_nan=False)]

FailureKind = Literal[
    "not_logged_in", "rate_limited", "unavailable", "overflow", "refused", "rejected"
]


def _expression(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"is not a valid regular expression: {error}") from None
    return text


class ScriptedWrite(FrozenModel):
    """A file that the agent writes itself."""

    path: NonEmpty
    content: str = ""


class ScriptedFailure(FrozenModel):
    """A failure of its provider."""

    kind: FailureKind
    retry_seconds: Seconds | None = None
    """With `rate_limited`: how long until it may be asked again."""

    @model_validator(mode="after")
    def _only_a_limit_is_lifted(self) -> Self:
        if self.retry_seconds is not None and self.kind != "rate_limited":
            raise ValueError("`retry_seconds` needs `kind: rate_limited`")
        return self


class ScriptedUsage(FrozenModel):
    """Usage that it reports. Several of a turn are added up."""

    input: Count = 0
    output: Count = 0
    usd: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0


class Act(FrozenModel):
    """One thing the agent does. Exactly one of the keys is given.

    Beside it, `with` may stand with `call`, and `ignore_the_gate` with what it does itself.
    """

    say: str | None = None
    call: NonEmpty | None = None
    """Name of a tool that Podium shall use for it."""
    arguments: dict[str, Json] = Field(default_factory=dict, alias="with")
    write: ScriptedWrite | None = None
    """Write a file itself, once Podium has allowed it."""
    run: NonEmpty | None = None
    """Run a shell line itself, once Podium has allowed it."""
    commit: NonEmpty | None = None
    """Commit everything itself with this message, once Podium has allowed it."""
    ignore_the_gate: Flag = None
    """Do that without asking. Only a sandbox can stop it."""
    payload: dict[str, Json] | None = None
    """End its last words with this object, as JSON in a fence."""
    usage: ScriptedUsage | None = None
    fail: ScriptedFailure | None = None
    """End without an answer, and say why."""
    dump_environment: Flag = None
    """Say every variable it was given."""
    sleep_seconds: Seconds | None = None
    hang: Flag = None
    """Never answer."""
    crash: Annotated[int, Field(ge=0, le=255)] | None = None
    """End at once with this exit code and no answer."""
    flood_bytes: Count | None = None
    """Write so much to stdout that is no answer."""
    bad_bytes: Flag = None
    """Say something that is no UTF-8."""
    ignore_sigterm: Flag = None
    lie: Flag = None
    """Answer with something that is no answer."""
    truncate: Count | None = None
    """Cut the answer off after so many bytes, and end as if all were well."""
    leave_child: Flag = None
    """Start a process in a session of its own and go on without it."""

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        beside = {"arguments", "ignore_the_gate"}
        keys = sorted(
            name for name in self.model_fields_set - beside if getattr(self, name) is not None
        )
        if len(keys) != 1:
            raise ValueError(
                f"an act must have exactly one action; this one has {', '.join(keys) or 'none'}"
            )
        if self.arguments and self.call is None:
            raise ValueError("`with` needs `call`")
        if self.ignore_the_gate and keys[0] not in ("write", "run", "commit"):
            raise ValueError("`ignore_the_gate` needs `write`, `run` or `commit`")
        return self


class ScriptedTurn(FrozenModel):
    """The acts of a role when it is asked and the prompt fits."""

    role: NonEmpty
    when: Annotated[str, AfterValidator(_expression)] = ""
    """Regular expression that the prompt must contain. Empty: any prompt."""
    acts: tuple[Act, ...] = ()
    reply: str = ""
    """Its last words. Empty: all that it said on the way."""

    def fits(self, turn: Turn) -> bool:
        return self.role == turn.role and re.search(self.when, turn.prompt) is not None


class AgentScript(FrozenModel):
    """The whole part an agent plays."""

    turns: tuple[ScriptedTurn, ...] = Field(min_length=1)

    def turn_for(self, turn: Turn, after: int | None = None) -> int:
        """Number of the turn that fits. Raises `BadInput` when the script has none.

        That is the first one; in a conversation that has come to `after`, the first one behind it
        where there is any.
        """
        fitting = [number for number, scripted in enumerate(self.turns) if scripted.fits(turn)]
        if not fitting:
            raise BadInput(
                f"the script has no turn for role {turn.role!r} and this prompt; "
                f"roles in it: {', '.join(sorted({scripted.role for scripted in self.turns}))}"
            )
        return next(
            (number for number in fitting if after is not None and number > after), fitting[0]
        )


ModelT = TypeVar("ModelT", bound=FrozenModel)


class End(FrozenModel):
    """The player's answer."""

    reply: Annotated[str, AfterValidator(whole_text)]
    next_act: int | None


class Played:
    """Gathers what a player says. Lines that are no record of it are passed over."""

    def __init__(
        self,
        agent: str,
        notify: Callable[[ProgressKind, str], None],
        keep: Callable[[str], None] | None,
    ) -> None:
        self._agent = agent
        self._notify = notify
        self._keep = keep
        self._end: End | None = None
        self._failure: ScriptedFailure | None = None
        self._used: list[ScriptedUsage] = []

    def hear(self, line: str) -> None:
        if self._keep is not None:
            self._keep(line)
        match record_of(line):
            case {"say": str(text)}:
                self._notify("text", whole_text(text) + "\n")
            case {"usage": data} if (used := _valid(ScriptedUsage, data)) is not None:
                self._used.append(used)
            case {"fail": data}:
                self._failure = _valid(ScriptedFailure, data)
            case {"reply": _} as data:
                self._end = _valid(End, data)

    def usage(self, ended: ProcessExit) -> Usage:
        return Usage(
            input_tokens=sum(used.input for used in self._used),
            output_tokens=sum(used.output for used in self._used),
            usd=sum(used.usd for used in self._used),
            turns=1,
            seconds=ended.seconds,
            complete=self._end is not None or self._failure is not None,
        )

    def end(self, ended: ProcessExit, now: datetime) -> End:
        """The answer, if the process both ended well and gave one: neither alone is enough."""
        if ended.timed_out:
            raise out_of_time(self._agent, ended)
        if self._failure is not None:
            raise _error(self._agent, self._failure, now)
        if ended.exit_code != 0:
            raise lost(self._agent, ended)
        if self._end is None:
            raise AgentLost(f"agent {self._agent!r} gave no readable answer")
        return self._end


def _valid(kind: type[ModelT], data: object) -> ModelT | None:
    try:
        return kind.model_validate(data)
    except ValidationError:
        return None


def _error(agent: str, failure: ScriptedFailure, now: datetime) -> PodiumError:
    who = f"agent {agent!r}"
    match failure.kind:
        case "not_logged_in":
            return AgentNotLoggedIn(f"{who} is not logged in (scripted); change the script")
        case "rate_limited":
            seconds = failure.retry_seconds
            retry_at = None if seconds is None else after_seconds(seconds, now)
            return RateLimited(f"{who} is rate-limited (scripted)", retry_at)
        case "unavailable":
            return AgentUnavailable(f"{who} cannot reach its model (scripted)")
        case "overflow":
            return ContextOverflow(f"the conversation is too long for {who} (scripted)")
        case "refused":
            return AgentRefused(f"{who} refused (scripted)")
        case "rejected":
            return AgentRejected(f"the request of {who} was rejected (scripted)")


SCRIPT_PROGRAM = Path(__file__).with_name("script_player.py")
LINE_BYTES = 16_000_000
STDERR_BYTES = 100_000


class ScriptPosition(FrozenModel):
    """A conversation's position in the script."""

    turn: int
    act: int | None
    """The act it goes on with. None: the turn is done."""


class ScriptedAgent:
    """Plays a script turn by turn, each in a process of its own.

    A turn that was told to wait for an approval goes on at that call when its session is continued;
    one that was done is followed by the next one in the script that fits.
    """

    def __init__(
        self,
        name: str,
        script: AgentScript,
        launcher: Launcher,
        doors: HookServers,
        *,
        env: Mapping[str, str] | None = None,
        model: str = "script",
        transcripts: Transcripts | None = None,
        clock: Clock | None = None,
        confinement_provider: ConfinementProvider | None = None,
    ) -> None:
        """`env` is set for its processes, `secret://NAME` allowed; `model` is what replies say it is.

        Without `transcripts` nothing of what it said is kept but the reply, and without `enclosures`
        nothing holds it.
        """
        self._confinement_provider = confinement_provider
        self._name = name
        self._env = dict(env or {})
        self._model = model
        self._script = script
        self._launcher = launcher
        self._doors = doors
        self._transcripts = transcripts
        self._now: Callable[[], datetime] = clock.now if clock else lambda: datetime.now(UTC)

    @property
    def name(self) -> str:
        return self._name

    async def ask(self, turn: Turn) -> Reply:
        position = self._position(turn)
        with self._transcript(turn) as transcript:
            async with self._doors.open(turn, agent=self._name) as door:
                played = Played(
                    self._name, door.report_progress, transcript.write if transcript else None
                )
                process = await self._launcher.start(await self._fenced(turn, door, position))
                process.close_input()
                ended = await hear_out(process, played.hear)
                waiting, stopped = door.waiting_approvals, door.stopped
                done = door.finished_with
        usage = played.usage(ended)
        try:
            end = played.end(ended, self._now())
        except PodiumError as error:
            error.usage = usage
            raise
        reply = Reply(
            text=end.reply,
            usage=usage,
            agent=self._name,
            model=self._model,
            version=__version__,
            session=ScriptPosition(turn=position.turn, act=end.next_act).model_dump_json(),
            seconds=ended.seconds,
            transcript=transcript.path if transcript else None,
            warnings=confinement_warnings(self._name, ended),
            stopped=stopped,
            waiting_approvals=waiting,
        )
        return finished(reply, turn, done)

    def _transcript(self, turn: Turn) -> AbstractContextManager[Transcript | None]:
        if self._transcripts is None:
            return nullcontext()
        return self._transcripts.open(turn, self._name)

    def _position(self, turn: Turn) -> ScriptPosition:
        if turn.session is None:
            return ScriptPosition(turn=self._script.turn_for(turn), act=0)
        position = self._continued(turn.session)
        if position.act is not None:
            return position
        return ScriptPosition(turn=self._script.turn_for(turn, after=position.turn), act=0)

    def _continued(self, session: str) -> ScriptPosition:
        turns = self._script.turns
        try:
            position = ScriptPosition.model_validate_json(session)
        except ValidationError:
            position = ScriptPosition(turn=-1, act=None)
        if 0 <= position.turn < len(turns) and 0 <= (position.act or 0) <= len(
            turns[position.turn].acts
        ):
            return position
        raise BadInput(
            f"agent {self._name!r} has no conversation {session[:80]!r}; "
            "its script may have changed: start a new one"
        )

    async def _fenced(self, turn: Turn, door: HookDoor, position: ScriptPosition) -> ProcessSpec:
        spawn = self._spawn(turn, position, door.env)
        if self._confinement_provider is None:
            return spawn
        confinement = with_needs(
            await self._confinement_provider.confinement(turn.workspace), Needs(), door
        )
        return spawn.model_copy(update={"confinement": confinement})

    def _spawn(self, turn: Turn, position: ScriptPosition, env: Mapping[str, str]) -> ProcessSpec:
        scripted = self._script.turns[position.turn]
        part = {
            "acts": [
                act.model_dump(mode="json", by_alias=True, exclude_unset=True)
                for act in scripted.acts
            ],
            "first_act": position.act,
            "reply": scripted.reply,
        }
        return ProcessSpec(
            argv=(sys.executable, "-IS", str(SCRIPT_PROGRAM)),
            cwd=turn.workspace,
            env={**self._env, **env},
            stdin=json.dumps(part).encode(),
            interactive=True,
            limits=ProcessLimits(
                seconds=turn.limits.seconds, output_bytes=STDERR_BYTES, line_bytes=LINE_BYTES
            ),
        )
