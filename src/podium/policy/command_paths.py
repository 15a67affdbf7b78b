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
from podium.policy.shell import ANY, COMPUTED, SimpleCommand, plainly, printable
from podium.policy.shell.wrappers import name_glob, search_paths
from podium.policy.zones import HARMLESS_PATHS, TouchedPath, relative_to, resolve

_MAX_OPTION_BUNDLE = 32
"""Options bundled in one word; of more, each of which may begin a value, none is read."""
_BUNDLE = re.compile(r"-([A-Za-z0-9]*)")
_WHOLE = re.compile(r"[A-Za-z0-9_./~+][A-Za-z0-9_./~+-]*")
"""A word with nothing in it that could part it."""
_JOINTS = re.compile(r"://(?!/)|[=:@]")
"""Separators between a name and a path in one word. Behind `://` stands a host."""
_ALL_JOINTS = re.compile(r"""://(?!/)|[=:@,;|\s"'(){}\[\]]""")
"""The same for programs that may have a grammar of their own for their words."""


class CommandLocation(NamedTuple):
    """The folders a command may run in: the workspace, and every folder a `cd` may have led to."""

    root: str
    folders: tuple[str, ...]
    is_certain: bool = True
    """False: a `cd` led somewhere that is only known when it runs."""

    def touch(self, token: str, access: Access | None, *, whole: bool = False) -> TouchedPath:
        """A word taken as a path. `~` at its start is somebody's home, never the workspace."""
        # What is only known when it runs is taken for any name in the folder before it.
        path = plainly(token).replace(COMPUTED, ANY)
        folders = ("/",) if path.startswith("~") else self.folders
        paths = tuple([resolve(path, folder) for folder in folders])
        return TouchedPath(printable(token), paths, access, whole)

    def holds(self, token: str) -> bool:
        return all(
            relative_to(path, self.root) is not None for path in self.touch(token, None).paths
        )


def is_computed(token: str) -> bool:
    """Tell whether not even the beginning of a path is known."""
    return token.startswith(COMPUTED)


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
    for argument in arguments:
        for part in path_parts(argument, own_grammar=access is None):
            if part not in HARMLESS_PATHS and not is_computed(part):
                yield location.touch(part, access)


def _removed(
    program: str, arguments: Sequence[str], location: CommandLocation
) -> Iterator[TouchedPath]:
    if program == "dd":
        for argument in arguments:
            if argument.startswith("of="):
                yield location.touch(argument[3:], Access.WRITE)
        return
    for argument in _operands(arguments, programs.DELETERS[program].split()):
        if not is_computed(argument):
            yield removal(argument, location)


def removal(token: str, location: CommandLocation) -> TouchedPath:
    """Removing what a word names: all names in a folder are the folder itself."""
    folder, slash, name = plainly(token).rpartition("/")
    if ANY in name and not name.strip(f"{ANY}."):
        token = f"{folder}{slash}" if folder or slash else "."
    return location.touch(token, Access.DELETE, whole=True)


def _operands(arguments: Sequence[str], valued: Sequence[str]) -> list[str]:
    plain: list[str] = []
    tokens = iter(arguments)
    for argument in tokens:
        if argument == "--":
            plain.extend(tokens)
        elif argument in valued:
            next(tokens, None)
        elif not argument.startswith("-") or argument == "-":
            plain.append(argument)
    return plain


def _without_pattern(arguments: Sequence[str]) -> tuple[str, ...]:
    """The words without a pattern that stands first; all of them where an option may hold it."""
    if any(_may_hold_pattern(argument) for argument in arguments):
        return tuple(arguments)
    for at, argument in enumerate(arguments):
        if not argument.startswith("-"):
            # Behind a long option it may be that option's value.
            is_value = at > 0 and arguments[at - 1].startswith("--") and arguments[at - 1] != "--"
            return tuple(arguments) if is_value else (*arguments[:at], *arguments[at + 1 :])
    return tuple(arguments)


def _may_hold_pattern(argument: str) -> bool:
    """`-e`, `-f`, bundles with them, `--regexp` and `--file`, also cut short."""
    if not argument.startswith("-") or argument == "--":
        return False
    bare = argument.partition("=")[0]
    if not argument.startswith("--"):
        return "e" in argument or "f" in argument
    return bare.startswith("--from") or "--regexp".startswith(bare) or "--file".startswith(bare)


def path_parts(token: str, *, own_grammar: bool = False) -> Iterator[str]:
    """The parts of a word that may be paths: itself, an option's value, what follows `=` or `:`.

    Raises `CallDenied` for a bundle of so many options that it cannot be read.
    """
    if _WHOLE.fullmatch(token):
        yield token
        return
    if is_computed(token):
        return
    values = tuple(_values(token))
    paths = dict.fromkeys(values)
    for value in values[:1]:
        for sign in "=:@":
            _, parted, after = value.partition(sign)
            is_host = sign == ":" and after.startswith("//") and not after.startswith("///")
            if parted and after and not is_host:
                paths[after] = None
        for piece in (_ALL_JOINTS if own_grammar else _JOINTS).split(value):
            paths.update(dict.fromkeys(_values(piece)))
    yield from paths


def _values(token: str) -> Iterator[str]:
    """A plain word, or what may be an option's value in it: any end of a bundle may be."""
    if token.startswith("--"):
        token = token.partition("=")[2]
    elif bundle := _BUNDLE.match(token):
        cluster_end = bundle.end(1)
        if cluster_end > _MAX_OPTION_BUNDLE:
            raise CallDenied(
                BuiltInRule.UNDECIDABLE_COMMAND,
                f"the option {token[:_MAX_OPTION_BUNDLE]!r}… has too many letters; shorten it",
            )
        for at in range(2, cluster_end):
            yield token[at:]
        token = token[max(cluster_end, 2) :].removeprefix("=")
    if token:
        yield token


