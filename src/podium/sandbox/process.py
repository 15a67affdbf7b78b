"""A started process tree, seen from Podium's side of the guard."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import suppress

from podium.core.errors import CallRefused, NotPossibleNow, PodiumError
from podium.core.processes import ProcessExit, ProcessSpec
from podium.platform.completion import run_to_completion
from podium.sandbox.confining.preparation import MAX_PORTS, PreparedStart
from podium.sandbox.environment import LauncherSettings, refusal_of
from podium.sandbox.guard.limits import breaches_of
from podium.sandbox.guard.order import GuardOrder
from podium.sandbox.guard_pool import start_guard
from podium.sandbox.orphans import end_lost_tree
from podium.sandbox.pipes import HeadPipe, InputPipe, LinePipe, OutputPipe, TailPipe


class GuardedProcess:
    """A process tree under a guard of its own. Works by callbacks on the loop that made it."""

    def __init__(
        self,
        spawn: ProcessSpec,
        order: GuardOrder,
        tag: str,
        settings: LauncherSettings,
        confined: PreparedStart | None = None,
    ) -> None:
        """Start the guard. The program runs once `started` returned."""
        self._loop = asyncio.get_running_loop()
        self._spawn = spawn
        self._order = order
        self._tag = tag
        self._settings = settings
        self._confined = confined
        self._listeners: list[socket.socket] = []
        self._refused_execs: list[str] = []
        self._up: asyncio.Future[None] = self._loop.create_future()
        self._over: asyncio.Future[ProcessExit] = self._loop.create_future()
        self._refusal: PodiumError | None = None
        self._report: list[int] | None = None
        self._refused_at = ""
        self._broke = ""
        self._buffer = b""
        self._pid = 0
        self._cancelled = False
        self._timers: list[asyncio.TimerHandle] = []
        self._guard = start_guard(spawn)
        self._began = self._loop.time()
        self._connect()

    @property
    def pid(self) -> int:
        """Pid of the program itself."""
        return self._pid

    async def started(self) -> None:
        """Wait until the program runs. Raises when it could not be started; then nothing is left."""
        try:
            await asyncio.shield(self._up)
        except asyncio.CancelledError:
            await self._end_quietly(0.0)
            raise
        if self._refusal is not None:
            raise self._refusal

    def lines(self, *, ends: bool = False) -> AsyncIterator[bytes]:
        """Yield what an interactive process writes to stdout, line by line, until the tree is dead."""
        if not isinstance(self._stdout, LinePipe):
            raise NotPossibleNow(
                f"{self._spawn.argv[0]!r} was not started as interactive; its output is available only at the end"
            )
        return self._stdout.read(ends=ends)

    async def send(self, data: bytes) -> None:
        """Write to stdin. Returns once the pipe has taken all of it, or nobody reads it any more."""
        self._stdin.write(data)
        await self._stdin.drained()

    def close_input(self) -> None:
        """Let the process see the end of its input, after all that was sent."""
        self._stdin.end()

    async def wait(self) -> ProcessExit:
        """Wait for the end, or for the limits. On return no process of the tree is alive.

        When the waiting task is cancelled the tree is ended first. To only look for a while, wait
        on `asyncio.shield(process.wait())`.
        """
        try:
            return await asyncio.shield(self._over)
        except asyncio.CancelledError:
            await self._end_quietly(self._order.grace_seconds)
            raise

    async def end(self, grace_seconds: float = 5.0) -> ProcessExit:
        """TERM, wait for the grace, KILL; all descendants, also those that called `setsid`."""
        self._ask_to_end(grace_seconds)
        return await run_to_completion(self._over)

    async def _end_quietly(self, grace_seconds: float) -> None:
        """Come back only when the tree is gone. For whoever hands a cancellation on."""
        with suppress(Exception):
            await self.end(grace_seconds)

    def _ask_to_end(self, grace_seconds: float) -> None:
        if not self._over.done():
            self._cancelled = True
            self._orders.write(f"end {grace_seconds}\n".encode())
            self._kill_guard_after(grace_seconds)

    def _kill_guard_after(self, seconds: float) -> None:
        late = self._loop.call_later(seconds + self._settings.overdue_seconds, self._guard.kill)
        self._timers.append(late)

    def _connect(self) -> None:
        guard, keep = self._guard, self._spawn.limits.output_bytes
        talks = self._spawn.interactive
        self._stdout: OutputPipe
        self._stderr: OutputPipe
        if talks:
            self._stdout = LinePipe(self._loop, guard.stdout, self._spawn.limits.line_bytes)
            self._stderr = TailPipe(self._loop, guard.stderr, keep)
        else:
            self._stdout = HeadPipe(self._loop, guard.stdout, keep)
            self._stderr = HeadPipe(self._loop, guard.stderr, keep)
        self._stdin = InputPipe(self._loop, guard.stdin, self._spawn.stdin, last=not talks)
        self._loop.add_reader(guard.control, self._hear)
        writing_end = os.fdopen(os.dup(guard.control.fileno()), "wb", buffering=0)
        self._orders = InputPipe(self._loop, writing_end, self._order.encode(), last=False)
        self._coming_up = self._loop.call_later(self._settings.start_seconds, guard.kill)
        if self._order.seconds is not None:
            self._kill_guard_after(self._order.seconds + self._order.grace_seconds)

    def _hear(self) -> None:
        try:
            data = self._receive()
        except BlockingIOError:
            return
        except OSError:
            data = b""
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            self._understand(*line.decode().split(" ", 1))
        if not data:
            self._guard_left()

    def _receive(self) -> bytes:
        if self._confined is None:
            return self._guard.control.recv(65536)
        # Listeners of the tree's own network come along with the line that tells of them.
        flags = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
        data, descriptors, *_ = socket.recv_fds(self._guard.control, 65536, MAX_PORTS, flags)
        self._listeners += [socket.socket(fileno=descriptor) for descriptor in descriptors]
        return data

    def _understand(self, event: str, rest: str) -> None:
        if event == "guard":
            pid, start = rest.split()
            self._guard.is_process(int(pid), int(start))
            self._coming_up.cancel()
        elif event == "started":
            self._pid = int(rest)
            self._began = self._loop.time()
            self._up.set_result(None)
        elif event == "listening" and self._confined is not None:
            taken, self._listeners = self._listeners, []
            self._confined.listening([int(port) for port in rest.split()], taken)
        elif event == "stopped":
            self._refused_execs.append(rest)
        elif event == "refused":
            self._refused_at = rest
        elif event == "ended":
            self._report = [int(number) for number in rest.split()]
        else:
            self._broke = f"{event} {rest}"

    def _guard_left(self) -> None:
        self._loop.remove_reader(self._guard.control)
        self._orders.close()
        self._stdin.close()
        for timer in (self._coming_up, *self._timers):
            timer.cancel()
        self._guard.control.close()
        for listener in self._listeners:
            listener.close()
        if self._report is not None or self._refused_at:
            self._finish()
        else:
            # A thread, because a sweep may take a while; a future, because tasks get cancelled.
            sweep = self._loop.run_in_executor(None, end_lost_tree, self._tag, self._pid)
            sweep.add_done_callback(self._swept)

    def _swept(self, sweep: asyncio.Future[None]) -> None:
        """The guard was killed and its tree looked for by its mark."""
        failure = sweep.exception()
        if failure is None:
            self._finish()
        else:
            self._over.set_exception(failure)
            self._let_go()
            self._say_up()

    def _finish(self) -> None:
        """Everything is dead: take the last output and tell whoever waits."""
        self._stdout.finish()
        self._stderr.finish()
        reason = self._broke or self._stderr.content.decode(errors="replace").strip()[-500:]
        if self._refused_at and self._refused_execs:
            self._refusal = CallRefused(f"refused: {self._refused_execs[0]}")
        elif self._refused_at:
            stage, number = self._refused_at.split()
            self._refusal = refusal_of(self._spawn, stage, int(number), reason)
        elif not self._up.done() and self._report is None:
            self._refusal = NotPossibleNow(
                f"the guard for {self._spawn.argv[0]!r} did not start: {reason or 'no reason given'}"
                "; try again, and check the Python installation if it keeps failing"
            )
        self._over.set_result(self._as_ended())
        self._let_go()
        self._say_up()

    def _let_go(self) -> None:
        if self._confined is not None:
            self._confined.close()

    def _say_up(self) -> None:
        if not self._up.done():
            self._up.set_result(None)

    def _as_ended(self) -> ProcessExit:
        lost = [-1, int(signal.SIGKILL), 0, 0, 0]
        exit_code, signum, timed_out, survivors, beyond = self._report or lost
        stderr = self._stderr.content
        breaches = breaches_of(self._order, beyond, exit_code, signum)
        stderr += "".join(f"\npodium: {breach}\n" for breach in breaches).encode()
        return ProcessExit(
            exit_code=None if exit_code < 0 else exit_code,
            signal=None if signum < 0 else signum,
            stdout=self._stdout.content,
            stderr=stderr,
            stdout_dropped_bytes=self._stdout.dropped_bytes,
            stderr_dropped_bytes=self._stderr.dropped_bytes,
            seconds=self._loop.time() - self._began,
            timed_out=bool(timed_out),
            cancelled=self._cancelled,
            survivors_killed=survivors,
            refused_execs=tuple(self._refused_execs),
            refused_hosts=self._confined.refused_hosts if self._confined else (),
            breaches=breaches,
        )
