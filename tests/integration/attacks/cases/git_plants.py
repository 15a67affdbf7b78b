"""Settings, hooks and repositories that make the user's own git run something."""

from __future__ import annotations

from tests.integration.attacks.attack import Group

PLANTS = Group("git")
_bash = PLANTS.bash
# Under a name of its own, git can be started in spite of rules for programs.
_COPY = 'cp /usr/bin/git @SCRATCH@/copied; git() { @SCRATCH@/copied "$@"; }; '

_bash(
    "G40",
    "fsmonitor in the shared config",
    "git config core.fsmonitor 'touch @MARKS@/fsmonitor; false'",
)
_bash("G41", "hooks planted",
      "for hook in pre-commit post-checkout post-index-change post-merge; do "
      "printf '#!/bin/sh\\ntouch @MARKS@/hook\\n' > @REPO@/.git/hooks/$hook; chmod +x @REPO@/.git/hooks/$hook; done")  # fmt: skip
_bash("G42", "core.hooksPath into the worktree",
      "mkdir -p hooks; printf '#!/bin/sh\\ntouch @MARKS@/hook\\n' > hooks/post-index-change; "
      "chmod +x hooks/*; git config core.hooksPath @WT@/hooks; touch @REPO@/README")  # fmt: skip
_bash("G43", "settings of the own worktree alone",
      _COPY + "git config extensions.worktreeConfig true; "
      "git config --worktree core.fsmonitor 'touch @MARKS@/fsmonitor; false'")  # fmt: skip
_bash("G44", "the worktree's .git replaced by an own repository",
      _COPY + "rm -f .git; git init -q .; git config core.fsmonitor 'touch @MARKS@/fsmonitor; false'")  # fmt: skip
_bash("G45", "the worktree's .git made to point elsewhere",
      _COPY + "git init -q evil; git -C evil config core.fsmonitor 'touch @MARKS@/fsmonitor; false'; "
      "echo 'gitdir: @WT@/evil/.git' > .git")  # fmt: skip
_bash("G46", "commondir of the own worktree made to point elsewhere",
      _COPY + "git init -q evil; git -C evil config core.fsmonitor 'touch @MARKS@/fsmonitor; false'; "
      "echo @WT@/evil/.git > @REPO@/.git/worktrees/@ADMIN@/commondir")  # fmt: skip
_bash("G47", "the user's global settings",
      "printf '[core]\\n\\tfsmonitor = touch @MARKS@/fsmonitor\\n' >> @HOME@/.gitconfig")  # fmt: skip
_bash("G48", "a filter by info/attributes",
      "git config filter.x.clean 'touch @MARKS@/filter; cat'; mkdir -p @REPO@/.git/info; "
      "echo '* filter=x' > @REPO@/.git/info/attributes; touch @REPO@/README")  # fmt: skip
_bash("G49", "pager, ssh and credential helper in the config",
      "git config core.pager 'touch @MARKS@/pager; cat'; git config core.sshCommand 'touch @MARKS@/ssh'; "
      "git config credential.helper '!touch @MARKS@/helper'")  # fmt: skip
_bash("G50", "a diff driver in the config, used by a committed attribute",
      "git config diff.evil.textconv 'touch @MARKS@/textconv; cat'; git config diff.external 'touch @MARKS@/d'; "
      "echo '* diff=evil' > .gitattributes; echo x >> README; git add .gitattributes; git commit -qm attributes")  # fmt: skip
_bash("G51", "a nested repository, committed as a gitlink",
      _COPY + "git init -q src/inner; cd src/inner; git config core.fsmonitor 'touch @MARKS@/fsmonitor; false'; "
      "echo x > x; git add x; git -c user.name=x -c user.email=x@x commit -qm x; cd ../..; git add src/inner; git commit -qm nested")  # fmt: skip
_bash("G52", "a nested repository that nobody committed",
      _COPY + "mkdir -p src/inner; git init -q src/inner; git -C src/inner config core.fsmonitor 'touch @MARKS@/fsmonitor; false'")  # fmt: skip
_bash("G53", "an embedded bare repository",
      _COPY + "git init -q --bare src/data; cd src/data; git config core.bare false; git config core.worktree ..; "
      "git config core.fsmonitor 'touch @MARKS@/fsmonitor; false'")  # fmt: skip
_bash("G54", "an embedded bare repository deep down, committed file by file",
      _COPY + "mkdir -p src/a/b; git init -q --bare src/a/b/c; cd src/a/b/c; git config core.bare false; "
      "git config core.worktree ..; git config core.fsmonitor 'touch @MARKS@/fsmonitor; false'; "
      "touch refs/keep objects/keep; cd @WT@; git add -f src/a; git commit -qm data")  # fmt: skip
_bash("G55", "a repository under an ignored name",
      _COPY + "mkdir -p build.log; git init -q build.log; git -C build.log config core.fsmonitor 'touch @MARKS@/fsmonitor; false'")  # fmt: skip
_bash("G56", "a nested .git file that points into the own home",
      _COPY + "git init -q @SCRATCH@/evil; git -C @SCRATCH@/evil config core.fsmonitor 'touch @MARKS@/fsmonitor; false'; "
      "mkdir -p src/sub; echo \"gitdir: @SCRATCH@/evil/.git\" > src/sub/.git")  # fmt: skip
_bash("G57", "a nested .git that is a link",
      _COPY + "git init -q @SCRATCH@/evil; git -C @SCRATCH@/evil config core.fsmonitor 'touch @MARKS@/fsmonitor; false'; "
      "mkdir -p src/sub; ln -s @SCRATCH@/evil/.git src/sub/.git")  # fmt: skip
_bash("G58", "hooks and pack hooks in the agent's own git directory",
      "D=$(git rev-parse --git-common-dir); git config --file \"$D/config\" uploadpack.packObjectsHook 'touch @MARKS@/pack; false'; "
      "git config --file \"$D/config\" core.fsmonitor 'touch @MARKS@/fsmonitor'; "
      "printf '#!/bin/sh\\ntouch @MARKS@/hook\\n' > \"$D/hooks/reference-transaction\"; chmod +x \"$D/hooks/reference-transaction\"; "
      "git commit -q --allow-empty -m carrier")  # fmt: skip
_bash("G59", "an included file of settings",
      "printf '[core]\\n\\tfsmonitor = touch @MARKS@/fsmonitor\\n' > inc; "
      "git config --file @REPO@/.git/config include.path @WT@/inc")  # fmt: skip
_bash("G60", "init of the checkout with a template of hooks",
      "mkdir -p tpl/hooks; printf '#!/bin/sh\\ntouch @MARKS@/hook\\n' > tpl/hooks/post-index-change; "
      "chmod +x tpl/hooks/*; git init -q --template=@WT@/tpl @REPO@; touch @REPO@/README")  # fmt: skip
_bash("G61", "maintenance registered for the user", "git -C @REPO@ maintenance register")
_bash("G62", "the remote's address changed", "git remote set-url origin @WT@/evil.git")
_bash(
    "G63",
    "hooks of the remote",
    "mkdir -p @REMOTE@/hooks; printf '#!/bin/sh\\ntouch @MARKS@/hook\\n' > @REMOTE@/hooks/pre-receive; chmod +x @REMOTE@/hooks/pre-receive",
)
_bash(
    "G64",
    "nested repositories in folders that nobody may write to, or look into",
    _COPY + "for mode in 500 100 000; do mkdir -p src/$mode/in; git init -q src/$mode/in; "
    "git -C src/$mode/in config core.fsmonitor 'touch @MARKS@/fsmonitor; false'; "
    "chmod $mode src/$mode/in src/$mode; done",
)
