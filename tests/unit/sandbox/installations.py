"""Folders of programs for tests, and what a confined tree is shown of them."""

from __future__ import annotations

import os
from pathlib import Path

from podium.sandbox.confining.toolchains import own_paths, visible_paths


def program(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def places(
    path: Path | str,
    home: Path,
    *search: Path,
    project: Path | None = None,
    closed: Path | None = None,
    untrusted: Path | None = None,
) -> tuple[str, ...]:
    """Return the paths that are shown besides Podium's own."""
    found = visible_paths(
        [str(path)] if path else [],
        os.pathsep.join(map(str, search)),
        home=str(home),
        project=str(project or ""),
        closed=[str(closed)] if closed else [],
        untrusted=[str(untrusted)] if untrusted else [],
    )
    own = own_paths()
    return tuple(
        item for item in found if not any(Path(item).is_relative_to(place) for place in own)
    )


def made(*folders: Path) -> None:
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)


def written(file: Path, text: str = "") -> Path:
    made(file.parent)
    file.write_text(text)
    return file
