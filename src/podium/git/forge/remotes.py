"""Remotes of a repository, shown without credentials, and untrusted text on one line."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from podium.core.errors import BadInput
from podium.git.git_command import Git
from podium.git.repository import find_git_dir

_INVISIBLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+")
_USER_INFO = re.compile(r"(?<=://)[^/@\s]+@")


def plain(text: str, most: int = 500) -> str:
    """On one line, without escapes, and cut."""
    line = " ".join(_INVISIBLE.sub(" ", text).split())
    line = line.encode(errors="replace").decode()
    return line if len(line) <= most else f"{line[: most - 1]}…"


def safe_output(text: str, secrets: tuple[str, ...], most: int = 500) -> str:
    """Return the end of a program's or server's output on one line, without secrets or credentials in addresses."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, "[secret]")
    text = _USER_INFO.sub("", text)
    return plain(text[-4 * most :], most)


_SSH = ("ssh", "git+ssh", "ssh+git")
_SAME_HOST = {"ssh.github.com": "github.com", "www.github.com": "github.com"}
"""GitHub's other names: the first takes ssh at the port of https."""

_HOST = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
_PART = re.compile(r"(?!\.+$)[A-Za-z0-9._-]{1,100}")
_SCP_LIKE = re.compile(
    r"(?:(?P<user>[^/:@\s]+)@)?(?P<host>\[[^]\s]+]|[^/:@\s]+):(?P<path>(?!//).*)"
)
_DEFAULT_PORTS = {"https": 443, "http": 80}


@dataclass(frozen=True)
class RemoteAddress:
    """A remote's address, taken apart. `host` is empty where it is a folder or something unknown."""

    display: str
    """Without credentials."""
    scheme: str = ""
    host: str = ""
    """Lower-case; over http with its port, unless that is the usual one."""
    owner: str = ""
    name: str = ""

    @property
    def project(self) -> str:
        return f"{self.owner}/{self.name}"

    def is_project_on(self, host: str) -> bool:
        # A port that is named is that of https.
        expected = host if self.scheme in _DEFAULT_PORTS else host.split(":")[0]
        return self.host == expected.lower() and bool(self.owner)


@dataclass(frozen=True)
class Remotes:
    """The remote that a branch is pushed to and the one of the base branch. Often the same."""

    name: str
    """Of the remote that is pushed to."""
    push: RemoteAddress
    base: RemoteAddress
    base_name: str = ""
    """Of the remote where the base branch lives."""
    base_branch: str = ""
    """Its short name there."""


def read_address(text: str) -> RemoteAddress:
    """Take an address apart as git would. Never raises: any text can be shown."""
    if "://" in text and "::" not in text.split("://", 1)[0]:
        return _from_url(text)
    scp = _SCP_LIKE.fullmatch(text)
    if scp is None or "::" in text.split("/", 1)[0].split("]")[-1]:
        return RemoteAddress(display=_without_credentials(text))
    # `[host:port]:path` is git's way of naming a port here.
    host = scp["host"].strip("[]").split(":")[0] if scp["host"].count(":") == 1 else scp["host"]
    return _address("ssh", host, scp["path"], display=plain(text))


def _from_url(text: str) -> RemoteAddress:
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return RemoteAddress(display=_without_credentials(text))
    scheme = parts.scheme.lower()
    if scheme == "file":
        return RemoteAddress(display=plain(text), scheme=scheme)
    usual = port is None or port == _DEFAULT_PORTS.get(scheme, port)
    authority = f"{parts.username}@{host}" if scheme in _SSH and parts.username else host
    authority += f":{port}" if port is not None else ""
    # What stands behind a question mark may be a token too.
    display = plain(f"{scheme}://{authority}{parts.path}")
    return _address(scheme, host, parts.path, display=display, port="" if usual else f":{port}")


def _address(scheme: str, host: str, path: str, *, display: str, port: str = "") -> RemoteAddress:
    host = host.lower().rstrip(".")
    if not _HOST.fullmatch(host):
        return RemoteAddress(display=display, scheme=scheme)
    parts = [part for part in path.strip("/").split("/") if part]
    owner, name = parts if len(parts) == 2 else ("", "")
    name = name.removesuffix(".git")
    if not (_PART.fullmatch(owner) and _PART.fullmatch(name)):
        owner = name = ""
    return RemoteAddress(display, scheme, _SAME_HOST.get(host, host) + port, owner, name)


def _without_credentials(text: str) -> str:
    return plain(re.sub(r"//[^/\s]*@", "//", text))


async def find_remotes(git: Git, repository: str, base: str, wished: str = "") -> Remotes | None:
    """The remotes that matter for a base branch. None: there is none, or nobody can say which.

    Raises `BadInput` where there is no repository, or none of its remotes has the wished name.
    """
    settings = await _settings(git, repository)
    names = _names(settings)
    if wished and wished not in names:
        raise BadInput(
            f"the repository has no remote {wished!r}, which the settings name; `git remote` lists "
            f"those it has: {', '.join(names) or 'none'}"
        )
    upstream = settings.get(f"branch.{base}.remote", "")
    candidates = (wished, settings.get("remote.pushdefault", ""), "origin", upstream)
    pushed_to = next(
        (name for name in candidates if name in names), names[0] if len(names) == 1 else ""
    )
    if not pushed_to:
        return None
    push = await _read(git, repository, "--push", pushed_to)
    from_base = upstream if upstream in names and not wished else pushed_to
    followed = settings.get(f"branch.{base}.merge", "") if from_base == upstream else ""
    return Remotes(
        pushed_to,
        push,
        await _read(git, repository, from_base),
        base_name=from_base,
        base_branch=followed.removeprefix("refs/heads/") or base,
    )


async def _settings(git: Git, repository: str) -> dict[str, str]:
    if not await asyncio.to_thread(os.path.isdir, repository):
        await find_git_dir(git, repository)
    ended = await git.run(
        "config", "--null", "--show-scope", "--list", cwd=repository, user_settings=True
    )
    fields = ended.stdout.decode(errors="surrogateescape").split("\0")
    entries = [entry.partition("\n") for entry in fields[1::2]]
    settings = {key: value for key, _, value in entries}
    if "local" not in fields[::2] or settings.get("core.bare") == "true":
        # git found no checkout that it may use. This says why.
        await find_git_dir(git, repository)
    return settings


def _names(settings: Mapping[str, str]) -> list[str]:
    keys = [key for key in settings if key.startswith("remote.") and key.endswith(".url")]
    names = [key.removeprefix("remote.").removesuffix(".url") for key in keys]
    return [name for name in names if name and not name.startswith("-")]


async def _read(git: Git, repository: str, *options: str) -> RemoteAddress:
    # git itself applies `url.….insteadOf` and `pushInsteadOf`.
    ended = await git.run("remote", "get-url", *options, cwd=repository, user_settings=True)
    first = ended.stdout.decode(errors="replace").split("\n", 1)[0]
    return read_address(first)
