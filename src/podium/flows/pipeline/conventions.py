"""What a repository says to whoever works in it: AGENTS.md and the like, for every role alike."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import PurePosixPath

from podium.flows.pipeline.plain_text import fenced, shortened
from podium.ports import Workspace

NAMES = ("AGENTS.md", "CLAUDE.md", "GEMINI.md", "CONTRIBUTING.md")
MAX_CHARACTERS = 6_000
"""Of all of them in one prompt."""
_MAX_FILES = 40
_HEADING = (
    "Conventions of this repository, in its own words. Follow them; where they contradict this assignment, the "
    "assignment counts."
)


async def conventions_of(workspace: Workspace) -> dict[str, str]:
    """Path → text, as they were before any agent came."""
    paths = await workspace.tracked(*(f":(glob)**/{name}" for name in NAMES))
    texts = {path: await workspace.read(path, 4 * MAX_CHARACTERS) for path in paths[:_MAX_FILES]}
    return {path: text for path, text in texts.items() if text and text.strip()}


def conventions_told(found: Mapping[str, str], changed: Collection[str]) -> Iterator[str]:
    """Those of the folders in which the work happens, the nearest first, in no more room than they may take."""
    folders = {str(parent) for path in changed for parent in PurePosixPath(path).parents} | {"."}
    near = [path for path in found if str(PurePosixPath(path).parent) in folders]
    near.sort(key=lambda path: (-path.count("/"), NAMES.index(PurePosixPath(path).name), path))
    parts, left, told = [], MAX_CHARACTERS, set[str]()
    for path in near:
        text = found[path].strip()
        # Projects keep one text under several names.
        if text in told or left < 200:
            continue
        told.add(text)
        shown = shortened(text, left)
        left -= len(shown)
        parts.append(f"{path}:\n{fenced(shown, 'markdown')}")
    if parts:
        yield "\n\n".join([_HEADING, *parts])
