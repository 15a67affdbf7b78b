"""Push of one commit to one branch of a remote, never to the base branch; fetch of that one."""

from __future__ import annotations

import base64
import re
import shlex
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from podium.core.errors import BadInput, ForgeUnavailable, NotPossibleNow
from podium.core.processes import ProcessExit, ProcessLimits, ProcessSpec
from podium.git.forge.remotes import RemoteAddress, safe_output
from podium.ports.launcher import Launcher

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
            f"{branch!r} is the branch to merge into, which is never pushed; name a branch of its own"
        )
    return branch


def checked_name(name: str) -> str:
    """The short name of a branch. Raises `BadInput` for one that means something else to git."""
    if _NO_BRANCH.search(name) or _folded(name).startswith(_ELSEWHERE_IN_NAMES):
        raise BadInput(
            f"{name!r} is no short name of a branch, so nothing is pushed; name it like 'task/fix'"
        )
    return name


def _folded(name: str) -> str:
    """Names that some file system or reader takes for the same become the same."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def checked_commit(commit: str) -> str:
    """Raises `BadInput` for anything but a whole id: names can move, and signs mean something in a refspec."""
    if not _COMMIT.fullmatch(commit):
        raise BadInput(
            f"{commit!r} is not the whole id of a commit, so nothing is pushed; see `git rev-parse`"
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
        return (
            f"{self} has a branch {self.branch!r} that does not lead to this work, and nothing is overwritten; look "
            f"at it, delete it there if nobody needs it (`{command}`), then resume"
        )


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
        refspec = f"{commit}:refs/heads/{branch}"
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
                aim, message or f"git ended with {ended.exit_code} and printed nothing"
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
            raise ForgeUnavailable(f"pushing to {aim} was not done within {self.seconds:g} seconds")
        flag, summary = _row(ended.stdout.decode(errors="replace").splitlines(), refspec)
        if ended.exit_code == 0 and flag in ("*", " ", "="):
            return
        message = safe_output(ended.stderr.decode(errors="replace"), (self.token, self._basic()))
        if flag == "!" and summary.startswith("[rejected]"):
            raise NotPossibleNow(aim.taken())
        if flag == "!":
            why = safe_output(summary, (self.token,), 200)
            raise NotPossibleNow(f"{aim} refuses the branch {aim.branch!r}: {why}: {message}")
        raise _not_pushed(aim, message or f"git ended with {ended.exit_code} and printed nothing")


def _row(lines: Sequence[str], refspec: str) -> tuple[str, str]:
    """Return git's flag and its summary in brackets for the one ref."""
    for line in lines:
        flag, _, rest = line.partition("\t")
        names, _, summary = rest.partition("\t")
        if names == refspec:
            return flag, summary
    return "", ""


def _not_reached(aim: _PushTarget, message: str) -> NotPossibleNow | ForgeUnavailable:
    return _git_failed(aim, message, "could not ask", "git fetch")


def _not_pushed(aim: _PushTarget, message: str) -> NotPossibleNow | ForgeUnavailable:
    return _git_failed(aim, message, "could not push to", "git push")


def _git_failed(
    aim: _PushTarget, message: str, failure: str, command: str
) -> NotPossibleNow | ForgeUnavailable:
    if not _FOR_A_PERSON.search(message) and _BY_ITSELF.search(message):
        return ForgeUnavailable(f"{aim} could not be reached: {message}")
    return NotPossibleNow(
        f"git {failure} {aim}: {message}; try `{command}` there yourself until it needs no password, then resume"
    )
