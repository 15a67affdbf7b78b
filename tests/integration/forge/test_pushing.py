"""One commit goes to one branch, never to the base branch, never by force, and never past a refusal."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.core.errors import BadInput, ForgeUnavailable, NotPossibleNow
from podium.git.forge.remotes import checked_branch, checked_commit
from tests.integration.forge.github_server import TOKEN
from tests.integration.forge.rig import BRANCH, Yard
from tests.integration.workspaces.rig import commit, git


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    return Yard(tmp_path, remote=str(tmp_path / "remote.git"))


SPELLINGS = (
    "main", "MAIN", "Main", "refs/heads/main", "heads/main", "Refs/Heads/Main", "ｍａｉｎ",
    "HEAD", "head", "@", "+main", "+task/x", ":main", ":", "x:main", "main:", "main^{}", "@{-1}",
    " main", "main ", "-main", "--mirror", "main/", "./main", "x/../main", "main.lock", "main.",
    "refs/tags/v1", "remotes/origin/main", "*", "ma?n", "main\n", "\0",
)  # fmt: skip


async def test_the_base_branch_is_never_pushed_by_any_spelling(yard: Yard) -> None:
    for branch in SPELLINGS:
        with pytest.raises(BadInput):
            await yard.forge().deliver(yard.wish(branch=branch))
    assert yard.launcher.spawns == []
    assert yard.there() == {"main": yard.base}


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


async def test_the_remotes_default_branch_is_kept_although_the_base_is_another(yard: Yard) -> None:
    yard.user("fetch", "-q", "origin")
    yard.user("remote", "set-head", "origin", "main")
    with pytest.raises(BadInput, match="never pushed"):
        await yard.forge().deliver(yard.wish(branch="Main", base="develop"))
    assert yard.there() == {"main": yard.base}


async def test_exactly_the_commit_is_pushed_and_nothing_else(yard: Yard) -> None:
    yard.user("tag", "-a", "v1", "-m", "one", yard.tip)
    yard.user("config", "push.followTags", "true")
    yard.user("config", "remote.origin.mirror", "true")
    yard.user("config", "remote.origin.push", "+refs/*:refs/*")
    commit(yard.repository, "unrelated", other="x\n")
    await yard.forge().deliver(yard.wish())
    assert yard.there() == {"main": yard.base, BRANCH: yard.tip}


async def test_a_branch_that_moved_on_locally_is_pushed_where_it_was(yard: Yard) -> None:
    yard.user("switch", "-q", BRANCH)
    later = commit(yard.repository, "later", README="later\n")
    await yard.forge().deliver(yard.wish())
    assert yard.there()[BRANCH] == yard.tip != later


async def test_a_branch_that_is_there_already_is_fine_and_one_behind_is_moved(yard: Yard) -> None:
    await yard.forge().deliver(yard.wish())
    await yard.forge().deliver(yard.wish())
    yard.user("switch", "-q", BRANCH)
    later = commit(yard.repository, "later", README="later\n")
    await yard.forge().deliver(yard.wish(commit=later))
    assert yard.there()[BRANCH] == later


async def test_a_branch_that_is_elsewhere_is_never_overwritten(yard: Yard) -> None:
    others = commit(yard.repository, "of somebody else", README="other\n")
    yard.user("push", "-q", "origin", f"{others}:refs/heads/{BRANCH}")
    yard.user("config", "remote.origin.push", f"+refs/heads/{BRANCH}:refs/heads/{BRANCH}")
    with pytest.raises(NotPossibleNow, match=r"not overwritten.*--delete task/greet"):
        await yard.forge().deliver(yard.wish())
    assert yard.there()[BRANCH] == others


async def test_a_refusal_of_the_remote_is_quoted_without_escapes(yard: Yard) -> None:
    hook = yard.bare / "hooks/pre-receive"
    hook.write_text("#!/bin/sh\nprintf 'not on a \\033[31mFriday\\n' >&2\nexit 1\n")
    hook.chmod(0o755)
    with pytest.raises(NotPossibleNow) as refused:
        await yard.forge().deliver(yard.wish())
    assert "pre-receive hook declined" in str(refused.value)
    assert "not on a" in str(refused.value)
    assert "\x1b" not in str(refused.value)
    assert yard.there() == {"main": yard.base}
    assert not yard.pulls.exists()


async def test_no_hook_of_the_repository_runs(yard: Yard) -> None:
    for name in ("pre-push", "reference-transaction"):
        hook = yard.repository / ".git/hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch {yard.folder}/ran-{name}\nexit 1\n")
        hook.chmod(0o755)
    await yard.forge().deliver(yard.wish())
    assert yard.there()[BRANCH] == yard.tip
    assert list(yard.folder.glob("ran-*")) == []


async def test_a_base_that_moved_is_fetched_without_hooks_and_nothing_is_pushed(
    yard: Yard,
) -> None:
    yard.user("config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*")
    yard.user("config", "remote.origin.tagOpt", "--tags")
    colleague = yard.folder / "colleague"
    git(yard.folder, "clone", "-q", str(yard.bare), str(colleague))
    moved = commit(colleague, "theirs", OTHER="new\n")
    git(colleague, "tag", "v9")
    git(colleague, "push", "-q", "origin", "main", "v9")
    hook = yard.repository / ".git/hooks/reference-transaction"
    hook.write_text(f"#!/bin/sh\ntouch {yard.folder}/ran\nexit 1\n")
    hook.chmod(0o755)
    made = await yard.forge().deliver(yard.wish())
    assert (made.moved_base, made.pushed, made.file) == (moved, False, "")
    assert BRANCH not in yard.there()
    names = yard.user("for-each-ref", "--format=%(refname)").splitlines()
    assert names == ["refs/heads/main", f"refs/heads/{BRANCH}", f"refs/podium/bases/{moved}"]
    assert yard.user("rev-parse", "main") == yard.base
    # Where nothing keeps it any more, it is kept again.
    yard.user("-c", "core.hooksPath=/", "update-ref", "-d", names[-1])
    assert (await yard.forge().fetch_base(str(yard.repository), "main")).commit == moved
    assert yard.user("for-each-ref", "--format=%(refname)").splitlines() == names
    assert not (yard.repository / ".git/FETCH_HEAD").exists()
    assert not (yard.folder / "ran").exists()


async def test_the_branch_that_the_base_follows_is_the_one_that_is_fetched(yard: Yard) -> None:
    yard.user("push", "-q", str(yard.bare), f"{yard.tip}:refs/heads/trunk")
    yard.user("config", "branch.main.remote", "origin")
    yard.user("config", "branch.main.merge", "refs/heads/trunk")
    base = await yard.forge().fetch_base(str(yard.repository), "main")
    assert (base.commit, base.name, base.why_not) == (yard.tip, "origin/trunk", "")


async def test_a_commit_that_is_not_there_or_is_none_is_not_pushed(yard: Yard) -> None:
    blob = yard.user("rev-parse", "main:README")
    for wrong in ("1" * 40, blob):
        with pytest.raises(NotPossibleNow, match="has no commit"):
            await yard.forge().deliver(yard.wish(commit=wrong))
    assert yard.there() == {"main": yard.base}


async def test_a_remote_that_is_gone_is_for_a_person(yard: Yard) -> None:
    yard.user("remote", "set-url", "origin", str(yard.folder / "nowhere.git"))
    with pytest.raises(NotPossibleNow, match="git cannot read from"):
        await yard.forge().deliver(yard.wish())


async def test_a_remote_that_is_out_of_reach_is_worth_another_try(yard: Yard) -> None:
    # Nothing listens at the port of `tcpmux`.
    yard.user("remote", "set-url", "origin", f"https://uma:{TOKEN}@127.0.0.1:1/octo/hello.git")
    with pytest.raises(ForgeUnavailable, match="cannot reach") as away:
        await yard.forge().deliver(yard.wish())
    assert TOKEN not in str(away.value)


async def test_a_push_that_hangs_is_given_up(yard: Yard) -> None:
    script = yard.folder / "ssh-that-hangs"
    script.write_text("#!/bin/sh\nexec sleep 600\n")
    script.chmod(0o755)
    yard.user("config", "core.sshCommand", str(script))
    yard.user("remote", "set-url", "origin", "git@example.org:octo/hello.git")
    with pytest.raises(ForgeUnavailable, match=r"within 0\.5 seconds"):
        await yard.forge(push_seconds=0.5).deliver(yard.wish())


async def test_a_password_that_nobody_can_type_is_not_asked_for(yard: Yard) -> None:
    script = yard.folder / "ssh-without-key"
    script.write_text(
        "#!/bin/sh\necho 'git@example.org: Permission denied (publickey).' >&2\nexit 255\n"
    )
    script.chmod(0o755)
    yard.user("config", "core.sshCommand", str(script))
    yard.user("remote", "set-url", "origin", "git@example.org:octo/hello.git")
    with pytest.raises(
        NotPossibleNow, match=r"Permission denied.*until it works without a password"
    ):
        await yard.forge().deliver(yard.wish())
