"""The paths a simple command names, as far as its words show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from podium.domain.gating import Access, BuiltInRule, Tier
from podium.gate import programs
from podium.gate.places import HARMLESS_PATHS, Touch, relative_to, resolve
from podium.gate.programs import Kind
from podium.gate.refusing import Refused
from podium.gate.wrappers import SimpleCommand

_MOST_FOLDERS = 16


@dataclass(frozen=True, slots=True)
class Standing:
    """Where commands run: the workspace, and every folder a `cd` may have led to."""

    root: str
    folders: tuple[str, ...]

    def touch(self, word: str, access: Access | None) -> Touch:
        """A word taken as a path. `~` at its start is somebody's home, never the workspace."""
        places = ("/",) if word.startswith("~") else self.folders
        return Touch(word, tuple(resolve(word, folder) for folder in places), access)

    def holds(self, word: str) -> bool:
        return all(
            relative_to(path, self.root) is not None for path in self.touch(word, None).paths
        )

    def after(self, command: SimpleCommand) -> Standing:
        """Where the next command runs. After `cd` both places count: it may fail."""
        if command.program != "cd":
            return self
        plain = [word for word in command.argv[1:] if word not in ("-L", "-P", "--")]
        if len(plain) != 1 or plain[0].startswith("-") or not self.holds(plain[0]):
            raise Refused(
                BuiltInRule.OUTSIDE_WORKSPACE,
                "cd may only go to one folder in the workspace",
                Tier.T2,
            )
        reached = self.touch(plain[0], None).paths
        folders = tuple(dict.fromkeys((*self.folders, *reached)))
        if len(folders) > _MOST_FOLDERS:
            raise Refused(BuiltInRule.UNDECIDABLE_COMMAND, "too many cd in one line; use fewer")
        return Standing(self.root, folders)


def touches_of(command: SimpleCommand, kind: Kind, standing: Standing) -> Iterator[Touch]:
    program, arguments = command.basename, command.argv[1:]
    if kind in (Kind.WRITE, Kind.DELETE):
        yield from _written(program, arguments, kind, standing)
    if command.program in programs.SILENT:
        return
    if kind is Kind.READ and program in programs.PATTERN_FIRST:
        arguments = _without_pattern(arguments)
    access = Access.READ if kind in (Kind.READ, Kind.WRITE, Kind.DELETE) else None
    for word in arguments:
        for part in path_parts(word):
            if part not in HARMLESS_PATHS:
                yield standing.touch(part, access)


def _written(
    program: str, arguments: Sequence[str], kind: Kind, standing: Standing
) -> Iterator[Touch]:
    """The paths a file program writes to. A target named by an option counts as well."""
    if program == "dd":
        for word in arguments:
            if word.startswith("of="):
                yield standing.touch(word[3:], Access.WRITE)
        return
    valued = (programs.WRITERS | programs.DELETERS)[program].split()
    plain = _plain_words(arguments, valued)
    if program in programs.MODE_FIRST:
        plain = plain[1:]
    if program in programs.TARGET_LAST and not any(
        word.startswith(("-t", "--t")) for word in arguments
    ):
        plain = plain[-1:]
    for at, word in enumerate(plain):
        moved = kind is Kind.DELETE or (program == "mv" and at < len(plain) - 1)
        yield standing.touch(word, Access.DELETE if moved else Access.WRITE)
    for word in arguments:
        if word.startswith(("--target-directory=", "-t")) and len(word) > 2:
            yield standing.touch(word.partition("=")[2] or word[2:], Access.WRITE)


def _plain_words(arguments: Sequence[str], valued: Sequence[str]) -> list[str]:
    plain: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == "--":
            plain.extend(words)
        elif word in valued:
            next(words, None)
        elif not word.startswith("-") or word == "-":
            plain.append(word)
    return plain


def _without_pattern(arguments: Sequence[str]) -> tuple[str, ...]:
    if any(word.startswith(("-e", "-f", "--regexp", "--file", "--from")) for word in arguments):
        return tuple(arguments)
    for at, word in enumerate(arguments):
        if not word.startswith("-"):
            return (*arguments[:at], *arguments[at + 1 :])
    return tuple(arguments)


def path_parts(word: str) -> Iterator[str]:
    """The parts of a word that may be paths: itself, an option's value, what follows `=` or `:`."""
    if word.startswith("--"):
        word = word.partition("=")[2]
    elif word.startswith("-"):
        word = word[2:].removeprefix("=")
    if not word:
        return
    yield word
    for sign in "=:@":
        _, found, after = word.partition(sign)
        is_host = sign == ":" and after.startswith("//") and not after.startswith("///")
        if found and after and not is_host:
            yield after
