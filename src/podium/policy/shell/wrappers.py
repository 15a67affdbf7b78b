"""Programs that start another one (`env`, `xargs`, `find -exec`), and where that one begins."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import NamedTuple

from podium.core.decisions import BuiltInRule
from podium.policy.programs import names
from podium.policy.refusal import CallDenied
from podium.policy.shell.simple_command import ANY, COMPUTED, DERIVED

SHELLS = names("sh bash dash ash ksh mksh zsh fish csh tcsh rbash yash")
READABLE_SHELLS = frozenset({"sh", "bash", "dash"})
RUNNERS = names(
    "uv poetry pipenv hatch pdm rye pixi npx bunx pnpm yarn npm bundle conda mamba micromamba direnv "
    "xvfb-run chronic catchsegv numactl taskset chrt setarch linux32 linux64 valgrind perf "
    "gdb strace ltrace fakeroot rlwrap unbuffer hyperfine faketime eatmydata proxychains torsocks dotenv prime-run"
)
"""Programs that start others behind words of their own: a git or shell among their words is judged too."""
LOOKUPS = frozenset({("command", "-v"), ("command", "-V")})


@dataclass(frozen=True, slots=True)
class Wrapper:
    """The options a wrapper may have before the command it starts."""

    flags: frozenset[str] = frozenset()
    valued: frozenset[str] = frozenset()
    leading_words: int = 0
    confined: bool = False
    """It is understood in confined runs alone."""


def _wrapper(
    flags: str = "", valued: str = "", leading_words: int = 0, *, confined: bool = False
) -> Wrapper:
    return Wrapper(frozenset(flags.split()), frozenset(valued.split()), leading_words, confined)


WRAPPERS = {
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
    "coproc": _wrapper(confined=True),
    "setsid": _wrapper("-c --ctty -f --fork -w --wait", confined=True),
    "xargs": _wrapper(
        "-0 --null -r --no-run-if-empty -t --verbose -x --exit",
        "-a --arg-file -n -P -L -s -d -I --max-args --max-procs --max-lines --delimiter --replace",
        confined=True,
    ),
}
_ATTACHED = re.compile(r"-(?:n\d+|P\d+|L\d+|\d+|o[L0]|e[L0]|i[L0]|k\d+[smhd]?|sKILL|sTERM|sINT)")
"""A value that stands in the same word as its option, where no other meaning is possible."""
_SCRIPT_FORM = re.compile(
    r"((--login|--noprofile|--norc|-[elux]+|-[elux]*o\n(pipefail|errexit|nounset))\n)*"
    r"-[elux]*c[elux]*\n(?P<text>.*)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class WrappedCommand:
    """What a wrapper starts."""

    words: tuple[str, ...]
    unset: tuple[tuple[str, str], ...] = ()
    """Variables it takes away, as if they were set empty."""
    replaced: str = ""
    """With xargs: the text that stands for what it is fed."""


def inside(name: str, words: tuple[str, ...]) -> WrappedCommand:
    """Take a wrapper off. Raises `CallDenied` for options that are not known to the last letter."""
    wrapper = WRAPPERS[name]
    unset: list[tuple[str, str]] = []
    replaced = ""
    at = 1
    while at < len(words) and words[at].startswith("-"):
        option, equals, value = words[at].partition("=")
        if words[at] == "--":
            at += 1
            break
        if words[at] in wrapper.flags or (wrapper.valued and _ATTACHED.fullmatch(words[at])):
            at += 1
            continue
        if name == "xargs" and words[at].startswith("-I") and len(words[at]) > 2:
            option, value = "-I", words[at][2:]
        elif option in wrapper.valued and not equals:
            value = words[at + 1] if at + 1 < len(words) else ""
            at += 1
        elif not (option in wrapper.valued and option.startswith("--")):
            raise CallDenied(
                BuiltInRule.UNDECIDABLE_COMMAND,
                f"{name} {words[at]!r} is not understood here; run the command without {name!r}",
            )
        if name == "env":
            unset.append((value, ""))
        if option in ("-I", "--replace"):
            replaced = value or "{}"
        at += 1
    skipped = words[1 : at + wrapper.leading_words]
    if any(COMPUTED in word or ANY in word for word in skipped):
        raise CallDenied(
            BuiltInRule.UNDECIDABLE_COMMAND,
            f"what {name} starts depends on words that are only known when it runs; write them out",
        )
    return WrappedCommand(words[at + wrapper.leading_words :], tuple(unset), replaced)


def fed_words(found: WrappedCommand) -> tuple[str, ...]:
    """The command of xargs, with what it is fed marked as known only when it runs."""
    if not found.words:
        return ("echo", COMPUTED)
    if found.replaced:
        return tuple(word.replace(found.replaced, COMPUTED) for word in found.words)
    return (*found.words, COMPUTED)


@dataclass(frozen=True, slots=True)
class ShellScriptArgument:
    """The text that a shell is given on its command line."""

    text: str
    has_more: bool
    """Words for the text follow it."""


def script_of(name: str, words: tuple[str, ...]) -> ShellScriptArgument | None:
    """The text behind `-c`. None: there is no `-c`. Raises `CallDenied` when it cannot be told."""
    if not any("c" in option.partition(" ")[0] for option in _shell_options(words)):
        return None
    if name not in READABLE_SHELLS:
        raise CallDenied(
            BuiltInRule.SHELL_INDIRECTION, f"{name} has a grammar of its own; use sh or bash"
        )
    at = next(at for at, word in enumerate(words) if _has_c(word))
    head = "\n".join((*words[1 : at + 1], ""))
    if len(words) < at + 2 or _SCRIPT_FORM.fullmatch(head) is None:
        raise CallDenied(
            BuiltInRule.UNDECIDABLE_COMMAND,
            f"{name} with these options is not understood; use plain -c",
        )
    text = words[at + 1]
    if COMPUTED in text or ANY in text:
        raise CallDenied(
            BuiltInRule.SHELL_INDIRECTION,
            f"the text that {name} would run is only known when it runs; write it out",
        )
    return ShellScriptArgument(text.removesuffix(DERIVED), len(words) > at + 2)


def reads_input(words: tuple[str, ...]) -> bool:
    """Whether a shell with these words takes its commands from its input."""
    plain = [word for word in words[1:] if not word.startswith(("-", "+"))]
    letters = "".join(word[1:] for word in words[1:] if word[:1] in "-+" and word[:2] != "--")
    return "s" in letters or not plain


_QUIET_LETTERS = frozenset("neuxvlf")


def runs_a_file(words: tuple[str, ...], *, confined: bool) -> bool:
    """Whether a shell is given a file to run, by a name that says which."""
    at = 1
    while confined and at < len(words) and words[at][:1] == "-" and words[at] not in ("-", "--"):
        if not words[at].lstrip("-") or not set(words[at][1:]) <= _QUIET_LETTERS:
            return False
        at += 1
    beginnings = ("-", "+", "/dev/", "/proc/", COMPUTED)
    return at < len(words) and not words[at].startswith(beginnings)


def _has_c(word: str) -> bool:
    return word.startswith("-") and not word.startswith("--") and "c" in word


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


_STARTING = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_NAME_TESTS = frozenset({"-name", "-iname"})
_PATH_TESTS = frozenset({"-path", "-ipath", "-wholename"})
_LOOSENING = frozenset({"-o", "-or", "-not", "!", ","})
_OF_GIT = (
    *("HEAD", "config", "index", "packed-refs", "main", "master", "pre-commit", "objects"),
    "a1b2c3",
)
"""Names that lie in every git folder: a search for one of them finds that too."""
_LETTERS = re.compile(r"[A-Za-z0-9]")
_BEFORE_PATHS = frozenset({"-H", "-L", "-P"})


class FindCommand(NamedTuple):
    """A `find` taken apart."""

    plain: tuple[str, ...]
    """Its words without the commands it starts."""
    started: tuple[tuple[str, ...], ...]
    """Those commands; what was found stands in them as a glob over the places searched."""


def taken_apart(words: tuple[str, ...]) -> FindCommand:
    """Raises `CallDenied` when a command in it has no end."""
    plain: list[str] = []
    started: list[tuple[str, ...]] = []
    name = found_name(words) or ANY
    found = tuple(f"{place.rstrip('/')}/{name}" for place in places(words))
    at = 0
    while at < len(words):
        if words[at] not in _STARTING:
            plain.append(words[at])
            at += 1
            continue
        end = next((i for i in range(at, len(words)) if words[i] in (";", "+")), None)
        if end is None or end == at + 1:
            raise CallDenied(
                BuiltInRule.UNDECIDABLE_COMMAND, f"the command of find {words[at]} has no end"
            )
        started.append(tuple(_with_found(words[at + 1 : end], found)))
        at = end + 1
    return FindCommand(tuple(plain), tuple(started))


def places(words: tuple[str, ...]) -> tuple[str, ...]:
    """Where it searches: the words before its first test."""
    found: list[str] = []
    for word in words[1:]:
        if word in _BEFORE_PATHS:
            continue
        if word.startswith(("-", "(", "!", ",")):
            break
        found.append(word)
    return tuple(found) or (".",)


def found_name(words: tuple[str, ...]) -> str:
    """What is found beneath a place, as a glob; empty when nothing narrows the search."""
    if _LOOSENING & set(words):
        return ""
    for at, word in enumerate(words[:-1]):
        pattern = words[at + 1]
        if COMPUTED in pattern or not _LETTERS.search(pattern):
            continue
        if word in _NAME_TESTS and not any(fnmatchcase(name, pattern) for name in _OF_GIT):
            return re.sub(r"[*?\[]", ANY, pattern)
        if word in _PATH_TESTS:
            return re.sub(r"[*?\[]", ANY, pattern.removeprefix("./"))
    return ""


def _with_found(words: tuple[str, ...], found: tuple[str, ...]) -> Iterator[str]:
    for word in words:
        if word == "{}":
            yield from found
        else:
            yield word.replace("{}", COMPUTED)
