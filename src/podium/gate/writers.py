"""Programs that write files they name: which forms are understood, and what each touches.

A form is understood when every option is one of a few, exactly spelled. Anything else, such as a
bundle, an option cut short or `-t`, may mean another target than its words show: no allow rule for
writing fits it then, and all of its words count as written to.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence

from podium.domain.gating import Access
from podium.gate import programs
from podium.gate.command_paths import Standing, path_parts
from podium.gate.places import Touch
from podium.gate.shell import SimpleCommand

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


def writer_touches(command: SimpleCommand, standing: Standing) -> Iterator[Touch]:
    """The paths a program of `WRITERS` touches."""
    if not understood(command):
        yield from _in_doubt(command, standing)
        return
    options, operands = _parted(command.argv[1:])
    if command.program == "mv":
        yield from moved(operands, standing)
    elif command.program == "cp":
        yield from _copied(operands, standing, whole=not _RECURSIVE.isdisjoint(options))
    else:
        for word in operands[1:] if command.program == "chmod" else operands:
            yield standing.touch(word, Access.WRITE)


def moved(operands: Sequence[str], standing: Standing) -> Iterator[Touch]:
    """What moving touches: the last operand is the target, which may be a folder."""
    *sources, target = operands
    for source in sources:
        yield standing.touch(source, Access.DELETE, whole=True)
        yield standing.touch(_landing(source, target), Access.WRITE, whole=True)
    surely_folder = len(sources) > 1 or _last_part(target) in (".", "..")
    yield standing.touch(target, Access.WRITE, whole=not surely_folder)


def _copied(operands: Sequence[str], standing: Standing, *, whole: bool) -> Iterator[Touch]:
    *sources, target = operands
    for source in sources:
        yield standing.touch(source, Access.READ, whole=whole)
        yield standing.touch(_landing(source, target), Access.WRITE, whole=whole)
    yield standing.touch(target, Access.WRITE, whole=whole)


def _landing(source: str, target: str) -> str:
    """Where a source comes to lie when the target is a folder."""
    name = _last_part(source)
    return target if name in (".", "..") else posixpath.join(target or ".", name)


def _last_part(word: str) -> str:
    return posixpath.basename(word.rstrip("/"))


def _in_doubt(command: SimpleCommand, standing: Standing) -> Iterator[Touch]:
    program, arguments = command.program, command.argv[1:]
    options, operands = _parted(arguments)
    # A link may lead anywhere a person says yes to, but it is made in the workspace.
    links = program == "ln" and not any("t" in option for option in options)
    valued = programs.WRITER_VALUES.get(program, frozenset())
    previous = ""
    for word in arguments:
        for part in path_parts(word):
            if previous in valued:
                yield standing.touch(part, Access.READ)
                continue
            yield standing.touch(part, None if links else Access.WRITE, whole=True)
            if program == "mv":
                yield standing.touch(part, Access.DELETE, whole=True)
        previous = word
    if links and operands:
        yield standing.touch(operands[-1], Access.WRITE)


def _parted(arguments: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Options and operands. Behind `--` all words are operands."""
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    options = tuple(word for word in arguments[:cut] if word.startswith("-") and word != "-")
    operands = tuple(word for word in arguments[:cut] if not word.startswith("-") or word == "-")
    return options, (*operands, *arguments[cut + 1 :])
