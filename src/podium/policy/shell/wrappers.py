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
    leading_operands: int = 0
    confined: bool = False
    """It is understood in confined runs alone."""


def _wrapper(
    flags: str = "", valued: str = "", leading_operands: int = 0, *, confined: bool = False
) -> Wrapper:
    return Wrapper(frozenset(flags.split()), frozenset(valued.split()), leading_operands, confined)


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
    """The command that a wrapper starts."""

    argv: tuple[str, ...]
    unset: tuple[tuple[str, str], ...] = ()
    """Variables it takes away, as if they were set empty."""
    replaced: str = ""
    """With xargs: the text that stands for what it is fed."""


def inside(name: str, argv: tuple[str, ...]) -> WrappedCommand:
    """Take a wrapper off. Raises `CallDenied` for options that are not known to the last letter."""
    wrapper = WRAPPERS[name]
    unset: list[tuple[str, str]] = []
    replaced = ""
    at = 1
    while at < len(argv) and argv[at].startswith("-"):
        option, equals, value = argv[at].partition("=")
        if argv[at] == "--":
            at += 1
            break
        if argv[at] in wrapper.flags or (wrapper.valued and _ATTACHED.fullmatch(argv[at])):
            at += 1
            continue
        if name == "xargs" and argv[at].startswith("-I") and len(argv[at]) > 2:
            option, value = "-I", argv[at][2:]
        elif option in wrapper.valued and not equals:
            value = argv[at + 1] if at + 1 < len(argv) else ""
            at += 1
        elif not (option in wrapper.valued and option.startswith("--")):
            raise CallDenied(
                BuiltInRule.UNDECIDABLE_COMMAND,
                f"{name} {argv[at]!r} is not supported; run the command without {name!r}",
            )
        if name == "env":
            unset.append((value, ""))
        if option in ("-I", "--replace"):
            replaced = value or "{}"
        at += 1
    skipped = argv[1 : at + wrapper.leading_operands]
    if any(COMPUTED in token or ANY in token for token in skipped):
        raise CallDenied(
            BuiltInRule.UNDECIDABLE_COMMAND,
            f"what {name} starts depends on arguments that are only known when it runs; write them out",
        )
    return WrappedCommand(argv[at + wrapper.leading_operands :], tuple(unset), replaced)


def fed_argv(wrapped: WrappedCommand) -> tuple[str, ...]:
    """The command of xargs, with what it is fed marked as known only when it runs."""
    if not wrapped.argv:
        return ("echo", COMPUTED)
    if wrapped.replaced:
        return tuple(token.replace(wrapped.replaced, COMPUTED) for token in wrapped.argv)
    return (*wrapped.argv, COMPUTED)


@dataclass(frozen=True, slots=True)
class ShellScriptArgument:
    """The text that a shell is given on its command line."""

    text: str
    has_more: bool
    """Words for the text follow it."""


def script_of(name: str, argv: tuple[str, ...]) -> ShellScriptArgument | None:
    """The text behind `-c`. None: there is no `-c`. Raises `CallDenied` when it cannot be told."""
    if not any("c" in option.partition(" ")[0] for option in _shell_options(argv)):
        return None
    if name not in READABLE_SHELLS:
        raise CallDenied(
            BuiltInRule.SHELL_INDIRECTION,
            f"{name} has its own grammar, which cannot be checked; use sh or bash",
        )
    at = next(at for at, token in enumerate(argv) if _has_c(token))
    head = "\n".join((*argv[1 : at + 1], ""))
    if len(argv) < at + 2 or _SCRIPT_FORM.fullmatch(head) is None:
        raise CallDenied(
            BuiltInRule.UNDECIDABLE_COMMAND,
            f"{name} with these options is not supported; use -c alone",
        )
    text = argv[at + 1]
    if COMPUTED in text or ANY in text:
        raise CallDenied(
            BuiltInRule.SHELL_INDIRECTION,
            f"the text that {name} would run is only known when it runs; write it out",
        )
    return ShellScriptArgument(text.removesuffix(DERIVED), len(argv) > at + 2)


