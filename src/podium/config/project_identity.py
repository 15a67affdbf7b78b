"""Identity of a project: its id in the state folder, its home beside the receipt key."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

from podium.config.folders import Folders, project_id_in, write_whole
from podium.core.errors import PodiumError
from podium.platform import make_private_folder
from podium.platform.file_lock import folder_lock

LOCATION = "location.json"


def settle_identity(folders: Folders, notify: Callable[[str], None]) -> None:
    """Note where the project is, or give a copy its own id and tell so. The state folder must be there.

    Where nothing may be written everything stays as it is: whoever only reads has no use for another id.
    """
    if noted_path(folders.key_dir) == str(folders.project):
        return
    try:
        with folder_lock(folders.key_dir):
            original = noted_path(folders.key_dir)
            if is_copy(folders):
                _divide(folders)
                notify(
                    f"{str(folders.project)!r} is a copy of {original!r}: from now on it has its own identity, and "
                    "the receipts of each are verified separately"
                )
            else:
                _note_path(folders.key_dir, folders.project)
    except (OSError, PodiumError):
        return


def is_copy(folders: Folders) -> bool:
    """Tell whether the project is still where it was noted, and this one has its id too."""
    original = noted_path(folders.key_dir)
    state = Path(original, folders.state.name)
    if not original or project_id_in(state) != project_id_in(folders.state):
        return False
    return not state.samefile(folders.state)


def key_dirs_left_behind(folders: Folders) -> list[Path]:
    """Vaults with heads of other records that were in this very folder: its state folder was removed since."""
    own = folders.key_dir
    vaults = own.parent.iterdir() if own.parent.is_dir() else ()
    return sorted(
        key_dir
        for key_dir in vaults
        if key_dir != own
        and noted_path(key_dir) == str(folders.project)
        and (key_dir / "heads").is_dir()
    )


def _divide(folders: Folders) -> None:
    """Give this folder a new id. Until that is written, at last, nothing refers to the new vault."""
    from podium.store import DATABASE_NAME, Anchors, copy_heads
    from podium.store.receipts import BEGUN_ANEW

    old, name = folders.key_dir, uuid4().hex
    new = old.with_name(name)
    make_private_folder(new)
    for file in (old / "receipt.key", old / BEGUN_ANEW):
        if file.exists():
            shutil.copy2(file, new / file.name)
    copy_heads(Anchors(old), Anchors(new), folders.state / DATABASE_NAME)
    _note_path(new, folders.project)
    write_whole(folders.id_file, f"{name}\n", mode=0o600)


def noted_path(key_dir: Path) -> str:
    """Folder of this key folder's project when its record was last opened; empty where that is not noted."""
    try:
        noted = json.loads((key_dir / LOCATION).read_text("utf-8"))
        return str(noted["path"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _note_path(key_dir: Path, project: Path) -> None:
    text = json.dumps({"path": str(project)}, ensure_ascii=False)
    write_whole(key_dir / LOCATION, f"{text}\n", mode=0o600)
