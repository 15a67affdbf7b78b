"""A check, its result, the programs that it needs, and its run confined to a workspace."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path

from podium.app.checks.runner_output import (
    MAX_FAILED,
    executed_tests,
    failed_tests,
    steady_output,
)
from podium.app.confining_launcher import VENV_NAMES, is_venv
from podium.config.configuration import Configuration
from podium.core.errors import NotPossibleNow
from podium.core.forge import check_passed
from podium.core.model import FrozenModel, NonEmpty
from podium.core.processes import ProcessLimits, ProcessSpec
from podium.ports import ConfinementProvider, Launcher, Workspace


class Check(FrozenModel):
    """A command that tells whether the project is in order."""

    name: NonEmpty
    command: NonEmpty
    """A shell line."""
    source: str = ""
    """The file of the project that it was found in. Empty: the settings name it."""


class Detection(FrozenModel):
    """Checks that a project's files speak of."""

    checks: tuple[Check, ...] = ()
    not_installed: tuple[str, ...] = ()
    """Those that lack their tool here, in words."""
    module: str = ""
    """If none can run: the Python module that the first of them lacks. Empty: it lacks a program."""
    not_read: tuple[str, ...] = ()
    """Files that could have named more and were not read or understood, in words."""


class CheckResult(FrozenModel):
    """Result of a check."""

    name: str
    command: str
    exit_code: int | None
    """None: it was ended by a signal, or took too long."""
    seconds: float = 0.0
    output_sha256: str = ""
    tail: str = ""
    """The end of what it wrote."""
    timed_out: bool = False
    ran_no_tests: bool = False
    """It is a test run, and there was no test in it: red, whatever the exit code."""
    before: str = ""
    """Of a red one: how it ended on the base, without the work. Empty: it was not looked at."""
    red_before: bool = False
    failed: tuple[str, ...] = ()
    """Names of the failed tests, where its output tells them."""
    ignored_failures: tuple[str, ...] = ()
    """Names of tests that failed although it ended with 0."""
    tests_run: int | None = None
    """Number of tests that ran, without skipped ones. None: its output does not tell."""
    as_before: bool = False
    """Red in the same way as on the base: not by this work."""

    @property
    def passed(self) -> bool:
        return check_passed(self.model_dump())


def all_passed(results: Sequence[CheckResult]) -> bool:
    return all(result.passed for result in results)


def red_alike(before: CheckResult, after: CheckResult) -> bool:
    """True if a red check failed as it did before: no further test, and where tests have no names, the same output."""
    if before.passed or after.passed:
        return False
    ending = ("exit_code", "timed_out", "ran_no_tests")
    if any(getattr(before, name) != getattr(after, name) for name in ending):
        return False
    if after.failed and before.failed:
        return len(after.failed) < MAX_FAILED and set(after.failed) <= set(before.failed)
    return steady_output(before.tail) == steady_output(after.tail)


_ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")

_SUMMARIES = re.compile(
    r"""
      ^Ran[ ](?P<unittest>\d+)[ ]tests?[ ]in[ ]
    | ^NO[ ]TESTS[ ]RAN\b
    | ^[= \t]*(?:no[ ]tests[ ]ran|\d+[ ]deselected)(?:,[ ]\d+[ ]warnings?)?[ ]in[ ]
    | ^collected[ ]0[ ]items$
    | ^[= \t]*(?P<pytest>\d+)[ ](?:passed|failed|skipped|xfailed|xpassed|errors?)\b[^\n]*[ ]in[ ]\d
    | ^[ \t]*(?P<mocha>\d+)[ ](?:passing|failing|pending)\b
    | ^No[ ]tests?[ ](?:files?[ ])?found\b
    | ^[ \t]*Tests:?[ \t][^\n|]*?\b(?P<jest>\d{1,9})[ ](?:passed|failed|skipped|todo)\b
    | ^(?:\#|ℹ)[ ]tests[ ](?P<node>\d+)$
    | ^[ \t]*(?P<bun>\d+)[ ](?:pass|fail)$
    | ^[ \t]*(?:ok|FAILED)[ ]\|[ ](?P<deno>\d+)[ ]passed
    | ^No[ ]test[ ]modules[ ]found
    | ^\?[ \t]+\S+[ \t]+\[no[ ]test[ ]files\]
    | ^ok[ \t]+\S+[ \t][^\n]*\[no[ ]tests[ ]to[ ]run\]
    | ^(?P<go>ok|FAIL|---[ ](?:PASS|FAIL):)[ \t]+\S+
    | ^[ \t]*(?:running|Starting)[ ](?P<cargo>\d+)[ ]tests?\b
    | ^(?:\[\w+\][ ])?Tests[ ]run:[ ](?P<maven>\d+),
    | ^(?:\[\w+\][ ])?No[ ]tests[ ]to[ ]run
    | ^>[ ]Task[ ]\S*[tT]est[ ]NO-SOURCE
    | ^(?P<gradle>>[ ]Task[ ]\S*[tT]est)\b
    | ^(?P<examples>\d+)[ ](?:examples?|runs|tests?|specs?),[ ]\d+[ ](?:failures?|assertions)
    | ^No[ ](?:tests[ ]executed!|tests[ ]were[ ]found!!!|specs[ ]found|examples[ ]found)
    | ^There[ ]are[ ]no[ ]tests[ ]to[ ]run
    | ^OK[ ]\((?P<phpunit>\d+)[ ]tests?,
    | ^Tests:[ ](?P<phpunit_failed>\d+),[ ]Assertions:
    | ^\d+%[ ]tests[ ]passed,[ ]\d+[ ]tests?[ ]failed[ ]out[ ]of[ ](?P<ctest>\d+)
    | ^[ \t]*Total[ ]tests:[ ](?P<dotnet>\d+)
    | ^(?:Passed|Failed)![ \t][^\n]*\bTotal:[ \t]*(?P<dotnet_quiet>\d+)
    | ^No[ ]test[ ]is[ ]available[ ]in
    | ^Result:[ ]NOTESTS
    | ^[ \t]*Executed[ ](?P<swift>\d+)[ ]tests?
    """,
    re.VERBOSE | re.MULTILINE,
)
"""Lines that tell how many tests ran. A line without a number that counts says that there were none."""


