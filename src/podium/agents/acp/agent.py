"""`AcpAgent`: asks any agent that speaks the Agent Client Protocol, and answers its questions."""

from __future__ import annotations

from pydantic import ValidationError

from podium.agents.acp.gatekeeper import Gatekeeper
from podium.agents.acp.records import Heard
from podium.agents.acp.session import (
    AcpTalk,
    Keeper,
    trouble_at_end,
    trouble_of_error,
    warnings_at_end,
)
from podium.agents.acp.setup import AcpOptions, GeminiSetup, PlainSetup, Setup, is_gemini
from podium.agents.confinement import Needs, fence_for, kept_out
from podium.agents.deps import AgentKit, AgentOptions
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

    def __init__(self, options: AgentOptions, kit: AgentKit) -> None:
        self._options = options
        self._kit = kit
        self._setup = _setup_for(options, kit)

    @property
    def name(self) -> str:
        return self._options.name

    async def ask(self, turn: Turn) -> Reply:
        heard, clock = Heard(self._options.model, self._setup.ended), self._kit.clock
        began = clock.monotonic()
        with accounted(self.name, lambda: heard.usage(clock.monotonic() - began)):
            return await self._ask(turn, heard)

    async def _ask(self, turn: Turn, heard: Heard) -> Reply:
        kit, name, setup = self._kit, self.name, self._setup
        logins = setup.logins()
        async with home_off_loop(kit, turn, name, keep=setup.keep, logins=logins) as home:
            turn = home.turn
            with kit.transcripts.open(turn, name) as transcript:
                async with kit.doors.open(turn, agent=name) as door:
                    gatekeeper = Gatekeeper(door, setup.wishes, setup.hands_over_in(turn))
                    heard.attend(door, gatekeeper)
                    spawn = await self._fenced(await setup.prepare(turn, home, door), home, door)
                    ended = await self._converse(turn, spawn, gatekeeper, heard, transcript)
                    waiting = door.waiting_approvals
        return home.signed(self._reply(turn, heard, gatekeeper, ended, waiting, transcript.path))

    async def _converse(
        self,
        turn: Turn,
        spawn: ProcessSpec,
        gatekeeper: Gatekeeper,
        heard: Heard,
        transcript: Transcript,
    ) -> ProcessExit:
        process = await self._start(spawn)
        heard.started = True
        keeper = Keeper(transcript, self.name)
        talk = AcpTalk(process, gatekeeper, heard, keeper, self.name)
        fault: Exception | None = None
        try:
            await talk.hold(turn)
        except (RpcError, PodiumError) as error:
            fault = error
        finally:
            # Also when cancelled: nobody gets on before the whole tree is dead.
            ended = await process.end()
            keeper.finish()
        if fault is not None:
            now = self._kit.clock.now()
            raise trouble_of_error(self.name, fault, ended, now, self._setup.trouble) from None
        return ended

    async def _fenced(self, spawn: ProcessSpec, home: Home, door: HookDoor) -> ProcessSpec:
        hosts, address = self._setup.hosts, self._options.base_url
        needs = Needs(
            writable=home.folders, hosts=hosts, base_url=address, command=self._options.command
        )
        fence = await fence_for(self._kit, home.turn, door, needs)
        return spawn.model_copy(update={"confinement": fence})

    async def _start(self, spawn: ProcessSpec) -> Process:
        try:
            return await self._kit.launcher.start(spawn)
        except ToolMissing as missing:
            raise ToolMissing(
                f"agent {self.name!r} cannot be started: {missing}; install it, or name its "
                "program under `command`"
            ) from None

    def _reply(
        self,
        turn: Turn,
        heard: Heard,
        gatekeeper: Gatekeeper,
        ended: ProcessExit,
        waiting: tuple[str, ...],
        transcript: str,
    ) -> Reply:
        usage = heard.usage(ended.seconds)
        trouble = trouble_at_end(self.name, turn, heard, gatekeeper, ended, waiting)
        if trouble is not None:
            trouble.usage = usage
            raise trouble
        version = _version(heard.agent.get("agentInfo"))
        return Reply(
            text=heard.text,
            usage=usage,
            agent=self.name,
            model=heard.model,
            version=version,
            session=heard.session,
            seconds=ended.seconds,
            transcript=transcript,
            untold=tuple(gatekeeper.untold),
            warnings=(
                *self._setup.warnings(turn, version),
                *warnings_at_end(heard),
                *kept_out(self.name, ended),
            ),
            waiting_approvals=waiting,
        )


def _setup_for(options: AgentOptions, kit: AgentKit) -> Setup:
    if not options.command:
        fault = ConfigProblem(
            "is missing; name the program, such as `[gemini, --acp]`", key="command"
        )
        raise ConfigInvalid(f"agent {options.name!r}", [fault])
    if is_gemini(options.command):
        return GeminiSetup(options, kit)
    try:
        own = AcpOptions.model_validate(options.options)
    except ValidationError as error:
        faults = [
            ConfigProblem(fault["msg"], key=".".join(map(str, fault["loc"])))
            for fault in error.errors()
        ]
        raise ConfigInvalid(f"options of agent {options.name!r}", faults) from None
    return PlainSetup(options, own, kit)


def _version(info: Json) -> str:
    version = info.get("version") if isinstance(info, dict) else None
    return version if isinstance(version, str) else ""
