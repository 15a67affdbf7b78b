"""Findings of a review, and detection of rounds that only repeat them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice

from podium.core.model import FrozenModel
from podium.jobs.pipeline.agent_text import (
    MarkdownBlock,
    MarkdownLine,
    blocks_of,
    fingerprint,
    lines_of,
    says_none,
    says_something,
    shortened,
    whole,
)

MAX_FINDINGS = 200
MAX_FINDING = 2_000

_HEADING = re.compile(
    r"\b(?:findings?|issues?|problems?|defects?|bugs?|blockers?|blocking|concerns?|violations?|errors?"
    r"|must[- ]fix|to fix|fix(?:es)? (?:needed|required)|changes (?:requested|required|needed)"
    r"|(?:required|requested|necessary) (?:changes|fixes|actions|corrections)|what (?:must|has to) change"
    r"|rejections?|reasons?|objections?|shortcomings?|gaps?|weaknesses|missing|critical|major|minor"
    r"|high|medium|low|severity|nits?|open points|remaining)\b",
    re.IGNORECASE,
)
_GOOD_NEWS = re.compile(
    r"\b(?:resolved|fixed|closed|addressed|solved|no (?:issues|findings|problems)|strengths?|positive)\b",
    re.IGNORECASE,
)
_SEVERITY = re.compile(
    r"\W*(?:critical|major|minor|high|medium|low|blockers?|blocking|nits?|severity|priority|issues?"
    r"|findings?|problems?|\W|\d)+",
    re.IGNORECASE,
)
_NOTHING = re.compile(
    r"\W*(?:there (?:are|were) )?no(?:ne)?\b(?: (?:new|open|further|other|blocking|major|critical|more))*"
    r"(?: (?:issues?|findings?|problems?|defects?|concerns?|blockers?|errors?|changes))?"
    r"(?: (?:were|was|are|is|have been))?(?: (?:found|needed|required|remaining|identified|open))?\W*",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9`\"'(])|\n+")

_LOCATIONS = re.compile(
    r"""(?<=\w):\d+(?:[:-]\d+)*\b
    | \#?\bl(?:ine)?s?\.?\s*\#?\d+(?:\s*(?:-|–|to|and|,)\s*(?:l(?:ine)?s?\.?\s*)?\d+)*\b
    | @@[^@\n]{0,80}@@""",
    re.VERBOSE,
)
_COUNTERS = re.compile(
    r"""(?<![a-z0-9])v(?:ersion)?[\s._-]?\d+(?:\.\d+)*(?![a-z0-9])
    | \b(?:round|iteration|attempt|revision|rev|review|commit|sha|cycle|pass)\s*(?:\#|no\.?|number)?\s*
      (?:\d+|[0-9a-f]{7,40})\b
    | \b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b""",
    re.VERBOSE,
)
_VOLATILE = re.compile(
    r"\b(?:in|took|after)\s+\d+(?:\.\d+)?\s?(?:ms|s|secs?|seconds)\b|\b0x[0-9a-f]{4,}\b|\b\d\d:\d\d:\d\d(?:[.,]\d+)?"
)
"""Parts of a check's output that differ each time."""
_REPETITION = re.compile(r"\b(?:still|again|yet)\b")
_PUNCTUATION = re.compile(r"[^\w+#<>=!%&|^/-]+|!(?!=)|-(?!\d)|_(?=\W)|(?<=\W)_")
"""Signs that carry meaning stay: `x != 3` is not `x > 3`."""
_HEAD_NUMBER = re.compile(
    r"^\W*(?:(?:finding|issue|problem)\s*)?\#?\d{1,3}[.):\s-]+(?=\D)", re.IGNORECASE
)


class Finding(FrozenModel):
    """One thing that a review objects to."""

    text: str
    fingerprint: str
    """The same for other wordings of line numbers, rounds, case, spaces and emphasis."""


class TrackedFinding(FrozenModel):
    """A finding of a round, from the verdict that it is the reason of to the one that resolves it."""

    stage: str
    round: int
    """Round of the stage that first had it."""
    verdict: str
    text: str
    resolution: str = ""
    """Stage and round that resolved it. Empty: it is open."""

    @property
    def source(self) -> str:
        return f"{self.stage}, round {self.round} ({self.verdict})"


def findings_of(review: str) -> tuple[Finding, ...]:
    """Extract the findings: blocks under headings that speak of findings, else list items, else sentences."""
    lines = lines_of(review)
    blocks = list(blocks_of(lines))
    for texts in (_under_headings(blocks), _items(blocks), _sentences(blocks)):
        findings = tuple(islice(_distinct(texts), MAX_FINDINGS))
        if findings:
            return findings
    return ()


def repeats(before: Sequence[Finding], now: Sequence[Finding]) -> bool:
    """True when this round has findings, and all of them are also in the last one."""
    earlier = {finding.fingerprint for finding in before}
    return bool(now) and all(finding.fingerprint in earlier for finding in now)


def fingerprint_of(text: str) -> str:
    folded = _VOLATILE.sub(" ", _HEAD_NUMBER.sub("", text).casefold())
    folded = _COUNTERS.sub(" ", _LOCATIONS.sub(" ", folded))
    folded = _REPETITION.sub(" ", folded.replace("`", "").replace("*", ""))
    plain = " ".join(_PUNCTUATION.sub(" ", folded).split())
    return fingerprint(plain or " ".join(text.casefold().split()))


def _under_headings(blocks: Iterable[MarkdownBlock]) -> Iterator[str]:
    for titles, group in groupby(blocks, key=lambda block: block.headings):
        depth = _depth_of_findings(titles)
        if depth is None:
            continue
        # `### 2. The lock is never released` below `## Findings` is itself what was found.
        own = [title.text for title in titles[depth + 1 :] if not _is_severity(title)]
        unchecked = [block for block in group if not block.checked]
        if own and unchecked:
            yield "\n".join([*own, *(block.text for block in unchecked)])
        else:
            yield from (block.text for block in unchecked)


def _depth_of_findings(titles: tuple[MarkdownLine, ...]) -> int | None:
    first: int | None = None
    for depth, title in enumerate(titles):
        if _GOOD_NEWS.search(title.text):
            return None
        if first is None and _HEADING.search(title.text) and (depth or not _is_name(title)):
            first = depth
    return first


def _is_name(title: MarkdownLine) -> bool:
    """`# Code review: fix the error page` names the review and heads no findings."""
    return (
        title.level == 1
        and re.search(r"\breview\b|\breport\b", title.text, re.IGNORECASE) is not None
    )


def _is_severity(title: MarkdownLine) -> bool:
    return _SEVERITY.fullmatch(title.text) is not None


def _items(blocks: Iterable[MarkdownBlock]) -> Iterator[str]:
    return (block.text for block in blocks if block.is_item and not block.checked)


def _sentences(blocks: Iterable[MarkdownBlock]) -> Iterator[str]:
    for block in blocks:
        if not block.checked:
            yield from _SENTENCE_END.split(block.text)


def _distinct(texts: Iterable[str]) -> Iterator[Finding]:
    fingerprints: set[str] = set()
    for text in texts:
        body = whole(text).strip()
        if _says_nothing(body):
            continue
        key = fingerprint_of(body)
        if key not in fingerprints:
            fingerprints.add(key)
            yield Finding(text=shortened(body, MAX_FINDING), fingerprint=key)


def _says_nothing(text: str) -> bool:
    short = len(text) <= 120
    return not any(character.isalnum() for character in text) or (
        short
        and (_NOTHING.fullmatch(text) is not None or (says_none(text) and not says_something(text)))
    )
