"""Simple commands that a line, or an argument vector, really runs.

Programs that only start another one (`env`, `timeout`, `xargs`, `find -exec`, `bash -c '…'`) are taken
off, and what is inside is judged in its own right. A form that is not understood to the last
option is refused, so that no rule for an inner command can be reached through a wrapper by accident.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from podium.core.decisions import BuiltInRule
from podium.policy import programs
from podium.policy.refusal import CallDenied
from podium.policy.shell import wrappers
from podium.policy.shell import wrappers as finding
from podium.policy.shell.command_reader import RESERVED
from podium.policy.shell.script_reader import read_script
from podium.policy.shell.simple_command import (
    ANY,
    COMPUTED,
    DERIVED,
    Objection,
    ParsedLine,
    Redirect,
    SimpleCommand,
    Unclear,
    WrittenCommand,
    printable,
    program_name,
    simple_command,
    unreadable,
)

MAX_LINE = 131_072
MAX_PLAIN_LINE = 32_768
MAX_TOKENS = 2_000
"""In all commands of a line together."""
_MAX_PLAIN_COMMANDS = 64

ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
"""The beginning of a word such as `NAME=value`."""
_MAX_DEPTH = 8
_SOURCED = re.compile(r"(?:.*/)?(?:bin/activate|\.cargo/env|nvm\.sh)")
"""Files that set up a shell for a language's tools, and are read by every such shell."""
_PLAIN_TEXT = re.compile(r"[\t\n -~]*")
_HIDDEN_KINDS = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})


class SplitCommand(NamedTuple):
    """The simple commands of a line, each as argv; or none, and why it could not be read."""

    commands: tuple[tuple[str, ...], ...]
    undecidable: str


class _CommandContext(NamedTuple):
    """The surroundings of a command's words."""

    variables: tuple[tuple[str, str], ...] = ()
    redirects: tuple[Redirect, ...] = ()
    scope: tuple[int, ...] = ()
    after_success: bool = False
    fed: bool = False
    script: str | None = None
    outer_argv: tuple[str, ...] = ()
    depth: int = 0
    assigns: bool = True
    """True if a leading `NAME=value` sets a variable, as on a line, or is the program."""


@lru_cache(maxsize=256)
def read_line(text: str) -> ParsedLine:
    """Read a line as a shell would. Never raises: what is wrong stands in the reading."""
    collector = _CommandCollector()
    try:
        _check_characters(text)
        if len(text) > MAX_PLAIN_LINE:
            collector.beyond(f"it is longer than {MAX_PLAIN_LINE} characters")
        collector.add_script(text.strip(" \t\n"), _CommandContext())
    except Unclear as unclear:
        collector.unclear = str(unclear)
        collector.refusal = Objection(BuiltInRule.UNDECIDABLE_COMMAND, unreadable(str(unclear)))
    except CallDenied as refused:
        collector.refusal = Objection(refused.rule, refused.reason, refused.tier)
    return collector.reading()


def split_command(text: str) -> SplitCommand:
    """The simple commands of a line for people, or why it cannot be read. Never raises."""
    reading = read_line(text)
    return (
        SplitCommand((), reading.unclear)
        if reading.unclear
        else SplitCommand(tuple(map(_argv_text, reading.written)), "")
    )


def read_argv(
    argv: Sequence[str], variables: tuple[tuple[str, str], ...] = (), *, assigns: bool = False
) -> ParsedLine:
    """Read a list of words, as a program is started without a shell. Never raises."""
    collector = _CommandCollector()
    try:
        around = _CommandContext(variables=variables, outer_argv=tuple(argv), assigns=assigns)
        collector.add(tuple(argv), around)
    except Unclear as unclear:
        collector.refusal = Objection(BuiltInRule.UNDECIDABLE_COMMAND, unreadable(str(unclear)))
    except CallDenied as refused:
        collector.refusal = Objection(refused.rule, refused.reason, refused.tier)
    return collector.reading()


