"""Objects from outside: read from a bundle, and kept apart until they are checked."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from podium.core.errors import ImportRefused
from podium.git.git_command import Git, GitFailed

MAX_PACK_BYTES = 512_000_000
_MAX_MEMORY_BYTES = 8_000_000_000
_FRUGAL = ("core.packedGitLimit=512m", "core.packedGitWindowSize=32m", "pack.threads=2")


class Quarantine:
    """A scratch object folder on top of the repository's own."""

    def __init__(self, git: Git, git_dir: str, folder: Path) -> None:
        self._git = git
        self._git_dir = git_dir
        self._folder = folder

    @property
    def env(self) -> dict[str, str]:
        """For git to see what is in quarantine, together with the repository's objects."""
        return {"GIT_OBJECT_DIRECTORY": str(self._folder)}

    async def take(self, pack: bytes) -> None:
        """Check every object strictly. Raises `ImportRefused`; `GitFailed` when the machine cannot."""
        try:
            await self._git.run(
                "index-pack", "--strict", "--stdin", "--fix-thin",
                f"--max-input-size={MAX_PACK_BYTES}",
                git_dir=self._git_dir, env=self.env, stdin=pack, settings=_FRUGAL,
                memory_bytes=_MAX_MEMORY_BYTES,
            )  # fmt: skip
        except GitFailed as failed:
            if "No space left" in failed.stderr or failed.timed_out:
                raise
            raise ImportRefused(
                f"git finds the objects of these commits wrong: {failed.stderr[-300:]}; make the "
                "commits anew with `git add` and `git commit`"
            ) from failed

    async def release(self) -> None:
        """Move everything into the repository. Unreferenced objects there do no harm."""
        await asyncio.to_thread(self._release)

    def _release(self) -> None:
        target = Path(self._git_dir, "objects/pack")
        # git takes a pack for whole as soon as its index is there: so that comes last.
        order = {".pack": 0, ".rev": 1, ".idx": 2}
        files = [path for path in (self._folder / "pack").iterdir() if path.suffix in order]
        for file in sorted(files, key=lambda path: order[path.suffix]):
            if not (target / file.name).exists():
                file.rename(target / file.name)


@asynccontextmanager
async def quarantined(git: Git, git_dir: str) -> AsyncIterator[Quarantine]:
    """A quarantine that is gone afterwards. One that a killed process left, the user's `git gc` removes."""
    objects = Path(git_dir, "objects")
    folder = objects / f"tmp_objdir-podium-{secrets.token_hex(8)}"
    for inner in ("pack", "info"):
        os.makedirs(folder / inner, mode=0o700)  # noqa: PTH103 — the mode is for both levels
    try:
        (folder / "info/alternates").write_bytes(os.fsencode(objects) + b"\n")
        yield Quarantine(git, git_dir, folder)
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, True)


_MAX_HEADER_BYTES = 100_000
_LINE = re.compile(rb"([0-9a-f]{40}|[0-9a-f]{64}) (refs/[^\x00-\x20]+)")
_NEEDED = re.compile(rb"-([0-9a-f]{40}|[0-9a-f]{64})( .*)?")


@dataclass(frozen=True)
class QuarantineBundle:
    """One ref, what it builds upon, and the pack that holds the rest."""

    tip: str
    needed: tuple[str, ...]
    pack: bytes


def read_bundle(content: bytes, branch: str) -> QuarantineBundle:
    """Raises `ImportRefused` for anything but one ref of that name."""
    head, separator, _ = content[: _MAX_HEADER_BYTES + 4].partition(b"\n\n")
    lines = head.split(b"\n")
    if not separator or lines[0] not in (b"# v2 git bundle", b"# v3 git bundle"):
        raise ImportRefused("what the workspace gave out is no bundle of commits; commit again")
    refs, needed = _sorted_out(lines[1:])
    if [name for _, name in refs] != [branch]:
        names = ", ".join(name for _, name in refs[:5])
        raise ImportRefused(f"only {branch!r} may come back, not {names or 'nothing'}")
    return QuarantineBundle(refs[0][0], tuple(needed), content[len(head) + 2 :])


def _sorted_out(lines: list[bytes]) -> tuple[list[tuple[str, str]], list[str]]:
    refs, needed = [], []
    for line in lines:
        if match := _LINE.fullmatch(line):
            refs.append((match[1].decode(), match[2].decode(errors="replace")))
        elif match := _NEEDED.fullmatch(line):
            needed.append(match[1].decode())
        elif line not in (b"@object-format=sha1", b"@object-format=sha256"):
            raise ImportRefused("the bundle of the workspace has an odd header; commit again")
    return refs, needed
