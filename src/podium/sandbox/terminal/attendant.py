"""The attendant: the first program of a terminal, and the guard of the program that a person sees there."""

from __future__ import annotations

import asyncio
import errno
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path

from podium.sandbox.confining.namespaces import fork_inside
from podium.sandbox.confining.plan import BUBBLEWRAP, ConfinementPlan
from podium.sandbox.confining.proxy import TreeNetwork
from podium.sandbox.confining.tree_confinement import (
    EnteringConfinement,
    HoldingConfinement,
    TreeConfinement,
)
from podium.sandbox.confining.upstream import UpstreamProxy, proxy_env
from podium.sandbox.guard.limits import breaches_of
from podium.sandbox.guard.order import GuardOrder
from podium.sandbox.guard.processes import (
    ProcessEntry,
    ReapedTree,
    adopt_orphans,
    descendants_of,
    gain_no_privileges,
)
from podium.sandbox.guard.watch import (
    Guard,
    leave_signals_to_podium,
    limits_of,
    reset_signals,
    set_limits,
    split_status,
    take_terminal,
    watch_over,
)
from podium.sandbox.terminal.launch_spec import LaunchFolder, LaunchSpec

_STREAMS = (0, 1, 2)


class TerminalTree(ReapedTree):
    """A tree in front on a terminal that has no shell: who is stopped there would stay so."""

    def __init__(self) -> None:
        super().__init__()
        self._held = [os.dup(stream) for stream in _STREAMS]
        """The terminal, which the guard itself lets go of."""
        self._ending = False

    def take_streams(self) -> None:
        """Have the terminal as stdin, stdout and stderr."""
        for number, stream in zip(_STREAMS, self._held, strict=True):
            os.dup2(stream, number)

    def is_empty(self) -> bool:
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
                if pid == 0:
                    return False
                if pid != self.first_pid:
                    continue
                if os.WIFSTOPPED(status):
                    self._go_on()
                else:
                    self.first_status = status
        except ChildProcessError:
            return True

    def members(self) -> list[ProcessEntry]:
        return [entry for entry in self._look() if entry.pid not in self.keepers]

    def ask_to_end(self) -> None:
        for entry in self._look():
            if entry.pid not in self.keepers:
                # What a terminal itself says when it goes. Interactive shells ignore SIGTERM.
                entry.send(signal.SIGHUP)
            entry.send(signal.SIGCONT)

    def kill(self) -> int:
        self._ending = True
        return super().kill()

    def _go_on(self) -> None:
        """As a shell's `fg` would."""
        if self._ending:
            return
        with suppress(OSError):  # then the terminal is gone, and the program is asked to end
            os.tcsetpgrp(self._held[0], self.first_pid)
        try:
            os.killpg(self.first_pid, signal.SIGCONT)
        except ProcessLookupError:
            os.kill(self.first_pid, signal.SIGCONT)


class TerminalGuard(Guard):
    """Puts the program in front on the terminal that this process has as its streams."""

    _tree: TerminalTree

    def _confinement_for(self, plan: ConfinementPlan) -> TreeConfinement:
        if plan.mechanism == BUBBLEWRAP:
            return HoldingConfinement(plan, self._control)
        return super()._confinement_for(plan)

    def _how_it_ended(self) -> tuple[int, int]:
        return split_status(self._tree.first_status)

    def _start(self) -> str:
        refused = super()._start()
        holding = self._confinement
        if refused or not isinstance(holding, HoldingConfinement):
            return refused
        refused = self._bring_up(holding) or self._enter(holding)
        if refused:
            self._tree.kill()
        return refused

    def _bring_up(self, holding: HoldingConfinement) -> str:
        """Answer the sandbox until it stands. Gives what went wrong, or nothing."""
        if self._calls is None:
            return "sandbox 0"
        poll = select.poll()
        poll.register(self._calls, select.POLLIN)
        while not holding.program_pid:
            if not any(event & select.POLLIN for _, event in poll.poll()):
                return f"sandbox {holding.failure}"
            holding.hear()
        # It never calls again, and the one call that waits gets no answer.
        self._poll.unregister(self._calls)
        return ""

    def _enter(self, holding: HoldingConfinement) -> str:
        plan = ConfinementPlan.decode(self._order.plan)
        keepers = {entry.pid for entry in descendants_of(os.getpid())}
        confinement = EnteringConfinement(plan, self._control, keepers)
        limits = limits_of(self._order)
        read_end, write_end = os.pipe()
        try:
            pid = fork_inside(
                holding.program_pid, lambda: self._become(confinement, limits, write_end)
            )
        except OSError as error:
            return f"sandbox {error.errno}"
        os.close(write_end)
        self._tree.first_pid = pid
        self._confinement = confinement
        self._calls = confinement.see_off(pid, read_end)
        if self._calls is not None:
            self._poll.register(self._calls, select.POLLIN)
        refused = os.read(read_end, 100).decode()
        os.close(read_end)
        return refused

    def _become(
        self, confinement: TreeConfinement, limits: list[tuple[int, int]], report: int
    ) -> None:
        """Turn this fork, which is inside, into the program. Never returns."""
        order, stage = self._order, "session"
        try:
            self._tree.take_streams()
            take_terminal()
            gain_no_privileges()
            reset_signals()
            stage = "cwd"
            os.chdir(order.cwd)
            stage = "limits"
            if self._group is not None:
                self._group.enter()
            stage = "sandbox"
            confinement.confine()
            stage = "limits"
            set_limits(limits)
            stage = "exec"
            os.execve(order.program, order.argv, order.env)  # noqa: S606 — as in `program`
        except BaseException as error:
            number = getattr(error, "errno", None) or errno.EINVAL
            os.write(report, f"{stage} {number}".encode())
        finally:
            os._exit(127)


