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
from podium.cli.context import CliContext
from podium.cli.screen import is_terminal
from podium.core.errors import GuardedFilesChanged, ToolMissing, WorkspaceTampered
from podium.core.ids import short_id
from podium.core.processes import ProcessExit, ProcessLimits, ProcessSpec
from podium.core.workspaces import Delivery, TurnEnd, WaitingDelivery, WorkspaceRecord
from podium.ports import Process
from podium.render.text import counted, escaped_line

_CHUNK_BYTES = 1 << 16


class CapturedOutput:
    """Beginning of an output, up to a number of bytes."""

    def __init__(self, most_bytes: int) -> None:
        self._left_bytes = most_bytes
        self._pieces: list[bytes] = []
        self.dropped_bytes = 0

    def add(self, output: bytes) -> None:
        taken = output[: self._left_bytes]
        self._pieces.append(taken)
        self._left_bytes -= len(taken)
        self.dropped_bytes += len(output) - len(taken)

    @property
    def text(self) -> str:
        return b"".join(self._pieces).decode(errors="replace")


def redacted(output: bytes, redact: Callable[[str], str]) -> bytes:
    """The output without secrets; every other byte is as it was."""
    return redact(output.decode(errors="surrogateescape")).encode(errors="surrogateescape")


async def joined(
    process: Process, pass_on: Callable[[bytes], None], has_reader: Callable[[], bool]
) -> ProcessExit:
    """Feed the process our input, pass on its output, and wait for its end.

    It is ended when nobody hears it any more, and when this is cancelled.
    """
    try:
        async with _fed(process):
            async for line in process.lines(ends=True):
                pass_on(line)
                if not has_reader():
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
    """Return the input to pass in; None for a terminal, since there is none inside."""
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
    str, typer.Argument(metavar="WORKSPACE", help="Id of the workspace, a short form, or its task.")
]
_OUTPUT_BYTES = 1_000_000
_WAITS = 3
_NOT_THERE = 127
"""Exit code of shells for a missing program."""


def create(
    context: typer.Context,
    task: Annotated[str, typer.Argument(metavar="TASK", help="Short name of the task.")],
    base: Annotated[str, typer.Option("--base", help="Commit or branch to start from.")] = "HEAD",
    branch: Annotated[
        str, typer.Option("--branch", help="Name of its branch; default podium/TASK.")
    ] = "",
) -> None:
    """Create a workspace: a worktree with its own branch, set up as in podium.yaml.

    \b
    Example:
      podium workspaces create fix-login
      podium workspaces create fix-login --base origin/main --branch fix/login
    """
    cli = CliContext(context.obj)

    async def work(podium: Podium) -> WorkspaceRecord:
        made = await podium.workspaces.create(podium.workspace_spec(task, base=base, branch=branch))
        return made.record

    record = cli.run(work)

    def render() -> None:
        cli.screen.line(f"{short_id(record.id)}: {record.path}")
        cli.screen.line(
            f"branch {record.branch.removeprefix('refs/heads/')} from {record.base[:12]}"
        )
        for name, port in record.ports.items():
            cli.screen.line(f"{name}={port}")
        if is_terminal():
            cli.screen.stderr_line(f"next: podium workspaces exec {record.task} -- COMMAND...")

    cli.screen.answer({"workspace": record.model_dump(mode="json")}, render)


def exec_(
    context: typer.Context,
    name: NameArgument,
    command: Annotated[
        list[str], typer.Argument(metavar="-- COMMAND...", help="Command with its arguments.")
    ],
    seconds: Annotated[float | None, typer.Option("--seconds", help="Time limit.", min=0.1)] = None,
) -> None:
    """Run a command in a workspace, confined like an agent, and exit with its code.

    There is no terminal inside; piped input is passed on. Exits with 4 when refused, with 127 for a
    missing program, with 128 and its number after a signal, and with 6 after the time limit.

    \b
    Example:
      podium workspaces exec fix-login -- npm test
      podium workspaces exec fix-login -- git apply < fix.patch
      podium workspaces exec fix-login -- sh -c 'git add -A && git commit -m wip'
    """
    cli = CliContext(context.obj)

    captured = CapturedOutput(_OUTPUT_BYTES)
    pass_on = captured.add if cli.options.json else cli.screen.pass_on

    async def work(podium: Podium) -> tuple[ProcessExit, TurnEnd, bytes]:
        redact = podium.redactor.text
        record = find_workspace(podium.workspaces, name, str(podium.folders.project))
        workspace = await podium.workspaces.open(record.id)
        before = await workspace.begin_turn()
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
                lambda: not cli.screen.reader_gone,
            )
        except ToolMissing as missing:
            missing.exit_code = _NOT_THERE
            raise
        finally:
            end = await workspace.end_turn(before)
        return ended, end, redacted(ended.stderr, redact)

    ended, end, errors = cli.run(work)
    record = {
        "exit_code": ended.exit_code,
        "signal": ended.signal,
        "timed_out": ended.timed_out,
        "stdout": captured.text,
        "stdout_dropped_bytes": captured.dropped_bytes,
        "stderr": errors.decode(errors="replace"),
        "refused_programs": list(ended.refused_execs),
        "refused_hosts": list(ended.refused_hosts),
        "breaches": list(ended.breaches),
        "moved_away": list(end.moved_away),
        "violations": [violation.model_dump(mode="json") for violation in end.violations],
    }
    cli.screen.answer(record, lambda: None)
    if not cli.options.json:
        cli.screen.pass_on_stderr(errors)
    if ended.timed_out:
        cli.screen.stderr_line(
            f"podium: stopped after {seconds:g} s; raise the limit with --seconds"
        )
    _print_refusals(cli, ended, end)
    raise typer.Exit(_exit_code(ended))


