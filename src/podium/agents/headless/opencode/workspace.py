"""What opencode would obey in a workspace although it was told to obey nothing there.

OPENCODE_DISABLE_PROJECT_CONFIG keeps its settings, agents and MCP servers out. A second reader of
the same files does not know that switch: it loads plugins and clones references from them before
the first word of a turn. So a turn does not begin in a workspace that has any.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path

from podium.domain.errors import NotPossibleNow

DOCUMENTS = (
    "opencode.json",
    "opencode.jsonc",
    ".opencode/opencode.json",
    ".opencode/opencode.jsonc",
)
CODE = (".opencode/plugin", ".opencode/plugins")
LARGEST_BYTES = 1_000_000

HARMLESS = frozenset(
    {
        "$schema", "agent", "autoshare", "autoupdate", "command", "compaction", "default_agent",
        "disabled_providers", "enabled_providers", "formatter", "instructions", "keybinds",
        "layout", "logLevel", "lsp", "mcp", "mode", "model", "permission", "provider", "server",
        "share", "small_model", "snapshot", "theme", "tools", "tui", "username", "watcher",
    }
)  # fmt: skip
"""Keys that the switch takes all effect from."""


def refuse_what_it_would_obey(agent: str, workspace: Path) -> None:
    """Raise `NotPossibleNow` when opencode would run something of the workspace unasked."""
    # It looks upwards as far as the repository's root, and without a repository as far as it goes.
    for folder in (workspace.resolve(), *workspace.resolve().parents):
        for place, problem in _found(folder):
            raise NotPossibleNow(
                f"agent {agent!r} cannot work in {str(workspace)!r}: opencode would obey "
                f"{str(place)!r} before Podium is asked ({problem}); take it away, or let another agent do it"
            )


def _found(folder: Path) -> Iterator[tuple[Path, str]]:
    for name in CODE:
        place = folder / name
        if _has_entries(place):
            yield place, "it holds plugins"
    for name in DOCUMENTS:
        place = folder / name
        if problem := _problem_of(place):
            yield place, problem


def _has_entries(place: Path) -> bool:
    try:
        return next(place.iterdir(), None) is not None
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


def _problem_of(document: Path) -> str:
    """What in it would have an effect; empty when nothing has, or it is not there."""
    try:
        # Looked at before it is opened: opening a pipe would wait for whoever writes to it.
        if not stat.S_ISREG(document.stat().st_mode):
            return "it is no plain file"
        with document.open("rb") as file:
            content = file.read(LARGEST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    if len(content) > LARGEST_BYTES:
        return "it is too large to be looked at"
    try:
        settings = json.loads(content)
    except (ValueError, RecursionError):
        return "it is not plain JSON, so nobody can tell what it says"
    if not isinstance(settings, dict):
        return ""
    others = sorted(set(settings) - HARMLESS)
    return f"it sets {', '.join(map(repr, others[:5]))}" if others else ""
