"""Scan of quarantined commits for secrets: every line, every file name, the commit itself.

A commit's own text is read as git stores it and its lines as git shows them, never both in one text: whatever
an agent writes into a message cannot be taken for git's output. Of a merge, the lines that no parent has.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from podium.core.errors import HARMLESS_REMEDY, SecretsCommitted
from podium.core.workspaces import SECRET_VALUE_PREFIX, CommitScan, SecretMatch
from podium.git.commit_changes import NO_FILE, CommitChange, CommitHistory, own_changes

MAX_BYTES = 64_000_000
_MAX_SIGHTINGS = 1_000
_MAX_ALIKE = 10
"""More lines of one file with the same in them tell nothing new."""
_COMMIT = "\0commit "
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_PATCH = (
    "--patch", "--unified=0", "--find-renames", "--no-color", "--no-ext-diff", "--no-textconv",
    # Whatever attributes and NUL bytes say: both are the agent's.
    "--text", "--src-prefix=a/", "--dst-prefix=b/", "--ignore-submodules",
)  # fmt: skip
_PATCHES = ("diff-tree", "--stdin", "--root", "--format=%x00commit %H", *_PATCH)
_IDS = ("tree ", "parent ")

Find = Callable[[str], Sequence[str]]
"""Names what a text holds; empty when it holds nothing."""


@dataclass
class _AddedLines:
    """Added lines that follow each other, or a part of the commit itself."""

    path: str
    line: int
    lines: list[str] = field(default_factory=list)

    def numbered(self) -> Iterator[tuple[int, str]]:
        """The head of a commit has no lines that anybody counts."""
        for number, line in enumerate(self.lines, self.line):
            yield (number if self.line else 0), line


@dataclass
class _CommitAdditions:
    """Lines that one commit adds. The first piece is its head, with the names of new files."""

    commit: str
    pieces: list[_AddedLines]


async def scan_commits(
    history: CommitHistory,
    new: Mapping[str, Sequence[str]],
    changes: Sequence[CommitChange],
    find: Find,
    since: str = "",
) -> CommitScan:
    """Ask `find` of everything that the new commits add. Of more than `MAX_BYTES`, the beginning is scanned.

    Of several without a merge, what they add together `since` that commit is scanned too: the halves of a secret
    may come in different ones.
    """
    merges = {commit for commit, parents in new.items() if len(parents) > 1}
    texts, complete = await history.texts(list(new), MAX_BYTES)
    if not complete:
        return CommitScan(whole=False)
    plain = [f"{commit}\n" for commit in new if commit not in merges]
    patches = await history.output(*_PATCHES, stdin="".join(plain), max_bytes=MAX_BYTES)
    made = own_changes(changes, new)
    merged = _by_path(changes, [change for change in made if change.commit in merges])
    blobs = {blob for rows in merged.values() for row in rows for blob in (row.old_blob, row.blob)}
    contents, complete = await history.contents(sorted(blobs), MAX_BYTES)
    cut = not complete or bool(patches.stdout_dropped_bytes)

    def scan() -> list[SecretMatch]:
        commits = {commit.commit: commit for commit in _commits(texts)}
        _add_names(commits, made)
        _add_lines(commits, patches.stdout.decode(errors="replace").split("\n"))
        for (commit, path), rows in merged.items():
            commits[commit].pieces.extend(_in_no_parent(path, rows, contents))
        wide = _with_wide(find)
        return list(islice(_without_more_alike(_sightings(commits, wide)), _MAX_SIGHTINGS + 1))

    matches = await asyncio.to_thread(scan)
    if not matches and since and len(new) > 1 and not merges:
        together = await history.output(
            "diff-tree", "-r", *_PATCH, since, _tip(new), stdin="", max_bytes=MAX_BYTES
        )
        cut = cut or bool(together.stdout_dropped_bytes)
        matches = await asyncio.to_thread(_scan_together, _tip(new), together.stdout, find)
    return CommitScan(
        found=tuple(matches[:_MAX_SIGHTINGS]), whole=not cut and len(matches) <= _MAX_SIGHTINGS
    )


def _tip(new: Mapping[str, Sequence[str]]) -> str:
    """The new commit that no other one has for a parent."""
    parents = {parent for commit_parents in new.values() for parent in commit_parents}
    return next(commit for commit in new if commit not in parents)


def _scan_together(tip: str, patch: bytes, find: Find) -> list[SecretMatch]:
    additions = {tip: _CommitAdditions(tip, [])}
    _add_lines(additions, [f"{_COMMIT}{tip}", *patch.decode(errors="replace").split("\n")])
    return list(islice(_sightings(additions, _with_wide(find)), _MAX_SIGHTINGS + 1))


def _by_path(
    changes: Sequence[CommitChange], made: Sequence[CommitChange]
) -> dict[tuple[str, str], list[CommitChange]]:
    """Group the changes that merges made themselves, one row for each parent."""
    keys = {(change.commit, change.path) for change in made}
    rows: dict[tuple[str, str], list[CommitChange]] = defaultdict(list)
    for change in changes:
        if (change.commit, change.path) in keys and change.new_mode != NO_FILE:
            rows[change.commit, change.path].append(change)
    return rows


def _in_no_parent(
    path: str, rows: Sequence[CommitChange], contents: Mapping[str, bytes]
) -> Iterator[_AddedLines]:
    """Lines of a merged file that somebody wrote to solve it."""
    old = {line for row in rows for line in _lines(contents.get(row.old_blob, b""))}
    piece: _AddedLines | None = None
    for number, line in enumerate(_lines(contents.get(rows[0].blob, b"")), 1):
        if line in old:
            piece = None
            continue
        if piece is None:
            piece = _AddedLines(_readable(path), number)
            yield piece
        piece.lines.append(line)


def _lines(content: bytes) -> list[str]:
    return content.decode(errors="replace").split("\n")


def _readable(path: str) -> str:
    return path.encode(errors="surrogateescape").decode(errors="replace")


def _with_wide(find: Find) -> Find:
    """Find also what has a NUL beside each letter, as UTF-16 and UTF-32 write it."""

    def both(text: str) -> Sequence[str]:
        if "\0" not in text:
            return find(text)
        return tuple(dict.fromkeys([*find(text), *find(text.replace("\0", ""))]))

    return both


def _without_more_alike(sightings: Iterator[SecretMatch]) -> Iterator[SecretMatch]:
    times: Counter[tuple[str, tuple[str, ...]]] = Counter()
    for sighting in sightings:
        times[sighting.path, sighting.what] += 1
        if times[sighting.path, sighting.what] <= _MAX_ALIKE:
            yield sighting


def _sightings(commits: Mapping[str, _CommitAdditions], find: Find) -> Iterator[SecretMatch]:
    for additions in commits.values():
        # One look at all of it: there is seldom anything.
        what = find("\n".join(line for piece in additions.pieces for line in piece.lines))
        if not what:
            continue
        pieces = [
            match
            for piece in additions.pieces
            for match in _in_piece(additions.commit, piece, find)
        ]
        # The match is spread over several pieces.
        yield from pieces or [
            SecretMatch(commit=additions.commit, path="", line=0, what=tuple(what))
        ]


def _in_piece(commit: str, piece: _AddedLines, find: Find) -> Iterator[SecretMatch]:
    what = tuple(find("\n".join(piece.lines)))
    if not what:
        return
    lines = [(number, tuple(find(line))) for number, line in piece.numbered()]
    # Some take several lines, of which none tells anything by itself.
    for number, names in [line for line in lines if line[1]] or [(piece.line, what)]:
        yield SecretMatch(commit=commit, path=piece.path, line=number, what=names)


def _commits(texts: Mapping[str, bytes]) -> Iterator[_CommitAdditions]:
    """Head and message of each commit. git says how many bytes one has: nothing in it can end it sooner."""
    for name, text in texts.items():
        head, _, message = text.decode(errors="replace").partition("\n\n")
        # Nobody chose the ids, and patterns may well match them.
        header_lines = [line for line in head.split("\n") if not line.startswith(_IDS)]
        yield _CommitAdditions(
            name, [_AddedLines("", 0, header_lines), _AddedLines("", 1, message.split("\n"))]
        )


def _add_names(commits: Mapping[str, _CommitAdditions], made: Sequence[CommitChange]) -> None:
    """The names of files that were not there before, as git stores them."""
    for change in made:
        if change.old_mode == NO_FILE and change.commit in commits:
            commits[change.commit].pieces[0].lines.append(_readable(change.path))


def _add_lines(commits: Mapping[str, _CommitAdditions], lines: Sequence[str]) -> None:
    """Add lines of a patch. Lines in a hunk are counted, so an agent's text is never taken for git's own output."""
    pieces: list[_AddedLines] = []
    path, removed, added = "", 0, 0
    for line in lines:
        if removed and line.startswith("-"):
            removed -= 1
        elif added and line.startswith("+"):
            removed, added = 0, added - 1
            pieces[-1].lines.append(line[1:])
        elif line.startswith(_COMMIT):
            pieces = commits[line.removeprefix(_COMMIT)].pieces
        elif hunk := _HUNK.match(line):
            removed, added = _count(hunk[1]), _count(hunk[3])
            pieces.append(_AddedLines(path, int(hunk[2])))
        elif line.startswith("+++ "):
            # Behind a name with a space git puts a tab.
            path = line.removeprefix("+++ ").rstrip("\t").strip('"').removeprefix("b/")


def _count(text: str | None) -> int:
    return 1 if text is None else int(text)


_MAX_NAMED = 12
_TEST_DATA = re.compile(
    r"(^|/)(__)?(tests?|testing|testdata|test_data|fixtures?|mocks?|specs?|examples?|cassettes)(__)?/"
    r"|(^|/)(test_[^/]*|conftest\.py|[^/]*[._-](test|tests|spec)\.[^/]+)$",
    re.IGNORECASE,
)
"""Paths of test data, where text that looks like a secret is often intended."""
_PATTERN = "pattern"
"""Kind of a match by one of the project's own patterns."""


