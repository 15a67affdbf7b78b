"""Git firewall: an allow-list over git's arguments, and freedom in scratch repositories of a confined run.

Reading is let through, so are the writes that only add to the branch an agent stands on. Whatever
moves another ref, leaves the branch, reaches a remote, or makes git start a program is refused,
and so is every word that is not known.

Such a repository is the run's own and goes with it. The workspace's own has a private git directory, which is the boundary; what
leads back there, and what would reach another machine, is judged as ever.
"""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from podium.core.decisions import Access, BuiltInRule, Tier, TierTerm
from podium.core.git_targets import GitTarget, is_network_address, local_path, read_target
from podium.policy import git_tables as tables
from podium.policy.command_paths import CommandLocation, path_parts
from podium.policy.programs import names
from podium.policy.refusal import CallDenied
from podium.policy.shell import ANY, COMPUTED, DERIVED
from podium.policy.zones import TouchedPath, is_private, relative_to

RULE = BuiltInRule.GIT_FIREWALL


class GitUse(NamedTuple):
    """A git command that may be judged by rules."""

    writes: bool
    folder: str | None
    """The folder of `-C`, as given."""
    factors: tuple[TierTerm, ...]
    path_arguments: tuple[str, ...]
    """Words that may name paths."""
    moved: tuple[str, ...] = ()
    """Operands of `git mv`, the target last."""


def read_git(
    arguments: Sequence[str], inside: Callable[[str], bool], *, confined: bool = False
) -> GitUse:
    """Judge the words after `git`. `inside` says whether a folder lies in the workspace.

    Raises `CallDenied` for everything that is not on the list.
    """
    folder, at = _global_options(arguments, inside)
    if any(_marked(token) for token in arguments[: at + 1]):
        raise _refused("the git command is only known when it runs; write it out")
    rest = arguments[at:]
    if not rest:
        return GitUse(False, folder, (), ())
    name, after = rest[0], tuple(rest[1:])
    options, plain = _parted(after)
    check_options(name, options)
    writes = name in tables.WRITING or (confined and name in tables.CONFINED_WRITING)
    if name in tables.LISTING:
        _check_listing(name, options, plain)
    elif name == "reset" and writes:
        _check_reset(options, after)
    elif name not in tables.READING and not writes:
        raise _refused(
            f"agents may not run git {name}; {_advice(name, after)}",
            Tier.T3 if name in tables.REMOTE else Tier.T2,
        )
    factors = tuple(_option_factors(name, options, plain)) if writes else ()
    named = without_messages(after) if name == "commit" else after
    return GitUse(writes, folder, factors, named, plain if name == "mv" else ())


def _refused(reason: str, tier: Tier = Tier.T2) -> CallDenied:
    return CallDenied(RULE, reason, tier)


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
            check_setting(value)
        elif option not in tables.GLOBAL_FLAGS:
            raise _refused(f"git {option} is not allowed; omit the option")
        at += 2 if option in ("-C", "-c") else 1
    return folder, at


def check_setting(setting: str) -> None:
    """Raise `CallDenied` for a setting of `-c` that is not known to be harmless."""
    key, equals, value = setting.partition("=")
    key = key.lower()
    harmless = key in tables.SETTING_KEYS or key.startswith(tables.SETTING_SECTIONS)
    if not harmless and f"{key}{equals}{value}" not in tables.SETTINGS:
        raise _refused(f"git -c {key} may make git run programs; omit it")


