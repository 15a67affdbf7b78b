"""`CommandAgent`: any program as an agent, a prompt in, plain text or JSON out, as its options say."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, ValidationError, model_validator

from podium.agents.deps import AgentDeps, AgentOptions, problems_line
from podium.agents.headless.home import CliLogin, Home, private_home
from podium.agents.outcome import (
    accounted,
    cost_of,
    lost,
    may_end_with,
    missing_tools,
    out_of_time,
    plain_line,
    stderr_end,
    unkept_limits,
)
from podium.agents.program import (
    Needs,
    confinement_for,
    confinement_warnings,
    printed_line,
    received_line,
)
from podium.core.decisions import Usage
from podium.core.errors import AgentLost, AgentRejected, BadInput, PodiumError
from podium.core.model import FrozenModel, Json, NonEmpty
from podium.core.processes import ProcessExit, ProcessLimits, ProcessSpec
from podium.core.turns import Reply, Turn
from podium.ports import HookDoor, Process, Transcript


def _inside_home(name: str) -> str:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise ValueError("must be a path inside the home folder, such as .tool/auth.json")
    return name


HomePath = Annotated[str, AfterValidator(_inside_home)]


class CommandSettings(FrozenModel):
    """The program's input, and how its answer is read."""

    prompt: Literal["stdin", "file"] = "stdin"
    """Way of the prompt. `file`: its path stands where the command says `{prompt_file}`."""
    output: Literal["text", "json", "jsonl"] = "text"
    text: str = "text"
    """Dotted path of the answer in JSON, such as `choices.0.message.content`."""
    join_text: bool = False
    """For `jsonl`: the answer is all texts together, not the last one."""
    session: str = ""
    """Dotted path of the conversation's name."""
    input_tokens: str = ""
    output_tokens: str = ""
    usd: str = ""
    """Dotted paths of what the turn used."""
    resume: tuple[NonEmpty, ...] = ()
    """Words put behind the command when a conversation goes on; `{session}` is its name."""
    logins: tuple[HomePath, ...] = ()
    """Files of the person's home that are copied into the private one for the turn."""
    keep: tuple[HomePath, ...] = ()
    """Folders of the private home that stay for the run's next turns."""
    hosts: tuple[NonEmpty, ...] = ()
    """Hosts of its model, for a network that leads to the model alone."""

    @model_validator(mode="after")
    def _can_be_resumed(self) -> Self:
        if self.resume and not any("{session}" in argument for argument in self.resume):
            raise ValueError("one of the arguments of `resume` must contain {session}")
        return self

    @classmethod
    def of(cls, options: AgentOptions) -> CommandSettings:
        """Raises `BadInput` for what cannot work."""
        name = options.name
        if not options.command:
            raise BadInput(f"agent {name!r} of kind 'command' has no program; set `command`")
        try:
            settings = cls.model_validate(options.options)
        except ValidationError as error:
            names = ", ".join(cls.model_fields)
            raise BadInput(
                f"agent {name!r}: its options are not valid: {problems_line(error)}; known options: {names}"
            ) from None
        _check_placeholders(options, settings)
        return settings


def _check_placeholders(options: AgentOptions, settings: CommandSettings) -> None:
    command = " ".join(options.command)
    if (settings.prompt == "file") != ("{prompt_file}" in command):
        raise BadInput(
            f"agent {options.name!r}: `prompt: file` and {{prompt_file}} in `command` need each other"
        )
    if "{session}" in command:
        raise BadInput(
            f"agent {options.name!r}: the first turn has no {{session}}; move these arguments to `resume`"
        )
    if "{model}" in command and not options.model:
        raise BadInput(f"agent {options.name!r}: `command` contains {{model}}; set `model`")


MAX_SESSION = 500


class Unreadable(Exception):
    """The output is not what the settings say it is. The message says what is missing."""


@dataclass(frozen=True)
class Output:
    """The fields found in the output."""

    text: str
    session: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    usd: float | None = None


