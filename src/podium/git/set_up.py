"""Set-up of a fresh workspace: files that git does not carry, ports of its own, and the project's commands.

The commands run as the agent's processes do: inside the workspace's confinement, with nothing of the user's repository
in reach. Every folder on the way of a copied file is opened by the handle of the one before it, on both sides: the base
commit may hold a link where the checkout has a folder, and a listed name may be a link that leads away."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import random
import re
import shlex
import socket
import stat
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from podium.core.errors import BadInput, NotPossibleNow, SetUpFailed
from podium.core.model import json_of
from podium.core.processes import Confinement, ProcessExit, ProcessLimits, ProcessSpec
from podium.core.workspaces import SetupSpec, WorkspaceRecord, WorkspaceSpec
from podium.git.records import CREATING, WorkspaceRecords
from podium.git.worktree_files import ignoring
from podium.platform.atomic_write import atomic_write
from podium.platform.safe_open import UnusableFile, create_new, open_folder, open_plain
from podium.ports import Launcher, Process, Workspace

MAX_FILE_BYTES = 16_000_000
MAX_IN_ALL_BYTES = 64_000_000


def check_files(checkout: Path, names: Sequence[str]) -> None:
    """Raise `BadInput` for the first name that cannot be copied. Nothing is changed."""
    total = 0
    for name in names:
        with _opened(checkout, name) as handle:
            total += os.fstat(handle).st_size
    if total > MAX_IN_ALL_BYTES:
        raise BadInput(
            f"the files to copy have {total} bytes in all; the limit is {MAX_IN_ALL_BYTES}. Fetch or build "
            "large files with an `after_create` command"
        )


def copy_files(checkout: Path, worktree: Path, names: Sequence[str]) -> tuple[str, ...]:
    """Copy each file to the same place in the worktree, with its permission bits; gives what was copied.

    A file that is there already with the same content is left alone. Raises `BadInput` for what
    cannot be copied; what was copied before it stays.
    """
    copied = []
    for name in names:
        with _opened(checkout, name) as handle:
            mode = stat.S_IMODE(os.fstat(handle).st_mode) & 0o777
            content = _content(handle, name)
        if _put(worktree, name, content, mode):
            copied.append("/".join(_parts(name)))
    return tuple(copied)


@contextlib.contextmanager
def _opened(checkout: Path, name: str) -> Iterator[int]:
    """The handle of a plain file of the checkout that is not too large."""
    parts = _parts(name)
    try:
        with open_folder(checkout, "/".join(parts[:-1])) as folder:
            handle = open_plain(parts[-1], folder)
    except OSError as error:
        raise BadInput(f"cannot copy {name!r} from {str(checkout)!r}: {_why(error)}") from error
    try:
        _must_be_small(os.fstat(handle), name)
        yield handle
    finally:
        os.close(handle)


def _parts(name: str) -> tuple[str, ...]:
    path = PurePosixPath(name)
    odd = path.is_absolute() or ".." in path.parts or "\0" in name or "\n" in name
    inside = path.parts and not odd
    if not inside:
        raise BadInput(
            f"cannot copy {name!r}: name a file by its path relative to the checkout, as in '.env'"
        )
    if any(part.lower() == ".git" for part in path.parts):
        raise BadInput(f"cannot copy {name!r}: files that belong to git cannot be copied")
    return path.parts


def _must_be_small(status: os.stat_result, name: str) -> None:
    if status.st_size > MAX_FILE_BYTES:
        raise BadInput(
            f"cannot copy {name!r}: it has {status.st_size} bytes; the limit is {MAX_FILE_BYTES}. Fetch or "
            "build it with an `after_create` command"
        )


def _content(handle: int, name: str) -> bytes:
    """All of it, at most a byte more than may be: it can grow while it is read."""
    with open(handle, "rb", closefd=False) as file:
        content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise BadInput(f"cannot copy {name!r}: it grew while it was read; try again")
    return content


def _put(worktree: Path, name: str, content: bytes, mode: int) -> bool:
    """Write the file. Return False when it was there with the same content."""
    parts = _parts(name)
    try:
        with open_folder(worktree, "/".join(parts[:-1]), make=True) as folder:
            # A forbidden path that was not there is an empty folder by now.
            with contextlib.suppress(OSError):
                os.rmdir(parts[-1], dir_fd=folder)
            _create(folder, parts[-1], content, mode)
    except FileExistsError:
        _must_be_the_same(worktree, name, content)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise BadInput(f"cannot copy {name!r} into the workspace: {_why(error)}") from error
    else:
        return True
    return False


def _create(folder: int, leaf: str, content: bytes, mode: int) -> None:
    # Private until it is whole: it may hold secrets.
    handle = create_new(leaf, folder)
    with open(handle, "wb") as file:  # noqa: PTH123 - a handle, not a path
        file.write(content)
        file.flush()
        os.fchmod(handle, mode)


def _must_be_the_same(worktree: Path, name: str, content: bytes) -> None:
    with _opened(worktree, name) as handle:
        same = _content(handle, name) == content
    if not same:
        raise BadInput(
            f"cannot copy {name!r}: the base commit has a different version; commit yours, or remove it from the list"
        )


def _why(error: OSError) -> str:
    if error.errno == errno.ENOENT:
        return "no such file; create it, or remove it from the list"
    if error.errno == errno.EISDIR:
        return "it is a folder; list the files in it one by one"
    return f"it {error.strerror}" if isinstance(error, UnusableFile) else f"{error.strerror}"


PORTS = range(20_000, 32_000)
"""Beneath the ports that kernels give to outgoing connections, which would come and go in them."""

_NAME = re.compile(r"[A-Z][A-Z0-9_]*")
_NOT_FOR_PORTS = re.compile(
    r"(GIT|LD|DYLD|PODIUM)_.*|PATH|HOME|IFS|ENV|BASH_ENV|SHELL|PAGER|EDITOR"
)
_TRIES = 200


def check_names(names: Sequence[str]) -> None:
    """Raise `BadInput` for a name that can be no variable for a port."""
    for name in names:
        if not _NAME.fullmatch(name) or _NOT_FOR_PORTS.fullmatch(name):
            raise BadInput(
                f"{name!r} is not a valid variable for a port; use capital letters, digits and underscores, "
                "as in 'WEB_PORT'"
            )
    if len(set(names)) != len(names):
        raise BadInput(f"each port needs its own variable; got {', '.join(names)}")


@contextlib.contextmanager
def held_ports(names: Sequence[str], taken: Collection[int]) -> Iterator[dict[str, int]]:
    """A free port for each name, none of those `taken` by other workspaces.

    They are held until the end of the block: write down whose they are inside it, and nobody who
    looks at the same time gets one of them.
    """
    check_names(names)
    used = set(taken)
    with contextlib.ExitStack() as held:
        ports: dict[str, int] = {}
        for name in names:
            port = _hold_one(held, used)
            used.add(port)
            ports[name] = port
        yield ports


def _hold_one(held: contextlib.ExitStack, used: Collection[int]) -> int:
    chance = random.SystemRandom()
    for _ in range(_TRIES):
        port = chance.choice(PORTS)
        if port not in used and _hold(held, port):
            return port
    raise NotPossibleNow(
        f"no free port found between {PORTS.start} and {PORTS.stop}; stop servers that are not needed, or "
        "remove workspaces with `podium workspaces gc`"
    )


def _hold(held: contextlib.ExitStack, port: int) -> bool:
    """Bind it without listening. A server on any address of this machine makes that fail."""
    sockets = contextlib.ExitStack()
    for family in (socket.AF_INET, socket.AF_INET6):
        if family == socket.AF_INET6 and not _has_ipv6():
            continue
        try:
            one = sockets.enter_context(socket.socket(family, socket.SOCK_STREAM))
            if family == socket.AF_INET6:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            one.bind(("", port))
        except OSError:
            sockets.close()
            return False
    held.push(sockets)
    return True


def _has_ipv6() -> bool:
    """Check that IPv6 works: it may be compiled in and switched off."""
    if not socket.has_ipv6:
        return False
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


TAIL_LINES = 20
"""Lines of a failed command's output that are shown."""

