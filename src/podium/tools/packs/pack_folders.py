"""Folders of packs: those that come with Podium, packs found by path or name, and new ones."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path
from typing import Literal, NamedTuple

from podium.core.errors import BadInput
from podium.platform import shipped_folder

REGISTRY_FILE = "tools.registry.json"


def shipped_packs() -> Path:
    """The folder of the packs that come with Podium: in the package, or beside it in a checkout."""
    return shipped_folder("packs")


def is_shipped(folder: Path) -> bool:
    """Check that a folder lies there. Whoever can write there could change Podium itself."""
    return folder.resolve().is_relative_to(shipped_packs().resolve())


_MAX_EXCERPT_CHARACTERS = 200
Origin = Literal["project", "shipped"]


class PackFolder(NamedTuple):
    """A folder with a registry, which was not looked into."""

    name: str
    folder: Path
    origin: Origin


def list_packs(*, project: Path, shipped: Path) -> list[PackFolder]:
    """Packs that have a name here; the project's own come before shipped ones of the same name."""
    packs: dict[str, PackFolder] = {}
    roots: tuple[tuple[Origin, Path], ...] = (("project", project / "packs"), ("shipped", shipped))
    for origin, root in roots:
        for folder in sorted(root.iterdir()) if root.is_dir() else ():
            if _is_pack(folder):
                packs.setdefault(folder.name, PackFolder(folder.name, folder, origin))
    return list(packs.values())


def find_pack(name_or_dir: str | Path, *, project: Path, shipped: Path) -> Path:
    """The pack's folder: a path that has a registry, else a name. Raises `BadInput` with the names."""
    path = Path(name_or_dir)
    if str(name_or_dir) and _is_pack(path):
        return path.resolve()
    folders = {pack.name: pack.folder for pack in list_packs(project=project, shipped=shipped)}
    if str(name_or_dir) in folders:
        return folders[str(name_or_dir)].resolve()
    quoted = repr(str(name_or_dir)[:_MAX_EXCERPT_CHARACTERS])
    if "/" in str(name_or_dir) and _is_there(path):
        raise BadInput(f"{quoted} is no pack: it has no file {REGISTRY_FILE}")
    names = ", ".join(sorted(folders)) or "none"
    raise BadInput(f"there is no pack {quoted}; packs here: {names}")


def _is_pack(folder: Path) -> bool:
    return _is_there(folder / REGISTRY_FILE)


def _is_there(path: Path) -> bool:
    """False also for what can be no path at all."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


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
