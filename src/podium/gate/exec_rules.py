"""The git firewall once more, as data for the guard that sees every program a confined tree starts.

The guard has the final words of each program and no shell around them. Its rules are coarser than
`git.py`: what it cannot tell apart by options and by plain words is left out, and so refused.
"""

from __future__ import annotations

from functools import cache

from podium.domain.launching import ExecRules, ProgramRules, SubcommandRules
from podium.gate import git_words as words
from podium.gate import programs

_STARTED_BY_GIT = {
    "maintenance": SubcommandRules(first_words=("run",)),
    "gc": SubcommandRules(refused_options=("--prune", "--aggressive", "--force")),
    "hook": SubcommandRules(first_words=("run",)),
    "pack-objects": SubcommandRules(),
    "upload-pack": SubcommandRules(),
}
"""What git starts by itself when it commits or packs what it stored."""

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

_LISTS_NAMES = tuple(sorted(words.LISTS_NAMES))
_USES: dict[str, SubcommandRules] = {
    "branch": SubcommandRules(first_words=(), asking=_LISTS_NAMES),
    "tag": SubcommandRules(first_words=(), asking=_LISTS_NAMES),
    "config": SubcommandRules(
        most_words=1,
        asking=("--get", "--get-all", "--get-regexp", "--list", "-l", "get", "list"),
    ),
    "remote": SubcommandRules(first_words=("get-url",)),
    "worktree": SubcommandRules(first_words=("list",), needs_first_word=True),
    "notes": SubcommandRules(first_words=("list", "show")),
    "reflog": SubcommandRules(first_words=("show", "exists")),
    "stash": SubcommandRules(first_words=("list", "show"), needs_first_word=True),
    "symbolic-ref": SubcommandRules(most_words=1, needs_first_word=True),
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
        refused_options=words.REFUSED_GLOBAL_OPTIONS,
        settings=tuple(sorted(_settings())),
        subcommands=_subcommands(),
        instead="stay on your branch: status, diff, log, show, add, commit, rm, mv, restore (`git restore FILE` takes a file back)",
    )
    refused = dict.fromkeys(sorted(programs.PRIVILEGED), "works with another user's rights")
    return ExecRules(refused=refused, programs=(git,))


def _subcommands() -> dict[str, SubcommandRules]:
    free = words.READING | words.WRITING | words.CONFINED_WRITING
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
        option
        for option in words.REFUSED_OPTIONS
        if not (name == "rev-parse" and option == "--git-dir")
    )
    return (*options, "-O") if name == "grep" else options


def _settings() -> set[str]:
    """Keys alone: inside, a value that starts a program starts no more than the agent may."""
    fixed = {setting.partition("=")[0] for setting in words.SETTINGS}
    return fixed | words.SETTING_KEYS | words.SECTION_KEYS
