"""`podium sense scaffold`, `install`, `uninstall` and `status`."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from podium.app.app import Podium
from podium.cli.context import CliContext
from podium.cli.screen import Screen
from podium.config.folders import find_folders
from podium.core.errors import BadInput, PodiumError, ToolMissing
from podium.core.work import MODES, Mode
from podium.jobs.sense.io import (
    SCHEDULERS,
    Scaffolded,
    last_tick,
    schedule_of,
    scheduler,
    scheduler_statuses,
    write_layout,
)
from podium.jobs.sense.io.installation import home_in, machine_in, not_written_down
from podium.jobs.sense.io.schedule import (
    LABEL,
    InstallChange,
    SchedulerName,
    SchedulerStatus,
    TickSchedule,
)
from podium.jobs.sense.options import sense_mode
from podium.render.text import counted, escaped_line, local_time


def render_layout(screen: Screen, done: Scaffolded) -> None:
    """A line for each thing that was written or is there already."""
    for outcome in ("made", "replaced", "kept"):
        for path in getattr(done, outcome):
            screen.line(f"{outcome:9}{path}")
    for path in done.backups:
        screen.line(f"{'backup':9}{path}")
    for reason in done.refused.values():
        screen.stderr_line(f"podium: {escaped_line(reason)}")
    screen.line(f"next: `podium sense --once --root {shlex.quote(done.root)}`")


def render_changes(screen: Screen, changes: list[InstallChange], how: str) -> None:
    """Print the changes and exit: with 1 where a program refused."""

    def show() -> None:
        for change in changes:
            _render_change(screen, change, how)

    records = [change.model_dump(mode="json") for change in changes]
    screen.answer({"changes": records}, show)
    raise typer.Exit(0 if all(change.done for change in changes) else 1)


def _render_change(screen: Screen, change: InstallChange, how: str) -> None:
    for path in change.written:
        screen.line(f"{change.scheduler}: wrote {path}")
    for path in change.backups:
        screen.line(f"{change.scheduler}: kept the previous file as {path}")
    for path in change.removed:
        screen.line(f"{change.scheduler}: {_removed(change, path)}")
    if change.loaded:
        screen.line(f"{change.scheduler}: ticks run {how}")
    if not (change.written or change.removed or change.notes):
        screen.line(f"{change.scheduler}: nothing is installed for this root")
    for note in change.notes:
        screen.line(f"{change.scheduler}: {note}")
    if change.by_hand:
        screen.pass_on(f"{change.by_hand}\n".encode())


def _removed(change: InstallChange, path: str) -> str:
    """Files of their own are gone; of a crontab it was one line."""
    return f"removed its line from {path}" if change.scheduler == "cron" else f"removed {path}"


def status_cells(status: SchedulerStatus) -> list[str]:
    """A scheduler's row of the table."""
    return [
        status.scheduler,
        "yes" if status.installed else "no",
        {None: "", True: "yes", False: "no"}[status.loaded],
        "" if status.last_exit is None else str(status.last_exit),
        status.where,
        status.why,
    ]


PLANNERS = ("gemini", "claude", "codex", "opencode")
"""Programs that plan. A scheduler's PATH is short, so their folders are added where they are found."""

Root = Annotated[
    Path | None,
    typer.Option("--root", metavar="DIR", help="Root folder (default: the project folder)."),
]
Label = Annotated[str, typer.Option("--label", help="Label of the launchd job.")]
Which = Annotated[SchedulerName, typer.Argument(help="Scheduler: launchd, systemd or cron.")]
OneOrAll = Annotated[
    SchedulerName | None, typer.Argument(help="Scheduler: launchd, systemd or cron (default: all).")
]


def add_set_up(app: typer.Typer) -> None:
    """Give the four commands to the app of `podium sense`."""
    for command in (scaffold, install, uninstall, status):
        app.command()(command)


def scaffold(
    context: typer.Context,
    root: Root = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace shims and samples; keep the old ones as .bak.")
    ] = False,
) -> None:
    """Create the folders and files that the loop expects, with samples and shims.

    Existing files are kept.

    \b
    Example:
      podium sense scaffold --root ~/02luka
      podium sense scaffold --force
    """
    cli = CliContext(context.obj)
    folder = _made(root or cli.options.project or Path.cwd())
    done = write_layout(_schedule(folder), _samples(), force=force)
    cli.screen.answer(done.model_dump(mode="json"), lambda: render_layout(cli.screen, done))
    raise typer.Exit(1 if done.refused else 0)


def install(
    context: typer.Context,
    which: Which,
    root: Root = None,
    every: Annotated[
        int, typer.Option("--every", metavar="SECONDS", min=1, help="Seconds between ticks.")
    ] = 300,
    mode: Annotated[
        Mode, typer.Option("--mode", help="Highest mode for scheduled ticks.")
    ] = "sensing",
    label: Label = LABEL,
    only_print: Annotated[
        bool, typer.Option("--print", help="Print what would be written, and write nothing.")
    ] = False,
) -> None:
    """Schedule ticks with launchd, systemd or cron.

    \b
    Example:
      podium sense install systemd
      podium sense install launchd --print
      podium sense install cron --every 600
    """
    cli = CliContext(context.obj, lenient=True)
    folder = _root_of(cli, root)
    schedule = _schedule(folder, label=label, every_seconds=every, mode=mode)
    if only_print:
        for note in not_written_down(os.environ):
            cli.screen.stderr_line(f"podium: {note}")
        _print(cli, which, schedule)
        return
    _warn_lower_mode(cli, mode)
    change = cli.run(
        lambda podium: scheduler(which, machine_in(os.environ, podium.launcher)).install(schedule)
    )
    change = change.model_copy(update={"notes": (*not_written_down(os.environ), *change.notes)})
    render_changes(cli.screen, [change], f"every {every} s in mode {mode}")


