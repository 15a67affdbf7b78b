"""Remotes of a repository, shown without credentials, and the push of one commit to one branch of a remote.

Never to the base branch; that one is fetched alone."""

from __future__ import annotations

import asyncio
import base64
import os
import re
import shlex
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from podium.core.errors import BadInput, ForgeUnavailable, NotPossibleNow
from podium.core.processes import ProcessExit, ProcessLimits, ProcessSpec
from podium.git.git_command import Git
from podium.git.repository import find_git_dir
from podium.ports.launcher import Launcher

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


async def find_remotes(git: Git, repository: str, base: str, requested: str = "") -> Remotes | None:
    """The remotes that matter for a base branch. None: there is none, or nobody can say which.

    Raises `BadInput` where there is no repository, or none of its remotes has the requested name.
    """
    settings = await _settings(git, repository)
    names = _names(settings)
    if requested and requested not in names:
        raise BadInput(
            f"the repository has no remote {requested!r}, which the settings name; remotes: {', '.join(names) or 'none'}"
        )
    upstream = settings.get(f"branch.{base}.remote", "")
    candidates = (requested, settings.get("remote.pushdefault", ""), "origin", upstream)
    pushed_to = next(
        (name for name in candidates if name in names), names[0] if len(names) == 1 else ""
    )
    if not pushed_to:
        return None
    push = await _read(git, repository, "--push", pushed_to)
    from_base = upstream if upstream in names and not requested else pushed_to
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


_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_NO_BRANCH = re.compile(
    r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(/|$)|[./]$|^[-+./]|^@$|^$"
)
"""Characters that git allows in no branch name, and prefixes with a meaning elsewhere."""
_ELSEWHERE_IN_NAMES = ("refs/", "heads/", "remotes/")

_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "fetch.writeCommitGraph=false",
)
_ENVIRONMENT = {
    # Set and empty, it keeps git from all programs that would open a window; a terminal there is none.
    "GIT_ASKPASS": "",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    # A user's settings may have git write down its settings, and with them the token.
    "GIT_TRACE2": "0",
    "GIT_TRACE2_EVENT": "0",
    "GIT_TRACE2_PERF": "0",
    "LC_ALL": "C",
    "LANGUAGE": "C",
}
_OF_THE_USER = (
    "DBUS_SESSION_BUS_ADDRESS",
    "GIT_CONFIG_GLOBAL",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSL_CAINFO",
    "GNUPGHOME",
    "KRB5CCNAME",
    "SSH_AUTH_SOCK",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
    *("ALL_PROXY", "HTTPS_PROXY", "NO_PROXY", "all_proxy", "http_proxy", "https_proxy", "no_proxy"),
)
"""Variables that ssh and credential helpers read."""

_FOR_A_PERSON = re.compile(
    r"authentication failed|could not read (username|password)|permission (to .* )?denied|access denied|"
    r"host key verification failed|repository .*not found|does not (appear to be|exist)|"
    r"returned error: 4\d\d|write access .*not granted",
    re.IGNORECASE,
)
_BY_ITSELF = re.compile(
    r"could not resolve host|connection|network is unreachable|no route to host|timed out|early eof|hung up|"
    r"returned error: 5\d\d|failed to connect|couldn't connect|rpc failed|temporary failure",
    re.IGNORECASE,
)


def checked_branch(branch: str, base: str, *also_protected: str) -> str:
    """The name, if a push to it can only ever move that one branch. Raises `BadInput` otherwise.

    `also_kept` are further branches that must not be pushed, such as the remote's default branch.
    """
    for name in (branch, base):
        checked_name(name)
    if _folded(branch) in {_folded(name) for name in (base, "HEAD", *also_protected)}:
        raise BadInput(
            f"{branch!r} is the branch to merge into, which is never pushed; name another branch"
        )
    return branch


def checked_name(name: str) -> str:
    """The short name of a branch. Raises `BadInput` for one that means something else to git."""
    if _NO_BRANCH.search(name) or _folded(name).startswith(_ELSEWHERE_IN_NAMES):
        raise BadInput(
            f"{name!r} is not a short branch name; nothing was pushed; use a name like 'task/fix'"
        )
    return name


