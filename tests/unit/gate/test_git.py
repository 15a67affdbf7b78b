"""The git firewall, word by word."""

from __future__ import annotations

import shlex

import pytest

from podium.core.decisions import Tier
from podium.policy.git_firewall import GitUse, read_git
from podium.policy.refusal import CallDenied


def read(line: str) -> GitUse:
    return read_git(shlex.split(line)[1:], lambda folder: not folder.startswith(("/", "..")))


@pytest.mark.parametrize(
    "line",
    [
        "git status --short --branch",
        "git diff main...HEAD -- src",
        "git --no-pager log --oneline -n 5",
        "git -c core.fsmonitor=false -c core.hooksPath=/dev/null status",
        "git -c color.ui=always diff",
        "git -C src log",
        "git log --output-indicator-new=+",
        "git diff --text",
        "git rev-parse --git-dir",
        "git grep -n TODO",
        "git branch",
        "git branch -av",
        "git branch --list 'feature/*'",
        "git branch --contains HEAD",
        "git tag -n3",
        "git tag --list 'v*'",
        "git config user.email",
        "git config --get remote.origin.url",
        "git config --global --list",
        "git remote -v",
        "git remote get-url origin",
        "git remote show -n origin",
        "git stash list",
        "git stash show -p",
        "git worktree list --porcelain",
        "git symbolic-ref --short HEAD",
        "git reflog",
        "git --version",
        "git",
    ],
)
def test_reading_is_known_as_reading(line: str) -> None:
    assert not read(line).writes


@pytest.mark.parametrize(
    "line",
    [
        "git add -A",
        "git commit -m x",
        "git commit -am x --quiet",
        "git commit -amSenseless",
        "git rm a",
        "git mv a b",
        "git restore --staged a",
    ],
)
def test_additive_writes_pass_without_raising_the_tier(line: str) -> None:
    use = read(line)

    assert use.writes
    assert use.factors == ()


@pytest.mark.parametrize(
    "line",
    [
        "git restore a.py",
        "git restore --staged --worktree a.py",
        "git restore -SW a.py",
        "git rm -r src",
        "git rm -f a",
        "git rm --force a",
        "git commit --no-verify -m x",
        "git commit --no-ver -m x",
        "git commit -nm x",
        "git commit --amend --no-edit",
        "git commit --author=x -m x",
        "git commit -Sm x",
        "git commit --date=x -m x",
        "git rm .",
        "git rm '*.py'",
        "git add -f a",
        "git mv -f a b",
    ],
)
def test_writes_that_lose_something_are_raised_to_t2(line: str) -> None:
    assert [term.tier for term in read(line).factors] == [Tier.T2]


@pytest.mark.parametrize(
    "line",
    [
        "git checkout main",
        "git switch main",
        "git push",
        "git fetch",
        "git pull",
        "git clone x",
        "git reset --hard",
        "git rebase main",
        "git merge main",
        "git cherry-pick x",
        "git stash",
        "git stash pop",
        "git stash drop",
        "git branch new",
        "git branch -v new",
        "git branch -D old",
        "git branch -f main HEAD",
        "git branch --delete old",
        "git branch --del old",
        "git branch -- new",
        "git tag v1",
        "git tag -d v1",
        "git config user.name eve",
        "git config --unset user.name",
        "git config --global core.pager x",
        "git config -f .git/config user.name",
        "git config -e",
        "git remote add x y",
        "git remote show origin",
        "git remote -v update",
        "git worktree add x",
        "git symbolic-ref HEAD refs/heads/x",
        "git reflog expire --all",
        "git notes add",
        "git update-ref refs/heads/main HEAD",
        "git gc --prune=now",
        "git replace a b",
        "git apply x.patch",
        "git submodule update",
        "git filter-branch",
        "git help -w status",
        "git co main",
        "git -C .. status",
        "git -C /etc status",
        "git -C src -C .. status",
        "git -C",
        "git -c core.pager=less log",
        "git -c core.fsmonitor=./x status",
        "git -c alias.status=push status",
        "git -c core.hooksPath=. commit -m x",
        "git -ccore.pager=x log",
        "git -c",
        "git --exec-path=. status",
        "git --git-dir=x status",
        "git --git-dir x status",
        "git --work-tree=/ status",
        "git --config-env=a=B status",
        "git -p log",
        "git --paginate log",
        "git --bare status",
        "git diff --output=x",
        "git diff --outp x",
        "git log --o=x",
        "git diff --ext-diff",
        "git diff --ext",
        "git show --textconv",
        "git show --textc x",
        "git cat-file --filters HEAD:x",
        "git diff --no-index a b",
        "git diff --no-i a b",
        "git grep -O x",
        "git grep -Oless x",
        "git grep -nO x",
        "git grep --open-files-in-pager=less x",
        "git grep --open x",
        "git ls-remote --upload-pack=x y",
        "git status --git-dir=x",
    ],
)
def test_everything_else_is_refused(line: str) -> None:
    with pytest.raises(CallDenied) as refused:
        read(line)
    assert refused.value.rule == "git-firewall"
    assert refused.value.reason


def test_what_is_moved_and_where_to_is_reported() -> None:
    assert read("git mv -v a/x b/y -- .").moved == ("a/x", "b/y", ".")
    assert read("git add a").moved == ()


def test_a_commit_message_names_no_paths() -> None:
    assert read("git commit -am /etc/passwd --message=/x -m/y src/a.py").path_arguments == (
        "src/a.py",
    )
