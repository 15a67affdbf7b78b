"""The hook server: programs of a turn reach the run's owner over a socket of the turn's own."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import socket
import stat
import struct
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from podium.core.decisions import HookAnswer, Permit, ToolSpec
from podium.core.errors import BadInput, NotPossibleNow, PodiumError
from podium.core.events import ProgressKind
from podium.core.model import FrozenModel, Json, whole_text
from podium.core.turns import Finish, ModelAnswer, Turn, TurnStop
from podium.platform.completion import run_to_completion
from podium.ports import Journal, Toolbox, ToolDoor, Translate
from podium.sandbox.hook_calls import TurnCalls, as_it_is
from podium.sandbox.hook_messages import Answer, checked_message, denial, read_message
from podium.sandbox.hook_state import memory_of

_MAX_PATH_BYTES = 100
"""Less than what the smallest system takes for the path of a socket (macOS: 104)."""

_PREFIX = "podium-"
_ANSWER_FIELDS = tuple(HookAnswer.model_fields)
_YOUNG_SECONDS = 60.0


class HookServerSettings(FrozenModel):
    """Settings of a `HookServer`."""

    folder: str | None = None
    """Parent of the turns' private folders. None: the system's folder for temporary files."""
    message_bytes: int = 1_000_000
    """A longer message is refused."""
    connections: int = 32
    """Number of connections that may be open at once in one turn."""
    read_seconds: float = 5.0
    """Time for a connection to bring its message."""
    answer_seconds: float = 30.0
    """Longest time of a judgement or a settlement."""
    expect_seconds: float = 5.0
    """Longest wait of a hook for its CLI to tell of the use that it asks for."""
    perform_seconds: float = 3600.0
    """Longest wait for what Podium performs; the tools' own limits come first."""


class HookServer:
    """Opens a door for each turn. Judging, performing and recording are handed to it."""

    def __init__(
        self,
        tool_door: ToolDoor,
        toolbox: Toolbox,
        journal: Journal,
        settings: HookServerSettings | None = None,
        *,
        redact: Callable[[str], str] = str,
        hands: bool = True,
        listens: bool = True,
    ) -> None:
        """`redact` takes secrets out of what agents say while they work. Without `hands` nothing is
        permitted that a program would do itself: Podium performs, or nobody does. One that does not
        listen has no socket: only the agent itself comes in, by the door's methods."""
        self._listens = listens
        self._redact = redact
        self._hands = hands
        self._tool_door = tool_door
        self._toolbox = toolbox
        self._journal = journal
        self._settings = settings or HookServerSettings()
        self._swept = False

    @asynccontextmanager
    async def open(
        self,
        turn: Turn,
        *,
        agent: str = "",
        translate: Translate | None = None,
    ) -> AsyncIterator[TurnHookServer]:
        """A door for this turn. On leaving, the socket is gone and no call of the turn is open.

        End the turn's processes before leaving; what they have not settled is abandoned. Raises
        `CallInDoubt` before the turn when a crash left a call of it open, and after it when one of
        its calls turned out to be in doubt: the run has to ask a person first.
        """
        await self._tool_door.look_back(turn.run_id, turn.step_key)
        calls = TurnCalls(
            turn,
            self._tool_door,
            self._toolbox,
            self._journal,
            agent=agent,
            translate=translate or as_it_is,
            answer_seconds=self._settings.answer_seconds,
            perform_seconds=self._settings.perform_seconds,
            expect_seconds=self._settings.expect_seconds,
            redact=self._redact,
            memory=await memory_of(self._journal, turn, agent),
            hands=self._hands,
        )
        async with self._listening(calls) if self._listens else self._inside(calls) as door:
            yield door
        if calls.doubt is not None:
            raise calls.doubt

    @asynccontextmanager
    async def _listening(self, calls: TurnCalls) -> AsyncIterator[TurnHookServer]:
        if not self._swept:
            self._swept = True
            await asyncio.to_thread(remove_stale_doors, self._settings.folder)
        folder = _private_folder(self._settings.folder)
        try:
            door = TurnHookServer(str(folder / "door"), calls, self._settings)
            async with door.listening():
                yield door
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @asynccontextmanager
    async def _inside(self, calls: TurnCalls) -> AsyncIterator[TurnHookServer]:
        try:
            yield TurnHookServer("", calls, self._settings)
        finally:
            await run_to_completion(calls.close())


