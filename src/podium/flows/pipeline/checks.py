"""The project's checks: what the supervisor runs itself, and how it came out."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Sequence

from pydantic import Field

from podium.domain.check_results import check_ending, check_passed
from podium.domain.model import NonEmpty, Noun

Read = Callable[[str], Awaitable[str | None]]
"""The text of a file of the workspace, or None."""

_TAIL_CHARACTERS = 4_000
_NO_TESTS = (
    "ran 0 tests, which proves nothing and counts as failed. Make this very command find tests: their file names, folders "
    "and imports decide that"
)


class Check(Noun):
    """A command that tells whether the project is in order."""

    name: NonEmpty
    command: NonEmpty
    """A shell line."""


class Found(Noun):
    """What there was before any agent came."""

    checks: tuple[Check, ...] = ()
    ignored: tuple[str, ...] = ()
    """What the set-up left that git ignores."""
    conventions: dict[str, str] = Field(default_factory=dict)
    """Path → text of what the repository says to agents and contributors."""


class CheckResult(Noun):
    """How a check came out."""

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

    @property
    def passed(self) -> bool:
        return check_passed(self.model_dump())


def all_passed(results: Sequence[CheckResult]) -> bool:
    return all(each.passed for each in results)


def in_words(results: Sequence[CheckResult]) -> str:
    """One line for people: what ran and how it ended."""
    if not results:
        return "no checks"
    return ", ".join(f"`{each.command}` {check_ending(each.model_dump())}" for each in results)


def red_words(results: Sequence[CheckResult]) -> str:
    """What failed, for whoever has to make it pass: each red check with the end of its output."""
    red = (each for each in results if not each.passed)
    return "\n\n".join(
        f"`{each.command}` {_NO_TESTS if each.ran_no_tests else 'failed'}:\n{each.tail[-_TAIL_CHARACTERS:]}"
        for each in red
    )


async def detected(read: Read) -> tuple[Check, ...]:
    """The checks that a project's files speak of, where podium.yaml names none."""
    for look in (_make, _python, _node, _rust, _go):
        found = await look(read)
        if found is not None:
            return (found,)
    return ()


async def _make(read: Read) -> Check | None:
    for name in ("Makefile", "makefile", "GNUmakefile"):
        text = await read(name)
        if text is not None and re.search(r"^test\s*:(?!=)", text, re.MULTILINE):
            return Check(name="make test", command="make test")
    return None


async def _python(read: Read) -> Check | None:
    project = await read("pyproject.toml") or ""
    known = "[tool.pytest" in project or "pytest" in project
    if known or await read("pytest.ini") is not None or await read("conftest.py") is not None:
        return Check(name="pytest", command="python -m pytest -q")
    if project or await read("setup.py") is not None or await read("setup.cfg") is not None:
        return Check(name="unittest", command="python -m unittest discover -q")
    return None


async def _node(read: Read) -> Check | None:
    text = await read("package.json")
    if text is None:
        return None
    try:
        scripts = json.loads(text).get("scripts", {})
        line = scripts.get("test", "")
    except (ValueError, AttributeError):
        return None
    if not isinstance(line, str) or not line or "no test specified" in line:
        return None
    return Check(name="npm test", command="npm test --silent")


async def _rust(read: Read) -> Check | None:
    found = await read("Cargo.toml")
    return None if found is None else Check(name="cargo test", command="cargo test --quiet")


async def _go(read: Read) -> Check | None:
    found = await read("go.mod")
    return None if found is None else Check(name="go test", command="go test ./...")
