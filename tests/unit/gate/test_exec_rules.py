"""The git firewall as data for the guard of a confined tree, held against that guard's own judge."""

from __future__ import annotations

import shlex

import pytest

from podium.core.processes import ExecRules
from podium.policy import exec_rules
from podium.sandbox.confining.exec_rules import as_data, from_data, judge

RULES = from_data(as_data(exec_rules()))


def refusal(line: str) -> str:
    argv = shlex.split(line)
    return judge(RULES, (argv[0].rpartition("/")[2],), argv)


@pytest.mark.parametrize(
    "line",
    """
git status
git -c core.hooksPath=/dev/null -c core.fsmonitor= -c safe.bareRepository=explicit status --porcelain
git -c core.fsmonitor=false -c core.quotepath=false diff --no-ext-diff --text HEAD
git -C sub log -1
git rev-parse --show-toplevel
git rev-parse --git-dir
git add -A
git commit -qm x
git commit --amend --no-edit
git rm -r old
git mv a b
git restore --staged a
git reset -q HEAD a.py
git reset --soft HEAD~1
git reset --mixed 1234abc
git reset HEAD~1
git apply x.patch
git branch --show-current
git branch -a
git config --get user.name
git config user.name
git config --get-regexp user. x
git config get user.name
git config --list
git stash list
git stash show -p
git symbolic-ref HEAD
git symbolic-ref --short -q HEAD
git branch --list pod*
git branch --contains HEAD
git tag -l v*
git log --filter=blob:none --text
git diff --output-indicator-new=x
git remote -v
git worktree list
git maintenance run --auto --quiet
git --version
ls -la
python3 -c 1
""".strip().splitlines(),
)
def test_what_an_agent_and_its_cli_need_is_started(line: str) -> None:
    assert refusal(line) == ""


@pytest.mark.parametrize(
    "line",
    """
git checkout evil
git switch evil
git -C . checkout evil
git -c alias.x=!id x
git -c alias.status=checkout status
git --git-dir=x status
git --exec-path=. status
git branch evil
git branch -D main
git branch -fv main
git tag v1
git push
git fetch
git pull
git merge x
git rebase x
git stash
git stash pop
git stash push
git config user.name evil
git config set user.name evil
git config --unset-all user.name
git config --comment --get user.name evil
git config --rep user.name evil
git symbolic-ref -d HEAD
git symbolic-ref
git branch --list -f main
git log --textc
git cat-file --text HEAD:x
git diff --outp=x
git worktree
git reset --hard
git reset --hard HEAD~1
git reset --ha HEAD~1
git reset --keep HEAD~1
git reset --merge HEAD~1
git update-ref HEAD x
git symbolic-ref HEAD refs/heads/evil
git worktree add x
git remote add x y
git remote show origin
git diff --output=x
git grep -nO x
git gc --prune=now
git submodule add . x
git-checkout evil
sudo ls
su -c id
""".strip().splitlines(),
)
def test_what_the_firewall_denies_is_not_started_either(line: str) -> None:
    assert refusal(line) != ""


def test_the_reason_says_what_to_do_instead() -> None:
    assert "instead: stay on your branch" in refusal("git checkout evil")


def test_the_rules_are_plain_data() -> None:
    assert ExecRules.model_validate_json(exec_rules().model_dump_json()) == exec_rules()
