"""The agent's commits as bytes: how they leave the workspace, and how their header is read."""

from __future__ import annotations

import re
from dataclasses import dataclass

from podium.domain.errors import ImportRefused

_LONGEST_HEADER_BYTES = 100_000
_LINE = re.compile(rb"([0-9a-f]{40}|[0-9a-f]{64}) (refs/[^\x00-\x20]+)")
_NEEDED = re.compile(rb"-([0-9a-f]{40}|[0-9a-f]{64})( .*)?")


@dataclass(frozen=True)
class Bundle:
    """One ref, what it builds upon, and the pack that holds the rest."""

    tip: str
    needed: tuple[str, ...]
    pack: bytes


def read_bundle(content: bytes, branch: str) -> Bundle:
    """Raises `ImportRefused` for anything but one ref of that name."""
    head, separator, _ = content[: _LONGEST_HEADER_BYTES + 4].partition(b"\n\n")
    lines = head.split(b"\n")
    if not separator or lines[0] not in (b"# v2 git bundle", b"# v3 git bundle"):
        raise ImportRefused("what the workspace gave out is no bundle of commits; commit again")
    refs, needed = _sorted_out(lines[1:])
    if [name for _, name in refs] != [branch]:
        shown = ", ".join(name for _, name in refs[:5])
        raise ImportRefused(f"only {branch!r} may come back, not {shown or 'nothing'}")
    return Bundle(refs[0][0], tuple(needed), content[len(head) + 2 :])


def _sorted_out(lines: list[bytes]) -> tuple[list[tuple[str, str]], list[str]]:
    refs, needed = [], []
    for line in lines:
        if found := _LINE.fullmatch(line):
            refs.append((found[1].decode(), found[2].decode(errors="replace")))
        elif found := _NEEDED.fullmatch(line):
            needed.append(found[1].decode())
        elif line not in (b"@object-format=sha1", b"@object-format=sha256"):
            raise ImportRefused("the bundle of the workspace has an odd header; commit again")
    return refs, needed