class _CommandCollector:
    """Gathers the commands of a line."""

    def __init__(self) -> None:
        self.commands: list[SimpleCommand] = []
        self.written: tuple[WrittenCommand, ...] = ()
        self.unclear = ""
        self.refusal: Objection | None = None
        self.beyond_plain: Objection | None = None
        self.unsteady = False
        self.token_count = 0
        self.scripts = 0

    def reading(self) -> ParsedLine:
        return ParsedLine(
            tuple(self.commands),
            self.written,
            self.unclear,
            self.refusal,
            self.beyond_plain,
            self.unsteady,
        )

    def beyond(self, why: str, rule: str = BuiltInRule.UNDECIDABLE_COMMAND) -> None:
        """Note what a run that is not confined may not do."""
        if self.beyond_plain is None:
            reason = unreadable(why) if rule == BuiltInRule.UNDECIDABLE_COMMAND else why
            self.beyond_plain = Objection(rule, reason)

    def add_script(self, text: str, around: _CommandContext) -> None:
        script = read_script(text)
        if script.beyond_plain:
            self.beyond(script.beyond_plain)
        if len(script.commands) > _MAX_PLAIN_COMMANDS:
            self.beyond(f"it has more than {_MAX_PLAIN_COMMANDS} commands")
        self.unsteady = self.unsteady or script.unsteady
        if not around.depth:
            self.written = script.commands
        for written in script.commands:
            inner = _CommandContext(
                variables=(*around.variables, *written.assignments),
                redirects=written.redirects,
                scope=(*around.scope, *written.scope),
                after_success=written.after_success,
                fed=written.fed,
                script=written.script,
                outer_argv=around.outer_argv or written.argv,
                depth=around.depth,
            )
            self.add(written.argv, inner)

    def add(self, argv: tuple[str, ...], around: _CommandContext) -> None:
        self._count(argv, around)
        if not argv:
            self._emit((), around)
            return
        self._check_program(argv[0], around)
        argv, around = self._without_assignments(argv, around)
        name = program_name(argv[0]).removesuffix(DERIVED) if argv else ""
        if name in wrappers.SHELLS:
            self._shell(name, argv, around)
        elif (
            name in wrappers.WRAPPERS and len(argv) > 1 and (name, argv[1]) not in wrappers.LOOKUPS
        ):
            self._wrapped(name, argv, around)
        elif name == "find":
            self._find(argv, around)
        elif name in _SPECIAL:
            _SPECIAL[name](self, argv, around)
        else:
            self._emit(argv, around)
            if name in wrappers.RUNNERS:
                self._started_by_runner(argv, around)

    def _count(self, argv: tuple[str, ...], around: _CommandContext) -> None:
        self.token_count += len(argv) + len(around.variables)
        if self.token_count > MAX_TOKENS:
            raise Unclear(f"it has more than {MAX_TOKENS} words")
        if around.depth > _MAX_DEPTH:
            raise CallDenied(
                BuiltInRule.UNDECIDABLE_COMMAND,
                "too many nested commands; run the inner command directly",
            )

    def _check_program(self, program: str, around: _CommandContext) -> None:
        computed = COMPUTED in program or ANY in program
        if computed or (
            program.endswith(DERIVED) and not program.startswith(("./", "~/", "/tmp/"))  # noqa: S108 - a path on the line
        ):
            raise CallDenied(
                BuiltInRule.UNDECIDABLE_COMMAND,
                f"the program {printable(program)!r} is only known when it runs; write its name out",
            )
        if program in RESERVED - {"time", "coproc", "function"}:
            raise Unclear(f"{program!r} is used as a program name")

    def _without_assignments(
        self, argv: tuple[str, ...], around: _CommandContext
    ) -> tuple[tuple[str, ...], _CommandContext]:
        """On a line the grammar took them off already; behind `env` and in lists they are words."""
        count = 0
        while count < len(argv) and ASSIGNMENT.match(argv[count]):
            count += 1
        if not count:
            return argv, around
        if not around.assigns:
            raise CallDenied(
                BuiltInRule.UNDECIDABLE_COMMAND,
                f"{printable(argv[0])!r} would be run as a program here, and would not set a variable; put `env` before it",
            )
        if any(token.partition("=")[0].endswith("+") for token in argv[:count]):
            raise CallDenied(
                BuiltInRule.UNDECIDABLE_COMMAND, "shells interpret += differently; use ="
            )
        assignments = tuple(assignment(token) for token in argv[:count])
        if argv[count:]:
            self._check_program(argv[count], around)
        return argv[count:], around._replace(variables=(*around.variables, *assignments))

    def _emit(self, argv: tuple[str, ...], around: _CommandContext) -> None:
        self.commands.append(
            simple_command(
                argv,
                around.variables,
                around.redirects,
                around.scope,
                around.after_success,
                around.outer_argv,
            )
        )

    def _wrapped(self, name: str, argv: tuple[str, ...], around: _CommandContext) -> None:
        if wrappers.WRAPPERS[name].confined:
            self.beyond(
                f"{name} starts commands that its command line does not show; run them one by one",
                BuiltInRule.SHELL_INDIRECTION,
            )
        wrapped = wrappers.inside(name, argv)
        inner = wrappers.fed_argv(wrapped) if name == "xargs" else wrapped.argv
        deeper = around._replace(
            variables=(*around.variables, *wrapped.unset),
            depth=around.depth + 1,
            assigns=name == "env",
            fed=around.fed or name == "xargs",
            script=None if name == "xargs" else around.script,
        )
        if name == "xargs" and inner and program_name(inner[0]) == "git":
            raise CallDenied(
                BuiltInRule.GIT_FIREWALL,
                "xargs may not start git; pass the files to git directly",
            )
        self.add(inner, deeper)

    def _shell(self, name: str, argv: tuple[str, ...], around: _CommandContext) -> None:
        argument = wrappers.script_of(name, argv)
        if argument is not None:
            if argument.has_more:
                self.beyond(f"{name} with these options is not supported; use -c alone")
            self._nested(argument.text, around, f"the text given to {name}")
        elif around.script is not None and wrappers.reads_input(argv):
            if name not in wrappers.READABLE_SHELLS or COMPUTED in around.script:
                raise CallDenied(
                    BuiltInRule.SHELL_INDIRECTION,
                    f"{name} would read commands that are only known when it runs",
                )
            self.beyond(
                f"{name} would read commands that the command line does not show",
                BuiltInRule.SHELL_INDIRECTION,
            )
            self._nested(around.script, around, f"the text given to {name}")
        else:
            self._emit(argv, around)

    def _nested(
        self, text: str, around: _CommandContext, what: str, *, same_shell: bool = False
    ) -> None:
        self.scripts += 1
        scope = around.scope if same_shell else (*around.scope, -self.scripts)
        if around.redirects:
            self._emit((), around._replace(variables=(), script=None))
        deeper = _CommandContext(
            variables=around.variables,
            scope=scope,
            outer_argv=around.outer_argv,
            depth=around.depth + 1,
        )
        self._count((), deeper)
        try:
            self.add_script(text, deeper)
        except Unclear as unclear:
            raise Unclear(f"{what}: {unclear}") from None

    def _find(self, argv: tuple[str, ...], around: _CommandContext) -> None:
        search = finding.taken_apart(argv)
        if search.started:
            self.beyond(
                "find may only list files here, without -exec, -ok, -delete or -fprint",
                BuiltInRule.DESTRUCTIVE_COMMAND,
            )
        self._emit(search.plain, around)
        for started in search.started:
            self.add(started, around._replace(redirects=(), depth=around.depth + 1, assigns=False))

    def _started_by_runner(self, argv: tuple[str, ...], around: _CommandContext) -> None:
        for at, token in enumerate(argv):
            name = program_name(token)
            if at and (name == "git" or name in wrappers.SHELLS):
                self.add(argv[at:], around._replace(depth=around.depth + 1))
                return

    def _eval(self, argv: tuple[str, ...], around: _CommandContext) -> None:
        self.beyond(
            "eval starts commands that its command line does not show; run them one by one",
            BuiltInRule.SHELL_INDIRECTION,
        )
        if any(COMPUTED in token or ANY in token for token in argv):
            raise CallDenied(
                BuiltInRule.SHELL_INDIRECTION,
                "what eval would run is only known when it runs; write the commands out",
            )
        text = " ".join(token.removesuffix(DERIVED) for token in argv[1:])
        if text.strip():
            self._nested(text, around, "the text given to eval", same_shell=True)

    def _trap(self, argv: tuple[str, ...], around: _CommandContext) -> None:
        self.beyond(
            "trap changes the shell itself, which is not allowed", BuiltInRule.SHELL_INDIRECTION
        )
        text = argv[1] if len(argv) > 2 else ""
        if COMPUTED in text or ANY in text:
            raise CallDenied(
                BuiltInRule.SHELL_INDIRECTION,
                "what trap would run is only known when it runs; write it in single quotes",
            )
        self._emit(("true",), around)
        if text not in ("", "-", "--") and not text.startswith("-"):
            self._nested(text.removesuffix(DERIVED), around, "the text given to trap")

    def _source(self, argv: tuple[str, ...], around: _CommandContext) -> None:
        self.beyond(
            f"{argv[0]} starts commands that its command line does not show; run them one by one",
            BuiltInRule.SHELL_INDIRECTION,
        )
        if len(argv) < 2 or not _SOURCED.fullmatch(argv[1].removesuffix(DERIVED)):
            raise CallDenied(
                BuiltInRule.SHELL_INDIRECTION,
                f"{argv[0]} runs commands of a file in this shell; run the file as a program",
            )
        self.unsteady = True
        self._emit(argv, around)

    def _function(self, argv: tuple[str, ...], around: _CommandContext) -> None:
        name = argv[1] if len(argv) > 1 else ""
        if programs.is_listed(name) or name in wrappers.WRAPPERS or name in wrappers.SHELLS:
            raise CallDenied(
                BuiltInRule.SHELL_INDIRECTION,
                f"the function {name!r} would replace the command of that name; rename the function",
            )


_SPECIAL = {
    "eval": _CommandCollector._eval,
    "trap": _CommandCollector._trap,
    "source": _CommandCollector._source,
    ".": _CommandCollector._source,
    "function": _CommandCollector._function,
}


def _argv_text(written: WrittenCommand) -> tuple[str, ...]:
    tokens = (*(f"{name}={value}" for name, value in written.assignments), *written.argv)
    tokens = tokens or tuple(redirect.target for redirect in written.redirects) or (":",)
    return tuple(map(printable, tokens))


def assignment(token: str) -> tuple[str, str]:
    """`NAME=value` as a pair; `NAME+=value` too."""
    name, _, value = token.partition("=")
    return name.removesuffix("+"), value


def _check_characters(text: str) -> None:
    """Characters that terminals hide or that shells treat in ways of their own are refused everywhere."""
    if len(text) > MAX_LINE:
        raise Unclear(f"it is longer than {MAX_LINE} characters")
    if _PLAIN_TEXT.fullmatch(text):
        return
    for char in text:
        if (
            char not in "\t\n"
            and (not char.isascii() or not char.isprintable())
            and unicodedata.category(char) in _HIDDEN_KINDS
        ):
            raise Unclear(f"it has the invisible character U+{ord(char):04X}")