NOT_STARTED = 126
_BY_SIGNAL = 128
_MAX_PORTS = 200
_FAREWELL_SECONDS = 2.0
"""For a tree whose terminal went away, before it is killed."""
_OF_THE_TERMINAL = ("TERM", "COLORTERM", "PODIUM_TREE")
"""Variables that who starts it knows better."""
_LEFT_TO_THE_PROGRAM = (
    signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGPIPE,
)  # fmt: skip


def main(folder: str) -> None:
    """Start what the launch spec in the folder says, and exit as it did."""
    for signum in _LEFT_TO_THE_PROGRAM:
        signal.signal(signum, signal.SIG_IGN)
    os.chdir("/")
    # What who starts it left open is none of the program's business.
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    launch_folder = LaunchFolder(Path(folder))
    try:
        spec = launch_folder.take()
    except OSError as error:
        _say(f"the program of this terminal is no longer known ({error.strerror}); start it again")
        os._exit(NOT_STARTED)
    code = TerminalHost(spec).run()
    launch_folder.remove()
    os._exit(code)


class TerminalHost:
    """Starts the guard of one program, and serves what it may connect to."""

    def __init__(self, spec: LaunchSpec) -> None:
        self._spec = spec
        self._order = GuardOrder.decode(spec.order)
        self._proxy: socket.socket | None = None
        self._network = TreeNetwork(spec.hosts, UpstreamProxy.of(dict(spec.upstream)))
        self._buffer = b""
        self._listeners: list[socket.socket] = []
        self._stopped: list[str] = []
        self._refused = ""
        self._code: int | None = None

    def run(self) -> int:
        """The program's exit code, once nothing of it is left."""
        adopt_orphans()
        self._complete()
        self._control, theirs = socket.socketpair()
        if os.fork() == 0:
            self._control.close()
            try:
                leave_signals_to_podium()
                watch_over(theirs.fileno(), TerminalGuard, TerminalTree())
            finally:
                os._exit(0)
        theirs.close()
        self._control.sendall(self._order.encode())
        # Not `asyncio.run`, which would wait for a name server that does not answer.
        asyncio.new_event_loop().run_until_complete(self._attend())
        # Nobody is left, unless the guard itself was killed.
        ReapedTree().kill()
        if self._refused:
            _say(self._why_not())
            return NOT_STARTED
        return _BY_SIGNAL + signal.SIGKILL if self._code is None else self._code

    def _complete(self) -> None:
        """Fill in what only the terminal knows: its own kind, and a port that is free now."""
        order = self._order
        order.owner_pid = os.getpid()
        inherited = [name for name in _OF_THE_TERMINAL if name not in self._spec.named]
        order.env |= {name: os.environ[name] for name in inherited if name in os.environ}
        if self._spec.opens_proxy:
            self._proxy = socket.create_server(("127.0.0.1", 0))
            port = self._proxy.getsockname()[1]
            plan = ConfinementPlan.decode(order.plan)
            plan.ports.append(port)
            order.plan = plan.encode()
            order.env |= proxy_env(port)

    async def _attend(self) -> None:
        loop = asyncio.get_running_loop()
        over = asyncio.Event()
        for signum in (signal.SIGHUP, signal.SIGTERM):
            loop.add_signal_handler(signum, self._ask_to_end)
        if self._proxy is not None:
            self._network.serve_proxy(self._proxy)
        self._control.setblocking(False)
        loop.add_reader(self._control, self._hear, over)
        await over.wait()
        loop.remove_reader(self._control)
        await self._network.closed()

    def _ask_to_end(self) -> None:
        with suppress(OSError):  # then the guard has just left
            self._control.send(f"end {_FAREWELL_SECONDS}\n".encode())

    def _hear(self, over: asyncio.Event) -> None:
        try:
            data, descriptors, *_ = socket.recv_fds(
                self._control, 65536, _MAX_PORTS, socket.MSG_CMSG_CLOEXEC
            )
        except BlockingIOError:
            return
        except OSError:
            data, descriptors = b"", []
        self._listeners += [socket.socket(fileno=descriptor) for descriptor in descriptors]
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            self._understand(*line.decode().split(" ", 1))
        if not data:
            over.set()

    def _understand(self, event: str, rest: str) -> None:
        if event == "listening":
            by_port = dict(zip(map(int, rest.split()), self._listeners, strict=True))
            proxy = by_port.pop(self._spec.proxy_port, None)
            if proxy is not None:
                self._network.serve_proxy(proxy)
            self._network.forward(by_port)
        elif event == "stopped":
            self._stopped.append(rest)
        elif event in ("refused", "broke"):
            self._refused = f"{event} {rest}"
        elif event == "ended":
            code, signum, timed_out, _, beyond = (int(number) for number in rest.split())
            self._code = _BY_SIGNAL + signum if code < 0 else code
            if timed_out:
                _say(f"stopped: it ran for more than {self._order.seconds:g} seconds")
            for breach in breaches_of(self._order, beyond, code, signum):
                _say(breach)

    def _why_not(self) -> str:
        event, stage, *rest = self._refused.split(" ", 2)
        if event == "refused" and self._stopped:
            return f"refused: {self._stopped[0]}"
        cannot = {
            "session": "use this terminal",
            "cwd": f"start in {self._order.cwd!r}",
            "limits": "be limited",
            "exec": "be executed",
        }.get(stage, "be confined")
        number = int(rest[0]) if event == "refused" else 0
        why = f": {os.strerror(number)}" if number else ""
        return f"{self._order.argv[0]!r} cannot {cannot}{why}; run `podium doctor`"


def _say(message: str) -> None:
    plain = "".join(char if char.isprintable() else "?" for char in message)
    sys.stderr.write(f"podium: {plain}\r\n")
    sys.stderr.flush()
