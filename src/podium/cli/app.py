"""Table of commands, how one is imported on first use, and the options that every command accepts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from podium import __version__
from podium.cli.screen import Screen
from podium.core.job import Command, all_jobs, load


@dataclass
class Options:
    """The global options of one invocation."""

    json: bool = False
    debug: bool = field(default_factory=lambda: os.environ.get("PODIUM_DEBUG", "") not in ("", "0"))
    project: Path | None = None
    mode: str = ""
    """Mode from the command line; empty: as configured."""
    labels: tuple[str, ...] = ()
    """Labels a worker offers to queues."""
    ending_note: str = ""
    """Note printed at once on interruption, before the work is stopped."""
    parting_note: str = ""
    """Note printed after an interruption: where the work stands and how to continue."""


Loader = Callable[[], Any]
"""Imports a command's module and gives the command."""


def command_app(*, group: bool = False, later: Mapping[str, Loader] | None = None) -> typer.Typer:
    """Create an app with plain help, without completion options or formatted tracebacks.

    `later` are commands of a group that are loaded when they are asked for.
    """

    class Group(_WholeSentences):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            if later:
                self.commands = LazyCommands(later)

    return typer.Typer(
        cls=Group,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=group,
    )


class LazyCommands(MutableMapping[str, Any]):
    """Commands by name, each imported on first use and given the global options."""

    def __init__(self, loaders: Mapping[str, Loader]) -> None:
        self._loaders = loaders
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            command = self._loaders[name]()
            command.name = name
            _accept_global_options(command)
            self._loaded[name] = command
        return self._loaded[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        raise TypeError(f"command {name!r} cannot be removed")

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaders)

    def __len__(self) -> int:
        return len(self._loaders)


