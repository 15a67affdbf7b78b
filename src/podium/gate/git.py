"""The git firewall: an allow-list over git's own words.

Reading is let through, so are the writes that only add to the branch an agent stands on. Whatever
moves another ref, leaves the branch, reaches a remote, or makes git start a program is refused,
and so is every word that is not known.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from podium.domain.gating import BuiltInRule, Tier, TierTerm
from podium.gate.programs import names
from podium.gate.refusing import Refused

RULE = BuiltInRule.GIT_FIREWALL

_READING = names(
    """
    status diff log show rev-parse ls-files ls-tree cat-file blame annotate grep describe shortlog
    merge-base diff-tree diff-index diff-files for-each-ref rev-list name-rev check-ignore
    check-attr check-mailmap show-ref version cherry range-diff whatchanged count-objects
    show-branch merge-tree var
    """
)
_WRITING = names("add commit rm mv restore")
_REMOTE = names("push fetch pull clone ls-remote remote submodule send-email request-pull")
_LEAVING = names(
    "checkout switch branch worktree reset rebase merge stash bisect cherry-pick revert"
)
_GLOBAL_FLAGS = names(
    """
    --no-pager -P --no-optional-locks --literal-pathspecs --glob-pathspecs --noglob-pathspecs
    --icase-pathspecs --no-replace-objects --no-advice
    """
)
_SETTINGS = names(
    """
    core.fsmonitor= core.fsmonitor=false core.hookspath=/dev/null core.pager= core.pager=cat
    core.untrackedcache=false safe.barerepository=explicit commit.gpgsign=false tag.gpgsign=false
    log.showsignature=false gc.auto=0 diff.external= protocol.ext.allow=never
    """
)
_SETTING_KEYS = names(
    """
    user.name user.email core.quotepath core.abbrev core.autocrlf diff.noprefix
    diff.mnemonicprefix diff.renames diff.context
    """
)
_SETTING_SECTIONS = ("color.", "advice.")

_REFUSED_OPTIONS = (
    *("--output", "--ext-diff", "--textconv", "--filters", "--open-files-in-pager", "--exec"),
    *("--exec-path", "--upload-pack", "--receive-pack", "--no-index", "--unsafe-paths"),
    *("--git-dir", "--work-tree", "--config-env", "--separate-git-dir", "--super-prefix"),
)
_INNOCENT_BEGINNINGS = frozenset({"--text"})
"""Whole options that only look like a refused one cut short."""

_LISTING: dict[str, frozenset[str]] = {
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
_LISTS_NAMES = names("--list -l --contains --no-contains --merged --no-merged --points-at -n")


_MODEST_OPTIONS: dict[str, tuple[frozenset[str], str]] = {
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
}
"""Options with which a write still only adds to the branch: whole ones, and letters of bundles."""
_VALUED_LETTER = re.compile("[mF]")
_FOLDERS = frozenset({".", "..", "/"})

_SHORT_MESSAGE = re.compile(r"-[a-z]*m")
"""`-m` and bundles such as `-am`, whose message is the next word."""


class GitUse(NamedTuple):
    """A git command that may be judged by rules."""

    writes: bool
    folder: str | None
    """Where `-C` takes it, as given."""
    terms: tuple[TierTerm, ...]
    words: tuple[str, ...]
    """Words that may name paths."""
    moved: tuple[str, ...] = ()
    """What `git mv` moves, and last where to."""


def read_git(arguments: Sequence[str], inside: Callable[[str], bool]) -> GitUse:
    """Judge the words after `git`. `inside` says whether a folder lies in the workspace.

    Raises `Refused` for everything that is not on the list.
    """
    folder, at = _global_options(arguments, inside)
    rest = arguments[at:]
    if not rest:
        return GitUse(False, folder, (), ())
    name, words = rest[0], tuple(rest[1:])
    options, plain = _parted(words)
    _check_options(name, options)
    if name in _LISTING:
        _check_listing(name, options, plain)
    elif name not in _READING and name not in _WRITING:
        raise _refused(
            f"git {name} is not on the list of what an agent may do; {_advice(name)}",
            Tier.T3 if name in _REMOTE else Tier.T2,
        )
    terms = tuple(_terms(name, options, plain)) if name in _WRITING else ()
    named = _without_messages(words) if name == "commit" else words
    return GitUse(name in _WRITING, folder, terms, named, plain if name == "mv" else ())


def _refused(reason: str, tier: Tier = Tier.T2) -> Refused:
    return Refused(RULE, reason, tier)


def _global_options(
    arguments: Sequence[str], inside: Callable[[str], bool]
) -> tuple[str | None, int]:
    folder: str | None = None
    at = 0
    while at < len(arguments) and arguments[at].startswith("-"):
        option = arguments[at]
        value = arguments[at + 1] if at + 1 < len(arguments) else ""
        if option == "--version" and len(arguments) == at + 1:
            return folder, at + 1
        if option == "-C":
            if folder is not None or not value or not inside(value):
                raise _refused(f"git -C {value!r} leaves the workspace; work inside it")
            folder = value
        elif option == "-c":
            _check_setting(value)
        elif option not in _GLOBAL_FLAGS:
            raise _refused(f"git {option} is not allowed; leave that option out")
        at += 2 if option in ("-C", "-c") else 1
    return folder, at


def _check_setting(setting: str) -> None:
    key, equals, value = setting.partition("=")
    key = key.lower()
    known = key in _SETTING_KEYS or key.startswith(_SETTING_SECTIONS)
    if not known and f"{key}{equals}{value}" not in _SETTINGS:
        raise _refused(f"git -c {key} may make git run programs; leave it out")


def _parted(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Options and plain words. Behind `--` all words are plain."""
    cut = words.index("--") if "--" in words else len(words)
    options = tuple(word for word in words[:cut] if word.startswith("-") and word != "-")
    plain = tuple(word for word in words[:cut] if not word.startswith("-") or word == "-")
    return options, (*plain, *words[cut + 1 :])


