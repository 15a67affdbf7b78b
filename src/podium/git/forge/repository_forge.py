"""`RepositoryForge`: GitHub where the remote is there, else a Markdown file that stands for the pull request."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from podium.core.errors import BadInput, ForgeUnavailable, NotPossibleNow
from podium.core.forge import (
    CommentAnswer,
    FailedCheck,
    Finding,
    PostedAnswer,
    Preflight,
    PullQuery,
    PullRequest,
    PullRequestDraft,
    PullStatus,
    RemoteBase,
)
from podium.core.model import FrozenModel
from podium.core.workspaces import RUN_REFS
from podium.git.forge import pull_requests
from podium.git.forge.branch_protection import look
from podium.git.forge.github import AnswerCache, GitHub, GitHubRefusal, api_url_of
from podium.git.forge.issues import GitHubIssues
from podium.git.forge.remotes import (
    Pusher,
    RemoteAddress,
    Remotes,
    checked_branch,
    checked_commit,
    checked_name,
    find_remotes,
    plain,
)
from podium.git.git_command import BASE_REFS, Git
from podium.platform import make_private_folder
from podium.platform.atomic_write import atomic_write
from podium.ports.engine import Clock
from podium.ports.launcher import Launcher

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_RUN_ID = re.compile(r"[a-z]+_[0-9a-f]{32}")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def merge_command(branch: str) -> str:
    return f"git merge --no-ff {shlex.quote(branch)}"


@dataclass(frozen=True)
class LocalPullRequest:
    """A draft as a page to read. The commands stand before the body, which is an agent's text."""

    draft: PullRequestDraft
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
                f"cannot write the pull request to {str(path)!r}: {error.strerror}; fix that, then resume"
            ) from error
        return path

    def page(self) -> str:
        draft = self.draft
        state = f"pushed to `{plain(self.remote)}`" if self.pushed else "in this repository only"
        body = _CONTROLS.sub("", draft.body.replace("\r\n", "\n")).strip()
        commands = "\n".join(self.commands())
        return (
            f"# {plain(draft.title, 256)}\n\n"
            f"Branch `{plain(draft.branch)}` at `{plain(draft.commit)}`, {state}, to be merged into "
            f"`{plain(draft.base)}`.\n\n"
            f"This file replaces a pull request: {plain(self.why)}.\n\n"
            f"## To merge it\n\n```sh\n{commands}\n```\n\n"
            f"## What it is\n\n{body}\n"
        )

    def commands(self) -> list[str]:
        base = shlex.quote(self.draft.base)
        lines = [
            f"cd {shlex.quote(self.draft.repository)}",
            f"git switch {base}",
            merge_command(self.draft.branch),
        ]
        return [*lines, f"git push {shlex.quote(self.remote)} {base}"] if self.remote else lines

    def _name(self) -> str:
        identity = self.draft.run_id or f"{self.draft.branch}@{self.draft.commit}"
        name = _NOT_IN_A_NAME.sub("-", identity).strip(".-")[:100]
        if name != identity:
            # Two that look alike without their signs stay two files.
            name = f"{name}-{hashlib.sha256(identity.encode(errors='replace')).hexdigest()[:8]}"
        return f"{name}.md"


_FIRST_PRINTABLE, _LAST_PRINTABLE = "!", "~"


