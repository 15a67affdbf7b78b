"""Settings of a launcher, the environment of a child (named variables, never the parent's whole), and program lookup."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from podium.core.errors import BadInput, NotPossibleNow, PodiumError, ToolMissing, UserMustAct
from podium.core.model import FrozenModel
from podium.core.processes import Confinement, ProcessSpec
from podium.sandbox.guard.processes import ON_LINUX


class LauncherSettings(FrozenModel):
    """Settings of a `ProcessLauncher`."""

    allowed_names: tuple[str, ...] = (
        "COLORTERM",
        "HOME",
        "LANG",
        "LANGUAGE",
        "LOGNAME",
        "PATH",
        "SHELL",
        "TERM",
        "TMPDIR",
        "TZ",
        "USER",
    )
    """Variables of the parent that every child gets."""
    allowed_prefixes: tuple[str, ...] = ("LC_",)
    """Beginnings of names that every child gets as well."""
    grace_seconds: float = 5.0
    """Time between TERM and KILL for a tree that is out of time or cancelled."""
    linger_seconds: float = 0.2
    """Time for which descendants may go on after the program's own end, to write their last lines."""
    start_seconds: float = 30.0
    """Time for a guard to come up before the start is given up."""
    overdue_seconds: float = 30.0
    """Time for which a guard may be silent beyond its own before it is taken for stopped and killed."""


SECRET_PREFIX = "secret://"  # noqa: S105 — the scheme of a reference, not a secret

ResolveSecret = Callable[[str], str]
"""Gives the value of a secret by its name. Raises `LookupError` or `UserMustAct` for an unknown one."""


def no_secrets(name: str) -> str:
    """The resolver of a launcher that was handed none: knows nothing."""
    raise LookupError(name)


def environment_for(
    spawn: ProcessSpec,
    settings: LauncherSettings,
    parent: Mapping[str, str],
    resolve_secret: ResolveSecret,
) -> dict[str, str]:
    """The whole environment of the child, secrets resolved. Later sources win over earlier ones."""
    allowed = {
        name: value
        for name, value in parent.items()
        if name in settings.allowed_names or name.startswith(settings.allowed_prefixes)
    }
    inherited = {name: parent[name] for name in spawn.inherit_env if name in parent}
    variables = {name: _resolved(name, value, resolve_secret) for name, value in spawn.env.items()}
    environment = {**allowed, **inherited, **variables}
    for name, value in environment.items():
        _check(name, value)
    return environment


def _resolved(name: str, value: str, resolve_secret: ResolveSecret) -> str:
    if not value.startswith(SECRET_PREFIX):
        return value
    secret = value.removeprefix(SECRET_PREFIX)
    try:
        return resolve_secret(secret)
    except LookupError:
        raise UserMustAct(
            f"variable {name!r} needs the secret {secret!r}, which is not defined; "
            f"set {secret} in Podium's environment, or remove the variable"
        ) from None


def _check(name: str, value: str) -> None:
    # Checked by us, because the errors of the system would print the value.
    if not name or "=" in name or "\0" in name:
        raise BadInput(f"{name!r} is not a valid name for an environment variable; rename it")
    if "\0" in value:
        raise BadInput(f"the value of variable {name!r} contains a NUL character; remove it")


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
            f"{str(present[0])!r} is not executable; run `chmod +x` on it, or name another program"
        )
    where = f"in {cwd!r}" if "/" in name else f"on the search path {search_path!r}"
    raise ToolMissing(f"program {name!r} not found {where}; install it, or give its full path")


def refuse_what_cannot_be_enforced(spawn: ProcessSpec) -> None:
    """Raise for a spawn that asks for more protection than there is, instead of weakening it."""
    confinement = spawn.confinement
    if confinement.kind == "none" and confinement != Confinement():
        requested = confinement.model_dump(exclude_defaults=True)
        raise NotPossibleNow(
            f"{spawn.argv[0]!r} cannot be confined by {requested!r}: its confinement is of kind 'none', "
            "which enforces nothing; use kind 'kernel', or remove them"
        )
    if spawn.leaves_server and confinement.kind != "none":
        raise NotPossibleNow(
            f"the server that {spawn.argv[0]!r} leaves running cannot be confined, because its guard ends with "
            f"{spawn.argv[0]!r}; confine what the server starts"
        )
    if spawn.limits.processes is not None and not ON_LINUX:
        raise NotPossibleNow(
            f"the limit on processes of {spawn.argv[0]!r} can be enforced only on Linux; remove it"
        )
    if any("\0" in text for text in (*spawn.argv, spawn.cwd)):
        raise BadInput(
            f"an argument or the folder of {spawn.argv[0]!r} contains a NUL character; remove it"
        )


def refusal_of(spawn: ProcessSpec, stage: str, number: int, message: str = "") -> PodiumError:
    """The error for a program that failed between fork and exec, by stage and errno.

    `said` is what it wrote to its stderr.
    """
    program, why = spawn.argv[0], os.strerror(number) if number else ""
    if stage == "cwd":
        return NotPossibleNow(f"{program!r} cannot start in {spawn.cwd!r}: {why}; check the folder")
    if stage == "sandbox":
        return NotPossibleNow(
            f"{program!r} cannot be confined: {message or why or 'no reason given'}; check that everything mounted for "
            "it exists, and run `podium doctor`"
        )
    if stage == "limits":
        return NotPossibleNow(
            f"the limits {spawn.limits.model_dump(exclude_none=True)!r} for {program!r} cannot be set: "
            f"{why}; raise or remove them"
        )
    if stage == "exec" and number == errno.E2BIG:
        return BadInput(
            f"the arguments and environment of {program!r} are too long; pass the text on stdin"
        )
    if stage == "exec":
        return ToolMissing(
            f"{program!r} cannot be executed: {why}; check that it is a program for this machine "
            "and that the interpreter in its first line exists"
        )
    return NotPossibleNow(f"the guard of {program!r} could not be started: {why}; try again")