def read_output(
    lines: Sequence[bytes], settings: CommandSettings, *, may_be_silent: bool = False
) -> Output:
    """Raises `Unreadable`, also for JSON without a text unless the program may say nothing."""
    whole = b"\n".join(lines)
    if settings.output == "text":
        return Output(whole.decode(errors="replace").strip())
    is_document = settings.output == "json" and not (may_be_silent and not whole.strip())
    records = [_parsed(whole)] if is_document else list(_records(lines))
    texts = [text for record in records if isinstance(text := at(record, settings.text), str)]
    if not texts and not may_be_silent:
        raise Unreadable(f"its output has no text at {settings.text!r}")
    return Output(
        text="".join(texts if settings.join_text else texts[-1:]),
        session=_session(_last(records, settings.session)),
        input_tokens=_count(_last(records, settings.input_tokens)),
        output_tokens=_count(_last(records, settings.output_tokens)),
        usd=_amount(_last(records, settings.usd)),
    )


def at(data: Json, path: str) -> Json:
    """The value at a dotted path; numbers are places in lists. None when there is none."""
    for name in path.split("."):
        if isinstance(data, dict):
            data = data.get(name)
        elif isinstance(data, list) and name.lstrip("-").isdecimal():
            index = int(name[:10])
            data = data[index] if -len(data) <= index < len(data) else None
        else:
            return None
    return data


def record_in(line: bytes) -> Json:
    """The JSON of a line; None when it holds none. Programs print other things too."""
    try:
        return json.loads(line.decode(errors="replace"))
    except (ValueError, RecursionError):
        return None


def _records(lines: Sequence[bytes]) -> Iterator[Json]:
    return (record for line in lines if isinstance(record := record_in(line), dict | list))


def _parsed(whole: bytes) -> Json:
    document = record_in(whole)
    if not isinstance(document, dict | list):
        begin = plain_line(whole[:500].decode(errors="replace"), 100)
        raise Unreadable(f"its output is not JSON: {begin!r}")
    return document


def _last(records: Sequence[Json], path: str) -> Json:
    if not path:
        return None
    values = (at(record, path) for record in reversed(records))
    return next((value for value in values if value is not None), None)


def _session(value: Json) -> str | None:
    """A conversation's name, if it can be a word of a command line and no switch of it."""
    if not isinstance(value, str) or not 0 < len(value) <= MAX_SESSION:
        return None
    return value if value.isprintable() and not value.startswith("-") else None


def _count(value: Json) -> int | None:
    amount = _amount(value)
    return None if amount is None else int(amount)


def _amount(value: Json) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < 1e15 else None


MAX_ANSWER_BYTES = 64_000_000
"""Of a program whose whole output is its answer. No step of a run can keep so long a one."""
MAX_STREAM_BYTES = 256_000_000
"""Of one that also tells what it does."""
STDERR_BYTES = 200_000
_PROMPT = "prompt.txt"


