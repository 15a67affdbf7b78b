"""Git attributes that let branches append to the same list without a conflict."""

from __future__ import annotations

import re
from collections.abc import Sequence

_NEEDS_QUOTES = re.compile(r'[\s"\\]|^[#!]')
_GLOB = re.compile(r"([*?\[\\])")


def with_union(text: str | None, paths: Sequence[str]) -> str:
    """`.gitattributes` in which these paths are merged by keeping the lines of both sides.

    What it says already about merging one of them stays as it is.
    """
    kept = text or ""
    decided = {each for line in kept.splitlines() for each in _decided_by(line)}
    new = [path for path in dict.fromkeys(paths) if path.removeprefix("/") not in decided]
    if not new:
        return kept
    end = "\r\n" if "\r\n" in kept else "\n"
    gap = end if kept and not kept.endswith("\n") else ""
    return kept + gap + "".join(f"{_pattern(path)} merge=union{end}" for path in new)


def _pattern(path: str) -> str:
    """The path from the repository's root on, and nothing else."""
    rooted = _GLOB.sub(r"\\\1", "/" + path.removeprefix("/"))
    if not _NEEDS_QUOTES.search(rooted):
        return rooted
    return '"' + rooted.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _decided_by(line: str) -> list[str]:
    """The path whose merging this line decides."""
    words = line.strip()
    if words.startswith('"'):
        quoted, _, rest = words[1:].rpartition('"')
        pattern = re.sub(r"\\(.)", r"\1", re.sub(r"\\(.)", r"\1", quoted))
    else:
        pattern, _, rest = words.partition(" ")
        pattern = re.sub(r"\\(.)", r"\1", pattern)
    if not re.search(r"(?:^|\s)[-!]?merge(?:=\S+)?(?:\s|$)", rest.replace("\t", " ")):
        return []
    return [pattern.removeprefix("/")]
