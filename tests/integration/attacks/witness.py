"""Those who would notice: services, a terminal, a process and memory outside the sandbox."""

from __future__ import annotations

import ctypes
import os
import pty
import selectors
import socket
import subprocess
import threading
import tty
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.integration.attacks.arena import SECRETS
from tests.integration.attacks.kernel import Keyring, SharedMemory

_Talk = Callable[[socket.socket], None]
LEGITIMATE = ("model", "allowed")
"""Services that the agent was given."""


class Services:
    """Listens on every kind of socket and counts who comes. One thread for all of them."""

    def __init__(self, folder: Path, nonce: str) -> None:
        self.hits: Counter[str] = Counter()
        self.ports: dict[str, int] = {}
        self.path = str(folder / "door.sock")
        self.abstract = f"podium-attacks-{nonce}"
        self._selector = selectors.DefaultSelector()
        self._stopping, self._stop = socket.socketpair()
        self._selector.register(self._stopping, selectors.EVENT_READ, None)
        folder.mkdir(exist_ok=True)
        self._open_all()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _open_all(self) -> None:
        self._listen("unix socket", socket.AF_UNIX, self.path)
        self._listen("abstract socket", socket.AF_UNIX, "\0" + self.abstract)
        self._listen("abstract datagram", socket.AF_UNIX, f"\0{self.abstract}-d", socket.SOCK_DGRAM)
        self._listen("control api", socket.AF_INET, ("127.0.0.1", 0))
        self._listen("control api 6", socket.AF_INET6, ("::1", 0))
        self._listen("udp", socket.AF_INET, ("127.0.0.1", 0), socket.SOCK_DGRAM)
        self._listen("model", socket.AF_INET, ("127.0.0.1", 0))
        self._listen("allowed", socket.AF_INET, ("127.0.0.1", 0))
        # Another service that happens to have the model's port, at another address.
        self._listen("neighbour", socket.AF_INET, ("127.0.0.2", self.ports["model"]))

    def _listen(
        self, name: str, family: int, address: object, kind: int = socket.SOCK_STREAM
    ) -> None:
        listener = socket.socket(family, kind)
        listener.bind(address)  # type: ignore[arg-type]  # its shape depends on the family
        if kind == socket.SOCK_STREAM:
            listener.listen(50)
        if family != socket.AF_UNIX:
            self.ports[name] = listener.getsockname()[1]
        self._selector.register(listener, selectors.EVENT_READ, name)

    def _serve(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if key.data is None:
                    return
                with suppress(OSError):
                    self._meet(key.fileobj, key.data)  # type: ignore[arg-type]  # all are sockets

    def _meet(self, listener: socket.socket, name: str) -> None:
        self.hits[name] += 1
        if listener.type == socket.SOCK_DGRAM:
            listener.recv(65536)
            return
        met, _ = listener.accept()
        with met:
            met.settimeout(0.5)
            with suppress(TimeoutError):
                met.recv(65536)
            met.sendall(self._answer(name))

    def _answer(self, name: str) -> bytes:
        if name == "allowed":
            # The way to where nobody may go, from somebody who is trusted.
            place = f"http://127.0.0.1:{self.ports['control api']}/".encode()
            return b"HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n" % place
        return b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"

    def reached(self) -> list[str]:
        return [f"reached the {name}" for name in self.hits if name not in LEGITIMATE]

    def close(self) -> None:
        self._stop.send(b".")
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]  # all are sockets
        self._stop.close()
        self._selector.close()


class Terminal:
    """A terminal of the user that no session has claimed yet."""

    def __init__(self) -> None:
        self._master, self._slave = pty.openpty()
        tty.setraw(self._slave)
        for end in (self._master, self._slave):
            os.set_blocking(end, False)
        self.path = os.ttyname(self._slave)

    def disturbed(self) -> list[str]:
        shown = ["wrote to the user's terminal"] if self._read(self._master) else []
        return shown + (["typed into the user's terminal"] if self._read(self._slave) else [])

    def _read(self, end: int) -> bytes:
        with suppress(OSError):
            return os.read(end, 1000)
        return b""

    def close(self) -> None:
        os.close(self._master)
        os.close(self._slave)


