"""How every command's typer app is made."""

from __future__ import annotations

import typer


def command_app(*, group: bool = False) -> typer.Typer:
    """An app with plain help, no completion options of its own and no drawn tracebacks."""
    return typer.Typer(
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=group,
    )