_LINE_CHARACTERS = 500
_LINE_BYTES = 64_000
_STDERR_BYTES = 20_000
_FIRST_PAUSE_SECONDS = 0.2
_MAX_PAUSE_SECONDS = 5.0

ProgressCallback = Callable[[str], None]
"""Takes a line of progress."""


def check_set_up(set_up: SetupSpec, checkout: Path) -> None:
    """Raise `BadInput` for what can be known to fail before anything is made."""
    check_files(checkout, set_up.copy_files)
    check_names(set_up.ports)


async def set_up(
    workspace: Workspace,
    spec: WorkspaceSpec,
    launcher: Launcher,
    records: WorkspaceRecords,
    report: ProgressCallback,
) -> WorkspaceRecord:
    """Make a checked-out workspace usable, and give its record with what belongs to that.

    Raises `BadInput` for a file that cannot be copied, and `SetUpFailed` with the end of the output
    for a command that fails; the workspace is to be undone then.
    """
    record = await asyncio.to_thread(_equipped, workspace.record, spec.set_up, records)

    async def confinement() -> Confinement:
        reach = {"network": spec.set_up.network, "hosts": spec.set_up.hosts}
        return (await workspace.confinement()).model_copy(update=reach)

    commands = SetupCommands(record.path, _variables(record), launcher, confinement)
    await run_commands(spec.set_up, commands, report)
    return record


