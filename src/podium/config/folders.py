"""Folders of project and user, atomic writes into them, and the note that the database is on a server."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from podium.core.errors import BadInput, NotPossibleNow
from podium.core.protected_paths import STATE_DIR
from podium.platform import make_private_folder, tighten
from podium.platform.atomic_write import atomic_create, atomic_write


def write_whole(path: Path, text: str, *, mode: int = 0o644) -> None:
    """Put `text` in the file. On return it survives a crash; on an error the old content stands."""
    content = _in_private_folder(path, text)
    try:
        atomic_write(path, content, bits=mode)
    except OSError as error:
        raise _explained(path, error) from None


def write_new(path: Path, text: str, *, mode: int = 0o644) -> None:
    """Make the file. Raises `NotPossibleNow` when it is there already, whoever made it."""
    content = _in_private_folder(path, text)
    try:
        atomic_create(path, content, bits=mode)
    except FileExistsError:
        raise NotPossibleNow(f"{str(path)!r} already exists; nothing was changed") from None
    except OSError as error:
        raise _explained(path, error) from None


def _in_private_folder(path: Path, text: str) -> bytes:
    """Encode the text for a file, and make the folder for it where it is missing."""
    content = text.encode()
    try:
        make_private_folder(path.parent)
    except OSError as error:
        raise _explained(path, error) from None
    return content


def _explained(path: Path, error: OSError) -> BadInput:
    return BadInput(f"{str(path)!r} cannot be written: {error.strerror or error}")


PROJECT_FILE = "podium.yaml"
STATE_FOLDER = STATE_DIR
ID_NAME = "project-id"
IGNORE_FILE = ".gitignore"
"""Lies in the state folder and lets git ignore all of it; a project's own file stays as it is."""
_MARKERS = (PROJECT_FILE, ".git")


@dataclass(frozen=True)
class Folders:
    """The four folders of one invocation. None of them needs to exist."""

    project: Path
    """The project's root, real."""
    user_config: Path
    user_state: Path

    @property
    def state(self) -> Path:
        """The project's state: database, runs, sockets."""
        return self.project / STATE_FOLDER

    @property
    def project_file(self) -> Path:
        return self.project / PROJECT_FILE

    @property
    def user_file(self) -> Path:
        return self.user_config / "config.yaml"

    def make_state(self) -> Path:
        """The state folder, made private and unseen by git when it was not there.

        Folders of an earlier Podium that others may enter are taken from them.
        """
        refuse_foreign_state(self.state)
        make_private_folder(self.state)
        refuse_foreign_state(self.state)
        for folder in (self.state, self.user_state, *self.private):
            tighten(folder)
        ignore = self.state / IGNORE_FILE
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
        if not self.id_file.exists():
            # Two processes may come here at once: whose file was there first is the project's.
            with suppress(NotPossibleNow):
                write_new(self.id_file, f"{uuid4().hex}\n", mode=0o600)
        return self.state

    @property
    def key_dir(self) -> Path:
        """The key and the heads of the project's receipts: outside the project.

        Found by an id that lies in the state folder, so that a project may be moved or renamed. A
        project without state yet has none; the place named then is never made.
        """
        return self.user_state / "vaults" / self._project_id

    @property
    def homes(self) -> Path:
        """The private homes that agents of this project's runs have: outside the project, too."""
        return self.user_state / "homes" / self._project_id

    @property
    def grounds(self) -> Path:
        """Folder of snapshots and copies of playbooks' working folders: outside the project, so that no
        git in a copy finds the project's own repository above it."""
        return self.user_state / "grounds" / self._project_id

    @property
    def private(self) -> tuple[Path, ...]:
        """Folders of keys, homes and workspaces, with the folder above each."""
        own = (self.key_dir, self.homes, self.grounds)
        return (*(folder.parent for folder in own), *own, self.user_state / "workspaces")

    @property
    def _project_id(self) -> str:
        return project_id_in(self.state) or "none"

    @property
    def id_file(self) -> Path:
        return self.state / ID_NAME


def project_id_in(state: Path) -> str:
    """The id that lies in this state folder; empty where there is none."""
    try:
        name = (state / ID_NAME).read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
    return name if name.isalnum() else ""


def refuse_foreign_state(state: Path) -> None:
    """Raise `NotPossibleNow` where a state folder is there that Podium did not make.

    Whoever can write in a checkout, such as an agent in its workspace, could else choose where Podium writes.
    """
    problem = _state_problem(state)
    if problem:
        raise NotPossibleNow(
            f"{str(state)!r} {problem}; Podium uses only a folder that it created itself, and has read and written "
            f"nothing there. Find out who created it, then move it away"
        )


