"""Reads command lines as `podium` would, without running them."""

from __future__ import annotations

import io
import shlex
from collections.abc import Iterator
from contextlib import redirect_stdout
from typing import Any

import typer
from typer.core import TyperGroup

from podium.cli.app import Options, build
from podium.cli.error_report import USAGE_ERROR

_ENDS = {"&&", "||", ";", "|", "&"}
_REDIRECTS = {">", ">>", "<"}
_DONE_WHEN_READ = (["--install-completion"], ["--show-completion"])
"""Options that typer performs while it reads them; the first writes to the home folder."""


def commands(text: str) -> Iterator[list[str]]:
    """Each command in lines of shell, as its arguments; a line may begin with the prompt `$ `."""
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line.removeprefix("$ "), posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        argv: list[str] = []
        before = ""
        for token in [*lexer, "&&"]:
            if token not in _ENDS | _REDIRECTS and before not in _REDIRECTS:
                argv.append(token)
            elif token in _ENDS and argv:
                yield argv
                argv = []
            before = token


def usage_problem(argv: list[str]) -> str:
    """Why `podium` with these arguments is refused before anything is done; empty when it is not."""
    command: Any = build()
    if argv[:1] in _DONE_WHEN_READ:
        return "" if any(argv[0] in option.opts for option in command.params) else "no such option"
    try:
        with redirect_stdout(io.StringIO()):  # --help prints
            context = command.make_context("podium", argv, obj=Options())
            while isinstance(command, TyperGroup):
                rest = [*context._protected_args, *context.args]
                if not rest:
                    break
                name, command, rest = command.resolve_command(context, rest)
                context = command.make_context(name, rest, parent=context, obj=context.obj)
    except typer.Exit:
        return ""
    except USAGE_ERROR as problem:
        return str(problem)
    return ""
