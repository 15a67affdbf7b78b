"""Subcommands `podium workspaces create`, `exec` and `deliver`."""

from __future__ import annotations

import asyncio
import io
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Annotated

import typer

from podium.app.app import Podium
from podium.app.workspaces import find_workspace
from podium.cli.context import Door
from podium.cli.screen import is_terminal
from podium.core.errors import GuardedFilesChanged, ToolMissing, WorkspaceTampered
from podium.core.ids import short_id
from podium.core.processes import ProcessExit, ProcessLimits, ProcessSpec
from podium.core.workspaces import Delivery, TurnEnd, WaitingDelivery, WorkspaceRecord
from podium.ports import Process
from podium.render.text import counted, escaped_line

_CHUNK_BYTES = 1 << 16


class Heard:
    """The beginning of an output, up to a number of bytes."""

    def __init__(self, most_bytes: int) -> None:
        self._room_bytes = most_bytes
        self._pieces: list[bytes] = []
        self.dropped_bytes = 0

    def add(self, output: bytes) -> None:
        kept = output[: self._room_bytes]
        self._pieces.append(kept)
        self._room_bytes -= len(kept)
        self.dropped_bytes += len(output) - len(kept)

    @property
    def text(self) -> str:
        return b"".join(self._pieces).decode(errors="replace")


def redacted(output: bytes, redact: Callable[[str], str]) -> bytes:
    """The output without secrets; every other byte is as it was."""
    return redact(output.decode(errors="surrogateescape")).encode(errors="surrogateescape")


async def joined(
    process: Process, pass_on: Callable[[bytes], None], is_heard: Callable[[], bool]
) -> ProcessExit:
    """Feed it what comes in here, pass on what it writes, and wait for its end.

    It is ended when nobody hears it any more, and when this is cancelled.
    """
    try:
        async with _fed(process):
            async for line in process.lines(ends=True):
                pass_on(line)
                if not is_heard():
                    return await process.end()
            return await process.wait()
    except BaseException:
        await process.end()
        raise


@asynccontextmanager
async def _fed(process: Process) -> AsyncIterator[None]:
    feeding = asyncio.create_task(_feed(process, _piped_input()))
    try:
        yield
    finally:
        feeding.cancel()
        with suppress(asyncio.CancelledError, OSError):
            await feeding


async def _feed(process: Process, source: int | None) -> None:
    try:
        while source is not None and (chunk := await _next_chunk(source)):
            await process.send(chunk)
    finally:
        process.close_input()


def _piped_input() -> int | None:
    """Where input comes from. Not from a terminal: there is none inside."""
    try:
        return None if sys.stdin is None or sys.stdin.isatty() else sys.stdin.fileno()
    except (io.UnsupportedOperation, ValueError):
        return None


async def _next_chunk(source: int) -> bytes:
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    try:
        loop.add_reader(source, ready.set)
    except PermissionError:
        # A plain file: the kernel does not watch it, for it never lets anybody wait.
        return await asyncio.to_thread(os.read, source, _CHUNK_BYTES)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(source)
    return os.read(source, _CHUNK_BYTES)


NameArgument = Annotated[
    str, typer.Argument(metavar="WORKSPACE", help="Its id, a short form, or its task.")
]
_OUTPUT_BYTES = 1_000_000
_WAITS = 3
_NOT_THERE = 127
"""As shells have it for a program that is not there."""


def create(
    context: typer.Context,
    task: Annotated[str, typer.Argument(metavar="TASK", help="A short name for it.")],
    base: Annotated[str, typer.Option("--base", help="Where it starts from.")] = "HEAD",
    branch: Annotated[
        str, typer.Option("--branch", help="Its branch; without it podium/TASK.")
    ] = "",
) -> None:
    """Make a workspace: a worktree with a branch of its own, set up as podium.yaml says.

    \b
    Example:
      podium workspaces create fix-login
      podium workspaces create fix-login --base origin/main --branch fix/login
    """
    door = Door(context.obj)

    async def work(podium: Podium) -> WorkspaceRecord:
        made = await podium.workspaces.create(podium.workspace_spec(task, base=base, branch=branch))
        return made.record

    record = door.run(work)

    def words() -> None:
        door.screen.line(f"{short_id(record.id)}: {record.path}")
        door.screen.line(
            f"branch {record.branch.removeprefix('refs/heads/')} from {record.base[:12]}"
        )
        for name, port in record.ports.items():
            door.screen.line(f"{name}={port}")
        if is_terminal():
            door.screen.aside(f"next: podium workspaces exec {record.task} -- COMMAND...")

    door.screen.answer({"workspace": record.model_dump(mode="json")}, words)


