"""`RepositoryForge`: GitHub where the remote is there, else a Markdown file that stands for the pull request."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from podium.core.errors import BadInput, ForgeUnavailable, NotPossibleNow
from podium.core.forge import Finding, Preflight, PullRequest, PullRequestDraft, RemoteBase
from podium.core.model import FrozenModel
from podium.git.forge.branch_protection import look
from podium.git.forge.github import GitHub, GitHubRefusal, api_url_of
from podium.git.forge.push import Pusher, checked_branch, checked_commit, checked_name
from podium.git.forge.remotes import RemoteAddress, Remotes, find_remotes, plain
from podium.git.git_command import Git
from podium.git.turns import BASE_REFS
from podium.platform import make_private_folder
from podium.platform.atomic_write import atomic_write
from podium.ports.engine import Clock
from podium.ports.launcher import Launcher

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def merge_command(branch: str) -> str:
    return f"git merge --no-ff {shlex.quote(branch)}"


@dataclass(frozen=True)
class LocalPullRequest:
    """A wish as a page to read. The commands stand before the body, which is an agent's text."""

    wish: PullRequestDraft
    why: str
    remote: str = ""
    """Name of the remote. Empty: there is none."""
    pushed: bool = False

    def write(self, folder: Path) -> Path:
        """Write it whole or not at all, over an earlier one of the same run. Raises `NotPossibleNow`."""
        path = folder / self._name()
        try:
            make_private_folder(folder)
            atomic_write(path, self.page().encode(errors="replace"))
        except OSError as error:
            raise NotPossibleNow(
                f"the pull request could not be written to {str(path)!r}: {error.strerror}; "
                "make room or let it be written there, then resume"
            ) from error
        return path

    def page(self) -> str:
        wish = self.wish
        state = f"pushed to `{plain(self.remote)}`" if self.pushed else "in this repository only"
        body = _CONTROLS.sub("", wish.body.replace("\r\n", "\n")).strip()
        commands = "\n".join(self.commands())
        return (
            f"# {plain(wish.title, 256)}\n\n"
            f"Branch `{plain(wish.branch)}` at `{plain(wish.commit)}`, {state}, to be merged into "
            f"`{plain(wish.base)}`.\n\n"
            f"This file stands for a pull request: {plain(self.why)}.\n\n"
            f"## To merge it\n\n```sh\n{commands}\n```\n\n"
            f"## What it is\n\n{body}\n"
        )

    def commands(self) -> list[str]:
        base = shlex.quote(self.wish.base)
        lines = [
            f"cd {shlex.quote(self.wish.repository)}",
            f"git switch {base}",
            merge_command(self.wish.branch),
        ]
        return [*lines, f"git push {shlex.quote(self.remote)} {base}"] if self.remote else lines

    def _name(self) -> str:
        given = self.wish.run_id or f"{self.wish.branch}@{self.wish.commit}"
        name = _NOT_IN_A_NAME.sub("-", given).strip(".-")[:100]
        if name != given:
            # Two that look alike without their signs stay two files.
            name = f"{name}-{hashlib.sha256(given.encode(errors='replace')).hexdigest()[:8]}"
        return f"{name}.md"


_FIRST_PRINTABLE, _LAST_PRINTABLE = "!", "~"


class ForgeSettings(FrozenModel):
    """Which forge, and what may be done there."""

    host: str = Field(default="github.com", pattern=r"^[A-Za-z0-9.-]+(:[0-9]+)?$")
    """The GitHub whose token this is: github.com, or the host of a GitHub Enterprise, with its port if unusual."""
    api_url: str = ""
    """Empty: where that host's API usually is."""
    remote: str = ""
    """Name of the remote. Empty: `remote.pushDefault`, `origin`, or the only one."""
    push: bool = True
    """Off: nothing leaves this machine, and pull requests are files."""
    push_seconds: float = Field(default=300.0, gt=0)
    ask_seconds: float = Field(default=30.0, gt=0)


@dataclass(frozen=True)
class _NoForge:
    """Why a repository has no forge that can be asked."""

    finding: Finding
    why: str
    """Half a sentence."""
    remedy: str