class _WholeSentences(TyperGroup):
    """Lists its commands with the full first sentence of each, not cut at the terminal's width."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        rows = [
            (name, _first_sentence(command.help or "")) for name, command in self.commands.items()
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _first_sentence(text: str) -> str:
    return " ".join(text.partition("\n\n")[0].split())


def _accept_global_options(command: Any) -> None:
    inner = getattr(command, "commands", {})
    for subcommand in () if isinstance(inner, LazyCommands) else inner.values():
        _accept_global_options(subcommand)
    command.params.extend(global_options())


@cache
def global_options() -> tuple[Any, ...]:
    """Return the options that every command takes; they set `Options` and reach no function.

    Made once: a group of twenty commands takes the same ones.
    """
    app = typer.Typer(add_completion=False)
    app.command()(_globals)
    options = typer.main.get_command(app).params
    for option in options:
        option.expose_value = False
    return tuple(options)


def _set(context: typer.Context, option: typer.CallbackParam, value: Any) -> Any:
    if value and isinstance(context.obj, Options):
        setattr(context.obj, str(option.name), value)
    return value


def _globals(
    json: Annotated[
        bool, typer.Option("--json", help="Answer with JSON on stdout.", callback=_set)
    ] = False,
    project: Annotated[
        Path | None,
        typer.Option("--project", metavar="DIR", help="The project's folder.", callback=_set),
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.", callback=_set)] = False,
) -> None:
    """Carries the options; never called."""


RUNS, AGENTS, PROJECT = "Runs and approvals", "Agents and policy", "Project"
SERVER, ADVANCED = "Server", "Advanced"
GROUPS = ("Jobs", RUNS, AGENTS, PROJECT, SERVER, ADVANCED)
"""Headings of the list of commands, in their order."""

OTHER_NAMES = {
    "cost": ("runs", "it shows the cost of each run"),
    "costs": ("runs", "it shows the cost of each run"),
    "dashboard": ("serve", "it starts the web console"),
    "events": ("logs RUN", "it prints the events of a run"),
    "history": ("runs", "it lists runs, newest first"),
    "kill": ("cancel RUN", "it stops a run and everything it started"),
    "list": ("runs", "it lists runs, newest first"),
    "ls": ("runs", "it lists runs, newest first"),
    "ps": ("runs", "it lists runs, newest first"),
    "setup": ("init", "it sets up Podium in this folder"),
    "start": ('run "TASK"', "it starts a task"),
    "status": ("runs", "it lists runs with their status; `podium show RUN` shows one"),
    "stop": ("cancel RUN", "it stops a run and everything it started"),
    "ui": ("serve", "it starts the web console"),
    "update": ("help install", "it describes how to upgrade"),
    "upgrade": ("help install", "it describes how to upgrade"),
    "usage": ("runs", "it shows the cost of each run"),
    "version": ("--version", "it prints the version"),
    "web": ("serve", "it starts the web console"),
}
"""Common first guesses → the command they mean, with its effect."""

KERNEL_COMMANDS: dict[str, Command] = {
    "init": Command(
        "podium.cli.commands.init:app",
        "Set up Podium in this folder: find agents and tests, write podium.yaml.",
        PROJECT,
    ),
    "doctor": Command(
        "podium.cli.commands.doctor:app", "Check the environment and suggest fixes.", PROJECT
    ),
    "config": Command(
        "podium.cli.commands.config:app",
        "Show the settings in force and where each comes from.",
        PROJECT,
    ),
    "agents": Command(
        "podium.cli.commands.agents:app",
        "List agents: installed, logged in, and how their calls are gated.",
        AGENTS,
    ),
    "trust": Command(
        "podium.cli.commands.config:trust_app",
        "Trust the commands in this project's podium.yaml as they are now.",
        AGENTS,
    ),
    "help": Command("podium.cli.commands.help:app", "Read tutorials and guides offline.", PROJECT),
    "runs": Command("podium.cli.commands.runs:app", "List runs, newest first.", RUNS),
    "show": Command(
        "podium.cli.commands.show:app",
        "Show a run: its steps, calls, approvals and last events.",
        RUNS,
    ),
    "logs": Command(
        "podium.cli.commands.show:logs_app", "Print a run's events, or follow them live.", RUNS
    ),
    "trace": Command(
        "podium.cli.commands.trace:app",
        "Show a run as a timeline: every event, call by call.",
        RUNS,
    ),
    "resume": Command(
        "podium.cli.commands.run_control:resume_app", "Resume a run from its last checkpoint.", RUNS
    ),
    "retry": Command(
        "podium.cli.commands.run_control:retry_app",
        "Run a failed step again, or all steps from a given one.",
        RUNS,
    ),
    "cancel": Command(
        "podium.cli.commands.run_control:cancel_app", "Stop a run and everything it started.", RUNS
    ),
    "resolve": Command(
        "podium.cli.commands.run_control:resolve_app",
        "Record whether a call in doubt happened.",
        RUNS,
    ),
    "workspaces": Command(
        "podium.cli.commands.workspaces:app",
        "List, clean up and recover the worktrees of runs.",
        PROJECT,
    ),
    "approvals": Command(
        "podium.cli.commands.approvals:app", "List approvals that wait for a person.", RUNS
    ),
    "approve": Command(
        "podium.cli.commands.approvals:approve_app",
        "Approve a call, or answer an agent's question.",
        RUNS,
    ),
    "reject": Command(
        "podium.cli.commands.approvals:reject_app", "Reject a call, with the reason.", RUNS
    ),
    "login": Command(
        "podium.cli.commands.login:app",
        "Sign in with a personal token; your approvals carry its name.",
        AGENTS,
    ),
    "logout": Command(
        "podium.cli.commands.login:logout_app",
        "Sign out; you approve as your operating-system user again.",
        AGENTS,
    ),
    "whoami": Command(
        "podium.cli.commands.login:whoami_app",
        "Show the name that your approvals carry and how it is proved.",
        AGENTS,
    ),
    "serve": Command(
        "podium.cli.commands.serve:app",
        "Start the web console: every run and approval in a browser.",
        SERVER,
    ),
    "mcp": Command(
        "podium.cli.commands.mcp:app",
        "Start an MCP server: clients submit work and use the gated tools.",
        SERVER,
    ),
    "worker": Command(
        "podium.cli.commands.worker:app", "Host queued runs and schedules until Ctrl-C.", SERVER
    ),
    "workers": Command(
        "podium.cli.commands.workers:app",
        "List workers, the runs of each, and runs whose worker is gone.",
        SERVER,
    ),
    "queues": Command(
        "podium.cli.commands.workers:queues_app",
        "List queues: waiting runs, limits and workers.",
        SERVER,
    ),
    "top": Command(
        "podium.cli.commands.top:app", "Watch workers, queues and running runs live.", SERVER
    ),
    "policy": Command(
        "podium.cli.commands.policy:app",
        "Show what the gate decides about a command, and why.",
        AGENTS,
    ),
    "receipts": Command(
        "podium.cli.commands.receipts:app", "List, verify or follow receipts.", RUNS
    ),
    "db": Command(
        "podium.cli.commands.db:app", "Migrate, check, copy or prune the database.", ADVANCED
    ),
    "bench": Command(
        "podium.cli.commands.bench:app",
        "Run benchmarks, such as how well replies are read.",
        ADVANCED,
    ),
    "modelserver": Command(
        "podium.cli.commands.modelserver:app",
        "Serve a model without a provider: scripted, recorded or replayed.",
        ADVANCED,
    ),
    "uninstall": Command(
        "podium.cli.commands.uninstall:app",
        "List and remove what Podium stores on this machine.",
        PROJECT,
    ),
}
"""Commands of the kernel; a job's are in its `job.py`. A new one is a module and a line here."""


