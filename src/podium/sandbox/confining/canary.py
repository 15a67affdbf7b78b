"""Confinement mechanisms of this machine. Never told by a version: a canary really tries each.

It is started through the launcher like any other program, with a mechanism that is not trusted yet, and
tries to get out of a throw-away folder in every way it knows.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import secrets
import shutil
import socket
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from podium.core.errors import NoSandbox, PodiumError
from podium.core.model import FrozenModel
from podium.core.processes import (
    Confinement,
    ExecRules,
    Mount,
    ProcessExit,
    ProcessLimits,
    ProcessSpec,
)
from podium.platform import make_private_folder
from podium.sandbox.confining.plan import BUBBLEWRAP, LANDLOCK
from podium.sandbox.guard.processes import ON_LINUX

_ATTEMPTS = r"""
import ctypes, fcntl, os, socket, sys

inner, outer, hidden, abstract, outside_pid = sys.argv[1:6]
libc = ctypes.CDLL(None, use_errno=True)
done = []

def attempt(name, act):
    try:
        if act() is not False:
            done.append(name)
    except OSError:
        pass

def write(path):
    with open(path, "a") as file:
        file.write("canary")

def link():
    os.link(outer + "/file", inner + "/linked")
    write(inner + "/linked")

def through_symlink():
    os.symlink(outer, inner + "/way")
    write(inner + "/way/file")

def mount(path):
    return libc.mount(b"none", path.encode(), None, 4096 | 32, None) == 0

def own_namespace():
    child = os.fork()
    if child == 0:
        entered = libc.unshare(0x10000000 | 0x20000) == 0
        os._exit(0 if entered and mount(outer) and write(outer + "/file") is None else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

def connect(address):
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(address)

def start(program):
    child = os.fork()
    if child == 0:
        try:
            os.execv(program, [program])
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

def survive():
    read_end, write_end = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            lock = open(inner + "/lock", "w")
            fcntl.flock(lock, fcntl.LOCK_EX)
            os.write(write_end, b"x")
            while True:
                libc.pause()
        os._exit(0)
    os.wait()
    os.read(read_end, 1)
    return False

write(inner + "/file")
attempt("write to a file outside", lambda: write(outer + "/file"))
attempt("make a file outside", lambda: write(outer + "/new"))
attempt("write by a hard link", link)
attempt("write by a symbolic link", through_symlink)
attempt("change the mode of a file outside", lambda: os.chmod(outer + "/file", 0o600))
attempt("change the times of a file outside", lambda: os.utime(outer + "/file", (1, 1)))
attempt("set an attribute of a file outside", lambda: os.setxattr(outer + "/file", "user.x", b"x"))
attempt("rename a file outside", lambda: os.rename(outer + "/file", outer + "/renamed"))
attempt("remove a file outside", lambda: os.unlink(outer + "/other"))
attempt("remount", lambda: mount("/") or mount(outer))
attempt("mount in namespaces of its own", own_namespace)
attempt("read a file that is not mounted", lambda: open(hidden + "/secret").close())
attempt("connect to a socket file", lambda: connect(hidden + "/socket"))
attempt("connect to an abstract socket", lambda: connect("\0" + abstract))
attempt("signal a process outside", lambda: os.kill(int(outside_pid), 0))
attempt("change the limits of a process outside",
        lambda: libc.prlimit(int(outside_pid), 7, None, ctypes.create_string_buffer(16)) == 0)
attempt("start a refused program", lambda: start("/bin/true"))
attempt("change a kernel setting",
        lambda: os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY)))
