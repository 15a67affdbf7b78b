"""What is known of git's own words: which of its commands and options an agent may use. Tables alone."""

from __future__ import annotations

import re

from podium.gate.programs import names

READING = names(
    """
    status diff log show rev-parse ls-files ls-tree cat-file blame annotate grep describe shortlog
    merge-base diff-tree diff-index diff-files for-each-ref rev-list name-rev check-ignore
    check-attr check-mailmap show-ref version cherry range-diff whatchanged count-objects
    show-branch merge-tree var
    """
)
WRITING = names("add commit rm mv restore")
CONFINED_WRITING = names("apply reset")
"""Writes that only a confined run may do: in a git directory and a worktree of its own."""
REMOTE = names("push fetch pull clone ls-remote remote submodule send-email request-pull")
LEAVING = names(
    "checkout switch branch worktree reset rebase merge stash bisect cherry-pick revert"
)
RESETTING_OPTIONS = names("-q --quiet --soft --mixed -N --intent-to-add")
"""With which `reset` leaves all files as they are: it moves the own branch, or the list for the next commit."""
GLOBAL_FLAGS = names(
    """
    --no-pager -P --no-optional-locks --literal-pathspecs --glob-pathspecs --noglob-pathspecs
    --icase-pathspecs --no-replace-objects --no-advice
    """
)
SETTINGS = names(
    """
    core.fsmonitor= core.fsmonitor=false core.hookspath=/dev/null core.pager= core.pager=cat
    core.untrackedcache=false safe.barerepository=explicit commit.gpgsign=false tag.gpgsign=false
    log.showsignature=false gc.auto=0 diff.external= protocol.ext.allow=never
    """
)
SETTING_KEYS = names(
    """
    user.name user.email core.quotepath core.abbrev core.autocrlf diff.noprefix
    diff.mnemonicprefix diff.renames diff.context init.defaultbranch protocol.file.allow
    """
)
SETTING_SECTIONS = ("color.", "advice.")
SECTION_KEYS = names(
    """
    color.ui color.diff color.status color.branch color.grep color.interactive advice.statushints
    advice.detachedhead advice.addignoredfile advice.waitingforeditor
    """
)
"""Keys of those sections that programs set, for rules that know keys alone."""
REFUSED_GLOBAL_OPTIONS = (
    *("--exec-path=", "--git-dir", "--work-tree", "--namespace", "--config-env", "--super-prefix"),
    *("--bare", "--attr-source", "-p", "--paginate"),
)

REFUSED_OPTIONS = (
    *("--output", "--ext-diff", "--textconv", "--filters", "--open-files-in-pager", "--exec"),
    *("--exec-path", "--upload-pack", "--receive-pack", "--no-index", "--unsafe-paths"),
    *("--git-dir", "--work-tree", "--config-env", "--separate-git-dir", "--super-prefix"),
)
INNOCENT_BEGINNINGS = frozenset({"--text"})
"""Whole options that only look like a refused one cut short."""

LISTING: dict[str, frozenset[str]] = {
    "branch": names(
        "--list -l -a -r --all --remotes -v -vv --verbose --show-current --no-color --color "
        "--no-column --column --contains --no-contains --merged --no-merged --points-at --format "
        "--sort -i --ignore-case --no-abbrev --abbrev"
    ),
    "tag": names(
        "--list -l -n --contains --no-contains --merged --no-merged --points-at --format --sort "
        "--column --no-column -i --ignore-case --no-color --color"
    ),
    "config": names(
        "--get --get-all --get-regexp --list -l --global --system --local --worktree --show-origin "
        "--show-scope --name-only -z --null --bool --int --path --type --default"
    ),
    "remote": frozenset({"-v", "--verbose", "--all", "--push", "-n"}),
    "stash": names("--stat -p --patch --name-only --name-status --oneline --format"),
    "worktree": frozenset({"--porcelain", "-z", "-v", "--verbose"}),
    "notes": frozenset(),
    "symbolic-ref": frozenset({"--short", "-q", "--quiet", "--no-recurse"}),
    "reflog": names("--oneline --all --date --format -n --decorate --no-abbrev"),
}
"""Commands that may only list, with the options they may have."""
LISTS_NAMES = names("--list -l --contains --no-contains --merged --no-merged --points-at -n")


MODEST_OPTIONS: dict[str, tuple[frozenset[str], str]] = {
    "add": (names("--all --update --verbose --dry-run --intent-to-add --no-all"), "AuvnN"),
    "commit": (
        names(
            "--message --all --quiet --verbose --signoff --allow-empty --no-edit --file --dry-run "
            "--short --porcelain --no-gpg-sign --status --no-status"
        ),
        "aqvs",
    ),
    "rm": (names("--cached --dry-run --quiet --ignore-unmatch"), "nq"),
    "mv": (names("--dry-run --verbose"), "nvk"),
    "restore": (names("--staged --worktree --quiet --source"), "SWqs"),
    "apply": (names("--check --stat --numstat --summary --index --reverse --verbose"), "Rpv"),
    "reset": (names("--quiet --soft --mixed --intent-to-add"), "qN"),
}
"""Options with which a write still only adds to the branch: whole ones, and letters of bundles."""
VALUED_LETTER = re.compile("[mF]")
FOLDERS = frozenset({".", "..", "/"})

SHORT_MESSAGE = re.compile(r"-[a-z]*m")
"""`-m` and bundles such as `-am`, whose message is the next word."""
