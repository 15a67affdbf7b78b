"""Begins a pack: the smallest one that works, to be changed from there."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

from podium.core.errors import BadInput

_NAME = re.compile(r"[a-z][a-z0-9_-]*")
_PLACEHOLDER = "PACK_NAME"
FILES = ("tools.registry.json", "handlers.py")


def write_new_pack(folder: Path) -> list[str]:
    """Write a pack, named after its folder, that loads and works. Gives the names of its files.

    Raises `BadInput` when something is there already, or the name is none for a pack.
    """
    name = folder.resolve().name
    if not _NAME.fullmatch(name):
        raise BadInput(
            f"{name!r} cannot be a pack's name; take lower-case letters, digits, `_` and `-`"
        )
    if folder.exists() and any(folder.iterdir() if folder.is_dir() else [folder]):
        raise BadInput(f"{str(folder)!r} is there already; name a folder that is not")
    folder.mkdir(parents=True, exist_ok=True)
    for file in FILES:
        template = resources.files("podium.tools.packs") / "sample" / f"{file}.txt"
        text = template.read_text("utf-8").replace(_PLACEHOLDER, name)
        (folder / file).write_text(text, encoding="utf-8")
    return list(FILES)
