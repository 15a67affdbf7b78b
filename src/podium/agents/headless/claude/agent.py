"""Claude Code, asked over its own protocol: it thinks and works, Podium answers its questions."""

from __future__ import annotations

import json
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from podium.agents.about import ABOUT
from podium.agents.confined import Needs, fence_for, kept_out
from podium.agents.headless.accounting import accounted
from podium.agents.headless.claude.command import (
    CONFIG,
    ClaudeSettings,
    argv_for,
    environment_for,
    has_login_in,
    login_in,
    schema_for,
)
from podium.agents.headless.claude.door import INTRODUCTION, ClaudeDoor
from podium.agents.headless.claude.ending import trouble_at_end, words_of
from podium.agents.headless.claude.records import Heard
from podium.agents.headless.claude.talk import ClaudeTalk
from podium.agents.headless.claude.tools import translate, unknown_own_tools
from podium.agents.headless.claude.without_hands import (
    PATIENCE,
    TOOLBOX,
    switches_without_hands,
)
from podium.agents.headless.ending import not_given
from podium.agents.headless.handless import (
    NoHands,
    OwnTools,
    at_desk,
    may_end_silently,
    told_by_door,
    toolbox_server,
    without_own_tools,
)
from podium.agents.headless.home import Home, Login, private_home
from podium.agents.headless.version import untried
from podium.agents.kit import AgentKit, AgentOptions
from podium.domain.asking import Reply, Turn
from podium.domain.errors import ToolMissing
from podium.domain.launching import Ended, ProcessLimits, Spawn
from podium.ports import Process, Transcript, TurnDoor

KNOWN_VERSION = ABOUT["claude"].tried
INSTALL = "npm install -g @anthropic-ai/claude-code"
STDERR_BYTES = 200_000
CONVERSATIONS = f"{CONFIG}/projects"


class ClaudeCliAgent:
    """One process a turn, in a private home that keeps the run's conversations.

    Every use of a tool is put before the turn's door first, in this process and over the CLI's own
    pipe: there is no hook program that could be late, crash or be taken away.
    """

    def __init__(self, options: AgentOptions, kit: AgentKit) -> None:
        """Raises `BadInput` for options that it does not have."""
        self._hands = ClaudeSettings.of(options).hands
        self._options = options
        self._kit = kit

    @property
    def name(self) -> str:
        return self._options.name

    async def ask(self, turn: Turn) -> Reply:
        kit = self._kit
        began = kit.clock.monotonic()
        heard = Heard(kit.clock, turn.limits.tokens)
        with accounted(self.name, lambda: heard.used(kit.clock.monotonic() - began)):
            return await self._ask(turn, heard)

    async def _ask(self, turn: Turn, heard: Heard) -> Reply:
        kit, name = self._kit, self.name
        with (
            private_home(kit, turn, name, keep=(CONVERSATIONS,), logins=self._logins()) as home,
            kit.transcripts.open(turn, name) as transcript,
        ):
            turn = home.turn
            async with self._door(turn) as door:
                heard.tell = door.tell
                ended = await self._converse(turn, home, door, heard, transcript)
        reply = self._reply(turn, heard, ended, door, transcript.path)
        return home.signed(told_by_door(reply, turn, door))

    def _door(self, turn: Turn) -> AbstractAsyncContextManager[TurnDoor]:
        if self._hands:
            return self._kit.doors.open(turn, agent=self.name, translate=translate)
        return self._kit.doors.open(without_own_tools(turn), agent=self.name)

    async def _converse(
        self, turn: Turn, home: Home, door: TurnDoor, heard: Heard, transcript: Transcript
    ) -> Ended:
        process = await self._start(await self._spawn(turn, home, door))
        heard.asked = True
        hands: OwnTools = door if self._hands else NoHands(door, TOOLBOX)
        try:
            gatekeeper = ClaudeDoor(
                hands, turn.workspace, takes_answers=schema_for(turn) is not None
            )
            await ClaudeTalk(process, gatekeeper, hands, heard, transcript).hold()
        finally:
            # Also when cancelled: nobody gets on before the whole tree is dead.
            ended = await process.end()
        return ended

    async def _start(self, spawn: Spawn) -> Process:
        try:
            return await self._kit.launcher.start(spawn)
        except ToolMissing as missing:
            raise ToolMissing(
                f"agent {self.name!r} needs Claude Code: {missing}; `{INSTALL}` installs it"
            ) from missing

    async def _spawn(self, turn: Turn, home: Home, door: TurnDoor) -> Spawn:
        needs = Needs(
            writable=home.folders,
            hosts=ABOUT["claude"].hosts,
            base_url=self._options.base_url,
            command=self._options.command or ABOUT["claude"].program,
        )
        cwd, tools, patience = turn.workspace, None, {}
        if not self._hands:
            server = toolbox_server(self.name, self._kit, door)
            cwd, tools = at_desk(turn, home).workspace, switches_without_hands(home, server)
            patience = PATIENCE
        return Spawn(
            argv=argv_for(self._options, turn, tools),
            cwd=cwd,
            env={**environment_for(self._options, home), **patience},
            stdin=_opening(turn.words(native=schema_for(turn) is not None)),
            interactive=True,
            limits=ProcessLimits(seconds=turn.limits.seconds, output_bytes=STDERR_BYTES),
            confinement=await fence_for(self._kit, turn, door, needs),
        )

    def _logins(self) -> tuple[Login, ...]:
        if has_login_in(self._options.env):
            return ()
        configured = self._kit.environ.get("CLAUDE_CONFIG_DIR")
        folder = Path(configured) if configured else self._kit.user_home / CONFIG
        return (login_in(folder),)

    def _reply(
        self,
        turn: Turn,
        heard: Heard,
        ended: Ended,
        door: TurnDoor,
        transcript: str,
    ) -> Reply:
        result = heard.result or {}
        silently, now = may_end_silently(door), self._kit.clock.now()
        trouble = trouble_at_end(self.name, heard, ended, now, silently)
        if trouble is not None:
            trouble.usage = heard.used(ended.seconds)
            raise trouble
        payload = result.get("structured_output") if turn.contract is not None else None
        return Reply(
            text=words_of(result),
            payload=payload,
            found="none" if payload is None else "native",
            usage=heard.used(ended.seconds),
            agent=self.name,
            model=heard.model or self._options.model,
            version=heard.version,
            session=heard.session,
            seconds=ended.seconds,
            transcript=transcript,
            warnings=(
                *untried(self.name, heard.version, KNOWN_VERSION),
                *self._not_given(turn),
                *kept_out(self.name, ended),
            ),
            waiting_approvals=door.waiting_approvals,
        )

    def _not_given(self, turn: Turn) -> tuple[str, ...]:
        if self._hands:
            return unknown_own_tools(self.name, turn)
        return not_given(self.name, turn.own_tools or ())


def _opening(prompt: str) -> bytes:
    """What it is told first: how it has to ask, and the prompt."""
    # A prompt that begins with a slash would be taken for one of its commands.
    said = f"\n{prompt}" if prompt.startswith("/") else prompt
    introduction = {"type": "control_request", "request_id": "hello", "request": INTRODUCTION}
    message = {"type": "user", "message": {"role": "user", "content": said}}
    return b"".join(json.dumps(line).encode() + b"\n" for line in (introduction, message))
