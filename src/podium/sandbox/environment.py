"""The environment of a child: named variables, never the parent's whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from podium.domain.errors import BadInput, UserMustAct
from podium.domain.launching import Spawn
from podium.sandbox.settings import LauncherSettings

SECRET_PREFIX = "secret://"  # noqa: S105 — the scheme of a reference, not a secret

ResolveSecret = Callable[[str], str]
"""Gives the value of a secret by its name. Raises `LookupError` or `UserMustAct` for an unknown one."""


def no_secrets(name: str) -> str:
    """The resolver of a launcher that was handed none: knows nothing."""
    raise LookupError(name)


def environment_for(
    spawn: Spawn,
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
    given = {name: _resolved(name, value, resolve_secret) for name, value in spawn.env.items()}
    environment = {**allowed, **inherited, **given}
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
            f"variable {name!r} wants the secret {secret!r}, which is not known; "
            "define it where Podium keeps its secrets, or take the variable out"
        ) from None


def _check(name: str, value: str) -> None:
    # Checked by us, because the errors of the system would print the value.
    if not name or "=" in name or "\0" in name:
        raise BadInput(f"{name!r} cannot be the name of an environment variable; rename it")
    if "\0" in value:
        raise BadInput(f"the value of variable {name!r} holds a NUL character; take it out")
