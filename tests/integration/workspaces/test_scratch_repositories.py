"""A test suite in a workspace that makes repositories of its own, in temporary folders."""

from __future__ import annotations

from pathlib import Path

from podium.core.processes import ProcessSpec
from tests.integration.wiring.test_podium import configured
from tests.integration.workspaces.workspace_harness import git, make_repository, needs_bwrap

_SUITE = """
import os, subprocess, tempfile
def git(*words, **more):
    return subprocess.run(["git", *words], capture_output=True, text=True, check=True, **more).stdout.strip()
made = tempfile.mkdtemp()
git("init", made)
git("commit", "--allow-empty", "-m", "one", cwd=made)
git("config", "user.name", "Tester", cwd=made)
git("commit", "--allow-empty", "-m", "two", cwd=made)
git("tag", "v1", cwd=made)
git("clone", made, made + "-local")
git("clone", "file://" + made, made + "-packed")
git("clone", "--bare", "fixture", made + ".git")
git("checkout", "-b", "side", cwd=made + "-packed")
git("push", "origin", "side", cwd=made + "-packed")
print(git("log", "--format=%an", cwd=made), git("tag", cwd=made + "-local"), git("branch", cwd=made), sep="\\n")
"""
_BACK = """
cd $(mktemp -d) && git init -q
for words in "-C $OLDPWD tag evil" "--git-dir=$OLDPWD/.git tag evil" "push $OLDPWD HEAD:evil" "clone https://localhost/x"
do git $words && echo GOT; done
GIT_DIR=$OLDPWD/.git git tag evil && echo GOT
git -C {checkout} update-ref refs/heads/main HEAD && echo GOT
cd $OLDPWD; git init sub && echo GOT; git tag evil && echo GOT; git config user.name evil && echo GOT
true
"""


@needs_bwrap()
async def test_scratch_repositories_work_and_the_workspaces_own_stays_guarded(
    tmp_path: Path,
) -> None:
    podium = configured(tmp_path)
    project = podium.folders.project
    make_repository(tmp_path / "made")
    (tmp_path / "made/.git").rename(project / ".git")
    git(project, "reset", "-q", "--hard")
    workspace = await podium.workspaces.create(podium.workspace_spec("t1"))
    root = workspace.record.path
    git(tmp_path, "clone", "-q", "--bare", str(project), f"{root}/fixture")

    async def runs(*argv: str) -> tuple[bytes, tuple[str, ...]]:
        fence = await podium.confinement_provider.confinement(root)
        ended = await podium.launcher.run(ProcessSpec(argv=argv, cwd=root, confinement=fence))
        assert ended.exit_code == 0, ended.stderr.decode()
        return ended.stdout, ended.refused_execs

    output, refused = await runs("python3", "-c", _SUITE)
    assert output.decode().split("\n")[:3] == ["Tester", "Uma User", "v1"]
    assert b"side" in output
    assert refused == ()
    output, refused = await runs("bash", "-c", _BACK.format(checkout=project))
    assert b"GOT" not in output
    assert len(refused) == 8  # two of them in the same words
    assert "evil" not in git(project, "tag")
    await podium.close()