class CommandAgent:
    """One process a turn, in a private home of its own.

    The program has no protocol by which Podium could hold its tools. What it wants of Podium it
    asks for at the turn's door, which it finds by `PODIUM_DOOR` and `PODIUM_DOOR_TOKEN`.
    """

    def __init__(self, options: AgentOptions, deps: AgentDeps) -> None:
        """Raises `BadInput` for options that cannot work."""
        self._options = options
        self._settings = CommandSettings.of(options)
        self._deps = deps

    @property
    def name(self) -> str:
        return self._options.name

    async def ask(self, turn: Turn) -> Reply:
        began = self._deps.clock.monotonic()
        asked: list[Process] = []

        def used() -> Usage:
            seconds = self._deps.clock.monotonic() - began
            return Usage(turns=len(asked), seconds=seconds, complete=not asked)

        with accounted(self.name, used):
            return await self._ask(turn, asked)

    async def _ask(self, turn: Turn, asked: list[Process]) -> Reply:
        """`asked` gets the program once it is started."""
        deps, settings = self._deps, self._settings
        if turn.session is not None and not settings.resume:
            raise AgentRejected(
                f"agent {self.name!r} cannot resume a conversation; set `resume` in its "
                "options, or start a new conversation"
            )
        logins = [CliLogin(deps.user_home / name, name) for name in settings.logins]
        with (
            private_home(deps, turn, self.name, keep=settings.keep, logins=logins) as home,
            deps.transcripts.open(turn, self.name) as transcript,
        ):
            turn = home.turn
            async with deps.doors.open(turn, agent=self.name) as door:
                asked.append(await deps.launcher.start(await self._spawn(turn, home, door)))
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
                *missing_tools(self.name, turn.own_tools or ()),
                *unkept_limits(self.name, turn.limits, "tokens", "usd", "turns"),
                *confinement_warnings(self.name, ended),
            ),
            waiting_approvals=waiting,
        )
        return home.signed(reply)

    async def _hear(
        self, process: Process, door: HookDoor, transcript: Transcript
    ) -> tuple[list[bytes], ProcessExit]:
        process.close_input()
        lines: list[bytes] = []
        largest = left = self._largest_bytes
        try:
            async for line in process.lines():
                left -= len(line) + 1
                if left < 0:
                    break
                lines.append(line)
                transcript.write(self._transcript_line(line))
                self._notify(line, door)
        finally:
            # Also when cancelled: nobody gets on before the whole tree is dead.
            ended = await process.end()
        if left < 0:
            raise AgentLost(f"agent {self.name!r} wrote more than {largest} bytes and was stopped")
        return lines, ended

    @property
    def _largest_bytes(self) -> int:
        return MAX_STREAM_BYTES if self._settings.output == "jsonl" else MAX_ANSWER_BYTES

    def _transcript_line(self, line: bytes) -> str:
        text = line.decode(errors="replace")
        return received_line(text) if self._settings.output == "jsonl" else printed_line(text)

    def _notify(self, line: bytes, door: HookDoor) -> None:
        if self._settings.output == "text":
            door.report_progress("text", line.decode(errors="replace") + "\n")
        elif self._settings.output == "jsonl":
            text = at(record_in(line), self._settings.text)
            if isinstance(text, str):
                door.report_progress("text", text)

    async def _spawn(self, turn: Turn, home: Home, door: HookDoor) -> ProcessSpec:
        template = self._options.command
        if turn.session is not None:
            template = (*template, *self._settings.resume)
        prompt_file = home.temporary / _PROMPT
        by_file = self._settings.prompt == "file"
        if by_file:
            _write_private(prompt_file, turn.prompt)
        values = {
            "{prompt_file}": str(prompt_file),
            "{workspace}": turn.workspace,
            "{session}": turn.session or "",
            "{model}": self._options.model,
        }
        return ProcessSpec(
            argv=tuple(_filled(argument, values) for argument in template),
            cwd=turn.workspace,
            env={**self._options.env, **home.env, **door.env},
            stdin=b"" if by_file else turn.prompt.encode(errors="replace"),
            interactive=True,
            limits=ProcessLimits(seconds=turn.limits.seconds, output_bytes=STDERR_BYTES),
            confinement=await confinement_for(
                self._deps,
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

    def _read(self, lines: list[bytes], ended: ProcessExit, waiting: tuple[str, ...]) -> Output:
        """The answer, if the program both ended well and gave one: neither alone is enough."""
        if ended.timed_out:
            raise self._with_usage(out_of_time(self.name, ended), ended)
        if ended.exit_code != 0:
            raise self._with_usage(lost(self.name, ended), ended)
        try:
            output = read_output(lines, self._settings, may_be_silent=bool(waiting))
        except Unreadable as problem:
            message = f"agent {self.name!r} gave no answer: {problem}{stderr_end(ended)}"
            raise self._with_usage(AgentLost(message), ended) from None
        if not may_end_with(output.text, waiting):
            message = (
                f"agent {self.name!r} exited successfully without an answer{stderr_end(ended)}"
            )
            raise self._with_usage(AgentLost(message), ended)
        return output

    def _with_usage(self, error: PodiumError, ended: ProcessExit) -> PodiumError:
        error.usage = Usage(turns=1, seconds=ended.seconds, complete=False)
        return error

    def _usage(self, output: Output, ended: ProcessExit) -> Usage:
        read, written, usd = output.input_tokens, output.output_tokens, output.usd
        is_counted = read is not None and written is not None
        if usd is None and is_counted and self._options.model:
            usd = cost_of(self._options.model, input_tokens=read or 0, output_tokens=written or 0)
        return Usage(
            input_tokens=read or 0,
            output_tokens=written or 0,
            usd=usd or 0.0,
            turns=1,
            seconds=ended.seconds,
            complete=is_counted and usd is not None,
        )


def _filled(argument: str, values: dict[str, str]) -> str:
    """The word with its places filled, each once: what is filled in is not looked at again."""
    for placeholder, value in values.items():
        before, separator, after = argument.partition(placeholder)
        if separator:
            return _filled(before, values) + value + _filled(after, values)
    return argument


def _write_private(path: Path, content: str) -> None:
    path.touch(mode=0o600)
    path.write_bytes(content.encode(errors="replace"))


__all__ = ["CommandAgent"]