def exec_(
    context: typer.Context,
    name: NameArgument,
    command: Annotated[
        list[str], typer.Argument(metavar="-- COMMAND...", help="What to run, and its arguments.")
    ],
    seconds: Annotated[
        float | None, typer.Option("--seconds", help="How long it may take.", min=0.1)
    ] = None,
) -> None:
    """Run a command in a workspace, confined as an agent is, and leave with its exit code.

    There is no terminal inside; what is piped in here is its input. Refused, this exits with 4, for a program
    that is not there with 127, after a signal with 128 and its number, and when the time is up with 6.

    \b
    Example:
      podium workspaces exec fix-login -- npm test
      podium workspaces exec fix-login -- git apply < fix.patch
      podium workspaces exec fix-login -- sh -c 'git add -A && git commit -m wip'
    """
    door = Door(context.obj)

    heard = Heard(_OUTPUT_BYTES)
    pass_on = heard.add if door.options.json else door.screen.pass_on

    async def work(podium: Podium) -> tuple[ProcessExit, TurnEnd, bytes]:
        redact = podium.redactor.text
        record = find_workspace(podium.workspaces, name, str(podium.folders.project))
        workspace = await podium.workspaces.open(record.id)
        seen = await workspace.begin_turn()
        try:
            process = await podium.launcher.start(
                ProcessSpec(
                    argv=tuple(command),
                    cwd=record.path,
                    env={key: str(port) for key, port in record.ports.items()},
                    interactive=True,
                    limits=ProcessLimits(seconds=seconds, output_bytes=_OUTPUT_BYTES),
                    confinement=await podium.confinement_provider.confinement(record.path),
                )
            )
            ended = await joined(
                process,
                lambda line: pass_on(redacted(line, redact)),
                lambda: not door.screen.reader_gone,
            )
        except ToolMissing as missing:
            missing.exit_code = _NOT_THERE
            raise
        finally:
            end = await workspace.end_turn(seen)
        return ended, end, redacted(ended.stderr, redact)

    ended, end, errors = door.run(work)
    record = {
        "exit_code": ended.exit_code,
        "signal": ended.signal,
        "timed_out": ended.timed_out,
        "stdout": heard.text,
        "stdout_dropped_bytes": heard.dropped_bytes,
        "stderr": errors.decode(errors="replace"),
        "refused_programs": list(ended.refused_execs),
        "refused_hosts": list(ended.refused_hosts),
        "breaches": list(ended.breaches),
        "moved_away": list(end.moved_away),
        "violations": [each.model_dump(mode="json") for each in end.violations],
    }
    door.screen.answer(record, lambda: None)
    if not door.options.json:
        door.screen.pass_aside(errors)
    if ended.timed_out:
        door.screen.aside(f"podium: ended after {seconds:g} s; give it more with --seconds")
    _tell_refused(door, ended, end)
    raise typer.Exit(_exit_code(ended))


def deliver(context: typer.Context, name: NameArgument) -> None:
    """Bring a workspace's commits into your repository, through the import gate, onto its branch.

    Nothing changes, and this exits with 4, when they are not what may come back: secrets in what they add,
    forbidden paths, objects that git finds wrong. Changes of files that guard the project or run by themselves
    (podium.yaml, workflows, hooks, editor tasks) wait for an approval that shows the diff, and this exits with 3;
    once it is granted, the same command brings them in.

    \b
    Example:
      podium workspaces deliver fix-login
    """
    door = Door(context.obj)

    async def work(podium: Podium) -> Delivery | WaitingDelivery:
        record = find_workspace(podium.workspaces, name, str(podium.folders.project))
        try:
            return await (await podium.workspaces.open(record.id)).deliver()
        except GuardedFilesChanged as changed:
            # Late: only such a delivery needs a run.
            from podium.app.flow_builders import deliver_with_approval

            return await deliver_with_approval(podium, record, changed.change)

    done = door.run(work)
    if isinstance(done, WaitingDelivery):
        waiting = done
        record = {"delivery": None, "waiting": waiting.model_dump(mode="json")}
        door.screen.answer(record, lambda: _tell_waiting(door, waiting))
        raise typer.Exit(_WAITS)
    branch = done.branch.removeprefix("refs/heads/")

    def words() -> None:
        if done.before == done.after:
            door.screen.line(f"{branch}: nothing new")
            return
        if not done.commits:
            door.screen.line(
                f"{branch}: now at {done.after[:12]}, which another branch has already"
            )
            return
        brought = counted(len(done.commits), "commit")
        changed = counted(len(done.paths), "file")
        door.screen.line(f"{branch}: {brought}, {changed}; now at {done.after[:12]}")
        for lookalike in done.lookalikes:
            door.screen.aside(
                f"podium: in test data, check that it is no secret: {escaped_line(lookalike)}"
            )

    door.screen.answer({"delivery": done.model_dump(mode="json")}, words)


def _tell_waiting(door: Door, waiting: WaitingDelivery) -> None:
    door.screen.line(
        f"{waiting.branch}: nothing came back yet; files that guard the project or run by themselves are changed:"
    )
    for file in waiting.files:
        door.screen.line(f"  {escaped_line(file)}")
    approval = short_id(waiting.approval_id)
    door.screen.aside(
        f"`podium approvals {approval}` shows the diff; `podium approve {approval}` or `podium reject {approval} --why TEXT`, "
        f"then `podium workspaces deliver {waiting.task}`"
    )


def _tell_refused(door: Door, ended: ProcessExit, end: TurnEnd) -> None:
    for what in ended.refused_execs:
        door.screen.aside(f"podium: refused: {escaped_line(what)}")
    for host in ended.refused_hosts:
        door.screen.aside(f"podium: refused: no way to {escaped_line(host)}")
    for path in end.moved_away:
        door.screen.aside(f"podium: moved away, it would have run as yours: {escaped_line(path)}")
    if end.violations:
        told = ", ".join(each.what for each in end.violations)
        raise WorkspaceTampered(f"something outside the workspace was changed: {told}")


def _exit_code(ended: ProcessExit) -> int:
    if ended.timed_out:
        return 6
    if ended.exit_code is None:
        return 128 + (ended.signal or 0)
    return ended.exit_code