class ForgeSettings(FrozenModel):
    """Forge, and the operations that are allowed there."""

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
    """Reason why a repository has no forge that can be asked."""

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
        self._cache = AnswerCache()
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
        forge = self._forge_for(remotes)
        if isinstance(forge, GitHub):
            return await look(forge, base)
        if remotes is None:
            return Preflight(
                finding="no_remote",
                sentence=f"no remote found, so the protection of {base!r} is not checked and nothing is pushed; add a remote with `git remote add origin ADDRESS`.",
                base=base,
            )
        return Preflight(
            finding=forge.finding,
            sentence=f"the protection of {base!r} was not checked: {forge.why}; {forge.remedy}.",
            remote=remotes.base.display,
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
        return await self._fetched_from(
            repository, remotes.base_name, remotes.base, remotes.base_branch
        )

    async def _fetched_from(
        self, repository: str, name: str, address: RemoteAddress, branch: str
    ) -> RemoteBase:
        full_name = f"{name}/{branch}"
        checked_name(branch)
        tip = await self._pusher.remote_tip(repository, name, address, branch)
        if not tip:
            return RemoteBase(
                name=full_name, why_not=f"the remote {name!r} has no branch {branch!r}"
            )
        if not await self._is_reachable(repository, tip):
            # Named after what it holds: a ref that never moves is in no other run's way.
            ref = f"{BASE_REFS}{tip}"
            await self._pusher.fetch(repository, name, address, branch, ref)
            tip = await self._resolved(repository, ref)
        is_here = address.is_project_on(self._host)
        web = f"https://{self._host}/{address.project}" if is_here else ""
        return RemoteBase(commit=tip, name=full_name, web=web)

    async def _is_reachable(self, repository: str, commit: str) -> bool:
        """Check that the commit exists and some ref contains it."""
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

    async def deliver(self, draft: PullRequestDraft) -> PullRequest:
        checked_branch(draft.branch, draft.base)
        checked_commit(draft.commit)
        draft = draft.model_copy(update={"repository": _whole_path(draft.repository)})
        remotes = await find_remotes(self._git, draft.repository, draft.base, self._settings.remote)
        await self._check_against_repository(draft, remotes)
        forge = self._forge_for(remotes)
        if remotes is None or not self._settings.push:
            why = forge.why if isinstance(forge, _NoForge) else _NOTHING_IS_PUSHED
            return await self._written(draft, remotes.name if remotes else "", why, pushed=False)
        base = await self._fetched(draft.repository, remotes)
        if base.commit and not await self._is_within(draft.repository, base.commit, draft.commit):
            return PullRequest(moved_base=base.commit)
        if isinstance(forge, GitHub) and draft.number is not None:
            return await self._pushed_again(forge, remotes, draft, draft.number)
        await self._pusher.push(
            draft.repository, remotes.name, remotes.push, draft.commit, draft.branch
        )
        await self._push_histories(draft, remotes)
        if isinstance(forge, GitHub):
            return await _opened(forge, remotes.push.owner, draft)
        return await self._written(draft, remotes.name, forge.why, pushed=True)

    async def _push_histories(self, draft: PullRequestDraft, remotes: Remotes) -> None:
        """Push the refs with the documents of the run. A remote that takes no such refs is no reason to stop."""
        if not _RUN_ID.fullmatch(draft.run_id):
            return
        ended = await self._git.run(
            "for-each-ref", "--format=%(refname)", f"{RUN_REFS}{draft.run_id}/*/history",
            cwd=draft.repository, user_settings=True,
        )  # fmt: skip
        with suppress(NotPossibleNow, ForgeUnavailable):
            for ref in ended.stdout.decode().split():
                await self._pusher.push_ref(draft.repository, remotes.name, remotes.push, ref)

    async def _pushed_again(
        self, github: GitHub, remotes: Remotes, draft: PullRequestDraft, number: int
    ) -> PullRequest:
        """Push new commits to the branch of an open pull request, on top of whatever is there. Never by force."""
        request = PullRequest(url=github.pull_url(number), number=number, existed=True)
        if not await pull_requests.is_open(github, number):
            return request.model_copy(update={"closed": True})
        repository, address = draft.repository, remotes.push
        tip = await self._pusher.remote_tip(repository, remotes.name, address, draft.branch)
        if not tip:
            raise NotPossibleNow(
                f"the branch {draft.branch!r} was deleted at the remote {remotes.name!r} while pull request {number} "
                "is open; restore it there, or close the pull request"
            )
        is_known = bool(await self._resolved(repository, tip))
        if not is_known or not await self._is_within(repository, tip, draft.commit):
            return request.model_copy(update={"moved_branch": tip})
        await self._pusher.push(repository, remotes.name, address, draft.commit, draft.branch)
        return request.model_copy(update={"pushed": True})

    async def fetch_branch(
        self, repository: str, base: str, branch: str, *, holding: str = ""
    ) -> RemoteBase:
        whole = _whole_path(repository)
        remotes = await find_remotes(self._git, whole, base, self._settings.remote)
        if remotes is None:
            raise NotPossibleNow("the repository has no remote any more; add it again")
        checked_branch(branch, base)
        fetched = await self._fetched_from(whole, remotes.name, remotes.push, branch)
        if holding and fetched.commit and not await self._is_within(whole, holding, fetched.commit):
            raise NotPossibleNow(
                f"the branch {branch!r} was rewritten at the remote {remotes.name!r}: it does not contain commit "
                f"{holding[:12]}, which Podium pushed; nothing is overwritten there, and if you resume, what it has now is "
                "merged with Podium's commits"
            )
        return fetched

    async def pull_status(self, query: PullQuery) -> PullStatus:
        return await pull_requests.pull_status(await self._github(query), query)

    async def check_excerpts(
        self, query: PullQuery, checks: Sequence[FailedCheck], head: str
    ) -> Sequence[FailedCheck]:
        return await pull_requests.with_excerpts(await self._github(query), checks, head)

    async def answer_comment(self, answer: CommentAnswer) -> PostedAnswer:
        return await pull_requests.post_answer(await self._github(answer), answer)

    async def _github(self, about: PullQuery | CommentAnswer) -> GitHub:
        whole = _whole_path(about.repository)
        remotes = await find_remotes(self._git, whole, about.base, self._settings.remote)
        forge = self._forge_for(remotes)
        if isinstance(forge, GitHub):
            return forge
        raise NotPossibleNow(
            f"pull request {about.number} cannot be followed: {forge.why}; {forge.remedy}"
        )

    async def issues(self, repository: str, base: str) -> GitHubIssues:
        whole = _whole_path(repository)
        remotes = await find_remotes(self._git, whole, base, self._settings.remote)
        forge = self._forge_for(remotes)
        if isinstance(forge, _NoForge):
            raise NotPossibleNow(f"there are no issues to read: {forge.why}; {forge.remedy}")
        seconds = self._settings.ask_seconds
        return GitHubIssues(
            self._api_url,
            self._token,
            forge.project,
            self._clock,
            seconds=seconds,
            cache=self._cache,
        )

    def _forge_for(self, remotes: Remotes | None) -> GitHub | _NoForge:
        if remotes is None:
            return _NO_REMOTE
        if not remotes.push.is_project_on(self._host):
            return _other_forge(remotes.push, self._host)
        if not self._token:
            return _no_token(self._host)
        project = remotes.base if remotes.base.is_project_on(self._host) else remotes.push
        seconds = self._settings.ask_seconds
        return GitHub(
            self._api_url, self._token, project, self._clock, seconds=seconds, cache=self._cache
        )

    async def _check_against_repository(
        self, draft: PullRequestDraft, remotes: Remotes | None
    ) -> None:
        if remotes is not None:
            checked_branch(
                draft.branch, draft.base, await self._default_branch(draft, remotes.name)
            )
        ended = await self._git.run(
            "cat-file", "-t", draft.commit,
            cwd=draft.repository, user_settings=True, accept=(0, 1, 128),
        )  # fmt: skip
        if ended.stdout.strip() != b"commit":
            raise NotPossibleNow(
                f"the repository has no commit {draft.commit}, so nothing is pushed; deliver the work first"
            )

    async def _default_branch(self, draft: PullRequestDraft, remote: str) -> str:
        """The remote's default branch as far as this clone knows it."""
        ended = await self._git.run(
            "symbolic-ref", "--quiet", f"refs/remotes/{remote}/HEAD",
            cwd=draft.repository, user_settings=True, accept=(0, 1, 128),
        )  # fmt: skip
        name = ended.stdout.decode(errors="replace").strip()
        return name.removeprefix(f"refs/remotes/{remote}/")

    async def _written(
        self, draft: PullRequestDraft, remote: str, why: str, *, pushed: bool
    ) -> PullRequest:
        page = LocalPullRequest(draft, why, remote, pushed)
        path = await asyncio.to_thread(page.write, self._folder)
        return PullRequest(
            pushed=pushed, file=str(path), merge_command=merge_command(draft.branch), why_local=why
        )


async def _opened(github: GitHub, owner: str, draft: PullRequestDraft) -> PullRequest:
    number = await github.open_pull(owner, draft.branch, draft.base)
    existed = number is not None
    if number is None:
        made = await github.create_pull(owner, draft.branch, draft.base, draft.title, draft.body)
        if isinstance(made, GitHubRefusal):
            # Somebody, or an earlier try whose answer was lost, may have opened it in between.
            number = await _existing_pull(github, made, owner, draft)
            existed = True
        else:
            number = made
    return PullRequest(url=github.pull_url(number), number=number, existed=existed, pushed=True)


async def _existing_pull(
    github: GitHub, made: GitHubRefusal, owner: str, draft: PullRequestDraft
) -> int:
    if made.status == 422 and "already exists" in made.message.lower():
        number = await github.open_pull(owner, draft.branch, draft.base)
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
            "the GitHub token contains a space, line break or other invalid character; set it again"
        )
    return token


_NOTHING_IS_PUSHED = "pushing is disabled in the settings"
_NO_REMOTE = _NoForge(
    "no_remote",
    "the repository has no remote, or several remotes without an `origin`",
    "add one with `git remote add origin ADDRESS`, or name one in the settings",
)


def _other_forge(address: RemoteAddress, host: str) -> _NoForge:
    return _NoForge(
        "other_forge",
        f"the remote {address.display!r} is not on {host}",
        "check there that direct pushes are blocked; for a GitHub Enterprise, name its host in the settings",
    )


def _no_token(host: str) -> _NoForge:
    return _NoForge(
        "no_token",
        f"no token for {host}",
        "set GITHUB_TOKEN or GH_TOKEN, or check there that direct pushes are blocked",
    )