class TurnHookServer:
    """The door of one turn: a socket that only holders of the token get an answer at."""

    def __init__(self, socket_path: str, calls: TurnCalls, settings: HookServerSettings) -> None:
        self.socket_path = socket_path
        # The beginning lets the redactor know it where a program prints its environment.
        self.token = f"pdt_{secrets.token_urlsafe(32)}"
        # Lies where the CLI's commands may find it, so it lets nobody do more than ask.
        self.hook_token = f"pdt_{secrets.token_urlsafe(32)}"
        self._calls = calls
        self._settings = settings
        self._handlers: set[asyncio.Task[None]] = set()

    @property
    def env(self) -> dict[str, str]:
        """Variables that lead the agent's own program here."""
        return {"PODIUM_DOOR": self.socket_path, "PODIUM_DOOR_TOKEN": self.token}

    @property
    def hook_env(self) -> dict[str, str]:
        """Variables that lead a CLI's hook here."""
        return {"PODIUM_DOOR": self.socket_path, "PODIUM_DOOR_TOKEN": self.hook_token}

    def expect(self, use: str) -> None:
        self._calls.expected.add(use)

    def expect_no_more(self, use: str) -> None:
        self._calls.expected.remove(use)

    @property
    def waiting_approvals(self) -> tuple[str, ...]:
        """Approvals that calls of this turn were told to wait for, in the order of asking."""
        return tuple(self._calls.waiting_approvals)

    @property
    def finished_with(self) -> Finish | None:
        return self._calls.finished_with

    @property
    def stopped(self) -> TurnStop | None:
        return self._calls.limits.stopped

    def recorded_answer(self, number: int, request: str) -> ModelAnswer | None:
        return self._calls.memory.answer(number, request)

    async def record_answer(self, answer: ModelAnswer) -> None:
        await self._calls.record_answer(answer)

    @property
    def unsettled(self) -> tuple[Permit, ...]:
        """Permits given to programs of this turn whose outcome is not known yet."""
        return self._calls.unsettled

    @property
    def problems(self) -> tuple[Exception, ...]:
        """Errors at the server, newest last, up to a hundred. Each was answered by a denial.

        On leaving they are noted in the run's journal.
        """
        return tuple(self._calls.problems)

    def specs(self) -> list[ToolSpec]:
        return self._calls.specs()

    async def request(
        self, tool: str, arguments: Mapping[str, Json], *, ref: str = ""
    ) -> HookAnswer:
        """May the agent's own program do this itself?"""
        return await self._asked(
            {"op": "request", "tool": tool, "arguments": arguments, "ref": ref}
        )

    async def perform(self, tool: str, arguments: Mapping[str, Json]) -> HookAnswer:
        """Let Podium do it."""
        return await self._asked({"op": "perform", "tool": tool, "arguments": arguments})

    async def settle(self, ref: str, *, ok: bool, result: Json = None, error: str = "") -> None:
        """Settle a permitted call. One that is not open is let be: a hook may have settled it."""
        try:
            message = {"op": "settle", "ref": ref, "ok": ok, "result": result, "error": error}
            # What a program printed may be no text in parts; that it ended is worth more.
            await self._calls.answer(checked_message(whole_text(message)))
        except BadInput:
            return
        except Exception as unexpected:
            # It stays open, and is abandoned with the turn.
            self._calls.problems.add(unexpected)

    def report_progress(self, kind: ProgressKind, text: str) -> None:
        self._calls.progress.report_progress(kind, text)

    async def _asked(self, message: dict[str, Json]) -> HookAnswer:
        """Answer the agent as a program at the socket would be answered, without the socket."""
        try:
            answer = await self._calls.answer(checked_message(message))
        except Exception as error:
            answer = self._denied(error)
        return HookAnswer.model_validate(
            {name: answer.get(name) for name in _ANSWER_FIELDS if answer.get(name)}
        )

    def _denied(self, error: Exception) -> Answer:
        self._calls.problems.add(error)
        message = str(error) if isinstance(error, PodiumError) else type(error).__name__
        return denial(f"denied: {message}")

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        # Not serving yet: it would be awaited, and a turn that is cancelled just then would leave it open.
        server = await asyncio.start_unix_server(
            self._serve,
            sock=_bound_socket(self.socket_path),
            limit=self._settings.message_bytes,
            start_serving=False,
        )
        try:
            await server.start_serving()
            yield
        finally:
            await run_to_completion(self._shut(server))

    async def _shut(self, server: asyncio.Server) -> None:
        server.close()
        for handler in self._handlers:
            handler.cancel()
        await asyncio.gather(*self._handlers, return_exceptions=True)
        await self._calls.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handler = asyncio.current_task()
        if handler is None:
            raise RuntimeError("a connection is served outside of a task")
        crowded = len(self._handlers) >= self._settings.connections
        self._handlers.add(handler)
        try:
            busy = denial("too many connections at once; try again")
            answer = busy if crowded else await self._hear(reader, writer)
            if answer is not None:
                writer.write(json.dumps(answer).encode() + b"\n")
                async with asyncio.timeout(self._settings.read_seconds):
                    await writer.drain()
        except (asyncio.CancelledError, ConnectionError, TimeoutError):
            # The turn is over, or the asker went away: nobody is left to be told.
            pass
        finally:
            self._handlers.discard(handler)
            writer.close()

    async def _hear(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> Answer | None:
        """The answer to the one message of a connection; None when it brought none."""
        try:
            _check_peer(writer.get_extra_info("socket"))
            line = await self._read_line(reader)
            if not line:
                return None
            message, is_hook = read_message(line, self.token, self.hook_token)
            return await self._calls.answer(message, is_hook=is_hook)
        except Exception as error:
            return self._denied(error)

    async def _read_line(self, reader: asyncio.StreamReader) -> bytes:
        try:
            async with asyncio.timeout(self._settings.read_seconds):
                line = await reader.readline()
        except ValueError:
            raise BadInput(
                f"the message is longer than {self._settings.message_bytes} bytes; send less"
            ) from None
        except TimeoutError:
            seconds = self._settings.read_seconds
            raise BadInput(f"no message came within {seconds:g} seconds") from None
        if line and not line.endswith(b"\n"):
            raise BadInput("the message was cut off; end it with a newline")
        return line


def hook_command() -> tuple[str, ...]:
    """The command to configure as a CLI's tool hook. It needs the variables of `TurnHookServer.hook_env`."""
    start = str(Path(__file__).with_name("isolated.py"))
    return (sys.executable, "-IS", start, "podium.sandbox.hook_client")


def remove_stale_doors(parent: str | None = None) -> None:
    """Remove the folders that killed Podiums of this user left behind."""
    for folder_parent in dict.fromkeys(_candidate_folders(parent)):
        for folder in Path(folder_parent).glob(f"{_PREFIX}*"):
            if _is_stale(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _is_stale(folder: Path) -> bool:
    """Tell whether nobody listens at the door in it. A young one may be about to be opened."""
    try:
        status = folder.lstat()
        door = (folder / "door").lstat()
        if not stat.S_ISDIR(status.st_mode) or not stat.S_ISSOCK(door.st_mode):
            return False
        if status.st_uid != os.geteuid() or time.time() - status.st_mtime < _YOUNG_SECONDS:
            return False
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
            asking.settimeout(1.0)
            asking.connect(str(folder / "door"))
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return False


def _candidate_folders(parent: str | None) -> list[str]:
    return [parent] if parent is not None else [tempfile.gettempdir(), "/tmp"]  # noqa: S108 — mkdtemp makes a private one in it


def _private_folder(parent: str | None) -> Path:
    """A new folder that only this user can enter, with a path short enough for a socket."""
    parents = _candidate_folders(parent)
    for folder_parent in parents:
        if len(os.fsencode(folder_parent)) + len("/podium-12345678/door") < _MAX_PATH_BYTES:
            return Path(tempfile.mkdtemp(prefix=_PREFIX, dir=folder_parent))
    raise NotPossibleNow(
        f"the path {parents[0]!r} is too long for sockets; choose a shorter folder for the hook server"
    )


def _bound_socket(path: str) -> socket.socket:
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        bound.bind(path)
        Path(path).chmod(0o600)
    except OSError:
        bound.close()
        raise
    return bound


def _check_peer(connection: socket.socket) -> None:
    """Refuse other users, where the system tells who they are. The folder keeps them out anyway."""
    if sys.platform != "linux":
        return
    size = struct.calcsize("3i")
    _, uid, _ = struct.unpack(
        "3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    )
    if uid != os.geteuid():
        raise BadInput(f"user {uid} may not use this hook server")
