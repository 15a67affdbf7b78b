"""The git firewall once more, as data for the guard that sees every program a confined tree starts.

The guard has the final words of each program and no shell around them. Its rules are coarser than
`git.py`: what it cannot tell apart by options and the first plain word is left out, and so refused.
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
}
"""What git starts by itself when it commits or packs what it stored."""

_CHANGING: dict[str, str] = {
    "branch": "-d -D -m -M -c -C -f -u -t --delete --move --copy --force --edit-description --track "
    "--set-upstream-to --unset-upstream --create-reflog",
    "tag": "-a -s -u -d -f -m -F -e --annotate --sign --delete --force --edit",
    # A key with a value behind it is told from a key alone by neither: the configuration that a
    # confined tree sees is mounted read-only.
    "config": "-e -f --add --replace-all --unset --rename-section --remove-section --edit --file",
    "reset": "--hard --soft --merge --keep --pathspec-from-file",
}
"""Options with which a listing, or taking files off the next commit, becomes something else."""

_FIRST_WORDS: dict[str, tuple[str, ...] | None] = {
    "branch": (),
    "tag": (),
    "config": None,
    "remote": ("get-url",),
    "worktree": ("list",),
    "notes": ("list", "show"),
    "reflog": ("show", "exists"),
    "reset": ("HEAD",),
}


@cache
def exec_rules() -> ExecRules:
    """The rules for everything an agent's confined process tree starts."""
    git = ProgramRules(
        program="git",
        options_with_value=("-C", "-c"),
        refused_options=words.REFUSED_GLOBAL_OPTIONS,
        settings=tuple(sorted(_settings())),
        subcommands=_subcommands(),
        instead="stay on your branch: status, diff, log, show, add, commit, rm, mv, restore",
    )
    refused = dict.fromkeys(sorted(programs.PRIVILEGED), "works with another user's rights")
    return ExecRules(refused=refused, programs=(git,))


def _subcommands() -> dict[str, SubcommandRules]:
    free = words.READING | words.WRITING | words.CONFINED_WRITING
    rules = {name: SubcommandRules(refused_options=_refused(name)) for name in sorted(free)}
    for name, first_words in _FIRST_WORDS.items():
        options = (*_refused(name), *_CHANGING.get(name, "").split())
        rules[name] = SubcommandRules(refused_options=options, first_words=first_words)
    return {**_STARTED_BY_GIT, **rules}


def _refused(name: str) -> tuple[str, ...]:
    """Options that make git write elsewhere or start a program of the caller's choice."""
    options = tuple(
        option
        for option in words.REFUSED_OPTIONS
        # The guard refuses every beginning of a long option: `--text` would go with `--textconv`.
        if option != "--textconv" and not (name == "rev-parse" and option == "--git-dir")
    )
    return (*options, "-O") if name == "grep" else options


def _settings() -> set[str]:
    """Keys alone: inside, a value that starts a program starts no more than the agent may."""
    fixed = {setting.partition("=")[0] for setting in words.SETTINGS}
    return fixed | words.SETTING_KEYS | words.SECTION_KEYS