survive()
print("\n".join(["attempted", *done]))
"""
"""A program of its own, which is handed to an interpreter as text. It prints the names of all that it could do although it
may not, and ends with 0."""


__all__ = ["BUBBLEWRAP", "LANDLOCK", "Mechanism", "MechanismTrial"]


class Mechanism(FrozenModel):
    """A way to confine process trees."""

    name: str
    bubblewrap: str = ""
    """The program, for the way by mounts."""
    disable_userns: bool = True
    """True if bubblewrap can keep a tree from making user namespaces of its own."""

    @property
    def limits_temporary(self) -> bool:
        """Tell whether temporary files can be limited: they need a mount of their own, and bubblewrap its option
        `--size`, which came before the one above. Of an older one nobody can tell."""
        return self.name == BUBBLEWRAP and self.disable_userns

    @property
    def title(self) -> str:
        if self.name == LANDLOCK:
            return "Landlock and seccomp guard"
        inner = "" if self.disable_userns else ", user namespaces allowed inside"
        return f"bubblewrap and exec guard{inner}"


class MechanismTrial(FrozenModel):
    """A mechanism that was tried on this machine."""

    mechanism: Mechanism
    works: bool
    why: str = ""
    """The failure: why it did not start, or what got through."""


Run = Callable[[ProcessSpec, Mechanism], Awaitable[ProcessExit]]
"""Runs a program under a mechanism, whether that is proved or not."""

_SECONDS = 20.0
_CONTENT = "as it was"
_MAX_PATH_BYTES = 100
"""Less than what the kernel takes for the path of a socket (107)."""


def candidates() -> list[Mechanism]:
    """The mechanisms to try, the best first."""
    if not ON_LINUX:
        return []
    program = shutil.which("bwrap") or ""
    mounted = [
        Mechanism(name=BUBBLEWRAP, bubblewrap=program, disable_userns=strict)
        for strict in (True, False)
        if program
    ]
    return [*mounted, Mechanism(name=LANDLOCK)]


async def try_out(run: Run, mechanism: Mechanism) -> MechanismTrial:
    """Let a canary fly under this mechanism, and look what it got at."""
    folder = _short_folder()
    try:
        with _cage(folder) as (spawn, look):
            try:
                ended = await run(spawn, mechanism)
            except PodiumError as error:
                return MechanismTrial(mechanism=mechanism, works=False, why=str(error))
            why = _what_failed(ended) or look()
            return MechanismTrial(mechanism=mechanism, works=not why, why=why)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def survey(run: Run) -> tuple[MechanismTrial, ...]:
    """Try every mechanism, for a person who wants to know."""
    trials = [await try_out(run, mechanism) for mechanism in candidates()]
    if not any(trial.mechanism.name == BUBBLEWRAP for trial in trials):
        missing = Mechanism(name=BUBBLEWRAP)
        why = "program `bwrap` not found; install bubblewrap" if ON_LINUX else "Linux only"
        trials.insert(0, MechanismTrial(mechanism=missing, works=False, why=why))
    return tuple(trials)


class Canary:
    """Finds the mechanism once, and remembers it as long as the machine stays as it is."""

    def __init__(
        self, run: Run, memory: Path | None = None, verdicts: dict[str, Mechanism] | None = None
    ) -> None:
        """`memory` is a file in which the verdict is kept beyond this process.

        `verdicts` are those of others in this process who run programs in the same way, by what they rest on.
        """
        self._run = run
        self._memory = memory
        self._verdicts = {} if verdicts is None else verdicts
        self._mechanism: Mechanism | None = None
        self._lock = asyncio.Lock()

    async def mechanism(self) -> Mechanism:
        """The best mechanism that held. Raises `NoSandbox` when none did."""
        async with self._lock:
            if self._mechanism is None:
                self._mechanism = self._remembered() or await self._find()
            return self._mechanism

    async def _find(self) -> Mechanism:
        failed: list[MechanismTrial] = []
        for mechanism in candidates():
            trial = await try_out(self._run, mechanism)
            if trial.works:
                self._remember(mechanism)
                return mechanism
            failed.append(trial)
        reasons = "; ".join(f"{trial.mechanism.title}: {trial.why}" for trial in failed)
        raise NoSandbox(
            f"no sandbox works on this machine ({reasons or 'only Linux is supported'}); install bubblewrap or "
            "use a newer kernel, or run without a sandbox: `sandbox: none`"
        )

    def _remembered(self) -> Mechanism | None:
        try:
            machine = _machine()
            if (mechanism := self._verdicts.get(json.dumps(machine))) in candidates():
                return mechanism
            cached = json.loads(self._memory.read_bytes()) if self._memory else {"machine": None}
            if cached["machine"] == machine:
                return Mechanism.model_validate(cached["mechanism"])
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return None

    def _remember(self, mechanism: Mechanism) -> None:
        try:
            machine = _machine()
        except OSError:  # what it rests on cannot be told, so it is tried again next time
            return
        self._verdicts[json.dumps(machine)] = mechanism
        if self._memory is None:
            return
        cached = {"machine": machine, "mechanism": mechanism.model_dump()}
        fresh = self._memory.with_name(f"{self._memory.name}.{secrets.token_hex(4)}")
        try:
            make_private_folder(self._memory.parent)
            fresh.write_text(json.dumps(cached))
            fresh.replace(self._memory)
        except OSError:
            with contextlib.suppress(OSError):
                fresh.unlink()  # then it is tried again next time


def _machine() -> dict[str, object]:
    """The base of the verdict: this boot, this user, this kernel, this bubblewrap, these rules."""
    program = shutil.which("bwrap") or ""
    about = Path(program).stat() if program else None
    status = Path("/proc/self/status").read_text()
    return {
        "boot": Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
        "user": os.geteuid(),
        "kernel": " ".join(os.uname()),
        "limits": [
            line for line in status.splitlines() if line.startswith(("Cap", "Seccomp", "NoNew"))
        ],
        "namespaces": [
            str(Path(f"/proc/self/ns/{kind}").readlink()) for kind in ("user", "mnt", "pid")
        ],
        "bubblewrap": [program, about.st_ino, about.st_size, about.st_mtime_ns] if about else [],
        "attempts": _ATTEMPTS,
    }


def _short_folder() -> Path:
    """A new folder, with a path short enough for the socket in it."""
    parent = tempfile.gettempdir()
    if len(os.fsencode(parent)) + len("/podium-canary-12345678/hidden/socket") > _MAX_PATH_BYTES:
        parent = "/tmp"  # noqa: S108 — mkdtemp makes a private one in it
    return Path(tempfile.mkdtemp(prefix="podium-canary-", dir=parent))


@contextlib.contextmanager
def _cage(folder: Path) -> Iterator[tuple[ProcessSpec, Callable[[], str]]]:
    inner, outer, hidden = (folder / name for name in ("inner", "outer", "hidden"))
    for made in (inner, outer, hidden):
        made.mkdir()
    for path in (outer / "file", outer / "other", hidden / "secret"):
        path.write_text(_CONTENT)
        path.chmod(0o644)
        os.utime(path, (1_000_000, 1_000_000))
    abstract = f"podium-{secrets.token_hex(8)}"
    with socket.socket(socket.AF_UNIX) as by_file, socket.socket(socket.AF_UNIX) as by_name:
        by_file.bind(str(hidden / "socket"))
        by_file.listen()
        by_name.bind("\0" + abstract)
        by_name.listen()
        prefix = os.path.realpath(sys.base_prefix)
        spawn = ProcessSpec(
            argv=(
                os.path.realpath(sys.executable), "-IS", "-c", _ATTEMPTS,
                str(inner), str(outer), str(hidden), abstract, str(os.getpid()),
            ),
            cwd=str(inner),
            limits=ProcessLimits(seconds=_SECONDS),
            confinement=Confinement(
                kind="kernel",
                network="none",
                mounts=(
                    Mount(source=prefix, target=prefix),
                    Mount(source=str(outer), target=str(outer)),
                    Mount(source=str(inner), target=str(inner), writable=True),
                ),
                execs=ExecRules(refused={"true": "refused for the test"}),
            ),
        )  # fmt: skip
        yield spawn, lambda: _what_happened(inner, outer)


def _what_failed(ended: ProcessExit) -> str:
    first_line, *done = ended.stdout.decode(errors="replace").split("\n") or [""]
    if ended.exit_code != 0 or first_line != "attempted":
        last = ended.stderr.decode(errors="replace").strip().splitlines()[-1:]
        return f"the test program did not run ({' '.join(last) or f'exit {ended.exit_code}'})"
    got = [name for name in done if name]
    if got:
        return f"the test program could {', '.join(got)}"
    return "" if ended.refused_execs else "the start of a refused program was not reported"


def _what_happened(inner: Path, outer: Path) -> str:
    """The changes that really happened, whatever the canary says. Empty when all is as it was."""
    if not (inner / "file").is_file():
        return "the test program could not write to its own folder"
    if sorted(path.name for path in outer.iterdir()) != ["file", "other"]:
        return "files outside the sandbox were added or removed"
    about = (outer / "file").stat()
    if (outer / "file").read_text() != _CONTENT or about.st_mode & 0o777 != 0o644:
        return "a file outside the sandbox was changed"
    if about.st_mtime != 1_000_000 or about.st_nlink != 1:
        return "the times or links of a file outside the sandbox were changed"
    with (inner / "lock").open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return "a process kept running after its tree had ended"
    return ""