@cache
def all_commands() -> dict[str, Command]:
    """Return every command by name, ordered by group, those of the kernel first."""
    of_jobs = {name: command for job in all_jobs() for name, command in job.commands.items()}
    commands = KERNEL_COMMANDS | of_jobs | KERNEL_COMMANDS
    return dict(sorted(commands.items(), key=lambda entry: _position(entry[1])))


def _position(command: Command) -> tuple[int, str]:
    number = GROUPS.index(command.group) if command.group in GROUPS else len(GROUPS)
    return number, command.group


class _Commands(Mapping[str, Loader]):
    """Loader of each command. Jobs are searched only for a name that is not the kernel's."""

    def __getitem__(self, name: str) -> Loader:
        command = KERNEL_COMMANDS.get(name) or all_commands()[name]
        return partial(_load, command.app)

    def __iter__(self) -> Iterator[str]:
        return iter(all_commands())

    def __len__(self) -> int:
        return len(all_commands())


@cache
def build() -> TyperGroup:
    """Build the command line; each command is loaded on first use."""
    app = typer.Typer(cls=_Podium, rich_markup_mode=None, no_args_is_help=True)
    app.callback()(podium)
    group = typer.main.get_command(app)
    if not isinstance(group, TyperGroup):
        raise TypeError(f"typer returned {type(group).__name__!r} for a group")
    group.commands = LazyCommands(_Commands())
    group.params.extend(global_options())
    return group


def podium(
    version: Annotated[bool, typer.Option("--version", "-V", help="Show the version.")] = False,
) -> None:
    """Podium runs AI agents under a supervisor that decides, checks and records.

    \b
    Example:
      podium init                          # once in your repository
      podium run "Fix the failing test"    # a reviewed, tested branch
      podium approvals                     # what waits for you
    """


class _Podium(TyperGroup):
    """Lists and completes the commands without importing them, and answers `--version` in JSON too."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        by_group = groupby(all_commands().items(), key=lambda entry: entry[1].group)
        for group, entries in by_group:
            with formatter.section(group):
                formatter.write_dl([(name, command.help) for name, command in entries])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0] if args else ""
        if name in OTHER_NAMES and name not in self.commands:
            command, effect = OTHER_NAMES[name]
            ctx.fail(f"No such command {name!r}. Use `podium {command}`: {effect}.")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        loaded_later = self.commands
        self.commands = {
            name: TyperCommand(name, short_help=entry.help)
            for name, entry in all_commands().items()
        }
        try:
            return super().shell_complete(ctx, incomplete)
        finally:
            self.commands = loaded_later

    def invoke(self, ctx: Any) -> Any:
        if ctx.params.get("version"):
            screen = Screen(json=ctx.obj.json)
            text = f"podium {__version__}"
            screen.answer({"version": __version__}, lambda: screen.line(text))
            return 0
        return super().invoke(ctx)


def _load(app: str) -> Any:
    return typer.main.get_command(load(app))