def ran_no_tests(output: str) -> bool:
    """True when the summaries in a check's output speak of tests, and of none that ran.

    Several runs in one output count together. What prints no summary of tests, such as a linter, a
    build or a script of the project's own, is not judged.
    """
    plain = _ESCAPES.sub("", output).replace("\r\n", "\n")
    summaries = [match.lastgroup and match[match.lastgroup] for match in _SUMMARIES.finditer(plain)]
    return bool(summaries) and all(count in (None, "0") for count in summaries)


def speaks_of_tests(output: str) -> bool:
    """True when the output has a summary of tests that ran."""
    plain = _ESCAPES.sub("", output).replace("\r\n", "\n")
    return bool(_SUMMARIES.search(plain)) and not ran_no_tests(output)


Run = Callable[[str], Awaitable[str]]
"""Runs a shell line where checks run, and gives what it wrote."""

ADVICE = "`podium help add-a-check`"
_SYSTEM_PATH = "/usr/bin:/bin"
"""Folders that every workspace sees: their programs need no probe."""
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*")
_PLAIN = re.compile(r"[\w./@+-]+")
_MISSING = re.compile(r"^podium-missing ([0-9]+)$", re.MULTILINE)


async def missing_programs(checks: Sequence[Check], run: Run) -> tuple[str, ...]:
    """Name the checks whose program cannot be started, each with the reason.

    A file of the workspace may still be written by whoever does the work, and is not missed.
    """
    programs = [
        (check, program)
        for check in checks
        for program in _program(check.command)
        if not (_may_be_written(program) or _is_in_system(program))
    ]
    if not programs:
        return ()
    lines = (
        f"command -v {shlex.quote(program)} >/dev/null 2>&1 || echo podium-missing {number}"
        for number, (_, program) in enumerate(programs)
    )
    output = await run("\n".join([*lines, "true"]))
    missing = [programs[int(number)] for number in _MISSING.findall(output)]
    return tuple(f"`{check.command}`: {_reason(program)}" for check, program in missing)


def _program(command: str) -> Iterator[str]:
    """The first word that is not an assignment, unless only a shell understands it."""
    try:
        tokens = shlex.split(command)
    except ValueError:
        return
    for token in tokens:
        if not _ASSIGNMENT.fullmatch(token):
            if _PLAIN.fullmatch(token):
                yield token
            return


def _is_in_system(program: str) -> bool:
    # A relative path would be looked up from where Podium was started.
    return "/" not in program and shutil.which(program, path=_SYSTEM_PATH) is not None


def _may_be_written(program: str) -> bool:
    return "/" in program and not program.startswith("/") and _top(program) not in VENV_NAMES


def _top(program: str) -> str:
    return program.removeprefix("./").split("/")[0]


def _reason(program: str) -> str:
    if "/" not in program:
        return f"{program} is not installed"
    name = _top(program)
    if name in VENV_NAMES:
        short = os.path.basename(program)  # noqa: PTH119 — a name on PATH, not a path
        return f"a workspace has no {name}; use `{short}`, which comes from your checkout's {name}"
    return f"{program} is not visible in a workspace"


def cannot_test(missing: Sequence[str], remedy: str) -> str:
    """One sentence about tests that nothing can run, and the ways on."""
    first = f"Run `{remedy}`, or name" if remedy else "Install it, or name"
    return (
        f"the tests cannot be run: {'; '.join(missing)}. {first} another command under `checks:` in podium.yaml "
        f"(`checks: []` for none); see {ADVICE}"
    )