class RepositoryForge:
    """Picks by what the repository has. `folder` is where pull requests become files."""

    def __init__(
        self,
        launcher: Launcher,
        clock: Clock,
        folder: Path,
        settings: ForgeSettings | None = None,
        *,
        token: str = "",
    ) -> None:
        """Raises `BadInput` for a token that cannot be one."""
        self._settings = settings or ForgeSettings()
        self._host = self._settings.host.lower()
        self._api_url = self._settings.api_url or api_url_of(self._host)
        self._token = _checked_token(token)
        self._clock = clock
        self._folder = folder
        self._git = Git(launcher)
        self._pusher = Pusher(
            launcher,
            self._host,
            self._token,
            self._settings.push_seconds,
            self._settings.ask_seconds,
        )

    async def preflight(self, repository: str, base: str) -> Preflight:
        whole = _whole_path(repository)
        remotes = await find_remotes(self._git, whole, base, self._settings.remote)
        found = self._found(remotes)
        if isinstance(found, GitHub):
            return await look(found, base)
        if remotes is None:
            return Preflight(
                finding="no_remote",
                sentence=f"No remote was found, so {base!r} is not looked up and nothing is pushed; `git remote add origin ADDRESS` adds one.",
                base=base,
            )
        return Preflight(
            finding=found.finding,
            sentence=f"whether {base!r} is protected was not looked up: {found.why}; {found.remedy}.",
            remote=remotes.base.shown,
            base=base,
        )

    async def fetch_base(self, repository: str, base: str) -> RemoteBase:
        whole = _whole_path(repository)
        remotes = await find_remotes(self._git, whole, base, self._settings.remote)
        if remotes is None:
            return RemoteBase()
        try:
            return await self._fetched(whole, remotes)
        except (ForgeUnavailable, BadInput, NotPossibleNow) as error:
            name = f"{remotes.base_name}/{remotes.base_branch}"
            return RemoteBase(name=name, why_not=str(error))

    async def _fetched(self, repository: str, remotes: Remotes) -> RemoteBase:
        """Raises `ForgeUnavailable` for a remote that a later try may reach, `BadInput` or `NotPossibleNow` for one
        that a person has to put right. Nothing may be pushed beside a base that is not known."""
        name, branch = remotes.base_name, remotes.base_branch
        shown = f"{name}/{branch}"
        checked_name(branch)
        tip = await self._pusher.remote_tip(repository, name, remotes.base, branch)
        if not tip:
            return RemoteBase(name=shown, why_not=f"the remote {name!r} has no branch {branch!r}")
        if not await self._is_kept(repository, tip):
            # Named after what it holds: a ref that never moves is in no other run's way.
            ref = f"{BASE_REFS}{tip}"
            await self._pusher.fetch(repository, name, remotes.base, branch, ref)
            tip = await self._resolved(repository, ref)
        return RemoteBase(commit=tip, name=shown)

    async def _is_kept(self, repository: str, commit: str) -> bool:
        """Whether it is there, and some ref keeps it there."""
        if not await self._resolved(repository, commit):
            return False
        ended = await self._git.run(
            "for-each-ref", "--count=1", f"--contains={commit}", cwd=repository, user_settings=True
        )
        return bool(ended.stdout)

    async def _resolved(self, repository: str, name: str) -> str:
        ended = await self._git.run(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}",
            cwd=repository, user_settings=True, accept=(0, 1, 128),
        )  # fmt: skip
        return ended.stdout.decode().strip() if ended.exit_code == 0 else ""

    async def _is_within(self, repository: str, commit: str, later: str) -> bool:
        ended = await self._git.run(
            "merge-base", "--is-ancestor", commit, later,
            cwd=repository, user_settings=True, accept=(0, 1),
        )  # fmt: skip
        return ended.exit_code == 0

    async def deliver(self, wish: PullRequestDraft) -> PullRequest:
        checked_branch(wish.branch, wish.base)
        checked_commit(wish.commit)
        wish = wish.model_copy(update={"repository": _whole_path(wish.repository)})
        remotes = await find_remotes(self._git, wish.repository, wish.base, self._settings.remote)
        await self._check_against_repository(wish, remotes)
        found = self._found(remotes)
        if remotes is None or not self._settings.push:
            why = found.why if isinstance(found, _NoForge) else _NOTHING_IS_PUSHED
            return await self._written(wish, remotes.name if remotes else "", why, pushed=False)
        base = await self._fetched(wish.repository, remotes)
        if base.commit and not await self._is_within(wish.repository, base.commit, wish.commit):
            return PullRequest(moved_base=base.commit)
        await self._pusher.push(
            wish.repository, remotes.name, remotes.push, wish.commit, wish.branch
        )
        if isinstance(found, GitHub):
            return await _opened(found, remotes.push.owner, wish)
        return await self._written(wish, remotes.name, found.why, pushed=True)

    def _found(self, remotes: Remotes | None) -> GitHub | _NoForge:
        if remotes is None:
            return _NO_REMOTE
        if not remotes.push.is_project_on(self._host):
            return _other_forge(remotes.push, self._host)
        if not self._token:
            return _no_token(self._host)
        project = remotes.base if remotes.base.is_project_on(self._host) else remotes.push
        seconds = self._settings.ask_seconds
        return GitHub(self._api_url, self._token, project, self._clock, seconds=seconds)

    async def _check_against_repository(
        self, wish: PullRequestDraft, remotes: Remotes | None
    ) -> None:
        if remotes is not None:
            checked_branch(wish.branch, wish.base, await self._default_branch(wish, remotes.name))
        ended = await self._git.run(
            "cat-file", "-t", wish.commit,
            cwd=wish.repository, user_settings=True, accept=(0, 1, 128),
        )  # fmt: skip
        if ended.stdout.strip() != b"commit":
            raise NotPossibleNow(
                f"the repository has no commit {wish.commit}, so nothing is pushed; bring the work back first"
            )

    async def _default_branch(self, wish: PullRequestDraft, remote: str) -> str:
        """The remote's default branch as far as this clone knows it."""
        ended = await self._git.run(
            "symbolic-ref", "--quiet", f"refs/remotes/{remote}/HEAD",
            cwd=wish.repository, user_settings=True, accept=(0, 1, 128),
        )  # fmt: skip
        name = ended.stdout.decode(errors="replace").strip()
        return name.removeprefix(f"refs/remotes/{remote}/")

    async def _written(
        self, wish: PullRequestDraft, remote: str, why: str, *, pushed: bool
    ) -> PullRequest:
        page = LocalPullRequest(wish, why, remote, pushed)
        path = await asyncio.to_thread(page.write, self._folder)
        return PullRequest(
            pushed=pushed, file=str(path), merge_command=merge_command(wish.branch), why_local=why
        )


