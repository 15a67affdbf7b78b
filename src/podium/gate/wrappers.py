"""Takes programs that only start another one (`env`, `timeout`, `bash -c '…'`) off a command.

What is inside is then judged in its own right. A form that is not understood to the last option
is refused, so that no rule for an inner command can be reached through a wrapper by accident.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from podium.domain.gating import BuiltInRule
from podium.gate.commands import ASSIGNMENT, split_command
from podium.gate.programs import names
from podium.gate.refusing import Refused

SYSTEM_FOLDERS = frozenset(
    {"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/opt/homebrew/bin"}
)
SHELLS = names("sh bash dash ash ksh mksh zsh fish csh tcsh rbash yash")
_READABLE_SHELLS = frozenset({"sh", "bash", "dash"})
_DEEPEST = 8


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """A program with its arguments, nothing wrapped around it."""

    argv: tuple[str, ...]
    """Empty when the command only sets variables."""
    variables: tuple[tuple[str, str], ...] = ()

    @property
    def program(self) -> str:
        """`git` for `git` and `/usr/bin/git`; a program elsewhere keeps its path: `./git`."""
        return program_name(self.argv[0]) if self.argv else ""

    @property
    def basename(self) -> str:
        """The last part of the program's path in lower case, wherever it stands."""
        return self.argv[0].rpartition("/")[2].lower() if self.argv else ""


@dataclass(frozen=True, slots=True)
class _Wrapper:
    """The options a wrapper may have before the command it starts."""

    flags: frozenset[str] = frozenset()
    valued: frozenset[str] = frozenset()
    leading_words: int = 0


def _wrapper(flags: str = "", valued: str = "", leading_words: int = 0) -> _Wrapper:
    return _Wrapper(frozenset(flags.split()), frozenset(valued.split()), leading_words)


_WRAPPERS = {
    "env": _wrapper("-i - --ignore-environment", "-u --unset"),
    "nohup": _wrapper(),
    "time": _wrapper("-p"),
    "nice": _wrapper(valued="-n --adjustment"),
    "ionice": _wrapper("-t --ignore", "-c -n --class --classdata"),
    "timeout": _wrapper(
        "--preserve-status --foreground -v --verbose", "-k --kill-after -s --signal", 1
    ),
    "stdbuf": _wrapper(valued="-i -o -e --input --output --error"),
    "command": _wrapper("-p"),
    "builtin": _wrapper(),
    "exec": _wrapper(),
}
_SCRIPT_FORM = re.compile(
    r"((--login|--noprofile|--norc|-[elux]+|-[elux]*o\0(pipefail|errexit|nounset))\0)*"
    r"-[elux]*c[elux]*\0(?P<text>[^\0]*)"
)
"""A shell's words, joined by NUL; the text it is to run is the last of them."""
_LOOKUPS = frozenset({("command", "-v"), ("command", "-V")})


def program_name(word: str) -> str:
    folder, slash, name = word.rpartition("/")
    return name if slash and folder in SYSTEM_FOLDERS else word


def unwrap(
    argv: Sequence[str], variables: tuple[tuple[str, str], ...] = (), *, assigns: bool = True
) -> tuple[SimpleCommand, ...]:
    """The commands that really run. Raises `Refused` for a wrapper that cannot be read.

    `variables` are set for all of them from outside. `assigns` says whether a leading `NAME=value`
    sets a variable, as on a shell's line, or is the program, as in a list of words.
    """
    return tuple(_unwrapped(tuple(argv), variables, 0, assigns))


def _unwrapped(
    words: tuple[str, ...], variables: tuple[tuple[str, str], ...], depth: int, assigns: bool
) -> Iterator[SimpleCommand]:
    if depth > _DEEPEST:
        raise Refused(
            BuiltInRule.UNDECIDABLE_COMMAND, "too many programs start one another; run it plainly"
        )
    if not assigns and words and ASSIGNMENT.match(words[0]):
        raise Refused(
            BuiltInRule.UNDECIDABLE_COMMAND,
            f"{words[0]!r} would be run as a program here and not set a variable; "
            "put `env` before it",
        )
    words, variables = _without_assignments(words, variables)
    name = program_name(words[0]) if words else ""
    if name in SHELLS and _has_script(words):
        for inner in _script_commands(name, words):
            yield from _unwrapped(inner, variables, depth + 1, True)
    elif name in _WRAPPERS and len(words) > 1 and (name, words[1]) not in _LOOKUPS:
        inner, unset = _inside(name, words)
        yield from _unwrapped(inner, variables + unset, depth + 1, name == "env")
    else:
        yield SimpleCommand(words, variables)


def _without_assignments(
    words: tuple[str, ...], variables: tuple[tuple[str, str], ...]
) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    count = 0
    while count < len(words) and ASSIGNMENT.match(words[count]):
        count += 1
    if any(word.partition("=")[0].endswith("+") for word in words[:count]):
        raise Refused(
            BuiltInRule.UNDECIDABLE_COMMAND, "shells do not agree on what += is; use plain ="
        )
    found = tuple(assignment(word) for word in words[:count])
    return words[count:], variables + found


def assignment(word: str) -> tuple[str, str]:
    """`NAME=value` as a pair; `NAME+=value` too."""
    name, _, value = word.partition("=")
    return name.removesuffix("+"), value


def _inside(
    name: str, words: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """What the wrapper starts, and the variables it takes away (as if they were set empty)."""
    wrapper = _WRAPPERS[name]
    unset: list[tuple[str, str]] = []
    at = 1
    while at < len(words) and words[at].startswith("-"):
        option, equals, value = words[at].partition("=")
        if words[at] == "--":
            at += 1
            break
        if words[at] in wrapper.flags:
            at += 1
            continue
        if option in wrapper.valued and not equals:
            value = words[at + 1] if at + 1 < len(words) else ""
            at += 1
        elif not (option in wrapper.valued and option.startswith("--")):
            raise Refused(
                BuiltInRule.UNDECIDABLE_COMMAND,
                f"{name} {words[at]!r} is not understood here; run the command without {name!r}",
            )
        if name == "env":
            unset.append((value, ""))
        at += 1
    return words[at + wrapper.leading_words :], tuple(unset)


def _has_script(words: tuple[str, ...]) -> bool:
    """Whether a shell is given its text on the command line, as in `bash -lc '…'`."""
    return any("c" in option.partition(" ")[0] for option in _shell_options(words))


def _shell_options(words: tuple[str, ...]) -> tuple[str, ...]:
    """A shell's short options up to its first other word; `-o NAME` is one."""
    options: list[str] = []
    rest = iter(words[1:])
    for word in rest:
        if not word.startswith(("-", "+")) or word == "--":
            break
        if not word.startswith("--"):
            options.append(f"{word} {next(rest, '')}" if word[-1] in "oO" else word)
    return tuple(options)


def _script_commands(name: str, words: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    if name not in _READABLE_SHELLS:
        raise Refused(
            BuiltInRule.SHELL_INDIRECTION, f"{name} has a grammar of its own; use sh or bash"
        )
    form = _SCRIPT_FORM.fullmatch("\0".join(words[1:]))
    if form is None:
        raise Refused(
            BuiltInRule.UNDECIDABLE_COMMAND,
            f"{name} with these options is not understood; use plain -c",
        )
    split = split_command(form["text"])
    if split.undecidable:
        raise Refused(
            BuiltInRule.UNDECIDABLE_COMMAND,
            f"the text given to {name} cannot be read for certain: {split.undecidable}; "
            "run plain commands one by one",
        )
    return split.commands
