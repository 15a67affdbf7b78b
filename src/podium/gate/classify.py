"""Reads one simple command: what kind it is, which paths it names, how risky that makes it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from podium.domain.gating import Access, BuiltInRule, Tier, TierTerm
from podium.gate import programs
from podium.gate.command_paths import Standing, path_parts, touches_of
from podium.gate.commands import ASSIGNMENT
from podium.gate.git import RULE as GIT_RULE
from podium.gate.git import read_git
from podium.gate.places import Touch
from podium.gate.programs import Kind
from podium.gate.refusing import Refused
from podium.gate.variables import weigh_variable
from podium.gate.wrappers import SHELLS, SimpleCommand, assignment
from podium.gate.writers import moved, understood, writer_touches

_JQ_LOADING = re.compile(r"\b(import|include|env|ENV)\b")
"""Words of jq's language that read other files, or the environment."""


@dataclass(frozen=True)
class CommandUse:
    """A simple command, read."""

    command: SimpleCommand
    kind: Kind
    touches: tuple[Touch, ...]
    terms: tuple[TierTerm, ...]
    perhaps: Kind | None = None
    """What it may do in a form that is not understood: allow rules do not go by it, others do."""
    given: tuple[str, ...] = ()
    """The words it was wrapped in, as they were given."""

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Program and arguments: all that allow rules see."""
        return (self.command.program, *self.command.argv[1:])

    @cached_property
    def readings(self) -> tuple[tuple[str, ...], ...]:
        """What deny and ask rules see: also the program by its bare name, and any wrapper."""
        plain = (self.command.basename, *self.command.argv[1:])
        return tuple(dict.fromkeys((self.words, plain, self.given)))


def read_command(command: SimpleCommand, standing: Standing) -> CommandUse:
    """Classify a command. Raises `Refused` for what is denied under every policy."""
    terms = [*_variable_terms(command.variables)]
    if not command.argv:
        return CommandUse(command, Kind.OTHER, (), tuple(terms))
    _refuse_by_name(command)
    if command.basename == "git":
        return _read_git(command, standing, terms)
    if command.program in programs.EXPORTING:
        terms += _variable_terms(
            assignment(word) for word in command.argv[1:] if ASSIGNMENT.match(word)
        )
    kind = _kind(command)
    terms += _kind_terms(command, kind)
    if command.program in programs.WRITERS:
        touches = tuple(writer_touches(command, standing))
        return CommandUse(command, kind, touches, tuple(terms), perhaps=Kind.WRITE)
    return CommandUse(command, kind, tuple(touches_of(command, kind, standing)), tuple(terms))


def _variable_terms(variables: Iterable[tuple[str, str]]) -> Iterator[TierTerm]:
    for name, value in variables:
        weight = weigh_variable(name, value)
        if weight == "dangerous":
            raise Refused(
                BuiltInRule.DANGEROUS_VARIABLE,
                f"the variable {name} changes which programs run or what they load; leave it out",
            )
        if weight == "unknown":
            yield TierTerm(tier=Tier.T2, because=f"sets {name}, whose effect is not known")


def _refuse_by_name(command: SimpleCommand) -> None:
    name = command.basename
    if name in programs.PRIVILEGED:
        raise Refused(
            BuiltInRule.PRIVILEGE, f"{name} works with another user's rights; do without it"
        )
    if name in programs.SHELL_STATE:
        raise Refused(
            BuiltInRule.SHELL_INDIRECTION, f"{name} changes the shell itself; do without it"
        )
    if name in programs.INDIRECT or name.startswith(programs.LOADER_BEGINNINGS):
        raise Refused(
            BuiltInRule.SHELL_INDIRECTION,
            f"{name} starts commands that its words do not show; run them one by one",
        )
    if name in programs.RUINOUS or name.startswith(programs.RUINOUS_BEGINNINGS):
        raise Refused(
            BuiltInRule.DESTRUCTIVE_COMMAND, f"{name} destroys what cannot be brought back"
        )
    if name.startswith("git-") or (name == "git" and command.program != "git"):
        raise Refused(
            GIT_RULE, f"{command.argv[0]!r}: call the system's git as `git <command>`", Tier.T2
        )
    if name in SHELLS and not _runs_a_file(command.argv):
        raise Refused(
            BuiltInRule.SHELL_INDIRECTION, f"{name} would read commands that are not shown here"
        )


def _runs_a_file(argv: Sequence[str]) -> bool:
    return len(argv) > 1 and not argv[1].startswith(("-", "+", "/dev/", "/proc/"))


def _read_git(command: SimpleCommand, standing: Standing, terms: Sequence[TierTerm]) -> CommandUse:
    if not standing.holds("."):
        raise Refused(GIT_RULE, "git may only run inside the workspace", Tier.T2)
    use = read_git(command.argv[1:], standing.holds)
    if use.folder is not None:
        standing = Standing(standing.root, standing.touch(use.folder, None).paths)
    if standing.folders != (standing.root,):
        because = "a folder may be a repository of its own, whose settings start programs"
        terms = (*terms, TierTerm(tier=Tier.T2, because=because))
    access = Access.WRITE if use.writes else Access.READ
    touches = tuple(standing.touch(part, access) for word in use.words for part in path_parts(word))
    if len(use.moved) > 1:
        touches = (*touches, *moved(use.moved, standing))
    kind = Kind.GIT_WRITE if use.writes else Kind.GIT_READ
    return CommandUse(command, kind, touches, (*terms, *use.terms))


def _kind(command: SimpleCommand) -> Kind:
    program, name = command.program, command.basename
    _refuse_recursion(command)
    if name in programs.REACHING:
        return Kind.NETWORK
    if name in programs.INSTALLING or _installs(name, command.argv):
        return Kind.INSTALL
    if name in programs.DELETERS:
        return Kind.DELETE
    if program in programs.WRITERS:
        return Kind.WRITE if understood(command) else Kind.OTHER
    if program in programs.READERS and not _does_more(program, command.argv[1:]):
        return Kind.READ
    return Kind.OTHER


def _installs(name: str, argv: Sequence[str]) -> bool:
    plain = [word for word in argv[1:] if not word.startswith("-")]
    if name.startswith("python") and argv[1:3] == ("-m", "pip"):
        return True
    words = programs.INSTALLING_WORDS.get(name)
    if words is None:
        return False
    # `yarn` alone installs.
    return (plain[0] in words) if plain else name == "yarn"


def _does_more(program: str, arguments: Sequence[str]) -> bool:
    """Whether a reader is used in a form that also writes or starts something."""
    if program == "find" and any(word.startswith(programs.FIND_ACTIONS) for word in arguments):
        raise Refused(
            BuiltInRule.DESTRUCTIVE_COMMAND,
            "find may only list here: no -exec, -ok, -delete or -fprint",
        )
    if program == "uniq":  # Its second plain word is written to.
        return any(not word.startswith("-") for word in arguments)
    if program == "jq" and any(_JQ_LOADING.search(word) for word in arguments):
        return True
    letters, beginnings = programs.READERS[program]
    return any(
        bool(set(letters) & set(word)) if not word.startswith("--") else word.startswith(beginnings)
        for word in arguments
        if word.startswith("-")
    )


def _refuse_recursion(command: SimpleCommand) -> None:
    if command.basename not in programs.RECURSIVE:
        return
    for word in command.argv[1:]:
        if word == "--":
            break
        bundled = word.startswith("-") and not word.startswith("--") and set("rR") & set(word)
        if command.basename == "rm":
            recursive = bundled or word.startswith(("--r", "--no-preserve-root"))
        else:
            recursive = (bundled and "R" in word) or word.startswith("--rec")
        if recursive:
            raise Refused(
                BuiltInRule.DESTRUCTIVE_COMMAND,
                f"{command.basename} {word} goes through whole folders; name the files one by one",
            )


def _kind_terms(command: SimpleCommand, kind: Kind) -> Iterator[TierTerm]:
    name = command.basename
    if kind is Kind.NETWORK:
        yield TierTerm(tier=programs.REACHING[name], because=f"{name} reaches beyond this machine")
    elif kind is Kind.INSTALL:
        yield TierTerm(tier=Tier.T2, because=f"{name} brings code from elsewhere")
    elif kind is Kind.DELETE:
        yield TierTerm(tier=Tier.T2, because=f"{name} removes or overwrites what is there")
