"""What a script is run by."""

from __future__ import annotations

import os
import stat
from pathlib import Path

_FIRST_LINE_BYTES = 256


def interpreters(path: Path, search_path: str) -> list[Path]:
    """What the first line of a script names; of `env NAME`, what is found under that name."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return []
        with path.open("rb") as file:
            line = file.read(_FIRST_LINE_BYTES).split(b"\n", 1)[0]
    except OSError:
        return []
    if not line.startswith(b"#!"):
        return []
    words = line[2:].decode(errors="replace").split()
    if not words:
        return []
    if Path(words[0]).name != "env":
        return [Path(words[0])]
    names = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    return on_search_path(names[0], search_path) if names else []


def on_search_path(name: str, search_path: str) -> list[Path]:
    """The first program of this name, if there is one."""
    candidates = (Path(folder, name) for folder in search_path.split(os.pathsep) if folder)
    return [path for path in candidates if path.is_absolute() and os.access(path, os.X_OK)][:1]