async def run_commands(spec: SetupSpec, commands: SetupCommands, report: ProgressCallback) -> None:
    """Run the commands in order, then the readiness check until it succeeds."""
    commands.give(spec.seconds)
    count = len(spec.after_create)
    for number, argv in enumerate(spec.after_create, 1):
        report(f"set-up {number}/{count}: {_command_line(argv)}")
        await commands.must_succeed(argv, report)
    if spec.ready:
        report(f"waiting until ready: {_command_line(spec.ready)}")
        await commands.retried(spec.ready)


def _equipped(
    record: WorkspaceRecord, spec: SetupSpec, records: WorkspaceRecords
) -> WorkspaceRecord:
    """With its files and ports."""
    copied = copy_files(Path(record.repository), Path(record.path), spec.copy_files)
    if copied:
        # Else `git add --all` would commit what may hold secrets.
        with Path(record.private, "git/info/exclude").open("a", encoding="utf-8") as file:
            file.write(f"\n{ignoring(copied)}")
    ports = _note_ports(spec.ports, record, records)
    return record.model_copy(update={"ports": ports, "copied": copied})


def _note_ports(
    names: Sequence[str], record: WorkspaceRecord, records: WorkspaceRecords
) -> dict[str, int]:
    """Choose them, and write them down before anybody else can choose the same."""
    if not names:
        return {}
    workspaces = [records.of(id_) for id_ in records.ids()]
    taken = {
        port
        for workspace in workspaces
        if workspace is not None
        for port in workspace.ports.values()
    }
    with held_ports(names, taken) as ports:
        noted = record.model_copy(update={"ports": ports})
        atomic_write(records.private(record.id) / CREATING, json_of(noted).encode())
    return ports


def _variables(record: WorkspaceRecord) -> dict[str, str]:
    home = str(Path(record.private) / "home")
    return {**{name: str(port) for name, port in record.ports.items()}, "HOME": home}