async def refuse_secrets(
    history: CommitHistory,
    branch: str,
    new: Mapping[str, Sequence[str]],
    secrets_in: Find,
    since: str = "",
) -> tuple[str, ...]:
    """Scan the new commits and the branch's name. Return matches in test data that only look like a secret.

    Raises `SecretsCommitted` for the value of any secret that Podium knows, for what looks like one elsewhere,
    and for so much that not all of it was scanned.
    """
    if names := secrets_in(branch):
        location = f"the branch name ({', '.join(map(_describe, names))})"
        raise _refused([location], certain=any(map(_is_value, names)))
    changes = await history.changes(list(new))
    scan = await scan_commits(history, new, changes, secrets_in, since)
    sightings = [match for match in scan.found if not _is_an_address(match)]
    refused = [sighting for sighting in sightings if not _may_be_meant(sighting)]
    if refused:
        certain_first = sorted(refused, key=_has_secret_value, reverse=True)
        locations = list(dict.fromkeys(map(_location, certain_first)))
        raise _refused(locations, certain=_has_secret_value(certain_first[0]))
    if not scan.whole:
        raise SecretsCommitted(
            f"the commits are too large to scan for secrets: more than {MAX_BYTES // 1_000_000} MB, or a thousand places "
            "that look like secrets",
            "commit without built, downloaded or generated files; a person can commit large files to the base branch",
        )
    return tuple(dict.fromkeys(map(_location, sightings)))


