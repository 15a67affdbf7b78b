"""Git on scratch repositories: free for confined runs, and no way back to the workspace's own repository."""

from __future__ import annotations

import shlex

import pytest

from podium.core.decisions import Effect
from podium.policy import exec_rules
from podium.sandbox.confining.exec_rules import ProcessContext, as_data, from_data, judge
from tests.unit.gate.gate_harness import gate_of, run

FREE = """
cd $(mktemp -d) && git init && git commit --allow-empty -m x
D=$(mktemp -d); git -C "$D" init && git -C "$D" tag v1
d=$(mktemp -d) && cd "$d" && git init -q && git config user.name T && git tag -a v1 -m 'see /root/x'
git init -q -b main /tmp/x && git -C /tmp/x checkout -b side
git clone tests/fixtures/repo.git /tmp/y
git clone -q --branch main file:///srv/project/tests/fixture.git /tmp/y && cd /tmp/y && git pull
cd /tmp/x && git remote add origin https://example.com/a.git && git branch -M main
cd /tmp/x && git merge side && git rebase main && git stash && git reset --hard HEAD~1
cd /tmp/x && git worktree add ../w && git push origin main
git -C ~/scratch init
""".strip().splitlines()

HELD = """
git init
git init sub
git checkout main
git tag v1
git config user.name X
git clone tests/fixture.git copy
git clone tests/fixture.git
git clone https://example.com/x.git /tmp/y
git clone git@github.com:a/b.git /tmp/y
cd /tmp/x && git clone ssh://example.com/x.git
cd /tmp/x && git fetch ext::sh
cd /tmp/x && git --git-dir=/srv/project/.git update-ref refs/heads/main HEAD
cd /tmp/x && git --git-dir /srv/project/.git --work-tree . checkout main
cd /tmp/x && git -C /srv/project checkout main
cd /tmp/x && git push /srv/project HEAD:refs/heads/main
cd /tmp/x && git worktree add /srv/project/w
cd /tmp/x && GIT_DIR=/srv/project/.git git checkout main
cd /tmp/x; git checkout main
cd $X && git checkout main
cd /tmp/x && cd - && git checkout main
(cd /tmp/x && git init) && git checkout main
cd /tmp/x && git submodule foreach 'git -C /srv/project checkout main'
cd /tmp/x && git -c alias.z='!git -C /srv/project checkout main' z
cd /tmp/x && git -c core.sshCommand=./x fetch
cd /tmp/x && git config -f /srv/project/.git/config core.hooksPath /tmp/h
cd /tmp/x && git init --separate-git-dir=/srv/project/g .
cd /tmp/x && git $COMMAND
""".strip().splitlines()


@pytest.mark.parametrize("line", FREE)
def test_a_confined_run_does_what_it_likes_with_scratch_repositories(line: str) -> None:
    decision = run(gate_of(default=True), line, mode="autonomous", confined=True, network="none")
    assert decision.effect is Effect.ALLOW, decision.reason


@pytest.mark.parametrize("line", HELD)
def test_nothing_leads_back_to_the_workspace_or_to_another_machine(line: str) -> None:
    decision = run(gate_of(default=True), line, mode="autonomous", confined=True, network="none")
    assert decision.effect is Effect.DENY


@pytest.mark.parametrize("line", ["git init /tmp/x", "git -C /tmp/x tag v1"])
def test_without_confinement_git_stays_in_the_workspace(line: str) -> None:
    assert run(gate_of(default=True), line, mode="autonomous").effect is Effect.DENY


class Around(ProcessContext):
    def __init__(self, folder: str, *variables: str) -> None:
        self._folder, self._variables = folder, list(variables)

    def folder(self) -> str:
        return self._folder

    def variables(self) -> list[str]:
        return self._variables


_WORKTREE, _GIT_DIR = "/srv/project", "/home/uma/project/.git"
_RULES = from_data(as_data(exec_rules().model_copy(update={"repositories": (_WORKTREE, _GIT_DIR)})))


def _refusal(line: str, folder: str, *variables: str) -> str:
    argv = shlex.split(line)
    return judge(_RULES, (argv[0],), argv, Around(folder, *variables))


@pytest.mark.parametrize(
    ("line", "folder"),
    [
        *((line, "/tmp/x") for line in ("git init", "git tag v1", "git checkout main", "git gc")),
        *(
            (line, "/tmp/x")
            for line in ("git config user.name T", "git -c a.b=c stash", "git push")
        ),
        *((line, "/srv/projects") for line in ("git init", "git clone /srv/project/fixture.git")),
        *((line, _WORKTREE) for line in ("git init /tmp/y", "git -C ../../tmp/y tag v1")),
        *((line, _WORKTREE) for line in ("git clone -b main . /tmp/y", "git-upload-pack /tmp/y")),
    ],
)
def test_the_guard_leaves_scratch_repositories_alone(line: str, folder: str) -> None:
    assert _refusal(line, folder) == ""


@pytest.mark.parametrize(
    ("line", "folder", "variables"),
    [
        *(
            (line, _WORKTREE, ())
            for line in ("git init", "git init sub", "git tag v1", "git gc --force")
        ),
        *((line, f"{_WORKTREE}/sub", ()) for line in ("git checkout main", "git clone /tmp/y")),
        *(
            (line, _GIT_DIR, ())
            for line in ("git update-ref refs/heads/main HEAD", "git gc --force")
        ),
        ("git -C /srv/project tag v1", "/tmp/x", ()),
        ("git -C / -C srv/project tag v1", "/tmp/x", ()),
        ("git --git-dir=/home/uma/project/.git tag v1", "/tmp/x", ()),
        ("git --work-tree /srv/project checkout main", "/tmp/x", ()),
        ("git push file:///srv/project HEAD:refs/heads/main", "/tmp/x", ()),
        ("git-receive-pack /srv/project", "/tmp/x", ()),
        ("git worktree add ../../srv/project/w", "/tmp/x", ()),
        ("git tag v1", "/tmp/x", (f"GIT_DIR={_GIT_DIR}",)),
        ("git checkout main", "/tmp/x", ("GIT_WORK_TREE=/srv/project",)),
        ("git clone https://example.com/x.git", "/tmp/x", ()),
        ("git fetch example.com:x.git", "/tmp/x", ()),
    ],
)
def test_the_guard_holds_what_leads_back(line: str, folder: str, variables: list[str]) -> None:
    assert _refusal(line, folder, *variables)