class SetupCommands:
    """Commands in one workspace that share one stretch of time."""

    def __init__(
        self,
        folder: str,
        env: Mapping[str, str],
        launcher: Launcher,
        confinement: Callable[[], Awaitable[Confinement]],
    ) -> None:
        """`confinement` is asked before each start: a command may have changed what is to be checked."""
        self._folder = folder
        self._env = dict(env)
        self._launcher = launcher
        self._confinement = confinement
        self._seconds = 0.0
        self._deadline = 0.0

    def give(self, seconds: float) -> None:
        """Set the time for all commands together, from now on."""
        self._seconds = seconds
        self._deadline = asyncio.get_running_loop().time() + seconds

    async def must_succeed(self, argv: Sequence[str], report: ProgressCallback) -> None:
        """Raises `SetUpFailed` when it does not."""
        ended, tail = await self._run(argv, report)
        if ended.exit_code != 0:
            raise self._failed(argv, ended, tail)

    async def retried(self, argv: Sequence[str]) -> None:
        """Run it again until it succeeds. Only the output of the last attempt is shown."""
        pause = _FIRST_PAUSE_SECONDS
        while True:
            ended, tail = await self._run(argv, _unheard)
            if ended.exit_code == 0:
                return
            if ended.timed_out or self._left() <= pause:
                raise self._never_ready(argv, tail)
            await asyncio.sleep(pause)
            pause = min(pause * 2, _MAX_PAUSE_SECONDS)

    def _left(self) -> float:
        return self._deadline - asyncio.get_running_loop().time()

    async def _run(
        self, argv: Sequence[str], report: ProgressCallback
    ) -> tuple[ProcessExit, list[str]]:
        if self._left() <= 0:
            raise SetUpFailed(f"no time left for {_command_line(argv)!r}; {self._give_more_time()}")
        process = await self._launcher.start(await self._spawn(argv))
        try:
            process.close_input()
            tail = await _forward_output(process, report)
            ended = await process.wait()
        except BaseException:
            await process.end(0.0)
            raise
        return ended, [*tail, *_lines(ended.stderr)]

    async def _spawn(self, argv: Sequence[str]) -> ProcessSpec:
        return ProcessSpec(
            argv=tuple(argv),
            cwd=self._folder,
            env=self._env,
            interactive=True,
            limits=ProcessLimits(
                seconds=self._left(), output_bytes=_STDERR_BYTES, line_bytes=_LINE_BYTES
            ),
            confinement=await self._confinement(),
        )

    def _failed(self, argv: Sequence[str], ended: ProcessExit, tail: Sequence[str]) -> SetUpFailed:
        command = _command_line(argv)
        if ended.timed_out:
            return _set_up_failed(f"{command!r} timed out; {self._give_more_time()}", tail)
        how = f"exit code {ended.exit_code}" if ended.signal is None else f"signal {ended.signal}"
        refused = "".join(f"\n  refused: {exec_}" for exec_ in ended.refused_execs)
        return _set_up_failed(
            f"{command!r} failed with {how}; fix it, then try again{refused}", tail
        )

    def _never_ready(self, argv: Sequence[str], tail: Sequence[str]) -> SetUpFailed:
        command = _command_line(argv)
        return _set_up_failed(
            f"{command!r} never succeeded, so the workspace is not ready; fix it, or "
            f"{self._give_more_time()}",
            tail,
        )

    def _give_more_time(self) -> str:
        return f"give the set-up more than {self._seconds:g} seconds"


async def _forward_output(process: Process, report: ProgressCallback) -> list[str]:
    """Report each line of output as it comes; return the last ones."""
    tail: deque[str] = deque(maxlen=TAIL_LINES)
    async for line in process.lines():
        text = line.decode(errors="replace")[:_LINE_CHARACTERS]
        tail.append(text)
        report(f"  {text}")
    return list(tail)


def _command_line(argv: Sequence[str]) -> str:
    """Return a shell line as the settings have it, other commands quoted for a shell."""
    return argv[2] if len(argv) == 3 and argv[1] == "-c" else shlex.join(argv)


def _lines(output: bytes) -> list[str]:
    lines = output.decode(errors="replace").splitlines()
    return [line[:_LINE_CHARACTERS] for line in lines[-TAIL_LINES:]]


def _set_up_failed(problem: str, tail: Sequence[str]) -> SetUpFailed:
    lines = "".join(f"\n  {line}" for line in tail)
    excerpt = f"\nlast output:{lines}" if lines else "\nno output"
    return SetUpFailed(f"the workspace was not created: {problem}{excerpt}", output=tuple(tail))


def _unheard(_: str) -> None:
    """Drop progress of attempts that are expected to fail at first."""
