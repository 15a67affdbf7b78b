"""What stands for a pull request where there is no forge: a Markdown file with the commands that merge."""

from __future__ import annotations

import hashlib
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from podium.domain.errors import NotPossibleNow
from podium.domain.forging import PullRequestWish
from podium.platform import make_private_folder
from podium.workspaces.forge.plain import plain
from podium.workspaces.git.records import write_whole

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def merge_command(branch: str) -> str:
    return f"git merge --no-ff {shlex.quote(branch)}"


@dataclass(frozen=True)
class LocalPullRequest:
    """A wish as a page to read. The commands stand before the body, which is an agent's text."""

    wish: PullRequestWish
    why: str
    remote: str = ""
    """Name of the remote. Empty: there is none."""
    pushed: bool = False

    def write(self, folder: Path) -> Path:
        """Write it whole or not at all, over an earlier one of the same run. Raises `NotPossibleNow`."""
        path = folder / self._name()
        try:
            make_private_folder(folder)
            write_whole(path, self.page().encode(errors="replace"))
        except OSError as error:
            raise NotPossibleNow(
                f"the pull request could not be written to {str(path)!r}: {error.strerror}; "
                "make room or let it be written there, then resume"
            ) from error
        return path

    def page(self) -> str:
        wish = self.wish
        state = f"pushed to `{plain(self.remote)}`" if self.pushed else "in this repository only"
        body = _CONTROLS.sub("", wish.body.replace("\r\n", "\n")).strip()
        commands = "\n".join(self.commands())
        return (
            f"# {plain(wish.title, 256)}\n\n"
            f"Branch `{plain(wish.branch)}` at `{plain(wish.commit)}`, {state}, to be merged into "
            f"`{plain(wish.base)}`.\n\n"
            f"This file stands for a pull request: {plain(self.why)}.\n\n"
            f"## To merge it\n\n```sh\n{commands}\n```\n\n"
            f"## What it is\n\n{body}\n"
        )

    def commands(self) -> list[str]:
        base = shlex.quote(self.wish.base)
        lines = [
            f"cd {shlex.quote(self.wish.repository)}",
            f"git switch {base}",
            merge_command(self.wish.branch),
        ]
        return [*lines, f"git push {shlex.quote(self.remote)} {base}"] if self.remote else lines

    def _name(self) -> str:
        given = self.wish.run_id or f"{self.wish.branch}@{self.wish.commit}"
        name = _NOT_IN_A_NAME.sub("-", given).strip(".-")[:100]
        if name != given:
            # Two that look alike without their signs stay two files.
            name = f"{name}-{hashlib.sha256(given.encode(errors='replace')).hexdigest()[:8]}"
        return f"{name}.md"
