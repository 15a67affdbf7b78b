"""Examples in the help of every command: two at least, and each is a command line that is accepted."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

from podium.cli.app import build

_EXAMPLES = re.compile(r"^ *Example:\n(.*)", re.MULTILINE | re.DOTALL)


def _commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if hasattr(command, "list_commands"):
            yield from _commands(command, (*path, name))
        else:
            yield (*path, name), command


def _examples(command: Any) -> list[str]:
    found = _EXAMPLES.search((command.help or "").replace("\b", ""))
    lines = found[1].splitlines() if found else []
    return [line.strip() for line in lines if "podium " in line]


def _arguments(example: str) -> list[str]:
    """The arguments of `podium` in a line of shell."""
    lexer = shlex.shlex(example, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = [*lexer]
    words = words[words.index("podium") + 1 :]
    return [*takewhile(lambda word: word[0] not in "&|<>", words)]


def _parse(arguments: list[str]) -> None:
    """Parse a command line as its command would. Raises for what it does not accept."""
    command: Any = build()
    context, name = None, "podium"
    while True:
        context = command.make_context(name, arguments, parent=context)
        if not hasattr(command, "list_commands"):
            return
        arguments = [*context._protected_args, *context.args]
        name, command, arguments = command.resolve_command(context, arguments)


def test_every_command_has_two_examples() -> None:
    few = [" ".join(path) for path, command in _commands(build()) if len(_examples(command)) < 2]
    assert few == []


def test_every_example_is_accepted() -> None:
    refused = {}
    for _, command in _commands(build()):
        for example in _examples(command):
            try:
                _parse(_arguments(example))
            except Exception as error:
                refused[example] = repr(error)
    assert refused == {}
