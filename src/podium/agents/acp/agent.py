"""`AcpAgent`: asks any agent that speaks the Agent Client Protocol, and answers its questions."""

from __future__ import annotations

from pydantic import ValidationError

from podium.agents.acp.gatekeeper import Gatekeeper
from podium.agents.acp.records import AcpStream
from podium.agents.acp.session import (
    AcpSession,
    Keeper,
    error_at_end,
    error_of_failure,
    warnings_at_end,
)
from podium.agents.acp.setup import AcpOptions, GeminiSetup, PlainSetup, Setup, is_gemini
from podium.agents.confinement import Needs, confinement_for, confinement_warnings
from podium.agents.deps import AgentDeps, AgentOptions
from podium.agents.headless.home import Home, home_off_loop
from podium.agents.json_rpc import RpcError
from podium.agents.outcome import accounted
from podium.core.errors import ConfigInvalid, ConfigProblem, PodiumError, ToolMissing
from podium.core.model import Json
from podium.core.processes import ProcessExit, ProcessSpec
from podium.core.turns import Reply, Turn
from podium.ports import HookDoor, Process, Transcript


class AcpAgent:
    """One process a turn, in a private home. What it asks permission for is put before the door.

    Writing files is offered to it, so that an agent that honours it has Podium write. What an agent
    does without asking nobody can judge; the reply's warnings name what it tells of that.
    """

    def __init__(self, options: AgentOptions, deps: AgentDeps) -> None:
        self._options = options
        self._deps = deps
        self._setup = _setup_for(options, deps)

    @property
    def name(self) -> str:
        return self._options.name

    async def ask(self, turn: Turn) -> Reply:
        stream, clock = AcpStream(self._options.model, self._setup.ended), self._deps.clock
        began = clock.monotonic()
        with accounted(self.name, lambda: stream.usage(clock.monotonic() - began)):
            return await self._ask(turn, stream)

    async def _ask(self, turn: Turn, stream: AcpStream) -> Reply:
        deps, name, setup = self._deps, self.name, self._setup
        logins = setup.logins()
        async with home_off_loop(deps, turn, name, keep=setup.keep, logins=logins) as home:
            turn = home.turn
            with deps.transcripts.open(turn, name) as transcript:
                async with deps.doors.open(turn, agent=name) as door:
                    gatekeeper = Gatekeeper(door, setup.intents, setup.hands_over_in(turn))
                    stream.attend(door, gatekeeper)
                    spawn = await self._fenced(await setup.prepare(turn, home, door), home, door)
                    ended = await self._converse(turn, spawn, gatekeeper, stream, transcript)
                    waiting = door.waiting_approvals
        return home.signed(self._reply(turn, stream, gatekeeper, ended, waiting, transcript.path))

    async def _converse(
        self,
        turn: Turn,
        spawn: ProcessSpec,
        gatekeeper: Gatekeeper,
        stream: AcpStream,
        transcript: Transcript,
    ) -> ProcessExit:
        process = await self._start(spawn)
        stream.started = True
        keeper = Keeper(transcript, self.name)
        talk = AcpSession(process, gatekeeper, stream, keeper, self.name)
        failure: Exception | None = None
        try:
            await talk.hold(turn)
        except (RpcError, PodiumError) as error:
            failure = error
        finally:
            # Also when cancelled: nobody gets on before the whole tree is dead.
            ended = await process.end()
            keeper.finish()
        if failure is not None:
            now = self._deps.clock.now()
            raise error_of_failure(self.name, failure, ended, now, self._setup.error) from None
        return ended

    async def _fenced(self, spawn: ProcessSpec, home: Home, door: HookDoor) -> ProcessSpec:
        hosts, address = self._setup.hosts, self._options.base_url
        needs = Needs(
            writable=home.folders, hosts=hosts, base_url=address, command=self._options.command
        )
        confinement = await confinement_for(self._deps, home.turn, door, needs)
        return spawn.model_copy(update={"confinement": confinement})

    async def _start(self, spawn: ProcessSpec) -> Process:
        try:
            return await self._deps.launcher.start(spawn)
        except ToolMissing as missing:
            raise ToolMissing(
                f"agent {self.name!r} cannot be started: {missing}; install it, or name its "
                "program under `command`"
            ) from None

    def _reply(
        self,
        turn: Turn,
        stream: AcpStream,
        gatekeeper: Gatekeeper,
        ended: ProcessExit,
        waiting: tuple[str, ...],
        transcript: str,
    ) -> Reply:
        usage = stream.usage(ended.seconds)
        error = error_at_end(self.name, turn, stream, gatekeeper, ended, waiting)
        if error is not None:
            error.usage = usage
            raise error
        version = _version(stream.agent.get("agentInfo"))
        return Reply(
            text=stream.text,
            usage=usage,
            agent=self.name,
            model=stream.model,
            version=version,
            session=stream.session,
            seconds=ended.seconds,
            transcript=transcript,
            untold=tuple(gatekeeper.untold),
            warnings=(
                *self._setup.warnings(turn, version),
                *warnings_at_end(stream),
                *confinement_warnings(self.name, ended),
            ),
            waiting_approvals=waiting,
        )


def _setup_for(options: AgentOptions, deps: AgentDeps) -> Setup:
    if not options.command:
        problem = ConfigProblem(
            "is missing; name the program, such as `[gemini, --acp]`", key="command"
        )
        raise ConfigInvalid(f"agent {options.name!r}", [problem])
    if is_gemini(options.command):
        return GeminiSetup(options, deps)
    try:
        own = AcpOptions.model_validate(options.options)
    except ValidationError as error:
        problems = [
            ConfigProblem(issue["msg"], key=".".join(map(str, issue["loc"])))
            for issue in error.errors()
        ]
        raise ConfigInvalid(f"options of agent {options.name!r}", problems) from None
    return PlainSetup(options, own, deps)


def _version(info: Json) -> str:
    version = info.get("version") if isinstance(info, dict) else None
    return version if isinstance(version, str) else ""