def reads_input(argv: tuple[str, ...]) -> bool:
    """Tell whether a shell with these words takes its commands from its input."""
    plain = [token for token in argv[1:] if not token.startswith(("-", "+"))]
    flags = "".join(token[1:] for token in argv[1:] if token[:1] in "-+" and token[:2] != "--")
    return "s" in flags or not plain


_QUIET_FLAGS = frozenset("neuxvlf")


def runs_a_file(argv: tuple[str, ...], *, confined: bool) -> bool:
    """Tell whether a shell is given a file to run, by a name that says which."""
    at = 1
    while confined and at < len(argv) and argv[at][:1] == "-" and argv[at] not in ("-", "--"):
        if not argv[at].lstrip("-") or not set(argv[at][1:]) <= _QUIET_FLAGS:
            return False
        at += 1
    beginnings = ("-", "+", "/dev/", "/proc/", COMPUTED)
    return at < len(argv) and not argv[at].startswith(beginnings)


def _has_c(token: str) -> bool:
    return token.startswith("-") and not token.startswith("--") and "c" in token


def _shell_options(argv: tuple[str, ...]) -> tuple[str, ...]:
    """A shell's short options up to its first other word; `-o NAME` is one."""
    options: list[str] = []
    rest = iter(argv[1:])
    for argument in rest:
        if not argument.startswith(("-", "+")) or argument == "--":
            break
        if not argument.startswith("--"):
            options.append(f"{argument} {next(rest, '')}" if argument[-1] in "oO" else argument)
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
_ALPHANUMERIC = re.compile(r"[A-Za-z0-9]")
_BEFORE_PATHS = frozenset({"-H", "-L", "-P"})


class FindCommand(NamedTuple):
    """A `find` taken apart."""

    plain: tuple[str, ...]
    """Its words without the commands it starts."""
    started: tuple[tuple[str, ...], ...]
    """Those commands; what was found stands in them as a glob over the folders searched."""


def taken_apart(argv: tuple[str, ...]) -> FindCommand:
    """Raises `CallDenied` when a command in it has no end."""
    plain: list[str] = []
    started: list[tuple[str, ...]] = []
    name = name_glob(argv) or ANY
    matches = tuple(f"{path.rstrip('/')}/{name}" for path in search_paths(argv))
    at = 0
    while at < len(argv):
        if argv[at] not in _STARTING:
            plain.append(argv[at])
            at += 1
            continue
        end = next((i for i in range(at, len(argv)) if argv[i] in (";", "+")), None)
        if end is None or end == at + 1:
            raise CallDenied(
                BuiltInRule.UNDECIDABLE_COMMAND,
                f"the command of find {argv[at]} has no end; end it with `;` or `+`",
            )
        started.append(tuple(_with_matches(argv[at + 1 : end], matches)))
        at = end + 1
    return FindCommand(tuple(plain), tuple(started))


def search_paths(argv: tuple[str, ...]) -> tuple[str, ...]:
    """The folders it searches: the words before its first test."""
    paths: list[str] = []
    for token in argv[1:]:
        if token in _BEFORE_PATHS:
            continue
        if token.startswith(("-", "(", "!", ",")):
            break
        paths.append(token)
    return tuple(paths) or (".",)


def name_glob(argv: tuple[str, ...]) -> str:
    """A glob for the names it finds; empty when nothing narrows the search."""
    if _LOOSENING & set(argv):
        return ""
    for at, token in enumerate(argv[:-1]):
        pattern = argv[at + 1]
        if COMPUTED in pattern or not _ALPHANUMERIC.search(pattern):
            continue
        if token in _NAME_TESTS and not any(fnmatchcase(name, pattern) for name in _OF_GIT):
            return re.sub(r"[*?\[]", ANY, pattern)
        if token in _PATH_TESTS:
            return re.sub(r"[*?\[]", ANY, pattern.removeprefix("./"))
    return ""


def _with_matches(argv: tuple[str, ...], matches: tuple[str, ...]) -> Iterator[str]:
    for argument in argv:
        if argument == "{}":
            yield from matches
        else:
            yield argument.replace("{}", COMPUTED)
