"""How every command's typer app is made, and how a command is loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from podium.cli.options import Options

Loader = Callable[[], Any]
"""Imports a command's module and gives the command."""


def command_app(*, group: bool = False, later: Mapping[str, Loader] | None = None) -> typer.Typer:
    """An app with plain help, no completion options of its own and no drawn tracebacks.

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
        raise TypeError(f"command {name!r} cannot be taken away")

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaders)

    def __len__(self) -> int:
        return len(self._loaders)


class _WholeSentences(TyperGroup):
    """Lists its commands with the whole first sentence of each, and does not cut it at the screen's edge."""

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
    for each in () if isinstance(inner, LazyCommands) else inner.values():
        _accept_global_options(each)
    command.params.extend(global_options())


@cache
def global_options() -> tuple[Any, ...]:
    """The three options that any command takes; they set what the door reads and reach no function.

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
