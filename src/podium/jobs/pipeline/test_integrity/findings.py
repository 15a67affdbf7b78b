"""Findings about changed tests and checks, and the two versions of a file that they come from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from podium.core.model import FrozenModel

Severity = Literal["high", "medium", "low"]
"""`low` is named in the pull request and stops nothing."""
MAX_QUOTE = 300
ANY_NUMBER = 10_000
"""Number of tests where the text does not tell how many."""


class IntegrityFinding(FrozenModel):
    """One change that makes tests or checks say less than before."""

    kind: str
    """Such as `deleted_test` or `weaker_assertion`."""
    path: str
    line: int = 0
    """Line in the branch's version; in the base's where the branch has none. 0: unknown."""
    subject: str = ""
    """Test, setting or function that it is about."""
    text: str
    before: str = ""
    after: str = ""
    severity: Severity = "high"
    tests: int = 0
    """Number of tests that no longer run because of it."""

    @property
    def key(self) -> str:
        """The same for the same change on other lines."""
        parts = (self.kind, self.path, self.subject, self.before, self.after)
        return hashlib.sha256("\0".join(parts).encode(errors="replace")).hexdigest()[:16]

    @property
    def sentence(self) -> str:
        """Place, change, and both versions, on one line."""
        place = f"{self.path}:{self.line}" if self.line else self.path
        was = f"; was `{self.before}`" if self.before else ""
        now = f"; is `{self.after}`" if self.after else ""
        return f"{place}: {self.text}{was}{now}"


@dataclass(frozen=True)
class FileVersions:
    """A file that the branch changes, as the base and the branch have it. None: it has no such plain text file."""

    path: str
    before: str | None
    after: str | None
    problem: str = ""
    """Reason why the branch's version cannot be compared."""


def quote(text: str) -> str:
    """A piece of code on one line, cut where it is long."""
    line = " ".join(text.split()).replace("`", "'")
    return line if len(line) <= MAX_QUOTE else f"{line[: MAX_QUOTE - 1]}…"


def added_lines(file: FileVersions) -> Iterator[tuple[int, str]]:
    """Lines of the branch's version that the base's does not have, with their numbers."""
    left: dict[str, int] = {}
    for line in (file.before or "").split("\n"):
        left[line.strip()] = left.get(line.strip(), 0) + 1
    for number, line in enumerate((file.after or "").split("\n"), 1):
        text = line.strip()
        if left.get(text):
            left[text] -= 1
        elif text:
            yield number, text


def make_finding(
    kind: str,
    path: str,
    line: int,
    subject: str,
    text: str,
    *,
    before: str = "",
    after: str = "",
    severity: Severity,
    tests: int = 0,
) -> IntegrityFinding:
    """The finding, with long texts cut."""
    return IntegrityFinding(
        kind=kind,
        path=path,
        line=line,
        subject=subject[:200],
        text=text[:600],
        before=quote(before),
        after=quote(after),
        severity=severity,
        tests=tests,
    )
