"""Paths that a simple command names, writes or removes.

A form is understood when every option is one of a few, exactly spelled. Anything else, such as a
bundle, an option cut short or `-t`, may mean another target than its words show: no allow rule for
writing fits it then, and all of its words count as written to.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from podium.core.decisions import Access, BuiltInRule
from podium.policy import programs
from podium.policy.programs import CommandKind
from podium.policy.refusal import CallDenied
from podium.policy.shell import ANY, COMPUTED, SimpleCommand, plainly, shown
from podium.policy.shell.wrappers import found_name, places
from podium.policy.zones import HARMLESS_PATHS, TouchedPath, relative_to, resolve

_MAX_LETTERS = 32
"""Options bundled in one word; of more, each of which may begin a value, none is read."""
_BUNDLE = re.compile(r"-([A-Za-z0-9]*)")
_WHOLE = re.compile(r"[A-Za-z0-9_./~+][A-Za-z0-9_./~+-]*")
"""A word with nothing in it that could part it."""
_JOINTS = re.compile(r"://(?!/)|[=:@]")
"""What parts a name from a path in one word. Behind `://` stands a host."""
_ALL_JOINTS = re.compile(r"""://(?!/)|[=:@,;|\s"'(){}\[\]]""")
"""The same for programs that may have a grammar of their own for their words."""


class CommandLocation(NamedTuple):
    """Where a command runs: the workspace, and every folder a `cd` may have led to."""

    root: str
    folders: tuple[str, ...]
    known: bool = True
    """False: a `cd` led somewhere that is only known when it runs."""

    def touch(self, word: str, access: Access | None, *, whole: bool = False) -> TouchedPath:
        """A word taken as a path. `~` at its start is somebody's home, never the workspace."""
        # What is only known when it runs is taken for any name in the folder before it.
        path = plainly(word).replace(COMPUTED, ANY)
        places = ("/",) if path.startswith("~") else self.folders
        paths = tuple([resolve(path, folder) for folder in places])
        return TouchedPath(shown(word), paths, access, whole)

    def holds(self, word: str) -> bool:
        return all(
            relative_to(path, self.root) is not None for path in self.touch(word, None).paths
        )


def unknown_place(word: str) -> bool:
    """Whether not even the beginning of a path is known."""
    return word.startswith(COMPUTED)


def touches_of(
    command: SimpleCommand, kind: CommandKind, location: CommandLocation
) -> Iterator[TouchedPath]:
    program, arguments = command.basename, command.argv[1:]
    if kind is CommandKind.DELETE and program in programs.DELETERS:
        yield from _removed(program, arguments, location)
    if command.program in programs.SILENT:
        return
    if kind is CommandKind.READ and program in programs.PATTERN_FIRST:
        arguments = _without_pattern(arguments)
    access = Access.READ if kind in (CommandKind.READ, CommandKind.DELETE) else None
    for word in arguments:
        for part in path_parts(word, own_grammar=access is None):
            if part not in HARMLESS_PATHS and not unknown_place(part):
                yield location.touch(part, access)


def _removed(
    program: str, arguments: Sequence[str], location: CommandLocation
) -> Iterator[TouchedPath]:
    if program == "dd":
        for word in arguments:
            if word.startswith("of="):
                yield location.touch(word[3:], Access.WRITE)
        return
    for word in _plain_words(arguments, programs.DELETERS[program].split()):
        if not unknown_place(word):
            yield removal(word, location)


def removal(word: str, location: CommandLocation) -> TouchedPath:
    """Removing what a word names: all names in a folder are the folder itself."""
    folder, slash, name = plainly(word).rpartition("/")
    if ANY in name and not name.strip(f"{ANY}."):
        word = f"{folder}{slash}" if folder or slash else "."
    return location.touch(word, Access.DELETE, whole=True)


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

    Raises `CallDenied` for a bundle of so many options that it cannot be read.
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
        if letters > _MAX_LETTERS:
            raise CallDenied(
                BuiltInRule.UNDECIDABLE_COMMAND,
                f"the option {word[:_MAX_LETTERS]!r}… has too many letters to be read; shorten it",
            )
        for at in range(2, letters):
            yield word[at:]
        word = word[max(letters, 2) :].removeprefix("=")
    if word:
        yield word


_WRITING_ACTIONS = ("-fprint", "-fls")


def removes_folders(command: SimpleCommand) -> str:
    """The word with which a command goes through whole folders; empty when it does not."""
    if command.basename not in programs.RECURSIVE:
        return ""
    for word in command.argv[1:]:
        if word == "--":
            break
        bundled = word.startswith("-") and not word.startswith("--") and set("rR") & set(word)
        if command.basename == "rm":
            recursive = bundled or word.startswith(("--r", "--no-preserve-root"))
        else:
            recursive = (bundled and "R" in word) or word.startswith("--rec")
        if recursive:
            return word
    return ""


def finds_and_removes(command: SimpleCommand) -> bool:
    return "-delete" in command.argv


def removed_by_find(command: SimpleCommand, location: CommandLocation) -> Iterator[TouchedPath]:
    """What `find` itself removes and writes: all it searches, or what its tests let through."""
    words = command.argv
    for at, word in enumerate(words[:-1]):
        if word.startswith(_WRITING_ACTIONS) and not unknown_place(words[at + 1]):
            yield location.touch(words[at + 1], Access.WRITE)
    if finds_and_removes(command):
        name = found_name(words)
        for place in places(words):
            if not unknown_place(place):
                yield removal(f"{place.rstrip('/')}/{name}" if name else place, location)


