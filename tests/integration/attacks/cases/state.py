"""Podium's own state: planted by a commit, or left in a worktree for whoever opens it."""

from __future__ import annotations

from tests.integration.attacks.attack import Group
from tests.integration.attacks.cases.git_objects import CRAFTING

STATE = Group("state")
_bash, _python = STATE.bash, STATE.python

_bash("P01", "a prompt for the planner, added by force",
      "mkdir -p .podium/prompts; echo evil > .podium/prompts/plan.md; git add -f .podium; git commit -qm p")  # fmt: skip
_bash("P02", "a database in place of the record",
      "mkdir -p .podium; echo evil > .podium/podium.db; git add -f .podium/podium.db; git commit -qm p")  # fmt: skip
_bash("P03", "a pointer to another database, with all that git ignores",
      "mkdir -p .podium; echo postgresql://evil > .podium/database; git add -fA; git commit -qm p")  # fmt: skip
_bash("P04", "a file in place of the folder",
      "rm -rf .podium; echo evil > .podium; git add -f .podium; git commit -qm p")  # fmt: skip
_bash("P05", "a link in place of the folder",
      "mkdir -p src/planted; echo evil > src/planted/podium.db; rm -rf .podium; ln -s src/planted .podium; "
      "git add -f src .podium; git commit -qm p")  # fmt: skip
_bash("P06", "the folder moved away and another put in its place",
      "mkdir -p new/prompts; echo evil > new/prompts/plan.md; mv .podium old; mv new .podium; "
      "git add -f .podium; git commit -qm p")  # fmt: skip
_bash("P07", "left at the top without a commit",
      "mkdir -p .podium/prompts; echo evil > .podium/prompts/plan.md")  # fmt: skip
_bash("P08", "in a folder that may be opened as a project of its own",
      "mkdir -p src/.podium/prompts; echo evil > src/.podium/prompts/plan.md; git add -f src; git commit -qm p")  # fmt: skip
_bash("P09", "left in such a folder without a commit",
      "mkdir -p src/deep/.podium; echo evil > src/deep/.podium/database")  # fmt: skip
_bash("P10", "the same with a capital letter",
      "mkdir -p .Podium src/.PODIUM; echo evil > .Podium/database; echo evil > src/.PODIUM/database; "
      "git add -f .; git commit -qm p")  # fmt: skip
_bash("P11", "undone by the next commit",
      "mkdir -p src/.podium; echo evil > src/.podium/database; git add -f src; git commit -qm p; "
      "git rm -rqf src/.podium; git commit -qm clean")  # fmt: skip
_bash("P12", "a link into the folder",
      "ln -s .podium/prompts/plan.md notes.md; git add -f notes.md; git commit -qm p")  # fmt: skip


def _crafted(id: str, title: str, text: str) -> None:
    _python(id, title, CRAFTING + text)


_SPELLED = """
def planted(name):
    return added(b"40000", name, tree((b"100644", b"database", blob)))
"""
_crafted("P20", "committed by plumbing, without a file", _SPELLED + 'commit(planted(b".podium"))')
_crafted("P21", "its short name on Windows", _SPELLED + 'commit(planted(b"PODIUM~1"))')
_crafted("P22", "its hashed short name on Windows", _SPELLED + 'commit(planted(b"PO1DB0~1"))')
_crafted("P23", "with a dot at the end", _SPELLED + 'commit(planted(b".podium. "))')
_crafted(
    "P24",
    "with a letter that HFS+ ignores",
    _SPELLED + 'commit(planted(".pod\\u200cium".encode()))',
)
_crafted(
    "P25",
    "with wide letters, for file systems that compose them",
    _SPELLED + 'commit(planted(".\\uff50odium".encode()))',
)
_crafted(
    "P26",
    "with a stream of NTFS",
    _SPELLED + 'commit(planted(b".podium::$INDEX_ALLOCATION"))',
)
_crafted(
    "P27",
    "with backslashes for slashes",
    'commit(added(b"100644", b"docs\\\\.podium\\\\database", blob))',
)
_crafted(
    "P28",
    "on a side branch whose merge leaves it out",
    _SPELLED
    + """
clean = git("rev-parse", "HEAD^{tree}")
side = git("commit-tree", "-p", "HEAD", "-m", "side", planted(b".podium"))
commit(clean, "-p", side)
""",
)
_crafted(
    "P29",
    "as a submodule",
    'commit(added(b"160000", b".podium", git("rev-parse", "HEAD")))',
)

_BARE = """
def bare(*names):
    parts = {b"HEAD": (b"100644", git("hash-object", "-w", "--stdin", data=b"ref: refs/heads/main\\n")),
             b"config": (b"100644", config),
             b"objects": (b"40000", tree((b"100644", b"keep", blob))),
             b"refs": (b"40000", tree((b"100644", b"keep", blob)))}
    return tree(*sorted([(parts[name][0], name, parts[name][1]) for name in names],
                        key=lambda entry: entry[1] + (b"/" if entry[0] == b"40000" else b"")))
ALL = (b"HEAD", b"config", b"objects", b"refs")
"""
_crafted(
    "P40",
    "a bare repository in a commit that the next one undoes",
    _BARE
    + """
clean = git("rev-parse", "HEAD^{tree}")
commit(added(b"40000", b"data", bare(*ALL)))
commit(clean)
""",
)
_crafted(
    "P41",
    "a bare repository of two halves, in a merge that the next commit undoes",
    _BARE
    + """
clean = git("rev-parse", "HEAD^{tree}")
one = git("commit-tree", "-p", "HEAD", "-m", "one", added(b"40000", b"data", bare(b"HEAD", b"config")))
two = git("commit-tree", "-p", "HEAD", "-m", "two", added(b"40000", b"data", bare(b"objects", b"refs")))
both = git("commit-tree", "-p", one, "-p", two, "-m", "both", added(b"40000", b"data", bare(*ALL)))
git("update-ref", "HEAD", both)
commit(clean)
""",
)
_crafted(
    "P42",
    "a bare repository whose halves differ by a capital letter",
    _BARE
    + """
half = added(b"40000", b"Data", bare(b"HEAD", b"config"))
whole = [*entries(half), (b"40000", b"data", bare(b"objects", b"refs"))]
commit(tree(*sorted(whole, key=lambda entry: entry[1] + (b"/" if entry[0] == b"40000" else b""))))
""",
)
_crafted(
    "P43",
    "a nested .git in a commit that the next one undoes",
    """
clean = git("rev-parse", "HEAD^{tree}")
commit(added(b"40000", b"sub", tree((b"40000", b".git", tree((b"100644", b"config", config))))))
commit(clean)
""",
)

BY_FILES = ("P01", "P02", "P03", "P04", "P05", "P06", "P07")
"""What goes by files at the top of the worktree: the confinement holds it without help."""
BY_NAMES = (*BY_FILES, "P08", "P09", "P10", "P11", "P12")
"""What a command names: policy and confinement hold it without the import gate. The rest are commits made of objects."""