_WRITING_ACTIONS = ("-fprint", "-fls")


def removes_folders(command: SimpleCommand) -> str:
    """The word with which a command goes through whole folders; empty when it does not."""
    if command.basename not in programs.RECURSIVE:
        return ""
    for argument in command.argv[1:]:
        if argument == "--":
            break
        bundled = (
            argument.startswith("-") and not argument.startswith("--") and set("rR") & set(argument)
        )
        if command.basename == "rm":
            recursive = bundled or argument.startswith(("--r", "--no-preserve-root"))
        else:
            recursive = (bundled and "R" in argument) or argument.startswith("--rec")
        if recursive:
            return argument
    return ""


def finds_and_removes(command: SimpleCommand) -> bool:
    return "-delete" in command.argv


def removed_by_find(command: SimpleCommand, location: CommandLocation) -> Iterator[TouchedPath]:
    """The files `find` itself removes and writes: all it searches, or what its tests let through."""
    argv = command.argv
    for at, argument in enumerate(argv[:-1]):
        if argument.startswith(_WRITING_ACTIONS) and not is_computed(argv[at + 1]):
            yield location.touch(argv[at + 1], Access.WRITE)
    if finds_and_removes(command):
        name = name_glob(argv)
        for path in search_paths(argv):
            if not is_computed(path):
                yield removal(f"{path.rstrip('/')}/{name}" if name else path, location)


def refuse_ruin(
    command: SimpleCommand, touches: Sequence[TouchedPath], location: CommandLocation
) -> None:
    """Raise `CallDenied` when the whole workspace, or nobody knows what, would be removed or changed."""
    recursive = removes_folders(command)
    if not recursive and command.program != "find" and not any(t.changes for t in touches):
        return
    if recursive and command.basename != "rm":
        touches = [
            location.touch(argument, Access.DELETE)
            for argument in command.argv[2:]
            if argument[:1] != "-"
        ]
    searched = (
        search_paths(command.argv)
        if command.program == "find" and finds_and_removes(command)
        else ()
    )
    unknown = [argument for argument in command.argv[1:] if recursive and is_computed(argument)]
    if unknown or any(map(is_computed, searched)):
        raise CallDenied(
            BuiltInRule.DESTRUCTIVE_COMMAND,
            f"the folder that {command.basename} {recursive or '-delete'} would delete or change is only known when it "
            "runs; write it out",
        )
    if (
        recursive
        and not location.is_certain
        and any(_relative(argument) for argument in command.argv[1:])
    ):
        raise CallDenied(
            BuiltInRule.DESTRUCTIVE_COMMAND,
            f"the folder in which {command.basename} {recursive} would run is unknown; write out the folder in `cd`",
        )
    for touch in touches:
        if touch.access is Access.DELETE and any(
            _above(path, location.root) for path in touch.paths
        ):
            raise CallDenied(
                BuiltInRule.DESTRUCTIVE_COMMAND,
                f"{command.basename} would delete the whole workspace; name the files to delete",
            )


def _relative(token: str) -> bool:
    return not token.startswith(("-", "/", "~"))


def _above(path: str, root: str) -> bool:
    return bool(root) and (path == root or root.startswith(path.rstrip("/") + "/"))


_MODE = re.compile(r"0?[0-7]{3}|[ugoa]*[-+=][rwxX]*(,[ugoa]*[-+=][rwxX]*)*")
"""Permissions for `chmod` that give no program another user's rights."""
_RECURSIVE = frozenset({"-r", "-R", "-a"})


def understood(command: SimpleCommand) -> bool:
    """Tell whether the command's words show for certain what it writes."""
    accepted_options = programs.WRITERS[command.program]
    if accepted_options is None:
        return False
    options, operands = _parted(command.argv[1:])
    if not accepted_options.issuperset(options):
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
        for operand in operands[1:] if command.program == "chmod" else operands:
            yield location.touch(operand, Access.WRITE)


def moved(operands: Sequence[str], location: CommandLocation) -> Iterator[TouchedPath]:
    """The files that moving touches: the last operand is the target, which may be a folder."""
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
    """The path of a source in a target that is a folder."""
    name = _last_part(source)
    return target if name in (".", "..") else posixpath.join(target or ".", name)


def _last_part(token: str) -> str:
    return posixpath.basename(token.rstrip("/"))


def _in_doubt(command: SimpleCommand, location: CommandLocation) -> Iterator[TouchedPath]:
    program, arguments = command.program, command.argv[1:]
    options, operands = _parted(arguments)
    # A link may lead anywhere a person says yes to, but it is made in the workspace.
    links = program == "ln" and not any("t" in option for option in options)
    valued = programs.WRITER_VALUES.get(program, frozenset())
    previous = ""
    for argument in arguments:
        for part in path_parts(argument):
            if previous in valued:
                yield location.touch(part, Access.READ)
                continue
            yield location.touch(part, None if links else Access.WRITE, whole=True)
            if program == "mv":
                yield location.touch(part, Access.DELETE, whole=True)
        previous = argument
    if links and operands:
        yield location.touch(operands[-1], Access.WRITE)


def _parted(arguments: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Options and operands. Behind `--` all words are operands."""
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    options = tuple(
        argument for argument in arguments[:cut] if argument.startswith("-") and argument != "-"
    )
    operands = tuple(
        argument for argument in arguments[:cut] if not argument.startswith("-") or argument == "-"
    )
    return options, (*operands, *arguments[cut + 1 :])
