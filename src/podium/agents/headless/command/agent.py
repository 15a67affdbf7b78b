"""Any program as an agent: a prompt in, words or JSON out."""

from __future__ import annotations

from pathlib import Path

from podium.agents.confined import Needs, fence_for, kept_out
from podium.agents.headless.accounting import accounted, unkept_limits
from podium.agents.headless.command.output import Output, Unreadable, at, read_output, record_in
from podium.agents.headless.command.settings import CommandSettings
from podium.agents.headless.ending import last_words, lost, may_end_with, not_given, out_of_time
from podium.agents.headless.home import Home, Login, private_home
from podium.agents.headless.kept_lines import heard_line, printed_line
from podium.agents.kit import AgentKit, AgentOptions
from podium.agents.pricing import cost_of
from podium.domain.asking import Reply, Turn
from podium.domain.errors import AgentLost, AgentRejected, PodiumError
from podium.domain.gating import Usage
from podium.domain.launching import Ended, ProcessLimits, Spawn
from podium.ports import Process, Transcript, TurnDoor

LARGEST_ANSWER_BYTES = 64_000_000
"""Of a program whose whole output is its answer. No step of a run can keep so long a one."""
LARGEST_STREAM_BYTES = 256_000_000
"""Of one that also tells what it does."""
STDERR_BYTES = 200_000
_PROMPT = "prompt.txt"


