"""Claude Code, asked over its own protocol: it thinks and works, Podium answers its questions."""

from __future__ import annotations

import json
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
    schema_for,
)
from podium.agents.headless.claude.door import INTRODUCTION, ClaudeDoor
from podium.agents.headless.claude.ending import trouble_at_end, words_of
from podium.agents.headless.claude.records import Heard
from podium.agents.headless.claude.talk import ClaudeTalk
from podium.agents.headless.claude.tools import translate, unknown_own_tools
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


class ClaudeAgent:
    """One process a turn, in a private home that keeps the run's conversations.

    Every use of a tool is put before the turn's door first, in this process and over the CLI's own
    pipe: there is no hook program that could be late, crash or be taken away.
    """

    def __init__(self, options: AgentOptions, kit: AgentKit) -> None:
        """Raises `BadInput` for options that it does not have."""
        ClaudeSettings.of(options)
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
            async with kit.doors.open(turn, agent=name, translate=translate) as door:
                heard.tell = door.tell
                ended = await self._converse(turn, home, door, heard, transcript)
                waiting = door.waiting_approvals
        return home.signed(self._reply(turn, heard, ended, waiting, transcript.path))

    async def _converse(
        self, turn: Turn, home: Home, door: TurnDoor, heard: Heard, transcript: Transcript
    ) -> Ended:
        process = await self._start(await self._spawn(turn, home, door))
        heard.asked = True
        try:
            gatekeeper = ClaudeDoor(
                door, turn.workspace, takes_answers=schema_for(turn) is not None
            )
            await ClaudeTalk(process, gatekeeper, door, heard, transcript).hold()
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
        return Spawn(
            argv=argv_for(self._options, turn),
            cwd=turn.workspace,
            env=environment_for(self._options, home),
            stdin=_opening(turn.prompt),
            interactive=True,
            limits=ProcessLimits(seconds=turn.limits.seconds, output_bytes=STDERR_BYTES),
            confinement=await fence_for(self._kit, turn, door, needs),
        )

    def _logins(self) -> tuple[Login, ...]:
        if has_login_in(self._options.env):
            return ()
        configured = self._kit.environ.get("CLAUDE_CONFIG_DIR")
        folder = Path(configured) if configured else self._kit.user_home / CONFIG
        names = ("accessToken", "refreshToken", "expiresAt")
        return (
            Login(
                source=folder / ".credentials.json",
                target=f"{CONFIG}/.credentials.json",
                refreshable=tuple(f"claudeAiOauth.{name}" for name in names),
            ),
        )

    def _reply(
        self,
        turn: Turn,
        heard: Heard,
        ended: Ended,
        waiting: tuple[str, ...],
        transcript: str,
    ) -> Reply:
        result = heard.result or {}
        trouble = trouble_at_end(self.name, heard, ended, self._kit.clock.now(), waiting)
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
                *unknown_own_tools(self.name, turn),
                *kept_out(self.name, ended),
            ),
            waiting_approvals=waiting,
        )


def _opening(prompt: str) -> bytes:
    """What it is told first: how it has to ask, and the prompt."""
    # A prompt that begins with a slash would be taken for one of its commands.
    said = f"\n{prompt}" if prompt.startswith("/") else prompt
    introduction = {"type": "control_request", "request_id": "hello", "request": INTRODUCTION}
    message = {"type": "user", "message": {"role": "user", "content": said}}
    return b"".join(json.dumps(line).encode() + b"\n" for line in (introduction, message))
