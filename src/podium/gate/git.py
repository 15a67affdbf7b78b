"""The git firewall: an allow-list over git's own words.

Reading is let through, so are the writes that only add to the branch an agent stands on. Whatever
moves another ref, leaves the branch, reaches a remote, or makes git start a program is refused,
and so is every word that is not known.
"""

from __future__ import annotations

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
    terms = _terms(name, options) if name in _WRITING else ()
    named = _without_messages(words) if name == "commit" else words
    return GitUse(name in _WRITING, folder, terms, named)


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


def _terms(name: str, options: Sequence[str]) -> tuple[TierTerm, ...]:
    longs = {option.partition("=")[0] for option in options if option.startswith("--")}
    shorts = "".join(option[1:] for option in options if not option.startswith("--"))
    because = ""
    if name == "restore" and not ({"--staged", "-S"} & {*options} and len(options) == 1):
        because = "git restore throws away changes that are not committed"
    elif name == "rm" and (set("rf") & set(shorts) or longs & {"--force"}):
        because = "git rm -r or -f removes more than one committed file"
    elif name == "commit" and any("--no-verify".startswith(long) for long in longs):
        because = "git commit --no-verify skips the repository's hooks"
    elif name == "commit" and "n" in _flags_before_message(options):
        because = "git commit -n skips the repository's hooks"
    return (TierTerm(tier=Tier.T2, because=because),) if because else ()


def _flags_before_message(options: Sequence[str]) -> str:
    """Letters of bundled short options, up to one that takes the rest as its value."""
    letters = ""
    for option in options:
        if not option.startswith("--"):
            for letter in option[1:]:
                if letter in "mFCctS":
                    break
                letters += letter
    return letters


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
