"""Which programs can be started, and the words for those that cannot."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from podium.domain.errors import BadInput, NotPossibleNow, PodiumError, ToolMissing
from podium.domain.launching import Confinement, Spawn
from podium.sandbox.guard.kernel import ON_LINUX


def find_program(name: str, cwd: str, search_path: str) -> str:
    """The file that will be executed. Folders of the search path that are not absolute are passed
    over: what they hold depends on where an agent stands."""
    if "/" in name:
        candidates = [Path(cwd, name)]
    else:
        folders = [Path(folder) for folder in search_path.split(os.pathsep)]
        candidates = [folder / name for folder in folders if folder.is_absolute()]
    # Not `Path.is_file`, which raises for a folder that may not be entered.
    present = [candidate for candidate in candidates if os.path.isfile(candidate)]  # noqa: PTH113
    for candidate in present:
        if os.access(candidate, os.X_OK):
            return str(candidate)
    if present:
        raise ToolMissing(
            f"{str(present[0])!r} may not be executed; `chmod +x` it, or name another"
        )
    where = f"in {cwd!r}" if "/" in name else f"on the search path {search_path!r}"
    raise ToolMissing(f"no program {name!r} {where}; install it, or name it by its full path")


def refuse_what_cannot_be_enforced(spawn: Spawn) -> None:
    """Raise for a spawn that asks for more protection than there is, instead of weakening it."""
    confinement = spawn.confinement
    if confinement.kind == "none" and confinement != Confinement():
        wanted = confinement.model_dump(exclude_defaults=True)
        raise NotPossibleNow(
            f"{spawn.argv[0]!r} is to be held to {wanted!r}, but its confinement is of the kind 'none', "
            "which holds nothing; ask for 'kernel', or leave them out"
        )
    if spawn.leaves_server and confinement.kind != "none":
        raise NotPossibleNow(
            f"what {spawn.argv[0]!r} leaves running cannot be confined: the guard that confines ends with it; "
            "confine what the server starts"
        )
    if spawn.limits.processes is not None and not ON_LINUX:
        raise NotPossibleNow(
            f"a limit on the processes of {spawn.argv[0]!r} holds on Linux only; take it out"
        )
    if any("\0" in text for text in (*spawn.argv, spawn.cwd)):
        raise BadInput(
            f"an argument or the folder of {spawn.argv[0]!r} holds a NUL character; take it out"
        )


def refusal_of(spawn: Spawn, stage: str, number: int, said: str = "") -> PodiumError:
    """The error for a program that failed between fork and exec, by stage and errno.

    `said` is what it wrote to its stderr.
    """
    program, why = spawn.argv[0], os.strerror(number) if number else ""
    if stage == "cwd":
        return NotPossibleNow(f"{program!r} cannot start in {spawn.cwd!r}: {why}; check the folder")
    if stage == "sandbox":
        return NotPossibleNow(
            f"{program!r} cannot be confined: {said or why or 'no reason given'}; check that all that is mounted for "
            "it is there, and see `podium doctor`"
        )
    if stage == "limits":
        return NotPossibleNow(
            f"the limits {spawn.limits.model_dump(exclude_none=True)!r} for {program!r} cannot be set: "
            f"{why}; loosen or drop them"
        )
    if stage == "exec" and number == errno.E2BIG:
        return BadInput(
            f"the arguments and environment of {program!r} are too long; hand the text over on stdin"
        )
    if stage == "exec":
        return ToolMissing(
            f"{program!r} cannot be executed: {why}; check that it is a program for this machine "
            "and that the interpreter in its first line is there"
        )
    return NotPossibleNow(f"{program!r} cannot be put under guard: {why}; try again")
