"""One commit goes to one branch, never to the base branch, never by force, and never past a refusal."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.core.errors import BadInput, ForgeUnavailable, NotPossibleNow
from podium.git.forge.remotes import checked_branch, checked_commit
from tests.integration.forge.github_server import TOKEN
from tests.integration.forge.remote_project import BRANCH, RemoteProject
from tests.integration.workspaces.workspace_harness import commit, git


@pytest.fixture
def remote_project(tmp_path: Path) -> RemoteProject:
    return RemoteProject(tmp_path, remote=str(tmp_path / "remote.git"))


SPELLINGS = (
    "main", "MAIN", "Main", "refs/heads/main", "heads/main", "Refs/Heads/Main", "ｍａｉｎ",
    "HEAD", "head", "@", "+main", "+task/x", ":main", ":", "x:main", "main:", "main^{}", "@{-1}",
    " main", "main ", "-main", "--mirror", "main/", "./main", "x/../main", "main.lock", "main.",
    "refs/tags/v1", "remotes/origin/main", "*", "ma?n", "main\n", "\0",
)  # fmt: skip


async def test_the_base_branch_is_never_pushed_by_any_spelling(
    remote_project: RemoteProject,
) -> None:
    for branch in SPELLINGS:
        with pytest.raises(BadInput):
            await remote_project.forge().deliver(remote_project.draft(branch=branch))
    assert remote_project.launcher.spawns == []
    assert remote_project.there() == {"main": remote_project.base}


@pytest.mark.parametrize("base", ["", " ", "HEAD ", "refs/heads/main", "+main", "@"])
def test_without_a_short_name_of_the_base_nothing_is_pushed(base: str) -> None:
    with pytest.raises(BadInput, match="nothing was pushed"):
        checked_branch("main", base)


def test_a_branch_may_end_in_the_name_of_the_base() -> None:
    assert checked_branch("task/main", "main") == "task/main"


@pytest.mark.parametrize(
    "text", ["", "HEAD", "main", "abc1234", "+" + "a" * 40, "a" * 41, "A" * 40]
)
def test_only_a_whole_id_is_pushed(text: str) -> None:
    with pytest.raises(BadInput, match="full commit ID"):
        checked_commit(text)


async def test_the_remotes_default_branch_is_kept_although_the_base_is_another(
    remote_project: RemoteProject,
) -> None:
    remote_project.user("fetch", "-q", "origin")
    remote_project.user("remote", "set-head", "origin", "main")
    with pytest.raises(BadInput, match="never pushed"):
        await remote_project.forge().deliver(remote_project.draft(branch="Main", base="develop"))
    assert remote_project.there() == {"main": remote_project.base}


async def test_exactly_the_commit_is_pushed_and_nothing_else(remote_project: RemoteProject) -> None:
    remote_project.user("tag", "-a", "v1", "-m", "one", remote_project.tip)
    remote_project.user("config", "push.followTags", "true")
    remote_project.user("config", "remote.origin.mirror", "true")
    remote_project.user("config", "remote.origin.push", "+refs/*:refs/*")
    commit(remote_project.repository, "unrelated", other="x\n")
    await remote_project.forge().deliver(remote_project.draft())
    assert remote_project.there() == {"main": remote_project.base, BRANCH: remote_project.tip}


async def test_a_branch_that_moved_on_locally_is_pushed_where_it_was(
    remote_project: RemoteProject,
) -> None:
    remote_project.user("switch", "-q", BRANCH)
    later = commit(remote_project.repository, "later", README="later\n")
    await remote_project.forge().deliver(remote_project.draft())
    assert remote_project.there()[BRANCH] == remote_project.tip != later


async def test_a_branch_that_is_there_already_is_fine_and_one_behind_is_moved(
    remote_project: RemoteProject,
) -> None:
    await remote_project.forge().deliver(remote_project.draft())
    await remote_project.forge().deliver(remote_project.draft())
    remote_project.user("switch", "-q", BRANCH)
    later = commit(remote_project.repository, "later", README="later\n")
    await remote_project.forge().deliver(remote_project.draft(commit=later))
    assert remote_project.there()[BRANCH] == later


async def test_a_branch_that_is_elsewhere_is_never_overwritten(
    remote_project: RemoteProject,
) -> None:
    others = commit(remote_project.repository, "of somebody else", README="other\n")
    remote_project.user("push", "-q", "origin", f"{others}:refs/heads/{BRANCH}")
    remote_project.user("config", "remote.origin.push", f"+refs/heads/{BRANCH}:refs/heads/{BRANCH}")
    with pytest.raises(NotPossibleNow, match=r"not overwritten.*--delete task/greet"):
        await remote_project.forge().deliver(remote_project.draft())
    assert remote_project.there()[BRANCH] == others


async def test_a_refusal_of_the_remote_is_quoted_without_escapes(
    remote_project: RemoteProject,
) -> None:
    hook = remote_project.bare / "hooks/pre-receive"
    hook.write_text("#!/bin/sh\nprintf 'not on a \\033[31mFriday\\n' >&2\nexit 1\n")
    hook.chmod(0o755)
    with pytest.raises(NotPossibleNow) as refused:
        await remote_project.forge().deliver(remote_project.draft())
    assert "pre-receive hook declined" in str(refused.value)
    assert "not on a" in str(refused.value)
    assert "\x1b" not in str(refused.value)
    assert remote_project.there() == {"main": remote_project.base}
    assert not remote_project.pulls.exists()


async def test_no_hook_of_the_repository_runs(remote_project: RemoteProject) -> None:
    for name in ("pre-push", "reference-transaction"):
        hook = remote_project.repository / ".git/hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch {remote_project.folder}/ran-{name}\nexit 1\n")
        hook.chmod(0o755)
    await remote_project.forge().deliver(remote_project.draft())
    assert remote_project.there()[BRANCH] == remote_project.tip
    assert list(remote_project.folder.glob("ran-*")) == []


async def test_a_base_that_moved_is_fetched_without_hooks_and_nothing_is_pushed(
    remote_project: RemoteProject,
) -> None:
    remote_project.user("config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*")
    remote_project.user("config", "remote.origin.tagOpt", "--tags")
    colleague = remote_project.folder / "colleague"
    git(remote_project.folder, "clone", "-q", str(remote_project.bare), str(colleague))
    moved = commit(colleague, "theirs", OTHER="new\n")
    git(colleague, "tag", "v9")
    git(colleague, "push", "-q", "origin", "main", "v9")
    hook = remote_project.repository / ".git/hooks/reference-transaction"
    hook.write_text(f"#!/bin/sh\ntouch {remote_project.folder}/ran\nexit 1\n")
    hook.chmod(0o755)
    made = await remote_project.forge().deliver(remote_project.draft())
    assert (made.moved_base, made.pushed, made.file) == (moved, False, "")
    assert BRANCH not in remote_project.there()
    names = remote_project.user("for-each-ref", "--format=%(refname)").splitlines()
    assert names == ["refs/heads/main", f"refs/heads/{BRANCH}", f"refs/podium/bases/{moved}"]
    assert remote_project.user("rev-parse", "main") == remote_project.base
    # Where nothing keeps it any more, it is kept again.
    remote_project.user("-c", "core.hooksPath=/", "update-ref", "-d", names[-1])
    assert (
        await remote_project.forge().fetch_base(str(remote_project.repository), "main")
    ).commit == moved
    assert remote_project.user("for-each-ref", "--format=%(refname)").splitlines() == names
    assert not (remote_project.repository / ".git/FETCH_HEAD").exists()
    assert not (remote_project.folder / "ran").exists()


async def test_the_branch_that_the_base_follows_is_the_one_that_is_fetched(
    remote_project: RemoteProject,
) -> None:
    remote_project.user(
        "push", "-q", str(remote_project.bare), f"{remote_project.tip}:refs/heads/trunk"
    )
    remote_project.user("config", "branch.main.remote", "origin")
    remote_project.user("config", "branch.main.merge", "refs/heads/trunk")
    base = await remote_project.forge().fetch_base(str(remote_project.repository), "main")
    assert (base.commit, base.name, base.why_not) == (remote_project.tip, "origin/trunk", "")


async def test_a_commit_that_is_not_there_or_is_none_is_not_pushed(
    remote_project: RemoteProject,
) -> None:
    blob = remote_project.user("rev-parse", "main:README")
    for wrong in ("1" * 40, blob):
        with pytest.raises(NotPossibleNow, match="has no commit"):
            await remote_project.forge().deliver(remote_project.draft(commit=wrong))
    assert remote_project.there() == {"main": remote_project.base}


async def test_a_remote_that_is_gone_is_for_a_person(remote_project: RemoteProject) -> None:
    remote_project.user("remote", "set-url", "origin", str(remote_project.folder / "nowhere.git"))
    with pytest.raises(NotPossibleNow, match="git cannot read from"):
        await remote_project.forge().deliver(remote_project.draft())


async def test_a_remote_that_is_out_of_reach_is_worth_another_try(
    remote_project: RemoteProject,
) -> None:
    # Nothing listens at the port of `tcpmux`.
    remote_project.user(
        "remote", "set-url", "origin", f"https://uma:{TOKEN}@127.0.0.1:1/octo/hello.git"
    )
    with pytest.raises(ForgeUnavailable, match="cannot reach") as away:
        await remote_project.forge().deliver(remote_project.draft())
    assert TOKEN not in str(away.value)


async def test_a_push_that_hangs_is_given_up(remote_project: RemoteProject) -> None:
    script = remote_project.folder / "ssh-that-hangs"
    script.write_text("#!/bin/sh\nexec sleep 600\n")
    script.chmod(0o755)
    remote_project.user("config", "core.sshCommand", str(script))
    remote_project.user("remote", "set-url", "origin", "git@example.org:octo/hello.git")
    with pytest.raises(ForgeUnavailable, match=r"within 0\.5 seconds"):
        await remote_project.forge(push_seconds=0.5).deliver(remote_project.draft())


async def test_a_password_that_nobody_can_type_is_not_asked_for(
    remote_project: RemoteProject,
) -> None:
    script = remote_project.folder / "ssh-without-key"
    script.write_text(
        "#!/bin/sh\necho 'git@example.org: Permission denied (publickey).' >&2\nexit 255\n"
    )
    script.chmod(0o755)
    remote_project.user("config", "core.sshCommand", str(script))
    remote_project.user("remote", "set-url", "origin", "git@example.org:octo/hello.git")
    with pytest.raises(
        NotPossibleNow, match=r"Permission denied.*until it works without a password"
    ):
        await remote_project.forge().deliver(remote_project.draft())