async def _opened(github: GitHub, owner: str, wish: PullRequestDraft) -> PullRequest:
    number = await github.open_pull(owner, wish.branch, wish.base)
    existed = number is not None
    if number is None:
        made = await github.create_pull(owner, wish.branch, wish.base, wish.title, wish.body)
        if isinstance(made, GitHubRefusal):
            # Somebody, or an earlier try whose answer was lost, may have opened it in between.
            number = await _found_after(github, made, owner, wish)
            existed = True
        else:
            number = made
    return PullRequest(url=github.pull_url(number), number=number, existed=existed, pushed=True)


async def _found_after(
    github: GitHub, made: GitHubRefusal, owner: str, wish: PullRequestDraft
) -> int:
    if made.status == 422 and "already exists" in made.message.lower():
        number = await github.open_pull(owner, wish.branch, wish.base)
        if number is not None:
            return number
    raise NotPossibleNow(github.sentence(made))


def _whole_path(repository: str) -> str:
    """Processes start elsewhere, and whoever reads a file of commands may too."""
    return os.path.realpath(repository)


def _checked_token(token: str) -> str:
    token = token.strip()
    # Checked by us, because the errors of the HTTP library would print it.
    if not all(_FIRST_PRINTABLE <= sign <= _LAST_PRINTABLE for sign in token):
        raise BadInput(
            "the GitHub token holds a space, line break or other sign that no token has; set it anew"
        )
    return token


_NOTHING_IS_PUSHED = "the settings say that nothing is pushed"
_NO_REMOTE = _NoForge(
    "no_remote",
    "the repository has no remote, or several of which none is `origin`",
    "add one with `git remote add origin ADDRESS`, or name one in the settings",
)


def _other_forge(address: RemoteAddress, host: str) -> _NoForge:
    return _NoForge(
        "other_forge",
        f"the remote {address.shown!r} is not a repository on {host}",
        "see there that it takes no direct pushes; if it is a GitHub Enterprise, name its host in the settings",
    )


def _no_token(host: str) -> _NoForge:
    return _NoForge(
        "no_token",
        f"there is no token for {host}",
        "set GITHUB_TOKEN or GH_TOKEN, or look there that it takes no direct pushes",
    )
