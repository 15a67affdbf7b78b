"""Things of the kernel that belong to a user and to no folder: shared memory, keys, processes."""

from __future__ import annotations

import ctypes
import os
import signal
from contextlib import suppress
from pathlib import Path

_CONTENT = b"memory of the user"
_SIZE = 4096
_IPC_CREAT, _IPC_RMID = 0o1000, 0
_KEYCTL, _JOIN_SESSION, _SEARCH, _UNLINK = 250, 1, 10, 9
_KEYRINGS = {"session": -3, "user": -4, "user session": -5}


class SharedMemory:
    """A System V segment and a POSIX one."""

    def __init__(self, nonce: str) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.shmat.restype = ctypes.c_void_p
        self.id = self._libc.shmget(0, _SIZE, _IPC_CREAT | 0o600)
        self._address = self._libc.shmat(self.id, None, 0)
        ctypes.memmove(self._address, _CONTENT, len(_CONTENT))
        self.file = Path("/dev/shm", f"podium-attacks-{nonce}")
        self.file.write_bytes(_CONTENT)

    def changed(self) -> list[str]:
        found = []
        if ctypes.string_at(self._address, len(_CONTENT)) != _CONTENT:
            found.append("changed shared memory of the user")
        if not self.file.exists() or self.file.read_bytes() != _CONTENT:
            found.append("changed a file of shared memory of the user")
        return found

    def close(self) -> None:
        self._libc.shmdt(ctypes.c_void_p(self._address))
        self._libc.shmctl(self.id, _IPC_RMID, None)
        self.file.unlink(missing_ok=True)


def have_session_keyring() -> None:
    """One of this process's own, which all that it starts inherit."""
    ctypes.CDLL(None).syscall(ctypes.c_long(_KEYCTL), ctypes.c_long(_JOIN_SESSION), None)


class Keyring:
    """Check for a key of this name in the user's keyrings."""

    def __init__(self, name: str) -> None:
        self._name = name.encode()
        self._libc = ctypes.CDLL(None, use_errno=True)

    def found(self) -> list[str]:
        return [f"put a key into the {name} keyring" for name in _KEYRINGS if self._key(name) > 0]

    def _key(self, keyring: str) -> int:
        return self._call(_SEARCH, _KEYRINGS[keyring], b"user", self._name, 0)

    def _call(self, *words: int | bytes) -> int:
        given = [word if isinstance(word, bytes) else ctypes.c_long(word) for word in words]
        return int(self._libc.syscall(ctypes.c_long(_KEYCTL), *given))

    def close(self) -> None:
        for name, number in _KEYRINGS.items():
            if (key := self._key(name)) > 0:
                self._call(_UNLINK, key, number)


def survivors(nonce: str) -> list[int]:
    """Processes that carry the word in their arguments or variables. Nobody but attackers does."""
    own = str(os.getpid())
    others = (name for name in os.listdir("/proc") if name.isdigit() and name != own)
    return [int(name) for name in others if _carries(name, nonce)]


def _carries(pid: str, nonce: str) -> bool:
    with suppress(OSError):
        if nonce.encode() in _read(f"/proc/{pid}/cmdline"):
            return True
        return f"ATTACK={nonce}".encode() in _read(f"/proc/{pid}/environ")
    return False


def _read(path: str) -> bytes:
    # Plain words for paths: all processes are looked at twice for each attack.
    with open(path, "rb", buffering=0) as file:
        return file.read()


def end(pids: list[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
