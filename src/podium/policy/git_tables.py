"""Tables of git's commands and options that agents may use, and the same as exec rules for the guard.

The guard has the final words of each program and no shell around them. Its rules are coarser than
`git_firewall.py`: what it cannot tell apart by options and by plain words is left out, and so refused.
"""

from __future__ import annotations

import re
from functools import cache

from podium.core.processes import ExecRules, ProgramRules, SubcommandRules
from podium.policy import programs
from podium.policy.programs import names

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
VALUED_SHORT_OPTION = re.compile("[mF]")
FOLDERS = frozenset({".", "..", "/"})

SHORT_MESSAGE = re.compile(r"-[a-z]*m")
"""`-m` and bundles such as `-am`, whose message is the next word."""


_STARTED_BY_GIT = {
    "maintenance": SubcommandRules(allowed_subcommands=("run",)),
    "gc": SubcommandRules(refused_options=("--prune", "--aggressive", "--force")),
    "hook": SubcommandRules(allowed_subcommands=("run",)),
    "pack-objects": SubcommandRules(),
    "upload-pack": SubcommandRules(),
}
"""Programs that git starts by itself when it commits or packs what it stored."""

_CHANGING: dict[str, str] = {
    "branch": "-d -D -m -M -c -C -f -u -t --delete --move --copy --force --edit-description --track "
    "--set-upstream-to --unset-upstream --create-reflog",
    "tag": "-a -s -u -d -f -m -F -e --annotate --sign --delete --force --edit",
    # The value of `--comment` could look like an option that only asks.
    "config": "-e -f --add --replace-all --unset --unset-all --rename-section --remove-section --edit "
    "--file --comment",
    "symbolic-ref": "-d -m --delete",
    "reset": "-p --hard --merge --keep --patch --pathspec-from-file",
}
"""Options with which a listing, or a reset that leaves files alone, becomes something else."""

_LISTS_NAMES = tuple(sorted(LISTS_NAMES))
_USES: dict[str, SubcommandRules] = {
    "branch": SubcommandRules(allowed_subcommands=(), asking=_LISTS_NAMES),
    "tag": SubcommandRules(allowed_subcommands=(), asking=_LISTS_NAMES),
    "config": SubcommandRules(
        max_arguments=1,
        asking=("--get", "--get-all", "--get-regexp", "--list", "-l", "get", "list"),
    ),
    "remote": SubcommandRules(allowed_subcommands=("get-url",)),
    "worktree": SubcommandRules(allowed_subcommands=("list",), needs_subcommand=True),
    "notes": SubcommandRules(allowed_subcommands=("list", "show")),
    "reflog": SubcommandRules(allowed_subcommands=("show", "exists")),
    "stash": SubcommandRules(allowed_subcommands=("list", "show"), needs_subcommand=True),
    "symbolic-ref": SubcommandRules(max_arguments=1, needs_subcommand=True),
}
"""With which plain words each may be used."""
_OTHER_OPTIONS = ("--text", "--filter")
"""Of diffs and logs: `--textconv` and `--filters` begin like them."""


@cache
def exec_rules() -> ExecRules:
    """The rules for everything an agent's confined process tree starts."""
    git = ProgramRules(
        program="git",
        options_with_value=("-C", "-c"),
        refused_options=REFUSED_GLOBAL_OPTIONS,
        settings=tuple(sorted(_settings())),
        subcommands=_subcommands(),
        instead="stay on your branch: status, diff, log, show, add, commit, rm, mv, restore (`git restore FILE` takes a file back)",
    )
    refused = dict.fromkeys(sorted(programs.PRIVILEGED), "runs with another user's privileges")
    return ExecRules(refused=refused, programs=(git,))


def _subcommands() -> dict[str, SubcommandRules]:
    free = READING | WRITING | CONFINED_WRITING
    uses = {**dict.fromkeys(sorted(free), SubcommandRules()), **_USES}
    return {**_STARTED_BY_GIT, **{name: _with_options(name, use) for name, use in uses.items()}}


def _with_options(name: str, use: SubcommandRules) -> SubcommandRules:
    # Where there is no `--text`, it is short for the other one.
    others = () if name == "cat-file" else _OTHER_OPTIONS
    refused = (*_refused(name), *_CHANGING.get(name, "").split())
    return use.model_copy(update={"refused_options": refused, "other_options": others})


def _refused(name: str) -> tuple[str, ...]:
    """Options that make git write elsewhere or start a program of the caller's choice."""
    options = tuple(
        option for option in REFUSED_OPTIONS if not (name == "rev-parse" and option == "--git-dir")
    )
    return (*options, "-O") if name == "grep" else options


def _settings() -> set[str]:
    """Keys alone: inside, a value that starts a program starts no more than the agent may."""
    fixed = {setting.partition("=")[0] for setting in SETTINGS}
    return fixed | SETTING_KEYS | SECTION_KEYS
