"""`AcpAgent`: asks any agent that speaks the Agent Client Protocol, by its command line alone or as Gemini CLI."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Protocol

from pydantic import ValidationError

from podium.agents.acp.gatekeeper import (
    AcpToolRequest,
    Ended,
    Gatekeeper,
    ended_by,
    intents_of,
    title_of,
)
from podium.agents.acp.session import (
    LINE_BYTES,
    AcpSession,
    AcpStream,
    Keeper,
    error_at_end,
    error_of_failure,
    error_of_message,
    warnings_at_end,
)
from podium.agents.deps import AgentDeps, AgentOptions, option_problems
from podium.agents.headless.gemini.program import (
    CONVERSATIONS,
    TRIED_VERSION,
    asking_rules,
    environment_for,
    lay_out,
    logins_for,
    own_options,
    selected_login,
)
from podium.agents.headless.gemini.records import gemini_error
from podium.agents.headless.gemini.tools import ENDING, RAN, WITHOUT_SUBAGENTS
from podium.agents.headless.git_identity import identity_for
from podium.agents.headless.home import CliLogin, Home, home_off_loop
from podium.agents.json_rpc import RpcError
from podium.agents.kinds import ABOUT
from podium.agents.outcome import accounted, missing_tools, unkept_limits
from podium.agents.program import Needs, confinement_for, confinement_warnings, untried
from podium.core.errors import BadInput, ConfigInvalid, ConfigProblem, PodiumError, ToolMissing
from podium.core.model import FrozenModel, Json
from podium.core.processes import ProcessExit, ProcessLimits, ProcessSpec
from podium.core.turns import OWN_TOOL_NAMES, Reply, Turn, granted_names, unknown_names
from podium.platform.completion import in_thread
from podium.ports import HookDoor, Process, Transcript

STDERR_BYTES = 200_000


class AcpOptions(FrozenModel):
    """Options of an ACP agent in podium.yaml."""

    copy_files: tuple[str, ...] = ()
    """Files of the person's home that keep it logged in, copied to the same place in its own."""
    keep: tuple[str, ...] = ()
    """Folders of its home where its conversations lie."""
    hosts: tuple[str, ...] = ()
    """Hosts where its provider answers, for a network that leads to the model alone."""


class Setup(Protocol):
    """The parts that differ from agent to agent."""

    keep: tuple[str, ...]
    hosts: tuple[str, ...]

    def logins(self) -> Sequence[CliLogin]: ...

    async def prepare(self, turn: Turn, home: Home, door: HookDoor) -> ProcessSpec:
        """Lay out the home and say what to start."""
        ...

    def intents(self, call: Mapping[str, Json]) -> list[AcpToolRequest]:
        """Return the registered tools that a tool call amounts to."""
        ...

    def ended(self, update: Mapping[str, Json]) -> Ended | None:
        """Read the end of a tool call; None while it goes on."""
        ...

    def hands_over_in(self, turn: Turn) -> str:
        """The folder in which it lets us write every file; empty when that is not known."""
        ...

    def error(self, agent: str, status: int | None, message: str, now: datetime) -> PodiumError:
        """The error for what its provider answered."""
        ...

    def warnings(self, turn: Turn, version: str) -> tuple[str, ...]: ...


class PlainSetup:
    """Any agent: an empty home, the variables of its settings, questions read by the protocol alone."""

    def __init__(self, options: AgentOptions, own: AcpOptions, deps: AgentDeps) -> None:
        self._options = options
        self._own = own
        self._deps = deps
        self.keep = own.keep
        self.hosts = own.hosts

    def logins(self) -> Sequence[CliLogin]:
        return [CliLogin(self._deps.user_home / name, name) for name in self._own.copy_files]

    async def prepare(self, turn: Turn, home: Home, door: HookDoor) -> ProcessSpec:
        return spawn_of(self._options.command, turn, {**self._options.env, **home.env})

    def intents(self, call: Mapping[str, Json]) -> list[AcpToolRequest]:
        return intents_of(call)

    def ended(self, update: Mapping[str, Json]) -> Ended | None:
        return ended_by(update)

    def hands_over_in(self, turn: Turn) -> str:
        return ""

    def error(self, agent: str, status: int | None, message: str, now: datetime) -> PodiumError:
        return error_of_message(agent, status, message, now)

    def warnings(self, turn: Turn, version: str) -> tuple[str, ...]:
        """Words that no question of the protocol stands for. Any other name may be that of a tool of its."""
        name = self._options.name
        common = [
            tool
            for tool in turn.own_tools or ()
            if granted_names((tool,)) & frozenset(OWN_TOOL_NAMES)
        ]
        return (
            *missing_tools(name, unknown_names(common, ("web_fetch",))),
            *unkept_limits(name, turn.limits, "tokens", "usd", "turns"),
        )


def spawn_of(argv: tuple[str, ...], turn: Turn, env: dict[str, str]) -> ProcessSpec:
    limits = ProcessLimits(
        seconds=turn.limits.seconds, output_bytes=STDERR_BYTES, line_bytes=LINE_BYTES
    )
    return ProcessSpec(argv=argv, cwd=turn.workspace, env=env, interactive=True, limits=limits)


_PROGRAM = re.compile(r"(^|/)gemini(\.js)?$")
_CONVERSATION = re.compile(r"session-.*-([0-9a-f]{8})\.jsonl")
_KILLED = 128
_HERE = "[current working directory "
_ELSEWHERE = re.compile(r"\[in ([^\[\]]+)\](?: \(.*\))?(?: \[background\])?", re.DOTALL)


