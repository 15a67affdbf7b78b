"""Context of a handler beside its arguments, and the type of handlers."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from podium.core.decisions import Call, CallOutcome
from podium.core.errors import ToolBroke
from podium.core.model import Json
from podium.ports import Clock, ConfinementProvider, Launcher
from podium.tools.output_text import plain_text

REFERENCE = re.compile(r"secret://([A-Za-z_][A-Za-z0-9_]*)")


def _nothing(path: str) -> bool:
    return False


def _as_it_is(text: str) -> str:
    return text


@dataclass(frozen=True)
class ToolScope:
    """The surroundings of one performed call.

    `key` is the idempotency key to hand to whatever is called outside. Secrets are resolved here,
    where the act is performed, and must not come back in the result.
    """

    call: Call
    root: Path
    """Real path of the workspace."""
    launcher: Launcher
    confinements: ConfinementProvider
    """Confinement of processes that the tool starts for an agent."""
    clock: Clock
    timeout_seconds: float
    """After this the handler is cancelled."""
    resolve_secret: Callable[[str], str]
    """Value of a secret by its name; raises `UserMustAct` when there is none."""
    passed_over: Callable[[str], bool] = _nothing
    """True for a real path that a walk through folders must leave out."""
    redact: Callable[[str], str] = _as_it_is
    """The text without its secrets. What a tool cuts itself must be cut behind this."""
    longest_secret: int = 0
    """Length of the longest secret in characters."""
    undo_folder: Path | None = None
    """Folder for earlier contents of overwritten files, for undo. None: they are not stored."""
    approval_comment: str = ""
    """Comment of the person who approved this very call; empty without one."""

    @property
    def key(self) -> str:
        return self.call.key

    def relative(self, argument: str) -> str:
        """The judged real path of a path argument, relative to the root; `.` for the root itself.

        Raises `ToolBroke` when it lies outside.
        """
        for use in self.call.paths:
            if use.argument == argument:
                return inside(self.root, use.real, use.given)
        raise ToolBroke(f"argument {argument!r} has no path; name a path inside the workspace")

    def clean(self, text: str) -> str:
        """The text as it may be shown, whole. To be cut after this, not before."""
        return self.redact(plain_text(text))

    def clean_beginning(self, text: str) -> str:
        """A text that was cut off, as it may be shown: without what may be the beginning of a secret."""
        cleaned = self.clean(text)
        return cleaned[: max(0, len(cleaned) - self.longest_secret)]

    def clean_output(self, output: bytes, dropped_bytes: int) -> str:
        """Clean the output of a child process. The launcher may have cut it through a secret."""
        text = output.decode(errors="replace")
        return self.clean_beginning(text) if dropped_bytes else self.clean(text)

    def reveal(self, text: str) -> str:
        """The text with every `secret://NAME` replaced by the secret."""
        return REFERENCE.sub(lambda match: self.resolve_secret(match[1]), text)


Handler = Callable[[dict[str, Json], ToolScope], Awaitable[dict[str, Json] | CallOutcome]]
"""Performs a tool. A dict is a success; an `CallOutcome` says more, such as a failure with a result.

When it returns, raises or is cancelled, nothing it started may still be at work.
"""


def inside(root: Path, real: str, named: str) -> str:
    """`real` relative to `root`. Raises `ToolBroke` when it is not beneath it."""
    path = Path(real)
    if not path.is_relative_to(root):
        raise ToolBroke(f"{named!r} is outside the workspace; name a path inside it")
    return path.relative_to(root).as_posix()