def deliver(context: typer.Context, name: NameArgument) -> None:
    """Import a workspace's commits into your repository, through the import gate, onto its branch.

    Refused with exit code 4, without any change: secrets in added lines,
    forbidden paths, invalid git objects. Changes of files that guard the project or run by themselves
    (podium.yaml, workflows, hooks, editor tasks) wait for an approval that shows the diff, with exit code 3;
    once it is granted, run the same command again.

    \b
    Example:
      podium workspaces deliver fix-login
      podium workspaces deliver fix-login --json
    """
    cli = CliContext(context.obj)

    async def work(podium: Podium) -> Delivery | WaitingDelivery:
        record = find_workspace(podium.workspaces, name, str(podium.folders.project))
        try:
            return await (await podium.workspaces.open(record.id)).deliver()
        except GuardedFilesChanged as changed:
            # Late: only such a delivery needs a run.
            from podium.app.kernel_flows import deliver_with_approval

            return await deliver_with_approval(podium, record, changed.change)

    done = cli.run(work)
    if isinstance(done, WaitingDelivery):
        waiting = done
        record = {"delivery": None, "waiting": waiting.model_dump(mode="json")}
        cli.screen.answer(record, lambda: _print_waiting(cli, waiting))
        raise typer.Exit(_WAITS)
    branch = done.branch.removeprefix("refs/heads/")

    def render() -> None:
        if done.before == done.after:
            cli.screen.line(f"{branch}: nothing new")
            return
        if not done.commits:
            cli.screen.line(f"{branch}: now at {done.after[:12]}, already on another branch")
            return
        brought = counted(len(done.commits), "commit")
        changed = counted(len(done.paths), "file")
        cli.screen.line(f"{branch}: {brought}, {changed}; now at {done.after[:12]}")
        for lookalike in done.lookalikes:
            cli.screen.stderr_line(
                f"podium: looks like a secret in test data, please check: {escaped_line(lookalike)}"
            )

    cli.screen.answer({"delivery": done.model_dump(mode="json")}, render)


def _print_waiting(cli: CliContext, waiting: WaitingDelivery) -> None:
    cli.screen.line(
        f"{waiting.branch}: nothing was delivered yet; these changed files guard the project or run by themselves:"
    )
    for file in waiting.files:
        cli.screen.line(f"  {escaped_line(file)}")
    approval = short_id(waiting.approval_id)
    cli.screen.stderr_line(
        f"review the diff with `podium approvals {approval}`; then `podium approve {approval}` or `podium reject {approval} --why TEXT`, "
        f"and `podium workspaces deliver {waiting.task}`"
    )


def _print_refusals(cli: CliContext, ended: ProcessExit, end: TurnEnd) -> None:
    for what in ended.refused_execs:
        cli.screen.stderr_line(f"podium: refused: {escaped_line(what)}")
    for host in ended.refused_hosts:
        cli.screen.stderr_line(f"podium: refused host: {escaped_line(host)}")
    for path in end.moved_away:
        cli.screen.stderr_line(
            f"podium: moved away, since it would have run as you: {escaped_line(path)}"
        )
    if end.violations:
        changes = ", ".join(violation.what for violation in end.violations)
        raise WorkspaceTampered(f"files outside the workspace were changed: {changes}")


def _exit_code(ended: ProcessExit) -> int:
    if ended.timed_out:
        return 6
    if ended.exit_code is None:
        return 128 + (ended.signal or 0)
    return ended.exit_code