def uninstall(
    context: typer.Context, which: OneOrAll = None, root: Root = None, label: Label = LABEL
) -> None:
    """Remove what `install` wrote, and nothing else.

    \b
    Example:
      podium sense uninstall systemd
      podium sense uninstall --root ~/02luka
    """
    cli = CliContext(context.obj, lenient=True)
    schedule = _schedule(_root_of(cli, root), label=label)

    async def work(podium: Podium) -> list[InstallChange]:
        names = (which,) if which else _in_use(SCHEDULERS)
        machine = machine_in(os.environ, podium.launcher)
        return [await scheduler(name, machine).uninstall(schedule) for name in names]

    render_changes(cli.screen, cli.run(work), "")


def status(context: typer.Context, root: Root = None, label: Label = LABEL) -> None:
    """Show which schedulers run ticks of this root, and the last tick.

    \b
    Example:
      podium sense status --json
      podium sense status --root ~/02luka
    """
    cli = CliContext(context.obj, lenient=True)
    folder = _root_of(cli, root)
    schedule = _schedule(folder, label=label)
    statuses = cli.run(
        lambda podium: scheduler_statuses(schedule, machine_in(os.environ, podium.launcher))
    )
    tick = last_tick(folder)
    record = {
        "root": str(folder),
        "schedulers": [status.model_dump(mode="json") for status in statuses],
        "last_tick": tick.model_dump(mode="json") if tick else None,
    }

    def show() -> None:
        headers = ("SCHEDULER", "INSTALLED", "LOADED", "LAST EXIT", "WHERE", "WHY")
        cli.screen.table(headers, [status_cells(status) for status in statuses])
        if tick is None:
            cli.screen.line("no tick yet; run one with `podium sense --once`")
            return
        planner = f"; planner {tick.status}" if tick.status else ""
        counts = f"{counted(tick.ticks, 'tick')}, {tick.idle_ticks} idle"
        cli.screen.line(f"last tick {local_time(tick.at)} ({counts}{planner})")
        if tick.no_plan:
            cli.screen.line(escaped_line(tick.no_plan))
        for notice in tick.notices:
            cli.screen.line(f"notice: {escaped_line(notice)}")

    cli.screen.answer(record, show)


def _warn_lower_mode(cli: CliContext, mode: Mode) -> None:
    """Warn that scheduled ticks go less far than the configured mode."""
    try:
        configured = sense_mode(cli.configuration, {})
    except PodiumError:
        return  # a tick tells what is wrong with the settings
    if MODES.index(mode) < MODES.index(configured):
        cli.screen.stderr_line(
            f"podium: podium.yaml sets mode {configured}, but these ticks are limited to {mode}; to raise the limit, "
            f"install again with --mode {configured}"
        )


def _made(folder: Path) -> Path:
    """The root as a real path. It is made when the folder above it is there."""
    folder = folder.expanduser()
    try:
        folder.mkdir(exist_ok=True)
    except FileExistsError:
        raise BadInput(f"{str(folder)!r} is not a folder; name one with --root") from None
    except FileNotFoundError:
        raise BadInput(
            f"cannot create {str(folder)!r}: {str(folder.parent)!r} does not exist; create it first"
        ) from None
    return folder.resolve()


def _root_of(cli: CliContext, root: Path | None) -> Path:
    """The root that is there. What else is asked of the settings is asked of this project's."""
    if root is not None:
        cli.options.project = root.expanduser()
    return find_folders(os.environ, project=cli.options.project).project


def _schedule(root: Path, **options: object) -> TickSchedule:
    programs = (shutil.which(name) for name in PLANNERS)
    folders = [str(Path(program).absolute().parent) for program in programs if program]
    home = home_in(os.environ)
    return schedule_of(
        root=str(root), program=_program(), folders=tuple(folders), home=home, **options
    )


def _program() -> str:
    """The `podium` that this is: beside its Python, or as it was started."""
    beside = Path(sys.executable).with_name("podium")
    program = str(beside) if os.access(beside, os.X_OK) else shutil.which("podium")
    if program is None:
        raise ToolMissing("podium is not on PATH; install it so that a scheduler can start it")
    return str(Path(program).absolute())


def _in_use(names: Sequence[SchedulerName]) -> list[SchedulerName]:
    """Leave out launchd on other systems than macOS: there its file is part of the layout, removed only when named."""
    return [name for name in names if name != "launchd" or sys.platform == "darwin"]


def _samples() -> dict[str, str]:
    """The sample plans that come with the flow."""
    folder = files("podium.jobs.sense").joinpath("samples")
    return {sample.name: sample.read_text("utf-8") for sample in folder.iterdir() if sample.name.endswith(".json")}  # fmt: skip


def _print(cli: CliContext, which: SchedulerName, schedule: TickSchedule) -> None:
    async def work(podium: Podium) -> dict[str, str]:
        return scheduler(which, machine_in(os.environ, podium.launcher)).preview(schedule)

    texts = cli.run(work)

    def show() -> None:
        for name, text in texts.items():
            if len(texts) > 1:
                cli.screen.line(f"# {name}")
            cli.screen.pass_on(text.encode())

    cli.screen.answer({"scheduler": which, "files": texts}, show)