def _state_problem(state: Path) -> str:
    try:
        status = state.lstat()
        if stat.S_ISLNK(status.st_mode):
            return "is a symbolic link"
        if not stat.S_ISDIR(status.st_mode):
            return "is not a folder"
        # Whoever is root may look after the project of another user.
        if os.geteuid() not in (0, status.st_uid):
            return "belongs to another user"
        with os.scandir(state) as entries:
            links = sorted(entry.name for entry in entries if entry.is_symlink())
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    return f"contains a symbolic link, {links[0]!r}" if links else ""


def find_folders(
    environ: Mapping[str, str], *, project: Path | None = None, start: Path | None = None
) -> Folders:
    """The folders for a door. `project` is a person's word; without it we look upward from `start`.

    Raises `NotPossibleNow` where the project's state folder is not Podium's own.
    """
    chosen = project or (Path(environ["PODIUM_PROJECT"]) if environ.get("PODIUM_PROJECT") else None)
    if chosen is not None and not chosen.is_dir():
        raise BadInput(f"project folder {str(chosen)!r} does not exist")
    root = chosen.resolve() if chosen else project_root(start or Path.cwd())
    refuse_foreign_state(root / STATE_FOLDER)
    home = environ.get("PODIUM_HOME")
    if home:
        base = Path(home).expanduser().resolve()
        return Folders(project=root, user_config=base, user_state=base / "state")
    return Folders(
        project=root,
        user_config=_xdg(environ, "XDG_CONFIG_HOME", ".config") / "podium",
        user_state=_xdg(environ, "XDG_STATE_HOME", ".local/state") / "podium",
    )


def project_root(start: Path) -> Path:
    """The nearest folder upward that holds `podium.yaml`, `.podium` or `.git`; else `start` itself.

    An empty `.podium` marks no project: confinements make one so that no agent can.
    """
    start = start.resolve()
    for folder in (start, *start.parents):
        if any((folder / marker).exists() for marker in _MARKERS):
            return folder
        if _is_in_use(folder / STATE_FOLDER):
            return folder
    return start


def _is_in_use(state: Path) -> bool:
    try:
        return not state.is_dir() or any(state.iterdir()) if os.path.lexists(state) else False
    except OSError:
        return True


def _xdg(environ: Mapping[str, str], name: str, default: str) -> Path:
    # The specification says that relative values are to be ignored.
    value = environ.get(name, "")
    if value.startswith("/"):
        return Path(value)
    home = Path(environ.get("HOME") or os.path.expanduser("~"))  # noqa: PTH111 - HOME may be unset
    if not home.is_absolute():
        raise BadInput(f"the home folder is unknown ({str(home)!r}); set HOME or PODIUM_HOME")
    return home / default


_SERVER_FILE = "database"
_MAX_BYTES = 500


def note_server(folders: Folders, url: str) -> None:
    """Note where the record is, without a password. The state folder must be there."""
    from podium.store.postgres_connection import name_of

    name = name_of(url)
    if record_server(folders) != name:
        # It only helps people: work goes on without it.
        with suppress(BadInput):
            write_whole(_file(folders), f"{name}\n", mode=0o600)


def forget_server(folders: Folders) -> None:
    """The record is here again."""
    with suppress(OSError):
        _file(folders).unlink(missing_ok=True)


def is_on_server(folders: Folders) -> bool:
    """Tell whether the record was put on a server."""
    return bool(record_server(folders))


def elsewhere_notice(folders: Folders, environ: Mapping[str, str]) -> str:
    """A notice for somebody who works beside the record; empty when nobody does."""
    if environ.get("PODIUM_DATABASE_URL") or not (name := record_server(folders)):
        return ""
    return (
        f"this project's record is on {name}; set PODIUM_DATABASE_URL, or remove "
        f"{str(_file(folders))!r} to work here"
    )


def record_server(folders: Folders) -> str:
    """The server that the record was put on, without a password; empty when it is in the project's folder."""
    if not _file(folders).is_file():
        return ""
    try:
        with _file(folders).open("rb") as file:
            lines = file.read(_MAX_BYTES).decode(errors="replace").splitlines()
    except OSError:
        return ""
    return lines[0].strip() if lines else ""


def _file(folders: Folders) -> Path:
    return folders.state / _SERVER_FILE
