"""How every command's typer app is made."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup


def command_app(*, group: bool = False) -> typer.Typer:
    """An app with plain help, no completion options of its own and no drawn tracebacks."""
    return typer.Typer(
        cls=_WholeSentences,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=group,
    )


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