def _check_options(name: str, options: Sequence[str]) -> None:
    for option in options:
        bare = option.partition("=")[0]
        if not option.startswith("--"):
            # Short options may be bundled: -nO is -n and -O.
            if option.startswith("-O") or (name == "grep" and "O" in option):
                raise _refused(f"git {name} {option} starts another program; leave it out")
        elif name == "rev-parse" and bare == "--git-dir":
            continue
        elif bare not in _INNOCENT_BEGINNINGS and any(
            refused.startswith(bare) for refused in _REFUSED_OPTIONS
        ):
            raise _refused(
                f"git {name} {option} may write elsewhere or start a program; leave it out"
            )


def _check_listing(name: str, options: Sequence[str], plain: Sequence[str]) -> None:
    bare = {part for option in options for part in _bare_options(option)}
    if not bare <= _LISTING[name] or not _lists_only(name, bare, plain):
        raise _refused(f"git {name} may only list here; {_advice(name)}")


def _bare_options(option: str) -> Iterator[str]:
    """`--sort=x` → `--sort`; `-n3` → `-n`; `-av` → `-a`, `-v`."""
    if option.startswith("--"):
        yield option.partition("=")[0]
    else:
        yield from (f"-{letter}" for letter in option[1:] if not letter.isdigit())


def _lists_only(name: str, options: set[str], plain: Sequence[str]) -> bool:
    first = plain[0] if plain else ""
    if name in ("branch", "tag"):
        return not plain or bool(options & _LISTS_NAMES)
    if name == "config":
        asks = bool(options & {"--get", "--get-all", "--get-regexp", "--list", "-l"})
        return asks or len(plain) == 1 or first in ("get", "list")
    if name == "remote":
        # `remote show NAME` asks the remote unless told not to.
        return not plain or first == "get-url" or (first == "show" and "-n" in options)
    if name == "symbolic-ref":
        return len(plain) == 1
    allowed = {
        "stash": ("list", "show"),
        "worktree": ("list",),
        "notes": ("", "list", "show"),
        "reflog": ("", "show", "exists"),
    }
    return first in allowed[name]


def _terms(name: str, options: Sequence[str], plain: Sequence[str]) -> Iterator[TierTerm]:
    """What makes a write more than adding to the branch."""
    for option in options:
        if not _is_modest(name, option):
            because = f"git {name} {option.partition('=')[0]} may do more than add to the branch"
            yield TierTerm(tier=Tier.T2, because=because)
    if name == "restore" and options not in (("--staged",), ("-S",)):
        because = "git restore throws away changes that are not committed"
        yield TierTerm(tier=Tier.T2, because=because)
    if name == "rm" and any(_may_be_several(word) for word in plain):
        yield TierTerm(tier=Tier.T2, because="git rm with a pattern removes more than one file")


def _is_modest(name: str, option: str) -> bool:
    longs, letters = _MODEST_OPTIONS[name]
    if option.startswith("--"):
        return option.partition("=")[0] in longs
    # `-am text`: what follows the m or F of a bundle is its value.
    flags = _VALUED_LETTER.split(option[1:], maxsplit=1)[0] if name == "commit" else option[1:]
    return set(flags) <= set(letters)


def _may_be_several(word: str) -> bool:
    return (
        bool(set("*?[") & set(word)) or word[:1] == ":" or posixpath.normpath(word)[:2] in _FOLDERS
    )


def _without_messages(words: Sequence[str]) -> tuple[str, ...]:
    kept: list[str] = []
    message_next = False
    for word in words:
        if message_next:
            message_next = False
        elif word == "--message" or _SHORT_MESSAGE.fullmatch(word):
            message_next = True
        elif not word.startswith(("-m", "--message=")):
            kept.append(word)
    return tuple(kept)


def _advice(name: str) -> str:
    if name in _REMOTE:
        return "Podium talks to remotes itself when the work is delivered"
    if name in _LEAVING:
        return "stay on your branch: add and commit there, Podium does the rest"
    return "use status, diff, log, show, add, commit, rm, mv or restore"
