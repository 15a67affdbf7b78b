"""Finds packs: by path, in the project, or among those that come with Podium."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple

from podium.core.errors import BadInput
from podium.tools.packs.files import REGISTRY_FILE

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
