"""The git firewall as data for the guard of a confined tree, held against that guard's own judge."""

from __future__ import annotations

import shlex

import pytest

from podium.domain.launching import ExecRules
from podium.gate import exec_rules
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
git apply x.patch
git branch --show-current
git branch -a
git config --get user.name
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
git reset --hard
git reset evil
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