def is_gemini(command: Sequence[str]) -> bool:
    """Return whether this command starts Gemini CLI."""
    return any(_PROGRAM.search(argument) for argument in command[:2])


class GeminiSetup:
    """The private home and the rules of the headless agent, with every tool to be asked for."""

    keep: tuple[str, ...] = (CONVERSATIONS,)
    hosts: tuple[str, ...] = ABOUT["gemini"].hosts

    def __init__(self, options: AgentOptions, deps: AgentDeps) -> None:
        self._options = options
        self._own = own_options(options)
        if not self._own.hands:
            raise BadInput(
                f"agent {options.name!r}: `hands: false` is not possible over ACP; use `kind: gemini`"
            )
        self._deps = deps

    def logins(self) -> Sequence[CliLogin]:
        return logins_for(self._options.env, self._deps)

    async def prepare(self, turn: Turn, home: Home, door: HookDoor) -> ProcessSpec:
        options, deps = self._options, self._deps
        selected = selected_login(options.name, options.env, home.logins)
        await in_thread(_set_apart, home.path / CONVERSATIONS)
        arguments = (home, turn, self._own, selected, door.hook_env, deps)
        await in_thread(lay_out, *arguments, rules=asking_rules(turn))
        identity = await identity_for(deps, options.env, turn.workspace)
        model = ("-m", options.model) if options.model else ()
        # Without the last it does not tell the exit codes of commands.
        argv = (*options.command, "--approval-mode", "default", *model, "--debug")
        return spawn_of(argv, turn, environment_for(options, home, identity))

    def hands_over_in(self, turn: Turn) -> str:
        """Inside its working folder it writes through us, in whatever mode; outside it does not."""
        return turn.workspace

    def intents(self, call: Mapping[str, Json]) -> list[AcpToolRequest]:
        """Its title has the whole command, and its id begins with the name of the tool."""
        tool, title = str(call.get("toolCallId") or "").partition("__")[0], title_of(call)
        if tool == "google_web_search":
            return [AcpToolRequest("web_search", {"query": title})]
        if tool in ("glob", "list_directory"):
            return [AcpToolRequest("list_files", {"path": "."})]
        if tool in ("write_todos", "update_topic"):
            return [AcpToolRequest("keep_notes", {"text": title})]
        if tool == "run_shell_command":
            return [_command(call, title)]
        return intents_of(call)

    def ended(self, update: Mapping[str, Json]) -> Ended | None:
        """Told to debug, it shows what it tells the model: the exit code, unless that is 0."""
        ended = ended_by(update)
        ran = ended is not None and ended.ok and ended.output.startswith(RAN)
        ending = ENDING.search(ended.output) if ended is not None and ran else None
        if ended is None or ending is None:
            return ended
        # Nothing is left of a code where a signal ended it: what a shell would say of it.
        return replace(ended, exit_code=_KILLED if ending[2] else int(ending[1] or 0))

    def error(self, agent: str, status: int | None, message: str, now: datetime) -> PodiumError:
        return gemini_error(agent, status, message, now)

    def warnings(self, turn: Turn, version: str) -> tuple[str, ...]:
        name = self._options.name
        return (
            *untried(name, version, TRIED_VERSION),
            *missing_tools(name, unknown_names(turn.own_tools, WITHOUT_SUBAGENTS)),
            *unkept_limits(name, turn.limits, "tokens", "usd"),
        )


def _command(call: Mapping[str, Json], command: str) -> AcpToolRequest:
    """The command, and the folder it runs in, which stands in words beside it."""
    details = _details(call)
    if details.startswith(_HERE):
        return AcpToolRequest("run_command", {"command": command})
    match = _ELSEWHERE.fullmatch(details)
    if match is not None:
        return AcpToolRequest("run_command", {"command": command, "cwd": match[1]})
    # Somebody chose the name of a folder, or a description, that makes the words ambiguous.
    about = {"command": command, "details": details}
    return AcpToolRequest("own_tool", {"name": "run_shell_command", "arguments": about})


def _details(call: Mapping[str, Json]) -> str:
    content = call.get("content")
    for item in content if isinstance(content, list) else []:
        inner = item.get("content") if isinstance(item, dict) else None
        text = inner.get("text") if isinstance(inner, dict) else None
        if isinstance(text, str):
            return text
    return ""


def _set_apart(folder: Path) -> None:
    """Give conversations names that no new one gets.

    When it loads one, it begins another file named by the minute, and empties the old one if that
    has the same name. The file with the conversation in it is the largest of its kind.
    """
    if not folder.is_dir():
        return
    largest: dict[str, Path] = {}
    for file in sorted(folder.iterdir(), key=lambda file: file.lstat().st_size):
        match = _CONVERSATION.fullmatch(file.name)
        if match is None or file.is_symlink() or not file.is_file():
            continue
        if match[1] in largest:
            largest[match[1]].unlink()
        largest[match[1]] = file
    for name, file in largest.items():
        file.rename(folder / f"session-2000-01-01T00-00-{name}.jsonl")


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
                f"agent {self.name!r} cannot be started: {missing}; `command` in its settings names "
                "the program"
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
        raise ConfigInvalid(f"options of agent {options.name!r}", option_problems(error)) from None
    return PlainSetup(options, own, deps)


def _version(info: Json) -> str:
    version = info.get("version") if isinstance(info, dict) else None
    return version if isinstance(version, str) else ""
