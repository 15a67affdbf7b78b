"""Gemini CLI, one process a turn: it thinks and works, its hooks ask Podium first."""

from __future__ import annotations

import uuid
from contextlib import AbstractAsyncContextManager

from podium.agents.deps import AgentDeps, AgentOptions
from podium.agents.headless.gemini.program import (
    CONVERSATIONS,
    TRIED_VERSION,
    command_of,
    environment_for,
    headless_rules,
    lay_out,
    logins_for,
    own_options,
    selected_login,
    start,
    version_of_cli,
)
from podium.agents.headless.gemini.records import GeminiStream, error_at_end
from podium.agents.headless.gemini.tools import (
    GRANTABLE_TOOLS,
    TOOLBOX,
    prompt_for,
    translation_for,
)
from podium.agents.headless.git_identity import identity_for
from podium.agents.headless.home import Home, home_off_loop
from podium.agents.headless.own_tools import (
    NoOwnTools,
    OwnTools,
    in_empty_folder,
    may_end_silently,
    toolbox_server,
    with_door_outcome,
    without_own_tools,
)
from podium.agents.kinds import ABOUT
from podium.agents.outcome import accounted, missing_tools, unkept_limits
from podium.agents.program import Needs, confinement_for, confinement_warnings, hear_out, untried
from podium.core.errors import AgentRejected
from podium.core.processes import ProcessExit, ProcessLimits, ProcessSpec
from podium.core.turns import Reply, Turn, unknown_names
from podium.platform.completion import in_thread
from podium.ports import HookDoor

STDERR_BYTES = 200_000


class GeminiCliAgent:
    """Asks the CLI headless, in a private home that keeps the run's conversations.

    Every use of a tool is put before the turn's door by a hook that answers no whatever goes wrong
    with it, and what a role was not given is not offered to the model at all.
    """

    def __init__(self, options: AgentOptions, deps: AgentDeps) -> None:
        self._options = options
        self._own = own_options(options)
        self._deps = deps

    @property
    def name(self) -> str:
        return self._options.name

    @property
    def _own_tools(self) -> tuple[str, ...]:
        return GRANTABLE_TOOLS if self._own.hands else ()

    async def ask(self, turn: Turn) -> Reply:
        stream, clock = GeminiStream(), self._deps.clock
        began = clock.monotonic()
        with accounted(self.name, lambda: stream.usage(clock.monotonic() - began)):
            return await self._ask(turn, stream)

    async def _ask(self, turn: Turn, stream: GeminiStream) -> Reply:
        deps, name = self._deps, self.name
        version = await version_of_cli(self._options, deps, turn.workspace)
        logins = logins_for(self._options.env, deps)
        async with home_off_loop(deps, turn, name, keep=(CONVERSATIONS,), logins=logins) as home:
            turn = home.turn
            with deps.transcripts.open(turn, name) as transcript:
                async with self._door(turn) as door:
                    hands: OwnTools = door if self._own.hands else NoOwnTools(door, TOOLBOX)
                    stream.attend(hands, transcript)
                    spawn = await self._prepare(turn, home, door)
                    ended = await self._run(spawn, stream)
        reply = self._reply(turn, stream, ended, version, door, transcript.path)
        return home.signed(with_door_outcome(reply, turn, door))

    def _door(self, turn: Turn) -> AbstractAsyncContextManager[HookDoor]:
        if self._own.hands:
            judged = translation_for(turn)
            return self._deps.doors.open(turn, agent=self.name, translate=judged)
        return self._deps.doors.open(without_own_tools(turn), agent=self.name)

    async def _prepare(self, turn: Turn, home: Home, door: HookDoor) -> ProcessSpec:
        seated, server = turn, None
        if not self._own.hands:
            seated, server = (
                in_empty_folder(turn, home),
                toolbox_server(self.name, self._deps, door),
            )
        selected = selected_login(self.name, self._options.env, home.logins)
        layout = (home, seated, self._own, selected, door.hook_env, self._deps)
        await in_thread(lay_out, *layout, rules=headless_rules(turn), server=server)
        identity = await identity_for(self._deps, self._options.env, turn.workspace)
        needs = Needs(
            writable=home.folders,
            hosts=ABOUT["gemini"].hosts,
            base_url=self._options.base_url,
            command=self._options.command or ABOUT["gemini"].program,
        )
        return ProcessSpec(
            argv=self._argv(turn),
            cwd=seated.workspace,
            env=environment_for(self._options, home, identity, trusted=server is not None),
            # Only now: the CLI would read what was laid out if the prompt named it.
            stdin=prompt_for(self.name, turn.prompt, seated.workspace),
            interactive=True,
            limits=ProcessLimits(seconds=turn.limits.seconds, output_bytes=STDERR_BYTES),
            confinement=await confinement_for(self._deps, turn, door, needs),
        )

    def _argv(self, turn: Turn) -> tuple[str, ...]:
        model = ("-m", self._options.model) if self._options.model else ()
        return (
            *command_of(self._options),
            *("-o", "stream-json", "--approval-mode", "default"),
            # Without these it takes escape sequences out of what the model said.
            *("--raw-output", "--accept-raw-output-risk"),
            # Without this it does not tell the exit codes of commands.
            "--debug",
            *model,
            *_conversation(turn.session),
        )

    async def _run(self, spawn: ProcessSpec, stream: GeminiStream) -> ProcessExit:
        process = await start(self._deps, self.name, spawn)
        stream.started = True
        process.close_input()
        try:
            return await hear_out(process, stream.take)
        finally:
            stream.finish()

    def _reply(
        self,
        turn: Turn,
        stream: GeminiStream,
        ended: ProcessExit,
        version: str,
        door: HookDoor,
        transcript: str,
    ) -> Reply:
        usage, now = stream.usage(ended.seconds), self._deps.clock.now()
        error = error_at_end(self.name, turn, stream, ended, now, may_end_silently(door))
        if error is not None:
            error.usage = usage
            raise error
        return Reply(
            text=stream.text,
            usage=usage,
            agent=self.name,
            model=stream.model or self._options.model,
            version=version,
            session=stream.session,
            seconds=ended.seconds,
            transcript=transcript,
            warnings=(
                *untried(self.name, version, TRIED_VERSION),
                *missing_tools(self.name, unknown_names(turn.own_tools, self._own_tools)),
                *unkept_limits(self.name, turn.limits, "tokens", "usd"),
                *stream.warnings,
                *confinement_warnings(self.name, ended),
            ),
            waiting_approvals=door.waiting_approvals,
        )


def _conversation(session: str | None) -> tuple[str, str]:
    if session is None:
        return ("--session-id", str(uuid.uuid4()))
    try:
        return ("-r", str(uuid.UUID(session)))
    except ValueError:
        raise AgentRejected(
            f"{session!r} is not a conversation of Gemini CLI; start a new one"
        ) from None
