"""One control-mode connection to a tmux server (quoted commands, answers cut out of its stream) and the errors of terminals.

Each command is answered by a block, `%begin T N F` … `%end T N F`, and what a pane shows stands in
such a block as it is. A program can draw a line that looks like the end of one. So every question is
followed by a request to print a random word: a program cannot know it, and only what comes right
before it ends a block.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from podium.core.errors import AgentLost, NeedsHuman, NotPossibleNow, TimedOut
from podium.core.processes import ProcessSpec
from podium.ports import Launcher, Process


class LineLost(AgentLost):
    """The control connection ended while an answer was awaited. Whether the command ran is not known."""


class ServerGone(AgentLost):
    """No tmux server answers at the socket. What ran in it is gone, and so is its ledger."""


class PaneGone(AgentLost):
    """The pane was closed, by a person or with its server."""


class ProgramEnded(AgentLost):
    """The program in the pane is no more. `last_output` is the end of what it wrote."""

    def __init__(self, message: str, last_output: str) -> None:
        super().__init__(message)
        self.last_output = last_output


class TmuxRefused(NotPossibleNow):
    """tmux would not do it. The message has its words."""


class NotListening(NotPossibleNow):
    """The program's input is not free, or does not let go of what stands in it. Nothing is lost: ask again."""


class KeyboardElsewhere(NotListening):
    """A person has the program's keyboard. Nothing was put in: wait until it is returned."""


class NumberTaken(NotPossibleNow):
    """Somebody else's words were sent by this number. Nothing was put in: take the next."""


class DeliveryInDoubt(NeedsHuman):
    """A message was pasted and never seen in the program's input. It is not sent again by itself."""


_BEGIN = re.compile(rb"%begin (\d+ \d+ 1)")
_ERROR = re.compile(rb"%error (\d+ \d+ 1)")


def answer_of(lines: Sequence[bytes], command: str) -> list[str]:
    """The answer to one command out of all that came before its random word.

    Raises `TmuxRefused` or `PaneGone` when tmux answered with an error.
    """
    begin, block_id = _first_block(lines, command)
    end = next(at for at in reversed(range(len(lines))) if lines[at] in _ends(block_id))
    return _body(lines[begin + 1 : end + 1], command)


def answers_of(lines: Sequence[bytes], commands: Sequence[str]) -> list[list[str]]:
    """The answers to several commands. Only the last of them may show what a program drew."""
    answers = []
    for command in commands[:-1]:
        begin, block_id = _first_block(lines, command)
        end = next(at for at in range(begin, len(lines)) if lines[at] in _ends(block_id))
        answers.append(_body(lines[begin + 1 : end + 1], command))
        lines = lines[end + 1 :]
    return [*answers, answer_of(lines, commands[-1])]


def refuse_errors(lines: Sequence[bytes], commands: str) -> None:
    """Raise for the first of several commands that failed. None of them may show a pane's content."""
    for at, line in enumerate(lines):
        if failed := _ERROR.fullmatch(line):
            begin = lines.index(b"%begin " + failed[1])
            message = b"\n".join(lines[begin + 1 : at]).decode(errors="replace")
            raise refusal(commands, message)


def refusal(command: str, message: str) -> TmuxRefused | PaneGone:
    """The error for what tmux said. Of the command only its name is told: the rest may be private."""
    name = command.split(" ", 1)[0]
    if message.startswith(("can't find pane", "can't find window")):
        return PaneGone(f"tmux {name}: {message}; start the program again")
    return TmuxRefused(f"tmux {name}: {message or 'failed without a message'}")


def _body(block: Sequence[bytes], command: str) -> list[str]:
    *lines, end = block
    body = [line.decode(errors="replace") for line in lines]
    if end.startswith(b"%error"):
        raise refusal(command, "\n".join(body))
    return body


def _first_block(lines: Sequence[bytes], command: str) -> tuple[int, bytes]:
    for at, line in enumerate(lines):
        if match := _BEGIN.fullmatch(line):
            return at, match[1]
    raise refusal(command, "no answer")


def _ends(block_id: bytes) -> tuple[bytes, bytes]:
    return b"%end " + block_id, b"%error " + block_id


ANSWER_SECONDS = 30.0
"""Seconds tmux may take for a command. It answers within a millisecond unless it hangs or the machine is overloaded."""

FAREWELL_SECONDS = 5.0
"""tmux 3.3a crashes when a client is killed while it attaches; one that is asked to end detaches first."""


_ATTACHED = b"%session-changed "
"""The line by which tmux greets a client. tmux 3.3a runs commands that are sent to it earlier as well, for a client
that belongs to no session yet."""


