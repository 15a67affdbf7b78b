"""A shell line as data: simple commands with arguments, variables and redirections, and the error for unreadable ones."""

from __future__ import annotations

import re
from typing import NamedTuple

from podium.core.decisions import Access, Tier

# A line may not hold these characters, so in a word that was read they can mean nothing else.
COMPUTED = "\0"
"""Stands in a word for text that is only known when the line runs."""
ANY = "\x01"
"""Stands in a word for the wildcards of a glob."""
DERIVED = "\x02"
"""Ends a word that was worked out of variables, braces or escapes: known, and not written as such."""

SYSTEM_FOLDERS = frozenset(
    {"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/opt/homebrew/bin"}
)


class Objection(NamedTuple):
    """The reason why a line, or a part of it, may not be run, as data: `CallDenied` that is kept."""

    rule: str
    reason: str
    tier: Tier = Tier.T4


class Redirect(NamedTuple):
    """A file that the shell itself opens for a command."""

    target: str
    access: Access


class WrittenCommand(NamedTuple):
    """A simple command as it stands in the script, its wrappers still on."""

    argv: tuple[str, ...]
    assignments: tuple[tuple[str, str], ...]
    redirects: tuple[Redirect, ...]
    scope: tuple[int, ...]
    after_success: bool
    fed: bool
    script: str | None


class SimpleCommand(NamedTuple):
    """A program with its arguments, nothing wrapped around it. Made by `simple_command`."""

    argv: tuple[str, ...]
    """Empty when the command only sets variables or opens files."""
    program: str
    """`git` for `git` and `/usr/bin/git`; a program elsewhere keeps its path: `./git`."""
    basename: str
    """The last part of the program's path in lower case, wherever it stands."""
    computed: bool
    """True if a word of it, or the name of a file it is given, is only known when it runs."""
    variables: tuple[tuple[str, str], ...] = ()
    redirects: tuple[Redirect, ...] = ()
    scope: tuple[int, ...] = ()
    """The subshells it stands in: a `cd` holds to the end of its own."""
    after_success: bool = False
    """It runs only if the command before it succeeded."""
    outer_argv: tuple[str, ...] = ()
    """The words it was wrapped in, as they were given."""


class ParsedLine(NamedTuple):
    """A line, read."""

    commands: tuple[SimpleCommand, ...] = ()
    written: tuple[WrittenCommand, ...] = ()
    """The commands as they stand in the line."""
    unclear: str = ""
    """The reason why it could not be read at all."""
    refusal: Objection | None = None
    """The objection to it under every policy."""
    beyond_plain: Objection | None = None
    """The first thing in it that only a confined run may do: its effect shows when it runs."""
    unsteady: bool = False
    """It has functions or loops that change folders: every folder counts for every command."""


def simple_command(
    argv: tuple[str, ...],
    variables: tuple[tuple[str, str], ...] = (),
    redirects: tuple[Redirect, ...] = (),
    scope: tuple[int, ...] = (),
    after_success: bool = False,
    wrapper: tuple[str, ...] = (),
) -> SimpleCommand:
    """A command with what follows from its words."""
    first = argv[0] if argv else ""
    text = "".join(argv[1:]) + "".join(redirect.target for redirect in redirects)
    return SimpleCommand(
        argv,
        program_name(first),
        first.rpartition("/")[2].lower(),
        COMPUTED in text or ANY in text,
        variables,
        redirects,
        scope,
        after_success,
        wrapper,
    )


def program_name(path: str) -> str:
    folder, slash, name = path.rpartition("/")
    return name if slash and folder in SYSTEM_FOLDERS else path


def printable(token: str) -> str:
    """A word for people: what is only known when it runs stands as `…`."""
    return token.replace(COMPUTED, "…").replace(ANY, "*").removesuffix(DERIVED)


def plainly(token: str) -> str:
    """The word without the mark that it was worked out."""
    return token.removesuffix(DERIVED)


_INVISIBLE = re.compile(r"invisible character U\+([0-9A-F]{4,6})")


class Unclear(Exception):
    """This line may mean something that its text does not show. Answered inside the reader."""


def unreadable(why: str) -> str:
    """The reason of a denial, with what to do about it."""
    advice = "split it into plain commands without shell features and run them one by one"
    if match := _INVISIBLE.search(why):
        # Escapes do not help everybody: some programs decode them before they pass the command on.
        advice = f"remove the character, or write it by its code point, as `chr(0x{match[1]})` in a script"
    return f"the command cannot be checked reliably: {why}; {advice}"