def _refused(locations: Sequence[str], *, certain: bool) -> SecretsCommitted:
    more = f" and {len(locations) - _MAX_NAMED} more" if len(locations) > _MAX_NAMED else ""
    harmless = f" ({HARMLESS_REMEDY})" if certain else ""
    return SecretsCommitted(
        f"a secret was committed: {'; '.join(locations[:_MAX_NAMED])}{more}{harmless}",
        "read the secret from the environment instead, then commit again",
    )


def _has_secret_value(sighting: SecretMatch) -> bool:
    return any(map(_is_value, sighting.what))


def _is_value(what: str) -> bool:
    return what.startswith(SECRET_VALUE_PREFIX)


def _is_an_address(sighting: SecretMatch) -> bool:
    """Patterns may fit names and addresses, and every commit has some in its head."""
    return not sighting.path and not sighting.line and set(sighting.what) == {_PATTERN}


def _may_be_meant(sighting: SecretMatch) -> bool:
    return not _has_secret_value(sighting) and bool(_TEST_DATA.search(sighting.path))


def _location(sighting: SecretMatch) -> str:
    where = "a commit's message" if sighting.line else "a commit's author, header or file name"
    if sighting.path:
        where = f"{sighting.path}:{sighting.line}"
    what = ", ".join(dict.fromkeys(map(_describe, sighting.what)))
    return f"{where} ({what}, commit {sighting.commit[:12]})"


def _describe(what: str) -> str:
    if _is_value(what):
        return f"the value of {what.removeprefix(SECRET_VALUE_PREFIX)}"
    return f"looks like a {what}"