class Control:
    """The connection, made when first needed and again when it was lost."""

    def __init__(self, launcher: Launcher, attach: tuple[str, ...], cwd: str) -> None:
        """`attach` is the command that attaches in control mode."""
        self._launcher = launcher
        self._attach = attach
        self._cwd = cwd
        self._line: _Line | None = None
        self._connecting: asyncio.Task[_Line] | None = None

    async def ask(self, command: str, seconds: float = ANSWER_SECONDS) -> list[str]:
        """The lines that one command answers with.

        Raises `TmuxRefused` or `PaneGone` by tmux's own words, `TimedOut`, `LineLost` when the connection
        ended meanwhile, and `ServerGone` when there is nothing to connect to.
        """
        return answer_of(await self._say(command, seconds), command)

    async def ask_together(
        self, *commands: str, seconds: float = ANSWER_SECONDS
    ) -> list[list[str]]:
        """The answers to several commands, between which nothing else happens in the server. Raises as `ask` does.

        Only the last of them may show what a program drew.
        """
        return answers_of(await self._say(" ; ".join(commands), seconds), commands)

    async def run(self, commands: str, seconds: float = ANSWER_SECONDS) -> None:
        """Run several commands, parted by ` ; `. Raises as `ask` does, for the first that failed."""
        refuse_errors(await self._say(commands, seconds), commands)

    async def close(self) -> None:
        """Detach. A later question connects again."""
        if self._connecting is not None:
            await asyncio.wait({self._connecting})
        line, self._line = self._line, None
        if line is not None:
            await line.close()

    async def _say(self, command: str, seconds: float) -> list[bytes]:
        if "\n" in command:
            raise ValueError("a newline would end the command; quote it")
        line = await self._connected(seconds)
        return await line.say(command, seconds)

    async def _connected(self, seconds: float) -> _Line:
        if self._line is not None and not self._line.is_over:
            return self._line
        if self._connecting is None or self._connecting.done():
            self._connecting = asyncio.get_running_loop().create_task(self._connect(seconds))
            self._connecting.add_done_callback(_retrieve_error)
        # Not cancelled half way: a client that attaches must not be killed.
        return await asyncio.shield(self._connecting)

    async def _connect(self, seconds: float) -> _Line:
        spawn = ProcessSpec(
            argv=self._attach, cwd=self._cwd, interactive=True, farewell_seconds=FAREWELL_SECONDS
        )
        line = _Line(await self._launcher.start(spawn))
        try:
            await line.come_in(seconds)
        except LineLost as lost:
            raise ServerGone(
                f"the tmux server does not answer: {lost}; start the terminals again"
            ) from lost
        except TimedOut:
            await line.close()
            raise
        self._line = line
        return line


def _retrieve_error(connecting: asyncio.Task[_Line]) -> None:
    """Retrieve the error, which whoever waits gets too; when nobody does any more it is no news."""
    if not connecting.cancelled():
        connecting.exception()


@dataclass
class _Question:
    command: str
    token: bytes
    """Beginning of the line that ends its answer."""
    answered: asyncio.Future[list[bytes]]
    lines: list[bytes] = field(default_factory=list)


class _Line:
    """A connection as long as it lasts. Questions are answered in the order they were asked."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._waiting: deque[_Question] = deque()
        self._reading = asyncio.get_running_loop().create_task(self._read())

    @property
    def is_over(self) -> bool:
        return self._reading.done()

    async def come_in(self, seconds: float) -> None:
        """Wait until the client belongs to its session. Comes before anything is said."""
        await self._answer("attach-session", b"", _ATTACHED, seconds)

    async def say(self, command: str, seconds: float) -> list[bytes]:
        """All that tmux says until it has run the command."""
        token = secrets.token_hex(16)
        sent = f"{command}\ndisplay-message -p {token}\n".encode()
        return await self._answer(command, sent, token.encode(), seconds)

    async def _answer(self, command: str, sent: bytes, token: bytes, seconds: float) -> list[bytes]:
        answered: asyncio.Future[list[bytes]] = asyncio.get_running_loop().create_future()
        # It stays in the queue when it is given up, since its answer may still come.
        self._waiting.append(_Question(command, token, answered))
        try:
            async with asyncio.timeout(seconds):
                await self._process.send(sent)
                return await answered
        except TimeoutError:
            name = command.split(" ", 1)[0]
            raise TimedOut(
                f"tmux did not answer {name!r} within {seconds:g} s; check whether it hangs"
            ) from None

    async def close(self) -> None:
        self._process.close_input()
        ending = asyncio.ensure_future(self._process.wait())
        with suppress(TimeoutError):
            async with asyncio.timeout(FAREWELL_SECONDS):
                await asyncio.shield(ending)
        await self._process.end(FAREWELL_SECONDS)
        await ending
        await asyncio.wait({self._reading})

    async def _read(self) -> None:
        reason = ""
        try:
            async for line in self._process.lines():
                self._take(line)
            reason = await self._stderr()
        finally:
            # Cancelled with its event loop: nobody is left to wait, but the client shall go.
            self._process.close_input()
            self._fail_all(reason)

    def _take(self, line: bytes) -> None:
        if not self._waiting:
            return  # a notice of something that nobody asked about
        question = self._waiting[0]
        if not line.startswith(question.token):
            question.lines.append(line)
            return
        self._waiting.popleft()
        if not question.answered.done():
            question.answered.set_result(question.lines)

    async def _stderr(self) -> str:
        ended = await self._process.wait()
        return ended.stderr.decode(errors="replace").strip()

    def _fail_all(self, reason: str) -> None:
        for question in self._waiting:
            if not question.answered.done():
                output = "\n".join(line.decode(errors="replace") for line in question.lines)
                question.answered.set_exception(LineLost(reason or output[-200:] or "it hung up"))
                question.answered.exception()  # whoever asks gets it; nobody has to
        self._waiting.clear()


_UNSAFE = re.compile(rb"[^a-zA-Z0-9 _\-./:,=+@]")
_QUOTED = {bytes([byte]): b"\\%03o" % byte for byte in range(256)}


def quoted(text: str) -> str:
    """The text as one word of a tmux command. It must hold no NUL, which tmux cannot carry."""
    safe = _UNSAFE.sub(lambda byte: _QUOTED[byte[0]], text.encode(errors="replace"))
    return f'"{safe.decode("ascii")}"'


def literally(text: str) -> str:
    """The text so that tmux finds no `#{format}` or `#(command)` in it, where it would look for them."""
    return text.replace("#", "##")


def without_dates(text: str) -> str:
    """The same for the few places where tmux puts in dates as well, by `%H` and the like."""
    return literally(text).replace("%", "%%")
