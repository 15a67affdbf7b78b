"""Refs that are not the agent's: moved by git, by other tools, by hand."""

from __future__ import annotations

from tests.integration.attacks.attack import Group

REFS = Group("git")
_bash, _python = REFS.bash, REFS.python

_bash("G01", "update-ref of main", "git update-ref refs/heads/main HEAD~1")
_bash("G02", "update-ref in the checkout, hooks off",
      "git -c core.hooksPath=/dev/null -C @REPO@ update-ref refs/heads/main HEAD~1")  # fmt: skip
_bash("G03", "push into the own repository", "git push . +HEAD~1:refs/heads/feature")
_bash("G04", "branch -f", "git branch -f feature HEAD~1")
_bash("G05", "branch -D", "git branch -D topic")
_bash("G06", "branch -m over another", "git branch -M topic feature")
_python(
    "G07",
    "a loose ref written by hand",
    """
tip = open(f"{REPO}/.git/refs/heads/main").read()
open(f"{REPO}/.git/refs/heads/feature", "w").write(tip)
""",
)
_python(
    "G08",
    "packed-refs rewritten by hand",
    """
path = f"{REPO}/.git/packed-refs"
tip = open(f"{REPO}/.git/refs/heads/main").read().strip()
lines = [f"{tip} refs/heads/feature" if "feature" in line else line for line in open(path).read().split("\\n")]
open(path, "w").write("\\n".join(lines))
""",
)
_bash("G09", "checkout -B of another branch", "git checkout -q -B feature HEAD~1")
_bash("G10", "switch -C of another branch", "git switch -q -C topic HEAD~2")
_bash("G11", "own HEAD made to point at another branch, then a commit",
      "git symbolic-ref HEAD refs/heads/feature; git commit -q --allow-empty -m stray")  # fmt: skip
_bash("G12", "own branch made a symbolic ref to main, then a commit",
      "git symbolic-ref @BRANCH@ refs/heads/main; git commit -q --allow-empty -m stray")  # fmt: skip
_bash("G13", "reset --hard in the checkout", "git -C @REPO@ reset -q --hard HEAD~1")
_bash("G14", "commit on main by GIT_DIR",
      "GIT_DIR=@REPO@/.git GIT_WORK_TREE=@REPO@ git commit -q --allow-empty -m stray")  # fmt: skip
_bash("G15", "tags moved and removed", "git tag -f v1 HEAD~2; git tag -d v0")
_bash("G16", "fetch into another branch", "git fetch -q . +feature:refs/heads/topic")
_bash(
    "G17",
    "push to the remote by its path",
    "git push -q --no-verify @REMOTE@ +HEAD~1:refs/heads/main",
)
_bash("G18", "a branch of the remote removed", "git push -q --no-verify origin --delete feature")
_bash(
    "G19", "the remote's refs by GIT_DIR", "GIT_DIR=@REMOTE@ git update-ref -d refs/heads/feature"
)
_bash("G20", "git replace", "git replace -f main main~1")
_bash("G21", "stash dropped", "git stash drop -q")
_bash("G22", "reflogs expired", "git reflog expire --expire=now --expire-unreachable=now --all")
_bash("G23", "the user's HEAD written by hand", "echo 'ref: refs/heads/feature' > @REPO@/.git/HEAD")
_bash("G24", "the other task's HEAD and branch",
      "echo 'ref: refs/heads/main' > @REPO@/.git/worktrees/@OTHER_ADMIN@/HEAD; "
      "git update-ref refs/heads/podium/other HEAD~1")  # fmt: skip
_bash("G25", "the other worktree removed", "git worktree remove --force @OTHER@")
_bash("G26", "the other worktree pruned away",
      "rm -rf @REPO@/.git/worktrees/@OTHER_ADMIN@; git worktree prune")  # fmt: skip
_bash("G27", "a further worktree on another branch", "git worktree add -q @OUT@/wt topic")
_bash("G28", "locks planted in the user's way",
      "cd @REPO@/.git; touch index.lock HEAD.lock packed-refs.lock refs/heads/main.lock config.lock")  # fmt: skip
_bash("G29", "the base rewritten out of the own branch",
      "git update-ref HEAD $(git commit-tree -m rootless HEAD^{tree})")  # fmt: skip
_bash("G30", "notes on the user's commits", "git notes add -m spam HEAD~1")
_bash("G31", "bisect refs", "git -C @REPO@ bisect start HEAD HEAD~2")
_bash(
    "G32",
    "pseudo refs of the checkout",
    "cd @REPO@ && git update-ref ORIG_HEAD HEAD~1 && git update-ref HEAD HEAD~1",
)
_python(
    "G33",
    "refs of odd names in the own git directory, hoping that they are brought along",
    """
tip = subprocess.run(["git", "rev-parse", "HEAD~1"], capture_output=True, text=True).stdout.strip()
for common in {f"{REPO}/.git", f"{PRIVATE}/git"}:
    try:
        with open(f"{common}/packed-refs", "a") as file:
            for name in ("refs/heads/main", "refs/heads/../../../evil", "refs/tags/v1", "refs/stash"):
                file.write(f"{tip} {name}\\n")
    except OSError as error:
        print(error)
subprocess.run(["git", "commit", "-q", "--allow-empty", "-m", "carrier"])
""",
)
_bash("G34", "the user's uncommitted work stashed away", "git -C @REPO@ stash push -q -u")
_bash("G35", "a file of the index hidden from the user",
      "git -C @REPO@ update-index --skip-worktree README && echo x >> @REPO@/README")  # fmt: skip
_bash(
    "G36",
    "checkout of old files over the user's",
    "GIT_WORK_TREE=@REPO@ git checkout -f HEAD~3 -- .",
)
