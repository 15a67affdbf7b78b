"""The table of commands, and how one of them is loaded.

A command is a module of this package with a typer app called `app`. It is imported only when it
is asked for, so that a quick command does not pay for a slow one.
"""

from __future__ import annotations

from functools import cache, partial
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from podium import __version__
from podium.cli.command import LazyCommands, global_options
from podium.cli.screen import Screen


class Entry(NamedTuple):
    """Where a command lives, and its line in the list of commands."""

    module: str
    help: str


COMMANDS: dict[str, Entry] = {
    "init": Entry("init", "Make this folder a Podium project."),
    "doctor": Entry("doctor", "Check what is really usable here, and say how to mend the rest."),
    "config": Entry("config", "Show the settings in force, and where each comes from."),
    "run": Entry("run", "Turn a task into a reviewed, tested branch and a pull request."),
    "ask": Entry("ask", "Turn plain words into a validated, approved, receipted run of tools."),
    "sense": Entry("sense", "Read the system's state and propose, then do, work."),
    "candidates": Entry("candidates", "List the work orders that the sense loop proposes."),
    "deploy": Entry("deploy", "Approve a candidate and see it delivered."),
    "playbook": Entry("playbook", "Check a playbook and its profile, and see the prompt."),
    "duet": Entry("duet", "Let two terminal AIs, a planner and an executer, do a task together."),
    "undo": Entry("undo", "Take back what a receipt proves, gated like any other plan."),
    "runs": Entry("runs", "List runs, newest first."),
    "show": Entry("show", "Show a run: its steps, calls, approvals and last events."),
    "logs": Entry("logs", "Print a run's events, or follow them live."),
    "prompts": Entry("prompts", "Show the pipeline's prompts, set up or sent, with their sizes."),
    "trace": Entry("trace", "Read a run's trace as a timeline: every event, call by call."),
    "replay": Entry("replay", "Let a run of a playbook happen again, and compare every event."),
    "cancel": Entry("cancel", "End a run and everything it started."),
    "resume": Entry("resume", "Let a run go on here, from its checkpoint."),
    "retry": Entry("retry", "Let a run go again from one of its steps."),
    "approvals": Entry("approvals", "List what waits for a person."),
    "approve": Entry("approve", "Say yes to an approval."),
    "reject": Entry("reject", "Say no to an approval."),
    "login": Entry("login", "Sign in with a personal token: your answers carry its name."),
    "logout": Entry("logout", "Sign out: you answer as your operating-system user again."),
    "whoami": Entry("whoami", "Show whose name your answers carry, and how that is proved."),
    "resolve": Entry("resolve", "Say whether a call in doubt happened."),
    "serve": Entry("serve", "Serve the console: every run and approval, in a browser."),
    "worker": Entry("worker", "Host queued runs and schedules until Ctrl-C."),
    "workers": Entry("workers", "List who is alive, what each holds, and what the dead left."),
    "queues": Entry("queues", "List the queues: what waits, how it goes, who serves."),
    "top": Entry("top", "Watch workers, queues and running runs live."),
    "mcp": Entry("mcp", "Be an MCP server: clients submit work and use the gated toolbox."),
    "rehearse": Entry("rehearse", "Play podium.yaml's scenes: try a policy out before it matters."),
    "demo": Entry("demo", "See Podium work, offline and without keys, in under a minute."),
    "modelserver": Entry("modelserver", "Stand in for a model provider: play, record, replay."),
    "agents": Entry("agents", "See which agents are installed, logged in and gated by what."),
    "trust": Entry("trust", "Trust the commands in this project's podium.yaml as they are now."),
    "pack": Entry("pack", "Check, list or show tool packs."),
    "plan": Entry("plan", "Parse a planner's plan, and check planning rules."),
    "policy": Entry("policy", "Ask the gate what it would say."),
    "workspaces": Entry("workspaces", "List workspaces, clear away what is safe, get work back."),
    "receipts": Entry("receipts", "List, verify or follow receipts."),
    "habits": Entry("habits", "See or erase what the operator remembers of messages."),
    "db": Entry("db", "Migrate, check, move or prune the database that holds the record."),
    "uninstall": Entry("uninstall", "List and remove what Podium keeps on this machine."),
    "help": Entry("help", "Read about a job or a task, offline."),
    "bench": Entry("bench", "Measure what Podium promises, such as how well replies are read."),
}
"""Every command. A new one is a module and a line here."""


@cache
def build() -> TyperGroup:
    """The whole command line, each command loaded when it is first asked for."""
    app = typer.Typer(cls=_Podium, rich_markup_mode=None, no_args_is_help=True)
    app.callback()(podium)
    group = typer.main.get_command(app)
    if not isinstance(group, TyperGroup):
        raise TypeError(f"typer made {type(group).__name__!r} of a group")
    group.commands = LazyCommands(
        {name: partial(_load, entry.module) for name, entry in COMMANDS.items()}
    )
    group.params.extend(global_options())
    return group


def podium(
    version: Annotated[bool, typer.Option("--version", "-V", help="Show the version.")] = False,
) -> None:
    """Podium puts AI agents to work under a deterministic supervisor.

    \b
    Example:
      podium init && podium doctor
      podium runs --json
    """


class _Podium(TyperGroup):
    """Lists and completes the commands without importing them, and answers `--version` in JSON too."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items()])

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        loaded_later = self.commands
        self.commands = {
            name: TyperCommand(name, short_help=entry.help) for name, entry in COMMANDS.items()
        }
        try:
            return super().shell_complete(ctx, incomplete)
        finally:
            self.commands = loaded_later

    def invoke(self, ctx: Any) -> Any:
        if ctx.params.get("version"):
            screen = Screen(json=ctx.obj.json)
            words = f"podium {__version__}"
            screen.answer({"version": __version__}, lambda: screen.line(words))
            return 0
        return super().invoke(ctx)


def _load(module: str) -> Any:
    return typer.main.get_command(import_module(f"podium.cli.commands.{module}").app)