def refuse_ruin(
    command: SimpleCommand, touches: Sequence[TouchedPath], location: CommandLocation
) -> None:
    """Raise `CallDenied` when the whole workspace, or nobody knows what, would be removed or changed."""
    recursive = removes_folders(command)
    if not recursive and command.program != "find" and not any(t.changes for t in touches):
        return
    if recursive and command.basename != "rm":
        touches = [
            location.touch(word, Access.DELETE) for word in command.argv[2:] if word[:1] != "-"
        ]
    searched = (
        places(command.argv) if command.program == "find" and finds_and_removes(command) else ()
    )
    unknown = [word for word in command.argv[1:] if recursive and unknown_place(word)]
    if unknown or any(map(unknown_place, searched)):
        raise CallDenied(
            BuiltInRule.DESTRUCTIVE_COMMAND,
            f"what {command.basename} {recursive or '-delete'} would go through is only known when it runs; "
            "write the folder out",
        )
    if recursive and not location.known and any(_relative(word) for word in command.argv[1:]):
        raise CallDenied(
            BuiltInRule.DESTRUCTIVE_COMMAND,
            f"where {command.basename} {recursive} would run is not known; write the cd out",
        )
    for touch in touches:
        if touch.access is Access.DELETE and any(
            _above(path, location.root) for path in touch.paths
        ):
            raise CallDenied(
                BuiltInRule.DESTRUCTIVE_COMMAND,
                f"{command.basename} would take the whole workspace; name what is to go",
            )


def _relative(word: str) -> bool:
    return not word.startswith(("-", "/", "~"))


def _above(path: str, root: str) -> bool:
    return bool(root) and (path == root or root.startswith(path.rstrip("/") + "/"))


_MODE = re.compile(r"0?[0-7]{3}|[ugoa]*[-+=][rwxX]*(,[ugoa]*[-+=][rwxX]*)*")
"""Permissions for `chmod` that give no program another user's rights."""
_RECURSIVE = frozenset({"-r", "-R", "-a"})


def understood(command: SimpleCommand) -> bool:
    """Whether the command's words show for certain what it writes."""
    known = programs.WRITERS[command.program]
    if known is None:
        return False
    options, operands = _parted(command.argv[1:])
    if not known.issuperset(options):
        return False
    if command.program == "chmod":
        return len(operands) > 1 and _MODE.fullmatch(operands[0]) is not None
    return command.program not in programs.TARGET_LAST or len(operands) > 1


def writer_touches(command: SimpleCommand, location: CommandLocation) -> Iterator[TouchedPath]:
    """The paths a program of `WRITERS` touches."""
    if not understood(command):
        yield from _in_doubt(command, location)
        return
    options, operands = _parted(command.argv[1:])
    if command.program == "mv":
        yield from moved(operands, location)
    elif command.program == "cp":
        yield from _copied(operands, location, whole=not _RECURSIVE.isdisjoint(options))
    else:
        for word in operands[1:] if command.program == "chmod" else operands:
            yield location.touch(word, Access.WRITE)


def moved(operands: Sequence[str], location: CommandLocation) -> Iterator[TouchedPath]:
    """What moving touches: the last operand is the target, which may be a folder."""
    *sources, target = operands
    for source in sources:
        yield location.touch(source, Access.DELETE, whole=True)
        yield location.touch(_landing(source, target), Access.WRITE, whole=True)
    surely_folder = len(sources) > 1 or _last_part(target) in (".", "..")
    yield location.touch(target, Access.WRITE, whole=not surely_folder)


def _copied(
    operands: Sequence[str], location: CommandLocation, *, whole: bool
) -> Iterator[TouchedPath]:
    *sources, target = operands
    for source in sources:
        yield location.touch(source, Access.READ, whole=whole)
        yield location.touch(_landing(source, target), Access.WRITE, whole=whole)
    yield location.touch(target, Access.WRITE, whole=whole)


def _landing(source: str, target: str) -> str:
    """Where a source comes to lie when the target is a folder."""
    name = _last_part(source)
    return target if name in (".", "..") else posixpath.join(target or ".", name)


def _last_part(word: str) -> str:
    return posixpath.basename(word.rstrip("/"))


def _in_doubt(command: SimpleCommand, location: CommandLocation) -> Iterator[TouchedPath]:
    program, arguments = command.program, command.argv[1:]
    options, operands = _parted(arguments)
    # A link may lead anywhere a person says yes to, but it is made in the workspace.
    links = program == "ln" and not any("t" in option for option in options)
    valued = programs.WRITER_VALUES.get(program, frozenset())
    previous = ""
    for word in arguments:
        for part in path_parts(word):
            if previous in valued:
                yield location.touch(part, Access.READ)
                continue
            yield location.touch(part, None if links else Access.WRITE, whole=True)
            if program == "mv":
                yield location.touch(part, Access.DELETE, whole=True)
        previous = word
    if links and operands:
        yield location.touch(operands[-1], Access.WRITE)


def _parted(arguments: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Options and operands. Behind `--` all words are operands."""
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    options = tuple(word for word in arguments[:cut] if word.startswith("-") and word != "-")
    operands = tuple(word for word in arguments[:cut] if not word.startswith("-") or word == "-")
    return options, (*operands, *arguments[cut + 1 :])