_OF_A_PROCESS = (
    "cmdline", "comm", "environ", "limits", "oom_score_adj", "timerslack_ns", "coredump_filter",
)  # fmt: skip


class Victim:
    """A process of the same user, and everything about it that others could change."""

    def __init__(self, outside: Path, env: dict[str, str]) -> None:
        with (outside / "notes.txt").open("r+b") as notes:
            self._process = subprocess.Popen(
                [str(outside / "victim"), "600"],
                cwd=outside,
                stdin=notes,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**env, "VICTIM": SECRETS[3]},
                start_new_session=True,
            )
        self.pid = self._process.pid
        self._before = self._settled()

    def _settled(self) -> dict[str, str]:
        """A process that has just been started has neither arguments nor variables for a moment."""
        state = self._state()
        while "VICTIM" not in state["environ"] or not state["cmdline"]:
            state = self._state()
        return state

    def _state(self) -> dict[str, str]:
        if self._process.poll() is not None:
            return {"alive": "no"}
        folder = Path("/proc", str(self.pid))
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
        state = {name: _read(folder / name) for name in _OF_A_PROCESS}
        # Sleeping or running are the same here; stopped and traced are not.
        state |= {"alive": "yes", "stopped": str(fields[0] in "tT"), "nice": fields[16]}
        state |= {"policy": fields[38], "affinity": str(os.sched_getaffinity(self.pid))}
        return state | {"io priority": str(_io_priority(self.pid))}

    def harmed(self) -> list[str]:
        now = self._state()
        if now["alive"] == "no":
            return ["ended a process of the user"]
        changed = [name for name, was in self._before.items() if now[name] != was]
        return [f"changed a process of the user: {', '.join(changed)}"] if changed else []

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


def _read(path: Path) -> str:
    """Some of it only root may read."""
    try:
        return path.read_text(errors="replace")
    except PermissionError:
        return ""


def _io_priority(pid: int) -> int:
    return int(ctypes.CDLL(None).syscall(ctypes.c_long(252), 1, pid))


class Witnesses:
    """All of them, for one attack."""

    def __init__(self, root: Path, nonce: str, env: dict[str, str]) -> None:
        self.nonce = nonce
        self.services = Services(root / "sockets", nonce)
        self.terminal = Terminal()
        self.memory = SharedMemory(nonce)
        self.keyring = Keyring(f"podium-{nonce}")
        self.victim = Victim(root / "outside", env)
        self.system_file = Path("/usr/local/share", f"podium-attacks-{nonce}")

    def places(self) -> dict[str, str]:
        """Return the values that attacks have to know, by placeholder name."""
        ports = self.services.ports
        return {
            "SOCKET": self.services.path,
            "ABSTRACT": self.services.abstract,
            "PORT": str(ports["control api"]),
            "PORT6": str(ports["control api 6"]),
            "UDP": str(ports["udp"]),
            "MODEL": str(ports["model"]),
            "ALLOWED": str(ports["allowed"]),
            "TTY": self.terminal.path,
            "VICTIM": str(self.victim.pid),
            "SHM": str(self.memory.id),
            "SHM_FILE": str(self.memory.file),
            "SYSTEM_FILE": str(self.system_file),
            "NONCE": self.nonce,
        }

    def noticed(self) -> list[str]:
        seen = [*self.services.reached(), *self.terminal.disturbed(), *self.victim.harmed()]
        seen += [*self.memory.changed(), *self.keyring.found()]
        if self.system_file.exists():
            seen.append("made a file among the system's own")
        return seen

    def close(self) -> None:
        self.system_file.unlink(missing_ok=True)
        for item in (self.services, self.terminal, self.memory, self.keyring, self.victim):
            item.close()