class CommandAgent:
    """One process a turn, in a private home of its own.

    The program has no protocol by which Podium could hold its tools. What it wants of Podium it
    asks for at the turn's door, which it finds by `PODIUM_DOOR` and `PODIUM_DOOR_TOKEN`.
    """

    def __init__(self, options: AgentOptions, kit: AgentKit) -> None:
        """Raises `BadInput` for options that cannot work."""
        self._options = options
        self._settings = CommandSettings.of(options)
        self._kit = kit

    @property
    def name(self) -> str:
        return self._options.name

    async def ask(self, turn: Turn) -> Reply:
        began = self._kit.clock.monotonic()
        asked: list[Process] = []

        def used() -> Usage:
            seconds = self._kit.clock.monotonic() - began
            return Usage(turns=len(asked), seconds=seconds, complete=not asked)

        with accounted(self.name, used):
            return await self._ask(turn, asked)

    async def _ask(self, turn: Turn, asked: list[Process]) -> Reply:
        """`asked` gets the program once it is started."""
        kit, settings = self._kit, self._settings
        if turn.session is not None and not settings.resume:
            raise AgentRejected(
                f"agent {self.name!r} cannot go on with a conversation; give it `resume` in its "
                "options, or ask without a session"
            )
        logins = [Login(kit.user_home / place, place) for place in settings.logins]
        with (
            private_home(kit, turn, self.name, keep=settings.keep, logins=logins) as home,
            kit.transcripts.open(turn, self.name) as transcript,
        ):
            turn = home.turn
            async with kit.doors.open(turn, agent=self.name) as door:
                asked.append(await kit.launcher.start(await self._spawn(turn, home, door)))
                lines, ended = await self._hear(asked[0], door, transcript)
                waiting = door.waiting_approvals
        output = self._read(lines, ended, waiting)
        reply = Reply(
            text=output.text,
            usage=self._usage(output, ended),
            agent=self.name,
            model=self._options.model,
            session=output.session or turn.session,
            seconds=ended.seconds,
            transcript=transcript.path,
            warnings=(
                *not_given(self.name, turn.own_tools or ()),
                *unkept_limits(self.name, turn.limits, "tokens", "usd", "turns"),
                *kept_out(self.name, ended),
            ),
            waiting_approvals=waiting,
        )
        return home.signed(reply)

    async def _hear(
        self, process: Process, door: TurnDoor, transcript: Transcript
    ) -> tuple[list[bytes], Ended]:
        process.close_input()
        lines: list[bytes] = []
        largest = left = self._largest_bytes
        try:
            async for line in process.lines():
                left -= len(line) + 1
                if left < 0:
                    break
                lines.append(line)
                transcript.write(self._kept(line))
                self._tell(line, door)
        finally:
            # Also when cancelled: nobody gets on before the whole tree is dead.
            ended = await process.end()
        if left < 0:
            raise AgentLost(f"agent {self.name!r} wrote more than {largest} bytes and was ended")
        return lines, ended

    @property
    def _largest_bytes(self) -> int:
        return LARGEST_STREAM_BYTES if self._settings.output == "jsonl" else LARGEST_ANSWER_BYTES

    def _kept(self, line: bytes) -> str:
        text = line.decode(errors="replace")
        return heard_line(text) if self._settings.output == "jsonl" else printed_line(text)

    def _tell(self, line: bytes, door: TurnDoor) -> None:
        if self._settings.output == "text":
            door.tell("text", line.decode(errors="replace") + "\n")
        elif self._settings.output == "jsonl":
            text = at(record_in(line), self._settings.text)
            if isinstance(text, str):
                door.tell("text", text)

    async def _spawn(self, turn: Turn, home: Home, door: TurnDoor) -> Spawn:
        template = self._options.command
        if turn.session is not None:
            template = (*template, *self._settings.resume)
        prompt_file = home.temporary / _PROMPT
        by_file = self._settings.prompt == "file"
        if by_file:
            _write_private(prompt_file, turn.prompt)
        places = {
            "{prompt_file}": str(prompt_file),
            "{workspace}": turn.workspace,
            "{session}": turn.session or "",
            "{model}": self._options.model,
        }
        return Spawn(
            argv=tuple(_filled(word, places) for word in template),
            cwd=turn.workspace,
            env={**self._options.env, **home.env, **door.env},
            stdin=b"" if by_file else turn.prompt.encode(errors="replace"),
            interactive=True,
            limits=ProcessLimits(seconds=turn.limits.seconds, output_bytes=STDERR_BYTES),
            confinement=await fence_for(
                self._kit,
                turn,
                door,
                Needs(
                    home.folders,
                    hosts=self._settings.hosts,
                    base_url=self._options.base_url,
                    command=template,
                ),
            ),
        )

    def _read(self, lines: list[bytes], ended: Ended, waiting: tuple[str, ...]) -> Output:
        """The answer, if the program both ended well and gave one: neither alone is enough."""
        if ended.timed_out:
            raise self._told(out_of_time(self.name, ended), ended)
        if ended.exit_code != 0:
            raise self._told(lost(self.name, ended), ended)
        try:
            output = read_output(lines, self._settings, may_be_silent=bool(waiting))
        except Unreadable as problem:
            words = f"agent {self.name!r} gave no answer: {problem}{last_words(ended)}"
            raise self._told(AgentLost(words), ended) from None
        if not may_end_with(output.text, waiting):
            words = f"agent {self.name!r} ended well and said nothing{last_words(ended)}"
            raise self._told(AgentLost(words), ended)
        return output

    def _told(self, trouble: PodiumError, ended: Ended) -> PodiumError:
        trouble.usage = Usage(turns=1, seconds=ended.seconds, complete=False)
        return trouble

    def _usage(self, output: Output, ended: Ended) -> Usage:
        read, written, usd = output.input_tokens, output.output_tokens, output.usd
        known = read is not None and written is not None
        if usd is None and known and self._options.model:
            usd = cost_of(self._options.model, input_tokens=read or 0, output_tokens=written or 0)
        return Usage(
            input_tokens=read or 0,
            output_tokens=written or 0,
            usd=usd or 0.0,
            turns=1,
            seconds=ended.seconds,
            complete=known and usd is not None,
        )


def _filled(word: str, places: dict[str, str]) -> str:
    """The word with its places filled, each once: what is filled in is not looked at again."""
    for place, value in places.items():
        before, found, after = word.partition(place)
        if found:
            return _filled(before, places) + value + _filled(after, places)
    return word


def _write_private(path: Path, content: str) -> None:
    path.touch(mode=0o600)
    path.write_bytes(content.encode(errors="replace"))
