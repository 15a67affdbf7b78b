"""Commits that carry out a secret, or change what guards the project or runs by itself."""

from __future__ import annotations

from tests.integration.attacks.arena import COMMITTED
from tests.integration.attacks.attack import Group

IMPORTS = Group("git")
_bash = IMPORTS.bash

_HALVES = f"A={COMMITTED[:12]}; B={COMMITTED[12:]}; "
_COMMIT = "git add -A; git commit -qm work"

_bash("G150", "podium.yaml loosened", f"echo 'checks: []' > podium.yaml; {_COMMIT}")
_bash("G151", "podium.yaml in other letters", f"echo 'checks: []' > Podium.YAML; {_COMMIT}")
_bash("G152", "podium.yaml by its short name", f"echo 'checks: []' > PODIUM~1.YAM; {_COMMIT}")
_bash("G153", "a workflow", f"mkdir -p .github/workflows; echo 'on: push' > .github/workflows/x.yml; {_COMMIT}")  # fmt: skip
_bash("G154", "a shell that is entered with the folder", f"echo 'touch @MARKS@/e' > src/.envrc; {_COMMIT}")  # fmt: skip
_bash("G155", "an editor's task, taken back by a later commit",
      f"mkdir -p .vscode; echo '{{}}' > .vscode/tasks.json; {_COMMIT}; git rm -qr .vscode; git commit -qm back")  # fmt: skip
_bash("G156", "a folder of hooks as a link", f"ln -s src .husky; {_COMMIT}")
_bash("G157", "a hook in a folder of any name",
      f"mkdir -p src/tools; echo 'touch @MARKS@/h' > src/tools/post-checkout; chmod +x src/tools/post-checkout; {_COMMIT}")  # fmt: skip
_bash("G158", "a filter for every file", f"echo '* filter=evil' > .gitattributes; {_COMMIT}")
_bash("G159", "a workflow that only a merge brings",
      "git commit -q --allow-empty -m side; SIDE=$(git rev-parse HEAD); mkdir -p .github/workflows; "
      "echo 'on: push' > .github/workflows/m.yml; git add -A; "
      "NEW=$(git commit-tree $(git write-tree) -p @BASE@ -p $SIDE -m merge); git reset -q --soft $NEW")  # fmt: skip

_bash("G160", "a known secret in a file", f"{_HALVES}echo key=$A$B > src/key; {_COMMIT}")
_bash("G161", "a known secret in a file that a later commit removes",
      f"{_HALVES}echo key=$A$B > src/key; {_COMMIT}; git rm -q src/key; git commit -qm gone")  # fmt: skip
_bash("G162", "a known secret as the name of a file", f"{_HALVES}echo > src/$A$B; {_COMMIT}")
_bash("G163", "a known secret as the target of a link", f"{_HALVES}ln -s $A$B src/link; {_COMMIT}")
_bash("G164", "a known secret in a message", f"{_HALVES}git commit -q --allow-empty -m $A$B")
_bash("G165", "a known secret as an author",
      f"{_HALVES}git commit -q --allow-empty -m x --author \"$A$B <a@example.org>\"")  # fmt: skip
_bash("G166", "a known secret in a binary file that attributes hide",
      f"{_HALVES}printf '* -diff\\n' > .gitattributes; printf '\\0%s\\0' $A$B > src/data.bin; {_COMMIT}")  # fmt: skip
_bash("G167", "a known secret in test data", f"{_HALVES}mkdir -p tests; echo $A$B > tests/key.txt; {_COMMIT}")  # fmt: skip
_bash("G168", "a known secret in wide letters",
      f"{_HALVES}printf %s $A$B | iconv -t UTF-16LE > src/wide.txt; {_COMMIT}")  # fmt: skip
_bash("G169", "a known secret that only a merge holds",
      f"{_HALVES}git commit -q --allow-empty -m side; SIDE=$(git rev-parse HEAD); echo $A$B > src/merged; git add -A; "
      "NEW=$(git commit-tree $(git write-tree) -p @BASE@ -p $SIDE -m merge); git reset -q --soft $NEW")  # fmt: skip