def _parted(arguments: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Options and plain given. Behind `--` all words are plain."""
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    options = tuple(
        argument for argument in arguments[:cut] if argument.startswith("-") and argument != "-"
    )
    plain = tuple(
        argument for argument in arguments[:cut] if not argument.startswith("-") or argument == "-"
    )
    return options, (*plain, *arguments[cut + 1 :])


def check_options(name: str, options: Sequence[str]) -> None:
    """Raise `CallDenied` for options that write elsewhere or start a program."""
    for option in options:
        bare = option.partition("=")[0]
        if not option.startswith("--"):
            # Short options may be bundled: -nO is -n and -O.
            if option.startswith("-O") or (name == "grep" and "O" in option):
                raise _refused(f"git {name} {option} starts another program; omit it")
        elif name == "rev-parse" and bare == "--git-dir":
            continue
        elif bare not in tables.INNOCENT_BEGINNINGS and any(
            refused.startswith(bare) for refused in tables.REFUSED_OPTIONS
        ):
            raise _refused(f"git {name} {option} may write elsewhere or start a program; omit it")


def _check_reset(options: Sequence[str], after: Sequence[str]) -> None:
    """The own branch may go back, and the list for the next commit with it; files stay as they are."""
    before_paths = after[: after.index("--")] if "--" in after else after
    if any(map(_marked, before_paths)):
        raise _refused("what git reset would do is only known when it runs; write it out")
    if not tables.RESETTING_OPTIONS.issuperset(options):
        raise _refused(
            "git reset may not discard changes to files; use --soft or --mixed, which keep them"
        )


def _marked(token: str) -> bool:
    return COMPUTED in token or ANY in token or DERIVED in token


def _check_listing(name: str, options: Sequence[str], plain: Sequence[str]) -> None:
    if any(map(_marked, (*options, *plain))):
        raise _refused(f"what git {name} would do is only known when it runs; write it out")
    bare = {part for option in options for part in _bare_options(option)}
    if not bare <= tables.LISTING[name] or not _lists_only(name, bare, plain):
        raise _refused(f"git {name} may only list here; {_advice(name, ())}")


def _bare_options(option: str) -> Iterator[str]:
    """`--sort=x` → `--sort`; `-n3` → `-n`; `-av` → `-a`, `-v`."""
    if option.startswith("--"):
        yield option.partition("=")[0]
    else:
        yield from (f"-{flag}" for flag in option[1:] if not flag.isdigit())


def _lists_only(name: str, options: set[str], plain: Sequence[str]) -> bool:
    first = plain[0] if plain else ""
    if name in ("branch", "tag"):
        return not plain or bool(options & tables.LISTS_NAMES)
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


def _option_factors(name: str, options: Sequence[str], plain: Sequence[str]) -> Iterator[TierTerm]:
    """Yield what makes a write more than adding to the branch."""
    for option in options:
        if not _is_modest(name, option):
            because = (
                f"git {name} {option.partition('=')[0]} may do more than add commits to the branch"
            )
            yield TierTerm(tier=Tier.T2, because=because)
    if name == "restore" and options not in (("--staged",), ("-S",)):
        because = "git restore discards uncommitted changes"
        yield TierTerm(tier=Tier.T2, because=because)
    if name == "rm" and any(_may_be_several(argument) for argument in plain):
        yield TierTerm(tier=Tier.T2, because="git rm with a pattern may remove several files")


def _is_modest(name: str, option: str) -> bool:
    longs, flags_allowed = tables.MODEST_OPTIONS[name]
    if option.startswith("--"):
        return option.partition("=")[0] in longs
    # `-am text`: what follows the m or F of a bundle is its value.
    flags = (
        tables.VALUED_SHORT_OPTION.split(option[1:], maxsplit=1)[0]
        if name == "commit"
        else option[1:]
    )
    return set(flags) <= set(flags_allowed)


def _may_be_several(token: str) -> bool:
    return (
        bool(set("*?[") & set(token))
        or token[:1] == ":"
        or posixpath.normpath(token)[:2] in tables.FOLDERS
    )


def without_messages(arguments: Sequence[str]) -> tuple[str, ...]:
    """The words but for messages of `-m`."""
    remaining: list[str] = []
    message_next = False
    for argument in arguments:
        if message_next:
            message_next = False
        elif argument == "--message" or tables.SHORT_MESSAGE.fullmatch(argument):
            message_next = True
        elif not argument.startswith(("-m", "--message=")):
            remaining.append(argument)
    return tuple(remaining)


def _advice(name: str, after: Sequence[str]) -> str:
    if name in tables.REMOTE:
        return "Podium accesses remotes itself when the work is delivered"
    if name in tables.LEAVING:
        back = f"; to take a file back: `{_restoring(after)}`" if name == "checkout" else ""
        return f"stay on your branch: add and commit there, and Podium does the rest{back}"
    return "use status, diff, log, show, add, commit, rm, mv or restore"


def _restoring(after: Sequence[str]) -> str:
    """The command that takes files back as this `checkout` would, where it says which."""
    if "--" not in after or not all(map(str.isprintable, after)):
        return "git restore FILE"
    at = list(after).index("--")
    source = [f"--source={argument}" for argument in after[:at] if not argument.startswith("-")][:1]
    return shlex.join(("git", "restore", *source, "--", *(after[at + 1 :] or ("FILE",))))


_COMMANDS = (
    tables.READING
    | tables.WRITING
    | tables.CONFINED_WRITING
    | tables.LEAVING
    | tables.REMOTE
    | names(
        """
        init tag config symbolic-ref reflog notes replace update-ref update-index read-tree write-tree
        commit-tree hash-object mktree mktag bundle am format-patch archive clean gc repack prune
        prune-packed pack-refs fsck rerere sparse-checkout checkout-index unpack-objects index-pack
        pack-objects verify-commit verify-pack verify-tag fast-export fast-import show-index stripspace
        interpret-trailers bugreport
        """
    )
) - names("send-email request-pull")
_RUNNING = {"submodule": "foreach", "bisect": "run", "rebase": "--exec"}
"""Words with which a command runs others that these words do not show."""


def scratch_target(
    arguments: Sequence[str], location: CommandLocation
) -> tuple[GitTarget, CommandLocation] | None:
    """The command and where it runs, if all that it is about lies in places that are the run's own; else None."""
    target = read_target(list(arguments))
    if target is None or target.name not in _COMMANDS or not location.is_certain:
        return None
    where = location
    for folder in target.folders:
        if _unknown(folder):
            return None
        where = CommandLocation(where.root, where.touch(folder, None).paths)
    about = [*target.locations, *target.changed()]
    about += [] if target.makes_repository else ["."]
    if not all(_is_scratch(local_path(argument), where) for argument in about):
        return None
    if target.network_address() or _RUNNING.get(target.name) in target.arguments:
        return None
    return target, where


def scratch_touches(target: GitTarget, where: CommandLocation) -> Iterator[TouchedPath]:
    """Yield what the command reads and makes. Raises `CallDenied` for settings and options that start programs."""
    for setting in target.settings:
        check_setting(setting)
    check_options(
        target.name, [argument for argument in target.arguments if argument.startswith("-")]
    )
    made = target.changed()
    for argument in made:
        yield where.touch(local_path(argument), Access.WRITE)
    for argument in without_messages(target.arguments):
        if argument not in made and not is_network_address(argument):
            parts = path_parts(local_path(argument))
            yield from (where.touch(part, Access.READ) for part in parts)


def _is_scratch(token: str, location: CommandLocation) -> bool:
    if _unknown(token):
        return False
    paths = location.touch(token, None).paths
    return all(relative_to(path, location.root) is None and is_private(path) for path in paths)


def _unknown(token: str) -> bool:
    return token.startswith(COMPUTED)
