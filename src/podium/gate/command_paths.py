"""The paths a simple command names, as far as its words show."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from podium.domain.gating import Access, BuiltInRule
from podium.gate import programs
from podium.gate.places import HARMLESS_PATHS, Touch, relative_to, resolve
from podium.gate.programs import Kind
from podium.gate.refusing import Refused
from podium.gate.shell import ANY, COMPUTED, SimpleCommand, plainly, shown

_MOST_LETTERS = 32
"""Options bundled in one word; of more, each of which may begin a value, none is read."""
_BUNDLE = re.compile(r"-([A-Za-z0-9]*)")
_WHOLE = re.compile(r"[A-Za-z0-9_./~+][A-Za-z0-9_./~+-]*")
"""A word with nothing in it that could part it."""
_JOINTS = re.compile(r"://(?!/)|[=:@]")
"""What parts a name from a path in one word. Behind `://` stands a host."""
_ALL_JOINTS = re.compile(r"""://(?!/)|[=:@,;|\s"'(){}\[\]]""")
"""The same for programs that may have a grammar of their own for their words."""


class Standing(NamedTuple):
    """Where a command runs: the workspace, and every folder a `cd` may have led to."""

    root: str
    folders: tuple[str, ...]
    known: bool = True
    """False: a `cd` led somewhere that is only known when it runs."""

    def touch(self, word: str, access: Access | None, *, whole: bool = False) -> Touch:
        """A word taken as a path. `~` at its start is somebody's home, never the workspace."""
        # What is only known when it runs is taken for any name in the folder before it.
        path = plainly(word).replace(COMPUTED, ANY)
        places = ("/",) if path.startswith("~") else self.folders
        paths = tuple([resolve(path, folder) for folder in places])
        return Touch(shown(word), paths, access, whole)

    def holds(self, word: str) -> bool:
        return all(
            relative_to(path, self.root) is not None for path in self.touch(word, None).paths
        )


def unknown_place(word: str) -> bool:
    """Whether not even the beginning of a path is known."""
    return word.startswith(COMPUTED)


def touches_of(command: SimpleCommand, kind: Kind, standing: Standing) -> Iterator[Touch]:
    program, arguments = command.basename, command.argv[1:]
    if kind is Kind.DELETE and program in programs.DELETERS:
        yield from _removed(program, arguments, standing)
    if command.program in programs.SILENT:
        return
    if kind is Kind.READ and program in programs.PATTERN_FIRST:
        arguments = _without_pattern(arguments)
    access = Access.READ if kind in (Kind.READ, Kind.DELETE) else None
    for word in arguments:
        for part in path_parts(word, own_grammar=access is None):
            if part not in HARMLESS_PATHS and not unknown_place(part):
                yield standing.touch(part, access)


def _removed(program: str, arguments: Sequence[str], standing: Standing) -> Iterator[Touch]:
    if program == "dd":
        for word in arguments:
            if word.startswith("of="):
                yield standing.touch(word[3:], Access.WRITE)
        return
    for word in _plain_words(arguments, programs.DELETERS[program].split()):
        if not unknown_place(word):
            yield removal(word, standing)


def removal(word: str, standing: Standing) -> Touch:
    """Removing what a word names: all names in a folder are the folder itself."""
    folder, slash, name = plainly(word).rpartition("/")
    if ANY in name and not name.strip(f"{ANY}."):
        word = f"{folder}{slash}" if folder or slash else "."
    return standing.touch(word, Access.DELETE, whole=True)


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
    """The words without a pattern that stands first; all of them where an option may hold it."""
    if any(_may_hold_pattern(word) for word in arguments):
        return tuple(arguments)
    for at, word in enumerate(arguments):
        if not word.startswith("-"):
            # Behind a long option it may be that option's value.
            is_value = at > 0 and arguments[at - 1].startswith("--") and arguments[at - 1] != "--"
            return tuple(arguments) if is_value else (*arguments[:at], *arguments[at + 1 :])
    return tuple(arguments)


def _may_hold_pattern(word: str) -> bool:
    """`-e`, `-f`, bundles with them, `--regexp` and `--file`, also cut short."""
    if not word.startswith("-") or word == "--":
        return False
    bare = word.partition("=")[0]
    if not word.startswith("--"):
        return "e" in word or "f" in word
    return bare.startswith("--from") or "--regexp".startswith(bare) or "--file".startswith(bare)


def path_parts(word: str, *, own_grammar: bool = False) -> Iterator[str]:
    """The parts of a word that may be paths: itself, an option's value, what follows `=` or `:`.

    Raises `Refused` for a bundle of so many options that it cannot be read.
    """
    if _WHOLE.fullmatch(word):
        yield word
        return
    if unknown_place(word):
        return
    values = tuple(_values(word))
    found = dict.fromkeys(values)
    for value in values[:1]:
        for sign in "=:@":
            _, parted, after = value.partition(sign)
            is_host = sign == ":" and after.startswith("//") and not after.startswith("///")
            if parted and after and not is_host:
                found[after] = None
        for piece in (_ALL_JOINTS if own_grammar else _JOINTS).split(value):
            found.update(dict.fromkeys(_values(piece)))
    yield from found


def _values(word: str) -> Iterator[str]:
    """A plain word, or what may be an option's value in it: any end of a bundle may be."""
    if word.startswith("--"):
        word = word.partition("=")[2]
    elif bundle := _BUNDLE.match(word):
        letters = bundle.end(1)
        if letters > _MOST_LETTERS:
            raise Refused(
                BuiltInRule.UNDECIDABLE_COMMAND,
                f"the option {word[:_MOST_LETTERS]!r}… has too many letters to be read; shorten it",
            )
        for at in range(2, letters):
            yield word[at:]
        word = word[max(letters, 2) :].removeprefix("=")
    if word:
        yield word