def _folded(name: str) -> str:
    """Names that some file system or reader takes for the same become the same."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def checked_commit(commit: str) -> str:
    """Raises `BadInput` for anything but a whole id: names can move, and signs mean something in a refspec."""
    if not _COMMIT.fullmatch(commit):
        raise BadInput(
            f"{commit!r} is not a full commit ID, so nothing is pushed; see `git rev-parse`"
        )
    return commit


@dataclass(frozen=True)
class _PushTarget:
    """Target of a push, for messages."""

    remote: str
    address: str
    branch: str

    def __str__(self) -> str:
        return f"the remote {self.remote!r} ({self.address})"

    def taken(self) -> str:
        command = shlex.join(("git", "push", self.remote, "--delete", self.branch))
        return f"{self} already has a branch {self.branch!r} with other commits, which are not overwritten; check it, delete it there if it is not needed (`{command}`), then resume"


@dataclass(frozen=True)
class Pusher:
    """Starts `git push` from the user's repository, with his own settings, ssh and credential helpers."""

    launcher: Launcher
    host: str
    """The one host that gets the token."""
    token: str = ""
    seconds: float = 300.0
    ask_seconds: float = 30.0

    def __repr__(self) -> str:
        return f"Pusher(host={self.host!r})"

    async def push(
        self, repository: str, remote: str, address: RemoteAddress, commit: str, branch: str
    ) -> None:
        """On return the remote's branch is at the commit.

        Raises `NotPossibleNow` when the remote or somebody's branch there is in the way, and
        `ForgeUnavailable` when it could not be reached.
        """
        await self._push(repository, remote, address, f"{commit}:refs/heads/{branch}", branch)

    async def push_ref(
        self, repository: str, remote: str, address: RemoteAddress, ref: str
    ) -> None:
        """On return the remote has the ref as it is here. Raises as `push` does."""
        await self._push(repository, remote, address, f"{ref}:{ref}", ref)

    async def _push(
        self, repository: str, remote: str, address: RemoteAddress, refspec: str, branch: str
    ) -> None:
        push = ("push", "--porcelain", "--no-verify", "--no-signed", "--no-follow-tags")
        ended = await self._run(
            repository, remote, address, *push, "--recurse-submodules=no", "--", remote, refspec
        )
        self._judge(ended, refspec, _PushTarget(remote, address.display, branch))

    async def remote_tip(
        self, repository: str, remote: str, address: RemoteAddress, branch: str
    ) -> str:
        """Ask the remote where its branch is. Empty: it has none. Raises `NotPossibleNow` or `ForgeUnavailable`."""
        ref = f"refs/heads/{branch}"
        argv, seconds = ("ls-remote", "--", remote, ref), min(self.ask_seconds, self.seconds)
        ended = await self._run(repository, remote, address, *argv, seconds=seconds)
        self._judge_asked(ended, _PushTarget(remote, address.display, branch), seconds)
        for row in ended.stdout.decode(errors="replace").splitlines():
            commit, _, name = row.partition("\t")
            if name == ref and _COMMIT.fullmatch(commit):
                return commit
        return ""

    async def fetch(
        self, repository: str, remote: str, address: RemoteAddress, branch: str, ref: str
    ) -> None:
        """Bring the remote's branch into the repository, under a ref that is nobody else's.

        The user's branches, tags, remote-tracking refs and FETCH_HEAD stay as they are. Raises as `remote_tip` does.
        """
        fetch = (
            "fetch", "--quiet", "--no-tags", "--no-prune", "--no-write-fetch-head", "--no-recurse-submodules",
            "--no-auto-maintenance", "--no-show-forced-updates", "--refmap=",
        )  # fmt: skip
        refspec = f"+refs/heads/{branch}:{ref}"
        ended = await self._run(repository, remote, address, *fetch, "--", remote, refspec)
        self._judge_asked(ended, _PushTarget(remote, address.display, branch), self.seconds)

    async def _run(
        self,
        repository: str,
        remote: str,
        address: RemoteAddress,
        *argv: str,
        seconds: float | None = None,
    ) -> ProcessExit:
        settings = [argument for setting in _SETTINGS for argument in ("-c", setting)]
        return await self.launcher.run(
            ProcessSpec(
                argv=("git", *settings, *argv),
                cwd=repository,
                env={**_ENVIRONMENT, **self._settings(remote, address)},
                inherit_env=_OF_THE_USER,
                limits=ProcessLimits(seconds=seconds or self.seconds),
                farewell_seconds=2.0,
            )
        )

    def _judge_asked(self, ended: ProcessExit, aim: _PushTarget, seconds: float) -> None:
        if ended.timed_out:
            raise ForgeUnavailable(f"{aim} did not answer within {seconds:g} seconds")
        if ended.exit_code != 0:
            message = safe_output(
                ended.stderr.decode(errors="replace"), (self.token, self._basic())
            )
            raise _not_reached(
                aim, message or f"git ended with exit code {ended.exit_code} and no output"
            )

    def _settings(self, remote: str, address: RemoteAddress) -> dict[str, str]:
        """Settings in the environment, where no list of processes and no file shows them."""
        # A mirror is pushed whole and by force.
        pairs = [(f"remote.{remote}.mirror", "false")]
        if self.token and address.scheme == "https" and address.host == self.host:
            key = f"http.https://{address.host}/.extraHeader"
            # An empty value drops what other settings added: GitHub answers 400 to two such headers.
            pairs += [(key, ""), (key, f"Authorization: Basic {self._basic()}")]
        numbered = {f"GIT_CONFIG_KEY_{n}": key for n, (key, _) in enumerate(pairs)}
        numbered |= {f"GIT_CONFIG_VALUE_{n}": value for n, (_, value) in enumerate(pairs)}
        return {"GIT_CONFIG_COUNT": str(len(pairs)), **numbered}

    def _basic(self) -> str:
        return base64.b64encode(f"x-access-token:{self.token}".encode()).decode()

    def _judge(self, ended: ProcessExit, refspec: str, aim: _PushTarget) -> None:
        if ended.timed_out:
            raise ForgeUnavailable(
                f"pushing to {aim} did not finish within {self.seconds:g} seconds"
            )
        flag, summary = _row(ended.stdout.decode(errors="replace").splitlines(), refspec)
        if ended.exit_code == 0 and flag in ("*", " ", "="):
            return
        message = safe_output(ended.stderr.decode(errors="replace"), (self.token, self._basic()))
        if flag == "!" and summary.startswith("[rejected]"):
            raise NotPossibleNow(aim.taken())
        if flag == "!":
            why = safe_output(summary, (self.token,), 200)
            raise NotPossibleNow(f"{aim} rejected the branch {aim.branch!r}: {why}: {message}")
        raise _not_pushed(
            aim, message or f"git ended with exit code {ended.exit_code} and no output"
        )


def _row(lines: Sequence[str], refspec: str) -> tuple[str, str]:
    """Return git's flag and its summary in brackets for the one ref."""
    for line in lines:
        flag, _, rest = line.partition("\t")
        names, _, summary = rest.partition("\t")
        if names == refspec:
            return flag, summary
    return "", ""


def _not_reached(aim: _PushTarget, message: str) -> NotPossibleNow | ForgeUnavailable:
    return _git_failed(aim, message, "cannot read from", "git fetch")


def _not_pushed(aim: _PushTarget, message: str) -> NotPossibleNow | ForgeUnavailable:
    return _git_failed(aim, message, "cannot push to", "git push")


def _git_failed(
    aim: _PushTarget, message: str, failure: str, command: str
) -> NotPossibleNow | ForgeUnavailable:
    if not _FOR_A_PERSON.search(message) and _BY_ITSELF.search(message):
        return ForgeUnavailable(f"cannot reach {aim}: {message}")
    return NotPossibleNow(
        f"git {failure} {aim}: {message}; run `{command}` there yourself until it works without a password, then resume"
    )