CANNOT_START = (126, 127)
"""Exit codes of a shell that could not start a program."""
_NOT_SET_UP = re.compile(
    r"command not found|: not found$|Could not resolve|[Nn]ame resolution|ENOTFOUND|EAI_AGAIN",
    re.MULTILINE,
)
_MISSING_MODULE = re.compile(
    r"No module named '?([A-Za-z0-9_]+)|Cannot find (?:module|package) '((?:@[\w.-]+/)?[\w.-]+)"
)
SET_UP = "set the workspace up with `workspaces: after_create:`, or change `checks:`"


def why_not_runnable(result: CheckResult, manifests: str) -> str:
    """Say in one line why a red check could not do its work here; empty when it could, or nothing tells.

    A module counts as missing if the project's own manifests name it: any other may be what the work is to write.
    """
    program = next(_program(result.command), "")
    if result.exit_code in CANNOT_START and not (program and _may_be_written(program)):
        return _last_line(result.tail)
    for match in _MISSING_MODULE.finditer(result.tail):
        name = match[1] or match[2]
        if re.search(
            rf"(?<![\w-]){re.escape(name).replace('_', '[-_]')}(?![\w-])", manifests, re.IGNORECASE
        ):
            return f"{name} is not installed"
    lines = [line for line in result.tail.splitlines() if _NOT_SET_UP.search(line)]
    return (
        lines[-1].strip()
        if lines and not result.failed and not _SUMMARIES.search(result.tail)
        else ""
    )


def _last_line(tail: str) -> str:
    lines = [line for line in tail.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no output"


def remedy_for(detection: Detection, checkout: Path) -> str:
    """The command that installs what the first check lacks. Empty: that depends on the system."""
    if not detection.module:
        return ""
    for name in VENV_NAMES:
        if is_venv(checkout / name):
            return f"{name}/bin/python -m pip install {detection.module}"
    return f"python3 -m venv .venv && .venv/bin/pip install {detection.module}"


CHECK_SECONDS = 1200.0
"""Time that a check may take where no setting says otherwise."""
_OUTPUT_BYTES = 2_000_000
_TAIL_CHARACTERS = 8_000

RunCheck = Callable[[Workspace, Check, float], Awaitable[CheckResult]]
"""Runs a check confined to the workspace, within so many seconds."""


def named_checks(configuration: Configuration) -> tuple[Check, ...] | None:
    """The checks that podium.yaml names. None: it names none, and they are looked for.

    Raises `NotPossibleNow` for those of a project that nobody has trusted, where nothing would confine them.
    """
    settings = configuration.settings.checks
    if settings is None:
        return None
    if configuration.sandbox.kind == "none" and not configuration.project_is_trusted():
        raise NotPossibleNow(
            "podium.yaml names checks, which would run unconfined here; review it, then run `podium trust`"
        )
    return tuple(
        Check(name=check, command=check)
        if isinstance(check, str)
        else Check(name=check.name, command=check.run)
        for check in settings
    )


class CheckRunner:
    """Runs checks. A workspace or a folder is all that one can change."""

    def __init__(
        self,
        confinement_provider: ConfinementProvider,
        launcher: Launcher,
        redact: Callable[[str], str],
    ) -> None:
        self._confinement_provider = confinement_provider
        self._launcher = launcher
        self._redact = redact

    async def run(self, workspace: Workspace, check: Check, seconds: float) -> CheckResult:
        """Run a check in a workspace, with its ports as variables."""
        record = workspace.record
        return await self.run_in(record.path, check, seconds, ports=record.ports)

    async def run_in(
        self, folder: str, check: Check, seconds: float, *, ports: Mapping[str, int] | None = None
    ) -> CheckResult:
        """Run a check in a folder. `ports` are variables for it."""
        confinement = await self._confinement_provider.confinement(folder)
        ended = await self._launcher.run(
            ProcessSpec(
                argv=("/bin/sh", "-c", f"exec 2>&1; {check.command}"),
                cwd=folder,
                env={name: str(port) for name, port in (ports or {}).items()},
                limits=ProcessLimits(seconds=seconds, output_bytes=_OUTPUT_BYTES),
                # A project's tests may use git as they like: what they reach is the workspace alone.
                confinement=confinement.model_copy(update={"execs": None}),
            )
        )
        text = self._redact(ended.stdout.decode(errors="replace"))
        failed = failed_tests(text)
        return CheckResult(
            name=check.name,
            command=check.command,
            exit_code=None if ended.timed_out else ended.exit_code,
            seconds=round(ended.seconds, 3),
            output_sha256=hashlib.sha256(ended.stdout).hexdigest(),
            tail=text[-_TAIL_CHARACTERS:],
            timed_out=ended.timed_out,
            ran_no_tests=ran_no_tests(text),
            failed=() if ended.exit_code == 0 else failed,
            ignored_failures=failed if ended.exit_code == 0 else (),
            tests_run=executed_tests(text) if len(ended.stdout) < _OUTPUT_BYTES else None,
        )
